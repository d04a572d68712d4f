//! Muses: a learnt policy multiplies the window every 10 ms.
//!
//! Read first: Zhong et al., "Muses: Enabling Lightweight Learning-Based Congestion Control for Mobile Devices"
//! (INFOCOM 2022) §III. [`State`] is what a policy sees (Table I), [`Action`] what it may do; this file is the
//! part that measures and acts for every policy. With every acknowledgement that ends a control interval it has a
//! state to be answered: by its own [`Trees`], or from outside by
//! [`awaiting`](CongestionControl::awaiting) and [`on_decision`](CongestionControl::on_decision), for a
//! training or for a policy too heavy for this crate. Both lead to the same states.
//!
//! Where the paper is silent:
//!
//! * **Pacing.** The paper's sender is not paced. A window that doubles would then leave as one burst; here the
//!   transport paces as it does for any algorithm that gives no rate (RFC 9002 §7.7).
//! * **Loss.** There is no reaction but the policy's, which sees it as a signal. A timeout is different: what was
//!   in flight is written off, so the window falls to its floor (RFC 9002 §7.6.2), from which doubling every
//!   10 ms leads back.
//! * **Marks.** Congestion marks (ECN) bound the window (`ceiling.rs`). The policy sees no signal of them, and a path
//!   that it leaves idle under such a bound is no reason for the guard to speak.
//! * **Trust.** A guard watches each state ([`Alarm`]); a [`Switcher`](crate::migrate::Switcher)
//!   can hand the connection to another algorithm when it speaks.
//! * **A window that is not used** does not grow (RFC 9002 §7.8).

mod action;
mod guard;
mod inputs;
mod log2;
mod signals;
mod trees;

pub use action::{
    ACTIONS, Action, Decision, FACTOR_POINT, Factor, PACKET_PARTS, best_action, optimal_window,
};
pub use guard::Alarm;
pub use inputs::{INPUT_NAMES, INPUTS, Inputs, Past};
pub use log2::log2;
pub use signals::{SIGNAL_NAMES, SIGNALS, State};
pub use trees::{
    BINS, COMPONENTS, Component, Counts, FILE_MAX, Node, TREES_MAX, Trees, TreesError, WEIGHT_POINT,
};

use trimtab_units::{Bytes, Duration, Time};

use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{
    Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Sent, Timeout,
};
use guard::Guard;
use signals::Signals;

/// The control interval (Muses §III-C).
pub const INTERVAL: Duration = Duration::from_millis(10);
/// The window never falls below so many packets.
const PACKETS_MIN: u64 = 2;

/// The trees of a model, and which of them a connection asks.
#[derive(Clone, Debug)]
struct Choice {
    trees: Trees<'static>,
    tree: usize,
    counts: Counts,
    past: Past,
}

impl Choice {
    /// What the window is multiplied by in a state, and every T_l the tree that fits the states
    /// seen since the last time (Muses §III-F). For a model of one tree there is nothing to choose.
    fn decide(&mut self, state: &State) -> Factor {
        if self.trees.count() > 1
            && self.counts.add(self.trees.segments(state)) >= self.trees.states()
        {
            self.tree = self.trees.nearest(&self.counts);
            self.counts = Counts::default();
        }
        self.trees.decide(self.tree, &self.past.see(state))
    }
}

knobs! {
    /// The value of its knob.
    struct Values {
        cap: f64 = 65_536.0, 4.0..=1_000_000.0, "packets",
            "no window is larger, whatever the policy says";
    }
}

/// A window that a policy multiplies. See the module.
#[derive(Clone, Debug)]
pub struct Muses {
    mss: Bytes,
    /// Windows are in 1/1024 packets.
    cwnd: u64,
    cwnd_min: u64,
    initial: u64,
    values: Values,
    signals: Signals,
    /// When the interval began; `None` before the first acknowledgement, which ends the first.
    began: Option<Time>,
    /// Whether the window limited the sender in this interval, and in the one that is to be answered.
    is_used: bool,
    was_used: bool,
    awaiting: Option<State>,
    guard: Guard,
    ceiling: Ceiling,
    /// `None` where the actions come from outside.
    choice: Option<Choice>,
}

impl Muses {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection that waits for each of its actions.
    pub fn new(config: &Config) -> Self {
        let mss = config.mss.max(Bytes::new(1));
        let parts = |bytes: Bytes| bytes.get().min(1 << 40) * PACKET_PARTS / mss.get();
        let cwnd_min = parts(config.min_window).max(PACKETS_MIN * PACKET_PARTS);
        let initial = parts(config.initial_window).max(cwnd_min);
        Self {
            mss,
            cwnd: initial,
            cwnd_min,
            initial,
            values: Values::default(),
            signals: Signals::default(),
            began: None,
            is_used: false,
            was_used: false,
            awaiting: None,
            guard: Guard::default(),
            ceiling: Ceiling::default(),
            choice: None,
        }
    }

