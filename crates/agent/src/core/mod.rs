//! The agent without its doors: connections come and go, each is looked at when it is due.

mod arms;
mod by_addresses;
mod heap;
mod operate;
pub(crate) mod table;
pub(crate) mod tally;

pub use tally::Tally;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use trimtab_datapath::{Algorithm, Event, EventKind, FlowId, Identity, Totals};
use trimtab_fleet_client::edge::Edge;
use trimtab_qoe::{Factors, Model};
use trimtab_steer::Distrust;
use trimtab_steer::distill::TREE;
use trimtab_steer::safety::Arm;
use trimtab_units::{Duration, Time};

use crate::config::{Config, Mode, Rule, Steering};
use crate::connection::ended::Ended;
use crate::connection::sleep::Told;
use crate::connection::{Connection, Decision, Hint, Standing};
use crate::core::arms::Comparing;
use crate::core::by_addresses::ByAddresses;
use crate::core::table::{Numbered, Table, is_sparse};
use crate::core::tally::{NO_RULE, Tallies};
use crate::daemon::governor::Governor;
use crate::daemon::note::Note;
use crate::datapath::{Datapath, Link};
use crate::kernel::ahead::{Ahead, Now};
use crate::kernel::assign::Addresses;
use crate::kernel::places::{Namespaces, Places, Who};
use crate::operate::holds::Holds;

/// Looks that are due within this, times the stretch, are made together.
const TOGETHER: Duration = Duration::from_millis(2);
/// From so many connections on, the memory that they gave back returns to the system: some 3 kB of
/// each.
const SHED: usize = 1000;
/// The longest wait for the kernel's close event of a connection that has ended.
const END_WITHIN: Duration = Duration::from_millis(100);

/// The last decision on a connection.
#[derive(Debug)]
struct Last(FlowId, Decision);

impl Numbered for Last {
    fn number(&self) -> FlowId {
        self.0
    }
}

/// All connections, and what is known of them.
#[derive(Debug)]
pub struct Core<D: Datapath> {
    datapath: D,
    pub(crate) config: Config,
    pub(crate) places: Places,
    connections: Table<Connection<D::Link>>,
    /// The last decisions on those that sleep.
    last_decisions: Table<Last>,
    due: BinaryHeap<Reverse<(Time, FlowId)>>,
    tallies: Tallies,
    governor: Governor,
    by_addresses: ByAddresses,
    told: Told,
    notes: Vec<Note>,
    /// What connections ran before they were given an algorithm, as far as a rule assigns any.
    pub(crate) former: HashMap<Addresses, String>,
    /// What connections found to suit the places that they went to.
    ended: Ended,
    /// Where the configurations of a fleet come from.
    edge: Option<Arc<Edge>>,
    /// What it chose, told to the kernel for connections to come.
    ahead: Ahead,
    /// What operators have ordered.
    holds: Holds,
    /// Who runs what for comparison, what that shows, and which rules do harm.
    arms: Comparing,
    /// Of rules that did harm, for the log.
    alerts: Vec<Note>,
    /// What the system's connections run without Trimtab, where the datapath has it.
    system: Option<Algorithm>,
    adopted: usize,
    looks: u64,
    /// Connections that have given memory back to the process, which the system does not have yet.
    shed: usize,
}

/// What is known before the first connection.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// Orders that an agent before this one had.
    pub(crate) holds: Holds,
    /// What the system's connections run without Trimtab, where the datapath has it.
    pub(crate) system: Option<Algorithm>,
    /// Who enters network namespaces.
    pub(crate) namespaces: Namespaces,
}

impl<D: Datapath> Core<D> {
    /// Takes over every connection that is open.
    pub fn new(datapath: D, config: Config, now: Time) -> Self {
        Self::with_edge(datapath, config, None, now)
    }

    /// The same, with an edge of the fleet that the configuration names.
    pub fn with_edge(datapath: D, config: Config, edge: Option<Arc<Edge>>, now: Time) -> Self {
        Self::begin(datapath, config, edge, Before::default(), now)
    }

