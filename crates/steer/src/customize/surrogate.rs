//! A model of the reward over the permitted box: a Gaussian process over what is remembered of trials.
//!
//! Three sorts of knowledge go into it, each with a covariance of its own (an intrinsic model of coregionalization with
//! nested groups: Álvarez, Rosasco and Lawrence, "Kernels for vector-valued functions", 2012, §4.2): trials of the same
//! context, of other contexts of the aggregate, and what other aggregates found. A reward is
//! `level of its group + common + aggregate's own + context's own + noise`, and each but level and noise is smooth.

use serde::{Deserialize, Serialize};

use super::memory::{Cell, Memory};
use super::point::{At, Point};

/// How much of the variance of the reward over the box is common to the contexts of an aggregate,
/// and to aggregates: the latter at most, since an aggregate may be unlike the others.
const KIN: f64 = 0.85;
const FLEET: f64 = 0.6;
/// After so many own trials others' findings tell half as much as at first: theirs is knowledge of
/// other networks, and of other days.
const FADE: f64 = 30.0;
/// In so many steps is an aggregate apart from the others.
const APART: u8 = 4;
/// Variance between algorithms, by that of all rewards.
const ALGORITHM: f64 = 1.0;
/// The variance of a group's level: nearly nothing is known of it.
const LEVEL: f64 = 10.0;
/// The most cells that are read of other contexts.
const OTHERS_MAX: usize = 16;
/// So many trials of other aggregates count as one of them: those of one aggregate are much alike.
const OTHERS_ALIKE: f64 = 8.0;

/// What is remembered.
pub(super) struct Seen<'a> {
    /// Of this context.
    pub(super) own: &'a Memory,
    /// Of this context, before the conditions last changed.
    pub(super) before: &'a Memory,
    /// Of other contexts of the aggregate.
    pub(super) others: Vec<&'a Memory>,
    /// What other aggregates found, as [`super::Commons`] has it.
    pub(super) fleet: &'a [Cell],
    /// Whether there are several algorithms to choose from.
    pub(super) choice: bool,
}

/// What the model takes for granted: noise and range of the reward as shares of its variance, and
/// how far apart in each knob rewards are related. All in logarithms to base 2, in steps of a
/// quarter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    noise: i8,
    range: i8,
    lengths: Vec<i8>,
    /// How far the aggregate is apart from the others: of [`APART`] steps, with all of which their
    /// findings tell nothing of it.
    #[serde(default)]
    apart: u8,
    /// Which one is tried next.
    turn: u8,
}

/// What is likely before anything is known: mean and standard deviation of the logarithms.
const NOISE: (f64, f64) = (-1.0, 1.5);
const RANGE: (f64, f64) = (-0.5, 1.5);
const LENGTH: (f64, f64) = (-1.0, 0.8);
/// Logarithms go no further than this, in quarters.
const FURTHEST: i8 = 24;

fn power(quarters: i8) -> f64 {
    libm::exp2(f64::from(quarters) / 4.0)
}

impl Shape {
    pub(super) fn new(knobs: usize) -> Self {
        let quarters = |prior: (f64, f64)| (4.0 * prior.0) as i8;
        Self {
            noise: quarters(NOISE),
            range: quarters(RANGE),
            lengths: vec![quarters(LENGTH); knobs],
            apart: 0,
            turn: 0,
        }
    }

    fn at(&mut self, which: usize) -> &mut i8 {
        match which {
            0 => &mut self.noise,
            1 => &mut self.range,
            k => &mut self.lengths[k - 2],
        }
    }

    fn plausibility(&self) -> f64 {
        let of = |quarters: i8, (mean, deviation): (f64, f64)| {
            let off = (f64::from(quarters) / 4.0 - mean) / deviation;
            -0.5 * off * off
        };
        let lengths: f64 = self.lengths.iter().map(|&l| of(l, LENGTH)).sum();
        of(self.noise, NOISE) + of(self.range, RANGE) + lengths
    }

