use super::*;
use crate::migrate::PathView;
use crate::testing::link::{Link, MSS, Outcome, run};
use crate::testing::{acked, hand_over, lost, timed_out};
use crate::{Marked, set_knob};
use trimtab_units::Rate;

/// The path's delay in the tests without a link.
const BASE: Duration = Duration::from_millis(50);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Past slow start with a window of so many packets, all in flight, and a known base delay.
fn steady(packets: u64) -> Ledbat {
    let config = Config { initial_window: MSS * packets, ..Config::with_mss(MSS, 0) };
    let mut ledbat = Ledbat::new(&config);
    ledbat.window.ssthresh = ledbat.window.size;
    ledbat.base.add(Time::ZERO, BASE);
    ledbat
}

/// An acknowledgement of `bytes` at a queueing delay, of a sender that keeps its window full.
fn full(ledbat: &Ledbat, now: Time, bytes: Bytes, queue: Duration) -> Ack {
    let rtt = BASE + queue;
    let prior_inflight = ledbat.window.size;
    Ack { prior_inflight, inflight: prior_inflight - bytes, ..acked(now, now - rtt, bytes, rtt) }
}

/// By how many bytes a window of 100 packets moves in one acknowledgement of all of it.
fn moved(knobs: &[(&str, f64)], queue: Duration) -> i64 {
    let mut ledbat = steady(100);
    for (name, value) in knobs {
        set_knob(&mut ledbat, name, *value).unwrap();
    }
    ledbat.on_ack(&full(&ledbat, at(1000), MSS * 100, queue));
    ledbat.window().get() as i64 - (MSS * 100).get() as i64
}

/// expected.md L1: RFC 6817 §2.4.2 with TARGET = 100 ms, GAIN = 1 and a whole window acknowledged.
#[test]
fn a_round_trip_moves_the_window_by_gain_times_off_target() {
    for (queue, bytes) in [(0, 1500), (25, 1125), (50, 750), (100, 0), (150, -750), (400, -4500)] {
        assert_eq!(moved(&[], ms(queue)), bytes, "{queue} ms queued");
    }
    assert_eq!(moved(&[("gain", 0.5)], ms(25)), 562, "half of 1125, whole bytes");
    assert_eq!(moved(&[("target", 20.0)], ms(25)), -375);
    assert_eq!(moved(&[("target", 20.0), ("gain", 0.2)], ms(25)), -75);
}

/// A packet of a thousand acknowledged moves the window by 1.5 bytes: halves add up.
#[test]
fn parts_of_bytes_are_kept() {
    for (queue, want) in [(0, 1499.25), (200, -1500.75)] {
        let mut ledbat = steady(1000);
        for _ in 0..1000 {
            ledbat.on_ack(&full(&ledbat, at(1000), MSS, ms(queue)));
        }
        let got = ledbat.window().as_f64() - (MSS * 1000).as_f64();
        assert!((got - want).abs() < 2.0, "{queue} ms queued: {got} bytes, not {want}");
    }
}

/// RFC 6817 §2.4.2, `update_base_delay`, with BASE_HISTORY = 10 and 2.
#[test]
fn a_base_delay_counts_for_the_minutes_of_the_history() {
    let mut base = BaseDelay::NONE;
    assert_eq!(base.minima.least(10.0), None);
    base.add(at(59_999), ms(20));
    for minute in 1..=10 {
        // The least of a minute counts, whichever sample of it that is.
        for delay in [31, 30, 35] {
            base.add(at(60_000 * minute + delay), ms(delay));
        }
        let want = if minute < 10 { ms(20) } else { ms(30) };
        assert_eq!(base.minima.least(10.0), Some(want), "minute {minute}");
        let want = if minute < 2 { ms(20) } else { ms(30) };
        assert_eq!(base.minima.least(2.0), Some(want), "minute {minute}, two kept");
    }
    assert_eq!(base.minima.least(11.0), Some(ms(20)), "a longer history still has it");
}

#[test]
fn minutes_without_samples_take_no_place_in_the_history() {
    let mut base = BaseDelay::NONE;
    base.add(at(0), ms(20));
    base.add(at(3_600_000), ms(40));
    assert_eq!(base.minima.least(2.0), Some(ms(20)), "an hour later it is still the last but one");
    base.add(at(3_660_000), ms(40));
    assert_eq!(base.minima.least(2.0), Some(ms(40)));
}

