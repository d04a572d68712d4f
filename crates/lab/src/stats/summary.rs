//! From runs to summary rows: paired changes and their intervals.
//!
//! A run is judged by its users: each flow is one, and the log mean over them counts where
//! experience has a ratio. Over runs that mean goes on: the score of a scheme is the geometric mean
//! over runs, and a change the geometric mean over pairs of the ratio. So a doubling and a halving
//! cancel out, where the arithmetic mean of the ratios 2 and ½ claims a gain of 25%.
//!
//! Runs are paired by application, trace, cell and seed (evaluation protocol: the same trace offset
//! and loss seed for all schemes). Runs on one trace are not independent, so whole traces are
//! resampled; with fewer than [`TRACES_MIN`] traces that says too little, and single runs are
//! resampled, which answers for these traces only. The rows say which it was.

use std::collections::BTreeMap;

use crate::result::{Estimate, RunRecord, Scale, SummaryRow, Versus};
use crate::stats::harm::harm;
use crate::stats::{Sums, bca};
use trimtab_steer::scheme::OMNISCIENT;

/// From this many traces on, traces are resampled instead of runs.
pub const TRACES_MIN: usize = 5;

/// What makes two runs a pair. Floats by their bits: they come from the same scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PairKey {
    trace: String,
    rtt: u64,
    rtt_steps: String,
    buffer: u64,
    loss: u64,
    jitter: u64,
    flows: u32,
    rivals: String,
    seed: u64,
    /// Which of the runs that all of this is the same for. Buffers of `100packets` and of `150KB`
    /// have as many bytes, and what they did differs.
    copy: u32,
}

impl PairKey {
    pub(crate) fn of(run: &RunRecord) -> Self {
        Self {
            trace: run.trace.clone(),
            rtt: run.cell.rtt_ms.to_bits(),
            rtt_steps: run.cell.rtt_steps.clone(),
            buffer: run.cell.buffer_bytes,
            loss: run.cell.loss.to_bits(),
            jitter: run.cell.jitter_ms.to_bits(),
            flows: run.cell.flows,
            rivals: run.cell.rivals.clone(),
            seed: run.seed,
            copy: 0,
        }
    }

    /// The trace of the bottleneck.
    pub(crate) fn trace(&self) -> &str {
        &self.trace
    }
}

/// The runs of one scheme with one application.
pub(crate) type Runs<'a> = BTreeMap<PairKey, &'a RunRecord>;

/// Runs by their keys, in the order of the scenario where they look alike.
pub(crate) fn keyed<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Runs<'a> {
    let mut keyed = Runs::new();
    for run in runs {
        let mut key = PairKey::of(run);
        while keyed.contains_key(&key) {
            key.copy += 1;
        }
        keyed.insert(key, run);
    }
    keyed
}

/// Summary rows of all runs, in the order in which applications and schemes first appear.
pub fn summarise(runs: &[RunRecord]) -> Vec<SummaryRow> {
    summary(&runs.iter().collect::<Vec<_>>())
}

/// As [`summarise`], of some of the runs.
pub(crate) fn summary(runs: &[&RunRecord]) -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    for app in in_order(runs.iter().map(|r| r.app.as_str())) {
        let of_app = || runs.iter().copied().filter(|r| r.app == app);
        let scale = scale(of_app());
        let schemes: Vec<(&str, Runs<'_>)> = in_order(of_app().map(|r| r.cc.as_str()))
            .into_iter()
            .map(|cc| (cc, keyed(of_app().filter(|r| r.cc == cc))))
            .collect();
        let omniscient = schemes.iter().find(|(cc, _)| *cc == OMNISCIENT).map(|(_, runs)| runs);
        let all: Vec<&RunRecord> = of_app().collect();
        for (cc, own) in &schemes {
            let others = schemes.iter().filter(|(other, _)| other != cc);
            let row = row(app, cc, own, scale, omniscient, others);
            rows.push(SummaryRow { harm: harm(&all, cc), ..row });
        }
    }
    rows
}

