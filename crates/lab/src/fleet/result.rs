//! What a simulated fleet showed: figures for machines.

use std::collections::BTreeMap;

use rand::RngExt;
use serde::Serialize;
use trimtab_fleet::{PriorRow, Service, Sketch, Summary};
use trimtab_qoe::StatisticKind;

use super::connection::generator;
use super::contest::Course;
use super::cross::{self, CrossResult};
use super::estimate::Estimate;
use super::verdict::{self, VerdictResult};
use super::{Fared, FleetScenario, Joined, change, merged};

/// Name of the learner.
pub(super) const LEARNT: &str = "learnt";
/// Name of the best fixed configuration for each aggregate and context in hindsight.
pub(super) const BEST_BY_CONTEXT: &str = "best per context";
/// Name of the best single configuration for all.
pub(super) const BEST_SINGLE: &str = "best for all";
/// Windows of the run in which means are compared.
const WINDOWS: usize = 24;
/// "Within 3%".
const CLOSE: f64 = 0.03;

/// A simulated fleet.
#[derive(Clone, Debug, Serialize)]
pub struct FleetResult {
    /// `trimtab.fleet/2`.
    pub schema: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// The command that it came from.
    pub command: String,
    /// The scenario's name.
    pub scenario: String,
    /// What it shows.
    pub about: String,
    /// The seed, the first one of several.
    pub seed: u64,
    /// How many fleets there were, with one seed after the other.
    pub seeds: u64,
    /// Aggregates of each fleet.
    pub aggregates: u32,
    /// Intervals of the run.
    pub intervals: u64,
    /// Connections simulated per interval.
    pub connections: u32,
    /// The start and baselines took part in one of so many intervals; the incumbent and the
    /// one that is compared with in all.
    #[serde(skip_serializing_if = "is_each")]
    pub baselines_every: u64,
    /// By service.
    pub services: Vec<ServiceResult>,
    /// What the paper reports.
    pub paper: Vec<String>,
}

/// A service of a simulated fleet.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceResult {
    /// Its name.
    pub service: String,
    /// Its reward.
    pub reward: String,
    /// Schemes, best first by the mean reward of the last third.
    pub schemes: Vec<SchemeResult>,
    /// Intervals until the mean reward of every later window is within 3% of the best per context.
    pub close_after: Option<u64>,
    /// What became of an outage.
    pub outage: Option<OutageResult>,
    /// Whether what is learnt loses to the incumbent, in runs of two days and more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictResult>,
    /// What was learnt vs. the algorithm that the scenario names.
    pub versus: Option<VersusResult>,
    /// Medians over the aggregates of what was learnt of the knobs, by context.
    pub learnt: Vec<(String, Vec<(String, f64)>)>,
    /// Of a service that has a choice: the share of the last third in which each algorithm was in
    /// force, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<(String, f64)>,
    /// Aggregates that became one in the run, where it was looked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    /// What the aggregates found together, the surest gain first: a prior for the same service elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<PriorRow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
fn is_each(every: &u64) -> bool {
    *every == 1
}

/// A scheme.
#[derive(Clone, Debug, Serialize)]
pub struct SchemeResult {
    /// Its name.
    pub name: String,
    /// Mean reward of the whole run.
    pub reward: f64,
    /// Mean reward of its last third.
    pub late_reward: f64,
    /// That compared with the best per context: a share, and the 95% interval of it by bootstrap over the aggregates.
    pub to_best: Option<Estimate>,
    /// The same of its best guesses, run on the same connections: the rest is what looking around costs.
    pub guess_to_best: Option<Estimate>,
    /// The exponent b of regret ~ t^b, fitted over the last nine tenths; below 1 is sub-linear.
    pub regret_exponent: Option<Estimate>,
    /// Cumulative regret per aggregate at the end of each window.
    pub regret: Vec<f64>,
    /// Mean reward by window.
    pub windows: Vec<f64>,
    /// Of all connections of the last third: the statistics that the table shows, and more.
    pub statistics: Vec<(String, f64)>,
    /// What flows of others get next to it, where links have any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossResult>,
    /// Falls back to the safe configuration, over all aggregates.
    pub fallbacks: usize,
}

/// What was learnt vs. one algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct VersusResult {
    /// Which one.
    pub name: String,
    /// The change of each statistic of the last third as a share of the other's.
    pub statistics: Vec<(String, Estimate)>,
}

