//! What the agent tells of itself: the answers on the control socket, as JSON and for people.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use trimtab_datapath::FlowId;
use trimtab_steer::safety::Arm;
use trimtab_units::Time;

use crate::arms::compare::Comparison;
use crate::config::Mode;
use crate::connection::decision::Decision;
use crate::connection::{Connection, Standing};
use crate::core::tally::{NO_RULE, Tally};
use crate::core::{Core, addresses};
use crate::datapath::{Datapath, Link};
use crate::doors::table::{cell, count};
use crate::kernel::assign::Assigned;
use crate::operate::HoldStatus;

/// How the agent does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `trimtab.agent.status/1`; fields may be added without a new one.
    pub schema: String,
    /// Version of the agent.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The configuration file.
    pub config: String,
    /// Whether decisions are carried out.
    pub mode: Mode,
    /// The name under which programs pick the algorithm.
    pub algorithm: String,
    /// What is loaded into the kernel.
    #[serde(default)]
    pub programs: Programs,
    /// Seconds since the agent came.
    pub up_s: f64,
    /// Open connections.
    pub open: usize,
    /// Of these, on which something happens.
    pub active: usize,
    /// Connections that this side has closed, of which all data was acknowledged, and whose sockets are there.
    #[serde(default)]
    pub closing: usize,
    /// Connections that were open when the agent came.
    pub adopted: usize,
    /// Places from which connections to come begin with what the engine of the fleet chose.
    #[serde(default)]
    pub ahead: usize,
    /// Reports that it has taken in since.
    pub reports: u64,
    /// Share of a core that deciding takes, 0 to 1.
    pub cpu: f64,
    /// Intervals are this many times as long as a round trip, to keep that share.
    pub stretch: f64,
    /// What the agent leaves to somebody else, and what is wrong; empty when all is well.
    pub troubles: Vec<String>,
    /// Sums by rule and arm.
    pub rules: Vec<RuleStatus>,
    /// Sockets by the rule that gives them an algorithm.
    #[serde(default)]
    pub assigned: Vec<Assigned>,
    /// Orders of operators that are in force, and breakers that have tripped.
    #[serde(default)]
    pub orders: Vec<HoldStatus>,
    /// What steering brings, compared with the control arms; empty without `[compare]`.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// The stage of the rollout, where one is under way.
    #[serde(default)]
    pub rollout: Option<RolloutStatus>,
    /// How often the breaker of each rule has tripped since the agent came.
    #[serde(default)]
    pub trips: BTreeMap<String, u64>,
    /// How the datapath does.
    #[serde(default)]
    pub datapath: DatapathStatus,
    /// How the edge of a fleet does; `None` without one.
    #[serde(default)]
    pub edge: Option<EdgeStatus>,
}

/// Where a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutStatus {
    /// Its stage, from 1 on.
    pub stage: usize,
    /// The share of networks to which the rules apply, 0 to 1.
    pub share: f64,
    /// Seconds until the next stage; `None` in the last one.
    pub next_s: Option<f64>,
}

/// How the datapath does; but for numbers of slots, counted since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatapathStatus {
    /// Connections that can be steered at once.
    pub slots: u32,
    /// Of these places, those that are taken.
    pub taken: u64,
    /// Slots that the connections of one cgroup may hold.
    #[serde(default)]
    pub cgroup_slots: u32,
    /// Connections that found none when they were to have one.
    pub slotless: u64,
    /// Connections that got none when they were to have one, since their cgroup held its share.
    #[serde(default)]
    pub over_quota: u64,
    /// Connections that ended before they had sent enough to have one.
    #[serde(default)]
    pub brief: u64,
    /// Events that found no room in the queue.
    pub lost_events: u64,
    /// Connections that ended without a close event from the kernel, since the agent started.
    pub reaped: u64,
}

/// How the edge of a fleet does, since the agent came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeStatus {
    /// Aggregates with a configuration.
    pub aggregates: usize,
    /// Reports that the engine has kept.
    pub kept: u64,
    /// Reports that came to the engine when their interval was closed.
    pub late: u64,
    /// Reports that were given up.
    pub dropped: u64,
    /// Reports that no engine has yet.
    pub waiting: usize,
}