    /// Moves one of them a step to where what was seen is likelier, each in its turn: over some
    /// tens of trials that comes to the likeliest ones, at a bounded cost for each trial.
    pub(super) fn improve(&mut self, seen: &Seen<'_>) {
        let which = usize::from(self.turn) % (3 + self.lengths.len());
        self.turn = self.turn.wrapping_add(1);
        if which == 2 + self.lengths.len() {
            self.set_apart(seen);
            return;
        }
        let nothing = Memory::default();
        let own = Seen { own: seen.own, before: &nothing, others: Vec::new(), fleet: &[], ..*seen };
        let now = *self.at(which);
        let values = [now, now.saturating_sub(2), now.saturating_add(2)];
        let values = values.map(|value| value.clamp(-FURTHEST, FURTHEST));
        let likely = |shape: &Self| shape.evidence(&own) + shape.plausibility();
        self.likeliest(values, |shape, value| *shape.at(which) = value, likely);
    }

    /// An aggregate whose own trials are unlikely by what others found is apart from them.
    /// Otherwise they would go on drawing it to where others do well, however much it knows itself.
    fn set_apart(&mut self, seen: &Seen<'_>) {
        if !seen.fleet.is_empty() {
            // As it was comes first, so that it stays where nothing is likelier.
            let values = [self.apart].into_iter().chain(0..=APART);
            self.likeliest(values, |shape, value| shape.apart = value, |s| s.evidence(seen));
        }
    }

    /// Takes the value with which what was seen is likeliest; of equal ones the first.
    fn likeliest<V: Copy>(
        &mut self,
        values: impl IntoIterator<Item = V>,
        set: impl Fn(&mut Self, V),
        likely: impl Fn(&Self) -> f64,
    ) {
        let mut best: Option<(f64, V)> = None;
        for value in values {
            set(self, value);
            let now = likely(self);
            if best.is_none_or(|(most, _)| now > most + 1e-9) {
                best = Some((now, value));
            }
        }
        if let Some((_, value)) = best {
            set(self, value);
        }
    }

    /// The logarithm of the likelihood of what was seen.
    fn evidence(&self, seen: &Seen<'_>) -> f64 {
        Surrogate::fit(seen, self).map_or(f64::NEG_INFINITY, |s| s.evidence(seen.own))
    }
}

/// How much rewards at two points have in common, 0 to 1.
fn related(a: &[f64], b: &[f64], per_length: &[f64]) -> f64 {
    let off = |((a, b), per): ((&f64, &f64), &f64)| (a - b) * per;
    let square: f64 = a.iter().zip(b).zip(per_length).map(off).map(|d| d * d).sum();
    // Matérn's with ν = 5/2: smooth, but not so smooth that a cliff bends everything.
    let r = (5.0 * square).sqrt();
    (1.0 + r + r * r / 3.0) * libm::exp(-r)
}

/// Whom a row is of.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    Context(usize),
    /// This context, before the conditions last changed.
    Before,
    Fleet,
}

impl Group {
    /// How much of the variance is common to two, where so much is common to aggregate and fleet.
    fn kinship(self, other: Self, fleet: f64) -> f64 {
        match (self, other) {
            (Self::Fleet, Self::Fleet) => FLEET,
            (Self::Fleet, _) | (_, Self::Fleet) => fleet,
            (Self::Context(a), Self::Context(b)) if a == b => 1.0,
            (Self::Before, Self::Before) => 1.0,
            (Self::Before, _) | (_, Self::Before) => FLEET,
            _ => KIN,
        }
    }
}

struct Row {
    choice: u8,
    knobs: Vec<f64>,
    group: Group,
    value: f64,
    noise: f64,
}

impl Row {
    fn at(&self) -> At<'_> {
        At { choice: self.choice, knobs: &self.knobs }
    }
}

/// The model of one context's rewards.
pub(super) struct Surrogate {
    /// Variances of noise and range, as shares of the variance of the rewards.
    noise: f64,
    range: f64,
    /// How much of the variance is common to the aggregate and others.
    fleet: f64,
    /// Variance between algorithms; 0 where there is one.
    algorithm: f64,
    /// One over the length over which rewards are related, by knob.
    per_length: Vec<f64>,
    rows: Vec<Row>,
    /// Lower triangle of the Cholesky factor of the covariance, row by row.
    factor: Vec<f64>,
    /// The covariance's inverse times the values.
    weights: Vec<f64>,
    /// Rewards are `mean + deviation · value`.
    mean: f64,
    deviation: f64,
    /// The deviation of all rewards, by that about the mean of their algorithm; 1 where there is one.
    apart: f64,
}

/// A reward that is expected, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) mean: f64,
    pub(super) error: f64,
}

