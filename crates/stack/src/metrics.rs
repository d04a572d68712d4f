//! A path as its owner sees it.

use trimtab_cc::Phase;
use trimtab_cc::resume::Stage;
use trimtab_steer::safety::{Arm, Harm};
use trimtab_steer::{Insight, KnobValues, Reason};
use trimtab_units::{Bytes, Duration, Rate};

/// A path as it is now. Bytes are of QUIC packets that elicit acknowledgements, without the headers
/// of UDP and IP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The text of the scheme that runs, or is about to. In the holdback and in a rest it is that of
    /// the baseline.
    pub scheme: String,
    /// Whether the connection is in the comparison's holdback
    /// ([`Config::with_holdback`](crate::Config::with_holdback)).
    pub arm: Arm,
    /// From what the path rests, while it does: the guard let the baseline take over
    /// ([`Config::with_guard`](crate::Config::with_guard)).
    pub resting: Option<Harm>,
    /// How often the guard let the baseline take over.
    pub fallbacks: u64,
    /// The algorithm that runs, by its name in [`trimtab_cc::ALGORITHMS`].
    pub algorithm: &'static str,
    /// How far it has resumed what an earlier connection observed; `None` where it does not.
    pub resume: Option<Stage>,
    /// The algorithm that takes over once the running one has converged.
    pub pending: Option<&'static str>,
    /// The algorithm's knobs, each in its unit.
    pub knobs: KnobValues,
    /// Where in its life the algorithm is.
    pub phase: Phase,
    /// The algorithm's congestion window. A stack that paces by window gets less
    /// ([`Pacing::ByWindow`](crate::Pacing::ByWindow)).
    pub window: Bytes,
    /// The pacing rate; `None` leaves it to the stack. noq and quinn then pace at 5/4 of a window per
    /// round trip.
    pub pacing_rate: Option<Rate>,
    /// The bitrate that an encoder of live media should fill, headers included: the algorithm's
    /// target, or what its window and pacing rate make of the round-trip time. `None` where the
    /// algorithm sets none and no round trip was measured yet.
    pub target: Option<Rate>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Lowest round-trip time since the path began; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Highest delivery rate of the last 10 s; `None` before the first sample, and where a learnt
    /// policy runs without a fallback.
    pub delivery_rate: Option<Rate>,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// Bytes sent.
    pub sent: Bytes,
    /// Bytes acknowledged.
    pub delivered: Bytes,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// How many acknowledgements reported congestion marks (ECN). 0 where the path marks nothing,
    /// and where the stack gave ECN up, because a host or a router on the path clears the field.
    pub marked: u64,
    /// How often another algorithm took over.
    pub switches: u64,
    /// Why the steering asked for its last action; `None` before that and without steering.
    pub reason: Option<Reason>,
    /// How many actions of the steering the algorithm refused: 0 in a scheme that works.
    pub refused: u64,
    /// What the steering shows of itself, e.g. the application's preference.
    pub insight: Insight,
}
