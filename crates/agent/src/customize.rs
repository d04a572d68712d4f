//! A connection that the engine of a fleet configures: what it saw of an interval, under which configuration.

use trimtab_edge::{Edge, Interval, Key, Observation};
use trimtab_steer::Report;
use trimtab_units::{Bytes, Duration, Rate};

/// Less says nothing of a rate: what a first window brings within one round trip.
const ACKED_MIN: Bytes = Bytes::new(14_600);

/// What a connection saw since an interval or its configuration began.
#[derive(Clone, Debug, Default)]
struct Seen {
    acked: Bytes,
    lost: Bytes,
    busy: Duration,
    /// Sum of the reports' mean round-trip times, each counted by what was acknowledged meanwhile.
    rtt_sum_s: f64,
    rtt_weight: f64,
    request_times: Vec<Duration>,
}

impl Seen {
    fn observation(self) -> Option<Observation> {
        let all = self.acked + self.lost;
        if all.is_zero() && self.request_times.is_empty() {
            return None;
        }
        let measured = self.acked >= ACKED_MIN && !self.busy.is_zero();
        Some(Observation {
            throughput: measured.then(|| {
                Rate::from_bytes_per_sec_f64(self.acked.as_f64() / self.busy.as_secs_f64())
            }),
            rtt: (self.rtt_weight > 0.0)
                .then(|| Duration::from_secs_f64(self.rtt_sum_s / self.rtt_weight)),
            loss: (!all.is_zero()).then(|| self.lost.ratio(all)),
            request_times: self.request_times,
            others: Vec::new(),
        })
    }
}

/// The part of one connection in its aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    key: Key,
    /// Of the configuration that it runs.
    version: Option<u64>,
    interval: Interval,
    seen: Seen,
}

impl Part {
    pub(crate) fn new(key: Key) -> Self {
        Self { key, version: None, interval: Interval::default(), seen: Seen::default() }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Adds what a report says, and the responses that have ended.
    pub(crate) fn on_report(&mut self, report: &Report, request_times: &[Duration]) {
        let seen = &mut self.seen;
        seen.acked += report.acked;
        seen.lost += report.lost;
        seen.busy += report.busy;
        if let Some(rtt) = report.rtt_mean {
            let weight = report.acked.as_f64().max(1.0);
            seen.rtt_sum_s += rtt.as_secs_f64() * weight;
            seen.rtt_weight += weight;
        }
        seen.request_times.extend_from_slice(request_times);
    }

    /// Hands in what it saw of an interval that is over, and gives the configuration where there is another one than it runs.
    pub(crate) fn follow(&mut self, edge: &Edge) -> Option<trimtab_edge::Configuration> {
        let force = edge.in_force(&self.key)?;
        let (version, interval) = (force.configuration.version, edge.interval(&force));
        let changed = self.version != Some(version);
        if changed || interval != self.interval {
            self.hand_in(edge);
            (self.version, self.interval) = (Some(version), interval);
        }
        changed.then(|| force.configuration.clone())
    }

    /// Hands in what it saw until now: the connection ends, or runs something else from now on.
    pub(crate) fn hand_in(&mut self, edge: &Edge) {
        let seen = std::mem::take(&mut self.seen);
        if let Some(version) = self.version
            && let Some(observation) = seen.observation()
        {
            edge.record(&self.key, version, self.interval, &observation);
        }
    }
}
