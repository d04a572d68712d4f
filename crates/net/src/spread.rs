//! Rates into opportunities.

use trimtab_units::{Duration, Rate};

use crate::trace::{OPPORTUNITY, Trace, TraceError};

/// What one opportunity takes, in bytes per second times nanoseconds: whole numbers, so nothing is rounded
/// away however long the trace.
const PRICE: u128 = OPPORTUNITY.get() as u128 * 1_000_000_000;
const NS_PER_MS: u128 = 1_000_000;
/// More opportunities than this do not make a trace that anyone would load (it is the limit of
/// [`Trace::load`] at the shortest lines).
const OPPORTUNITIES_MAX: usize = 40_000_000;

/// Makes a trace from spans of constant rate: opportunity k comes at the first whole millisecond at which k
/// times 1500 bytes have accumulated. What is left at the end of a span counts for the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    opportunities: Vec<u32>,
    /// What has accumulated since the last opportunity, below [`PRICE`].
    owed: u128,
    now_ns: u128,
}

impl Spread {
    /// Goes on for `span` at `rate`. Stops adding opportunities beyond 40 million.
    pub(crate) fn add(&mut self, span: Duration, rate: Rate) {
        let rate = u128::from(rate.bytes_per_sec());
        let span_ns = u128::from(span.as_nanos());
        let total = self.owed + rate * span_ns;
        let room = (OPPORTUNITIES_MAX - self.opportunities.len()) as u128;
        for k in 1..=(total / PRICE).min(room) {
            let after_ns = (k * PRICE - self.owed).div_ceil(rate);
            self.push((self.now_ns + after_ns).div_ceil(NS_PER_MS));
        }
        self.owed = total % PRICE;
        self.now_ns += span_ns;
    }

    /// Lets `span` pass, and then carries at once what `rate` carries in `worth`: a burst.
    pub(crate) fn add_burst(&mut self, span: Duration, rate: Rate, worth: Duration) {
        self.now_ns += u128::from(span.as_nanos());
        self.owed += u128::from(rate.bytes_per_sec()) * u128::from(worth.as_nanos());
        while self.owed >= PRICE && self.opportunities.len() < OPPORTUNITIES_MAX {
            self.owed -= PRICE;
            self.push(self.now_ns.div_ceil(NS_PER_MS));
        }
    }

    fn push(&mut self, ms: u128) {
        // Nothing sensible lasts 49 days; what does ends up at the end.
        self.opportunities.push(u32::try_from(ms).unwrap_or(u32::MAX));
    }

    /// The time covered so far.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.now_ns).unwrap_or(u64::MAX))
    }

    /// The trace. When its last millisecond is empty it gets one opportunity there, so that the trace
    /// repeats after the time that the spans cover.
    pub(crate) fn finish(mut self) -> Result<Trace, TraceError> {
        let end_ms = u32::try_from(self.now_ns / NS_PER_MS).unwrap_or(u32::MAX);
        // A burst that ends within the last millisecond belongs to the trace's end.
        for late in self.opportunities.iter_mut().rev().take_while(|time| **time > end_ms) {
            *late = end_ms;
        }
        if self.opportunities.last() != Some(&end_ms) {
            self.opportunities.push(end_ms);
        }
        Trace::from_opportunities(self.opportunities)
    }
}
