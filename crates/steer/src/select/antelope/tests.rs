use trimtab_cc::migrate::Switch;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::*;
use crate::select::{Selector, SelectorConfig};
use crate::testing::silent;
use crate::{Action, Distrust, Report, Steer};

const MSS: Bytes = Bytes::new(1500);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Half a second: 100 packets, 50 round-trip samples of 50 ms, 1 Mbit/s of window over round-trip time.
fn report(k: u64) -> Report {
    Report {
        sent: MSS * 100,
        acked: MSS * 100,
        rtt_samples: 50,
        rtt_mean: Some(ms(50)),
        rtt_min: Some(ms(50)),
        rtt_max: Some(ms(50)),
        srtt: ms(60),
        min_rtt: ms(40),
        window: MSS * 5,
        inflight: MSS * 5,
        mss: MSS,
        ..silent(Time::ZERO + ms(500) * k, ms(500), "cubic")
    }
}

#[test]
fn the_seven_numbers_of_two_reports() {
    let mut interval = Interval::new();
    interval.on_report(&report(1));
    interval.on_report(&Report {
        acked: MSS * 50,
        lost: MSS * 4,
        rtt_samples: 150,
        rtt_mean: Some(ms(90)),
        rtt_variance: 1e-4,
        rtt_max: Some(ms(130)),
        window: MSS * 10,
        ..report(2)
    });
    let measured = interval.measured();
    assert_eq!((measured.length, measured.acks), (ms(1000), 200));
    assert_eq!(measured.min_rtt, ms(40), "that of the connection");
    // (50·50 + 150·90)/200 = 80 ms.
    assert_eq!((measured.mean_rtt, measured.max_rtt), (ms(80), ms(130)));
    // Within: 3/4 of 100 ms²; between: 1/4·30² + 3/4·10² = 300 ms². So the root of 375 ms².
    let deviation = measured.mdev_rtt.as_secs_f64();
    assert!((deviation - 0.375e-3f64.sqrt()).abs() < 1e-8, "{deviation}");
    // 150 packets in a second; 4 of them lost.
    assert_eq!(measured.throughput, MSS * 150 / ms(1000));
    assert_eq!(measured.lost, MSS * 4);
    // 5 packets in 60 ms are 1 Mbit/s, 10 are 2; by acknowledgements (50·1 + 150·2)/200.
    assert!((measured.mean_pacing_rate.mbps() - 1.75).abs() < 1e-6);
    assert!((measured.max_pacing_rate.mbps() - 2.0).abs() < 1e-6);
    let inputs = measured.inputs();
    let expected = [
        libm::log1p(40.0) / libm::log1p(1000.0),
        libm::log1p(deviation / 0.001) / libm::log1p(1000.0),
        libm::log1p(80.0) / libm::log1p(1000.0),
        libm::log1p(130.0) / libm::log1p(1000.0),
        libm::log1p(180.0) / libm::log1p(1e5),
        libm::log1p(4.0) / libm::log1p(1e8 / 1500.0),
        libm::log1p(175.0) / libm::log1p(1e5),
    ];
    for (i, (got, want)) in inputs.iter().zip(expected).enumerate() {
        assert!((f64::from(*got) - want).abs() < 1e-6, "{}: {got} {want}", FEATURES[i].name);
    }
}

#[test]
fn nothing_measured_is_finite_and_not_enough() {
    let mut interval = Interval::new();
    assert_eq!(interval.measured(), Measured::default());
    assert_eq!(Measured::default().reward(Rate::from_mbps(1.0), 9), 0.0, "and no division by 0");
    let idle = Report { acked: Bytes::ZERO, rtt_samples: 0, rtt_mean: None, ..report(1) };
    interval.on_report(&Report { rtt_max: None, ..idle });
    let measured = interval.measured();
    assert_eq!((measured.mean_rtt, measured.max_rtt), (ms(60), ms(60)), "the smoothed one");
    assert!(!measured.is_enough() && measured.inputs().iter().all(|x| x.is_finite()));
    interval.on_report(&Report { rtt_samples: ACKS_MIN, ..report(2) });
    assert!(interval.measured().is_enough());
}

