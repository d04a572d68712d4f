//! The engine: its folder, its process, and what is asked of it.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use trimtab_emu::Namespace;
use trimtab_fleet_client::{
    Action, Client, DecisionBody, Error as EngineError, Listing, Name, OrderBody, Role,
};

use super::scenario::KernelFleet;
use crate::error::RealError;

/// Until a process does what it should at its start. Loading the algorithms takes a busy machine some seconds.
const START_WITHIN: Duration = Duration::from_secs(30);
/// Steps in which that is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// In the engine's namespace, where nobody else is.
const PORT: u16 = 7480;
/// Before a process that was asked to end is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A process of ours, which writes what it says into a file.
#[derive(Debug)]
pub(super) struct Process {
    what: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `trimtab` with some arguments in a namespace. It dies with us.
    pub(super) fn start(
        place: &Namespace,
        program: &Path,
        arguments: &[&str],
        config: &Path,
        log: PathBuf,
    ) -> Result<Self, RealError> {
        let what = format!("trimtab {} --config {}", arguments.join(" "), config.display());
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(RealError::system("write the log of a process"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg("--config").arg(config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let child = place.spawn(command)?;
        Ok(Self { what, child, log })
    }

    /// Waits until `look` finds what it looks for.
    pub(super) fn wait_for<T>(
        &mut self,
        missing: &str,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, RealError> {
        let start = Instant::now();
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            self.check()?;
            if start.elapsed() > START_WITHIN {
                return Err(self.problem(missing));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether it still runs.
    pub(super) fn check(&mut self) -> Result<(), RealError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.problem(&format!("it ended ({status})"))),
            Err(cause) => Err(RealError::system("look after a process")(cause)),
        }
    }

    fn problem(&self, what: &str) -> RealError {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().rev().find(|line| !line.is_empty()).unwrap_or("nothing");
        RealError::Process {
            process: self.what.clone(),
            problem: format!("{what}; the last that it said: {last}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        // Asked first, so that it leaves everything in order.
        let _ = kill_process(pid, Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < END_WITHIN && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The engine of a fleet, in a namespace of its own.
pub(super) struct Site {
    pub(super) place: Namespace,
    pub(super) folder: PathBuf,
    program: PathBuf,
    process: Process,
    service: String,
    operator: Arc<Client>,
}

impl Site {
    /// Writes the configuration and starts the engine.
    pub(super) fn start(
        fleet: &KernelFleet,
        folder: &Path,
        program: &Path,
    ) -> Result<Self, RealError> {
        let engine = folder.join("engine");
        let services = engine.join("services");
        let service = fleet.service.name().as_str().to_owned();
        // Nobody but this fleet is in its network, so it speaks in the clear there.
        let text = format!(
            "listen = \"0.0.0.0:{PORT}\"\nplaintext = true\nservices = \"services\"\n\
             grace = \"{}\"\n\n[store]\nfile = \"engine.db\"\n",
            fleet.grace
        );
        fs::create_dir_all(&services)
            .and_then(|()| fs::write(services.join(format!("{service}.toml")), &fleet.service_text))
            .and_then(|()| fs::write(engine.join("engine.toml"), text))
            .map_err(RealError::system("write the engine's configuration"))?;
        let config = engine.join("engine.toml");
        let token = add_token(program, &config, "experiment", Role::Operator, None)?;
        let place = Namespace::new()?;
        let log = engine.join("log");
        let mut process =
            Process::start(&place, program, &["engine", "run"], &config, log.clone())?;
        process.wait_for("it does not listen", || {
            fs::read_to_string(&log).ok().filter(|said| said.contains("listens at"))
        })?;
        let url = format!("http://127.0.0.1:{PORT}");
        let operator = Arc::new(Client::new(&url, &token, None)?);
        Ok(Self {
            place,
            folder: folder.to_owned(),
            program: program.to_owned(),
            process,
            service,
            operator,
        })
    }

    /// The command that engine and agents are.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// The service's name.
    pub(super) fn service(&self) -> &str {
        &self.service
    }

    /// A token for an edge.
    pub(super) fn token(&self, edge: &str) -> Result<String, RealError> {
        let config = self.folder.join("engine/engine.toml");
        add_token(&self.program, &config, edge, Role::Edge, Some(&self.service))
    }

    /// Where an edge finds the engine, by the engine's address on the link to it.
    pub(super) fn url(address: Ipv4Addr) -> String {
        format!("http://{address}:{PORT}")
    }

    /// Whether the engine still runs.
    pub(super) fn check(&mut self) -> Result<(), RealError> {
        self.process.check()
    }

    /// Asks the engine, from its namespace.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Client) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, RealError> {
        let client = Arc::clone(&self.operator);
        Ok(self.place.run(move || question(&client))?)
    }

    /// Whether the engine has an aggregate of this prefix.
    pub(super) fn knows(&self, prefix: &str) -> Result<bool, RealError> {
        let listing = Listing { limit: 1000, ..Listing::default() };
        let all = self.ask(move |client| client.aggregates(&listing))?;
        Ok(all.aggregates.iter().any(|aggregate| aggregate.prefix == prefix))
    }

    /// The latest decisions about a prefix, the latest first.
    pub(super) fn decisions(
        &self,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<DecisionBody>, RealError> {
        let name = Name { service: self.service.clone(), prefix: prefix.to_owned() };
        Ok(self.ask(move |client| client.decisions(&name, limit))?.decisions)
    }

    /// Stays at the best guess for a prefix, or at the safe configuration; the knobs that are in force then.
    pub(super) fn hold(&self, prefix: &str, safe: bool) -> Result<serde_json::Value, RealError> {
        let (action, knobs) =
            if safe { (Action::Pin, Some(serde_json::json!({}))) } else { (Action::Pause, None) };
        let order = OrderBody {
            service: self.service.clone(),
            prefix: prefix.to_owned(),
            action,
            version: None,
            knobs,
            interval: None,
            reason: "comparison".to_owned(),
        };
        Ok(self.ask(move |client| client.order(&order))?.configuration)
    }
}

/// A new token: `trimtab engine token add` writes it into the engine's store, which may be in use.
fn add_token(
    program: &Path,
    config: &Path,
    name: &str,
    role: Role,
    service: Option<&str>,
) -> Result<String, RealError> {
    let mut command = Command::new(program);
    command.args(["engine", "token", "add", name, "--role", role.name()]);
    command.args(service.iter().flat_map(|service| ["--service", service]));
    command.arg("--config").arg(config).stdin(Stdio::null());
    let output = command.output().map_err(RealError::system("make a token of the engine"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let process = format!("trimtab engine token add {name} --config {}", config.display());
    let problem = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(RealError::Process { process, problem })
}

#[cfg(test)]
mod tests;
