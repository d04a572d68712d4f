//! What a request may ask for: the loader does nothing that the configuration does not call for, also
//! where an attacker has taken over the steerer.

use std::collections::{BTreeSet, HashMap};

use trimtab_fleet::experiment::ThreeArms;
use trimtab_kernel::{Algorithm, Choices, Gives, Socket};

use super::protocol::{ORDERS_AT_ONCE, Request};
use crate::config::Grounds;
use crate::kernel::assign::name_of;

/// The longest status for the service manager.
const STATUS_MAX: usize = 100;

/// What is allowed now.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    /// Names of our algorithms.
    ours: BTreeSet<String>,
    /// What sockets ran before they were given anything, as of the last walk, by their cookies.
    former: HashMap<u64, String>,
    default: bool,
    assigns: bool,
    compares: bool,
}

impl Allowed {
    /// What a configuration calls for.
    pub(crate) fn new(grounds: &Grounds) -> Self {
        let suffix = &grounds.datapath.suffix;
        Self {
            ours: Algorithm::ALL.iter().map(|algorithm| name_of(suffix, *algorithm)).collect(),
            former: HashMap::new(),
            default: grounds.default_algorithm,
            assigns: grounds.assigns,
            compares: grounds.compares,
        }
    }

    /// A walk has told of these sockets.
    pub(super) fn saw(&mut self, sockets: &[Socket]) {
        let former = |socket: &Socket| Some((socket.cookie, socket.given.as_ref()?.former.clone()));
        self.former = sockets.iter().filter_map(former).collect();
    }

