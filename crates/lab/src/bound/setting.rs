//! Bounds: what the best setting of a knob would have given, found by trying them all.

use trimtab_cc::{Knob, Spec, get_knob};
use trimtab_sim::Control;
use trimtab_units::Duration;

use crate::run::course::Course;
use crate::run::prepare::Prepared;
use crate::run::record::Measurement;
use crate::run::simulator::{SimulatedRun, advance, begin, finish};
use crate::scenario::Job;

/// How many values of the knob are tried, evenly spread by ratio where the range allows.
const CANDIDATES: u32 = 12;
/// How often the dynamic oracle may choose anew.
const INTERVAL: Duration = Duration::from_secs(2);

/// A setting that has been tried to the end of the run.
struct Trial {
    spec: Spec,
    measured: Measurement,
    qoe: f64,
}

/// The best constant value of the algorithm's first knob for this run, by experience.
pub(crate) fn constant(prepared: &Prepared, job: &Job, spec: &Spec) -> Measurement {
    best_constant(prepared, job, spec).measured
}

fn best_constant(prepared: &Prepared, job: &Job, spec: &Spec) -> Trial {
    let try_out = |spec: Spec| {
        let measured = finish(start(prepared, job, spec));
        Trial { spec, qoe: measured.score(prepared, job), measured }
    };
    // The first of equals.
    candidates(spec)
        .into_iter()
        .map(try_out)
        .reduce(|best, other| if other.qoe > best.qoe { other } else { best })
        // There is at least the specification as it was given.
        .unwrap_or_else(|| unreachable!("a list of candidates is never empty"))
}

/// The best course of the knob that one pass finds. It begins as the best constant value; at every
/// interval each other value is tried on a fork, which goes back to the constant one after the interval
/// and runs to the very end, and the one with the best experience of the whole run is kept. Keeping
/// the constant value is among the choices, so no step makes it worse (rollout: Bertsekas, "Dynamic
/// Programming and Optimal Control", vol. 1, §6.4).
pub(crate) fn dynamic(prepared: &Prepared, job: &Job, spec: &Spec) -> Measurement {
    let mut best = best_constant(prepared, job, spec);
    let knob = &spec.algorithm().knobs[0];
    let mut course = start(prepared, job, best.spec);
    let constant = value(&course, knob);
    while course.now() < course.end() {
        let next = course.end().min(course.now() + INTERVAL);
        let mut chosen = None;
        for value in values(knob).into_iter().filter(|v| *v != constant) {
            let mut fork = course.clone();
            set(&mut fork, knob, value);
            advance(&mut fork, next);
            // Where it goes on from if this is the choice.
            let fork_at_next = fork.clone();
            set(&mut fork, knob, constant);
            let measured = finish(fork);
            let qoe = measured.score(prepared, job);
            if qoe > best.qoe {
                best = Trial { measured, qoe, ..best };
                chosen = Some(fork_at_next);
            }
        }
        match chosen {
            Some(fork) => course = fork,
            None => advance(&mut course, next),
        }
        set(&mut course, knob, constant);
    }
    best.measured
}

/// A run at its beginning.
fn start<'a>(prepared: &'a Prepared, job: &'a Job, spec: Spec) -> Course<'a, SimulatedRun> {
    begin(prepared, job, &Control::Algorithm { spec, steerer: None })
}

/// The value of the knob, the same for all flows of the scheme.
fn value(course: &Course<'_, SimulatedRun>, knob: &Knob) -> f64 {
    let algorithm = course.run.world.flows()[0].governor().algorithm();
    algorithm.and_then(|cca| get_knob(cca, knob.name)).unwrap_or(knob.default)
}

fn set(course: &mut Course<'_, SimulatedRun>, knob: &Knob, value: f64) {
    for flow in 0..course.own_flows() {
        // The knob is the algorithm's own and the value in its range.
        let set = course.run.world.flow_mut(flow).set_knob(knob.name, value);
        debug_assert!(set.is_ok());
    }
}

