//! Vivace's knobs: what the deployed module lets a fleet configure (PCC customization §2.1), within
//! ranges that keep its guarantees (α, β, γ > 0, 0 < δ < 1), and a switch for each of the deployed
//! modifications (§5).

use crate::Preset;
use crate::knob::knobs;

knobs! {
    /// The values of Vivace's knobs.
    pub(super) struct Values {
        alpha: f64 = 1.0, 0.1..=10.0, "1",
            "weight of the rate in the utility: more takes more of the path";
        // §5.5: the penalty has a lower bound. With 5 a loss of 11% outweighs 100 Mbit/s: where the
        // brakes are.
        beta: f64 = 11.35, 5.0..=1000.0, "1",
            "weight of losses: more loses less and yields more rate to random loss";
        gamma: f64 = 900.0, 1.0..=10_000.0, "1",
            "weight of a growing round-trip time: more queues less and is more easily fooled by \
             jitter";
        delta: f64 = 0.9, 0.1..=0.99, "1",
            "exponent of the rate: more bears more loss and delay at high rates";
        omega: f64 = 0.3, 0.05..=50.0, "Mbit/s",
            "step for a gradient of one: more follows the path faster and overshoots more";
        initial_rate: f64 = 0.0, 0.0..=1000.0, "Mbit/s",
            "rate of a new connection's first round trip, paced, and at least the initial \
             window; 0: that window";
        startup_exit_latency: f64 = 0.25, 0.02..=1000.0, "1",
            "slow start ends when the round-trip time is above its minimum by this share; less \
             queues less, more finds the capacity of jittery links";
        startup_exit_loss: f64 = 0.02, 0.0..=1.0, "1",
            "slow start ends when more than this share of an interval's packets is lost";
        startup_rate_max: f64 = 100_000.0, 0.1..=100_000.0, "Mbit/s",
            "slow start goes no faster; keeps a policer's bucket from being emptied at once";
        latency_filter: f64 = 0.02, 0.0..=0.2, "s/s",
            "a slope of the round-trip time below this, or within its own error, counts as none";
        loss_filter: f64 = 0.01, 0.0..=0.1, "1",
            "losses of a smaller share of an interval's packets, or all in one burst, count as \
             none";
        min_packets: f64 = 20.0, 1.0..=1000.0, "packets",
            "an interval is prolonged until it has so many: more sees gradients better and later";
        explore: f64 = 0.03, 0.002..=0.2, "1",
            "the least step as a share of the rate, and a probe: more sees gradients in noise \
             and wanders more";
        unified: bool = 1.0, 0.0..=1.0, "1",
            "1: each step is the probe of the next decision; 0: pairs of probes, as published";
        early: bool = 1.0, 0.0..=1.0, "1",
            "1: the rate may fall before all of an interval is known, after 50 acknowledgements";
        brakes: bool = 1.0, 0.0..=1.0, "1",
            "1: the rate is cut at once by losses above 10%, by a round-trip time of thrice the \
             minimum, and when half of what is sent does not arrive";
    }
}

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

/// The values of the preset `plain`.
#[cfg(test)]
pub(super) fn plain() -> Values {
    let mut values = Values::default();
    for (name, value) in PLAIN {
        values.set(crate::Knob::place(Values::KNOBS, name), *value);
    }
    values
}
