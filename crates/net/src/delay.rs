//! Propagation delay, constant or in steps, with jitter and reordering.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_units::{Duration, Time};

use crate::seed::{Purpose, generator};

/// The propagation delay of a path over time.
///
/// # A step down
/// Packets stay in order: one that would overtake another arrives with it, as with [`JitterConfig`].
/// So what enters just after a step from 75 to 10 ms comes out up to 65 ms late, in one bunch.
/// Mobile networks do the same at a handover. The last packet on the old path is an end marker, and
/// the new base station holds packets of the new path until it has seen it (3GPP TS 36.300 §10.1.2
/// and TS 23.401 §5.5.1). RFC 3819 §15 asks every subnetwork to keep the order. A new route in a
/// wired network may reorder; [`ReorderConfig`] is for packets out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelayConfig {
    /// The same at all times.
    Fixed(Duration),
    /// Delays that follow each other over and over. A packet takes the one of the time at which it
    /// enters.
    Steps {
        /// When the first of them begins. It holds before, too.
        begin: Time,
        /// How long each lasts, and the delay. If none lasts, there is no delay.
        steps: Arc<[(Duration, Duration)]>,
    },
}

impl Default for DelayConfig {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

impl From<Duration> for DelayConfig {
    fn from(delay: Duration) -> Self {
        Self::Fixed(delay)
    }
}

impl DelayConfig {
    /// Delays that follow each other over and over from [`Time::ZERO`] on: how long each lasts, and
    /// the delay.
    pub fn steps(steps: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        Self::Steps { begin: Time::ZERO, steps: steps.into_iter().collect() }
    }

    /// The same, but that the first step begins at `begin`.
    #[must_use]
    pub fn begin(self, begin: Time) -> Self {
        match self {
            Self::Fixed(delay) => Self::Fixed(delay),
            Self::Steps { steps, .. } => Self::Steps { begin, steps },
        }
    }

    /// The delay of a packet that enters at `now`.
    #[inline]
    pub fn at(&self, now: Time) -> Duration {
        match self {
            Self::Fixed(delay) => *delay,
            Self::Steps { begin, steps } => step_at(steps, now.since(*begin)),
        }
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Fixed(delay) => *delay,
            Self::Steps { steps, .. } => steps.iter().map(|step| step.1).max().unwrap_or_default(),
        }
    }

    /// Another delay at each time, for instance half of this one.
    #[must_use]
    pub fn map(&self, of: impl Fn(Duration) -> Duration) -> Self {
        match self {
            Self::Fixed(delay) => Self::Fixed(of(*delay)),
            Self::Steps { begin, steps } => {
                let steps = steps.iter().map(|&(lasts, delay)| (lasts, of(delay)));
                Self::Steps { begin: *begin, steps: steps.collect() }
            }
        }
    }
}

/// The delay so long after the first step began.
fn step_at(steps: &[(Duration, Duration)], since: Duration) -> Duration {
    let period = steps.iter().fold(0u64, |sum, step| sum.saturating_add(step.0.as_nanos()));
    let mut into = since.as_nanos().checked_rem(period).unwrap_or(0);
    for &(lasts, delay) in steps {
        match into.checked_sub(lasts.as_nanos()) {
            Some(rest) => into = rest,
            None => return delay,
        }
    }
    Duration::ZERO
}

/// Random delay per packet on top of the propagation delay. It never changes the order: a packet that
/// would overtake another one arrives with it. So on a link that carries many packets within `max`, the
/// mean delay is closer to `max` than to half of it, and packets arrive in bunches, as they do behind a
/// radio scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterConfig {
    /// No jitter.
    #[default]
    None,
    /// All values from zero to `max` alike.
    Uniform {
        /// The largest value.
        max: Duration,
    },
    /// All values from zero to `max` alike, one for all packets that enter at the same instant: what
    /// a burst waits for a sender that sleeps in between.
    Burst {
        /// The largest value, for the first packet of a burst.
        max: Duration,
        /// How long it takes to pass a packet on: from half of this to one and a half, all alike.
        each: Duration,
    },
    /// The link is a program as Mahimahi's are. Its clock reads whole milliseconds, and it sleeps for
    /// whole milliseconds from whenever it last woke up; a packet that comes wakes it, too. So what is due
    /// leaves some part of a millisecond late, by when the program last woke up. The delay counts from the
    /// start of the millisecond in which a packet entered.
    Polled {
        /// How much later than it asked the program wakes up: from half of this to one and a half, all
        /// alike.
        late: Duration,
        /// One sleep of a hundred is later than this, and one of 100 n² later than n times this.
        rarely: Duration,
        /// How long it takes to pass a packet on: from half of this to one and a half, all alike.
        each: Duration,
    },
    /// Bell-shaped from zero to `max`: the mean of four uniform values, with mean `max / 2` and standard
    /// deviation `max / 6.93`. (Four, because that is close to normal and has an end.)
    Bell {
        /// The largest value.
        max: Duration,
    },
}

