//! The configuration: one TOML file, whose mistakes are reported with line and column.

mod check;
mod compare;
mod error;
mod fleet;
mod forest;
mod grounds;
mod learnt;
mod raw;
mod steering;
mod turns;
mod value;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use trimtab_datapath::Algorithm;
use trimtab_qoe::{Factors, Model};
use trimtab_units::Bytes;

#[cfg(feature = "fuzzing")]
pub(crate) use check::checked;
pub use check::{Checked, check};
pub(crate) use compare::STEP;
pub use compare::{Bottleneck, Breaker, Compare, Rollout};
pub use error::ConfigError;
pub use fleet::{Customized, Fleet};
pub use forest::Forest;
pub(crate) use grounds::Grounds;
pub use learnt::Learnt;
pub use steering::Steering;
pub use trimtab_steer::safety::{Safety, Share};
pub use turns::{Select, Turns};
pub use value::{Ports, Prefix};

use crate::datapath;
use error::{Source, why_unread};
use raw::{Raw, RawDatapath, RawRule};
use steering::Parts;

/// Knobs that Mortise turns itself.
const STEERED_KNOBS: [&str; 2] = ["delta", "pacing_gain"];
/// The algorithm that Mortise tunes, and that a rule is about unless it names another.
const TUNED: &str = "copa";
/// Knobs that are turned where the trees of Muses are chosen.
const MUSES_KNOBS: [&str; 3] = ["tree", "model", "safe"];

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Decisions turn knobs.
    #[default]
    Apply,
    /// Decisions are made, counted and explained, and nothing is changed.
    Advise,
}

/// How much the log says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// Why the agent ends.
    Error,
    /// What is wrong, and what it leaves to others, too.
    Warning,
    /// What it does, too, with the networks of clients.
    #[default]
    Info,
    /// The same with the addresses of clients.
    Debug,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// As text for people.
    #[default]
    Text,
    /// As one JSON object with the time, the level and fields.
    Json,
}

/// Everything that the file says.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether decisions are carried out.
    pub mode: Mode,
    /// How much the log says.
    pub log: Detail,
    /// How a line of the log is written.
    pub log_format: LogFormat,
    /// As whom all but the loading runs; `None`: `trimtab`, where there is such a user.
    pub user: Option<String>,
    /// Share of destination prefixes that are left with the safe setting, for comparison.
    pub holdback: Share,
    /// Whether new connections of the agent's network namespace get the algorithm, by sysctl.
    pub default_algorithm: bool,
    /// Share of one core that deciding may take; beyond, decisions become rarer.
    pub cpu: Share,
    /// When a connection goes back to the fallback.
    pub safety: Safety,
    /// What is compared with what connections would run otherwise.
    pub compare: Compare,
    /// How the rules are rolled out; `None`: at once.
    pub rollout: Option<Rollout>,
    /// When a rule lets go of all its connections.
    pub breaker: Breaker,
    /// Where the sockets and the lock are.
    pub sockets: Sockets,
    /// What is loaded into the kernel, and where it is kept.
    pub datapath: DatapathOptions,
    /// The engine of the fleet, where rules have their knobs from it.
    pub fleet: Option<Fleet>,
    /// In the order of the file: the first that matches is in force.
    pub rules: Vec<Rule>,
}

/// Where the sockets and the lock are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// Folder of both sockets and the lock.
    pub folder: PathBuf,
    /// A group whose members may ask at the control socket, as root may.
    pub group: Option<String>,
    /// A group whose members may give orders there, too.
    pub operators: Option<String>,
    /// The folder of what outlives the agent; `None`: the one of systemd, or `state` in
    /// [`Self::folder`].
    pub state: Option<PathBuf>,
    /// Whether applications may send hints.
    pub hints: bool,
    /// Where Prometheus may ask; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
}

impl Sockets {
    /// The socket of `trimtab agent status` and its like.
    pub fn control(&self) -> PathBuf {
        self.folder.join("agent.sock")
    }

    /// Where orders are kept, so that they outlive the agent: `state`, the folder that systemd made
    /// for it (`StateDirectory` of systemd.exec(5)), or `state` in `folder`.
    pub(crate) fn state(&self) -> PathBuf {
        let of_systemd = || std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
        self.state.clone().or_else(of_systemd).unwrap_or_else(|| self.folder.join("state"))
    }

