//! Copa: aims at the rate 1/(delta · queueing delay), which keeps 1/delta packets or so in the
//! queue, and empties the queue every five round trips so that everybody sees the path's delay.
//!
//! Read first: Arun and Balakrishnan, "Copa: practical delay-based congestion control for the
//! Internet", NSDI 2018; the section numbers are of that paper. `velocity.rs` has §2.2's velocity,
//! `mode.rs` §2.4's competitive mode, `ticks.rs` when flows of one kind drain the queue, `blame.rs`
//! whose losses are whose, `knobs.rs` what can be steered.
//!
//! Where the paper is silent or a sender would come to harm, this departs from it:
//! * One acknowledgement moves the window by at most what it acknowledges: no faster than slow
//!   start up, and halving at worst down. It binds where the window is below v/delta packets.
//! * Heavy loss ends slow start and stops growth. Where the buffer is smaller than the queue that
//!   delta asks for nothing else would: the queue stays full, the minimum round-trip time of an
//!   empty one is forgotten, and no queueing delay is seen any more.
//! * A timeout falls back to the least window and slow start.
//! * A queue that does not empty is drained for a round trip, before it is taken for that of others
//!   and whenever the minimum round-trip time has not been seen for long (see `mode.rs`).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`).
//! * With the knob `competitive` at 2, it competes with the window of CUBIC (`../rival.rs`).
//! * While the application limits the sender the window does not grow; it may shrink.

mod blame;
mod knobs;
mod migrate;
mod mode;
mod ticks;
mod velocity;

use trimtab_units::{Bytes, Duration, Rate, Time};

use self::blame::Blame;
use self::knobs::{Rivalry, Values};
use self::mode::{EMPTY_SLACK, Mode, Sight};
use self::ticks::Ticks;
use self::velocity::{Direction, Velocity};
use crate::ceiling::Ceiling;
use crate::episode::Episode;
use crate::filter::{WindowedMax, WindowedMin};
use crate::knob::knob_methods;
use crate::rival::Rival;
use crate::round::Round;
use crate::window::WINDOW_MAX;
use crate::{
    Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Preset, Sent,
    Timeout,
};

/// The mode detector looks at the greatest round-trip time of so many round trips (§2.4).
const RTT_MAX_ROUNDS: u64 = 4;
/// A round-trip time is at least this: rates stay finite on a link without delay.
const RTT_FLOOR: Duration = Duration::from_micros(1);
/// Loss is heavy when this share of the packets of the last two rounds was lost (what deployed
/// variants call lossy), and so many packets at least: more than noise.
const HEAVY_LOSS: f64 = 0.1;
const HEAVY_LOSS_PACKETS: f64 = 3.0;

/// A drain holds the window at this share of what the path holds with an empty queue. Where the
/// queue is small, it holds what the path holds less the slack: enough to see it empty, and next to
/// nothing of the rate is lost.
const DRAIN_SHARE: f64 = 0.75;
/// While it keeps CUBIC's window others fill the queue, and hide the minimum round-trip time: it
/// counts so many times as long.
const HIDDEN: u64 = 8;
/// While it keeps CUBIC's window, it takes this share of losses for those of the link.
const TOLERATED: f64 = 0.02;
/// Packets that queue on average, times delta (§3).
const MEAN_QUEUE: f64 = 1.25;
/// A drain takes at most the queueing delay, in which the queue empties, and so many minimum
/// round-trip times: a quarter until less is in flight than the path holds, one until that is seen,
/// and the rest for jitter.
const DRAIN_ROUNDS: f64 = 2.0;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "copa",
    about: "delay-based: keeps about 1/delta packets in the queue, so one knob trades delay \
            against throughput",
    source: "Arun and Balakrishnan, NSDI 2018",
    knobs: Copa::KNOBS,
    presets: Copa::PRESETS,
    build: |config| Copa::new(config).into(),
};

