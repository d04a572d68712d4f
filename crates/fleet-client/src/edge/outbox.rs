//! Reports on their way: in batches that are sent until the engine has them.
//!
//! A batch is of one service and one length of intervals, so that what the engine refuses of one is
//! not in the way of the others.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trimtab_fleet::ServiceName;
use trimtab_units::{Duration, Time};

use super::book::Ended;
use crate::ReportBatch;

/// Reports of one batch; the engine takes ten times as many.
const BATCH_MAX: usize = 1000;
/// Characters of the reports that wait; beyond, the oldest are given up.
const WAITING_MAX: usize = 64 << 20;

/// Reports of intervals that begin so long after the present are given up: the clock was set back
/// by more than anybody waits for.
const AHEAD_MAX: Duration = Duration::from_secs(3600);

/// What all reports of a batch have in common.
type Kind = (ServiceName, Duration);

/// A report that waits.
#[derive(Debug)]
struct Waiting {
    kind: Kind,
    /// When its interval begins.
    begins: Time,
    text: String,
}

/// The batch that is being sent.
#[derive(Debug)]
struct Sending {
    batch: ReportBatch,
    kind: Kind,
    /// When the interval of each report begins.
    begins: Vec<Time>,
    /// An engine may have it: it was sent, and no answer says that it was not kept.
    is_unsure: bool,
}

/// Reports that wait, and the batch that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Waiting>,
    waiting_len: usize,
    sending: Option<Sending>,
    /// Given up for want of room, or since nobody takes them.
    pub(crate) dropped: u64,
}

impl Outbox {
    pub(crate) fn add(&mut self, ended: &[Ended]) {
        for Ended { report, length } in ended {
            match report.encode() {
                Ok(bytes) => self.put(Waiting {
                    kind: (report.key.service.clone(), *length),
                    begins: report.interval.start(*length),
                    text: STANDARD.encode(bytes),
                }),
                // It has more than any report may: nobody could take it.
                Err(_) => self.dropped += 1,
            }
        }
    }

    fn put(&mut self, report: Waiting) {
        self.waiting_len += report.text.len();
        self.waiting.push_back(report);
        while self.waiting_len > WAITING_MAX {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.waiting_len -= oldest.text.len();
            self.dropped += 1;
        }
    }

    /// The batch to send: with the same number and reports, however long nobody answers, for the
    /// engine may have it already. `next` is a number that no batch has had. What has not begun by
    /// this clock, which was set back, waits until it has.
    pub(crate) fn batch(&mut self, now: Time, next: u64) -> Option<&ReportBatch> {
        if self.sending.is_none() {
            self.give_up_far_ahead(now);
            self.sending = self.next_batch(now, next);
        }
        self.sending.as_mut().map(|sending| {
            // The engine wants to know the clock that it is sent by.
            sending.batch.sent_ms = (now.as_nanos() / 1_000_000) as i64;
            &sending.batch
        })
    }

    fn give_up_far_ahead(&mut self, now: Time) {
        let before = self.waiting.len();
        self.waiting.retain(|one| one.begins <= now + AHEAD_MAX);
        if self.waiting.len() < before {
            self.dropped += (before - self.waiting.len()) as u64;
            self.waiting_len = self.waiting.iter().map(|one| one.text.len()).sum();
        }
    }

    fn next_batch(&mut self, now: Time, next: u64) -> Option<Sending> {
        let first = self.waiting.iter().find(|one| one.begins <= now)?;
        let kind = first.kind.clone();
        let (mut reports, mut begins, mut others) = (Vec::new(), Vec::new(), VecDeque::new());
        for one in self.waiting.drain(..) {
            if one.kind == kind && one.begins <= now && reports.len() < BATCH_MAX {
                self.waiting_len -= one.text.len();
                begins.push(one.begins);
                reports.push(one.text);
            } else {
                others.push_back(one);
            }
        }
        self.waiting = others;
        let interval_ms = Some(kind.1.as_millis() as i64);
        let batch = ReportBatch { sequence: next, sent_ms: 0, interval_ms, reports };
        Some(Sending { batch, kind, begins, is_unsure: false })
    }

