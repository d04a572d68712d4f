use trimtab_units::{Bytes, Rate};

use super::*;
use crate::Responses;
use crate::testing::silent;

const MSS: Bytes = Bytes::new(1500);
const HALF: Duration = Duration::from_millis(500);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Half a second of a quiet path, which ends at `now`.
fn report(now: Time) -> Report {
    Report {
        sent: MSS * 100,
        acked: MSS * 100,
        busy: ms(250),
        rtt_samples: 50,
        rtt_mean: Some(ms(50)),
        rtt_min: Some(ms(50)),
        rtt_max: Some(ms(50)),
        srtt: ms(50),
        min_rtt: ms(50),
        delivery_rate: Some(Rate::from_mbps(10.0)),
        delivery_rate_any: Some(Rate::from_mbps(10.0)),
        window: MSS * 40,
        inflight: MSS * 30,
        mss: MSS,
        ..silent(now, HALF, "cubic")
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
    for why in [Unusable::Missing, Unusable::Damaged, Unusable::Version, Unusable::Candidates] {
        let safe = Spec::new("bbr").unwrap();
        let config = SelectorConfig::without_model(safe, why);
        let distrust = Some(Distrust::NoModel(why));
        let mut selector = Selector::new(config.clone());
        assert_eq!(select(&mut selector, 72, |_| report(Time::ZERO)), [], "it runs already");
        let expected = Selections { made: 3, changed: 0, fallbacks: 3, reverts: 0, distrust };
        assert_eq!(selector.selections(), expected);
        let mut selector = Selector::of_running(config, Spec::new("cubic").unwrap());
        assert_eq!(select(&mut selector, 72, |_| report(Time::ZERO)), [(24, "bbr")]);
        let expected = Selections { made: 3, changed: 1, fallbacks: 3, reverts: 0, distrust };
        assert_eq!(selector.selections(), expected);
    }
}

/// A selector by a rule, which chooses every half second.
fn by(utility: Utility) -> Selector {
    let config = SelectorConfig::new(candidates(), Policy::Rule(utility));
    Selector::new(SelectorConfig { period: HALF, ..config })
}

/// A path with this round-trip time.
fn with_rtt(rtt: u64) -> Report {
    Report { rtt_mean: Some(ms(rtt)), ..report(Time::ZERO) }
}

#[test]
fn a_rule_tries_all_and_stays_with_the_best() {
    // All as fast, but Copa without a queue.
    let path = |running: &str| with_rtt(if running == "copa" { 50 } else { 80 });
    let asked = select(&mut by(Utility::Power), 12, path);
    assert_eq!(asked[..4], [(1, "bbr"), (2, "copa"), (3, "westwood"), (4, "copa")]);
    // After six selections with it the one that was not tried for longest is tried again, for a period.
    assert_eq!(asked[4..6], [(9, "cubic"), (10, "copa")]);
}

/// Each rule stays with what is best by its own formula of Table 1, measured while each algorithm ran.
#[test]
fn a_rule_goes_by_what_each_algorithm_made_of_its_period() {
    let path = |running: &str| {
        let (packets, lost, rtt) = match running {
            "cubic" => (80, 0, 50), // much power, and nothing lost
            "bbr" => (100, 1, 90),  // the fastest
            "copa" => (40, 0, 30),  // the quickest
            _ => (76, 8, 46),       // the most power, were it not for its losses
        };
        Report { sent: MSS * packets, acked: MSS * packets, lost: MSS * lost, ..with_rtt(rtt) }
    };
    let stays = |utility| select(&mut by(utility), 8, path)[3..].to_vec();
    assert_eq!(stays(Utility::Power), [], "Westwood+, which ran last");
    assert_eq!(stays(Utility::PowerLoss), [(4, "cubic")]);
    assert_eq!(stays(Utility::Throughput), [(4, "bbr")]);
    // 1.92^0.9 - 0 beats 2.4^0.9 - 11.35 * 2.4 * 0.01
    assert_eq!(stays(Utility::Vivace), [(4, "bbr")]);
}

/// What was reached before it ran says nothing of an algorithm, however high it was.
#[test]
fn a_rule_does_not_credit_one_algorithm_with_what_another_reached() {
    let path = |running: &str| {
        let packets = if running == "cubic" { 400 } else { 100 };
        let highest = Some(Rate::from_mbps(if running == "cubic" { 9.6 } else { 2.4 }));
        let sent = MSS * packets;
        Report {
            sent,
            acked: sent,
            delivery_rate: highest,
            delivery_rate_any: highest,
            ..with_rtt(50)
        }
    };
    let asked = select(&mut by(Utility::Throughput), 8, path);
    assert_eq!(asked, [(1, "bbr"), (2, "copa"), (3, "westwood"), (4, "cubic")]);
}

/// Where nobody carries out what is asked for (mode advise of the agent), the same trial is asked for, and once.
#[test]
fn a_rule_tries_nothing_while_what_it_asks_for_does_not_run() {
    let mut selector = by(Utility::Power);
    let mut asked = Vec::new();
    for k in 1..=40 {
        if let Some(Action::Switch { to, .. }) = selector.on_report(&report(at(k))) {
            asked.push((k, to.algorithm().name));
        }
    }
    assert_eq!(asked, [(1, "bbr")]);
    assert_eq!(selector.selections().made, 40);
}

/// An algorithm takes over when the one before has converged, which may be long after it was asked for.
#[test]
fn a_rule_credits_what_runs_and_gives_who_comes_late_another_period() {
    let config = SelectorConfig::new(candidates()[..2].to_vec(), Policy::Rule(Utility::Power));
    let mut selector = Selector::new(SelectorConfig { period: HALF * 4, ..config });
    let mut asked = Vec::new();
    for k in 1..=16 {
        // BBR is asked for at report 4, and takes over after report 7; it has the longer queue.
        let running = if k <= 7 { "cubic" } else { "bbr" };
        let path = with_rtt(if running == "cubic" { 50 } else { 100 });
        if let Some(Action::Switch { to, .. }) =
            selector.on_report(&Report { now: at(k), algorithm: running, ..path })
        {
            asked.push((k, to.algorithm().name));
        }
    }
    assert_eq!(asked, [(4, "bbr"), (12, "cubic")], "at 8 BBR had run for a quarter of the period");
}

#[test]
fn a_rule_learns_nothing_of_an_idle_connection() {
    let idle = Report {
        sent: Bytes::ZERO,
        acked: Bytes::ZERO,
        rtt_samples: 0,
        rtt_mean: None,
        ..report(Time::ZERO)
    };
    let mut selector = by(Utility::Throughput);
    assert_eq!(select(&mut selector, 9, |_| idle.clone()), [], "CUBIC was not seen yet");
    // Half a second at work in four of silence is as fast as half a second.
    let config = SelectorConfig::new(candidates()[..2].to_vec(), Policy::Rule(Utility::Throughput));
    let mut selector = Selector::new(SelectorConfig { period: HALF * 4, ..config });
    let mut running = "cubic";
    let mut asked = Vec::new();
    for k in 1..=12 {
        let works = running == "bbr" || k == 2;
        let path = if works { report(Time::ZERO) } else { idle.clone() };
        let acked = if running == "bbr" { path.acked / 2 } else { path.acked };
        let r = Report { now: at(k), algorithm: running, acked, ..path };
        if let Some(Action::Switch { to, .. }) = selector.on_report(&r) {
            running = to.algorithm().name;
            asked.push((k, running));
        }
    }
    assert_eq!(asked, [(4, "bbr"), (8, "cubic")]);
}

#[test]
fn utilities_are_those_of_table_1() {
    let of = |u: Utility| u.of(10.0, 0.05, 0.01, 0.02);
    assert!(near(of(Utility::Power), 200.0) && near(of(Utility::PowerLoss), 196.0));
    assert!(near(of(Utility::Throughput), 10.0));
    // 10^0.9 - 900 * 10 * 0.01 - 11.35 * 10 * 0.02
    assert!((of(Utility::Vivace) - (7.943_282 - 90.0 - 2.27)).abs() < 1e-5);
    // A queue that drains is a gain.
    assert!((Utility::Vivace.of(10.0, 0.05, -0.01, 0.02) - (7.943_282 + 90.0 - 2.27)).abs() < 1e-5);
}

/// A round-trip time that grows by 20 ms a second costs Vivace 18 per Mbit/s; one that grows by 5 ms a second nothing.
#[test]
fn vivace_sees_a_queue_that_grows_and_not_its_noise() {
    for (growth, stays) in [(20, "bbr"), (5, "cubic")] {
        let config = SelectorConfig::new(candidates()[..2].to_vec(), Policy::Rule(Utility::Vivace));
        let mut selector = Selector::new(SelectorConfig { period: HALF * 4, ..config });
        let mut running = "cubic";
        for k in 1..=12 {
            let fast = if running == "cubic" { 100 } else { 50 };
            let rtt = if running == "cubic" { 50 + growth * k / 2 } else { 50 };
            let sent = MSS * fast;
            let r = Report { now: at(k), algorithm: running, sent, acked: sent, ..with_rtt(rtt) };
            if let Some(Action::Switch { to, .. }) = selector.on_report(&r) {
                running = to.algorithm().name;
            }
        }
        assert_eq!(running, stays, "{growth} ms a second");
    }
}

/// The two steerings of one flow do what each does alone, and the tuner is silent while another algorithm runs.
#[test]
fn both_steer_one_flow() {
    let config = crate::MortiseConfig::new(trimtab_qoe::Model::download());
    let mut candidates = candidates();
    candidates[2] = crate::Mortise::algorithm();
    let selector = SelectorConfig::new(candidates, Policy::Rule(Utility::Power));
    let mut both = crate::Both::new(Selector::new(selector), crate::Mortise::new(config));
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
            Some(Action::Set(_)) => {
                assert_eq!(running, "copa", "only Copa has a delta");
                turned += 1;
            }
            None => {}
        }
    }
    assert_eq!(switched[..3], [(120, "bbr"), (240, "copa"), (360, "westwood")]);
    assert!(turned > 0);
}