impl From<&trimtab_fleet_client::edge::Status> for EdgeStatus {
    fn from(status: &trimtab_fleet_client::edge::Status) -> Self {
        Self {
            aggregates: status.aggregates,
            kept: status.kept,
            late: status.late,
            dropped: status.dropped,
            waiting: status.waiting,
        }
    }
}

/// What is loaded into the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// Number of the layout of the shared memory.
    pub layout: u32,
    /// A hash over programs and options, in hexadecimal: another one is another build, or has other options.
    pub build: String,
    /// Slots for connections.
    pub slots: u32,
    /// Programs that were in their place before and still run connections.
    pub former: Vec<FormerPrograms>,
}

/// Programs that others have replaced. Their connections keep them until they close: with their
/// algorithms' own knobs where the layout is the present one, and else with their last ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerPrograms {
    /// Number of the layout of their shared memory; 0 where that is not known.
    pub layout: u32,
    /// Connections that run them.
    pub connections: u64,
}

impl Programs {
    pub(crate) fn of(datapath: &trimtab_kernel::Datapath) -> Self {
        let version = datapath.version();
        let former = datapath.formers().into_iter().map(|former| FormerPrograms {
            layout: former.layout,
            connections: former.connections,
        });
        Self {
            layout: version.layout,
            build: version.programs.map(|hash| format!("{hash:016x}")).unwrap_or_default(),
            slots: version.slots,
            former: former.collect(),
        }
    }
}

/// Sums of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its name; `none` for connections without a rule.
    pub rule: String,
    /// Which side of the comparison.
    pub arm: Arm,
    /// Open connections.
    pub open: usize,
    /// Of these, on which something happens.
    pub active: usize,
    /// Connections that this side has closed, of which all data was acknowledged, and whose sockets are there.
    #[serde(default)]
    pub closing: usize,
    /// Sums.
    #[serde(flatten)]
    pub tally: Tally,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// Number of the connection.
    pub id: u64,
    /// Its local address and port.
    pub local: String,
    /// Its remote address and port.
    pub remote: String,
    /// Its rule; `none` without.
    pub rule: String,
    /// Which side of the comparison.
    pub arm: Arm,
    /// How it stands.
    pub standing: Standing,
    /// Whether something happens on it.
    pub active: bool,
    /// The algorithm that it runs.
    #[serde(default)]
    pub algorithm: String,
    /// The algorithm that is to take over, once the running one has converged; `None` when none is.
    #[serde(default)]
    pub next: Option<String>,
    /// How often another algorithm took over.
    #[serde(default)]
    pub switches: u32,
    /// What the last time took the kernel, in microseconds; `None` before the first.
    #[serde(default)]
    pub switch_us: Option<f64>,
    /// δ as set, in 1/packet.
    pub delta: Option<f64>,
    /// Mean round-trip time of the last measured second, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// Mean queueing delay in it, in milliseconds.
    pub queueing_ms: Option<f64>,
    /// Throughput in it, in Mbit/s.
    pub throughput_mbps: Option<f64>,
    /// Lost share in it, 0 to 1.
    pub loss: Option<f64>,
    /// Score of the last measured second that has one, in the model's unit.
    pub score: Option<f64>,
    /// Whether the application sends hints.
    pub hinted: bool,
    /// Seconds since the algorithm got it.
    pub age_s: f64,
    /// Decisions until now.
    pub decisions: u64,
    /// What it ran before the agent gave it its algorithm; `None` when the agent did not.
    #[serde(default)]
    pub former: Option<String>,
}

/// Why a connection is as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The connection.
    pub flow: FlowView,
    /// The factors that its model reads, and their values where they are known.
    pub factors: Vec<(String, Option<f64>)>,
    /// Its latest decisions, oldest first.
    pub decisions: Vec<Decision>,
    /// Seconds from 1970 to 0 of the decisions' clock.
    #[serde(default)]
    pub clock_began_s: f64,
}

/// What [`Core`] does not know about the agent.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) config: String,
    /// The process that stands for the agent: the loader.
    pub(crate) pid: u32,
    pub(crate) algorithm: String,
    pub(crate) since: Time,
    pub(crate) troubles: Vec<String>,
    pub(crate) assigned: Vec<Assigned>,
    pub(crate) datapath: DatapathStatus,
    pub(crate) programs: Programs,
    pub(crate) edge: Option<EdgeStatus>,
}

