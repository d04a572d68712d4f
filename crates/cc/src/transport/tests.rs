mod model;

use std::vec::Vec;

use proptest::prelude::*;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::{Fate, Packet, Tracker};
use crate::Ack;

const SIZE: Bytes = Bytes::new(1000);
const RTT: Duration = Duration::from_millis(40);

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Sends a packet of 1000 bytes at each of these times.
fn sent(tracker: &mut Tracker, times: &[u64]) -> Vec<Packet> {
    times.iter().map(|&ms| tracker.on_sent(at(ms), SIZE).0).collect()
}

/// An acknowledgement of these packets.
fn ack(tracker: &mut Tracker, ms: u64, packets: &mut [Packet]) -> Option<Ack> {
    for packet in packets {
        tracker.on_acked(packet);
    }
    tracker.end_ack(at(ms), RTT, RTT)
}

/// Ten packets leave 1 ms apart and come back 2 ms apart. The sample of each is what was delivered
/// since it was sent, over the longer of the two intervals (draft-cheng §2.2): the
/// acknowledgements'.
#[test]
fn a_sample_takes_the_slower_of_sending_and_arriving() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let rates: Vec<_> = (0..10)
        .map(|i| ack(&mut tracker, 40 + 2 * i as u64, &mut packets[i..=i]).unwrap().rate.unwrap())
        .collect();
    // All were sent before anything was delivered: 10,000 bytes since time 0.
    assert_eq!(rates[9].delivered, SIZE * 10);
    assert_eq!(rates[9].interval, Duration::from_millis(58));
    // Now two more, sent as the last arrived, 9 ms apart, that arrive 1 ms apart: a burst of
    // acknowledgements, which the sending interval bounds.
    let mut more = sent(&mut tracker, &[58, 67]);
    ack(&mut tracker, 107, &mut more[..1]);
    let (mut third, _) = tracker.on_sent(at(107), SIZE);
    ack(&mut tracker, 108, &mut more[1..]);
    let rate = ack(&mut tracker, 148, core::slice::from_mut(&mut third)).unwrap().rate.unwrap();
    assert_eq!((rate.delivered, rate.interval), (SIZE * 2, Duration::from_millis(49)));
    assert_eq!(rate.rate(), Rate::from_bytes_per_sec(2_000_000 / 49));
}

/// An interval that is shorter than the lowest round-trip time is no sample (draft-cheng §3.3).
#[test]
fn acknowledgements_that_were_held_up_together_are_no_sample() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0]);
    assert!(ack(&mut tracker, 39, &mut packets).unwrap().rate.is_none());
    let mut packets = sent(&mut tracker, &[100]);
    assert!(ack(&mut tracker, 140, &mut packets).unwrap().rate.is_some());
}

/// What is sent while the application has no more to send is marked until it has arrived
/// (draft-cheng §3.4).
#[test]
fn samples_of_a_slow_application_are_marked() {
    let mut tracker = Tracker::new();
    let mut before = sent(&mut tracker, &[0]);
    tracker.on_app_limited();
    let (mut during, event) = tracker.on_sent(at(10), SIZE);
    assert!(event.app_limited);
    assert!(!ack(&mut tracker, 40, &mut before).unwrap().rate.unwrap().app_limited);
    let rate = ack(&mut tracker, 50, core::slice::from_mut(&mut during)).unwrap().rate.unwrap();
    assert!(rate.app_limited);
    assert!(!tracker.on_sent(at(60), SIZE).1.app_limited, "all that was in flight has arrived");
}

/// After an idle time the clocks start anew: it is no part of an interval (draft-cheng §3.2).
#[test]
fn idle_times_are_no_part_of_an_interval() {
    let mut tracker = Tracker::new();
    let mut first = sent(&mut tracker, &[0]);
    ack(&mut tracker, 40, &mut first);
    let mut second = sent(&mut tracker, &[1000]);
    let rate = ack(&mut tracker, 1040, &mut second).unwrap().rate.unwrap();
    assert_eq!(rate.interval, RTT);
}

