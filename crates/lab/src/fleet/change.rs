//! The change vs. a named baseline, statistic by statistic, with 95% intervals.

use rand::RngExt;

use super::connection::generator;
use super::contest::Course;
use super::estimate::Estimate;
use super::result::{VersusResult, statistics};
use super::{cross, merged};

/// How often aggregates are drawn for an interval.
const RESAMPLES: usize = 400;

/// By which share each statistic of the last third differs from the other's, with the 95% interval
/// by bootstrap over the aggregates: both are drawn together, since their connections are the same.
/// What the other has none of is left out. `others` are the flows of others, whose throughput is
/// compared, too.
pub(super) fn versus(
    name: &str,
    others: &[&str],
    own: &[&Course],
    other: &[&Course],
) -> VersusResult {
    let changes = |picks: &[usize]| -> Vec<(String, f64)> {
        let of = |all: &[&Course]| {
            let picked: Vec<&Course> = picks.iter().map(|&i| all[i]).collect();
            let mut figures = statistics(&merged(picked.iter().copied()));
            figures.extend(cross::throughputs(others, &picked));
            figures
        };
        let (own, other) = (of(own), of(other));
        let change = |((name, own), (_, other)): (&(String, f64), &(String, f64))| {
            (*other > 0.0).then(|| (name.clone(), own / other - 1.0))
        };
        own.iter().zip(&other).filter_map(change).collect()
    };
    let count = own.len().min(other.len());
    let mut random = generator(count as u64, &[11]);
    let drawn: Vec<Vec<(String, f64)>> = (0..RESAMPLES)
        .map(|_| {
            let picks: Vec<usize> = (0..count).map(|_| random.random_range(0..count)).collect();
            changes(&picks)
        })
        .collect();
    let estimate = |(name, value): (String, f64)| {
        let mut values: Vec<f64> =
            drawn.iter().flatten().filter(|(n, _)| *n == name).map(|(_, v)| *v).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            values.get((share * values.len() as f64) as usize).copied().unwrap_or(value)
        };
        (name, Estimate { value, low: at(0.025), high: at(0.975) })
    };
    let all: Vec<usize> = (0..count).collect();
    let statistics = changes(&all).into_iter().map(estimate).collect();
    VersusResult { name: name.to_owned(), statistics }
}
