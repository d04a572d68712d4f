//! The receiving end: what arrived, what is missing, and what to report of it.

use std::collections::{BTreeMap, VecDeque};

use trimtab_apps::{Call, Protection, VideoPacket};
use trimtab_units::{Bytes, Duration, Time};

use super::FEEDBACK;
use super::content::{Content, Feedback, Report};
use super::parity::Parity;

/// Feedback by RFC 8888 goes with the last packet of a frame, or so long after the first packet that
/// it covers, and so long after the one before (libwebrtc, `CongestionControlFeedbackGenerator`,
/// `min_time_between_feedback_` and `max_time_to_wait_for_packet_with_marker_`).
const FEEDBACK_8888: Duration = Duration::from_millis(25);
/// Arrivals are reported to so much (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1.5) …
const RESOLUTION: Duration = Duration::from_micros(250);
/// … or, by RFC 8888 §3.1, to so many parts of a second.
const PARTS_8888: u64 = 1024;
/// A packet is asked for again after a round trip, at least this long (libwebrtc's `NackRequester`
/// works every 20 ms).
const REPAIR_MIN: Duration = Duration::from_millis(20);
/// … at most so many times (`kMaxNackRetries`).
const REPAIRS_MAX: u32 = 100;
/// More missing packets than this call for a key frame (`kMaxNackPackets`).
const MISSING_MAX: usize = 1000;
/// Reports that are remembered until they arrive.
const REPORTS: usize = 256;

/// A packet that is missing.
#[derive(Clone, Copy, Debug)]
struct Missing {
    ask_at: Time,
    asked: u32,
}

/// The receiving end of a flow of media.
#[derive(Clone, Debug)]
pub(super) struct MediaReceiver {
    rfc8888: bool,
    /// Packets that arrived and were not reported, by number.
    arrived: BTreeMap<u64, Time>,
    /// Packets below were reported, as arrived or missing.
    reported: u64,
    newest_at: Time,
    /// When feedback is due; never while nothing arrived since the last one.
    feedback_at: Time,
    fed_back_at: Time,
    /// When the first packet arrived: the timer of transport-wide feedback begins.
    first_at: Option<Time>,
    /// The next packet of video in sequence, and those before it that are missing.
    next: u64,
    missing: BTreeMap<u64, Missing>,
    /// Something was given up.
    broken: bool,
    parity: Parity,
    reports: VecDeque<(u64, Report)>,
    report: u64,
}

impl MediaReceiver {
    pub(super) fn new(protection: Protection) -> Self {
        Self {
            rfc8888: protection.rfc8888,
            arrived: BTreeMap::new(),
            reported: 0,
            newest_at: Time::ZERO,
            feedback_at: Time::MAX,
            fed_back_at: Time::ZERO,
            first_at: None,
            next: 0,
            missing: BTreeMap::new(),
            broken: false,
            parity: Parity::default(),
            reports: VecDeque::new(),
            report: 0,
        }
    }

