//! MOCC: Aurora whose network sees, too, how much throughput, delay and loss are worth. So one
//! network serves many preferences.
//!
//! Read first: Ma et al., "Multi-Objective Congestion Control", EuroSys 2022. What the network sees
//! of the path, and what it does, are Aurora's: the authors' program is a change of that
//! (`swz21/MOCC`, `PCC-RL/src/gym/network_sim.py`). Weights stand after the history, and make one.
//! What differs from Aurora's program differs here as well.

use alloc::sync::Arc;
use core::fmt;

use trimtab_units::{Bytes, Duration, Rate};

use super::{Aurora, History, Network};
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Sent, Timeout};

/// Its name on the command line.
pub(crate) const NAME: &str = "mocc";
/// What throughput, delay and loss are worth; together one.
pub const WEIGHTS: usize = 3;

/// What decides.
pub trait Chooser: fmt::Debug + Send + Sync {
    /// The change of the rate after a history, by these weights, in units of the step.
    fn change(&self, history: &History, weights: &[f64; WEIGHTS]) -> f64;
}

knobs! {
    /// The values of its knobs. Weights: the authors' `loaded_client.py`; the rest: Aurora's.
    struct Values {
        throughput: f64 = 0.8, 0.01..=1.0, "1",
            "what a share of the link is worth, next to the other weights; the three are scaled to \
             one";
        delay: f64 = 0.1, 0.01..=1.0, "1",
            "what a short round-trip time is worth; more queues less";
        loss: f64 = 0.1, 0.01..=1.0, "1", "what it is worth that nothing is lost";
        step: f64 = 0.025, 0.005..=0.2, "1",
            "what a change of one does to the rate, as a share; the authors trained with 0.025, \
             and their sender has 0.05; more follows the path sooner and wanders more";
        initial_rate: f64 = 6.0, 0.1..=300.0, "Mbit/s",
            "the first rate; more finds fast links sooner and floods slow ones";
        rate_min: f64 = 0.5, 0.05..=100.0, "Mbit/s", "the rate never falls below it";
        rate_max: f64 = 300.0, 1.0..=10_000.0, "Mbit/s", "the rate never rises above it";
    }
}

/// A chooser with the weights of one connection.
#[derive(Debug)]
struct Weighted {
    network: Arc<dyn Chooser>,
    weights: [f64; WEIGHTS],
}

impl Network for Weighted {
    fn change(&self, history: &History) -> f64 {
        self.network.change(history, &self.weights)
    }
}

/// The MOCC state machine: that of Aurora, and weights.
#[derive(Clone, Debug)]
pub struct Mocc {
    aurora: Aurora,
    values: Values,
    network: Arc<dyn Chooser>,
}

impl Mocc {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection by this network.
    pub fn new(config: &Config, network: Arc<dyn Chooser>) -> Self {
        let values = Values::default();
        let aurora = Aurora::new(config, weighted(&network, &values));
        Self { aurora, values, network }
    }

    fn on_knob(&mut self, place: usize) {
        const RATES: usize = Knob::place(Values::KNOBS, "step");
        if place < RATES {
            self.aurora.network = weighted(&self.network, &self.values);
        } else {
            let Values { step, initial_rate, rate_min, rate_max, .. } = self.values;
            self.aurora.values = super::Values { step, initial_rate, rate_min, rate_max };
            self.aurora.on_knob(place - RATES);
        }
    }
}

fn weighted(network: &Arc<dyn Chooser>, values: &Values) -> Arc<dyn Network> {
    let weights = [values.throughput, values.delay, values.loss];
    let sum: f64 = weights.iter().sum();
    Arc::new(Weighted { network: network.clone(), weights: weights.map(|weight| weight / sum) })
}

impl CongestionControl for Mocc {
    fn on_sent(&mut self, sent: &Sent) {
        self.aurora.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.aurora.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.aurora.on_loss(loss);
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.aurora.on_marked(marked);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.aurora.on_timeout(timeout);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.aurora.on_mtu(limits);
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.aurora.on_idle(idle);
    }

    fn window(&self) -> Bytes {
        self.aurora.window()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.aurora.pacing_rate()
    }

    fn phase(&self) -> Phase {
        self.aurora.phase()
    }

    fn manages_recovery(&self) -> bool {
        self.aurora.manages_recovery()
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Mocc {
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        self.aurora.operating_point(path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.aurora.take_over(from);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.aurora.inherit(window, srtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;
    use crate::testing::link::MSS;
    use trimtab_units::Time;

    /// Says what throughput is worth less what delay is.
    #[derive(Debug)]
    struct Told;

    impl Chooser for Told {
        fn change(&self, _history: &History, weights: &[f64; WEIGHTS]) -> f64 {
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{weights:?}");
            weights[0] - weights[1]
        }
    }

    /// The rate in Mbit/s after one interval.
    fn rate(knobs: &[(&str, f64)]) -> f64 {
        let mut mocc = Mocc::new(&Config::with_mss(MSS, 0), Arc::new(Told));
        for (name, value) in knobs {
            crate::set_knob(&mut mocc, name, *value).unwrap();
        }
        for ms in [100, 250] {
            let (now, rtt) = (Time::from_millis(ms), Duration::from_millis(100));
            mocc.on_ack(&acked(now, now - rtt, MSS * 4, rtt));
        }
        mocc.pacing_rate().unwrap().mbps()
    }

    /// `loaded_agent.py`: the network sees the weights next to the history; they make one.
    #[test]
    fn the_network_sees_the_weights_of_the_connection() {
        assert!((rate(&[]) - 6.0 * (1.0 + 0.7 * 0.025)).abs() < 1e-5);
        let delay = [("throughput", 0.05), ("delay", 0.4), ("loss", 0.05)];
        assert!((rate(&delay) - 6.0 / (1.0 + 0.7 * 0.025)).abs() < 1e-5);
    }

    #[test]
    fn knobs_of_the_rate_are_auroras() {
        assert!((rate(&[("initial_rate", 2.0), ("step", 0.1)]) - 2.0 * 1.07).abs() < 1e-5);
        assert_eq!(rate(&[("rate_max", 1.0)]), 1.0);
        assert!((rate(&[("rate_min", 50.0)]) - 50.0 * (1.0 + 0.7 * 0.025)).abs() < 1e-4);
    }
}
