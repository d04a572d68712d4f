//! The best fixed configurations in hindsight, by search over many on the same links.
//!
//! Three rounds, each with more intervals and fewer candidates: points spread evenly over the
//! permitted box, where learning starts, and the other algorithms of the service; the best of them
//! and points near those; the best again.
//! It may miss the very best, so a learner may come out above it. They are looked for on other
//! connections of the same kind than those of the run: what is best on few connections is best by
//! luck, too, and nobody could have known.

use std::collections::BTreeMap;

use rand::RngExt;
use trimtab_fleet::{Context, Point};

use super::connection::{Sample, generator};
use super::contest::halton;
use super::group::{Field, Group};

/// Intervals of a context in each of the rounds.
const ROUNDS: [usize; 3] = [3, 8, 16];
/// Candidates that come into the second round and the third.
const KEPT: [usize; 2] = [6, 4];
/// Points near each of the best three, in the second round, and how near.
const NEAR: (usize, f64) = (4, 0.15);

/// What was found for one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Hindsight {
    /// The best for each context.
    pub(super) best: BTreeMap<Context, Point>,
    /// Mean reward over all contexts of the points of the first round, in their order.
    pub(super) first_round: Vec<f64>,
}

/// The points of the first round: alike for all aggregates.
pub(super) fn candidates(field: &Field<'_>) -> Vec<Point> {
    let service = field.service;
    let knobs = service.knobs().len();
    let spread = (0..field.scenario.fixed).map(|i| halton(i, knobs));
    let named = [service.start(), service.safe_knobs()];
    let others = service.others().iter().filter_map(|other| service.other_named(other.name()));
    named.into_iter().chain(spread).map(Point::from).chain(others).collect()
}

/// Searches for one group, whose aggregates have the same configuration then.
pub(super) fn search(group: &Group<'_>) -> Hindsight {
    let field = &group.fields[0];
    let mut of_context: BTreeMap<Context, Vec<u64>> = BTreeMap::new();
    for n in 0..field.scenario.intervals() {
        of_context.entry(field.context(n)).or_default().push(n);
    }
    let first = candidates(field);
    let mut found = Hindsight { first_round: vec![0.0; first.len()], ..Hindsight::default() };
    for (&context, intervals) in &of_context {
        let scores = scored(group, first.clone(), intervals, ROUNDS[0]);
        for ((_, score), sum) in scores.iter().zip(&mut found.first_round) {
            *sum += score / of_context.len() as f64;
        }
        let mut points = best(scores, KEPT[0]);
        let parts = [8, u64::from(field.aggregate), u64::from(context.0)];
        let mut random = generator(field.seed, &parts);
        for point in points.clone().iter().filter_map(Point::knobs).take(3) {
            points.extend((0..NEAR.0).map(|_| {
                let near = |x: &f64| x + NEAR.1 * (2.0 * random.random::<f64>() - 1.0);
                Point::Knobs(point.iter().map(near).map(|x| x.clamp(0.0, 1.0)).collect())
            }));
        }
        let points = best(scored(group, points, intervals, ROUNDS[1]), KEPT[1]);
        let winner = best(scored(group, points, intervals, ROUNDS[2]), 1);
        found.best.extend(winner.into_iter().map(|point| (context, point)));
    }
    found
}

/// Mean reward of each point over so many intervals, spread evenly.
fn scored(
    group: &Group<'_>,
    points: Vec<Point>,
    intervals: &[u64],
    count: usize,
) -> Vec<(Point, f64)> {
    let count = count.min(intervals.len());
    let at = |k: usize| intervals[(2 * k + 1) * intervals.len() / (2 * count)];
    let score = |point: &Point| {
        let spec = Some(group.fields[0].spec(point));
        let sum = |k| -> f64 {
            let seen = group.seen_alike(at(k), spec, Sample::Apart);
            seen.iter().map(|seen| group.fields[0].reward(&seen.summary)).sum()
        };
        (0..count).map(sum).sum::<f64>() / (count * group.fields.len()) as f64
    };
    points.into_iter().map(|point| (score(&point), point)).map(|(s, p)| (p, s)).collect()
}

fn best(mut scored: Vec<(Point, f64)>, count: usize) -> Vec<Point> {
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.into_iter().take(count).map(|(point, _)| point).collect()
}
