//! Rules with `assign`: sockets that listen, and connections that are open, are given the algorithm of their rule. What
//! somebody chose by hand stays, and what was before comes back when no rule asks for it any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trimtab_kernel::{Algorithm, Assigner, Given, Identity, Options, Order, Outcome, Socket};
use trimtab_units::{Duration, Time};

use crate::config::{Config, Mode};
use crate::core::Core;
use crate::daemon::Shared;
use crate::daemon::logging;
use crate::datapath::Datapath;
use crate::error::Error;
use crate::kernel::places::{netns_cookie, within};

/// Between walks over all sockets: so long may a new socket that listens hand out the system's algorithm.
const AGAIN: Duration = Duration::from_secs(2);
/// With more sockets than this, walks become rarer in proportion: a socket takes some 2 µs (measured with 10,000), so
/// they stay below 0.5% of a core.
const SOCKETS: usize = 5000;

/// What the rules say of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It gets this algorithm, by the rule in this place.
    Give(Algorithm, usize),
    /// It stays as it is, for comparison.
    Leave,
    /// No rule gives it an algorithm.
    Nothing,
}

/// What is to be done about a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// It runs what its rule says.
    Runs,
    /// It gets this.
    Give(String),
    /// It goes back to this, which it ran before.
    Back(String),
    /// Somebody else chose what it runs.
    ByHand,
    /// It is none of ours.
    Nothing,
}

/// What is to be done about a socket, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Judged {
    step: Step,
    /// The rule, and its algorithm.
    rule: Option<(usize, Algorithm)>,
    /// Whether it runs something else than it was given because we let that take over.
    switched: bool,
}

/// Sockets that a rule gives an algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// The rule's name.
    pub rule: String,
    /// The kernel's name of the algorithm.
    pub algorithm: String,
    /// Sockets that listen and were given it.
    pub listeners: usize,
    /// Open connections that were given it, or inherited it.
    pub connections: usize,
    /// Sockets that would get it, in mode `advise`; in mode `apply`, those that the kernel refused.
    pub pending: usize,
    /// Sockets whose algorithm somebody else chose; they are left to it.
    pub by_hand: usize,
}

/// Addresses of a connection, local and remote, and its network namespace.
pub(crate) type Addresses = (SocketAddr, SocketAddr, u64);

/// Gives algorithms to sockets, by the rules.
#[derive(Debug)]
pub(crate) struct Assignment {
    folder: PathBuf,
    suffix: String,
    assigner: Option<Assigner>,
    /// Network namespaces of the rules, also of configurations before.
    namespaces: BTreeSet<PathBuf>,
    next: Option<Time>,
    /// That the last walk found.
    sockets: usize,
    /// Sockets of which it was told that they are left alone, or would get something.
    told: BTreeSet<u64>,
    /// Connections that the last walk gave another algorithm.
    moved: BTreeSet<Addresses>,
    /// Whether the last walk left a socket with what no rule asks for any more: another algorithm took over meanwhile.
    owes: bool,
    trouble: Option<String>,
}

impl Assignment {
    pub(crate) fn new(config: &Config, now: Time) -> Self {
        let mut new = Self {
            folder: config.datapath.folder.clone(),
            suffix: config.datapath.suffix.clone(),
            assigner: None,
            namespaces: BTreeSet::new(),
            next: None,
            sockets: 0,
            told: BTreeSet::new(),
            moved: BTreeSet::new(),
            owes: false,
            trouble: None,
        };
        new.follow(config, now);
        new
    }

    /// Follows another configuration.
    pub(crate) fn follow(&mut self, config: &Config, now: Time) {
        self.namespaces.extend(namespaces(config));
        self.told.clear();
        self.trouble = None;
        // Also what an agent before has given, and no rule asks for any more.
        let needed = assigns(config) || Assigner::has_given(&self.folder);
        self.next = needed.then_some(now);
    }