/// RFC 6817 §2.4.2, `FILTER`: one sample without jitter in CURRENT_FILTER is enough.
#[test]
fn the_current_delay_is_the_least_of_the_last_samples() {
    let queues = |filter: f64| {
        let mut ledbat = steady(100);
        set_knob(&mut ledbat, "current_filter", filter).unwrap();
        let mut queues = std::vec![];
        for queue in [10, 60, 70, 80, 90, 50] {
            ledbat.on_ack(&full(&ledbat, at(1000), MSS, ms(queue)));
            queues.push((ledbat.queue().unwrap() * 100.0 + 0.5) as u64);
        }
        queues
    };
    assert_eq!(queues(4.0), [10, 10, 10, 10, 60, 50]);
    assert_eq!(queues(1.0), [10, 60, 70, 80, 90, 50]);
}

/// RFC 6817 §2.4.2, `max_allowed_cwnd`, for a sender that has 20 packets in flight at most.
#[test]
fn the_window_stays_near_what_is_in_flight() {
    for (allowed, want) in [(1.0, 21), (8.0, 28)] {
        let mut ledbat = steady(100);
        set_knob(&mut ledbat, "allowed_increase", allowed).unwrap();
        let mut windows = std::vec![];
        for round in 1..=4 {
            let (now, sent) = (at(1000 + 50 * round), at(999 + 50 * (round - 1)));
            // The flight runs down: it is the most of a round trip that counts.
            for left in (1..=20).rev() {
                let flight = MSS * left;
                let (inflight, prior_inflight) = (flight - MSS, flight);
                let delivered = MSS * (20 * round + 20 - left);
                let seen =
                    Ack { inflight, prior_inflight, delivered, ..acked(now, sent, MSS, BASE) };
                ledbat.on_ack(&seen);
            }
            windows.push(ledbat.window().get() / MSS.get());
        }
        assert_eq!(windows.last(), Some(&want), "{windows:?}");
        assert!(windows[0] >= 100, "the new connection's own flight counts at first: {windows:?}");
    }
}

/// RFC 6817 §2.4.2, "on data loss": at most once in a round trip, and not below MIN_CWND.
#[test]
fn a_loss_halves_once_in_a_round_trip() {
    let mut ledbat = steady(100);
    ledbat.on_loss(&lost(at(1000), at(950)));
    assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 50, Phase::Recovery));
    ledbat.on_loss(&lost(at(1010), at(960)));
    assert_eq!(ledbat.window(), MSS * 50, "the same round trip");
    let rests = full(&ledbat, at(1020), MSS * 50, ms(0));
    ledbat.on_ack(&Ack { newest_sent_at: at(990), ..rests });
    assert_eq!(ledbat.window(), MSS * 50, "it rests in recovery");
    ledbat.on_ack(&full(&ledbat, at(1100), MSS * 50, ms(0)));
    assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 51, Phase::Steady));
    for (i, packets) in [25, 12, 6, 3, 2, 2].into_iter().enumerate() {
        let now = at(2000 + 100 * i as u64);
        ledbat.on_loss(&lost(now, now));
        let got = ledbat.window().get() / MSS.get();
        assert_eq!(got, packets);
    }
    // TCP's single packet after a timeout: a loss leaves it alone.
    let mut ledbat = steady(100);
    (ledbat.window.min, ledbat.window.size) = (MSS, MSS);
    ledbat.on_loss(&lost(at(1000), at(950)));
    assert_eq!(ledbat.window(), MSS);
}

/// RFC 3168 §5, by the trait's default.
#[test]
fn a_mark_halves() {
    let mut ledbat = steady(100);
    let marked = Marked {
        now: at(1000),
        newest_sent_at: at(990),
        inflight: MSS * 99,
        prior_inflight: MSS * 100,
    };
    ledbat.on_marked(&marked);
    assert_eq!(ledbat.window(), MSS * 50);
}

#[test]
fn a_spurious_loss_is_taken_back_once() {
    let mut ledbat = steady(100);
    ledbat.on_loss(&lost(at(1000), at(950)));
    ledbat.on_spurious_loss(at(1010));
    assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 100, Phase::Steady));
    ledbat.on_spurious_loss(at(1020));
    assert_eq!(ledbat.window(), MSS * 100);
}

