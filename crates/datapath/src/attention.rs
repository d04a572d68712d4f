//! When a host looks at a connection again.

use trimtab_steer::{Steer, Steerer};
use trimtab_units::{Duration, Time};

/// Between looks at a connection on which nothing happens: first, and at most.
pub const IDLE_FIRST: Duration = Duration::from_millis(20);
/// See [`IDLE_FIRST`].
pub const IDLE_MAX: Duration = Duration::from_secs(1);
/// Between reports of a connection that is measured and not steered.
pub const MEASURE: Duration = Duration::from_millis(250);
/// Between reports of a connection of which it counts how long its responses take.
pub const RESPONSES: Duration = Duration::from_millis(50);
/// A steering is asked at least as often, where it goes by reports.
const RARELY: Duration = Duration::from_secs(1);
/// So many silent looks, ten seconds of them, are no further apart than [`RESPONSES`] where a policy
/// goes by responses.
const WATCHED_LOOKS: u32 = 200;
/// Silence of so many round trips may be the path's: what is under way comes late, or was lost.
const SILENT_RTTS: u64 = 2;

/// Whether anything happens on a connection, from look to look.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    acks: u64,
    /// Zero while it is active.
    idle: Duration,
    /// Looks in a row that found nothing.
    silent: u32,
    /// The host has begun a report that it can end now.
    has_begun: bool,
    /// It was begun when something happened again, and nothing has happened since.
    waits: bool,
    /// When a look found something last.
    last: Time,
    /// Silence that may be the path's, in milliseconds; at most [`IDLE_MAX`].
    patience_ms: u16,
}

/// What a look at a connection finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing has happened since the last one: look again after this time. For a policy that goes
    /// by responses a report begins now if the connection [pauses](Attention::pauses), since the
    /// next look may find a whole one.
    Quiet(Duration),
    /// Something happens again. The idle time says nothing of the path, so a report begins now:
    /// look again after [`IDLE_FIRST`].
    Woken,
    /// Something goes on happening: a report is due.
    Active,
}

impl Default for Attention {
    fn default() -> Self {
        Self {
            acks: 0,
            idle: IDLE_FIRST,
            silent: 0,
            has_begun: false,
            waits: false,
            last: Time::ZERO,
            patience_ms: 0,
        }
    }
}

impl Attention {
    /// Takes a look: so many acknowledgements came until now. `responses`: a policy goes by the
    /// connection's responses, of which a short one between two looks must not be missed.
    pub fn look(&mut self, acks: u64, responses: bool, now: Time) -> Found {
        let happened = acks != self.acks;
        self.acks = acks;
        if !happened {
            self.silent = self.silent.saturating_add(1);
            self.idle = match responses && self.silent <= WATCHED_LOOKS {
                true => RESPONSES,
                false => (self.idle * 2).clamp(IDLE_FIRST, IDLE_MAX),
            };
            // The next acknowledgement is a round trip away, which may be long.
            self.waits &= self.idle < IDLE_MAX;
            self.has_begun = responses || self.waits;
            return Found::Quiet(self.idle);
        }
        self.silent = 0;
        let was_idle = !std::mem::take(&mut self.idle).is_zero() && self.pauses(now);
        self.last = now;
        if was_idle && !self.has_begun {
            (self.has_begun, self.waits) = (true, true);
            return Found::Woken;
        }
        self.waits = false;
        Found::Active
    }

    /// Whether it has been silent for longer than its path explains: more than two round trips, or a
    /// second. Shorter silence is part of a report. Else a connection that loses packets, or waits
    /// in a long queue, would be measured less than one that does well.
    pub fn pauses(&self, now: Time) -> bool {
        now.since(self.last) >= Duration::from_millis(u64::from(self.patience_ms))
    }

    /// A report ended that saw this smoothed round-trip time.
    pub fn on_report(&mut self, srtt: Duration) {
        self.patience_ms = (srtt * SILENT_RTTS).min(IDLE_MAX).as_millis_f64() as u16;
    }

    /// Whether anything has happened since the last look; so many acknowledgements came until now.
    pub fn has_missed(&self, acks: u64) -> bool {
        acks != self.acks
    }

