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
