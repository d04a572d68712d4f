//! A delay of the path: constant, or in steps as at a handover.

use std::fmt;
use std::str::FromStr;

use trimtab_net::DelayConfig;
use trimtab_units::{Duration, Time};

use super::steps;

/// A base round-trip time or a one-way delay: `20ms`, or steps that follow each other over and over
/// from the beginning of the run, `step:20ms@20s,150ms@20s`.
///
/// Every seed has the same steps at the same times, unlike those of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay(DelayConfig);

/// Why a text is no delay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DelayError(String);

impl From<Duration> for Delay {
    fn from(delay: Duration) -> Self {
        Self(delay.into())
    }
}

impl Delay {
    /// As links take it.
    pub fn config(&self) -> &DelayConfig {
        &self.0
    }

    /// The one that a run begins with.
    pub fn first(&self) -> Duration {
        self.0.at(Time::ZERO)
    }

    /// The longest: what sizes in BDP and the record of a cell go by. An operator sizes a buffer for
    /// the longest path, and a step up and the same step down then have the same buffer.
    pub fn longest(&self) -> Duration {
        self.0.longest()
    }

    /// Whether it steps.
    pub fn is_stepped(&self) -> bool {
        matches!(self.0, DelayConfig::Steps { .. })
    }

    /// Of a round-trip time, the delay there and the delay back: half of it each at any time.
    pub fn halves(&self) -> (DelayConfig, DelayConfig) {
        let half = |rtt: Duration| rtt.mul_f64(0.5);
        (self.0.map(half), self.0.map(|rtt| rtt - half(rtt)))
    }
}

impl FromStr for Delay {
    type Err = DelayError;

    /// Parses `20ms` or `step:20ms@20s,150ms@20s`.
    fn from_str(text: &str) -> Result<Self, DelayError> {
        let Some(steps) = text.trim().strip_prefix("step:") else {
            let delay: Duration = text.parse().map_err(|e| DelayError(format!("{e}")))?;
            return Ok(delay.into());
        };
        let example = "write step:DELAY,DELAY,…@TIME, e.g. step:20ms,150ms@20s";
        let steps = steps::read(steps, example);
        steps.map(|steps| Self(DelayConfig::steps(steps))).map_err(DelayError)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            DelayConfig::Fixed(delay) => delay.fmt(f),
            DelayConfig::Steps { steps, .. } => steps::write(f, steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_constant_or_in_steps() {
        for text in ["20ms", "step:20ms,150ms@20s", "step:20ms@20s,150ms@5s,1.5ms@1s"] {
            assert_eq!(text.parse::<Delay>().unwrap().to_string(), text);
        }
        let delay: Delay = "step:20ms@20s,151ms@1s".parse().unwrap();
        let ms = Duration::from_millis;
        assert_eq!((delay.first(), delay.longest(), delay.is_stepped()), (ms(20), ms(151), true));
        let (there, back) = delay.halves();
        let at = Time::from_millis(20_500);
        assert_eq!((there.at(at) + back.at(at), back.at(Time::ZERO)), (ms(151), ms(10)));
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let e = |text: &str| text.parse::<Delay>().unwrap_err().to_string();
        assert!(e("20").contains("needs a unit"), "{}", e("20"));
        assert!(e("step:20ms").contains("step:20ms,150ms@20s"));
        assert!(e("step:20ms@20s,150ms").contains("step:20ms,150ms@20s"));
        assert!(e("step:20ms@20").contains("needs a unit"));
        assert!(e("step:20Mbit/s@20s").contains("\"20Mbit/s\""));
        assert!(e("step:20ms@1us").contains("at least 1ms"));
    }
}