    /// Nothing will happen on it any more.
    pub fn rest(&mut self) {
        self.idle = IDLE_MAX;
    }

    /// Whether anything happens.
    pub fn is_active(&self) -> bool {
        self.idle.is_zero()
    }
}

/// How long until the next report of a connection that this steers.
pub fn until_report(steering: &Steerer, srtt: Duration) -> Duration {
    let interval = steering.interval(srtt);
    if steering.needs().responses {
        // Responses are seen by looking often.
        return RESPONSES.min(interval);
    }
    // What asks more rarely leaves it to its host to measure.
    if interval > RARELY { MEASURE } else { interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a report any silence is longer than the path explains.
    const NOW: Time = Time::from_secs(1);

    #[test]
    fn looks_at_a_silent_connection_become_rare() {
        let mut attention = Attention::default();
        assert_eq!(attention.look(3, false, NOW), Found::Woken);
        assert_eq!(attention.look(5, false, NOW), Found::Active);
        assert_eq!(waits(&mut attention, 8, false), [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert!(!attention.is_active());
        assert_eq!(attention.look(6, false, NOW), Found::Woken);
        assert!(attention.is_active());
    }

    #[test]
    fn a_long_round_trip_is_no_silence() {
        let mut attention = Attention::default();
        assert_eq!(attention.look(1, false, NOW), Found::Woken);
        assert_eq!(waits(&mut attention, 5, false), [20, 40, 80, 160, 320]);
        assert_eq!(attention.look(2, false, NOW), Found::Active, "after 620 ms");
        // What follows the first report may be a pause.
        assert_eq!(waits(&mut attention, 1, false), [20]);
        assert_eq!(attention.look(3, false, NOW), Found::Woken);
        assert_eq!(waits(&mut attention, 7, false).last(), Some(&1000));
        assert_eq!(attention.look(4, false, NOW), Found::Woken, "and so is what is longer");
    }

    /// How long in ms until the next look, after each of so many silent ones.
    fn waits(attention: &mut Attention, looks: usize, responses: bool) -> Vec<u64> {
        let acks = attention.acks;
        let wait = |_| match attention.look(acks, responses, NOW) {
            Found::Quiet(wait) => wait.as_nanos() / 1_000_000,
            found => panic!("{found:?}"),
        };
        (0..looks).map(wait).collect()
    }

    /// A page of 30 ms after a second of silence is reported, and not the silence before it.
    #[test]
    fn short_responses_are_not_missed_where_a_policy_goes_by_them() {
        let mut attention = Attention::default();
        assert_eq!(attention.look(3, true, NOW), Found::Woken);
        let silent = waits(&mut attention, 202, true);
        assert!(silent[..200].iter().all(|wait| *wait == 50), "{silent:?}");
        assert_eq!(silent[200..], [100, 200]);
        assert_eq!(attention.look(9, true, NOW), Found::Active);
        assert_eq!(waits(&mut attention, 1, true), [50]);
        // Where nobody went by responses during the silence, no report has begun.
        assert_eq!(waits(&mut attention, 1, false), [100]);
        assert_eq!(attention.look(11, true, NOW), Found::Woken);
    }

    /// Of a path with a long queue, acknowledgements come in bursts.
    #[test]
    fn silence_of_two_round_trips_is_part_of_a_report() {
        for responses in [false, true] {
            let at = Time::from_millis;
            let mut attention = Attention::default();
            assert_eq!(attention.look(1, responses, at(100)), Found::Woken);
            assert_eq!(attention.look(2, responses, at(120)), Found::Active);
            attention.on_report(Duration::from_millis(300));
            assert!(matches!(attention.look(2, responses, at(600)), Found::Quiet(_)));
            assert!(!attention.pauses(at(600)));
            assert_eq!(attention.look(3, responses, at(719)), Found::Active);
            assert!(matches!(attention.look(3, responses, at(1319)), Found::Quiet(_)));
            assert!(attention.pauses(at(1319)), "what is longer is a pause");
        }
    }
}
