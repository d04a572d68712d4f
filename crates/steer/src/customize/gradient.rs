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
