//! What an interval is worth: one table.

use super::measure::{PACKET, View, delay_metric, loss, lost, relative, sending, throughput};

/// A reward by name.
#[derive(Clone, Copy, Debug)]
pub struct Reward {
    /// Its name.
    pub name: &'static str,
    /// Its formula.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its value.
    pub of: fn(&View<'_>) -> f64,
}

/// Every reward. A further one is a line here.
#[rustfmt::skip]
pub const REWARDS: [Reward; 6] = [
    Reward { name: "aurora", about: "(10 packets/s - 1000 latency in s - 2000 loss) / 1000", source: "Aurora, ICML 2019, §4.2, and network_sim.py", of: aurora },
    Reward { name: "orca", about: "(throughput - 5 losses) / highest throughput x delay metric", source: "Orca, SIGCOMM 2020, §4.2", of: orca },
    Reward { name: "vivace", about: "x^0.9 - 900 x latency gradient - 11.35 x loss, x in Mbit/s sent", source: "PCC Vivace, NSDI 2018, §2.1", of: vivace },
    Reward { name: "allegro", about: "T sigmoid(loss - 0.05) - x loss, T = x (1 - loss)", source: "PCC Allegro, NSDI 2015, §2.2", of: allegro },
    Reward { name: "power", about: "throughput in Mbit/s over round-trip time in s", source: "Kleinrock, ICC 1979", of: |v| throughput(v) / latency(v) },
    Reward { name: "remy", about: "log2(throughput in Mbit/s) - log2(round-trip time in s)", source: "Remy, SIGCOMM 2013, §3.3, with delta = 1", of: remy },
];

/// In seconds; never 0.
fn latency(view: &View<'_>) -> f64 {
    view.past.rtt.as_secs_f64().max(1e-6)
}

fn aurora(view: &View<'_>) -> f64 {
    let packets = throughput(view) * 1e6 / PACKET.bits();
    1e-3 * (10.0 * packets - 1e3 * view.past.rtt.as_secs_f64() - 2e3 * loss(view))
}

fn orca(view: &View<'_>) -> f64 {
    relative(view, throughput(view) - 5.0 * lost(view)) * delay_metric(view)
}

/// With the weights that `trimtab_cc` has, too.
fn vivace(view: &View<'_>) -> f64 {
    let x = sending(view);
    libm::pow(x, 0.9) - 900.0 * x * view.sight.latency_gradient - 11.35 * x * loss(view)
}

/// With the sigmoid's steepness of 100, as in `trimtab_cc`.
fn allegro(view: &View<'_>) -> f64 {
    let (x, loss) = (sending(view), loss(view));
    let sigmoid = 1.0 / (1.0 + libm::exp(100.0 * (loss - 0.05)));
    x * (1.0 - loss) * sigmoid - x * loss
}

/// Nothing arrived counts as 1 kbit/s.
fn remy(view: &View<'_>) -> f64 {
    libm::log2(throughput(view).max(1e-3)) - libm::log2(latency(view))
}
