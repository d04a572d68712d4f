//! The way back: to the fallback when a connection suffers, and to what it had when nothing steers it any more.
//!
//! This asks nothing of what steers. Whatever was turned or switched is known, so a new kind of steering is guarded
//! without being named here.

use std::sync::Arc;

use trimtab_cc::migrate::Switch;
use trimtab_datapath::Algorithm;
use trimtab_steer::Steer;
use trimtab_steer::safety::{Measured, Verdict};
use trimtab_units::Time;

use super::{Connection, DELTA_FIRST, SAFE_DELTA, Setting};
use crate::config::{Rule, Steering};
use crate::connection::decision::{Cause, Change, Decision, seconds};
use crate::daemon::logging;
use crate::datapath::{Link, algorithm};

impl<L: Link> Connection<L> {
    /// Looks whether the connection suffers from what was done to it, and lets the fallback take over when it does.
    pub(super) fn guard(&mut self, measured: &Measured, setting: &Setting<'_>) -> Option<String> {
        let safe = self.safe(self.steered_by(setting)?)?;
        let is_steered = self.deviates(safe);
        let identity = *self.link.identity();
        let who = || logging::connection(&identity);
        match self.guard.make().on_window(measured, setting.safety, is_steered) {
            Verdict::Go => None,
            Verdict::Back(harm) => {
                let customizing = self.customizing.as_deref_mut();
                if let (Some(customizing), Some(edge)) = (customizing, setting.edge) {
                    customizing.part.pause(edge);
                }
                let cause = Cause::Harm {
                    harm,
                    loss: measured.point.loss,
                    queueing_ms: measured.queueing.as_millis_f64(),
                };
                let note = format!("{}: {cause}", who());
                self.go_back(safe, &cause, setting.now);
                Some(note)
            }
            Verdict::Again => {
                self.start(Some(SAFE_DELTA), setting);
                Some(format!("{}: steered again after a rest", who()))
            }
            Verdict::NotOurs => {
                self.start(DELTA_FIRST, setting);
                Some(format!(
                    "{}: it suffers as much without steering, and is steered again",
                    who()
                ))
            }
        }
    }

    /// What takes over when it suffers; `None` where the administrator wants nothing to.
    fn safe(&self, rule: &Rule) -> Option<Algorithm> {
        // The guard of trees is in the kernel, and so is what takes over.
        if let Some(Steering::Muses(forest)) = &rule.steering {
            return forest.safe;
        }
        let own = self.steering.as_deref().and_then(Steer::fallback);
        Some(own.and_then(|spec| algorithm(spec.algorithm().name)).unwrap_or_else(|| self.home()))
    }

    /// What it ran before it was steered.
    pub(super) fn home(&self) -> Algorithm {
        algorithm(self.home).unwrap_or_else(|| self.link.algorithm())
    }

    /// Whether it runs anything else than this algorithm as it is without us.
    fn deviates(&self, from: Algorithm) -> bool {
        self.is_switched(from) || self.applied.iter().any(|knob| !is_near(knob.value, knob.before))
    }

    /// Whether another algorithm than this runs or is to, or this one with knobs of a steering.
    fn is_switched(&self, from: Algorithm) -> bool {
        let pending = || self.link.switching().and_then(|switching| switching.pending);
        self.link.algorithm() != from
            || self.asked.get().is_some_and(|asked| asked.with_knobs(from))
            || pending().is_some_and(|next| next != from)
    }

    /// Gives the connection back what it had before it was steered. Somebody else's choice stays.
    pub(crate) fn put_back(&mut self, now: Time) {
        self.notice_others();
        if !self.yielded {
            self.go_back(self.home(), &Cause::Back, now);
            self.applied = Arc::default();
            self.asked.clear();
        }
    }

    /// Gives back the knobs that a rule set and its successor does not.
    pub(super) fn drop_knobs(&mut self, setting: &Setting<'_>) {
        self.notice_others();
        if self.yielded {
            return;
        }
        let stays = |knob: &str| {
            setting.rule.is_some_and(|rule| rule.knobs.iter().any(|(name, _)| *name == knob))
        };
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.applied.iter().partition(|turned| turned.of_rule && !stays(turned.knob));
        self.applied = Arc::new(gone);
        self.knobs_back(&Cause::Rule, setting.now);
        self.applied = Arc::new(kept);
    }

    /// Lets this algorithm take over, and turns all knobs back.
    fn go_back(&mut self, to: Algorithm, cause: &Cause, now: Time) {
        if self.is_switched(to) {
            let from = self.link.algorithm();
            // The fallback behind Muses was given its knobs before (`start_trees`); elsewhere they
            // are the defaults. Not when the running algorithm has converged, as a turn would:
            // under harm it may never.
            let settings: Option<&[(&str, f64)]> = if from.asks_trees() { None } else { Some(&[]) };
            if self.link.switch(to, settings, Switch::Part).is_err() {
                return; // the connection's end, which the next look sees
            }
            self.asked.clear();
            let change =
                Change::Algorithm { from: from.name().into(), to: to.name().into(), full: false };
            self.record(change, cause, now);
            if from.asks_trees() {
                return; // its knobs stay for when it runs again
            }
        }
        self.knobs_back(cause, now);
    }

    /// Turns all knobs back that we have turned.
    fn knobs_back(&mut self, cause: &Cause, now: Time) {
        let mut applied = std::mem::take(&mut self.applied);
        let all = Arc::make_mut(&mut applied);
        for turned in all.iter_mut().filter(|turned| !is_near(turned.value, turned.before)) {
            let Ok(in_force) = self.link.set(turned.knob, turned.before) else { continue };
            let before = Some(std::mem::replace(&mut turned.value, in_force));
            let change = Change::Knob { knob: turned.knob.into(), before, value: in_force };
            self.record(change, cause, now);
        }
        self.applied = applied;
    }

    pub(super) fn record(&mut self, change: Change, cause: &Cause, now: Time) {
        let decision = Decision { at_s: seconds(now), change, applied: true, cause: cause.clone() };
        self.decisions.add(decision);
    }

    /// What a knob has without us. A connection that is not new, or began with the knobs of its destination, may have
    /// what an agent before turned: then it is the algorithm's own value. Muses knows no knob that is right everywhere.
    pub(super) fn untouched(&self, knob: &str) -> f64 {
        let algorithm = self.link.algorithm();
        let own = algorithm.knobs().iter().find(|k| k.name == knob).map_or(0.0, |k| k.default);
        let is_known = self.is_new && !self.link.identity().towards;
        if is_known || algorithm.asks_trees() { self.link.knob(knob).unwrap_or(own) } else { own }
    }
}

/// Whether two values of a knob are the same, but for what the kernel's integers round.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-3 * b.abs().max(1e-3)
}