fn row<'a>(
    app: &str,
    cc: &str,
    own: &Runs<'_>,
    scale: Scale,
    omniscient: Option<&Runs<'_>>,
    others: impl Iterator<Item = &'a (&'a str, Runs<'a>)>,
) -> SummaryRow {
    let by_trace = in_order(own.values().map(|r| r.trace.as_str())).len() >= TRACES_MIN;
    let mean =
        |f: fn(&RunRecord) -> f64| own.values().map(|r| f(r)).sum::<f64>() / own.len() as f64;
    let over_runs = |value: &dyn Fn(&RunRecord) -> f64, statistic: fn(&Sums) -> f64| {
        interval(by_trace, own.iter().map(|(k, r)| (k, Sums::of(value(r), 0.0))), statistic)
    };
    let qoe = over_runs(&|r| r.qoe.mean, Sums::mean);
    let score = match scale {
        Scale::Ratio => over_runs(&|r| libm::log(r.score(scale)), geometric_mean),
        Scale::Difference => over_runs(&|r| r.score(scale), Sums::mean),
    };
    let jains: Vec<f64> = own.values().filter_map(|r| r.users.jain).collect();
    let omniscient = omniscient.filter(|_| scale == Scale::Ratio);
    SummaryRow {
        cc: cc.to_owned(),
        app: app.to_owned(),
        runs: own.len() as u64,
        scale,
        score: score.value,
        score_ci95: score.ci95,
        score_of_omniscient: omniscient.and_then(|best| score_share_of(by_trace, own, best)),
        users_mean: mean(|r| r.users.mean),
        users_p5: mean(|r| r.users.p5),
        users_jain: (scale == Scale::Ratio && !jains.is_empty())
            .then(|| jains.iter().sum::<f64>() / jains.len() as f64),
        qoe_mean: qoe.value,
        qoe_ci95: qoe.ci95,
        resampled: if by_trace { "trace" } else { "run" }.to_owned(),
        of_omniscient: omniscient.and_then(|best| share_of(by_trace, own, best)),
        throughput_mbps: mean(|r| r.throughput_mbps),
        queue_delay_ms: mean(|r| r.queue_delay_ms.mean),
        retransmit_ratio: mean(|r| r.retransmit_ratio),
        versus: others.filter_map(|(cc, other)| versus(by_trace, own, cc, other, scale)).collect(),
        harm: None,
    }
}

/// Whether "10% better" has a meaning for these runs.
pub(crate) fn scale<'a>(mut runs: impl Iterator<Item = &'a RunRecord>) -> Scale {
    // Only video has bitrates; its experience is a logarithm.
    if runs.all(|r| r.users.log_mean.is_some() && r.bitrate_kbps_mean.is_none()) {
        Scale::Ratio
    } else {
        Scale::Difference
    }
}

/// Of sums of logarithms: the geometric mean of what they are the logarithms of.
pub(crate) fn geometric_mean(sums: &Sums) -> f64 {
    libm::exp(sums.mean())
}

/// The geometric mean over pairs of own score / the other's; `None` without pairs.
fn score_share_of(by_trace: bool, own: &Runs<'_>, other: &Runs<'_>) -> Option<Estimate> {
    let pairs = pairs(own, other, |r| r.score(Scale::Ratio));
    let shares = pairs.iter().map(|&(k, a, b)| (k, Sums::of(libm::log(a / b), 0.0)));
    (!pairs.is_empty()).then(|| interval(by_trace, shares, geometric_mean))
}

/// Mean over pairs of own QoE / the other's QoE; `None` without pairs, or where the other has none.
fn share_of(by_trace: bool, own: &Runs<'_>, other: &Runs<'_>) -> Option<Estimate> {
    let pairs = pairs(own, other, |r| r.qoe.mean);
    if pairs.is_empty() || pairs.iter().any(|&(_, _, b)| b <= 0.0) {
        return None;
    }
    let shares = pairs.iter().map(|&(k, a, b)| (k, Sums::of(a / b, 0.0)));
    Some(interval(by_trace, shares, Sums::mean))
}