/// RFC 6817 §2.4.2, the congestion timeout, and what follows with slow start and without.
#[test]
fn a_timeout_leaves_the_least_window() {
    for (slow_start, phase, want) in [(1.0, Phase::SlowStart, 4), (0.0, Phase::Steady, 3)] {
        let mut ledbat = steady(100);
        set_knob(&mut ledbat, "slow_start", slow_start).unwrap();
        ledbat.on_timeout(&timed_out(at(1000)));
        assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 2, phase));
        assert_eq!(ledbat.ssthresh(), Some(MSS * 50));
        ledbat.on_timeout(&timed_out(at(3000)));
        assert_eq!(ledbat.ssthresh(), Some(MSS * 50), "the second holds the threshold");
        assert_eq!(ledbat.queue(), None, "what was measured before the silence is old");
        ledbat.on_ack(&full(&ledbat, at(3050), MSS * 2, ms(0)));
        assert_eq!(ledbat.window(), MSS * want, "slow_start={slow_start}");
    }
}

/// Slow start doubles until half the target is queued; half the window was enough for that.
#[test]
fn slow_start_ends_with_half_the_target_queued() {
    let mut ledbat = Ledbat::new(&Config::with_mss(MSS, 0));
    ledbat.base.add(Time::ZERO, BASE);
    for (queue, packets) in [(0, 20), (49, 40)] {
        ledbat.on_ack(&full(&ledbat, at(1000), ledbat.window.size, ms(queue)));
        assert_eq!((ledbat.window(), ledbat.phase()), (MSS * packets, Phase::SlowStart));
        ledbat.current = Newest::NONE;
    }
    let idle = Ack { cwnd_limited: false, ..full(&ledbat, at(1000), MSS, ms(49)) };
    ledbat.on_ack(&idle);
    assert_eq!(ledbat.window(), MSS * 40, "a window that is not used does not grow");
    ledbat.current = Newest::NONE;
    ledbat.on_ack(&full(&ledbat, at(1000), MSS, ms(50)));
    assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 20, Phase::Steady));
    assert_eq!(ledbat.ssthresh(), Some(MSS * 20));
}

#[test]
fn without_slow_start_a_packet_is_added_per_round_trip() {
    let mut ledbat = Ledbat::new(&Config::with_mss(MSS, 0));
    set_knob(&mut ledbat, "slow_start", 0.0).unwrap();
    assert_eq!(ledbat.phase(), Phase::Steady);
    for packets in 11..15 {
        ledbat.on_ack(&full(&ledbat, at(1000), ledbat.window.size, ms(0)));
        assert_eq!(ledbat.window(), MSS * packets);
    }
}

/// A window that the delay lowered is not slow start's: its threshold goes down with it.
#[test]
fn a_long_queue_leaves_two_packets_and_no_slow_start() {
    let mut ledbat = steady(10);
    for _ in 0..100 {
        ledbat.on_ack(&full(&ledbat, at(1000), MSS, ms(3000)));
        assert_eq!(ledbat.phase(), Phase::Steady);
    }
    assert_eq!((ledbat.window(), ledbat.ssthresh()), (MSS * 2, Some(MSS * 2)));
}

/// RFC 5681 §4.1 and RFC 2861: half for each timeout, and the flight of before does not bound it.
#[test]
fn after_an_idle_time_the_old_queue_is_forgotten() {
    let mut ledbat = steady(8);
    ledbat.window.initial = MSS * 2;
    ledbat.on_ack(&full(&ledbat, at(1000), MSS, ms(200)));
    let idle = Idle { now: at(2000), idle: ms(700), rto: ms(300) };
    ledbat.on_idle(&idle);
    assert_eq!(ledbat.queue(), None);
    assert!(ledbat.window() < MSS * 3 && ledbat.window() >= MSS * 2, "{}", ledbat.window());
    assert_eq!(ledbat.flight[0], ledbat.window());
}

#[test]
fn a_knob_acts_with_the_next_acknowledgement() {
    let mut ledbat = steady(100);
    ledbat.on_ack(&full(&ledbat, at(1000), MSS * 100, ms(50)));
    assert_eq!(ledbat.window(), MSS * 100 + MSS / 2);
    set_knob(&mut ledbat, "target", 50.0).unwrap();
    let before = ledbat.window();
    ledbat.on_ack(&full(&ledbat, at(1010), before, ms(50)));
    assert_eq!(ledbat.window(), before, "at its target");
    assert!(set_knob(&mut ledbat, "target", 100.1).is_err(), "RFC 6817 §2.5: 100 ms or less");
    assert!(set_knob(&mut ledbat, "gain", 1.1).is_err(), "RFC 6817 §2.5: 1 or less");
}

