//! Copa against its update rule and its equilibrium (expected.md §8).

use std::vec::Vec;

use super::*;
use crate::testing::link::{Link, MSS, Outcome, run};
use crate::testing::{acked, lost, timed_out};
use crate::{Controller, set_knob};

fn close(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "{got} is not {want} ± {tolerance}");
}

/// Past slow start, with this delta and window.
fn steady(delta: f64, packets: f64) -> Copa {
    let mut copa = Copa::new(&Config::with_mss(MSS, 0));
    set_knob(&mut copa, "delta", delta).unwrap();
    copa.window = packets * copa.mss;
    copa.slow_start = false;
    copa.velocity = Velocity::new(copa.window);
    copa
}

/// Windows in packets after each of `n` acknowledgements of one packet within one round.
fn windows(copa: &mut Copa, rtts: &[Duration], n: usize) -> Vec<f64> {
    for rtt in rtts {
        copa.observe(&acked(Time::from_millis(1), Time::ZERO, MSS, *rtt));
    }
    // The standing round-trip time is what came last.
    set_knob(copa, "standing", 0.0).unwrap();
    let rtt = *rtts.last().unwrap();
    (0..n)
        .map(|_| {
            let now = Time::from_millis(2);
            let ack = acked(now, Time::ZERO, MSS, rtt);
            copa.observe(&ack);
            copa.steer(&ack);
            copa.window / copa.mss
        })
        .collect()
}

/// expected.md P1 to P4.
#[test]
fn window_moves_by_the_rule() {
    let ms = Duration::from_millis;
    let queue = [ms(20), ms(60)];
    for (delta, from, want) in [
        (0.5, 10.0, &[9.8, 9.5959, 9.3875, 9.1744, 8.9565][..]),
        (0.04, 100.0, &[99.75, 99.4994, 99.2481]),
    ] {
        let got = windows(&mut steady(delta, from), &queue, want.len());
        for (got, want) in got.iter().zip(want) {
            close(*got, *want, 1e-4);
        }
    }
    let up = windows(&mut steady(0.5, 10.0), &[ms(20), ms(20)], 2);
    close(up[0], 10.2, 1e-9); // P3 and P4: no queue, so it grows
    close(up[1], 10.2 + 2.0 / 10.2, 1e-9);
}

/// One acknowledgement moves the window by at most what it acknowledges.
#[test]
fn steps_are_bounded_by_what_is_acknowledged() {
    let ms = Duration::from_millis;
    let mut copa = steady(0.002, 10.0);
    assert_eq!(windows(&mut copa, &[ms(20), ms(20)], 1), [11.0]);
}

fn bulk(link: Link, specs: &[&str]) -> Outcome {
    let flows: Vec<_> = specs.iter().map(|s| (*s, Time::ZERO)).collect();
    run(link, &flows, |_, _, _| {})
}

/// expected.md P5 and P6, and the table below them.
#[test]
fn queue_of_one_flow_is_1_25_over_delta() {
    for delta in [0.5, 0.1, 0.04] {
        let spec = std::format!("copa:delta={delta}");
        let seen = bulk(Link::fast(), &[&spec]);
        close(seen.shares[0], 1.0, 0.02);
        close(seen.queue_mean, 1.25 / delta, 0.3 * 1.25 / delta);
        // The oscillation peaks at 2.5/delta; the refill after a drain may go beyond, for a moment.
        assert!(seen.queue_max as f64 <= 4.0 / delta, "{delta}: {}", seen.queue_max);
    }
}

/// Where the path holds fewer packets than 1/delta the oscillation dies out, and drains keep the
/// minimum round-trip time known: the queue is still that of expected.md P5, after minutes as well,
/// and the flow does not take itself for a stranger.
#[test]
fn short_paths_keep_queue_and_mode() {
    for (mbps, delta) in [(12.0, 0.1), (12.0, 0.04), (12.0, 0.01), (3.0, 0.04), (48.0, 0.01)] {
        for competitive in [0, 1] {
            let until = Time::from_millis(60_000);
            let link = Link { rate: Rate::from_mbps(mbps), until, ..Link::fast() };
            let empty = link.rtt + MSS / link.rate;
            let spec = std::format!("copa:delta={delta},competitive={competitive}");
            let seen = run(link, &[(&spec, Time::ZERO)], |_, now, cca| {
                let Controller::Copa(copa) = cca else { panic!("it is Copa") };
                assert!(!copa.is_competitive(), "{spec} at {now}");
                let min = copa.rtt_min.get().unwrap();
                assert!(min.ratio(empty) < 1.2, "{spec} at {now}: {min}");
            });
            close(seen.queue_mean, 1.25 / delta, 0.3 * 1.25 / delta);
            assert!(seen.shares[0] > 0.99, "{spec}: {seen:?}");
        }
    }
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|x| x * x).sum::<f64>())
}

