//! SCReAMv2: a window by which media is self-clocked, and a target that is what the window carries
//! in a round trip.
//!
//! Read first: draft-ietf-rmcat-rfc8298bis (SCReAMv2; until 2025 draft-johansson-ccwg-rfc8298bis-
//! screamv2). The comments have its section titles and variables, as section numbers move between
//! drafts. `window.rs` has the reference window, `delay.rs` the queueing delay, this file the
//! rates.
//!
//! Where it departs, or is silent:
//! * A loss or a mark reduces the window once in a round trip, as the draft says; its pseudo-code
//!   permits it once in a virtual round trip of 25 ms.
//! * The queue of media at the sender is the transport's, and so are `rate_adjust_factor` and
//!   `frame_size_dev`, which correct the target by it. They count as zero here.
//! * The clock drift that the draft corrects by a long average is left to the least delay of ten
//!   minutes (`one_way.rs`).
//! * Without `on_feedback` acknowledgements are the arrivals, and the window is the reference
//!   window without the overhead for frames. It begins with the initial window of the transport.
//! * A timeout leaves the least window (RFC 5681 §3.1).

mod delay;
mod knobs;
#[cfg(test)]
mod tests;
mod window;

use trimtab_units::{Bytes, Duration, Rate, Time};

use self::delay::Delay;
use self::knobs::Values;
use self::window::{LEAST, Sign, Window};
use crate::by_rate::{self, Transport};
use crate::knob::knob_methods;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::one_way::OneWay;
use crate::{
    Ack, Algorithm, Config, CongestionControl, Feedback, Knob, Loss, Marked, Phase, Sent, Timeout,
};

/// Flows of shorter round trips grow and fall as if theirs were so long, VIRTUAL_RTT.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Bytes in flight by the reference window, REF_WND_OVERHEAD_MIN and what is added where the delay
/// is steady, up to REF_WND_OVERHEAD_MAX.
const OVERHEAD: (f64, f64) = (1.5, 1.5);
/// Least rate that pacing goes by, RATE_PACE_MIN.
const PACE_MIN: Rate = Rate::from_bits_per_sec(50_000);
/// Pacing is relaxed from this share of the highest target on, up to this factor:
/// RELAXED_PACING_LIMIT_LOW, MAX_RELAXED_PACING_FACTOR.
const RELAXED: (f64, f64) = (0.8, 4.0);
/// Headers of a packet, PACKET_OVERHEAD, and the target's distance to what the window carries.
const HEADERS: Bytes = Bytes::new(20);
const BELOW: f64 = 1.2;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "scream",
    about: "for media: a window that queueing delay, losses and marks shrink, and a target below it",
    source: "draft-ietf-rmcat-rfc8298bis (SCReAMv2)",
    knobs: Scream::KNOBS,
    presets: &[],
    build: |config| Scream::new(config).into(),
};

/// The SCReAM state machine.
///
/// ```text
///   arrivals ─▶ queueing delay ─▶ average, variation, target ─┐
///   losses, marks ────────────────────────────────────────────┴▶ reference window ─▶ target
/// ```
#[derive(Clone, Debug)]
pub struct Scream {
    config: Config,
    values: Values,
    /// `None` before anything arrived.
    over: Option<Transport>,
    /// Whether there was no congestion yet.
    starting: bool,
    window: Window,
    delay: Delay,
    way: OneWay,
    srtt: Duration,
}

