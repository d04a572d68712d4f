//! Connections follow their arms, and rules that do harm let go of them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use trimtab_datapath::Totals;
use trimtab_fleet::Interval;
use trimtab_steer::safety::Measured;
use trimtab_units::{Duration, Time};

use super::{Core, addresses, operate};
use crate::arms::breaker::{self, Breakers};
use crate::arms::compare::{Comparison, Measurements};
use crate::arms::{Arms, Place, step};
use crate::config::{Config, Mode, Rule};
use crate::connection::{Connection, Standing};
use crate::daemon::note::Note;
use crate::datapath::{Datapath, Link};
use crate::doors::table::count;
use crate::doors::view::RolloutStatus;
use crate::kernel::ahead::Now;
use crate::kernel::assign::Addresses;
use crate::operate::holds::Hold;
use crate::operate::{Held, Target};

/// Who runs what for comparison, what that shows, and which rules do harm.
#[derive(Clone, Debug)]
pub(crate) struct Comparing {
    arms: Arms,
    measured: Measurements,
    breakers: Breakers,
    trips: BTreeMap<String, u64>,
    rollout_since: Time,
    /// The step by which connections have followed their arms.
    followed: Interval,
    /// The block and the stage in which they did.
    phase: (Option<i64>, Option<usize>),
}

impl Comparing {
    pub(super) fn new(config: &Config, now: Time) -> Self {
        let arms = Arms::new(config, now, now);
        Self {
            phase: arms.phase(now),
            arms,
            measured: Measurements::default(),
            breakers: Breakers::default(),
            trips: BTreeMap::new(),
            rollout_since: now,
            followed: step(now),
        }
    }

    /// Follows another configuration. What is rolled out begins anew where the rules are others.
    pub(super) fn follow(&mut self, before: &Config, config: &Config, now: Time) {
        let print = |config: &Config| format!("{:?} {:?}", config.rules, config.rollout);
        if print(before) != print(config) {
            self.rollout_since = now;
        }
        self.arms.follow(config, self.rollout_since, now);
        self.phase = self.arms.phase(now);
        self.measured = Measurements::default();
        self.breakers = Breakers::default();
    }

    /// What a client's connections run now.
    pub(crate) fn of(&self, client: IpAddr, now: Time) -> Place {
        self.arms.of(client, now)
    }

    /// What the hook of the root cgroup has to know of it.
    pub(crate) fn hooked(&self, suffix: &str, now: Time) -> trimtab_kernel::Arms {
        self.arms.hooked(suffix, now)
    }

    pub(super) fn on_window<L: Link>(
        &mut self,
        rule: Option<&Rule>,
        connection: &Connection<L>,
        (measured, score): (&Measured, Option<f64>),
        stands: Standing,
    ) {
        let Some(rule) = rule else { return };
        let client = connection.link.identity().remote.ip();
        let place = self.arms.of(client, measured.at);
        // What has not changed sides yet is of neither.
        if place.arm != connection.arm {
            return;
        }
        self.measured.on_window(&rule.name, client, place, (measured, score));
        match stands {
            Standing::Yielded => {}
            // It ran well because its guard took it back from the rule.
            Standing::Resting => {
                if let Some(suffered) = connection.suffered(measured, breaker::LOOKED_AT) {
                    self.breakers.on_window(&rule.name, client, place.arm, &suffered);
                }
            }
            _ => self.breakers.on_window(&rule.name, client, place.arm, measured),
        }
    }

    /// A connection ended with these sums.
    pub(super) fn on_end<L: Link>(
        &mut self,
        config: &Config,
        connection: &Connection<L>,
        totals: &Totals,
    ) {
        let rule = connection.rule.and_then(|place| config.rules.get(place));
        let (Some(rule), None) = (rule, connection.held) else { return };
        let identity = connection.link.identity();
        let client = identity.remote.ip();
        let (began, ended) =
            (self.arms.of(client, identity.opened), self.arms.of(client, totals.last));
        if began == ended && ended.arm == connection.arm && !identity.adopted {
            // No second of it was measured.
            let whole = totals.last.since(identity.opened) < Duration::from_secs(1);
            self.measured.on_end(&rule.name, client, ended, (totals, whole));
        }
    }

    pub(super) fn on_taken_back(&mut self, rule: Option<&Rule>, now: Time) {
        if let Some(rule) = rule {
            self.breakers.on_taken_back(&rule.name, now);
        }
    }

    /// A rule is armed again, or all are.
    pub(super) fn arm_again(&mut self, target: &Target) {
        match target {
            Target::Rule(name) => self.breakers.forget(name),
            Target::All => self.breakers = Breakers::default(),
            _ => {}
        }
    }

