//! The state machine of Careful Resume, without the algorithm: RFC 9959 §3, phase by phase.

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::observer::Observer;
use super::{Resumption, Saved, Settings};
use crate::migrate::HandOver;
use crate::{Ack, Config, Discarded, Loss, Phase, Sent, Timeout};

/// §4.2.1: a round-trip time of half the saved one, or less, is another path.
const RTT_LEAST: u64 = 2;
/// §4.2.1: and so is one of more than ten times the saved one.
const RTT_MOST: u64 = 10;
/// §3.3: a jump goes to half of what was saved.
const JUMP: u64 = 2;
/// §3.5: a retreat leaves half of what was validated.
const RETREAT: u64 = 2;
/// §3.1: less than four initial windows is not worth saving.
const WORTHWHILE: u64 = 4;
/// A round-trip time is at least this: rates stay finite on a link without delay.
const RTT_FLOOR: Duration = Duration::from_micros(1);

/// A phase of Careful Resume (RFC 9959 §3, Figure 1). The RFC's Observing is part of
/// [`Normal`](Self::Normal).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The connection runs as any other, and it is not known yet whether the path is the saved one.
    Reconnaissance,
    /// The window has jumped; nothing that was sent since has been acknowledged.
    Unvalidated,
    /// What was sent after the jump is being acknowledged.
    Validating,
    /// The path did not bear the jump; what was sent is drained.
    SafeRetreat,
    /// The algorithm alone governs; what the path delivers is observed.
    Normal,
}

/// Why a phase was entered; those of the RFC by the names that it gives for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The connection begins.
    Start,
    /// The connection begins, and there is nothing to resume.
    NothingSaved,
    /// All the initial data was acknowledged, and there is more than the window allows (§3.2).
    PathConfirmed,
    /// The round-trip time is not that of the saved path (§3.2).
    RttNotValidated,
    /// The lifetime of the saved parameters is over (§3.2).
    Expired,
    /// The algorithm left slow start by itself, as at a rising delay (§4.2.1).
    SlowStartExit,
    /// The algorithm's own window is as large as the jump.
    WindowReached,
    /// A packet was lost.
    PacketLoss,
    /// A packet was marked.
    EcnCe,
    /// A timeout, or QUIC's persistent congestion (§3.6).
    PersistentCongestion,
    /// The round-trip time fell to that of another path during the jump (§3.3).
    PathChanged,
    /// The window of the jump is used (§3.3).
    LastUnvalidatedPacketSent,
    /// A packet of the jump was acknowledged (§3.3).
    FirstUnvalidatedPacketAcknowledged,
    /// The jump took a round trip (§3.3).
    RttExceeded,
    /// The application did not use the jump (§3.3).
    RateLimited,
    /// All packets of the jump were acknowledged (§3.4).
    LastUnvalidatedPacketAcknowledged,
    /// The last packet of the jump, or a later one, was acknowledged in the retreat (§3.5).
    ExitRecovery,
}

/// What the algorithm has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    /// Nothing.
    Keep,
    /// Go on at this window.
    Window(Bytes),
    /// Go on after a retreat.
    Retreat { from: HandOver, ssthresh: Bytes },
}

/// How far a connection has resumed, and what it observed.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    limits: Config,
    settings: Settings,
    saved: Option<Saved>,
    stage: Stage,
    trigger: Trigger,
    refuted: bool,
    /// The algorithm's phase at its beginning; when it leaves that, it has seen a limit.
    first: Phase,
    /// What was sent before the first acknowledgement, and whether that has come.
    initial: Bytes,
    heard: bool,
    /// The window of the jump.
    jump: Bytes,
    /// In flight when the jump began, and what was acknowledged since.
    before: Bytes,
    acked: Bytes,
    lost: Bytes,
    /// When the jump is over at the latest.
    until: Time,
    /// When the first and the last packet of the jump were sent.
    first_sent_at: Option<Time>,
    last_sent_at: Time,
    /// When so much is delivered, every packet of the jump has arrived.
    all_delivered: Bytes,
    /// The window of the retreat.
    held: Bytes,
    current_rtt: Duration,
    srtt: Duration,
    min_rtt: Duration,
    inflight: Bytes,
    delivered: Bytes,
    observer: Observer,
}

