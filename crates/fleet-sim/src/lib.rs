//! A whole fleet in virtual time: engine, edges and links, with the production code of the learner, beside other ways to
//! choose and the best in hindsight. `trimtab fleet simulate` runs it.
#![deny(missing_docs)]

mod connection;
mod contest;
mod hindsight;
mod result;
mod scenario;

use trimtab_fleet::{Service, Summary};
use trimtab_steer::customize::{Preset, Settings};

use contest::{Course, Field, Policy};
use hindsight::Hindsight;
pub use result::{ContenderResult, FleetResult, ServiceResult, render};
pub use scenario::{FleetApp, FleetLinks, FleetScenario, FleetScenarioError, Outage};

/// The user asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted; nothing was written")]
pub struct Interrupted;

/// What does many jobs, perhaps several at a time.
pub trait Runner {
    /// Does every job and gives the results in the order of the jobs.
    ///
    /// # Errors
    /// The user asked to stop.
    fn run_all<J: Sync, R: Send>(
        &self,
        jobs: &[J],
        work: impl Fn(&J) -> R + Sync,
    ) -> Result<Vec<R>, Interrupted>;
}

/// What became of one contender, by aggregate.
struct Fared {
    name: String,
    courses: Vec<Course>,
}

/// Runs a fleet.
///
/// # Errors
/// The user asked to stop.
pub fn simulate(
    scenario: &FleetScenario,
    seed: u64,
    runner: &impl Runner,
    command: &str,
) -> Result<FleetResult, Interrupted> {
    let mut services = Vec::new();
    for (number, service) in scenario.services.iter().enumerate() {
        // Others differ in their reward only: what they are beside is in the first.
        let fared = contest(scenario, service, seed, runner, number == 0)?;
        services.push(result::of_service(scenario, service, &fared));
    }
    Ok(FleetResult::new(scenario, seed, command, services))
}

/// Every contender with every aggregate under one service.
fn contest(
    scenario: &FleetScenario,
    service: &Service,
    seed: u64,
    runner: &impl Runner,
    all: bool,
) -> Result<Vec<Fared>, Interrupted> {
    let service = service.clone().with_seed(seed);
    let paper = service.clone().with_settings(Settings::of(Preset::Paper));
    let field = |aggregate: u32| Field { scenario, service: &service, seed, aggregate };
    let search = all && scenario.fixed > 1;
    let mut plain = vec![
        ("learnt".to_owned(), Policy::Learner(&service)),
        ("start".to_owned(), Policy::Point(service.start())),
    ];
    if service.start() != service.safe() {
        plain.push(("safe".to_owned(), Policy::Point(service.safe())));
    }
    if search {
        plain.push(("paper's estimator".to_owned(), Policy::Learner(&paper)));
        plain.push(("random search".to_owned(), Policy::RandomSearch));
        plain.push(("epsilon-greedy".to_owned(), Policy::EpsilonGreedy));
    }
    for (name, spec) in scenario.baselines.iter().filter(|_| all) {
        plain.push((name.clone(), Policy::Algorithm(Box::new(*spec))));
    }
    let jobs: Vec<(u32, usize)> = (0..scenario.aggregates)
        .flat_map(|aggregate| (0..=plain.len()).map(move |policy| (aggregate, policy)))
        .filter(|&(_, policy)| search || policy < plain.len())
        .collect();
    let done = runner.run_all(&jobs, |&(aggregate, policy)| match plain.get(policy) {
        Some((_, policy)) => Done::Course(field(aggregate).run(policy)),
        None => Done::Hindsight(hindsight::search(&field(aggregate))),
    })?;
    let mut fared: Vec<Fared> =
        plain.iter().map(|(name, _)| Fared { name: name.clone(), courses: Vec::new() }).collect();
    let mut found: Vec<Hindsight> = Vec::new();
    for (&(_, policy), done) in jobs.iter().zip(done) {
        match done {
            Done::Course(course) => fared[policy].courses.push(course),
            Done::Hindsight(hindsight) => found.push(hindsight),
        }
    }
    if search {
        let single = best_single(&field(0), &found);
        // What others have learnt: those of odd numbers begin where the even ones have come to, and the other way round.
        let halves = [1, 0].map(|half| mean_guess(&fared[0].courses, half, &service));
        let jobs: Vec<(u32, usize)> =
            (0..scenario.aggregates).flat_map(|a| (0..LATER.len()).map(move |l| (a, l))).collect();
        let done = runner.run_all(&jobs, |&(aggregate, later)| {
            let policy = match later {
                0 => Policy::LearnerFrom(&service, halves[aggregate as usize % 2].clone()),
                1 => Policy::Point(single.clone()),
                _ => Policy::ByContext(&found[aggregate as usize].best),
            };
            field(aggregate).run(&policy)
        })?;
        for (later, name) in LATER.iter().enumerate() {
            let courses = jobs.iter().zip(&done).filter(|((_, l), _)| *l == later);
            let courses = courses.map(|(_, course)| course.clone()).collect();
            fared.push(Fared { name: (*name).to_owned(), courses });
        }
    }
    Ok(fared)
}

/// Who needs what the first round found.
const LATER: [&str; 3] = ["learnt from others", result::BEST_SINGLE, result::BEST_BY_CONTEXT];

/// The mean of where the aggregates of one half have come to, in values of the knobs.
fn mean_guess(courses: &[Course], half: usize, service: &Service) -> Vec<f64> {
    let own = courses.iter().skip(half).step_by(2).filter_map(|c| c.guess.as_ref());
    let points: Vec<Vec<f64>> = own.map(|values| service.space().unit(values)).collect();
    if points.is_empty() {
        return service.space().values(&service.start());
    }
    let knobs = service.knobs().len();
    let mean = |k: usize| points.iter().map(|p| p[k]).sum::<f64>() / points.len() as f64;
    service.space().values(&(0..knobs).map(mean).collect::<Vec<f64>>())
}

enum Done {
    Course(Course),
    Hindsight(Hindsight),
}

/// The point of the first round that was best over all aggregates.
fn best_single(field: &Field<'_>, found: &[Hindsight]) -> Vec<f64> {
    let points = hindsight::candidates(field);
    let sum = |i: usize| found.iter().map(|h| h.first_round[i]).sum::<f64>();
    let best = (0..points.len()).max_by(|&a, &b| sum(a).total_cmp(&sum(b)));
    best.map_or_else(|| field.service.start(), |i| points[i].clone())
}

/// All connections of some aggregates.
fn merged<'a>(courses: impl Iterator<Item = &'a Course>) -> Summary {
    let mut all = Summary::default();
    courses.for_each(|course| all.merge(&course.late));
    all
}

#[cfg(test)]
mod tests;
