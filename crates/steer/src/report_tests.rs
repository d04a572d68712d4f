//! What the events of a connection come to in a report.

use trimtab_cc::RateSample;
use trimtab_qoe::OperatingPoint;

use super::*;
use crate::testing::silent;

const MSS: Bytes = Bytes::new(1500);

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// An acknowledgement of one packet that took so many milliseconds, without a sample of the rate.
fn ack(now: u64, rtt: u64) -> Ack {
    Ack {
        now: at(now),
        acked: MSS,
        rtt: Some(ms(rtt)),
        srtt: ms(rtt),
        min_rtt: ms(rtt),
        inflight: Bytes::ZERO,
        prior_inflight: MSS,
        delivered: MSS,
        newest_sent_at: Time::ZERO,
        rate: None,
        cwnd_limited: true,
        in_recovery: false,
    }
}

/// The same with a sample of so many packets in 10 ms.
fn rated(now: u64, packets: u64, app_limited: bool) -> Ack {
    let rate = RateSample {
        delivered: MSS * packets,
        interval: ms(10),
        prior_delivered: Bytes::ZERO,
        app_limited,
        tx_in_flight: MSS,
        lost: Bytes::ZERO,
    };
    Ack { rate: Some(rate), ..ack(now, 20) }
}

fn sent(packets: u64) -> Sent {
    Sent { now: Time::ZERO, bytes: MSS * packets, inflight: MSS, app_limited: false }
}

fn loss(packets: u64) -> Loss {
    Loss {
        now: Time::ZERO,
        lost: MSS * packets,
        newest_sent_at: Time::ZERO,
        inflight: Bytes::ZERO,
        prior_inflight: MSS,
    }
}

/// A report of what was collected until now.
fn report(collector: &mut Collector, now: u64) -> Report {
    let end = Snapshot {
        algorithm: "copa",
        srtt: ms(21),
        min_rtt: ms(19),
        window: MSS * 10,
        inflight: MSS * 7,
        mss: MSS,
        phase: Phase::SlowStart,
        unsent: Bytes::new(77),
        knobs: KnobValues::one("delta", 0.1),
        factors: Factors::new(),
    };
    collector.report(at(now), end)
}

#[test]
fn what_left_arrived_and_was_lost_adds_up_and_begins_anew() {
    let mut collector = Collector::new(at(5));
    [2, 3].iter().for_each(|&packets| collector.on_sent(&sent(packets)));
    [10, 20, 30].iter().for_each(|&now| collector.on_ack(&ack(now, 5)));
    [1, 3].iter().for_each(|&packets| collector.on_loss(&loss(packets)));
    let first = report(&mut collector, 105);
    assert_eq!((first.sent, first.acked, first.lost), (MSS * 5, MSS * 3, MSS * 4));
    assert_eq!((first.now, first.interval), (at(105), ms(100)));
    let second = report(&mut collector, 150);
    assert_eq!((second.sent, second.acked, second.lost), (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO));
    assert_eq!((second.interval, second.rtt_samples, second.rtt_mean), (ms(45), 0, None));
}

#[test]
fn what_the_datapath_knows_is_passed_on() {
    let report = report(&mut Collector::new(Time::ZERO), 10);
    assert_eq!((report.algorithm, report.phase), ("copa", Phase::SlowStart));
    assert_eq!((report.srtt, report.min_rtt), (ms(21), ms(19)));
    assert_eq!((report.window, report.inflight, report.mss), (MSS * 10, MSS * 7, MSS));
    assert_eq!(report.knobs.get("delta"), Some(0.1));
    assert_eq!(report.responses.unsent, Bytes::new(77));
}

/// 10, 20, 20 and 30 ms: a mean of 20 ms and a variance of 50 ms².
#[test]
fn round_trip_times_are_those_of_all_samples() {
    let mut collector = Collector::new(Time::ZERO);
    [20, 10, 30, 20].iter().for_each(|&rtt| collector.on_ack(&ack(1, rtt)));
    collector.on_ack(&Ack { rtt: None, ..ack(2, 500) });
    let report = report(&mut collector, 10);
    assert_eq!((report.rtt_samples, report.rtt_mean), (4, Some(ms(20))));
    assert_eq!((report.rtt_min, report.rtt_max), (Some(ms(10)), Some(ms(30))));
    assert!((report.rtt_variance - 50e-6).abs() < 1e-12, "{}", report.rtt_variance);
}

#[test]
fn without_samples_there_are_no_round_trip_times() {
    let report = report(&mut Collector::new(Time::ZERO), 10);
    assert_eq!((report.rtt_mean, report.rtt_min, report.rtt_max), (None, None, None));
    assert_eq!((report.rtt_samples, report.rtt_variance), (0, 0.0));
    assert_eq!((report.delivery_rate, report.delivery_rate_any), (None, None));
}