    /// Whether a request may be carried out; `has_given`: an agent has given sockets algorithms.
    ///
    /// # Errors
    /// Not: then why.
    pub(crate) fn check(&self, request: &Request, has_given: bool) -> Result<(), String> {
        match request {
            Request::Assign {}
            | Request::Places { .. }
            | Request::Order { .. }
            | Request::Walk { .. }
            | Request::Follow { .. }
            | Request::Gave {}
                if !(self.assigns || has_given) =>
            {
                return Err("no rule gives sockets an algorithm".to_owned());
            }
            _ => {}
        }
        match request {
            Request::SetDefault {} if !self.default => {
                Err("the configuration sets no default algorithm".to_owned())
            }
            Request::Order { orders } if orders.len() > ORDERS_AT_ONCE => {
                Err(format!("more than {ORDERS_AT_ONCE} orders"))
            }
            Request::Order { orders } => {
                let is_known = |to: &String, cookie: &u64| {
                    self.ours.contains(to) || self.former.get(cookie) == Some(to)
                };
                match orders.iter().find(|order| !is_known(&order.to, &order.cookie)) {
                    Some(order) => Err(format!("no socket is given {:?}", order.to)),
                    None => Ok(()),
                }
            }
            Request::Follow { list, .. } if list.len() > Choices::MOST => {
                Err(format!("more than {} choices", Choices::MOST))
            }
            Request::Follow { rollout, plan, .. }
                if (rollout.is_some() || plan.is_some()) && !self.compares =>
            {
                Err("the configuration compares nothing".to_owned())
            }
            Request::Follow { rollout: Some(share), .. } if !(0.0..=1.0).contains(share) => {
                Err(format!("a rollout reaches 0 to 1 of the networks, not {share}"))
            }
            Request::Follow { plan: Some(spec), .. } if ThreeArms::new(*spec).is_err() => {
                Err("no plan of three arms".to_owned())
            }
            Request::Follow { list, .. } => {
                let mut named = list.iter().filter_map(|choice| match &choice.gives {
                    Gives::Algorithm(name) => Some(name),
                    Gives::Former | Gives::Nothing => None,
                });
                match named.find(|name| !self.ours.contains(*name)) {
                    Some(name) => Err(format!("no socket is given {name:?}")),
                    None => Ok(()),
                }
            }
            Request::Alive { status }
                if status.len() > STATUS_MAX || status.chars().any(char::is_control) =>
            {
                Err(format!("a status is a line of {STATUS_MAX} bytes at most"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trimtab_fleet::Interval;
    use trimtab_fleet::experiment::{Schedule, ThreeArmsSpec};
    use trimtab_kernel::{Choice, Given, Order};

    use super::*;

    fn order(cookie: u64, to: &str) -> Request {
        Request::Order { orders: vec![Order { cookie, from: "reno".into(), to: to.into() }] }
    }

    fn follow(gives: &str) -> Request {
        let gives = Gives::Algorithm(gives.to_owned());
        let choice = Choice { netns: None, cgroup: None, ports: (1, 2), to: None, gives };
        Request::Follow { holdback: 0.0, rollout: None, plan: None, list: vec![choice] }
    }

    fn compare(share: f64, rollout: Option<f64>) -> Request {
        let plan = ThreeArmsSpec {
            start: Interval(7),
            block: 4,
            pairs: 4,
            wash_out: 1,
            share,
            schedule: Schedule::Each,
            seed: 7,
        };
        Request::Follow { holdback: 0.0, rollout, plan: Some(plan), list: Vec::new() }
    }

    #[test]
    fn arms_are_those_of_a_configuration_that_compares() {
        let text = "[[rule]]\nport = 443\nassign = true\n";
        let allowed = |more: &str| {
            Allowed::new(&Grounds::parse(Path::new("a"), &format!("{more}{text}")).unwrap())
        };
        let compares = allowed("[compare]\nshare = \"10%\"\n");
        let rolls_out = allowed("[rollout]\nstages = [\"10%\"]\n");
        for allowed in [compares, rolls_out] {
            for rollout in [None, Some(0.0), Some(1.0)] {
                assert_eq!(allowed.check(&compare(0.1, rollout), false), Ok(()));
            }
            for wrong in [compare(0.6, None), compare(0.1, Some(1.1)), compare(f64::NAN, None)] {
                assert!(allowed.check(&wrong, false).is_err(), "{wrong:?}");
            }
        }
        let why = allowed("").check(&compare(0.1, None), false).unwrap_err();
        assert!(why.contains("compares nothing"), "{why}");
    }

    #[test]
    fn sockets_are_given_our_algorithms_or_what_they_had() {
        let text = "[[rule]]\nport = 443\nassign = true\n";
        let mut allowed = Allowed::new(&Grounds::parse(Path::new("a"), text).unwrap());
        assert_eq!(allowed.check(&order(1, "trimtab_copa"), false), Ok(()));
        assert_eq!(allowed.check(&follow("trimtab_cubic"), false), Ok(()));
        assert!(allowed.check(&order(1, "reno"), false).unwrap_err().contains("\"reno\""));
        assert!(allowed.check(&follow("reno"), false).is_err());
        let given = Given { algorithm: "trimtab_copa".into(), former: "reno".into() };
        allowed.saw(&[Socket {
            cookie: 1,
            netns_cookie: 1,
            cgroup: None,
            local: "192.0.2.1:443".parse().unwrap(),
            remote: None,
            algorithm: given.algorithm.clone(),
            chosen: true,
            given: Some(given),
            outcome: None,
        }]);
        assert_eq!(allowed.check(&order(1, "reno"), false), Ok(()));
        assert!(allowed.check(&order(2, "reno"), false).is_err());
        assert!(allowed.check(&Request::SetDefault {}, false).is_err());
    }

    #[test]
    fn what_no_rule_calls_for_is_refused() {
        let allowed = Allowed::new(&Grounds::parse(Path::new("a"), "").unwrap());
        for request in [Request::Assign {}, order(1, "trimtab_copa"), follow("trimtab_copa")] {
            assert!(allowed.check(&request, false).unwrap_err().contains("no rule"));
            // What an agent before has given is taken back.
            assert_eq!(allowed.check(&request, true), Ok(()));
        }
        let alive = |status: &str| Request::Alive { status: status.to_owned() };
        assert_eq!(allowed.check(&alive("2 connections"), false), Ok(()));
        assert!(allowed.check(&alive("x\nMAINPID=1"), false).is_err());
    }
}
