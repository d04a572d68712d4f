//! The safe fallback: a connection that suffers from its steering for long goes back to a fallback
//! that is safe on any path.
//!
//! Not everything that a connection suffers is its own doing: a radio link loses packets of every
//! sender, and a neighbour fills the queue for all. While the connection rests, it runs what it
//! would run without us, so the rest shows what the path does by itself. Where that is about as
//! bad, steering goes on, and only what is clearly worse counts as harm.

use trimtab_units::{Duration, Time};

use super::{Measured, Share};

/// Rests double up to this.
const REST_MAX: u32 = 16;
/// Harm is more than this many times what the connection suffers without steering. Of 8 % random
/// loss, a stretch of 5 s at 1 Mbit/s shows 6.8 to 9.2 % (one standard deviation to both sides), so
/// chance alone does not reach it.
const MORE: f64 = 1.5;
/// What the path does by itself is believed for so many rests, since paths change.
const KNOWN_FOR: f64 = 10.0;

/// When a connection goes back to the fallback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Safety {
    /// Lost share of what was sent, above which a connection suffers. Default: 5 %.
    pub loss: Share,
    /// Mean queueing delay above which it suffers. Default: 500 ms.
    pub delay: Duration,
    /// It goes back after suffering for so long. Default: 5 s.
    pub after: Duration,
    /// And is steered again after so long; each time twice as long, up to 16 times. Default: 60 s.
    pub rest: Duration,
}

impl Default for Safety {
    fn default() -> Self {
        Self {
            // Below 5 % the download model deducts nothing for retransmissions (Mortise Eq. 6);
            // above, its score falls by 4 points of a hundred with each.
            loss: Share::new(0.05),
            delay: Duration::from_millis(500),
            after: Duration::from_secs(5),
            rest: Duration::from_secs(60),
        }
    }
}

/// Watches one connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guard {
    /// What it suffers now.
    suffers: Stretch,
    /// What it saw without steering outside of rests, where algorithms take turns.
    without: Stretch,
    /// What the path does by itself.
    own: Option<Own>,
    /// What the next rest is, in multiples of the configured.
    rests: u32,
    rest: Option<Rest>,
}

/// What a connection suffers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Harm {
    /// Too many losses.
    Loss,
    /// Too long a queue.
    Delay,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Go,
    /// Back to the fallback.
    Back(Harm),
    /// The rest is over: steer again.
    Again,
    /// The connection suffers as much without steering: steer again, as if nothing had been.
    NotOurs,
}

/// Windows in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stretch {
    length: Duration,
    sent: f64,
    lost: f64,
    /// Queueing delay times length, in s².
    queueing: f64,
}

impl Stretch {
    fn add(&mut self, window: &Measured) {
        let sent = window.sent.as_f64().max(1.0);
        self.length += window.length;
        self.sent += sent;
        self.lost += sent * window.point.loss;
        self.queueing += window.queueing.as_secs_f64() * window.length.as_secs_f64();
    }

