//! The log of one path: what is worth a record, and how often.

use std::mem;

use serde::Serialize;
use trimtab_cc::{Config as Limits, Phase};
use trimtab_steer::safety::Harm;
use trimtab_steer::{Action, Driver, KnobValues, Reason, Report};
use trimtab_units::{Bytes, Duration, Time};

use super::events::{
    AlgorithmSwitched, BytesLost, CongestionState, Header, KnobSet, Measured, Metrics, Nothing,
    PacketHeader, PacketLost, Parameters, Record, SchemeSet, Steered, millis,
};
use super::writer::Output;
use crate::plan;
use crate::steering::Steering;

/// What goes to the thread that writes at once, if it comes together sooner than `HAND_OVER`.
const CHUNK: usize = 8192;
/// How long a record waits at most before it is handed over, while the path is busy.
const HAND_OVER: Duration = Duration::from_secs(1);
/// Metrics are logged once a round trip at most, and no more often than this.
const METRICS: Duration = Duration::from_millis(5);

/// The log of a path.
#[derive(Debug)]
pub(crate) struct Trace {
    output: Output,
    buffer: Vec<u8>,
    /// The time of the last record.
    now: Time,
    handed_over: Time,
    /// The last sample of the round-trip time, and their mean deviation (RFC 9002 §5.3).
    rtt: Option<(Duration, Duration)>,
    shown: Metrics,
    metrics_at: Time,
    state: Option<&'static str>,
    app_limited: bool,
    algorithm: &'static str,
    scheme: String,
    resting: Option<Harm>,
    /// The application has set another scheme.
    asked: bool,
}

/// A path as its log sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) driver: &'a Driver,
    pub(crate) inflight: Bytes,
    /// Smoothed and lowest round-trip time; `None` before the first sample.
    pub(crate) rtt: Option<(Duration, Duration)>,
}

impl Trace {
    /// A log with its header.
    pub(super) fn begin(output: Output, header: &Header<'_>) -> Self {
        let mut trace = Self {
            output,
            buffer: Vec::new(),
            now: Time::ZERO,
            handed_over: Time::ZERO,
            rtt: None,
            shown: Metrics::default(),
            metrics_at: Time::ZERO,
            state: None,
            app_limited: false,
            algorithm: "",
            scheme: String::new(),
            resting: None,
            asked: false,
        };
        trace.append(header);
        trace
    }

    /// What the path begins with.
    pub(crate) fn on_begin(&mut self, limits: &Limits, driver: &Driver, scheme: &str) {
        let parameters = Parameters {
            initial_congestion_window: Some(driver.window().get()),
            minimum_congestion_window: Some(limits.min_window.get()),
            scheme: Some(scheme),
            ..parameters(limits)
        };
        self.record(Time::ZERO, "recovery:parameters_set", parameters);
        self.algorithm = driver.name();
        self.scheme_set(Time::ZERO, driver, scheme, "begin", None);
        self.follow(Time::ZERO, driver, None);
    }

    /// Packets have another size.
    pub(crate) fn on_mtu(&mut self, now: Time, limits: &Limits) {
        self.record(now, "recovery:parameters_set", parameters(limits));
    }

    /// A sample of the round-trip time, and the smoothed one before it; `None` at the first.
    pub(crate) fn on_rtt(&mut self, sample: Duration, smoothed: Option<Duration>) {
        self.rtt = Some(match (self.rtt, smoothed) {
            (Some((_, variance)), Some(smoothed)) => {
                (sample, (variance * 3 + smoothed.abs_diff(sample)) / 4)
            }
            _ => (sample, sample / 2),
        });
    }

