//! What the reports of a player show: from states and counts to times played and stalled.
//!
//! Between two reports the player did what the first of them says. Stalls are counted since the
//! session began, so one between two reports is known even where the report of it was lost.

use trimtab_units::{Duration, Rate, Time};

use crate::event::{Event, State};
use crate::session::{BITRATE_MAX, MEDIA_MAX};

/// The longest time between two reports that counts: players report every minute or more often.
const GAP_MAX: Duration = Duration::from_secs(120);
/// No player is believed to stall more often between two reports.
const STALLS_MAX: u64 = 1000;

/// What a session showed between two reports, or in one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shown {
    pub(crate) played: Duration,
    pub(crate) stalled: Duration,
    pub(crate) stalls: u64,
    pub(crate) startup: Option<Duration>,
    /// Of what was played with a known bitrate: seconds, and Mbit/s times seconds.
    seconds: f64,
    megabits: f64,
}

impl Shown {
    /// Nothing but the startup time, where there is one.
    pub(crate) fn started(startup: Option<Duration>) -> Self {
        Self { startup, ..Self::default() }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.played += more.played;
        self.stalled += more.stalled;
        self.stalls += more.stalls;
        self.startup = self.startup.or(more.startup);
        self.seconds += more.seconds;
        self.megabits += more.megabits;
    }

    pub(crate) fn bitrate(&self) -> Option<Rate> {
        (self.seconds > 0.0).then(|| Rate::from_mbps(self.megabits / self.seconds))
    }

    pub(crate) fn rebuffering(&self) -> Option<f64> {
        let all = self.played + self.stalled;
        (!all.is_zero()).then(|| self.stalled.ratio(all))
    }
}

/// The reports of one session until now.
#[derive(Clone, Debug)]
pub(crate) struct Viewing {
    last: Event,
    /// The least that the server's clock was ahead of the player's, in ns: of the report that was
    /// on its way for the shortest time.
    ahead: i128,
}

impl Viewing {
    /// Of the first report of a session, from which on counts go.
    pub(crate) fn new(first: &Event, arrived: Time) -> Self {
        Self { last: first.clone(), ahead: ahead(first, arrived) }
    }

    /// When it happened by the server's clock, and what passed since the report before; `None`
    /// where a later one came before it, or the same one.
    pub(crate) fn on_event(&mut self, event: &Event, arrived: Time) -> Option<(Time, Shown)> {
        let is_old = match (event.number, self.last.number) {
            (Some(number), Some(last)) => number <= last,
            _ => event.at < self.last.at,
        };
        if is_old {
            return None;
        }
        self.ahead = self.ahead.min(ahead(event, arrived));
        let shown = self.between(event);
        let last = &mut self.last;
        *last = Event {
            state: event.state.or(last.state),
            bitrate: event.bitrate.or(last.bitrate),
            stalls: event.stalls.or(last.stalls),
            stalled: event.stalled.or(last.stalled),
            startup: event.startup.or(last.startup),
            ..event.clone()
        };
        let at = i128::from(event.at.as_nanos()) + self.ahead;
        let at = Time::from_nanos(u64::try_from(at).unwrap_or(0));
        Some((at.min(arrived), shown))
    }

    fn between(&self, event: &Event) -> Shown {
        let last = &self.last;
        let gap = Some(event.at.since(last.at)).filter(|gap| *gap <= GAP_MAX).unwrap_or_default();
        let is_watched = matches!(last.state, Some(State::Playing | State::Rebuffering));
        let gap = if is_watched { gap } else { Duration::ZERO };
        let stalled = match (last.stalled, event.stalled) {
            (Some(before), Some(now)) => (now - before).min(gap),
            _ if last.state == Some(State::Rebuffering) => gap,
            _ => Duration::ZERO,
        };
        let begins = event.state == Some(State::Rebuffering) && last.state != event.state;
        let stalls = match (last.stalls, event.stalls) {
            (Some(before), Some(now)) => now.saturating_sub(before).min(STALLS_MAX),
            _ => u64::from(begins),
        };
        let played = gap - stalled;
        let bitrate = last.bitrate.filter(|rate| !rate.is_zero() && *rate <= BITRATE_MAX);
        let seconds = bitrate.map_or(0.0, |_| played.as_secs_f64());
        Shown {
            played,
            stalled,
            stalls,
            startup: startup(event).filter(|_| last.startup.is_none()),
            seconds,
            megabits: bitrate.map_or(0.0, Rate::mbps) * seconds,
        }
    }
}

/// The startup time that a report has, where it is one that a viewer waits for.
pub(crate) fn startup(event: &Event) -> Option<Duration> {
    event.startup.filter(|startup| *startup <= MEDIA_MAX)
}

