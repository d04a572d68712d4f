//! Knobs between their units and the kernel's integers.

use trimtab_cc::{Knob, KnobError};

use crate::algorithm::Algorithm;
use crate::layout::{Code, Encoded, KNOBS_MAX};

/// The knobs as the kernel takes them.
pub(crate) type Words = [u32; KNOBS_MAX];

/// HyStart++, and what stands for it in the kernel.
const HYSTART_PP: u32 = 1;
const HYSTART_LINUX: u32 = 2;

/// A knob, and how it becomes an integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) knob: &'static Knob,
    encoded: Encoded,
}

/// Every knob of an algorithm, in its place.
pub(crate) fn places(algorithm: Algorithm) -> impl Iterator<Item = Place> {
    let both = algorithm.knobs().iter().zip(algorithm.layout().knobs);
    both.enumerate().map(|(index, (knob, &encoded))| Place { index, knob, encoded })
}

/// The place of a knob.
///
/// # Errors
/// The algorithm has no such knob.
pub(crate) fn find(algorithm: Algorithm, name: &str) -> Result<Place, KnobError> {
    let knobs = algorithm.knobs();
    places(algorithm).find(|place| place.encoded.name == name).ok_or(KnobError::Unknown { knobs })
}

impl Place {
    /// The knob's integer for a value, which is brought into the knob's range first.
    pub(crate) fn encode(self, value: f64) -> u32 {
        let value = value.clamp(self.knob.min, self.knob.max);
        let scale = f64::from(self.encoded.scale);
        let word = match self.encoded.code {
            Code::PLAIN | Code::HYSTART => value * scale,
            Code::INVERSE => scale / value,
        };
        match (self.encoded.code, word.round() as u32) {
            (Code::HYSTART, HYSTART_PP) => HYSTART_LINUX,
            (_, word) => word,
        }
    }

    /// The value of the knob's integer.
    pub(crate) fn decode(self, word: u32) -> f64 {
        let scale = f64::from(self.encoded.scale);
        match self.encoded.code {
            Code::PLAIN | Code::HYSTART => f64::from(word) / scale,
            Code::INVERSE => scale / f64::from(word.max(1)),
        }
    }

    /// Whether the integer leaves the choice to the system.
    pub(crate) fn is_left(self, word: u32) -> bool {
        self.knob.name == "initial_window" && word == 0
    }
}

/// Every knob at its default; the initial window is 0, which leaves it to the system.
pub(crate) fn defaults(algorithm: Algorithm) -> Words {
    let mut words = [0; KNOBS_MAX];
    for place in places(algorithm) {
        let left = place.knob.name == "initial_window";
        words[place.index] = if left { 0 } else { place.encode(place.knob.default) };
    }
    words
}

/// The least integer of each knob: 0, which leaves the choice to the system, where it may be left.
pub(crate) fn least(algorithm: Algorithm) -> Words {
    ends(algorithm, u32::min)
}

/// The greatest integer of each knob.
pub(crate) fn most(algorithm: Algorithm) -> Words {
    ends(algorithm, u32::max)
}

fn ends(algorithm: Algorithm, of: impl Fn(u32, u32) -> u32) -> Words {
    let mut words = [0; KNOBS_MAX];
    for place in places(algorithm) {
        let (one, other) = (place.encode(place.knob.min), place.encode(place.knob.max));
        let one = if place.is_left(0) { 0 } else { one };
        words[place.index] = of(one, other);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_every_knob_of_the_algorithm_in_its_place() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.knobs().len(), algorithm.layout().knobs.len());
            for (knob, encoded) in algorithm.knobs().iter().zip(algorithm.layout().knobs) {
                assert_eq!(knob.name, encoded.name);
            }
        }
    }

    #[test]
    fn a_knob_comes_back_within_a_thousandth_over_its_whole_range() {
        for place in Algorithm::ALL.into_iter().flat_map(places) {
            let knob = place.knob;
            for step in 0..=100 {
                let value = knob.min + (knob.max - knob.min) * f64::from(step) / 100.0;
                let back = place.decode(place.encode(value));
                let switch = place.encoded.scale == 1;
                let error = (back - value).abs();
                assert!(
                    switch || error <= 1e-3 * value.max(0.5),
                    "{}: {value} became {back}",
                    knob.name
                );
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_brought_into_it() {
        let delta = find(Algorithm::Copa, "delta").unwrap();
        assert_eq!(delta.decode(delta.encode(100.0)), delta.knob.max);
        assert_eq!(delta.encode(-1.0), delta.encode(delta.knob.min));
        assert!(matches!(find(Algorithm::Copa, "beta"), Err(KnobError::Unknown { .. })));
        assert!(matches!(find(Algorithm::Cubic, "linux"), Err(KnobError::Unknown { .. })));
    }

    #[test]
    fn hystart_plus_plus_becomes_what_the_kernel_has() {
        let hystart = find(Algorithm::Cubic, "hystart").unwrap();
        let in_force = |value| hystart.decode(hystart.encode(value));
        assert_eq!([0.0, 1.0, 2.0, 3.0].map(in_force), [0.0, 2.0, 2.0, 3.0]);
    }
}
