//! A whole fleet in virtual time: engine, edges and links, with the production code of the learner,
//! next to other ways to choose and the best in hindsight. `trimtab fleet simulate` runs it.

mod bottleneck;
mod change;
mod chooser;
mod connection;
mod contest;
mod cross;
pub mod error;
mod estimate;
mod group;
mod hindsight;
mod memo;
pub mod program;
mod result;
mod scenario;
mod seeds;
mod shared;
mod table;
mod together;
mod verdict;

use crate::run::pool::{Effort, Interrupted, run_all};
use serde::{Deserialize, Serialize};
use trimtab_fleet::{Point, Service, Summary};
use trimtab_steer::customize::{Commons, Preset, Settings};

pub use chooser::{Chooser, Scheme, SimulateError};
use contest::{Course, Policy, Run};
pub use cross::{CrossHarm, CrossResult};
pub use error::FleetScenarioError;
pub use estimate::Estimate;
use group::{Fleet, Group};
use hindsight::Hindsight;
pub use result::{FleetResult, SchemeResult, ServiceResult};
pub use scenario::{FleetApp, FleetLinks, FleetScenario, Outage};
pub use seeds::simulate;
pub use shared::Shared;
pub use table::render;
pub use together::Joined;
use together::Log;
pub use verdict::{VerdictResult, Worst};

/// What became of one scheme, by aggregate.
#[derive(Serialize, Deserialize)]
struct Fared {
    name: String,
    courses: Vec<Course>,
    /// Pairs of aggregates that became one, where it was looked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    joined: Option<Joined>,
    /// What the aggregates found together, of the learner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<Commons>,
}

impl Fared {
    fn new(name: &str, courses: Vec<Course>) -> Self {
        Self { name: name.to_owned(), courses, joined: None, found: None }
    }
}

/// What became of the learner, of all aggregates at once.
struct Learnt {
    courses: Vec<Course>,
    joined: Option<Joined>,
    found: Commons,
}

/// How every scheme fares with a fleet, for each service.
fn fare(
    scenario: &FleetScenario,
    seed: u64,
    schemes: &[Scheme],
    effort: Effort,
) -> Result<Vec<Vec<Fared>>, SimulateError> {
    let mut services = Vec::new();
    let fleet = Fleet::new(scenario, seed);
    for (number, service) in scenario.services.iter().enumerate() {
        // Others differ in their reward only: what they are compared with is in the first.
        let mut fared = contest(&fleet, service, effort, number == 0)?;
        if number == 0 {
            fared.extend(from_outside(&fleet, service, schemes, effort)?);
        }
        services.push(fared);
    }
    Ok(services)
}

/// Schemes from outside with every aggregate.
fn from_outside(
    fleet: &Fleet<'_>,
    service: &Service,
    schemes: &[Scheme],
    effort: Effort,
) -> Result<Vec<Fared>, SimulateError> {
    let groups = Group::all(fleet, service);
    let of = |scheme: &Scheme| {
        let run = |group: &Group<'_>| chooser::run(group, scheme);
        let courses = run_all(&groups, effort, run)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Fared::new(&scheme.name, courses.concat()))
    };
    schemes.iter().map(of).collect()
}