    fn on_knob(&mut self, _place: usize) {
        self.set(self.cwnd);
    }

    /// A new connection that asks the trees of a model.
    pub fn with_trees(config: &Config, trees: Trees<'static>) -> Self {
        let tree = trees.first();
        let choice = Choice { trees, tree, counts: Counts::default(), past: Past::default() };
        Self { choice: Some(choice), ..Self::new(config) }
    }

    /// The tree that the connection asks now; `None` where the actions come from outside.
    pub fn tree(&self) -> Option<usize> {
        self.choice.as_ref().map(|choice| choice.tree)
    }

    /// Begins with this tree instead of the model's first: that with which an earlier connection over the same path
    /// ended (Muses §III-F). A tree that is not there changes nothing.
    pub fn start_with(&mut self, tree: usize) {
        if let Some(choice) = &mut self.choice
            && tree < choice.trees.count()
        {
            choice.tree = tree;
        }
    }

    /// Why the policy is not to be trusted any longer on this connection; `None` while it is.
    pub fn alarm(&self) -> Option<Alarm> {
        self.guard.alarm()
    }

    /// The window in 1/1024 packets, as the actions see it.
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn set(&mut self, cwnd: u64) {
        let max =
            (self.values.cap as u64 * PACKET_PARTS).min(self.ceiling_parts()).max(self.cwnd_min);
        self.cwnd = cwnd.clamp(self.cwnd_min, max);
    }

    /// What congestion marks leave.
    fn ceiling_parts(&self) -> u64 {
        self.ceiling.get().get().min(1 << 40) * PACKET_PARTS / self.mss.get()
    }

    fn set_bytes(&mut self, window: Bytes) {
        self.set(window.get().min(1 << 40) * PACKET_PARTS / self.mss.get());
        self.awaiting = None;
    }
}

impl CongestionControl for Muses {
    fn on_sent(&mut self, sent: &Sent) {
        self.signals.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.signals.on_ack(ack);
        self.is_used |= ack.cwnd_limited;
        let limits = ack.cwnd_limited && self.cwnd >= self.ceiling_parts();
        self.ceiling.on_ack(ack, limits, self.mss);
        if self.began.is_none_or(|began| ack.now.since(began) >= INTERVAL) {
            self.began = Some(ack.now);
            self.was_used = core::mem::take(&mut self.is_used);
            let state = self.signals.end_interval(self.cwnd);
            self.awaiting = Some(state);
            if let Some(choice) = &mut self.choice {
                let factor = choice.decide(&state);
                let known = choice.trees.knows(&state);
                self.on_decision(Decision { factor, known });
            }
        }
    }

    fn awaiting(&self) -> Option<&State> {
        self.awaiting.as_ref()
    }