/// Packets that are held back while the ones behind them pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderConfig {
    /// The probability that a packet is held back, 0 to 1.
    pub probability: f64,
    /// For how long, on top of the delay that it would have had.
    pub extra: Duration,
}

/// A pipe of a delay, with optional jitter and reordering: the delay part of a link, also for use
/// alone, for instance as the access delay of one flow.
#[derive(Clone, Debug)]
pub struct DelayLine {
    delay: DelayConfig,
    /// In boxes, since few lines have them, and each flow has two lines.
    jitter: Option<Box<Jitter>>,
    reorder: Option<Box<Reorder>>,
    /// The latest release so far of a packet that was not held back.
    last: Time,
}

#[derive(Clone, Debug)]
struct Jitter {
    config: JitterConfig,
    random: Pcg64Mcg,
    /// When the last packet entered, and what it drew.
    last: Option<(Time, Duration)>,
}

#[derive(Clone, Debug)]
struct Reorder {
    config: ReorderConfig,
    random: Pcg64Mcg,
}

impl DelayLine {
    /// A delay without randomness.
    pub fn plain(delay: impl Into<DelayConfig>) -> Self {
        Self { delay: delay.into(), jitter: None, reorder: None, last: Time::ZERO }
    }

    /// A delay with jitter and reordering. The same seed gives the same delays.
    pub fn new(
        delay: impl Into<DelayConfig>,
        jitter: JitterConfig,
        reorder: Option<ReorderConfig>,
        seed: u64,
    ) -> Self {
        // Of a program that sleeps, the link itself knows when it wakes up.
        let draws = !matches!(jitter, JitterConfig::None | JitterConfig::Polled { .. });
        let jitter = draws.then(|| {
            let random = generator(seed, Purpose::Jitter);
            Box::new(Jitter { config: jitter, random, last: None })
        });
        let reorder = reorder
            .map(|config| Box::new(Reorder { config, random: generator(seed, Purpose::Reorder) }));
        Self { jitter, reorder, ..Self::plain(delay) }
    }

    /// Draws from another seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        if let Some(jitter) = &mut self.jitter {
            jitter.random = generator(seed, Purpose::Jitter);
        }
        if let Some(reorder) = &mut self.reorder {
            reorder.random = generator(seed, Purpose::Reorder);
        }
    }

    /// Takes back the time at which the packet comes out that entered last.
    pub(crate) fn last_comes_out(&mut self, at: Time) {
        self.last = at;
    }

    /// When a packet that enters at `now` comes out. The results never go back, but for packets that
    /// reordering holds back: those come out later than the ones behind them.
    #[inline]
    pub fn release(&mut self, now: Time) -> Time {
        let jitter = self.jitter.as_mut().map_or(Duration::ZERO, |jitter| jitter.draw(now));
        self.last = self.last.max(now + self.delay.at(now) + jitter);
        let held_back = self.reorder.as_mut().map_or(Duration::ZERO, |reorder| reorder.draw());
        self.last + held_back
    }

    /// The earliest that a packet which enters at `now` can come out.
    #[inline]
    pub fn earliest(&self, now: Time) -> Time {
        now + self.delay.at(now)
    }

    /// Whether packets can come out in another order than they went in.
    #[inline]
    pub(crate) fn reorders(&self) -> bool {
        self.reorder.is_some()
    }
}

impl Jitter {
    fn draw(&mut self, now: Time) -> Duration {
        match self.config {
            JitterConfig::None | JitterConfig::Polled { .. } => Duration::ZERO,
            JitterConfig::Burst { max, each } => {
                let jitter = match self.last {
                    Some((at, jitter)) if at == now && each.is_zero() => jitter,
                    Some((at, jitter)) if at == now => {
                        jitter + each.mul_f64(0.5 + self.random.random::<f64>())
                    }
                    _ => max.mul_f64(self.random.random()),
                };
                self.last = Some((now, jitter));
                jitter
            }
            JitterConfig::Uniform { max } => max.mul_f64(self.random.random()),
            JitterConfig::Bell { max } => {
                let sum: f64 = (0..4).map(|_| self.random.random::<f64>()).sum();
                max.mul_f64(sum / 4.0)
            }
        }
    }
}

