//! Rules with `assign`: sockets that listen, and connections that are open, are given the algorithm of their rule. What
//! somebody chose by hand stays, and what was before comes back when no rule asks for it any more.
//!
//! Sockets that begin get it from the kernel at once, by the rules as [`Core::choices`] compiles
//! them. Walks give it to those that were there before, take it back, and count.

mod found;
pub(crate) mod reach;
mod step;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use trimtab_kernel::{Algorithm, Assigner, Choices, Identity, Options, Outcome, Socket};
use trimtab_units::{Duration, Time};

pub use found::Assigned;
pub(crate) use step::{Addresses, Wanted};

use self::found::Found;
use self::reach::{at, far_places, near_places};
use self::step::{Judged, Step, addresses, label, note, orders, step};
use crate::config::{Config, Mode, Rule};
use crate::core::Core;
use crate::daemon::Shared;
use crate::datapath::Datapath;
use crate::error::Error;
use crate::loader::Client;
use crate::loader::client::Place;

/// Between walks over all sockets: so long may a new socket that listens hand out the system's algorithm.
const AGAIN: Duration = Duration::from_secs(2);
/// With more sockets than this, walks become rarer in proportion: a socket takes some 2 µs (measured with 10,000), so
/// they stay below 0.5% of a core.
const SOCKETS: usize = 5000;
/// Between walks in network namespaces that no rule names, which those with a cgroup reach: sockets
/// that begin there need none.
const FAR_AGAIN: Duration = Duration::from_secs(30);
/// And at least so many times what the last one took: 0.5% of a core.
const FAR_SHARE: f64 = 200.0;

