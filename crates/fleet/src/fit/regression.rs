//! A linear formula of few statistics: which ones, and with which coefficients.
//!
//! * **Few**: forward selection adds the statistic that explains most of what is left, up to four.
//!   Cross-validation over aggregates decides how many: the fewest that are as good as the best
//!   number within its standard error (Breiman, Friedman, Olshen and Stone 1984, §3.4.3).
//! * **Not alike**: where the others explain most of a statistic its coefficient, and even the sign
//!   of it, is a matter of luck. So no statistic is added by which a variance inflation factor
//!   exceeds five: of `p50(rtt)` and `mean(rtt)` one is taken. Marquardt (Technometrics 1970) has ten
//!   at most; in a simulated fleet that let `mean(request_time)` and `p75(request_time)` in, with
//!   opposite signs.
//! * **Small**: a ridge shrinks coefficients by as much as noise asks for (Hoerl, Kennard and
//!   Baldwin, Communications in Statistics 1975). With many intervals that is next to nothing.

use core::ops::{Add, Range, Sub};

use nalgebra::{DMatrix, DVector};

use super::moments::Products;
use crate::bootstrap::{Estimate, bca};
use crate::experiment::Effect;

/// The most statistics of a formula.
pub(super) const TERMS_MAX: usize = 4;
/// Parts of the aggregates in a cross-validation.
const PARTS: usize = 10;
/// The largest variance inflation factor.
const INFLATION_MAX: f64 = 5.0;

/// Columns and their coefficients, the one that explains most first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) terms: Vec<(usize, f64)>,
}

impl Line {
    /// The least squares of the reward on some columns with a ridge; none where a column does not
    /// vary or is a sum of others.
    pub(super) fn fit(products: &Products, columns: &[usize]) -> Option<Self> {
        let standard = Standard::of(products, columns)?;
        let plain = standard.solve(0.0)?;
        let squares = plain.norm_squared();
        let terms = columns.len() as f64;
        let left = standard.left(&plain).max(0.0) / (products.freedom - terms).max(1.0);
        let ridge = if squares > 0.0 { terms * left / squares } else { 0.0 };
        let coefficients = standard.solve(ridge)?;
        let own_unit = |(i, &column): (usize, &usize)| {
            (column, coefficients[i] * standard.reward_scale / standard.scales[i])
        };
        Some(Self { terms: columns.iter().enumerate().map(own_unit).collect() })
    }

    /// What it makes of the columns of a row.
    pub(super) fn value(&self, row: &[f64]) -> f64 {
        self.terms.iter().map(|&(column, coefficient)| coefficient * row[column]).sum()
    }

    /// The sum of the squares of what it is off by.
    fn squares(&self, products: &Products) -> f64 {
        let reward = products.reward();
        let all = || self.terms.iter().copied().chain([(reward, -1.0)]);
        all()
            .flat_map(|a| all().map(move |b| (a, b)))
            .map(|((i, a), (j, b))| a * b * products.of[(i, j)])
            .sum()
    }

    /// Whether the column has a term.
    pub(super) fn reads(&self, column: usize) -> bool {
        self.terms.iter().any(|term| term.0 == column)
    }
}

/// Columns and reward on a scale on which each has squares that add up to one.
struct Standard {
    between: DMatrix<f64>,
    reward: DVector<f64>,
    scales: Vec<f64>,
    reward_scale: f64,
}

impl Standard {
    fn of(products: &Products, columns: &[usize]) -> Option<Self> {
        let reward = products.reward();
        let varies = |column: &usize| products.varies(*column);
        if !columns.iter().all(varies) || !products.varies(reward) {
            return None;
        }
        let scale = |column: usize| products.of[(column, column)].sqrt();
        let scales: Vec<f64> = columns.iter().map(|&column| scale(column)).collect();
        let reward_scale = scale(reward);
        let count = columns.len();
        Some(Self {
            between: DMatrix::from_fn(count, count, |i, j| {
                products.of[(columns[i], columns[j])] / scales[i] / scales[j]
            }),
            reward: DVector::from_fn(count, |i, _| {
                products.of[(columns[i], reward)] / scales[i] / reward_scale
            }),
            scales,
            reward_scale,
        })
    }

    fn solve(&self, ridge: f64) -> Option<DVector<f64>> {
        let mut matrix = self.between.clone();
        (0..matrix.nrows()).for_each(|i| matrix[(i, i)] += ridge);
        Some(matrix.cholesky()?.solve(&self.reward)).filter(|all| all.iter().all(|c| c.is_finite()))
    }

    /// The share of the reward's squares that is left by the solution without a ridge.
    fn left(&self, solution: &DVector<f64>) -> f64 {
        1.0 - self.reward.dot(solution)
    }

    /// The largest variance inflation factor: those are the diagonal of the inverse.
    fn inflation(&self) -> f64 {
        let inverse = self.between.clone().cholesky().map(|factor| factor.inverse());
        inverse.map_or(f64::INFINITY, |inverse| inverse.diagonal().max())
    }
}

