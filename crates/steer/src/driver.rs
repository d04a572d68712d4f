//! What a transport holds of a connection's congestion control: the algorithm, what it reports to
//! its steering, and when.

use alloc::boxed::Box;
use core::fmt;

use trimtab_cc::migrate::Switcher;
use trimtab_cc::muses::State;
use trimtab_cc::resume::{CarefulResume, Resume, Resumption};
use trimtab_cc::{
    Ack, Config, CongestionControl, Controller, Decision, Discarded, Feedback, Idle, KnobError,
    Loss, LostPacket, Marked, Phase, Probe, Sent, Spec, Timeout,
};
use trimtab_qoe::Factors;
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{Action, Collector, KnobValues, Needs, Report, Snapshot};

/// Reports are no closer together than this.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// One connection's algorithm under steering, without I/O or a clock. Events of the transport go
/// in, as [`trimtab_cc::transport`] makes them; a window, a pacing rate, the time of the next timer
/// and [`Report`]s come out; an [`Action`] of the steering goes in. The simulator runs on it.
///
/// ```
/// use trimtab_cc::{Config, CongestionControl};
/// use trimtab_qoe::{Factors, Model};
/// use trimtab_steer::{Driver, HostView, Mortise, MortiseConfig, Steer};
/// use trimtab_units::{Bytes, Duration, Time};
///
/// let mut steering = Mortise::new(MortiseConfig::new(Model::download()));
/// let mut driver = Driver::from(Mortise::algorithm().build(&Config::default()));
/// let rtt = Duration::from_millis(20);
/// driver.on_established(rtt);
/// driver.report_from(Time::ZERO, steering.interval(rtt), steering.needs());
/// // … packets are sent and acknowledged, until the timer rings.
/// let now = driver.next_timer().unwrap();
/// assert_eq!(now, Time::from_millis(20));
/// driver.on_timer(now);
/// let view = HostView {
///     srtt: rtt,
///     min_rtt: rtt,
///     inflight: Bytes::ZERO,
///     mss: Bytes::new(1500),
///     unsent: Bytes::ZERO,
///     factors: Factors::new(),
/// };
/// if let Some(report) = driver.report(now, view) {
///     if let Some(action) = steering.on_report(&report) {
///         driver.act(now, &action).unwrap();
///     }
///     driver.report_after(now, steering.interval(report.srtt));
/// }
/// assert_eq!(driver.next_timer(), Some(Time::from_millis(40)));
/// ```
#[derive(Clone, Debug)]
pub struct Driver {
    running: Running,
    /// `None` where nobody wants reports.
    collector: Option<Collector>,
    /// What the reports are needed for.
    needs: Needs,
    /// When the next report is due; [`Time::MAX`] for never.
    report_at: Time,
    /// Answers an algorithm that waits for decisions; `None` leaves that to the host.
    agent: Option<Box<dyn Agent>>,
}

/// A policy that decides for an algorithm from outside, with what it remembers of the connection.
pub trait Agent: fmt::Debug + Send + Sync {
    /// What the algorithm is to do in this state ([`CongestionControl::awaiting`]).
    fn answer(&mut self, state: &State) -> Decision;

    /// A copy that goes on as this one would, for hosts that fork their connections.
    fn fork(&self) -> Box<dyn Agent>;
}

impl Clone for Box<dyn Agent> {
    fn clone(&self) -> Self {
        self.as_ref().fork()
    }
}

/// What runs. In boxes, since some algorithms are large: a copy of a driver then takes as long as
/// its own algorithm asks for.
#[derive(Clone, Debug)]
enum Running {
    /// One algorithm for good.
    Fixed(Box<Controller>),
    /// Algorithms that take over from each other.
    Switching(Box<Switcher>),
    /// One algorithm, whose connection resumes.
    Resuming(Box<Resume<Controller>>),
    /// Algorithms that take over from each other, on a connection that resumes.
    SwitchingResuming(Box<Resume<Switcher>>),
}

/// What the driver of a connection cannot see, at the end of an interval.
#[derive(Clone, Copy, Debug)]
pub struct HostView {
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Lowest round-trip time since the connection began.
    pub min_rtt: Duration,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// Bytes of a full-size packet.
    pub mss: Bytes,
    /// Response bytes that wait to be sent for the first time; zero where this is not known.
    pub unsent: Bytes,
    /// The application's live factors.
    pub factors: Factors,
}