fn versus(
    by_trace: bool,
    own: &Runs<'_>,
    cc: &str,
    other: &Runs<'_>,
    scale: Scale,
) -> Option<Versus> {
    let scores = pairs(own, other, |r| r.score(scale));
    let pairs = pairs(own, other, |r| r.qoe.mean);
    if pairs.is_empty() {
        return None;
    }
    let over =
        |pairs: &[(&PairKey, f64, f64)], f: fn(f64, f64) -> Sums, statistic: fn(&Sums) -> f64| {
            interval(by_trace, pairs.iter().map(|&(k, a, b)| (k, f(a, b))), statistic)
        };
    let minus: fn(f64, f64) -> Sums = |a, b| Sums::of(a - b, 0.0);
    let percent = (scale == Scale::Ratio).then(|| {
        let log_ratio: fn(f64, f64) -> Sums = |a, b| Sums::of(libm::log(a / b), 0.0);
        over(&scores, log_ratio, |s| 100.0 * (geometric_mean(s) - 1.0))
    });
    let score_difference = over(&scores, minus, Sums::mean);
    let of = |f: fn(f64, f64) -> Sums, statistic| over(&pairs, f, statistic);
    let difference = of(minus, Sums::mean);
    let positive = pairs.iter().all(|&(_, _, b)| b > 0.0);
    let change = positive.then(|| of(|a, b| Sums::of(100.0 * (a - b) / b, 0.0), Sums::mean));
    let ratio = positive.then(|| of(Sums::of, |s| 100.0 * (s.a / s.b - 1.0)));
    let better: f64 = scores
        .iter()
        .map(|(_, a, b)| match a.total_cmp(b) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
        .sum();
    Some(Versus {
        cc: cc.to_owned(),
        pairs: pairs.len() as u64,
        score_percent: percent.map(|e| e.value),
        score_ci95: percent.and_then(|e| e.ci95),
        score_difference: score_difference.value,
        score_difference_ci95: score_difference.ci95,
        change_percent: change.map(|e| e.value),
        change_ci95: change.and_then(|e| e.ci95),
        ratio_of_means_percent: ratio.map(|e| e.value),
        ratio_of_means_ci95: ratio.and_then(|e| e.ci95),
        difference: difference.value,
        difference_ci95: difference.ci95,
        better_share: better / pairs.len() as f64,
    })
}

/// A value of both in every pair of runs.
fn pairs<'a>(
    own: &'a Runs<'_>,
    other: &Runs<'_>,
    value: impl Fn(&RunRecord) -> f64,
) -> Vec<(&'a PairKey, f64, f64)> {
    own.iter().filter_map(|(k, a)| Some((k, value(a), value(other.get(k)?)))).collect()
}

/// The interval of a statistic over runs, or over traces with all their runs.
pub(crate) fn interval<'a>(
    by_trace: bool,
    runs: impl Iterator<Item = (&'a PairKey, Sums)>,
    statistic: impl Fn(&Sums) -> f64,
) -> Estimate {
    let units: Vec<Sums> = if by_trace {
        let mut traces: BTreeMap<&str, Sums> = BTreeMap::new();
        for (key, sums) in runs {
            let of_trace = traces.entry(&key.trace).or_default();
            *of_trace = *of_trace + sums;
        }
        traces.into_values().collect()
    } else {
        runs.map(|(_, sums)| sums).collect()
    };
    // A scheme without runs has no row, so there is at least one unit.
    bca(&units, statistic).unwrap_or(Estimate { value: 0.0, ci95: None })
}

