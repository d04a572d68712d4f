//! The tracker next to a model of it that sums over all packets, each time anew.

use std::vec::Vec;

use proptest::prelude::*;
use trimtab_units::{Bytes, Duration, Time};

use super::{RTT, Step, What, step};
use crate::transport::{Fate, Packet, Tracker};
use crate::{Ack, RateSample};

/// A packet as the model remembers it.
#[derive(Clone, Debug)]
struct Sent {
    at: Time,
    size: Bytes,
    fate: Fate,
    /// It was declared lost, and nothing took that back.
    lost: bool,
    /// Sums as it left, itself included in what is in flight.
    delivered: Bytes,
    lost_by_then: Bytes,
    inflight: Bytes,
    app_limited: bool,
    /// Sent since the connection took its path.
    here: bool,
    /// How much had happened by then.
    history: usize,
}

/// What restarts the clocks of a sample (draft-cheng §3.2, §3.3).
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Something was sent while nothing was in flight.
    Idle(Time),
    /// An acknowledgement came, whose newest packet was sent then.
    Acked(Time, Time),
}

#[derive(Default)]
struct Model {
    packets: Vec<Sent>,
    history: Vec<Moment>,
    /// Samples are the application's until more than this was delivered.
    limited_until: Option<Bytes>,
    window_limited: usize,
    largest: Option<usize>,
    /// Packets that the present acknowledgement covers; the largest and what was in flight before
    /// it.
    pending: Vec<usize>,
    prior: (Option<usize>, Bytes),
    losing: Vec<usize>,
    losing_prior: Bytes,
}

impl Model {
    fn sum(&self, of: impl Fn(&Sent) -> bool) -> Bytes {
        self.packets.iter().filter(|p| of(p)).map(|p| p.size).sum()
    }

    fn inflight(&self) -> Bytes {
        self.sum(|p| p.fate == Fate::InFlight)
    }

    fn delivered(&self) -> Bytes {
        self.sum(|p| p.fate == Fate::Acked)
    }

    fn lost(&self) -> Bytes {
        self.sum(|p| p.lost)
    }

    fn sent(&mut self, at: Time, size: Bytes) {
        let before = self.inflight();
        if before.is_zero() {
            self.history.push(Moment::Idle(at));
        }
        let packet = Sent {
            at,
            size,
            fate: Fate::InFlight,
            lost: false,
            delivered: self.delivered(),
            lost_by_then: self.lost(),
            inflight: before + size,
            app_limited: self.limited_until.is_some(),
            here: true,
            history: self.history.len(),
        };
        self.packets.push(packet);
    }

    fn packet(&mut self, number: usize, what: &What) {
        let before = self.inflight();
        let packet = &mut self.packets[number];
        if !packet.here {
            return;
        }
        match what {
            What::Acked if packet.fate != Fate::Acked => {
                packet.fate = Fate::Acked;
                if self.pending.is_empty() {
                    self.prior = (self.largest, before);
                }
                self.pending.push(number);
                self.largest = self.largest.max(Some(number));
            }
            What::Lost if packet.fate == Fate::InFlight => {
                (packet.fate, packet.lost) = (Fate::Lost, true);
                if self.losing.is_empty() {
                    self.losing_prior = before;
                }
                self.losing.push(number);
            }
            What::Discarded if packet.fate == Fate::InFlight => packet.fate = Fate::Discarded,
            What::Restored if matches!(packet.fate, Fate::Lost | Fate::Discarded) => {
                (packet.fate, packet.lost) = (Fate::InFlight, false);
            }
            _ => {}
        }
    }

    fn path(&mut self) {
        for packet in &mut self.packets {
            packet.here = false;
            if packet.fate == Fate::InFlight {
                packet.fate = Fate::Discarded;
            }
        }
        self.pending.clear();
        self.losing.clear();
        self.limited_until = None;
        self.window_limited = 0;
    }