impl Scream {
    /// What can be turned.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        let values = Values::default();
        Self {
            config: *config,
            values,
            over: None,
            starting: true,
            window: Window::new(config.initial_window),
            delay: Delay::new(&values),
            way: OneWay::default(),
            srtt: Duration::ZERO,
        }
    }

    /// Goes on with a window, without what was seen.
    fn begin(&mut self, window: Bytes, starting: bool) {
        self.window = Window::new(window);
        self.delay = Delay::new(&self.values);
        self.way = OneWay::default();
        self.starting = starting;
    }

    /// Packets arrived or were lost.
    fn receive(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        let (mut arrived, mut packets, mut marked) = (Bytes::ZERO, 0_u32, 0_u32);
        let mut sign = None;
        for packet in feedback.packets {
            let news = self.window.is_news(packet.sent_at);
            let Some(arrival) = packet.arrived_at else {
                if news {
                    sign = Some(Sign::Loss);
                }
                continue;
            };
            let queued = self.way.queued(packet.sent_at, arrival, now);
            let small = self.window.small(self.config.mss);
            self.delay.add(now, queued, self.srtt, small, &self.values);
            packets += 1;
            if packet.marked {
                marked += 1;
                // L4S reduces by the share, not once in a round trip.
                if news || self.values.l4s {
                    sign = sign.or(Some(Sign::Mark));
                }
            } else {
                arrived += packet.bytes;
            }
        }
        if let Some(lossy) = self.window.on_report(now, self.srtt, packets, marked) {
            self.delay.on_round(lossy);
        }
        if sign.is_none() && self.delay.excess() > 0.0 {
            sign = Some(Sign::Queue);
        }
        if let Some(sign) = sign {
            self.reduce(sign, now);
        }
        let Self { srtt, delay, values, config, .. } = self;
        self.window.grow(arrived, now, *srtt, delay, config.mss, values);
    }

    fn reduce(&mut self, sign: Sign, now: Time) {
        let Self { srtt, delay, values, config, .. } = self;
        if self.window.reduce(sign, now, *srtt, delay, config.mss, values) {
            self.starting = false;
        }
    }

    fn reference(&self) -> Bytes {
        Bytes::from_f64(self.window.bytes).max(self.least())
    }

    /// "Media Rate Control": a little less than the window carries in a round trip.
    fn rate(&self) -> Rate {
        let [least, most] = [self.values.rate_min, self.values.rate_max].map(Rate::from_mbps);
        let rate = if self.srtt.is_zero() {
            Rate::from_mbps(self.values.rate_start)
        } else {
            let mss = self.config.mss;
            let few = 1.0 - (self.window.small(mss) - 0.1).clamp(0.0, 0.2);
            let payload = mss.ratio(mss + HEADERS);
            (self.reference() / self.srtt).mul_f64(few * payload / BELOW)
        };
        rate.min(most).max(least)
    }

    /// "Packet Pacing".
    fn pace(&self) -> Rate {
        let used = self.rate().mbps() / self.values.rate_max;
        let relaxed = ((used - RELAXED.0) / (1.0 - RELAXED.0)).min(1.0);
        let slower = (1.0 - relaxed).clamp(1.0 / RELAXED.1, 1.0);
        self.rate().max(PACE_MIN).mul_f64(self.values.headroom / slower)
    }

    /// Thresholds of the delay follow at once.
    fn on_knob(&mut self, _place: usize) {
        if self.over.is_none() {
            self.delay = Delay::new(&self.values);
        }
    }
}

impl CongestionControl for Scream {
    fn on_established(&mut self, rtt: Duration) {
        self.srtt = rtt;
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.window.on_sent(sent.inflight);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        if self.over == Some(Transport::Media) {
            return;
        }
        self.over = Some(Transport::Stream);
        by_rate::as_feedback(ack, |feedback| self.receive(feedback));
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if self.over != Some(Transport::Media) {
            // What acknowledgements told is of another kind; media begins with the least window.
            let start = Rate::from_mbps(self.values.rate_start) * self.srtt;
            let window = if self.starting { LEAST.max(start) } else { self.reference() };
            let flight = feedback.inflight;
            self.begin(window, self.starting);
            self.window.on_sent(flight);
            self.over = Some(Transport::Media);
        }
        self.receive(feedback);
    }

    /// Feedback of media has the losses of each packet.
    fn on_loss(&mut self, loss: &Loss) {
        if self.over != Some(Transport::Media) && self.window.is_news(loss.newest_sent_at) {
            self.reduce(Sign::Loss, loss.now);
        }
    }

    /// Feedback of media has the marks of each packet.
    fn on_marked(&mut self, marked: &Marked) {
        if self.over != Some(Transport::Media) && self.window.is_news(marked.newest_sent_at) {
            self.reduce(Sign::Mark, marked.now);
        }
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.begin(self.least(), false);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = Config { seed: self.config.seed, ..*limits };
    }

    fn window(&self) -> Bytes {
        if self.over != Some(Transport::Media) {
            return self.reference();
        }
        // "Send Window Calculation".
        let steady = self.delay.steadiness(self.window.small(self.config.mss));
        self.reference().mul_f64(OVERHEAD.0 + OVERHEAD.1 * steady)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.over {
            Some(Transport::Media) => Some(self.pace()),
            // A stream fills the window, not the target below it.
            Some(Transport::Stream) if !self.srtt.is_zero() => {
                let rate = self.reference() / self.srtt;
                Some(rate.mul_f64(self.values.headroom).max(PACE_MIN))
            }
            _ => (self.srtt.is_zero()).then(|| self.pace()),
        }
    }

    fn target(&self) -> Option<Rate> {
        Some(self.rate())
    }

    fn phase(&self) -> Phase {
        if self.starting { Phase::SlowStart } else { Phase::Steady }
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Scream {
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_cut_window(self.reference(), path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.srtt = from.srtt;
        self.over = Some(Transport::Stream);
        self.begin(from.window, from.starved);
        self.window.on_sent(from.inflight);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.srtt = srtt;
        self.over = Some(Transport::Stream);
        self.begin(window, true);
    }
}
