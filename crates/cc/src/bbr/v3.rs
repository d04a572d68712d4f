//! BBR version 3, as draft-ietf-ccwg-bbr describes it (commit 4ce5e87 of August 2026; names of its
//! pseudocode are cited).
//!
//! Read first: the draft's "Overview" and "State Machine Operation". Against version 1: losses
//! bound what is in flight, probes for bandwidth are rarer and careful, and ProbeRTT halves the
//! flight instead of ending it.

mod aggregation;
mod knobs;
mod loss;
mod migrate;
mod path;
mod probe_bw;
mod window;

use rand::SeedableRng;
use rand_pcg::Pcg32;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::bubble::Bubble;
use super::full_bw::FullBw;
use super::gain::Gain;
use super::probe_rtt::{ProbeRtt, Stay};
use super::round::Rounds;
use crate::ceiling::Ceiling;
use crate::knob::knob_methods;
use crate::{
    Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, LostPacket, Marked, Phase,
    RateSample, Sent, Timeout,
};
use aggregation::{Acked, Aggregation};
use knobs::{Tuning, Values};
use loss::{Anchors, ShortTerm, Signals, Undo};
use path::{MaxBw, MinRtt};
use probe_bw::{AckPhase, Growth};

/// Round-trip time assumed for the first pacing rate where the handshake measured none
/// (`InitPacingRate()`).
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Drain ends after so many rounds even if the queue stays, for it may be another flow's.
const DRAIN_ROUNDS_MAX: u64 = 3;

/// The state machine's state.
///
/// ```text
///  Startup ── plateau or loss ──▶ Drain ── inflight <= BDP, or 3 rounds ──┐
///     ▲                                                                  ▼
///     │    ┌─────────── plateau, loss, or caution ──────────────────▶  Down ──┐
///     │    │                                                           │ │    │ cautious probe
///     │    Up ◀── one round ── Refill ◀── time to probe ── Cruise ◀────┘ │    │ went well, or
///     │                          ▲                       queue gone      │    │ time to probe
///     │                          └───────────────────────────────────────┘◀───┘
///     │  any state ── minimum RTT 5 s old ──▶ ProbeRtt ──▶ Down, Cruise (the pipe was full)
///     └──────────────────────────────────────────┘ (it never was)
///
///  A loss that ended Startup or Up and turns out to be spurious: back to Startup, or Refill.
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain {
        start_round: u64,
    },
    /// `ProbeBW_DOWN`: sends slower than the path delivers, to leave room.
    Down,
    /// `ProbeBW_CRUISE`: as fast as it delivers.
    Cruise,
    /// `ProbeBW_REFILL`: as fast as it delivers, with no short-term bounds, to fill the pipe.
    Refill,
    /// `ProbeBW_UP`: faster, to see whether more fits.
    Up(Growth),
    ProbeRtt(ProbeRtt),
}

/// Where to go back to when the losses that ended it were none (`BBR.undo_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resume {
    Startup,
    Probe,
}

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "bbr3",
    about: "BBR version 3: as version 1, but loss bounds what it keeps in flight, and probes are rarer",
    source: "draft-ietf-ccwg-bbr",
    knobs: Bbr3::KNOBS,
    presets: &[],
    build: |config| Bbr3::new(config).into(),
};

/// BBR version 3: a model of the path's bandwidth, round-trip time and of how much fits in flight.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    mss: Bytes,
    initial_window: Bytes,
    min_window: Bytes,
    tuning: Tuning,
    rng: Pcg32,

    // The path.
    max_bw: MaxBw,
    min_rtt: MinRtt,
    /// The largest inflight that was seen to fit; the largest value while that is unknown.
    inflight_longterm: Bytes,
    short_term: ShortTerm,
    /// `max_bw` within the short-term bound.
    bw: Rate,
    rounds: Rounds,
    full_bw: FullBw,
    aggregation: Aggregation,
    ceiling: Ceiling,
    signals: Signals,
    bubble: Bubble,
    delivered: Bytes,

    // What the flow is doing.
    state: State,
    window: Bytes,
    prior_window: Bytes,
    pacing_rate: Rate,
    seen_rtt: bool,
    /// In Startup since another algorithm left the path idle.
    searches: bool,
    idle_restart: bool,
    in_recovery: bool,
    undo: Undo,
    anchors: Anchors,

    // The probe for bandwidth.
    ack_phase: AckPhase,
    /// Whether acknowledgements and losses are of packets sent in a probe.
    is_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    cycle_start: Time,
    probe_wait: Duration,
    rounds_since_probe: u64,
}

