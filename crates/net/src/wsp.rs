//! Space-filling designs by the WSP algorithm (Wootton, Sergent, Phan-Tan-Luu).
//!
//! Read first: J. Santiago, M. Claeys-Bruno and M. Sergent, "Construction of space-filling designs using
//! WSP algorithm for high dimensional spaces", Chemometrics and Intelligent Laboratory Systems 113, 2012,
//! §2. From a dense cloud of candidates it keeps points that are at least a distance apart: it takes one,
//! strikes out all that are closer than the distance, goes to the nearest that is left, and so on. The
//! distance decides how many points remain.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Candidates for each point of a design. More make it more even, at a cost that grows with the square.
const CANDIDATES_PER_POINT: usize = 8;
/// Steps of the search for the distance. Each halves the span; 24 leave less than a point of difference.
const SEARCH_STEPS: u32 = 24;

/// The indices of the points of a WSP design with this least distance, in the order in which they are
/// found. The first is the candidate closest to the centre of the unit cube.
pub fn select<const D: usize>(candidates: &[[f64; D]], distance: f64) -> Vec<usize> {
    let centre = [0.5; D];
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    let mut kept = Vec::new();
    let mut next = nearest(candidates, &left, &centre);
    while let Some(at) = next {
        kept.push(at);
        let point = &candidates[at];
        let limit = distance * distance;
        left.retain(|&i| i != at && squared(&candidates[i], point) >= limit);
        next = nearest(candidates, &left, point);
    }
    kept
}

/// A design of exactly `count` points of the unit cube. The same count and seed give the same points.
///
/// The distance is searched for that leaves at least `count` points; what it leaves over is cut from the
/// end, so every point still keeps its distance from all others.
pub fn design<const D: usize>(count: usize, seed: u64) -> Vec<[f64; D]> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut unit = || (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
    let cloud: Vec<[f64; D]> = (0..count.saturating_mul(CANDIDATES_PER_POINT))
        .map(|_| core::array::from_fn(|_| unit()))
        .collect();
    // At zero every candidate stays; beyond the cube's diagonal only one does.
    let (mut low, mut high) = (0.0, (D as f64).sqrt());
    let mut best: Vec<usize> = (0..cloud.len()).collect();
    for _ in 0..SEARCH_STEPS {
        let middle = 0.5 * (low + high);
        let kept = select(&cloud, middle);
        if kept.len() >= count {
            low = middle;
            best = kept;
            if best.len() == count {
                break;
            }
        } else {
            high = middle;
        }
    }
    best.into_iter().take(count).map(|i| cloud[i]).collect()
}

/// The least distance between two points of a design; infinite for fewer than two.
pub fn least_distance<const D: usize>(points: &[[f64; D]]) -> f64 {
    let mut least = f64::INFINITY;
    for (i, a) in points.iter().enumerate() {
        for b in &points[..i] {
            least = least.min(squared(a, b));
        }
    }
    least.sqrt()
}

/// Of those `left`, the candidate nearest to `point`; the first of equals.
fn nearest<const D: usize>(
    candidates: &[[f64; D]],
    left: &[usize],
    point: &[f64; D],
) -> Option<usize> {
    let near = |&i: &usize| squared(&candidates[i], point);
    left.iter().copied().min_by(|a, b| near(a).total_cmp(&near(b)))
}

fn squared<const D: usize>(a: &[f64; D], b: &[f64; D]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_struck_out_and_the_nearest_comes_next() {
        // On a line: from the centre 0.5, 0.4 and 0.6 are too close; the nearest left is 0.25, then 0.0, and from
        // there 0.8, since 1.0 is further.
        let line = [[0.0], [0.25], [0.4], [0.5], [0.6], [0.8], [1.0]];
        let kept: Vec<f64> = select(&line, 0.19).into_iter().map(|i| line[i][0]).collect();
        assert_eq!(kept, [0.5, 0.25, 0.0, 0.8, 1.0]);
    }

    #[test]
    fn a_design_has_its_count_and_spreads_better_than_chance() {
        let points = design::<4>(200, 1);
        assert_eq!(points.len(), 200);
        assert_eq!(points, design::<4>(200, 1));
        assert_ne!(points, design::<4>(200, 2));
        // As many points by chance: the first candidates of another cloud.
        let chance: Vec<[f64; 4]> = design::<4>(1600, 3).into_iter().step_by(8).collect();
        let (even, by_chance) = (least_distance(&points), least_distance(&chance));
        assert!(even > 0.15, "{even}");
        assert!(even > 1.3 * by_chance, "{even} vs. {by_chance}");
        for axis in 0..4 {
            let mean = points.iter().map(|p| p[axis]).sum::<f64>() / 200.0;
            assert!((mean - 0.5).abs() < 0.05, "axis {axis} leans to {mean}");
        }
    }

    #[test]
    fn small_designs() {
        assert_eq!(design::<2>(0, 1), [[0.0; 2]; 0]);
        assert_eq!(design::<2>(1, 1).len(), 1);
        assert!(least_distance(&design::<2>(1, 1)).is_infinite());
    }
}
