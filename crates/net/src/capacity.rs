//! How many bytes a link can carry, and when.

use std::sync::Arc;

use rand::RngExt;
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::seed::{Purpose, generator};
use crate::trace::{OPPORTUNITY, Trace};

/// Places of a trace that are drawn, of which the one with the most similar past is taken.
const PLACES: usize = 16;
/// How much of the past is compared.
const PAST: Duration = Duration::from_secs(2);
/// How far another place is from the present one, at most a quarter of the trace.
const APART: Duration = Duration::from_secs(60);

/// What a link can carry. Cloning shares the trace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Capacity {
    /// The same rate for ever. Zero carries nothing; [`Rate::MAX`] takes no time.
    Constant(Rate),
    /// The opportunities of a trace, which repeats for ever.
    Trace {
        /// The opportunities.
        trace: Arc<Trace>,
        /// The position in the trace at [`Time::ZERO`], in whole milliseconds (rounded down). It may be
        /// longer than the trace.
        offset: Duration,
        /// What one opportunity carries: 1500 bytes, as Mahimahi's rates are counted, or 1504 to
        /// replay Mahimahi itself, which adds the 4 bytes of its tunnel. Zero carries nothing.
        opportunity: Bytes,
    },
}

impl Capacity {
    /// A trace from its start, 1500 bytes per opportunity.
    pub fn trace(trace: impl Into<Arc<Trace>>) -> Self {
        Self::Trace { trace: trace.into(), offset: Duration::ZERO, opportunity: OPPORTUNITY }
    }

    /// The bytes that the link can carry after `from` and until `to`, `to` included; zero when `to` is
    /// not later. Adjacent spans add up. Takes O(log n) in the length of the trace.
    pub fn bytes_between(&self, from: Time, to: Time) -> Bytes {
        self.bytes_until(to) - self.bytes_until(from)
    }

    /// The mean rate over one period of the trace, with its own bytes per opportunity.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Trace { trace, opportunity, .. } => {
                *opportunity * trace.opportunities().len() as u64 / trace.period()
            }
        }
    }

    /// Another place of the same trace, as its position at [`Time::ZERO`], from which the link could
    /// as well go on at `now`: of some that are drawn the one whose last [`PAST`] carried most nearly
    /// what those before `now` did. It is far from the present place, so that what comes is not the
    /// same a little later. `None` for a constant rate, whose future is known.
    pub(crate) fn elsewhere(&self, now: Time, seed: u64) -> Option<Duration> {
        let Self::Trace { trace, offset, opportunity } = self else { return None };
        let mut random = generator(seed, Purpose::Place);
        let from = now - PAST.min(now.since(Time::ZERO));
        let carried = |capacity: &Self| capacity.bytes_between(from, now).as_f64() + 1.0;
        let apart = APART.min(trace.period() / 4);
        let unlike = |place: &Duration| {
            let there = Self::Trace {
                trace: trace.clone(),
                offset: *offset + *place,
                opportunity: *opportunity,
            };
            libm::log(carried(&there) / carried(self)).abs()
        };
        let drawn = (0..PLACES).map(|_| {
            let ahead = (trace.period() - apart * 2).mul_f64(random.random());
            apart + ahead
        });
        let (ahead, _) =
            drawn.map(|place| (place, unlike(&place))).min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(*offset + ahead)
    }

    /// The bytes from a fixed origin at or before [`Time::ZERO`]. Only differences mean something.
    fn bytes_until(&self, time: Time) -> Bytes {
        match self {
            Self::Constant(rate) => *rate * time.since(Time::ZERO),
            Self::Trace { trace, offset, opportunity } => {
                *opportunity * trace.count_until(time.as_millis() + offset.as_millis())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_trace_counts_over_its_end() {
        let trace = Trace::from_opportunities(vec![1, 2, 2, 5]).unwrap();
        let capacity = Capacity::trace(trace);
        assert_eq!(capacity.bytes_between(ms(0), ms(5)), Bytes::new(6000));
        assert_eq!(capacity.bytes_between(ms(1), ms(2)), Bytes::new(3000));
        assert_eq!(capacity.bytes_between(ms(2), ms(4)), Bytes::ZERO);
        assert_eq!(capacity.bytes_between(ms(2), ms(6)), Bytes::new(3000));
        assert_eq!(capacity.bytes_between(ms(0), ms(5_000_000)), Bytes::new(6_000_000_000));
        assert_eq!(capacity.bytes_between(ms(6), ms(2)), Bytes::ZERO);
        assert_eq!(capacity.mean_rate(), Rate::from_bytes_per_sec(1_200_000));
    }

    #[test]
    fn an_offset_moves_the_start() {
        let trace = Arc::new(Trace::from_opportunities(vec![1, 2, 2, 5]).unwrap());
        for round in 0..3 {
            let capacity = Capacity::Trace {
                trace: trace.clone(),
                offset: Duration::from_micros(1_700 + 5_000 * round),
                opportunity: Bytes::new(10),
            };
            let per_ms = |to| capacity.bytes_between(ms(to - 1), ms(to)).get();
            assert_eq!([1, 2, 3, 4, 5].map(per_ms), [20, 0, 0, 10, 10]);
        }
    }

    /// A minute at 12 Mbit/s, then a minute at 1.2, over and over: four minutes.
    #[test]
    fn elsewhere_the_past_is_alike_and_the_place_is_far() {
        let fast = |ms: &u32| (ms / 60_000).is_multiple_of(2) || ms.is_multiple_of(10);
        let trace = Trace::from_opportunities((1..=240_000).filter(fast).collect()).unwrap();
        let capacity = Capacity::trace(trace);
        for (at, is_fast) in [(30, true), (90, false), (150, true), (210, false)] {
            let now = Time::from_secs(at);
            let places: Vec<u64> = (0..50)
                .map(|seed| capacity.elsewhere(now, seed).unwrap().as_millis() % 240_000)
                .collect();
            for place in &places {
                assert!((60_000..=180_000).contains(place), "a minute or more away: {place}");
                let there = (at * 1000 + place) % 240_000;
                assert_eq!(fast(&(there as u32 - 1)), is_fast || there % 10 == 1, "{there}");
            }
            assert_eq!(capacity.elsewhere(now, 7), capacity.elsewhere(now, 7));
            assert!(places.iter().any(|place| *place != places[0]));
        }
        let constant = Capacity::Constant(Rate::from_mbps(3.0));
        assert_eq!(constant.elsewhere(Time::from_secs(9), 1), None);
    }

    #[test]
    fn a_constant_rate_adds_up() {
        let capacity = Capacity::Constant(Rate::from_bytes_per_sec(333));
        let times = [0, 1, 17, 400, 401, 1003].map(ms);
        let parts: Bytes = times.windows(2).map(|w| capacity.bytes_between(w[0], w[1])).sum();
        assert_eq!(parts, capacity.bytes_between(times[0], times[5]));
        assert_eq!(parts, Bytes::new(333));
    }
}