/// An acknowledgement and what was derived from it.
struct Step<'a> {
    ack: &'a Ack,
    /// The rate sample, if any, marked as application-limited in a ProbeRTT bubble too.
    sample: Option<RateSample>,
    /// The sample's delivery rate, or zero.
    rate: Rate,
}

impl Bbr3 {
    /// The knobs; all can be turned at any time.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection (`OnInit()`).
    pub fn new(config: &Config) -> Self {
        let mut bbr = Self {
            mss: config.mss,
            initial_window: config.initial_window,
            min_window: config.min_window,
            tuning: Tuning::derive(Values::default()),
            rng: Pcg32::seed_from_u64(config.seed),
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::default(),
            inflight_longterm: Bytes::MAX,
            short_term: ShortTerm::NONE,
            bw: Rate::ZERO,
            rounds: Rounds::default(),
            full_bw: FullBw::default(),
            aggregation: Aggregation::default(),
            ceiling: Ceiling::default(),
            signals: Signals::default(),
            bubble: Bubble::default(),
            delivered: Bytes::ZERO,
            state: State::Startup,
            window: config.initial_window.max(config.min_window),
            prior_window: Bytes::ZERO,
            pacing_rate: Rate::ZERO,
            seen_rtt: false,
            searches: false,
            idle_restart: false,
            in_recovery: false,
            undo: Undo::NOTHING,
            anchors: Anchors::default(),
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            cycle_start: Time::ZERO,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
        };
        bbr.init_pacing_rate(NOMINAL_RTT);
        bbr
    }

    /// The draft's table "Summary of Control Behavior".
    fn pacing_gain(&self) -> Gain {
        match self.state {
            State::Startup => self.tuning.startup_gain,
            State::Drain { .. } => self.tuning.drain_gain,
            State::Down => self.tuning.probe_down_gain,
            State::Up(_) => self.tuning.probe_up_gain,
            State::Cruise | State::Refill | State::ProbeRtt(_) => Gain::UNIT,
        }
    }

    /// The draft's table "Summary of Control Behavior".
    fn cwnd_gain(&self) -> Gain {
        match self.state {
            State::Up(_) => self.tuning.probe_up_cwnd_gain,
            State::ProbeRtt(_) => self.tuning.probe_rtt_cwnd_gain,
            _ => self.tuning.cwnd_gain,
        }
    }

    /// The only place where the state changes, but for a hand-over, which begins anew.
    fn enter(&mut self, state: State) {
        debug_assert!(
            match (self.state, state) {
                (from, State::ProbeRtt(_)) => !matches!(from, State::ProbeRtt(_)),
                // From ProbeRTT before the pipe was full, or back after a spurious loss.
                (from, State::Startup) => from != State::Startup && !self.full_bw.reached(),
                (State::Startup, State::Drain { .. })
                | (State::Drain { .. } | State::Up(_) | State::ProbeRtt(_), State::Down)
                | (State::Down, State::Cruise)
                | (State::Down | State::Cruise, State::Refill)
                | (State::Refill, State::Up(_)) => true,
                // The probe that a spurious loss ended was being tried again.
                (State::Refill, State::Refill) => true,
                _ => false,
            },
            "illegal edge from {:?} to {state:?}",
            self.state
        );
        self.state = state;
    }