/// The Copa state machine.
///
/// ```text
///             rate above target,               queue not nearly              still not nearly
///             heavy loss                       empty for 5 RTT               empty
///  SlowStart ───────────────────▶ default mode ───────────────▶ drain ──────────────▶ competitive
///      ▲                            │    ▲                      │   │                   │     │
///      │                            │    └── queue nearly empty ┴───┼───────────────────┘     │
///      └─────────── timeout ────────┴───────────────────────────────┴─────────────────────────┘
/// ```
#[derive(Clone, Debug)]
pub struct Copa {
    /// Bytes of a packet.
    mss: f64,
    window_min: f64,
    /// The window in bytes, fractions kept: a step may be less than a byte.
    window: f64,
    values: Values,
    slow_start: bool,
    velocity: Velocity,
    mode: Mode,
    drain: Option<Drain>,
    blame: Blame,
    /// The window of CUBIC, once it was needed, and for a while after.
    rival: Option<Rival>,
    limits: Config,
    /// What the path holds with an empty queue, while the window falls from where another algorithm
    /// left it.
    descent: Option<f64>,
    rtt_min: WindowedMin,
    /// What a drained queue showed above the minimum: see [`Copa::base`].
    residue: Duration,
    rtt_standing: WindowedMin,
    rtt_max: WindowedMax,
    /// When the last round-trip time was sampled.
    sampled_at: Time,
    /// When the last silence ended.
    heard_again_at: Time,
    /// When it was last looked whether to drain the queue.
    looked_at: Time,
    round: Round,
    episode: Episode,
    /// What congestion marks leave.
    ceiling: Ceiling,
    /// Lost and acknowledged bytes of the last round and of this one.
    tally: [Tally; 2],
    /// Whether anything was acknowledged yet.
    started: bool,
}

/// The window is held to see whether the queue empties.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// What the path holds with an empty queue.
    path: f64,
    /// The window meanwhile.
    held: f64,
    from: Time,
    until: Time,
    /// Of what was sent since it began; `MAX` before any.
    rtt_min: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    lost: Bytes,
    acked: Bytes,
}

