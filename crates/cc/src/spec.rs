//! Algorithms by name: `cubic`, `copa:mit`, `copa:delta=0.1`.

use core::fmt;
use core::str::FromStr;

use crate::{ALGORITHMS, Algorithm, Config, Controller, KnobError, find, set_knob};

/// The most knobs that an algorithm of the table has, so that one spec can set.
pub const KNOBS_MAX: usize = {
    let (mut most, mut i) = (0, 0);
    while i < ALGORITHMS.len() {
        let knobs = ALGORITHMS[i].knobs.len();
        most = if knobs > most { knobs } else { most };
        i += 1;
    }
    most
};

/// An algorithm with the settings that it starts with, parsed from
/// `NAME[:PRESET][:KNOB=VALUE[,KNOB=VALUE…]]` and checked: building one cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    algorithm: &'static Algorithm,
    settings: [(&'static str, f64); KNOBS_MAX],
    len: usize,
    /// What builds an algorithm from outside; the table's build themselves.
    #[cfg(feature = "plugin")]
    outside: Option<&'static crate::Outside>,
}

impl Spec {
    /// The algorithm called `name`, every knob at its default; `None` when there is no such one.
    pub fn new(name: &str) -> Option<Self> {
        find(name).map(Self::of)
    }

    /// An algorithm that need not be in the table, every knob at its default.
    ///
    /// # Panics
    /// It has more knobs than any algorithm of the table.
    pub fn of(algorithm: &'static Algorithm) -> Self {
        assert!(algorithm.knobs.len() <= KNOBS_MAX, "more knobs than a spec can set");
        Self {
            algorithm,
            settings: [("", 0.0); KNOBS_MAX],
            len: 0,
            #[cfg(feature = "plugin")]
            outside: None,
        }
    }

    /// An algorithm from outside, every knob at its default.
    ///
    /// # Panics
    /// It has more than [`KNOBS_MAX`] knobs.
    #[cfg(feature = "plugin")]
    pub fn plugged(outside: &'static crate::Outside) -> Self {
        Self { outside: Some(outside), ..Self::of(outside.algorithm()) }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// The knobs that differ from their default, in the order in which they were given.
    pub fn settings(&self) -> &[(&'static str, f64)] {
        &self.settings[..self.len]
    }

    /// Whether both name the same algorithm with the same knobs, set in the same order.
    pub fn is_same(&self, other: &Self) -> bool {
        self.algorithm.name == other.algorithm.name && self.settings() == other.settings()
    }

    /// Sets a knob for the start; a second setting of the same knob replaces the first.
    ///
    /// # Errors
    /// There is no such knob, or the value is out of its range.
    pub fn set(&mut self, knob: &str, value: f64) -> Result<(), KnobError> {
        let knobs = self.algorithm.knobs;
        let knob = knobs.iter().find(|k| k.name == knob).ok_or(KnobError::Unknown { knobs })?;
        knob.check(value)?;
        let used = &mut self.settings[..self.len];
        if let Some(setting) = used.iter_mut().find(|(name, _)| *name == knob.name) {
            setting.1 = value;
        } else {
            // There is a slot for each knob, and a knob takes one.
            self.settings[self.len] = (knob.name, value);
            self.len += 1;
        }
        Ok(())
    }

    /// Builds the algorithm.
    pub fn build(&self, config: &Config) -> Controller {
        let mut cca = self.build_at_defaults(config);
        for &(name, value) in self.settings() {
            let set = set_knob(&mut cca, name, value);
            debug_assert!(set.is_ok(), "checked by Spec::set");
        }
        cca
    }

    fn build_at_defaults(&self, config: &Config) -> Controller {
        #[cfg(feature = "plugin")]
        if let Some(outside) = self.outside {
            return outside.build(config).into();
        }
        (self.algorithm.build)(config)
    }
}

/// Why a text names no algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpecError {
    /// There is no algorithm of that name.
    UnknownAlgorithm,
    /// The algorithm has no preset of that name.
    UnknownPreset {
        /// The name of the algorithm.
        algorithm: &'static str,
    },
    /// What follows a knob's `=` is no number.
    NotANumber,
    /// A knob could not be set.
    Knob(KnobError),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm => {
                f.write_str("no such algorithm; there are: ")?;
                for (i, a) in ALGORITHMS.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, a.name)?;
                }
                Ok(())
            }
            Self::UnknownPreset { algorithm } => {
                write!(f, "{algorithm} has no such preset")?;
                let presets = find(algorithm).map_or(&[][..], |a| a.presets);
                for (i, p) in presets.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "; there are: " } else { ", " }, p.name)?;
                }
                f.write_str("; a knob is set by NAME=VALUE")
            }
            Self::NotANumber => f.write_str("a knob is set by NAME=VALUE with a number for VALUE"),
            Self::Knob(e) => e.fmt(f),
        }
    }
}
impl core::error::Error for SpecError {}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.trim().split(':');
        let name = parts.next().unwrap_or_default();
        let mut spec = Self::new(name).ok_or(SpecError::UnknownAlgorithm)?;
        for part in parts.flat_map(|p| p.split(',')) {
            match part.split_once('=') {
                Some((knob, value)) => {
                    let value = value.trim().parse().map_err(|_| SpecError::NotANumber)?;
                    spec.set(knob.trim(), value).map_err(SpecError::Knob)?;
                }
                None => {
                    let algorithm = spec.algorithm;
                    let unknown = SpecError::UnknownPreset { algorithm: algorithm.name };
                    let preset =
                        algorithm.presets.iter().find(|p| p.name == part).ok_or(unknown)?;
                    for &(knob, value) in preset.knobs {
                        spec.set(knob, value).map_err(SpecError::Knob)?;
                    }
                }
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Knob, get_knob};
    use std::string::String;

    /// The algorithm with the most knobs fills all slots of a spec.
    #[test]
    fn a_spec_can_set_every_knob_and_set_them_again() {
        assert_eq!(ALGORITHMS.iter().map(|a| a.knobs.len()).max(), Some(KNOBS_MAX));
        for algorithm in ALGORITHMS.iter().filter(|a| !a.knobs.is_empty()) {
            let mut text = String::from(algorithm.name);
            // All at the minimum, and then at the maximum: the second replaces the first.
            for number in [|k: &Knob| k.min, |k: &Knob| k.max] {
                for (i, knob) in algorithm.knobs.iter().enumerate() {
                    let separator = if i == 0 { ':' } else { ',' };
                    text += &std::format!("{separator}{}={}", knob.name, number(knob));
                }
            }
            let spec: Spec = text.parse().expect("every knob once in its range");
            assert_eq!(spec.settings().len(), algorithm.knobs.len(), "{text}");
            let cca = spec.build(&Config::default());
            for knob in algorithm.knobs {
                assert_eq!(get_knob(&cca, knob.name), Some(knob.max), "{text}: {}", knob.name);
            }
        }
    }

    #[test]
    fn what_is_no_spec_says_why() {
        let why = |text: &str| text.parse::<Spec>().expect_err("no spec");
        assert_eq!(why("tahoe"), SpecError::UnknownAlgorithm);
        assert_eq!(why("copa:fast"), SpecError::UnknownPreset { algorithm: "copa" });
        assert_eq!(why("copa:delta=much"), SpecError::NotANumber);
        assert_eq!(
            std::format!("{}", why("copa:delta=3")),
            "delta = 3 is outside its range 0.002 to 2"
        );
        assert_eq!(
            std::format!("{}", why("vegas:delta=3")),
            "no such knob; this algorithm has: alpha, beta, gamma"
        );
        assert_eq!(std::format!("{}", why("westwood:c=1")), "this algorithm has no knobs");
        assert_eq!(
            std::format!("{}", why("copa:fast")),
            "copa has no such preset; there are: mit, mvfst; a knob is set by NAME=VALUE"
        );
        assert_eq!(
            std::format!("{}", why("vegas:fast")),
            "vegas has no such preset; a knob is set by NAME=VALUE"
        );
        let algorithms = std::format!("{}", why("tahoe"));
        assert!(algorithms.starts_with("no such algorithm; there are: newreno, cubic, copa, "));
    }

    /// A preset is a start: what follows it replaces what it sets, and white space counts for
    /// nothing.
    #[test]
    fn what_is_set_later_replaces_what_was_set_before() {
        let spec: Spec = " copa:mvfst:delta = 0.1,standing=0 ".parse().expect("a spec");
        assert_eq!(spec.settings(), [("delta", 0.1), ("competitive", 0.0), ("standing", 0.0)]);
        let same: Spec = "copa:delta=0.1,competitive=0,standing=0".parse().expect("a spec");
        assert!(spec.is_same(&same));
        assert!(!spec.is_same(&"copa:delta=0.1".parse().expect("a spec")));
        assert!(!spec.is_same(&"vegas".parse().expect("a spec")));
    }
}
