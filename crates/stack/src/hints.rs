//! What the application says of a connection, in the words of `trimtab-app-sdk`, and what becomes
//! of its responses.

use std::sync::Arc;

use trimtab_qoe::Factors;
use trimtab_units::{Bytes, Duration, Time};

use crate::paths::Shared;

/// A response that is being sent ([`Handle::begin_response`](crate::Handle::begin_response)). It
/// sets the factors `R`, `remaining` and `Rbar` as long as it lives. Dropped without
/// [`end`](Self::end) it was given up, and counts for nothing.
#[derive(Debug)]
#[must_use = "a response that is dropped is over"]
pub struct Response {
    shared: Arc<Shared>,
    id: u64,
}

impl Response {
    /// Begins one of this size.
    pub(crate) fn begin(shared: Arc<Shared>, size: Bytes) -> Self {
        let id = shared.say(|hints| hints.begin(size));
        for path in shared.paths() {
            path.lock().responses.begin(id);
        }
        Self { shared, id }
    }

    /// So many of its bytes have not arrived yet. Default: all of them, until it ends. Bytes that
    /// are not sent yet are part of them.
    pub fn set_remaining(&self, left: Bytes) {
        self.shared.say(|hints| hints.set_remaining(self.id, left));
    }

    /// It arrived whole: its last byte was acknowledged, e.g. `SendStream::stopped` of noq and quinn
    /// returned. Reports count it, for steerings that go by responses.
    pub fn end(self) {
        let size = self.shared.say(|hints| hints.size(self.id));
        for path in self.shared.paths() {
            path.lock().on_response_end(self.id, size);
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.shared.say(|hints| hints.forget(self.id));
        for path in self.shared.paths() {
            path.lock().responses.forget(self.id);
        }
    }
}

/// What is known of an application at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    said: Factors,
    /// The oldest first.
    open: Vec<Open>,
    begun: u64,
}

/// A response that is being sent.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: u64,
    size: Bytes,
    /// What of it has not arrived.
    left: Bytes,
}

impl Hints {
    /// These factors, and no others.
    pub(crate) fn set(&mut self, factors: Factors) {
        self.said = factors;
    }

    /// What is not set stays as it was.
    pub(crate) fn update(&mut self, live: &Factors) {
        self.said = live.or(&self.said);
    }

    fn begin(&mut self, size: Bytes) -> u64 {
        self.begun += 1;
        self.open.push(Open { id: self.begun, size, left: size });
        self.begun
    }

    fn set_remaining(&mut self, id: u64, left: Bytes) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            open.left = left.min(open.size);
        }
    }

    fn size(&self, id: u64) -> Bytes {
        self.open.iter().find(|open| open.id == id).map_or(Bytes::ZERO, |open| open.size)
    }

    fn forget(&mut self, id: u64) {
        self.open.retain(|open| open.id != id);
    }

    /// What of the open responses has not arrived.
    pub(crate) fn remaining(&self) -> Bytes {
        self.open.iter().fold(Bytes::ZERO, |sum, open| sum + open.left)
    }

    /// All factors. Those of open responses come before what was said: the size of the oldest, what
    /// is left of all, and their mean size.
    pub(crate) fn factors(&self) -> Factors {
        let Some(oldest) = self.open.first() else { return self.said };
        let sizes = self.open.iter().fold(Bytes::ZERO, |sum, open| sum + open.size);
        Factors::new()
            .with_request(oldest.size)
            .with_remaining(self.remaining())
            .with_mean_response(sizes / self.open.len() as u64)
            .or(&self.said)
    }
}

/// When the open responses began, on a path.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// Each with when the first packet left after the application gave it.
    begun: Vec<(u64, Option<Time>)>,
    /// Whether nothing was sent since the newest began.
    is_new: bool,
    sent_at: Time,
}

impl Responses {
    /// On a path that begins now, for which the open ones do, too.
    pub(crate) fn of(hints: &Hints) -> Self {
        let begun = hints.open.iter().map(|open| (open.id, None)).collect();
        Self { begun, is_new: true, sent_at: Time::ZERO }
    }

    fn begin(&mut self, id: u64) {
        self.begun.push((id, None));
        self.is_new = true;
    }

    /// A packet left.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.sent_at = now;
        if self.is_new {
            self.begun.iter_mut().for_each(|(_, at)| *at = at.or(Some(now)));
            self.is_new = false;
        }
    }

    fn forget(&mut self, id: u64) {
        self.begun.retain(|(begun, _)| *begun != id);
    }

    /// One arrived: how long until the path sent for the last time, and how long in all. `None`
    /// where the path sent nothing since.
    pub(crate) fn end(&mut self, id: u64, now: Time) -> Option<(Duration, Duration)> {
        let (_, at) = self.begun.iter().find(|(begun, _)| *begun == id)?;
        let began = (*at)?;
        self.forget(id);
        Some((self.sent_at.since(began), now.since(began)))
    }
}

#[cfg(test)]
mod tests {
    use trimtab_qoe::Factor;

    use super::*;

    #[test]
    fn open_responses_come_before_what_was_said() {
        let mut hints = Hints::default();
        let mbit = |mbit: u64| Bytes::new(125_000 * mbit);
        hints.update(&Factors::new().with_request(mbit(1)).with_buffer(Duration::from_secs(9)));
        let (first, second) = (hints.begin(mbit(8)), hints.begin(mbit(2)));
        hints.set_remaining(first, mbit(3));
        let known = |hints: &Hints| {
            Factor::ALL.map(|factor| hints.factors().get(factor).unwrap_or(f64::NAN))
        };
        // R, remaining, C, V, Rbar
        let [r, remaining, chunk, buffer, mean] = known(&hints);
        assert_eq!([r, remaining, buffer, mean], [8.0, 5.0, 9.0, 5.0]);
        assert!(chunk.is_nan(), "nobody said it");
        hints.forget(first);
        assert_eq!(known(&hints)[..2], [2.0, 2.0]);
        hints.set_remaining(second, mbit(99));
        assert_eq!(hints.remaining(), mbit(2), "no more than its size");
        hints.forget(second);
        assert_eq!(hints.factors().iter().collect::<Vec<_>>(), [("R", 1.0), ("V", 9.0)]);
        hints.update(&Factors::new().with_buffer(Duration::from_secs(8)));
        assert_eq!(hints.factors().iter().collect::<Vec<_>>(), [("R", 1.0), ("V", 8.0)]);
        hints.set(Factors::new());
        assert_eq!(hints.factors(), Factors::new());
    }

    #[test]
    fn a_path_that_begins_later_sees_the_open_responses() {
        let mut hints = Hints::default();
        let id = hints.begin(Bytes::new(1000));
        let mut responses = Responses::of(&hints);
        responses.on_sent(Time::from_millis(3));
        let took = Duration::from_millis(4);
        assert_eq!(responses.end(id, Time::from_millis(7)), Some((Duration::ZERO, took)));
    }

    #[test]
    fn a_response_begins_with_the_next_packet() {
        let mut responses = Responses::default();
        let at = Time::from_millis;
        responses.on_sent(at(10));
        responses.begin(1);
        assert_eq!(responses.end(1, at(20)), None, "nothing was sent");
        responses.on_sent(at(30));
        responses.begin(2);
        responses.on_sent(at(40));
        responses.on_sent(at(50));
        let ms = Duration::from_millis;
        assert_eq!(responses.end(1, at(70)), Some((ms(20), ms(40))));
        assert_eq!(responses.end(1, at(70)), None, "once");
        assert_eq!(responses.end(2, at(80)), Some((ms(10), ms(40))));
    }
}
