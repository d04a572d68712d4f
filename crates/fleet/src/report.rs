//! What an edge sends once per aggregate and interval.

use serde::{Deserialize, Serialize};

use crate::{Interval, Key, Summary};

/// The largest report in its encoded form. A sketch of a million different values has some 10 KB.
pub const REPORT_BYTES_MAX: usize = 128 * 1024;

/// The format of a report, and of one whose connections stand by the arm of the next interval. An
/// engine that sends no control gets none of the latter.
const FORMAT: u8 = 1;
const FORMAT_BY_NEXT: u8 = 2;

/// What one edge saw of one aggregate in one interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The aggregate.
    pub key: Key,
    /// The interval.
    pub interval: Interval,
    /// The version of the configuration that was in force; connections that ran another one are not in it.
    pub version: u64,
    /// What its connections saw.
    pub summary: Summary,
    /// The same by the arm that each connection's cluster is in in the *next* interval, where arms
    /// run side by side: [`TREATMENT`](crate::TREATMENT), then [`CONTROL`](crate::CONTROL). What
    /// clusters saw before they are drawn is their covariate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<[Summary; 2]>,
}

/// A report as it is encoded: `W` is its summary, or the two of `next`.
#[derive(Serialize, Deserialize)]
struct Wire<W> {
    key: Key,
    interval: Interval,
    version: u64,
    what: W,
}

/// Why bytes are no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// There are too many.
    #[error(
        "a report has at most {REPORT_BYTES_MAX} bytes, and this one has {0}: send fewer statistics"
    )]
    TooLarge(usize),
    /// They are of another format.
    #[error(
        "this is no report of format {FORMAT}: edge and engine must be of versions that go together"
    )]
    Format,
    /// They end too early, or hold something that cannot be.
    #[error("malformed report: {0}")]
    Malformed(String),
    /// Something follows the report.
    #[error("malformed report: {0} bytes follow its end")]
    Trailing(usize),
}

impl Report {
    /// The report as bytes.
    ///
    /// # Errors
    /// It would be larger than [`REPORT_BYTES_MAX`].
    pub fn encode(&self) -> Result<Vec<u8>, ReportError> {
        if let Some(next) = &self.next {
            let bytes = self.encode_as(FORMAT_BY_NEXT, next)?;
            // Without the covariate it is smaller.
            if bytes.len() <= REPORT_BYTES_MAX {
                return Ok(bytes);
            }
        }
        let bytes = self.encode_as(FORMAT, &self.summary)?;
        if bytes.len() > REPORT_BYTES_MAX {
            Err(ReportError::TooLarge(bytes.len()))
        } else {
            Ok(bytes)
        }
    }

    fn encode_as(&self, format: u8, what: &impl Serialize) -> Result<Vec<u8>, ReportError> {
        let Self { key, interval, version, .. } = self.clone();
        let body = postcard::to_allocvec(&Wire { key, interval, version, what });
        let body = body.map_err(|e| ReportError::Malformed(e.to_string()))?;
        Ok([vec![format], body].concat())
    }

    /// A report from bytes that nobody vouches for.
    ///
    /// # Errors
    /// They are too many, of another format, or no report. It never allocates more than a small multiple of the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReportError> {
        if bytes.len() > REPORT_BYTES_MAX {
            return Err(ReportError::TooLarge(bytes.len()));
        }
        match bytes.split_first() {
            Some((&FORMAT, body)) => {
                let Wire { key, interval, version, what: summary } = whole(body)?;
                Ok(Self { key, interval, version, summary, next: None })
            }
            Some((&FORMAT_BY_NEXT, body)) => {
                let Wire { key, interval, version, what } = whole::<Wire<[Summary; 2]>>(body)?;
                let [mut summary, other] = what.clone();
                summary.merge(&other);
                Ok(Self { key, interval, version, summary, next: Some(what) })
            }
            _ => Err(ReportError::Format),
        }
    }
}

