//! A connection that the engine of a fleet configures: what it saw of an interval, under which configuration.

use trimtab_datapath::Totals;
use trimtab_fleet_client::edge::{Edge, Interval, Key, Observation};
use trimtab_units::{Bytes, Duration, Rate};

/// Less says nothing of a rate: what a first window brings within one round trip.
const ACKED_MIN: Bytes = Bytes::new(14_600);

/// What a connection saw since an interval or its configuration began.
#[derive(Clone, Debug, Default)]
struct Seen {
    acked: Bytes,
    lost: Bytes,
    busy: Duration,
    rtt_sum: Duration,
    rtt_count: u64,
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
            rtt: (self.rtt_count > 0).then(|| self.rtt_sum / self.rtt_count),
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
    /// What was taken in until now, of all since the connection began.
    counted: Totals,
    seen: Seen,
}

impl Part {
    /// `before` is not attributed: the connection ran another algorithm then.
    pub(crate) fn new(key: Key, before: Totals) -> Self {
        let (interval, seen) = (Interval::default(), Seen::default());
        Self { key, version: None, interval, counted: before, seen }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Whether it has had a configuration.
    pub(crate) fn has_followed(&self) -> bool {
        self.version.is_some()
    }

    /// Takes in what was measured since the last time.
    pub(crate) fn on_totals(&mut self, now: Totals) {
        let (seen, before) = (&mut self.seen, std::mem::replace(&mut self.counted, now));
        // Differences of sizes and durations end at zero.
        seen.acked += now.acked - before.acked;
        seen.lost += now.lost - before.lost;
        seen.busy += now.busy - before.busy;
        seen.rtt_sum += now.rtt_sum - before.rtt_sum;
        seen.rtt_count += now.rtt_count.saturating_sub(before.rtt_count);
    }

    /// Leaves out what was measured since the last time.
    pub(crate) fn leave_out(&mut self, now: Totals) {
        self.counted = now;
    }

    /// Takes in how long responses took that have ended.
    pub(crate) fn on_responses(&mut self, times: impl IntoIterator<Item = Duration>) {
        self.seen.request_times.extend(times);
    }

    /// Hands in what it saw of an interval that is over, and gives the configuration where there is
    /// another one than it runs.
    pub(crate) fn follow(
        &mut self,
        edge: &Edge,
    ) -> Option<trimtab_fleet_client::edge::Configuration> {
        let force = edge.in_force(&self.key)?;
        let (version, interval) = (force.configuration.version, edge.interval(&force));
        let changed = self.version != Some(version);
        if changed || interval != self.interval {
            self.hand_in(edge);
            (self.version, self.interval) = (Some(version), interval);
        }
        changed.then(|| force.configuration.clone())
    }

    /// The connection runs something else than the engine chose, until it follows again.
    pub(crate) fn pause(&mut self, edge: &Edge) {
        self.hand_in(edge);
        self.version = None;
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
