//! Mortise: tuning a knob from the gradient of QoE.

use trimtab_qoe::Model;
use trimtab_units::Duration;

use crate::{Action, Report, Steer};

/// The settings of [`Mortise`].
#[derive(Clone, Debug)]
pub struct MortiseConfig {
    /// The application's QoE model.
    pub model: Model,
    /// Share of the way from the achieved to the preferred tradeoff that a step goes (Eq. 5), 0 to 1.
    pub sigma: f64,
    /// Whether change-point detection on bandwidth restarts the search (§3.3).
    pub change_points: bool,
    /// Whether δ takes one of five values only (`mortise-disc`).
    pub discrete: bool,
}

impl MortiseConfig {
    /// The paper's settings for an application with this model.
    pub fn new(model: Model) -> Self {
        Self { model, sigma: 0.5, change_points: true, discrete: false }
    }
}

/// The controller of one connection.
#[derive(Clone, Debug)]
pub struct Mortise {
    config: MortiseConfig,
    delta: f64,
}

impl Mortise {
    /// A new connection.
    pub fn new(config: MortiseConfig) -> Self {
        Self { config, delta: 0.1 }
    }

    /// Its settings.
    pub fn config(&self) -> &MortiseConfig {
        &self.config
    }

    /// The value of δ that it wants, in 1/packet.
    pub fn delta(&self) -> f64 {
        self.delta
    }
}

impl Steer for Mortise {
    fn interval(&self, srtt: Duration) -> Duration {
        srtt
    }

    fn on_report(&mut self, _report: &Report) -> Option<Action> {
        Some(Action::Set { knob: "delta", value: self.delta })
    }
}

/// Any of the steerings.
#[derive(Clone, Debug)]
pub enum Steerer {
    /// Mortise.
    Mortise(Mortise),
}

impl Steer for Steerer {
    fn interval(&self, srtt: Duration) -> Duration {
        match self {
            Self::Mortise(m) => m.interval(srtt),
        }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        match self {
            Self::Mortise(m) => m.on_report(report),
        }
    }
}