/// What became of an outage.
#[derive(Clone, Debug, Serialize)]
pub struct OutageResult {
    /// Aggregates that fell back during it.
    pub fell_back: usize,
    /// Intervals from its beginning to the fall back: median and most.
    pub median_intervals: Option<u64>,
    /// The most.
    pub most_intervals: Option<u64>,
    /// Mean reward during it, of the learner and of the safe configuration.
    pub reward: f64,
    /// That of the safe configuration.
    pub safe_reward: f64,
    /// Mean reward in as many intervals after it.
    pub reward_after: f64,
    /// That of the safe configuration.
    pub safe_reward_after: f64,
    /// The most that the sum of an aggregate's rewards fell behind that of the safe configuration
    /// over any stretch of the run, in mean rewards of the safe configuration: the median over the
    /// aggregates.
    pub behind_median: f64,
    /// The most of all aggregates.
    pub behind_most: f64,
}

impl FleetResult {
    /// What the aggregates of the first service found together, as tables for its description.
    pub fn prior(&self) -> String {
        let rows = self.services.first().map_or_else(Vec::new, |service| service.found.clone());
        let command = self.command.replace(char::is_control, " ");
        format!("# What a fleet found: {command}\n\n{}", PriorRow::write(rows))
    }

    /// The figures of fleets with so many seeds, from the first of them; `fared` by service, with
    /// the aggregates of one fleet after those of the other.
    pub(super) fn of(
        scenario: &FleetScenario,
        (seed, seeds): (u64, u64),
        command: &str,
        fared: &[Vec<Fared>],
    ) -> Self {
        let services = scenario.services.iter().zip(fared);
        let services =
            services.map(|(service, fared)| of_service(scenario, service, fared, seeds as usize));
        Self {
            schema: "trimtab.fleet/2",
            version: env!("CARGO_PKG_VERSION"),
            command: command.to_owned(),
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            seed,
            seeds,
            aggregates: scenario.aggregates,
            intervals: scenario.intervals(),
            connections: scenario.connections,
            baselines_every: scenario.baselines_every,
            services: services.collect(),
            paper: scenario.paper.clone(),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), v| (sum + v, count + 1));
    sum / f64::from(count.max(1))
}

/// Mean over the aggregates of the rewards of intervals `from` to `until`.
fn mean_between(courses: &[&Course], from: usize, until: usize) -> f64 {
    mean(courses.iter().flat_map(|c| c.between(from, until).iter().copied()))
}

/// Where window `w` begins.
fn begins(intervals: usize, w: usize) -> usize {
    w * intervals / WINDOWS.min(intervals)
}

fn scheme(
    scenario: &FleetScenario,
    all: &[Fared],
    fared: &Fared,
    best: Option<&[Course]>,
) -> SchemeResult {
    let intervals = scenario.intervals() as usize;
    let courses: Vec<&Course> = fared.courses.iter().collect();
    let (there, stride) = courses.first().map_or((0, 1), |c| (c.rewards.len(), c.stride()));
    let begins_at = |w| begins(there, w) * stride as usize;
    let window = |w| mean_between(&courses, begins_at(w), begins_at(w + 1));
    let gap_to = best.map(|best| ToBest { own: courses.clone(), best: best.iter().collect() });
    let late = intervals * 2 / 3;
    let gap = |pair: &ToBest<'_>| pair.share(|c| &c.rewards[late.min(c.rewards.len())..], late);
    let guessed = |pair: &ToBest<'_>| pair.share(|c| &c.guessed, late);
    let guesses = fared.courses.iter().all(|c| !c.guessed.is_empty());
    SchemeResult {
        name: fared.name.clone(),
        reward: mean_between(&courses, 0, intervals),
        late_reward: mean_between(&courses, late, intervals),
        to_best: gap_to.as_ref().and_then(|b| b.estimated(|b| Some(gap(b)))),
        guess_to_best: gap_to
            .as_ref()
            .filter(|_| guesses)
            .and_then(|b| b.estimated(|b| Some(guessed(b)))),
        regret_exponent: gap_to
            .as_ref()
            .and_then(|b| b.estimated(|b| exponent(&b.regret(intervals)))),
        regret: gap_to.as_ref().map_or_else(Vec::new, |b| b.regret(intervals)),
        windows: (0..WINDOWS.min(there)).map(window).collect(),
        statistics: statistics(&merged(fared.courses.iter())),
        cross: cross::of(scenario, all, &fared.courses),
        fallbacks: courses.iter().map(|c| c.fallbacks.len()).sum(),
    }
}

