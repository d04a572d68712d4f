//! Harm to others: how much worse competing flows fare next to a scheme than next to their own
//! kind.
//!
//! What to read first: Ware, Mukerjee, Seshan, Sherry, "Beyond Jain's Fairness Index: Setting the
//! Bar for the Deployment of Congestion Control Algorithms" (HotNets 2019), §3.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::{RivalsRecord, RunRecord};
use crate::stats::summary::{PairKey, TRACES_MIN, in_order, interval};
use crate::stats::{Estimate, Sums};

/// The least that harm counts as: at −1, a flow fares twice as well, or has half the delay or loss.
/// Our own choice: the paper has no lower end, and one cell with next to no loss must not decide
/// the mean.
pub const LEAST: f64 = -1.0;

/// Harm to competing flows, the mean over cells. 0 is what their own kind does, 1 is the most, and
/// below 0 they fare better than next to their own kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HarmRecord {
    /// How many pairs of runs: one next to the scheme, one next to their own kind.
    pub pairs: u64,
    /// To their throughput.
    pub throughput: Estimate,
    /// To their round-trip time.
    pub delay: Estimate,
    /// To their loss ratio.
    pub loss: Estimate,
}

/// Harm to a quantity of which more is better (Ware et al. §3: (x − y) / x, where x is the solo
/// value; here next to their own kind).
pub(crate) fn of_more(own_kind: f64, next_to_us: f64) -> f64 {
    bounded(own_kind - next_to_us, own_kind)
}

/// Harm to a quantity of which less is better (Ware et al. §3: (y − x) / y).
pub(crate) fn of_less(own_kind: f64, next_to_us: f64) -> f64 {
    bounded(next_to_us - own_kind, next_to_us)
}

fn bounded(worse_by: f64, of: f64) -> f64 {
    match (of > 0.0, worse_by < 0.0) {
        (true, _) => (worse_by / of).max(LEAST),
        (false, true) => LEAST,
        (false, false) => 0.0,
    }
}

/// The harm that a scheme does over these runs, which are those of one application. `None` without
/// competitors of a single algorithm, or where that is not among the schemes.
pub fn harm(runs: &[&RunRecord], cc: &str) -> Option<HarmRecord> {
    let by_place: BTreeMap<(&str, PairKey), &RunRecord> =
        runs.iter().map(|r| ((r.cc.as_str(), PairKey::of(r)), *r)).collect();
    let pairs: Vec<(PairKey, &RivalsRecord, &RivalsRecord)> = runs
        .iter()
        .filter(|r| r.cc == cc)
        .filter_map(|r| {
            let ours = r.rivals.as_ref()?;
            let key = PairKey::of(r);
            // The same cell and seed, where the scheme is their own algorithm.
            let own_kind = by_place.get(&(ours.cc.as_deref()?, key.clone()))?;
            Some((key, own_kind.rivals.as_ref()?, ours))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let by_trace = in_order(pairs.iter().map(|(key, ..)| key.trace())).len() >= TRACES_MIN;
    let mean = |of: fn(&RivalsRecord, &RivalsRecord) -> f64| {
        let harms = pairs.iter().map(|(key, own, ours)| (key, Sums::of(of(own, ours), 0.0)));
        interval(by_trace, harms, Sums::mean)
    };
    Some(HarmRecord {
        pairs: pairs.len() as u64,
        throughput: mean(|own, ours| of_more(own.throughput_mbps, ours.throughput_mbps)),
        delay: mean(|own, ours| of_less(own.rtt_ms, ours.rtt_ms)),
        loss: mean(|own, ours| of_less(own.loss_ratio, ours.loss_ratio)),
    })
}

/// The algorithms of competitors that are not among the schemes, so that the harm to them is not
/// known.
pub fn unknown(runs: &[RunRecord]) -> Vec<&str> {
    let schemes = in_order(runs.iter().map(|r| r.cc.as_str()));
    let rivals = runs.iter().filter_map(|r| r.rivals.as_ref()?.cc.as_deref());
    in_order(rivals).into_iter().filter(|cc| !schemes.contains(cc)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    fn next_to(cc: &str, trace: &str, rivals: (&str, f64, f64, f64)) -> RunRecord {
        let (rival, throughput_mbps, rtt_ms, loss_ratio) = rivals;
        let rivals =
            RivalsRecord { cc: Some(rival.to_owned()), throughput_mbps, rtt_ms, loss_ratio };
        RunRecord { rivals: Some(rivals), ..run(cc, trace, 0, 1.0) }
    }

    #[test]
    fn harm_is_measured_against_their_own_kind() {
        let runs = [
            next_to("cubic", "a", ("cubic", 8.0, 50.0, 0.01)),
            next_to("bbr", "a", ("cubic", 2.0, 100.0, 0.04)),
            next_to("cubic", "b", ("cubic", 4.0, 60.0, 0.0)),
            next_to("bbr", "b", ("cubic", 5.0, 40.0, 0.0)),
        ];
        let all: Vec<&RunRecord> = runs.iter().collect();
        let bbr = harm(&all, "bbr").unwrap();
        assert_eq!(bbr.pairs, 2);
        // (8 − 2) / 8 and (4 − 5) / 4; (100 − 50) / 100 and (40 − 60) / 40; (0.04 − 0.01) / 0.04
        // and 0.
        assert!((bbr.throughput.value - (0.75 - 0.25) / 2.0).abs() < 1e-12);
        assert!((bbr.delay.value - (0.5 - 0.5) / 2.0).abs() < 1e-12);
        assert!((bbr.loss.value - 0.375).abs() < 1e-12);
        let cubic = harm(&all, "cubic").unwrap();
        assert_eq!((cubic.throughput.value, cubic.delay.value, cubic.loss.value), (0.0, 0.0, 0.0));
    }

    #[test]
    fn nothing_divides_by_nothing_and_benefits_have_an_end() {
        assert_eq!((of_more(0.0, 0.0), of_less(0.0, 0.0)), (0.0, 0.0));
        assert_eq!((of_more(0.0, 1.0), of_less(0.5, 0.0)), (LEAST, LEAST));
        assert_eq!((of_more(1.0, 9.0), of_less(0.9, 0.1)), (LEAST, LEAST));
        assert_eq!((of_more(5.0, 0.0), of_less(0.0, 0.1)), (1.0, 1.0));
    }

    #[test]
    fn without_their_own_kind_harm_is_unknown() {
        let runs = [next_to("bbr", "a", ("cubic", 2.0, 100.0, 0.04)), run("vegas", "a", 0, 1.0)];
        let all: Vec<&RunRecord> = runs.iter().collect();
        assert_eq!((harm(&all, "bbr"), harm(&all, "vegas")), (None, None));
        assert_eq!(unknown(&runs), ["cubic"]);
    }
}
