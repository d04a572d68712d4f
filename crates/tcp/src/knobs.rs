//! Knobs between their units and the kernel's integers.

use trimtab_cc::{Copa, Knob, KnobError};

use crate::layout::{COPA_KNOBS, Code, Encoded, KNOBS_MAX};

/// The knobs as the kernel takes them.
pub(crate) type Words = [u32; KNOBS_MAX];

/// The place of a knob of Copa, and the knob.
///
/// # Errors
/// There is no such knob.
pub(crate) fn find(name: &str) -> Result<(usize, &'static Knob), KnobError> {
    let knobs = Copa::KNOBS;
    let place =
        COPA_KNOBS.iter().position(|k| k.name == name).ok_or(KnobError::Unknown { knobs })?;
    Ok((place, &knobs[place]))
}

/// The knob's integer for a value, which is brought into the knob's range first.
pub(crate) fn encode(place: usize, value: f64) -> u32 {
    let knob = &Copa::KNOBS[place];
    let value = value.clamp(knob.min, knob.max);
    let Encoded { scale, code, .. } = COPA_KNOBS[place];
    let scale = f64::from(scale);
    let scaled = match code {
        Code::PLAIN => value * scale,
        Code::INVERSE => scale / value,
    };
    scaled.round() as u32
}

/// The value of the knob's integer.
pub(crate) fn decode(place: usize, word: u32) -> f64 {
    let Encoded { scale, code, .. } = COPA_KNOBS[place];
    let scale = f64::from(scale);
    match code {
        Code::PLAIN => f64::from(word) / scale,
        Code::INVERSE => scale / f64::from(word.max(1)),
    }
}

/// Every knob at its default; the initial window is 0, which leaves it to the system.
pub(crate) fn defaults() -> Words {
    let mut words = [0; KNOBS_MAX];
    for (place, knob) in Copa::KNOBS.iter().enumerate() {
        words[place] = if knob.name == "initial_window" { 0 } else { encode(place, knob.default) };
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_every_knob_of_the_algorithm_in_its_place() {
        assert_eq!(Copa::KNOBS.len(), COPA_KNOBS.len());
        for (knob, encoded) in Copa::KNOBS.iter().zip(COPA_KNOBS) {
            assert_eq!(knob.name, encoded.name);
        }
    }

    #[test]
    fn a_knob_comes_back_within_a_thousandth_over_its_whole_range() {
        for (place, knob) in Copa::KNOBS.iter().enumerate() {
            for step in 0..=100 {
                let value = knob.min + (knob.max - knob.min) * f64::from(step) / 100.0;
                let back = decode(place, encode(place, value));
                let switch = COPA_KNOBS[place].scale == 1;
                let error = (back - value).abs();
                assert!(
                    switch || error <= 1e-3 * value.max(0.01),
                    "{}: {value} became {back}",
                    knob.name
                );
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_brought_into_it() {
        let (delta, knob) = find("delta").unwrap();
        assert_eq!(decode(delta, encode(delta, 100.0)), knob.max);
        assert_eq!(encode(delta, -1.0), encode(delta, knob.min));
        assert!(matches!(find("beta"), Err(KnobError::Unknown { .. })));
    }
}
