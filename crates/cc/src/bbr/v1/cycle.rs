//! ProbeBW's gain cycle: one phase faster, one slower, six at the estimated bandwidth.

use rand::RngExt;
use rand_pcg::Pcg32;
use trimtab_units::{Duration, Time};

use super::super::gain::Gain;
use super::knobs::Tuning;

/// Phases of a cycle (`CYCLE_LEN`).
const PHASES: u8 = 8;
/// The phase that probes for more bandwidth.
const PROBE: u8 = 0;
/// The phase that drains what the probe queued.
const YIELD: u8 = 1;

/// Where in the cycle the flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    index: u8,
    started: Time,
}

impl Cycle {
    /// A random phase other than the draining one, so that flows that start together do not probe
    /// together (`bbr_reset_probe_bw_mode`).
    pub(super) fn random(now: Time, rng: &mut Pcg32) -> Self {
        let index = match rng.random_range(0..PHASES - 1) {
            PROBE => PROBE,
            other => other + 1,
        };
        Self { index, started: now }
    }

    /// The next phase.
    pub(super) fn advance(&mut self, now: Time) {
        self.index = (self.index + 1) % PHASES;
        self.started = now;
    }

    /// The phase's pacing gain (`bbr_pacing_gain`).
    pub(super) fn gain(&self, tuning: &Tuning) -> Gain {
        match self.index {
            PROBE => tuning.probe_gain,
            YIELD => tuning.yield_gain,
            _ => Gain::UNIT,
        }
    }

    pub(super) fn is_probing(&self) -> bool {
        self.index == PROBE
    }

    /// Whether the phase has lasted longer than a minimum round-trip time; without one, never.
    pub(super) fn is_full_length(&self, now: Time, min_rtt: Option<Duration>) -> bool {
        min_rtt.is_some_and(|min_rtt| now.since(self.started) > min_rtt)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::bbr::v1::knobs::Values;

    /// expected.md B1.
    #[test]
    fn eight_phases_of_mean_one() {
        let tuning = Tuning::derive(Values::default());
        let mut cycle = Cycle { index: 0, started: Time::ZERO };
        let expected = [(5, 4), (3, 4), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1), (5, 4)];
        for (num, den) in expected {
            assert_eq!(cycle.gain(&tuning), Gain::ratio(num, den));
            cycle.advance(Time::ZERO);
        }
    }

    /// expected.md B1: the start is never the draining phase, and every other one comes up.
    #[test]
    fn random_start_is_never_the_draining_phase() {
        let mut rng = Pcg32::seed_from_u64(1);
        let mut seen = [0; PHASES as usize];
        for _ in 0..7000 {
            seen[usize::from(Cycle::random(Time::ZERO, &mut rng).index)] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(
            seen.iter().enumerate().all(|(i, &n)| i == 1 || (800..1200).contains(&n)),
            "{seen:?}"
        );
    }
}
