//! The book that request-response applications keep of their requests.

use trimtab_units::{Bytes, Time};

use crate::{AppFactors, RequestId, RequestRecord};

/// The methods of [`Application`](crate::Application) about responses, for an application that keeps
/// the book of its requests in the field named. One whose outcome is that book adds `logged`.
macro_rules! response_methods {
    ($self:ident.$requests:ident) => {
        fn on_first_byte(&mut $self, now: trimtab_units::Time, id: $crate::RequestId) {
            $self.$requests.first_byte(now, id);
        }

        fn on_bytes(
            &mut $self,
            _now: trimtab_units::Time,
            id: $crate::RequestId,
            newly: trimtab_units::Bytes,
        ) {
            $self.$requests.bytes(id, newly);
        }

        fn on_complete(&mut $self, now: trimtab_units::Time, id: $crate::RequestId) {
            $self.$requests.complete(now, id);
        }

        fn factors(&$self, _now: trimtab_units::Time) -> $crate::AppFactors {
            $self.$requests.factors()
        }
    };
    ($self:ident.$requests:ident, logged) => {
        $crate::requests::response_methods!($self.$requests);

        fn requests(&$self) -> &[$crate::RequestRecord] {
            $self.$requests.records()
        }

        fn outcome(&$self, _now: trimtab_units::Time) -> $crate::Outcome {
            $crate::Outcome::Requests($self.$requests.records().to_vec())
        }
    };
}
pub(crate) use response_methods;

/// Every request so far, and which of them are outstanding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    records: Vec<RequestRecord>,
    /// In the order of sending, so that the first is the oldest.
    outstanding: Vec<Outstanding>,
    /// Sum over the outstanding, kept so that `factors` costs the same at any number of them.
    outstanding_size: Bytes,
    missing: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    id: RequestId,
    size: Bytes,
    missing: Bytes,
}

impl Requests {
    /// Enters a request that is sent at `now`, and names it.
    pub(crate) fn send(&mut self, now: Time, scheduled_at: Time, size: Bytes) -> RequestId {
        let id = RequestId(u32::try_from(self.records.len()).unwrap_or(u32::MAX));
        self.records.push(RequestRecord {
            id,
            size,
            scheduled_at,
            sent_at: now,
            first_byte_at: None,
            completed_at: None,
            received: Bytes::ZERO,
        });
        self.outstanding.push(Outstanding { id, size, missing: size });
        self.outstanding_size += size;
        self.missing += size;
        id
    }

    /// The first byte of a response came.
    pub(crate) fn first_byte(&mut self, now: Time, id: RequestId) {
        if self.position(id).is_some() {
            let record = &mut self.records[id.0 as usize];
            record.first_byte_at = record.first_byte_at.or(Some(now));
        }
    }

    /// More bytes of a response came. Bytes past its end do not count.
    pub(crate) fn bytes(&mut self, id: RequestId, newly: Bytes) {
        if let Some(at) = self.position(id) {
            let newly = newly.min(self.outstanding[at].missing);
            self.outstanding[at].missing -= newly;
            self.missing -= newly;
            self.records[id.0 as usize].received += newly;
        }
    }

    /// The last byte of a response came. Gives the finished record, or `None` when the request is
    /// not outstanding.
    pub(crate) fn complete(&mut self, now: Time, id: RequestId) -> Option<RequestRecord> {
        let done = self.outstanding.remove(self.position(id)?);
        self.outstanding_size -= done.size;
        self.missing -= done.missing;
        let record = &mut self.records[id.0 as usize];
        record.first_byte_at = record.first_byte_at.or(Some(now));
        record.completed_at = Some(now);
        record.received = record.size;
        Some(*record)
    }

    /// Whether no request is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Every request, in the order of sending.
    pub(crate) fn records(&self) -> &[RequestRecord] {
        &self.records
    }

    /// The factors that every request-response application has.
    pub(crate) fn factors(&self) -> AppFactors {
        let count = self.outstanding.len() as u64;
        AppFactors {
            outstanding: self.missing,
            outstanding_requests: u32::try_from(count).unwrap_or(u32::MAX),
            request_size: self.outstanding.first().map(|o| o.size),
            mean_outstanding_size: (count > 0).then(|| self.outstanding_size / count),
            ..AppFactors::default()
        }
    }

    fn position(&self, id: RequestId) -> Option<usize> {
        // Names grow in the order of sending.
        self.outstanding.binary_search_by_key(&id, |o| o.id).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kb(n: u64) -> Bytes {
        Bytes::new(n * 1000)
    }

    #[test]
    fn factors_follow_the_outstanding_requests() {
        let mut r = Requests::default();
        assert_eq!(r.factors(), AppFactors::default());
        let [a, b, c] = [10, 20, 60].map(|n| r.send(Time::ZERO, Time::ZERO, kb(n)));
        r.bytes(a, kb(4));
        let f = r.factors();
        assert_eq!((f.outstanding, f.outstanding_requests), (kb(86), 3));
        assert_eq!((f.request_size, f.mean_outstanding_size), (Some(kb(10)), Some(kb(30))));
        r.complete(Time::from_millis(5), a);
        r.complete(Time::from_millis(6), c);
        let f = r.factors();
        assert_eq!((f.outstanding, f.outstanding_requests), (kb(20), 1));
        assert_eq!((f.request_size, f.mean_outstanding_size), (Some(kb(20)), Some(kb(20))));
        r.complete(Time::from_millis(7), b);
        assert!(r.is_idle());
        assert_eq!(r.factors(), AppFactors::default());
    }

    #[test]
    fn a_record_has_what_arrived() {
        let mut r = Requests::default();
        let [a, b] = [10, 20].map(|n| r.send(Time::ZERO, Time::ZERO, kb(n)));
        r.bytes(a, kb(4));
        r.bytes(b, kb(15));
        r.bytes(b, kb(15));
        let received = |r: &Requests| [a, b].map(|id| r.records()[id.0 as usize].received);
        assert_eq!(received(&r), [kb(4), kb(20)], "never more than the whole");
        r.complete(Time::from_millis(5), a);
        assert_eq!(received(&r), [kb(10), kb(20)], "a finished one has it all");
    }

    #[test]
    fn reports_on_unknown_and_finished_requests_change_nothing() {
        let mut r = Requests::default();
        let id = r.send(Time::ZERO, Time::ZERO, kb(1));
        let stranger = RequestId(7);
        r.first_byte(Time::from_millis(1), stranger);
        r.bytes(stranger, kb(9));
        assert_eq!(r.complete(Time::from_millis(1), stranger), None);
        r.bytes(id, kb(50));
        assert_eq!(r.factors().outstanding, Bytes::ZERO, "bytes past the end do not count");
        let done = r.complete(Time::from_millis(2), id).unwrap();
        assert_eq!(done.first_byte_at, Some(Time::from_millis(2)), "no later than the last byte");
        assert_eq!(r.complete(Time::from_millis(3), id), None);
        r.first_byte(Time::from_millis(3), id);
        assert_eq!(r.records(), [done]);
    }
}
