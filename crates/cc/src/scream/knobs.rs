//! SCReAM's knobs. Defaults are the draft's recommended constants.

use crate::knob::knobs;

knobs! {
    /// The values of SCReAM's knobs.
    pub(super) struct Values {
        target_low: f64 = 60.0, 5.0..=500.0, "ms",
            "QDELAY_TARGET_LO: the window falls from half of this queue on; more queues more";
        target_high: f64 = 400.0, 5.0..=1000.0, "ms",
            "QDELAY_TARGET_HI: the target rises up to this next to flows that fill the queue";
        beta_loss: f64 = 0.7, 0.3..=0.98, "1",
            "share of the window that a loss leaves";
        beta_ecn: f64 = 0.8, 0.3..=0.98, "1",
            "share of the window that a congestion mark leaves";
        growth: f64 = 0.02, 0.0..=0.2, "1",
            "MUL_INCREASE_FACTOR: growth in a round trip beyond a packet, as a share of the window";
        headroom: f64 = 1.5, 1.0..=4.0, "1",
            "PACKET_PACING_HEADROOM: pacing rate by the target; more sends frames sooner";
        l4s: bool = 0.0, 0.0..=1.0, "1",
            "1: marks are those of L4S, and the window falls by their share";
        rate_min: f64 = 0.05, 0.001..=10.0, "Mbit/s",
            "the target never falls below it";
        rate_max: f64 = 1000.0, 0.01..=1000.0, "Mbit/s",
            "the target never rises above it";
        rate_start: f64 = 0.3, 0.01..=100.0, "Mbit/s",
            "the target before a round-trip time is known";
    }
}