/// What runs has the δ that the tuner thinks it has, also where both steerings had something to say
/// at once, and that is within a factor of two of the chosen Copa's own.
#[test]
fn the_tuner_turns_what_was_chosen_around_its_own_delta() {
    let config = || crate::MortiseConfig::new(trimtab_qoe::Model::download());
    let copa = |delta: f64| {
        let mut spec = Spec::new("copa").unwrap();
        spec.set("delta", delta).unwrap();
        spec
    };
    let candidates = vec![copa(0.04), Spec::new("cubic").unwrap(), copa(0.2)];
    let rule = SelectorConfig::new(candidates, Policy::Rule(Utility::Power));
    let rule = SelectorConfig { period: HALF, ..rule };
    let mut both = crate::Both::new(Selector::new(rule), crate::Mortise::new(config()));
    let (mut running, mut own, mut told) = ("copa", 0.04, 0.04);
    let (mut copas, mut turned) = (0, 0);
    for k in 1..=4000u64 {
        // The path changes often, so that the tuner has much to say, and each algorithm is the best for a while.
        let best = ["copa", "cubic"][(k / 97 % 2) as usize];
        let queue = 10 + (k * 7) % 40 + if running == best { 0 } else { 60 };
        let rate = Some(Rate::from_mbps(5.0 + ((k / 50) % 7) as f64));
        let interval = ms(50);
        let r = Report {
            now: Time::ZERO + interval * k,
            interval,
            busy: interval,
            algorithm: running,
            rtt_mean: Some(ms(50 + queue)),
            rtt_max: Some(ms(60 + queue)),
            delivery_rate: rate,
            delivery_rate_any: rate,
            ..report(Time::ZERO)
        };
        match both.on_report(&r) {
            Some(Action::Switch { to, .. }) => {
                running = to.algorithm().name;
                if running == "copa" {
                    own = to.settings().iter().find(|(name, _)| *name == "delta").unwrap().1;
                    // It may come back as it was left.
                    (told, copas) = (f64::NAN, copas + 1);
                }
            }
            Some(Action::Set(values)) => {
                let Some(value) = values.get("delta") else { continue };
                assert!(running == "copa" && value >= own / 2.0 && value <= own * 2.0, "{value}");
                turned += u32::from(value != own);
                told = value;
            }
            None if running == "copa" => {
                assert_eq!(told, both.tuner().applied_delta(), "report {k}");
            }
            None => {}
        }
    }
    assert!(copas >= 3 && turned > 20, "it shows something: {copas} {turned}");
}