    /// The socket for hints of applications.
    pub fn hints(&self) -> PathBuf {
        self.folder.join("hints.sock")
    }
}

/// What is loaded into the kernel, and where it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct DatapathOptions {
    /// A folder of a bpf file system.
    pub folder: PathBuf,
    /// Appended to the algorithm's name; for tests.
    pub suffix: String,
    /// Connections that can be steered at once.
    pub slots: u32,
    /// What a connection sends before it is one of these; none where a rule has all connections from their beginning.
    pub slot_after: Bytes,
    /// Share of the slots that the connections of one cgroup may hold; above 0.
    pub cgroup_share: Share,
    /// Whether users without privilege may pick the algorithms for their sockets.
    pub unrestricted: bool,
}

impl DatapathOptions {
    fn read(source: &Source<'_>, raw: RawDatapath) -> Result<Self, ConfigError> {
        let cgroup_share = raw.cgroup_share.get_ref().0;
        if cgroup_share.get() <= 0.0 {
            let what = "cgroup_share: with \"0%\" no connection could be steered; give the share of \
                        the slots that one cgroup may hold, e.g. \"50%\"";
            return Err(source.error(raw.cgroup_share.span().start, what));
        }
        Ok(Self {
            folder: raw.folder,
            suffix: raw.suffix,
            slots: raw.slots,
            slot_after: raw.slot_after.0,
            cgroup_share,
            unrestricted: raw.unrestricted,
        })
    }

    /// How many slots the connections of one cgroup may hold: 1 at least.
    pub(crate) fn cgroup_slots(&self) -> u32 {
        ((f64::from(self.slots) * self.cgroup_share.get()) as u32).max(1)
    }

    /// As the kernel's side takes them.
    pub(crate) fn to_load(&self) -> trimtab_kernel::Options {
        trimtab_kernel::Options {
            folder: self.folder.clone(),
            suffix: self.suffix.clone(),
            slots: self.slots,
            unrestricted: self.unrestricted,
        }
    }
}

/// Which connections, and what becomes of them.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name in metrics and explanations.
    pub name: String,
    /// What a connection must be; everything that is given must hold.
    pub matches: Matches,
    /// What it must run for its knobs to be turned; with another algorithm it is measured only.
    pub algorithm: Algorithm,
    /// Whether sockets that match are given the algorithm, unless somebody chose another one for them.
    pub assign: bool,
    /// What steers it; `None`: the knobs stay as they are set.
    pub steering: Option<Steering>,
    /// Knobs that are set once, each within its range.
    pub knobs: Vec<(&'static str, f64)>,
    /// What it is scored by, in metrics and when steered.
    pub model: Option<Model>,
    /// Values of the model's factors, where the application does not tell them.
    pub factors: Factors,
}

/// What a connection must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Its local port is one of these; none given: any.
    pub ports: Vec<Ports>,
    /// It goes to one of these; none given: anywhere.
    pub to: Vec<Prefix>,
    /// The cgroup, or one below it, in which its socket was made: the path as in `/proc/PID/cgroup`.
    pub cgroup: Option<String>,
    /// The file of its network namespace; none given: that of the agent, or with a cgroup any.
    pub netns: Option<PathBuf>,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or says something wrong: then where, and what to do.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(path, &read_text(path)?)
    }

    /// The configuration in a text; `path` is for messages.
    ///
    /// # Errors
    /// It says something wrong: then where, and what to do.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let source = Source { path, text };
        let raw = Raw::parse(&source)?;
        let rules: Vec<Rule> = raw
            .rule
            .iter()
            .enumerate()
            .map(|(index, rule)| check_rule(&source, index, rule))
            .collect::<Result<_, _>>()?;
        for (index, rule) in rules.iter().enumerate() {
            if rules[..index].iter().any(|other| other.name == rule.name) {
                let at = raw.rule[index].name.as_ref().map_or(0, |name| name.span().start);
                let what = format!(
                    "there is a rule called {:?} already: give each its own name",
                    rule.name
                );
                return Err(source.error(at, &what));
            }
        }
        let fleet = Fleet::read(&source, &raw)?;
        let safety = raw.safety;
        Ok(Self {
            compare: Compare::read(&source, &raw.compare)?,
            rollout: raw.rollout.as_ref().map(|raw| Rollout::read(&source, raw)).transpose()?,
            breaker: Breaker::from(&raw.breaker),
            fleet,
            mode: raw.mode,
            log: raw.log,
            log_format: raw.log_format,
            user: raw.user,
            holdback: raw.holdback.0,
            default_algorithm: raw.default_algorithm,
            cpu: raw.cpu.0,
            safety: Safety {
                loss: safety.loss.0,
                delay: safety.delay.0,
                after: safety.after.0,
                rest: safety.rest.0,
            },
            sockets: raw.sockets.into(),
            datapath: DatapathOptions::read(&source, raw.datapath)?,
            rules,
        })
    }
}