/// The base delay is the connection's, so the old algorithm's queue is a queue.
#[test]
fn after_a_hand_over_the_old_queue_counts() {
    let rtt = ms(170); // 150 ms queued on the 20 ms of the record
    let mut ledbat = steady(100);
    ledbat.base.add(Time::ZERO, ms(10)); // of another path
    let record = hand_over(MSS * 150, rtt);
    ledbat.take_over(&record);
    assert_eq!(ledbat.base.minima.least(10.0), Some(ms(20)));
    assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 150, Phase::Steady));
    assert!(ledbat.is_converged());
    // What the old algorithm sent, and kept in flight, is no bound.
    let old = Ack {
        delivered: record.delivered,
        prior_inflight: MSS * 10,
        ..acked(record.now + ms(1), record.now - ms(1), Bytes::new(1), rtt)
    };
    ledbat.on_ack(&old);
    assert_eq!(ledbat.window(), MSS * 150);
    let whole = Ack {
        prior_inflight: MSS * 140,
        ..acked(record.now + rtt, record.now + ms(2), MSS * 150, rtt)
    };
    ledbat.on_ack(&whole);
    assert_eq!(ledbat.window(), MSS * 149 + MSS / 2, "off target by half: RFC 6817 §2.4.2");
    let point = ledbat.operating_point(&PathView::new());
    assert!(point.cut_by_losses && point.window == ledbat.window());
}

#[test]
fn a_part_switch_keeps_the_window_and_searches() {
    let mut ledbat = Ledbat::new(&Config::with_mss(MSS, 0));
    ledbat.inherit(MSS * 150, ms(170));
    assert_eq!((ledbat.window(), ledbat.phase()), (MSS * 150, Phase::SlowStart));
    assert!(!ledbat.is_converged());
    // Its own queue is all that it has ever seen: the base delay is wrong.
    ledbat.on_ack(&acked(at(1000), at(830), MSS, ms(170)));
    assert_eq!(ledbat.queue(), Some(0.0));
    assert_eq!(ledbat.window(), MSS * 151);
}

/// Whatever happens, the window is MIN_CWND or what a timeout left, and it moves by at most a
/// packet up in a round trip's worth of acknowledgements past slow start.
#[test]
fn the_window_stays_in_bounds() {
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (random >> 33) % below
    };
    for life in 0..50 {
        let mut ledbat = steady(10 + life);
        for (index, knob) in Ledbat::KNOBS.iter().enumerate() {
            let place = draw(101) as f64 / 100.0;
            ledbat.apply_knob(index, knob.min + (knob.max - knob.min) * place);
        }
        let mut now = at(1000);
        for _ in 0..2000 {
            now += ms(draw(400));
            let before = ledbat.window();
            let steady = ledbat.phase() == Phase::Steady;
            let bytes = (MSS * (1 + draw(4))).min(before);
            match draw(200) {
                0 => ledbat.on_timeout(&timed_out(now)),
                1..4 => ledbat.on_loss(&lost(now, now - ms(draw(300)))),
                4 => ledbat.on_idle(&Idle { now, idle: ms(1000), rto: ms(1 + draw(500)) }),
                _ => {
                    ledbat.on_ack(&full(&ledbat, now, bytes, ms(draw(300))));
                    let most = before + bytes.mul_f64(MSS.ratio(before)) + Bytes::new(2);
                    assert!(!steady || ledbat.window() <= most.max(MSS * 2), "{before} {bytes}");
                }
            }
            assert!(ledbat.window() >= MSS * 2 && ledbat.window() <= MSS * 100_000);
            assert!(ledbat.ssthresh().is_none_or(|ssthresh| ssthresh >= MSS * 2));
            assert!(ledbat.credit.abs() < 1.0, "{}", ledbat.credit);
        }
    }
}

/// 12 Mbit/s and 20 ms (20 packets), so that 100 ms are a hundred packets; 40 to 100 s.
fn slow() -> Link {
    let (from, until) = (at(40_000), at(100_000));
    Link { rate: Rate::from_mbps(12.0), from, until, ..Link::fast() }
}

fn play(link: Link, flows: &[(&str, u64)]) -> Outcome {
    let flows: std::vec::Vec<(&str, Time)> =
        flows.iter().map(|&(spec, start)| (spec, Time::from_secs(start))).collect();
    run(link, &flows, |_, _, _| {})
}

