//! Bounds: what the best setting of a knob would have given, found by trying them all.

use trimtab_apps::{Application, Outcome};
use trimtab_cc::{Knob, Spec};
use trimtab_sim::Control;
use trimtab_units::{Bytes, Duration, Time};

use crate::prepare::Prepared;
use crate::result::RunRecord;
use crate::run::{Course, Recording};
use crate::scenario::Job;

/// How many values of the knob are tried, evenly spread by ratio where the range allows.
const CANDIDATES: u32 = 12;
/// How often the dynamic oracle chooses anew.
const INTERVAL: Duration = Duration::from_millis(500);
/// How far each of its forks looks ahead.
const HORIZON: Duration = Duration::from_secs(2);
/// Stalls cost this much per second against the logarithm of the bitrate (Mortise Eq. 8).
const STALL_COST: f64 = 2.66;

/// The best constant value of the algorithm's first knob for this run, by experience.
pub(crate) fn constant(
    prepared: &Prepared,
    job: &Job,
    spec: &Spec,
    recording: Recording,
) -> RunRecord {
    let mut best: Option<RunRecord> = None;
    for candidate in candidates(spec) {
        let control = Control::Algorithm { spec: candidate, steerer: None };
        let mut course = Course::new(prepared, job, &control);
        course.finish();
        let record = course.record(recording);
        if best.as_ref().is_none_or(|b| record.qoe.mean > b.qoe.mean) {
            best = Some(record);
        }
    }
    // There is at least the specification as it was given.
    best.unwrap_or_else(|| unreachable!("a list of candidates is never empty"))
}

/// The best value of the knob at every interval: each is tried on a fork of the running world over a
/// receding horizon, and the best one is kept until the next choice. Never worse than [`constant`],
/// which is a choice that it could have made: where looking ahead so far is not enough, that counts.
pub(crate) fn dynamic(
    prepared: &Prepared,
    job: &Job,
    spec: &Spec,
    recording: Recording,
) -> RunRecord {
    let constant = constant(prepared, job, spec, recording);
    let knob = spec.algorithm().knobs[0].name;
    let values = values(&spec.algorithm().knobs[0]);
    let control = Control::Algorithm { spec: *spec, steerer: None };
    let mut course = Course::new(prepared, job, &control);
    while course.world.now() < course.end() {
        let tried = values.iter().map(|&value| {
            let mut fork = course.clone();
            set(&mut fork, knob, value);
            fork.world.run_until(course.world.now() + HORIZON);
            (promise(&course, &fork), value)
        });
        if let Some((_, value)) = tried.max_by(|a, b| a.0.total_cmp(&b.0)) {
            set(&mut course, knob, value);
        }
        course.advance(course.end().min(course.world.now() + INTERVAL));
    }
    course.finish();
    let record = course.record(recording);
    if record.qoe.mean >= constant.qoe.mean { record } else { constant }
}

fn set(course: &mut Course<'_>, knob: &str, value: f64) {
    for flow in 0..course.own_flows {
        // The knob is the algorithm's own and the value in its range.
        let set = course.world.flow_mut(flow).set_knob(knob, value);
        debug_assert!(set.is_ok());
    }
}

/// The specification as it is, with each value of its first knob, and, unless it has settings of its
/// own, the algorithm's presets: no constant setting that can be named by its preset beats the oracle.
fn candidates(spec: &Spec) -> Vec<Spec> {
    let algorithm = spec.algorithm();
    let mut all = vec![*spec];
    if let Some(knob) = algorithm.knobs.first() {
        all.extend(values(knob).into_iter().filter_map(|value| {
            let mut candidate = *spec;
            candidate.set(knob.name, value).ok()?;
            Some(candidate)
        }));
    }
    if spec.settings().is_empty() {
        all.extend(algorithm.presets.iter().filter_map(|preset| {
            let mut candidate = *spec;
            preset.knobs.iter().try_for_each(|&(knob, value)| candidate.set(knob, value)).ok()?;
            Some(candidate)
        }));
    }
    all
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

/// What a fork promises for the experience: of what finished since, as it was; of what is
/// outstanding, as it would be if the fork went on at its rate.
fn promise(before: &Course<'_>, fork: &Course<'_>) -> f64 {
    let (from, to) = (before.world.now(), fork.world.now());
    let flows = before.own().iter().zip(fork.own());
    flows
        .map(|(old, new)| {
            let got = new.received().goodput - old.received().goodput;
            let rate = got / to.since(from);
            let left = new.app().factors(to).outstanding;
            let rest = (left / rate.max(trimtab_units::Rate::from_bytes_per_sec(1)))
                .min(Duration::from_secs(600));
            match new.app().outcome(to) {
                Outcome::Download(r) => r
                    .iter()
                    .filter(|r| r.completed_at.is_none_or(|at| at > from))
                    .map(|r| size_over_time(r.size, wait(r.sent_at, r.completed_at, to, rest)))
                    .sum(),
                Outcome::Web(r) => r
                    .iter()
                    .filter(|r| r.completed_at.is_none_or(|at| at > from))
                    .map(|r| -wait(r.sent_at, r.completed_at, to, rest).as_secs_f64())
                    .sum(),
                Outcome::Vod(v) => {
                    // Rates that bring better chunks soon, and stalls that have come meanwhile.
                    libm::log(rate.mbps().max(0.01)) * HORIZON.as_secs_f64()
                        - STALL_COST * v.stall_time.as_secs_f64()
                }
                Outcome::Bulk => rate.mbps(),
            }
        })
        .sum()
}

fn wait(sent: Time, completed: Option<Time>, now: Time, rest: Duration) -> Duration {
    completed.map_or(now.since(sent) + rest, |at| at.since(sent))
}

fn size_over_time(size: Bytes, time: Duration) -> f64 {
    (size / time.max(Duration::from_micros(1))).mbps()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_candidates() {
        let spec: Spec = "copa".parse().unwrap();
        assert_eq!(spec.algorithm().knobs[0].name, "delta", "the knob that Mortise steers");
        let presets = spec.algorithm().presets.len();
        assert_eq!(candidates(&spec).len(), 1 + CANDIDATES as usize + presets);
        let fixed: Spec = "copa:competitive=0".parse().unwrap();
        assert_eq!(candidates(&fixed).len(), 1 + CANDIDATES as usize);
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
