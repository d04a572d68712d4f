//! What holds for statistics of any runs: tried on many that are drawn from fixed seeds.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::summary::summarise;
use super::*;
use crate::result::{RunRecord, SummaryRow, Versus};
use crate::testing::{close, run};

/// A few values, some sets skewed, some of both signs.
fn values(seed: u64) -> Vec<f64> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let count = random.random_range(UNITS_MIN..40);
    let skew: f64 = random.random_range(0.1..2.5);
    (0..count).map(|_| libm::exp(skew * random.random_range(-1.0..1.0)) - 0.5).collect()
}

fn shuffled<T>(mut values: Vec<T>, random: &mut impl Rng) -> Vec<T> {
    for i in (1..values.len()).rev() {
        values.swap(i, random.random_range(0..=i));
    }
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The estimate of a mean with the ends of its interval.
fn estimated(values: &[f64]) -> [f64; 3] {
    let units: Vec<Sums> = values.iter().map(|&v| Sums::of(v, 0.0)).collect();
    let Estimate { value, ci95 } = bca(&units, Sums::mean).unwrap();
    let [low, high] = ci95.unwrap();
    [low, value, high]
}

#[test]
fn an_interval_holds_its_mean_and_lies_within_the_values() {
    for seed in 0..100 {
        let values = values(seed);
        let [low, value, high] = estimated(&values);
        close(value, mean(&values));
        assert!(low < value && value < high, "seed {seed}: {value} in {low} to {high}");
        let sorted = Sorted::new(values);
        let (least, most) = (sorted.values()[0], *sorted.values().last().unwrap());
        assert!(least <= low && high <= most, "seed {seed}: {low} to {high}");
    }
}

/// Whether quality is counted in kbit/s or in Mbit/s above a baseline decides nothing.
#[test]
fn an_interval_follows_the_unit_of_the_values() {
    for seed in 0..20 {
        let values = values(seed);
        let scaled: Vec<f64> = values.iter().map(|v| 1000.0 * v + 7.0).collect();
        for (plain, scaled) in estimated(&values).into_iter().zip(estimated(&scaled)) {
            close(scaled, 1000.0 * plain + 7.0);
        }
    }
}

/// The standard error of a mean of uniform values is √(1/12n), and the interval 3.92 of them.
#[test]
fn an_interval_narrows_with_the_root_of_the_number_of_units() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for count in [30_u32, 120, 480] {
        let widths: Vec<f64> = (0..10)
            .map(|_| (0..count).map(|_| random.random::<f64>()).collect::<Vec<_>>())
            .map(|values| estimated(&values))
            .map(|[low, _, high]| high - low)
            .collect();
        let expected = 3.92 / libm::sqrt(12.0 * f64::from(count));
        let ratio = mean(&widths) / expected;
        assert!((0.9..1.1).contains(&ratio), "{count} units: {ratio} of the width of theory");
    }
}

#[test]
fn a_ratio_of_sums_has_no_interval_where_every_unit_has_the_same() {
    let units = [(10.0, 1.0), (30.0, 3.0), (20.0, 2.0)].map(|(a, b)| Sums::of(a, b));
    let got = bca(&units, |s| s.a / s.b).unwrap();
    assert_eq!(got, Estimate { value: 10.0, ci95: None });
    let got = bca(&[units[0], units[1], Sums::of(5.0, 1.0)], |s| s.a / s.b).unwrap();
    assert_eq!(got.value, 9.0, "the ratio of sums, not the mean of ratios");
    let [low, high] = got.ci95.unwrap();
    assert!((5.0..9.0).contains(&low) && (9.0..=10.0).contains(&high), "{low} to {high}");
}

