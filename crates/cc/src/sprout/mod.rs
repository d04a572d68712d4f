//! Sprout: infers the rate of a cellular link from what arrives, and keeps no more in flight than the
//! link will deliver within 100 ms with a probability of 95%.
//!
//! Read first: Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput
//! and Low Delay over Cellular Networks", NSDI 2013, §3. `model.rs` has the inference,
//! `forecast.rs` the forecast. Constants that the paper does not give are those of the authors'
//! program (`src/sprout/receiver.hh`).
//!
//! The paper's receiver infers and forecasts, and sends its forecasts to the sender. Here the sender
//! does both, from acknowledgements. So these things differ:
//!
//! * Packets count when their acknowledgement arrives. What the way back does to acknowledgements
//!   shows as a change of the link.
//! * The sender knows what it sent. Where packets are overdue, a tick's count is the link's, of none
//!   as well. Where none is, the link could have delivered that many or more. The paper's sender
//!   tells its receiver when to expect the next packet (§3.2, "time-to-next"), and each count above
//!   zero is taken for the link's; paced packets would then hold the forecast down for ever.
//! * There is a forecast in every tick. The paper's travel on packets of the other direction.
//! * Ticks pass when something happens. Nothing happens on a silent path, where a forecast would
//!   only fall.
//! * The least window takes the place of heartbeats (§3.4).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`). The model knows no signal of them.

mod forecast;
mod model;

use alloc::boxed::Box;

use trimtab_units::{Bytes, Duration, Time};

use self::forecast::Table;
use self::model::Belief;
use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{Ack, Algorithm, Config, CongestionControl, Knob, Loss, Marked, Phase, Sent, Timeout};

/// §3: the receiver's clock.
const TICK: Duration = Duration::from_millis(20);
/// A silence counts for no more ticks than this: a second without arrivals is an outage.
const TICKS_MAX: u64 = 50;
/// Ticks in which it is known how much was sent: 1.28 s. What was sent before is overdue.
const SENT: usize = 64;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "sprout",
    about: "keeps in flight what a link with a randomly moving rate will deliver within 100 ms \
            with 95% probability; for links of up to 12 Mbit/s",
    source: "Winstein, Sivaraman and Balakrishnan, NSDI 2013",
    knobs: Sprout::KNOBS,
    presets: &[],
    build: |config| Sprout::new(config).into(),
};

knobs! {
    /// The values of its knobs. Defaults: §3.3 and §3.4.
    struct Values {
        caution: f64 = 5.0, 1.0..=95.0, "%",
            "how likely the link may deliver less than the forecast; more fills faster links and \
             queues more (§5.5)";
        horizon: f64 = 5.0, 1.0..=8.0, "ticks",
            "ticks of 20 ms within which what is in flight should be delivered; more fills longer \
             paths and queues more";
    }
}

/// What left in each of the last ticks, so that it is known what is overdue.
#[derive(Clone, Debug)]
struct Departures {
    /// Bytes of each tick, by its number modulo the size.
    bytes: [Bytes; SENT],
    /// The tick that runs.
    tick: u64,
}

impl Departures {
    const NONE: Self = Self { bytes: [Bytes::ZERO; SENT], tick: 0 };

    fn slot(tick: u64) -> usize {
        (tick % SENT as u64) as usize
    }

    fn add(&mut self, bytes: Bytes) {
        self.bytes[Self::slot(self.tick)] += bytes;
    }

    fn next_tick(&mut self) {
        self.tick += 1;
        self.bytes[Self::slot(self.tick)] = Bytes::ZERO;
    }

    /// What left in the running tick and so many before it.
    fn recent(&self, ticks: u64) -> Bytes {
        let ticks = ticks.min(SENT as u64 - 1).min(self.tick);
        let from = self.tick - ticks;
        (from..=self.tick).fold(Bytes::ZERO, |sum, tick| sum + self.bytes[Self::slot(tick)])
    }
}

/// What is known of the link. In a box: it is 3 kB.
#[derive(Clone, Debug)]
struct Link {
    belief: Belief,
    departures: Departures,
}

/// The Sprout state machine.
#[derive(Clone, Debug)]
pub struct Sprout {
    config: Config,
    values: Values,
    link: Box<Link>,
    /// The end of the running tick; `None` before anything was sent.
    tick_ends: Option<Time>,
    /// Acknowledged in it.
    arrived: Bytes,
    inflight: Bytes,
    min_rtt: Duration,
    /// The forecast; the initial window before the first tick in which anything arrived.
    window: Option<Bytes>,
    ceiling: Ceiling,
}