/// Courses of a scheme, and those of the best per context with the same aggregates.
struct ToBest<'a> {
    own: Vec<&'a Course>,
    best: Vec<&'a Course>,
}

/// How often aggregates are drawn for an interval.
const RESAMPLES: usize = 400;

impl ToBest<'_> {
    /// By how much the rewards of the last third are above the best's, as a share of those.
    fn share(&self, of: impl Fn(&Course) -> &[f64], late: usize) -> f64 {
        let own = mean(self.own.iter().flat_map(|c| of(c).iter().copied()));
        let best = mean(self.best.iter().flat_map(|c| c.rewards[late..].iter().copied()));
        (own - best) / best.abs().max(f64::MIN_POSITIVE)
    }

    /// Cumulative regret per aggregate at the end of each window.
    fn regret(&self, intervals: usize) -> Vec<f64> {
        let mut sum = 0.0;
        (0..WINDOWS.min(intervals))
            .map(|w| {
                let (from, until) = (begins(intervals, w), begins(intervals, w + 1));
                let gap =
                    mean_between(&self.best, from, until) - mean_between(&self.own, from, until);
                sum += gap * (until - from) as f64;
                sum
            })
            .collect()
    }

    /// A figure and where 95% of it lie when the aggregates are drawn again, with replacement.
    fn estimated(&self, figure: impl Fn(&Self) -> Option<f64>) -> Option<Estimate> {
        let value = figure(self)?;
        let mut random = generator(self.own.len() as u64, &[10]);
        let mut drawn: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| {
                let picks: Vec<usize> =
                    (0..self.own.len()).map(|_| random.random_range(0..self.own.len())).collect();
                let of = |all: &[_]| picks.iter().map(|&i| all[i]).collect();
                figure(&Self { own: of(&self.own), best: of(&self.best) })
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| drawn.get((share * drawn.len() as f64) as usize).copied();
        Some(Estimate { value, low: at(0.025).unwrap_or(value), high: at(0.975).unwrap_or(value) })
    }
}

pub(super) fn statistics(summary: &Summary) -> Vec<(String, f64)> {
    let kinds = [
        StatisticKind::Mean,
        StatisticKind::Percentile(10),
        StatisticKind::Percentile(25),
        StatisticKind::Percentile(50),
        StatisticKind::Percentile(75),
        StatisticKind::Percentile(90),
    ];
    let of = |(name, sketch): (&str, &Sketch)| {
        let name = name.to_owned();
        let sketch = sketch.clone();
        kinds
            .into_iter()
            .filter_map(move |kind| Some((format!("{kind}({name})"), sketch.statistic(kind)?)))
    };
    summary.sketches().flat_map(of).collect()
}

/// The figures of one service in so many fleets.
fn of_service(
    scenario: &FleetScenario,
    service: &Service,
    fared: &[Fared],
    fleets: usize,
) -> ServiceResult {
    let intervals = scenario.intervals() as usize;
    let named = |name: &str| fared.iter().find(|f| f.name == name).map(|f| &f.courses[..]);
    let best = named(BEST_BY_CONTEXT);
    let mut schemes: Vec<_> = fared.iter().map(|f| scheme(scenario, fared, f, best)).collect();
    let courses = |name: &str| named(name).map(|all| all.iter().collect::<Vec<&Course>>());
    let learnt = &courses(LEARNT).unwrap_or_default()[..];
    let close_after = courses(BEST_BY_CONTEXT).and_then(|b| close_after(learnt, &b, intervals));
    let cross: Vec<&str> = scenario.links.shared.cross.iter().map(|(cc, _)| &cc[..]).collect();
    let versus = scenario
        .compare_with
        .as_deref()
        .and_then(|name| courses(name).map(|other| change::versus(name, &cross, learnt, &other)));
    let safe = courses("safe").or_else(|| courses("start"));
    let outage = scenario.outage.zip(safe).map(|(o, safe)| {
        let safe = &safe[..];
        let (from, until) = (o.from as usize, o.until as usize);
        let in_it = |n: &&u64| (o.from..o.until).contains(n);
        let mut first: Vec<u64> = learnt
            .iter()
            .filter_map(|c| c.fallbacks.iter().find(in_it))
            .map(|n| n - o.from + 1)
            .collect();
        first.sort_unstable();
        let mut behind: Vec<f64> =
            learnt.iter().zip(safe).map(|(l, s)| most_behind(l, s)).collect();
        behind.sort_by(f64::total_cmp);
        OutageResult {
            behind_median: behind.get(behind.len() / 2).copied().unwrap_or(0.0),
            behind_most: behind.last().copied().unwrap_or(0.0),
            fell_back: first.len(),
            median_intervals: first.get(first.len() / 2).copied(),
            most_intervals: first.last().copied(),
            reward: mean_between(learnt, from, until),
            safe_reward: mean_between(safe, from, until),
            reward_after: mean_between(learnt, until, 2 * until - from),
            safe_reward_after: mean_between(safe, until, 2 * until - from),
        }
    });
    schemes.sort_by(|a, b| b.late_reward.total_cmp(&a.late_reward));
    let text = |parsed: &str| parsed.to_owned();
    ServiceResult {
        service: service.name().to_string(),
        reward: text(service.reward().text()),
        schemes,
        close_after,
        outage,
        verdict: verdict::of(scenario, service, fared, fleets),
        versus,
        learnt: typical(learnt),
        ran: ran(learnt),
        joined: fared.iter().find_map(|fared| fared.joined),
        found: fared
            .iter()
            .find_map(|fared| fared.found.as_ref())
            .map_or_else(Vec::new, |found| PriorRow::all(service, found)),
    }
}

