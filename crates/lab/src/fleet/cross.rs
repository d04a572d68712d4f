//! What flows that nobody steers get next to a scheme.

use serde::Serialize;
use trimtab_fleet::Summary;

use super::Fared;
use super::contest::Course;
use super::estimate::{Estimate, resampled};
use super::scenario::FleetScenario;
use crate::stats::harm::{of_less, of_more};

/// One flow of others on each bottleneck, in the last third of the run.
#[derive(Clone, Debug, Serialize)]
pub struct CrossResult {
    /// Its algorithm, as the scenario has it.
    pub cc: String,
    /// Mean throughput in Mbit/s.
    pub throughput_mbps: f64,
    /// Mean round-trip time in ms.
    pub rtt_ms: f64,
    /// Mean share of its packets that are lost, 0 to 1.
    pub loss: f64,
    /// Harm to it, where its own algorithm is among the baselines.
    pub harm: Option<CrossHarm>,
}

/// Harm to a flow compared with what it gets next to its own algorithm, mean over the aggregates: 0
/// is none, 1 the most, and below 0 it fares better (Ware et al., HotNets 2019, section 3).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CrossHarm {
    /// To its throughput.
    pub throughput: Estimate,
    /// To its round-trip time.
    pub delay: Estimate,
    /// To its loss.
    pub loss: Estimate,
}

/// How a statistic of the flows of others is called, before their algorithm.
pub(super) const OTHERS: &str = "others ";

/// The flows of others next to a scheme.
pub(super) fn of(scenario: &FleetScenario, all: &[Fared], courses: &[Course]) -> Vec<CrossResult> {
    let of = |(entry, (cc, _)): (usize, &(String, _))| {
        let merged = merged(entry, courses.iter());
        let own = all.iter().find(|fared| fared.name == *cc);
        CrossResult {
            cc: cc.clone(),
            throughput_mbps: mean(&merged, "throughput"),
            rtt_ms: 1000.0 * mean(&merged, "rtt"),
            loss: mean(&merged, "loss"),
            harm: own.and_then(|own| harm(entry, &own.courses, courses)),
        }
    };
    scenario.links.shared.cross.iter().enumerate().map(of).collect()
}

/// The mean throughput of the flows of others, by algorithm.
pub(super) fn throughputs(others: &[&str], courses: &[&Course]) -> Vec<(String, f64)> {
    let of = |(entry, cc): (usize, &&str)| {
        let merged = merged(entry, courses.iter().copied());
        (format!("{OTHERS}{cc}"), mean(&merged, "throughput"))
    };
    others.iter().enumerate().map(of).collect()
}

/// One flow of others, of some aggregates.
fn merged<'a>(entry: usize, courses: impl Iterator<Item = &'a Course>) -> Summary {
    let mut merged = Summary::default();
    courses.filter_map(|c| c.cross.get(entry)).for_each(|one| merged.merge(one));
    merged
}

/// Mean harm to throughput over all entries, 0 to 1; where it is known.
pub(super) fn mean_harm(cross: &[CrossResult]) -> Option<f64> {
    let harms: Vec<f64> =
        cross.iter().filter_map(|c| c.harm.as_ref()).map(|h| h.throughput.value).collect();
    (!harms.is_empty()).then(|| harms.iter().sum::<f64>() / harms.len() as f64)
}

fn mean(summary: &Summary, name: &str) -> f64 {
    summary.get(name).and_then(trimtab_fleet::Sketch::mean).unwrap_or(0.0)
}

fn harm(entry: usize, own_kind: &[Course], next_to_us: &[Course]) -> Option<CrossHarm> {
    let of = |name: &str, harm: fn(f64, f64) -> f64| {
        let value = |c: &Course| c.cross.get(entry).map_or(0.0, |one| mean(one, name));
        let harms: Vec<f64> =
            own_kind.iter().zip(next_to_us).map(|(own, us)| harm(value(own), value(us))).collect();
        let figure = |picks: &[usize]| {
            (!picks.is_empty())
                .then(|| picks.iter().map(|&i| harms[i]).sum::<f64>() / picks.len() as f64)
        };
        resampled(1, harms.len(), figure)
    };
    Some(CrossHarm {
        throughput: of("throughput", of_more)?,
        delay: of("rtt", of_less)?,
        loss: of("loss", of_less)?,
    })
}

#[cfg(test)]
mod tests;
