//! NADA's knobs: the parameters of RFC 8698, §4.1, Figure 3, that a flow may choose.

use crate::knob::knobs;

knobs! {
    /// The values of NADA's knobs.
    pub(super) struct Values {
        prio: f64 = 1.0, 0.1..=10.0, "1",
            "weight of the flow: the share of a link that it takes next to others of its kind";
        xref: f64 = 10.0, 1.0..=100.0, "ms",
            "congestion that a flow at rate_ref bears: more queues more, and takes more from \
             rivals";
        kappa: f64 = 0.5, 0.05..=2.0, "1",
            "how fast the rate follows the congestion: more follows it sooner, and swings";
        eta: f64 = 2.0, 0.0..=10.0, "1",
            "weight of the change of the congestion: more damps, and follows jitter";
        rate_ref: f64 = 1.5, 0.1..=100.0, "Mbit/s",
            "the RMAX of the equations, best the encoder's highest rate: congestion borne times \
             rate is xref times it";
        rate_min: f64 = 0.15, 0.001..=10.0, "Mbit/s",
            "the target begins with it, and never falls below it";
        rate_max: f64 = 1000.0, 0.01..=1000.0, "Mbit/s",
            "the target never rises above it";
    }
}
