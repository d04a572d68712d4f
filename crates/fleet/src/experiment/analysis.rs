//! From cells to a report.
//!
//! By prefixes an aggregate is one number, its mean over the experiment, and both arms are compared
//! as by Welch, after what the aggregates' rewards were before is taken out (a covariate from
//! before cannot lie, and takes out most of what differs between aggregates: Deng et al.,
//! "Improving the sensitivity of online controlled experiments by utilizing pre-experiment data",
//! WSDM 2013).
//!
//! In a switchback a pair of neighbouring blocks is one number, the mean difference over all
//! aggregates. That which goes first is drawn anew for each pair, so that differences of two pairs
//! are independent however the noise depends on itself (Bojinov, Simchi-Levi and Zhao, "Design and
//! analysis of switchback experiments", Management Science 2023); what a block leaves behind is
//! washed out at the beginning of the next.

use super::arms::Estimated;
use super::design::{Design, Experiment, Member, Schedule, deal};
use super::report::{Effect, Point, Report, UnitsReport};
use super::stats::{ALPHA, Estimate, alpha_of, coin, moments, randomised};
use super::{CellOf, GuardMetric, GuardReport, LeftOut, Plan, chance};
use crate::Service;

/// With more aggregates, dealing them out anew a thousand times takes too long.
const REDEALT_MAX: usize = 5000;
/// Fewer units of an arm tell nothing of how much units differ.
const UNITS_MIN: usize = 2;
/// A mean so many errors away from zero is another than zero, and may be divided by.
const FROM_ZERO: f64 = 4.0;

/// a·treatment − b·control − c.
type Contrast = (f64, f64, f64);
const DIFFERENCE: Contrast = (1.0, 1.0, 0.0);

/// One metric of all units, ready for contrasts.
enum Sample {
    Prefixes(TwoArms),
    Switchback(Pairs),
}

/// Means of aggregates, by arm.
struct TwoArms {
    /// The member, its arm, its mean, and its covariate.
    units: Vec<(usize, u8, f64, f64)>,
    adjusted: bool,
}

/// Pairs of blocks: how many aggregates, and the sums of their means under control and treatment.
struct Pairs {
    pairs: Vec<(f64, f64, f64)>,
}

/// Both arms, adjusted.
struct Adjusted {
    means: [f64; 2],
    variances: [f64; 2],
    counts: [f64; 2],
    /// What the slope's error adds, for the shifts of both covariates.
    shifts: [f64; 2],
    slope_variance: f64,
    adjusted: bool,
}

impl TwoArms {
    fn adjust(&self) -> Option<Adjusted> {
        let arm = |arm: u8| self.units.iter().filter(move |unit| unit.1 == arm);
        let counts = [arm(0).count(), arm(1).count()];
        if counts.iter().any(|&count| count < UNITS_MIN) {
            return None;
        }
        let mean = |arm_of: u8, of: fn(&(usize, u8, f64, f64)) -> f64| {
            arm(arm_of).map(of).sum::<f64>() / counts[usize::from(arm_of)] as f64
        };
        let (y, x) = ([0, 1].map(|a| mean(a, |u| u.2)), [0, 1].map(|a| mean(a, |u| u.3)));
        let all = self.units.iter().map(|u| u.3).sum::<f64>() / self.units.len() as f64;
        let within =
            |u: &(usize, u8, f64, f64)| (u.3 - x[usize::from(u.1)], u.2 - y[usize::from(u.1)]);
        let sxx: f64 = self.units.iter().map(within).map(|(dx, _)| dx * dx).sum();
        let sxy: f64 = self.units.iter().map(within).map(|(dx, dy)| dx * dy).sum();
        // A slope costs a degree of freedom, which few aggregates do not have to spare.
        let adjusted = self.adjusted && self.units.len() >= 8 && sxx > 0.0;
        let slope = if adjusted { sxy / sxx } else { 0.0 };
        let n = self.units.len() as f64;
        let lost = if adjusted { (n - 2.0) / (n - 3.0) } else { 1.0 };
        let residuals = |a: u8| {
            let squares: f64 =
                arm(a).map(within).map(|(dx, dy)| (dy - slope * dx) * (dy - slope * dx)).sum();
            lost * squares / (counts[usize::from(a)] as f64 - 1.0)
        };
        let variances = [residuals(0), residuals(1)];
        let pooled = (variances[0] * (counts[0] as f64 - 1.0)
            + variances[1] * (counts[1] as f64 - 1.0))
            / (n - 2.0);
        Some(Adjusted {
            means: [0, 1].map(|a: usize| y[a] - slope * (x[a] - all)),
            variances,
            counts: counts.map(|count| count as f64),
            shifts: x.map(|x| x - all),
            slope_variance: if adjusted { pooled / sxx } else { 0.0 },
            adjusted,
        })
    }
}