impl fmt::Display for HoldStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, target, for_s, left_s, by } = self;
        write!(f, "order: {target} is {} for {for_s:.0} s, by {by}", held.name())?;
        match left_s {
            Some(left) => write!(f, "; ends in {left:.0} s"),
            None => write!(f, "; until `trimtab agent resume {target}`"),
        }
    }
}

impl<D: Datapath> Core<D> {
    pub(crate) fn status(&self, frame: &Frame, now: Time) -> Status {
        let mut rules: Vec<RuleStatus> = self
            .tallies()
            .iter()
            .map(|((rule, arm), tally)| RuleStatus {
                rule: rule.clone(),
                arm: *arm,
                open: 0,
                active: 0,
                closing: 0,
                tally: tally.clone(),
            })
            .collect();
        let (mut open, mut active, mut closing) = (0, 0, 0);
        for connection in self.connections().values() {
            let name = self.rule(connection.rule).map_or(NO_RULE, |rule| rule.name.as_str());
            let is_closing = connection.link.is_closing();
            let now_active = usize::from(!is_closing && connection.is_active());
            open += usize::from(!is_closing);
            active += now_active;
            closing += usize::from(is_closing);
            if let Some(status) =
                rules.iter_mut().find(|s| s.rule == name && s.arm == connection.arm)
            {
                status.open += usize::from(!is_closing);
                status.active += now_active;
                status.closing += usize::from(is_closing);
            }
        }
        Status {
            schema: "trimtab.agent.status/1".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: frame.pid,
            config: frame.config.clone(),
            mode: self.config().mode,
            algorithm: frame.algorithm.clone(),
            programs: frame.programs.clone(),
            up_s: now.since(frame.since).as_secs_f64(),
            open,
            active,
            closing,
            adopted: self.adopted(),
            ahead: self.ahead().len(),
            reports: self.reports(),
            cpu: self.governor().share(),
            stretch: self.governor().stretch(),
            troubles: frame.troubles.clone(),
            rules,
            assigned: frame.assigned.clone(),
            orders: self.holds().status(now),
            comparisons: self.comparing().comparisons(now),
            rollout: self.comparing().rollout(now),
            trips: self.comparing().trips().clone(),
            datapath: frame.datapath,
            edge: frame.edge,
        }
    }

    pub(crate) fn flows(&self, now: Time) -> Vec<FlowView> {
        let all = self.connections().values().map(|connection| self.flow(connection, now));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable_by_key(|flow| flow.id);
        all
    }

    fn flow(&self, connection: &Connection<D::Link>, now: Time) -> FlowView {
        let identity = connection.link.identity();
        let rule = self.rule(connection.rule);
        let last = connection.last.as_deref();
        let switching = connection.link.switching();
        let took = switching.filter(|s| s.switches > 0).map(|s| s.took.as_secs_f64() * 1e6);
        FlowView {
            id: identity.id.0,
            local: identity.local.to_string(),
            remote: identity.remote.to_string(),
            rule: rule.map_or(NO_RULE, |rule| rule.name.as_str()).to_owned(),
            arm: connection.arm,
            standing: connection.standing(self.config().mode, rule),
            active: connection.is_active() && !connection.link.is_closing(),
            algorithm: connection.link.algorithm().name().to_owned(),
            next: switching.and_then(|s| s.pending).map(|next| next.name().to_owned()),
            switches: switching.map_or(0, |s| s.switches),
            switch_us: took,
            delta: connection.link.knob("delta").ok(),
            rtt_ms: last.map(|l| l.point.delay.as_millis_f64()),
            queueing_ms: last.map(|l| l.queueing.as_millis_f64()),
            throughput_mbps: last.map(|l| l.point.throughput.mbps()),
            loss: last.map(|l| l.point.loss),
            score: connection.score,
            hinted: connection.is_hinted(),
            age_s: now.since(identity.opened).as_secs_f64(),
            decisions: connection.decisions.count,
            former: self.former.get(&addresses(identity)).cloned(),
        }
    }

