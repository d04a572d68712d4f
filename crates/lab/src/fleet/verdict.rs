//! Whether what is learnt loses to what is installed.

use serde::Serialize;
use trimtab_fleet::Service;
use trimtab_units::Duration;

use super::contest::Course;
use super::estimate::{Estimate, resampled};
use super::result::LEARNT;
use super::{Fared, FleetScenario};

/// The lower end of the mean change after the first day is to be at least this.
const MEAN_LEAST: f64 = -0.02;
/// No aggregate's change of a day is to be below this, after the first.
const DAY_LEAST: f64 = -0.10;

/// What is learnt vs. the incumbent, day by day. A change is a difference of mean rewards as a share
/// of the mean absolute reward of the incumbent with the same aggregate.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictResult {
    /// The incumbent.
    pub incumbent: String,
    /// Mean change of the first day over the aggregates.
    pub first_day: Estimate,
    /// Mean change after the first day.
    pub after: Estimate,
    /// Mean change after the first day of the dynamic oracle, which has in each interval the best
    /// of what is learnt, of the start, and of the service's algorithms; of intervals that all of
    /// these took part in.
    pub oracle: Estimate,
    /// The least change of an aggregate in a day after the first.
    pub worst: Worst,
    /// Aggregate-days after the first day whose change is below -10%.
    pub below: usize,
    /// Those of them whose 95% interval is below -10%, too: a day of few connections is off by chance.
    pub below_surely: usize,
    /// All aggregate-days after the first day.
    pub days: usize,
    /// Mean difference after the first day in standard deviations of the incumbent's reward from
    /// one interval to the next.
    pub gain_noise: f64,
    /// Mean regret after the first day vs. the dynamic oracle, in the same unit.
    pub regret_noise: f64,
    /// Whether the lower end of `after` is at least -2%.
    pub mean_is_met: bool,
    /// Whether no aggregate-day is below -10%.
    pub days_are_met: bool,
}

/// An aggregate in a day.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Worst {
    /// The change.
    pub change: f64,
    /// The number of the fleet, from 0 for the first seed.
    pub fleet: usize,
    /// The number of the aggregate, from 0.
    pub aggregate: usize,
    /// The day, from 1.
    pub day: usize,
}

/// One aggregate with what is learnt, with the incumbent, and with the oracle.
struct Case {
    own: Vec<f64>,
    incumbent: Vec<f64>,
    /// Of the intervals that all of its choices took part in.
    oracle: Vec<Option<f64>>,
    /// Mean absolute reward of the incumbent.
    scale: f64,
    /// Standard deviation of its reward from one interval to the next.
    noise: f64,
}

impl Case {
    fn of(own: &Course, incumbent: &Course, choices: &[&Course]) -> Self {
        let incumbent = incumbent.rewards.clone();
        let best = |n: usize| {
            let rewards: Option<Vec<f64>> = choices.iter().map(|c| c.at(n)).collect();
            Some(rewards?.into_iter().fold(f64::NEG_INFINITY, f64::max))
        };
        let scale = mean(incumbent.iter().map(|r| r.abs()));
        let noise = noise(&incumbent);
        let oracle = (0..incumbent.len()).map(best).collect();
        Self { own: own.rewards.clone(), incumbent, oracle, scale, noise }
    }

    /// The mean gain over the incumbent in some intervals.
    fn gain(&self, (from, until): (usize, usize)) -> f64 {
        mean((from..until).map(|n| self.own[n] - self.incumbent[n]))
    }

    /// The upper end of the gain's 95% interval.
    fn gain_most(&self, (from, until): (usize, usize)) -> f64 {
        let gains: Vec<f64> = (from..until).map(|n| self.own[n] - self.incumbent[n]).collect();
        self.gain((from, until)) + 1.96 * noise(&gains) / (gains.len().max(1) as f64).sqrt()
    }

    /// The mean difference of the oracle and another in some intervals.
    fn oracle_gain(&self, to: &[f64], (from, until): (usize, usize)) -> f64 {
        mean((from..until).filter_map(|n| Some(self.oracle[n]? - to[n])))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), v| (sum + v, count + 1));
    sum / f64::from(count.max(1))
}

/// The standard deviation from one interval to the next, by their differences, so that load by the
/// hour is no noise (von Neumann 1941).
fn noise(values: &[f64]) -> f64 {
    (mean(values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2))) / 2.0).sqrt()
}