impl Surrogate {
    /// The model by what is remembered. `None` where nothing is known.
    pub(super) fn fit(seen: &Seen<'_>, shape: &Shape) -> Option<Self> {
        let Seen { own, before, others, fleet, choice } = seen;
        let (mean, all) = own.spread();
        // What tells algorithms apart is no noise.
        let about = |memory: &Memory, all: f64| if *choice { memory.spread_within() } else { all };
        let mut deviation = about(own, all);
        let least = |(mean, deviation): (f64, f64)| deviation.max(1e-3 * mean.abs()).max(1e-9);
        let scale = |memory: &Memory| {
            let (mean, all) = memory.spread();
            (mean, least((mean, about(memory, all))))
        };
        let scales: Vec<(f64, f64)> = others.iter().map(|m| scale(m)).collect();
        if own.weight() < 4.0 {
            // A few trials have no deviation of their own to speak of.
            deviation = scales.iter().map(|s| s.1).fold(deviation, f64::max).max(0.1 * mean.abs());
        }
        let deviation = least((mean, deviation));
        let apart = if *choice { (all / deviation).max(1.0) } else { 1.0 };
        let noise = power(shape.noise);
        let mut rows: Vec<Row> = Vec::new();
        let row = |c: &Cell, group, (mean, deviation): (f64, f64)| Row {
            choice: c.choice(),
            knobs: c.knobs(),
            group,
            value: (c.mean() - mean) / deviation,
            noise: noise / c.weight(),
        };
        let mut of_others: Vec<(usize, &Cell)> = others
            .iter()
            .enumerate()
            .flat_map(|(n, m)| m.cells().iter().map(move |c| (n, c)))
            .collect();
        of_others.sort_by(|a, b| b.1.weight().total_cmp(&a.1.weight()));
        of_others.truncate(OTHERS_MAX);
        rows.extend(own.cells().iter().map(|c| row(c, Group::Context(0), (mean, deviation))));
        for (n, cell) in of_others {
            rows.push(row(cell, Group::Context(n + 1), scales[n]));
        }
        rows.extend(before.cells().iter().map(|c| row(c, Group::Before, scale(before))));
        rows.extend(fleet.iter().map(|c| Row {
            noise: noise * OTHERS_ALIKE / c.weight(),
            ..row(c, Group::Fleet, (0.0, 1.0 / apart))
        }));
        if rows.is_empty() {
            return None;
        }
        let mut model = Self {
            noise,
            range: power(shape.range),
            fleet: FLEET * (1.0 - f64::from(shape.apart.min(APART)) / f64::from(APART))
                / (1.0 + own.weight() / FADE),
            algorithm: if *choice { ALGORITHM * apart * apart } else { 0.0 },
            per_length: shape.lengths.iter().map(|&length| power(-length)).collect(),
            factor: Vec::with_capacity(rows.len() * (rows.len() + 1) / 2),
            weights: Vec::new(),
            rows,
            mean,
            deviation,
            apart,
        };
        model.factorize();
        let mut weights: Vec<f64> = model.rows.iter().map(|r| r.value).collect();
        model.forward(&mut weights);
        model.backward(&mut weights);
        model.weights = weights;
        Some(model)
    }

    fn covariance(&self, point: At<'_>, group: Group, row: &Row) -> f64 {
        self.between((point, group), (row.at(), row.group))
    }

    /// How much two expectations vary together before anything is known.
    fn between(&self, (a, group): (At<'_>, Group), (b, other): (At<'_>, Group)) -> f64 {
        let level = if group == other { LEVEL } else { 0.0 };
        if a.choice != b.choice {
            return level;
        }
        let kinship = group.kinship(other, self.fleet);
        let related = related(a.knobs, b.knobs, &self.per_length);
        self.range * kinship * related + kinship * self.algorithm + level
    }

    /// The variance of a reward's expectation before anything is known.
    fn prior(&self, group: Group) -> f64 {
        let kinship = group.kinship(group, self.fleet);
        LEVEL + self.range * kinship + kinship * self.algorithm
    }

