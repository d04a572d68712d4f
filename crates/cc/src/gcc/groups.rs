//! Groups of packets that left together, and how much farther apart they arrived than they left
//! (libwebrtc `inter_arrival_delta.cc`; draft-ietf-rmcat-gcc-02 §5.2).

use trimtab_units::{Duration, Time};

/// Packets that left within so long of a group's first belong to it (`delay_based_bwe.cc`
/// `kSendTimeGroupLength`).
const GROUP: Duration = Duration::from_millis(5);
/// What arrives so soon after the one before it, and closer than it left, is a burst, which
/// belongs to the group (`kBurstDeltaThreshold`), up to so long (`kMaxBurstDuration`).
const BURST_GAP: i64 = 5_000_000;
const BURST_MAX: i64 = 100_000_000;
/// The receiver's clock was set when arrivals are so much farther apart than the feedback that told
/// of them (`kArrivalTimeOffsetThreshold`).
const CLOCK_JUMP: i64 = 3_000_000_000;
/// After so many groups that arrived in the wrong order everything begins anew
/// (`kReorderedResetThreshold`).
const REORDERED_MAX: u8 = 3;

/// The packets of a group.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    sent: Time,
    first_arrival: Time,
    arrival: Time,
    /// When its last packet was reported, by the sender's clock.
    told: Time,
}

/// How far apart two groups left and arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) sent: Duration,
    pub(super) arrived: Duration,
}

/// The running group and the one before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u8,
}

/// The signed span from `b` to `a`, in nanoseconds.
fn signed(a: Time, b: Time) -> i64 {
    a.as_nanos().wrapping_sub(b.as_nanos()).cast_signed()
}

impl Group {
    fn of(sent: Time, arrival: Time, told: Time) -> Self {
        Self { first_sent: sent, sent, first_arrival: arrival, arrival, told }
    }

    /// `InterArrivalDelta::BelongsToBurst()`.
    fn is_burst(&self, sent: Time, arrival: Time) -> bool {
        let (gap, left) = (signed(arrival, self.arrival), signed(sent, self.sent));
        left == 0
            || (gap < left && gap <= BURST_GAP && signed(arrival, self.first_arrival) < BURST_MAX)
    }
}

impl Groups {
    /// A packet that arrived, of which the sender heard at `now`. The span between the two groups
    /// before the one that it opens, if it opens one (`InterArrivalDelta::ComputeDeltas()`).
    pub(super) fn add(&mut self, sent: Time, arrival: Time, now: Time) -> Option<Delta> {
        let Some(current) = &mut self.current else {
            self.current = Some(Group::of(sent, arrival, now));
            return None;
        };
        if sent < current.first_sent {
            return None;
        }
        if current.is_burst(sent, arrival) || sent - current.first_sent <= GROUP {
            current.sent = current.sent.max(sent);
            (current.arrival, current.told) = (arrival, now);
            return None;
        }
        let (last, before) = (*current, self.previous);
        let delta = before.map(|before| (signed(last.arrival, before.arrival), before));
        let delta = match delta {
            Some((arrived, before)) if arrived - signed(last.told, before.told) >= CLOCK_JUMP => {
                *self = Self::default();
                return None;
            }
            Some((arrived, _)) if arrived < 0 => {
                self.reordered += 1;
                if self.reordered >= REORDERED_MAX {
                    *self = Self::default();
                }
                return None;
            }
            Some((_, before)) => {
                self.reordered = 0;
                Some(Delta {
                    sent: last.sent - before.sent,
                    arrived: last.arrival - before.arrival,
                })
            }
            None => None,
        };
        self.previous = Some(last);
        self.current = Some(Group::of(sent, arrival, now));
        delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// The spans of packets that left and arrived at these milliseconds.
    fn deltas(groups: &mut Groups, packets: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let add = |&(sent, arrival): &(u64, u64)| groups.add(ms(sent), ms(arrival), ms(arrival));
        let of = |delta: Delta| (delta.sent.as_millis(), delta.arrived.as_millis());
        packets.iter().filter_map(add).map(of).collect()
    }

    /// Three groups of 5 ms; a span is known when the group after it opens, and counts from last
    /// packet to last packet.
    #[test]
    fn packets_that_left_within_five_milliseconds_are_one_group() {
        let packets = [(0, 50), (3, 53), (5, 56), (20, 70), (24, 79), (40, 91), (60, 110)];
        assert_eq!(deltas(&mut Groups::default(), &packets), [(19, 23), (16, 12)]);
    }

    /// A queue that was held back lets go: 20 packets that left 10 ms apart arrive 1 ms apart. They
    /// are one group, for 100 ms.
    #[test]
    fn a_burst_is_one_group() {
        let mut packets = Vec::from([(0, 20), (10, 30)]);
        packets.extend((0..20).map(|i| (20 + 10 * i, 300 + i)));
        packets.extend([(220, 420), (230, 430)]);
        assert_eq!(deltas(&mut Groups::default(), &packets), [(10, 10), (200, 289), (10, 101)]);
    }

    /// The receiver's clock is set forward by a minute: the groups from before count no more.
    #[test]
    fn a_clock_that_was_set_begins_anew() {
        let mut groups = Groups::default();
        assert_eq!(deltas(&mut groups, &[(0, 20), (10, 30), (20, 40)]), [(10, 10)]);
        let set = |sent: u64| groups.add(ms(sent), ms(60_020 + sent), ms(20 + sent));
        let after: Vec<_> = [30, 40, 50, 60, 70].map(set).into();
        // The group of 20 ended before; that of 30 shows the jump when that of 40 opens.
        assert_eq!(after[..3].iter().flatten().count(), 1, "{after:?}");
        let ten = Duration::from_millis(10);
        assert_eq!(after[4], Some(Delta { sent: ten, arrived: ten }));
    }

    #[test]
    fn a_packet_that_left_before_its_group_counts_for_nothing() {
        let packets = [(0, 20), (10, 30), (20, 40), (15, 41), (30, 50)];
        assert_eq!(deltas(&mut Groups::default(), &packets), [(10, 10), (10, 10)]);
    }
}