/// All of some bytes.
fn whole<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ReportError> {
    match postcard::take_from_bytes(body) {
        Ok((read, [])) => Ok(read),
        Ok((_, rest)) => Err(ReportError::Trailing(rest.len())),
        Err(cause) => Err(ReportError::Malformed(cause.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Sketch;

    fn report(values: &[f64]) -> Report {
        let mut summary = Summary::new(values.len() as u64);
        summary.set("throughput", Sketch::of(values.iter().copied())).unwrap();
        summary.set("rtt", Sketch::of(values.iter().map(|v| v * 0.01))).unwrap();
        Report {
            key: "tv/203.0.113.0/24".parse().unwrap(),
            interval: Interval(1_496_100),
            version: 7,
            summary,
            next: None,
        }
    }

    #[test]
    fn is_compact() {
        // A thousand connections, log-uniform over four decades.
        let values: Vec<f64> = (0..1000).map(|i| 0.01 * 1.0093_f64.powi(i)).collect();
        let len = report(&values).encode().unwrap().len();
        assert!(len < 8000, "{len}");
        assert!(report(&[3.0; 1000]).encode().unwrap().len() < 80);
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let good = report(&[1.0, 2.0, 500.0]).encode().unwrap();
        assert_eq!(Report::decode(&[]), Err(ReportError::Format));
        assert_eq!(Report::decode(&[3, 0, 0]), Err(ReportError::Format));
        for cut in 1..good.len() {
            assert!(
                matches!(Report::decode(&good[..cut]), Err(ReportError::Malformed(_))),
                "{cut}"
            );
        }
        let longer = [&good[..], &[0, 0]].concat();
        assert_eq!(Report::decode(&longer), Err(ReportError::Trailing(2)));
        let huge = vec![1; REPORT_BYTES_MAX + 1];
        assert_eq!(Report::decode(&huge), Err(ReportError::TooLarge(REPORT_BYTES_MAX + 1)));
        // A length of 2⁶³ in place of the first one must not be believed.
        let lie = [&[1u8][..], &[0xff; 9], &[0x01]].concat();
        assert!(Report::decode(&lie).is_err());
    }

    /// Bytes that an edge of before there were arms side by side has sent, and what an engine of then
    /// reads of a report without them.
    #[test]
    fn a_report_without_arms_is_as_it_always_was() {
        let report = report(&[3.0]);
        let Report { key, interval, version, summary, .. } = report.clone();
        let then = postcard::to_allocvec(&(key, interval, version, summary)).unwrap();
        assert_eq!(report.encode().unwrap(), [vec![1], then].concat());
    }

    #[test]
    fn what_stands_by_the_next_arm_is_kept_and_adds_up_to_the_whole() {
        let (some, others) = (report(&[1.0, 2.0]), report(&[4.0]));
        let next = [some.summary, others.summary];
        let whole = Report { next: Some(next.clone()), ..report(&[1.0, 2.0, 4.0]) };
        assert_eq!(Report::decode(&whole.encode().unwrap()).unwrap(), whole);
        // Where both have no room, the whole goes without.
        let mut many = Summary::new(1);
        let values: Vec<f64> = (0..20_000).map(|i| 0.01 * 1.0008_f64.powi(i)).collect();
        let sketch = Sketch::of(values);
        (0..14).for_each(|n| many.set(&format!("s{n}"), sketch.clone()).unwrap());
        let large = Report { summary: many.clone(), next: Some([many.clone(), many]), ..whole };
        let read = Report::decode(&large.encode().unwrap()).unwrap();
        assert_eq!((read.next, read.summary), (None, large.summary));
    }

    proptest! {
        #[test]
        fn there_and_back(values in prop::collection::vec(0.0..1e6f64, 0..200)) {
            let report = report(&values);
            let bytes = report.encode().unwrap();
            prop_assert_eq!(Report::decode(&bytes).unwrap(), report);
        }

        #[test]
        fn changed_bytes_make_a_report_or_an_error(at in 0usize..200, to in any::<u8>()) {
            let mut bytes = report(&[1.0, 2.0, 3.0, 90.0]).encode().unwrap();
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(report) = Report::decode(&bytes) {
                // Whatever was let through can be used.
                let mut merged = report.summary.clone();
                merged.merge(&report.summary);
                prop_assert!(report.encode().is_ok());
            }
        }
    }
}
