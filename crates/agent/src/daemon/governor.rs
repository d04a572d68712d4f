//! Keeps the time that deciding takes within its share of a core: with many busy connections, each is looked at more
//! rarely. Mortise decides by what it measured over several intervals, whatever their length.

use trimtab_units::{Duration, Time};

/// How often the stretch is set anew.
const PERIOD: Duration = Duration::from_millis(500);
/// How much it moves at once, and at most.
const STEP_MAX: f64 = 2.0;
const STRETCH_MAX: f64 = 64.0;
/// Weight of the latest period in the shown share.
const WEIGHT: f64 = 0.3;

/// Watches the share of time that is spent.
#[derive(Clone, Debug)]
pub(crate) struct Governor {
    since: Time,
    spent: Duration,
    /// Intervals are this many times as long as asked for.
    stretch: f64,
    /// Share of a core of late, 0 to 1.
    share: f64,
}

impl Governor {
    pub(crate) fn new(now: Time) -> Self {
        Self { since: now, spent: Duration::ZERO, stretch: 1.0, share: 0.0 }
    }

    pub(crate) fn stretch(&self) -> f64 {
        self.stretch
    }

    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// So much time was spent; `allowed` is the share of a core.
    pub(crate) fn on_spent(&mut self, now: Time, spent: Duration, allowed: f64) {
        self.spent += spent;
        let period = now.since(self.since);
        if period < PERIOD {
            return;
        }
        let share = self.spent.ratio(period);
        self.share += WEIGHT * (share - self.share);
        let step = (share / allowed.max(1e-3)).clamp(1.0 / STEP_MAX, STEP_MAX);
        self.stretch = (self.stretch * step).clamp(1.0, STRETCH_MAX);
        (self.since, self.spent) = (now, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time spent is so much, divided by the stretch.
    fn run(governor: &mut Governor, from: u64, periods: u64, load: f64) {
        for period in from..from + periods {
            let spent = PERIOD.mul_f64(load / governor.stretch());
            governor.on_spent(Time::ZERO + PERIOD * (period + 1), spent, 0.04);
        }
    }

    #[test]
    fn what_would_take_too_much_is_done_more_rarely_until_the_load_is_gone() {
        let mut governor = Governor::new(Time::ZERO);
        run(&mut governor, 0, 20, 0.01);
        assert_eq!(governor.stretch(), 1.0);
        run(&mut governor, 20, 20, 0.4);
        assert!((governor.stretch() - 10.0).abs() < 0.01, "{governor:?}");
        assert!((governor.share() - 0.04).abs() < 0.01, "{governor:?}");
        run(&mut governor, 40, 20, 0.01);
        assert_eq!(governor.stretch(), 1.0);
    }
}
