//! BBR version 1, as Linux' `net/ipv4/tcp_bbr.c` does it (names of its functions are cited).
//!
//! Read first: the ACM Queue paper named in the parent module, then `tcp_bbr.c`'s own comments.
//! It differs from the older draft-cardwell-iccrg-bbr-congestion-control-00 in the policer detector,
//! the aggregation allowance, the pacing margin and the window quantisation; all are here.

mod aggregation;
mod cycle;
mod departure;
mod knobs;
mod migrate;
mod min_rtt;
mod policer;
mod window;

use rand::SeedableRng;
use rand_pcg::Pcg32;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::bubble::Bubble;
use super::full_bw::FullBw;
use super::gain::Gain;
use super::probe_rtt::{ProbeRtt, Stay};
use super::round::Rounds;
use super::windowed_max::WindowedMax;
use crate::knob::knob_methods;
use crate::{
    Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, RateSample, Sent,
    Timeout,
};
use aggregation::{Acked, Aggregation};
use cycle::Cycle;
use departure::Departure;
use knobs::{Tuning, Values};
use min_rtt::MinRtt;
use policer::{Observation, Policer};
use window::{Recovery, whole_packets};

/// Round-trip time assumed for the first pacing rate where the handshake measured none
/// (`bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The state machine's state.
///
/// ```text
///               plateau of 3 rounds       inflight <= BDP
///     Startup ─────────────────────▶ Drain ───────────────▶ ProbeBw ──┐ gain cycle; restarted
///        ▲ │                           │                     ▲ │  ▲   │ when a policed rate is
///        │ │ minimum RTT 10 s old      │                     │ │  └───┘ given up
///        │ └──────────────────▶ ProbeRtt ◀───────────────────┼─┘
///        └──── pipe never full ────┴──────── pipe was full ──┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw(Cycle),
    ProbeRtt(ProbeRtt),
}

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "bbr",
    about: "BBR version 1: paces at the largest delivery rate of ten rounds, deaf to loss",
    source: "Linux tcp_bbr.c; Cardwell et al., ACM Queue 14:5, 2016",
    knobs: Bbr::KNOBS,
    presets: &[],
    build: |config| Bbr::new(config).into(),
};

/// BBR version 1: the bandwidth is the largest delivery rate of ten rounds, the round-trip time the
/// smallest of ten seconds; losses do not matter unless they look like a policer's.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: Bytes,
    initial_window: Bytes,
    min_window: Bytes,
    tuning: Tuning,
    rng: Pcg32,

    // The path.
    max_bw: WindowedMax<Rate>,
    min_rtt: MinRtt,
    rounds: Rounds,
    full_bw: FullBw,
    policer: Policer,
    aggregation: Aggregation,
    bubble: Bubble,
    /// Delivered and lost over the life of the connection.
    delivered: Bytes,
    lost: Bytes,

    // What the flow is doing.
    mode: Mode,
    window: Bytes,
    /// The last good window, for after recovery and ProbeRTT.
    prior_window: Bytes,
    pacing_rate: Rate,
    departure: Departure,
    seen_rtt: bool,
    /// In Startup since another algorithm left the path idle.
    searches: bool,
    /// Sending resumed after idle, and nothing has been acknowledged since.
    idle_restart: bool,
    recovery: Recovery,
    /// In the first round of recovery: packet conservation.
    conserve: bool,
    /// Losses not yet handled, and when they were declared.
    fresh_losses: (Time, Bytes),
}

/// An acknowledgement and what was derived from it.
struct Step<'a> {
    ack: &'a Ack,
    /// The rate sample, if any, marked as application-limited in a ProbeRTT bubble too.
    sample: Option<RateSample>,
    /// Declared lost by this acknowledgement.
    losses: Bytes,
}

