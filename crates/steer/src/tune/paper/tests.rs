use trimtab_cc::{Config, CongestionControl, get_knob};
use trimtab_units::{Bytes, Time};

use super::*;
use crate::tune::tests::{Link, odd_reports, report as of_a_round, steady};

fn priced(formula: &str, sigma: f64) -> PaperMortise {
    let model = Model::parse(formula, &[]).unwrap();
    PaperMortise::new(PaperConfig { model, factors: Factors::new(), sigma, change_points: true })
}

/// What a report of a quarter of the lowest round-trip time says.
fn report(now: Time, link: Link) -> Report {
    let whole = of_a_round(now, link);
    let interval = whole.min_rtt / 4;
    let share = interval.ratio(whole.interval);
    let part = |bytes: Bytes| bytes.mul_f64(share);
    let (sent, acked, lost) = (part(whole.sent), part(whole.acked), part(whole.lost));
    Report { interval, busy: interval, sent, acked, lost, ..whole }
}

/// Steers over so many reports. Gives when it turned δ, and to what.
fn steer(
    m: &mut PaperMortise,
    reports: u32,
    mut link: impl FnMut(u32, f64) -> Link,
) -> Vec<(u32, f64)> {
    let (mut now, mut turned) = (Time::ZERO, Vec::new());
    for k in 0..reports {
        let report = report(now, link(k, m.delta));
        now += report.interval;
        if let Some(Action::Set(values)) = m.on_report(&report) {
            assert_eq!(values.iter().count(), 1, "δ is the only knob");
            turned.push((k, values.get("delta").unwrap()));
        }
    }
    turned
}

/// A link whose queue is gone: a round trip is 20 ms, and an oscillation 20 reports.
fn empty(_: u32, _: f64) -> Link {
    Link { queue_packets: 0.0, ..steady(1.0) }
}

/// Copa's paper (NSDI 2018): §2.1 has a minimum over 10 s and the standing one over half of a
/// smoothed round trip, §2.2 a velocity without bound and pacing at twice the rate, §2.4 the
/// competitive mode. Losses count there only.
#[test]
fn its_algorithm_is_copa_as_its_paper_has_it() {
    let copa = PaperMortise::algorithm().build(&Config::default());
    for (knob, value) in [
        ("delta", 0.1),
        ("competitive", 1.0),
        ("pacing_gain", 2.0),
        ("standing", 0.5),
        ("min_rtt_window", 10.0),
        ("velocity_max", 65_536.0),
        ("growth_max", 1.0),
        ("loss_beta", 1.0),
        ("restart_probe", 0.0),
    ] {
        assert_eq!(get_knob(&copa, knob), Some(value), "{knob}");
    }
    let plain = "copa:mit,delta=0.1".parse::<Spec>().unwrap().build(&Config::default());
    for knob in copa.knobs() {
        assert_eq!(get_knob(&copa, knob.name), get_knob(&plain, knob.name), "{}", knob.name);
    }
    assert_eq!(PaperMortise::new(priced("T", 0.5).config).applied_delta(), 0.1);
}

/// A steady link gives no throughput for delay: the achieved tradeoff is far below any preferred one,
/// and δ grows by 1.12 every three oscillations of five round trips.
#[test]
fn far_from_the_preference_delta_goes_by_strides() {
    let turned = steer(&mut priced("T - 5*D", 0.5), 400, empty);
    let (first, _) = turned[0];
    for (i, &(at, delta)) in turned.iter().enumerate().take(5) {
        assert_eq!(at - first, 60 * i as u32, "{turned:?}");
        let expected = 0.1 * 1.12_f64.powi(i as i32 + 1);
        assert!((delta / expected - 1.0).abs() < 1e-9, "{turned:?}");
    }
    // It rests where 1/δ packets are a tenth of what the path holds, which is 80 here.
    let wide = |k, delta| Link { packets_per_s: 4_000.0, ..empty(k, delta) };
    let mut m = priced("T - 5*D", 0.5);
    steer(&mut m, 2_000, wide);
    assert!((m.delta - 1.0 / 8.0).abs() < 1e-9, "{}", m.delta);
}

/// Who pays nothing for delay and loss ends at the δ of Copa MVFST.
#[test]
fn without_a_price_delta_is_that_of_copa_mvfst() {
    let mut m = priced("T", 0.5);
    let turned = steer(&mut m, 60 * 20, empty);
    assert!((turned[0].1 - 0.075).abs() < 1e-9, "{turned:?}");
    assert_eq!(m.delta, 0.04);
    // 12 Mbit/s at 20 ms: a ten thousandth is 0.06 Mbit/s a second.
    let ends = |formula: &str| {
        let mut m = priced(formula, 0.5);
        steer(&mut m, 60 * 20, empty);
        m.delta
    };
    assert_eq!((ends("T - 0.05*D"), ends("T - 0.001*L")), (0.04, 0.04));
    assert!(ends("T - 0.07*D") > 0.1 && ends("T - 0.002*L - 0.07*D") > 0.1);
}