    pub(crate) fn begin(
        datapath: D,
        config: Config,
        edge: Option<Arc<Edge>>,
        before: Before,
        now: Time,
    ) -> Self {
        let places = Places::new(&config.rules, before.namespaces, now);
        let arms = Comparing::new(&config, now);
        let mut core = Self {
            datapath,
            config,
            places,
            connections: Table::default(),
            last_decisions: Table::default(),
            due: BinaryHeap::new(),
            tallies: Tallies::new(),
            governor: Governor::new(now),
            by_addresses: ByAddresses::default(),
            told: Told::default(),
            notes: Vec::new(),
            former: HashMap::new(),
            ended: Ended::default(),
            edge,
            ahead: Ahead::default(),
            arms,
            holds: before.holds,
            alerts: Vec::new(),
            system: before.system,
            adopted: 0,
            looks: 0,
            shed: 0,
        };
        core.plant();
        core.tell_ahead(now);
        core.find_all(now);
        core.adopted = core.connections.len();
        core
    }

    /// Brings the models of the rules into the kernel. Connections to come begin with that of the
    /// first rule that has one, until they are looked at.
    fn plant(&mut self) {
        let (datapath, mut is_first) = (&self.datapath, true);
        for rule in &mut self.config.rules {
            let Some(Steering::Muses(forest)) = &mut rule.steering else { continue };
            let Some(trees) = &forest.trees else { continue };
            let number = match datapath.add_trees(trees) {
                Ok(number) => number,
                Err(error) => {
                    forest.problem = Some(error.to_string());
                    continue;
                }
            };
            forest.number = Some(number as u8);
            if std::mem::take(&mut is_first) && self.config.mode == Mode::Apply {
                let safe = forest.safe.and_then(|safe| safe.as_fallback()).unwrap_or(0.0);
                let first = trees.first() as f64;
                for (knob, value) in [("model", number), (TREE, first), ("safe", safe)] {
                    if let Err(error) = datapath.set_default(rule.algorithm, knob, value) {
                        forest.problem = Some(error.to_string());
                    }
                }
            }
        }
    }

    /// Begins to tell the kernel what the engine of the fleet chooses, by the rules that are in force.
    fn tell_ahead(&mut self, now: Time) {
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        self.ahead = Ahead::begin(&self.datapath, &mut self.places, &at);
        let all = self.connections.values().filter(|c| c.held.is_none() && c.arm == Arm::Treated);
        let all: Vec<_> = all.map(|c| (*c.link.identity(), c.rule)).collect();
        for (identity, place) in all {
            self.comes_from(&identity, place, now);
        }
    }

    /// Others may come from where this one does.
    fn comes_from(&mut self, identity: &Identity, place: Option<usize>, now: Time) {
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        self.ahead.used(&self.datapath, &Who::from(identity), identity.remote.ip(), place, &at);
    }

    /// What it was told ahead.
    pub(crate) fn ahead(&self) -> &Ahead {
        &self.ahead
    }

