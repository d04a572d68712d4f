//! A guard beside a learnt policy: it says when not to trust it any longer.

use trimtab_units::Bytes;

use super::State;
use super::action::PACKET_PARTS;
use super::log2::log2;

/// So many states in a row, a second of them, before the guard speaks: what is new for a moment is no reason.
const PATIENCE: u8 = 100;
/// A window of so many times what the path is seen to carry in its least round-trip time runs away. An oracle's is 1.25
/// times that, and Startup of BBR needs 2.89.
const FOLD: u64 = 4;
/// One of so many times runs away fast, and counts for more: a tenth of a second is enough.
const FOLD_FAST: u64 = 16;
const FAST: u8 = 10;
/// Below so many packets no window runs away, whatever the path carries.
const PACKETS_MIN: u64 = 16;

/// Why a policy is not trusted any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// Its states have left the range of those that it learnt from.
    Unknown,
    /// The window has grown far beyond what the path carries.
    RunAway,
}

impl core::fmt::Display for Alarm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Unknown => "the path is unlike all that the policy learnt from",
            Self::RunAway => "the window ran away",
        })
    }
}

/// Counts what is suspicious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guard {
    unknown: u8,
    running: u8,
    alarm: Option<Alarm>,
}

impl Guard {
    /// Looks at the next state, and whether the policy knows ones like it.
    pub(super) fn watch(&mut self, state: &State, known: bool, mss: Bytes) {
        self.unknown = if known { 0 } else { self.unknown.saturating_add(1) };
        self.running = match (exceeds(state, mss, FOLD), exceeds(state, mss, FOLD_FAST)) {
            (false, _) => 0,
            (true, false) => self.running.saturating_add(1),
            (true, true) => self.running.saturating_add(FAST),
        };
        if self.alarm.is_none() {
            self.alarm = match (self.running >= PATIENCE, self.unknown >= PATIENCE) {
                (true, _) => Some(Alarm::RunAway),
                (_, true) => Some(Alarm::Unknown),
                _ => None,
            };
        }
    }

    /// What it has said, if anything; it does not take it back.
    pub(super) fn alarm(&self) -> Option<Alarm> {
        self.alarm
    }
}

/// Compares logarithms: window against so many times rate times round-trip time.
fn exceeds(state: &State, mss: Bytes, fold: u64) -> bool {
    let [_, _, min_rtt, _, rate, _, cwnd] = state.map(i32::from);
    let packets = |n: u64| i32::from(log2(n * PACKET_PARTS));
    // Packets = bytes per second * microseconds / 10^6 / bytes of a packet.
    let per = i32::from(log2(1_000_000)) + i32::from(log2(mss.get().max(1)));
    let carried = rate + min_rtt - per + packets(fold);
    cwnd > carried.max(packets(PACKETS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1500);

    /// 12 Mbit/s and 40 ms: 40 packets.
    fn state(packets: u64) -> State {
        let rtt = log2(40_000);
        [rtt, 0, rtt, log2(1_500_000), log2(1_500_000), 0, log2(packets * PACKET_PARTS)]
    }

    #[test]
    fn a_window_runs_away_at_four_times_what_the_path_carries() {
        let runs_away = |state: &State| exceeds(state, MSS, FOLD);
        assert!(!runs_away(&state(158)));
        assert!(runs_away(&state(163)));
        let mut slow = state(15);
        slow[4] = 0;
        assert!(!runs_away(&slow), "a small window harms nobody");
        slow[6] = log2(17 * PACKET_PARTS);
        assert!(runs_away(&slow));
    }

    #[test]
    fn it_speaks_after_a_second_in_a_row_and_stays_with_it() {
        let mut guard = Guard::default();
        for _ in 0..3 {
            for _ in 1..PATIENCE {
                guard.watch(&state(200), true, MSS);
            }
            guard.watch(&state(50), true, MSS);
        }
        for _ in 1..PATIENCE / FAST {
            guard.watch(&state(700), true, MSS);
        }
        guard.watch(&state(50), true, MSS);
        assert_eq!(guard.alarm(), None);
        let mut quick = guard;
        for _ in 0..PATIENCE / FAST {
            quick.watch(&state(700), true, MSS);
        }
        assert_eq!(quick.alarm(), Some(Alarm::RunAway));
        for _ in 0..PATIENCE {
            guard.watch(&state(50), false, MSS);
        }
        assert_eq!(guard.alarm(), Some(Alarm::Unknown));
        for _ in 0..PATIENCE {
            guard.watch(&state(200), true, MSS);
        }
        assert_eq!(guard.alarm(), Some(Alarm::Unknown));
    }
}
