//! The generated traces have the statistics that their generators claim, and the shipped ones are theirs.

use std::path::Path;

use trimtab_net::generate::{Cellular, Position, Wifi, demo_set};
use trimtab_net::{Capacity, Segment, Segmentation, Trace};
use trimtab_units::{Duration, Rate, Time};

/// Durations in seconds and mean rates in Mbit/s of consecutive segments.
type Segments = Vec<(f64, f64)>;

fn plain(segments: &[Segment]) -> Segments {
    segments.iter().map(|s| (s.duration.as_secs_f64(), s.mean.mbps())).collect()
}

/// Mortise, appendix A: more than 90% of the segments longer than 3 s, more than 95% shorter than 17 s, more
/// than 80% of the changes above 50%, 95% within 245%. `traces` are segments of separate traces.
fn assert_like_appendix_a(traces: &[Segments]) {
    let share = |values: &[f64], holds: &dyn Fn(f64) -> bool| {
        values.iter().filter(|&&value| holds(value)).count() as f64 / values.len() as f64
    };
    let durations: Vec<f64> = traces.iter().flatten().map(|segment| segment.0).collect();
    let changes: Vec<f64> = traces
        .iter()
        .flat_map(|segments| segments.windows(2))
        .map(|pair| (pair[1].1 - pair[0].1).abs() / pair[0].1)
        .collect();
    assert!(durations.len() > 300);
    let long = share(&durations, &|seconds| seconds > 3.0);
    let short = share(&durations, &|seconds| seconds < 17.0);
    let large = share(&changes, &|change| change > 0.5);
    let within = share(&changes, &|change| change <= 2.45);
    assert!(long > 0.9, "{long} of the segments are longer than 3 s");
    assert!(short > 0.95, "{short} of the segments are shorter than 17 s");
    assert!(large > 0.8, "{large} of the changes are above 50%");
    assert!(within >= 0.95, "{within} of the changes are within 245%");
    // And not because everything is alike.
    assert!(large < 0.98 && within < 0.999 && long < 0.999);
}

/// Several traces, each with its segments; the last segment, which the end cuts off, is left out.
fn cellular_traces() -> Vec<(Trace, Vec<Segment>)> {
    let parameters = Cellular { duration: Duration::from_secs(300), ..Cellular::default() };
    (0..16)
        .map(|seed| {
            let mut generated = parameters.generate(seed);
            generated.segments.pop();
            (generated.trace, generated.segments)
        })
        .collect()
}

#[test]
fn cellular_segments_are_like_appendix_a() {
    let traces = cellular_traces();
    assert_like_appendix_a(&traces.iter().map(|(_, segments)| plain(segments)).collect::<Vec<_>>());

    // The same with what the trace carries in each segment.
    let carried = |trace: &Trace, segments: &[Segment]| {
        let capacity = Capacity::trace(trace.clone());
        let mut from = Time::ZERO;
        let mut measured = Segments::new();
        for segment in segments {
            let to = from + segment.duration;
            let rate = capacity.bytes_between(from, to) / segment.duration;
            measured.push((segment.duration.as_secs_f64(), rate.mbps()));
            from = to;
        }
        measured
    };
    let measured: Vec<Segments> =
        traces.iter().map(|(trace, segments)| carried(trace, segments)).collect();
    assert_like_appendix_a(&measured);
    // Fading has mean one, and outages are rare.
    let pairs = measured.iter().flatten().zip(traces.iter().flat_map(|(_, segments)| segments));
    let ratios: Vec<f64> = pairs.map(|(measured, drawn)| measured.1 / drawn.mean.mbps()).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((0.96..1.01).contains(&mean), "{mean}");
}

/// Appendix A's own way: segment the throughput, and look at the segments found.
#[test]
fn segments_found_in_cellular_traces_are_like_appendix_a() {
    let found = |trace: &Trace| {
        let mut segments = Segmentation::default().segments(trace).unwrap();
        segments.pop();
        plain(&segments)
    };
    let traces: Vec<Segments> = cellular_traces().iter().map(|(trace, _)| found(trace)).collect();
    assert_like_appendix_a(&traces);
}

#[test]
fn fading_is_fast_and_outages_come_at_their_rate() {
    // One rate, so that what varies is the fading.
    let rate = Rate::from_mbps(60.0);
    let parameters = Cellular {
        duration: Duration::from_secs(240),
        rate_min: rate,
        rate_max: rate,
        outages_per_minute: 0.0,
        ..Cellular::default()
    };
    let trace = parameters.generate(1).trace;
    let bins: Vec<f64> =
        trace.rates(Duration::from_millis(10)).iter().map(|rate| rate.mbps() / 60.0).collect();
    let mean = bins.iter().sum::<f64>() / bins.len() as f64;
    let correlation = |lag: usize| {
        let products = bins.iter().zip(&bins[lag..]).map(|(a, b)| (a - mean) * (b - mean));
        products.sum::<f64>() / (bins.len() - lag) as f64
    };
    let variance = correlation(0);
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    // Log-normal with deviation 0.35: variance exp(0.35^2) - 1 = 0.130.
    assert!((variance - 0.130).abs() < 0.02, "{variance}");
    // It stays over 10 ms and is gone after some 100 ms.
    assert!(correlation(1) / variance > 0.7);
    assert!((correlation(5) / variance - 0.37).abs() < 0.08);
    assert!(correlation(20) / variance < 0.1);

    let with_outages = Cellular {
        outages_per_minute: 6.0,
        outage_mean: Duration::from_millis(500),
        duration: Duration::from_secs(1200),
        ..parameters
    };
    let trace = with_outages.generate(2).trace;
    let silent = trace.rates(Duration::from_millis(10)).iter().filter(|r| r.is_zero()).count();
    // 6 a minute of half a second: 4.8% of the time (10 s between them on average).
    let share = silent as f64 / 120_000.0;
    assert!((share - 0.048).abs() < 0.012, "{share}");
}

