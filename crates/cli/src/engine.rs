//! `trimtab engine`.

use serde::Serialize;
use serde_json::{Map, Value};
use trimtab_engine as engine;
use trimtab_fleet_client::{Action, Client, Listing, Name, OrderBody};

use crate::args::{AskEngine, Engine, EngineCommand, Order, TokenCommand};
use crate::{Failure, print, study};

/// Runs the engine, or asks the one that runs.
pub(crate) fn run(args: Engine) -> Result<(), Failure> {
    match args.command {
        EngineCommand::Run { config } => engine::run(&config).map_err(Failure::input),
        EngineCommand::Status(ask) => {
            let status = client(&ask)?.status().map_err(Failure::input)?;
            show(&status, ask.json, engine::status_text)
        }
        EngineCommand::Aggregates { search, service, hold, limit, ask } => {
            let listing = Listing {
                search: search.unwrap_or_default(),
                service,
                hold: hold.map(Into::into),
                limit,
            };
            let all = client(&ask)?.aggregates(&listing).map_err(Failure::input)?;
            show(&all, ask.json, engine::aggregates_text)
        }
        EngineCommand::Explain { aggregate, last, ask } => explain(&aggregate, last, &ask),
        EngineCommand::Pause(order) => give(order, Action::Pause, None),
        EngineCommand::Resume(order) => give(order, Action::Resume, None),
        EngineCommand::Pin { order, knobs } => pin(order, &knobs),
        EngineCommand::Rollback { order, to } => give(order, Action::Rollback, Some(to)),
        EngineCommand::Reset(order) => give(order, Action::Reset, None),
        EngineCommand::Audit { limit, ask } => {
            let audit = client(&ask)?.audit(limit).map_err(Failure::input)?;
            show(&audit, ask.json, engine::audit_text)
        }
        EngineCommand::Comparisons(ask) => {
            let all = client(&ask)?.comparisons().map_err(Failure::input)?;
            show(&all, ask.json, engine::comparisons_text)
        }
        EngineCommand::Experiment(command) => study::experiment(command),
        EngineCommand::Rollout(command) => study::rollout(command),
        EngineCommand::Token(command) => token(command),
    }
}

pub(crate) fn client(ask: &AskEngine) -> Result<Client, Failure> {
    let token = match (&ask.token_file, std::env::var("TRIMTAB_TOKEN")) {
        (Some(file), _) => std::fs::read_to_string(file).map_err(|e| {
            trimtab_fleet_client::Error::NoToken(format!("cannot read {}: {e}", file.display()))
        }),
        (None, Ok(token)) => Ok(token),
        (None, Err(_)) => Err(trimtab_fleet_client::Error::NoToken(
            "give one with --token-file or TRIMTAB_TOKEN; `trimtab engine token add` makes one"
                .to_owned(),
        )),
    };
    let token = token.map_err(Failure::input)?;
    Client::new(&ask.engine, &token, ask.ca.as_deref()).map_err(Failure::input)
}

pub(crate) fn show<T: Serialize>(
    value: &T,
    json: bool,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(value).map_err(Failure::input)?;
        print(&(text + "\n"))
    } else {
        print(&text(value))
    }
}

#[derive(Serialize)]
struct Explanation<'a> {
    aggregate: &'a trimtab_fleet_client::AggregateBody,
    history: &'a trimtab_fleet_client::DecisionsBody,
}

fn explain(name: &Name, last: usize, ask: &AskEngine) -> Result<(), Failure> {
    let client = client(ask)?;
    let aggregate = client.aggregate(name).map_err(Failure::input)?;
    let history = client.decisions(name, last).map_err(Failure::input)?;
    let both = Explanation { aggregate: &aggregate, history: &history };
    show(&both, ask.json, |both| engine::explain_text(both.aggregate, both.history))
}

