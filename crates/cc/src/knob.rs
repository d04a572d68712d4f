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
    /// The place in `table` of the knob called `name`. In a constant, a wrong name does not
    /// compile.
    ///
    /// # Panics
    /// The table has no such knob.
    pub const fn place(table: &[Self], name: &str) -> usize {
        let mut place = 0;
        while place < table.len() {
            if is_same(table[place].name, name) {
                return place;
            }
            place += 1;
        }
        panic!("the table has no knob of that name")
    }

    /// The knob of `table` called `name`. In a constant, a wrong name does not compile.
    ///
    /// # Panics
    /// The table has no such knob.
    pub const fn named(table: &[Self], name: &str) -> Self {
        table[Self::place(table, name)]
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

/// Whether two names are the same, in constants too.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut same = a.len() == b.len();
    let mut i = 0;
    while same && i < a.len() {
        same = a[i] == b[i];
        i += 1;
    }
    same
}

/// What a knob's number means to its algorithm.
pub(crate) trait Value {
    /// The value that stands for this number.
    fn of(number: f64) -> Self;

    /// The number of this value.
    fn number(self) -> f64;
}

impl Value for f64 {
    fn of(number: f64) -> Self {
        number
    }

    fn number(self) -> f64 {
        self
    }
}

/// A switch: 0 is off, 1 is on.
impl Value for bool {
    fn of(number: f64) -> Self {
        number >= 0.5
    }

    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// An algorithm's knobs: their table, and a struct that holds their values by name.
///
/// Each knob is `NAME: TYPE = DEFAULT, MIN..=MAX, UNIT, ABOUT;`. The order is part of the public
/// interface: C programs and the eBPF datapath know knobs by their place.
macro_rules! knobs {
    ($(#[$meta:meta])* $vis:vis struct $Values:ident {$(
        $name:ident: $Type:ty = $default:expr, $range:expr, $unit:expr, $about:expr;
    )*}) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $Values {
            $(#[doc = $about] $vis $name: $Type,)*
        }

        impl $Values {
            /// The table.
            $vis const KNOBS: &'static [$crate::Knob] = &[$($crate::Knob {
                name: stringify!($name),
                unit: $unit,
                min: *$range.start(),
                max: *$range.end(),
                default: $default,
                about: $about,
            },)*];

            fn of(numbers: [f64; Self::KNOBS.len()]) -> Self {
                let [$($name),*] = numbers;
                Self { $($name: $crate::knob::Value::of($name),)* }
            }

            fn numbers(self) -> [f64; Self::KNOBS.len()] {
                [$($crate::knob::Value::number(self.$name)),*]
            }

            /// The number of a knob, by its place in the table.
            $vis fn get(&self, place: usize) -> Option<f64> {
                self.numbers().get(place).copied()
            }

            /// Sets a knob, by its place in the table.
            $vis fn set(&mut self, place: usize, number: f64) {
                let mut numbers = self.numbers();
                if let Some(slot) = numbers.get_mut(place) {
                    *slot = number;
                    *self = Self::of(numbers);
                }
            }
        }

        impl Default for $Values {
            fn default() -> Self {
                Self::of(core::array::from_fn(|place| Self::KNOBS[place].default))
            }
        }
    };
}
pub(crate) use knobs;

/// The methods of [`CongestionControl`](crate::CongestionControl) about knobs, for an algorithm
/// that keeps their values in the field named, and the method to call after one was set, if any.
macro_rules! knob_methods {
    ($self:ident.$($values:ident).+ $(, then $changed:ident)?) => {
        fn knobs(&$self) -> &'static [$crate::Knob] {
            Self::KNOBS
        }

        fn knob(&$self, index: usize) -> Option<f64> {
            $self.$($values).+.get(index)
        }

        fn apply_knob(&mut $self, index: usize, value: f64) {
            $self.$($values).+.set(index, value);
            $($self.$changed(index);)?
        }
    };
}
pub(crate) use knob_methods;

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

#[cfg(test)]
mod tests {
    use super::*;

    knobs! {
        /// Two knobs.
        struct Values {
            share: f64 = 0.5, 0.0..=2.0, "1", "a number";
            on: bool = 1.0, 0.0..=1.0, "1", "a switch";
        }
    }

    #[test]
    fn the_table_is_what_is_declared_and_the_values_begin_with_its_defaults() {
        let share =
            Knob { name: "share", unit: "1", min: 0.0, max: 2.0, default: 0.5, about: "a number" };
        assert_eq!(Values::KNOBS.len(), 2);
        assert_eq!(Knob::named(Values::KNOBS, "share"), share);
        assert_eq!(Knob::place(Values::KNOBS, "on"), 1);
        let values = Values::default();
        assert_eq!((values.share, values.on), (0.5, true));
    }

    #[test]
    fn one_value_is_set_and_the_others_stay() {
        let mut values = Values::default();
        values.set(0, 1.25);
        assert_eq!((values.share, values.on), (1.25, true));
        values.set(1, 0.4);
        assert_eq!((values.get(0), values.get(1)), (Some(1.25), Some(0.0)), "a switch is 0 or 1");
        values.set(2, 7.0);
        assert_eq!((values.get(0), values.get(1), values.get(2)), (Some(1.25), Some(0.0), None));
    }

    #[test]
    #[should_panic = "the table has no knob of that name"]
    fn a_name_that_begins_another_is_not_that_name() {
        Knob::place(Values::KNOBS, "shar");
    }

    #[test]
    fn both_ends_are_within_the_range() {
        let knob = &Values::KNOBS[0];
        for value in [0.0, 1.0, 2.0] {
            assert_eq!(knob.check(value), Ok(()));
        }
        for value in [-1e-9, 2.0 + 1e-9, f64::INFINITY] {
            assert_eq!(knob.check(value), Err(KnobError::OutOfRange { knob, value }));
        }
        assert!(knob.check(f64::NAN).is_err());
    }
}
