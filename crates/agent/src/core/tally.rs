//! Sums over connections, per rule and arm: what metrics and `status` show. Never per connection.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_steer::safety::{Arm, Measured};
use trimtab_units::{Bytes, Duration};

/// Upper bounds of the classes of round-trip times, in seconds; above the last is one more class.
pub(crate) const RTT_BOUNDS_S: [f64; 9] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// Of one rule and arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Connections that came.
    pub opened: u64,
    /// Decisions, carried out or not.
    pub decisions: u64,
    /// Times that a connection went back to the fallback.
    pub fallbacks: u64,
    /// Connections that were left to somebody else.
    pub yielded: u64,
    /// Selections for which a learnt policy declined, so that the fallback was chosen.
    #[serde(default)]
    pub unanswered: u64,
    /// Connections in which the guard of a learnt policy let the fallback take over.
    #[serde(default)]
    pub alarms: u64,
    /// Switches to another algorithm that the kernel refused.
    #[serde(default)]
    pub refused_switches: u64,
    /// Bytes sent in measured seconds.
    pub sent_bytes: u64,
    /// Bytes lost in them.
    pub lost_bytes: u64,
    /// Seconds that were measured.
    pub windows: u64,
    /// Sum of their mean round-trip times.
    pub rtt_sum_s: f64,
    /// Windows by their mean round-trip time: up to each of the bounds, and above.
    pub rtt_counts: [u64; RTT_BOUNDS_S.len() + 1],
    /// Seconds that have a score.
    pub scored: u64,
    /// Sum of their scores.
    pub score_sum: f64,
    /// Sum of their throughputs in Mbit/s.
    pub throughput_sum_mbps: f64,
}

impl Tally {
    pub(crate) fn on_window(&mut self, measured: &Measured, score: Option<f64>) {
        let rtt = measured.point.delay.as_secs_f64();
        self.windows += 1;
        self.sent_bytes += measured.sent.get();
        self.lost_bytes += measured.lost.get();
        self.rtt_sum_s += rtt;
        let class = RTT_BOUNDS_S.iter().position(|bound| rtt <= *bound);
        self.rtt_counts[class.unwrap_or(RTT_BOUNDS_S.len())] += 1;
        if let Some(score) = score {
            self.scored += 1;
            self.score_sum += score;
            self.throughput_sum_mbps += measured.point.throughput.mbps();
        }
    }

    /// Mean score; `None` without any.
    pub fn score_mean(&self) -> Option<f64> {
        (self.scored > 0).then(|| self.score_sum / self.scored as f64)
    }

    /// Mean round-trip time; `None` without any.
    pub fn rtt_mean(&self) -> Option<Duration> {
        (self.windows > 0).then(|| Duration::from_secs_f64(self.rtt_sum_s / self.windows as f64))
    }

    /// Lost share of what was sent, 0 to 1.
    pub fn loss(&self) -> f64 {
        if self.sent_bytes == 0 {
            0.0
        } else {
            Bytes::new(self.lost_bytes).ratio(Bytes::new(self.sent_bytes))
        }
    }
}

/// All tallies, by rule and arm.
pub(crate) type Tallies = BTreeMap<(String, Arm), Tally>;

/// The name of connections for which there is no rule.
pub(crate) const NO_RULE: &str = "none";
