//! What a tree sees while it drives, and what the oracle would have there: one pass of learning
//! without an LSTM between.

use trimtab_cc::muses::{Inputs, Past, Trees};
use trimtab_units::Duration;

use super::{Environment, Rollout};

/// One doubling of the window, in the units of [`Shown::ratio`].
pub const DOUBLING: i16 = 4096;
/// The least window that is asked for, in 1/1024 packets: a sender has no less.
const WINDOW_MIN: u64 = 2048;
/// With several flows on a link one state in so many is kept.
const OF_MANY: u32 = 3;

/// A state, and what would have been best there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What a tree is asked with.
    pub inputs: Inputs,
    /// Logarithm of the best window over the present one, in 1/4096 doublings, within one doubling.
    pub ratio: i16,
}

/// The states of `flows` flows over a network for this long, with the oracle's answers. The first
/// tree of a model drives, or, where `by_oracle`, the oracle.
pub fn shown(
    environment: &Environment,
    trees: &Trees<'_>,
    (flows, by_oracle): (usize, bool),
    length: Duration,
    seed: u64,
) -> Vec<Shown> {
    let mut rollout = Rollout::lasting(environment, flows, length, seed);
    let mut pasts = vec![Past::default(); flows.max(1)];
    let (mut all, mut seen) = (Vec::new(), 0);
    while !rollout.is_done() {
        let inputs = pasts[rollout.flow()].see(&rollout.state());
        seen += 1;
        if flows == 1 || seen % OF_MANY == 0 {
            let (wanted, has) = (rollout.optimal().max(WINDOW_MIN), rollout.window().max(1));
            let doublings = libm::log2(wanted as f64 / has as f64).clamp(-1.0, 1.0);
            all.push(Shown { inputs, ratio: (doublings * f64::from(DOUBLING)) as i16 });
        }
        if by_oracle {
            rollout.act(rollout.best());
        } else {
            rollout.act(trees.decide(trees.first(), &inputs));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use trimtab_net::Capacity;
    use trimtab_units::{Bytes, Rate};

    use super::*;
    use crate::muses::Oracle;

    static SMALL: &[u8] = include_bytes!("small.trees");

    fn states(flows: usize, by_oracle: bool) -> Vec<Shown> {
        let environment = Environment {
            name: "constant".to_owned(),
            capacity: Capacity::Constant(Rate::from_mbps(12.0)),
            delay: Duration::from_millis(20),
            loss: 0.0,
            buffer: Bytes::new(300_000),
            oracle: Oracle::PAPER,
        };
        let trees = Trees::parse(SMALL).unwrap();
        shown(&environment, &trees, (flows, by_oracle), Duration::from_secs(4), 1)
    }

    /// Once the oracle has its window of 48 packets, the answer is to keep it.
    #[test]
    fn who_has_the_best_window_is_to_keep_it() {
        let all = states(1, true);
        let (first, settled) = (all[0], &all[all.len() / 2..]);
        assert_eq!(first.ratio, DOUBLING, "ten packets of 48");
        assert!(settled.iter().all(|s| s.ratio.abs() < DOUBLING / 10));
    }

    /// Tree 1 of the file shrinks the window by 5% always: the answers ask for more.
    #[test]
    fn a_tree_drives_and_the_oracle_answers() {
        let all = states(1, false);
        assert!(all[all.len() / 2..].iter().all(|s| s.ratio == DOUBLING));
    }

    #[test]
    fn of_several_flows_a_part_of_the_states_is_kept() {
        let (one, three) = (states(1, true).len(), states(3, true).len());
        assert!(three < 2 * one, "{three} of three flows, {one} of one");
    }
}
