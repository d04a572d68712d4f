//! A row of a table.

use trimtab_envs::muses::Outcome;
use trimtab_lab::stats::{Ellipse, Moments};

/// One network: its one-way delay in ms, what came of it, and the distance of what was in flight.
pub(crate) type Run = (f64, Outcome, f64);

/// What the columns are.
pub(crate) const HEAD: &str = "\
| networks | | utilisation | p95 queueing delay | p95 one-way delay | loss | area | in flight |
|---|---|---:|---:|---:|---:|---:|---:|";

/// Means, with half the 95 % interval of the first two; and the area of the ellipse of one standard deviation of
/// utilisation in percent and one-way delay in ms.
pub(crate) fn row(runs: &[Run]) -> String {
    let n = runs.len() as f64;
    let of = |f: &dyn Fn(&Run) -> f64| {
        let values: Vec<f64> = runs.iter().map(f).collect();
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        (mean, square / (n - 1.0).max(1.0), values)
    };
    let used = of(&|(_, o, _)| 100.0 * o.utilisation);
    let queue = of(&|(_, o, _)| o.queue_delay_p95.as_millis_f64());
    let delay = of(&|(owd, o, _)| owd + o.queue_delay_p95.as_millis_f64());
    let loss = of(&|(_, o, _)| 100.0 * o.loss).0;
    let apart = of(&|(_, _, apart)| apart * apart).0.sqrt();
    let pairs = used.2.iter().zip(&delay.2);
    let all = pairs.fold(Moments::default(), |sum, (u, d)| sum + Moments::of(*u, *d));
    let area = all.ellipse().as_ref().map_or(0.0, Ellipse::area);
    let half = |variance: f64| 1.96 * (variance / n).sqrt();
    format!(
        "{:.1}% ± {:.1} | {:.0} ± {:.0} ms | {:.0} ms | {loss:.2}% | {area:.0} | {apart:.0}",
        used.0,
        half(used.1),
        queue.0,
        half(queue.1),
        delay.0
    )
}

/// What the columns of the second table are: each network's own ratio to CUBIC's run over it.
pub(crate) const RATIO_HEAD: &str = "\
| networks | compared with cubic | utilisation | p95 queueing delay | p95 one-way delay |
|---|---|---:|---:|---:|";

/// The least delay that is distinguished, in ms: below it a ratio is one of noise.
const DELAY_MIN_MS: f64 = 1.0;

/// Geometric means of the ratios to CUBIC network by network, with their 95 % intervals. A few networks with
/// seconds of delay decide an arithmetic mean, and say little of a ratio.
pub(crate) fn ratio(runs: &[Run], cubic: &[Run]) -> String {
    let of = |f: &dyn Fn(&Run) -> f64| {
        let n = runs.len() as f64;
        let logs: Vec<f64> =
            runs.iter().zip(cubic).map(|(own, other)| libm::log(f(own) / f(other))).collect();
        let mean = logs.iter().sum::<f64>() / n;
        let square = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>();
        let half = 1.96 * (square / (n - 1.0).max(1.0) / n).sqrt();
        let [at, low, high] = [mean, mean - half, mean + half].map(libm::exp);
        format!("{at:.2} [{low:.2}, {high:.2}]")
    };
    let queue = |run: &Run| run.1.queue_delay_p95.as_millis_f64();
    let used = of(&|run| run.1.utilisation.max(0.001));
    let queued = of(&|run| queue(run).max(DELAY_MIN_MS));
    format!("{used} | {queued} | {}", of(&|run| run.0 + queue(run)))
}
