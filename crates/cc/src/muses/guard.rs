//! A guard for a learnt policy: it ends the policy where its decisions cannot be trusted.

use trimtab_units::Bytes;

use super::action::PACKET_PARTS;
use super::log2::log2;
use super::{INTERVAL, State};

/// So many states in a row, a second of them, before the guard speaks: what is new for a moment is no reason.
const PATIENCE: u16 = 100;
/// And that for so many least round-trip times, four of them in the scale of the signals, where the
/// path is suspected to be left idle. A window that runs away is seen by what arrives, one round
/// trip later: it has to for one.
const ROUNDS: i32 = 2 * 256;
/// A queue of 1/64 of the least round-trip time: with less, nothing waits.
const QUEUE: i16 = 84;
/// With no more than four packets in it there is no queue either (the β of Vegas). What a short
/// path shows for one is then that packets take their time, and that acknowledgements wait for a
/// second one.
const PACKETS_FEW: u64 = 4;
/// A queue as long as the least round-trip time, in the scale of the signal: 256·log2(16). The
/// exact value, 256·log2(17), is rounded down.
const QUEUE_WHOLE: i32 = 1024;
/// A window that has become so much larger, by a fifth, is still on its way.
const GROWTH: i16 = 67;
/// A window of so many times what the path is seen to carry in its least round-trip time runs away. An oracle's is 1.25
/// times that, and Startup of BBR needs 2.89.
const FOLD: u64 = 4;
/// One of so many times runs away fast, and counts for more: a tenth of a second is enough.
const FOLD_FAST: u64 = 16;
const FAST: u16 = 10;
/// Below so many packets no window runs away, whatever the path carries.
const PACKETS_MIN: u64 = 16;

/// A thirty-second part of the highest rate; an eighth, where the window is a few packets.
const STARVED: i16 = 5 * 256;
const STARVED_FEW: i16 = 3 * 256;
/// A queue of a quarter of the least round-trip time.
const STARVED_QUEUE: i16 = 594;
/// Sixteen round trips.
const STARVED_ROUNDS: i32 = 1024;

/// Why a policy is not trusted any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// Its states have left the range of those that it learnt from, and it leaves the path idle.
    Unknown,
    /// The window has grown far beyond what the path carries.
    RunAway,
    /// Others keep a queue and leave the policy hardly any of the path.
    Starved,
}

impl core::fmt::Display for Alarm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Unknown => {
                "the path is unlike all that the policy learnt from, and it leaves it idle"
            }
            Self::RunAway => "the window ran away",
            Self::Starved => "others fill the queue and leave the policy hardly any of the path",
        })
    }
}

/// Counts what is suspicious.
///
/// To be outside of the range of training is none: a policy may well know what to do there, and the
/// fallback does not know better for that. It has to do harm, of which there are two kinds. It puts
/// far more in flight than the path carries, known or not. Or, where it cannot know, it leaves the
/// path idle: nothing waits in the queue, or a few packets do, and the window is used and does not
/// grow, for a second and four round trips; a queue now and then, in a tenth of the states, does
/// not change that.
///
/// And there is what no policy of short queues can answer. Others fill the queue, and it yields until
/// hardly anything of the path is its own: a thirty-second part of the highest rate so far, or an
/// eighth in a few packets, in a queue that stays for a second and sixteen round trips. Alone, a
/// window as small empties the queue. Then an algorithm that has an answer is to take over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guard {
    idle: u16,
    running: u16,
    excess: u16,
    /// The window when the path began to be idle.
    from: i16,
    /// The highest rate so far, and states in which others have the path.
    peak: i16,
    starved: u16,
    alarm: Option<Alarm>,
}

