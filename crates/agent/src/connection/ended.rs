//! What connections found to suit the places that they went to: the next ones begin with it.

use std::net::IpAddr;

use trimtab_cc::Spec;
use trimtab_steer::{Destinations, SUITED_LIFETIME};
use trimtab_units::Time;

use crate::config::{Rule, Select, Steering, Turns};
use crate::connection::Setting;

/// What earlier connections found, by where they went.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// With which tree of Muses they ended (Zhong et al., INFOCOM 2022, §III-F), by the checksum of
    /// the model.
    trees: Destinations<(IpAddr, u32), usize>,
    /// Which algorithm a learnt policy preferred at last, and when, by the checksum of the policy.
    suited: Destinations<(IpAddr, String), (Spec, Time)>,
}

impl Ended {
    /// Completes the setting of a connection that goes there by what is known of the place.
    pub(crate) fn complete(&self, setting: &mut Setting<'_>, to: IpAddr) {
        setting.tree = self.tree(to, setting.rule);
        setting.suited = self.suited(to, setting.rule, setting.now);
    }

    /// Forgets what connections under a rule found there.
    pub(crate) fn forget(&mut self, to: IpAddr, rule: Option<&Rule>) {
        self.forget_suited(to, rule);
        if let Some(Steering::Muses(forest)) = rule.and_then(|rule| rule.steering.as_ref())
            && let Some(trees) = &forest.trees
        {
            self.trees.remove(&(to.to_canonical(), trees.checksum()));
        }
    }

    /// The tree with which to begin under a rule; `None` where nothing is known.
    fn tree(&self, to: IpAddr, rule: Option<&Rule>) -> Option<usize> {
        let Some(Steering::Muses(forest)) = &rule?.steering else { return None };
        self.trees.get(&(to.to_canonical(), forest.trees?.checksum())).copied()
    }

    /// A connection asks this tree of this model from now on.
    pub(crate) fn note_tree(&mut self, to: IpAddr, model: u32, tree: usize) {
        *self.trees.entry((to.to_canonical(), model), || tree) = tree;
    }

    /// The algorithm with which to begin under a rule; `None` where nothing is known.
    fn suited(&self, to: IpAddr, rule: Option<&Rule>, now: Time) -> Option<Spec> {
        let (spec, at) = self.suited.get(&(to.to_canonical(), policy(rule)?))?;
        (now.since(*at) < SUITED_LIFETIME).then_some(*spec)
    }

    /// The policy of a connection's rule prefers this algorithm there.
    pub(crate) fn note_suited(&mut self, to: IpAddr, rule: Option<&Rule>, spec: Spec, now: Time) {
        let Some(policy) = policy(rule) else { return };
        *self.suited.entry((to.to_canonical(), policy), || (spec, now)) = (spec, now);
    }

    /// A connection suffered from what its rule's policy chose there.
    pub(crate) fn forget_suited(&mut self, to: IpAddr, rule: Option<&Rule>) {
        if let Some(policy) = policy(rule) {
            self.suited.remove(&(to.to_canonical(), policy));
        }
    }
}

/// The checksum of the learnt policy of a rule.
fn policy(rule: Option<&Rule>) -> Option<String> {
    match &rule?.steering {
        Some(Steering::Turns(Turns { select: Some(Select::Learnt(learnt)), .. })) => {
            Some(learnt.model.as_ref().ok()?.sha256().to_owned())
        }
        _ => None,
    }
}
