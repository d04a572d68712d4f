//! The agenda: which of the world's sources has the next event.
//!
//! Every source (a link, a pipe of packets in flight, a timer) has at most one next time, so a
//! tournament tree over the sources serves better than a heap of events: setting a time costs the
//! depth of the tree, nothing is ever stale, and it allocates only when sources are added.

use trimtab_units::Time;

/// Next times of all sources; ties go to the source with the lower number, so runs repeat exactly.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    times: Vec<Time>,
    /// `winners[1]` is the root; the children of node `i` are `2i` and `2i + 1`; leaf `s` is node
    /// `leaves + s`, not stored.
    winners: Vec<u32>,
    leaves: usize,
}

impl Agenda {
    /// An agenda of `sources` sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Self {
        let leaves = sources.max(2).next_power_of_two();
        let mut winners = vec![0; leaves];
        for node in (1..leaves).rev() {
            let left = 2 * node;
            winners[node] = if left >= leaves { (left - leaves) as u32 } else { winners[left] };
        }
        Self { times: vec![Time::MAX; leaves], winners, leaves }
    }

    /// The next time of a source; [`Time::MAX`] for none.
    pub(crate) fn time(&self, source: usize) -> Time {
        self.times[source]
    }

    /// Sets the next time of a source.
    pub(crate) fn set(&mut self, source: usize, time: Time) {
        if self.times[source] == time {
            return;
        }
        self.times[source] = time;
        let mut node = (self.leaves + source) >> 1;
        while node >= 1 {
            let left = self.winner(2 * node);
            let right = self.winner(2 * node + 1);
            let winner =
                if self.times[right as usize] < self.times[left as usize] { right } else { left };
            // Above a match that this source neither won nor wins, nothing changes.
            if self.winners[node] == winner && winner != source as u32 {
                break;
            }
            self.winners[node] = winner;
            node >>= 1;
        }
    }

    fn winner(&self, node: usize) -> u32 {
        if node >= self.leaves { (node - self.leaves) as u32 } else { self.winners[node] }
    }

    /// The next event: its time and its source. The time is [`Time::MAX`] when there is none.
    pub(crate) fn next(&self) -> (Time, usize) {
        let source = self.winners[1] as usize;
        (self.times[source], source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn the_earliest_wins_and_ties_go_to_the_lower_source() {
        let mut agenda = Agenda::new(5);
        assert_eq!(agenda.next().0, Time::MAX);
        agenda.set(3, Time::from_millis(7));
        agenda.set(4, Time::from_millis(7));
        assert_eq!(agenda.next(), (Time::from_millis(7), 3));
        agenda.set(1, Time::from_millis(9));
        agenda.set(3, Time::MAX);
        assert_eq!(agenda.next(), (Time::from_millis(7), 4));
        agenda.set(4, Time::from_millis(10));
        assert_eq!(agenda.next(), (Time::from_millis(9), 1));
    }

    #[test]
    fn it_agrees_with_a_linear_search() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(7);
        for sources in [1, 2, 3, 17, 64, 200] {
            let mut agenda = Agenda::new(sources);
            let mut times = vec![Time::MAX; sources];
            for _ in 0..2_000 {
                let source = rng.random_range(0..sources);
                let time = Time::from_nanos(rng.random_range(0..50));
                agenda.set(source, time);
                times[source] = time;
                let best = (0..sources).min_by_key(|&s| (times[s], s)).unwrap();
                assert_eq!(agenda.next(), (times[best], best));
            }
        }
    }
}