impl Bbr {
    /// The knobs; all can be turned at any time.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        let mut bbr = Self {
            mss: config.mss,
            initial_window: config.initial_window,
            min_window: config.min_window,
            tuning: Tuning::derive(Values::default()),
            rng: Pcg32::seed_from_u64(config.seed),
            max_bw: WindowedMax::default(),
            min_rtt: MinRtt::default(),
            rounds: Rounds::default(),
            full_bw: FullBw::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            bubble: Bubble::default(),
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            mode: Mode::Startup,
            window: config.initial_window.max(config.min_window),
            prior_window: Bytes::ZERO,
            pacing_rate: Rate::ZERO,
            departure: Departure::default(),
            seen_rtt: false,
            searches: false,
            idle_restart: false,
            recovery: Recovery::Open,
            conserve: false,
            fresh_losses: (Time::ZERO, Bytes::ZERO),
        };
        bbr.init_pacing_rate(NOMINAL_RTT);
        bbr
    }

    /// The bandwidth to send at: the policed rate where a policer was found, else the filter's
    /// maximum (`bbr_bw`).
    fn bw(&self) -> Rate {
        self.policer.rate().unwrap_or(self.max_bw.get())
    }

    /// `bbr_update_gains`.
    fn pacing_gain(&self) -> Gain {
        match self.mode {
            Mode::Startup => self.tuning.startup_gain,
            Mode::Drain => self.tuning.drain_gain,
            Mode::ProbeBw(_) if self.policer.rate().is_some() => Gain::UNIT,
            Mode::ProbeBw(cycle) => cycle.gain(&self.tuning),
            Mode::ProbeRtt(_) => Gain::UNIT,
        }
    }

    /// `bbr_update_gains`.
    fn cwnd_gain(&self) -> Gain {
        match self.mode {
            Mode::Startup | Mode::Drain => self.tuning.startup_gain,
            Mode::ProbeBw(_) => self.tuning.cwnd_gain,
            Mode::ProbeRtt(_) => Gain::UNIT,
        }
    }

    /// The only place where the mode changes, but for a hand-over, which begins anew.
    fn enter(&mut self, mode: Mode) {
        debug_assert!(
            match (self.mode, mode) {
                (Mode::Startup, Mode::Drain) | (Mode::Drain, Mode::ProbeBw(_)) => true,
                (Mode::ProbeBw(_), Mode::ProbeBw(_)) => self.policer.rate().is_none(),
                (from, Mode::ProbeRtt(_)) => !matches!(from, Mode::ProbeRtt(_)),
                (Mode::ProbeRtt(_), Mode::Startup) => !self.full_bw.reached(),
                (Mode::ProbeRtt(_), Mode::ProbeBw(_)) => self.full_bw.reached(),
                _ => false,
            },
            "illegal edge from {:?} to {mode:?}",
            self.mode
        );
        self.mode = mode;
    }

    /// ProbeBW at a random phase of its cycle (`bbr_reset_probe_bw_mode`).
    fn enter_probe_bw(&mut self, now: Time) {
        let cycle = Cycle::random(now, &mut self.rng);
        self.enter(Mode::ProbeBw(cycle));
    }

    // The steps of `bbr_update_model`, in its order.

    /// Rounds, the policer and the bandwidth filter (`bbr_update_bw`).
    fn update_bandwidth(&mut self, step: &Step<'_>) {
        let Some(sample) = &step.sample else {
            self.rounds.started = false;
            return;
        };
        self.rounds.update(sample.prior_delivered, step.ack.delivered);
        if self.rounds.started {
            self.conserve = false;
        }
        self.update_policer(step.ack.now, !step.losses.is_zero(), sample.app_limited);
        // A slow application says little about the path, unless it beats the estimate.
        let rate = sample.rate();
        if !sample.app_limited || rate >= self.max_bw.get() {
            self.max_bw.update(self.tuning.bw_window, self.rounds.count, rate);
        }
    }

    fn update_policer(&mut self, now: Time, losses: bool, app_limited: bool) {
        let restart_cycle = self.policer.update(&Observation {
            now,
            delivered: self.delivered,
            lost: self.lost,
            losses,
            app_limited,
            round_started: self.rounds.started,
            in_probe_bw: matches!(self.mode, Mode::ProbeBw(_)),
        });
        if restart_cycle {
            self.enter_probe_bw(now);
        }
    }

    fn update_aggregation(&mut self, step: &Step<'_>) {
        if step.sample.is_some() && !step.ack.acked.is_zero() {
            let acked = Acked {
                now: step.ack.now,
                bytes: step.ack.acked,
                bw: self.bw(),
                window: self.window,
                mss: self.mss,
                round_started: self.rounds.started,
            };
            self.aggregation.update(&acked);
        }
    }

    /// The next phase of the gain cycle, when it is time (`bbr_is_next_cycle_phase`).
    fn update_cycle(&mut self, step: &Step<'_>) {
        let Mode::ProbeBw(cycle) = self.mode else { return };
        let gain = self.pacing_gain();
        let bw = self.max_bw.get();
        let is_full_length = cycle.is_full_length(step.ack.now, self.min_rtt.get());
        let inflight = || self.inflight_at_departure(step.ack.now, step.ack.prior_inflight);
        let next = if gain == Gain::UNIT {
            is_full_length
        } else if gain > Gain::UNIT {
            // Until the probe's data is in flight, or does not fit.
            is_full_length
                && (!step.losses.is_zero() || inflight() >= self.inflight_target(bw, gain))
        } else {
            // No longer than it takes to drain the queue.
            is_full_length || inflight() <= self.inflight_target(bw, Gain::UNIT)
        };
        if next && let Mode::ProbeBw(cycle) = &mut self.mode {
            cycle.advance(step.ack.now);
        }
    }

    /// What will be in the network when the pacer's next packet leaves
    /// (`bbr_packets_in_net_at_edt`).
    fn inflight_at_departure(&self, now: Time, inflight: Bytes) -> Bytes {
        let delivered = whole_packets(self.bw() * self.departure.wait(now), self.mss);
        let departing =
            if self.pacing_gain() > Gain::UNIT { self.send_quantum() } else { Bytes::ZERO };
        (inflight + departing) - delivered
    }

    /// `bbr_check_full_bw_reached`.
    fn check_full_pipe(&mut self, step: &Step<'_>) {
        if self.rounds.started && step.sample.is_some_and(|s| !s.app_limited) {
            self.full_bw.on_round(self.max_bw.get());
        }
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full_bw.reached() {
            self.enter(Mode::Drain);
        }
        if self.mode == Mode::Drain
            && self.inflight_at_departure(ack.now, ack.inflight)
                <= self.inflight_target(self.max_bw.get(), Gain::UNIT)
        {
            self.enter_probe_bw(ack.now);
        }
    }

    /// The minimum round-trip time, and ProbeRTT when it is too old (`bbr_update_min_rtt`).
    fn update_min_rtt(&mut self, ack: &Ack) {
        // One packet, and not a full one: its receiver may have waited for a second.
        let maybe_delayed = ack.acked < self.mss;
        let expired =
            self.min_rtt.update(ack.now, ack.rtt, maybe_delayed, self.tuning.probe_rtt_interval);
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt(_)) {
            // In this order, as in Linux: a larger window that was saved before stays.
            self.enter(Mode::ProbeRtt(ProbeRtt::default()));
            self.save_window();
        }
        self.update_probe_rtt(ack);
        if !ack.acked.is_zero() {
            self.idle_restart = false;
        }
    }

    fn update_probe_rtt(&mut self, ack: &Ack) {
        let (window, duration) = (self.probe_rtt_window(), self.tuning.probe_rtt_duration);
        if let Mode::ProbeRtt(probe) = &mut self.mode
            && probe.on_ack(ack, Stay { window, duration }, &mut self.rounds, &mut self.bubble)
        {
            self.exit_probe_rtt(ack.now);
        }
    }

    /// What `bbr_check_probe_rtt_done` does when it is done.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.min_rtt.refresh(now);
        self.window = self.window.max(self.prior_window);
        if self.full_bw.reached() {
            self.enter_probe_bw(now);
        } else {
            self.enter(Mode::Startup);
        }
    }

    /// `bbr_cwnd_event`, `CA_EVENT_TX_START`.
    fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.aggregation.restart_epoch(now);
        match self.mode {
            // No reason to send faster than the path: the pipe is empty.
            Mode::ProbeBw(_) => self.pace(Gain::UNIT),
            // `bbr_check_probe_rtt_done`.
            Mode::ProbeRtt(probe) if probe.time_is_over(now) => self.exit_probe_rtt(now),
            Mode::ProbeRtt(_) | Mode::Startup | Mode::Drain => {}
        }
    }

    fn on_knob(&mut self, _place: usize) {
        self.tuning = Tuning::derive(self.tuning.values);
    }

    fn init_pacing_rate(&mut self, rtt: Duration) {
        let rate = self.paced(self.window / rtt, self.tuning.startup_gain);
        self.pacing_rate = rate;
    }

    /// A little below gain times bandwidth, and never so slow that the sender would stop
    /// (`bbr_bw_to_pacing_rate`; the floor of one packet per second is ours: Linux reads zero as
    /// "unpaced").
    fn paced(&self, bw: Rate, gain: Gain) -> Rate {
        let rate = self.tuning.pacing_share.of_rate(gain.of_rate(bw));
        rate.max(self.mss / Duration::from_secs(1))
    }

    /// Paces at that gain, but before the pipe was full never slower than before
    /// (`bbr_set_pacing_rate`).
    fn pace(&mut self, gain: Gain) {
        let rate = self.paced(self.bw(), gain);
        if self.full_bw.reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }
}