    fn acked(&mut self, now: Time) -> Option<Ack> {
        let pending = std::mem::take(&mut self.pending);
        let &newest = pending.iter().max()?;
        let delivered = self.delivered();
        self.limited_until = self.limited_until.filter(|&until| delivered <= until);
        let advances = Some(newest) > self.prior.0;
        let packet = &self.packets[newest];
        let (delivered_at, first_sent_at) = match self.history[packet.history - 1] {
            Moment::Idle(at) => (at, at),
            Moment::Acked(at, sent_at) => (at, sent_at),
        };
        let interval = now.since(delivered_at).max(packet.at.since(first_sent_at));
        let rate = (!interval.is_zero() && interval >= RTT / 2).then(|| RateSample {
            delivered: delivered - packet.delivered,
            interval,
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
            tx_in_flight: packet.inflight,
            lost: self.lost() - packet.lost_by_then,
        });
        let ack = Ack {
            now,
            acked: pending.iter().map(|&number| self.packets[number].size).sum(),
            rtt: advances.then(|| now.since(packet.at)),
            srtt: RTT,
            min_rtt: RTT / 2,
            inflight: self.inflight(),
            prior_inflight: self.prior.1,
            delivered,
            newest_sent_at: packet.at,
            rate,
            cwnd_limited: newest < self.window_limited,
            in_recovery: false,
        };
        self.history.push(Moment::Acked(now, packet.at));
        Some(ack)
    }

    /// Bytes lost, when the newest of them was sent, and what was in flight before and after.
    fn losses(&mut self) -> Option<(Bytes, Time, Bytes, Bytes)> {
        let losing = std::mem::take(&mut self.losing);
        let newest = losing.iter().map(|&number| self.packets[number].at).max()?;
        let lost = losing.iter().map(|&number| self.packets[number].size).sum();
        Some((lost, newest, self.losing_prior, self.inflight()))
    }
}

/// Tells both of a step; what comes of it must be the same.
fn both(
    step: &Step,
    now: Time,
    tracker: &mut Tracker,
    packets: &mut Vec<Packet>,
    model: &mut Model,
) -> Result<(), TestCaseError> {
    match step {
        Step::Send(bytes) => {
            packets.push(tracker.on_sent(now, Bytes::new(*bytes)).0);
            model.sent(now, Bytes::new(*bytes));
        }
        Step::AppLimited => {
            tracker.on_app_limited();
            model.limited_until = Some((model.delivered() + model.inflight()).max(Bytes::new(1)));
        }
        Step::WindowLimited => {
            tracker.on_window_limited();
            model.window_limited = packets.len();
        }
        Step::Path => {
            tracker.on_path_change();
            model.path();
        }
        Step::EndAck => {
            let (one, other) = (tracker.end_ack(now, RTT, RTT / 2), model.acked(now));
            prop_assert_eq!(std::format!("{one:?}"), std::format!("{other:?}"));
        }
        Step::EndLosses => {
            let loss = tracker.end_losses(now);
            let loss = loss.map(|l| (l.lost, l.newest_sent_at, l.prior_inflight, l.inflight));
            prop_assert_eq!(loss, model.losses());
        }
        Step::Packet(_, What::AckedInPart(_)) => {}
        Step::Packet(..) if packets.is_empty() => {}
        Step::Packet(which, what) => {
            let number = which.index(packets.len());
            let packet = &mut packets[number];
            match what {
                What::Acked | What::AckedInPart(_) => drop(tracker.on_acked(packet)),
                What::Lost => drop(tracker.on_lost(now, packet, true)),
                What::Discarded => drop(tracker.on_discarded(now, packet)),
                What::Restored => tracker.restore(packet),
            }
            model.packet(number, what);
        }
    }
    Ok(())
}

proptest! {
    /// Sums that are kept are those of all packets, and the events follow from them.
    #[test]
    fn the_books_are_those_of_all_packets(
        steps in prop::collection::vec((step(), 0u64..30), 1..200),
    ) {
        let (mut tracker, mut packets, mut model) = (Tracker::new(), Vec::new(), Model::default());
        let mut now = Time::ZERO;
        for (step, ms) in steps {
            now += Duration::from_millis(ms);
            both(&step, now, &mut tracker, &mut packets, &mut model)?;
            prop_assert_eq!(tracker.inflight(), model.inflight());
            prop_assert_eq!(tracker.delivered(), model.delivered());
            prop_assert_eq!(tracker.lost(), model.lost());
            prop_assert_eq!(tracker.spurious(), model.sum(|p| p.lost && p.fate == Fate::Acked));
            prop_assert_eq!(tracker.discarded(), model.sum(|p| p.fate == Fate::Discarded));
            prop_assert_eq!(tracker.largest_acked(), model.largest.map(|n| n as u64));
        }
    }
}
