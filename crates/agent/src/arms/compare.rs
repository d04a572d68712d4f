//! What steering brings, compared with the former algorithm and with the algorithm's own defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use trimtab_datapath::Totals;
use trimtab_fleet::experiment::{
    CONTROLS, Cell, CellOf, Effect, Estimated, Observation, ThreeArms,
};
use trimtab_fleet_client::{MetricCompared, RuleCompared};
use trimtab_steer::safety::{Arm, Measured};
use trimtab_units::Time;

use super::{Place, cluster, step};
use crate::config::Prefix;
use crate::daemon::note::Note;

/// Clusters that are remembered; of more there is no need.
const CLUSTERS_MAX: usize = 1024;

/// What is compared, in the order of a cell's values.
const METRICS: [&str; 5] = ["score", "throughput_mbps", "rtt_ms", "loss", "completion_s"];
/// The one that is kept as its logarithm: few connections last much longer than all others.
const COMPLETION: usize = 4;

/// A metric under steering and under a control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// `score`, `throughput_mbps`, `rtt_ms`, `loss` or `completion_s`, the time that connections
    /// were busy from their beginning to their end (geometric mean).
    pub metric: String,
    /// The mean when steered.
    pub steered: f64,
    /// The mean under the control.
    pub control: f64,
    /// Steered less control, as a share of the control, with its interval of confidence; `None`
    /// where the control may be zero.
    pub change: Option<Effect>,
    /// Steered less control, in the metric's unit.
    pub difference: Option<Effect>,
    /// Pairs of blocks that have it.
    pub pairs: usize,
}

/// A rule compared with a control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The rule.
    pub rule: String,
    /// The control: `former` or `holdback`.
    pub control: Arm,
    /// Whether all pairs are over, and the interval is as narrow as it gets.
    pub over: bool,
    /// Networks of clients that took part.
    pub networks: usize,
    /// What is known, by metric.
    pub metrics: Vec<Compared>,
}

/// Cells of a rule, by control, cluster and block.
type Cells = BTreeMap<(usize, usize, i64), CellOf>;

/// The measurements of a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measurements {
    clusters: BTreeMap<Prefix, usize>,
    rules: BTreeMap<String, Cells>,
    /// Of the comparison before this one.
    last: Vec<Comparison>,
}

impl Measurements {
    /// A second of a connection.
    pub(crate) fn on_window(
        &mut self,
        rule: &str,
        client: IpAddr,
        place: Place,
        (measured, score): (&Measured, Option<f64>),
    ) {
        let throughput = measured.busy.then(|| measured.point.throughput.mbps());
        let rtt = measured.point.delay.as_millis_f64();
        let values = vec![score, throughput, Some(rtt), Some(measured.point.loss), None];
        self.add(rule, client, place, values);
    }

    /// A connection ended that was in one arm all the time; `whole` says whether no second of it
    /// was measured, so that its sums are all there is.
    pub(crate) fn on_end(
        &mut self,
        rule: &str,
        client: IpAddr,
        place: Place,
        (totals, whole): (&Totals, bool),
    ) {
        let busy = totals.busy.as_secs_f64();
        if totals.acked.is_zero() || busy <= 0.0 {
            return;
        }
        let mut values = vec![None, None, None, None, Some(busy.ln())];
        if whole {
            values[1] = Some((totals.acked / totals.busy).mbps());
            values[2] = (totals.rtt_count > 0)
                .then(|| totals.rtt_sum.as_millis_f64() / totals.rtt_count as f64);
            values[3] = (!totals.sent.is_zero()).then(|| totals.lost.ratio(totals.sent).min(1.0));
        }
        self.add(rule, client, place, values);
    }

    fn add(&mut self, rule: &str, client: IpAddr, place: Place, values: Vec<Option<f64>>) {
        let Some((which, block)) = place.part else { return };
        let (of, next) = (cluster(client), self.clusters.len());
        let member = match self.clusters.get(&of) {
            Some(member) => *member,
            None if next < CLUSTERS_MAX => *self.clusters.entry(of).or_insert(next),
            None => return,
        };
        if !self.rules.contains_key(rule) {
            self.rules.insert(rule.to_owned(), Cells::new());
        }
        let Some(cells) = self.rules.get_mut(rule) else { return };
        let arm = u8::from(place.arm == Arm::Treated);
        let of = cells.entry((which, member, block)).or_insert_with(|| CellOf {
            member,
            block,
            arm,
            cell: Cell::default(),
        });
        of.cell.add(&Observation::Values(values));
    }

