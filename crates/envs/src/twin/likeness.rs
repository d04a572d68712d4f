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

/// The least scale of a number, of its root mean square, and rounds of the search for it.
const SCALE_MIN: f64 = 0.2;
const ROUNDS: usize = 30;

/// How far states of the same path lie apart, number by number.
#[derive(Clone, Debug)]
pub(super) struct Likeness {
    widths: [f64; FEATURES_LEN],
}

impl Likeness {
    /// Measures it on the first `connections` of a course: each runs twice, with the same requests,
    /// rivals and choices, and with other losses, jitter and another time of its link.
    pub(super) fn fit(course: &Course, connections: u64) -> Self {
        let mut apart: Vec<[f64; FEATURES_LEN]> = Vec::new();
        for seed in 0..connections {
            let draw = course.draw(seed).0;
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let mut again = Draw { luck: random.random(), ..draw.clone() };
            links::enter_anywhere(&mut again.link, &mut random);
            let mut pair = [draw, again].map(|draw| Episode::new(course.shared(), &draw));
            loop {
                let [one, other] = pair.each_ref().map(Episode::state);
                apart.push(core::array::from_fn(|i| f64::from(one[i] - other[i])));
                if pair[0].is_done() {
                    break;
                }
                let choice = random.random_range(0..course.rules().algorithms.len());
                for episode in &mut pair {
                    episode.step(choice);
                }
            }
        }
        Self { widths: core::array::from_fn(|i| scale(&apart.iter().map(|of| of[i]))) }
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

/// The scale of Student's t distribution that is most likely for these numbers (expectation and
/// maximisation), but not much less than their root mean square: many may be 0.
fn scale(of: &(impl Iterator<Item = f64> + Clone)) -> f64 {
    let mean = |f: &dyn Fn(f64) -> f64| {
        let (sum, count) = of.clone().fold((0.0, 0.0), |(sum, n), x| (sum + f(x), n + 1.0));
        sum / f64::max(count, 1.0)
    };
    let square = mean(&|x| x * x);
    if square <= WIDTH_MIN * WIDTH_MIN {
        return 0.0;
    }
    let least = square * SCALE_MIN * SCALE_MIN;
    let step = |variance: f64| {
        let next = mean(&|x| (FREEDOM + 1.0) * x * x / (FREEDOM + x * x / variance));
        next.max(least)
    };
    libm::sqrt((0..ROUNDS).fold(square, |variance, _| step(variance)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many that are near and a few that are far the near ones count.
    #[test]
    fn a_scale_goes_by_what_is_usual() {
        let usual: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let of = |values: &[f64]| scale(&values.iter().copied());
        assert!((of(&usual) - 1.0).abs() < 1e-9, "{}", of(&usual));
        let rare = [&usual[..], &[10.0, -10.0]].concat();
        assert!((1.0..1.2).contains(&of(&rare)), "{}", of(&rare));
        let tripled: Vec<f64> = rare.iter().map(|x| 3.0 * x).collect();
        assert!((of(&tripled) / of(&rare) - 3.0).abs() < 1e-6);
        // Nearly all are 0, the root mean square is 0.1.
        let none = [&[0.0; 99][..], &[1.0]].concat();
        assert!((of(&none) - 0.02).abs() < 1e-9, "{}", of(&none));
        assert_eq!(of(&[0.0; 9]), 0.0);
    }

    #[test]
    fn one_number_that_a_world_cannot_have_does_not_rule_it_out() {
        let mut widths = [0.0; FEATURES_LEN];
        widths[..3].fill(0.1);
        let likeness = Likeness { widths };
        let mut seen: State = [0.0; FEATURES_LEN];
        assert_eq!(likeness.of(&seen, &seen), 0.0);
        let log = |seen: &State| likeness.of(seen, &[0.0; FEATURES_LEN]);
        seen[0] = 0.1;
        let near = log(&seen);
        seen[0] = 10.0;
        let far = log(&seen);
        assert!(near > -1.0 && near < 0.0 && far < near && far > -25.0, "{near} {far}");
        seen[4] = 10.0;
        assert_eq!(log(&seen), far, "of the same path this number is always the same");
    }
}