    /// What steering brings, as far as it is known.
    pub(crate) fn comparisons(&self, now: Time) -> Vec<Comparison> {
        self.arms.plan().map(|plan| self.measured.known(plan, now)).unwrap_or_default()
    }

    /// Where the rollout is.
    pub(crate) fn rollout(&self, now: Time) -> Option<RolloutStatus> {
        let (stage, share, left) = self.arms.stage(now)?;
        let next_s = left.map(Duration::as_secs_f64);
        Some(RolloutStatus { stage, share: share.get(), next_s })
    }

    /// How often the breaker of each rule has tripped.
    pub(crate) fn trips(&self) -> &BTreeMap<String, u64> {
        &self.trips
    }
}

impl<D: Datapath> Core<D> {
    /// The comparison.
    pub(crate) fn comparing(&self) -> &Comparing {
        &self.arms
    }

    /// Once in a step: rules that do harm let go of their connections, and connections whose cluster
    /// changes sides follow it.
    pub(super) fn follow_arms(&mut self, now: Time) {
        let at = step(now);
        if at <= self.arms.followed {
            return;
        }
        self.arms.followed = at;
        self.trip(now);
        if !self.arms.arms.changes() {
            return;
        }
        if self.arms.arms.is_over(now) {
            if let Some(plan) = self.arms.arms.plan().cloned() {
                let told = self.arms.measured.begin_anew(&plan, now);
                self.notes.extend(told);
            }
            self.arms.arms.plan_anew(now);
        }
        let phase = self.arms.arms.phase(now);
        if std::mem::replace(&mut self.arms.phase, phase) == phase {
            return;
        }
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let (stretch, mut woken) = (self.governor.stretch(), Vec::new());
        for connection in self.connections.values_mut() {
            let identity = *connection.link.identity();
            let arm = self.arms.of(identity.remote.ip(), now).arm;
            if arm == connection.arm {
                continue;
            }
            let place = connection.rule;
            let mut setting = at.setting(place, stretch);
            self.ended.complete(&mut setting, identity.remote.ip());
            setting.former = operate::former(&self.former, self.system, &identity);
            // It may be looked at while it is idle, too.
            if connection.is_asleep() {
                woken.push(identity.id);
            }
            connection.follow(arm, place, &setting);
        }
        woken.into_iter().for_each(|id| self.plan(id, now));
    }

    /// A walk has found which connections were given an algorithm, and what they ran before. Those
    /// that the hook began with the copy of that go back to their rule's algorithm when they leave
    /// the arm `former`.
    pub(crate) fn on_given(&mut self, former: HashMap<Addresses, String>, now: Time) {
        self.former = former;
        if self.config.mode != Mode::Apply || !self.compares() {
            return;
        }
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let (stretch, mut woken) = (self.governor.stretch(), Vec::new());
        for connection in self.connections.values_mut() {
            let mut setting = at.setting(connection.rule, stretch);
            let Some(rule) = setting.rule.filter(|rule| rule.assign) else { continue };
            let identity = *connection.link.identity();
            if connection.is_home(rule) || !self.former.contains_key(&addresses(&identity)) {
                continue;
            }
            self.ended.complete(&mut setting, identity.remote.ip());
            setting.former = operate::former(&self.former, self.system, &identity);
            if connection.come_home(rule, &setting) && connection.is_asleep() {
                woken.push(identity.id);
            }
        }
        woken.into_iter().for_each(|id| self.plan(id, now));
    }

    /// Rules that do harm.
    fn trip(&mut self, now: Time) {
        if self.config.mode != Mode::Apply {
            return;
        }
        for (rule, why) in self.arms.breakers.look(&self.config.breaker, now) {
            let is_there = self.config.rules.iter().any(|known| known.name == rule);
            if !is_there || self.holds.has_tripped(&rule) {
                continue;
            }
            let by = format!("the breaker: {why}");
            let hold = Hold::new(Held::Tripped, Target::Rule(rule.clone()), now, None, &by);
            // There is always room for one more: the worst is that it trips again.
            let _ = self.holds.add(hold);
            self.arms.breakers.forget(&rule);
            *self.arms.trips.entry(rule.clone()).or_default() += 1;
            let open = self.obey(now);
            let text = format!(
                "rule {rule} did harm and is let go: {why}; {} got back their former algorithm; \
                 `trimtab agent resume rule:{rule}` arms it again",
                count(open, "connection")
            );
            self.alerts.push(Note::on_rule(&rule, text));
        }
    }

    /// Of rules that have tripped since the last time that somebody asked.
    pub(crate) fn take_alerts(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.alerts)
    }

    /// Whether connections may run another algorithm than their rule's, for comparison.
    pub(crate) fn compares(&self) -> bool {
        self.arms.arms.changes()
    }
}