impl Copa {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// Its presets.
    pub const PRESETS: &'static [Preset] = knobs::PRESETS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let mss = config.mss.max(Bytes::new(1)).as_f64();
        let window_min = config.min_window.as_f64().max(mss);
        let window = config.initial_window.as_f64().max(window_min);
        Self {
            mss,
            window_min,
            window,
            values: knobs::defaults(config),
            slow_start: true,
            velocity: Velocity::new(window),
            mode: Mode::new(Time::ZERO),
            drain: None,
            blame: Blame::default(),
            rival: None,
            limits: *config,
            descent: None,
            rtt_min: WindowedMin::new(),
            residue: Duration::ZERO,
            rtt_standing: WindowedMin::new(),
            rtt_max: WindowedMax::new(),
            sampled_at: Time::ZERO,
            heard_again_at: Time::ZERO,
            looked_at: Time::ZERO,
            round: Round::default(),
            episode: Episode::default(),
            ceiling: Ceiling::default(),
            tally: [Tally::default(); 2],
            started: false,
        }
    }

    /// The delta in force: what is set, or less in competitive mode.
    pub fn effective_delta(&self) -> f64 {
        if self.keeps_rival() { self.values.delta } else { self.mode.delta(self.values.delta) }
    }

    /// Whether it is in TCP-competitive mode.
    pub fn is_competitive(&self) -> bool {
        self.mode.is_competitive()
    }

    /// Feeds the filters (§2.1) and the mode detector (§2.4).
    fn observe(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        let (now, rtt) = (ack.now, rtt.max(RTT_FLOOR));
        self.heed_silence(ack);
        let lasts = Duration::from_secs_f64(self.values.min_rtt_window);
        let lasts = if self.competes_as_cubic() { lasts * HIDDEN } else { lasts };
        self.rtt_min.update(now, lasts, rtt);
        self.rtt_standing.update(now, ack.srtt.mul_f64(self.values.standing), rtt);
        self.rtt_max.update(now, ack.srtt * RTT_MAX_ROUNDS, rtt);
        // What waited for a link that stood still tells nothing of how long the queue gets.
        if ack.newest_sent_at >= self.heard_again_at
            && let (Some(base), Some(standing)) = (self.base(), self.rtt_standing.get())
        {
            let mss = Bytes::new(self.mss as u64);
            self.blame.on_ack(now, ack.srtt, standing - base, ack.acked, mss);
        }
        if let Some(least) = self.rtt_min.get() {
            self.residue = self.residue.min(rtt - least);
        }
        if let Some(drain) = &mut self.drain
            && ack.newest_sent_at >= drain.from
        {
            drain.rtt_min = drain.rtt_min.min(rtt);
        }
        if let (Some(base), Some(standing), Some(rtt_max), false) =
            (self.base(), self.rtt_standing.get(), self.rtt_max.get(), self.slow_start)
        {
            let keeps_rival = self.keeps_rival();
            let sight = Sight { rtt, base, standing, rtt_max, keeps_rival };
            let floor = self.mode.on_rtt(now, &sight);
            self.drain_queue(ack, floor);
        }
    }

    /// Nothing was heard for longer than any round trip of late: the link stood still. The queue
    /// did so too, which is no sign of others; and what was in flight has waited for the link.
    fn heed_silence(&mut self, ack: &Ack) {
        if self.rtt_max.get().is_some_and(|most| ack.now.since(self.sampled_at) > most) {
            self.heard_again_at = ack.now;
        }
        self.sampled_at = ack.now;
        if ack.newest_sent_at < self.heard_again_at {
            self.mode.own_queue_from(ack.now);
        }
    }

    /// Starts and ends drains, on an acknowledgement that shows the minimum or does not.
    fn drain_queue(&mut self, ack: &Ack, floor: bool) {
        let (now, srtt) = (ack.now, ack.srtt);
        let competes = self.values.competitive != Rivalry::Yield;
        let ticks = Ticks::between(self.looked_at, now, self.limits.clock);
        self.looked_at = now;
        if let Some(drain) = self.drain {
            // Nothing but the minimum itself: a drain that ended on less would let the minimum drift.
            if floor || now >= drain.until {
                let (delta, window) = (self.values.delta, Bytes::new(self.window as u64));
                let compete_with = if competes { delta } else { 0.0 };
                self.mode.on_drained(drain.from, now, srtt, compete_with);
                self.take_residue(&drain);
                self.drain = None;
                if self.competes_as_cubic() {
                    self.rival(now).meet(window);
                    return;
                }
                // Back to where the oscillation has its middle, not to its peak.
                let middle = drain.path + MEAN_QUEUE / self.effective_delta() * self.mss;
                self.set_window(self.window.min(middle));
                self.velocity = Velocity::new(self.window);
            }
            return;
        }
        let patience = Duration::from_secs_f64(self.values.min_rtt_window / 2.0);
        // On the way down from another algorithm's window the queue empties as it is; and what was
        // in flight while the link stood still tells nothing of what the path holds.
        if self.descent.is_none()
            && ack.newest_sent_at >= self.heard_again_at
            && let Some((standing, queueing)) = self.delays()
        {
            let rtt_min = standing - queueing;
            let wanted = if self.keeps_rival() {
                let base = Duration::from_secs_f64(rtt_min);
                self.mode.wants_joint_drain(now, srtt, base, patience, ticks)
            } else {
                self.mode.wants_drain(now, srtt, patience, competes)
            };
            let small = self.mode.is_small(now, srtt) && self.is_held_by(EMPTY_SLACK);
            if !wanted && !small {
                return;
            }
            let path = self.window * rtt_min / standing;
            let shallow = 1.0 - EMPTY_SLACK.as_secs_f64() / rtt_min;
            let share = if wanted { DRAIN_SHARE } else { shallow.max(DRAIN_SHARE) };
            let until = now + Duration::from_secs_f64(queueing + DRAIN_ROUNDS * rtt_min);
            let held = share * path;
            self.drain = Some(Drain { path, held, from: now, until, rtt_min: Duration::MAX });
        }
    }

    /// A drain ended. What it showed is the path's delay, if it is at most a slack above the
    /// minimum, and holds the rate down. Where a slack holds few packets, they may be of others.
    fn take_residue(&mut self, drain: &Drain) {
        let Some(least) = self.rtt_min.get() else { return };
        let residue = drain.rtt_min - least;
        if residue <= EMPTY_SLACK && self.is_held_by(residue) {
            self.residue = residue;
        }
    }

    /// Whether so much queueing delay allows at most twice the rate that is sent (§2.1).
    fn is_held_by(&self, queueing: Duration) -> bool {
        let Some(standing) = self.rtt_standing.get() else { return false };
        let load = self.window / self.mss * self.effective_delta() * queueing.as_secs_f64();
        2.0 * load >= standing.as_secs_f64()
    }

    /// The round-trip time with an empty queue: the minimum, and what a drain showed above it.
    ///
    /// The paper takes the minimum (§2.1). A link that sends each millisecond makes what is clocked
    /// by acknowledgements wait for its next tick, always. One packet that came at another time saw
    /// the minimum. So up to 1 ms of a queue is seen that nobody fills, and the target rate for it
    /// is 1/(delta · 1 ms): 24 Mbit/s with delta 0.5. Any lower sample lowers what is added, so that
    /// it cannot drift.
    fn base(&self) -> Option<Duration> {
        Some(self.rtt_min.get()? + self.residue)
    }

    /// Standing round-trip time and queueing delay in seconds; `None` before any sample.
    fn delays(&self) -> Option<(f64, f64)> {
        let (standing, base) = (self.rtt_standing.get()?, self.base()?);
        Some((standing.as_secs_f64(), (standing - base).as_secs_f64()))
    }

    /// Whether it may keep the window of CUBIC.
    fn keeps_rival(&self) -> bool {
        self.values.competitive == Rivalry::Cubic
    }

    /// Whether it does: others fill the queue.
    fn competes_as_cubic(&self) -> bool {
        self.keeps_rival() && self.mode.is_competitive()
    }

    /// The window of CUBIC, from the sender's own on where there is none yet.
    fn rival(&mut self, now: Time) -> &mut Rival {
        let (window, min_rtt) = (Bytes::new(self.window as u64), self.rtt_min.get());
        let limits = &self.limits;
        let new = || Rival::new(limits, window, min_rtt.unwrap_or_default(), now);
        let rival = self.rival.get_or_insert_with(new);
        rival.is_needed(now);
        rival
    }

    /// Moves the window of CUBIC, and the own one with it while others fill the queue.
    fn follow_rival(&mut self, ack: &Ack) {
        let competes = self.competes_as_cubic();
        if competes {
            self.rival(ack.now);
        }
        let held = self.drain.is_some() || self.episode.recovering();
        let window = self.window;
        let Some(rival) = &mut self.rival else { return };
        let limits = window >= rival.window().as_f64() - self.mss;
        if ack.cwnd_limited && limits && !held {
            rival.grow(ack.acked, ack.now);
        }
        if competes {
            let window = rival.window().as_f64();
            self.set_window(window);
        } else if rival.is_past(ack.now, ack.srtt) {
            self.rival = None;
        }
    }

    fn leave_slow_start(&mut self, now: Time) {
        self.slow_start = false;
        self.velocity = Velocity::new(self.window);
        self.mode.assume_empty(now);
    }

    /// Moves the window by v/(delta · window) packets per packet acknowledged (§2.1), where the
    /// rate is below or above the target rate 1/(delta · queueing delay).
    fn steer(&mut self, ack: &Ack) {
        let acked = ack.acked.as_f64();
        let Some((standing, queueing)) = self.delays() else {
            return self.grow_exponentially(acked, ack.cwnd_limited);
        };
        let packets = self.window / self.mss;
        let delta = self.effective_delta();
        // Window/standing ≤ 1/(delta · queueing), without dividing by a queueing delay of zero.
        let load = packets * delta * queueing;
        if self.slow_start {
            if load < self.values.startup_exit * standing {
                return self.grow_exponentially(acked, ack.cwnd_limited);
            }
            self.leave_slow_start(ack.now);
        }
        self.follow_rival(ack);
        if self.competes_as_cubic() {
            return;
        }
        let direction = if load <= standing { Direction::Up } else { Direction::Down };
        if self.drain.is_some() {
            return; // nothing is known of the target while the queue is held down
        }
        self.velocity.on_decision(direction, self.window);
        let most = acked * self.values.growth_max;
        let step = (acked * self.velocity.value / (delta * packets)).min(most);
        match direction {
            Direction::Up if ack.cwnd_limited && !self.is_held() => {
                self.set_window(self.window + step);
            }
            Direction::Up => {}
            Direction::Down => self.set_window(self.window - step),
        }
        self.end_descent(direction, ack.now);
    }

    /// The window has fallen to what the path and the queue that delta asks for hold, or has turned:
    /// the queue that another algorithm left is in flight no more, though the delay will show it for
    /// a round trip yet. The velocity that it took to get here would go far below by then.
    fn end_descent(&mut self, direction: Direction, now: Time) {
        let Some(path) = self.descent else { return };
        let arrived = self.window <= path + self.mss / self.effective_delta();
        if arrived || direction == Direction::Up {
            self.descent = None;
            self.velocity = Velocity::new(self.window);
            self.mode.own_queue_from(now);
        }
    }

    fn grow_exponentially(&mut self, acked: f64, cwnd_limited: bool) {
        if cwnd_limited {
            self.set_window(self.window + acked * self.values.startup_gain);
        }
    }

    fn set_window(&mut self, window: f64) {
        let rival = self.rival.as_ref().map_or(Bytes::MAX, Rival::window);
        let most = WINDOW_MAX.min(self.ceiling.get()).min(rival).as_f64();
        self.window = window.min(most).max(self.window_min);
    }

    fn initial_window(&self) -> f64 {
        (self.values.initial_window * self.mss).max(self.window_min)
    }

    fn raise_ceiling(&mut self, ack: &Ack) {
        let limits = ack.cwnd_limited && self.window >= self.ceiling.get().as_f64();
        self.ceiling.on_ack(ack, limits, Bytes::new(self.mss as u64));
    }

    fn on_round(&mut self) {
        self.velocity.on_round(self.window, self.values.velocity_max);
        self.mode.on_round();
        self.tally = [self.tally[1], Tally::default()];
    }

    /// The share of the packets of the last two rounds that was lost.
    fn loss_share(&self) -> f64 {
        let [before, now] = &self.tally;
        let lost = before.lost + now.lost;
        lost.as_f64() / (lost + before.acked + now.acked).as_f64().max(1.0)
    }

    /// Whether losses keep the window from growing: heavy ones, or for a round trip those that the
    /// knob answers to.
    fn is_held(&self) -> bool {
        let answers = self.values.loss_beta < 1.0;
        self.loses_heavily() || (answers && self.episode.recovering())
    }

    fn on_knob(&mut self, place: usize) {
        if place == knobs::COMPETITIVE && self.values.competitive == Rivalry::Yield {
            self.mode.stop_competing();
        }
        if place == knobs::COMPETITIVE && !self.keeps_rival() {
            self.rival = None;
        }
        if place == knobs::INITIAL_WINDOW && !self.started {
            self.set_window(self.initial_window());
        }
    }

    fn loses_heavily(&self) -> bool {
        let lost = self.tally[0].lost + self.tally[1].lost;
        lost.as_f64() >= HEAVY_LOSS_PACKETS * self.mss && self.loss_share() > HEAVY_LOSS
    }
}

