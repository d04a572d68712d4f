//! Token-bucket policers: much loss at a steady delivery rate (`bbr_lt_bw_sampling`).
//!
//! A policer drops what exceeds its rate instead of queueing it, so probing costs loss and gains
//! nothing. Two consecutive intervals, each bounded by losses, with loss of a fifth and about the
//! same rate, are taken for one: the mean of their rates is used for the next rounds.

use trimtab_units::{Bytes, Duration, Rate, Time};

/// The shortest sampling interval (`bbr_lt_intvl_min_rtts`).
const ROUNDS_MIN: u32 = 4;
/// The longest: four times as many.
const ROUNDS_MAX: u32 = 4 * ROUNDS_MIN;
/// Lost against delivered, in 1/256, from which an interval is lossy (`bbr_lt_loss_thresh`): 20%.
const LOSS_THRESHOLD: u64 = 50;
/// Two rates are the same within an eighth (`bbr_lt_bw_ratio`)…
const RATE_TOLERANCE: u64 = 8;
/// …or within 4 kbit/s (`bbr_lt_bw_diff`).
const RATE_DIFFERENCE: Rate = Rate::from_bits_per_sec(4000);
/// How long the policed rate is used before the path is probed again (`bbr_lt_bw_max_rtts`).
const USE_ROUNDS: u32 = 48;

/// Whether the flow is policed, and to what rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    state: State,
    /// Rounds in the interval, or of using the rate.
    rounds: u32,
    interval: Interval,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// No loss yet.
    #[default]
    Waiting,
    /// Measuring; the rate of the interval before this one, if there was one.
    Sampling { previous: Option<Rate> },
    /// Policed to this rate.
    Using { rate: Rate },
}

/// Where a sampling interval began.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    start: Time,
    delivered: Bytes,
    lost: Bytes,
}

/// What one acknowledgement (or timeout) shows.
pub(super) struct Observation {
    pub(super) now: Time,
    /// Delivered over the life of the connection.
    pub(super) delivered: Bytes,
    /// Lost over the life of the connection.
    pub(super) lost: Bytes,
    /// Whether something was declared lost just now.
    pub(super) losses: bool,
    pub(super) app_limited: bool,
    pub(super) round_started: bool,
    /// Whether the flow is in ProbeBW; only there is the use of the rate counted.
    pub(super) in_probe_bw: bool,
}

impl Policer {
    /// The policed rate, while it is used.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self.state {
            State::Using { rate } => Some(rate),
            _ => None,
        }
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns whether the policed rate has just been given up, so that gain cycling starts anew.
    pub(super) fn update(&mut self, seen: &Observation) -> bool {
        let previous = match self.state {
            State::Using { .. } => return self.count_use(seen),
            // The first loss: from here on the policer's tokens are spent.
            State::Waiting if seen.losses => {
                self.begin_interval(seen, None);
                None
            }
            State::Waiting => return false,
            State::Sampling { previous } => previous,
        };
        if seen.app_limited {
            self.reset(); // less than the policer would let through
            return false;
        }
        self.rounds += u32::from(seen.round_started);
        if self.rounds > ROUNDS_MAX {
            self.reset();
        } else if self.rounds >= ROUNDS_MIN && seen.losses {
            self.end_interval(seen, previous);
        }
        false
    }

    fn count_use(&mut self, seen: &Observation) -> bool {
        self.rounds += u32::from(seen.in_probe_bw && seen.round_started);
        let over = self.rounds >= USE_ROUNDS;
        if over {
            self.reset();
        }
        over
    }

    fn begin_interval(&mut self, seen: &Observation, previous: Option<Rate>) {
        self.state = State::Sampling { previous };
        self.rounds = 0;
        self.interval = Interval { start: seen.now, delivered: seen.delivered, lost: seen.lost };
    }

    fn end_interval(&mut self, seen: &Observation, previous: Option<Rate>) {
        let lost = seen.lost - self.interval.lost;
        let delivered = seen.delivered - self.interval.delivered;
        let lossy =
            lost.get().saturating_mul(256) >= delivered.get().saturating_mul(LOSS_THRESHOLD);
        let elapsed = seen.now.since(self.interval.start);
        if delivered.is_zero() || !lossy || elapsed < Duration::from_millis(1) {
            return; // the interval goes on
        }
        let rate = delivered / elapsed;
        match previous {
            Some(before) if is_same(rate, before) => {
                let mean =
                    Rate::from_bytes_per_sec(rate.bytes_per_sec().midpoint(before.bytes_per_sec()));
                self.state = State::Using { rate: mean };
                self.rounds = 0;
            }
            _ => self.begin_interval(seen, Some(rate)),
        }
    }
}

fn is_same(a: Rate, b: Rate) -> bool {
    let difference = (a - b) + (b - a);
    difference.bytes_per_sec() <= b.bytes_per_sec() / RATE_TOLERANCE
        || difference <= RATE_DIFFERENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round per 100 ms: `delivered` bytes arrive and `lost` do not.
    fn rounds(policer: &mut Policer, seen: &mut Observation, n: u32, delivered: u64, lost: u64) {
        for _ in 0..n {
            seen.now += Duration::from_millis(100);
            seen.delivered += Bytes::new(delivered);
            seen.lost += Bytes::new(lost);
            seen.losses = lost > 0;
            policer.update(seen);
        }
    }

    fn start() -> (Policer, Observation) {
        let seen = Observation {
            now: Time::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            losses: false,
            app_limited: false,
            round_started: true,
            in_probe_bw: true,
        };
        (Policer::default(), seen)
    }

    /// expected.md B8: two intervals of four rounds each at the same rate with loss of a fifth.
    #[test]
    fn detects_a_policer_after_two_intervals_and_uses_it_for_48_rounds() {
        let (mut policer, mut seen) = start();
        // The round of the first loss counts as the first of its interval, as in Linux.
        rounds(&mut policer, &mut seen, 7, 100_000, 25_000);
        assert_eq!(policer.rate(), None);
        rounds(&mut policer, &mut seen, 1, 100_000, 25_000);
        assert_eq!(policer.rate(), Some(Rate::from_bytes_per_sec(1_000_000)));
        rounds(&mut policer, &mut seen, 47, 100_000, 0);
        assert!(policer.rate().is_some());
        rounds(&mut policer, &mut seen, 1, 100_000, 0);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn little_loss_or_an_unsteady_rate_is_no_policer() {
        let (mut policer, mut seen) = start();
        rounds(&mut policer, &mut seen, 100, 100_000, 19_000); // 19% < 50/256
        assert_eq!(policer.rate(), None);
        let (mut policer, mut seen) = start();
        for i in 0..10 {
            rounds(&mut policer, &mut seen, 4, 100_000 << (i % 2), 50_000);
            assert_eq!(policer.rate(), None, "the rate doubles and halves");
        }
    }

    #[test]
    fn an_application_limited_sample_starts_over() {
        let (mut policer, mut seen) = start();
        rounds(&mut policer, &mut seen, 7, 100_000, 25_000);
        seen.app_limited = true;
        rounds(&mut policer, &mut seen, 1, 100_000, 25_000);
        seen.app_limited = false;
        rounds(&mut policer, &mut seen, 7, 100_000, 25_000);
        assert_eq!(policer.rate(), None);
    }
}
