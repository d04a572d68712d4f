//! From the name of a link to its capacity.

use sha2::{Digest, Sha256};
use trimtab_net::generate::{Cellular, Wifi, demo_set, steps};
use trimtab_net::{Capacity, Trace, TraceError, TraceFileError};
use trimtab_units::Duration;

use crate::scenario::{GeneratedKind, TraceSource};

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The file is no trace.
    #[error(transparent)]
    File(#[from] TraceFileError),
    /// The capacity makes no trace.
    #[error("{name}: {problem}")]
    Trace {
        /// The link.
        name: String,
        /// What is wrong.
        problem: TraceError,
    },
}

/// The capacity of a single source: a file (not a glob) or any of the other kinds.
///
/// # Errors
/// The file cannot be read or is no trace.
pub fn capacity(source: &TraceSource) -> Result<Capacity, LinkError> {
    match source {
        TraceSource::Constant(rate) => Ok(Capacity::Constant(*rate)),
        other => trace(other).map(Capacity::trace),
    }
}

/// The trace of a single source. A constant rate becomes one of a second.
///
/// # Errors
/// The file cannot be read or is no trace, or the rate is too low for one packet.
pub fn trace(source: &TraceSource) -> Result<Trace, LinkError> {
    let made = match source {
        TraceSource::Files(path) => return Ok(Trace::load(path)?),
        TraceSource::Constant(rate) => steps(&[(Duration::from_secs(1), *rate)]),
        TraceSource::Steps(each) => steps(each),
        TraceSource::Generated { kind, seed, length } => {
            return Ok(generated(*kind, *seed, *length));
        }
        TraceSource::Demo(name) => {
            let mut all = demo_set().into_iter();
            let found = all.find(|(n, _)| name.as_deref().is_none_or(|name| name == *n));
            found.map(|(_, trace)| trace).ok_or(TraceError::Empty)
        }
    };
    made.map_err(|problem| LinkError::Trace { name: source.to_string(), problem })
}

fn generated(kind: GeneratedKind, seed: u64, duration: Duration) -> Trace {
    match kind {
        GeneratedKind::Cellular => {
            Cellular { duration, ..Cellular::default() }.generate(seed).trace
        }
        GeneratedKind::Wifi => Wifi { duration, ..Wifi::default() }.generate(seed).trace,
    }
}

/// The capacity as a run with this seed sees it: seed 0 from the start of the trace, others from
/// points that spread over it (multiples of the golden ratio), so that seeds differ in more than
/// their losses.
pub fn at_seed(capacity: &Capacity, seed: u64) -> Capacity {
    match capacity {
        Capacity::Trace { trace, opportunity, .. } => {
            let golden = 0.618_033_988_749_894_9 * seed as f64;
            let share = golden - libm::floor(golden);
            let ms = (share * trace.period().as_millis_f64()) as u64;
            Capacity::Trace {
                trace: trace.clone(),
                offset: Duration::from_millis(ms),
                opportunity: *opportunity,
            }
        }
        other => other.clone(),
    }
}

/// The SHA-256 of a trace's delivery times as Mahimahi's plain text, so that a file and its compressed
/// copy have the same; of a constant rate, of its name.
pub fn checksum(source: &TraceSource, capacity: &Capacity) -> String {
    let mut text = Vec::new();
    match capacity {
        Capacity::Trace { trace, .. } => {
            // Writing into memory does not fail.
            let _ = trace.write_text(&mut text);
        }
        _ => text.extend(source.to_string().bytes()),
    }
    hex(&Sha256::digest(&text))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_go_by_content() {
        let dir = tempfile::tempdir().unwrap();
        let t = trace(&"constant:3Mbit/s".parse().unwrap()).unwrap();
        let sums: Vec<String> = ["a.trace", "b.trace.gz"]
            .iter()
            .map(|name| {
                let path = dir.path().join(name);
                t.write(&path).unwrap();
                let source = TraceSource::Files(path);
                checksum(&source, &capacity(&source).unwrap())
            })
            .collect();
        assert_eq!(sums[0], sums[1]);
        assert_eq!(sums[0].len(), 64);
    }

    #[test]
    fn every_kind_of_source_makes_a_link() {
        for (text, mbps) in [
            ("constant:12Mbit/s", 11.9..12.1),
            ("step:4Mbit/s,12Mbit/s@2s", 7.9..8.1),
            ("step:24Mbit/s@10s,0bit/s@3s,24Mbit/s@7s", 20.3..20.5),
            ("cellular:seed=3,length=30s", 0.5..60.0),
            ("wifi:seed=3,length=30s", 0.5..200.0),
            ("demo:wired-step", 19.0..20.0),
        ] {
            let source: TraceSource = text.parse().unwrap();
            let mean = capacity(&source).unwrap().mean_rate().mbps();
            assert!(mbps.contains(&mean), "{text}: {mean}");
        }
    }
}
