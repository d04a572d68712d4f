//! How alike two states are: how likely one is where a world of the simulator has the other.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_steer::select::{FEATURES_LEN, State};

use crate::Draw;
use crate::course::Course;
use crate::episode::Episode;
use crate::links;

/// Numbers that differ by less than this, of the same path, tell nothing: which algorithm runs.
const WIDTH_MIN: f64 = 1e-6;
/// Degrees of freedom of Student's t distribution: few, so that one number that a world cannot have
/// does not rule it out.
const FREEDOM: f64 = 4.0;

/// How far states of the same path lie apart, number by number.
#[derive(Clone, Debug)]
pub(super) struct Likeness {
    widths: [f64; FEATURES_LEN],
}

impl Likeness {
    /// Measures it on the first `connections` of a course: each runs twice, with the same requests,
    /// rivals and choices, and with other losses, jitter and another time of its link.
    pub(super) fn fit(course: &Course, connections: u64) -> Self {
        let mut squares = [0.0; FEATURES_LEN];
        let mut count = 0.0;
        for seed in 0..connections {
            let draw = course.draw(seed).0;
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let mut again = Draw { luck: random.random(), ..draw.clone() };
            links::enter_anywhere(&mut again.link, &mut random);
            let mut pair = [draw, again].map(|draw| Episode::new(course.shared(), &draw));
            loop {
                let [one, other] = pair.each_ref().map(Episode::state);
                for (sum, (a, b)) in squares.iter_mut().zip(one.iter().zip(&other)) {
                    *sum += f64::from(a - b) * f64::from(a - b);
                }
                count += 1.0;
                if pair[0].is_done() {
                    break;
                }
                let choice = random.random_range(0..course.rules().algorithms.len());
                for episode in &mut pair {
                    episode.step(choice);
                }
            }
        }
        Self { widths: squares.map(|sum| libm::sqrt(sum / f64::max(count, 1.0))) }
    }

    /// The logarithm of the likelihood that a state was seen where a world has another, up to a
    /// constant.
    pub(super) fn of(&self, seen: &State, has: &State) -> f64 {
        let numbers = self.widths.iter().zip(seen.iter().zip(has));
        let known = numbers.filter(|(width, _)| **width > WIDTH_MIN);
        let log = |(width, (a, b)): (&f64, (&f32, &f32))| {
            let z = f64::from(a - b) / width;
            -0.5 * (FREEDOM + 1.0) * libm::log1p(z * z / FREEDOM)
        };
        known.map(log).sum()
    }
}
