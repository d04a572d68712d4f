//! A random path, and what happens on it: the events that both sides of a comparison get.
//!
//! The Rust side's window is what is in flight. Packets are counted, so that the core, which plays
//! the kernel's algorithm, and the Rust algorithm, which counts bytes, see the same.

use std::collections::VecDeque;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::{Ack, Config, Idle, Loss, LostPacket, Marked, RateSample, Sent, Timeout};
use trimtab_units::{Bytes, Duration, Time};

use super::path::spread;

/// Events are drawn out of so many.
const ODDS: u32 = 2000;
/// A retransmission timeout.
const RTO: Duration = Duration::from_millis(300);

pub(super) fn time(us: u64) -> Time {
    Time::from_micros(us)
}

/// What is compared: a Rust algorithm and the core, in whatever roles.
pub(super) trait Pair {
    /// How often something happens that has nothing to do with the path, in 2,000 events.
    const ACTS: u32;

    /// What the Rust side keeps in flight, in packets.
    fn window(&self) -> u64;

    /// Knobs are turned, or the like.
    fn act(&mut self, path: &mut Path);

    /// A packet left; `first` where nothing else was in flight.
    fn on_sent(&mut self, path: &Path, sent: &Sent, first: bool);

    fn on_ack(&mut self, path: &Path, acked: &Acked);

    /// The packets of the next [`on_loss`](Self::on_loss), as one.
    fn on_packets_lost(&mut self, _path: &Path, _lost: &LostPacket) {}

    fn on_loss(&mut self, path: &Path, loss: &Loss);

    /// An acknowledgement tells of congestion marks.
    fn on_marked(&mut self, path: &Path, marked: &Marked);

    /// Everything in flight was written off.
    fn on_timeout(&mut self, path: &Path, timeout: &Timeout);

    /// Everything arrived, and nothing is sent for a while that is longer than a retransmission timeout.
    fn on_idle(&mut self, path: &Path, idle: &Idle);

    /// After each event.
    fn compare(&mut self);
}

/// An acknowledgement, and what the kernel knows of it besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) ack: Ack,
    pub(super) packets: u64,
    /// 0 without a sample.
    pub(super) rtt_us: u64,
    pub(super) newest_sent_us: u64,
    /// Packets that were declared lost by it.
    pub(super) losses: u64,
    /// Of the delivery rate, in packets and microseconds; a time of 0 without a sample.
    pub(super) rate: (u64, u64),
    /// Packets delivered when the newest that it acknowledges was sent.
    pub(super) prior_delivered: u64,
    /// Packets in flight and before it.
    pub(super) inflight: u64,
    pub(super) prior_inflight: u64,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent_us: u64,
    /// Packets delivered by then, lost, and in flight with this one.
    delivered: u64,
    lost: u64,
    inflight: u64,
    app_limited: bool,
}

/// Pairs after they ran on random paths of a kind, one for each seed.
pub(super) fn ran<P: Pair>(
    seeds: impl Iterator<Item = u64>,
    course: Course,
    events: u64,
    begin: impl Fn(&mut Path, u64) -> P,
) -> impl Iterator<Item = P> {
    seeds.map(move |seed| {
        let mut path = Path::new(seed, course);
        let mut pair = begin(&mut path, seed);
        path.run(&mut pair, events);
        pair
    })
}

/// Where recovery stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Episode {
    /// When it began: what was sent until then belongs to it.
    start: u64,
    open: bool,
}

pub(super) struct Path {
    pub(super) rng: Pcg64Mcg,
    pub(super) mss: u64,
    pub(super) now: u64,
    pub(super) srtt: u64,
    pub(super) last_sent: u64,
    /// Packets delivered, lost, and no longer in flight, since the beginning.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) gone: u64,
    base: u64,
    /// Packets per second.
    rate: f64,
    buffer: u64,
    jitter: u64,
    loss: f64,
    /// The share of the acknowledgements that tell of marks.
    marks: f64,
    least: u64,
    /// Oldest first.
    flying: VecDeque<Packet>,
    episode: Episode,
    /// When the window was last cut for a mark, until something that was sent since arrives.
    reduced: Option<u64>,
    /// Whether there are samples of the delivery rate.
    rated: bool,
    course: Course,
    /// The application has less than the window would take.
    slow: bool,
}

/// What a sequence may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) jitter: bool,
    /// The most that is lost at random.
    pub(super) loss: f64,
    /// Whether some sequences have congestion marks.
    pub(super) marks: bool,
    /// Whether some sequences have no samples of the delivery rate.
    pub(super) unrated: bool,
    /// Whether the application has at times less than the window would take.
    pub(super) slow: bool,
}