#[test]
fn batches_tell_what_was_in_flight_before_and_after() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0, 1, 2, 3, 4, 5]);
    tracker.on_acked(&mut packets[4]);
    tracker.on_acked(&mut packets[5]);
    let first = tracker.on_lost(at(45), &mut packets[0], true).unwrap();
    let second = tracker.on_lost(at(45), &mut packets[1], false).unwrap();
    assert_eq!((first.lost_since_sent, second.lost_since_sent), (SIZE, SIZE * 2));
    assert_eq!((first.tx_in_flight, second.tx_in_flight), (SIZE, SIZE * 2));
    let loss = tracker.end_losses(at(45)).unwrap();
    assert_eq!((loss.lost, loss.newest_sent_at), (SIZE * 2, at(1)));
    assert_eq!((loss.prior_inflight, loss.inflight), (SIZE * 4, SIZE * 2));
    let marked = tracker.on_ce_count(at(45), 3).unwrap();
    assert_eq!((marked.prior_inflight, marked.inflight), (SIZE * 6, SIZE * 2));
    assert_eq!(marked.newest_sent_at, at(5));
    let ack = tracker.end_ack(at(45), RTT, RTT).unwrap();
    assert_eq!((ack.prior_inflight, ack.inflight, ack.acked), (SIZE * 6, SIZE * 2, SIZE * 2));
    assert_eq!((ack.rtt, ack.newest_sent_at), (Some(RTT), at(5)));
    assert_eq!(ack.rate.unwrap().lost, SIZE * 2, "losses that it reveals count");
    assert!(tracker.end_losses(at(45)).is_none() && tracker.end_ack(at(45), RTT, RTT).is_none());
    assert!(tracker.on_ce_count(at(46), 3).is_none(), "no mark is new");
}

/// RFC 9002 §5.1.
#[test]
fn only_a_new_largest_packet_measures_the_round_trip() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0, 1]);
    assert!(ack(&mut tracker, 41, &mut packets[1..]).unwrap().rtt.is_some());
    tracker.on_acked(&mut packets[0]);
    assert_eq!(tracker.rtt_sample(at(42)), None);
    assert_eq!(tracker.end_ack(at(42), RTT, RTT).unwrap().rtt, None);
}

#[test]
fn a_window_in_use_is_told_of_what_was_sent_by_then() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0]);
    tracker.on_window_limited();
    packets.extend(sent(&mut tracker, &[1]));
    assert!(ack(&mut tracker, 40, &mut packets[..1]).unwrap().cwnd_limited);
    assert!(!ack(&mut tracker, 41, &mut packets[1..]).unwrap().cwnd_limited);
}

#[test]
fn a_loss_that_arrives_is_delivered_and_leaves_flight_once() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0, 1]);
    tracker.on_lost(at(50), &mut packets[0], true);
    tracker.end_losses(at(50));
    assert_eq!(tracker.on_acked(&mut packets[0]), Fate::Lost);
    assert_eq!(tracker.on_acked(&mut packets[0]), Fate::Acked);
    let ack = tracker.end_ack(at(60), RTT, RTT).unwrap();
    assert_eq!((ack.acked, ack.inflight, ack.prior_inflight), (SIZE, SIZE, SIZE));
    assert_eq!((tracker.lost(), tracker.spurious(), tracker.delivered()), (SIZE, SIZE, SIZE));
}

/// RFC 5682: a timeout that was none.
#[test]
fn what_was_written_off_comes_back_into_flight() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0, 1]);
    for packet in &mut packets {
        tracker.on_lost(at(300), packet, true);
    }
    let timeout = tracker.end_losses(at(300)).unwrap().timeout();
    assert_eq!((timeout.prior_inflight, timeout.inflight), (SIZE * 2, Bytes::ZERO));
    tracker.restore(&mut packets[1]);
    assert_eq!((tracker.inflight(), tracker.lost()), (SIZE, SIZE));
    assert_eq!(tracker.on_acked(&mut packets[1]), Fate::InFlight);
}

/// RFC 9002 §6.4.
#[test]
fn discarded_packets_leave_flight_without_a_loss() {
    let mut tracker = Tracker::new();
    let mut packets = sent(&mut tracker, &[0, 1]);
    let discarded = tracker.on_discarded(at(10), &mut packets[0]).unwrap();
    assert_eq!((discarded.bytes, discarded.inflight), (SIZE, SIZE));
    assert!(tracker.on_lost(at(20), &mut packets[0], true).is_none());
    assert!(tracker.end_losses(at(20)).is_none());
    assert_eq!((tracker.lost(), tracker.discarded()), (Bytes::ZERO, SIZE));
}

/// RFC 9000 §9.4.
#[test]
fn packets_of_another_path_say_nothing_of_this_one() {
    let mut tracker = Tracker::new();
    let mut old = sent(&mut tracker, &[0, 1]);
    tracker.on_path_change();
    assert_eq!((tracker.inflight(), tracker.discarded()), (Bytes::ZERO, SIZE * 2));
    let mut new = sent(&mut tracker, &[50]);
    assert!(ack(&mut tracker, 55, &mut old[..1]).is_none());
    assert!(tracker.on_lost(at(56), &mut old[1], true).is_none());
    let ack = ack(&mut tracker, 90, &mut new).unwrap();
    assert_eq!((ack.delivered, ack.rate.unwrap().interval), (SIZE, RTT));
}