#[test]
fn the_highest_rate_counts_and_that_of_the_network_by_itself() {
    let mut collector = Collector::new(Time::ZERO);
    for (packets, app_limited) in [(3, false), (5, false), (4, false), (9, true), (8, true)] {
        collector.on_ack(&rated(10, packets, app_limited));
    }
    let report = report(&mut collector, 20);
    assert_eq!(report.delivery_rate, Some(MSS * 5 / ms(10)));
    assert_eq!(report.delivery_rate_any, Some(MSS * 9 / ms(10)));
}

/// The time before an acknowledgement is busy where the application did not hold back its data.
#[test]
fn a_connection_is_busy_while_the_network_is_the_limit() {
    let mut collector = Collector::new(at(100));
    collector.on_ack(&rated(110, 1, false));
    collector.on_ack(&rated(150, 1, true));
    collector.on_ack(&ack(155, 20));
    collector.on_ack(&rated(160, 1, false));
    assert_eq!(report(&mut collector, 200).busy, ms(15), "10 ms and 5 ms");
    // What follows begins with the report, and not with the last acknowledgement.
    collector.on_ack(&rated(230, 1, false));
    assert_eq!(report(&mut collector, 240).busy, ms(30));
}

#[test]
fn no_interval_is_busier_than_it_is_long() {
    let mut collector = Collector::new(Time::ZERO);
    collector.on_ack(&rated(50, 1, false));
    // Its clock was behind.
    assert_eq!(report(&mut collector, 40).busy, ms(40));
}

/// 1 MB in a second and 1 MB in two: 8 and 4 Mbit/s.
#[test]
fn responses_are_means() {
    let mut collector = Collector::new(Time::ZERO);
    [30, 50, 10].iter().for_each(|&wait| collector.on_response_sent(ms(wait)));
    collector.on_response_arrived(Bytes::new(1_000_000), ms(1000));
    collector.on_response_arrived(Bytes::new(2_000_000), ms(4000));
    let responses = report(&mut collector, 10).responses;
    assert_eq!((responses.sent, responses.wait_mean), (3, ms(30)));
    assert_eq!((responses.arrived, responses.size_mean), (2, Bytes::new(1_500_000)));
    assert!((responses.goodput_mean.mbps() - 6.0).abs() < 1e-6, "{responses:?}");
    let none = report(&mut collector, 20).responses;
    assert_eq!((none.sent, none.arrived, none.wait_mean), (0, 0, Duration::ZERO));
    assert_eq!((none.size_mean, none.goodput_mean), (Bytes::ZERO, Rate::default()));
    // At once is as fast as can be told.
    collector.on_response_arrived(MSS, Duration::ZERO);
    assert!(report(&mut collector, 30).responses.goodput_mean.mbps() > 1_000.0);
}

/// Round-trip times are kept one by one for a steering that needs them, and for no other.
#[test]
fn round_trips_are_kept_for_who_needs_them() {
    let needs = Needs { samples: true, ..Needs::default() };
    let mut collector = Collector::for_needs(Time::ZERO, needs);
    for n in 1..=2 {
        (1..=20).for_each(|k| collector.on_ack(&ack(k, 10 * k)));
        let rtts = report(&mut collector, 20 * n).rtts.unwrap();
        assert_eq!(rtts.count(), 20, "those of this interval only");
        assert!((rtts.quantile(0.95).unwrap() / 190_000.0 - 1.0).abs() < 0.01);
    }
    let mut collector = Collector::new(Time::ZERO);
    collector.on_ack(&ack(1, 10));
    assert!(report(&mut collector, 20).rtts.is_none());
}

/// Where a datapath says only how many there were, their mean and their ends, these are kept.
#[test]
fn samples_are_rebuilt_from_mean_and_ends() {
    let of = |text: &str, report: &Report| {
        let mut samples = Samples::default();
        report.add_to(&mut samples);
        let model = Model::parse(text, &[]).unwrap();
        model.score_over(&OperatingPoint::default(), &samples, &Factors::new())
    };
    let report = Report {
        acked: Bytes::new(90_000),
        lost: Bytes::new(10_000),
        rtt_samples: 10,
        rtt_mean: Some(ms(40)),
        rtt_min: Some(ms(20)),
        rtt_max: Some(ms(100)),
        ..silent(Time::ZERO, ms(100), "copa")
    };
    for (text, expected) in [
        ("p0(D)", 0.020),
        ("p50(D)", 0.035),
        ("p100(D)", 0.100),
        ("mean(D)", 0.040),
        ("mean(T)", 7.2),
        ("mean(L)", 0.1),
    ] {
        let got = of(text, &report);
        assert!((got / expected - 1.0).abs() < 0.01, "{text}: {got}");
    }
    let two = Report { rtt_samples: 2, ..report.clone() };
    assert!((of("p100(D)", &two) / 0.040 - 1.0).abs() < 0.01, "two are as good as their mean");
    let none = Report { rtt_mean: None, rtt_samples: 0, ..report };
    assert_eq!(of("p100(D)", &none), 0.0, "that of the point");
}
