//! How well fits predict what they have not seen: later intervals of other aggregates.
//!
//! The log is cut in time where two thirds of the intervals with a reward are over, and its
//! aggregates are dealt out to five parts. What comes after the cut in one part is predicted by a
//! fit to what came before it in the other four: so neither an aggregate nor an hour is in both.

use statrs::statistics::{Data, OrderStatistics, RankTieBreaker};

use super::moments::{Products, by_aggregate, centred};
use super::regression::{Line, Totals, choose, effect, part};
use super::table::{Row, Table};
use super::{AGGREGATES_MIN, FREEDOM_MIN, Prediction, SurrogateFitError};
use crate::bootstrap::bca;
use crate::experiment::Effect;

/// Parts of the aggregates.
const PARTS: usize = AGGREGATES_MIN as usize;

/// What fits made of what they had not seen.
#[derive(Clone, Debug)]
pub(super) struct HeldOut {
    /// Intervals that were predicted.
    pub(super) intervals: u64,
    /// The fit of each part.
    pub(super) lines: Vec<Line>,
    pub(super) fitted: Prediction,
    /// Of the present surrogate, where it is known.
    pub(super) present: Option<Prediction>,
    /// What the fits explain more than the present surrogate, or than nothing.
    pub(super) gain: Effect,
}

/// By aggregate: the squares of the reward, and of what fits and the present surrogate are off by.
type Squares = Totals<3>;

/// What ranks have in common.
#[derive(Default)]
struct Ranks {
    both: f64,
    predicted: f64,
    rewards: f64,
}

impl Ranks {
    /// Those of an aggregate and context.
    fn add(&mut self, predicted: &[f64], rewards: &[f64]) {
        let ranks = |of: &[f64]| Data::new(of.to_vec()).ranks(RankTieBreaker::Average);
        let middle = (rewards.len() as f64 + 1.0) / 2.0;
        for (a, b) in ranks(predicted).into_iter().zip(ranks(rewards)) {
            let (a, b) = (a - middle, b - middle);
            self.both += a * b;
            self.predicted += a * a;
            self.rewards += b * b;
        }
    }

    /// Spearman's correlation; 0 where all predictions are alike.
    fn correlation(&self) -> f64 {
        let squares = self.predicted * self.rewards;
        if squares > 0.0 { self.both / squares.sqrt() } else { 0.0 }
    }
}

/// The rows of some aggregates that are wanted.
fn only<'s, 'a>(
    aggregates: &[&[&'s Row<'a>]],
    is_wanted: impl Fn(&Row<'a>) -> bool,
) -> Vec<&'s Row<'a>> {
    let rows = aggregates.iter().flat_map(|rows| rows.iter().copied());
    rows.filter(|row| is_wanted(row)).collect()
}

impl HeldOut {
    pub(super) fn of(table: &Table<'_>, candidates: &[usize]) -> Result<Self, SurrogateFitError> {
        let mut times: Vec<_> = table.rows.iter().map(|row| row.interval).collect();
        times.sort_unstable();
        let cut = times[times.len() * 2 / 3];
        let all: Vec<&Row<'_>> = table.rows.iter().collect();
        let aggregates: Vec<_> = by_aggregate(&all).collect();
        let is_late = |row: &Row<'_>| row.interval >= cut;
        let [earlier, later] = [false, true].map(|late| {
            let rows = only(&aggregates, |row| is_late(row) == late);
            centred(&rows).map(|group| group.len() as f64 - 1.0).sum::<f64>()
        });
        if earlier < FREEDOM_MIN.0 || later < FREEDOM_MIN.1 {
            return Err(SurrogateFitError::TooShort { earlier, later });
        }
        let reward = table.reward();
        let (mut lines, mut intervals) = (Vec::new(), 0);
        let mut units: Vec<Squares> = Vec::new();
        let (mut of_fitted, mut of_present) = (Ranks::default(), Ranks::default());
        for number in 0..PARTS {
            let out = part(aggregates.len(), PARTS, number);
            let seen = [&aggregates[..out.start], &aggregates[out.end..]].concat();
            let seen = only(&seen, |row| !is_late(row));
            let products: Vec<Products> = by_aggregate(&seen).map(Products::of).collect();
            let line = choose(&products, candidates);
            let total = Products::sum(&products, table.width());
            let present = table.present().map(|column| Line::fit(&total, &[column]));
            let present = present.flatten().unwrap_or_default();
            let later = only(&aggregates[out], is_late);
            for rows in by_aggregate(&later) {
                let mut squares = Squares::default();
                for group in centred(rows) {
                    let of = |line: &Line| group.iter().map(|row| line.value(row)).collect();
                    let (fitted, present): (Vec<f64>, Vec<f64>) = (of(&line), of(&present));
                    let rewards: Vec<f64> = group.iter().map(|row| row[reward]).collect();
                    for ((y, a), b) in rewards.iter().zip(&fitted).zip(&present) {
                        let off = [*y, y - a, y - b];
                        squares = squares + Totals(off.map(|off| off * off));
                    }
                    of_fitted.add(&fitted, &rewards);
                    of_present.add(&present, &rewards);
                    intervals += group.len() as u64;
                }
                units.push(squares);
            }
            lines.push(line);
        }
        let total = units.iter().fold(Squares::default(), |sum, unit| sum + *unit);
        if total.0[0] <= 0.0 {
            return Err(SurrogateFitError::Constant);
        }
        let prediction = |off: usize, ranks: &Ranks| Prediction {
            r_squared: 1.0 - total.0[off] / total.0[0],
            rank_correlation: ranks.correlation(),
        };
        // Without a present surrogate the line of it has no terms, and predicts no difference.
        let gain = |squares: &Squares| {
            let [all, fitted, present] = squares.0;
            if all > 0.0 { (present - fitted) / all } else { 0.0 }
        };
        Ok(Self {
            intervals,
            lines,
            fitted: prediction(1, &of_fitted),
            present: table.present().map(|_| prediction(2, &of_present)),
            gain: effect(bca(&units, gain)),
        })
    }
}
