//! A stack of media, as WebRTC's are: feedback reports the fate of each packet and when the receiver
//! got it (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1, RFC 8888 §3.1).
//!
//! Such a stack sends what an encoder makes, so an encoder has to learn the rate
//! ([`Path::target`]). It has timers, so the path need not wait for the next packet
//! ([`Path::next_timer`]).

use std::time::{Duration as StdDuration, Instant};

use trimtab_cc::{Arrival, Feedback, Probe};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::Path;

/// The fate of a packet, as the receiver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The packet's number, as [`Path::on_sent`] got it.
    pub number: u64,
    /// What became of it.
    pub fate: ReportedFate,
    /// The probe of which it is a part, by [`Probe::id`].
    pub probe: Option<u32>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedFate {
    /// It arrived.
    Arrived {
        /// When, by the receiver's clock, whose origin is anywhere; `None` where that was not told.
        at: Option<StdDuration>,
        /// Whether it arrived with a congestion mark (CE).
        marked: bool,
    },
    /// It is missing, while a later one arrived.
    Missing,
}

/// Packets are remembered for so long where no feedback comes (libwebrtc,
/// `TransportFeedbackAdapter`, `kSendTimeHistoryWindow`).
const KEPT: Duration = Duration::from_secs(60);

impl Path {
    /// Feedback arrived on these packets, which are in the order of their numbers. A packet that is
    /// reported a second time is passed over.
    ///
    /// A sender of media waits for its encoder between frames. It uses its window if at least half
    /// of it is in flight; otherwise the application limits it (RFC 9002 §7.8). Of an algorithm with
    /// a target, [`on_drained`](Path::on_drained) tells.
    pub fn on_feedback(&mut self, now: Instant, reported: &[Reported]) {
        self.settle();
        self.now = self.at(now);
        self.smoothed = self.rtt.map_or(Duration::ZERO, |(smoothed, _)| smoothed);
        let prior = self.tracker.inflight();
        let mut arrivals = Vec::with_capacity(reported.len());
        let (mut turnarounds, mut newest) = ((Duration::ZERO, 0), None);
        let (mut missing, mut any_marked) = (Vec::new(), false);
        for report in reported {
            let Some(mut packet) = self.packets.take_oldest(report.number) else { continue };
            let mut arrival = Arrival {
                sent_at: packet.sent_at(),
                arrived_at: None,
                bytes: packet.size(),
                probe: report.probe,
                marked: false,
            };
            match report.fate {
                ReportedFate::Arrived { at, marked } => {
                    self.prior_inflight.get_or_insert(prior);
                    self.tracker.on_acked(&mut packet);
                    turnarounds.0 += self.now.since(packet.sent_at());
                    turnarounds.1 += 1;
                    any_marked |= marked;
                    // Without a time it is acknowledged, and no arrival.
                    let Some(at) = at.map(receiver_time) else { continue };
                    newest = Some((packet.sent_at(), at));
                    arrival.arrived_at = Some(at);
                    arrival.marked = marked;
                }
                ReportedFate::Missing => missing.push((report.number, packet)),
            }
            arrivals.push(arrival);
        }
        if arrivals.is_empty() && self.prior_inflight.is_none() {
            return;
        }
        for (number, mut packet) in missing {
            if let Some(trace) = &mut self.trace {
                trace.on_packet_lost(self.now, number, packet.size());
            }
            self.take_lost(&mut packet);
        }
        self.end_losses(false);
        if any_marked {
            self.on_marked(now, now);
        }
        if turnarounds.1 > 0 {
            self.reports.took(turnarounds.0 / turnarounds.1, turnarounds.1);
        }
        if self.tracker.rtt_sample(self.now).is_some() {
            let of = |(sent_at, at)| self.reports.round_trip(self.now, sent_at, at);
            self.sample = newest.map(of);
        }
        let rtt = self.sample;
        self.waiting = Some(self.driver.target().is_none() && prior * 2 < self.offered());
        self.settle();
        let inflight = self.tracker.inflight();
        self.driver.on_feedback(&Feedback { now: self.now, packets: &arrivals, rtt, inflight });
        self.driver.decide();
    }

    /// Nothing waits to be sent, and the application can use so much. It limits the sender where an
    /// algorithm's target is more. Else its encoder fills the target.
    pub fn on_drained(&mut self, most: Rate) {
        self.settle();
        if self.driver.target().is_some_and(|target| target >= most) {
            self.tracker.on_app_limited();
        }
    }

    /// No feedback came for long: all that is in flight is lost, and nothing that was learnt of the
    /// path can be trusted (RFC 9002 §7.6).
    pub fn on_silence(&mut self, now: Instant) {
        self.settle();
        self.now = self.at(now);
        self.discard_older(self.now - KEPT);
        // Feedback that comes after all still tells their fate.
        let mut packets = std::mem::take(&mut self.packets);
        packets.iter_mut().for_each(|packet| self.take_lost(packet));
        self.packets = packets;
        self.end_losses(true);
        self.driver.decide();
    }

    /// The bitrate that an encoder should fill, headers included. `None` where the algorithm sets
    /// none and no round trip was measured yet.
    pub fn target(&mut self) -> Option<Rate> {
        self.settle();
        self.encoder_rate()
    }

    /// The algorithm's own target; `None` of one that has a window.
    pub fn own_target(&self) -> Option<Rate> {
        self.driver.target()
    }

    /// A window lets so much pass as it holds in the mean time from a packet's sending to its report
    /// (Little's law). Receivers report in batches, so that is more than the round-trip time, which
    /// the newest packet of a batch measures.
    pub(super) fn encoder_rate(&self) -> Option<Rate> {
        match self.reports.turnaround().or(self.rtt.map(|(srtt, _)| srtt)) {
            Some(time) if !time.is_zero() => Some(self.driver.encoder_rate(time)),
            _ => self.driver.target(),
        }
    }

    /// The probe that is to leave now, once ([`Probe`]).
    pub fn take_probe(&mut self, now: Instant) -> Option<Probe> {
        self.now = self.at(now);
        self.driver.take_probe(self.now)
    }

    /// Bytes in flight.
    pub fn inflight(&self) -> Bytes {
        self.tracker.inflight()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.map(|(smoothed, _)| smoothed)
    }

    /// When [`on_timer`](Self::on_timer) has something to do; `None` for never.
    pub fn next_timer(&self) -> Option<Instant> {
        let at = self.driver.next_timer()?;
        Some(self.epoch + StdDuration::from_nanos(at.as_nanos()))
    }

    /// That time has come.
    pub fn on_timer(&mut self, now: Instant) {
        self.settle();
        self.now = self.at(now);
        self.steer();
    }
}

/// A time by the receiver's clock.
fn receiver_time(at: StdDuration) -> Time {
    Time::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX))
}
