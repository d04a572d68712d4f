//! `trimtab engine`.

use serde::Serialize;
use serde_json::{Map, Value, json};
use trimtab_engine as engine;
use trimtab_fleet_client::edge::Together;
use trimtab_fleet_client::{
    Action, BulkOrder, Client, EndSafe, Listing, Name, NewSafe, NewToken, OrderBody, RotateToken,
    Secret, WhatIfAsked,
};

use crate::args::{
    AskEngine, Audit, AuditKind, Engine, EngineCommand, Order, Resume, TokenCommand,
};
use crate::cmcd::groups;
use crate::{Failure, print, study};

/// Runs the engine, or asks the one that runs.
pub(crate) fn run(args: Engine) -> Result<(), Failure> {
    match args.command {
        EngineCommand::Run { config } => engine::run(&config).map_err(Failure::input),
        EngineCommand::Demo { listen } => engine::demo(listen, |url, token| {
            // Who closed standard output has the engine's own lines.
            let _ = print(&format!(
                "The dashboard: {url}\nSign in with this token, which goes when the demo ends:\n{token}\n\
                 End it with Ctrl-C.\n"
            ));
        })
        .map_err(Failure::input),
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
        EngineCommand::WhatIf { of, knobs, algorithm, last, ask } => {
            let (service, prefix) = match of.split_once('/') {
                Some((service, prefix)) => (service.to_owned(), Some(prefix.to_owned())),
                None => (of, None),
            };
            let knobs = knobs.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
            let asked = WhatIfAsked { service, prefix, algorithm, knobs, last };
            let body = client(&ask)?.what_if(&asked).map_err(Failure::input)?;
            show(&body, ask.json, engine::what_if_text)
        }
        EngineCommand::Shared { service, with, last, ask } => {
            let before = with.as_deref().map_or_else(|| Ok(Together::default()), groups)?;
            let mut body = client(&ask)?.shared(&service, last).map_err(Failure::input)?;
            let together = body.sharing.added_to(before).to_string();
            body.together = together.lines().map(str::to_owned).collect();
            show(&body, ask.json, engine::shared_text)
        }
        EngineCommand::FitSurrogate { service, last, ask } => {
            let body = client(&ask)?.fit_surrogate(&service, last).map_err(Failure::input)?;
            show(&body, ask.json, engine::fit_surrogate_text)
        }
        EngineCommand::Pause(order) => give(order, Action::Pause, None),
        EngineCommand::Resume(args) => resume(args),
        EngineCommand::Safe { service, why, ask } => {
            let new = NewSafe { services: service, why };
            let body = client(&ask)?.make_safe(&new).map_err(Failure::input)?;
            show(&body, ask.json, engine::safe_text)
        }
        EngineCommand::Pin { order, knobs, algorithm } => pin(order, &knobs, algorithm.as_deref()),
        EngineCommand::Rollback { order, to } => give(order, Action::Rollback, Some(to)),
        EngineCommand::Reset(order) => give(order, Action::Reset, None),
        EngineCommand::Audit(args) => audit(&args),
        EngineCommand::Comparisons(ask) => {
            let all = client(&ask)?.comparisons().map_err(Failure::input)?;
            show(&all, ask.json, engine::comparisons_text)
        }
        EngineCommand::Experiment(command) => study::experiment(command),
        EngineCommand::Rollout(command) => study::rollout(command),
        EngineCommand::Backup { to, config } => {
            engine::back_up_store(&config, &to).map_err(Failure::input)?;
            print(&format!("wrote {}\n", to.display()))
        }
        EngineCommand::Move { from, json, config } => {
            let moved = engine::move_store(&config, &from).map_err(Failure::input)?;
            let rows: Map<String, Value> =
                moved.iter().map(|&(table, rows)| (table.to_owned(), rows.into())).collect();
            show(&rows, json, |_| engine::moved_text(&moved))
        }
        EngineCommand::Token(command) => token(command),
    }
}