impl Adjusted {
    fn contrast(&self, (a, b, c): Contrast) -> Estimate {
        let parts = [b * b, a * a];
        let parts = [0, 1].map(|i: usize| parts[i] * self.variances[i] / self.counts[i]);
        let shift = a * self.shifts[1] - b * self.shifts[0];
        let variance = parts[0] + parts[1];
        // Welch and Satterthwaite.
        let below: f64 = (0..2).map(|i| parts[i] * parts[i] / (self.counts[i] - 1.0)).sum();
        let freedom = if below > 0.0 { variance * variance / below } else { f64::from(u16::MAX) };
        Estimate {
            value: a * self.means[1] - b * self.means[0] - c,
            error: (variance + shift * shift * self.slope_variance).sqrt(),
            freedom: (freedom - if self.adjusted { 1.0 } else { 0.0 }).max(1.0),
        }
    }

    /// By the delta method.
    fn relative(&self) -> Option<Estimate> {
        let [control, treatment] = self.means;
        let errors = [0, 1].map(|i: usize| self.variances[i] / self.counts[i]);
        if control.abs() <= FROM_ZERO * errors[0].sqrt() {
            return None;
        }
        let square = control * control;
        let variance = errors[1] / square + treatment * treatment * errors[0] / (square * square);
        let freedom = self.contrast(DIFFERENCE).freedom;
        let value = (treatment - control) / control.abs();
        Some(Estimate { value, error: variance.sqrt(), freedom })
    }
}

impl Pairs {
    /// Means of control and treatment, and the estimate of their difference.
    fn difference(&self) -> Option<([f64; 2], Estimate)> {
        self.with_signs(|_| false)
    }

    /// The same, had the other arm gone first in some pairs.
    fn with_signs(&self, swapped: impl Fn(usize) -> bool) -> Option<([f64; 2], Estimate)> {
        if self.pairs.len() < UNITS_MIN {
            return None;
        }
        let count = self.pairs.len() as f64;
        let weight: f64 = self.pairs.iter().map(|p| p.0).sum();
        let pairs = self.pairs.iter().enumerate();
        let pairs = pairs.map(|(i, &(n, c, t))| if swapped(i) { (n, t, c) } else { (n, c, t) });
        let sums = pairs.clone().fold([0.0, 0.0], |sums, (_, c, t)| [sums[0] + c, sums[1] + t]);
        let means = sums.map(|sum| sum / weight);
        let value = means[1] - means[0];
        let squares: f64 = pairs
            .map(|(n, c, t)| {
                let residual = t - c - value * n;
                residual * residual
            })
            .sum();
        let error = (squares * count / (count - 1.0)).sqrt() / weight;
        Some((means, Estimate { value, error, freedom: count - 1.0 }))
    }

