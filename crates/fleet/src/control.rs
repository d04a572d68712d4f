//! Arms side by side: what some clusters of an aggregate's clients run in the interval in which the
//! others run a trial.
//!
//! A trial that is compared with another interval is compared with another hour, too. With a control
//! in the same interval both arms have the same hour. The unit is a cluster of client addresses, and
//! never a flow, since flows of one access line take from each other (Spang et al., "Unbiased
//! experiments in congested networks", IMC 2021). Each cluster is drawn anew in each interval, so
//! that no arm keeps the better places.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::experiment::{chance, place};
use crate::{Configuration, Interval, Prefix};

/// The arm that runs what is tried, where summaries stand by arm.
pub const TREATMENT: usize = 0;
/// The arm that runs the control.
pub const CONTROL: usize = 1;

/// What the clusters of the control run, and how they are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The version under which edges report it; less than that of the configuration that it belongs
    /// to.
    pub version: u64,
    /// The algorithm's name, as in `trimtab cc list`.
    pub algorithm: String,
    /// Knobs and their values; all others have their defaults.
    pub knobs: Vec<(String, f64)>,
    /// The share of the clusters, above 0 and at most 0.5.
    pub share: f64,
    /// The seed of the draws.
    pub seed: u64,
}

impl Control {
    /// The arm of a client of the aggregate with this prefix in an interval, [`TREATMENT`] or
    /// [`CONTROL`]: the same on every edge. Draws of different clusters and of different intervals
    /// are independent.
    pub fn arm(&self, prefix: &Prefix, client: IpAddr, interval: Interval) -> usize {
        let drawn = prefix.cluster(client).is_some_and(|cluster| {
            let draw = match cluster.address() {
                IpAddr::V4(first) => chance(self.seed, &first.octets(), interval.0),
                IpAddr::V6(first) => chance(self.seed, &first.octets(), interval.0),
            };
            place(draw) < self.share
        });
        if drawn { CONTROL } else { TREATMENT }
    }

    /// What its clusters run.
    pub fn configuration(&self) -> Configuration {
        let Self { version, algorithm, knobs, .. } = self.clone();
        Configuration { version, algorithm, knobs, control: None }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn control(share: f64, seed: u64) -> Control {
        Control { version: 1, algorithm: "cubic".to_owned(), knobs: Vec::new(), share, seed }
    }

    fn prefix() -> Prefix {
        "203.0.113.0/24".parse().unwrap()
    }

    fn client(last: u8) -> IpAddr {
        Ipv4Addr::new(203, 0, 113, last).into()
    }

    /// Whether the cluster `n` of the /24, of 16 addresses, is in the control.
    fn is_control(control: &Control, n: u8, interval: u64) -> bool {
        control.arm(&prefix(), client(16 * n + 3), Interval(interval)) == CONTROL
    }

    /// Of 16,000 draws the share is off by 3.3 standard errors once in 1,000 seeds.
    #[test]
    fn the_control_gets_its_share_of_the_clusters() {
        for (share, seed) in [(0.1, 1), (0.25, 2), (0.5, 3)] {
            let control = control(share, seed);
            let all = (0..1000).flat_map(|interval| (0..16).map(move |n| (n, interval)));
            let drawn = all.filter(|&(n, interval)| is_control(&control, n, interval)).count();
            let error = (share * (1.0 - share) / 16_000.0_f64).sqrt();
            let off = drawn as f64 / 16_000.0 - share;
            assert!(off.abs() < 3.3 * error, "{share}: off by {off}");
        }
    }

    /// Of two independent draws with a share of 0.3 both are the control in 0.09 of all cases. The
    /// pairs are one cluster in two intervals, and two clusters in one.
    #[test]
    fn draws_of_other_clusters_and_intervals_are_independent() {
        let control = control(0.3, 11);
        let share = |other: fn(u8, u64) -> (u8, u64)| {
            let pairs = (0..2000).flat_map(|t| (0..16).map(move |n| ((n, t), other(n, t))));
            let both = |&((n, t), (m, u)): &((u8, u64), (u8, u64))| {
                is_control(&control, n, t) && is_control(&control, m, u)
            };
            pairs.filter(both).count() as f64 / 32_000.0
        };
        // The standard error is 0.0016.
        for (pair, share) in [
            ("the next interval", share(|n, t| (n, t + 1))),
            ("a day of 20 minutes later", share(|n, t| (n, t + 72))),
            ("the cluster next to it", share(|n, t| ((n + 1) % 16, t))),
        ] {
            assert!((share - 0.09).abs() < 0.006, "{pair}: {share}");
        }
    }

    proptest! {
        /// Within an interval all addresses of a cluster are in one arm, on every edge, and clusters
        /// that a share draws are drawn by a larger one, too.
        #[test]
        fn a_cluster_stays_in_its_arm_within_an_interval(
            seed in any::<u64>(), interval in any::<u64>(), last in any::<u8>(), other in 0..16u8,
        ) {
            let at = |share: f64, last: u8| {
                control(share, seed).arm(&prefix(), client(last), Interval(interval))
            };
            prop_assert_eq!(at(0.4, last), at(0.4, (last & 0xf0) | other));
            prop_assert!(at(0.2, last) <= at(0.4, last));
        }

        #[test]
        fn ipv6_clients_are_drawn_by_their_56(
            seed in any::<u64>(), interval in any::<u64>(), low in any::<u128>(),
        ) {
            let base = 0x2001_0db8_0000_0000_0000_0000_0000_0000_u128;
            let prefix: Prefix = "2001:db8::/48".parse().unwrap();
            let at = |bits: u128| {
                let client = std::net::Ipv6Addr::from(base | bits).into();
                control(0.5, seed).arm(&prefix, client, Interval(interval))
            };
            let inside = low & (u128::MAX >> 48);
            prop_assert_eq!(at(inside), at(inside & !(u128::MAX >> 56)));
        }
    }

    #[test]
    fn a_prefix_without_clusters_has_no_control() {
        let one: Prefix = "203.0.113.9/32".parse().unwrap();
        assert_eq!(one.cluster(client(9)), None);
        let all = (0..100).map(|t| control(0.5, 7).arm(&one, client(9), Interval(t)));
        assert!(all.into_iter().all(|arm| arm == TREATMENT));
    }
}
