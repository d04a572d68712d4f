//! What the engine of a fleet chose, told to the kernel ahead of the connections to come: so it
//! acts in their first round trip, before the agent has heard of them. What the agent then turns on
//! a connection is the same, or newer.
//!
//! A rule is about more than a destination, so the kernel tells connections to come apart by all
//! that the rules look at ([`By`]), and the agent tells it of each place that a connection came
//! from. An agent that is stopped takes it back. What one that was killed has told stays, as knobs
//! do; the next agent takes it over as far as its rules say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use trimtab_datapath::{By, Error, Towards};
use trimtab_fleet_client::edge::{Control, Edge, InForce, Key};
use trimtab_steer::safety::Arm;
use trimtab_units::{Duration, Time};

use crate::config::{Config, Customized, Mode, Rule, Steering};
use crate::connection::Setting;
use crate::datapath::Datapath;
use crate::kernel::places::{Places, Who};

/// What nobody came from in so many intervals, and at least in so long, is forgotten; an edge keeps aggregates as many.
const IDLE_INTERVALS: u64 = 6;
const IDLE: Duration = Duration::from_secs(3600);
/// Between looks for it.
const SWEEP: Duration = Duration::from_secs(30);

/// Where connections to come begin with what was learnt.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    places: BTreeMap<Towards, Place>,
    by_key: BTreeMap<Key, BTreeSet<Towards>>,
    by: By,
    swept_at: Time,
    trouble: Option<String>,
}

#[derive(Debug)]
struct Place {
    key: Key,
    /// Of the configuration that the kernel has; `None`: none of this agent's.
    version: Option<u64>,
    used_at: Time,
}

/// What there is to know of a moment.
pub(crate) struct Now<'a> {
    pub(crate) config: &'a Config,
    pub(crate) edge: Option<&'a Edge>,
    pub(crate) now: Time,
}

impl<'a> Now<'a> {
    /// The setting of a connection under the rule in this place, while looks are stretched by this.
    pub(crate) fn setting(&self, place: Option<usize>, stretch: f64) -> Setting<'a> {
        let Self { config, edge, now } = *self;
        let rule = place.and_then(|place| config.rules.get(place));
        let (mode, safety) = (config.mode, &config.safety);
        let (tree, suited, held, former) = (None, None, None, None);
        Setting { now, mode, safety, rule, stretch, tree, suited, edge, held, former }
    }
}

impl Ahead {
    /// Follows a configuration: what an agent, or rules, before have told the kernel stays as far
    /// as these rules say the same.
    pub(crate) fn begin(datapath: &impl Datapath, rules: &mut Places, at: &Now<'_>) -> Self {
        let mut ahead = Self { swept_at: at.now, ..Self::default() };
        let config = at.config;
        if config.mode == Mode::Apply && at.edge.is_some() && config.rules.iter().any(is_fleet) {
            let any = |has: fn(&Rule) -> bool| config.rules.iter().any(has);
            ahead.by = By {
                port: any(|rule| !rule.matches.ports.is_empty()),
                // A rule that names no place is about the agent's own namespace alone.
                netns: any(|rule| rule.matches.netns.is_some() || rule.matches.cgroup.is_none()),
                cgroup: any(|rule| rule.matches.cgroup.is_some()),
            };
        }
        let told = datapath.tell_apart(ahead.by);
        ahead.hear(told);
        for towards in datapath.towards() {
            let who = Who::towards(&towards);
            let place = rules.rule_of(&who, &config.rules, at.now);
            let found = place.and_then(|place| ahead.of(&who, towards.base(), place, at));
            let key = found.filter(|(same, _)| *same == towards);
            let key = key.map(|(_, customized)| customized.key(towards.base()));
            match key.filter(|key| at.edge.is_some_and(|edge| edge.known(key).is_some())) {
                Some(key) => ahead.insert(towards, key, datapath, at),
                None => ahead.hear(datapath.remove_towards(&towards)),
            }
        }
        ahead
    }

    /// Connections to come begin with the algorithm's own knobs everywhere.
    pub(crate) fn clear(&mut self, datapath: &impl Datapath) {
        let places: Vec<Towards> = self.places.keys().copied().collect();
        places.iter().for_each(|towards| self.forget(datapath, towards));
    }

    /// How many places the kernel knows.
    pub(crate) fn len(&self) -> usize {
        self.places.values().filter(|place| place.version.is_some()).count()
    }

    /// What is wrong now.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// A connection came from there, under the rule in this place.
    pub(crate) fn used(
        &mut self,
        datapath: &impl Datapath,
        who: &Who,
        remote: IpAddr,
        place: Option<usize>,
        at: &Now<'_>,
    ) {
        let found = place.and_then(|place| self.of(who, remote, place, at));
        let Some((towards, customized)) = found else { return };
        match self.places.get_mut(&towards) {
            Some(place) => place.used_at = at.now,
            None => self.insert(towards, customized.key(remote), datapath, at),
        }
    }

