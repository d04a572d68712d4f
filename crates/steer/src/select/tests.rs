use trimtab_cc::Phase;
use trimtab_qoe::Factors;
use trimtab_units::{Bytes, Rate};

use super::*;
use crate::Responses;

const MSS: Bytes = Bytes::new(1500);
const HALF: Duration = Duration::from_millis(500);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Half a second of a quiet path, which ends at `now`.
fn report(now: Time) -> Report {
    Report {
        now,
        interval: HALF,
        algorithm: "cubic",
        sent: MSS * 100,
        acked: MSS * 100,
        lost: Bytes::ZERO,
        busy: ms(250),
        rtt_samples: 50,
        rtt_mean: Some(ms(50)),
        rtt_variance: 0.0,
        rtt_min: Some(ms(50)),
        rtt_max: Some(ms(50)),
        srtt: ms(50),
        min_rtt: ms(50),
        delivery_rate: Some(Rate::from_mbps(10.0)),
        delivery_rate_any: Some(Rate::from_mbps(10.0)),
        window: MSS * 40,
        inflight: MSS * 30,
        mss: MSS,
        phase: Phase::Steady,
        responses: Responses::default(),
        factors: Factors::new(),
    }
}

/// Number `k` of the reports, which come every half second.
fn at(k: u64) -> Time {
    Time::ZERO + HALF * k
}