/// The specification as it is, with each value of its first knob, and with the algorithm's presets:
/// no constant setting that can be named by its preset beats the oracle. Other knobs that the
/// specification sets stay as they are.
fn candidates(spec: &Spec) -> Vec<Spec> {
    let algorithm = spec.algorithm();
    let Some(searched) = algorithm.knobs.first() else { return vec![*spec] };
    let is_set = |knob: &str| spec.settings().iter().any(|(name, _)| *name == knob);
    let with = |settings: &[(&str, f64)]| {
        let mut candidate = *spec;
        for &(knob, value) in settings.iter().filter(|(k, _)| *k == searched.name || !is_set(k)) {
            candidate.set(knob, value).ok()?;
        }
        Some(candidate)
    };
    let constants = values(searched).into_iter().map(|value| with(&[(searched.name, value)]));
    let presets = algorithm.presets.iter().map(|preset| with(preset.knobs));
    std::iter::once(*spec).chain(constants.chain(presets).flatten()).collect()
}

fn values(knob: &Knob) -> Vec<f64> {
    let share = |i: u32| f64::from(i) / f64::from(CANDIDATES - 1);
    let value = |i: u32| {
        if knob.min > 0.0 {
            knob.min * libm::pow(knob.max / knob.min, share(i))
        } else {
            knob.min + (knob.max - knob.min) * share(i)
        }
    };
    // Rounding must not leave the range.
    (0..CANDIDATES).map(|i| value(i).clamp(knob.min, knob.max)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare::prepare;
    use crate::scenario::Scenario;

    #[test]
    fn presets_are_candidates() {
        let spec: Spec = "copa".parse().unwrap();
        assert_eq!(spec.algorithm().knobs[0].name, "delta", "the knob that Mortise steers");
        let all = candidates(&spec);
        assert_eq!(all.len(), 1 + CANDIDATES as usize + spec.algorithm().presets.len());
        let mvfst: Spec = "copa:mvfst".parse().unwrap();
        let sorted = |s: &Spec| {
            let mut settings = s.settings().to_vec();
            settings.sort_by(|a, b| a.0.cmp(b.0));
            settings
        };
        assert!(all.iter().any(|c| sorted(c) == sorted(&mvfst)));
    }

    #[test]
    fn knobs_that_are_set_stay() {
        let spec: Spec = "copa:competitive=1,initial_window=32".parse().unwrap();
        let all = candidates(&spec);
        assert!(all.iter().all(|c| c.settings().contains(&("competitive", 1.0))));
        assert!(all.iter().all(|c| c.settings().contains(&("initial_window", 32.0))));
        assert!(all.iter().any(|c| c.settings().contains(&("delta", 0.04))), "mvfst's delta");
    }

    #[test]
    fn a_course_of_the_knob_is_at_least_as_good_as_the_best_constant() {
        // The capacity falls to a tenth and rises again, and every second of delay costs: what is right
        // before a step is wrong after it.
        let scenario = Scenario::parse(
            "cc = [\"oracle:copa\", \"oracle-dynamic:copa\"]\n\
             traces = [\"step:20Mbit/s,2Mbit/s@4s\"]\nduration = \"12s\"\n[[app]]\n\
             kind = \"download\"\nqoe = \"T - 50*D\"\n",
        )
        .unwrap();
        let prepared = prepare(&scenario.plan().unwrap()).unwrap();
        let spec: Spec = "copa".parse().unwrap();
        let job = &prepared.plan.jobs[0];
        let qoe = |measured: Measurement| measured.score(&prepared, job);
        let (constant, dynamic) =
            (qoe(constant(&prepared, job, &spec)), qoe(dynamic(&prepared, job, &spec)));
        assert!(dynamic > constant, "{dynamic} is no better than {constant}");
    }

    #[test]
    fn candidates_span_the_range() {
        let knob =
            Knob { name: "k", unit: "1", min: 0.01, max: 1.0, default: 0.1, about: "a knob" };
        let v = values(&knob);
        assert_eq!((v[0], v[11]), (0.01, 1.0));
        assert!(v.windows(2).all(|w| (w[1] / w[0] - v[1] / v[0]).abs() < 1e-9));
        let v = values(&Knob { min: 0.0, ..knob });
        assert!((v[1] - 1.0 / 11.0).abs() < 1e-12);
    }
}
