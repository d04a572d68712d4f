//! Copa's knobs. Mortise steers `delta`; the others are what of Copa users feel beside it.

use crate::{Config, Knob, Preset, knob};

/// A knob, by its place in [`KNOBS`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Setting {
    Delta,
    Competitive,
    PacingGain,
    InitialWindow,
    StartupGain,
    StartupExit,
    Restart,
    RestartProbe,
    LossBeta,
    LossTolerance,
    Standing,
    MinRttWindow,
    VelocityMax,
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
        "delta",
        "1/packet",
        (0.002, 2.0),
        0.5,
        "weight of delay against throughput: 1.25/delta packets queue on average",
    ),
    Knob::new(
        "competitive",
        "1",
        (0.0, 1.0),
        1.0,
        "1: claims a share of the queue beside flows that fill it; 0: always yields to them",
    ),
    Knob::new(
        "pacing_gain",
        "1",
        (1.0, 4.0),
        2.0,
        "pacing rate over window per round-trip time; more sends sooner and in larger bursts",
    ),
    Knob::new(
        "initial_window",
        "packets",
        (1.0, 100.0),
        10.0,
        "window of a new connection, and the least after an idle time; more finishes small \
         transfers sooner and overflows small buffers",
    ),
    Knob::new(
        "startup_gain",
        "1",
        (0.25, 1.0),
        1.0,
        "growth in slow start per packet acknowledged; less is slower and overshoots less",
    ),
    Knob::new(
        "startup_exit",
        "1",
        (0.5, 20.0),
        1.0,
        "slow start ends once the rate is above this many times the target rate; more fills \
         jittery links sooner and queues more",
    ),
    Knob::new(
        "restart",
        "1",
        (0.1, 2.0),
        1.0,
        "share of the window kept after an idle time longer than the retransmission timeout",
    ),
    Knob::new(
        "restart_probe",
        "1",
        (0.0, 1.0),
        0.0,
        "1: slow start again after an idle time, which finds new capacity sooner; 0: not",
    ),
    Knob::new(
        "loss_beta",
        "1",
        (0.3, 1.0),
        1.0,
        "share of the window kept after a loss: 1 ignores losses (the paper), less spares \
         small buffers",
    ),
    Knob::new(
        "loss_tolerance",
        "1",
        (0.0, 1.0),
        0.0,
        "share of a round trip's packets whose loss is taken as noise and ignored",
    ),
    Knob::new(
        "standing",
        "1",
        (0.0, 1.0),
        0.5,
        "share of a round-trip time over whose least the queue is judged: 0 takes the latest \
         sample, more is deaf to jitter and later to notice queues",
    ),
    Knob::new(
        "min_rtt_window",
        "s",
        (1.0, 60.0),
        10.0,
        "for how long a minimum round-trip time counts; less follows a changing path, more \
         knows the empty queue better",
    ),
    Knob::new(
        "velocity_max",
        "1",
        (1.0, 65_536.0),
        65_536.0,
        "bound of the velocity; less overshoots less and follows capacity later",
    ),
];

/// What the paper and the two deployed forms set.
pub(super) const PRESETS: &[Preset] = &[
    Preset { name: "mit", knobs: &[("delta", 0.5)], about: "the paper's default: least delay" },
    Preset {
        name: "mvfst",
        knobs: &[("delta", 0.04), ("competitive", 0.0)],
        about: "Facebook's mvfst as the Mortise paper compares with it: more throughput, no \
                competitive mode (mvfst itself judges the queue by the latest sample: standing=0)",
    },
];

/// The defaults; the initial window is the transport's, as far as the knob goes.
pub(super) fn defaults(config: &Config) -> Values {
    let mut values = Values::new(KNOBS);
    let window = &KNOBS[Setting::InitialWindow as usize];
    let packets = config.initial_window.as_f64() / config.mss.as_f64().max(1.0);
    values.set(Setting::InitialWindow.into(), packets.clamp(window.min, window.max));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_their_knobs() {
        for (setting, name) in [
            (Setting::Delta, "delta"),
            (Setting::Competitive, "competitive"),
            (Setting::PacingGain, "pacing_gain"),
            (Setting::InitialWindow, "initial_window"),
            (Setting::StartupGain, "startup_gain"),
            (Setting::StartupExit, "startup_exit"),
            (Setting::Restart, "restart"),
            (Setting::RestartProbe, "restart_probe"),
            (Setting::LossBeta, "loss_beta"),
            (Setting::LossTolerance, "loss_tolerance"),
            (Setting::Standing, "standing"),
            (Setting::MinRttWindow, "min_rtt_window"),
            (Setting::VelocityMax, "velocity_max"),
        ] {
            assert_eq!(KNOBS[setting as usize].name, name);
        }
        assert_eq!(Setting::VelocityMax as usize + 1, KNOBS.len());
    }
}