impl Guard {
    /// Looks at the next state, whether the policy knows ones like it, and whether the window limited the sender.
    pub(super) fn watch(&mut self, state: &State, known: bool, used: bool, mss: Bytes) {
        let [_, qdelay, min_rtt, .., cwnd] = *state;
        // Of a window no more waits than this: it times the queueing delay over the least round-trip time, or all.
        let waiting = i32::from(cwnd) + (i32::from(qdelay) - QUEUE_WHOLE).min(0);
        let waits = qdelay > QUEUE && waiting > packets(PACKETS_FEW);
        if known || cwnd > self.from.saturating_add(GROWTH) {
            (self.idle, self.from) = (0, cwnd);
        } else if waits {
            self.idle = self.idle.saturating_sub(FAST);
        } else if used {
            // A window that nobody used says nothing, either way.
            self.idle = self.idle.saturating_add(1);
        }
        self.running = match (exceeds(state, mss, FOLD), exceeds(state, mss, FOLD_FAST)) {
            (false, _) => 0,
            (true, false) => self.running.saturating_add(1),
            (true, true) => self.running.saturating_add(FAST),
        };
        self.excess = if self.running > 0 { self.excess.saturating_add(1) } else { 0 };
        let drate = state[4];
        self.peak = self.peak.max(drate);
        let is_few = i32::from(cwnd) <= packets(PACKETS_FEW) && drate < self.peak - STARVED_FEW;
        let has_little = is_few || drate < self.peak - STARVED;
        let is_starved = used && has_little && qdelay > STARVED_QUEUE;
        self.starved = if is_starved { self.starved.saturating_add(1) } else { 0 };
        if self.alarm.is_none() {
            let runs = self.running >= PATIENCE && lasts(self.excess, min_rtt, 0);
            let is_idle = self.idle >= PATIENCE && lasts(self.idle, min_rtt, ROUNDS);
            let is_starved =
                self.starved >= PATIENCE && lasts(self.starved, min_rtt, STARVED_ROUNDS);
            self.alarm = match (runs, is_idle, is_starved) {
                (true, ..) => Some(Alarm::RunAway),
                (_, true, _) => Some(Alarm::Unknown),
                (.., true) => Some(Alarm::Starved),
                _ => None,
            };
        }
    }

    /// What it has said, if anything; it does not take it back.
    pub(super) fn alarm(&self) -> Option<Alarm> {
        self.alarm
    }
}

/// Whether so many intervals are as long as the least round-trip time, times a factor in the scale of the signals.
fn lasts(intervals: u16, min_rtt: i16, rounds: i32) -> bool {
    let us = INTERVAL.as_micros() * u64::from(intervals);
    i32::from(log2(us)) >= i32::from(min_rtt) + rounds
}

/// So many, as the window is given.
fn packets(n: u64) -> i32 {
    i32::from(log2(n * PACKET_PARTS))
}