/// The most that rewards fell behind the safe configuration's over any stretch, in mean rewards of that.
fn most_behind(learnt: &Course, safe: &Course) -> f64 {
    let step = |(sum, most): (f64, f64), (l, s): (&f64, &f64)| {
        let sum = (sum + s - l).max(0.0);
        (sum, most.max(sum))
    };
    let (_, most) = learnt.rewards.iter().zip(&safe.rewards).fold((0.0, 0.0), step);
    most / mean(safe.rewards.iter().map(|r| r.abs())).max(f64::MIN_POSITIVE)
}

/// The slope of log regret over log time, by least squares over all windows but the first tenth.
fn exponent(regret: &[f64]) -> Option<f64> {
    let points: Vec<(f64, f64)> = regret
        .iter()
        .enumerate()
        .skip(regret.len() / 10)
        .filter(|(_, r)| **r > 0.0)
        .map(|(w, &r)| (libm::log((w + 1) as f64), libm::log(r)))
        .collect();
    if points.len() < 3 {
        return None;
    }
    let (x, y) = (mean(points.iter().map(|p| p.0)), mean(points.iter().map(|p| p.1)));
    let (up, down) = points.iter().fold((0.0, 0.0), |(up, down), p| {
        (up + (p.0 - x) * (p.1 - y), down + (p.0 - x) * (p.0 - x))
    });
    Some(up / down)
}

fn close_after(learnt: &[&Course], best: &[&Course], intervals: usize) -> Option<u64> {
    let windows = WINDOWS.min(intervals);
    let is_close = |w: &usize| {
        let (from, until) = (begins(intervals, *w), begins(intervals, w + 1));
        let goal = mean_between(best, from, until);
        mean_between(learnt, from, until) >= goal - CLOSE * goal.abs()
    };
    let late = (0..windows).rev().take_while(is_close).count();
    (late > 0).then(|| begins(intervals, windows - late) as u64)
}

/// The share of the last third in which each algorithm was in force.
fn ran(courses: &[&Course]) -> Vec<(String, f64)> {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in courses.iter().flat_map(|course| &course.ran) {
        *all.entry(name).or_default() += count;
    }
    let sum = all.values().sum::<u64>() as f64;
    let mut shares: Vec<(String, f64)> =
        all.into_iter().map(|(name, count)| (name.to_owned(), count as f64 / sum)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// Medians over the aggregates of what was learnt.
fn typical(courses: &[&Course]) -> Vec<(String, Vec<(String, f64)>)> {
    let Some(first) = courses.first() else { return Vec::new() };
    let knob = |context: usize, knob: usize| {
        let of = |c: &&Course| c.learnt.get(context).and_then(|(_, k)| k.get(knob)).map(|k| k.1);
        let mut values: Vec<f64> = courses.iter().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let mut all = Vec::new();
    for (c, (context, knobs)) in first.learnt.iter().enumerate() {
        let typical = knobs.iter().enumerate().map(|(k, (name, _))| (name.clone(), knob(c, k)));
        all.push((context.clone(), typical.collect()));
    }
    all
}

#[cfg(test)]
mod tests;