fn give(order: Order, action: Action, interval: Option<i64>) -> Result<(), Failure> {
    let Name { service, prefix } = order.aggregate;
    let reason = order.reason;
    let body = OrderBody { service, prefix, action, version: None, knobs: None, interval, reason };
    let after = client(&order.ask)?.order(&body).map_err(Failure::input)?;
    show(&after, order.ask.json, engine::aggregate_text)
}

/// Pins the knobs that are named, and the others as they are in force, as the dashboard does;
/// refused when these change meanwhile.
fn pin(order: Order, named: &[(String, f64)]) -> Result<(), Failure> {
    let client = client(&order.ask)?;
    let services = client.services().map_err(Failure::input)?.services;
    let before = client.aggregate(&order.aggregate).map_err(Failure::input)?;
    let in_force = &before.configuration["knobs"];
    let service = services.iter().find(|service| service.name == before.service);
    let learnt = service.into_iter().flat_map(|service| &service.knobs);
    let knobs = every_knob(learnt.map(|knob| knob.name.as_str()), in_force, named);
    let Name { service, prefix } = order.aggregate;
    let body = OrderBody {
        service,
        prefix,
        action: Action::Pin,
        version: Some(before.version),
        knobs: Some(knobs.into()),
        interval: None,
        reason: order.reason,
    };
    let after = client.order(&body).map_err(Failure::input)?;
    show(&after, order.ask.json, |after| {
        engine::aggregate_text(after) + &changes(in_force, &after.configuration["knobs"])
    })
}

/// The knobs that are learnt: as they are named, else as they are in force.
fn every_knob<'a>(
    learnt: impl Iterator<Item = &'a str>,
    in_force: &Value,
    named: &[(String, f64)],
) -> Map<String, Value> {
    let kept = learnt.filter_map(|knob| Some((knob.to_owned(), in_force.get(knob)?.clone())));
    kept.chain(named.iter().map(|(knob, value)| (knob.clone(), (*value).into()))).collect()
}

/// What became of each knob.
fn changes(before: &Value, after: &Value) -> String {
    let after = after.as_object().into_iter().flatten();
    let line = |(knob, now): (&String, &Value)| match before.get(knob) {
        Some(then) if then == now => format!("  {knob} {now}, as before\n"),
        then => format!("  {knob} {} -> {now}\n", then.unwrap_or(&Value::Null)),
    };
    after.map(line).collect()
}

fn token(command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::Add { name, role, service, prefix, config } => {
            let token = engine::add_token(&config, &name, role.into(), service, prefix)
                .map_err(Failure::input)?;
            print(&(token + "\n"))
        }
        TokenCommand::List { json, config } => {
            let tokens = engine::list_tokens(&config).map_err(Failure::input)?;
            show(&tokens, json, |tokens| engine::tokens_text(tokens))
        }
        TokenCommand::Revoke { name, config } => {
            engine::revoke_token(&config, &name).map_err(Failure::input)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `pin gamma=900` put startup_rate_max back to its safe value, which the dashboard does not.
    #[test]
    fn what_is_not_named_stays_as_it_is_in_force() {
        let in_force = json!({ "gamma": 400.0, "startup_rate_max": 1000.0, "fixed": 1.0 });
        let learnt = ["gamma", "startup_rate_max"].into_iter();
        let knobs = every_knob(learnt, &in_force, &[("gamma".to_owned(), 900.0)]);
        assert_eq!(Value::from(knobs), json!({ "gamma": 900.0, "startup_rate_max": 1000.0 }));
    }

    #[test]
    fn a_pin_says_what_it_changed_and_what_stays() {
        let before = json!({ "gamma": 400.0, "startup_rate_max": 1000.0 });
        let after = json!({ "gamma": 900.0, "startup_rate_max": 1000.0 });
        let said = changes(&before, &after);
        assert_eq!(said, "  gamma 400.0 -> 900.0\n  startup_rate_max 1000.0, as before\n");
    }
}
