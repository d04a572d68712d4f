//! `trimtab agent` and `trimtab doctor`.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use trimtab_agent::{self as agent, Order, Verb};
use trimtab_kernel::{Doctor, Health};

use crate::args::{Agent, AgentCommand, AskAgent, EndOrder, OrderAgent};
use crate::{Failure, print};

/// Runs the daemon, or asks the one that runs.
pub(crate) fn run(args: Agent) -> Result<(), Failure> {
    let done = match args.command {
        None => agent::run(&args.config),
        Some(AgentCommand::Status(ask)) => {
            return show(agent::ask_status(&ask.socket), &ask, ToString::to_string);
        }
        Some(AgentCommand::Flows(ask)) => {
            return show(agent::ask_flows(&ask.socket), &ask, |flows| agent::flow_table(flows));
        }
        Some(AgentCommand::Why { flow, ask }) => {
            return show(agent::ask_why(&ask.socket, &flow), &ask, ToString::to_string);
        }
        Some(AgentCommand::Top { interval, looks, ask }) => {
            let interval = std::time::Duration::from_nanos(interval.as_nanos());
            if ask.json {
                return looks_as_json(&ask, interval, looks);
            }
            agent::top(&ask.socket, interval)
        }
        Some(AgentCommand::Pause(order)) => return lasting(Verb::Pause, order),
        Some(AgentCommand::Exclude(order)) => return lasting(Verb::Exclude, order),
        Some(AgentCommand::Restore(order)) => return lasting(Verb::Restore, order),
        Some(AgentCommand::Resume(order)) => return at_once(Verb::Resume, order),
        Some(AgentCommand::Reset(order)) => return at_once(Verb::Reset, order),
        Some(AgentCommand::Check { config }) => {
            return print(&agent::check(&config).map_err(Failure::input)?.to_string());
        }
        Some(AgentCommand::Unload { config }) => {
            return print(&agent::unload(config.as_deref()).map_err(Failure::input)?.to_string());
        }
    };
    done.map_err(Failure::input)
}

fn lasting(verb: Verb, OrderAgent { target, lasts, ask }: OrderAgent) -> Result<(), Failure> {
    let lasts = lasts.map(trimtab_units::Duration::as_secs_f64);
    order(&Order { verb, target, lasts }, &ask)
}

fn at_once(verb: Verb, EndOrder { target, ask }: EndOrder) -> Result<(), Failure> {
    order(&Order { verb, target, lasts: None }, &ask)
}

fn order(order: &Order, ask: &AskAgent) -> Result<(), Failure> {
    show(agent::order(&ask.socket, order), ask, ToString::to_string)
}

fn show<T: Serialize>(
    answer: Result<T, agent::Error>,
    ask: &AskAgent,
    as_text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let answer = answer.map_err(Failure::input)?;
    if ask.json { print_json(&answer) } else { print(&as_text(&answer)) }
}

/// A line of JSON for each look, until nobody reads them or there were enough.
fn looks_as_json(
    ask: &AskAgent,
    interval: std::time::Duration,
    looks: Option<u64>,
) -> Result<(), Failure> {
    let mut left = looks.unwrap_or(u64::MAX);
    while left > 0 {
        let look = agent::look(&ask.socket).map_err(Failure::input)?;
        let line = serde_json::to_string(&look).map_err(Failure::input)? + "\n";
        match std::io::stdout().lock().write_all(line.as_bytes()) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(Failure::input)?,
        }
        left -= 1;
        if left > 0 {
            std::thread::sleep(interval);
        }
    }
    Ok(())
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::input)?;
    print(&(text + "\n"))
}

#[derive(Serialize)]
struct FindingJson<'a> {
    subject: &'a str,
    health: &'a str,
    found: &'a str,
    remedy: &'a str,
}

/// What this machine supports; a failed check when the datapath cannot run.
pub(crate) fn doctor(root: &Path, json: bool) -> Result<(), Failure> {
    let findings = Doctor::at(root).examine();
    let health = |health: Health| match health {
        Health::Good => "good",
        Health::Note => "note",
        Health::Bad => "bad",
    };
    if json {
        let all: Vec<FindingJson<'_>> = findings
            .iter()
            .map(|f| FindingJson {
                subject: f.subject,
                health: health(f.health),
                found: &f.found,
                remedy: f.remedy,
            })
            .collect();
        print_json(&all)?;
    } else {
        let lines: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
        print(&lines)?;
    }
    match findings.iter().filter(|f| f.health == Health::Bad).count() {
        0 => Ok(()),
        1 => Err(Failure::check("TCP cannot be tuned here: see the line that begins with NO")),
        bad => Err(Failure::check(format!(
            "TCP cannot be tuned here: the {bad} lines that begin with NO say why"
        ))),
    }
}