impl CongestionControl for Bbr {
    /// `bbr_init_pacing_rate_from_rtt`, which finds the handshake's smoothed round-trip time.
    fn on_established(&mut self, rtt: Duration) {
        self.seen_rtt = true;
        self.init_pacing_rate(rtt.max(Duration::from_micros(1)));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.min_rtt.start(sent.now);
        if sent.app_limited && sent.inflight <= sent.bytes {
            self.restart_from_idle(sent.now);
        }
        self.departure.on_sent(sent.now, sent.bytes, self.pacing_rate);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let (declared, lost) = core::mem::take(&mut self.fresh_losses);
        // Losses that a timer found belong to no acknowledgement, as in Linux.
        let losses = if declared == ack.now { lost } else { Bytes::ZERO };
        let sample = self.bubble.marked(ack.rate);
        let step = Step { ack, sample, losses };

        self.min_rtt.start(ack.now);
        self.delivered = ack.delivered;
        self.update_bandwidth(&step);
        self.update_aggregation(&step);
        self.update_cycle(&step);
        self.check_full_pipe(&step);
        self.check_search(ack);
        self.check_drain(ack);
        self.update_min_rtt(ack);

        if !self.seen_rtt && !ack.srtt.is_zero() {
            self.seen_rtt = true;
            self.init_pacing_rate(ack.srtt);
        }
        self.pace(self.pacing_gain());
        self.set_window(&step);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.recovery == Recovery::Open {
            self.save_window(); // `bbr_ssthresh`
        }
        self.lost += loss.lost;
        let (declared, lost) = self.fresh_losses;
        let before = if declared == loss.now { lost } else { Bytes::ZERO };
        self.fresh_losses = (loss.now, before + loss.lost);
    }

