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
    /// The matches of the sources themselves, then those of the winners of each round; the last is
    /// the final.
    matches: Vec<Match>,
}

/// Eight times, and whose they are.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Match {
    times: [Time; FANOUT],
    sources: [u32; FANOUT],
    /// Whose time is the earliest; of equal ones, the one with the lower source.
    leader: usize,
    /// The place in the next round that the leader takes, counted from the first match of all.
    promotion: usize,
}

impl Match {
    /// A place has another entrant. Whether that changes who leads, or since when.
    #[inline]
    fn enter(&mut self, place: usize, time: Time, source: u32) -> bool {
        let (before, best) = (self.times[place], self.times[self.leader]);
        (self.times[place], self.sources[place]) = (time, source);
        if place != self.leader {
            let leads = (time, place) < (best, self.leader);
            self.leader = if leads { place } else { self.leader };
            return leads;
        }
        if time > before {
            self.leader = self.earliest();
        }
        true
    }

    #[inline]
    fn earliest(&self) -> usize {
        let (mut best, mut time) = (0, self.times[0]);
        for (place, &other) in self.times.iter().enumerate().skip(1) {
            best = if other < time { place } else { best };
            time = time.min(other);
        }
        best
    }

    #[inline]
    fn winner(&self) -> (Time, u32) {
        let place = self.leader % FANOUT;
        (self.times[place], self.sources[place])
    }
}

impl Agenda {
    /// An agenda of `sources` sources, none of which has an event.
    pub(crate) fn new(sources: usize) -> Self {
        let mut matches: Vec<Match> = Vec::new();
        let (mut entrants, mut span) = (sources, 1);
        loop {
            let round = entrants.div_ceil(FANOUT).max(1);
            let next_round = matches.len() + round;
            matches.extend((0..round).map(|number| Match {
                // The last match of a round may have fewer partners; never is no time to win with.
                times: [Time::MAX; FANOUT],
                sources: std::array::from_fn(|place| ((number * FANOUT + place) * span) as u32),
                leader: 0,
                promotion: next_round * FANOUT + number,
            }));
            if round == 1 {
                return Self { matches };
            }
            (entrants, span) = (round, span * FANOUT);
        }
    }

    /// The next time of a source; [`Time::MAX`] for none.
    #[inline]
    pub(crate) fn time(&self, source: usize) -> Time {
        self.matches[source / FANOUT].times[source % FANOUT]
    }

    /// Sets the next time of a source.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: Time) {
        if self.time(source) != time {
            self.change(source, time);
        }
    }

    fn change(&mut self, source: usize, time: Time) {
        let (mut at, mut entrant) = (source, (time, source as u32));
        // The final promotes to no match.
        while let Some(game) = self.matches.get_mut(at / FANOUT) {
            if !game.enter(at % FANOUT, entrant.0, entrant.1) {
                return; // Another one leads, and still does.
            }
            (at, entrant) = (game.promotion, game.winner());
        }
    }

    /// The next event: its time and its source. The time is [`Time::MAX`] when there is none.
    #[inline]
    pub(crate) fn next(&self) -> (Time, usize) {
        let (time, source) = self.matches[self.matches.len() - 1].winner();
        (time, source as usize)
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
