//! The safe fallback: a connection that suffers for long goes back to the setting that is safe on any path.

use trimtab_units::{Duration, Time};

use crate::config::Safety;
use crate::window::Measured;

/// Rests double up to this.
const REST_MAX: u32 = 16;

/// Watches one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    suffers_since: Option<Time>,
    /// What the next rest is, in multiples of the configured.
    rests: u32,
    resting_until: Option<Time>,
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
pub(crate) enum Verdict {
    /// Nothing.
    Go,
    /// Back to what is safe.
    Back(Harm),
    /// The rest is over: steer again.
    Again,
}

impl Guard {
    pub(crate) fn is_resting(&self) -> bool {
        self.resting_until.is_some()
    }

    pub(crate) fn on_window(&mut self, window: &Measured, safety: &Safety) -> Verdict {
        if let Some(until) = self.resting_until {
            if window.at < until {
                return Verdict::Go;
            }
            self.resting_until = None;
            self.suffers_since = None;
            return Verdict::Again;
        }
        let harm = if window.point.loss > safety.loss.get() {
            Harm::Loss
        } else if window.queueing > safety.delay {
            Harm::Delay
        } else {
            self.suffers_since = None;
            return Verdict::Go;
        };
        let began = Time::from_nanos(window.at.as_nanos().saturating_sub(window.length.as_nanos()));
        let since = *self.suffers_since.get_or_insert(began);
        if window.at.since(since) < safety.after {
            return Verdict::Go;
        }
        let rest: Duration = safety.rest.mul_f64(f64::from(self.rests.max(1)));
        self.resting_until = Some(window.at + rest);
        self.rests = (self.rests.max(1) * 2).min(REST_MAX);
        Verdict::Back(harm)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_qoe::OperatingPoint;
    use trimtab_units::{Bytes, Rate};

    use super::*;
    use crate::config::Share;

    fn safety() -> Safety {
        Safety {
            loss: Share::new(0.1),
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
            queueing: Duration::from_millis(queueing_ms),
            sent: Bytes::new(1000),
            lost: Bytes::ZERO,
            busy: true,
        }
    }

    #[test]
    fn only_what_lasts_is_harm_and_each_rest_is_longer() {
        let mut guard = Guard::default();
        let safety = safety();
        let mut verdicts = |from: u64, to: u64, loss: f64| -> Vec<Verdict> {
            (from..=to).map(|at| guard.on_window(&second(at, loss, 0), &safety)).collect()
        };
        assert_eq!(verdicts(1, 2, 0.2), [Verdict::Go; 2]);
        assert_eq!(verdicts(3, 3, 0.0), [Verdict::Go]);
        assert_eq!(verdicts(4, 6, 0.2), [Verdict::Go, Verdict::Go, Verdict::Back(Harm::Loss)]);
        assert_eq!(verdicts(7, 15, 0.2), [Verdict::Go; 9]);
        assert_eq!(verdicts(16, 16, 0.2), [Verdict::Again]);
        assert_eq!(verdicts(17, 19, 0.2)[2], Verdict::Back(Harm::Loss));
        assert_eq!(verdicts(20, 38, 0.0), [Verdict::Go; 19]);
        assert_eq!(verdicts(39, 39, 0.0), [Verdict::Again]);
    }

    #[test]
    fn a_long_queue_is_harm_too() {
        let mut guard = Guard::default();
        let verdicts: Vec<_> =
            (1..=3).map(|at| guard.on_window(&second(at, 0.0, 600), &safety())).collect();
        assert_eq!(verdicts[2], Verdict::Back(Harm::Delay));
    }
}