    /// Tells the kernel what the engine has changed, and forgets what nobody came from in a long time.
    pub(crate) fn follow(&mut self, datapath: &impl Datapath, at: &Now<'_>) {
        let Some(edge) = at.edge else { return };
        for key in edge.take_news() {
            let places = self.by_key.get(&key).cloned().unwrap_or_default();
            places.iter().for_each(|towards| self.tell(datapath, towards, at));
        }
        // With an interval clusters change their arms, without any news.
        let arms = |(key, _): &(&Key, _)| edge.known(key).as_ref().is_some_and(has_control);
        let changing: Vec<Towards> =
            self.by_key.iter().filter(arms).flat_map(|(_, places)| places).copied().collect();
        changing.iter().for_each(|towards| self.tell(datapath, towards, at));
        if at.now.since(self.swept_at) < SWEEP {
            return;
        }
        self.swept_at = at.now;
        let long = |place: &Place| {
            let interval = edge.known(&place.key).map_or(Duration::ZERO, |force| force.interval);
            at.now.since(place.used_at) >= IDLE.max(interval * IDLE_INTERVALS)
        };
        let idle: Vec<Towards> =
            self.places.iter().filter(|(_, place)| long(place)).map(|(at, _)| *at).collect();
        idle.iter().for_each(|towards| self.forget(datapath, towards));
    }

    /// Which connections to come are as this one, and what says which aggregate they are of; `None`
    /// where the engine does not choose their knobs.
    fn of<'a>(
        &self,
        who: &Who,
        remote: IpAddr,
        place: usize,
        at: &Now<'a>,
    ) -> Option<(Towards, &'a Customized)> {
        at.edge?;
        let config = at.config;
        let rule = config.rules.get(place)?;
        let Some(Steering::Fleet(customized)) = &rule.steering else { return None };
        let is_ours =
            config.mode == Mode::Apply && Arm::of(remote, config.holdback) == Arm::Treated;
        let bits = bits(customized, remote, config).max(self.cluster_bits(customized, remote, at));
        let towards = Towards::new(rule.algorithm, remote, bits).by(
            if self.by.port { who.port() } else { 0 },
            if self.by.netns { who.netns() } else { 0 },
            if self.by.cgroup { who.cgroup().unwrap_or(0) } else { 0 },
        );
        is_ours.then_some((towards, customized))
    }

    /// Where arms run side by side, connections of a cluster of clients begin as its arm does.
    fn cluster_bits(&self, customized: &Customized, remote: IpAddr, at: &Now<'_>) -> u8 {
        let key = customized.key(remote);
        let force = at.edge.and_then(|edge| edge.known(&key));
        let cluster = force.filter(has_control).and_then(|_| key.prefix.cluster(remote));
        cluster.map_or(0, |cluster| cluster.len())
    }

    fn insert(&mut self, towards: Towards, key: Key, datapath: &impl Datapath, at: &Now<'_>) {
        self.by_key.entry(key.clone()).or_default().insert(towards);
        self.places.insert(towards, Place { key, version: None, used_at: at.now });
        self.tell(datapath, &towards, at);
    }

    /// Tells the kernel the configuration in force, or that there is none any more.
    fn tell(&mut self, datapath: &impl Datapath, towards: &Towards, at: &Now<'_>) {
        let (Some(place), Some(edge)) = (self.places.get_mut(towards), at.edge) else { return };
        let chosen = edge.known(&place.key).map(|force| {
            let interval = edge.interval(&force);
            let control = force.control_for(&place.key, Some(towards.base()), interval);
            control.map_or_else(|| force.configuration.clone(), Control::configuration)
        });
        let fits = chosen.filter(|chosen| chosen.algorithm == towards.algorithm().name());
        let Some(configuration) = fits else {
            if place.version.take().is_some() {
                self.forget(datapath, towards);
            }
            return;
        };
        if place.version == Some(configuration.version) {
            return;
        }
        match datapath.set_towards(towards, &configuration.knobs) {
            Ok(()) => {
                // There is room for what was not there before.
                if place.version.replace(configuration.version).is_none() {
                    self.trouble = None;
                }
            }
            Err(error) => {
                self.trouble = Some(error.to_string());
                self.forget(datapath, towards);
            }
        }
    }

    fn forget(&mut self, datapath: &impl Datapath, towards: &Towards) {
        let Some(place) = self.places.remove(towards) else { return };
        if let Some(all) = self.by_key.get_mut(&place.key) {
            all.remove(towards);
            if all.is_empty() {
                self.by_key.remove(&place.key);
            }
        }
        let removed = datapath.remove_towards(towards);
        self.hear(removed);
    }

    fn hear(&mut self, told: Result<(), Error>) {
        if let Err(error) = told {
            self.trouble = Some(error.to_string());
        }
    }
}

fn has_control(force: &Arc<InForce>) -> bool {
    force.configuration.control.is_some()
}

fn is_fleet(rule: &Rule) -> bool {
    matches!(rule.steering, Some(Steering::Fleet(_)))
}

/// So many bits of a destination that all that share them are of one aggregate, under one rule and
/// on one side of the comparison.
fn bits(customized: &Customized, remote: IpAddr, config: &Config) -> u8 {
    let aggregate = customized.of(remote);
    let within = config.rules.iter().flat_map(|rule| &rule.matches.to);
    let finer = within.filter(|to| aggregate.contains(to.base())).map(|to| to.bits());
    let compared = if config.holdback.get() > 0.0 { Arm::prefix(remote) } else { 0 };
    finer.chain([aggregate.bits(), compared]).max().unwrap_or(0)
}