    /// What both blocks of all pairs were on average is no matter of chance; only which of them
    /// had which arm is. So with m the mean of both and d their difference, a·t − b·c = (a −
    /// b)·m + (a + b)/2·d, and d alone has an error.
    fn contrast(&self, (a, b, c): Contrast) -> Option<Estimate> {
        let ([control, treatment], difference) = self.difference()?;
        Some(Estimate {
            value: a * treatment - b * control - c,
            error: difference.error * ((a + b) / 2.0).abs(),
            freedom: difference.freedom,
        })
    }

    fn relative(&self) -> Option<Estimate> {
        let ([control, treatment], difference) = self.difference()?;
        if control.abs() <= FROM_ZERO * difference.error / 2.0 {
            return None;
        }
        let middle = (control + treatment) / 2.0;
        Some(Estimate {
            value: difference.value / control.abs(),
            error: difference.error * middle.abs() / (control * control),
            ..difference
        })
    }
}

impl Sample {
    fn contrast(&self, contrast: Contrast) -> Option<Estimate> {
        match self {
            Self::Prefixes(arms) => Some(arms.adjust()?.contrast(contrast)),
            Self::Switchback(pairs) => pairs.contrast(contrast),
        }
    }

    fn relative(&self) -> Option<Estimate> {
        match self {
            Self::Prefixes(arms) => arms.adjust()?.relative(),
            Self::Switchback(pairs) => pairs.relative(),
        }
    }

    /// Of control and treatment.
    fn means(&self) -> [Option<f64>; 2] {
        match self {
            Self::Prefixes(arms) => {
                if let Some(adjusted) = arms.adjust() {
                    return adjusted.means.map(Some);
                }
                [0, 1].map(|arm| {
                    let values: Vec<f64> =
                        arms.units.iter().filter(|u| u.1 == arm).map(|u| u.2).collect();
                    (!values.is_empty()).then(|| moments(&values).0)
                })
            }
            Self::Switchback(pairs) => {
                pairs.difference().map_or([None, None], |(means, _)| means.map(Some))
            }
        }
    }

    /// By dealing out anew, as the design does.
    fn p(&self, experiment: &Experiment, members: &[Member]) -> Option<f64> {
        let seed = chance(experiment.seed, b"randomisation test", 0);
        let seen = self.contrast(DIFFERENCE)?;
        match self {
            Self::Prefixes(arms) => {
                let Design::Prefixes { share } = experiment.design else { return None };
                if arms.units.len() > REDEALT_MAX {
                    return Some(seen.p());
                }
                let mut order: Vec<usize> = (0..arms.units.len()).collect();
                order.sort_by(|&a, &b| arms.units[a].3.total_cmp(&arms.units[b].3));
                let mut anew = TwoArms { units: arms.units.clone(), adjusted: arms.adjusted };
                Some(randomised(seen.studentised(), |draw| {
                    let key = |i: usize| members[arms.units[i].0].key.as_str();
                    let dealt = deal(&order, key, share, seed.wrapping_add(draw));
                    anew.units.iter_mut().zip(dealt).for_each(|(unit, arm)| unit.1 = arm as u8);
                    anew.adjust().map_or(0.0, |a| a.contrast(DIFFERENCE).studentised())
                }))
            }
            Self::Switchback(pairs) => Some(randomised(seen.studentised(), |draw| {
                let drawn = pairs.with_signs(|pair| coin(seed, draw, pair));
                drawn.map_or(0.0, |(_, estimate)| estimate.studentised())
            })),
        }
    }
}

/// Sums of a metric by member.
fn two_arms(members: &[Member], cells: &[CellOf], metric: usize) -> TwoArms {
    let known: Vec<f64> = members.iter().filter_map(|m| m.baseline).collect();
    let usual = if known.is_empty() { 0.0 } else { moments(&known).0 };
    let mut sums = vec![(0.0, 0.0, 0u8); members.len()];
    for cell in cells {
        let (count, sum) = cell.cell.sum(metric);
        let unit = &mut sums[cell.member];
        *unit = (unit.0 + count, unit.1 + sum, cell.arm);
    }
    let units = sums
        .into_iter()
        .enumerate()
        .filter(|(_, (count, _, _))| *count > 0.0)
        // Whose reward before is not known counts as usual.
        .map(|(i, (count, sum, arm))| (i, arm, sum / count, members[i].baseline.unwrap_or(usual)))
        .collect();
    // Where few are known, their mean tells little of the others.
    TwoArms { units, adjusted: known.len() * 2 >= members.len() }
}