impl Config {
    /// What connections of this algorithm send before they have a slot. None wait where the engine of
    /// a fleet gets a report of every connection, or a rule chooses their algorithm from the beginning.
    pub(crate) fn slot_after(&self, algorithm: &str) -> Bytes {
        let at_once = |rule: &Rule| match &rule.steering {
            Some(Steering::Fleet(_)) => rule.algorithm.name() == algorithm,
            Some(Steering::Turns(turns)) => {
                turns.algorithms.iter().any(|one| one.name() == algorithm)
            }
            Some(Steering::Mortise(_) | Steering::Muses(_)) | None => false,
        };
        if self.rules.iter().any(at_once) { Bytes::ZERO } else { self.datapath.slot_after }
    }

    /// What is wrong with what the rules name, and what is done about it.
    pub fn troubles(&self) -> Vec<String> {
        self.of_steering(Steering::trouble)
    }

    /// What is not as the rules name it, and need not be.
    pub fn remarks(&self) -> Vec<String> {
        self.of_steering(Steering::remark)
    }

    /// Of the steering of every rule, with the rule.
    fn of_steering(&self, what: impl Fn(&Steering) -> Option<String>) -> Vec<String> {
        let of = |rule: &Rule| {
            let what = rule.steering.as_ref().and_then(&what)?;
            Some(format!("rule {}: {what}", rule.name))
        };
        self.rules.iter().filter_map(of).collect()
    }
}

/// The text of a configuration.
fn read_text(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => ConfigError::Missing { path: path.to_owned() },
        _ => ConfigError::Read { path: path.to_owned(), reason: why_unread(&e) },
    })
}

fn algorithm_named(
    source: &Source<'_>,
    name: &toml::Spanned<String>,
) -> Result<Algorithm, ConfigError> {
    known_algorithm(name.get_ref()).map_err(|what| source.error(name.span().start, &what))
}

/// The algorithm of this name, or why there is none.
fn known_algorithm(name: &str) -> Result<Algorithm, String> {
    datapath::algorithm(name).ok_or_else(|| {
        let known: Vec<&str> = datapath::ALGORITHMS.iter().map(Algorithm::name).collect();
        format!("no algorithm {name:?} runs in eBPF: give {}", known.join(" or "))
    })
}

fn check_rule(source: &Source<'_>, index: usize, raw: &RawRule) -> Result<Rule, ConfigError> {
    let parts = Parts::read(source, raw)?;
    let algorithm = parts.algorithm(source, raw)?;
    let (model, factors) = check_model(source, raw)?;
    let steering = parts.steering(source, raw, algorithm, model.as_ref())?;
    let knobs = check_knobs(source, raw, algorithm, steering.as_ref())?;
    Ok(Rule {
        name: raw
            .name
            .as_ref()
            .map_or_else(|| format!("rule-{}", index + 1), |n| n.get_ref().clone()),
        matches: Matches {
            ports: raw.port.0.clone(),
            to: raw.to.0.clone(),
            cgroup: check_cgroup(source, raw)?,
            netns: check_netns(source, raw)?,
        },
        algorithm,
        assign: check_assign(source, raw)?,
        steering,
        knobs,
        model,
        factors,
    })
}