    /// The datapath.
    pub fn datapath(&self) -> &D {
        &self.datapath
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Connections that were open when the agent came.
    pub fn adopted(&self) -> usize {
        self.adopted
    }

    /// Looks for connections whose events were lost.
    pub fn find_all(&mut self, now: Time) {
        for link in self.datapath.links() {
            if !self.connections.contains_key(&link.identity().id) {
                self.add(link, now);
            }
        }
    }

    /// A connection opened or closed.
    pub fn on_event(&mut self, event: &Event, now: Time) {
        match event.kind {
            EventKind::Open => {
                let link = self.datapath.link(event.slot);
                if let Some(link) = link.filter(|link| link.identity().id == event.id)
                    && !self.connections.contains_key(&event.id)
                {
                    self.add(link, now);
                }
            }
            EventKind::Active => self.wake(event.id, now),
            EventKind::Close(totals) => self.remove(event.id, Some(&totals)),
        }
    }

    /// Looks after a connection that sleeps.
    fn wake(&mut self, id: FlowId, now: Time) {
        if self.connections.get(&id).is_some_and(Connection::is_asleep) {
            self.plan(id, now);
        }
    }

    /// The next look at it is then, whatever was planned before.
    fn plan(&mut self, id: FlowId, at: Time) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.next = at;
            self.due.push(Reverse((at, id)));
        }
    }

    /// These have ended, and no event tells of it.
    pub fn gone(&mut self, ids: &[FlowId]) {
        ids.iter().for_each(|id| self.remove(*id, None));
    }

    /// Those that are idle for longest, at most so many, of which a new agent would know all that
    /// there is to know. Only those of one cgroup, by its number, where one is given.
    pub fn idlest(&self, most: usize, cgroup: Option<u64>) -> BTreeSet<FlowId> {
        let is_of = |connection: &Connection<D::Link>| {
            cgroup.is_none() || connection.link.identity().cgroup == cgroup
        };
        let all = self.connections.values();
        let idle = all.filter(|connection| connection.can_leave() && is_of(connection));
        let mut since: Vec<_> =
            idle.map(|connection| (connection.next, connection.link.identity().id)).collect();
        if since.len() > most {
            since.select_nth_unstable(most);
            since.truncate(most);
        }
        since.into_iter().map(|(_, id)| id).collect()
    }

    /// Looks for connections that sleep and of which an event was lost, and gives back the memory
    /// that many more connections took: it is cheap, and once in some seconds is enough.
    pub fn sweep(&mut self, now: Time) {
        let missed = |connection: &Connection<D::Link>| connection.has_missed() != Some(false);
        let asleep = self.connections.values().filter(|connection| connection.is_asleep());
        let found = asleep.filter(|connection| missed(connection));
        let found: Vec<FlowId> = found.map(|connection| connection.link.identity().id).collect();
        found.into_iter().for_each(|id| self.plan(id, now));
        self.connections.shrink();
        self.last_decisions.shrink();
        self.by_addresses.shrink(&self.connections);
        if is_sparse(self.due.len(), self.due.capacity()) {
            self.due.shrink_to_fit();
        }
        if self.shed >= SHED {
            self.shed = 0;
            heap::give_back();
        }
    }

    /// The latest decisions on a connection, oldest first.
    pub(crate) fn decisions(&self, connection: &Connection<D::Link>) -> Vec<Decision> {
        let last = self.last_decisions.get(&connection.link.identity().id);
        last.map(|last| last.1.clone()).into_iter().chain(connection.decisions.latest()).collect()
    }

    /// Who a connection is, with its cookie as of the last look at it.
    pub fn identity(&self, id: FlowId) -> Option<Identity> {
        let connection = self.connections.get(&id)?;
        Some(Identity { cookie: connection.cookie, ..*connection.link.identity() })
    }

    fn add(&mut self, link: D::Link, now: Time) {
        let identity = *link.identity();
        let place = self.places.rule_of(&Who::from(&identity), &self.config.rules, now);
        let arm = self.arms.of(identity.remote.ip(), now).arm;
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let mut setting = at.setting(place, self.governor.stretch());
        self.ended.complete(&mut setting, identity.remote.ip());
        self.complete(&mut setting, &identity);
        let connection = Connection::new(link, arm, place, &setting);
        let is_free = connection.held.is_none() && arm == Arm::Treated;
        tally(&mut self.tallies, &self.config, place, arm).opened += 1;
        let at = self.connections.insert(connection);
        self.by_addresses.insert(at, &self.connections);
        self.plan(identity.id, now);
        if is_free {
            self.comes_from(&identity, place, now);
        }
    }

    fn remove(&mut self, id: FlowId, last: Option<&Totals>) {
        if let Some(place) = self.connections.place(&id) {
            self.by_addresses.remove(place, &self.connections);
        }
        let Some(mut connection) = self.connections.remove(&id) else { return };
        self.last_decisions.remove(&id);
        self.shed += 1;
        if let Some(totals) = last {
            self.arms.on_end(&self.config, &connection, totals);
        }
        connection.end(self.config.mode, self.edge.as_deref(), last);
    }

    /// Looks at every connection that is due, and says when to come again.
    pub fn run(&mut self, now: Time) -> Option<Time> {
        self.follow_arms(now);
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        self.ahead.follow(&self.datapath, &at);
        let until = now + TOGETHER.mul_f64(self.governor.stretch());
        while let Some(&Reverse((at, id))) = self.due.peek() {
            if at > until {
                return Some(at);
            }
            self.due.pop();
            // A connection that has ended, or was planned anew, is still in the heap.
            if self.connections.get(&id).is_some_and(|connection| connection.next == at) {
                self.look(id, now);
            }
        }
        None
    }

    fn look(&mut self, id: FlowId, now: Time) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Some(Last(_, last)) = self.last_decisions.remove(&id) {
            connection.decisions.restore(last);
        }
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let setting = at.setting(connection.rule, self.governor.stretch());
        let (decided, was) =
            (connection.decisions.count, connection.standing(setting.mode, setting.rule));
        let (unanswered_before, _) = connection.unanswered();
        let (alarms_before, refused_before) = connection.incidents();
        let looked = connection.look(&setting);
        if let Some((model, tree)) = connection.tree() {
            self.ended.note_tree(connection.link.identity().remote.ip(), model, tree);
        }
        let stands = connection.standing(setting.mode, setting.rule);
        let (place, arm) = (connection.rule, connection.arm);
        // What is held is of no arm.
        let counts = connection.held.is_none();
        if looked.window.is_some() {
            let to = connection.link.identity().remote.ip();
            match connection.suited() {
                _ if stands == Standing::Resting => self.ended.forget_suited(to, setting.rule),
                Some(spec) => self.ended.note_suited(to, setting.rule, spec, now),
                None => {}
            }
        }
        let decisions = connection.decisions.count - decided;
        let (unanswered, distrust) = connection.unanswered();
        let unanswered = unanswered - unanswered_before;
        let (alarms, refused) = connection.incidents();
        let (alarms, refused) = (alarms - alarms_before, refused - refused_before);
        let incidents = decisions + unanswered + alarms + refused;
        if looked.window.is_some() || incidents > 0 || stands != was {
            let tally = tally(&mut self.tallies, &self.config, place, arm);
            tally.decisions += decisions;
            tally.alarms += alarms;
            tally.refused_switches += refused;
            if unanswered > 0 && tally.unanswered == 0 {
                self.notes.extend(no_answer(setting.rule, distrust));
            }
            tally.unanswered += unanswered;
            let fell = stands == Standing::Resting && was != Standing::Resting;
            tally.fallbacks += u64::from(fell);
            if fell {
                self.arms.on_taken_back(setting.rule, now);
            }
            tally.yielded += u64::from(stands == Standing::Yielded && was != Standing::Yielded);
            if let Some((measured, score)) = looked.window.as_ref().filter(|_| counts) {
                tally.on_window(measured, *score);
                self.arms.on_window(setting.rule, connection, (measured, *score), stands);
            }
        }
        self.looks += u64::from(looked.reported);
        let identity = connection.link.identity();
        self.notes.extend(looked.note.map(|text| Note::of(identity, setting.rule, text)));
        match looked.next {
            Some(next) => self.plan(id, next),
            None if looked.sleeps => {
                connection.share(&mut self.told);
                if let Some(last) = connection.decisions.compact() {
                    self.last_decisions.insert(Last(id, last));
                }
                self.shed += 1;
            }
            None if connection.awaits_end() => self.plan(id, now + END_WITHIN),
            None => self.remove(id, None),
        }
    }

    /// Whether the connections of the rule in this place run several algorithms in turn.
    pub(crate) fn takes_turns(&self, place: usize) -> bool {
        let rule = self.config.rules.get(place);
        rule.is_some_and(|rule| matches!(rule.steering, Some(Steering::Turns(_))))
    }

    /// So much processor time was spent until now.
    pub fn on_spent(&mut self, now: Time, spent: Duration) {
        self.governor.on_spent(now, spent, self.config.cpu.get());
    }

    /// Follows another configuration. Connections whose rule says the same as before go on undisturbed.
    pub fn reload(&mut self, config: Config, now: Time) {
        let before = std::mem::replace(&mut self.config, config);
        self.plant();
        self.places = Places::new(&self.config.rules, self.places.asked(), now);
        self.arms.follow(&before, &self.config, now);
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        // Models have no equality; what they print is all there is to them.
        let print = |rule: Option<&Rule>| format!("{rule:?}");
        let mut woken = Vec::new();
        for connection in self.connections.values_mut() {
            let identity = connection.link.identity();
            let place = self.places.rule_of(&Who::from(identity), &self.config.rules, now);
            let arm = self.arms.of(identity.remote.ip(), now).arm;
            let old = connection.rule.and_then(|place| before.rules.get(place));
            let new = place.and_then(|place| self.config.rules.get(place));
            let rule = new.map(|rule| rule.name.as_str());
            let held = self.holds.on(&operate::subject(rule, identity));
            let same = arm == connection.arm
                && held == connection.held
                && before.mode == self.config.mode
                && print(old) == print(new);
            if same {
                connection.rule = place;
            } else {
                let mut setting = at.setting(place, self.governor.stretch());
                self.ended.complete(&mut setting, identity.remote.ip());
                // Its new rule may look at it while it is idle, too.
                if connection.is_asleep() {
                    woken.push(identity.id);
                }
                setting.former = operate::former(&self.former, self.system, identity);
                connection.held = held;
                connection.follow(arm, place, &setting);
            }
        }
        woken.into_iter().for_each(|id| self.plan(id, now));
        self.tell_ahead(now);
    }

    /// Nothing steers from now on: open connections get back what they had, and connections to come begin with the
    /// algorithms' own knobs.
    pub fn put_back(&mut self, now: Time) {
        for connection in self.connections.values_mut() {
            connection.put_back(now);
        }
        self.ahead.clear(&self.datapath);
    }

    /// What the rules name and is not there.
    pub(crate) fn missing(&mut self, now: Time) -> Vec<String> {
        self.places.missing(&self.config.rules, now)
    }

    /// What there is to tell since the last time.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// The connection with these addresses, local and remote, in a network namespace.
    pub fn by_addresses(
        &self,
        local: SocketAddr,
        remote: SocketAddr,
        netns: u64,
    ) -> Option<FlowId> {
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let wanted = (canonical(local), canonical(remote), netns);
        self.by_addresses.find(&wanted, &self.connections)
    }

    /// Takes in what an application says of its connection: its model, unless that stays, and factors; `false` when the
    /// connection has ended.
    pub fn hint(&mut self, id: FlowId, model: Option<Model>, factors: Factors, now: Time) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let setting = at.setting(connection.rule, self.governor.stretch());
        connection.on_hint(Hint { model, factors }, &setting);
        true
    }

    pub(crate) fn connections(&self) -> &Table<Connection<D::Link>> {
        &self.connections
    }

    pub(crate) fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    pub(crate) fn rule(&self, place: Option<usize>) -> Option<&Rule> {
        self.config.rules.get(place?)
    }

    pub(crate) fn governor(&self) -> &Governor {
        &self.governor
    }

    /// Open connections.
    #[expect(clippy::len_without_is_empty, reason = "a count for people, not a container")]
    pub fn len(&self) -> usize {
        self.connections.values().filter(|connection| !connection.link.is_closing()).count()
    }

    /// Reports that were taken in.
    pub fn reports(&self) -> u64 {
        self.looks
    }
}

pub(crate) fn addresses(identity: &Identity) -> Addresses {
    (identity.local, identity.remote, identity.netns_cookie)
}

/// What is said the first time that the policy of a rule has no answer. That there is none is said
/// when the agent reads its configuration.
fn no_answer(rule: Option<&Rule>, distrust: Option<Distrust>) -> Option<Note> {
    let why = distrust.filter(|why| !matches!(why, Distrust::NoModel(_)))?;
    let name = &rule?.name;
    let text = format!(
        "rule {name}: the policy declined, so the fallback was chosen: {why}; `status` counts \
         these cases"
    );
    Some(Note::on_rule(name, text))
}

fn tally<'a>(
    tallies: &'a mut Tallies,
    config: &Config,
    place: Option<usize>,
    arm: Arm,
) -> &'a mut Tally {
    let rule = place.and_then(|place| config.rules.get(place));
    let name = rule.map_or(NO_RULE, |rule| rule.name.as_str());
    tallies.entry((name.to_owned(), arm)).or_default()
}

#[cfg(test)]
mod tests;
