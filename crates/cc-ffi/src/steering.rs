//! What steers a connection: its reports come from the events of the connection, and it acts by the
//! connection's timer.

#[cfg(feature = "select")]
use alloc::boxed::Box;

use trimtab_cc::{Ack, CongestionControl, Controller, Loss, Sent, Spec};
use trimtab_qoe::{Factors, Model};
#[cfg(feature = "select")]
use trimtab_steer::select::Selector;
use trimtab_steer::{Action, Collector, KnobValues, Mortise, MortiseConfig, Snapshot, Steer};
use trimtab_units::{Bytes, Duration, Time};

/// Reports are no closer together than this.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What decides.
#[derive(Clone, Debug)]
#[cfg_attr(
    feature = "select",
    expect(clippy::large_enum_variant, reason = "what steers is in a box of its own")
)]
enum By {
    Mortise(Mortise),
    #[cfg(feature = "select")]
    Selector(Box<Selector>),
}

impl By {
    fn steer(&mut self) -> &mut dyn Steer {
        match self {
            Self::Mortise(mortise) => mortise,
            #[cfg(feature = "select")]
            Self::Selector(selector) => &mut **selector,
        }
    }
}

/// What steers, and what it needs to know of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    by: By,
    collector: Collector,
    /// When the next report is due.
    due: Time,
    srtt: Duration,
    min_rtt: Duration,
    inflight: Bytes,
    factors: Factors,
    unsent: Bytes,
}

impl Steering {
    /// Mortise by a QoE model, from `now` on. The first report comes a round trip after the first
    /// acknowledgement.
    pub(crate) fn new(model: Model, now: Time) -> Self {
        Self::by(By::Mortise(Mortise::new(MortiseConfig::new(model))), now)
    }

    /// A choice of algorithms, from `now` on.
    #[cfg(feature = "select")]
    pub(crate) fn selecting(selector: Selector, now: Time) -> Self {
        Self::by(By::Selector(Box::new(selector)), now)
    }

    fn by(by: By, now: Time) -> Self {
        Self {
            by,
            collector: Collector::new(now),
            due: Time::MAX,
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            inflight: Bytes::ZERO,
            factors: Factors::new(),
            unsent: Bytes::ZERO,
        }
    }

    /// What chooses; `None` where Mortise steers.
    #[cfg(feature = "select")]
    pub(crate) fn selector(&self) -> Option<&Selector> {
        match &self.by {
            By::Selector(selector) => Some(selector),
            By::Mortise(_) => None,
        }
    }

    /// What collects the reports, to tell it of responses.
    #[cfg(feature = "select")]
    pub(crate) fn collector_mut(&mut self) -> &mut Collector {
        &mut self.collector
    }

    /// Bytes of responses that wait to be sent for the first time.
    #[cfg(feature = "select")]
    pub(crate) fn set_unsent(&mut self, unsent: Bytes) {
        self.unsent = unsent;
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

    /// Reports, where it is time, and turns the knobs of the algorithm by the answer. Gives what is
    /// to take over from it.
    pub(crate) fn on_timer(&mut self, now: Time, mss: Bytes, cca: &mut Controller) -> Option<Spec> {
        if now < self.due {
            return None;
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
                unsent: self.unsent,
                knobs: KnobValues::of(cca),
                factors: self.factors,
            },
        );
        let action = self.by.steer().on_report(&report);
        self.await_report(now);
        match action? {
            Action::Set(values) => {
                let set = values.apply(cca);
                debug_assert!(set.is_ok(), "Mortise knows the knobs of what it steers");
                None
            }
            Action::Switch { to, .. } => Some(to),
        }
    }

    fn await_report(&mut self, now: Time) {
        self.due = now + self.by.steer().interval(self.srtt).max(INTERVAL_MIN);
    }
}

#[cfg(all(test, feature = "select"))]
mod tests {
    use super::*;

    /// What `trimtab-cc-select.h` promises.
    #[test]
    fn a_connection_that_a_policy_chooses_for_takes_seven_kilobytes() {
        assert!(size_of::<Steering>() + size_of::<Selector>() <= 7 * 1024);
    }
}