fn resume(args: Resume) -> Result<(), Failure> {
    let Resume { aggregate, many, service, reason, ask } = args;
    if let Some(aggregate) = aggregate {
        return give(Order { aggregate, many, reason, ask }, Action::Resume, None);
    }
    let end = EndSafe { services: service, reason };
    let body = client(&ask)?.end_safe(&end).map_err(Failure::input)?;
    show(&body, ask.json, engine::safe_text)
}

fn audit(args: &Audit) -> Result<(), Failure> {
    if !args.verify {
        let refused = args.only.map(|kind| kind == AuditKind::Refused);
        let audit = client(&args.ask)?.audit(refused, args.limit).map_err(Failure::input)?;
        return show(&audit, args.ask.json, engine::audit_text);
    }
    let check = engine::check_audit(&args.config, args.known.as_ref()).map_err(Failure::input)?;
    if args.ask.json {
        let found = check.found.map(|found| found.to_string());
        let end = check.end.to_string();
        let body =
            json!({ "lines": check.lines, "first": check.first, "end": end, "found": found });
        show(&body, true, ToString::to_string)?;
    }
    let text = engine::audit_check_text(&check);
    match check.found {
        Some(_) => Err(Failure::check(text.trim_end())),
        None if args.ask.json => Ok(()),
        None => print(&text),
    }
}

