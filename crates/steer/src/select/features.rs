//! The state that selections go by, as numbers of a fixed order, name, unit and scale.
//!
//! The first fifteen are Floo's Table 2, whose paper says that metrics are normalised and not how.
//! Constants do it here, and no running statistics, so that a policy sees while it runs what it saw
//! while it learnt. The rest are ours.

use core::fmt;

use super::file::CANDIDATES_MAX;

/// How many numbers a state has.
pub const FEATURES_LEN: usize = 26;

/// How many of them are Floo's (Table 2); they come first.
pub const FLOO_FEATURES_LEN: usize = 15;

/// A state: one number per entry of [`FEATURES`], scaled. Most lie between 0 and 1, none is bounded.
pub type State = [f32; FEATURES_LEN];

/// One number of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feature {
    /// Its name, as model files write it.
    pub name: &'static str,
    /// The unit before scaling.
    pub unit: &'static str,
    /// How the number is made of the quantity.
    pub scale: Scale,
    /// What it is, in a few words.
    pub about: &'static str,
}

/// How a quantity becomes a number of the state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// As it is.
    Plain,
    /// `ln(1 + x/from) / ln(1 + to/from)`, with the sign of `x`: 0 at 0, 1 at `to`, and about as sensitive to every
    /// ratio between `from` and `to`.
    Log {
        /// What is distinguished from 0.
        from: f64,
        /// What becomes 1.
        to: f64,
    },
}

impl Scale {
    /// The number that stands for `x`; not finite where `x` is not.
    pub fn apply(self, x: f64) -> f32 {
        let scaled = match self {
            Self::Plain => x,
            Self::Log { from, to } => {
                libm::copysign(libm::log1p(x.abs() / from) / libm::log1p(to / from), x)
            }
        };
        scaled as f32
    }

    /// The quantity that a number of the state stands for.
    pub fn undo(self, number: f32) -> f64 {
        let scaled = f64::from(number);
        match self {
            Self::Plain => scaled,
            Self::Log { from, to } => {
                let size = from * libm::expm1(scaled.abs() * libm::log1p(to / from));
                libm::copysign(size, scaled)
            }
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("x"),
            Self::Log { from, to } => write!(f, "ln(1 + x/{from}) / ln(1 + {to}/{from})"),
        }
    }
}

pub(super) const RATE: Scale = Scale::Log { from: 10e3, to: 1e9 };
pub(super) const TIME: Scale = Scale::Log { from: 0.001, to: 1.0 };
const WAIT: Scale = Scale::Log { from: 0.001, to: 10.0 };
pub(super) const SIZE: Scale = Scale::Log { from: 1500.0, to: 100e6 };
const SHARE: Scale = Scale::Log { from: 0.001, to: 1.0 };
const EXCESS: Scale = Scale::Log { from: 0.05, to: 10.0 };

pub(super) const fn feature(
    name: &'static str,
    unit: &'static str,
    scale: Scale,
    about: &'static str,
) -> Feature {
    Feature { name, unit, scale, about }
}

