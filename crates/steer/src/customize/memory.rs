//! What is remembered of trials: a bounded number of cells, each a point with the mean of the rewards there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Point;
use super::point::At;

/// Points lie on a grid of so many steps in each knob's range: short to store, and finer than any reward can tell.
const GRID: f64 = 1000.0;
/// A cell of less weight than this tells nothing any more.
const FORGOTTEN: f32 = 0.02;

/// Before anything is known, rewards of one algorithm deviate by this share of the deviation of all;
/// and as many trials as that counts for.
const WITHIN: (f64, f64) = (0.3, 2.0);

/// Trials at about one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which algorithm: 0 for that whose knobs are learnt.
    #[serde(default, skip_serializing_if = "is_first")]
    choice: u8,
    /// The point of the unit cube, in thousandths; empty of another algorithm.
    at: Vec<u16>,
    /// How many trials it stands for; less of those that are long ago.
    weight: f32,
    /// The mean of their rewards.
    mean: f32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
fn is_first(choice: &u8) -> bool {
    *choice == 0
}

impl Cell {
    /// A trial at a point that lies on the grid; see `on_grid`.
    pub fn new<'a>(point: impl Into<At<'a>>, reward: f64) -> Self {
        let At { choice, knobs } = point.into();
        Self { choice, at: grid(knobs), weight: 1.0, mean: reward as f32 }
    }

    /// The same for a trial that counts as so many usual ones.
    pub(super) fn counting(self, weight: f64) -> Self {
        Self { weight: weight as f32, ..self }
    }

    /// What was tried.
    pub fn point(&self) -> Point {
        match self.choice {
            0 => Point::Knobs(self.knobs()),
            choice => Point::Other { choice },
        }
    }

    /// The point of the unit cube; empty of another algorithm.
    pub(super) fn knobs(&self) -> Vec<f64> {
        self.at.iter().map(|&x| f64::from(x) / GRID).collect()
    }

    /// Which algorithm it is of: 0 for that whose knobs are learnt.
    pub(super) fn choice(&self) -> u8 {
        self.choice
    }

    /// How many trials it stands for.
    pub fn weight(&self) -> f64 {
        f64::from(self.weight)
    }

    /// The mean of their rewards.
    pub fn mean(&self) -> f64 {
        f64::from(self.mean)
    }

    /// None between algorithms: those are never one cell.
    fn distance2(&self, other: &Self) -> Option<f64> {
        let off = |(a, b): (&u16, &u16)| (f64::from(*a) - f64::from(*b)) / GRID;
        let square = || self.at.iter().zip(&other.at).map(off).map(|d| d * d).sum();
        (self.choice == other.choice).then(square)
    }
}

fn grid(point: &[f64]) -> Vec<u16> {
    point.iter().map(|x| (x.clamp(0.0, 1.0) * GRID + 0.5) as u16).collect()
}

/// The nearest point of the grid on which trials lie.
pub(super) fn on_grid(knobs: &[f64]) -> Vec<f64> {
    knobs.iter().map(|x| (x.clamp(0.0, 1.0) * GRID + 0.5).floor() / GRID).collect()
}

/// A bounded memory of trials. When it is full, the two cells whose union loses least become one (Ward's criterion).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    cells: Vec<Cell>,
    /// Sum of squares of what rewards differ from their cell's mean.
    within: f32,
}