/// Positions at equal times: there are more turns where the signal is good.
fn positions(parameters: &Wifi) -> Vec<Position> {
    let tick = |position: &Position| position.at.as_millis() / 25;
    let mut positions: Vec<Position> =
        (0..8).flat_map(|seed| parameters.generate(seed).positions).collect();
    positions.dedup_by_key(|position| tick(position));
    positions
}

/// Table II's exponent and shadowing, found again in the power received.
#[test]
fn wifi_signal_follows_distance_and_shadowing() {
    for (path_loss_exponent, shadowing_db) in [(4.0, 2.0), (5.0, 6.0), (6.0, 3.0)] {
        let parameters = Wifi {
            path_loss_exponent,
            shadowing_db,
            speed_m_per_s: 10.0,
            radius_m: 15.0,
            rivals: 0.0,
            ..Wifi::default()
        };
        let points: Vec<(f64, f64)> = positions(&parameters)
            .iter()
            .filter(|position| position.distance_m > 1.0)
            .map(|position| (position.distance_m.log10(), position.signal_dbm))
            .collect();
        let count = points.len() as f64;
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / count;
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let slope = mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x) * (p.0 - x));
        let residual = mean(&|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sqrt();
        assert!((slope / -10.0 - path_loss_exponent).abs() < 0.2, "{path_loss_exponent} {slope}");
        assert!((residual - shadowing_db).abs() < 0.25 * shadowing_db, "{shadowing_db} {residual}");
    }
}

#[test]
fn wifi_clients_walk_within_their_disc_and_speed() {
    let parameters = Wifi { speed_m_per_s: 3.0, radius_m: 10.0, ..Wifi::default() };
    let positions = parameters.generate(7).positions;
    let furthest = positions.iter().map(|p| p.distance_m).fold(0.0, f64::max);
    let nearest = positions.iter().map(|p| p.distance_m).fold(f64::MAX, f64::min);
    assert!(furthest <= 10.0 && furthest > 7.0, "{furthest}");
    assert!(nearest < 4.0, "{nearest}");
    for pair in positions.windows(2) {
        let seconds = (pair[1].at - pair[0].at).as_secs_f64();
        let metres = (pair[1].distance_m - pair[0].distance_m).abs();
        assert!(metres <= 3.0 * seconds + 1e-9, "{metres} m in {seconds} s");
    }
    let still = Wifi { speed_m_per_s: 0.0, radius_m: 10.0, ..Wifi::default() };
    assert!(still.generate(7).positions.iter().all(|position| position.distance_m == 10.0));
}

#[test]
fn wifi_rates_fall_with_distance_and_rivals_and_come_in_bunches() {
    let mean = |parameters: Wifi| {
        let rates = (0..4).map(|seed| parameters.generate(seed).trace.mean_rate().mbps());
        rates.sum::<f64>() / 4.0
    };
    let at = |radius_m, rivals| {
        mean(Wifi { radius_m, rivals, speed_m_per_s: 0.0, shadowing_db: 1.0, ..Wifi::default() })
    };
    // 5 m: 20 - 40 - 31.5 = -51.5 dBm, the fastest modulation: 78 Mbit/s at 70%.
    assert!((at(5.0, 0.0) - 54.6).abs() < 0.5, "{}", at(5.0, 0.0));
    // 14 m: -71.6 dBm, 26 Mbit/s or a step more or less.
    assert!((at(14.0, 0.0) - 18.2).abs() < 6.0, "{}", at(14.0, 0.0));
    assert!(at(40.0, 0.0) < 0.1);
    // Two rivals on average leave more than a third: sometimes there is none.
    let shared = at(5.0, 2.0);
    assert!((54.6 / 3.0..54.6 / 1.8).contains(&shared), "{shared}");

    let trace = Wifi { rivals: 1.0, ..Wifi::default() }.generate(3).trace;
    let times = trace.opportunities();
    let mut distinct = times.to_vec();
    distinct.dedup();
    assert!(times.len() > 5 * distinct.len(), "packets come one by one");
}

#[test]
fn the_shipped_traces_are_the_generated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut expected = Vec::new();
    for (name, trace) in demo_set() {
        let path = folder.join(format!("{name}.trace.gz"));
        let again = "run `cargo run -p trimtab-net --example demo_traces -- traces`";
        assert!(Trace::load(&path).unwrap() == trace, "{name} differs: {again}");
        assert!(std::fs::metadata(&path).unwrap().len() < 150_000, "{name} is too large to ship");
        assert!((60..=120).contains(&(trace.period().as_millis() / 1000)));
        expected.push(path);
    }
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let traces = entries.filter(|path| path.extension().is_some_and(|extension| extension == "gz"));
    assert_eq!(traces.count(), expected.len(), "a file in {} has no generator", folder.display());
}

#[test]
fn another_seed_is_another_trace() {
    let short = Duration::from_secs(5);
    let cellular = Cellular { duration: short, ..Cellular::default() };
    let wifi = Wifi { duration: short, ..Wifi::default() };
    assert_eq!(cellular.generate(1), cellular.generate(1));
    assert_eq!(wifi.generate(1), wifi.generate(1));
    assert_ne!(cellular.generate(1).trace, cellular.generate(2).trace);
    assert_ne!(wifi.generate(1).trace, wifi.generate(2).trace);
}