/// Fast swings of 60 packets, of which a queue of 1/δ keeps some: 500 packets/s at 100 ms.
const SWINGING: Conditions =
    Conditions { rate: 500.0, rtt_min: 0.1, fast: 60.0, slow: 0.0, width: 1.0, queue_max: None };

/// The slope of the operating points of [`SWINGING`], in packets per second for a second of
/// delay: a queue of q = 1/δ packets leaves (h − q)²/(2·h·rtt) idle, and takes 1.25·q/rate.
fn slope(delta: f64) -> f64 {
    let half = 30.0;
    (half - 1.0 / delta) / (half * SWINGING.rtt_min) * SWINGING.rate / 1.25
}

/// Search finds the δ of a tradeoff to its step: 0.025, on from half of δ.
#[test]
fn search_finds_the_delta_of_a_tradeoff() {
    for delta in [0.05, 0.08, 0.11] {
        let mut m = priced("T", 0.5);
        m.delta = 0.1;
        let found = m.search(&SWINGING, false, [slope(delta), 0.0], 1.0);
        assert!((found - delta).abs() <= SEARCH_STEP, "{delta}: {found}");
    }
    // Not below half of it, nor where 1/δ packets are less than 8% of a round trip.
    let mut m = priced("T", 0.5);
    m.delta = 0.12;
    assert!((m.search(&SWINGING, false, [0.0; 2], 1.0) - 0.06).abs() < 1e-9);
    assert!(m.search(&SWINGING, false, [1e9, 0.0], 1.0) <= 1.0 / (0.08 * 50.0));
    // After a change point it is.
    assert!(m.search(&SWINGING, true, [slope(0.037), 0.0], 1.0) < 0.05);
    // A path with more in flight than any δ may queue leaves nothing to search.
    let long = Conditions { rate: 100_000.0, ..SWINGING };
    assert_eq!(m.search(&long, false, [1.0, 0.0], 1.0), 0.12);
}

/// A tuner that has seen intervals of such swings, of 1 Mbit a packet.
fn on_swings(lambda: f64, sigma: f64, delta: f64) -> PaperMortise {
    let mut m = priced(&format!("T - {lambda}*D"), sigma);
    let link = Link { packets_per_s: SWINGING.rate, rtt_min_ms: 100.0, ..empty(0, 0.0) };
    steer(&mut m, 200, |_, _| link);
    (m.delta, m.queue_max) = (delta, None);
    for interval in &mut m.intervals {
        let spread = |x: f64| Spread { count: 2.0, sum: 0.0, squares: 2.0 * x * x };
        (interval.fast, interval.slow) = (spread(SWINGING.fast / 2.0), spread(0.0));
    }
    m
}

/// Eq. 5: with σ = 0 δ stays, with σ = 1 it goes to the preference at once, and with the default
/// between the two, where the tradeoff is the mean.
#[test]
fn a_decision_goes_the_share_sigma_of_the_way() {
    // A packet of 12 kbit.
    let preferred = 0.012 * slope(0.15);
    let decided = |sigma: f64| {
        let mut m = on_swings(preferred, sigma, 0.075);
        m.decide(false, &Factors::new(), 0.012);
        assert!((m.hints.lambda - preferred).abs() < 1e-6);
        let tradeoff = m.tradeoff.unwrap();
        assert!(tradeoff < 2.0 * preferred && preferred < 2.0 * tradeoff, "near: {tradeoff}");
        (m.delta, tradeoff, m.period)
    };
    let (stays, tradeoff, period) = decided(0.0);
    assert!((stays - 0.075).abs() <= SEARCH_STEP, "{stays}");
    assert_eq!(period, PERIOD_NEAR);
    let (arrives, ..) = decided(1.0);
    assert!((arrives - 0.15).abs() <= SEARCH_STEP, "{arrives}");
    let (half, ..) = decided(0.5);
    // (τ + λ)/2 is the slope at 1/δ = 30·(1 − slope·1.25·rtt/rate).
    let mean = 0.5 * (tradeoff + preferred) / 0.012;
    let expected = 1.0 / (30.0 * (1.0 - mean * 1.25 * 0.1 / 500.0));
    assert!((half - expected).abs() <= SEARCH_STEP, "{half} and {expected}");
    assert!(stays < half && half < arrives, "{stays} {half} {arrives}");
}