/// What connections are scored by, with the factors that a rule gives.
fn check_model(
    source: &Source<'_>,
    raw: &RawRule,
) -> Result<(Option<Model>, Factors), ConfigError> {
    let mut factors = Factors::new();
    for (name, value) in &raw.factors {
        factors
            .set_named(name.get_ref(), *value)
            .map_err(|e| source.error(name.span().start, &e.to_string()))?;
    }
    let own: Vec<&str> = raw.factors.iter().map(|(name, _)| name.get_ref().as_str()).collect();
    let own: Vec<&str> =
        own.into_iter().filter(|name| trimtab_qoe::Factor::from_name(name).is_none()).collect();
    let model = match &raw.qoe {
        None => None,
        Some(text) => Some(Model::parse(text.get_ref(), &own).map_err(|e| {
            // Into the quotes, to the column of the formula.
            let within =
                e.column().map_or(0, |column| source.within_string(text.span().start, column));
            source.error(text.span().start + within, &e.to_string())
        })?),
    };
    Ok((model, factors))
}

/// The knobs that are set once.
fn check_knobs(
    source: &Source<'_>,
    raw: &RawRule,
    algorithm: Algorithm,
    steering: Option<&Steering>,
) -> Result<Vec<(&'static str, f64)>, ConfigError> {
    let mut knobs = Vec::new();
    for (name, value) in &raw.knobs {
        let fail = |what: &str| source.error(name.span().start, what);
        if matches!(steering, Some(Steering::Turns(_))) {
            return Err(fail(
                "a knob belongs to one algorithm, and turns name several: leave it out",
            ));
        }
        let Some(knob) = algorithm.knobs().iter().find(|knob| knob.name == name.get_ref()) else {
            let known: Vec<&str> = algorithm.knobs().iter().map(|knob| knob.name).collect();
            return Err(fail(&format!(
                "{} has no knob {:?}; it has {}",
                algorithm.name(),
                name.get_ref(),
                known.join(", ")
            )));
        };
        if !(knob.min..=knob.max).contains(value) {
            return Err(fail(&format!(
                "{} = {value} is out of its range, {} to {} {}",
                knob.name, knob.min, knob.max, knob.unit
            )));
        }
        if matches!(steering, Some(Steering::Muses(_))) && MUSES_KNOBS.contains(&knob.name) {
            return Err(fail(&format!(
                "steer = \"muses\" turns {} itself: leave it out; model and safe of the rule say which",
                knob.name
            )));
        }
        if matches!(steering, Some(Steering::Fleet(_))) {
            return Err(fail(
                "the engine of the fleet sets the knobs: leave it out, and put it under [fixed] of the service",
            ));
        }
        if steering.is_some() && STEERED_KNOBS.contains(&knob.name) {
            return Err(fail(&format!(
                "mortise turns {} itself: leave it out, or do not steer",
                knob.name
            )));
        }
        knobs.push((knob.name, *value));
    }
    Ok(knobs)
}

fn check_cgroup(source: &Source<'_>, raw: &RawRule) -> Result<Option<String>, ConfigError> {
    let Some(cgroup) = &raw.cgroup else { return Ok(None) };
    if !cgroup.get_ref().starts_with('/') {
        let what = "a cgroup is named by its whole path, e.g. \"/system.slice/nginx.service\": \
                    what stands behind 0:: in /proc/PID/cgroup";
        return Err(source.error(cgroup.span().start, what));
    }
    Ok(Some(cgroup.get_ref().clone()))
}

fn check_netns(source: &Source<'_>, raw: &RawRule) -> Result<Option<PathBuf>, ConfigError> {
    let Some(netns) = &raw.netns else { return Ok(None) };
    if !netns.get_ref().is_absolute() {
        let what = "a network namespace is named by its file, e.g. \"/run/netns/NAME\" or \"/proc/PID/ns/net\"";
        return Err(source.error(netns.span().start, what));
    }
    Ok(Some(netns.get_ref().clone()))
}

/// Whether a rule gives sockets its algorithm. It has to say to which: every server of a machine is
/// more than anybody means.
fn check_assign(source: &Source<'_>, raw: &RawRule) -> Result<bool, ConfigError> {
    let Some(assign) = raw.assign.as_ref().filter(|assign| *assign.get_ref()) else {
        return Ok(false);
    };
    if raw.port.0.is_empty() && raw.to.0.is_empty() && raw.cgroup.is_none() {
        let what = "a rule that assigns says to which sockets: give port, cgroup or to (port = \
                    \"1-65535\" is every port; default_algorithm = true is about all new \
                    connections)";
        return Err(source.error(assign.span().start, what));
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