    /// `IsInAProbeBWState()`.
    fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up(_))
    }

    /// `IsProbingBW()`.
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up(_))
    }

    /// `UpdateCongestionSignals()`, with `UpdateMaxBw()` and `UpdateRound()`.
    fn update_congestion_signals(&mut self, step: &Step<'_>) {
        self.rounds.started = false;
        if let Some(sample) = &step.sample {
            self.rounds.update(sample.prior_delivered, step.ack.delivered);
            self.rounds_since_probe += u64::from(self.rounds.started);
            self.max_bw.update(step.rate, sample.app_limited);
        }
        if self.signals.round_started {
            self.adapt_short_term();
        }
    }

    fn update_aggregation(&mut self, ack: &Ack) {
        self.aggregation.update(&Acked {
            now: ack.now,
            bytes: ack.acked,
            bw: self.bw,
            window: self.window,
            round: self.rounds.count,
            in_startup: !self.full_bw.reached(),
        });
    }

    /// `CheckFullBWReached()`.
    fn check_full_bw(&mut self, step: &Step<'_>) {
        if self.rounds.started && step.sample.is_some_and(|s| !s.app_limited) {
            self.full_bw.on_round(step.rate);
        }
    }

    /// `CheckStartupDone()`.
    fn check_startup_done(&mut self, step: &Step<'_>) {
        self.check_startup_loss(step);
        self.check_search(step.ack);
        if self.state == State::Startup && self.full_bw.reached() {
            self.enter(State::Drain { start_round: self.rounds.count });
        }
    }

    /// `CheckDrainDone()`.
    fn check_drain_done(&mut self, ack: &Ack) {
        let State::Drain { start_round } = self.state else { return };
        if ack.inflight <= self.quantise(self.bdp(self.bw))
            || self.rounds.count > start_round + DRAIN_ROUNDS_MAX
        {
            self.start_down(ack.now);
        }
    }

    /// `UpdateMinRTT()` and `CheckProbeRTT()`.
    fn check_probe_rtt(&mut self, ack: &Ack) {
        let due = self.min_rtt.update(ack.now, ack.rtt, self.tuning.probe_rtt_interval);
        if due && !self.idle_restart && !matches!(self.state, State::ProbeRtt(_)) {
            self.save_window();
            self.ack_phase = AckPhase::Stopping;
            self.rounds.restart(ack.delivered);
            self.enter(State::ProbeRtt(ProbeRtt::default()));
        }
        self.handle_probe_rtt(ack);
        if !ack.acked.is_zero() {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT()`.
    fn handle_probe_rtt(&mut self, ack: &Ack) {
        let (window, duration) = (self.probe_rtt_window(), self.tuning.probe_rtt_duration);
        if let State::ProbeRtt(probe) = &mut self.state
            && probe.on_ack(ack, Stay { window, duration }, &mut self.rounds, &mut self.bubble)
        {
            self.exit_probe_rtt(ack.now);
        }
    }

    /// `ExitProbeRTT()`, with the rest of `CheckProbeRTTDone()`.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.min_rtt.schedule(now);
        self.restore_window();
        self.short_term = ShortTerm::NONE;
        if self.full_bw.reached() {
            self.start_down(now);
            self.enter(State::Cruise); // the queue is gone already
        } else {
            self.enter(State::Startup);
        }
    }

    /// `HandleRestartFromIdle()`.
    fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart_interval(now);
        if self.is_in_probe_bw() {
            self.pace(Gain::UNIT); // no reason to send faster than the path: the pipe is empty
        } else if let State::ProbeRtt(probe) = self.state
            && probe.time_is_over(now)
        {
            self.exit_probe_rtt(now); // `CheckProbeRTTDone()`
        }
    }

    fn on_knob(&mut self, _place: usize) {
        self.tuning = Tuning::derive(self.tuning.values);
    }

    /// `InitPacingRate()`.
    fn init_pacing_rate(&mut self, rtt: Duration) {
        self.pacing_rate = self.startup_rate(self.initial_window / rtt);
    }

    /// The pacing rate of Startup at that bandwidth.
    fn startup_rate(&self, bw: Rate) -> Rate {
        self.at_least_a_packet(self.tuning.startup_gain.of_rate(bw))
    }

    /// The floor of one packet per second is ours: at rate zero nothing would be sent, so nothing
    /// learnt.
    fn at_least_a_packet(&self, rate: Rate) -> Rate {
        rate.max(self.mss / Duration::from_secs(1))
    }

    /// `SetPacingRateWithGain()`: before the pipe was full never slower than before.
    fn pace(&mut self, gain: Gain) {
        let rate = self.at_least_a_packet(self.tuning.pacing_share.of_rate(gain.of_rate(self.bw)));
        if self.full_bw.reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }
}

impl CongestionControl for Bbr3 {
    /// `InitPacingRate()`, which takes the handshake's smoothed round-trip time where there is one.
    fn on_established(&mut self, rtt: Duration) {
        self.seen_rtt = true;
        self.init_pacing_rate(rtt.max(Duration::from_micros(1)));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.min_rtt.start(sent.now);
        if sent.app_limited && sent.inflight <= sent.bytes {
            self.restart_from_idle(sent.now);
        }
    }

    /// The draft's "Per-ACK Steps", in its order.
    fn on_ack(&mut self, ack: &Ack) {
        let sample = self.bubble.marked(ack.rate);
        let rate = sample.map_or(Rate::ZERO, |sample| sample.rate());
        let step = Step { ack, sample, rate };
        self.min_rtt.start(ack.now);
        self.delivered = ack.delivered;
        self.settle_anchors(ack.now);

        self.update_latest_signals(&step);
        self.update_congestion_signals(&step);
        self.update_aggregation(ack);
        self.check_full_bw(&step);
        self.check_startup_done(&step);
        self.check_drain_done(ack);
        self.update_cycle(&step);
        self.check_probe_rtt(ack);
        self.advance_latest_signals(&step);
        self.bw = self.max_bw.get().min(self.short_term.bw); // `BoundBWForModel()`

        if !self.seen_rtt && !ack.srtt.is_zero() {
            self.seen_rtt = true;
            self.init_pacing_rate(ack.srtt);
        }
        self.pace(self.pacing_gain());
        if self.in_recovery && !ack.in_recovery {
            self.in_recovery = false;
            self.restore_window(); // "Upon exiting loss recovery"
        }
        self.set_window(&step);
        let limits = ack.cwnd_limited && self.window >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.mss);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.handle_lost_packet(lost);
    }

    /// Each packet of the batch has been handled, unless the transport tells only of batches.
    fn on_loss(&mut self, loss: &Loss) {
        if !self.anchors.is_at(loss.now) {
            self.note_loss(loss.now);
        }
    }

    /// The draft has no answer to marks. The bandwidth estimate follows what the bound lets through.
    fn on_marked(&mut self, marked: &Marked) {
        let used = self.window.min(marked.prior_inflight);
        self.ceiling.on_marked(marked, used, self.mss);
    }

    /// `OnEnterRTO()`.
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.note_loss(timeout.now);
        self.window = (timeout.inflight + self.mss).max(self.min_window);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.mss = limits.mss;
        (self.initial_window, self.min_window) = (limits.initial_window, limits.min_window);
        self.window = self.window.max(limits.min_window);
        self.ceiling.on_mtu(limits.mss);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.undo_loss();
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.restart_from_idle(idle.now);
    }

    fn window(&self) -> Bytes {
        self.window.min(self.ceiling.get())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Startup => Phase::SlowStart,
            State::Drain { .. } => Phase::Drain,
            State::ProbeRtt(_) => Phase::ProbeRtt,
            State::Down | State::Cruise | State::Refill | State::Up(_) => Phase::Steady,
        }
    }

    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.tuning.values, then on_knob);
}

#[cfg(test)]
mod tests;