/// Twelve seconds in which the window, and so the rate, halves every other second.
fn swinging(rtt: impl Fn(u64, bool) -> (u64, u64)) -> Monitor {
    let mut monitor = Monitor::new();
    for k in 1..=24 {
        let is_low = k / 2 % 2 == 1;
        let (least, mean) = rtt(k, is_low);
        let sent = MSS * if is_low { 50 } else { 100 };
        monitor.on_report(&Report {
            sent,
            acked: sent - MSS * 10,
            busy: HALF,
            rtt_min: Some(ms(least)),
            rtt_mean: Some(ms(mean)),
            rtt_max: Some(ms(mean + 20)),
            min_rtt: ms(40),
            ..report(at(k))
        });
    }
    monitor
}

#[test]
fn a_queue_of_ones_own_goes_with_the_rate_and_one_of_others_stays() {
    let own = swinging(|_, is_low| if is_low { (40, 45) } else { (60, 80) });
    let foreign = swinging(|k, _| (100 + k % 3, 120 + 10 * (k % 2)));
    assert!(near(get(&own, "rtt_path"), 0.040));
    assert!(near(get(&own, "queue_quiet_rate"), 0.0) && near(get(&own, "queue_floor_rate"), 0.0));
    assert!(get(&own, "rate_rtt") > 0.99, "{}", get(&own, "rate_rtt"));
    for name in ["queue_quiet_rate", "queue_floor_rate"] {
        assert!((1.5..1.6).contains(&get(&foreign, name)), "{name}: 100 to 102 over 40 ms");
    }
    assert!(get(&foreign, "rate_rtt").abs() < 0.3, "{}", get(&foreign, "rate_rtt"));
}