/// Why an action was not done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActionError {
    /// A knob cannot be set.
    Knob(KnobError),
    /// The connection was not prepared for another algorithm.
    NotSwitching,
}

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Knob(error) => write!(f, "cannot turn a knob: {error}"),
            Self::NotSwitching => f.write_str(
                "cannot switch the algorithm: the connection keeps nothing to hand over; \
                 make its driver from a Switcher",
            ),
        }
    }
}

impl core::error::Error for ActionError {}

impl From<Controller> for Driver {
    fn from(algorithm: Controller) -> Self {
        Self::new(Running::Fixed(Box::new(algorithm)))
    }
}

impl From<Switcher> for Driver {
    fn from(algorithms: Switcher) -> Self {
        Self::new(Running::Switching(Box::new(algorithms)))
    }
}

macro_rules! of_running {
    ($self:ident, $method:ident $(, $argument:expr)?) => {
        match &$self.running {
            Running::Fixed(cca) => cca.$method($($argument)?),
            Running::Switching(cca) => cca.$method($($argument)?),
            Running::Resuming(cca) => cca.$method($($argument)?),
            Running::SwitchingResuming(cca) => cca.$method($($argument)?),
        }
    };
    (mut $self:ident, $method:ident, $argument:expr) => {
        match &mut $self.running {
            Running::Fixed(cca) => cca.$method($argument),
            Running::Switching(cca) => cca.$method($argument),
            Running::Resuming(cca) => cca.$method($argument),
            Running::SwitchingResuming(cca) => cca.$method($argument),
        }
    };
}

macro_rules! forward {
    ($($event:ident: $Type:ty;)*) => {
        $(
            #[doc = concat!("See [`CongestionControl::", stringify!($event), "`].")]
            #[inline]
            pub fn $event(&mut self, event: $Type) {
                of_running!(mut self, $event, event);
            }
        )*
    };
}

impl Driver {
    fn new(running: Running) -> Self {
        let (needs, report_at) = (Needs::default(), Time::MAX);
        Self { running, collector: None, needs, report_at, agent: None }
    }

    /// This driver, with an agent that answers where the algorithm waits for decisions.
    pub fn with_agent(self, agent: Box<dyn Agent>) -> Self {
        Self { agent: Some(agent), ..self }
    }

    /// This driver of a new connection, which resumes what an earlier one observed, or observes for a
    /// later one (RFC 9959). `limits` are those that the algorithm was built with.
    pub fn resuming(self, limits: &Config, how: Resumption) -> Self {
        let running = match self.running {
            Running::Fixed(cca) => Running::Resuming(Box::new(Resume::new(*cca, limits, how))),
            Running::Resuming(before) => {
                Running::Resuming(Box::new(Resume::new(before.into_inner(), limits, how)))
            }
            Running::Switching(cca) => {
                Running::SwitchingResuming(Box::new(Resume::new(*cca, limits, how)))
            }
            Running::SwitchingResuming(before) => {
                Running::SwitchingResuming(Box::new(Resume::new(before.into_inner(), limits, how)))
            }
        };
        Self { running, ..self }
    }

    /// How far the connection has resumed, and what it observed; `None` where it does neither.
    pub fn resume(&self) -> Option<&CarefulResume> {
        match &self.running {
            Running::Fixed(_) | Running::Switching(_) => None,
            Running::Resuming(cca) => Some(cca.state()),
            Running::SwitchingResuming(cca) => Some(cca.state()),
        }
    }

    /// Lets the agent answer the state for which the algorithm waits, where there are both. The
    /// host calls it once all events of an acknowledgement are in.
    #[inline]
    pub fn decide(&mut self) {
        if let Some(agent) = &mut self.agent
            && let Some(state) = of_running!(self, awaiting)
        {
            let decision = agent.answer(state);
            self.on_decision(decision);
        }
    }