impl CarefulResume {
    pub(super) fn new(limits: &Config, how: Resumption, first: Phase) -> Self {
        let Resumption { settings, saved } = how;
        let (stage, trigger) = match saved {
            Some(_) => (Stage::Reconnaissance, Trigger::Start),
            None => (Stage::Normal, Trigger::NothingSaved),
        };
        Self {
            limits: *limits,
            settings,
            saved,
            stage,
            trigger,
            refuted: false,
            first,
            initial: Bytes::ZERO,
            heard: false,
            jump: Bytes::ZERO,
            before: Bytes::ZERO,
            acked: Bytes::ZERO,
            lost: Bytes::ZERO,
            until: Time::MAX,
            first_sent_at: None,
            last_sent_at: Time::ZERO,
            all_delivered: Bytes::ZERO,
            held: Bytes::ZERO,
            current_rtt: RTT_FLOOR,
            srtt: RTT_FLOOR,
            min_rtt: RTT_FLOOR,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            observer: Observer::new(),
        }
    }

    /// The phase.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Why the connection is in this phase.
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Whether the saved parameters turned out wrong or too old, so that the host must delete them
    /// (§3.2, §3.5).
    pub fn is_refuted(&self) -> bool {
        self.refuted
    }

    /// The window of the jump, of which more than half of what was saved is never made (§3.3);
    /// zero where the connection has not jumped.
    pub fn jump(&self) -> Bytes {
        self.jump
    }

    /// The validated capacity (§3.3, "`PipeSize`"): what was in flight before the jump, and the
    /// packets of the jump that arrived. Those that were in flight before it count once: only an
    /// unvalidated packet that is acknowledged adds to it (§2.5; Appendix, "Loss detected in the
    /// Validating Phase").
    pub fn pipe_size(&self) -> Bytes {
        self.before.max(self.acked)
    }

    /// What to save of this connection now; `None` where it has seen less than four initial windows
    /// in a round trip, which is not worth it (§3.1). It takes the place of what was saved before.
    pub fn observed(&self, now: Time) -> Option<Saved> {
        let (window, rtt) = self.observer.observed()?;
        let expires = now + Duration::from_secs_f64(self.settings.lifetime);
        (window >= self.limits.initial_window * WORTHWHILE).then_some(Saved {
            window,
            rtt,
            expires,
        })
    }

    /// The window in force, where it is not the algorithm's.
    pub(super) fn window(&self) -> Option<Bytes> {
        let window = match self.stage {
            Stage::Unvalidated => self.jump,
            Stage::SafeRetreat => self.held,
            Stage::Reconnaissance | Stage::Validating | Stage::Normal => return None,
        };
        // Packets may have grown meanwhile.
        Some(window.max(self.limits.min_window))
    }