/// The pairs in which aggregates have both blocks, by the number of the pair.
fn pairs(cells: &[CellOf], metric: usize) -> std::collections::BTreeMap<i64, (f64, f64, f64)> {
    let mut blocks: std::collections::BTreeMap<(i64, usize), [Option<f64>; 2]> = Default::default();
    for cell in cells {
        let both = blocks.entry((cell.block.div_euclid(2), cell.member)).or_default();
        both[usize::from(cell.arm.min(1))] = cell.cell.mean(metric);
    }
    let mut pairs = std::collections::BTreeMap::new();
    for ((pair, _), both) in blocks {
        if let [Some(control), Some(treatment)] = both {
            let sums: &mut (f64, f64, f64) = pairs.entry(pair).or_default();
            *sums = (sums.0 + 1.0, sums.1 + control, sums.2 + treatment);
        }
    }
    pairs
}

/// Two groups of units at the same time, and what of them is asked for.
pub(super) struct Limits<'a> {
    pub(super) control: &'a [f64],
    pub(super) treatment: &'a [f64],
    pub(super) factors: Contrast,
}

/// The contrast of two groups, with the interval that misses the truth with probability `alpha`.
pub(super) fn compare_groups(of: &Limits<'_>, alpha: f64) -> Option<Effect> {
    let unit = |arm: u8| move |value: &f64| (0, arm, *value, 0.0);
    let units = of.control.iter().map(unit(0)).chain(of.treatment.iter().map(unit(1))).collect();
    let arms = TwoArms { units, adjusted: false }.adjust()?;
    Some(arms.contrast(of.factors).effect(alpha))
}

impl Experiment {
    /// What cells of a switchback say of a metric.
    pub(super) fn estimated(
        &self,
        cells: &[CellOf],
        metric: usize,
        over: bool,
    ) -> Option<Estimated> {
        let all = Pairs { pairs: pairs(cells, metric).into_values().collect() };
        let ([control, treatment], difference) = all.difference()?;
        let alpha = alpha_of(over, self.looks());
        let relative = all.relative().map(|relative| relative.effect(alpha));
        let effect = difference.effect(alpha);
        Some(Estimated { control, treatment, pairs: all.pairs.len(), effect, relative })
    }

    fn sample(&self, members: &[Member], cells: &[CellOf], metric: usize) -> Sample {
        match self.design {
            Design::Prefixes { .. } => Sample::Prefixes(two_arms(members, cells, metric)),
            Design::Switchback { .. } => {
                let pairs = pairs(cells, metric).into_values().collect();
                Sample::Switchback(Pairs { pairs })
            }
        }
    }

