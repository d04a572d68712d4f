//! What the log of a downlink says of its queue, as the recordings' README defines it.

use std::path::Path;

use trimtab_net::mahimahi_log::{Log, Record};
use trimtab_units::{Bytes, Duration, Time};

use crate::BenchError;

/// The time that packets spent in the queue, in ms.
pub(crate) struct Queueing {
    pub(crate) mean_ms: f64,
    pub(crate) p95_ms: f64,
}

/// Reads the log of a downlink: packets of more than `over`, in a span after the first of them came.
pub(crate) fn queueing(
    log: &Path,
    over: Bytes,
    (from, to): (Duration, Duration),
) -> Result<Queueing, BenchError> {
    let log = Log::load(log)?;
    let first = log.records.iter().find_map(|record| match *record {
        Record::Arrival { at, size } if size > over => Some(at),
        _ => None,
    });
    let begin = first.unwrap_or(Time::ZERO);
    let mut delays: Vec<u64> = log
        .records
        .iter()
        .filter_map(|record| match *record {
            Record::Departure(d) if d.size > over => Some(d),
            _ => None,
        })
        .filter(|d| (begin + from..begin + to).contains(&d.at))
        .map(|d| d.delay.as_millis())
        .collect();
    delays.sort_unstable();
    let count = delays.len();
    let mean_ms = delays.iter().sum::<u64>() as f64 / count as f64;
    let p95_ms = delays.get(count * 95 / 100).map_or(f64::NAN, |&ms| ms as f64);
    Ok(Queueing { mean_ms, p95_ms })
}
