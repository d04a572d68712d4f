//! A row of a table.

use trimtab_learn::muses::Outcome;

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
    let both = pairs.map(|(u, d)| (u - used.0) * (d - delay.0)).sum::<f64>() / (n - 1.0).max(1.0);
    let area = core::f64::consts::PI * (used.1 * delay.1 - both * both).max(0.0).sqrt();
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
