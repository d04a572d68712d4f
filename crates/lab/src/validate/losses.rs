//! Which packets a measured run lost at random, from its series of samples.
//!
//! A run of 30 s at 150 ms and 1% has some 28 losses, and where they fall decides its goodput to 20%.
//! With the same losses the simulator can be held to what the algorithm made of them.

use std::sync::Arc;

use trimtab_net::LossConfig;

use super::data::Sample;

/// Application data in a full packet of the measured connections.
const PAYLOAD: f64 = 1448.0;

/// The packets, counted in the order of their sending, that the run lost otherwise than in the queue.
///
/// A hole stops the cumulative acknowledgement, and its retransmission shows in the counter: the
/// position in the stream is what was acknowledged then, and each retransmission before it moved it by
/// one in the order of sending. Between two samples, 50 ms apart, the position is not known where the
/// acknowledgement went on; it is taken in the middle, the more evenly the more losses there are.
pub(super) fn of_run(series: &[Sample]) -> LossConfig {
    let mut lost: Vec<u64> = Vec::new();
    let mut acknowledged = 0.0;
    // Drops of the queue whose retransmission is still to come.
    let mut dropped = 0;
    for pair in series.windows(2) {
        let [before, now] = pair else { continue };
        let bytes = now.goodput_mbps * 1e6 / 8.0 * (now.time_s - before.time_s);
        let packets = bytes / PAYLOAD;
        dropped += now.queue_drops;
        let all = now.retransmits.saturating_sub(before.retransmits);
        let of_queue = all.min(dropped);
        dropped -= of_queue;
        let random = all - of_queue;
        for i in 0..random {
            let share = (i as f64 + 0.5) / random as f64;
            let position = (acknowledged + packets * share) as u64 + before.retransmits + i;
            // Two holes open at once: the second is a little further.
            lost.push(lost.last().map_or(position, |&last| position.max(last + 2)));
        }
        acknowledged += packets;
    }
    // A simulated run that is a little faster goes on with the losses of the beginning: without any,
    // its window would grow for the rest of the time.
    let end = acknowledged as u64 + series.last().map_or(0, |last| last.retransmits);
    let again: Vec<u64> = lost.iter().map(|position| end + position).collect();
    lost.extend(again);
    LossConfig::Listed(Arc::from(lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample 50 ms after the one before, with so many packets acknowledged in between.
    fn samples(steps: &[(f64, u64, u64)]) -> Vec<Sample> {
        let sample =
            |(i, &(packets, retransmits, queue_drops)): (usize, &(f64, u64, u64))| Sample {
                time_s: i as f64 * 0.05,
                goodput_mbps: packets * PAYLOAD * 8.0 / 0.05 / 1e6,
                retransmits,
                queue_drops,
            };
        steps.iter().enumerate().map(sample).collect()
    }

    /// The losses of the run itself.
    fn lost(steps: &[(f64, u64, u64)]) -> Vec<u64> {
        let LossConfig::Listed(lost) = of_run(&samples(steps)) else { unreachable!() };
        lost[..lost.len() / 2].to_vec()
    }

    #[test]
    fn a_hole_stops_the_acknowledgement_where_it_is() {
        let steps = [(0.0, 0, 0), (10.01, 0, 0), (0.0, 1, 0), (20.0, 1, 0), (0.0, 2, 0)];
        assert_eq!(lost(&steps), [10, 31], "the second after 30 new packets and a retransmission");
    }

    #[test]
    fn drops_of_the_queue_are_the_simulators_own() {
        let steps = [(0.0, 0, 0), (10.01, 0, 3), (0.0, 2, 0), (8.0, 3, 0), (0.0, 4, 0)];
        assert_eq!(lost(&steps), [21], "18 packets and three retransmissions of dropped ones");
    }

    #[test]
    fn two_holes_at_once_are_two_packets() {
        assert_eq!(lost(&[(0.0, 0, 0), (10.01, 0, 0), (0.0, 2, 0)]), [10, 12]);
    }

    #[test]
    fn after_its_end_the_run_begins_again() {
        let steps = [(0.0, 0, 0), (10.01, 0, 0), (0.0, 1, 0), (20.0, 1, 0)];
        let LossConfig::Listed(lost) = of_run(&samples(&steps)) else { unreachable!() };
        assert_eq!(*lost, [10, 41], "31 packets were sent");
    }
}
