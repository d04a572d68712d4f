//! Bounds of selection: the best single algorithm of each run (Floo's Static_Opt), and the best course through
//! the algorithms that forks of the world find.

use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_sim::Control;
use trimtab_steer::Steerer;
use trimtab_steer::select::{Policy, Selector, SelectorConfig};
use trimtab_units::Time;

use crate::run::course::Course;
use crate::run::prepare::Prepared;
use crate::run::record::Measurement;
use crate::run::simulator::{SimulatedRun, advance, begin, finish};
use crate::scenario::Job;
use trimtab_steer::scheme::SelectBound;

/// A run that has been carried out to its end.
struct Trial {
    measured: Measurement,
    qoe: f64,
}

impl Trial {
    fn of(course: Course<'_, SimulatedRun>, prepared: &Prepared, job: &Job) -> Self {
        let measured = finish(course);
        Self { qoe: measured.score(prepared, job), measured }
    }
}

/// The best single algorithm for this run, by experience, and its number.
fn best_single(prepared: &Prepared, job: &Job, specs: &[Spec]) -> (usize, Trial) {
    let trials = specs.iter().enumerate().map(|(i, spec)| {
        let control = Control::Algorithm { spec: *spec, steerer: None };
        (i, Trial::of(begin(prepared, job, &control), prepared, job))
    });
    // The first of equals.
    trials
        .reduce(|best, other| if other.1.qoe > best.1.qoe { other } else { best })
        .unwrap_or_else(|| unreachable!("there are candidates"))
}

/// The best single algorithm for this run, by experience.
pub(crate) fn single(prepared: &Prepared, job: &Job, bound: &SelectBound) -> Measurement {
    best_single(prepared, job, &bound.candidates).1.measured
}

/// The best course through the algorithms that one pass finds. It begins as the best single one; at every
/// selection each other algorithm is tried on a fork, which after the period goes back or stays with it to the
/// very end, and what gives the best experience of the whole run is kept. Going on as planned is
/// among the choices, so no step makes it worse (rollout: Bertsekas, "Dynamic Programming and Optimal Control", vol. 1,
/// §6.4).
pub(crate) fn course(prepared: &Prepared, job: &Job, bound: &SelectBound) -> Measurement {
    let (specs, every) = (&bound.candidates, bound.every);
    let (mut plan, mut best) = best_single(prepared, job, specs);
    let try_out = |course: Course<'_, SimulatedRun>| Trial::of(course, prepared, job);
    let mut course = start(prepared, job, specs, plan);
    while course.now() < course.end() {
        let now = course.now();
        let next = course.end().min(now + every);
        let mut chosen = None;
        for choice in (0..specs.len()).filter(|c| *c != plan) {
            // What runs first has nothing to take over from.
            let mut fork = if now == Time::ZERO {
                start(prepared, job, specs, choice)
            } else {
                let mut fork = course.clone();
                switch(&mut fork, specs[choice]);
                fork
            };
            advance(&mut fork, next);
            for then in [plan, choice] {
                let mut rest = fork.clone();
                switch(&mut rest, specs[then]);
                let trial = try_out(rest);
                if trial.qoe > best.qoe {
                    best = trial;
                    chosen = Some((fork.clone(), then));
                }
            }
        }
        match chosen {
            Some((fork, then)) => (course, plan) = (fork, then),
            None => advance(&mut course, next),
        }
        switch(&mut course, specs[plan]);
    }
    best.measured
}

/// A run at its beginning whose algorithm somebody outside chooses.
fn start<'a>(
    prepared: &'a Prepared,
    job: &'a Job,
    specs: &[Spec],
    first: usize,
) -> Course<'a, SimulatedRun> {
    let config = SelectorConfig::new(specs.to_vec(), Policy::External);
    let selector = Selector::new(SelectorConfig { first, ..config });
    let spec = selector.algorithm();
    let steerer = Some(Steerer::Select(Box::new(selector)));
    begin(prepared, job, &Control::Algorithm { spec, steerer })
}

fn switch(course: &mut Course<'_, SimulatedRun>, to: Spec) {
    for flow in 0..course.own_flows() {
        let can = course.run.world.switch(flow, to, Switch::Full);
        debug_assert!(can, "a selector makes its flow switch");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare::prepare;
    use crate::run::simulator::measure;
    use crate::scenario::Scenario;
    use trimtab_steer::scheme::candidates;

    #[test]
    fn the_best_course_is_at_least_as_good_as_the_best_single_one_and_that_as_each() {
        // Losses for a while make CUBIC the wrong choice, and the capacity changes.
        let scenario = Scenario::parse(
            "cc = [\"cubic\", \"bbr\", \"copa\", \"westwood\", \"static-best\", \"oracle:select:every=4s\", \"copa:mvfst\", \"static-best:cubic,copa:mvfst\", \"oracle:select:every=4s:cubic,copa:mvfst\"]\ntraces = [\"step:8Mbit/s,2Mbit/s@6s\"]\nloss = \"1%\"\nrtt = \"60ms\"\nduration = \"24s\"\n[[app]]\nkind = \"web\"\npauses = false\n",
        )
        .unwrap();
        let prepared = prepare(&scenario.plan().unwrap()).unwrap();
        let qoe: Vec<f64> = prepared
            .plan
            .jobs
            .iter()
            .map(|job| measure(&prepared, job).score(&prepared, job))
            .collect();
        let best = qoe[..4].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(qoe[4], best, "{qoe:?}");
        assert!(qoe[5] > best, "{qoe:?}");
        // The same of other candidates.
        assert_eq!(qoe[7], qoe[0].max(qoe[6]), "{qoe:?}");
        assert!(qoe[8] > qoe[7] && qoe[8] != qoe[5], "{qoe:?}");
    }

    /// A flow that may switch and does not is the flow of its algorithm.
    #[test]
    fn to_be_ready_to_switch_changes_nothing() {
        let scenario = Scenario::parse(
            "cc = [\"bbr\"]\ntraces = [\"constant:8Mbit/s\"]\nloss = \"1%\"\nduration = \"20s\"\n\
             [[app]]\nkind = \"web\"\n",
        )
        .unwrap();
        let prepared = prepare(&scenario.plan().unwrap()).unwrap();
        let job = &prepared.plan.jobs[0];
        let specs = candidates();
        let ready = Trial::of(start(&prepared, job, &specs, 1), &prepared, job);
        let plain = measure(&prepared, job);
        assert_eq!(ready.qoe, plain.score(&prepared, job));
        assert_eq!(ready.measured.own[0].packets, plain.own[0].packets);
    }
}