    /// An acknowledgement was taken in.
    pub(crate) fn on_ack(&mut self, now: Time, sight: &Sight<'_>, app_limited: bool) {
        if now >= self.metrics_at {
            let srtt = sight.rtt.map_or(Duration::ZERO, |(srtt, _)| srtt);
            self.metrics_at = now + srtt.max(METRICS);
            self.app_limited = app_limited;
            self.metrics(now, sight);
        }
        self.follow(now, sight.driver, None);
        self.now = self.now.max(now);
        if now.since(self.handed_over) >= HAND_OVER {
            self.hand_over();
        }
    }

    /// A packet was declared lost.
    pub(crate) fn on_packet_lost(&mut self, now: Time, packet_number: u64, size: Bytes) {
        let (packet_type, length) = ("unknown", size.get());
        let header = PacketHeader { packet_type, packet_number, length };
        self.record(now, "recovery:packet_lost", PacketLost { header });
    }

    /// So many bytes were declared lost.
    pub(crate) fn on_bytes_lost(&mut self, now: Time, bytes: Bytes) {
        self.record(now, "trimtab:bytes_lost", BytesLost { bytes: bytes.get() });
    }

    /// The algorithm took in losses, of a congestion that lasts.
    pub(crate) fn on_losses(&mut self, now: Time, driver: &Driver, persistent: bool) {
        self.follow(now, driver, persistent.then_some("persistent_congestion"));
    }

    /// The algorithm took in a congestion mark.
    pub(crate) fn on_marked(&mut self, now: Time, driver: &Driver) {
        self.record(now, "trimtab:marked", Nothing {});
        self.follow(now, driver, Some("ecn"));
    }

    /// Losses were none.
    pub(crate) fn on_spurious_loss(&mut self, now: Time, driver: &Driver) {
        self.record(now, "trimtab:spurious_loss", Nothing {});
        self.follow(now, driver, None);
    }

    /// The application turned a knob.
    pub(crate) fn on_knob(&mut self, now: Time, knob: &str, value: f64) {
        self.record(now, "trimtab:knob_set", KnobSet { knob, value });
    }

    /// The application has set another scheme, which the next turn of the steering takes up.
    pub(crate) fn on_change(&mut self) {
        self.asked = true;
    }

    /// The steering did what was due.
    pub(crate) fn on_turn(&mut self, now: Time, steering: &mut Steering, driver: &Driver) {
        if let Some((action, refused)) = steering.take_acted()
            && let Some(report) = steering.last()
        {
            self.steered(now, steering, &action, refused, report);
        }
        let (resting, asked) = (steering.resting(), mem::take(&mut self.asked));
        if asked || steering.label() != self.scheme || resting != self.resting {
            let trigger = if asked { "application" } else { "guard" };
            self.resting = resting;
            self.scheme_set(now, driver, steering.label(), trigger, resting);
        }
        self.follow(now, driver, None);
    }

    /// The path is over.
    pub(crate) fn on_end(&mut self, now: Time, sight: &Sight<'_>) {
        self.metrics(now, sight);
        self.hand_over();
    }

    fn steered(
        &mut self,
        now: Time,
        steering: &Steering,
        action: &Action,
        refused: bool,
        report: &Report,
    ) {
        let (knobs, switch_to) = match action {
            Action::Set(knobs) => (*knobs, None),
            Action::Switch { to, .. } => (KnobValues::NONE, Some(plan::text(to))),
        };
        let insight = steering.insight();
        let steered = Steered {
            algorithm: report.algorithm,
            knobs,
            switch_to,
            reason: steering.reason().map(reason),
            refused,
            lambda: insight.preference.map(|hints| hints.lambda),
            tradeoff: insight.tradeoff,
            report: Measured {
                interval: millis(report.interval),
                acked: report.acked.get(),
                lost: report.lost.get(),
                rtt_mean: report.rtt_mean.map(millis),
                factors: &report.factors,
            },
        };
        self.record(now, "trimtab:steered", steered);
    }