    /// The next walk, where there is one, is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.next = self.next.map(|_| now);
    }

    /// What is wrong.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// Whether the last walk gave a connection another algorithm.
    pub(crate) fn has_moved(&self, who: &Identity) -> bool {
        self.moved.contains(&(who.local, who.remote, who.netns_cookie))
    }

    /// Whether this is an algorithm that the agent has loaded.
    pub(crate) fn is_ours(&self, algorithm: &str) -> bool {
        Algorithm::ALL.iter().any(|ours| name_of(&self.suffix, *ours) == algorithm)
    }

    /// Walks over the sockets when it is time to; gives what there is to tell.
    pub(crate) fn run(&mut self, shared: &Shared, now: Time) -> Vec<String> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let walked = self.walk(shared, now);
        // A kernel that refuses the program now does so later.
        // A walk that failed has not seen what is still owed.
        let needed = assigns(shared.core().config()) || self.owes || walked.is_err();
        let again = self.assigner.is_some() && needed;
        self.next = again.then(|| now + pause(self.sockets));
        match walked {
            Ok(notes) => notes,
            Err(error) => {
                self.trouble = Some(format!("rules with assign = true do nothing: {error}"));
                Vec::new()
            }
        }
    }

    fn walk(&mut self, shared: &Shared, now: Time) -> Result<Vec<String>, Error> {
        let assigner = match self.assigner.take() {
            Some(assigner) => assigner,
            None => Assigner::load(&self.folder)?,
        };
        let notes = self.walk_with(&assigner, shared, now);
        self.assigner = Some(assigner);
        notes
    }

    fn walk_with(
        &mut self,
        assigner: &Assigner,
        shared: &Shared,
        now: Time,
    ) -> Result<Vec<String>, Error> {
        let (mut notes, mut seen, mut refused) = (Vec::new(), BTreeSet::new(), None);
        let mut sums = Sums::default();
        self.moved.clear();
        self.owes = false;
        for namespace in distinct(&self.namespaces) {
            let namespace = namespace.as_deref();
            let mut sockets = at(namespace, || assigner.sockets())?;
            let steps = self.steps(&sockets, &mut shared.core(), now);
            let orders = orders(&sockets, &steps);
            let applies = shared.core().config().mode == Mode::Apply;
            for (socket, Judged { step, .. }) in sockets.iter().zip(&steps) {
                let known = self.told.contains(&socket.cookie);
                if let Some(note) = note(socket, step, applies).filter(|_| !known) {
                    notes.push(note);
                    self.told.insert(socket.cookie);
                }
            }
            if applies && !orders.is_empty() {
                sockets = at(namespace, || assigner.carry_out(&orders))?;
                for socket in &sockets {
                    match socket.outcome {
                        Some(Outcome::Done) => {
                            notes.push(format!("{} runs {} now", label(socket), socket.algorithm));
                            self.moved.extend(addresses(socket));
                        }
                        Some(Outcome::Refused(errno)) => refused = Some(errno),
                        None => {}
                    }
                }
            }
            let steps = self.steps(&sockets, &mut shared.core(), now);
            self.owes |= applies && steps.iter().any(|one| matches!(one.step, Step::Back(_)));
            sums.add(&sockets, &steps);
            seen.extend(sockets.iter().map(|socket| socket.cookie));
        }
        self.sockets = seen.len();
        self.told.retain(|cookie| seen.contains(cookie));
        self.trouble = refused.map(|errno| {
            let error = io::Error::from_raw_os_error(errno);
            format!("the kernel refuses to give some sockets the algorithm of their rule: {error}")
        });
        let names = |rule: usize, algorithm| {
            let core = shared.core();
            let rule = core.config().rules.get(rule).map(|rule| rule.name.clone());
            (rule.unwrap_or_default(), name_of(&self.suffix, algorithm))
        };
        let assigned = sums.by_rule.into_iter().map(|((place, algorithm), mut sum)| {
            (sum.rule, sum.algorithm) = names(place, algorithm);
            sum
        });
        // Before the frame is locked, since the names lock the core.
        let assigned = assigned.collect();
        shared.frame().assigned = assigned;
        shared.core().former = sums.former;
        Ok(notes)
    }

    /// What is to be done about each socket.
    fn steps<D: Datapath>(&self, sockets: &[Socket], core: &mut Core<D>, now: Time) -> Vec<Judged> {
        let judge = |socket| {
            let wanted = core.wanted(socket, now);
            let switched = core.has_switched(socket, &self.suffix);
            let rule = match wanted {
                Wanted::Give(algorithm, rule) => Some((rule, algorithm)),
                Wanted::Leave | Wanted::Nothing => None,
            };
            let may_switch = |(place, _)| core.takes_turns(place) || core.compares();
            let turns = switched && rule.is_some_and(may_switch);
            let step =
                if turns { Step::Runs } else { step(socket, &wanted, switched, &self.suffix) };
            Judged { step, rule, switched }
        };
        sockets.iter().map(judge).collect()
    }
}

/// What a walk has found.
#[derive(Debug, Default)]
struct Sums {
    by_rule: BTreeMap<(usize, Algorithm), Assigned>,
    former: HashMap<Addresses, String>,
}

impl Sums {
    fn add(&mut self, sockets: &[Socket], steps: &[Judged]) {
        for (socket, Judged { step, rule, switched }) in sockets.iter().zip(steps) {
            let given = socket.given.as_ref();
            let ours = given.filter(|given| *switched || given.algorithm == socket.algorithm);
            if let (Some(given), Some(addresses)) = (ours, addresses(socket)) {
                self.former.insert(addresses, given.former.clone());
            }
            let Some(rule) = rule else { continue };
            let sum = self.by_rule.entry(*rule).or_default();
            match step {
                Step::Runs if ours.is_some() && socket.remote.is_none() => sum.listeners += 1,
                Step::Runs if ours.is_some() => sum.connections += 1,
                Step::Give(_) => sum.pending += 1,
                Step::ByHand => sum.by_hand += 1,
                Step::Runs | Step::Back(_) | Step::Nothing => {}
            }
        }
    }
}