/// The numbers of a state, in their order. "Of 10 s" is the 10 s before the newest round-trip sample, in half seconds;
/// "of the period" is since the selection before.
pub static FEATURES: [Feature; FEATURES_LEN] = [
    feature("thpt_max", "bit/s", RATE, "highest delivery rate of 10 s"),
    feature("rtt_min", "s", TIME, "lowest round-trip time of 10 s"),
    feature("loss_rate", "1", SHARE, "bytes lost per byte sent, of 10 s"),
    feature("rtt_rate", "1", EXCESS, "smoothed round-trip time over rtt_min, less 1"),
    feature(
        "rtt_var",
        "s^2",
        Scale::Log { from: 1e-6, to: 1.0 },
        "variance of the round-trip times of 10 s",
    ),
    feature("cca_cubic", "1", Scale::Plain, "1 while CUBIC runs, else 0"),
    feature("cca_bbr", "1", Scale::Plain, "1 while BBR runs, else 0"),
    feature("cca_copa", "1", Scale::Plain, "1 while Copa runs, else 0"),
    feature("cca_westwood", "1", Scale::Plain, "1 while Westwood+ runs, else 0"),
    feature("cwnd", "bytes", SIZE, "the congestion window, now"),
    feature(
        "goodput",
        "bit/s",
        RATE,
        "mean of size over duration of the period's finished responses",
    ),
    feature(
        "unsent_size",
        "bytes",
        SIZE,
        "response bytes that wait to be sent for the first time, now",
    ),
    feature(
        "qws",
        "s",
        WAIT,
        "mean wait of a response until its last byte was sent, of the period",
    ),
    feature("qws_gradient", "s/s", SHARE, "slope of these waits over the period, by least squares"),
    feature("bytes_interval", "bytes", SIZE, "bytes sent in the period"),
    feature("busy", "1", Scale::Plain, "share of the period in which the network was the limit"),
    feature("rtt_max_rate", "1", EXCESS, "highest round-trip time of 10 s over rtt_min, less 1"),
    feature(
        "loss_rtt_rate",
        "1",
        EXCESS,
        "the same at the time of losses, weighted by them: low where losses come without a queue",
    ),
    feature(
        "thpt_spread",
        "1",
        Scale::Log { from: 0.05, to: 2.0 },
        "standard deviation over mean of the delivery rates of 10 s that the network limited",
    ),
    feature(
        "responses",
        "1",
        Scale::Log { from: 1.0, to: 1000.0 },
        "responses finished in the period",
    ),
    feature("response_size", "bytes", SIZE, "their mean size"),
    // What tells a queue of others from one's own.
    feature("rtt_path", "s", TIME, "lowest round-trip time of the connection"),
    feature(
        "queue_floor_rate",
        "1",
        EXCESS,
        "lowest round-trip time of 2 s over rtt_path, less 1: a queue that does not empty",
    ),
    feature(
        "queue_quiet_rate",
        "1",
        EXCESS,
        "the same of the half second of 10 s in which it sent least: high where others queue",
    ),
    feature(
        "delivered",
        "1",
        Scale::Plain,
        "bytes acknowledged per byte sent, of the half seconds of 10 s that the network limited",
    ),
    feature(
        "rate_rtt",
        "1",
        Scale::Plain,
        "correlation of the rate it sends at and the mean round-trip time, over 10 s",
    ),
];

/// Inputs of a model beyond the state, by the number of a candidate in the model's list: 1 while that candidate runs,
/// else 0. The `cca_` features above know an algorithm by its name alone, so two settings of Copa look the same there.
pub static CANDIDATE_FEATURES: [&str; CANDIDATES_MAX] = [
    "candidate_0",
    "candidate_1",
    "candidate_2",
    "candidate_3",
    "candidate_4",
    "candidate_5",
    "candidate_6",
    "candidate_7",
    "candidate_8",
    "candidate_9",
    "candidate_10",
    "candidate_11",
    "candidate_12",
    "candidate_13",
    "candidate_14",
    "candidate_15",
];

/// The place of the feature of this name in a state.
pub fn feature_index(name: &str) -> Option<usize> {
    FEATURES.iter().position(|f| f.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_written_as_its_formula() {
        assert_eq!(Scale::Plain.to_string(), "x");
        let log = Scale::Log { from: 0.5, to: 10.0 };
        assert_eq!(log.to_string(), "ln(1 + x/0.5) / ln(1 + 10/0.5)");
    }

    /// With `from` 1 and `to` 255: 1 at 255, a half at 15, a quarter at 3.
    #[test]
    fn a_logarithmic_scale_tells_ratios_apart() {
        let scale = Scale::Log { from: 1.0, to: 255.0 };
        for (x, expected) in [(3.0, 0.25), (15.0, 0.5), (255.0, 1.0), (65_535.0, 2.0)] {
            assert!((scale.apply(x) - expected).abs() < 1e-6, "{x}");
            assert!((scale.apply(-x) + expected).abs() < 1e-6, "{x}");
        }
        assert_eq!(Scale::Plain.apply(-7.5), -7.5);
        for x in [-300.0, 0.0, 0.2, 255.0] {
            assert!((scale.undo(scale.apply(x)) - x).abs() < 1e-4, "{x}");
        }
        assert_eq!(Scale::Plain.undo(-7.5), -7.5);
    }

    #[test]
    fn names_that_there_are_not_have_no_place() {
        assert_eq!((feature_index("rtt_min"), feature_index("rtt")), (Some(1), None));
        for (i, name) in CANDIDATE_FEATURES.iter().enumerate() {
            assert_eq!((*name, feature_index(name)), (&*format!("candidate_{i}"), None));
        }
    }
}
