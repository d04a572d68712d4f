//! Mortise on a connection: its reports come from the events of the connection, and its knobs turn
//! by the connection's timer.

use trimtab_cc::{Ack, CongestionControl, Controller, Loss, Sent, Spec};
use trimtab_qoe::{Factors, Model};
use trimtab_steer::{Action, Collector, KnobValues, Mortise, MortiseConfig, Snapshot, Steer};
use trimtab_units::{Bytes, Duration, Time};

/// Reports are no closer together than this.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Mortise, and what it needs to know of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    mortise: Mortise,
    collector: Collector,
    /// When the next report is due.
    due: Time,
    srtt: Duration,
    min_rtt: Duration,
    inflight: Bytes,
    factors: Factors,
}

impl Steering {
    /// Steering by a QoE model, from `now` on. The first report comes a round trip after the first
    /// acknowledgement.
    pub(crate) fn new(model: Model, now: Time) -> Self {
        Self {
            mortise: Mortise::new(MortiseConfig::new(model)),
            collector: Collector::new(now),
            due: Time::MAX,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            inflight: Bytes::ZERO,
            factors: Factors::new(),
        }
    }

    /// What has to run under it.
    pub(crate) fn algorithm() -> Spec {
        Mortise::algorithm()
    }

    /// The application's factors.
    pub(crate) fn factors_mut(&mut self) -> &mut Factors {
        &mut self.factors
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.collector.on_sent(sent);
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.collector.on_ack(ack);
        (self.srtt, self.min_rtt, self.inflight) = (ack.srtt, ack.min_rtt, ack.inflight);
        if self.due == Time::MAX {
            self.await_report(ack.now);
        }
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.collector.on_loss(loss);
    }

    pub(crate) fn next_timer(&self) -> Time {
        self.due
    }

    /// Reports, where it is time, and turns the knobs of the algorithm by the answer.
    pub(crate) fn on_timer(&mut self, now: Time, mss: Bytes, cca: &mut Controller) {
        if now < self.due {
            return;
        }
        let report = self.collector.report(
            now,
            Snapshot {
                algorithm: cca.name(),
                srtt: self.srtt,
                min_rtt: self.min_rtt,
                window: cca.window(),
                inflight: self.inflight,
                mss,
                phase: cca.phase(),
                unsent: Bytes::ZERO,
                knobs: KnobValues::of(cca),
                factors: self.factors,
            },
        );
        if let Some(Action::Set(values)) = self.mortise.on_report(&report) {
            let set = values.apply(cca);
            debug_assert!(set.is_ok(), "Mortise knows the knobs of what it steers");
        }
        self.await_report(now);
    }

    fn await_report(&mut self, now: Time) {
        self.due = now + self.mortise.interval(self.srtt).max(INTERVAL_MIN);
    }
}
