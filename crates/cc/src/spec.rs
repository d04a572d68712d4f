//! Algorithms by name: `cubic`, `copa:mit`, `copa:delta=0.1`.

use core::fmt;
use core::str::FromStr;

use crate::{ALGORITHMS, Algorithm, Config, Controller, KnobError, find, set_knob};

/// The most knobs that one spec can set. Every algorithm has fewer.
const SETTINGS_MAX: usize = 16;

/// An algorithm with the settings that it starts with, parsed from
/// `NAME[:PRESET][:KNOB=VALUE[,KNOB=VALUE…]]` and checked: building one cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    algorithm: &'static Algorithm,
    settings: [(&'static str, f64); SETTINGS_MAX],
    len: usize,
}

impl Spec {
    /// The algorithm called `name`, every knob at its default; `None` when there is no such one.
    pub fn new(name: &str) -> Option<Self> {
        find(name).map(Self::of)
    }

    /// An algorithm that need not be in the table, every knob at its default.
    pub fn of(algorithm: &'static Algorithm) -> Self {
        Self { algorithm, settings: [("", 0.0); SETTINGS_MAX], len: 0 }
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
            // As many slots as any algorithm has knobs, checked by a test.
            self.settings[self.len] = (knob.name, value);
            self.len += 1;
        }
        Ok(())
    }

    /// Builds the algorithm.
    pub fn build(&self, config: &Config) -> Controller {
        let mut cca = (self.algorithm.build)(config);
        for &(name, value) in self.settings() {
            let set = set_knob(&mut cca, name, value);
            debug_assert!(set.is_ok(), "checked by Spec::set");
        }
        cca
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