    /// The batch was sent, and no answer says what became of it.
    pub(crate) fn is_unsure(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.is_unsure = true;
        }
    }

    /// The engine refused the batch, since the clocks differ. Unless an engine may have it from
    /// before, its reports wait, each until its interval has begun.
    pub(crate) fn take_back(&mut self) {
        if let Some(Sending { batch, kind, begins, .. }) =
            self.sending.take_if(|sending| !sending.is_unsure)
        {
            for (text, begins) in batch.reports.into_iter().zip(begins).rev() {
                self.waiting_len += text.len();
                self.waiting.push_front(Waiting { kind: kind.clone(), begins, text });
            }
        }
    }

    /// The engine has the batch, or will never take it.
    pub(crate) fn done(&mut self) -> usize {
        self.sending.take().map_or(0, |sending| sending.batch.reports.len())
    }

    /// Reports that no engine has yet.
    pub(crate) fn len(&self) -> usize {
        let sending = self.sending.as_ref().map_or(0, |sending| sending.batch.reports.len());
        self.waiting.len() + sending
    }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::{Interval, Report, Summary};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    /// After all intervals of these tests.
    const LATER: Time = Time::from_secs(2000 * 60);

    fn reports(count: u64) -> Vec<Ended> {
        of("tv", count)
    }

    fn of(service: &str, count: u64) -> Vec<Ended> {
        (0..count)
            .map(|i| {
                let key = format!("{service}/203.0.113.0/24").parse().unwrap();
                let summary = Summary::new(1);
                let report = Report { key, interval: Interval(i), version: 0, summary, next: None };
                Ended { report, length: MINUTE }
            })
            .collect()
    }

    #[test]
    fn a_batch_stays_the_same_until_it_is_answered() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.batch(LATER, 1), None);
        outbox.add(&reports(BATCH_MAX as u64 + 5));
        let first = outbox.batch(LATER, 7).unwrap().clone();
        let sent_ms = LATER.as_nanos() as i64 / 1_000_000;
        assert_eq!((first.sequence, first.sent_ms, first.reports.len()), (7, sent_ms, BATCH_MAX));
        outbox.add(&reports(3));
        // For five minutes of tries nobody answers, as while the engine's store is away.
        for after_s in (10..310).step_by(10) {
            outbox.is_unsure();
            let now = LATER + Duration::from_secs(after_s);
            let again = ReportBatch { sent_ms: sent_ms + after_s as i64 * 1000, ..first.clone() };
            assert_eq!(outbox.batch(now, 8), Some(&again), "the engine may have it by this number");
        }
        assert_eq!(outbox.len(), BATCH_MAX + 8);
        assert_eq!(outbox.done(), BATCH_MAX);
        let second = outbox.batch(LATER, 8).unwrap();
        assert_eq!((second.sequence, second.reports.len()), (8, 8));
    }

    #[test]
    fn a_batch_is_of_one_service_and_one_length_of_intervals() {
        let mut outbox = Outbox::default();
        for service in ["tv", "vod", "tv"] {
            outbox.add(&of(service, 2));
        }
        let longer = of("tv", 1).remove(0);
        outbox.add(&[Ended { length: MINUTE * 2, ..longer }]);
        let mut sizes = Vec::new();
        while let Some(batch) = outbox.batch(LATER, 1) {
            sizes.push((batch.reports.len(), batch.interval_ms));
            outbox.done();
        }
        assert_eq!(sizes, [(4, Some(60_000)), (2, Some(60_000)), (1, Some(120_000))]);
        assert_eq!((outbox.len(), outbox.waiting_len), (0, 0));
    }

    #[test]
    fn the_oldest_is_given_up_when_there_is_no_room() {
        let mut outbox = Outbox::default();
        let tv: ServiceName = "tv".parse().unwrap();
        for i in 0..65 {
            let text = i.to_string().repeat(if i < 10 { 1 << 20 } else { 1 << 19 });
            outbox.put(Waiting { kind: (tv.clone(), MINUTE), begins: Time::ZERO, text });
        }
        assert_eq!((outbox.len(), outbox.dropped), (64, 1));
        assert!(outbox.batch(LATER, 1).unwrap().reports[0].starts_with('1'));
    }

    #[test]
    fn reports_of_a_clock_that_was_ahead_wait_for_their_time_and_hold_up_no_others() {
        let mut outbox = Outbox::default();
        outbox.add(&reports(7));
        // By a clock that is five minutes ahead, of which the engine takes nothing.
        let ahead = MINUTE * 6;
        assert_eq!(outbox.batch(Time::ZERO + ahead, 1).unwrap().reports.len(), 7);
        outbox.take_back();
        // It is set right: what has begun goes first, in the order of before.
        let right = Time::ZERO + MINUTE;
        let first = outbox.batch(right, 2).unwrap().clone();
        assert_eq!((first.sequence, first.reports.len(), outbox.len()), (2, 2, 7));
        outbox.done();
        assert_eq!(outbox.batch(right, 3), None);
        // One that an engine may have stays as it is.
        let last = outbox.batch(Time::ZERO + ahead, 4).unwrap().clone();
        outbox.is_unsure();
        outbox.take_back();
        assert_eq!(outbox.batch(right, 5).unwrap().reports, last.reports);
        assert_eq!((outbox.done(), outbox.len(), outbox.dropped), (5, 0, 0));
        // What is of another day is given up.
        outbox.add(&reports(100));
        assert_eq!(outbox.batch(Time::ZERO, 6).unwrap().reports.len(), 1);
        assert_eq!((outbox.len(), outbox.dropped), (61, 39));
    }
}
