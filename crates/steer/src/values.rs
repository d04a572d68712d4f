//! Values of several knobs at once.

use core::fmt;

use trimtab_cc::{CongestionControl, KNOBS_MAX, KnobError, set_knob};

/// Values of an algorithm's knobs by their names, each in its knob's unit: what a steering asks
/// for ([`Action::Set`](crate::Action::Set)), and what is in force
/// ([`Report::knobs`](crate::Report::knobs)). Without an allocation: there is room for all knobs
/// that any algorithm has.
#[derive(Clone, Copy)]
pub struct KnobValues {
    values: [(&'static str, f64); KNOBS_MAX],
    len: usize,
}

impl KnobValues {
    /// Of no knob.
    pub const NONE: Self = Self { values: [("", 0.0); KNOBS_MAX], len: 0 };

    /// Of one knob.
    pub fn one(knob: &'static str, value: f64) -> Self {
        Self::NONE.with(knob, value)
    }

    /// All that are in force in an algorithm, in the order of its knobs.
    pub fn of(cca: &impl CongestionControl) -> Self {
        let values = cca.knobs().iter().enumerate();
        values.filter_map(|(i, knob)| Some((knob.name, cca.knob(i)?))).collect()
    }

    /// These and one more; a second value of the same knob replaces the first. No algorithm has
    /// more knobs than there is room for: what is beyond is left out.
    #[must_use]
    pub fn with(mut self, knob: &'static str, value: f64) -> Self {
        let known = self.values[..self.len].iter().position(|(name, _)| *name == knob);
        if let Some(slot) = self.values.get_mut(known.unwrap_or(self.len)) {
            *slot = (knob, value);
            self.len = self.len.max(known.unwrap_or(self.len) + 1);
        }
        self
    }

    /// The value of a knob; `None` where it is not among them.
    pub fn get(&self, knob: &str) -> Option<f64> {
        self.iter().find(|(name, _)| *name == knob).map(|(_, value)| value)
    }

    /// Names and values, in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, f64)> + '_ {
        self.values[..self.len].iter().copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets them all, or none.
    ///
    /// # Errors
    /// The algorithm lacks one of the knobs, or a value is out of its range: nothing changes.
    pub fn apply(&self, cca: &mut impl CongestionControl) -> Result<(), KnobError> {
        let knobs = cca.knobs();
        for (name, value) in self.iter() {
            let knob = knobs.iter().find(|k| k.name == name);
            knob.ok_or(KnobError::Unknown { knobs })?.check(value)?;
        }
        self.iter().try_for_each(|(name, value)| set_knob(cca, name, value))
    }
}

impl Default for KnobValues {
    fn default() -> Self {
        Self::NONE
    }
}

impl FromIterator<(&'static str, f64)> for KnobValues {
    fn from_iter<I: IntoIterator<Item = (&'static str, f64)>>(values: I) -> Self {
        values.into_iter().fold(Self::NONE, |all, (knob, value)| all.with(knob, value))
    }
}

impl PartialEq for KnobValues {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for KnobValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::{ALGORITHMS, Config, Spec, get_knob};

    use super::*;

    #[test]
    fn there_is_room_for_all_knobs_of_each_algorithm() {
        for algorithm in ALGORITHMS {
            let cca = (algorithm.build)(&Config::default());
            let values = KnobValues::of(&cca);
            let defaults = algorithm.knobs.iter().map(|knob| (knob.name, knob.default));
            assert!(values.iter().eq(defaults), "{}: {values:?}", algorithm.name);
        }
    }

    #[test]
    fn a_second_value_replaces_the_first() {
        let values = KnobValues::one("delta", 0.1).with("loss_beta", 0.5).with("delta", 0.2);
        assert_eq!(values.iter().collect::<Vec<_>>(), [("delta", 0.2), ("loss_beta", 0.5)]);
        assert_eq!((values.get("delta"), values.get("velocity_max")), (Some(0.2), None));
    }

    #[test]
    fn all_are_set_or_none() {
        let mut cca = "copa".parse::<Spec>().unwrap().build(&Config::default());
        let before = KnobValues::of(&cca);
        let wrong = KnobValues::one("delta", 0.1).with("loss_beta", 7.0);
        assert!(matches!(wrong.apply(&mut cca), Err(KnobError::OutOfRange { .. })));
        let unknown = KnobValues::one("delta", 0.1).with("beta", 0.7);
        assert!(matches!(unknown.apply(&mut cca), Err(KnobError::Unknown { .. })));
        assert_eq!(KnobValues::of(&cca), before);
        KnobValues::one("delta", 0.1).with("loss_beta", 0.5).apply(&mut cca).unwrap();
        assert_eq!((get_knob(&cca, "delta"), get_knob(&cca, "loss_beta")), (Some(0.1), Some(0.5)));
    }
}