/// Gives every socket back what it ran before it was given anything: of this network namespace and
/// those of the rules. How many there were.
pub(crate) fn give_back(config: &Config) -> Result<usize, Error> {
    let folder = &config.datapath.folder;
    if !Assigner::has_given(folder) {
        return Ok(0);
    }
    let assigner = Assigner::load(folder)?;
    let (mut restored, mut known) = (0, 0);
    for namespace in distinct(&namespaces(config).collect()) {
        let namespace = namespace.as_deref();
        let sockets = at(namespace, || assigner.sockets())?;
        let suffix = &config.datapath.suffix;
        let back = |socket: &Socket| {
            // Whether we let it take over is forgotten, and the algorithm goes away.
            let switched = Algorithm::ALL.iter().any(|a| name_of(suffix, *a) == socket.algorithm);
            let step = step(socket, &Wanted::Nothing, switched, suffix);
            Judged { step, rule: None, switched }
        };
        let steps: Vec<_> = sockets.iter().map(back).collect();
        let after = at(namespace, || assigner.carry_out(&orders(&sockets, &steps)))?;
        restored += after.iter().filter(|s| s.outcome == Some(Outcome::Done)).count();
        known += after.iter().filter(|s| s.given.is_some()).count();
    }
    if known > 0 {
        Assigner::keep_record(folder)?;
    }
    Ok(restored)
}

/// The time between walks over so many sockets.
fn pause(sockets: usize) -> Duration {
    AGAIN.mul_f64((sockets as f64 / SOCKETS as f64).max(1.0))
}

fn assigns(config: &Config) -> bool {
    config.rules.iter().any(|rule| rule.assign)
}

fn namespaces(config: &Config) -> impl Iterator<Item = PathBuf> + '_ {
    config.rules.iter().filter_map(|rule| rule.matches.netns.clone())
}

/// The namespace of this thread (`None`) and those of these files that exist, each once.
fn distinct(files: &BTreeSet<PathBuf>) -> Vec<Option<PathBuf>> {
    let mut cookies: BTreeSet<u64> = crate::kernel::sock_diag::own_netns().into_iter().collect();
    let others = files.iter().filter(|file| netns_cookie(file).is_ok_and(|c| cookies.insert(c)));
    std::iter::once(None).chain(others.cloned().map(Some)).collect()
}

/// Does something in a network namespace.
fn at<T: Send>(
    namespace: Option<&Path>,
    work: impl FnOnce() -> Result<T, trimtab_kernel::Error> + Send,
) -> Result<T, Error> {
    let Some(namespace) = namespace else { return Ok(work()?) };
    let done = within(namespace, || Ok(work()));
    Ok(done.map_err(|e| Error::system(format!("enter {}", namespace.display()), e))??)
}

pub(crate) fn name_of(suffix: &str, algorithm: Algorithm) -> String {
    Options { suffix: suffix.to_owned(), ..Options::default() }.name_of(algorithm)
}

/// What is to be done about a socket. A choice by hand is one after ours, or one of the program
/// itself: the kernel keeps that a program has chosen, and we keep what we gave. When we let
/// another algorithm take over (`switched`), it was neither.
fn step(socket: &Socket, wanted: &Wanted, switched: bool, suffix: &str) -> Step {
    let other = |given: &Given| given.algorithm != socket.algorithm;
    let by_hand = !switched && socket.given.as_ref().map_or(socket.chosen, other);
    match (wanted, &socket.given) {
        (Wanted::Give(algorithm, _), _) => {
            let name = name_of(suffix, *algorithm);
            match (name == socket.algorithm, by_hand) {
                (true, _) => Step::Runs,
                (false, true) => Step::ByHand,
                (false, false) => Step::Give(name),
            }
        }
        (Wanted::Nothing, Some(given)) if !by_hand && given.algorithm != given.former => {
            Step::Back(given.former.clone())
        }
        (Wanted::Nothing | Wanted::Leave, _) => Step::Nothing,
    }
}

fn orders(sockets: &[Socket], steps: &[Judged]) -> Vec<Order> {
    let order = |(socket, judged): (&Socket, &Judged)| match &judged.step {
        Step::Give(to) | Step::Back(to) => {
            Some(Order { cookie: socket.cookie, from: socket.algorithm.clone(), to: to.clone() })
        }
        Step::Runs | Step::ByHand | Step::Nothing => None,
    };
    sockets.iter().zip(steps).filter_map(order).collect()
}