    /// §3.3 and §4.4: packets of the jump are paced over the current round-trip time.
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.jump / self.current_rtt;
        (self.stage == Stage::Unvalidated).then(|| rate.max(Rate::from_bytes_per_sec(1)))
    }

    pub(super) fn srtt(&self) -> Duration {
        self.srtt
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        (self.stage == Stage::Unvalidated).then_some(self.until)
    }

    fn enter(&mut self, stage: Stage, trigger: Trigger) {
        (self.stage, self.trigger) = (stage, trigger);
        if stage == Stage::Normal {
            // §4.7: what follows may be observed.
            self.observer = Observer::new();
        }
    }

    /// §3.2 and §3.3.
    pub(super) fn on_sent(&mut self, sent: &Sent) -> Order {
        self.inflight = sent.inflight;
        match self.stage {
            Stage::Reconnaissance if !self.heard => self.initial += sent.bytes,
            Stage::Unvalidated => {
                self.first_sent_at.get_or_insert(sent.now);
                self.last_sent_at = sent.now;
                // §3.3: "less than one maximum-sized packet" of the window is left.
                if sent.inflight + self.limits.mss > self.jump {
                    return self.end_jump(Trigger::LastUnvalidatedPacketSent);
                }
                return self.on_timer(sent.now);
            }
            _ => {}
        }
        Order::Keep
    }

    /// The algorithm, of this phase and window now, has taken the acknowledgement already.
    pub(super) fn on_ack(&mut self, ack: &Ack, phase: Phase, window: Bytes) -> Order {
        self.srtt = ack.srtt.max(RTT_FLOOR);
        self.min_rtt = ack.min_rtt.max(RTT_FLOOR);
        self.current_rtt = ack.rtt.unwrap_or(ack.srtt).max(RTT_FLOOR);
        (self.inflight, self.delivered) = (ack.inflight, ack.delivered);
        // §3.3 to §3.5, tracking PipeSize.
        self.acked += ack.acked;
        match (self.stage, self.saved) {
            (Stage::Reconnaissance, Some(saved)) => self.reconnoitre(ack, saved, phase, window),
            (Stage::Unvalidated, Some(saved)) if is_shorter(self.min_rtt, saved.rtt) => {
                self.begin_retreat(Trigger::PathChanged, window);
                Order::Keep
            }
            (Stage::Unvalidated, _) => {
                if self.first_sent_at.is_some_and(|at| ack.newest_sent_at >= at) {
                    return self.end_jump(Trigger::FirstUnvalidatedPacketAcknowledged);
                }
                self.on_timer(ack.now)
            }
            (Stage::Validating, _) => {
                let later = ack.newest_sent_at > self.last_sent_at;
                if later || self.delivered >= self.all_delivered {
                    self.enter(Stage::Normal, Trigger::LastUnvalidatedPacketAcknowledged);
                }
                Order::Keep
            }
            (Stage::SafeRetreat, _) => {
                self.hold(window);
                if ack.newest_sent_at < self.last_sent_at {
                    return Order::Keep;
                }
                self.enter(Stage::Normal, Trigger::ExitRecovery);
                self.retreat(ack.now, self.held)
            }
            (Stage::Reconnaissance | Stage::Normal, _) => {
                self.observer.on_ack(ack);
                Order::Keep
            }
        }
    }

    /// §3.2.
    fn reconnoitre(&mut self, ack: &Ack, saved: Saved, phase: Phase, window: Bytes) -> Order {
        self.heard = true;
        let most = self.limits.mss.mul_f64(self.settings.max_jump);
        let jump = most.min(saved.window / JUMP);
        let confirmed = !self.initial.is_zero() && self.delivered >= self.initial;
        if is_shorter(self.min_rtt, saved.rtt) {
            self.enter(Stage::Normal, Trigger::RttNotValidated);
        } else if ack.now > saved.expires {
            self.refuted = true;
            self.enter(Stage::Normal, Trigger::Expired);
        } else if phase != self.first {
            // §4.2.1 leaves it open whether a rising delay counts; here it does.
            self.enter(Stage::Normal, Trigger::SlowStartExit);
        } else if jump <= window {
            self.enter(Stage::Normal, Trigger::WindowReached);
        } else if confirmed && ack.cwnd_limited {
            // §4.2.1, note 1: the lowest round-trip time is checked on entry.
            if self.min_rtt > saved.rtt * RTT_MOST {
                self.enter(Stage::Normal, Trigger::RttNotValidated);
            } else {
                self.begin_jump(ack, jump);
            }
        }
        Order::Keep
    }

    /// §3.3, on entry.
    fn begin_jump(&mut self, ack: &Ack, jump: Bytes) {
        self.enter(Stage::Unvalidated, Trigger::PathConfirmed);
        self.jump = jump;
        (self.before, self.acked, self.lost) = (ack.inflight, Bytes::ZERO, Bytes::ZERO);
        self.until = ack.now + self.current_rtt;
        (self.first_sent_at, self.last_sent_at) = (None, ack.now);
    }

    /// §3.3, "Check `flight_size`".
    fn end_jump(&mut self, trigger: Trigger) -> Order {
        let (flight, pipe) = (self.inflight, self.pipe_size());
        if flight < self.limits.initial_window || flight <= pipe {
            self.enter(Stage::Normal, Trigger::RateLimited);
            return Order::Window(pipe.max(self.limits.initial_window));
        }
        self.enter(Stage::Validating, trigger);
        self.all_delivered = self.delivered + flight;
        Order::Window(flight)
    }

    /// §3.3: more than a round trip in the Unvalidated Phase.
    pub(super) fn on_timer(&mut self, now: Time) -> Order {
        if self.stage == Stage::Unvalidated && now >= self.until {
            self.end_jump(Trigger::RttExceeded)
        } else {
            Order::Keep
        }
    }

    pub(super) fn on_loss(&mut self, loss: &Loss, window: Bytes) {
        self.inflight = loss.inflight;
        self.lost += loss.lost;
        self.on_congestion(Trigger::PacketLoss, window);
    }

    /// A sign of congestion, which the algorithm, of this window now, has answered already.
    pub(super) fn on_congestion(&mut self, trigger: Trigger, window: Bytes) {
        match self.stage {
            // §3.2: without a change to the window.
            Stage::Reconnaissance => self.enter(Stage::Normal, trigger),
            Stage::Unvalidated | Stage::Validating => self.begin_retreat(trigger, window),
            Stage::SafeRetreat => self.hold(window),
            Stage::Normal => {}
        }
    }

    /// §3.5, on entry: the parameters are wrong, and the window is half of the `PipeSize` at most.
    fn begin_retreat(&mut self, trigger: Trigger, window: Bytes) {
        self.enter(Stage::SafeRetreat, trigger);
        self.refuted = true;
        self.held = (self.pipe_size() / RETREAT).max(self.limits.min_window);
        self.hold(window);
    }

    /// §3.5, "Maintaining CWND": the window of the retreat never grows, and is never above the
    /// algorithm's own.
    pub(super) fn hold(&mut self, window: Bytes) {
        self.held = self.held.min(window);
    }

    /// §3.5, on leaving: the threshold is no larger than `PipeSize` * Beta.
    fn retreat(&self, now: Time, window: Bytes) -> Order {
        let pipe = self.pipe_size();
        let ssthresh = pipe.mul_f64(self.settings.beta);
        let all = (self.lost + pipe).as_f64().max(1.0);
        let least = Rate::from_bytes_per_sec(1);
        Order::Retreat {
            from: HandOver {
                now,
                window,
                rate: (window / self.srtt).max(least),
                srtt: self.srtt,
                min_rtt: self.min_rtt,
                min_rtt_at: now,
                // Appendix, "Safe Retreat for BBR": no delivery rate of the jump may count.
                bandwidth: (ssthresh / self.srtt).max(least),
                recent_bandwidth: (ssthresh / self.srtt).max(least),
                loss: self.lost.as_f64() / all,
                inflight: self.inflight,
                delivered: self.delivered,
                modelled: false,
                saw_empty_queue: false,
                starved: false,
            },
            ssthresh,
        }
    }

    /// §3.6: the connection ceases to resume. The RFC asks for no more; but a timeout after a jump is
    /// the worst sign of it, and the algorithm's own threshold would go by the window of the jump. So
    /// the threshold is that of a retreat, and the parameters are wrong.
    pub(super) fn on_timeout(&mut self, timeout: &Timeout, window: Bytes) -> Order {
        self.inflight = timeout.inflight;
        let jumped = match self.stage {
            Stage::Normal => return Order::Keep,
            Stage::Reconnaissance => false,
            Stage::Unvalidated | Stage::Validating | Stage::SafeRetreat => true,
        };
        self.enter(Stage::Normal, Trigger::PersistentCongestion);
        self.refuted |= jumped;
        if jumped { self.retreat(timeout.now, window) } else { Order::Keep }
    }

    /// They will neither be acknowledged nor lost.
    pub(super) fn on_discarded(&mut self, discarded: &Discarded) {
        self.inflight = discarded.inflight;
        self.all_delivered -= discarded.bytes;
    }

    pub(super) fn on_mtu(&mut self, limits: &Config) {
        self.limits = Config { seed: self.limits.seed, ..*limits };
        if self.stage == Stage::SafeRetreat {
            // §3.5: what stood above half of the pipe did so as the least window, which is another.
            self.hold((self.pipe_size() / RETREAT).max(limits.min_window));
        }
    }
}

/// §3.2, "Minimum RTT too small".
fn is_shorter(rtt: Duration, saved: Duration) -> bool {
    rtt * RTT_LEAST <= saved
}
