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

impl Path {
    /// Feedback arrived on these packets, which are in the order of their numbers. A packet that is
    /// reported a second time is passed over.
    ///
    /// A sender of media waits for its encoder between frames. It uses its window if at least half
    /// of it is in flight; otherwise the application limits it (RFC 9002 §7.8).
    pub fn on_feedback(&mut self, now: Instant, reported: &[Reported]) {
        self.settle();
        self.now = self.at(now);
        self.smoothed = self.rtt.map_or(Duration::ZERO, |(smoothed, _)| smoothed);
        let prior = self.tracker.inflight();
        let mut arrivals = Vec::with_capacity(reported.len());
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
                    any_marked |= marked;
                    // Without a time it is acknowledged, and no arrival.
                    let Some(at) = at else { continue };
                    arrival.arrived_at = Some(receiver_time(at));
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
        let rtt = self.tracker.rtt_sample(self.now);
        self.waiting = Some(prior * 2 < self.offered());
        self.settle();
        let inflight = self.tracker.inflight();
        self.driver.on_feedback(&Feedback { now: self.now, packets: &arrivals, rtt, inflight });
        self.driver.decide();
    }

    /// No feedback came for long: all that is in flight is lost, and nothing that was learnt of the
    /// path can be trusted (RFC 9002 §7.6).
    pub fn on_silence(&mut self, now: Instant) {
        self.settle();
        self.now = self.at(now);
        while let Some(mut packet) = self.packets.take_stale(Time::MAX) {
            self.take_lost(&mut packet);
        }
        self.end_losses(true);
        self.driver.decide();
    }

    /// The bitrate that an encoder should fill, headers included. `None` where the algorithm sets
    /// none and no round trip was measured yet.
    pub fn target(&mut self) -> Option<Rate> {
        self.settle();
        self.encoder_rate()
    }

    pub(super) fn encoder_rate(&self) -> Option<Rate> {
        match self.rtt {
            Some((srtt, _)) if !srtt.is_zero() => Some(self.driver.encoder_rate(srtt)),
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