    forward! {
        on_established: Duration;
        on_packet_lost: &LostPacket;
        on_marked: &Marked;
        on_feedback: &Feedback<'_>;
        on_timeout: &Timeout;
        on_discarded: &Discarded;
        on_spurious_loss: Time;
        on_idle: &Idle;
        on_mtu: &Config;
        on_decision: Decision;
    }

    /// See [`CongestionControl::on_sent`].
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        of_running!(mut self, on_sent, sent);
        if let Some(collector) = &mut self.collector {
            collector.on_sent(sent);
        }
    }

    /// See [`CongestionControl::on_ack`].
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        of_running!(mut self, on_ack, ack);
        if let Some(collector) = &mut self.collector {
            collector.on_ack(ack);
        }
    }

    /// See [`CongestionControl::on_loss`].
    #[inline]
    pub fn on_loss(&mut self, loss: &Loss) {
        of_running!(mut self, on_loss, loss);
        if let Some(collector) = &mut self.collector {
            collector.on_loss(loss);
        }
    }

    /// The connection goes on over another path, where nothing that was learnt holds (RFC 9000
    /// §9.4): `fresh` is what a new connection would have. What it runs by that name keeps the
    /// knobs that were turned; the interval of the next report begins now.
    pub fn on_path_change(&mut self, now: Time, fresh: impl Into<Self>) {
        let (before, values) = (self.name(), KnobValues::of(self.algorithm()));
        let fresh = fresh.into();
        (self.running, self.agent) = (fresh.running, fresh.agent);
        if self.name() == before {
            let kept = values.apply(self.algorithm_mut());
            debug_assert!(kept.is_ok(), "they are the algorithm's own values");
        }
        if let Some(collector) = &mut self.collector {
            *collector = Collector::for_needs(now, self.needs);
        }
    }

    /// Reports are wanted, by a steering that needs this: the first after this interval. A
    /// switching connection needs the events from its first packet on, so call it before that.
    pub fn report_from(&mut self, now: Time, interval: Duration, needs: Needs) {
        (self.collector, self.needs) = (Some(Collector::for_needs(now, needs)), needs);
        self.report_after(now, interval);
    }

    /// The next report is due after this interval, or after a millisecond where that is longer.
    pub fn report_after(&mut self, now: Time, interval: Duration) {
        self.report_at = now + interval.max(INTERVAL_MIN);
    }

    /// The report that is due; `None` while none is. The next comes when
    /// [`report_after`](Self::report_after) asks for it.
    pub fn report(&mut self, now: Time, view: HostView) -> Option<Report> {
        if !self.is_report_due(now) {
            return None;
        }
        self.report_at = Time::MAX;
        let end = Snapshot {
            algorithm: self.name(),
            srtt: view.srtt,
            min_rtt: view.min_rtt,
            window: self.window(),
            inflight: view.inflight,
            mss: view.mss,
            phase: self.phase(),
            unsent: view.unsent,
            knobs: KnobValues::of(self.algorithm()),
            factors: view.factors,
        };
        Some(self.collector.as_mut()?.report(now, end))
    }

    /// Whether a report is due.
    #[inline]
    pub fn is_report_due(&self, now: Time) -> bool {
        self.report_at <= now
    }

    /// Does what the steering asks for.
    ///
    /// # Errors
    /// The algorithm lacks a knob or refuses a value, or the connection cannot switch: nothing
    /// changes.
    pub fn act(&mut self, now: Time, action: &Action) -> Result<(), ActionError> {
        match action {
            Action::Set(values) => values.apply(self.algorithm_mut()).map_err(ActionError::Knob),
            Action::Switch { to, how } => {
                self.switcher_mut()?.request(*to, *how, now);
                Ok(())
            }
        }
    }

    /// Turns the knobs of the algorithm that runs to those of another spec of it
    /// ([`Switcher::turn`]). `false` where another algorithm runs, or the connection cannot switch:
    /// nothing changes.
    pub fn turn(&mut self, to: Spec) -> bool {
        self.switcher_mut().is_ok_and(|switcher| switcher.turn(to))
    }

    /// Lets another algorithm take over at once, since the running one does harm
    /// ([`Switcher::give_way`]).
    ///
    /// # Errors
    /// The connection cannot switch: nothing changes.
    pub fn give_way(&mut self, now: Time, to: Spec) -> Result<(), ActionError> {
        self.switcher_mut()?.give_way(to, now);
        Ok(())
    }

    fn switcher_mut(&mut self) -> Result<&mut Switcher, ActionError> {
        match &mut self.running {
            Running::Switching(cca) => Ok(cca),
            Running::SwitchingResuming(cca) => Ok(cca.inner_mut()),
            Running::Fixed(_) | Running::Resuming(_) => Err(ActionError::NotSwitching),
        }
    }

    /// What collects the reports, for a host that sees the application's responses; `None` where
    /// nobody wants reports.
    #[inline]
    pub fn collector_mut(&mut self) -> Option<&mut Collector> {
        self.collector.as_mut()
    }

    /// When [`on_timer`](Self::on_timer) or [`report`](Self::report) has something to do; `None`
    /// for never.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        let own = of_running!(self, next_timer).unwrap_or(Time::MAX);
        Some(own.min(self.report_at)).filter(|&at| at != Time::MAX)
    }

    /// That time has come: calls the algorithm if it is the algorithm's.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        if of_running!(self, next_timer).is_some_and(|at| at <= now) {
            of_running!(mut self, on_timer, now);
        }
    }

    /// The most that may be in flight now.
    #[inline]
    pub fn window(&self) -> Bytes {
        of_running!(self, window)
    }

    /// The rate to pace at; `None` leaves it to the transport.
    #[inline]
    pub fn pacing_rate(&self) -> Option<Rate> {
        of_running!(self, pacing_rate)
    }

    /// See [`CongestionControl::target`].
    #[inline]
    pub fn target(&self) -> Option<Rate> {
        of_running!(self, target)
    }

    /// The bitrate that an encoder should fill, headers included: the algorithm's
    /// [`target`](Self::target), or for one without what its window lets pass in a round trip of
    /// this length, at most its pacing rate. Muses drove WebRTC's encoder by such a rate (§IV-E).
    pub fn encoder_rate(&self, srtt: Duration) -> Rate {
        self.target().unwrap_or_else(|| {
            let by_window = self.window() / srtt;
            self.pacing_rate().map_or(by_window, |pacing| pacing.min(by_window))
        })
    }

    /// See [`CongestionControl::take_probe`].
    #[inline]
    pub fn take_probe(&mut self, now: Time) -> Option<Probe> {
        of_running!(mut self, take_probe, now)
    }

    /// See [`CongestionControl::phase`].
    #[inline]
    pub fn phase(&self) -> Phase {
        of_running!(self, phase)
    }

    /// See [`CongestionControl::ssthresh`].
    #[inline]
    pub fn ssthresh(&self) -> Option<Bytes> {
        of_running!(self, ssthresh)
    }

    /// See [`CongestionControl::manages_recovery`].
    #[inline]
    pub fn manages_recovery(&self) -> bool {
        of_running!(self, manages_recovery)
    }

    /// The name of the algorithm that runs.
    #[inline]
    pub fn name(&self) -> &'static str {
        self.algorithm().name()
    }

    /// The algorithm that runs.
    #[inline]
    pub fn algorithm(&self) -> &Controller {
        match &self.running {
            Running::Fixed(cca) => cca,
            Running::Switching(cca) => cca.controller(),
            Running::Resuming(cca) => cca.inner(),
            Running::SwitchingResuming(cca) => cca.inner().controller(),
        }
    }

    /// The algorithm that runs, to turn its knobs.
    #[inline]
    pub fn algorithm_mut(&mut self) -> &mut Controller {
        match &mut self.running {
            Running::Fixed(cca) => cca,
            Running::Switching(cca) => cca.controller_mut(),
            Running::Resuming(cca) => cca.inner_mut(),
            Running::SwitchingResuming(cca) => cca.inner_mut().controller_mut(),
        }
    }

    /// What switches, where the connection was prepared for it.
    #[inline]
    pub fn switcher(&self) -> Option<&Switcher> {
        match &self.running {
            Running::Fixed(_) | Running::Resuming(_) => None,
            Running::Switching(cca) => Some(cca),
            Running::SwitchingResuming(cca) => Some(cca.inner()),
        }
    }
}

#[cfg(test)]
mod tests;