/// Gives algorithms to sockets, by the rules.
#[derive(Debug)]
pub(crate) struct Assignment {
    loader: Arc<Client>,
    suffix: String,
    /// Whether the loader has loaded the walk.
    loaded: bool,
    /// What the hook of the root cgroup follows; `None`: what an agent before has left.
    choices: Option<Choices>,
    /// Why the hook is not there.
    no_hook: Option<String>,
    next: Option<Time>,
    /// The same of namespaces that no rule names.
    far_next: Option<Time>,
    /// What the last walk there found.
    far: Found,
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
    pub(crate) fn new(loader: Arc<Client>, config: &Config, now: Time) -> Self {
        let mut new = Self {
            loader,
            suffix: config.datapath.suffix.clone(),
            loaded: false,
            choices: None,
            no_hook: None,
            next: None,
            far_next: None,
            far: Found::default(),
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
        self.told.clear();
        self.trouble = None;
        self.choices = None;
        // Also what an agent before has given, and no rule asks for any more.
        let needed = assigns(config) || self.loader.has_given();
        self.next = needed.then_some(now);
        self.far_next = self.next;
    }

    /// The next walk, where there is one, is due now.
    pub(crate) fn hurry(&mut self, now: Time) {
        self.next = self.next.map(|_| now);
        self.far_next = self.far_next.map(|_| now);
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
        let Some(next) = self.next else { return Vec::new() };
        if next > now {
            // A new stage or comparison is known to the hook before the next walk.
            if self.loaded {
                self.hook(shared, now);
            }
            return Vec::new();
        }
        let walked = self.walk(shared, now);
        // A kernel that refuses the program now does so later.
        // A walk that failed has not seen what is still owed.
        let needed = assigns(shared.core().config()) || self.owes || walked.is_err();
        let again = self.loaded && needed;
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
        if !self.loaded {
            self.loader.assign()?;
            self.loaded = true;
        }
        self.hook(shared, now);
        self.walk_all(shared, now)
    }

    /// Has sockets to come get what the rules say now.
    fn hook(&mut self, shared: &Shared, now: Time) {
        let choices = shared.core().choices(&self.suffix, now);
        if self.choices.as_ref() == Some(&choices) {
            return;
        }
        let hooked = if choices.list.is_empty() {
            self.loader.unhook()
        } else {
            self.loader.follow(&choices)
        };
        self.no_hook = hooked.err().map(|why| {
            format!(
                "new sockets get the algorithm of their rule after up to two seconds, and in \
                 containers never: {why}"
            )
        });
        // Where it failed, the next reload tries again.
        self.choices = Some(choices);
    }

    fn walk_all(&mut self, shared: &Shared, now: Time) -> Result<Vec<String>, Error> {
        let mut near = Found::default();
        for place in self.loader.places(false)? {
            self.walk_at(place, shared, now, &mut near)?;
        }
        let mut notes = std::mem::take(&mut near.notes);
        self.moved = std::mem::take(&mut near.moved);
        if self.far_next.is_some_and(|next| next <= now) {
            let begun = trimtab_kernel::now();
            let mut far = Found::default();
            for place in self.loader.places(true)? {
                // One that is gone meanwhile has no sockets any more.
                let _ = self.walk_at(place, shared, now, &mut far);
            }
            let took = trimtab_kernel::now() - begun;
            notes.append(&mut far.notes);
            self.moved.append(&mut far.moved);
            let again = reaches_far(shared.core().config()) || far.owes;
            self.far_next = again.then(|| now + FAR_AGAIN.max(took.mul_f64(FAR_SHARE)));
            self.far = far;
        }
        let both = [&near, &self.far];
        self.owes = both.iter().any(|found| found.owes);
        self.sockets = near.seen.len();
        self.told.retain(|cookie| both.iter().any(|found| found.seen.contains(cookie)));
        let refused = both.iter().find_map(|found| found.refused);
        let refused = refused.or_else(|| {
            let gave = self.loader.gave().ok()?;
            (gave.refused > 0).then_some(gave.error)
        });
        let refused = refused.map(|errno| {
            let error = io::Error::from_raw_os_error(errno);
            format!("the kernel refuses to give some sockets the algorithm of their rule: {error}")
        });
        self.trouble = refused.or_else(|| self.no_hook.clone());
        let mut sums = near.sums;
        sums.join(&self.far.sums);
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
        shared.core().on_given(sums.former, now);
        Ok(notes)
    }

    /// The sockets of a network namespace.
    fn walk_at(
        &mut self,
        place: Place,
        shared: &Shared,
        now: Time,
        found: &mut Found,
    ) -> Result<(), Error> {
        let mut sockets = self.loader.walk(place, &[])?;
        let steps = self.steps(&sockets, &mut shared.core(), now);
        let orders = orders(&sockets, &steps);
        let applies = shared.core().config().mode == Mode::Apply;
        for (socket, Judged { step, .. }) in sockets.iter().zip(&steps) {
            let known = self.told.contains(&socket.cookie);
            if let Some(note) = note(socket, step, applies).filter(|_| !known) {
                found.notes.push(note);
                self.told.insert(socket.cookie);
            }
        }
        if applies && !orders.is_empty() {
            sockets = self.loader.walk(place, &orders)?;
            for socket in &sockets {
                match socket.outcome {
                    Some(Outcome::Done) => {
                        let runs = format!("{} runs {} now", label(socket), socket.algorithm);
                        found.notes.push(runs);
                        found.moved.extend(addresses(socket));
                    }
                    Some(Outcome::Refused(errno)) => found.refused = Some(errno),
                    None => {}
                }
            }
        }
        let steps = self.steps(&sockets, &mut shared.core(), now);
        found.owes |= applies && steps.iter().any(|one| matches!(one.step, Step::Back(_)));
        found.sums.add(&sockets, &steps);
        found.seen.extend(sockets.iter().map(|socket| socket.cookie));
        Ok(())
    }

    /// What is to be done about each socket.
    fn steps<D: Datapath>(&self, sockets: &[Socket], core: &mut Core<D>, now: Time) -> Vec<Judged> {
        let judge = |socket| {
            let wanted = core.wanted(socket, now);
            let switched = core.has_switched(socket, &self.suffix);
            let rule = match wanted {
                Wanted::Give(_, rule) => core.algorithm_of(rule).map(|of| (rule, of)),
                Wanted::Leave | Wanted::Nothing => None,
            };
            let may_switch = |(place, _)| core.takes_turns(place) || core.compares();
            let turns = switched && rule.is_some_and(may_switch)
                || rule.is_some_and(|(_, of)| core.moves(socket, of, &self.suffix));
            let step =
                if turns { Step::Runs } else { step(socket, &wanted, switched, &self.suffix) };
            Judged { step, rule, switched }
        };
        sockets.iter().map(judge).collect()
    }
}

/// Gives every socket back what it ran before it was given anything, in every network namespace that
/// a process or a name holds, and has none get anything any more. How many there were.
pub(crate) fn give_back(config: &Config) -> Result<usize, Error> {
    let folder = &config.datapath.folder;
    if !Assigner::has_given(folder) {
        return Ok(0);
    }
    Assigner::unhook(folder)?;
    let assigner = Assigner::load(folder)?;
    let (mut restored, mut known) = (0, 0);
    let near = near_places(&namespaces(config).collect());
    let far = far_places(&near);
    let all = near
        .into_iter()
        .map(|place| (place, true))
        .chain(far.into_iter().map(|f| (Some(f), false)));
    for (place, is_near) in all {
        let sockets = match at(place.as_ref(), || assigner.sockets()) {
            Ok(sockets) => sockets,
            Err(error) if is_near => return Err(error),
            // One that is gone meanwhile has no sockets any more.
            Err(_) => continue,
        };
        let suffix = &config.datapath.suffix;
        let back = |socket: &Socket| {
            // Whether we let it take over is forgotten, and the algorithm goes away.
            let switched = Algorithm::ALL.iter().any(|a| name_of(suffix, *a) == socket.algorithm);
            let step = step(socket, &Wanted::Nothing, switched, suffix);
            Judged { step, rule: None, switched }
        };
        let steps: Vec<_> = sockets.iter().map(back).collect();
        let after = at(place.as_ref(), || assigner.carry_out(&orders(&sockets, &steps)))?;
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

/// Whether a rule reaches network namespaces that no rule names.
fn reaches_far(config: &Config) -> bool {
    let far = |rule: &Rule| rule.matches.cgroup.is_some() && rule.matches.netns.is_none();
    config.rules.iter().any(|rule| rule.assign && far(rule))
}

/// Algorithms that connections may run without Trimtab, each with the name of our copy of it.
pub(crate) fn copies(suffix: &str) -> Vec<(String, String)> {
    let copy = |ours: &Algorithm| (ours.name().to_owned(), name_of(suffix, *ours));
    Algorithm::ALL.iter().map(copy).collect()
}

pub(crate) fn name_of(suffix: &str, algorithm: Algorithm) -> String {
    Options { suffix: suffix.to_owned(), ..Options::default() }.name_of(algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_over_many_sockets_are_rarer() {
        assert_eq!((pause(0), pause(5000)), (AGAIN, AGAIN));
        assert_eq!(pause(50_000), Duration::from_secs(20));
    }
}
