//! Copa's knobs. Mortise steers `delta`; the others set what else of Copa users feel.

use libm::round;

use crate::knob::{Value, knobs};
use crate::{Config, Knob, Preset};

/// What it does next to flows that fill the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rivalry {
    /// It yields.
    Yield,
    /// It moves 1/delta by additive increase and multiplicative decrease (§2.4).
    Delta,
    /// It keeps the window of CUBIC (`../rival.rs`).
    Cubic,
}

impl Value for Rivalry {
    fn of(number: f64) -> Self {
        match round(number) {
            0.0 => Self::Yield,
            1.0 => Self::Delta,
            _ => Self::Cubic,
        }
    }

    fn number(self) -> f64 {
        f64::from(self as u8)
    }
}

knobs! {
    /// The values of Copa's knobs.
    pub(super) struct Values {
        delta: f64 = 0.5, 0.002..=2.0, "1/packet",
            "weight of delay against throughput: 1.25/delta packets queue on average";
        competitive: Rivalry = 1.0, 0.0..=2.0, "1",
            "next to flows that fill the queue: 0 yields to them; 1 claims a share by a smaller delta; \
             2 keeps the window of CUBIC, and no more than that after a full queue dropped packets";
        pacing_gain: f64 = 2.0, 1.0..=4.0, "1",
            "pacing rate over window per round-trip time; more sends sooner and in larger bursts";
        initial_window: f64 = 10.0, 1.0..=100.0, "packets",
            "window of a new connection, and the least after an idle time; more finishes small \
             transfers sooner and overflows small buffers";
        startup_gain: f64 = 1.0, 0.25..=1.0, "1",
            "growth in slow start per packet acknowledged; less is slower and overshoots less";
        startup_exit: f64 = 1.0, 0.5..=20.0, "1",
            "slow start ends once the rate is above this many times the target rate; more fills \
             jittery links sooner and queues more";
        restart: f64 = 1.0, 0.1..=2.0, "1",
            "share of the window kept after an idle time longer than the retransmission timeout";
        restart_probe: bool = 0.0, 0.0..=1.0, "1",
            "1: slow start again after an idle time, which finds new capacity sooner; 0: not";
        loss_beta: f64 = 1.0, 0.3..=1.0, "1",
            "share of the window kept after a loss: 1 ignores losses (the paper), less spares \
             small buffers";
        loss_tolerance: f64 = 0.0, 0.0..=1.0, "1",
            "share of a round trip's packets whose loss is taken as noise and ignored";
        standing: f64 = 0.5, 0.0..=1.0, "1",
            "share of a round-trip time over whose least the queue is judged: 0 takes the latest \
             sample, more is deaf to jitter and later to notice queues";
        min_rtt_window: f64 = 10.0, 1.0..=60.0, "s",
            "for how long a minimum round-trip time counts; less follows a changing path, more \
             knows the empty queue better";
        velocity_max: f64 = 65_536.0, 1.0..=65_536.0, "1",
            "bound of the velocity; less overshoots less and follows capacity later";
        growth_max: f64 = 1.0, 0.05..=1.0, "1",
            "the most that the window moves in a round trip, as a share of it; less keeps windows \
             below 1/delta packets from doubling and halving";
    }
}

/// The places of the knobs whose change is acted upon at once.
pub(super) const COMPETITIVE: usize = Knob::place(Values::KNOBS, "competitive");
pub(super) const INITIAL_WINDOW: usize = Knob::place(Values::KNOBS, "initial_window");

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
    const INITIAL: Knob = Knob::named(Values::KNOBS, "initial_window");
    let packets = config.initial_window.as_f64() / config.mss.as_f64().max(1.0);
    Values { initial_window: packets.clamp(INITIAL.min, INITIAL.max), ..Values::default() }
}
