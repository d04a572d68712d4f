//! What was decided on a connection, and why: kept for `trimtab agent why`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};
use trimtab_steer::safety::Harm;
use trimtab_steer::{Insight, Reason, Report};
use trimtab_units::Time;

use crate::config::Rule;
use crate::connection::rare::Rare;

/// Decisions that are remembered of each connection.
const KEPT: usize = 8;

/// Something was changed on a connection, or would have been.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Seconds on `CLOCK_MONOTONIC`.
    pub at_s: f64,
    /// What.
    #[serde(flatten)]
    pub change: Change,
    /// Whether the connection was told; not in advise mode.
    pub applied: bool,
    /// Why.
    pub cause: Cause,
}

/// What a decision changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Change {
    /// A knob is turned.
    Knob {
        /// The knob.
        knob: Cow<'static, str>,
        /// Its value before; `None` where nobody had asked.
        before: Option<f64>,
        /// Its value now, in its unit.
        value: f64,
    },
    /// Another algorithm is to take over.
    Algorithm {
        /// The one that ran.
        from: Cow<'static, str>,
        /// The one that is to.
        to: Cow<'static, str>,
        /// With all that is known of the path, or with the window alone.
        full: bool,
    },
}

/// Why something was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Cause {
    /// By the rule.
    Rule,
    /// Steering begins with it.
    Start,
    /// The gradient of the QoE model.
    Gradient {
        /// What a second of delay is worth to the application, in Mbit/s.
        lambda: f64,
        /// What a loss of everything is worth to it, in Mbit/s.
        beta: f64,
        /// What a second of delay brought here, in Mbit/s.
        tradeoff: f64,
        /// Round-trip time in the interval, in milliseconds.
        rtt_ms: f64,
        /// Throughput in the interval, in Mbit/s.
        throughput_mbps: f64,
    },
    /// The algorithms of the rule take turns.
    Turn,
    /// It did best of those of the rule, or was not tried for long.
    Selected {
        /// What was to be large (Floo Table 1).
        by: String,
    },
    /// A learnt policy prefers it.
    Learnt,
    /// A learnt policy declined, and this is the fallback.
    Unanswered {
        /// Why, the first time on this connection.
        why: String,
    },
    /// With the one that took over the connection got clearly less.
    Worse,
    /// The states of the connection lay nearest to the group of this tree.
    Nearest,
    /// It suited an earlier connection to the same destination.
    Before,
    /// The guard of a learnt policy let the fallback take over.
    Guard {
        /// Why.
        why: String,
    },
    /// The engine of the fleet chose it for the aggregate.
    Fleet {
        /// As `tv/203.0.113.0/24`.
        aggregate: String,
        /// Of the configuration.
        version: u64,
    },
    /// As large bursts as the path has proven to hold.
    Burst,
    /// The steering of a rule asks for it.
    Asked {
        /// The rule.
        rule: String,
    },
    /// Nothing steers the connection any more, so it gets back what it had before.
    Back,
    /// It gets the algorithm that it would run without Trimtab.
    Former,
    /// An operator has everything begin anew.
    Reset,
    /// The connection suffered.
    Harm {
        /// From what.
        harm: Harm,
        /// Lost share, 0 to 1.
        loss: f64,
        /// Mean queueing delay, in milliseconds.
        queueing_ms: f64,
    },
}

impl Cause {
    /// What a steering says of its reason, with the numbers that it goes by; `None` where it gives none.
    pub(crate) fn of(reason: Option<Reason>, insight: &Insight, report: &Report) -> Option<Self> {
        Some(match reason? {
            Reason::Preference => {
                let hints = insight.preference.unwrap_or_default();
                Self::Gradient {
                    lambda: hints.lambda,
                    beta: hints.beta,
                    tradeoff: insight.tradeoff.unwrap_or_default(),
                    rtt_ms: report.rtt_mean.unwrap_or(report.srtt).as_millis_f64(),
                    throughput_mbps: (report.acked / report.interval).mbps(),
                }
            }
            Reason::Burst => Self::Burst,
            Reason::Turn => Self::Turn,
            Reason::Rule(utility) => Self::Selected { by: utility.name().to_owned() },
            Reason::Learnt => Self::Learnt,
            Reason::Fallback(why) => Self::Unanswered { why: why.to_string() },
            Reason::Worse => Self::Worse,
            Reason::Nearest => Self::Nearest,
        })
    }

