//! What operators order is carried out here, on every connection that it covers.

use trimtab_datapath::{Algorithm, Identity};
use trimtab_units::Time;

use super::{Core, addresses};
use crate::connection::Connection;
use crate::connection::Setting;
use crate::datapath::{Datapath, Link, algorithm};
use crate::doors::table::count;
use crate::kernel::ahead::Now;
use crate::operate::holds::{Hold, Holds};
use crate::operate::target::Subject;
use crate::operate::{Done, Held, Order, Target, Verb};

impl<D: Datapath> Core<D> {
    /// Does what an operator asks for; `by` is the operator.
    ///
    /// # Errors
    /// It cannot be done: then why.
    pub(crate) fn operate(&mut self, order: &Order, by: &str, now: Time) -> Result<Done, String> {
        let Order { verb, target, .. } = order;
        self.check(target, *verb)?;
        let (connections, ended) = match verb.held() {
            Some(held) => {
                self.holds.add(Hold::of(order, held, by, now)?)?;
                (self.obey(now), 0)
            }
            None if *verb == Verb::Reset => (self.reset(target, now), 0),
            None => match self.holds.resume(target) {
                0 => {
                    return Err(format!(
                        "no order on {target} is in force; `trimtab agent status` lists those that are"
                    ));
                }
                ended => {
                    self.arms.arm_again(target);
                    (self.obey(now), ended)
                }
            },
        };
        Ok(Done {
            schema: "trimtab.agent.order/1".to_owned(),
            verb: *verb,
            target: target.clone(),
            connections,
            ended,
            text: text(order, connections, ended),
        })
    }

    /// Whether there is what an order is about.
    fn check(&self, target: &Target, verb: Verb) -> Result<(), String> {
        let is_end = verb == Verb::Resume;
        match target {
            Target::Rule(name) if !is_end => {
                let known: Vec<&str> = self.config.rules.iter().map(|r| r.name.as_str()).collect();
                let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let is_known = known.contains(&name.as_str());
                let fail = || format!("there is no rule {name:?}: the configuration has {list}");
                is_known.then_some(()).ok_or_else(fail)
            }
            Target::Flow(id) if !is_end && !self.is_open(*id) => {
                Err(format!("no connection has the number {id}: `trimtab agent flows` lists them"))
            }
            _ => Ok(()),
        }
    }

    fn is_open(&self, id: u64) -> bool {
        self.connections.contains_key(&trimtab_datapath::FlowId(id))
    }

    /// Orders that are over end; gives what there is to tell.
    pub(crate) fn expire_orders(&mut self, now: Time) -> Vec<String> {
        let open = &self.connections;
        let is_open = |id: u64| open.contains_key(&trimtab_datapath::FlowId(id));
        let over = self.holds.expire(now, is_open);
        if self.holds.find_cgroups(now) || !over.is_empty() {
            self.obey(now);
        }
        let told = over.iter().filter(|hold| hold.until.is_some());
        told.map(|hold| format!("{} is no longer {}", hold.target, hold.held.name())).collect()
    }

    /// Brings every connection under the orders in force; how many that changed.
    pub(crate) fn obey(&mut self, now: Time) -> usize {
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let stretch = self.governor.stretch();
        let (mut changed, mut woken) = (0, Vec::new());
        for connection in self.connections.values_mut() {
            let held = held(&self.holds, &self.config.rules, connection);
            if held == connection.held {
                continue;
            }
            let identity = *connection.link.identity();
            let mut setting = at.setting(connection.rule, stretch);
            self.ended.complete(&mut setting, identity.remote.ip());
            setting.former = former(&self.former, self.system, &identity);
            // It may be looked at while it is idle, too.
            if connection.is_asleep() {
                woken.push(identity.id);
            }
            changed += usize::from(connection.hold(held, &setting));
        }
        woken.into_iter().for_each(|id| self.plan(id, now));
        if self.edge.is_some() {
            self.ahead.clear(&self.datapath);
            self.tell_ahead(now);
        }
        changed
    }

    fn reset(&mut self, target: &Target, now: Time) -> usize {
        let at = Now { config: &self.config, edge: self.edge.as_deref(), now };
        let stretch = self.governor.stretch();
        // The cgroups of an order that does not last.
        let hold = Hold::new(Held::Paused, target.clone(), now, None, "");
        let mut holds = Holds::default();
        // One fits into none.
        let _ = holds.add(hold);
        if *target == Target::All {
            self.ended = crate::connection::ended::Ended::default();
        }
        let (mut count, mut woken) = (0, Vec::new());
        for connection in self.connections.values_mut() {
            if held(&holds, &self.config.rules, connection).is_none() {
                continue;
            }
            let identity = *connection.link.identity();
            let mut setting = at.setting(connection.rule, stretch);
            self.ended.forget(identity.remote.ip(), setting.rule);
            setting.former = former(&self.former, self.system, &identity);
            if connection.is_asleep() {
                woken.push(identity.id);
            }
            connection.reset(&setting);
            count += 1;
        }
        woken.into_iter().for_each(|id| self.plan(id, now));
        count
    }

    /// Completes the setting of a connection that opens: under which order, and what it would run
    /// without Trimtab.
    pub(super) fn complete(&self, setting: &mut Setting<'_>, identity: &Identity) {
        let rule = setting.rule.map(|rule| rule.name.as_str());
        setting.held = self.holds.on(&subject(rule, identity));
        setting.former = former(&self.former, self.system, identity);
    }

    /// The orders in force.
    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }
}

/// The order that a connection stands under.
pub(super) fn held<L: Link>(
    holds: &Holds,
    rules: &[crate::config::Rule],
    connection: &Connection<L>,
) -> Option<Held> {
    if holds.is_empty() {
        return None;
    }
    let rule = connection.rule.and_then(|place| rules.get(place));
    holds.on(&subject(rule.map(|rule| rule.name.as_str()), connection.link.identity()))
}

pub(super) fn subject<'a>(rule: Option<&'a str>, identity: &Identity) -> Subject<'a> {
    Subject {
        rule,
        flow: Some(identity.id.0),
        remote: Some(identity.remote.ip()),
        port: identity.local.port(),
        cgroup: identity.cgroup,
    }
}

/// What a connection would run without Trimtab: what it ran before a rule gave it another
/// algorithm, else what the system gives. `None` where the datapath has no such algorithm.
pub(super) fn former(
    assigned: &std::collections::HashMap<crate::kernel::assign::Addresses, String>,
    system: Option<Algorithm>,
    identity: &Identity,
) -> Option<Algorithm> {
    match assigned.get(&addresses(identity)) {
        Some(name) => algorithm(name),
        None => system,
    }
}

fn text(order: &Order, connections: usize, ended: usize) -> String {
    let Order { verb, target, lasts } = order;
    let open = count(connections, "open connection");
    let until = match lasts {
        Some(seconds) => format!("for {seconds:.0} s, or until `trimtab agent resume {target}`"),
        None => format!("until `trimtab agent resume {target}`"),
    };
    match verb {
        Verb::Pause => format!(
            "paused {target}: {open} got back what they had before; nothing is steered there {until}"
        ),
        Verb::Exclude | Verb::Restore => format!(
            "{verb}d {target}: {open} got back their former algorithm, and so do sockets to \
             which a rule gave another; no rule applies there {until}",
            verb = verb.name()
        ),
        Verb::Resume => {
            format!("resumed {target}: {} ended, {open} are steered again", count(ended, "order"))
        }
        Verb::Reset => format!(
            "reset {target}: {open} have their algorithm's default knobs, and steering begins anew"
        ),
    }
}