    fn scheme_set(
        &mut self,
        now: Time,
        driver: &Driver,
        scheme: &str,
        trigger: &'static str,
        harm: Option<Harm>,
    ) {
        let old = mem::replace(&mut self.scheme, scheme.to_owned());
        let set = SchemeSet {
            old: Some(old.as_str()).filter(|old| !old.is_empty()),
            new: scheme,
            trigger,
            harm: harm.map(|harm| match harm {
                Harm::Loss => "loss",
                Harm::Delay => "delay",
            }),
            algorithm: driver.name(),
            knobs: KnobValues::of(driver.algorithm()),
        };
        self.record(now, "trimtab:scheme_set", set);
    }

    /// Another algorithm, or another state of the one that runs.
    fn follow(&mut self, now: Time, driver: &Driver, trigger: Option<&'static str>) {
        if driver.name() != self.algorithm {
            let old = mem::replace(&mut self.algorithm, driver.name());
            let congestion_window = driver.window().get();
            let switched = AlgorithmSwitched { old, new: driver.name(), congestion_window };
            self.record(now, "trimtab:algorithm_switched", switched);
        }
        let new = state(driver.phase(), self.app_limited);
        if self.state != Some(new) {
            let old = self.state.replace(new);
            let updated = CongestionState { old, new, trigger };
            self.record(now, "recovery:congestion_state_updated", updated);
        }
    }

    fn metrics(&mut self, now: Time, sight: &Sight<'_>) {
        let driver = sight.driver;
        let all = Metrics {
            min_rtt: sight.rtt.map(|(_, min)| millis(min)),
            smoothed_rtt: sight.rtt.map(|(srtt, _)| millis(srtt)),
            latest_rtt: self.rtt.map(|(latest, _)| millis(latest)),
            rtt_variance: self.rtt.map(|(_, variance)| millis(variance)),
            congestion_window: Some(driver.window().get()),
            bytes_in_flight: Some(sight.inflight.get()),
            ssthresh: driver.ssthresh().map(Bytes::get),
            pacing_rate: driver.pacing_rate().map(|rate| rate.bits_per_sec() as u64),
        };
        let changed = all.changed_since(&self.shown);
        if changed != Metrics::default() {
            self.shown = all;
            self.record(now, "recovery:metrics_updated", changed);
        }
    }

    fn record(&mut self, now: Time, name: &'static str, data: impl Serialize) {
        // A handle may speak at any time, and a stack's clock may step back by its granularity.
        self.now = self.now.max(now);
        self.append(&Record { time: millis(self.now.since(Time::ZERO)), name, data });
        if self.buffer.len() >= CHUNK {
            self.hand_over();
        }
    }

    /// A JSON text of a sequence (RFC 7464 §2.2).
    fn append(&mut self, record: &impl Serialize) {
        if self.output.has_ended() {
            return;
        }
        self.buffer.push(0x1E);
        serde_json::to_writer(&mut self.buffer, record).expect("the keys of all maps are strings");
        self.buffer.push(b'\n');
    }

    fn hand_over(&mut self) {
        self.handed_over = self.now;
        if !self.buffer.is_empty() {
            self.output.write(mem::take(&mut self.buffer));
        }
    }
}

fn parameters(limits: &Limits) -> Parameters<'static> {
    Parameters { max_datagram_size: limits.mss.get(), ..Parameters::default() }
}

/// The states of qlog, and where there is none, the name of ours.
fn state(phase: Phase, app_limited: bool) -> &'static str {
    match phase {
        Phase::Recovery => "recovery",
        _ if app_limited => "application_limited",
        Phase::SlowStart => "slow_start",
        Phase::Steady => "congestion_avoidance",
        Phase::Drain => "drain",
        Phase::ProbeRtt => "probe_rtt",
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Preference => "preference",
        Reason::Burst => "burst",
        Reason::Turn => "turn",
        Reason::Rule(_) => "rule",
        Reason::Learnt => "learnt",
        Reason::Fallback(_) => "fallback",
        Reason::Worse => "worse",
        Reason::Nearest => "nearest",
    }
}
