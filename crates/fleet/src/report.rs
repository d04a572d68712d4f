//! What an edge sends once per aggregate and interval.

use serde::{Deserialize, Serialize};

use crate::{Interval, Key, Summary};

/// The largest report in its encoded form. A sketch of a million different values has some 10 KB.
pub const REPORT_BYTES_MAX: usize = 128 * 1024;

/// The format that this code writes.
const FORMAT: u8 = 1;

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
        let mut bytes = vec![FORMAT];
        let body =
            postcard::to_allocvec(self).map_err(|e| ReportError::Malformed(e.to_string()))?;
        bytes.extend(body);
        if bytes.len() > REPORT_BYTES_MAX {
            Err(ReportError::TooLarge(bytes.len()))
        } else {
            Ok(bytes)
        }
    }

    /// A report from bytes that nobody vouches for.
    ///
    /// # Errors
    /// They are too many, of another format, or no report. It never allocates more than a small multiple of the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReportError> {
        if bytes.len() > REPORT_BYTES_MAX {
            return Err(ReportError::TooLarge(bytes.len()));
        }
        let body = bytes.strip_prefix(&[FORMAT]).ok_or(ReportError::Format)?;
        match postcard::take_from_bytes(body) {
            Ok((report, [])) => Ok(report),
            Ok((_, rest)) => Err(ReportError::Trailing(rest.len())),
            Err(cause) => Err(ReportError::Malformed(cause.to_string())),
        }
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
        assert_eq!(Report::decode(&[2, 0, 0]), Err(ReportError::Format));
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