#[test]
fn percentiles_rise_within_the_values_whatever_their_order() {
    for seed in 0..100 {
        let values = values(seed);
        let sorted = Sorted::new(values.clone());
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        assert_eq!(sorted, Sorted::new(shuffled(values.clone(), &mut random)));
        let (first, last) = (sorted.values()[0], *sorted.values().last().unwrap());
        assert_eq!(sorted.percentile(0.0), Some(first));
        assert_eq!(sorted.percentile(100.0), Some(last));
        // Value k of n + 1 stands at k / n.
        let steps = (values.len() - 1) as f64;
        for (k, &value) in sorted.values().iter().enumerate() {
            close(sorted.percentile(100.0 * k as f64 / steps).unwrap(), value);
        }
        let at: Vec<f64> =
            (0..=200).filter_map(|i| sorted.percentile(f64::from(i) / 2.0)).collect();
        let rises = |pair: &[f64]| pair[1] >= pair[0] - 1e-12;
        assert!(at.windows(2).all(rises), "seed {seed}: {at:?}");
    }
}

#[test]
fn one_pass_finds_the_mean_and_the_variance_of_two() {
    for seed in 0..50 {
        let values = values(seed);
        let mut one_pass = Welford::default();
        one_pass.extend(values.iter().copied());
        let mean = mean(&values);
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        assert_eq!(one_pass.count(), values.len() as u64);
        close(one_pass.mean().unwrap(), mean);
        close(one_pass.variance().unwrap(), squares / (values.len() - 1) as f64);
        close(one_pass.std_dev().unwrap(), libm::sqrt(one_pass.variance().unwrap()));
    }
}

/// The properties by which Jain, Chiu and Hawe chose the index (DEC-TR-301, §2).
#[test]
fn fairness_is_of_shares_whatever_their_unit_and_order() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    for _ in 0..100 {
        let count = random.random_range(1..12);
        let shares: Vec<f64> = (0..count).map(|_| random.random_range(0.0..50.0)).collect();
        let index = jain(&shares).unwrap();
        assert!((1.0 / f64::from(count) - 1e-12..=1.0 + 1e-12).contains(&index), "{index}");
        close(jain(&shares.iter().map(|s| 1e6 * s).collect::<Vec<_>>()).unwrap(), index);
        // k of n flows with the same share each: k / n.
        let idle: Vec<f64> =
            (0..count).map(|i| if i < 1 + count / 2 { 3.0 } else { 0.0 }).collect();
        close(jain(&idle).unwrap(), f64::from(1 + count / 2) / f64::from(count));
        close(jain(&shuffled(shares, &mut random)).unwrap(), index);
    }
}

/// Three schemes over some traces, cells and seeds; experience above zero.
fn drawn(seed: u64, traces: u32) -> Vec<RunRecord> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut runs = Vec::new();
    for trace in 0..traces {
        for rtt in [20.0, 60.0] {
            for run_seed in 0..3 {
                let speed = random.random_range(1.0..40.0);
                for (cc, quality) in [("cubic", 0.8), ("mortise", 0.9), ("omniscient", 1.0)] {
                    let luck = random.random_range(0.8..1.2);
                    let mut run = run(cc, &format!("t{trace}"), run_seed, speed * quality * luck);
                    run.cell.rtt_ms = rtt;
                    run.throughput_mbps = speed * quality;
                    runs.push(run);
                }
            }
        }
    }
    runs
}

/// The rows by scheme, and in them the comparisons by the other one.
fn by_name(mut rows: Vec<SummaryRow>) -> Vec<SummaryRow> {
    rows.iter_mut().for_each(|row| row.versus.sort_by(|a, b| a.cc.cmp(&b.cc)));
    rows.sort_by(|a, b| a.cc.cmp(&b.cc));
    rows
}

#[test]
fn the_order_of_runs_changes_no_number() {
    for (seed, traces) in [(1, 2), (2, 4), (3, 7)] {
        let runs = drawn(seed, traces);
        let mixed = shuffled(runs.clone(), &mut Pcg64Mcg::seed_from_u64(seed));
        assert_eq!(by_name(summarise(&runs)), by_name(summarise(&mixed)));
    }
}

fn versus<'a>(rows: &'a [SummaryRow], cc: &str, other: &str) -> &'a Versus {
    let row = rows.iter().find(|row| row.cc == cc).unwrap();
    row.versus.iter().find(|v| v.cc == other).unwrap()
}

