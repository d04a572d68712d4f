//! From estimates of the gradient to steps: averaging, momentum, steps that shrink (paper 002 §4.2 step 6, §4.3).

use serde::{Deserialize, Serialize};

use super::Settings;

/// Estimates since the last step, and the steps until now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Gradient {
    sum: Vec<f64>,
    count: u32,
    velocity: Vec<f64>,
    steps: u32,
}

/// A step of the centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The average of the estimates, in rewards per range of each active knob.
    pub gradient: Vec<f64>,
    /// How far the centre was to move, before it was kept inside the permitted box.
    pub by: Vec<f64>,
}

impl Gradient {
    pub(super) fn new(dimensions: usize) -> Self {
        let zero = vec![0.0; dimensions];
        Self { sum: zero.clone(), count: 0, velocity: zero, steps: 0 }
    }

    /// Steps until now.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// How far an estimate is from enough of them.
    pub(super) fn gathered(&self) -> u32 {
        self.count
    }

    /// What φ and η are multiplied with now.
    pub(super) fn shrink(&self, settings: &Settings) -> f64 {
        if settings.halving == 0 {
            return 1.0;
        }
        // As 1/n, since a sum of such steps still reaches everywhere.
        1.0 / (1.0 + f64::from(self.steps) / f64::from(settings.halving))
    }

    /// φ now.
    pub(super) fn radius(&self, settings: &Settings) -> f64 {
        (settings.radius * self.shrink(settings)).max(settings.radius_min)
    }

    /// Takes an estimate of (φ/d)·∇r, and gives a step when there are enough of them. `deviation`
    /// is that of the rewards.
    pub(super) fn add(
        &mut self,
        settings: &Settings,
        estimate: &[f64],
        deviation: f64,
    ) -> Option<Step> {
        for (sum, part) in self.sum.iter_mut().zip(estimate) {
            *sum += part;
        }
        self.count += 1;
        if self.count < settings.average {
            return None;
        }
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / f64::from(self.count)).collect();
        let radius = self.radius(settings);
        // E[r·x] = (φ/d)·∇r (reference K3).
        let gradient = mean.iter().map(|g| g * mean.len() as f64 / radius).collect();
        let rate = settings.rate * self.shrink(settings) / deviation.max(f64::MIN_POSITIVE);
        for (velocity, g) in self.velocity.iter_mut().zip(&mean) {
            *velocity = settings.momentum * *velocity + (1.0 - settings.momentum) * rate * g;
        }
        let length = self.velocity.iter().map(|v| v * v).sum::<f64>().sqrt();
        let longest = settings.step_max * self.shrink(settings);
        if length > longest {
            self.velocity.iter_mut().for_each(|v| *v *= longest / length);
        }
        self.sum.fill(0.0);
        self.count = 0;
        self.steps += 1;
        Some(Step { gradient, by: self.velocity.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::Preset;

    /// Steps of one estimate, without momentum and limit.
    fn settings() -> Settings {
        Settings {
            radius: 0.2,
            radius_min: 0.05,
            rate: 0.1,
            momentum: 0.0,
            average: 1,
            step_max: 100.0,
            halving: 0,
            ..Settings::of(Preset::Pairs)
        }
    }

    /// The step after the last of these estimates, of rewards of deviation 1.
    fn step(settings: &Settings, estimates: &[[f64; 2]]) -> Option<Step> {
        let mut gradient = Gradient::new(2);
        estimates.iter().fold(None, |_, estimate| gradient.add(settings, estimate, 1.0))
    }

    fn near(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
    }

    /// Reference K3: an estimate is φ/d of the gradient.
    #[test]
    fn a_step_goes_up_by_rate_and_deviation() {
        let one = step(&settings(), &[[0.3, -0.4]]).unwrap();
        assert!(near(&one.gradient, &[3.0, -4.0]), "{one:?}");
        assert!(near(&one.by, &[0.03, -0.04]), "{one:?}");
        let wild = Gradient::new(2).add(&settings(), &[0.3, -0.4], 2.0).unwrap();
        assert!(near(&wild.by, &[0.015, -0.02]) && near(&wild.gradient, &one.gradient));
    }

    #[test]
    fn a_step_is_of_the_mean_of_its_estimates() {
        let settings = Settings { average: 3, ..settings() };
        let mut gradient = Gradient::new(2);
        for turn in 1..=2 {
            for (gathered, estimate) in [[0.1, 0.0], [0.2, 0.3]].iter().enumerate() {
                assert_eq!(gradient.gathered(), gathered as u32);
                assert_eq!(gradient.add(&settings, estimate, 1.0), None);
            }
            let step = gradient.add(&settings, &[0.6, 0.6], 1.0).unwrap();
            assert!(near(&step.by, &[0.03, 0.03]), "{step:?}");
            assert_eq!((gradient.steps(), gradient.gathered()), (turn, 0));
        }
    }

    #[test]
    fn momentum_goes_on_and_dies_out() {
        let settings = Settings { momentum: 0.75, ..settings() };
        let mut gradient = Gradient::new(1);
        let mut by = |estimate: f64| gradient.add(&settings, &[estimate], 1.0).unwrap().by[0];
        assert!((by(0.4) - 0.01).abs() < 1e-9);
        assert!((by(0.0) - 0.0075).abs() < 1e-9 && (by(0.0) - 0.005_625).abs() < 1e-9);
    }

    #[test]
    fn no_step_is_longer_than_the_longest() {
        let settings = Settings { step_max: 0.05, ..settings() };
        let far = step(&settings, &[[3.0, -4.0]]).unwrap();
        assert!(near(&far.by, &[0.03, -0.04]), "as long as it may be, the same way: {far:?}");
        let short = step(&settings, &[[0.03, -0.04]]).unwrap();
        assert!(near(&short.by, &[0.003, -0.004]), "{short:?}");
    }

    /// Halved after ten steps, and again after three times as many.
    #[test]
    fn steps_and_radius_shrink() {
        let settings = Settings { halving: 10, step_max: 0.05, ..settings() };
        let mut gradient = Gradient::new(1);
        let mut lengths = Vec::new();
        let mut radii = Vec::new();
        for _ in 0..=90 {
            radii.push(gradient.radius(&settings));
            lengths.push(gradient.add(&settings, &[9.0], 1.0).unwrap().by[0]);
        }
        assert!(near(&[radii[0], radii[10], radii[30]], &[0.2, 0.1, 0.05]), "{radii:?}");
        assert_eq!(radii[90], 0.05, "the least");
        assert!(near(&[lengths[0], lengths[10], lengths[30]], &[0.05, 0.025, 0.0125]));
        let short = |steps: u32| {
            let mut gradient = Gradient { steps, ..Gradient::new(1) };
            gradient.add(&settings, &[0.02], 1.0).unwrap().by[0]
        };
        assert!((short(10) / short(0) - 0.5).abs() < 1e-9, "below the longest, too");
    }

    #[test]
    fn rewards_without_deviation_are_no_division_by_zero() {
        let step = Gradient::new(1).add(&settings(), &[0.0], 0.0).unwrap();
        assert_eq!(step.by, [0.0]);
    }
}