/// A stack that acknowledges by bytes keeps one record for what it sent at once.
#[test]
fn a_batch_is_acknowledged_in_parts() {
    let mut tracker = Tracker::new();
    let (batch, _) = tracker.on_sent(at(0), SIZE * 4);
    tracker.on_acked(&mut batch.part(SIZE));
    tracker.on_lost(at(40), &mut batch.part(SIZE * 2), true);
    tracker.end_losses(at(40));
    assert_eq!(tracker.end_ack(at(40), RTT, RTT).unwrap().acked, SIZE);
    assert_eq!((tracker.inflight(), tracker.lost()), (SIZE, SIZE * 2));
}

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    Packet(prop::sample::Index, What),
    EndAck,
    EndLosses,
    AppLimited,
    WindowLimited,
    Path,
}

#[derive(Clone, Debug)]
enum What {
    Acked,
    AckedInPart(u64),
    Lost,
    Discarded,
    Restored,
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![
        6 => Just(What::Acked),
        1 => (0u64..9000).prop_map(What::AckedInPart),
        3 => Just(What::Lost),
        1 => Just(What::Discarded),
        1 => Just(What::Restored),
    ];
    prop_oneof![
        6 => (0u64..9000).prop_map(Step::Send),
        12 => (any::<prop::sample::Index>(), what).prop_map(|(i, what)| Step::Packet(i, what)),
        3 => Just(Step::EndAck),
        2 => Just(Step::EndLosses),
        1 => Just(Step::AppLimited),
        1 => Just(Step::WindowLimited),
        1 => Just(Step::Path),
    ]
}

proptest! {
    /// Whatever a transport calls, in whatever order: every byte that was sent has one fate, no
    /// sample is of no time, and none is faster than all bytes that were ever sent since its packet
    /// was.
    #[test]
    fn every_byte_has_one_fate(steps in prop::collection::vec((step(), 0u64..30), 1..200)) {
        let mut tracker = Tracker::new();
        let mut packets = Vec::new();
        let (mut now, mut restored) = (Time::ZERO, false);
        for (step, ms) in steps {
            now += Duration::from_millis(ms);
            match step {
                Step::Send(bytes) => packets.push(tracker.on_sent(now, Bytes::new(bytes)).0),
                Step::EndLosses => {
                    if let Some(loss) = tracker.end_losses(now) {
                        prop_assert!(loss.newest_sent_at <= now);
                        prop_assert!(loss.timeout().inflight == loss.inflight);
                    }
                }
                Step::AppLimited => tracker.on_app_limited(),
                Step::WindowLimited => tracker.on_window_limited(),
                Step::Path => {
                    tracker.on_path_change();
                    prop_assert!(tracker.inflight().is_zero());
                }
                Step::EndAck => {
                    if let Some(ack) = tracker.end_ack(now, RTT, Duration::ZERO) {
                        prop_assert!(ack.delivered == tracker.delivered());
                        if let Some(rate) = ack.rate {
                            prop_assert!(!rate.interval.is_zero());
                            prop_assert!(rate.delivered <= tracker.sent() - rate.prior_delivered);
                        }
                    }
                }
                Step::Packet(which, what) if !packets.is_empty() => {
                    let packet = which.get_mut(&mut packets);
                    match what {
                        What::Acked => {
                            tracker.on_acked(packet);
                            prop_assert_eq!(packet.fate(), Fate::Acked);
                        }
                        What::Lost => {
                            let lost = tracker.on_lost(now, packet, true);
                            // What was restored since it was sent is no loss any more.
                            let counts = lost.is_none_or(|l| l.lost_since_sent >= l.bytes);
                            prop_assert!(restored || counts);
                        }
                        What::Discarded => {
                            tracker.on_discarded(now, packet);
                        }
                        What::Restored => {
                            tracker.restore(packet);
                            restored = true;
                        }
                        What::AckedInPart(bytes) => {
                            tracker.on_acked(&mut packet.part(Bytes::new(bytes)));
                        }
                    }
                }
                Step::Packet(..) => {}
            }
            let kept = tracker.lost() - tracker.spurious();
            let fates = [tracker.inflight(), tracker.delivered(), kept, tracker.discarded()];
            prop_assert_eq!(tracker.sent(), fates.into_iter().sum());
            prop_assert!(tracker.spurious() <= tracker.lost());
        }
    }
}