#[test]
fn the_reward_is_the_published_formula_with_one_unit() {
    let measured = Measured {
        length: Duration::from_secs(2),
        acks: 100,
        min_rtt: ms(40),
        mean_rtt: ms(100),
        throughput: Rate::from_mbps(6.0),
        // 1 Mbit/s over two seconds.
        lost: Bytes::new(250_000),
        ..Measured::default()
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let scale = Rate::from_mbps(20.0);
    // (6 − 1)·40 / (100·20) = 0.1, from the ninth interval on.
    near(measured.reward(scale, 9), 0.1);
    near(measured.reward(scale, 1000), 0.1);
    // A queue of 1.5 round trips: beyond β = 2, within β = 4, 8 … 512, where only (6 − 1)/20 counts.
    near(measured.reward(scale, 8), 0.1);
    near(measured.reward(scale, 7), 0.25);
    near(measured.reward(scale, 0), 0.25);
    near(measured.reward(Rate::from_mbps(10.0), 9), 0.2);
    // More lost than delivered is worth less than nothing.
    assert!(Measured { lost: Bytes::new(2_500_000), ..measured }.reward(scale, 9) < 0.0);
}

#[test]
fn a_new_winner_has_to_win_twice_in_a_row() {
    let mut hysteresis = Hysteresis::new();
    let winners = [2, 1, 2, 1, 1, 0, 2, 2, 2, 1, 0, 0];
    let expect = [2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 0];
    assert_eq!(winners.map(|winner| hysteresis.settle(winner)), expect);
}

#[test]
fn a_destination_is_remembered_by_what_was_chosen_lately() {
    let mut memory = Memory::new(5);
    assert_eq!(memory.first(&"10.0.0.1"), None);
    memory.chose("10.0.0.1", 4);
    assert_eq!(memory.first(&"10.0.0.1"), Some(4), "the last candidate, too");
    assert_eq!(memory.first(&"10.0.0.2"), None, "each destination by itself");
    // 4 has 0.9, 1 has 1: the newer one.
    memory.chose("10.0.0.1", 1);
    assert_eq!(memory.first(&"10.0.0.1"), Some(1));
    // 4 has 0.9² + 1 = 1.81, 1 has 0.9; after one more of 1 these are 1.629 and 1.81; after one of
    // 4 again 2.4661 and 1.629.
    for (chosen, first) in [(4, 4), (1, 1), (4, 4)] {
        memory.chose("10.0.0.1", chosen);
        assert_eq!(memory.first(&"10.0.0.1"), Some(first));
    }
    memory.chose("10.0.0.1", 5);
    assert_eq!(memory.first(&"10.0.0.1"), Some(4), "there is no candidate 5");
    assert_eq!(memory.len(), 1);
}

/// Models of which number `best` always wins, unless the lowest round-trip time is above 100 ms.
fn models(best: usize) -> Vec<u8> {
    let mut parts = super::boosted::tests::Parts::new(3);
    parts.base = vec![0.0; 3];
    parts.base[best] = 1.0;
    parts.asked.fill(0);
    parts.thresholds.fill(0.5);
    parts.leaves.fill(0.0);
    parts.high[0] = FEATURES[0].scale.apply(0.1);
    parts.file()
}

fn selector(best: usize) -> Selector {
    Selector::new(SelectorConfig::of_boosted(Boosted::parse(&models(best)).unwrap()))
}

/// What is asked for after each of the reports, of which four make a period.
fn asked(
    selector: &mut Selector,
    reports: impl Iterator<Item = Report>,
) -> Vec<(u64, &'static str)> {
    reports
        .filter_map(|report| match selector.on_report(&report)? {
            Action::Switch { to, how } => {
                assert_eq!(how, Switch::Full);
                Some((report.now.as_millis() / 500, to.algorithm().name))
            }
            Action::Set(_) => panic!("a selector turns no knobs"),
        })
        .collect()
}

#[test]
fn a_selector_asks_for_the_winner() {
    let mut selector = selector(2);
    assert_eq!(selector.algorithm().algorithm().name, "bbr", "the first of the file");
    assert_eq!(asked(&mut selector, (1..=12).map(report)), [(4, "vegas")]);
    let done = selector.selections();
    assert_eq!((done.made, done.changed, done.fallbacks), (3, 1, 0));
    assert_eq!(selector.measured().length, Duration::from_secs(2));
}

#[test]
fn too_few_acknowledgements_decide_nothing_and_count_for_the_next_time() {
    let mut selector = selector(2);
    let few = |k| Report { rtt_samples: 3, ..report(k) };
    // 12 in the first period, 24 in both.
    assert_eq!(asked(&mut selector, (1..=8).map(few)), [(8, "vegas")]);
    assert_eq!(selector.measured().length, Duration::from_secs(4));
}

#[test]
fn strange_inputs_get_the_safe_algorithm_and_are_counted() {
    let mut selector = selector(2);
    let strange =
        |k| Report { min_rtt: ms(if (5..=8).contains(&k) { 200 } else { 40 }), ..report(k) };
    let expected = [(4, "vegas"), (8, "bbr"), (12, "vegas")];
    assert_eq!(asked(&mut selector, (1..=16).map(strange)), expected);
    let done = selector.selections();
    assert_eq!((done.made, done.changed, done.fallbacks), (4, 3, 1));
    assert_eq!(done.distrust, Some(Distrust::OutOfDistribution { feature: "min_rtt" }));
}