impl Path {
    pub(super) fn new(seed: u64, course: Course) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mss = [536, 1200, 1448, 8948][rng.random_range(0..4)];
        let base = spread(&mut rng, 500.0, 300_000.0) as u64;
        Self {
            mss,
            base,
            rate: spread(&mut rng, 100.0, 100_000.0),
            buffer: spread(&mut rng, 5.0, 2000.0) as u64,
            jitter: if course.jitter && rng.random_bool(0.5) { base / 8 } else { 0 },
            loss: if rng.random_bool(0.4) { 0.0 } else { spread(&mut rng, 1e-4, course.loss) },
            marks: if course.marks && seed % 3 == 1 { spread(&mut rng, 1e-4, 0.3) } else { 0.0 },
            rng,
            now: 1_000_000,
            srtt: 0,
            last_sent: 0,
            delivered: 0,
            lost: 0,
            gone: 0,
            least: u64::MAX,
            flying: VecDeque::new(),
            episode: Episode::default(),
            reduced: None,
            rated: !(course.unrated && seed.is_multiple_of(4)),
            course,
            slow: false,
        }
    }

    /// Of the Rust side.
    pub(super) fn config(&self, seed: u64) -> Config {
        Config {
            mss: Bytes::new(self.mss),
            initial_window: self.bytes(10),
            min_window: Bytes::new(self.mss),
            paced: false,
            seed,
            clock: Duration::ZERO,
        }
    }

    pub(super) fn bytes(&self, packets: u64) -> Bytes {
        Bytes::new(packets * self.mss)
    }

    pub(super) fn inflight(&self) -> u64 {
        self.flying.len() as u64
    }

    /// Packets sent since the beginning.
    pub(super) fn sent_to(&self) -> u64 {
        self.gone + self.inflight()
    }

    /// Whether losses are being repaired, or a mark is being answered (the kernel's state is CWR or beyond).
    pub(super) fn in_recovery(&self) -> bool {
        self.episode.open || self.reduced.is_some()
    }

    /// Some events.
    pub(super) fn run(&mut self, pair: &mut impl Pair, events: u64) {
        for _ in 0..events {
            self.event(pair);
            pair.compare();
        }
    }

    fn event<P: Pair>(&mut self, pair: &mut P) {
        if self.flying.is_empty() {
            self.send(pair);
        }
        match self.rng.random_range(0..ODDS) {
            0 => self.timeout(pair),
            1..4 => self.pause(pair),
            4 => self.rate = (self.rate * spread(&mut self.rng, 0.3, 3.0)).clamp(50.0, 2e5),
            drawn if drawn < 5 + P::ACTS => pair.act(self),
            _ => self.ack(pair),
        }
    }

    /// Fills the window, or a part of it, just after what made room in it.
    fn send(&mut self, pair: &mut impl Pair) {
        self.now += 1;
        let before = self.sent_to();
        loop {
            let window = pair.window().max(1);
            let full = if self.slow { window.div_ceil(2) } else { window };
            if self.inflight() >= full {
                break;
            }
            let first = self.flying.is_empty();
            let packet = Packet {
                sent_us: self.now,
                delivered: self.delivered,
                lost: self.lost,
                inflight: self.inflight() + 1,
                app_limited: self.slow,
            };
            self.flying.push_back(packet);
            let sent = Sent {
                now: time(self.now),
                bytes: Bytes::new(self.mss),
                inflight: self.bytes(self.inflight()),
                app_limited: self.slow,
            };
            pair.on_sent(self, &sent, first);
        }
        if self.sent_to() > before {
            self.last_sent = self.now;
        }
    }

    fn timeout(&mut self, pair: &mut impl Pair) {
        self.now += RTO.as_micros();
        let prior = self.inflight();
        self.lost += prior;
        self.gone += prior;
        self.flying.clear();
        self.episode = Episode { start: self.now, open: true };
        self.reduced = None;
        let timeout = Timeout {
            now: time(self.now),
            prior_inflight: self.bytes(prior),
            inflight: Bytes::ZERO,
        };
        pair.on_timeout(self, &timeout);
    }

    fn pause(&mut self, pair: &mut impl Pair) {
        self.delivered += self.inflight();
        self.gone += self.inflight();
        self.flying.clear();
        let idle = Duration::from_millis(self.rng.random_range(1..3000));
        self.now += idle.as_micros();
        self.slow = self.course.slow && self.rng.random_bool(0.3);
        if idle > RTO {
            pair.on_idle(self, &Idle { now: time(self.now), idle, rto: RTO });
        }
    }

    fn ack(&mut self, pair: &mut impl Pair) {
        let prior = self.inflight();
        let path = (self.base as f64 * self.rate / 1e6) as u64;
        let overflow = prior > path + self.buffer;
        let loses = self.rng.random_bool(self.loss) || (overflow && self.rng.random_bool(0.3));
        let lost = if loses { self.rng.random_range(1..=3).min(prior) } else { 0 };
        let lost_newest = self.flying.drain(..lost as usize).next_back();
        let packets = self.rng.random_range(1..=4).min(self.inflight());
        let newest = self.flying.drain(..packets as usize).next_back();
        let jitter = if self.jitter > 0 { self.rng.random_range(0..self.jitter) } else { 0 };
        let served = self.now + (packets as f64 * 1e6 / self.rate) as u64;
        self.now = served.max(newest.map_or(0, |newest| newest.sent_us) + self.base + jitter);
        if let Some(lost_newest) = lost_newest {
            self.lose(pair, lost, lost_newest, prior, packets);
        }
        let Some(newest) = newest else { return };
        self.reduced = self.reduced.filter(|&at| newest.sent_us <= at);
        if self.marks > 0.0 && self.rng.random_bool(self.marks) {
            self.mark(pair, newest, prior, packets);
        }
        self.delivered += packets;
        self.gone += packets;
        let rtt = self.now - newest.sent_us;
        self.srtt = if self.srtt == 0 { rtt } else { (7 * self.srtt + rtt) / 8 };
        self.least = self.least.min(rtt);
        let more_holes = self.rng.random_bool(0.1);
        self.episode.open &= newest.sent_us <= self.episode.start || more_holes;
        let acked = self.describe(newest, packets, lost, prior);
        pair.on_ack(self, &acked);
        self.send(pair);
    }

    /// The event of an acknowledgement.
    fn describe(&mut self, newest: Packet, packets: u64, losses: u64, prior: u64) -> Acked {
        let rtt = self.now - newest.sent_us;
        let sampled = self.rng.random_bool(0.98);
        let rate = (self.delivered - newest.delivered, rtt);
        let sample = RateSample {
            delivered: self.bytes(rate.0),
            interval: Duration::from_micros(rate.1),
            prior_delivered: self.bytes(newest.delivered),
            app_limited: newest.app_limited,
            tx_in_flight: self.bytes(newest.inflight),
            lost: self.bytes(self.lost - newest.lost),
        };
        let ack = Ack {
            now: time(self.now),
            acked: self.bytes(packets),
            rtt: sampled.then(|| Duration::from_micros(rtt)),
            srtt: Duration::from_micros(self.srtt),
            min_rtt: Duration::from_micros(self.least),
            inflight: self.bytes(self.inflight()),
            prior_inflight: self.bytes(prior),
            delivered: self.bytes(self.delivered),
            newest_sent_at: time(newest.sent_us),
            rate: self.rated.then_some(sample),
            cwnd_limited: !self.slow && self.rng.random_bool(0.95),
            in_recovery: self.episode.open,
        };
        Acked {
            ack,
            packets,
            rtt_us: if sampled { rtt } else { 0 },
            newest_sent_us: newest.sent_us,
            losses,
            rate: if self.rated { rate } else { (0, 0) },
            prior_delivered: newest.delivered,
            inflight: self.inflight(),
            prior_inflight: prior,
        }
    }

    /// An acknowledgement of nothing new, for a packet that was sent at the least round-trip time
    /// ago: its receiver may have waited with it.
    pub(super) fn acknowledge_nothing(&mut self) -> Option<Acked> {
        let now = self.now;
        let newest = *self.flying.front().filter(|packet| packet.sent_us < now)?;
        let inflight = self.inflight();
        let mut acked = self.describe(newest, 0, 0, inflight);
        (acked.ack.rate, acked.rate) = (None, (0, 0));
        Some(acked)
    }

    /// The answer takes a round trip, as that to losses, of which it may be a part.
    fn mark(&mut self, pair: &mut impl Pair, newest: Packet, prior: u64, acknowledged: u64) {
        self.reduced = Some(self.reduced.unwrap_or(self.now));
        let marked = Marked {
            now: time(self.now),
            newest_sent_at: time(newest.sent_us),
            inflight: self.bytes(self.inflight() + acknowledged),
            prior_inflight: self.bytes(prior),
        };
        pair.on_marked(self, &marked);
    }

    /// So many packets of those before the acknowledged ones are lost.
    fn lose(
        &mut self,
        pair: &mut impl Pair,
        lost: u64,
        newest: Packet,
        prior: u64,
        acknowledged: u64,
    ) {
        self.gone += lost;
        self.lost += lost;
        if !self.episode.open || newest.sent_us > self.episode.start {
            self.episode = Episode { start: self.now, open: true };
        }
        let packets = LostPacket {
            now: time(self.now),
            bytes: self.bytes(lost),
            sent_at: time(newest.sent_us),
            tx_in_flight: self.bytes(newest.inflight),
            lost_since_sent: self.bytes(self.lost - newest.lost),
            app_limited: newest.app_limited,
            delivered_at_send: self.bytes(newest.delivered),
            new_range: true,
        };
        pair.on_packets_lost(self, &packets);
        let loss = Loss {
            now: time(self.now),
            lost: self.bytes(lost),
            newest_sent_at: time(newest.sent_us),
            inflight: self.bytes(self.inflight() + acknowledged),
            prior_inflight: self.bytes(prior),
        };
        pair.on_loss(self, &loss);
    }
}