/// What is reported of a socket once. A connection that somebody took by hand is reported when it
/// leaves the datapath.
fn note(socket: &Socket, step: &Step, applies: bool) -> Option<String> {
    let who = label(socket);
    match step {
        Step::ByHand if socket.given.is_some() && socket.remote.is_none() => {
            Some(format!("{who} was given {} by hand, and is left to it", socket.algorithm))
        }
        Step::Give(to) | Step::Back(to) if !applies => {
            Some(format!("{who} runs {}, and would get {to}", socket.algorithm))
        }
        _ => None,
    }
}

fn label(socket: &Socket) -> String {
    match socket.remote {
        Some(remote) => {
            let (network, port) = (logging::network(remote.ip()), socket.local.port());
            format!("the connection from {network} to port {port}")
        }
        None => format!("the socket that listens at {}", socket.local),
    }
}

fn addresses(socket: &Socket) -> Option<Addresses> {
    Some((socket.local, socket.remote?, socket.netns_cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(algorithm: &str, chosen: bool, given: Option<(&str, &str)>) -> Socket {
        let given = given.map(|(algorithm, former)| Given {
            algorithm: algorithm.to_owned(),
            former: former.to_owned(),
        });
        Socket {
            cookie: 1,
            netns_cookie: 1,
            cgroup: None,
            local: "192.0.2.1:443".parse().unwrap(),
            remote: None,
            algorithm: algorithm.to_owned(),
            chosen,
            given,
            outcome: None,
        }
    }

    #[test]
    fn nobodys_choice_is_overruled_and_what_was_before_comes_back() {
        let give = Wanted::Give(Algorithm::Copa, 0);
        let (copa, cubic) = ("trimtab_copa", "cubic");
        let to = |name: &str| Step::Give(name.to_owned());
        for (algorithm, chosen, given, wanted, expected) in [
            (cubic, false, None, &give, to(copa)),
            (copa, false, None, &give, Step::Runs),
            (copa, true, Some((copa, cubic)), &give, Step::Runs),
            // The program chose before us; somebody chose after us.
            ("bbr", true, None, &give, Step::ByHand),
            ("bbr", true, Some((copa, cubic)), &give, Step::ByHand),
            // It was ours, went back, and a rule asks for it again; or for another one.
            (cubic, true, Some((cubic, cubic)), &give, to(copa)),
            (
                copa,
                true,
                Some((copa, cubic)),
                &Wanted::Give(Algorithm::Cubic, 0),
                to("trimtab_cubic"),
            ),
            // No rule any more.
            (copa, true, Some((copa, cubic)), &Wanted::Nothing, Step::Back(cubic.to_owned())),
            ("bbr", true, Some((copa, cubic)), &Wanted::Nothing, Step::Nothing),
            (copa, true, None, &Wanted::Nothing, Step::Nothing),
            (copa, true, Some((copa, cubic)), &Wanted::Leave, Step::Nothing),
            (cubic, false, None, &Wanted::Leave, Step::Nothing),
        ] {
            let it = socket(algorithm, chosen, given);
            assert_eq!(step(&it, wanted, false, ""), expected, "{it:?} {wanted:?}");
        }
    }

    /// It was given Copa, and we let CUBIC take over; or the system's default was Copa.
    #[test]
    fn what_we_let_take_over_is_nobodys_choice() {
        let give = Wanted::Give(Algorithm::Copa, 0);
        let given = socket("trimtab_cubic", true, Some(("trimtab_copa", "reno")));
        assert_eq!(step(&given, &Wanted::Nothing, true, ""), Step::Back("reno".to_owned()));
        assert_eq!(step(&given, &Wanted::Nothing, false, ""), Step::Nothing);
        let own = socket("trimtab_cubic", true, None);
        assert_eq!(step(&own, &give, true, ""), Step::Give("trimtab_copa".to_owned()));
        assert_eq!(step(&own, &give, false, ""), Step::ByHand);
    }

    #[test]
    fn walks_over_many_sockets_are_rarer() {
        assert_eq!((pause(0), pause(5000)), (AGAIN, AGAIN));
        assert_eq!(pause(50_000), Duration::from_secs(20));
    }

    #[test]
    fn advice_is_told_and_a_choice_by_hand_too() {
        let it = socket("reno", true, Some(("trimtab_copa", "cubic")));
        let told = note(&it, &Step::ByHand, true).unwrap();
        assert_eq!(
            told,
            "the socket that listens at 192.0.2.1:443 was given reno by hand, and is left to it"
        );
        let told = note(&it, &Step::Give("trimtab_copa".to_owned()), false).unwrap();
        assert!(told.ends_with("runs reno, and would get trimtab_copa"), "{told}");
        assert_eq!(note(&it, &Step::Give("trimtab_copa".to_owned()), true), None);
    }
}