/// Compares logarithms: window against so many times rate times round-trip time.
fn exceeds(state: &State, mss: Bytes, fold: u64) -> bool {
    let [_, _, min_rtt, _, rate, _, cwnd] = state.map(i32::from);
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
                guard.watch(&state(200), true, true, MSS);
            }
            guard.watch(&state(50), true, true, MSS);
        }
        for _ in 1..PATIENCE / FAST {
            guard.watch(&state(700), true, true, MSS);
        }
        guard.watch(&state(50), true, true, MSS);
        assert_eq!(guard.alarm(), None);
        let mut quick = guard;
        for _ in 0..PATIENCE / FAST {
            quick.watch(&state(700), true, true, MSS);
        }
        assert_eq!(quick.alarm(), Some(Alarm::RunAway));
        for _ in 0..PATIENCE {
            guard.watch(&state(50), false, true, MSS);
        }
        assert_eq!(guard.alarm(), Some(Alarm::Unknown));
        for _ in 0..PATIENCE {
            guard.watch(&state(200), true, true, MSS);
        }
        assert_eq!(guard.alarm(), Some(Alarm::Unknown));
    }

    /// How many states it takes until the guard speaks, at most 10 s of them.
    fn until_it_speaks(mut next: impl FnMut(u64) -> (State, bool, bool)) -> Option<u64> {
        let mut guard = Guard::default();
        (1..=1000).find(|&n| {
            let (state, known, used) = next(n);
            guard.watch(&state, known, used, MSS);
            guard.alarm().is_some()
        })
    }

    #[test]
    fn what_is_merely_new_does_no_harm() {
        let queued = |ratio: f64| (256.0 * libm::log2(1.0 + 16.0 * ratio)) as i16;
        let with = |qdelay: i16, packets: u64| {
            let mut state = state(packets);
            state[1] = qdelay;
            state
        };
        // The first state sets the window from which it would have to grow.
        assert_eq!(until_it_speaks(|_| (with(0, 30), false, true)), Some(101));
        assert_eq!(until_it_speaks(|_| (with(0, 30), true, true)), None, "it knows what it does");
        assert_eq!(until_it_speaks(|_| (with(queued(0.1), 60), false, true)), None, "6 packets");
        assert!(until_it_speaks(|_| (with(queued(0.1), 20), false, true)).is_some(), "2 packets");
        let at_times = |every: u64| {
            move |n: u64| (with(if n.is_multiple_of(every) { 1000 } else { 0 }, 30), false, true)
        };
        assert_eq!(until_it_speaks(at_times(5)), None);
        assert!(until_it_speaks(at_times(50)).is_some());
        assert_eq!(until_it_speaks(|_| (with(0, 30), false, false)), None, "nothing to send");
        // It doubles every 0.9 s: by far not at once, but it comes there.
        let grows = |n: u64| (with(0, 2 << (n / 90).min(5)), false, true);
        let grows = |n: u64| if n < 540 { grows(n) } else { (with(500, 64), false, true) };
        assert_eq!(until_it_speaks(grows), None);
        // A window that goes up and down comes nowhere.
        let swings = |n: u64| (with(0, if n % 50 < 25 { 20 } else { 30 }), false, true);
        assert_eq!(until_it_speaks(swings), Some(125));
    }

    /// What arrives is what was sent a round trip ago: at 800 ms a window may double and double
    /// before anything of it is seen.
    #[test]
    fn a_window_runs_away_for_a_round_trip_at_least() {
        for (rtt_ms, states) in [(10, 10), (80, 10), (240, 24), (800, 80)] {
            let rtt = log2(rtt_ms * 1000);
            let mut far = state(50_000);
            (far[0], far[2]) = (rtt, rtt);
            let spoke = until_it_speaks(|_| (far, true, true)).unwrap();
            assert!(spoke.abs_diff(states) <= 1, "{rtt_ms} ms: {spoke}");
        }
    }

    /// Next to a flow that fills the buffer: the queue stays, whatever the window.
    #[test]
    fn who_is_left_hardly_anything_by_others_gives_way() {
        let queued = |packets: u64, rate: u64, ratio: f64| {
            let mut state = state(packets);
            state[1] = (256.0 * libm::log2(1.0 + 16.0 * ratio)) as i16;
            (state[3], state[4]) = (log2(rate), log2(rate));
            state
        };
        let high = 10_000_000;
        let spoke = |low: u64, packets: u64, ratio: f64| {
            let mut guard = Guard::default();
            let rates = core::iter::once(high).chain(core::iter::repeat_n(low, 1000));
            for rate in rates {
                guard.watch(&queued(packets, rate, ratio), true, true, MSS);
            }
            guard.alarm()
        };
        assert_eq!(spoke(high / 40, 5, 1.0), Some(Alarm::Starved));
        assert_eq!(spoke(high / 9, 4, 1.0), Some(Alarm::Starved), "four packets");
        assert_eq!(spoke(high / 6, 4, 1.0), None, "a call next to cross traffic");
        assert_eq!(spoke(high / 20, 6, 1.0), None, "one of twenty that share");
        assert_eq!(spoke(high / 40, 5, 0.2), None, "hardly a queue");
    }

    #[test]
    fn who_waits_for_an_answer_is_not_idle() {
        for (rtt_ms, states) in [(40, 101), (240, 101), (800, 321)] {
            let rtt = log2(rtt_ms * 1000);
            let mut far = state(30);
            (far[0], far[2]) = (rtt, rtt);
            let spoke = until_it_speaks(|_| (far, false, true)).unwrap();
            assert!(spoke.abs_diff(states) <= 1, "{rtt_ms} ms: {spoke}");
        }
    }
}
