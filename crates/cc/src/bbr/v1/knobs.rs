//! What can be steered in BBR version 1. Every default is Linux's.

use trimtab_units::Duration;

use super::super::gain::Gain;
use crate::knob::knobs;

/// Linux: `BBR_UNIT * 2885 / 1000 + 1` in 1/256: a little above 2/ln 2, the smallest gain that
/// doubles the rate in each round.
const HIGH_GAIN: f64 = 739.0 / 256.0;

knobs! {
    /// The values of the knobs.
    pub(super) struct Values {
        probe_gain: f64 = 1.25, 1.0..=1.5, "1",
            "pacing gain g of the phase that probes for bandwidth, and 2-g of the one after it: \
             finds new bandwidth faster, for a longer queue in one phase of eight";
        cwnd_gain: f64 = 2.0, 1.0..=4.0, "1",
            "window in bandwidth-delay products: more rides out delayed acknowledgements and \
             wins against other flows, less bounds the queue";
        startup_gain: f64 = HIGH_GAIN, 1.25..=4.0, "1",
            "pacing and window gain of Startup; Drain uses its inverse: finds the bandwidth \
             sooner, for a longer queue when it is found";
        bw_window: f64 = 10.0, 2.0..=100.0, "rounds",
            "length of the maximum filter of bandwidth: shorter follows a falling link sooner, \
             longer keeps the rate through short fades";
        probe_rtt_interval: f64 = 10.0, 1.0..=600.0, "s",
            "how long a minimum round-trip time stays valid before ProbeRTT measures it again: \
             shorter follows route changes and empties standing queues, longer loses less \
             throughput";
        probe_rtt_duration: f64 = 200.0, 10.0..=1000.0, "ms",
            "shortest time in ProbeRTT: longer lets more flows drain the queue together, for \
             less throughput";
        probe_rtt_cwnd: f64 = 4.0, 4.0..=1000.0, "packets",
            "window in ProbeRTT: more keeps throughput, but on a path that holds less than this \
             the queue stays and the minimum is not seen";
        quantum_budget: f64 = 3.0, 0.0..=8.0, "1",
            "send quanta (data of 1/1024 s, at least two packets) added to every window target \
             for batching in the end hosts: less makes a shorter queue on paths that hold few \
             packets";
        extra_acked_gain: f64 = 1.0, 0.0..=4.0, "1",
            "share of the measured acknowledgement aggregation added to the window: more keeps \
             Wi-Fi and cellular links busy, less bounds the queue";
        pacing_margin: f64 = 0.01, 0.0..=0.2, "1",
            "fraction by which pacing stays below the bandwidth estimate: more drains standing \
             queues, for less throughput";
    }
}

/// The values of the knobs, as set and as the algorithm uses them.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    pub(super) values: Values,
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
    pub(super) fn derive(values: Values) -> Self {
        Self {
            probe_gain: Gain::from_f64(values.probe_gain),
            yield_gain: Gain::from_f64(2.0 - values.probe_gain),
            cwnd_gain: Gain::from_f64(values.cwnd_gain),
            startup_gain: Gain::from_f64(values.startup_gain),
            // Linux rounds 1000/2885 down to 88/256; the same rounding makes the default exact.
            drain_gain: Gain::ratio((256.0 / values.startup_gain) as u32, 256),
            bw_window: values.bw_window as u64,
            probe_rtt_interval: Duration::from_secs_f64(values.probe_rtt_interval),
            probe_rtt_duration: Duration::from_millis_f64(values.probe_rtt_duration),
            probe_rtt_packets: Gain::from_f64(values.probe_rtt_cwnd),
            quantum_budget: Gain::from_f64(values.quantum_budget),
            extra_acked_gain: Gain::from_f64(values.extra_acked_gain),
            pacing_share: Gain::from_f64(1.0 - values.pacing_margin),
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tcp_bbr.c: `bbr_pacing_gain`, `bbr_cwnd_gain`, `bbr_bw_rtts`, `bbr_min_rtt_win_sec`,
    /// `bbr_probe_rtt_mode_ms`, `bbr_cwnd_min_target`, `bbr_pacing_margin_percent`.
    #[test]
    fn the_defaults_are_those_of_linux() {
        let tuning = Tuning::derive(Values::default());
        let gains = [tuning.probe_gain, tuning.yield_gain, tuning.cwnd_gain];
        assert_eq!(gains, [Gain::ratio(5, 4), Gain::ratio(3, 4), Gain::ratio(2, 1)]);
        assert_eq!((tuning.bw_window, tuning.probe_rtt_packets), (10, Gain::ratio(4, 1)));
        assert_eq!(tuning.probe_rtt_interval, Duration::from_secs(10));
        assert_eq!(tuning.probe_rtt_duration, Duration::from_millis(200));
        assert_eq!(tuning.pacing_share, Gain::from_f64(0.99));
    }

    /// What is derived follows what it is derived from: 2 - g after a probe of g, and the inverse
    /// of Startup's gain in Drain, in 1/256.
    #[test]
    fn derived_gains_follow_their_knobs() {
        let values = Values { probe_gain: 1.5, startup_gain: 2.0, ..Values::default() };
        let tuning = Tuning::derive(values);
        assert_eq!((tuning.probe_gain, tuning.yield_gain), (Gain::ratio(3, 2), Gain::ratio(1, 2)));
        assert_eq!(
            (tuning.startup_gain, tuning.drain_gain),
            (Gain::ratio(2, 1), Gain::ratio(1, 2))
        );
        let slow = Tuning::derive(Values { pacing_margin: 0.2, ..values });
        assert_eq!(slow.pacing_share, Gain::from_f64(0.8));
    }
}
