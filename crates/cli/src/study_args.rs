//! The flags of `trimtab engine experiment` and `trimtab engine rollout`.

use clap::{Args, Subcommand};
use trimtab_fleet_client::experiment::Arm;

use crate::engine_args::AskEngine;

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Begin an experiment.
    Start(Box<StartExperiment>),
    /// List experiments, the latest first.
    List(ListOf),
    /// Show an experiment's results.
    Show(Which),
    /// Stop an experiment before its end.
    Stop(OrderStudy),
}

/// Begin an experiment.
///
/// Each aggregate keeps one arm (--share), or all alternate between the arms (--block). Flows of one
/// aggregate are never split: flows that share a bottleneck take capacity from each other, which
/// would bias the comparison.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab engine experiment start tv safe-or-learnt --control safe --treatment learn --share 0.5 --length 504 \\
      --metric reward
  trimtab engine experiment start tv gamma-900 --treatment gamma=900 --block 6 --length 432 \\
      --metric reward --guard 'mean(loss) < +20%' --guard 'p75(rtt) < +0.02'")]
pub(crate) struct StartExperiment {
    /// The control: learn, safe, an algorithm of the service, e.g. bbr, or knobs, e.g.
    /// gamma=900,omega=1
    #[arg(long, value_name = "ARM", default_value = "learn", value_parser = arm)]
    pub(crate) control: Arm,
    /// The treatment, in the same form as the control
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub(crate) treatment: Arm,
    /// By prefix: the share of the aggregates with the treatment
    #[arg(long, value_name = "SHARE", required_unless_present = "block", conflicts_with = "block")]
    pub(crate) share: Option<f64>,
    /// By time slot (a switchback): the number of intervals per slot
    #[arg(long, value_name = "N")]
    pub(crate) block: Option<u32>,
    /// In a switchback, change the arm of all aggregates at once; for aggregates that share a
    /// bottleneck
    #[arg(long, requires = "block")]
    pub(crate) together: bool,
    /// Number of intervals
    #[arg(long, value_name = "N")]
    pub(crate) length: u32,
    /// The first interval [default: the next one]
    #[arg(long, value_name = "INTERVAL")]
    pub(crate) start: Option<u64>,
    /// The metric that decides which arm is better: reward (the service's), or a formula of which more
    /// is better, e.g. 'mean(throughput)'
    #[arg(long, value_name = "FORMULA")]
    pub(crate) metric: String,
    /// A metric that must not become worse, e.g. 'mean(loss) < +20%'; may be given several times
    #[arg(long, value_name = "GUARD")]
    pub(crate) guard: Vec<String>,
    #[command(flatten)]
    pub(crate) study: NewStudy,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Begin a staged rollout.
    Start(Box<StartRollout>),
    /// List rollouts, the latest first.
    List(ListOf),
    /// Show a rollout's progress.
    Show(Which),
    /// Stay in this stage; a violated guard still rolls everything back.
    Hold(OrderStudy),
    /// Continue with the next stages.
    Resume(OrderStudy),
    /// End a rollout and roll everything back; after a completed rollout, release its configuration.
    Abort(OrderStudy),
}

/// Begin a staged rollout.
///
/// The configuration goes to more and more aggregates, stage by stage. In each stage those that have
/// it are compared with those that do not. The rollout continues while the guard metrics hold. When
/// one is violated, or the success metric is significantly worse, everything is rolled back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab engine rollout start tv gamma-900 --to gamma=900 --metric reward --guard 'mean(loss) < +20%'
  trimtab engine rollout start tv learn --from safe --to learn --stages 0.01,0.1,1 --intervals 12 \\
      --metric 'mean(throughput)' --guard 'mean(loss) < 0.05'")]
pub(crate) struct StartRollout {
    /// The arm before the switch [default: learn; safe with --to learn]
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub(crate) from: Option<Arm>,
    /// The arm to roll out: learn, safe, an algorithm of the service, e.g. bbr, or knobs, e.g.
    /// gamma=900,omega=1
    #[arg(long, value_name = "ARM", value_parser = arm)]
    pub(crate) to: Arm,
    /// Shares of the aggregates, stage by stage
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.01,0.05,0.25,1")]
    pub(crate) stages: Vec<f64>,
    /// Minimum number of intervals of a stage; the maximum is three times that
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub(crate) intervals: u32,
    /// The success metric: reward (the service's), or a formula of which more is better, e.g.
    /// 'mean(throughput)'. Where it is significantly worse, everything is rolled back
    #[arg(long, value_name = "FORMULA")]
    pub(crate) metric: String,
    /// A guard metric, e.g. 'mean(loss) < +20%'; may be given several times
    #[arg(long, value_name = "GUARD", required = true)]
    pub(crate) guard: Vec<String>,
    #[command(flatten)]
    pub(crate) study: NewStudy,
}

/// Flags that start both experiments and rollouts.
#[derive(Debug, Args)]
pub(crate) struct NewStudy {
    /// Intervals after each change that are left out
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) wash_out: u32,
    /// The seed of the draws [default: from the clock]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// Which ones to list.
#[derive(Debug, Args)]
pub(crate) struct ListOf {
    /// Of this service only
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    #[command(flatten)]
    pub(crate) ask: AskEngine,
}

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The service
    pub(crate) service: String,
    /// Its name; no two of a service have the same
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) ask: AskEngine,
}

/// What to tell one.
#[derive(Debug, Args)]
pub(crate) struct OrderStudy {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

fn arm(text: &str) -> Result<Arm, String> {
    match text {
        "learn" => Ok(Arm::Learn),
        "safe" => Ok(Arm::Safe),
        // What it may be, the service says.
        name if !name.is_empty() && !name.contains('=') => Ok(Arm::Algorithm(name.to_owned())),
        _ => {
            let knob = |part: &str| {
                let (knob, value) = part.split_once('=')?;
                Some((knob.trim().to_owned(), value.trim().parse().ok()?))
            };
            let knobs: Option<_> = text.split(',').map(knob).collect();
            knobs.map(Arm::Knobs).ok_or_else(|| {
                "an arm is `learn`, `safe`, an algorithm of the service, e.g. bbr, or knobs, e.g. \
                 gamma=900,omega=1"
                    .to_owned()
            })
        }
    }
}