    /// The comparison is over, and the next one begins.
    pub(crate) fn begin_anew(&mut self, plan: &ThreeArms, now: Time) -> Vec<Note> {
        let over = self.comparisons(plan, now);
        *self = Self { last: over, ..Self::default() };
        let shown = self.last.iter().filter(|of| !of.metrics.is_empty());
        let note =
            |of: &Comparison| Note::on_rule(&of.rule, format!("the comparison is over: {of}"));
        shown.map(note).collect()
    }

    /// What is known: of the present comparison where it says something, else of the last one.
    pub(crate) fn known(&self, plan: &ThreeArms, now: Time) -> Vec<Comparison> {
        let mut all = self.comparisons(plan, now);
        for old in &self.last {
            let same = |of: &&mut Comparison| (&of.rule, of.control) == (&old.rule, old.control);
            match all.iter_mut().find(same) {
                Some(of) if of.metrics.is_empty() => *of = old.clone(),
                Some(_) => {}
                None => all.push(old.clone()),
            }
        }
        all
    }

    fn comparisons(&self, plan: &ThreeArms, now: Time) -> Vec<Comparison> {
        let mut all = Vec::new();
        for (rule, cells) in &self.rules {
            for (which, control) in super::CONTROLS.into_iter().enumerate().take(CONTROLS) {
                let of = cells.range((which, 0, i64::MIN)..(which + 1, 0, i64::MIN));
                let of: Vec<CellOf> = of.map(|(_, cell)| cell.clone()).collect();
                let members: std::collections::BTreeSet<usize> =
                    of.iter().map(|cell| cell.member).collect();
                let found = plan.estimates(&of, METRICS.len(), step(now));
                let metrics = found.iter().enumerate();
                all.push(Comparison {
                    rule: rule.clone(),
                    control,
                    over: step(now) >= plan.end(),
                    networks: members.len(),
                    metrics: metrics
                        .filter_map(|(i, of)| Some(compared(i, of.as_ref()?)))
                        .collect(),
                });
            }
        }
        all
    }
}

fn compared(metric: usize, of: &Estimated) -> Compared {
    let is_log = metric == COMPLETION;
    let shown = |value: f64| if is_log { value.exp() } else { value };
    // The difference of two logarithms is that of a ratio.
    let ratio = |Effect { value, low, high }: Effect| Effect {
        value: value.exp_m1(),
        low: low.exp_m1(),
        high: high.exp_m1(),
    };
    Compared {
        metric: METRICS[metric].to_owned(),
        steered: shown(of.treatment),
        control: shown(of.control),
        change: if is_log { Some(ratio(of.effect)) } else { of.relative },
        difference: (!is_log).then_some(of.effect),
        pairs: of.pairs,
    }
}

impl From<&Comparison> for RuleCompared {
    fn from(of: &Comparison) -> Self {
        let metric = |of: &Compared| MetricCompared {
            metric: of.metric.clone(),
            steered: of.steered,
            control: of.control,
            change: of.change,
            difference: of.difference,
            pairs: of.pairs as u64,
        };
        Self {
            rule: of.rule.clone(),
            control: of.control.name().to_owned(),
            over: of.over,
            networks: of.networks as u64,
            metrics: of.metrics.iter().map(metric).collect(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, control, over, networks, metrics } = self;
        let pairs = metrics.iter().map(|of| of.pairs).max().unwrap_or(0);
        write!(
            f,
            "rule {rule}, steered vs. {} arm ({networks} networks, {pairs} pairs",
            control.name()
        )?;
        if !over {
            f.write_str(", not over")?;
        }
        f.write_str("):")?;
        if metrics.is_empty() {
            return f.write_str(" too little is known: two pairs of blocks are needed");
        }
        for (i, of) in metrics.iter().enumerate() {
            let comma = if i == 0 { "" } else { ";" };
            write!(f, "{comma} {} {:.4} vs. {:.4}", of.metric, of.steered, of.control)?;
            match (&of.change, &of.difference) {
                (Some(Effect { value, low, high }), _) => {
                    let [value, low, high] = [value, low, high].map(|share| share * 100.0);
                    write!(f, ", {value:+.1}% ({low:+.1} to {high:+.1}%)")?;
                }
                (None, Some(Effect { value, low, high })) => {
                    write!(f, ", {value:+.4} ({low:+.4} to {high:+.4})")?;
                }
                (None, None) => {}
            }
        }
        Ok(())
    }
}