/// The distinct values in the order of their first appearance.
pub(crate) fn in_order<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for v in values {
        if !seen.contains(&v) {
            seen.push(v);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    #[test]
    fn changes_are_paired() {
        // Links of very different speed: unpaired, the 10% would drown in the spread.
        let runs: Vec<_> = [1.0, 5.0, 20.0, 80.0]
            .iter()
            .enumerate()
            .flat_map(|(i, &q)| {
                let trace = format!("t{i}");
                [run("cubic", &trace, 0, q), run("mortise", &trace, 0, 1.1 * q)]
            })
            .collect();
        let rows = summarise(&runs);
        assert_eq!(rows.iter().map(|r| r.cc.as_str()).collect::<Vec<_>>(), ["cubic", "mortise"]);
        let v = &rows[1].versus[0];
        assert_eq!((v.cc.as_str(), v.pairs), ("cubic", 4));
        assert!((v.change_percent.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(v.change_ci95, None, "every pair says the same");
        assert!((v.difference - 2.65).abs() < 1e-9);
        assert_eq!(v.better_share, 1.0);
        assert_eq!(rows[0].resampled, "run");
    }

    #[test]
    fn negative_experience_has_a_difference_only() {
        let runs = [run("a", "t", 0, -1.0), run("b", "t", 0, 2.0)];
        let rows = summarise(&runs);
        assert_eq!(rows[1].versus[0].change_percent, None);
        assert_eq!(rows[1].versus[0].difference, 3.0);
        assert_eq!(rows[1].versus[0].difference_ci95, None, "one pair has no spread");
        assert_eq!(rows[1].qoe_ci95, None);
        assert_eq!(rows[1].scale, Scale::Difference);
        // b is above zero, so the change of a against b has a meaning: from 2 to -1.
        assert_eq!(rows[0].versus[0].change_percent, Some(-150.0));
    }

    #[test]
    fn seeds_on_one_trace_are_one_unit() {
        // Ten seeds on each of five traces, where the change differs between traces only: an
        // interval over 50 "independent" runs would be far too narrow.
        let change = [1.0, 1.1, 1.2, 1.3, 1.4];
        let runs: Vec<_> = (0..5)
            .flat_map(|t| (0..10).map(move |seed| (t, seed)))
            .flat_map(|(t, seed)| {
                let trace = format!("t{t}");
                [run("a", &trace, seed, 1.0), run("b", &trace, seed, change[t])]
            })
            .collect();
        let rows = summarise(&runs);
        assert_eq!(rows[1].resampled, "trace");
        let [lo, hi] = rows[1].versus[0].change_ci95.unwrap();
        assert!(hi - lo > 18.0, "{lo}..{hi}");
    }

    #[test]
    fn unpaired_runs_are_left_out() {
        let runs = [run("a", "t", 0, 1.0), run("a", "t", 1, 9.0), run("b", "t", 0, 2.0)];
        let rows = summarise(&runs);
        assert_eq!(rows[0].versus[0].pairs, 1);
        assert_eq!(rows[0].qoe_mean, 5.0);
    }

    #[test]
    fn share_of_omniscient() {
        let runs = [run("a", "t", 0, 4.0), run("omniscient", "t", 0, 5.0)];
        let rows = summarise(&runs);
        assert_eq!(rows[0].of_omniscient.unwrap().value, 0.8);
        assert_eq!(rows[1].of_omniscient.unwrap().value, 1.0);
        let mut video = runs;
        video.iter_mut().for_each(|r| r.bitrate_kbps_mean = Some(1000.0));
        assert_eq!(summarise(&video)[0].of_omniscient, None, "a share of a logarithm says nothing");
    }

    /// Buffers of `100packets` and of `150KB` have as many bytes, so their records look alike.
    #[test]
    fn points_of_the_grid_that_look_alike_are_paired_in_their_order() {
        let runs = [
            run("a", "t", 0, 1.0),
            run("b", "t", 0, 2.0),
            run("a", "t", 0, 3.0),
            run("b", "t", 0, 9.0),
        ];
        let rows = summarise(&runs);
        assert_eq!((rows[0].runs, rows[0].qoe_mean), (2, 2.0), "no run is lost");
        let v = &rows[0].versus[0];
        assert_eq!((v.pairs, v.difference), (2, -3.5));
    }
}