    /// The steering of this rule asks for it.
    pub(crate) fn asked(rule: Option<&Rule>) -> Self {
        Self::Asked { rule: rule.map(|rule| rule.name.clone()).unwrap_or_default() }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::Knob { knob, before: Some(before), value } => {
                write!(f, "{knob} {before:.4} -> {value:.4}")?;
            }
            Change::Knob { knob, before: None, value } => write!(f, "{knob} = {value:.4}")?,
            Change::Algorithm { from, to, full: true } => write!(f, "{from} -> {to}")?,
            Change::Algorithm { from, to, full: false } => {
                write!(f, "{from} -> {to}, with the window alone")?;
            }
        }
        if !self.applied {
            f.write_str(" (advice only)")?;
        }
        write!(f, ": {}", self.cause)?;
        match (&self.cause, &self.change) {
            (Cause::Gradient { .. }, Change::Knob { knob, before: Some(before), value }) => {
                let moves = match value.total_cmp(before) {
                    Ordering::Greater => "rises",
                    Ordering::Less => "falls",
                    Ordering::Equal => "stays",
                };
                write!(f, "; so {knob} {moves}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule => f.write_str("the rule sets it"),
            Self::Start => f.write_str("steering begins with it"),
            Self::Turn => f.write_str("the algorithms of the rule take turns"),
            Self::Gradient { lambda, beta, tradeoff, rtt_ms, throughput_mbps } => write!(
                f,
                "at {throughput_mbps:.2} Mbit/s and {rtt_ms:.1} ms the measured trade-off is \
                 {tradeoff:.2} Mbit/s for a second of delay; the formula prices delay at \
                 {lambda:.2}, and the loss of everything at {beta:.2}"
            ),
            Self::Selected { by } => write!(f, "chosen or tried again by {by}"),
            Self::Learnt => f.write_str("the learnt policy prefers it"),
            Self::Worse => f.write_str("the connection got clearly less with the one before"),
            Self::Unanswered { why } => {
                write!(f, "the learnt policy declined, and this is the fallback: {why}")
            }
            Self::Nearest => f.write_str("its latest states are nearest to those of this tree"),
            Self::Before => f.write_str("it suited an earlier connection to the same destination"),
            Self::Guard { why } => {
                write!(f, "the policy's guard let the fallback take over: {why}")
            }
            Self::Fleet { aggregate, version } => {
                write!(f, "configuration {version} of {aggregate}, by the engine of the fleet")
            }
            Self::Burst => f.write_str("the largest burst that the path has held"),
            Self::Asked { rule } => write!(f, "the steering of rule {rule} asks for it"),
            Self::Back => f.write_str("its steering ended, and it gets back its earlier setting"),
            Self::Former => f.write_str("what it would run without Trimtab"),
            Self::Reset => f.write_str("an operator reset it"),
            Self::Harm { harm, loss, queueing_ms } => {
                let what = match harm {
                    Harm::Loss => "losses",
                    Harm::Delay => "a long queue",
                };
                write!(
                    f,
                    "back to the fallback, after {what}: {:.1}% lost, {queueing_ms:.0} ms queueing",
                    loss * 100.0
                )
            }
        }
    }
}

/// The latest decisions of a connection, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    latest: Rare<VecDeque<Decision>>,
    /// How many there ever were.
    pub(crate) count: u64,
}

impl Decisions {
    pub(crate) fn add(&mut self, decision: Decision) {
        let latest = self.latest.make();
        if latest.len() == KEPT {
            latest.pop_front();
        }
        latest.push_back(decision);
        self.count += 1;
    }

    /// Forgets all. Hands out the latest, to be kept elsewhere, unless it only says how its rule
    /// begins.
    pub(crate) fn compact(&mut self) -> Option<Decision> {
        let last = self.latest.get_mut().and_then(VecDeque::pop_back);
        self.latest.clear();
        last.filter(|last| !matches!(last.cause, Cause::Start | Cause::Rule))
    }

    /// Takes back what [`compact`](Self::compact) has handed out.
    pub(crate) fn restore(&mut self, last: Decision) {
        let latest = self.latest.make();
        if latest.len() < KEPT {
            latest.push_front(last);
        }
    }

    pub(crate) fn latest(&self) -> Vec<Decision> {
        self.latest.get().into_iter().flatten().cloned().collect()
    }
}

/// Seconds on the clock, for records.
pub(crate) fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}
