//! Reports on their way: in batches that are sent until the engine has them.
//!
//! A batch is of one service and one length of intervals, so that what the engine refuses of one is
//! not in the way of the others.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trimtab_fleet::ServiceName;
use trimtab_units::Duration;

use super::book::Ended;
use crate::ReportBatch;

/// Reports of one batch; the engine takes ten times as many.
const BATCH_MAX: usize = 1000;
/// Characters of the reports that wait; beyond, the oldest are given up.
const WAITING_MAX: usize = 64 << 20;

/// What all reports of a batch have in common.
type Kind = (ServiceName, Duration);

/// Reports that wait, and the batch that is being sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<(Kind, String)>,
    waiting_len: usize,
    sending: Option<ReportBatch>,
    /// Given up for want of room.
    pub(crate) dropped: u64,
}

impl Outbox {
    pub(crate) fn add(&mut self, ended: &[Ended]) {
        for Ended { report, length } in ended {
            match report.encode() {
                Ok(bytes) => {
                    self.put((report.key.service.clone(), *length), STANDARD.encode(bytes));
                }
                // It has more than any report may: nobody could take it.
                Err(_) => self.dropped += 1,
            }
        }
    }

    fn put(&mut self, kind: Kind, text: String) {
        self.waiting_len += text.len();
        self.waiting.push_back((kind, text));
        while self.waiting_len > WAITING_MAX {
            let Some((_, oldest)) = self.waiting.pop_front() else { break };
            self.waiting_len -= oldest.len();
            self.dropped += 1;
        }
    }

    /// The batch to send: with the same number and reports, however long nobody answers, for the
    /// engine may have it already. `next` is a number that no batch has had.
    pub(crate) fn batch(&mut self, now_ms: i64, next: u64) -> Option<&ReportBatch> {
        if self.sending.is_none()
            && let Some((kind, _)) = self.waiting.front().cloned()
        {
            let (mut reports, mut others) = (Vec::new(), VecDeque::new());
            for (of, text) in self.waiting.drain(..) {
                if of == kind && reports.len() < BATCH_MAX {
                    self.waiting_len -= text.len();
                    reports.push(text);
                } else {
                    others.push_back((of, text));
                }
            }
            self.waiting = others;
            let interval_ms = Some(kind.1.as_millis() as i64);
            let batch = ReportBatch { sequence: next, sent_ms: now_ms, interval_ms, reports };
            self.sending = Some(batch);
        }
        self.sending.as_mut().map(|batch| {
            // The engine wants to know the clock that it is sent by.
            batch.sent_ms = now_ms;
            &*batch
        })
    }

    /// The engine has the batch, or will never take it.
    pub(crate) fn done(&mut self) -> usize {
        self.sending.take().map_or(0, |batch| batch.reports.len())
    }

    /// Reports that no engine has yet.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.sending.as_ref().map_or(0, |batch| batch.reports.len())
    }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::{Interval, Report, Summary};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

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
        assert_eq!(outbox.batch(0, 1), None);
        outbox.add(&reports(BATCH_MAX as u64 + 5));
        let first = outbox.batch(1000, 7).unwrap().clone();
        assert_eq!((first.sequence, first.sent_ms, first.reports.len()), (7, 1000, BATCH_MAX));
        outbox.add(&reports(3));
        // For five minutes of tries nobody answers, as while the engine's store is away.
        for now_ms in (30_000..330_000).step_by(10_000) {
            let again = ReportBatch { sent_ms: now_ms, ..first.clone() };
            assert_eq!(
                outbox.batch(now_ms, 8),
                Some(&again),
                "the engine may have it by this number"
            );
        }
        assert_eq!(outbox.len(), BATCH_MAX + 8);
        assert_eq!(outbox.done(), BATCH_MAX);
        let second = outbox.batch(31_000, 8).unwrap();
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
        while let Some(batch) = outbox.batch(0, 1) {
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
            outbox.put(
                (tv.clone(), MINUTE),
                i.to_string().repeat(if i < 10 { 1 << 20 } else { 1 << 19 }),
            );
        }
        assert_eq!((outbox.len(), outbox.dropped), (64, 1));
        assert!(outbox.batch(0, 1).unwrap().reports[0].starts_with('1'));
    }
}
