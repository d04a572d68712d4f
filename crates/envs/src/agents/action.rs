//! What an agent turns, how, and for how long.

use std::str::FromStr;

use trimtab_sim::Dial;
use trimtab_units::{Bytes, Duration, Rate};

use super::measure::PACKET;

/// A rate needs no window; this much in flight is a sender's memory.
const WINDOW_MAX: Bytes = Bytes::new(1 << 30);
/// Aurora's `DELTA_SCALE`.
const AURORA_SCALE: f64 = 0.025;

/// What an agent turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// A pacing rate in Mbit/s, without a window.
    Rate,
    /// A congestion window in packets of 1500 bytes. The transport paces by it.
    Window,
}

impl Knob {
    /// The flow's dial at this value.
    pub(super) fn dial(self, value: f64, stop: bool) -> Dial {
        match self {
            Self::Rate => Dial { window: WINDOW_MAX, rate: Some(Rate::from_mbps(value)), stop },
            Self::Window => Dial { window: PACKET.mul_f64(value), rate: None, stop },
        }
    }

    /// What an agent begins with that names nothing else: QUIC's initial window of ten packets
    /// (RFC 9002 §7.2), or ten packets in a round trip.
    pub(super) fn start(self, rtt: Duration) -> f64 {
        match self {
            Self::Rate => (PACKET * 10 / rtt.max(Duration::from_millis(1))).mbps(),
            Self::Window => 10.0,
        }
    }
}

/// How an action turns the knob.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Its name.
    pub name: &'static str,
    /// What an action means.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The least and the most that an action is; `None` takes the knob's own range.
    pub range: Option<(f64, f64)>,
    /// The knob's next value, from its present one and the action.
    pub of: fn(f64, f64) -> f64,
}

/// Every way. A further one is a line here.
#[rustfmt::skip]
pub const TURNS: [Turn; 3] = [
    Turn { name: "set", about: "the value itself", source: "", range: None, of: |_, action| action },
    Turn { name: "aurora", about: "times 1 + 0.025 a, or over 1 - 0.025 a where a is negative", source: "Aurora, ICML 2019, §3.1", range: Some((-10.0, 10.0)), of: aurora },
    Turn { name: "orca", about: "times 2^a", source: "Orca, SIGCOMM 2020, §4.2", range: Some((-2.0, 2.0)), of: |now, action| now * libm::exp2(action) },
];

fn aurora(now: f64, action: f64) -> f64 {
    let change = AURORA_SCALE * action;
    if change >= 0.0 { now * (1.0 + change) } else { now / (1.0 - change) }
}

/// How long an action lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// So many mean round-trip times of the interval before; of several agents, the longest.
    RoundTrips(f64),
    /// So long.
    Time(Duration),
    /// To the next acknowledgement. One agent only.
    Ack,
}

impl FromStr for Interval {
    type Err = String;

    /// Parses `1rtt`, `0.5rtt`, `30ms` or `ack`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("interval {text:?}: write e.g. \"1rtt\", \"30ms\" or \"ack\"");
        if text == "ack" {
            return Ok(Self::Ack);
        }
        if let Some(number) = text.strip_suffix("rtt") {
            let trips: f64 = number.trim().parse().map_err(|_| wrong())?;
            let is_some = (0.01..=1_000.0).contains(&trips);
            return if is_some { Ok(Self::RoundTrips(trips)) } else { Err(wrong()) };
        }
        let time: Duration = text.parse().map_err(|_| wrong())?;
        if time.is_zero() { Err(wrong()) } else { Ok(Self::Time(time)) }
    }
}
