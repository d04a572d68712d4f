//! What can be steered in BBR version 3. Every default is the draft's.

use trimtab_units::Duration;

use super::super::gain::Gain;
use crate::Knob;

/// How many knobs there are.
pub(super) const COUNT: usize = 15;

pub(super) static KNOBS: [Knob; COUNT] = [
    Knob {
        name: "startup_gain",
        unit: "1",
        min: 1.25,
        max: 4.0,
        default: 2.77,
        about: "pacing gain of Startup: finds the bandwidth sooner, for a longer queue when it is found",
    },
    Knob {
        name: "drain_gain",
        unit: "1",
        min: 0.1,
        max: 0.95,
        default: 0.5,
        about: "pacing gain of Drain: lower empties Startup's queue sooner, and the link more likely",
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
        name: "probe_up_gain",
        unit: "1",
        min: 1.0,
        max: 2.0,
        default: 1.25,
        about: "pacing gain when probing for bandwidth: finds new bandwidth faster, for a longer queue while it probes",
    },
    Knob {
        name: "probe_up_cwnd_gain",
        unit: "1",
        min: 1.0,
        max: 4.0,
        default: 2.25,
        about: "window gain when probing for bandwidth: bounds the queue of the probe",
    },
    Knob {
        name: "probe_down_gain",
        unit: "1",
        min: 0.5,
        max: 1.0,
        default: 0.9,
        about: "pacing gain after a probe: lower leaves room for other flows sooner, for less throughput",
    },
    Knob {
        name: "probe_wait",
        unit: "s",
        min: 0.1,
        max: 60.0,
        default: 2.0,
        about: "shortest time between probes for bandwidth (the longest is half as much again): shorter follows a rising link sooner, longer queues and loses less",
    },
    Knob {
        name: "loss_thresh",
        unit: "1",
        min: 0.0,
        max: 0.5,
        default: 0.02,
        about: "share of a round's packets that may be lost before a probe counts as too much: more withstands random loss, less loses fewer packets in shallow buffers",
    },
    Knob {
        name: "beta",
        unit: "1",
        min: 0.3,
        max: 1.0,
        default: 0.7,
        about: "the most that one round of loss leaves of the model's bounds: less yields faster to other flows",
    },
    Knob {
        name: "headroom",
        unit: "1",
        min: 0.0,
        max: 0.5,
        default: 0.15,
        about: "share of the tolerated inflight left free while cruising: more room for other flows, less throughput in shallow buffers",
    },
    Knob {
        name: "probe_rtt_interval",
        unit: "s",
        min: 0.5,
        max: 300.0,
        default: 5.0,
        about: "how long a minimum round-trip time stays fresh before ProbeRTT measures it again; the filter remembers twice as long: shorter follows route changes, longer loses less throughput",
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
        name: "probe_rtt_cwnd_gain",
        unit: "1",
        min: 0.0,
        max: 1.0,
        default: 0.5,
        about: "window in ProbeRTT in bandwidth-delay products, at least four packets: less drains deeper queues, for less throughput",
    },
    Knob {
        name: "quantum_budget",
        unit: "1",
        min: 0.0,
        max: 8.0,
        default: 3.0,
        about: "least window in send quanta (data of 1 ms, at least two packets), for batching in the end hosts: 3 for TCP with offload, 1 for QUIC",
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
    pub(super) startup_gain: Gain,
    pub(super) drain_gain: Gain,
    pub(super) cwnd_gain: Gain,
    pub(super) probe_up_gain: Gain,
    pub(super) probe_up_cwnd_gain: Gain,
    pub(super) probe_down_gain: Gain,
    pub(super) probe_wait: Duration,
    /// A fraction of inflight, compared with small numbers of bytes: exact.
    pub(super) loss_thresh: f64,
    pub(super) beta: Gain,
    pub(super) headroom: Gain,
    pub(super) probe_rtt_interval: Duration,
    pub(super) probe_rtt_duration: Duration,
    pub(super) probe_rtt_cwnd_gain: Gain,
    pub(super) quantum_budget: Gain,
    /// What the pacing margin leaves.
    pub(super) pacing_share: Gain,
}

impl Tuning {
    pub(super) fn new() -> Self {
        Self::from_values(core::array::from_fn(|i| KNOBS[i].default))
    }

    fn from_values(values: [f64; COUNT]) -> Self {
        let [startup, drain, cwnd, up, up_cwnd, down, wait, loss, beta, rest @ ..] = values;
        let [headroom, interval, duration, rtt_cwnd, budget, margin] = rest;
        Self {
            values,
            startup_gain: Gain::from_f64(startup),
            drain_gain: Gain::from_f64(drain),
            cwnd_gain: Gain::from_f64(cwnd),
            probe_up_gain: Gain::from_f64(up),
            probe_up_cwnd_gain: Gain::from_f64(up_cwnd),
            probe_down_gain: Gain::from_f64(down),
            probe_wait: Duration::from_secs_f64(wait),
            loss_thresh: loss,
            beta: Gain::from_f64(beta),
            headroom: Gain::from_f64(headroom),
            probe_rtt_interval: Duration::from_secs_f64(interval),
            probe_rtt_duration: Duration::from_millis_f64(duration),
            probe_rtt_cwnd_gain: Gain::from_f64(rtt_cwnd),
            quantum_budget: Gain::from_f64(budget),
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
