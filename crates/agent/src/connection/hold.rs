//! What an operator's order, or the arm of a comparison, does to a connection at once.

use std::sync::Arc;

use trimtab_cc::migrate::Switch;
use trimtab_steer::safety::Arm;

use super::{Connection, DELTA_FIRST, Setting};
use crate::config::{Mode, Rule};
use crate::connection::decision::{Cause, Change};
use crate::connection::sleep::Sleep;
use crate::datapath::Link;
use crate::operate::Held;

impl<L: Link> Connection<L> {
    /// Stands under this order from now on; whether that is another than before.
    pub(crate) fn hold(&mut self, held: Option<Held>, setting: &Setting<'_>) -> bool {
        let is_new = held != self.held;
        if is_new {
            self.held = held;
            self.follow(self.arm, self.rule, setting);
        }
        is_new
    }

    /// Whether it is to run what it would run without Trimtab.
    pub(super) fn wants_former(&self) -> bool {
        self.arm == Arm::Former || self.held.is_some_and(Held::wants_former)
    }

    /// Lets its former algorithm take over. The datapath's own is what it changes to, so that it is
    /// measured as before; where a rule assigned its algorithm, the kernel's follows with the next
    /// walk over the sockets, unless it is of a comparison.
    pub(super) fn run_former(&mut self, setting: &Setting<'_>) {
        let is_ours = setting.mode == Mode::Apply && !self.yielded && self.wants_former();
        let Some(former) = setting.former.filter(|_| is_ours) else { return };
        let from = self.link.algorithm();
        let is_stable = self.link.switching().is_none_or(|switching| switching.pending.is_none());
        if from == former && is_stable {
            return;
        }
        // An error is the connection's end, which the next look sees.
        if self.link.switch(former, Some(&[]), Switch::Part).is_ok() {
            let change = Change::Algorithm {
                from: from.name().into(),
                to: former.name().into(),
                full: false,
            };
            self.record(change, &Cause::Former, setting.now);
        }
    }

    /// Whether it goes back to its rule's algorithm when nothing steers it.
    pub(crate) fn is_home(&self, rule: &Rule) -> bool {
        self.home() == rule.algorithm
    }

    /// Its rule assigned its algorithm, though it may have begun with the copy of the former one. From
    /// now on it goes back to its rule's algorithm. Returns whether it does so at once: it is not in
    /// the arm `former`, and runs the copy.
    pub(crate) fn come_home(&mut self, rule: &Rule, setting: &Setting<'_>) -> bool {
        // What a guard let take over is not what it began with.
        if setting.former != Some(self.home()) || self.link.alarm().is_some() {
            return false;
        }
        self.home = rule.algorithm.name();
        let is_ours = !self.yielded && !self.link.is_closing();
        let moves = is_ours && !self.wants_former() && !self.runs(rule);
        if moves {
            self.follow(self.arm, self.rule, setting);
        }
        moves
    }

    /// Begins anew: every knob is the algorithm's default, also those that somebody else turned, and
    /// what was learnt of the connection is forgotten.
    pub(crate) fn reset(&mut self, setting: &Setting<'_>) {
        let totals = self.link.totals();
        self.end(setting.mode, setting.edge, totals.as_ref());
        self.steering = None;
        self.guard.clear();
        self.sleep = Sleep::default();
        self.yielded = false;
        // What was turned counts as turned by nobody, so that nothing is left to others.
        for turned in Arc::make_mut(&mut self.applied) {
            turned.value = self.link.knob(turned.knob).unwrap_or(turned.value);
        }
        self.put_back(setting.now);
        let running = self.link.algorithm();
        // Trees need their model: without one they could not decide.
        for knob in running.knobs().iter().filter(|_| !running.asks_trees()) {
            let before = self.link.knob(knob.name).ok();
            if before.is_some_and(|now| now != knob.default)
                && let Ok(value) = self.link.set(knob.name, knob.default)
            {
                let change = Change::Knob { knob: knob.name.into(), before, value };
                self.record(change, &Cause::Reset, setting.now);
            }
        }
        self.kind = self.kind_by(setting);
        self.run_former(setting);
        self.start(DELTA_FIRST, setting);
    }
}
