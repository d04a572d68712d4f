//! `trimtab engine`.

use serde::Serialize;
use serde_json::{Map, Value};
use trimtab_engine as engine;
use trimtab_engine::{Action, Client, Listing, Name, OrderBody};

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
        EngineCommand::Pause(order) => give(order, Action::Pause, None, None),
        EngineCommand::Resume(order) => give(order, Action::Resume, None, None),
        EngineCommand::Pin { order, knobs } => {
            let knobs: Map<String, Value> =
                knobs.into_iter().map(|(knob, value)| (knob, value.into())).collect();
            give(order, Action::Pin, Some(knobs.into()), None)
        }
        EngineCommand::Rollback { order, to } => give(order, Action::Rollback, None, Some(to)),
        EngineCommand::Reset(order) => give(order, Action::Reset, None, None),
        EngineCommand::Audit { limit, ask } => {
            let audit = client(&ask)?.audit(limit).map_err(Failure::input)?;
            show(&audit, ask.json, engine::audit_text)
        }
        EngineCommand::Experiment(command) => study::experiment(command),
        EngineCommand::Rollout(command) => study::rollout(command),
        EngineCommand::Token(command) => token(command),
    }
}

pub(crate) fn client(ask: &AskEngine) -> Result<Client, Failure> {
    let token = match (&ask.token_file, std::env::var("TRIMTAB_TOKEN")) {
        (Some(file), _) => std::fs::read_to_string(file)
            .map_err(|e| engine::Error::NoToken(format!("cannot read {}: {e}", file.display()))),
        (None, Ok(token)) => Ok(token),
        (None, Err(_)) => Err(engine::Error::NoToken(
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
    aggregate: &'a engine::AggregateBody,
    history: &'a engine::DecisionsBody,
}

fn explain(name: &Name, last: usize, ask: &AskEngine) -> Result<(), Failure> {
    let client = client(ask)?;
    let aggregate = client.aggregate(name).map_err(Failure::input)?;
    let history = client.decisions(name, last).map_err(Failure::input)?;
    let both = Explanation { aggregate: &aggregate, history: &history };
    show(&both, ask.json, |both| engine::explain_text(both.aggregate, both.history))
}

fn give(
    order: Order,
    action: Action,
    knobs: Option<Value>,
    interval: Option<i64>,
) -> Result<(), Failure> {
    let Name { service, prefix } = order.aggregate;
    let body =
        OrderBody { service, prefix, action, version: None, knobs, interval, reason: order.reason };
    let after = client(&order.ask)?.order(&body).map_err(Failure::input)?;
    show(&after, order.ask.json, engine::aggregate_text)
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