pub(crate) fn client(ask: &AskEngine) -> Result<Client, Failure> {
    let given = ask.at.secret(ask.token_file.as_deref());
    let secret = given.or_else(|| std::env::var("TRIMTAB_TOKEN").ok().map(Secret::Text));
    let secret = secret.ok_or_else(|| {
        Failure::input(trimtab_fleet_client::Error::NoToken(
            "give one with --token-file or TRIMTAB_TOKEN, or a --certificate with its --key; \
             `trimtab engine token add` makes a token"
                .to_owned(),
        ))
    })?;
    Client::new(&ask.at.engine, secret, ask.at.ca.as_deref()).map_err(Failure::input)
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

/// What stands for every service, or for every subnet.
const ALL: &str = "all";

/// The order for many aggregates that is meant; none where it is for one.
fn for_many(order: &Order, action: Action) -> Option<BulkOrder> {
    let Order { aggregate: Name { service, prefix }, many, reason, .. } = order;
    let is_many = many.within || many.dry_run || service == ALL || prefix == ALL;
    let named = |name: &String| (name != ALL).then(|| name.clone());
    is_many.then(|| BulkOrder {
        service: named(service),
        within: named(prefix),
        action,
        knobs: None,
        interval: None,
        reason: reason.clone(),
        dry_run: many.dry_run,
    })
}

fn give_to_many(order: &BulkOrder, ask: &AskEngine) -> Result<(), Failure> {
    let body = client(ask)?.order_all(order).map_err(Failure::input)?;
    show(&body, ask.json, engine::bulk_text)
}

fn give(order: Order, action: Action, interval: Option<i64>) -> Result<(), Failure> {
    if let Some(many) = for_many(&order, action) {
        return give_to_many(&BulkOrder { interval, ..many }, &order.ask);
    }
    let Name { service, prefix } = order.aggregate;
    let reason = order.reason;
    let body = OrderBody { service, prefix, action, version: None, knobs: None, interval, reason };
    let after = client(&order.ask)?.order(&body).map_err(Failure::input)?;
    show(&after, order.ask.json, engine::aggregate_text)
}

/// Pins another algorithm, or the knobs that are named, and the others as they are in force, as the
/// dashboard does; refused when these change meanwhile.
fn pin(order: Order, named: &[(String, f64)], algorithm: Option<&str>) -> Result<(), Failure> {
    let named: Map<String, Value> =
        named.iter().map(|(knob, value)| (knob.clone(), (*value).into())).collect();
    if let Some(many) = for_many(&order, Action::Pin) {
        let knobs = algorithm.map_or(Value::from(named), |name| json!({ "algorithm": name }));
        return give_to_many(&BulkOrder { knobs: Some(knobs), ..many }, &order.ask);
    }
    let client = client(&order.ask)?;
    let services = client.services().map_err(Failure::input)?.services;
    let before = client.aggregate(&order.aggregate).map_err(Failure::input)?;
    let service = services.iter().find(|service| service.name == before.service);
    let knobs = match algorithm {
        Some(algorithm) => json!({ "algorithm": algorithm }),
        None => service
            .map_or(named.clone(), |one| one.knobs_with(&before.configuration, &named))
            .into(),
    };
    let Name { service, prefix } = order.aggregate;
    let body = OrderBody {
        service,
        prefix,
        action: Action::Pin,
        version: Some(before.version),
        knobs: Some(knobs),
        interval: None,
        reason: order.reason,
    };
    let after = client.order(&body).map_err(Failure::input)?;
    show(&after, order.ask.json, |after| {
        engine::aggregate_text(after) + &changes(&before.configuration, &after.configuration)
    })
}

/// What became of the algorithm and of each knob.
fn changes(before: &Value, after: &Value) -> String {
    let is_same = before["algorithm"] == after["algorithm"];
    let name =
        |configuration: &Value| configuration["algorithm"].as_str().unwrap_or("-").to_owned();
    let algorithm = format!("  algorithm {} -> {}\n", name(before), name(after));
    let line = |(knob, now): (&String, &Value)| match before["knobs"].get(knob) {
        Some(then) if is_same && then == now => format!("  {knob} {now}, as before\n"),
        Some(then) if is_same => format!("  {knob} {then} -> {now}\n"),
        _ => format!("  {knob} {now}\n"),
    };
    let knobs = after["knobs"].as_object().into_iter().flatten().map(line);
    (!is_same).then_some(algorithm).into_iter().chain(knobs).collect()
}

fn token(command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::Add { name, role, service, prefix, expires, config } => {
            let new =
                NewToken { name, role: role.into(), services: service, prefixes: prefix, expires };
            let token = engine::add_token(&config, &new).map_err(Failure::input)?;
            print(&(token + "\n"))
        }
        TokenCommand::Rotate { name, expires, overlap, config } => {
            let asked = RotateToken { name, expires, overlap };
            let token = engine::rotate_token(&config, &asked).map_err(Failure::input)?;
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
    use clap::Parser as _;
    use serde_json::json;

    use super::*;

    /// The order for many aggregates that a command line means.
    fn means(words: &str) -> Option<BulkOrder> {
        let words = ["trimtab", "engine", "pause"].into_iter().chain(words.split(' '));
        let args = crate::args::Cli::try_parse_from(words).expect("it is understood");
        let crate::args::Command::Engine(engine) = args.command else { panic!("the engine") };
        let EngineCommand::Pause(order) = engine.command else { panic!("a pause") };
        for_many(&order, Action::Pause)
    }

    #[test]
    fn an_order_is_for_one_aggregate_unless_it_says_otherwise() {
        assert_eq!(means("tv/203.0.113.0/24 --reason test"), None);
        let chosen = |words: &str| {
            let BulkOrder { service, within, dry_run, .. } = means(words).expect("for many");
            (service, within, dry_run)
        };
        let (tv, within) = (Some("tv".to_owned()), Some("203.0.112.0/20".to_owned()));
        assert_eq!(chosen("tv/203.0.112.0/20 --within"), (tv.clone(), within.clone(), false));
        assert_eq!(chosen("tv/203.0.112.0/20 --dry-run"), (tv.clone(), within.clone(), true));
        assert_eq!(chosen("tv/all"), (tv, None, false));
        assert_eq!(chosen("all/203.0.112.0/20"), (None, within, false));
        assert_eq!(chosen("all/all --dry-run"), (None, None, true));
    }

    #[test]
    fn a_pin_says_what_it_changed_and_what_stays() {
        let vivace = |gamma: f64| {
            let knobs = json!({ "gamma": gamma, "startup_rate_max": 1000.0 });
            json!({ "algorithm": "vivace", "knobs": knobs })
        };
        let (before, after) = (vivace(400.0), vivace(900.0));
        let said = changes(&before, &after);
        assert_eq!(said, "  gamma 400.0 -> 900.0\n  startup_rate_max 1000.0, as before\n");
        let copa = json!({ "algorithm": "copa", "knobs": { "delta": 0.04 } });
        assert_eq!(changes(&before, &copa), "  algorithm vivace -> copa\n  delta 0.04\n");
    }
}