/// expected.md L2: alone it fills the link, with `target` in the queue.
#[test]
fn alone_it_queues_its_target() {
    for (spec, packets) in [
        ("ledbat", 100.0),
        ("ledbat:slow_start=0", 100.0),
        ("ledbat:target=60", 60.0),
        ("ledbat:target=25", 25.0),
    ] {
        let seen = play(slow(), &[(spec, 0)]);
        assert!(seen.shares[0] > 0.999 && seen.loss == 0.0, "{spec}: {seen:?}");
        assert!((seen.queue_mean - packets).abs() < 2.0, "{spec}: {seen:?}");
    }
    // A link that sends once in a millisecond is no jitter to it.
    let seen = play(Link { tick: ms(1), ..slow() }, &[("ledbat", 0)]);
    assert!(seen.shares[0] > 0.999 && (seen.queue_mean - 100.0).abs() < 3.0, "{seen:?}");
}

/// RFC 6817 §4.2. A deep buffer, of which CUBIC and NewReno keep more than the target full. One
/// that comes later takes their standing queue for the path until it drains.
#[test]
fn it_yields_to_flows_that_fill_the_buffer() {
    let deep = Link { buffer: 400, ..slow() };
    for (other, later) in [("newreno", 0.10), ("cubic", 0.20)] {
        let seen = play(deep, &[("ledbat", 0), (other, 5)]);
        assert!(seen.shares[0] < 0.01, "{other}: {seen:?}");
        assert!(seen.shares[1] > 0.98, "{other}: {seen:?}");
        let seen = play(deep, &[(other, 0), ("ledbat", 5)]);
        assert!(seen.shares[1] < later && seen.shares[1] > 0.01, "{other}: {seen:?}");
    }
    // Where the buffer is less than the target nothing tells it to: RFC 6817 §4.2.
    let shallow = Link { buffer: 20, ..slow() };
    let seen = play(shallow, &[("newreno", 0), ("ledbat", 5)]);
    assert!(seen.shares[1] > 0.25 && seen.shares[1] < 0.65, "{seen:?}");
}

/// RFC 6817 §4.4: one that starts later takes the first one's queue for the path, adds its own
/// target to it, and starves the first. Those that start at once share.
#[test]
fn latecomers_have_the_advantage() {
    let seen = play(slow(), &[("ledbat", 0), ("ledbat", 10)]);
    assert!(seen.shares[1] > 0.9 && seen.shares[0] < 0.1, "{seen:?}");
    assert!(seen.queue_mean > 150.0, "nearly two targets: {seen:?}");
    let seen = play(slow(), &[("ledbat", 0), ("ledbat", 0)]);
    assert!(seen.shares.iter().all(|share| *share > 0.2), "{seen:?}");
    assert!((seen.queue_mean - 105.0).abs() < 5.0, "one target: {seen:?}");
}

/// RFC 6817 §3.1.1: once the last look at the empty path has left the history, the target is put
/// on top of the flow's own queue.
#[test]
fn a_flow_that_outlives_its_history_queues_more() {
    let long = Link { from: at(400_000), until: at(460_000), ..slow() };
    let seen = play(long, &[("ledbat:base_history=2", 0)]);
    assert!(seen.queue_mean > 150.0, "{seen:?}");
    let seen = play(long, &[("ledbat", 0)]);
    assert!((seen.queue_mean - 100.0).abs() < 2.0, "ten minutes have not passed: {seen:?}");
}

/// A buffer of less than the target is filled, and cut by half at losses: RFC 6817 §2.4.2.
#[test]
fn a_shallow_buffer_makes_it_a_loss_based_flow() {
    let shallow = |buffer: u64| Link { buffer, ..slow() };
    for (buffer, least) in [(20, 0.99), (5, 0.84)] {
        let ledbat = play(shallow(buffer), &[("ledbat", 0)]);
        let reno = play(shallow(buffer), &[("newreno", 0)]);
        assert!(ledbat.shares[0] > least && ledbat.queue_max == buffer, "{ledbat:?}");
        assert!((ledbat.shares[0] - reno.shares[0]).abs() < 0.03, "{ledbat:?}, {reno:?}");
        assert!(ledbat.loss > 0.0 && ledbat.loss < 0.01, "{ledbat:?}");
    }
}

/// Outages of half a second, every 20 s: all but their own 2.5% is used.
#[test]
fn it_is_back_after_an_outage() {
    let seen = play(Link { outage: ms(500), ..slow() }, &[("ledbat", 0)]);
    assert!(seen.shares[0] > 0.97, "{seen:?}");
    assert!(seen.queue_mean > 80.0 && seen.queue_mean < 110.0, "{seen:?}");
}