    /// A packet arrived. How much of the call is new.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        number: u64,
        content: Content,
        call: &mut Call,
        rtt: Duration,
    ) -> Bytes {
        self.arrived.insert(number, now);
        self.newest_at = now;
        self.schedule(now, &content);
        match content {
            Content::Audio { number, bytes } => {
                call.on_audio(now, number);
                bytes
            }
            Content::Padding { .. } => Bytes::ZERO,
            Content::Parity { first, count, .. } => {
                self.parity.on_parity(first, count);
                Bytes::ZERO
            }
            Content::Video { sequence, packet } => {
                self.on_video(now, sequence, packet, false, call, rtt)
            }
            Content::Again { sequence, packet } => {
                self.on_video(now, sequence, packet, true, call, rtt)
            }
        }
    }

    /// A packet arrived: when feedback on it is due.
    fn schedule(&mut self, now: Time, content: &Content) {
        let first = *self.first_at.get_or_insert(now);
        if !self.rfc8888 {
            let ticks = now.since(first).as_nanos() / FEEDBACK.as_nanos() + 1;
            self.feedback_at = self.feedback_at.min(first + FEEDBACK * ticks);
            return;
        }
        let possible = self.fed_back_at + FEEDBACK_8888;
        let ends =
            matches!(content, Content::Video { packet, .. } if packet.index + 1 == packet.count);
        let due = if ends { now } else { now + FEEDBACK_8888 };
        self.feedback_at = self.feedback_at.min(due.max(possible));
    }

    fn on_video(
        &mut self,
        now: Time,
        sequence: u64,
        packet: VideoPacket,
        again: bool,
        call: &mut Call,
        rtt: Duration,
    ) -> Bytes {
        self.parity.on_video(sequence);
        call.on_video(now, &packet, again, rtt);
        if sequence >= self.next {
            for gap in self.next..sequence {
                self.missing.insert(gap, Missing { ask_at: now, asked: 0 });
            }
            self.next = sequence + 1;
            return packet.bytes;
        }
        if self.missing.remove(&sequence).is_some() { packet.bytes } else { Bytes::ZERO }
    }

    /// A packet of video that parity makes whole, by its sequence number.
    pub(super) fn recover(&mut self) -> Option<u64> {
        self.parity.recover()
    }

    /// A packet that parity made.
    pub(super) fn on_recovered(
        &mut self,
        now: Time,
        sequence: u64,
        packet: VideoPacket,
        call: &mut Call,
        rtt: Duration,
    ) -> Bytes {
        self.on_video(now, sequence, packet, false, call, rtt)
    }

    /// When it has something to report.
    pub(super) fn next_timer(&self) -> Time {
        let repair = self.missing.values().map(|missing| missing.ask_at).min();
        self.feedback_at.min(repair.unwrap_or(Time::MAX))
    }

    /// What is due, as a report with its size.
    pub(super) fn report(
        &mut self,
        now: Time,
        call: &mut Call,
        rtt: Duration,
    ) -> Option<(u64, Bytes)> {
        if self.feedback_at <= now {
            let feedback = self.feedback(now);
            return Some(self.send(Report::Feedback(feedback)));
        }
        let wanted = self.repairs(now, rtt);
        if !wanted.is_empty() {
            return Some(self.send(Report::Repair(wanted)));
        }
        if std::mem::take(&mut self.broken) || call.key_due() <= now {
            call.on_key_asked(now);
            return Some(self.send(Report::Key));
        }
        None
    }

    fn feedback(&mut self, now: Time) -> Feedback {
        (self.fed_back_at, self.feedback_at) = (now, Time::MAX);
        let arrived = std::mem::take(&mut self.arrived);
        let end = arrived.last_key_value().map_or(0, |(&number, _)| number + 1);
        // Late ones come first; then every packet from where the last report ended.
        let at = |at: &Time| self.as_reported(*at, now);
        let late =
            arrived.range(..self.reported).map(|(&number, arrival)| (number, Some(at(arrival))));
        let fresh = (self.reported..end).map(|number| (number, arrived.get(&number).map(at)));
        let packets = late.chain(fresh).collect();
        self.reported = self.reported.max(end);
        let waited = self.rfc8888.then(|| now.since(self.newest_at));
        Feedback { packets, waited }
    }

    /// An arrival as feedback of `now` can state it.
    fn as_reported(&self, at: Time, now: Time) -> Time {
        if self.rfc8888 {
            let parts = (now.since(at) * PARTS_8888).as_secs_f64().round();
            return now - Duration::from_secs_f64(parts / PARTS_8888 as f64);
        }
        let first = self.first_at.unwrap_or(at);
        let steps = (at.since(first) + RESOLUTION / 2).as_nanos() / RESOLUTION.as_nanos();
        first + RESOLUTION * steps
    }

    /// The packets to be asked for now.
    fn repairs(&mut self, now: Time, rtt: Duration) -> Vec<u64> {
        let mut wanted = Vec::new();
        if self.missing.len() > MISSING_MAX {
            self.missing.clear();
            self.broken = true;
        }
        let Self { missing, broken, .. } = self;
        missing.retain(|&sequence, missing| {
            if missing.ask_at > now {
                return true;
            }
            if missing.asked == REPAIRS_MAX {
                *broken = true;
                return false;
            }
            missing.asked += 1;
            missing.ask_at = now + rtt.max(REPAIR_MIN);
            wanted.push(sequence);
            true
        });
        wanted
    }

    /// Sends a report: its number and size.
    pub(super) fn send(&mut self, report: Report) -> (u64, Bytes) {
        let (number, size) = (self.report, report.size());
        self.report += 1;
        self.reports.push_back((number, report));
        if self.reports.len() > REPORTS {
            self.reports.pop_front();
        }
        (number, size)
    }

    /// A report reached the other end.
    pub(super) fn take(&mut self, number: u64) -> Option<Report> {
        let place = self.reports.iter().position(|&(other, _)| other == number)?;
        self.reports.remove(place).map(|(_, report)| report)
    }
}
