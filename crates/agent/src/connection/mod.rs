//! One connection under the agent's care: measured, steered, guarded.

mod back;
pub(crate) mod customize;
pub(crate) mod decision;
pub(crate) mod ended;
mod fleet;
mod hold;
mod rare;
pub(crate) mod sizes;
pub(crate) mod sleep;
mod standing;

use std::sync::Arc;

use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_datapath::{
    Algorithm, Asked, Attention, Found, IDLE_FIRST, IDLE_MAX, MEASURE, RESPONSES, Responses,
    remaining, until_report,
};
use trimtab_fleet_client::edge::Edge;
use trimtab_qoe::{Factors, Model};
use trimtab_steer::distill::{Distill, TREE};
use trimtab_steer::safety::{Arm, Guard, Measured, Window};
use trimtab_steer::scheme::MortiseSettings;
use trimtab_steer::select::{Policy, Selector, SelectorConfig};
use trimtab_steer::{Action, Distrust, Mortise, Report, Schedule, Steer, Steerer};
use trimtab_units::{Duration, Time};

use crate::config::{Forest, Mode, Rule, Safety, Select, Steering, Turns};
use crate::connection::customize::Customizing;
use crate::connection::decision::{Decisions, seconds};
use crate::connection::rare::Rare;
use crate::connection::sizes::Sizes;
use crate::connection::sleep::Sleep;
use crate::daemon::logging;
use crate::datapath::{self, Link};
use crate::operate::Held;

pub use decision::{Cause, Change, Decision};
pub use standing::Standing;

/// With many connections looks at idle ones, too, become longer apart, up to so many times.
const IDLE_STRETCH_MAX: f64 = 3.0;
/// A connection that was found so soon after it began had the agent's care from the beginning.
const NEW_WITHIN: Duration = Duration::from_millis(100);
/// δ that is safe on any path: Copa's own default (NSDI 2018 §2).
const SAFE_DELTA: f64 = 0.5;
/// Mortise begins with a δ of its own.
const DELTA_FIRST: Option<f64> = None;

/// What an application says of its connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hint {
    pub(crate) model: Option<Model>,
    pub(crate) factors: Factors,
}

/// What is the same for all connections of a moment.
pub(crate) struct Setting<'a> {
    pub(crate) now: Time,
    pub(crate) mode: Mode,
    pub(crate) safety: &'a Safety,
    pub(crate) rule: Option<&'a Rule>,
    /// Intervals are this many times as long as the steering asks for.
    pub(crate) stretch: f64,
    /// The tree with which an earlier connection to the same destination ended.
    pub(crate) tree: Option<usize>,
    /// The algorithm that suited it, as far as is known.
    pub(crate) suited: Option<Spec>,
    /// Where the configurations of a fleet come from.
    pub(crate) edge: Option<&'a Edge>,
    /// The order that a connection stands under when it opens.
    pub(crate) held: Option<Held>,
    /// What it would run without Trimtab, where the datapath has that.
    pub(crate) former: Option<Algorithm>,
}

/// What a look at a connection brought.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// When to look again; `None`: it has ended, or sleeps.
    pub(crate) next: Option<Time>,
    /// Not before the datapath tells of it.
    pub(crate) sleeps: bool,
    /// A window that ended, and its score where there is one.
    pub(crate) window: Option<(Measured, Option<f64>)>,
    /// Whether it was active.
    pub(crate) reported: bool,
    /// Something for the log.
    pub(crate) note: Option<String>,
}

impl Looked {
    fn again(at: Time) -> Self {
        Self { next: Some(at), ..Self::default() }
    }
}

/// A knob that was turned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turned {
    knob: &'static str,
    /// What it was told, and has.
    value: f64,
    /// What it had before, or the algorithm's own value where that is not known.
    before: f64,
    /// Whether the rule sets it; steering turns the others.
    of_rule: bool,
}

/// What steers a connection, without its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Mortise,
    Turns,
    Muses,
    Fleet,
}