    /// Why the connection is as it is that a number, an address or a part of one names.
    ///
    /// # Errors
    /// It names none or several: a message.
    pub(crate) fn why(&self, name: &str, now: Time) -> Result<Why, String> {
        let by_id = name.parse().ok().and_then(|id| self.connections().get(&FlowId(id)));
        let found: Vec<_> = match by_id {
            Some(connection) => vec![connection],
            None => self
                .connections()
                .values()
                .filter(|connection| {
                    let identity = connection.link.identity();
                    identity.remote.to_string().contains(name)
                        || identity.local.to_string().contains(name)
                })
                .collect(),
        };
        let connection = match found[..] {
            [connection] => connection,
            [] => {
                return Err(format!(
                    "no connection is called {name:?}: `trimtab agent flows` lists them"
                ));
            }
            _ => {
                let some: Vec<String> = found
                    .iter()
                    .take(5)
                    .map(|c| {
                        let identity = c.link.identity();
                        format!("{} ({})", identity.id.0, identity.remote)
                    })
                    .collect();
                let more = if found.len() > some.len() { " …" } else { "" };
                return Err(format!(
                    "{} connections have {name:?} in an address: give the number of one, as {}{more}",
                    found.len(),
                    some.join(", ")
                ));
            }
        };
        Ok(Why {
            flow: self.flow(connection, now),
            factors: connection.known_factors(self.rule(connection.rule)),
            decisions: self.decisions(connection),
            clock_began_s: since_1970_s() - now.as_secs_f64(),
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flow = &self.flow;
        writeln!(
            f,
            "connection {}: {} -> {}, open for {:.0} s",
            flow.id, flow.local, flow.remote, flow.age_s
        )?;
        writeln!(f, "rule {}, {} arm: {}", flow.rule, flow.arm.name(), flow.standing.sentence())?;
        if let Some(former) = &flow.former {
            writeln!(f, "the agent assigned its algorithm; otherwise it would run {former}")?;
        }
        write!(f, "algorithm {}", flow.algorithm)?;
        if let Some(next) = &flow.next {
            write!(f, "; {next} takes over once it has converged")?;
        }
        match (flow.switches, flow.switch_us) {
            (0, _) | (_, None) => writeln!(f)?,
            (1, Some(us)) => writeln!(f, "; another one took over once, in {us:.1} µs")?,
            (times, Some(us)) => {
                writeln!(f, "; another one took over {times} times, the last in {us:.1} µs")?;
            }
        }
        writeln!(
            f,
            "rtt {} ms, of it queueing {} ms; {} Mbit/s; loss {}%; score {}",
            cell(flow.rtt_ms, 1),
            cell(flow.queueing_ms, 1),
            cell(flow.throughput_mbps, 2),
            cell(flow.loss.map(|l| l * 100.0), 2),
            cell(flow.score, 3)
        )?;
        if !self.factors.is_empty() {
            let said = if flow.hinted {
                "the application says"
            } else {
                "as seen on the wire and in the rule"
            };
            let all: Vec<String> = self
                .factors
                .iter()
                .map(|(name, value)| format!("{name} = {}", cell(*value, 3)))
                .collect();
            writeln!(f, "factors ({said}): {}", all.join(", "))?;
        }
        writeln!(f, "{}; the latest:", count(flow.decisions, "decision"))?;
        for decision in &self.decisions {
            writeln!(f, "  {}  {decision}", time_of_day(self.clock_began_s + decision.at_s))?;
        }
        Ok(())
    }
}

fn since_1970_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The time of day at so many seconds since 1970, by UTC.
fn time_of_day(seconds: f64) -> String {
    let ms = (seconds.max(0.0) * 1e3) as u64;
    let (hours, minutes) = (ms / 3_600_000 % 24, ms / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:03}Z", ms / 1000 % 60, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_told_by_the_clock_on_the_wall() {
        assert_eq!(time_of_day(0.0), "00:00:00.000Z");
        // `date -u -d @1700000000` says Tue Nov 14 22:13:20 UTC 2023.
        assert_eq!(time_of_day(1_700_000_000.25), "22:13:20.250Z");
    }
}
