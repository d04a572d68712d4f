//! What tells networks of a fleet apart: the path to the clients of an aggregate, as they see it
//! under the safe configuration.

use serde::{Deserialize, Serialize};

/// Losses below this share are alike: it is what few connections are off by.
const LOSS_LEAST: f64 = 0.002;
/// So much of what is found on one path holds on all.
const ON_ALL: f64 = 0.4;
/// Logarithms are kept in hundredths: half a percent is nothing here.
const GRID: f64 = 100.0;

/// Round-trip time, throughput and loss of a path, each as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFeatures([i16; 3]);

impl PathFeatures {
    /// A path with this mean round-trip time in seconds, mean throughput of a connection in Mbit/s,
    /// and share of packets lost. None where one is no number, or the first two are not above 0.
    pub fn new(rtt_s: f64, mbit_per_s: f64, loss: f64) -> Option<Self> {
        let is_fine = rtt_s > 0.0 && mbit_per_s > 0.0 && loss >= 0.0;
        let logs = [rtt_s, mbit_per_s, loss.max(LOSS_LEAST)].map(|x| GRID * libm::log(x));
        // What no path has counts as the furthest that one could have.
        let fine = is_fine && logs.iter().all(|log| log.is_finite());
        fine.then(|| Self(logs.map(|log| log.round().clamp(-2000.0, 2000.0) as i16)))
    }

    /// Mean round-trip time in seconds, throughput in Mbit/s, and share of packets lost; the latter
    /// is [`LOSS_LEAST`] where it was less.
    pub fn features(&self) -> (f64, f64, f64) {
        let [rtt, rate, loss] = self.0.map(|log| libm::exp(f64::from(log) / GRID));
        (rtt, rate, loss)
    }

    /// The square of how far they are apart, in natural logarithms. Paths whose features differ by a
    /// factor of e have exp(-1/2) of what is particular to a path in common: 0.61.
    pub(super) fn distance2(&self, other: &Self) -> f64 {
        let off = |(a, b): (&i16, &i16)| (f64::from(*a) - f64::from(*b)) / GRID;
        self.0.iter().zip(&other.0).map(off).map(|d| d * d).sum()
    }

    /// The path between two of which the second has this share of the weight.
    pub(super) fn towards(&self, other: &Self, share: f64) -> Self {
        let mut logs = self.0;
        for (log, to) in logs.iter_mut().zip(&other.0) {
            let (from, to) = (f64::from(*log), f64::from(*to));
            *log = (from + share * (to - from)).round() as i16;
        }
        Self(logs)
    }
}

/// How much of what is found on one path holds on the other, 0 to 1. A path that is not known is one
/// more path: were it like all others, those would have to be alike.
pub(super) fn in_common(a: Option<PathFeatures>, b: Option<PathFeatures>) -> f64 {
    let particular = match (a, b) {
        (Some(a), Some(b)) => libm::exp(-0.5 * a.distance2(&b)),
        (None, None) => 1.0,
        _ => 0.0,
    };
    ON_ALL + (1.0 - ON_ALL) * particular
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rtt_s: f64, mbit_per_s: f64, loss: f64) -> PathFeatures {
        PathFeatures::new(rtt_s, mbit_per_s, loss).unwrap()
    }

    #[test]
    fn features_are_kept_within_half_a_percent() {
        for (rtt, rate, loss) in [(0.08, 12.5, 0.01), (0.9, 0.2, 0.3), (0.001, 900.0, 0.05)] {
            let (kept_rtt, kept_rate, kept_loss) = path(rtt, rate, loss).features();
            for (kept, was) in [(kept_rtt, rtt), (kept_rate, rate), (kept_loss, loss)] {
                assert!((kept / was - 1.0).abs() < 0.006, "{kept} {was}");
            }
        }
        // Few connections lose nothing, and that is no feature of a path.
        assert_eq!(path(0.1, 1.0, 0.0), path(0.1, 1.0, 0.0015));
    }

    #[test]
    fn what_is_no_path_has_none() {
        let none = [
            (0.0, 1.0, 0.0),
            (0.1, 0.0, 0.0),
            (0.1, 1.0, -0.1),
            (f64::NAN, 1.0, 0.0),
            (0.1, f64::INFINITY, 0.0),
            (0.1, 1.0, f64::NAN),
        ];
        for (rtt, rate, loss) in none {
            assert_eq!(PathFeatures::new(rtt, rate, loss), None, "{rtt} {rate} {loss}");
        }
    }

    /// By hand: a factor of e in one feature is exp(-1/2) of what is particular to a path.
    #[test]
    fn paths_have_less_in_common_the_further_they_are_apart() {
        let here = path(0.1, 10.0, 0.01);
        let common = |other| in_common(Some(here), Some(other));
        assert!((common(here) - 1.0).abs() < 1e-12);
        let expected = ON_ALL + (1.0 - ON_ALL) * 0.606_530_66;
        assert!((common(path(0.271_828, 10.0, 0.01)) - expected).abs() < 1e-3);
        assert!((common(path(0.001, 1000.0, 0.5)) - ON_ALL).abs() < 1e-3);
        assert_eq!((in_common(Some(here), None), in_common(None, None)), (ON_ALL, 1.0));
        let there = path(0.2, 3.0, 0.1);
        assert_eq!(in_common(Some(here), Some(there)), in_common(Some(there), Some(here)));
    }

    #[test]
    fn between_two_paths_is_their_geometric_mean() {
        let half = path(0.05, 4.0, 0.01).towards(&path(0.2, 16.0, 0.04), 0.5);
        // A step of the grid is what two roundings are off by.
        assert!(half.distance2(&path(0.1, 8.0, 0.02)) < 1e-3, "{half:?}");
    }
}