/// expected.md P7 and P8.
#[test]
fn shares_are_as_one_over_delta() {
    let seen = bulk(Link::fast(), &["copa:delta=0.5", "copa:delta=0.25"]);
    close(seen.shares[1] / seen.shares[0], 2.0, 0.3);
    for specs in [&["copa:delta=0.04"; 2][..], &["copa:delta=0.5"; 2], &["copa:delta=0.1"; 4]] {
        let seen = bulk(Link::fast(), specs);
        assert!(jain(&seen.shares) >= 0.95, "{:?}", seen.shares);
        close(seen.shares.iter().sum(), 1.0, 0.02);
    }
}

/// Links that send in whole milliseconds make the round-trip time jitter.
#[test]
fn whole_millisecond_links_are_filled_without_competitive_mode() {
    for (mbps, delta, want) in [
        (12.0, 0.5, 0.85),
        (12.0, 0.04, 0.97),
        (48.0, 0.5, 0.7),
        (48.0, 0.04, 0.97),
        (3.0, 0.5, 0.9),
    ] {
        let link =
            Link { rate: Rate::from_mbps(mbps), tick: Duration::from_millis(1), ..Link::fast() };
        let spec = std::format!("copa:delta={delta}");
        let mut competitive = (0, 0);
        let seen = run(link, &[(&spec, Time::ZERO)], |_, _, cca| {
            let Controller::Copa(copa) = cca else { panic!("it is Copa") };
            competitive.0 += u32::from(copa.is_competitive());
            competitive.1 += 1;
        });
        assert!(seen.shares[0] >= want, "{mbps} Mbit/s, delta {delta}: {seen:?}");
        assert_eq!(competitive.0, 0, "{mbps} Mbit/s, delta {delta}: of {}", competitive.1);
    }
}

/// A link that stands still for 3 s in every 20 s is used for nine tenths of the rest at least. What
/// was in flight meanwhile comes back with a round-trip time that says nothing of the path, and the
/// queue that stood still with the link is not that of others.
#[test]
fn outages_of_the_link_leave_it_used() {
    for spec in ["copa:mit", "copa:mit,competitive=0", "copa:mvfst", "copa:mvfst,competitive=1"] {
        for (mbps, rtt, window) in [(24.0, 40, 10), (24.0, 40, 30), (12.0, 100, 10), (48.0, 20, 10)]
        {
            for outage in [1, 3, 10] {
                let link = Link {
                    rate: Rate::from_mbps(mbps),
                    rtt: Duration::from_millis(rtt),
                    outage: Duration::from_secs(outage),
                    until: Time::from_millis(130_000),
                    ..Link::fast()
                };
                let spec = std::format!("{spec},min_rtt_window={window}");
                let seen = run(link, &[(&spec, Time::ZERO)], |_, now, cca| {
                    let Controller::Copa(copa) = cca else { panic!("it is Copa") };
                    assert!(!copa.is_competitive(), "{spec} at {now}: alone");
                });
                let used = seen.shares[0] * 20.0 / (20 - outage) as f64;
                std::println!("{spec}, {mbps} Mbit/s, {rtt} ms, {outage} s: {used:.3}");
                assert!(used >= 0.9, "{spec}, {mbps} Mbit/s, {rtt} ms, {outage} s: {used}");
            }
        }
    }
}

/// expected.md P12: next to a flow that fills the queue it competes, and stops when alone.
#[test]
fn competes_only_with_flows_that_fill_the_queue() {
    let link = Link { buffer: 160, until: Time::from_millis(40_000), ..Link::fast() };
    let share = |spec: &str| {
        let (mut competing, mut seen) = (0, 0);
        let flows = [(spec, Time::ZERO), ("newreno", Time::from_millis(5_000))];
        let outcome = run(link, &flows, |flow, now, cca| {
            if let Controller::Copa(copa) = cca {
                assert_eq!(flow, 0);
                if now < Time::from_millis(5_000) {
                    assert!(!copa.is_competitive(), "alone at {now}");
                } else if now > Time::from_millis(10_000) {
                    competing += u32::from(copa.is_competitive());
                    seen += 1;
                }
            }
        });
        (outcome.shares[0], f64::from(competing) / f64::from(seen))
    };
    let (claimed, competing) = share("copa");
    assert!(competing > 0.8, "{competing}");
    assert!(claimed > 0.2, "{claimed}");
    let (yielded, competing) = share("copa:competitive=0");
    assert_eq!(competing, 0.0);
    assert!(yielded < claimed / 2.0, "{yielded} against {claimed}");
}