fn get(monitor: &Monitor, name: &str) -> f64 {
    monitor.metrics().get(name).unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn features_have_names_of_their_own_and_sensible_scales() {
    for (i, f) in FEATURES.iter().enumerate() {
        assert_eq!(feature_index(f.name), Some(i), "{} occurs once", f.name);
        assert_eq!(f.scale.apply(0.0), 0.0, "{}", f.name);
        if let Scale::Log { to, .. } = f.scale {
            assert!((f.scale.apply(to) - 1.0).abs() < 1e-6, "{}", f.name);
            assert!((f.scale.apply(-to) + 1.0).abs() < 1e-6, "{}", f.name);
        }
        assert!(!f.scale.apply(f64::NAN).is_finite(), "{}", f.name);
    }
    assert_eq!(
        FEATURES[FLOO_FEATURES_LEN - 1].name,
        "bytes_interval",
        "the last of Floo's Table 2"
    );
}

#[test]
fn path_metrics_are_those_of_ten_seconds() {
    let mut monitor = Monitor::new();
    // A second on another path, then 10 s on this one.
    for k in 1..=22 {
        let mut r = report(at(k));
        if k <= 2 {
            r.delivery_rate_any = Some(Rate::from_mbps(90.0));
            (r.rtt_min, r.rtt_max) = (Some(ms(10)), Some(ms(900)));
            r.lost = MSS * 50;
        } else {
            r.lost = MSS * 2;
            r.rtt_max = Some(ms(75));
            r.srtt = ms(60);
        }
        monitor.on_report(&r);
        if k == 20 {
            assert!(near(get(&monitor, "thpt_max"), 90e6));
            assert!(near(get(&monitor, "rtt_min"), 0.010));
        }
    }
    assert!(near(get(&monitor, "thpt_max"), 10e6));
    assert!(near(get(&monitor, "rtt_min"), 0.050));
    assert!(near(get(&monitor, "loss_rate"), 0.02));
    assert!(near(get(&monitor, "rtt_rate"), 0.2));
    assert!(near(get(&monitor, "rtt_max_rate"), 0.5));
    assert!(near(get(&monitor, "loss_rtt_rate"), 0.5));
    assert!(near(get(&monitor, "cwnd"), 60_000.0));
    assert!(near(get(&monitor, "cca_cubic"), 1.0) && near(get(&monitor, "cca_bbr"), 0.0));
}

/// However long reports are, metrics reach back 10 s, and hardly further.
#[test]
fn short_reports_reach_as_far_back() {
    for interval in [10, 101, 126, 170, 200, 333, 499, 500] {
        let mut monitor = Monitor::new();
        let interval = ms(interval);
        let mut now = Time::ZERO;
        let lost_at = Time::ZERO + Duration::from_secs(20);
        let mut gone = None;
        while gone.is_none() && now < lost_at + Duration::from_secs(20) {
            now += interval;
            let last = now > lost_at && now <= lost_at + interval;
            let lost = if last { MSS } else { Bytes::ZERO };
            monitor.on_report(&Report { now, interval, lost, ..report(now) });
            let seen = get(&monitor, "loss_rate") > 0.0;
            gone = (now > lost_at + interval && !seen).then(|| now.since(lost_at));
        }
        let kept = gone.expect("a loss is forgotten at last").as_secs_f64();
        assert!((9.4..11.6).contains(&kept), "{interval}: {kept} s");
    }
}

#[test]
fn variances_are_those_of_all_samples() {
    let mut monitor = Monitor::new();
    // 40 ms and 60 ms, 50 samples each with a deviation of 5 ms: 25 + 100 ms^2, times 100/99.
    for (k, rtt) in [(1, 40), (2, 60)] {
        let rate = Some(Rate::from_mbps(rtt as f64));
        monitor.on_report(&Report {
            rtt_mean: Some(ms(rtt)),
            rtt_variance: 25e-6,
            delivery_rate: rate,
            ..report(at(k))
        });
    }
    assert!(near(get(&monitor, "rtt_var"), 125e-6 * 100.0 / 99.0));
    // Rates of 40 and 60 Mbit/s: a deviation of 14.1 at a mean of 50.
    assert!((get(&monitor, "thpt_spread") - 200f64.sqrt() / 50.0).abs() < 1e-9);
}

#[test]
fn what_was_known_before_a_pause_is_kept() {
    let mut monitor = Monitor::new();
    monitor.on_report(&report(at(1)));
    for k in 2..=100 {
        monitor.on_report(&Report {
            sent: Bytes::ZERO,
            acked: Bytes::ZERO,
            busy: Duration::ZERO,
            rtt_samples: 0,
            rtt_mean: None,
            rtt_min: None,
            rtt_max: None,
            delivery_rate: None,
            delivery_rate_any: None,
            ..report(at(k))
        });
    }
    assert!(near(get(&monitor, "thpt_max"), 10e6) && near(get(&monitor, "rtt_min"), 0.05));
}

#[test]
fn application_metrics_are_those_of_the_period() {
    let mut monitor = Monitor::new();
    monitor.begin_period(Time::ZERO);
    let with = |k: u64, wait: u64| {
        let responses = Responses {
            unsent: Bytes::new(7000),
            sent: 2,
            wait_mean: ms(wait),
            arrived: 1,
            goodput_mean: Rate::from_mbps(k as f64),
            size_mean: Bytes::new(10_000 * k),
        };
        Report { responses, ..report(at(k)) }
    };
    // Waits grow by 100 ms a second.
    for k in 1..=4 {
        monitor.on_report(&with(k, 50 * k));
    }
    assert!(near(get(&monitor, "qws"), 0.125) && near(get(&monitor, "qws_gradient"), 0.1));
    assert!(near(get(&monitor, "goodput"), 2.5e6) && near(get(&monitor, "responses"), 4.0));
    assert!(near(get(&monitor, "response_size"), 25_000.0));
    assert!(near(get(&monitor, "bytes_interval"), 600_000.0) && near(get(&monitor, "busy"), 0.5));
    assert!(near(get(&monitor, "unsent_size"), 7000.0));
    monitor.begin_period(at(4));
    monitor.on_report(&with(5, 20));
    assert!(near(get(&monitor, "qws"), 0.02) && near(get(&monitor, "qws_gradient"), 0.0));
    assert!(near(get(&monitor, "bytes_interval"), 150_000.0));
}

#[test]
fn nothing_measured_is_all_zeros() {
    assert_eq!(Monitor::new().state(), [0.0; FEATURES_LEN]);
}

fn candidates() -> Vec<Spec> {
    ["cubic", "bbr", "copa", "westwood"].map(|name| Spec::new(name).unwrap()).to_vec()
}

/// Runs a selector through so many reports; what it asked for, and when.
fn select(
    selector: &mut Selector,
    reports: u64,
    path: impl Fn(&str) -> Report,
) -> Vec<(u64, &'static str)> {
    let mut asked = Vec::new();
    let mut running = selector.algorithm().algorithm().name;
    for k in 1..=reports {
        assert!(selector.interval(ms(50)) <= HALF, "often enough for the monitor");
        let r = Report { now: at(k), algorithm: running, ..path(running) };
        if let Some(Action::Switch { to, how }) = selector.on_report(&r) {
            assert_eq!(how, Switch::Full);
            running = to.algorithm().name;
            asked.push((k, running));
        }
    }
    asked
}

#[test]
fn somebody_outside_sees_the_state_of_each_period() {
    let mut selector = Selector::new(SelectorConfig::new(candidates(), Policy::External));
    assert_eq!(select(&mut selector, 23, |_| report(Time::ZERO)), []);
    assert_eq!(selector.selections().made, 0);
    selector.on_report(&report(at(24)));
    assert_eq!(selector.selections().made, 1, "12 s are over");
    assert!(near(selector.metrics().get("bytes_interval").unwrap(), 24.0 * 150_000.0));
    assert_eq!(*selector.state(), selector.metrics().state());
}

#[test]
fn periods_need_not_be_whole_slices() {
    let config = SelectorConfig::new(candidates(), Policy::External);
    let mut selector = Selector::new(SelectorConfig { period: ms(700), ..config });
    let mut now = Time::ZERO;
    for made in [0, 1, 1, 2, 2, 3] {
        let interval = selector.interval(ms(50));
        now += interval;
        selector.on_report(&Report { interval, ..report(now) });
        assert_eq!(selector.selections().made, made, "{now:?}");
    }
    assert_eq!(now, Time::from_millis(2100));
}

#[test]
fn without_a_model_the_safe_algorithm_runs_and_it_counts() {
    let config = SelectorConfig::new(candidates(), Policy::Model(None));
    let safe = Spec::new("bbr").unwrap();
    let mut selector = Selector::new(SelectorConfig { safe, ..config });
    assert_eq!(select(&mut selector, 72, |_| report(Time::ZERO)), [(24, "bbr")]);
    let expected =
        Selections { made: 3, changed: 1, fallbacks: 3, distrust: Some(Distrust::NoModel) };
    assert_eq!(selector.selections(), expected);
}

#[test]
fn a_rule_tries_all_and_stays_with_the_best() {
    let config = SelectorConfig::new(candidates(), Policy::Rule(Utility::Power));
    let mut selector = Selector::new(SelectorConfig { period: HALF, ..config });
    // All as fast, but Copa without a queue.
    let path = |running: &str| Report {
        srtt: if running == "copa" { ms(50) } else { ms(80) },
        ..report(Time::ZERO)
    };
    let asked = select(&mut selector, 12, path);
    assert_eq!(asked[..4], [(1, "bbr"), (2, "copa"), (3, "westwood"), (4, "copa")]);
    // After six selections with it the one that was not tried for longest is tried again, for a period.
    assert_eq!(asked[4..6], [(9, "cubic"), (10, "copa")]);
}

#[test]
fn utilities_are_those_of_table_1() {
    let of = |u: Utility| u.of(10.0, 0.05, 0.01, 0.02);
    assert!(near(of(Utility::Power), 200.0) && near(of(Utility::PowerLoss), 196.0));
    assert!(near(of(Utility::Throughput), 10.0));
    // 10^0.9 - 900 * 10 * 0.01 - 11.35 * 10 * 0.02
    assert!((of(Utility::Vivace) - (7.943_282 - 90.0 - 2.27)).abs() < 1e-5);
}

/// The two steerings of one flow do what each does alone, and the tuner is silent while another algorithm runs.
#[test]
fn both_steer_one_flow() {
    let config = crate::MortiseConfig::new(trimtab_qoe::Model::download());
    let mut candidates = candidates();
    candidates[2] = crate::Mortise::algorithm();
    let selector = SelectorConfig::new(candidates, Policy::Rule(Utility::Power));
    let mut both = crate::Both {
        selector: Box::new(Selector::new(selector)),
        tuner: Box::new(crate::Mortise::new(config)),
    };
    let mut running = "cubic";
    let (mut switched, mut turned) = (Vec::new(), 0);
    let mut now = Time::ZERO;
    while now < Time::from_secs(60) {
        let interval = both.interval(ms(50));
        assert!(interval <= ms(50), "as often as the tuner wants");
        now += interval;
        let busy = interval;
        match both.on_report(&Report { interval, busy, algorithm: running, ..report(now) }) {
            Some(Action::Switch { to, .. }) => {
                running = to.algorithm().name;
                switched.push((now.since(Time::ZERO).as_millis() / 100, running));
            }
            Some(Action::Set { .. }) => {
                assert_eq!(running, "copa", "only Copa has a delta");
                turned += 1;
            }
            None => {}
        }
    }
    assert_eq!(switched[..3], [(120, "bbr"), (240, "copa"), (360, "westwood")]);
    assert!(turned > 0);
}