/// Far from the preference δ goes by strides, the longer way where losses agree and the shorter one
/// where they do not, down to a floor that rises with the price of delay.
#[test]
fn strides_go_by_price_and_losses() {
    let decided = |lambda: f64, delta: f64, loss: f64| {
        let mut m = on_swings(lambda, 0.5, delta);
        let mut window = Window::default();
        let link = Link { packets_per_s: SWINGING.rate, rtt_min_ms: 100.0, loss, ..empty(0, 0.0) };
        window.add(&report(Time::ZERO, link));
        m.intervals.iter_mut().for_each(|interval| interval.window = window);
        m.decide(false, &Factors::new(), 0.012);
        assert_eq!(m.period, PERIOD_FAR);
        m.delta
    };
    // The achieved tradeoff at 0.075 is 25 Mbit/s a second.
    for (lambda, loss, factor) in
        [(100.0, 0.0, 1.12), (100.0, 0.02, 1.24), (5.0, 0.004, 1.0 / 1.24), (5.0, 0.02, 1.0 / 1.12)]
    {
        let seen = decided(lambda, 0.075, loss) / 0.075;
        assert!((seen / factor - 1.0).abs() < 1e-6, "{lambda} {loss}: {seen}");
    }
    // Each Mbit/s for a millisecond raises the least δ by 0.1.
    assert!((decided(500.0, 0.035, 0.0) - 0.060).abs() < 1e-9);
}

/// Losses of a full buffer: a queue beyond the one that it held is lost, and has its price.
#[test]
fn a_full_buffer_makes_it_shyer() {
    let decided = |queue_max: Option<f64>| {
        let price = 0.012 * slope(0.06);
        let mut m = on_swings(price, 1.0, 0.06);
        m.queue_max = queue_max;
        m.config.model = Model::parse(&format!("T - {price}*D - 5*L"), &[]).unwrap();
        m.decide(false, &Factors::new(), 0.012);
        m.delta
    };
    let (deep, full) = (decided(None), decided(Some(0.9 / 0.06)));
    assert!((deep - 0.06).abs() <= SEARCH_STEP && full > 1.3 * deep, "{deep} {full}");
}

/// §3.3: a change of the bandwidth drops what was known, and a wide search begins within half a
/// second; without detection the buffer of before still counts.
#[test]
fn a_change_of_bandwidth_starts_a_wide_search() {
    let run = |change_points: bool| {
        let mut m = priced("T - 5*D", 0.5);
        m.config.change_points = change_points;
        let wobble = |k: u32| 1.0 + 0.05 * f64::from(k * 37 % 11) / 11.0;
        let before = |k: u32, _| Link { packets_per_s: 1_000.0 * wobble(k), ..empty(k, 0.0) };
        steer(&mut m, 1_200, before);
        (m.queue_max, m.known) = (Some(7.0), 60);
        steer(&mut m, 100, |k, _| Link { packets_per_s: 4_000.0 * wobble(k), ..empty(k, 0.0) });
        (m.queue_max, m.known < 6, m.intervals.len())
    };
    let (queue_max, anew, intervals) = run(true);
    assert!(queue_max.is_none() && anew && intervals < PERIOD_NEAR, "{intervals}");
    assert_eq!(run(false), (Some(7.0), false, PERIOD_NEAR));
}

/// Eq. 4: a model that reads samples gets those of the reports.
#[test]
fn a_model_of_distributions_gets_samples() {
    let mut m = priced("T - 20*p90(D)", 0.5);
    assert!(m.needs().samples && !priced("T - 20*D", 0.5).needs().samples);
    steer(&mut m, 200, empty);
    assert!(m.insight().preference.unwrap().lambda > 0.0, "{:?}", m.insight());
}

/// What the application holds back, slow start, and another algorithm say nothing of δ.
#[test]
fn it_goes_by_busy_reports_of_copa_alone() {
    let decided = |change: fn(&mut Report)| {
        let (mut m, mut now) = (priced("T - 5*D", 0.5), Time::ZERO);
        for _ in 0..400 {
            let mut report = report(now, empty(0, 0.0));
            change(&mut report);
            now += report.interval;
            m.on_report(&report);
        }
        m.delta != DELTA_START
    };
    assert!(decided(|_| {}));
    assert!(!decided(|report| report.busy = Duration::ZERO));
    assert!(!decided(|report| report.phase = Phase::SlowStart));
    assert!(!decided(|report| report.algorithm = "cubic"));
}

/// Any reports, however odd, leave δ in its range.
#[test]
fn odd_reports_do_no_harm() {
    let mut m = priced("T - 5*D - 3*L", 0.5);
    for r in odd_reports() {
        m.on_report(&r);
        assert!((STRIDE_MIN..=DELTA_MAX).contains(&m.delta), "{}", m.delta);
    }
}

#[test]
fn another_model_keeps_delta() {
    let mut m = priced("T - 5*D", 0.5);
    steer(&mut m, 400, empty);
    let delta = m.delta;
    m.on_model(&Model::web());
    assert_eq!(m.applied_delta(), delta);
    assert_eq!(m.insight().preference, Some(Hints::default()));
}

/// Four samples in a lowest round trip, of which nothing is known at first.
#[test]
fn reports_come_four_times_a_round_trip() {
    let mut m = priced("T", 0.5);
    let ms = Duration::from_millis;
    assert_eq!(m.interval(ms(100)), ms(25));
    steer(&mut m, 1, empty);
    assert_eq!(m.interval(ms(100)), ms(5));
}