    /// What it has shown after so many intervals. `left` says how many members operators took out.
    ///
    /// Before the end only blocks that are over count, so that there are no more looks than [`Experiment::looks`].
    pub fn report(
        &self,
        plan: &Plan,
        service: &Service,
        members: &[Member],
        left: u64,
        cells: &[CellOf],
        elapsed: u32,
    ) -> Report {
        let elapsed = elapsed.min(self.length);
        let over = elapsed == self.length;
        let look = i64::from(self.block()) * self.blocks_of_look();
        let blocks =
            if over { i64::MAX } else { i64::from(elapsed) / look * self.blocks_of_look() };
        let counted: Vec<CellOf> = cells.iter().filter(|c| c.block < blocks).cloned().collect();
        let alpha = alpha_of(over, self.looks());
        let main = self.sample(members, &counted, 0);
        let estimate = main.contrast(DIFFERENCE);
        let guard = |(i, guard): (usize, &GuardMetric)| {
            let sample = self.sample(members, &counted, i + 1);
            let excess = sample.contrast(guard.excess()).map(|e| e.effect(alpha));
            GuardReport::new(guard, sample.means(), excess)
        };
        let guards: Vec<GuardReport> = plan.guards.iter().enumerate().map(guard).collect();
        let mut left_out = LeftOut::default();
        let seen: u64 = cells.iter().map(|c| c.cell.tally(&mut left_out)).sum();
        left_out.unreported = (u64::from(elapsed) * members.len() as u64).saturating_sub(seen);
        let [control, treatment] = main.means();
        let effect = estimate.map(|e| e.effect(alpha));
        let mut report = Report {
            design: self.describe(),
            share: if let Design::Prefixes { share } = self.design { share } else { 0.5 },
            units: units(&main, members.len(), left),
            elapsed,
            length: self.length,
            over,
            confidence: 1.0 - alpha,
            control,
            treatment,
            effect,
            relative: main.relative().map(|e| e.effect(alpha)),
            p: over.then(|| main.p(self, members)).flatten(),
            detectable: estimate.map(|e| e.detectable(ALPHA)),
            guards,
            left_out,
            series: self.series(&counted),
            verdict: String::new(),
        };
        report.verdict = super::verdict::verdict(&report, self, plan, service);
        report
    }

    fn describe(&self) -> String {
        match self.design {
            Design::Prefixes { share } => format!(
                "whole aggregates, {:.0}% of them with the treatment, dealt out among those with alike rewards before",
                100.0 * share
            ),
            Design::Switchback { block, schedule } => format!(
                "time slots of {block} intervals, {}, the order drawn for each pair",
                match schedule {
                    Schedule::Each => "each aggregate by itself",
                    Schedule::Together => "all aggregates together",
                }
            ),
        }
    }

    /// The means of both arms from look to look.
    fn series(&self, cells: &[CellOf]) -> Vec<Point> {
        let first = |block: i64| self.start.0 + block as u64 * u64::from(self.block());
        if matches!(self.design, Design::Switchback { .. }) {
            let point = |(pair, (n, control, treatment)): (i64, (f64, f64, f64))| Point {
                interval: first(2 * pair),
                control: Some(control / n),
                treatment: Some(treatment / n),
            };
            return pairs(cells, 0).into_iter().map(point).collect();
        }
        let mut blocks: std::collections::BTreeMap<i64, [(f64, f64); 2]> = Default::default();
        for cell in cells {
            if let Some(mean) = cell.cell.mean(0) {
                let sums = &mut blocks.entry(cell.block).or_default()[usize::from(cell.arm.min(1))];
                *sums = (sums.0 + 1.0, sums.1 + mean);
            }
        }
        let mean = |(n, sum): (f64, f64)| (n > 0.0).then(|| sum / n);
        let point = |(block, arms): (i64, [(f64, f64); 2])| Point {
            interval: first(block),
            control: mean(arms[0]),
            treatment: mean(arms[1]),
        };
        blocks.into_iter().map(point).collect()
    }
}

fn units(main: &Sample, aggregates: usize, left: u64) -> UnitsReport {
    let (control, treatment, adjusted) = match main {
        Sample::Prefixes(arms) => {
            let count = |arm| arms.units.iter().filter(|u| u.1 == arm).count();
            (count(0), count(1), arms.adjust().is_some_and(|a| a.adjusted))
        }
        Sample::Switchback(pairs) => (pairs.pairs.len(), pairs.pairs.len(), false),
    };
    UnitsReport {
        aggregates: aggregates as u64,
        control: control as u64,
        treatment: treatment as u64,
        left,
        adjusted,
    }
}

/// Beyond these, a reader sees no more.
pub(super) fn interval_text(effect: &Effect) -> String {
    format!("{:+.4} ({:+.4} to {:+.4})", effect.value, effect.low, effect.high)
}