impl Memory {
    /// What there is.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Takes a trial; all before it count `keep` times as much as until now, and there are `most` cells at most.
    pub fn add<'a>(&mut self, point: impl Into<At<'a>>, reward: f64, keep: f64, most: usize) {
        self.take(Cell::new(point, reward), keep, most);
    }

    /// [`Memory::add`] for a trial that may count for more or less than a usual one.
    pub(super) fn take(&mut self, trial: Cell, keep: f64, most: usize) {
        self.fade(keep);
        self.cells.push(trial);
        while self.cells.len() > most.max(1) && self.merge_two() {}
    }

    /// All that is known counts `keep` times as much as until now.
    pub fn fade(&mut self, keep: f64) {
        let keep = keep as f32;
        self.within *= keep;
        self.cells.iter_mut().for_each(|c| c.weight *= keep);
        self.cells.retain(|c| c.weight >= FORGOTTEN);
    }

    /// Points are those of another unit cube from now on; those outside of it are forgotten.
    pub(super) fn carry_over(&mut self, to: impl Fn(&[f64]) -> Vec<f64>) {
        let cells = core::mem::take(&mut self.cells).into_iter().filter_map(|cell| {
            if cell.choice != 0 {
                return Some(cell);
            }
            let point = to(&cell.knobs());
            // A point on the edge is off by a rounding of the grid.
            let inside = point.iter().all(|x| (-0.5 / GRID..=1.0 + 0.5 / GRID).contains(x));
            inside.then(|| Cell { at: grid(&point), ..cell })
        });
        self.cells = cells.collect();
    }

    /// What is kept of it once the network is another: `most` cells, each counting `keep` times as much.
    pub(super) fn kept_from_before(mut self, keep: f64, most: usize) -> Self {
        self.fade(keep);
        while self.cells.len() > most && self.merge_two() {}
        self
    }

    fn merge_two(&mut self) -> bool {
        let mut least: Option<(f64, usize, usize)> = None;
        for (j, b) in self.cells.iter().enumerate() {
            for (i, a) in self.cells[..j].iter().enumerate() {
                let Some(distance2) = a.distance2(b) else { continue };
                let lost = a.weight() * b.weight() / (a.weight() + b.weight()) * distance2;
                if least.is_none_or(|(most, ..)| lost < most) {
                    least = Some((lost, i, j));
                }
            }
        }
        let Some((_, i, j)) = least else { return false };
        let b = self.cells.remove(j);
        let a = &mut self.cells[i];
        let share = b.weight / (a.weight + b.weight);
        self.within += a.weight * share * (a.mean - b.mean).powi(2);
        for (x, y) in a.at.iter_mut().zip(&b.at) {
            *x = (f64::from(*x) + f64::from(share) * (f64::from(*y) - f64::from(*x)) + 0.5) as u16;
        }
        a.mean += share * (b.mean - a.mean);
        a.weight += b.weight;
        true
    }

    /// Whether something was tried so near to a point in every knob.
    pub(super) fn has_near<'a>(&self, point: impl Into<At<'a>>, distance: f64) -> bool {
        let point = point.into();
        let is_near = |(a, b): (f64, &f64)| (a - b).abs() <= distance;
        let near = |c: &Cell| {
            c.choice == point.choice && c.knobs().into_iter().zip(point.knobs).all(is_near)
        };
        self.cells.iter().any(near)
    }

    /// Other algorithms have other numbers from now on; what has none any more is forgotten.
    pub(super) fn renumber(&mut self, to: impl Fn(u8) -> Option<u8>) {
        self.cells.retain_mut(|cell| {
            let number = if cell.choice == 0 { Some(0) } else { to(cell.choice) };
            cell.choice = number.unwrap_or_default();
            number.is_some()
        });
    }

    /// How many trials there were, less what is forgotten.
    pub fn weight(&self) -> f64 {
        self.cells.iter().map(Cell::weight).sum()
    }

    /// Mean and standard deviation of all rewards.
    pub(super) fn spread(&self) -> (f64, f64) {
        let weight = self.weight().max(f64::MIN_POSITIVE);
        let mean = self.cells.iter().map(|c| c.weight() * c.mean()).sum::<f64>() / weight;
        let between: f64 = self.cells.iter().map(|c| c.weight() * (c.mean() - mean).powi(2)).sum();
        (mean, ((between + f64::from(self.within)) / weight).sqrt())
    }

    /// The standard deviation of rewards about the mean of their algorithm. Where little is known of
    /// that, it is a share of the deviation of all.
    pub(super) fn spread_within(&self) -> f64 {
        let (_, all) = self.spread();
        let mut means: BTreeMap<u8, (f64, f64)> = BTreeMap::new();
        for cell in &self.cells {
            let (weight, sum) = means.entry(cell.choice).or_default();
            *weight += cell.weight();
            *sum += cell.weight() * cell.mean();
        }
        let off = |cell: &Cell| {
            let (weight, sum) = means[&cell.choice];
            cell.weight() * (cell.mean() - sum / weight).powi(2)
        };
        let squares = f64::from(self.within) + self.cells.iter().map(off).sum::<f64>();
        let known = (self.weight() - means.len() as f64).max(0.0);
        let (guess, counts) = WITHIN;
        ((squares + counts * (guess * all).powi(2)) / (known + counts)).sqrt()
    }

    /// The sum of squares of what rewards differ from their cell's mean.
    pub(super) fn within(&self) -> f64 {
        f64::from(self.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_mean_weight_and_squares() {
        let mut memory = Memory::default();
        let rewards: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % 101)).collect();
        for (i, r) in rewards.iter().enumerate() {
            let point = [(i * 53 % 97) as f64 / 97.0, (i * 29 % 89) as f64 / 89.0];
            memory.add(&on_grid(&point), *r, 1.0, 24);
        }
        assert_eq!(memory.cells().len(), 24);
        assert!((memory.weight() - 200.0).abs() < 1e-3);
        let mean = rewards.iter().sum::<f64>() / 200.0;
        let deviation = (rewards.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 200.0).sqrt();
        let (m, d) = memory.spread();
        assert!(
            (m - mean).abs() < 1e-2 && (d - deviation).abs() < 1e-2,
            "{m} {mean} {d} {deviation}"
        );
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut memory = Memory::default();
        memory.add(&[0.1], 1.0, 1.0, 8);
        for i in 0..60 {
            memory.add(&[0.9], f64::from(i), 0.9, 8);
        }
        assert!(memory.cells().iter().all(|c| c.point()[0] > 0.5), "{memory:?}");
        assert!((memory.weight() - 10.0).abs() < 0.1, "{}", memory.weight());
    }

    #[test]
    fn points_lie_on_the_nearest_place_of_the_grid() {
        let cell = Cell::new(&[0.1234, 0.1236, -1.0, 2.0], 3.5);
        assert_eq!(cell.knobs(), [0.123, 0.124, 0.0, 1.0]);
        assert_eq!(on_grid(&[0.1234, 0.1236, -1.0, 2.0]), cell.knobs());
        assert_eq!((cell.weight(), cell.mean()), (1.0, 3.5));
    }

    /// What two cells differ by is lost when they become one: less of near and of light ones.
    #[test]
    fn the_cells_whose_union_loses_least_become_one() {
        let mut memory = Memory::default();
        for (at, reward) in [(0.1, 1.0), (0.2, 3.0), (0.9, 7.0)] {
            memory.add(&[at], reward, 1.0, 2);
        }
        let cells: Vec<_> = memory.cells().iter().map(|c| (c.point()[0], c.mean())).collect();
        assert_eq!(cells, [(0.15, 2.0), (0.9, 7.0)]);
        assert!((memory.cells()[0].weight() - 2.0).abs() < 1e-6);
        assert!((memory.within() - 2.0).abs() < 1e-6, "1² of each");
        // Thirty trials at each of two near places weigh more than the distance of one.
        let mut memory = Memory::default();
        for at in [0.1, 0.2].repeat(30) {
            memory.add(&[at], 1.0, 1.0, 64);
        }
        let mut memory = memory.kept_from_before(1.0, 2);
        memory.add(&[0.5], 9.0, 1.0, 2);
        let places: Vec<f64> = memory.cells().iter().map(|c| c.point()[0]).collect();
        assert!((places[0] - 0.1).abs() < 0.02 && (places[1] - 0.2).abs() < 0.02, "{places:?}");
    }

    /// A heavier cell draws the place and the mean of a union to itself.
    #[test]
    fn a_union_lies_where_most_of_its_trials_were() {
        let mut memory = Memory::default();
        for (at, reward) in [(0.2, 4.0), (0.2, 4.0), (0.2, 4.0), (0.6, 8.0)] {
            memory.add(&[at, 1.0 - at], reward, 1.0, 1);
        }
        assert_eq!(memory.cells()[0].knobs(), [0.3, 0.7]);
        assert!((memory.cells()[0].mean() - 5.0).abs() < 1e-6);
        // Three of them are off by 1 and one by 3.
        assert!((memory.within() - 12.0).abs() < 1e-5, "{memory:?}");
    }

    #[test]
    fn both_knobs_count_in_a_distance() {
        let a = Cell::new(&[0.1, 0.5], 0.0);
        let b = Cell::new(&[0.4, 0.9], 0.0);
        assert!((a.distance2(&b).unwrap() - 0.25).abs() < 1e-9);
        assert!((b.distance2(&a).unwrap() - 0.25).abs() < 1e-9);
    }

    /// However full it is: what an algorithm brought says nothing of another one.
    #[test]
    fn trials_of_two_algorithms_are_never_one_cell() {
        let mut memory = Memory::default();
        for (choice, reward) in [(1, 1.0), (2, 2.0), (1, 3.0)] {
            memory.add(&Point::other(choice), reward, 1.0, 1);
        }
        memory.add(&[0.5, 0.5], 9.0, 1.0, 1);
        let cells: Vec<_> = memory.cells().iter().map(|c| (c.choice(), c.mean())).collect();
        assert_eq!(cells, [(1, 2.0), (2, 2.0), (0, 9.0)]);
        assert!(memory.has_near(&Point::other(2), 0.1) && !memory.has_near(&Point::other(3), 1.0));
        assert!(memory.has_near(&[0.5, 0.5], 0.0) && !memory.has_near(&[0.1, 0.5], 0.1));
        let json = serde_json::to_string(&memory).unwrap();
        assert_eq!(serde_json::from_str::<Memory>(&json).unwrap(), memory);
        // The first is gone, and the second has become the third.
        memory.renumber(|choice| (choice == 2).then_some(3));
        let cells: Vec<_> = memory.cells().iter().map(|c| (c.choice(), c.mean())).collect();
        assert_eq!(cells, [(3, 2.0), (0, 9.0)]);
    }

    /// How far apart algorithms are says nothing of how noisy rewards are.
    #[test]
    fn rewards_deviate_about_the_mean_of_their_algorithm() {
        let mut memory = Memory::default();
        for n in 0..40 {
            let noise = if n % 4 < 2 { 1.0 } else { -1.0 };
            let (choice, mean) = if n % 2 == 0 { (1, 0.0) } else { (2, 100.0) };
            memory.add(&Point::other(choice), mean + noise, 1.0, 8);
        }
        assert!((memory.spread().1 - 50.0).abs() < 0.1, "{:?}", memory.spread());
        // 40 squares of one, and two of 15, for 38 trials and two.
        let expected = ((40.0 + 2.0 * (0.3 * memory.spread().1).powi(2)) / 40.0).sqrt();
        assert!((memory.spread_within() - expected).abs() < 0.01, "{}", memory.spread_within());
        let mut few = Memory::default();
        few.add(&Point::other(1), 0.0, 1.0, 8);
        few.add(&Point::other(2), 10.0, 1.0, 8);
        assert!((few.spread_within() - 1.5).abs() < 1e-6, "{}", few.spread_within());
    }

    #[test]
    fn near_is_near_in_every_knob() {
        let mut memory = Memory::default();
        memory.add(&[0.5, 0.5], 1.0, 1.0, 8);
        assert!(memory.has_near(&[0.59, 0.41], 0.1));
        assert!(!memory.has_near(&[0.61, 0.5], 0.1) && !memory.has_near(&[0.5, 0.39], 0.1));
        assert!(!Memory::default().has_near(&[0.5, 0.5], 1.0));
    }

    /// In a box of which the middle half remains, what lay in it lies further apart.
    #[test]
    fn in_another_box_what_lies_outside_is_forgotten() {
        let mut memory = Memory::default();
        for (at, reward) in [(0.1, 1.0), (0.25, 2.0), (0.5, 3.0), (0.75, 4.0), (0.9, 5.0)] {
            memory.add(&[at], reward, 1.0, 8);
        }
        // The edge is off by less than a rounding.
        memory.carry_over(|point| vec![(point[0] - 0.25) * 2.0 - 0.0004]);
        let cells: Vec<_> = memory.cells().iter().map(|c| (c.point()[0], c.mean())).collect();
        assert_eq!(cells, [(0.0, 2.0), (0.5, 3.0), (1.0, 4.0)]);
        memory.carry_over(|_| vec![f64::NAN]);
        assert!(memory.cells().is_empty());
    }

    #[test]
    fn of_another_network_little_is_kept() {
        let mut memory = Memory::default();
        for i in 0..20 {
            memory.add(&[f64::from(i) / 20.0], f64::from(i), 1.0, 20);
        }
        let kept = memory.kept_from_before(0.25, 6);
        assert_eq!(kept.cells().len(), 6);
        assert!((kept.weight() - 5.0).abs() < 1e-5, "{kept:?}");
        let mean = kept.spread().0;
        assert!((mean - 9.5).abs() < 1e-4, "{mean}");
    }

    /// Below a fiftieth of a trial a cell tells nothing.
    #[test]
    fn a_cell_is_kept_as_long_as_it_tells_anything() {
        let mut memory = Memory::default();
        memory.add(&[0.5], 1.0, 1.0, 8);
        memory.fade(0.021);
        assert_eq!(memory.cells().len(), 1);
        memory.fade(0.9);
        assert_eq!((memory.cells().len(), memory.weight()), (0, 0.0));
    }

    #[test]
    fn what_differs_within_cells_fades_with_them() {
        let mut memory = Memory::default();
        memory.add(&[0.5], 1.0, 1.0, 1);
        memory.add(&[0.5], 3.0, 1.0, 1);
        assert!((memory.spread().0 - 2.0).abs() < 1e-6 && (memory.spread().1 - 1.0).abs() < 1e-6);
        memory.fade(0.5);
        assert!((memory.within() - 1.0).abs() < 1e-6);
        assert!((memory.spread().1 - 1.0).abs() < 1e-6, "a deviation does not fade");
    }
}
