//! What the rules want of the kernel's sockets.

use trimtab_kernel::{Algorithm, Choice, Choices, Gives, Socket};
use trimtab_steer::safety::Arm;
use trimtab_units::Time;

use super::assign::{Wanted, name_of};
use super::places::Who;
use crate::config::{Matches, Mode, Rule};
use crate::connection::Connection;
use crate::core::Core;
use crate::datapath::{Datapath, Link};
use crate::operate::target::Subject;
use crate::operate::{Held, Target};

impl<D: Datapath> Core<D> {
    /// What the rules say of a socket's algorithm. One that listens gets what all its connections would get.
    pub(crate) fn wanted(&mut self, socket: &Socket, now: Time) -> Wanted {
        if self.is_restored(socket, now) {
            return Wanted::Nothing;
        }
        let arm = socket.remote.map(|remote| self.comparing().of(remote.ip(), now).arm);
        let (who, rules) = (Who::from(socket), &self.config.rules);
        let places = match socket.remote {
            Some(remote) if Arm::of(remote.ip(), self.config.holdback) == Arm::Holdback => {
                return Wanted::Leave;
            }
            Some(_) => self.places.rule_of(&who, rules, now).into_iter().collect(),
            None => self.places.rules_of_listener(&who, rules, now),
        };
        let [first, ..] = places[..] else { return Wanted::Nothing };
        let named = rules[first].algorithm;
        let alike = |place: &usize| rules[*place].assign && rules[*place].algorithm == named;
        let is_former = self.config.mode == Mode::Apply && arm == Some(Arm::Former);
        match Algorithm::from_name(named.name()).filter(|_| places.iter().all(alike)) {
            Some(algorithm) => {
                let copy = copy_for(socket).filter(|_| is_former);
                Wanted::Give(copy.unwrap_or(algorithm), first)
            }
            None => Wanted::Nothing,
        }
    }

    /// The algorithm of the rule in this place.
    pub(crate) fn algorithm_of(&self, place: usize) -> Option<Algorithm> {
        Algorithm::from_name(self.config.rules.get(place)?.algorithm.name())
    }

    /// Whether the agent moves this socket's connection from arm to arm in the datapath, so that a
    /// walk leaves it alone. It runs what it was given: its rule's algorithm, or the copy.
    pub(crate) fn moves(&self, socket: &Socket, of_rule: Algorithm, suffix: &str) -> bool {
        let Some(given) = socket.given.as_ref().filter(|_| self.compares()) else { return false };
        let arms = [Some(of_rule), copy_for(socket)].into_iter().flatten();
        given.algorithm == socket.algorithm
            && arms.into_iter().any(|arm| name_of(suffix, arm) == socket.algorithm)
            && self.connection_of(socket).is_some()
    }

    /// Whether an operator, or the breaker of a rule, wants a socket to have its former algorithm.
    fn is_restored(&mut self, socket: &Socket, now: Time) -> bool {
        if self.holds().is_empty() {
            return false;
        }
        let (who, rules) = (Who::from(socket), &self.config.rules);
        let place = match socket.remote {
            Some(_) => self.places.rule_of(&who, rules, now),
            None => self.places.rules_of_listener(&who, rules, now).first().copied(),
        };
        let flow = |remote| self.by_addresses(socket.local, remote, socket.netns_cookie);
        let subject = Subject {
            rule: self.rule(place).map(|rule| rule.name.as_str()),
            flow: socket.remote.and_then(flow).map(|id| id.0),
            remote: socket.remote.map(|remote| remote.ip()),
            port: who.port(),
            cgroup: who.cgroup(),
        };
        self.holds().on(&subject).is_some_and(Held::wants_former)
    }

    /// The same of a whole rule.
    fn is_rule_restored(&self, rule: &Rule) -> bool {
        let (flow, remote, port, cgroup) = (None, None, 0, None);
        let subject = Subject { rule: Some(&rule.name), flow, remote, port, cgroup };
        self.holds().on(&subject).is_some_and(Held::wants_former)
    }

    /// What the rules say of every socket to come, as the hook of the root cgroup reads it; nothing in mode
    /// `advise`, or where no rule assigns.
    pub(crate) fn choices(&self, suffix: &str, now: Time) -> Choices {
        let rules = &self.config.rules;
        let last = rules.iter().rposition(|rule| rule.assign);
        let Some(last) = last.filter(|_| self.config.mode == Mode::Apply) else {
            return Choices::default();
        };
        let of = |rule: &Rule| {
            let assigns = rule.assign && !self.is_rule_restored(rule);
            let algorithm = Algorithm::from_name(rule.algorithm.name()).filter(|_| assigns);
            let name = algorithm.map(|algorithm| name_of(suffix, algorithm));
            self.places.choices(&rule.matches, name.as_deref())
        };
        let held = || self.holds().iter().filter(|hold| hold.held.wants_former());
        let ports = (0, u16::MAX);
        let any = Choice { netns: None, cgroup: None, ports, to: None, gives: Gives::Nothing };
        let left = held().flat_map(|hold| match &hold.target {
            Target::Port(port) => vec![Choice { ports: (*port, *port), ..any.clone() }],
            Target::Cgroup(path) => {
                let matches = Matches { cgroup: Some(path.clone()), ..Matches::default() };
                self.places.choices(&matches, None)
            }
            _ => Vec::new(),
        });
        let others: Vec<Choice> = left.chain(rules[..=last].iter().flat_map(of)).collect();
        // What listens has connections to others, too, and keeps what it gives to these.
        let back = held().filter_map(|hold| match hold.target {
            Target::To(to) => {
                let to = Some((to.base(), to.bits()));
                Some(Choice { to, gives: Gives::Former, ..any.clone() })
            }
            _ => None,
        });
        // Those for which the hook has no room are left to the walk, so that no rule is.
        let room = Choices::MOST.saturating_sub(others.len());
        let list = back.take(room).chain(others).collect();
        Choices { holdback: self.config.holdback, arms: self.comparing().hooked(suffix, now), list }
    }

    fn connection_of(&self, socket: &Socket) -> Option<&Connection<D::Link>> {
        let id = self.by_addresses(socket.local, socket.remote?, socket.netns_cookie)?;
        self.connections().get(&id)
    }

    /// Whether we let take over what a socket runs. Since it told what it runs, another may have taken
    /// over; had somebody chosen one of ours by hand, it would be another connection here.
    pub(crate) fn has_switched(&self, socket: &Socket, suffix: &str) -> bool {
        let Some(connection) = self.connection_of(socket) else { return false };
        let switched = connection.link.switching().is_some_and(|s| s.switches > 0);
        switched && Algorithm::ALL.iter().any(|ours| name_of(suffix, *ours) == socket.algorithm)
    }
}

/// The copy of what a socket would run without us; `None` where there is none.
fn copy_for(socket: &Socket) -> Option<Algorithm> {
    let own = socket.given.as_ref().map_or(&socket.algorithm, |given| &given.former);
    Algorithm::from_name(own)
}