impl Sprout {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            values: Values::default(),
            link: Box::new(Link { belief: Belief::new(), departures: Departures::NONE }),
            tick_ends: None,
            arrived: Bytes::ZERO,
            inflight: Bytes::ZERO,
            min_rtt: Duration::MAX,
            window: None,
            ceiling: Ceiling::default(),
        }
    }

    /// A full-size packet; never zero.
    fn packet(&self) -> Bytes {
        self.config.mss.max(Bytes::new(1))
    }

    /// Lets the ticks pass that are over.
    fn advance(&mut self, now: Time) {
        let mut ends = *self.tick_ends.get_or_insert(now + TICK);
        if ends > now {
            return;
        }
        let over = now.since(ends).as_nanos() / TICK.as_nanos() + 1;
        ends += TICK * over;
        for _ in 0..over.min(TICKS_MAX) {
            self.tick();
        }
        self.tick_ends = Some(ends);
        if self.window.is_some() {
            self.forecast();
        }
    }

    /// A tick is over (§3.2): the rate has moved, and what arrived tells where to.
    fn tick(&mut self) {
        let link = &mut self.link;
        link.belief.evolve(Table::get().motion());
        // Packets that left before this tick and a round trip should have arrived in it.
        let way = self.min_rtt.as_nanos() / TICK.as_nanos();
        let overdue = self.inflight > link.departures.recent(way);
        if !self.arrived.is_zero() {
            let packets = libm::round(self.arrived.ratio(self.config.mss.max(Bytes::new(1))));
            // A part of a packet is a packet (`advance_to()` of the authors' receiver.cc).
            let count = (packets as usize).max(1);
            if overdue {
                link.belief.observe(count, Table::get().motion());
            } else {
                Table::get().observe_at_least(&mut link.belief, count);
            }
            self.window.get_or_insert(self.config.initial_window);
        } else if overdue && self.window.is_some() {
            link.belief.observe(0, Table::get().motion());
        }
        self.arrived = Bytes::ZERO;
        link.departures.next_tick();
    }

    /// §3.4: what the link delivers within 100 ms, at the least with 95% probability. What is in
    /// flight is what it has to deliver first.
    fn forecast(&mut self) {
        let (ticks, caution) = (self.values.horizon as usize, self.values.caution / 100.0);
        let packets = Table::get().at_least(&self.link.belief, ticks, caution);
        self.window = Some(self.packet() * packets as u64);
    }

    fn on_knob(&mut self, _place: usize) {
        if self.window.is_some() {
            self.forecast();
        }
    }

    /// The link has about this rate; what was in flight is another algorithm's.
    fn begin_near(&mut self, from: &HandOver) {
        let packets_per_sec = from.rate.bytes_per_sec() as f64 / self.packet().as_f64();
        self.link.belief = Belief::near(packets_per_sec);
        self.link.departures = Departures::NONE;
        self.min_rtt = from.min_rtt;
        self.inflight = from.inflight;
        self.arrived = Bytes::ZERO;
        self.tick_ends = Some(from.now + TICK);
        self.forecast();
    }
}