/// Of 100 packets 90 arrive, of 50 packets 40: 20 slices of either.
#[test]
fn what_is_delivered_is_of_the_loaded_time() {
    let mut monitor = swinging(|_, _| (50, 60));
    let loaded = get(&monitor, "delivered");
    assert!((0.86..0.88).contains(&loaded), "130 of 150: {loaded}");
    // What an application limits tells nothing.
    for k in 25..=30 {
        monitor.on_report(&Report { acked: MSS, busy: ms(100), ..report(at(k)) });
    }
    assert!((0.86..0.88).contains(&get(&monitor, "delivered")), "{}", get(&monitor, "delivered"));
    assert_eq!(get(&Monitor::new(), "delivered"), 0.0);
}

#[test]
fn a_correlation_wants_some_samples_and_a_spread() {
    let mut monitor = Monitor::new();
    for k in 1..=3 {
        monitor.on_report(&Report { sent: MSS * k, rtt_mean: Some(ms(50 + k)), ..report(at(k)) });
    }
    assert_eq!(get(&monitor, "rate_rtt"), 0.0, "three half seconds");
    for k in 4..=30 {
        monitor.on_report(&report(at(k)));
    }
    assert_eq!(get(&monitor, "rate_rtt"), 0.0, "nothing moves");
}
