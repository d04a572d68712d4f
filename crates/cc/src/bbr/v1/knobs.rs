//! What can be steered in BBR version 1. Every default is Linux's.

use trimtab_units::Duration;

use super::super::gain::Gain;
use crate::Knob;

/// How many knobs there are.
pub(super) const COUNT: usize = 10;

/// Linux: `BBR_UNIT * 2885 / 1000 + 1` in 1/256: a little above 2/ln 2, the smallest gain that
/// doubles the rate in each round.
const HIGH_GAIN: f64 = 739.0 / 256.0;

pub(super) static KNOBS: [Knob; COUNT] = [
    Knob {
        name: "probe_gain",
        unit: "1",
        min: 1.0,
        max: 1.5,
        default: 1.25,
        about: "pacing gain g of the phase that probes for bandwidth, and 2-g of the one after it: finds new bandwidth faster, for a longer queue in one phase of eight",
    },
    Knob {
        name: "cwnd_gain",
        unit: "1",
        min: 1.0,
        max: 4.0,
        default: 2.0,
        about: "window in bandwidth-delay products: more rides out delayed acknowledgements and wins against other flows, less bounds the queue",
    },
    Knob {
        name: "startup_gain",
        unit: "1",
        min: 1.25,
        max: 4.0,
        default: HIGH_GAIN,
        about: "pacing and window gain of Startup; Drain uses its inverse: finds the bandwidth sooner, for a longer queue when it is found",
    },
    Knob {
        name: "bw_window",
        unit: "rounds",
        min: 2.0,
        max: 100.0,
        default: 10.0,
        about: "length of the maximum filter of bandwidth: shorter follows a falling link sooner, longer keeps the rate through short fades",
    },
    Knob {
        name: "probe_rtt_interval",
        unit: "s",
        min: 1.0,
        max: 600.0,
        default: 10.0,
        about: "how long a minimum round-trip time stays valid before ProbeRTT measures it again: shorter follows route changes and empties standing queues, longer loses less throughput",
    },
    Knob {
        name: "probe_rtt_duration",
        unit: "ms",
        min: 10.0,
        max: 1000.0,
        default: 200.0,
        about: "shortest time in ProbeRTT: longer lets more flows drain the queue together, for less throughput",
    },
    Knob {
        name: "probe_rtt_cwnd",
        unit: "packets",
        min: 4.0,
        max: 1000.0,
        default: 4.0,
        about: "window in ProbeRTT: more keeps throughput, but on a path that holds less than this the queue stays and the minimum is not seen",
    },
    Knob {
        name: "quantum_budget",
        unit: "1",
        min: 0.0,
        max: 8.0,
        default: 3.0,
        about: "send quanta (data of 1/1024 s, at least two packets) added to every window target for batching in the end hosts: less makes a shorter queue on paths that hold few packets",
    },
    Knob {
        name: "extra_acked_gain",
        unit: "1",
        min: 0.0,
        max: 4.0,
        default: 1.0,
        about: "share of the measured acknowledgement aggregation added to the window: more keeps Wi-Fi and cellular links busy, less bounds the queue",
    },
    Knob {
        name: "pacing_margin",
        unit: "1",
        min: 0.0,
        max: 0.2,
        default: 0.01,
        about: "fraction by which pacing stays below the bandwidth estimate: more drains standing queues, for less throughput",
    },
];

/// The values of the knobs, as set and as the algorithm uses them.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    values: [f64; COUNT],
    pub(super) probe_gain: Gain,
    pub(super) yield_gain: Gain,
    pub(super) cwnd_gain: Gain,
    pub(super) startup_gain: Gain,
    pub(super) drain_gain: Gain,
    pub(super) bw_window: u64,
    pub(super) probe_rtt_interval: Duration,
    pub(super) probe_rtt_duration: Duration,
    pub(super) probe_rtt_packets: Gain,
    pub(super) quantum_budget: Gain,
    pub(super) extra_acked_gain: Gain,
    /// What the pacing margin leaves.
    pub(super) pacing_share: Gain,
}

impl Tuning {
    pub(super) fn new() -> Self {
        Self::from_values(core::array::from_fn(|i| KNOBS[i].default))
    }

    fn from_values(values: [f64; COUNT]) -> Self {
        let [probe, cwnd, startup, bw_window, interval, duration, packets, budget, extra, margin] =
            values;
        // Linux rounds 1000/2885 down to 88/256; the same rounding makes the default exact.
        let drain_gain = Gain::ratio((256.0 / startup) as u32, 256);
        Self {
            values,
            probe_gain: Gain::from_f64(probe),
            yield_gain: Gain::from_f64(2.0 - probe),
            cwnd_gain: Gain::from_f64(cwnd),
            startup_gain: Gain::from_f64(startup),
            drain_gain,
            bw_window: bw_window as u64,
            probe_rtt_interval: Duration::from_secs_f64(interval),
            probe_rtt_duration: Duration::from_millis_f64(duration),
            probe_rtt_packets: Gain::from_f64(packets),
            quantum_budget: Gain::from_f64(budget),
            extra_acked_gain: Gain::from_f64(extra),
            pacing_share: Gain::from_f64(1.0 - margin),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<f64> {
        self.values.get(index).copied()
    }

    pub(super) fn set(&mut self, index: usize, value: f64) {
        if let Some(slot) = self.values.get_mut(index) {
            *slot = value;
            *self = Self::from_values(self.values);
        }
    }
}
