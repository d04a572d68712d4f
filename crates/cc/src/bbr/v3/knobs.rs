//! What can be steered in BBR version 3. Every default is the draft's.

use trimtab_units::Duration;

use super::super::gain::Gain;
use crate::knob::knobs;

knobs! {
    /// The values of the knobs.
    pub(super) struct Values {
        startup_gain: f64 = 2.77, 1.25..=4.0, "1",
            "pacing gain of Startup: finds the bandwidth sooner, for a longer queue when it is \
             found";
        drain_gain: f64 = 0.5, 0.1..=0.95, "1",
            "pacing gain of Drain: lower empties Startup's queue sooner, and the link more \
             likely";
        cwnd_gain: f64 = 2.0, 1.0..=4.0, "1",
            "window in bandwidth-delay products: more rides out delayed acknowledgements and \
             wins against other flows, less bounds the queue";
        probe_up_gain: f64 = 1.25, 1.0..=2.0, "1",
            "pacing gain when probing for bandwidth: finds new bandwidth faster, for a longer \
             queue while it probes";
        probe_up_cwnd_gain: f64 = 2.25, 1.0..=4.0, "1",
            "window gain when probing for bandwidth: bounds the queue of the probe";
        probe_down_gain: f64 = 0.9, 0.5..=1.0, "1",
            "pacing gain after a probe: lower leaves room for other flows sooner, for less \
             throughput";
        probe_wait: f64 = 2.0, 0.1..=60.0, "s",
            "shortest time between probes for bandwidth (the longest is half as much again): \
             shorter follows a rising link sooner, longer queues and loses less";
        loss_thresh: f64 = 0.02, 0.0..=0.5, "1",
            "share of a round's packets that may be lost before a probe counts as too much: more \
             withstands random loss, less loses fewer packets in shallow buffers";
        beta: f64 = 0.7, 0.3..=1.0, "1",
            "the most that one round of loss leaves of the model's bounds: less yields faster to \
             other flows";
        headroom: f64 = 0.15, 0.0..=0.5, "1",
            "share of the tolerated inflight left free while cruising: more room for other \
             flows, less throughput in shallow buffers";
        probe_rtt_interval: f64 = 5.0, 0.5..=300.0, "s",
            "how long a minimum round-trip time stays fresh before ProbeRTT measures it again; \
             the filter remembers twice as long: shorter follows route changes, longer loses \
             less throughput";
        probe_rtt_duration: f64 = 200.0, 10.0..=1000.0, "ms",
            "shortest time in ProbeRTT: longer lets more flows drain the queue together, for \
             less throughput";
        probe_rtt_cwnd_gain: f64 = 0.5, 0.0..=1.0, "1",
            "window in ProbeRTT in bandwidth-delay products, at least four packets: less drains \
             deeper queues, for less throughput";
        quantum_budget: f64 = 3.0, 0.0..=8.0, "1",
            "least window in send quanta (data of 1 ms, at least two packets), for batching in \
             the end hosts: 3 for TCP with offload, 1 for QUIC";
        pacing_margin: f64 = 0.01, 0.0..=0.2, "1",
            "fraction by which pacing stays below the bandwidth estimate: more drains standing \
             queues, for less throughput";
    }
}

/// The values of the knobs, as set and as the algorithm uses them.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    pub(super) values: Values,
    pub(super) startup_gain: Gain,
    pub(super) drain_gain: Gain,
    pub(super) cwnd_gain: Gain,
    pub(super) probe_up_gain: Gain,
    pub(super) probe_up_cwnd_gain: Gain,
    pub(super) probe_down_gain: Gain,
    pub(super) probe_wait: Duration,
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
    pub(super) fn derive(values: Values) -> Self {
        Self {
            startup_gain: Gain::from_f64(values.startup_gain),
            drain_gain: Gain::from_f64(values.drain_gain),
            cwnd_gain: Gain::from_f64(values.cwnd_gain),
            probe_up_gain: Gain::from_f64(values.probe_up_gain),
            probe_up_cwnd_gain: Gain::from_f64(values.probe_up_cwnd_gain),
            probe_down_gain: Gain::from_f64(values.probe_down_gain),
            probe_wait: Duration::from_secs_f64(values.probe_wait),
            beta: Gain::from_f64(values.beta),
            headroom: Gain::from_f64(values.headroom),
            probe_rtt_interval: Duration::from_secs_f64(values.probe_rtt_interval),
            probe_rtt_duration: Duration::from_millis_f64(values.probe_rtt_duration),
            probe_rtt_cwnd_gain: Gain::from_f64(values.probe_rtt_cwnd_gain),
            quantum_budget: Gain::from_f64(values.quantum_budget),
            pacing_share: Gain::from_f64(1.0 - values.pacing_margin),
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-ietf-ccwg-bbr: `BBR.StartupPacingGain` and the constants of the other states.
    #[test]
    fn the_defaults_are_those_of_the_draft() {
        let tuning = Tuning::derive(Values::default());
        for (gain, want) in [
            (tuning.startup_gain, 2.77),
            (tuning.drain_gain, 0.5),
            (tuning.cwnd_gain, 2.0),
            (tuning.probe_up_gain, 1.25),
            (tuning.probe_up_cwnd_gain, 2.25),
            (tuning.probe_down_gain, 0.9),
            (tuning.beta, 0.7),
            (tuning.headroom, 0.15),
            (tuning.probe_rtt_cwnd_gain, 0.5),
            (tuning.pacing_share, 0.99),
            (tuning.quantum_budget, 3.0),
        ] {
            assert_eq!(gain, Gain::from_f64(want), "{want}");
        }
        assert_eq!(tuning.probe_wait, Duration::from_secs(2));
        assert_eq!(tuning.probe_rtt_interval, Duration::from_secs(5));
        assert_eq!(tuning.probe_rtt_duration, Duration::from_millis(200));
        assert_eq!(tuning.values.loss_thresh, 0.02);
    }
}