    /// The mean over all of it.
    fn level(&self) -> Level {
        let seconds = self.length.as_secs_f64().max(1e-9);
        Level { loss: self.lost / self.sent.max(1.0), queueing_s: self.queueing / seconds }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Level {
    /// Lost share, 0 to 1.
    loss: f64,
    queueing_s: f64,
}

impl Level {
    /// Whether this is harm, where the path by itself does `own`.
    fn harm(&self, own: Level, safety: &Safety) -> Option<Harm> {
        let more = |now: f64, limit: f64, own: f64| now > limit && now > MORE * own;
        if more(self.loss, safety.loss.get(), own.loss) {
            return Some(Harm::Loss);
        }
        let delay = safety.delay.as_secs_f64();
        more(self.queueing_s, delay, own.queueing_s).then_some(Harm::Delay)
    }
}

/// What the path does by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Own {
    level: Level,
    at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rest {
    until: Time,
    /// What it rests from.
    after: Level,
    /// Whether the first window is over, in which what was under way still shows.
    settled: bool,
    seen: Stretch,
    /// Whether what it suffers by itself was compared.
    compared: bool,
}

impl Guard {
    /// Whether the connection rests with the fallback.
    pub fn is_resting(&self) -> bool {
        self.rest.is_some()
    }

    /// The lost share and the queueing delay that the connection went to rest from, as long as it has
    /// rested for less than `within`. It would go on suffering, had nobody taken it back.
    pub fn suffered(&self, within: Duration) -> Option<(f64, Duration)> {
        let rest = self.rest.filter(|rest| rest.seen.length < within)?;
        Some((rest.after.loss, Duration::from_secs_f64(rest.after.queueing_s)))
    }

    /// Takes a window in, in which the connection was steered or not.
    pub fn on_window(&mut self, window: &Measured, safety: &Safety, is_steered: bool) -> Verdict {
        if self.rest.is_some() {
            return self.on_rest(window, safety);
        }
        if !is_steered {
            self.suffers = Stretch::default();
            self.without.add(window);
            if self.without.length >= safety.after {
                let level = std::mem::take(&mut self.without).level();
                self.own = Some(Own { level, at: window.at });
            }
            return Verdict::Go;
        }
        self.without = Stretch::default();
        let known = safety.rest.mul_f64(KNOWN_FOR);
        let own = self.own.filter(|own| window.at.since(own.at) < known);
        let own = own.map_or(Level::default(), |own| own.level);
        self.suffers.add(window);
        let level = self.suffers.level();
        let eases =
            2.0 * window.point.loss < safety.loss.get() && window.queueing * 2 < safety.delay;
        let Some(harm) = level.harm(own, safety).filter(|_| !eases) else {
            self.suffers = Stretch::default();
            return Verdict::Go;
        };
        if self.suffers.length < safety.after {
            return Verdict::Go;
        }
        self.suffers = Stretch::default();
        let rest: Duration = safety.rest.mul_f64(f64::from(self.rests.max(1)));
        self.rests = (self.rests.max(1) * 2).min(REST_MAX);
        self.rest = Some(Rest {
            until: window.at + rest,
            after: level,
            settled: false,
            seen: Stretch::default(),
            compared: false,
        });
        Verdict::Back(harm)
    }

    fn on_rest(&mut self, window: &Measured, safety: &Safety) -> Verdict {
        let Some(rest) = &mut self.rest else { return Verdict::Go };
        if rest.settled {
            rest.seen.add(window);
        }
        rest.settled = true;
        if !rest.compared && rest.seen.length >= safety.after {
            rest.compared = true;
            let level = rest.seen.level();
            self.own = Some(Own { level, at: window.at });
            if rest.after.harm(level, safety).is_none() {
                self.rest = None;
                self.rests /= 2;
                return Verdict::NotOurs;
            }
        }
        if self.rest.is_some_and(|rest| window.at < rest.until) {
            return Verdict::Go;
        }
        self.rest = None;
        Verdict::Again
    }
}

#[cfg(test)]
mod tests {
    use trimtab_qoe::{OperatingPoint, Samples};
    use trimtab_units::{Bytes, Rate};

    use super::*;

    fn safety() -> Safety {
        Safety {
            loss: Share::new(0.05),
            delay: Duration::from_millis(500),
            after: Duration::from_secs(3),
            rest: Duration::from_secs(10),
        }
    }

    fn second(at: u64, loss: f64, queueing_ms: u64) -> Measured {
        Measured {
            at: Time::from_secs(at),
            length: Duration::from_secs(1),
            point: OperatingPoint {
                throughput: Rate::from_mbps(5.0),
                delay: Duration::from_millis(50),
                loss,
            },
            samples: Samples::default(),
            queueing: Duration::from_millis(queueing_ms),
            sent: Bytes::new(1000),
            lost: Bytes::ZERO,
            busy: true,
        }
    }

    /// Seconds with these losses, from the first on, and what comes of each. Steered unless it rests.
    fn verdicts(guard: &mut Guard, first: u64, losses: &[f64]) -> Vec<Verdict> {
        let at = |(k, loss): (usize, &f64)| {
            let steered = !guard.is_resting();
            guard.on_window(&second(first + k as u64, *loss, 0), &safety(), steered)
        };
        losses.iter().enumerate().map(at).collect()
    }

    #[test]
    fn only_what_lasts_is_harm_and_each_rest_is_longer() {
        let mut guard = Guard::default();
        assert_eq!(verdicts(&mut guard, 1, &[0.2, 0.2, 0.0]), [Verdict::Go; 3]);
        assert_eq!(verdicts(&mut guard, 4, &[0.2; 3])[2], Verdict::Back(Harm::Loss));
        let suffered = |guard: &Guard, s| guard.suffered(Duration::from_secs(s)).map(|of| of.0);
        assert!((suffered(&guard, 5).expect("it rests") - 0.2).abs() < 1e-9);
        assert_eq!(verdicts(&mut guard, 7, &[0.0; 9]), [Verdict::Go; 9]);
        assert_eq!(suffered(&guard, 5), None, "it rests for longer");
        assert_eq!(verdicts(&mut guard, 16, &[0.0]), [Verdict::Again]);
        assert_eq!(verdicts(&mut guard, 17, &[0.2; 3])[2], Verdict::Back(Harm::Loss));
        assert_eq!(verdicts(&mut guard, 20, &[0.0; 19]), [Verdict::Go; 19]);
        assert_eq!(verdicts(&mut guard, 39, &[0.0]), [Verdict::Again]);
    }

    /// 7.7 % were lost on a buffer of 20 packets, of which the algorithm by itself loses next to nothing. The losses of
    /// a second scatter, and some seconds are below the limit.
    #[test]
    fn losses_of_a_short_buffer_are_harm_though_seconds_differ() {
        let mut guard = Guard::default();
        let losses = [0.12, 0.03, 0.08];
        assert_eq!(verdicts(&mut guard, 1, &losses)[2], Verdict::Back(Harm::Loss));
        // The first second of the rest still shows what was in the queue.
        assert_eq!(verdicts(&mut guard, 4, &[0.05, 0.004, 0.0, 0.01, 0.0]), [Verdict::Go; 5]);
        assert!(guard.is_resting());
    }

    #[test]
    fn what_the_path_loses_by_itself_costs_one_short_rest() {
        let mut guard = Guard::default();
        let random = [0.08, 0.066, 0.091, 0.079, 0.085];
        let mut seen = Vec::new();
        for second in 0..120 {
            seen.extend(verdicts(&mut guard, 1 + second, &[random[second as usize % 5]]));
        }
        let expected =
            [vec![Verdict::Go; 2], vec![Verdict::Back(Harm::Loss)], vec![Verdict::Go; 3]].concat();
        assert_eq!(seen[..6], expected);
        assert_eq!(seen[6], Verdict::NotOurs, "three seconds without steering were as bad");
        let later: Vec<_> =
            seen[7..100].iter().filter(|verdict| **verdict != Verdict::Go).collect();
        assert!(later.is_empty(), "{later:?}");
        // What is clearly worse than that is our doing all the same.
        assert_eq!(verdicts(&mut guard, 200, &[0.14; 3])[2], Verdict::Back(Harm::Loss));
    }

    #[test]
    fn what_it_suffers_by_itself_is_also_learnt_while_algorithms_take_turns() {
        let mut guard = Guard::default();
        for at in 1..=3 {
            assert_eq!(guard.on_window(&second(at, 0.08, 0), &safety(), false), Verdict::Go);
        }
        assert_eq!(verdicts(&mut guard, 4, &[0.08; 20]), [Verdict::Go; 20]);
    }

    #[test]
    fn a_long_queue_is_harm_too() {
        let mut guard = Guard::default();
        let verdicts: Vec<_> =
            (1..=3).map(|at| guard.on_window(&second(at, 0.0, 600), &safety(), true)).collect();
        assert_eq!(verdicts[2], Verdict::Back(Harm::Delay));
    }
}