impl CongestionControl for Sprout {
    fn on_sent(&mut self, sent: &Sent) {
        self.advance(sent.now);
        self.inflight = sent.inflight;
        self.link.departures.add(sent.bytes);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.advance(ack.now);
        if let Some(rtt) = ack.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.arrived += ack.acked;
        self.inflight = ack.inflight;
        let limits = ack.cwnd_limited && self.window() >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.packet());
    }

    /// §3.2: what was lost was drained, too, and says nothing of the rate.
    fn on_loss(&mut self, loss: &Loss) {
        self.advance(loss.now);
        self.inflight = loss.inflight;
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.ceiling.on_marked(marked, self.window(), self.packet());
        self.advance(marked.now);
    }

    /// The belief has seen the silence. What was in flight is overdue no more.
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.advance(timeout.now);
        self.inflight = timeout.inflight;
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = Config { initial_window: self.config.initial_window, ..*limits };
        self.ceiling.on_mtu(self.packet());
    }

    fn window(&self) -> Bytes {
        let window = self.window.unwrap_or(self.config.initial_window);
        window.min(self.ceiling.get()).max(self.config.min_window)
    }

    fn phase(&self) -> Phase {
        if self.window.is_some() { Phase::Steady } else { Phase::SlowStart }
    }

    /// A loss is no reason to send less.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Sprout {
    /// Its window is what 100 ms deliver at the least: on a shorter path more than a round trip's.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let carried = self.packet().mul_f64(self.link.belief.mean() * path.srtt().as_secs_f64());
        let window = if self.window.is_some() { self.window().min(carried) } else { self.window() };
        OperatingPoint::of_window(window.max(self.config.min_window), path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.begin_near(from);
    }

    /// Nothing is known of the link. The window stands until something arrives.
    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.config.initial_window = window;
    }

    /// At what is known to be carried: a forecast has no threshold.
    fn retreat(&mut self, from: &HandOver, _ssthresh: Bytes) {
        self.begin_near(&HandOver { rate: from.bandwidth, ..*from });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::link::{self, Link as TestLink};
    use crate::testing::{acked, hand_over};
    use trimtab_units::Rate;

    const MSS: Bytes = Bytes::new(1500);
    const RTT: Duration = Duration::from_millis(40);

    fn slow() -> TestLink {
        TestLink { rate: Rate::from_mbps(6.0), rtt: RTT, ..TestLink::fast() }
    }

    /// §5: on a link of a constant rate within its range it uses most of it, and what it has in
    /// flight is delivered within 100 ms: 40 of them are the path's, so 60 at the most are queue.
    #[test]
    fn what_is_in_flight_is_delivered_within_a_hundred_milliseconds() {
        let seen = link::run(slow(), &[("sprout", Time::ZERO)], |_, _, _| {});
        assert!(seen.shares[0] > 0.85, "{seen:?}");
        // 500 packets per second: 30 in 60 ms.
        assert!(seen.queue_mean < 30.0 && seen.loss == 0.0, "{seen:?}");
    }

    /// It is made for up to 1000 packets per second, and this link has 4000. What such a link
    /// delivers within 100 ms at the least, some 80 packets, this path does within 40.
    #[test]
    fn a_fast_link_is_not_filled() {
        let link = TestLink { rtt: RTT, ..TestLink::fast() };
        let seen = link::run(link, &[("sprout", Time::ZERO)], |_, _, _| {});
        assert!((0.3..=0.6).contains(&seen.shares[0]), "{seen:?}");
    }

    /// §3.2: overdue packets that do not arrive are an outage; a pause of the sender is not.
    #[test]
    fn silence_counts_as_an_outage_only_where_packets_are_overdue() {
        let steady = || {
            let mut cca = Sprout::new(&Config::with_mss(MSS, 0));
            let mut now = Time::ZERO;
            for _ in 0..500 {
                now += Duration::from_millis(2);
                let inflight = MSS * 20;
                cca.on_sent(&Sent { now, bytes: MSS, inflight, app_limited: false });
                cca.on_ack(&Ack { inflight, ..acked(now, now - RTT, MSS, RTT) });
            }
            (cca, now)
        };
        let (mut cca, mut now) = steady();
        let before = cca.window();
        // Nothing was in flight for half a second.
        cca.inflight = Bytes::ZERO;
        now += Duration::from_millis(500);
        let one = |cca: &mut Sprout, now| {
            cca.on_sent(&Sent { now, bytes: MSS, inflight: MSS, app_limited: true });
        };
        one(&mut cca, now);
        assert!(cca.window() >= before.mul_f64(0.2), "{} after {before}", cca.window());
        // Twenty packets were, all that time.
        let (mut cca, now) = steady();
        one(&mut cca, now + Duration::from_millis(500));
        assert_eq!(cca.window(), MSS * 2, "nothing is promised");
    }

    /// §5.5: less caution, more in flight.
    #[test]
    fn its_knobs_trade_delay_for_throughput() {
        let mut cca = Sprout::new(&Config::with_mss(MSS, 0));
        cca.take_over(&HandOver { rate: Rate::from_mbps(6.0), ..hand_over(MSS * 20, RTT) });
        let cautious = cca.window();
        assert!((MSS * 15..MSS * 45).contains(&cautious), "{cautious}: of 50 on the mean");
        crate::set_knob(&mut cca, "caution", 50.0).unwrap();
        assert!(cca.window() > cautious, "{}", cca.window());
        crate::set_knob(&mut cca, "caution", 5.0).unwrap();
        crate::set_knob(&mut cca, "horizon", 8.0).unwrap();
        assert!(cca.window() > cautious, "{}", cca.window());
    }

    #[test]
    fn a_long_silence_is_short_work() {
        let mut cca = Sprout::new(&Config::with_mss(MSS, 0));
        let sent = |secs| Sent {
            now: Time::from_secs(secs),
            bytes: MSS,
            inflight: MSS,
            app_limited: false,
        };
        cca.on_sent(&sent(1));
        cca.on_sent(&sent(4_000_000_000));
        assert_eq!(cca.link.departures.tick, TICKS_MAX);
        assert!(cca.tick_ends > Some(Time::from_secs(4_000_000_000)));
    }
}