fn ahead(event: &Event, arrived: Time) -> i128 {
    i128::from(arrived.as_nanos()) - i128::from(event.at.as_nanos())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Clocks of players are wrong: this one by an hour.
    const WRONG: u64 = 3_600_000;
    const BEGIN: u64 = 1_795_973_783_000;

    fn event(at_ms: u64, keys: &str) -> Event {
        let text = format!("{keys},sid=\"a\",ts={},v=2", BEGIN + WRONG + at_ms);
        Event::parse(&text).unwrap()
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(BEGIN + ms)
    }

    fn all(events: &[(u64, &str)]) -> Shown {
        let mut viewing = Viewing::new(&event(events[0].0, events[0].1), at(events[0].0));
        let mut sum = Shown::default();
        for (ms, keys) in &events[1..] {
            if let Some((_, shown)) = viewing.on_event(&event(*ms, keys), at(*ms)) {
                sum.add(&shown);
            }
        }
        sum
    }

    const WHOLE: [(u64, &str); 6] = [
        (0, "sn=0,sta=s,bsa=(0),bsda=(0)"),
        (800, "sn=1,sta=p,msd=800,pb=(1000),bsa=(0),bsda=(0)"),
        (10_800, "sn=2,sta=p,pb=(3000),bsa=(0),bsda=(0)"),
        (12_800, "sn=3,sta=r,pb=(3000),bsa=(1),bsda=(0)"),
        (15_800, "sn=4,sta=p,pb=(3000),bsa=(1),bsda=(3000)"),
        (23_800, "sn=5,sta=q,bsa=(1),bsda=(3000)"),
    ];

    #[test]
    fn states_and_counts_become_times() {
        let shown = all(&WHOLE);
        assert_eq!(
            (shown.played, shown.stalled),
            (Duration::from_secs(20), Duration::from_secs(3))
        );
        assert_eq!((shown.stalls, shown.startup), (1, Some(Duration::from_millis(800))));
        assert_eq!(shown.bitrate(), Some(Rate::from_mbps(2.0)));
        assert_eq!(shown.rebuffering(), Some(3.0 / 23.0));
    }

    #[test]
    fn a_lost_report_of_a_stall_leaves_the_stall() {
        let lost = [WHOLE[0], WHOLE[1], WHOLE[2], WHOLE[4], WHOLE[5]];
        assert_eq!(all(&lost), all(&WHOLE));
    }

    #[test]
    fn without_counts_states_are_enough() {
        let bare = |(ms, keys): &(u64, &'static str)| (*ms, keys.split(",bsa").next().unwrap());
        let without: Vec<_> = WHOLE.iter().map(bare).collect();
        assert_eq!(all(&without), all(&WHOLE));
    }

    #[test]
    fn what_comes_twice_or_too_late_counts_once() {
        let mut again: Vec<_> = WHOLE.iter().flat_map(|event| [*event, *event]).collect();
        again.push(WHOLE[1]);
        assert_eq!(all(&again), all(&WHOLE));
    }

    #[test]
    fn a_report_that_was_kept_back_belongs_to_when_it_happened() {
        let mut viewing = Viewing::new(&event(0, "sn=0,sta=p"), at(100));
        let (when, _) = viewing.on_event(&event(5000, "sn=1,sta=p"), at(5020)).unwrap();
        assert_eq!(when, at(5020));
        // An hour later, with the shortest way that is known: 20 ms.
        let (when, shown) = viewing.on_event(&event(9000, "sn=2,sta=q"), at(3_600_000)).unwrap();
        assert_eq!((when, shown.played), (at(9020), Duration::from_secs(4)));
    }

    proptest! {
        #[test]
        fn whatever_comes_times_add_up(
            reports in prop::collection::vec(
                (0u64..300_000, 0u64..400_000, 0u64..5000, 0usize..10),
                1..20,
            ),
        ) {
            let states = ["s", "p", "k", "r", "a", "w", "e", "f", "q", "d"];
            let mut viewing = None;
            for (ms, stalled, stalls, state) in reports {
                let state = states[state];
                let keys = format!("sta={state},bsa=({stalls}),bsda=({stalled}),pb=(1000)");
                let event = event(ms, &keys);
                let Some(viewing) = &mut viewing else {
                    viewing = Some(Viewing::new(&event, at(ms)));
                    continue;
                };
                if let Some((when, shown)) = viewing.on_event(&event, at(ms)) {
                    prop_assert!(when <= at(ms));
                    prop_assert!(shown.played + shown.stalled <= GAP_MAX);
                    let share = shown.rebuffering();
                    prop_assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
                }
            }
        }
    }
}
