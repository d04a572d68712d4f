//! Knobs: what of an algorithm can be steered while it runs.

use core::fmt;

/// A parameter of an algorithm that can be set at any time, and what setting it trades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knob {
    /// Its name, as on the command line: `delta`.
    pub name: &'static str,
    /// Its unit; `1` for a pure number.
    pub unit: &'static str,
    /// The lowest value that it takes.
    pub min: f64,
    /// The highest value that it takes.
    pub max: f64,
    /// The value without any setting.
    pub default: f64,
    /// What it does and what it trades, in one sentence.
    pub about: &'static str,
}

impl Knob {
    pub(crate) const fn new(
        name: &'static str,
        unit: &'static str,
        (min, max): (f64, f64),
        default: f64,
        about: &'static str,
    ) -> Self {
        Self { name, unit, min, max, default, about }
    }

    /// Checks a value against the range.
    ///
    /// # Errors
    /// The value is below the minimum, above the maximum, or NaN.
    pub fn check(&'static self, value: f64) -> Result<(), KnobError> {
        if value >= self.min && value <= self.max {
            Ok(())
        } else {
            Err(KnobError::OutOfRange { knob: self, value })
        }
    }
}

/// The values of an algorithm's knobs, in the order of its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<const N: usize>([f64; N]);

impl<const N: usize> Values<N> {
    /// The defaults of a table of `N` knobs.
    pub(crate) fn new(knobs: &[Knob]) -> Self {
        let mut values = [0.0; N];
        for (value, knob) in values.iter_mut().zip(knobs) {
            *value = knob.default;
        }
        Self(values)
    }

    pub(crate) fn get(&self, setting: impl Into<usize>) -> f64 {
        self.0[setting.into()]
    }

    /// Whether a knob that is 0 or 1 is on.
    pub(crate) fn is_on(&self, setting: impl Into<usize>) -> bool {
        self.get(setting) >= 0.5
    }

    pub(crate) fn at(&self, index: usize) -> Option<f64> {
        self.0.get(index).copied()
    }

    pub(crate) fn set(&mut self, index: usize, value: f64) {
        if let Some(slot) = self.0.get_mut(index) {
            *slot = value;
        }
    }
}

/// Why a knob was not set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KnobError {
    /// The algorithm has no knob of that name.
    Unknown {
        /// The knobs that it has.
        knobs: &'static [Knob],
    },
    /// The value is outside the knob's range.
    OutOfRange {
        /// The knob.
        knob: &'static Knob,
        /// The value.
        value: f64,
    },
}

impl fmt::Display for KnobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { knobs: [] } => f.write_str("this algorithm has no knobs"),
            Self::Unknown { knobs } => {
                f.write_str("no such knob; this algorithm has: ")?;
                for (i, knob) in knobs.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { "" } else { ", " }, knob.name)?;
                }
                Ok(())
            }
            Self::OutOfRange { knob, value } => {
                write!(
                    f,
                    "{} = {value} is outside its range {} to {}",
                    knob.name, knob.min, knob.max
                )
            }
        }
    }
}
impl core::error::Error for KnobError {}