/// Columns in the order in which forward selection adds them.
fn path(products: &Products, candidates: &[usize]) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < TERMS_MAX {
        let left = |&candidate: &usize| {
            let columns = [&chosen[..], &[candidate]].concat();
            let standard = Standard::of(products, &columns)?;
            let solution = standard.solve(0.0).filter(|_| standard.inflation() <= INFLATION_MAX)?;
            Some((candidate, standard.left(&solution)))
        };
        let new = candidates.iter().filter(|candidate| !chosen.contains(candidate));
        let Some((best, _)) = new.filter_map(left).min_by(|a, b| a.1.total_cmp(&b.1)) else {
            break;
        };
        chosen.push(best);
    }
    chosen
}

/// Part `part` of so many of the aggregates, which are in the order of their prefixes: neighbours
/// share networks, so they are held out together.
pub(super) fn part(aggregates: usize, parts: usize, part: usize) -> Range<usize> {
    part * aggregates / parts..(part + 1) * aggregates / parts
}

/// A formula of the candidates by the products of each aggregate. It has no terms where none is
/// worth one.
pub(super) fn choose(products: &[Products], candidates: &[usize]) -> Line {
    let width = products.first().map_or(0, |first| first.size.len());
    let parts = products.len().min(PARTS);
    // By part: what is left with no term, with one, and so on.
    let errors: Vec<[f64; TERMS_MAX + 1]> = (0..parts)
        .map(|number| {
            let out = part(products.len(), parts, number);
            let others = products[..out.start].iter().chain(&products[out.end..]);
            let others = Products::sum(others, width);
            let seen = Products::sum(&products[out], width);
            let path = path(&others, candidates);
            core::array::from_fn(|terms| {
                let columns = &path[..terms.min(path.len())];
                Line::fit(&others, columns).unwrap_or_default().squares(&seen)
            })
        })
        .collect();
    let all = Products::sum(products, width);
    let path = path(&all, candidates);
    let columns = &path[..terms(&errors).min(path.len())];
    Line::fit(&all, columns).unwrap_or_default()
}

/// The fewest terms whose error is that of the best number, within the standard error of their
/// difference.
fn terms(errors: &[[f64; TERMS_MAX + 1]]) -> usize {
    let sum = |terms: usize| errors.iter().map(|part| part[terms]).sum::<f64>();
    let best = (0..=TERMS_MAX).min_by(|a, b| sum(*a).total_cmp(&sum(*b))).unwrap_or(0);
    let is_as_good = |&terms: &usize| {
        let more: Vec<f64> = errors.iter().map(|part| part[terms] - part[best]).collect();
        let count = more.len() as f64;
        let total: f64 = more.iter().sum();
        let squares: f64 = more.iter().map(|one| (one - total / count).powi(2)).sum();
        total <= (squares * count / (count - 1.0).max(1.0)).sqrt()
    };
    (0..best).find(is_as_good).unwrap_or(best)
}

/// Numbers that add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Totals<const N: usize>(pub(super) [f64; N]);

impl<const N: usize> Default for Totals<N> {
    fn default() -> Self {
        Self([0.0; N])
    }
}

impl<const N: usize> Add for Totals<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl<const N: usize> Sub for Totals<N> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] - other.0[i]))
    }
}

/// Columns of a formula and of the reward.
const WIDTH_MAX: usize = TERMS_MAX + 1;
/// Their products, their sizes, and the degrees of freedom.
type Few = Totals<{ WIDTH_MAX * WIDTH_MAX + WIDTH_MAX + 1 }>;

/// The 95% intervals of the coefficients, by bootstrap over aggregates.
pub(super) fn coefficient_intervals(products: &[Products], line: &Line) -> Vec<Effect> {
    let columns: Vec<usize> = line.terms.iter().map(|term| term.0).collect();
    let units: Vec<Few> = products.iter().map(|one| pack(one, &columns)).collect();
    let own: Vec<usize> = (0..columns.len()).collect();
    let coefficient = |term: usize| {
        // Where a resample has a column constant, nothing goes with it.
        let of = |few: &Few| {
            Line::fit(&unpack(few, own.len()), &own).map_or(0.0, |line| line.terms[term].1)
        };
        effect(bca(&units, of))
    };
    own.iter().map(|&term| coefficient(term)).collect()
}

/// A value with its interval; a point where all resamples are alike.
pub(super) fn effect(found: Option<Estimate>) -> Effect {
    let found = found.unwrap_or(Estimate { value: 0.0, ci95: None });
    let [low, high] = found.ci95.unwrap_or([found.value; 2]);
    Effect { value: found.value, low, high }
}

fn pack(products: &Products, columns: &[usize]) -> Few {
    let mut few = Few::default();
    let of: Vec<usize> = columns.iter().copied().chain([products.reward()]).collect();
    for (i, &a) in of.iter().enumerate() {
        of.iter().enumerate().for_each(|(j, &b)| few.0[i * WIDTH_MAX + j] = products.of[(a, b)]);
        few.0[WIDTH_MAX * WIDTH_MAX + i] = products.size[a];
    }
    few.0[WIDTH_MAX * WIDTH_MAX + WIDTH_MAX] = products.freedom;
    few
}

fn unpack(few: &Few, terms: usize) -> Products {
    let width = terms + 1;
    Products {
        freedom: few.0[WIDTH_MAX * WIDTH_MAX + WIDTH_MAX],
        of: DMatrix::from_fn(width, width, |i, j| few.0[i * WIDTH_MAX + j]),
        size: (0..width).map(|i| few.0[WIDTH_MAX * WIDTH_MAX + i]).collect(),
    }
}