impl From<&Steering> for Kind {
    fn from(steering: &Steering) -> Self {
        match steering {
            Steering::Mortise(_) => Self::Mortise,
            Steering::Turns(_) => Self::Turns,
            Steering::Muses(_) => Self::Muses,
            Steering::Fleet(_) => Self::Fleet,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection<L> {
    pub(crate) link: L,
    /// As of the last look; `None` while nobody has asked the kernel for it.
    pub(crate) cookie: Option<u64>,
    /// Place of its rule.
    pub(crate) rule: Option<usize>,
    pub(crate) arm: Arm,
    /// Why it is left alone; `None`: it is not.
    pub(crate) held: Option<Held>,
    /// When it is due.
    pub(crate) next: Time,
    hint: Rare<Hint>,
    pub(crate) decisions: Decisions,
    pub(crate) last: Option<Box<Measured>>,
    pub(crate) score: Option<f64>,
    steering: Option<Box<Steerer>>,
    asked: Rare<Asked>,
    sizes: Sizes,
    responses: Rare<Responses>,
    /// Its part in what an edge reports of its aggregate.
    customizing: Option<Box<Customizing>>,
    /// The connection has ended; it waits for the kernel's close event.
    has_ended: bool,
    /// That the guard of Muses spoke was told.
    told_guard: bool,
    /// Whether the kernel had refused the last switch when it was looked at, and how often it did.
    is_refused: bool,
    refused_switches: u32,
    window: Rare<Window>,
    guard: Rare<Guard>,
    /// What it ran before it was steered, by its name.
    home: &'static str,
    /// Whether the agent had it from its beginning, so that nobody has turned its knobs before.
    is_new: bool,
    /// It does not run what its rule is about, but may later: what was asked for takes over in a while.
    waits: bool,
    /// What steers it, when its steering is carried out.
    kind: Option<Kind>,
    /// What we have told it; shared with those that were told the same, while they sleep.
    applied: Arc<Vec<Turned>>,
    yielded: bool,
    attention: Attention,
    sleep: Sleep,
}

impl<L: Link> Connection<L> {
    /// Takes a connection over: steering begins where its knobs are.
    pub(crate) fn new(link: L, arm: Arm, place: Option<usize>, setting: &Setting<'_>) -> Self {
        let identity = link.identity();
        let is_new = !identity.adopted && setting.now.since(identity.opened) <= NEW_WITHIN;
        let (cookie, home) = (link.cookie(), home(&link, setting.rule).name());
        let mut connection = Self {
            link,
            cookie,
            rule: place,
            arm,
            held: setting.held,
            next: setting.now,
            hint: Rare::default(),
            decisions: Decisions::default(),
            last: None,
            score: None,
            steering: None,
            asked: Rare::default(),
            sizes: Sizes::default(),
            responses: Rare::default(),
            customizing: None,
            has_ended: false,
            told_guard: false,
            is_refused: false,
            refused_switches: 0,
            window: Rare::default(),
            guard: Rare::default(),
            home,
            is_new,
            waits: false,
            kind: None,
            applied: Arc::default(),
            yielded: false,
            attention: Attention::default(),
            sleep: Sleep::default(),
        };
        connection.kind = connection.kind_by(setting);
        connection.run_former(setting);
        connection.start(DELTA_FIRST, setting);
        connection
    }

    /// Follows a rule from now on, which may be another than before. What the old one turned goes back, unless the new
    /// one steers in the same way and so goes on from there.
    pub(crate) fn follow(&mut self, arm: Arm, place: Option<usize>, setting: &Setting<'_>) {
        let totals = self.link.totals();
        self.end(setting.mode, setting.edge, totals.as_ref());
        self.arm = arm;
        self.rule = place;
        self.steering = None;
        self.guard.clear();
        self.sleep = Sleep::default();
        // A second belongs to one side.
        self.window.clear();
        let kind = self.kind_by(setting);
        if kind.is_none() || kind != self.kind {
            self.put_back(setting.now);
        } else {
            self.drop_knobs(setting);
        }
        self.kind = kind;
        self.run_former(setting);
        self.start(DELTA_FIRST, setting);
    }

    /// The kind of steering that is carried out on it.
    fn kind_by(&self, setting: &Setting<'_>) -> Option<Kind> {
        let rule = self.steered_by(setting)?;
        rule.steering.as_ref().map(Kind::from)
    }

    /// The rule, where what it says is carried out.
    fn steered_by<'a>(&self, setting: &Setting<'a>) -> Option<&'a Rule> {
        let is_ours = setting.mode == Mode::Apply && self.is_treated() && !self.yielded;
        setting.rule.filter(|rule| is_ours && self.runs(rule))
    }

    /// Whether what its rule says is for it: it is in no arm and under no order that says otherwise.
    fn is_treated(&self) -> bool {
        self.arm == Arm::Treated && self.held.is_none()
    }

    /// Begins with what its rule says; Mortise with this δ, in 1/packet.
    fn start(&mut self, delta: Option<f64>, setting: &Setting<'_>) {
        self.waits = false;
        let is_ours = self.is_treated() && !self.link.is_closing();
        let Some(rule) = setting.rule.filter(|_| is_ours) else { return };
        if !self.runs(rule) {
            self.waits = true;
            return;
        }
        match &rule.steering {
            None => {}
            Some(Steering::Mortise(settings)) => self.start_mortise(*settings, delta, setting),
            Some(Steering::Turns(turns)) => self.start_turns(turns, setting),
            Some(Steering::Muses(forest)) => self.start_trees(forest, setting),
            Some(Steering::Fleet(customized)) => self.start_customized(customized, setting),
        }
        for &(knob, value) in &rule.knobs {
            self.turn(knob, value, Cause::Rule, setting);
        }
    }

    /// Whether it runs what its rule is about.
    fn runs(&self, rule: &Rule) -> bool {
        let running = self.link.algorithm();
        match &rule.steering {
            Some(Steering::Turns(turns)) => turns.algorithms.contains(&running),
            // It may have switched to what the engine chose.
            Some(Steering::Fleet(_)) => running == rule.algorithm || has_switched(&self.link),
            Some(Steering::Mortise(_) | Steering::Muses(_)) | None => running == rule.algorithm,
        }
    }

    /// How it stands.
    pub(crate) fn standing(&self, mode: Mode, rule: Option<&Rule>) -> Standing {
        match rule {
            _ if self.link.is_closing() => Standing::Closing,
            _ if self.yielded => Standing::Yielded,
            _ if self.held.is_some() => self.held.map_or(Standing::Paused, Standing::from),
            None => Standing::Unmatched,
            Some(_) if self.arm == Arm::Holdback => Standing::Holdback,
            Some(_) if self.arm == Arm::Former => Standing::Former,
            Some(rule) if !self.runs(rule) => Standing::Measured,
            Some(_) if self.is_resting() => Standing::Resting,
            Some(_) if mode == Mode::Advise => Standing::Advised,
            Some(rule) => match &rule.steering {
                Some(Steering::Mortise(_)) => Standing::Steered,
                Some(Steering::Turns(Turns { select: Some(_), .. }) | Steering::Muses(_)) => {
                    Standing::Selecting
                }
                Some(Steering::Turns(_)) => Standing::Turning,
                Some(Steering::Fleet(_)) => Standing::Customized,
                None => Standing::Set,
            },
        }
    }

    /// Whether anything happens on it.
    pub(crate) fn is_active(&self) -> bool {
        self.attention.is_active()
    }

    /// Whether something has happened on it that nobody has looked at; `None` when it has ended.
    pub(crate) fn has_missed(&self) -> Option<bool> {
        self.link.acks().map(|acks| self.attention.has_missed(acks))
    }

    /// Whether it rests with the fallback.
    fn is_resting(&self) -> bool {
        self.guard.get().is_some_and(Guard::is_resting)
    }

    /// A window as it would have been, had its guard not taken it back for less than `within`;
    /// `None` where it did not, or longer ago.
    pub(crate) fn suffered(&self, measured: &Measured, within: Duration) -> Option<Measured> {
        let (loss, queueing) = self.guard.get()?.suffered(within)?;
        let lost = measured.sent.mul_f64(loss);
        Some(Measured { queueing, lost, busy: false, ..measured.clone() })
    }

    /// Whether the application has said anything.
    pub(crate) fn is_hinted(&self) -> bool {
        self.hint.get().is_some_and(|hint| hint.model.is_some() || hint.factors != Factors::new())
    }

    /// The factors that the application says.
    fn hinted(&self) -> Factors {
        self.hint.get().map_or_else(Factors::new, |hint| hint.factors)
    }

    /// What the application says; where it says nothing, what the rule does, and then what the wire shows.
    fn live_factors(&self, rule: Option<&Rule>) -> Factors {
        let hinted = self.hinted();
        let said = rule.map_or(hinted, |rule| hinted.or(&rule.factors));
        said.or(&self.sizes.factors())
    }

    /// The factors that the model reads.
    pub(crate) fn known_factors(&self, rule: Option<&Rule>) -> Vec<(String, Option<f64>)> {
        let Some(model) = self.model(rule) else { return Vec::new() };
        let all = self.live_factors(rule);
        model.factors().into_iter().map(|name| (name.to_owned(), all.get_named(name))).collect()
    }

    /// The model that it is scored by: the application's, or the rule's.
    pub(crate) fn model<'a>(&'a self, rule: Option<&'a Rule>) -> Option<&'a Model> {
        let hinted = self.hint.get().and_then(|hint| hint.model.as_ref());
        hinted.or_else(|| rule?.model.as_ref())
    }

    /// Takes a hint of the application in.
    pub(crate) fn on_hint(&mut self, hint: Hint, setting: &Setting<'_>) {
        let known = self.hint.make();
        known.factors = hint.factors.or(&known.factors);
        if hint.model.is_some() {
            known.model = hint.model;
            let model = self.model(setting.rule).cloned();
            if let (Some(steering), Some(model)) = (self.steering.as_deref_mut(), model) {
                steering.on_model(&model);
            }
        }
    }

    fn steer_by(&mut self, steering: impl Into<Steerer>) {
        self.steering = Some(Box::new(steering.into()));
    }

    /// Starts to steer, or goes on where an agent before this one was.
    fn start_mortise(
        &mut self,
        settings: MortiseSettings,
        delta: Option<f64>,
        setting: &Setting<'_>,
    ) {
        let Some(model) = self.model(setting.rule) else { return };
        let config = settings.config(model.clone());
        let spec = Mortise::algorithm();
        let is = |knob: &str, value: f64| {
            self.link.knob(knob).is_ok_and(|now| (now - value).abs() <= 1e-3 * value.abs())
        };
        let goes_on = spec
            .settings()
            .iter()
            .filter(|(knob, _)| *knob != "delta")
            .all(|&(knob, value)| is(knob, value));
        if goes_on {
            let delta = self.link.knob("delta").unwrap_or(SAFE_DELTA);
            self.steer_by(Box::new(Mortise::resume(config, delta)));
            return;
        }
        let mortise = match delta {
            Some(delta) => Mortise::resume(config, delta),
            None => Mortise::new(config),
        };
        for &(knob, value) in spec.settings() {
            let value = if knob == "delta" { mortise.applied_delta() } else { value };
            self.turn(knob, value, Cause::Start, setting);
        }
        self.steer_by(Box::new(mortise));
    }

    /// The algorithm that runs is the first, whichever it is: an agent before this one may have been in the middle.
    /// A new connection of a policy goes over at once to what suited an earlier one.
    fn start_turns(&mut self, turns: &Turns, setting: &Setting<'_>) {
        let running = self.link.algorithm();
        let Some(all) = turns.from(running) else { return };
        let specs: Vec<Spec> = all.iter().filter_map(|a| Spec::new(a.name())).collect();
        let (every, how) = (turns.every, turns.how);
        let config = match &turns.select {
            None => {
                self.steer_by(Schedule::new(specs, every, how));
                return;
            }
            Some(Select::Rule(utility)) => SelectorConfig::new(specs, Policy::Rule(*utility)),
            Some(Select::Learnt(learnt)) => {
                let Some(safe) = Spec::new(learnt.safe.name()) else { return };
                match &learnt.model {
                    Ok(model) => {
                        SelectorConfig { safe, ..SelectorConfig::of_model(Arc::clone(model)) }
                    }
                    Err(why) => SelectorConfig::without_model(safe, *why),
                }
            }
        };
        let config = SelectorConfig { period: every, how, look: turns.look, ..config };
        let Some(running) = Spec::new(running.name()) else { return };
        let mut selector = Selector::of_running(config, running);
        if let Some(suited) = setting.suited.filter(|to| self.is_new && !to.is_same(&running)) {
            selector.begin_with(suited);
            self.switch(&suited, how, Cause::Before, setting);
        }
        self.steer_by(Box::new(selector));
        self.responses.clear();
    }

    /// The model and the fallback are the rule's from now on; the tree is the one that it has when
    /// an agent before this one chose it, else that with which an earlier connection ended.
    fn start_trees(&mut self, forest: &Forest, setting: &Setting<'_>) {
        let safe = forest.safe.and_then(|safe| safe.as_fallback()).unwrap_or(0.0);
        if setting.mode == Mode::Apply
            && let Some(algorithm) = forest.safe
        {
            for &(knob, value) in &forest.safe_knobs {
                // An error is the connection's end, which the next look sees.
                let _ = self.link.set_of(algorithm, knob, value);
            }
        }
        let number = forest.number.map_or(0.0, f64::from);
        let goes_on = number > 0.0 && self.link.knob("model").is_ok_and(|model| model == number);
        for (knob, value) in [("safe", safe), ("model", number)] {
            if self.link.knob(knob).is_ok_and(|now| now != value) {
                self.turn(knob, value, Cause::Rule, setting);
            }
        }
        let Some(trees) = forest.trees.filter(|_| number > 0.0) else { return };
        let has = self.link.knob(TREE).ok().map(|tree| tree as usize);
        let chosen = has.filter(|tree| goes_on && *tree != trees.first());
        let distill = Distill::new(trees, chosen.or(setting.tree));
        let tree = distill.tree();
        if has != Some(tree) {
            let cause = if setting.tree == Some(tree) { Cause::Before } else { Cause::Start };
            self.turn(TREE, tree as f64, cause, setting);
        }
        self.steer_by(distill);
    }

    /// The checksum of the model whose trees it asks, and which of them it is.
    pub(crate) fn tree(&self) -> Option<(u32, usize)> {
        self.steering.as_deref()?.insight().tree
    }

    /// What suits its destination, by the policy that steers it.
    pub(crate) fn suited(&self) -> Option<Spec> {
        self.steering.as_deref()?.suited()
    }

    /// How often the guard of Muses let the fallback take over, and the kernel refused a switch, until now.
    pub(crate) fn incidents(&self) -> (u64, u64) {
        (u64::from(self.told_guard), self.refused_switches.into())
    }

    /// A request for another algorithm may have been refused since the last look.
    fn see_refusal(&mut self) {
        let takes_turns = self.steering.as_deref().is_some_and(|s| s.needs().switching);
        let refused = takes_turns && self.link.switching().is_some_and(|s| s.refused.is_some());
        self.refused_switches += u32::from(refused && !self.is_refused);
        self.is_refused = refused;
    }

    /// The fallback has taken over, in the kernel: what to tell of it.
    fn on_guard(&mut self, setting: &Setting<'_>) -> Option<String> {
        let of_trees = |rule: &&Rule| matches!(rule.steering, Some(Steering::Muses(_)));
        let from = setting.rule.filter(of_trees)?.algorithm;
        let to = self.link.algorithm();
        if self.told_guard || to == from {
            return None;
        }
        let why = self.link.alarm()?.to_string();
        (self.told_guard, self.steering) = (true, None);
        let who = logging::connection(self.link.identity());
        let note = format!("{who}: {why}; {} goes on with it", to.name());
        let change =
            Change::Algorithm { from: from.name().into(), to: to.name().into(), full: true };
        let at_s = seconds(setting.now);
        self.decisions.add(Decision { at_s, change, applied: true, cause: Cause::Guard { why } });
        Some(note)
    }

    /// Selections of the present steering for which a learnt policy had no answer, and why the first time.
    pub(crate) fn unanswered(&self) -> (u64, Option<Distrust>) {
        let selections = self.steering.as_deref().and_then(|s| s.insight().selections);
        selections.map_or((0, None), |made| (made.fallbacks, made.distrust))
    }

    /// Asks for another algorithm.
    fn switch(&mut self, to: &Spec, how: Switch, cause: Cause, setting: &Setting<'_>) {
        let from = self.link.algorithm();
        // A steering's algorithms are those of the rule, which were checked.
        let Some(to_algorithm) = datapath::algorithm(to.algorithm().name) else { return };
        let applied = setting.mode == Mode::Apply;
        // An error is the connection's end, which the next look sees.
        if applied && self.asked.make().switch(&self.link, to, to_algorithm, how).is_err() {
            return;
        }
        let change = Change::Algorithm {
            from: from.name().into(),
            to: to_algorithm.name().into(),
            full: how == Switch::Full,
        };
        let at_s = seconds(setting.now);
        self.decisions.add(Decision { at_s, change, applied, cause });
    }

    /// Yields to who turned a knob that we had turned.
    fn notice_others(&mut self) {
        let strayed = |ours: &Turned| self.link.knob(ours.knob).is_ok_and(|now| now != ours.value);
        self.yielded |= self.applied.iter().any(strayed);
    }

    /// Turns a knob, unless somebody else has.
    fn turn(&mut self, knob: &'static str, value: f64, cause: Cause, setting: &Setting<'_>) {
        if self.yielded {
            return;
        }
        let ours = self.applied.iter().position(|turned| turned.knob == knob);
        let before = ours.map(|place| self.applied[place].value);
        let applied = setting.mode == Mode::Apply;
        if applied {
            if let (Some(ours), Ok(now)) = (before, self.link.knob(knob))
                && now != ours
            {
                self.yielded = true;
                return;
            }
            let untouched =
                ours.map_or_else(|| self.untouched(knob), |place| self.applied[place].before);
            // An error is the connection's end, which the next look sees.
            let Ok(in_force) = self.link.set(knob, value) else { return };
            match ours {
                Some(place) => Arc::make_mut(&mut self.applied)[place].value = in_force,
                None => Arc::make_mut(&mut self.applied).push(Turned {
                    knob,
                    value: in_force,
                    before: untouched,
                    of_rule: cause == Cause::Rule,
                }),
            }
        }
        let at_s = seconds(setting.now);
        let change = Change::Knob { knob: knob.into(), before, value };
        self.decisions.add(Decision { at_s, change, applied, cause });
    }

    /// Looks at the connection when it is due.
    pub(crate) fn look(&mut self, setting: &Setting<'_>) -> Looked {
        let Some(acks) = self.link.acks() else { return Looked::default() };
        self.cookie = self.link.cookie();
        if self.link.is_closing() {
            // It sends nothing: what was decided for it would act on nothing.
            return self.rest(setting);
        }
        if self.waits && setting.rule.is_some_and(|rule| self.runs(rule)) {
            self.kind = self.kind_by(setting);
            self.start(DELTA_FIRST, setting);
        }
        let was_yielded = self.yielded;
        let customized = self.customize(setting);
        let responses = self.steering.as_deref().is_some_and(|s| s.needs().responses);
        match self.attention.look(acks, responses, setting.now) {
            Found::Quiet(idle) => {
                if idle == IDLE_MAX {
                    self.sizes.pause();
                }
                if let Some(seen) = self.responses.get_mut() {
                    seen.on_quiet(setting.now);
                }
                if responses {
                    if self.attention.pauses(setting.now) {
                        self.link.begin(setting.now);
                    }
                } else if idle == IDLE_MAX
                    && let Some(sleeps) = self.fall_asleep(acks, setting)
                {
                    return Looked { note: customized, ..sleeps };
                }
                let wait = idle.mul_f64(setting.stretch.min(IDLE_STRETCH_MAX));
                return Looked {
                    next: Some(setting.now + wait),
                    note: customized,
                    ..Looked::default()
                };
            }
            Found::Woken => {
                self.wake(setting);
                self.window.clear();
                let next = self.link.begin(setting.now).then(|| setting.now + IDLE_FIRST);
                return Looked { next, note: customized, ..Looked::default() };
            }
            Found::Active => self.wake(setting),
        }
        let factors = self.live_factors(setting.rule);
        let Some(mut report) = self.link.report(setting.now, factors) else {
            return Looked::default();
        };
        self.attention.on_report(report.srtt);
        self.sizes.on_report(&report);
        if responses {
            let remaining = remaining(&self.hinted());
            self.responses.make().complete(&mut report, remaining);
        }
        if self.customizing.is_some() {
            let times = self.responses.make().times(&report);
            // What ran something else than the engine chose says nothing of what it chose.
            let is_as_chosen = self.is_as_chosen(setting.mode);
            let customizing = self.customizing.as_deref_mut().filter(|_| is_as_chosen);
            if let Some(customizing) = customizing {
                customizing.part.on_responses(times);
            }
        }
        let mut looked = Looked { reported: true, ..Looked::default() };
        self.see_refusal();
        if !self.is_resting() {
            self.steer(&report, setting);
        }
        looked.note = customized.or_else(|| self.on_guard(setting));
        let samples = self.model(setting.rule).is_some_and(Model::reads_samples);
        if let Some(measured) = self.window.make().on_report(&report, samples) {
            let harm = self.guard(&measured, setting);
            looked.note = looked.note.or(harm);
            let score = self.scored(&measured, &factors, setting.rule);
            (self.last, self.score) = (Some(Box::new(measured.clone())), score.or(self.score));
            looked.window = Some((measured, score));
        }
        if self.yielded && !was_yielded {
            let who = logging::connection(self.link.identity());
            looked.note =
                Some(format!("{who}: somebody else turned its knobs; it is left to them"));
        }
        let interval = match self.steering.as_deref() {
            Some(steering) => until_report(steering, report.srtt),
            None if self.customizing.is_some() => RESPONSES,
            None => MEASURE,
        };
        looked.next = Some(setting.now + interval.mul_f64(setting.stretch));
        looked
    }

    fn steer(&mut self, report: &Report, setting: &Setting<'_>) {
        let Some(steering) = self.steering.as_deref_mut() else { return };
        let Some(action) = steering.on_report(report) else { return };
        let reason = steering.reason(&action);
        let cause = Cause::of(reason, &steering.insight(), report)
            .unwrap_or_else(|| Cause::asked(setting.rule));
        match action {
            Action::Switch { to, how } => self.switch(&to, how, cause, setting),
            Action::Set(values) => {
                for (knob, value) in values.iter() {
                    self.turn(knob, value, cause.clone(), setting);
                }
            }
        }
    }

    /// The score of a window that the application did not hold back.
    fn scored(&self, measured: &Measured, factors: &Factors, rule: Option<&Rule>) -> Option<f64> {
        let model = self.model(rule).filter(|_| measured.busy)?;
        let score = model.score_over(&measured.point, &measured.samples, factors);
        score.is_finite().then_some(score)
    }
}

/// What a connection ran before it was steered. Where another algorithm has taken over, an agent before this one had
/// asked for it; then it is what connections of the rule begin with.
fn home(link: &impl Link, rule: Option<&Rule>) -> Algorithm {
    match rule.and_then(|rule| Some((rule.algorithm, rule.steering.as_ref()?))) {
        Some((_, Steering::Turns(turns))) if has_switched(link) => turns.first(),
        Some((algorithm, Steering::Fleet(_))) if has_switched(link) => algorithm,
        _ => link.algorithm(),
    }
}

/// Whether another algorithm has taken over since the connection began.
fn has_switched(link: &impl Link) -> bool {
    link.switching().is_some_and(|switching| switching.switches > 0)
}