    fn factorize(&mut self) {
        for i in 0..self.rows.len() {
            let row = &self.rows[i];
            let mut line: Vec<f64> = self.rows[..i]
                .iter()
                .map(|other| self.covariance(row.at(), row.group, other))
                .collect();
            let diagonal = self.prior(row.group) + row.noise + 1e-8;
            self.forward(&mut line);
            let left = diagonal - line.iter().map(|l| l * l).sum::<f64>();
            self.factor.extend(line);
            self.factor.push(left.max(1e-10).sqrt());
        }
    }

    /// Solves L·y = b in place, for as many rows as `b` has.
    fn forward(&self, b: &mut [f64]) {
        let mut at = 0;
        for i in 0..b.len() {
            let line = &self.factor[at..at + i];
            let known: f64 = line.iter().zip(&b[..i]).map(|(l, y)| l * y).sum();
            b[i] = (b[i] - known) / self.factor[at + i];
            at += i + 1;
        }
    }

    /// Solves Lᵀ·x = y in place.
    fn backward(&self, y: &mut [f64]) {
        for i in (0..y.len()).rev() {
            let at = i * (i + 1) / 2;
            y[i] /= self.factor[at + i];
            let x = y[i];
            for (y, l) in y[..i].iter_mut().zip(&self.factor[at..at + i]) {
                *y -= l * x;
            }
        }
    }

    /// The logarithm of the likelihood of what was seen, up to a constant.
    fn evidence(&self, own: &Memory) -> f64 {
        let fit: f64 = self.rows.iter().zip(&self.weights).map(|(r, w)| r.value * w).sum();
        let n = self.rows.len();
        let volume: f64 = (0..n).map(|i| libm::log(self.factor[i * (i + 1) / 2 + i])).sum();
        // Rewards of one cell differ by noise alone.
        let noise = self.noise;
        let repeated = (own.weight() - n as f64).max(0.0);
        let within = own.within() / (self.deviation * self.deviation);
        -0.5 * (fit + within / noise + repeated * libm::log(noise)) - volume
    }

    /// The reward that is expected at a point, without its error, which takes far longer.
    pub(super) fn mean_at<'a>(&self, point: impl Into<At<'a>>) -> f64 {
        let (own, point) = (Group::Context(0), point.into());
        let value = |(row, weight): (&Row, &f64)| self.covariance(point, own, row) * weight;
        self.mean + self.deviation * self.rows.iter().zip(&self.weights).map(value).sum::<f64>()
    }

    /// The reward that is expected at a point, without noise.
    pub(super) fn expected<'a>(&self, point: impl Into<At<'a>>) -> Expected {
        let (own, point) = (Group::Context(0), point.into());
        let mut line: Vec<f64> =
            self.rows.iter().map(|row| self.covariance(point, own, row)).collect();
        let mean: f64 = line.iter().zip(&self.weights).map(|(c, w)| c * w).sum();
        self.forward(&mut line);
        let known: f64 = line.iter().map(|l| l * l).sum();
        Expected {
            mean: self.mean + self.deviation * mean,
            error: self.deviation * (self.prior(own) - known).max(0.0).sqrt(),
        }
    }

    /// The rewards that are expected at some points, without noise, and their covariance, row by
    /// row.
    pub(super) fn jointly(&self, points: &[Point]) -> (Vec<f64>, Vec<f64>) {
        let own = Group::Context(0);
        let known = |point: &Point| {
            let to = |row: &Row| self.covariance(point.into(), own, row);
            let mut line: Vec<f64> = self.rows.iter().map(to).collect();
            self.forward(&mut line);
            line
        };
        let lines: Vec<Vec<f64>> = points.iter().map(known).collect();
        let square = self.deviation * self.deviation;
        let covariance = points.iter().zip(&lines).flat_map(|(a, of_a)| {
            points.iter().zip(&lines).map(move |(b, of_b)| {
                let known: f64 = of_a.iter().zip(of_b).map(|(a, b)| a * b).sum();
                square * (self.between((a.into(), own), (b.into(), own)) - known)
            })
        });
        (points.iter().map(|point| self.mean_at(point)).collect(), covariance.collect())
    }

    /// A difference of rewards in deviations of all of this context's rewards.
    pub(super) fn deviations(&self, difference: f64) -> f64 {
        difference / (self.deviation * self.apart)
    }

    /// The standard deviation of the noise of one reward.
    pub(super) fn noise(&self) -> f64 {
        self.deviation * self.noise.sqrt()
    }
}

#[cfg(test)]
#[path = "surrogate_tests.rs"]
mod tests;