    fn on_decision(&mut self, decision: Decision) {
        let Decision { factor, known } = decision;
        let Some(state) = self.awaiting.take() else { return };
        let known = known || self.ceiling.is_set();
        self.guard.watch(&state, known, self.was_used, self.mss);
        if self.was_used || !factor.grows() {
            self.set(factor.apply(self.cwnd));
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_marked(&mut self, marked: &Marked) {
        if self.ceiling.on_marked(marked, self.window(), self.mss) {
            self.set(self.cwnd);
        }
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.set(self.cwnd_min);
    }

    fn on_mtu(&mut self, limits: &Config) {
        let window = self.window();
        let new = Self::new(limits);
        (self.mss, self.cwnd_min, self.initial) = (new.mss, new.cwnd_min, new.initial);
        self.ceiling.on_mtu(new.mss);
        // A state that waits counts packets of the old size.
        self.set_bytes(window);
    }

    fn on_idle(&mut self, _idle: &Idle) {
        // What was measured is of another time (RFC 5681 §4.1).
        self.set(self.cwnd.min(self.initial));
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.cwnd * self.mss.get() / PACKET_PARTS)
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Muses {
    fn is_converged(&self) -> bool {
        true
    }

    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let mut window = self.window();
        if let (Some(Alarm::RunAway), Some(bandwidth)) = (self.alarm(), path.bandwidth()) {
            // What the policy made of it is not to be handed over.
            window = window.min(bandwidth * path.srtt()).max(self.mss * PACKETS_MIN);
        }
        let idle = self.alarm() == Some(Alarm::Unknown);
        OperatingPoint { idle, ..OperatingPoint::of_window(window, path) }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.set_bytes(from.window);
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.set_bytes(window);
    }
}

/// Muses whose actions come from outside: from a training, or from a policy too heavy for this crate. It is not
/// in the table of algorithms, since alone it does nothing.
pub static DRIVEN: Algorithm = Algorithm {
    name: "muses",
    about: "a window that an outside policy multiplies every 10 ms",
    source: "Zhong et al., INFOCOM 2022",
    knobs: Muses::KNOBS,
    presets: &[],
    build: |config| Muses::new(config).into(),
};

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::testing::{acked, timed_out};

    const PACKET: Bytes = Bytes::new(1500);

    fn ack(ms: u64) -> Ack {
        let rtt = Duration::from_millis(40);
        acked(Time::from_millis(ms), Time::from_millis(ms.saturating_sub(40)), PACKET, rtt)
    }

    fn action(number: u8) -> Action {
        Action::new(number).unwrap()
    }

    #[test]
    fn a_decision_with_the_first_acknowledgement_after_each_interval() {
        let mut muses = Muses::new(&Config::default());
        let mut at = Vec::new();
        for ms in [40, 43, 49, 50, 51, 59, 63, 140, 141, 150] {
            muses.on_ack(&ack(ms));
            if muses.awaiting().is_some() {
                at.push(ms);
                muses.on_decision(Decision::KEEP);
            }
        }
        assert_eq!(at, [40, 50, 63, 140, 150], "none where nothing arrived");
        assert_eq!(muses.window(), PACKET * 10);
    }

    #[test]
    fn actions_multiply_the_fractional_window_within_its_limits() {
        let mut muses = Muses::new(&Config::default());
        let mut step = |ms, number| {
            muses.on_ack(&ack(ms));
            muses.on_decision(action(number).into());
            muses.window().get()
        };
        // Each time rounded down to 1/1024 packets.
        assert_eq!(step(0, 4), 15_750 - 2);
        assert_eq!(step(10, 2), 15_000 - 2);
        assert_eq!(step(20, 6), 30_000 - 3);
        for i in 0..10 {
            step(30 + i * 10, 0);
        }
        assert_eq!(step(200, 0), 3_000, "two packets");
        crate::set_knob(&mut muses, "cap", 16.0).unwrap();
        for i in 0..10 {
            muses.on_ack(&ack(300 + i * 10));
            muses.on_decision(action(6).into());
        }
        assert_eq!(muses.window(), PACKET * 16);
    }

    #[test]
    fn an_action_without_a_state_is_none_and_an_unused_window_does_not_grow() {
        let mut muses = Muses::new(&Config::default());
        muses.on_decision(action(6).into());
        assert_eq!(muses.window(), PACKET * 10);
        for (ms, limited, number, packets) in
            [(0, false, 6, 10), (10, true, 6, 20), (20, false, 0, 10)]
        {
            muses.on_ack(&Ack { cwnd_limited: limited, ..ack(ms) });
            muses.on_decision(action(number).into());
            assert_eq!(muses.window(), PACKET * packets, "at {ms} ms");
        }
    }

    static SMALL: &[u8] = include_bytes!("small.trees");

    #[test]
    fn trees_answer_at_once_and_are_chosen_anew() {
        let trees = Trees::parse(SMALL).unwrap();
        let mut muses = Muses::with_trees(&Config::default(), trees);
        let mut seen = Vec::new();
        for i in 0..6 {
            // No queue: tree 1 shrinks by 5 %, tree 0 doubles. The first is 1; after four states it is 0.
            muses.on_ack(&ack(40 + 10 * i));
            assert!(muses.awaiting().is_none());
            seen.push((muses.tree().unwrap(), muses.window().get() / 1500));
        }
        assert_eq!(seen, [(1, 9), (1, 9), (1, 8), (0, 17), (0, 34), (0, 69)]);
        muses.start_with(1);
        muses.start_with(2);
        assert_eq!(muses.tree(), Some(1), "there is no third");
    }

    /// Four round trips and a second of an idle path that the policy does not know raise the alarm,
    /// but not where the bound of marks (RFC 3168 §5) holds the window down.
    #[test]
    fn a_path_that_marks_leave_idle_raises_no_alarm() {
        let alarm = |marks: bool| {
            let mut muses = Muses::new(&Config::default());
            if marks {
                let (now, inflight) = (Time::from_millis(30), PACKET * 10);
                let newest_sent_at = Time::ZERO;
                muses.on_marked(&Marked {
                    now,
                    newest_sent_at,
                    inflight,
                    prior_inflight: inflight,
                });
                assert_eq!(muses.window(), PACKET * 7);
            }
            for i in 0..300 {
                muses.on_ack(&ack(40 + 10 * i));
                muses.on_decision(Decision { known: false, ..Decision::KEEP });
            }
            muses.alarm()
        };
        assert_eq!((alarm(false), alarm(true)), (Some(Alarm::Unknown), None));
    }

    #[test]
    fn a_timeout_leads_to_the_floor() {
        let mut muses = Muses::new(&Config::default());
        muses.on_timeout(&timed_out(Time::from_millis(900)));
        assert_eq!(muses.window(), PACKET * 2);
    }
}
