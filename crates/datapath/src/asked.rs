//! What a host asked of a connection that changes its algorithm.

use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;

use crate::{Algorithm, Error, Link};

/// Whether one of these algorithms is that of a specification, and has the knobs that this sets.
pub fn can_run(spec: &Spec, algorithms: &[Algorithm]) -> bool {
    let named = |algorithm: &&Algorithm| algorithm.name() == spec.algorithm().name;
    let Some(algorithm) = algorithms.iter().find(named) else { return false };
    let has = |knob: &str| algorithm.knobs().iter().any(|k| k.name == knob);
    spec.settings().iter().all(|(knob, _)| has(knob))
}

/// The algorithms that a connection was asked to run, each with the knobs that it was asked for
/// last.
#[derive(Clone, Debug, Default)]
pub struct Asked(Vec<Spec>);

impl Asked {
    /// Asks the connection for `to`, whose algorithm on this datapath is `algorithm`. When it was
    /// asked for the same before, its knobs are as they were left, so that what was turned meanwhile
    /// is not lost.
    ///
    /// # Errors
    /// Those of [`Link::switch`].
    pub fn switch(
        &mut self,
        link: &impl Link,
        to: &Spec,
        algorithm: Algorithm,
        how: Switch,
    ) -> Result<(), Error> {
        let known = self.0.iter().any(|spec| spec.is_same(to));
        link.switch(algorithm, (!known).then_some(to.settings()), how)?;
        self.0.retain(|spec| spec.algorithm().name != to.algorithm().name);
        self.0.push(*to);
        Ok(())
    }

    /// Whether it was asked to run this algorithm with other knobs than the defaults.
    pub fn with_knobs(&self, algorithm: Algorithm) -> bool {
        let named = |spec: &&Spec| spec.algorithm().name == algorithm.name();
        self.0.iter().filter(named).any(|spec| !spec.settings().is_empty())
    }

    /// Forgets all, since the connection runs what nobody asked for.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::{Copa, Cubic};

    use super::*;

    const ALGORITHMS: [Algorithm; 2] =
        [Algorithm::new("copa", Copa::KNOBS), Algorithm::new("cubic", &[])];

    #[test]
    fn what_an_algorithm_lacks_a_knob_for_cannot_run() {
        let can = |text: &str| can_run(&text.parse().unwrap(), &ALGORITHMS);
        assert!(can("copa") && can("copa:mvfst,min_rtt_window=30") && can("cubic"));
        assert!(Cubic::KNOBS.iter().any(|knob| knob.name == "beta"), "another datapath has it");
        assert!(!can("cubic:beta=0.5"), "here it has no knobs");
        assert!(!can("westwood"));
    }
}