#[test]
fn who_is_better_is_so_from_both_sides() {
    for (seed, traces) in [(1, 2), (2, 4), (3, 7)] {
        let rows = summarise(&drawn(seed, traces));
        assert!(rows.iter().all(|row| row.versus.len() == 2), "each but itself");
        let (a, b) = (versus(&rows, "cubic", "mortise"), versus(&rows, "mortise", "cubic"));
        assert_eq!((a.pairs, b.pairs), (u64::from(traces) * 6, u64::from(traces) * 6));
        close(a.difference, -b.difference);
        close(a.better_share + b.better_share, 1.0);
        let ratio = |v: &Versus| 1.0 + v.ratio_of_means_percent.unwrap() / 100.0;
        close(ratio(a) * ratio(b), 1.0);
    }
}

#[test]
fn rows_are_the_means_of_their_runs_and_within_their_intervals() {
    for (seed, traces) in [(1, 2), (2, 4), (3, 7)] {
        let runs = drawn(seed, traces);
        let rows = summarise(&runs);
        for row in &rows {
            let own = || runs.iter().filter(|run| run.cc == row.cc);
            close(row.qoe_mean, mean(&own().map(|run| run.qoe.mean).collect::<Vec<_>>()));
            close(row.throughput_mbps, mean(&own().map(|r| r.throughput_mbps).collect::<Vec<_>>()));
            assert_eq!(row.resampled, if traces < 5 { "run" } else { "trace" });
            let holds = |[low, high]: [f64; 2], value: f64| low <= value && value <= high;
            assert!(holds(row.qoe_ci95.unwrap(), row.qoe_mean), "{row:?}");
            for v in &row.versus {
                assert!(holds(v.change_ci95.unwrap(), v.change_percent.unwrap()), "{v:?}");
                assert!(holds(v.difference_ci95.unwrap(), v.difference), "{v:?}");
                let ratio = v.ratio_of_means_percent.unwrap();
                assert!(holds(v.ratio_of_means_ci95.unwrap(), ratio), "{v:?}");
            }
        }
        // Pair by pair, by hand.
        let of = |cc: &'static str| runs.iter().filter(move |run| run.cc == cc);
        let pairs = || of("mortise").zip(of("cubic")).map(|(a, b)| (a.qoe.mean, b.qoe.mean));
        let changes: Vec<f64> = pairs().map(|(a, b)| 100.0 * (a - b) / b).collect();
        close(versus(&rows, "mortise", "cubic").change_percent.unwrap(), mean(&changes));
    }
}

#[test]
fn the_unit_of_experience_changes_no_percentage() {
    let runs = drawn(4, 3);
    let mut scaled = runs.clone();
    scaled.iter_mut().for_each(|run| run.qoe.mean *= 1000.0);
    for (plain, scaled) in summarise(&runs).iter().zip(summarise(&scaled)) {
        close(scaled.qoe_mean, 1000.0 * plain.qoe_mean);
        close(scaled.of_omniscient.unwrap().value, plain.of_omniscient.unwrap().value);
        for (plain, scaled) in plain.versus.iter().zip(&scaled.versus) {
            close(scaled.change_percent.unwrap(), plain.change_percent.unwrap());
            close(scaled.ratio_of_means_percent.unwrap(), plain.ratio_of_means_percent.unwrap());
            assert_eq!(scaled.better_share, plain.better_share);
        }
    }
}

#[test]
fn applications_have_rows_of_their_own() {
    let mut runs = drawn(6, 2);
    let mut web = runs.clone();
    for run in &mut web {
        run.app = "web".to_owned();
        run.qoe.mean = -run.qoe.mean;
    }
    let alone = summarise(&runs);
    runs.extend(web);
    let rows = summarise(&runs);
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[..3], alone, "another application moves nothing");
    assert!(rows[3..].iter().all(|row| row.of_omniscient.is_none()), "no ratio below zero");
}
