//! Where a function over the permitted box is highest, near where one is: a pattern search.

/// How far the search looks to each side, from coarse to fine.
const STEPS: [f64; 4] = [0.12, 0.06, 0.03, 0.01];
/// Moves for each of them at most.
const MOVES: usize = 3;

/// The part of the unit cube that is looked at: so far around a centre in each of the active knobs.
pub(super) struct Region<'a> {
    pub(super) centre: &'a [f64],
    pub(super) active: &'a [usize],
    pub(super) reach: f64,
}

impl Region<'_> {
    /// The nearest point that lies in it.
    pub(super) fn nearest(&self, point: &[f64]) -> Vec<f64> {
        let mut inside = self.centre.to_vec();
        for &knob in self.active {
            let (low, high) = (inside[knob] - self.reach, inside[knob] + self.reach);
            inside[knob] = point[knob].clamp(low.max(0.0), high.min(1.0));
        }
        inside
    }

    /// The best of the points `from`, moved to where `worth` is highest near it.
    pub(super) fn highest(
        &self,
        from: impl Iterator<Item = Vec<f64>>,
        worth: impl Fn(&[f64]) -> f64,
    ) -> Vec<f64> {
        let mut best = (worth(self.centre), self.centre.to_vec());
        for point in from {
            let value = worth(&point);
            if value > best.0 {
                best = (value, point);
            }
        }
        for step in STEPS {
            for _ in 0..MOVES {
                let before = best.0;
                for &knob in self.active {
                    for by in [step, -step] {
                        let mut point = best.1.clone();
                        point[knob] += by;
                        let point = self.nearest(&point);
                        let value = worth(&point);
                        if value > best.0 {
                            best = (value, point);
                        }
                    }
                }
                if best.0 <= before {
                    break;
                }
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENTRE: [f64; 3] = [0.5, 0.5, 0.9];

    fn region(reach: f64) -> Region<'static> {
        Region { centre: &CENTRE, active: &[0, 2], reach }
    }

    /// Highest at this point.
    fn hill(best: [f64; 3]) -> impl Fn(&[f64]) -> f64 {
        move |point| -point.iter().zip(best).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
    }

    #[test]
    fn the_nearest_point_is_in_reach_and_in_the_cube() {
        let nearest = |point: &[f64]| region(0.2).nearest(point);
        assert_eq!(nearest(&[0.6, 0.1, 0.8]), [0.6, 0.5, 0.8], "knobs that are not active stay");
        assert_eq!(nearest(&[0.0, 0.0, 0.0]), [0.3, 0.5, 0.7]);
        assert_eq!(nearest(&[1.0, 1.0, 2.0]), [0.7, 0.5, 1.0]);
        let wide = region(2.0).nearest(&[-1.0, 0.5, -1.0]);
        assert_eq!(wide, [0.0, 0.5, 0.0]);
    }

    #[test]
    fn it_climbs_to_the_top() {
        for best in [[0.62, 0.5, 0.78], [0.41, 0.5, 0.97]] {
            let found = region(0.25).highest(core::iter::empty(), hill(best));
            let off = found.iter().zip(best).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off <= 0.011, "{found:?} {best:?}");
        }
    }

    #[test]
    fn a_top_out_of_reach_is_sought_at_the_edge() {
        let found = region(0.1).highest(core::iter::empty(), hill([0.9, 0.0, 0.0]));
        assert!((found[0] - 0.6).abs() < 1e-9 && (found[2] - 0.8).abs() < 1e-9, "{found:?}");
        assert_eq!(found[1], 0.5);
    }

    /// Of two hills it climbs the one on which a point was offered that is higher than the centre.
    #[test]
    fn it_begins_at_the_best_of_what_it_is_offered() {
        let narrow = |top: f64, at: f64| move |x: f64| top * libm::exp(-(x - at).powi(2) / 1e-3);
        let (near, far) = (narrow(1.0, 0.5), narrow(3.0, 0.9));
        let worth = |point: &[f64]| near(point[0]) + far(point[0]);
        let from = |starts: &[f64]| {
            let starts: Vec<_> = starts.iter().map(|x| vec![*x, 0.5, 0.9]).collect();
            region(0.5).highest(starts.into_iter(), worth)[0]
        };
        assert!((from(&[]) - 0.5).abs() < 0.01);
        assert!((from(&[0.7, 0.93, 0.1]) - 0.9).abs() < 0.01);
        assert!((from(&[0.7, 0.1]) - 0.5).abs() < 0.01, "these are lower");
    }
}