impl CongestionControl for Copa {
    fn on_sent(&mut self, sent: &Sent) {
        if sent.inflight <= sent.bytes {
            self.mode.assume_empty(sent.now); // nothing was in flight: no queue of ours was seen
            if let Some(rival) = &mut self.rival {
                rival.on_pause(self.sampled_at, sent.now);
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.started = true;
        self.episode.on_ack(ack);
        self.tally[1].acked += ack.acked;
        self.observe(ack);
        if self.round.ends(ack) {
            self.on_round();
        }
        self.raise_ceiling(ack);
        self.steer(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.tally[1].lost += loss.lost;
        let waited = loss.newest_sent_at < self.heard_again_at;
        let full = !waited && self.blame.on_loss(loss.lost);
        if self.slow_start {
            if self.loses_heavily() {
                self.episode.on_loss(loss);
                self.set_window(self.window / 2.0); // the window of the round before, which fitted
                self.leave_slow_start(loss.now);
            }
            return;
        }
        let much = self.mode.is_competitive() && self.loss_share() > TOLERATED;
        if self.keeps_rival() && (full || much) {
            if self.episode.on_loss(loss) {
                self.mode.on_loss();
                let own = Bytes::new(self.window as u64);
                self.rival(loss.now).on_loss(own);
                self.set_window(self.window);
                self.velocity = Velocity::new(self.window);
            }
            return;
        }
        let noise = self.loss_share() <= self.values.loss_tolerance;
        if noise || !self.episode.on_loss(loss) {
            return;
        }
        let keep = self.values.loss_beta;
        self.mode.on_loss();
        if keep < 1.0 {
            self.set_window(self.window * keep);
            self.velocity = Velocity::new(self.window);
        }
    }

    /// The paper has no answer to marks: the bound of `ceiling.rs`. Slow start ends, and in
    /// competitive mode it is a loss (§2.4).
    fn on_marked(&mut self, marked: &Marked) {
        let mss = Bytes::new(self.mss as u64);
        if !self.ceiling.on_marked(marked, self.window(), mss) {
            return;
        }
        self.set_window(self.window);
        self.velocity = Velocity::new(self.window);
        self.mode.on_loss();
        if self.slow_start {
            self.leave_slow_start(marked.now);
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.episode.on_timeout(timeout.now);
        self.set_window(self.window_min);
        self.velocity = Velocity::new(self.window);
        self.mode = Mode::new(timeout.now);
        self.drain = None;
        self.rival = None;
        self.descent = None;
        self.slow_start = true;
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.limits = *limits;
        self.mss = limits.mss.max(Bytes::new(1)).as_f64();
        self.window_min = limits.min_window.as_f64().max(self.mss);
        self.window = self.window.max(self.window_min);
        self.ceiling.on_mtu(limits.mss);
        if let Some(rival) = &mut self.rival {
            rival.on_mtu(limits);
        }
    }

    fn on_idle(&mut self, _idle: &Idle) {
        let kept = self.window * self.values.restart;
        self.set_window(kept.max(self.window.min(self.initial_window())));
        self.velocity = Velocity::new(self.window);
        self.slow_start |= self.values.restart_probe;
    }

    fn window(&self) -> Bytes {
        let window = self.drain.map_or(self.window, |drain| self.window.min(drain.held));
        Bytes::new(window.max(self.window_min) as u64)
    }

    /// Twice the window per standing round-trip time (§2.1), so that pacing smooths bursts and the
    /// window still limits.
    fn pacing_rate(&self) -> Option<Rate> {
        let standing = self.rtt_standing.get()?;
        let gain = self.values.pacing_gain;
        let rate = Rate::from_bytes_per_sec_f64(gain * self.window / standing.as_secs_f64());
        Some(rate.max(Rate::from_bytes_per_sec(1)))
    }

    fn phase(&self) -> Phase {
        if self.slow_start { Phase::SlowStart } else { Phase::Steady }
    }

    /// Losses do not move the window but as the knobs say.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}

#[cfg(test)]
mod rival_tests;
#[cfg(test)]
mod tests;