    /// BBRv1 does not answer marks, and neither does Linux's `bbr`, which this is.
    fn on_marked(&mut self, _marked: &Marked) {}

    /// `bbr_set_state(TCP_CA_Loss)`: the window falls to one packet beyond what is in flight, and
    /// grows back with each acknowledgement.
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.save_window();
        // Losses of this very moment have been counted by `on_loss`.
        let (declared, counted) = self.fresh_losses;
        let counted = if declared == timeout.now { counted } else { Bytes::ZERO };
        self.lost += (timeout.prior_inflight - timeout.inflight) - counted;
        self.recovery = Recovery::Timeout;
        self.full_bw.forget_baseline();
        self.rounds.started = true; // a timeout counts as the end of a round
        self.update_policer(timeout.now, true, false);
        self.window = (timeout.inflight + self.mss).max(self.min_window);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.mss = limits.mss;
        (self.initial_window, self.min_window) = (limits.initial_window, limits.min_window);
        self.window = self.window.max(limits.min_window);
    }

    /// `bbr_undo_cwnd`; the window comes back with the next acknowledgement, when the transport
    /// says that recovery is over.
    fn on_spurious_loss(&mut self, _now: Time) {
        self.full_bw.restart(Rate::ZERO); // plateaus in a slow-down that was spurious
        self.policer.reset();
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.restart_from_idle(idle.now);
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing_rate)
    }

    fn phase(&self) -> Phase {
        match self.mode {
            Mode::ProbeRtt(_) => Phase::ProbeRtt,
            _ if self.conserve || self.recovery == Recovery::Timeout => Phase::Recovery,
            Mode::Startup => Phase::SlowStart,
            Mode::Drain => Phase::Drain,
            Mode::ProbeBw(_) => Phase::Steady,
        }
    }

    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.tuning.values, then on_knob);
}

#[cfg(test)]
mod tests;
