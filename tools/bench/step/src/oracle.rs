//! The best constant δ on a link, found by trying many in the simulator.

use std::fmt;

use trimtab_lab::compare::compare;
use trimtab_lab::run::Recording;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::{AppSettings, Scenario, TraceSource, TransportKind};
use trimtab_steer::Mortise;
use trimtab_units::{Duration, Rate};

use crate::{StepError, effort};

/// The range of δ that Mortise steers in, and how many values of it are tried, evenly spread by ratio.
const RANGE: (f64, f64) = (0.01, 1.0);
const CANDIDATES: u32 = 41;
/// What loses less experience than this share is as good as the best.
pub(crate) const AS_GOOD: f64 = 0.03;
/// How long each is tried.
const TRIAL: Duration = Duration::from_secs(20);

/// What constant values of δ are worth on a link, in rising order of δ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Oracle {
    pub(crate) best: f64,
    /// The least and the most δ around it that is as good, with all between.
    pub(crate) as_good: (f64, f64),
}

impl Oracle {
    /// Tries them all, with the other knobs as Mortise sets them.
    pub(crate) fn find(
        scenario: &Scenario,
        app: &AppSettings,
        rate: Rate,
    ) -> Result<Self, StepError> {
        let deltas: Vec<f64> = candidates().collect();
        let scenario = Scenario {
            cc: deltas.iter().map(|delta| with_delta(*delta)).collect(),
            traces: vec![TraceSource::Constant(rate)],
            app: vec![app.clone()],
            transport: TransportKind::Tcp,
            duration: TRIAL,
            seeds: 1,
            ..scenario.clone()
        };
        let comparison = compare(&scenario, effort(), Recording::default(), "", &Simulator)?;
        let worth =
            |label: &str| comparison.runs.iter().find(|r| r.cc == label).map(|r| r.qoe.mean);
        let worth: Vec<f64> =
            scenario.cc.iter().map(|c| worth(c.label()).unwrap_or(f64::NAN)).collect();
        Ok(Self::of(&deltas, &worth))
    }

    fn of(deltas: &[f64], worth: &[f64]) -> Self {
        // The first of equals.
        let best =
            (0..worth.len()).fold(0, |best, i| if worth[i] > worth[best] { i } else { best });
        let least = worth[best] - AS_GOOD * worth[best].abs();
        let (mut low, mut high) = (best, best);
        while low > 0 && worth[low - 1] >= least {
            low -= 1;
        }
        while high + 1 < worth.len() && worth[high + 1] >= least {
            high += 1;
        }
        Self { best: deltas[best], as_good: (deltas[low], deltas[high]) }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { best, as_good: (low, high) } = self;
        write!(f, "{best:.3} ({low:.3} to {high:.3})")
    }
}

fn candidates() -> impl Iterator<Item = f64> {
    let (low, high) = RANGE;
    (0..CANDIDATES).map(move |i| {
        let share = f64::from(i) / f64::from(CANDIDATES - 1);
        // Rounding must not leave the range.
        (low * libm::pow(high / low, share)).clamp(low, high)
    })
}

fn with_delta(delta: f64) -> trimtab_steer::scheme::Scheme {
    let spec = Mortise::algorithm();
    let others = spec.settings().iter().filter(|(knob, _)| *knob != "delta");
    let knobs: Vec<String> = others.map(|(knob, value)| format!("{knob}={value}")).collect();
    let name = format!("copa:{},delta={delta}", knobs.join(","));
    name.parse().expect("Mortise's own knobs, and a delta in its range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_good_is_what_surrounds_the_best() {
        let deltas = [0.01, 0.02, 0.04, 0.08, 0.16];
        let oracle = Oracle::of(&deltas, &[9.95, 9.5, 9.75, 10.0, 9.71]);
        assert_eq!((oracle.best, oracle.as_good), (0.08, (0.04, 0.16)));
        let negative = Oracle::of(&deltas, &[-1.0, -0.5, -0.51, -0.6, -1.0]);
        assert_eq!((negative.best, negative.as_good), (0.02, (0.02, 0.04)));
    }

    #[test]
    fn all_candidates_are_schemes() {
        let all: Vec<f64> = candidates().collect();
        assert_eq!((all[0], all[all.len() - 1]), RANGE);
        for delta in all {
            assert!(with_delta(delta).label().ends_with(&format!("delta={delta}")));
        }
    }
}
