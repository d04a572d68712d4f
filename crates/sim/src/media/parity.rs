//! Forward error correction: the XOR of packets that follow each other (RFC 5109 §10, RFC 8627
//! §6.3.1 in one dimension). It repairs one loss in a group.

use std::collections::VecDeque;

/// The most packets of a group: one parity packet to five is 20%.
pub(super) const GROUP: u32 = 5;
/// Groups that are remembered.
const GROUPS: usize = 64;
/// Packets of video whose arrival is remembered.
const ARRIVALS: usize = 1024;

/// The receiver of parity packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Parity {
    /// Groups whose parity packet is here: first packet and how many.
    groups: VecDeque<(u64, u32)>,
    arrived: VecDeque<u64>,
}

impl Parity {
    /// A packet of video arrived.
    pub(super) fn on_video(&mut self, sequence: u64) {
        self.arrived.push_back(sequence);
        if self.arrived.len() > ARRIVALS {
            self.arrived.pop_front();
        }
    }

    /// A parity packet arrived.
    pub(super) fn on_parity(&mut self, first: u64, count: u32) {
        self.groups.push_back((first, count));
        if self.groups.len() > GROUPS {
            self.groups.pop_front();
        }
    }

    /// A packet of video that can be made from the others of its group, once.
    pub(super) fn recover(&mut self) -> Option<u64> {
        let Self { groups, arrived } = self;
        let mut recovered = None;
        groups.retain(|&(first, count)| {
            let members = first..first + u64::from(count);
            let mut missing = members.filter(|sequence| !arrived.contains(sequence));
            match (missing.next(), missing.next()) {
                // Nothing to do, or done.
                (None, _) => false,
                (Some(one), None) if recovered.is_none() => {
                    recovered = Some(one);
                    false
                }
                _ => true,
            }
        });
        recovered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loss_in_a_group_is_repaired_and_two_are_not() {
        let mut parity = Parity::default();
        [10, 11, 13].into_iter().for_each(|n| parity.on_video(n));
        parity.on_parity(10, 4);
        assert_eq!((parity.recover(), parity.recover()), (Some(12), None));
        [20, 23].into_iter().for_each(|n| parity.on_video(n));
        parity.on_parity(20, 4);
        assert_eq!(parity.recover(), None);
        parity.on_video(21);
        assert_eq!(parity.recover(), Some(22), "a retransmission makes it one");
    }
}