/// Every scheme with every aggregate under one service.
fn contest(
    fleet: &Fleet<'_>,
    service: &Service,
    effort: Effort,
    all: bool,
) -> Result<Vec<Fared>, Interrupted> {
    let scenario = fleet.scenario;
    let service = service.clone().with_seed(fleet.seed);
    let alone = service.clone().alone();
    let paper = alone.clone().with_settings(Settings::of(Preset::Paper));
    let pairs = alone.with_settings(Settings::of(Preset::Pairs));
    let groups = Group::all(fleet, &service);
    let search = all && scenario.fixed > 1;
    let safe = service.safe();
    let is_start_safe = safe.knobs() == Some(&service.start());
    let every = scenario.baselines_every;
    // Of the schemes below: in one of how many intervals.
    let mut plain: Vec<(String, Policy<'_>, u64)> = Vec::new();
    let mut add = |name: &str, policy, every| plain.push((name.to_owned(), policy, every));
    let start = Policy::Point(service.start().into());
    add("start", start, if is_start_safe { 1 } else { every });
    if !is_start_safe {
        add("safe", Policy::Point(safe), 1);
    }
    if search {
        add(ALONE, Policy::Learner(&service), 1);
        add("opposite points", Policy::Learner(&pairs), 1);
        add("paper's estimator", Policy::Learner(&paper), 1);
        add("random search", Policy::RandomSearch, 1);
        add("epsilon-greedy", Policy::EpsilonGreedy, 1);
    }
    for (name, spec) in scenario.baselines.iter().filter(|_| all) {
        let is_compared = scenario.compare_with.as_ref() == Some(name);
        add(name, Policy::Algorithm(spec.map(Box::new)), if is_compared { 1 } else { every });
    }
    let learner = Policy::Learner(&service);
    let Learnt { courses, joined, found } =
        together(&groups, effort, |group| Run::new(group.clone(), &learner, search))?;
    let jobs: Vec<(usize, usize)> = (0..groups.len())
        .flat_map(|group| (0..=plain.len()).map(move |policy| (group, policy)))
        .filter(|&(_, policy)| search || policy < plain.len())
        .collect();
    let whole = |group: usize, policy: &Policy<'_>, every| {
        let mut run = Run::new(groups[group].clone(), policy, false).in_one_of(every);
        run.advance(scenario.intervals());
        run.finish()
    };
    let done = run_all(&jobs, effort, |&(group, policy)| match plain.get(policy) {
        Some((_, policy, every)) => Done::Courses(whole(group, policy, *every)),
        None => Done::Hindsight(hindsight::search(&groups[group])),
    })?;
    let mut fared: Vec<Fared> =
        plain.iter().map(|(name, ..)| Fared::new(name, Vec::new())).collect();
    let mut hindsights: Vec<Hindsight> = Vec::new();
    for (&(_, policy), done) in jobs.iter().zip(done) {
        match done {
            Done::Courses(courses) => fared[policy].courses.extend(courses),
            Done::Hindsight(hindsight) => hindsights.push(hindsight),
        }
    }
    let found = Some(found);
    fared.insert(0, Fared { joined, found, ..Fared::new(result::LEARNT, courses) });
    if search {
        let single = best_single(&groups[0], &hindsights);
        let jobs: Vec<(usize, usize)> =
            (0..groups.len()).flat_map(|g| (0..LATER.len()).map(move |l| (g, l))).collect();
        let done = run_all(&jobs, effort, |&(group, later)| {
            let policy = match later {
                0 => Policy::Point(single.clone()),
                _ => Policy::ByContext(&hindsights[group].best),
            };
            whole(group, &policy, 1)
        })?;
        for (later, name) in LATER.iter().enumerate() {
            let courses = jobs.iter().zip(&done).filter(|((_, l), _)| *l == later);
            let courses = courses.flat_map(|(_, courses)| courses.clone()).collect();
            fared.push(Fared::new(name, courses));
        }
    }
    Ok(fared)
}

/// Intervals after which aggregates hear of what others found. The engine tells them at each
/// decision; an hour makes the threads of a simulation wait for each other less often.
const ROUND: u64 = 3;

/// All aggregates at once, each with what all found until now.
fn together<'a>(
    groups: &[Group<'a>],
    effort: Effort,
    begin: impl Fn(&Group<'a>) -> Run<'a>,
) -> Result<Learnt, Interrupted> {
    let mut runs: Vec<Run<'a>> = groups.iter().map(begin).collect();
    let scenario = groups[0].fields[0].scenario;
    let intervals = scenario.intervals();
    let (mut found, mut log) = (groups[0].fields[0].service.prior().clone(), Log::default());
    let mut until = 0;
    while until < intervals {
        until += ROUND;
        runs = run_all(&runs, effort, |run| {
            let mut run = run.clone();
            run.heed(found.cells());
            run.advance(until);
            run
        })?;
        for run in &mut runs {
            run.take_found().iter().for_each(|one| found.add(one));
        }
        log.follow(scenario, &mut runs, until);
    }
    let courses = runs.into_iter().flat_map(Run::finish).collect();
    Ok(Learnt { courses, joined: log.joined(), found })
}

/// The learner without what others found.
const ALONE: &str = "learnt alone";
/// Who needs what the first round found.
const LATER: [&str; 2] = [result::BEST_SINGLE, result::BEST_BY_CONTEXT];

enum Done {
    Courses(Vec<Course>),
    Hindsight(Hindsight),
}

/// The point of the first round that was best over all aggregates.
fn best_single(group: &Group<'_>, found: &[Hindsight]) -> Point {
    let field = &group.fields[0];
    let points = hindsight::candidates(field);
    let sum = |i: usize| found.iter().map(|h| h.first_round[i]).sum::<f64>();
    let best = (0..points.len()).max_by(|&a, &b| sum(a).total_cmp(&sum(b)));
    best.map_or_else(|| field.service.begin(), |i| points[i].clone())
}

/// All connections of some aggregates.
fn merged<'a>(courses: impl Iterator<Item = &'a Course>) -> Summary {
    group::merged(courses.map(|course| &course.late))
}

#[cfg(test)]
mod fitted_tests;
#[cfg(test)]
mod tests;