/// `part` of `whole`; nothing of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The verdict on a run of so many fleets. `None` for a run without a whole day after the first.
pub(super) fn of(
    scenario: &FleetScenario,
    service: &Service,
    fared: &[Fared],
    fleets: usize,
) -> Option<VerdictResult> {
    let incumbent = service.incumbent()?;
    let day = Duration::from_secs(24 * 3600).ratio(service.interval()) as usize;
    let intervals = scenario.intervals() as usize;
    let days = intervals.checked_div(day)?;
    if days < 2 {
        return None;
    }
    let named = |name: &str| fared.iter().find(|f| f.name == name).map(|f| &f.courses);
    let (learnt, safe) = (named(LEARNT)?, named("safe")?);
    let own = [LEARNT, "start", "safe"];
    let others = service.others().iter().map(trimtab_fleet::Other::name);
    let choices: Vec<&Vec<Course>> = own.into_iter().chain(others).filter_map(named).collect();
    let cases: Vec<Case> = (0..learnt.len())
        .map(|i| {
            let choices: Vec<&Course> = choices.iter().map(|courses| &courses[i]).collect();
            Case::of(&learnt[i], &safe[i], &choices)
        })
        .collect();
    let whole = (day, intervals);
    let estimate = |of: &dyn Fn(&Case) -> f64| {
        let changes: Vec<f64> = cases.iter().map(|case| share(of(case), case.scale)).collect();
        resampled(fleets, cases.len(), |picks| Some(mean(picks.iter().map(|&i| changes[i]))))
    };
    let size = (cases.len() / fleets.max(1)).max(1);
    let of_day = |(i, case): (usize, &Case), d: usize| Worst {
        change: share(case.gain((d * day, (d + 1) * day)), case.scale),
        fleet: i / size,
        aggregate: i % size,
        day: d + 1,
    };
    let daily: Vec<Worst> =
        cases.iter().enumerate().flat_map(|case| (1..days).map(move |d| of_day(case, d))).collect();
    let worst = *daily.iter().min_by(|a, b| a.change.total_cmp(&b.change))?;
    let below = daily.iter().filter(|one| one.change < DAY_LEAST).count();
    let is_sure = |case: &&Case, d: usize| {
        share(case.gain_most((d * day, (d + 1) * day)), case.scale) < DAY_LEAST
    };
    let sure = |d: usize| cases.iter().filter(|case| is_sure(case, d)).count();
    let below_surely = (1..days).map(sure).sum();
    let after = estimate(&|c| c.gain(whole))?;
    Some(VerdictResult {
        incumbent: incumbent.to_owned(),
        first_day: estimate(&|c| c.gain((0, day)))?,
        after,
        oracle: estimate(&|c| c.oracle_gain(&c.incumbent, whole))?,
        worst,
        below,
        below_surely,
        days: daily.len(),
        gain_noise: mean(cases.iter().map(|c| share(c.gain(whole), c.noise))),
        regret_noise: mean(cases.iter().map(|c| share(c.oracle_gain(&c.own, whole), c.noise))),
        mean_is_met: after.low >= MEAN_LEAST,
        days_are_met: below == 0,
    })
}

/// The lines of a table.
pub(super) fn render(out: &mut String, verdict: &VerdictResult) {
    use std::fmt::Write;
    let met = |is_met: bool| if is_met { "met" } else { "missed" };
    let _ = writeln!(
        out,
        " reward vs. the incumbent {}, mean over the aggregates, as a share of its mean absolute \
         reward:",
        verdict.incumbent
    );
    let mut row = |name: &str, e: &Estimate, more: &str| {
        let _ = writeln!(
            out,
            "  {name:<17} {:>+6.1}% ({:+.1} to {:+.1}){more}",
            100.0 * e.value,
            100.0 * e.low,
            100.0 * e.high
        );
    };
    row("first day", &verdict.first_day, "");
    let bar = format!("; at least -2.0% with 95%: {}", met(verdict.mean_is_met));
    row("after it", &verdict.after, &bar);
    row("dynamic oracle", &verdict.oracle, ", after the first day");
    let worst = &verdict.worst;
    let _ = writeln!(
        out,
        "  below -10%         {} of {} aggregate-days after the first day, {} with 95%; none: {}; \
         the worst {:+.1}% (fleet {}, aggregate {}, day {})",
        verdict.below,
        verdict.days,
        verdict.below_surely,
        met(verdict.days_are_met),
        100.0 * worst.change,
        worst.fleet,
        worst.aggregate,
        worst.day
    );
    let _ = writeln!(
        out,
        "  in units of noise  gain {:+.2}, regret vs. the dynamic oracle {:.2}",
        verdict.gain_noise, verdict.regret_noise
    );
}

#[cfg(test)]
mod tests;
