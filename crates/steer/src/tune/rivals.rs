//! What Mortise sets of the algorithms that it steers so that others do not starve them.
//!
//! Boldness does not help there: next to flows that fill the queue even the boldest GCC gets a tenth
//! of its share. Copa has a setting of its own (`SETTINGS` in `mod.rs`).

use trimtab_cc::Spec;

/// An algorithm, its knob and the value.
const SETTINGS: [(&str, &str, f64); 1] = [("gcc", "competitive", 1.0)];

/// Sets the knobs of an algorithm that has some.
///
/// # Panics
/// Never: a test builds all algorithms.
pub(super) fn set(spec: &mut Spec) {
    for (name, knob, value) in SETTINGS {
        if spec.algorithm().name == name {
            spec.set(knob, value).expect("within the knob's range");
        }
    }
}
