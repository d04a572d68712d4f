//! Vivace's knobs: what the deployed module lets a fleet configure (PCC customization §2.1), within ranges that keep its
//! guarantees (α, β, γ > 0, 0 < δ < 1), and a switch for each of the deployed modifications (§5).

use crate::{Knob, Preset, knob};

/// A knob, by its place in [`KNOBS`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Setting {
    Alpha,
    Beta,
    Gamma,
    Delta,
    Omega,
    InitialRate,
    StartupExitLatency,
    StartupExitLoss,
    StartupRateMax,
    LatencyFilter,
    LossFilter,
    MinPackets,
    Explore,
    Unified,
    Early,
    Brakes,
}

/// The values of the knobs, in the order of [`KNOBS`].
pub(super) type Values = knob::Values<{ KNOBS.len() }>;

impl From<Setting> for usize {
    fn from(setting: Setting) -> Self {
        setting as Self
    }
}

pub(super) const KNOBS: &[Knob] = &[
    Knob::new(
        "alpha",
        "1",
        (0.1, 10.0),
        1.0,
        "weight of the rate in the utility: more takes more of the path",
    ),
    Knob::new(
        "beta",
        "1",
        // §5.5: the penalty has a lower bound. With 5 a loss of 11% outweighs 100 Mbit/s: where the brakes are.
        (5.0, 1000.0),
        11.35,
        "weight of losses: more loses less and yields more rate to random loss",
    ),
    Knob::new(
        "gamma",
        "1",
        (1.0, 10_000.0),
        900.0,
        "weight of a growing round-trip time: more queues less and is more easily fooled by jitter",
    ),
    Knob::new(
        "delta",
        "1",
        (0.1, 0.99),
        0.9,
        "exponent of the rate: more bears more loss and delay at high rates",
    ),
    Knob::new(
        "omega",
        "Mbit/s",
        (0.05, 50.0),
        0.3,
        "step for a gradient of one: more follows the path faster and overshoots more",
    ),
    Knob::new(
        "initial_rate",
        "Mbit/s",
        (0.0, 1000.0),
        0.0,
        "rate of a new connection's first round trip, paced, and at least the initial window; 0: that window",
    ),
    Knob::new(
        "startup_exit_latency",
        "1",
        (0.02, 1000.0),
        0.25,
        "slow start ends when the round-trip time is above its minimum by this share; less queues \
         less, more finds the capacity of jittery links",
    ),
    Knob::new(
        "startup_exit_loss",
        "1",
        (0.0, 1.0),
        0.02,
        "slow start ends when more than this share of an interval's packets is lost",
    ),
    Knob::new(
        "startup_rate_max",
        "Mbit/s",
        (0.1, 100_000.0),
        100_000.0,
        "slow start goes no faster; keeps a policer's bucket from being emptied at once",
    ),
    Knob::new(
        "latency_filter",
        "s/s",
        (0.0, 0.2),
        0.02,
        "a slope of the round-trip time below this, or within its own error, counts as none",
    ),
    Knob::new(
        "loss_filter",
        "1",
        (0.0, 0.1),
        0.01,
        "losses of a smaller share of an interval's packets, or all in one burst, count as none",
    ),
    Knob::new(
        "min_packets",
        "packets",
        (1.0, 1000.0),
        20.0,
        "an interval is prolonged until it has so many: more sees gradients better and later",
    ),
    Knob::new(
        "explore",
        "1",
        (0.002, 0.2),
        0.03,
        "the least step as a share of the rate, and a probe: more sees gradients in noise and wanders more",
    ),
    Knob::new(
        "unified",
        "1",
        (0.0, 1.0),
        1.0,
        "1: each step is the probe of the next decision; 0: pairs of probes, as published",
    ),
    Knob::new(
        "early",
        "1",
        (0.0, 1.0),
        1.0,
        "1: the rate may fall before all of an interval is known, after 50 acknowledgements",
    ),
    Knob::new(
        "brakes",
        "1",
        (0.0, 1.0),
        1.0,
        "1: the rate is cut at once by losses above 10%, by a round-trip time of thrice the \
         minimum, and when half of what is sent does not arrive",
    ),
];

/// NSDI 2018 as it was published.
pub(super) const PLAIN: &[(&str, f64)] = &[
    ("omega", 1.0),
    // The thresholds never bind: only the utility ends slow start.
    ("startup_exit_latency", 1000.0),
    ("startup_exit_loss", 1.0),
    ("latency_filter", 0.0),
    ("loss_filter", 0.0),
    ("min_packets", 1.0),
    ("explore", 0.05),
    ("unified", 0.0),
    ("early", 0.0),
    ("brakes", 0.0),
];

pub(super) const PRESETS: &[Preset] = &[Preset {
    name: "plain",
    knobs: PLAIN,
    about: "as published at NSDI 2018: pairs of probes, no filters, no brakes",
}];

/// The defaults.
pub(super) fn defaults() -> Values {
    Values::new(KNOBS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_their_knobs() {
        for (setting, name) in [
            (Setting::Alpha, "alpha"),
            (Setting::Beta, "beta"),
            (Setting::Gamma, "gamma"),
            (Setting::Delta, "delta"),
            (Setting::Omega, "omega"),
            (Setting::InitialRate, "initial_rate"),
            (Setting::StartupExitLatency, "startup_exit_latency"),
            (Setting::StartupExitLoss, "startup_exit_loss"),
            (Setting::StartupRateMax, "startup_rate_max"),
            (Setting::LatencyFilter, "latency_filter"),
            (Setting::LossFilter, "loss_filter"),
            (Setting::MinPackets, "min_packets"),
            (Setting::Explore, "explore"),
            (Setting::Unified, "unified"),
            (Setting::Early, "early"),
            (Setting::Brakes, "brakes"),
        ] {
            assert_eq!(KNOBS[setting as usize].name, name);
        }
        assert_eq!(Setting::Brakes as usize + 1, KNOBS.len());
    }
}
