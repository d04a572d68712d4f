//! GCC's knobs. Defaults are the constants of libwebrtc.

use crate::Preset;
use crate::knob::knobs;

knobs! {
    /// The values of GCC's knobs.
    pub(super) struct Values {
        // aimd_rate_control.cc MultiplicativeRateIncrease().
        growth: f64 = 1.08, 1.0..=2.0, "1/s",
            "factor of the rate in a second while the capacity is unknown: more finds it sooner \
             and overshoots more";
        // aimd_rate_control.cc kDefaultBackoffFactor.
        decrease: f64 = 0.85, 0.5..=0.98, "1",
            "share of the throughput that an overuse leaves: less empties the queue sooner";
        // aimd_rate_control.cc AdditiveRateIncrease(): 1 is libwebrtc's.
        step: f64 = 1.0, 0.1..=16.0, "1",
            "factor of the additive increase near the capacity: more follows it sooner and \
             queues more often";
        // trendline_estimator.cc k_up_, k_down_, kDefaultTrendlineThresholdGain.
        k_up: f64 = 0.0087, 0.0..=0.1, "1/ms",
            "how fast the threshold rises to a trend above it: more yields less to rivals";
        k_down: f64 = 0.039, 0.0..=0.1, "1/ms",
            "how fast the threshold falls to a trend below it: more sees small queues sooner";
        gain: f64 = 4.0, 0.5..=32.0, "1",
            "factor of the trend before it is compared: more sees small queues, and noise";
        // trendline_estimator.h enable_cap.
        capped: bool = 0.0, 0.0..=1.0, "1",
            "1: the trend is at most that of the least delays at both ends of the window; \
             overlooks spikes";
        // probe_controller.cc first_exponential_probe_scale, second_exponential_probe_scale.
        probe_first: f64 = 3.0, 1.0..=20.0, "1",
            "rate of the first probe by the start rate: more finds fast paths at once";
        probe_second: f64 = 6.0, 0.0..=20.0, "1",
            "rate of the second probe by the start rate; 0: none";
        // Ours: libwebrtc probes at the start and in application-limited regions only.
        probe_busy: f64 = 0.0, 0.0..=5.0, "1/s",
            "probes in a second while the application uses the target: more finds what is free \
             sooner; 0: none";
        // Ours: libwebrtc takes all.
        probe_share: f64 = 1.0, 0.5..=1.0, "1",
            "the share of what a probe found that is used: less leaves room for large frames";
        // pacing_controller.h kDefaultPaceMultiplier.
        pace: f64 = 2.5, 1.0..=20.0, "1",
            "media leaves at this multiple of the target: more shows large frames sooner, and \
             fills short buffers";
        // rate_control_settings.cc, the QueueSize of WebRTC-CongestionWindow.
        queue: f64 = 0.35, 0.01..=2.0, "s",
            "media may have what is sent in a round trip and in this time in flight: less makes \
             a shorter queue when the capacity falls, and holds frames back";
        // loss_based_bwe_v2.cc InherentLossUpperBoundOffset, InstantUpperBoundLossOffset.
        loss_own: f64 = 0.05, 0.001..=0.5, "1",
            "the share of packets that a path may lose at any rate: more bears random loss";
        // loss_based_bwe_v2.cc LossThresholdOfHighBandwidthPreference.
        loss_high: f64 = 0.2, 0.0..=0.9, "1",
            "the share of lost packets up to which higher rates are preferred: more bears loss";
        // bwe_defines.h kCongestionControllerMinBitrate; kDefaultMaxBitrate.
        rate_min: f64 = 0.005, 0.001..=10.0, "Mbit/s",
            "the target never falls below it";
        rate_max: f64 = 1000.0, 0.01..=1000.0, "Mbit/s",
            "the target never rises above it; probes stop there, or at 5 Mbit/s by default";
        // WebRTC's start rate (bitrate_constraints.h kDefaultStartBitrateBps).
        rate_start: f64 = 0.3, 0.01..=100.0, "Mbit/s",
            "the target before anything is known of the path";
        // rivals.rs; libwebrtc has nothing of the kind.
        competitive: bool = 0.0, 0.0..=1.0, "1",
            "1: next to flows that fill the queue it takes the share of a CUBIC flow";
    }
}

impl Values {
    /// The most that a probe is sent at. Without a configured maximum libwebrtc stops at 5 Mbit/s
    /// (probe_controller.cc kDefaultMaxProbingBitrate).
    pub(super) fn probe_max(&self) -> f64 {
        const UNCONFIGURED: f64 = 5.0;
        let most = crate::Knob::named(Self::KNOBS, "rate_max").max;
        if self.rate_max < most { self.rate_max } else { UNCONFIGURED }
    }
}

pub(super) const PRESETS: &[Preset] = &[];