impl Reorder {
    fn draw(&mut self) -> Duration {
        let is_held = self.random.random::<f64>() < self.config.probability;
        if is_held { self.config.extra } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(4);

    #[test]
    fn jitter_has_its_mean_and_range() {
        for (jitter, deviation) in [
            (JitterConfig::Uniform { max: MAX }, 4.0 / 12f64.sqrt()),
            (JitterConfig::Bell { max: MAX }, 4.0 / 48f64.sqrt()),
        ] {
            let mut line = DelayLine::new(Duration::from_millis(10), jitter, None, 5);
            // Packets further apart than the jitter, so that none waits for another.
            let extra: Vec<f64> = (0..20_000)
                .map(|k| Time::from_millis(5 * k))
                .map(|now| line.release(now).since(now).as_millis_f64() - 10.0)
                .collect();
            let mean = extra.iter().sum::<f64>() / extra.len() as f64;
            let variance = extra.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
            let measured = (variance / extra.len() as f64).sqrt();
            assert!(extra.iter().all(|extra| (0.0..=4.0).contains(extra)));
            assert!((mean - 2.0).abs() < 0.04, "{jitter:?} {mean}");
            assert!((measured - deviation).abs() < 0.03, "{jitter:?} {measured}");
        }
    }

    /// 30 ms for a second, then 10 ms for two, over and over.
    fn steps() -> DelayConfig {
        let [short, long, one, two] = [10, 30, 1000, 2000].map(Duration::from_millis);
        DelayConfig::steps([(one, long), (two, short)])
    }

    #[test]
    fn the_delay_steps_over_and_over() {
        let at = |ms| steps().at(Time::from_millis(ms)).as_millis();
        assert_eq!([0, 999, 1000, 2999, 3000, 3_000_999].map(at), [30, 30, 10, 10, 30, 30]);
        assert_eq!(steps().longest(), Duration::from_millis(30));
        let half = steps().map(|delay| delay.mul_f64(0.5));
        assert_eq!(half.at(Time::from_millis(1500)), Duration::from_millis(5));
        let later = steps().begin(Time::from_millis(500));
        assert_eq!(
            [0, 1499, 1500].map(|ms| later.at(Time::from_millis(ms)).as_millis()),
            [30, 30, 10]
        );
        assert_eq!(DelayConfig::steps([]).at(Time::from_millis(7)), Duration::ZERO);
    }

    #[test]
    fn behind_a_step_down_packets_wait_for_the_last_of_the_old_path() {
        let mut line = DelayLine::plain(steps());
        let out = |ms| line.release(Time::from_millis(ms)).as_millis();
        // The last before the step arrives at 1029; what enters until 1019 arrives with it.
        assert_eq!(
            [998, 999, 1000, 1019, 1020, 2999, 3000].map(out),
            [1028, 1029, 1029, 1029, 1030, 3009, 3030]
        );
    }

    #[test]
    fn a_burst_stays_together() {
        let jitter = JitterConfig::Burst { max: MAX, each: Duration::ZERO };
        let mut line = DelayLine::new(MAX, jitter, None, 6);
        let mut seen = Vec::new();
        for k in 0..500 {
            let now = Time::from_millis(10 * k);
            let burst = [line.release(now), line.release(now), line.release(now)];
            assert!(burst[0] == burst[1] && burst[1] == burst[2]);
            seen.push(burst[0].since(now).as_millis_f64() - 4.0);
        }
        let mean = seen.iter().sum::<f64>() / 500.0;
        assert!((mean - 2.0).abs() < 0.2, "{mean}");
    }

    #[test]
    fn packets_of_a_burst_leave_one_after_the_other() {
        let each = Duration::from_micros(10);
        let mut line = DelayLine::new(MAX, JitterConfig::Burst { max: MAX, each }, None, 6);
        for k in 0..500 {
            let now = Time::from_millis(10 * k);
            let burst = [line.release(now), line.release(now), line.release(now)];
            for pair in burst.windows(2) {
                let gap = pair[1].since(pair[0]).as_nanos();
                assert!((5_000..15_000).contains(&gap), "{gap} ns");
            }
        }
    }

    #[test]
    fn jitter_does_not_reorder() {
        let mut line = DelayLine::new(MAX, JitterConfig::Uniform { max: MAX }, None, 6);
        let out: Vec<Time> = (0..5_000).map(|k| line.release(Time::from_micros(100 * k))).collect();
        assert!(out.is_sorted());
    }

    #[test]
    fn reordering_holds_back_its_share() {
        let reorder = ReorderConfig { probability: 0.1, extra: Duration::from_millis(3) };
        let mut line = DelayLine::new(MAX, JitterConfig::None, Some(reorder), 7);
        let held = (0..20_000)
            .map(Time::from_millis)
            .filter(|&now| match line.release(now).since(now).as_millis() {
                4 => false,
                7 => true,
                other => panic!("{other} ms"),
            })
            .count();
        // 2000 are expected, with a standard deviation of 42.
        assert!((1850..2150).contains(&held), "{held}");
    }
}
