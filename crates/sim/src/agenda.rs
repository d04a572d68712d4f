//! The agenda: which of the world's sources has the next event.
//!
//! Every source (a link, a pipe of packets in flight, a timer) has at most one next time, so a
//! tournament over the sources serves better than a heap of events: nothing is ever stale, and it
//! allocates only when sources are added. Matches are of eight, because the eight times of a match
//! share a cache line, and the few sources of a small world need only one or two rounds. A time that
//! neither takes the lead of its match nor had it, which is the common case, ends there.

use trimtab_units::Time;

/// How many take part in a match.
const FANOUT: usize = 8;

/// Next times of all sources; ties go to the source with the lower number, so runs repeat exactly.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// The times of the sources, then those of the winners of each round; the last one is the
    /// winner of all.
    times: Vec<Time>,
    /// Whose times these are.
    sources: Vec<u32>,
    /// Where each round begins in these lists: the sources themselves, then the winners of each round.
    rounds: Vec<usize>,
}

impl Agenda {
    /// An agenda of `sources` sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Self {
        let mut agenda = Self { times: Vec::new(), sources: Vec::new(), rounds: Vec::new() };
        let mut nodes = sources.max(1);
        let mut span = 1;
        loop {
            agenda.rounds.push(agenda.times.len());
            // The last match of a round may have fewer partners; never is no time to win with.
            let padded = if nodes == 1 && span > 1 { 1 } else { nodes.next_multiple_of(FANOUT) };
            agenda.times.extend(std::iter::repeat_n(Time::MAX, padded));
            agenda.sources.extend((0..padded).map(|node| (node * span) as u32));
            if padded == 1 {
                return agenda;
            }
            nodes = padded / FANOUT;
            span *= FANOUT;
        }
    }

    /// The next time of a source; [`Time::MAX`] for none.
    pub(crate) fn time(&self, source: usize) -> Time {
        self.times[source]
    }

    /// Sets the next time of a source.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: Time) {
        if self.times[source] != time {
            self.change(source, time);
        }
    }

    #[inline]
    fn change(&mut self, source: usize, time: Time) {
        self.times[source] = time;
        let mut node = source;
        let mut was = source as u32;
        let mut is = (time, source as u32);
        for round in 1..self.rounds.len() {
            let group = node / FANOUT;
            let winner = self.rounds[round] + group;
            let before = (self.times[winner], self.sources[winner]);
            if is >= before {
                if before.1 != was {
                    return; // Another one leads, and still does.
                }
                is = self.play(self.rounds[round - 1] + group * FANOUT);
            }
            self.times[winner] = is.0;
            self.sources[winner] = is.1;
            node = group;
            was = before.1;
        }
    }

    /// The winner among the eight nodes from `first` on.
    #[inline]
    fn play(&self, first: usize) -> (Time, u32) {
        let times = &self.times[first..first + FANOUT];
        let mut best = 0;
        let mut time = times[0];
        for (i, &other) in times.iter().enumerate().skip(1) {
            best = if other < time { i } else { best };
            time = time.min(other);
        }
        (time, self.sources[first + best])
    }

    /// The next event: its time and its source. The time is [`Time::MAX`] when there is none.
    pub(crate) fn next(&self) -> (Time, usize) {
        let root = self.times.len() - 1;
        (self.times[root], self.sources[root] as usize)
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