/// Where the buffer is smaller than the queue that delta asks for, slow start ends, and the loss
/// knob spares the buffer.
#[test]
fn small_buffers() {
    let link = Link { rate: Rate::from_mbps(12.0), buffer: 20, ..Link::fast() };
    let ignoring = bulk(link, &["copa:mvfst"]);
    let heeding = bulk(link, &["copa:mvfst,loss_beta=0.7"]);
    assert!(ignoring.loss > 0.02, "{ignoring:?}");
    assert!(heeding.loss < 0.6 * ignoring.loss, "{heeding:?} against {ignoring:?}");
    assert!(heeding.shares[0] > 0.9, "{heeding:?}");
}

#[test]
fn knobs_of_start_and_restart_work() {
    let mut copa = Copa::new(&Config::with_mss(MSS, 0));
    set_knob(&mut copa, "initial_window", 32.0).unwrap();
    assert_eq!(copa.window(), MSS * 32);
    let now = Time::from_millis(20);
    copa.on_ack(&acked(now, Time::ZERO, MSS, Duration::from_millis(20)));
    assert_eq!(copa.window(), MSS * 33);
    assert_eq!(copa.pacing_rate(), Some(Rate::from_bytes_per_sec(2 * 33 * 1500 * 50)));
    set_knob(&mut copa, "initial_window", 10.0).unwrap();
    assert_eq!(copa.window(), MSS * 33, "nothing to start any more");

    let idle = Idle { now, idle: Duration::from_secs(9), rto: Duration::from_millis(200) };
    copa.slow_start = false;
    copa.on_idle(&idle);
    assert_eq!((copa.window(), copa.phase()), (MSS * 33, Phase::Steady));
    set_knob(&mut copa, "restart", 0.1).unwrap();
    set_knob(&mut copa, "restart_probe", 1.0).unwrap();
    copa.on_idle(&idle);
    assert_eq!((copa.window(), copa.phase()), (MSS * 10, Phase::SlowStart));
}

/// expected.md P15, and the knobs that depart from it.
#[test]
fn losses_and_timeouts() {
    let mut copa = steady(0.5, 100.0);
    let at = Time::from_millis;
    let ack = |now: u64| acked(at(now), at(now - 20), MSS * 50, Duration::from_millis(20));
    copa.tally[1].acked = MSS * 49;
    copa.on_loss(&lost(at(1), at(1)));
    assert_eq!(copa.window(), MSS * 100, "ignored by default");
    set_knob(&mut copa, "loss_beta", 0.5).unwrap();
    set_knob(&mut copa, "loss_tolerance", 0.05).unwrap();
    copa.on_loss(&lost(at(2), at(2)));
    assert_eq!(copa.window(), MSS * 100, "two of 51 packets are below the tolerance");
    set_knob(&mut copa, "loss_tolerance", 0.01).unwrap();
    copa.on_loss(&lost(at(3), at(3)));
    assert_eq!(copa.window(), MSS * 50);
    copa.on_loss(&lost(at(4), at(3)));
    assert_eq!(copa.window(), MSS * 50, "the same episode");
    copa.on_ack(&ack(40));
    copa.on_timeout(&timed_out(at(300)));
    assert_eq!((copa.window(), copa.phase()), (MSS * 2, Phase::SlowStart));
}

/// What a drain showed above the minimum is the path's, as long as no lower sample comes: the base
/// of the queueing delay (§2.1) is the minimum and that.
#[test]
fn what_a_drained_queue_shows_counts_as_the_path() {
    let us = Duration::from_micros;
    let mut copa = steady(0.5, 40.0);
    let see = |copa: &mut Copa, rtt: u64| {
        copa.observe(&acked(Time::from_millis(50), Time::from_millis(30), MSS, us(rtt)));
    };
    see(&mut copa, 20_000);
    see(&mut copa, 21_000);
    let drain = |rtt_min: u64| {
        let now = Time::from_millis(40);
        Drain { path: 0.0, held: 0.0, from: now, until: now, rtt_min: us(rtt_min) }
    };
    copa.take_residue(&drain(20_800));
    assert_eq!((copa.residue, copa.base()), (us(800), Some(us(20_800))));
    assert_eq!(copa.delays(), Some((0.02, 0.0)), "a queueing delay is never negative");
    see(&mut copa, 20_900);
    assert_eq!(copa.residue, us(800), "a higher sample tells nothing");
    see(&mut copa, 20_300);
    assert_eq!(copa.base(), Some(us(20_300)), "a lower one does");
    copa.residue = Duration::ZERO;
    copa.take_residue(&drain(21_001));
    assert_eq!(copa.residue, Duration::ZERO, "more than the slack of 1 ms may be others' queue");
    // Where the slack holds few packets, they may be of others: 10 packets in 20 ms are 0.5 per ms.
    let mut few = steady(0.5, 10.0);
    see(&mut few, 20_000);
    few.take_residue(&drain(21_000));
    assert_eq!(few.residue, Duration::ZERO);
}

