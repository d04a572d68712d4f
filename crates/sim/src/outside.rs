//! A window and a pacing rate that are set from outside the simulation: a learning agent, a search, a
//! researcher's script. What such a flow saw comes in the same reports as a steering gets.

use trimtab_cc::{Ack, Loss, Phase, Sent};
use trimtab_qoe::Factors;
use trimtab_steer::select::Slope;
use trimtab_steer::{Collector, KnobValues, Report, Snapshot};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// What a flow is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dial {
    /// The most that may be in flight.
    pub window: Bytes,
    /// The rate to pace at; `None` leaves that to the transport, which goes by the window.
    pub rate: Option<Rate>,
    /// Whether the world stops at the flow's next acknowledgement
    /// ([`World::run_to_decision`](crate::World::run_to_decision)).
    pub stop: bool,
}

/// What a flow that is set from outside saw in an interval.
#[derive(Clone, Debug)]
pub struct Sight {
    /// What a steering would get. It names no algorithm.
    pub report: Report,
    /// By how much the round-trip time grew with the time of sending, in s/s: the slope of a line
    /// through the interval's samples (PCC Vivace, NSDI 2018, §2.1; Aurora, ICML 2019, §3.1). 0 with
    /// fewer than two.
    pub latency_gradient: f64,
}

/// The governor of such a flow.
#[derive(Clone, Debug)]
pub struct Outside {
    dial: Dial,
    /// An acknowledgement came at which the world is to stop.
    waits: bool,
    collector: Collector,
    since: Time,
    /// Round-trip times in seconds, over the seconds from then to when their packets were sent.
    latency: Slope,
}

impl Outside {
    pub(crate) fn new(dial: Dial) -> Self {
        let (collector, latency) = (Collector::default(), Slope::default());
        Self { dial, waits: false, collector, since: Time::ZERO, latency }
    }

    /// What it is set to.
    pub fn dial(&self) -> Dial {
        self.dial
    }

    pub(crate) fn set(&mut self, dial: Dial) {
        (self.dial, self.waits) = (dial, false);
    }

    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    pub(crate) fn go_on(&mut self) {
        self.waits = false;
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.collector.on_sent(sent);
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.collector.on_ack(ack);
        if let Some(rtt) = ack.rtt {
            // Most were sent before the interval: times subtract to no less than 0.
            let sent_at = ack.newest_sent_at.as_secs_f64() - self.since.as_secs_f64();
            self.latency.add(1.0, sent_at, rtt.as_secs_f64());
        }
        self.waits = self.dial.stop;
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.collector.on_loss(loss);
    }

    /// Ends the interval, and begins the next.
    pub(crate) fn take(&mut self, now: Time, host: Host) -> Sight {
        let end = Snapshot {
            algorithm: "",
            srtt: host.srtt,
            min_rtt: host.min_rtt,
            window: self.dial.window,
            inflight: host.inflight,
            mss: host.mss,
            phase: Phase::Steady,
            unsent: Bytes::ZERO,
            knobs: KnobValues::default(),
            factors: Factors::new(),
        };
        let latency_gradient = std::mem::take(&mut self.latency).slope();
        self.since = now;
        Sight { report: self.collector.report(now, end), latency_gradient }
    }
}

/// What the governor cannot see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) srtt: Duration,
    pub(crate) min_rtt: Duration,
    pub(crate) inflight: Bytes,
    pub(crate) mss: Bytes,
}
