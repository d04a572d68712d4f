//! The segments of traces.

use std::collections::BTreeMap;

use trimtab_net::{Segment, Segmentation, TooManyBins};

use super::{Sampled, Unit};
use crate::run::links::{self, LinkError};
use crate::scenario::{NamedTrace, TraceSource, TraceSourceError, named};

/// Why traces have no segments.
#[derive(Debug, thiserror::Error)]
pub enum SegmentsError {
    /// A trace is not there.
    #[error(transparent)]
    Missing(#[from] TraceSourceError),
    /// It cannot be read.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It is too long.
    #[error("{trace}: {problem}")]
    TooLong {
        /// Its name.
        trace: String,
        /// By how much.
        problem: TooManyBins,
    },
}

/// Lengths of the segments of each trace, and changes between neighbours. All segments count: those at
/// the ends of a trace as long as they are in it.
///
/// # Errors
/// A trace is not there, cannot be read or is too long.
pub fn segments(sources: &[TraceSource], how: &Segmentation) -> Result<Vec<Unit>, SegmentsError> {
    let unit = |NamedTrace { name, source }: NamedTrace| {
        let trace = links::trace(&source)?;
        let too_long = |problem| SegmentsError::TooLong { trace: name.clone(), problem };
        let found = how.segments(&trace).map_err(too_long)?;
        let lengths: Vec<f64> =
            found.iter().map(|segment| segment.duration.as_secs_f64()).collect();
        let change = |pair: &[Segment]| 100.0 * pair[0].change_to(&pair[1]);
        let changes = found.windows(2).map(change).collect();
        let values =
            BTreeMap::from([(Sampled::SegmentLength, lengths), (Sampled::SegmentChange, changes)]);
        Ok(Unit { name, values })
    };
    named(sources)?.into_iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_steps_has_its_steps() {
        let source = "step:12Mbit/s@5s,6Mbit/s@8s,24Mbit/s@4s".parse().unwrap();
        let units = segments(&[source], &Segmentation::default()).unwrap();
        assert_eq!(units[0].of(Sampled::SegmentLength), [5.0, 8.0, 4.0]);
        let changes = units[0].of(Sampled::SegmentChange);
        assert!((changes[0] - 50.0).abs() < 1.0 && (changes[1] - 300.0).abs() < 2.0, "{changes:?}");
    }
}