/// 2 · window · delta · queueing ≥ standing: with delta 0.5 and 20 ms, 1 ms holds from 20 packets
/// on.
#[test]
fn a_queue_holds_the_rate_down_by_what_the_rule_allows() {
    let ms = Duration::from_millis;
    let held = |delta: f64, packets: f64| {
        let mut copa = steady(delta, packets);
        copa.observe(&acked(Time::from_millis(50), Time::from_millis(30), MSS, ms(20)));
        copa.is_held_by(ms(1))
    };
    assert!(held(0.5, 20.1) && !held(0.5, 19.9));
    assert!(held(0.05, 201.0) && !held(0.05, 199.0));
    assert!(!Copa::new(&Config::with_mss(MSS, 0)).is_held_by(ms(1)), "nothing was measured");
}

/// After a silence longer than any round trip the queue is no sign of others, and what was in
/// flight tells nothing of the path.
#[test]
fn a_link_that_stood_still_is_no_sign_of_others() {
    let (at, ms) = (Time::from_millis, Duration::from_millis);
    let mut copa = steady(0.5, 40.0);
    let ack = |now: u64, rtt: u64| acked(at(now), at(now - rtt), MSS, ms(rtt));
    copa.observe(&ack(100, 40));
    copa.observe(&ack(140, 40));
    assert_eq!(copa.heard_again_at, Time::ZERO, "no longer than the round-trip time");
    copa.observe(&ack(181, 40));
    assert_eq!(copa.heard_again_at, at(181));
    let full = |copa: &Copa, now| copa.mode.wants_drain(at(now), ms(40), ms(100_000), true);
    assert!(!full(&copa, 381) && full(&copa, 382), "five round trips from then on");
    copa.heed_silence(&ack(220, 40));
    copa.heed_silence(&ack(221, 40));
    assert!(!full(&copa, 420) && full(&copa, 421), "what was sent at 181 did not wait");
}

/// RFC 3168 §5 by the bound of RFC 9438 §4.6: 0.7 of the window, and slow start ends.
#[test]
fn a_mark_bounds_the_window_and_ends_slow_start() {
    let (at, ms) = (Time::from_millis, Duration::from_millis);
    let mut copa = Copa::new(&Config::with_mss(MSS, 0));
    copa.window = 100.0 * copa.mss;
    let (inflight, prior_inflight) = (MSS * 100, MSS * 100);
    let marked = Marked { now: at(50), newest_sent_at: at(30), inflight, prior_inflight };
    copa.on_marked(&marked);
    assert_eq!((copa.window(), copa.phase()), (MSS * 70, Phase::Steady));
    copa.on_marked(&Marked { now: at(55), newest_sent_at: at(40), ..marked });
    assert_eq!(copa.window(), MSS * 70, "once in a round trip");
    // Without a queue Copa would grow; the bound grows by 9/17 of a packet in a window.
    let mut now = 71;
    for _ in 0..180 {
        now += 1;
        copa.on_ack(&acked(at(now), at(now - 20), MSS, ms(20)));
    }
    assert_eq!(copa.window(), MSS * 71, "the bound rose after 17/9 × 70 = 132 packets");
    // A bound that does not limit stays where it is.
    let mut free = copa.clone();
    free.window = 60.0 * free.mss;
    for _ in 0..400 {
        now += 1;
        let ack = acked(at(now), at(now - 20), MSS, ms(20));
        free.raise_ceiling(&ack);
        copa.raise_ceiling(&Ack { cwnd_limited: false, ..ack });
    }
    assert_eq!((free.ceiling.get(), copa.ceiling.get()), (MSS * 71, MSS * 71));
}

/// Heavy loss is more than a tenth of two rounds' packets, and three at least.
#[test]
fn a_tenth_of_the_packets_is_heavy_loss() {
    let heavy = |lost: u64, acked: u64| {
        let mut copa = steady(0.5, 40.0);
        copa.tally[0] = Tally { lost: MSS * (lost / 2), acked: MSS * (acked / 2) };
        copa.tally[1] = Tally { lost: MSS * (lost - lost / 2), acked: MSS * (acked - acked / 2) };
        copa.loses_heavily()
    };
    assert!(heavy(3, 26) && !heavy(3, 27), "3 of 30 are a tenth, and no more");
    assert!(!heavy(2, 2), "two are noise");
    let mut copa = steady(0.5, 40.0);
    copa.tally[0] = Tally { lost: MSS * 9, acked: MSS };
    copa.on_round();
    assert_eq!(copa.loss_share(), 0.0, "two rounds ago");
}
