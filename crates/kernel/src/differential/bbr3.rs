//! BBRv3: the C core against `trimtab_cc::Bbr3`.
//!
//! Both count bytes in integers, so windows, pacing rates and phases are the same, not nearly the
//! same.

use rand::RngExt as _;
use trimtab_cc::{
    Bbr3, CongestionControl as _, Idle, Loss, LostPacket, Marked, Sent, Timeout, set_knob,
};
use trimtab_units::{Duration, Rate};

use super::bbr_socket::phase_number;
use super::bbr3_core::{CoreBbr3, CoreSent};
use super::bbr3_socket::SocketBbr3;
use super::driver::{Acked, Course, Pair, Path, ran, time};
use super::path::spread;
use super::tally::tally;
use super::{EVENTS, SEQUENCES};
use crate::algorithm::Algorithm;
use crate::knobs::{self, Place, Words};

/// `enum tt_bbr3_mode`.
const MODES: usize = 7;

tally! {
    /// How often the two agreed, and where the sequences went.
    struct Outcome {
        events: u64,
        windows: u64,
        pacing: u64,
        phases: u64,
        /// Events in each state, by its number.
        seen: [u64; MODES],
        /// With a bound on what is in flight.
        bounded: u64,
        /// Packets whose flight was looked for; those of which it was found within an eighth, or
        /// four packets; and
        /// those after which fewer packets were found lost than had been, and more.
        asked: u64,
        near: u64,
        fewer: u64,
        more: u64,
    }
}

struct Both {
    rust: Bbr3,
    socket: SocketBbr3,
    sent: CoreSent,
    words: Words,
    mss: u64,
    seen: Outcome,
}

impl Both {
    fn new(path: &mut Path, seed: u64) -> Self {
        let words = knobs::defaults(Algorithm::Bbr3);
        let window = 10 * path.mss;
        let mut both = Self {
            rust: Bbr3::new(&path.config(seed)),
            socket: SocketBbr3::new(CoreBbr3::new(&words, path.mss, window, 0), seed),
            sent: CoreSent::new(),
            words,
            mss: path.mss,
            seen: Outcome::default(),
        };
        for place in knobs::places(Algorithm::Bbr3) {
            if path.rng.random_bool(0.2) {
                both.turn(path, place);
            } else {
                both.set(place);
            }
        }
        // `init` finds the handshake's round-trip time in the socket, where there is one.
        if path.rng.random_bool(0.5) {
            let rtt = spread(&mut path.rng, 500.0, 300_000.0) as u64;
            both.rust.on_established(Duration::from_micros(rtt));
            both.socket = SocketBbr3::new(CoreBbr3::new(&both.words, path.mss, window, rtt), seed);
        }
        both
    }

    /// Turns a knob.
    fn turn(&mut self, path: &mut Path, place: Place) {
        let knob = place.knob;
        // Long intervals of ProbeRTT and long waits would leave those out.
        let most = if knob.unit == "s" { knob.max.min(5.0) } else { knob.max };
        let value = if knob.min > 0.0 {
            spread(&mut path.rng, knob.min, most)
        } else {
            path.rng.random_range(knob.min..=most)
        };
        self.words[place.index] = place.encode(value);
        self.set(place);
    }

    /// Both get what the kernel's integer can say.
    fn set(&mut self, place: Place) {
        let knob = place.knob;
        let value = place.decode(self.words[place.index]).clamp(knob.min, knob.max);
        set_knob(&mut self.rust, knob.name, value).expect("in range");
        self.socket.core.set_knobs(&self.words);
    }
}

impl Pair for Both {
    const ACTS: u32 = 20;

    fn window(&self) -> u64 {
        self.rust.window().get() / self.mss
    }

    fn act(&mut self, path: &mut Path) {
        match path.rng.random_range(0..10) {
            0 => {
                self.rust.on_spurious_loss(time(path.now));
                self.socket.on_spurious_loss();
            }
            1..3 => {
                let index = path.rng.random_range(0..Bbr3::KNOBS.len());
                let place = knobs::places(Algorithm::Bbr3).nth(index).expect("one of them");
                self.turn(path, place);
            }
            _ => {
                let Some(acked) = path.acknowledge_nothing() else { return };
                self.rust.on_ack(&acked.ack);
                self.socket.on_ack(path, &acked);
            }
        }
    }

    fn on_sent(&mut self, _path: &Path, sent: &Sent, first: bool) {
        self.rust.on_sent(sent);
        self.socket.on_sent(sent, first);
    }

    fn on_ack(&mut self, path: &Path, acked: &Acked) {
        let lost = path.lost - acked.losses;
        let (before, prior) = (path.delivered - acked.packets, acked.prior_inflight);
        self.sent.note(path.now, path.srtt as u32, before as u32, prior as u32, lost as u32);
        if let Some(sample) = &acked.ack.rate {
            let (inflight, lost) = self.sent.find(acked.prior_delivered as u32);
            let truly = sample.tx_in_flight.get() / self.mss;
            let since = path.lost - sample.lost.get() / self.mss;
            self.seen.asked += 1;
            self.seen.near += u64::from(u64::from(inflight).abs_diff(truly) <= (truly / 8).max(4));
            self.seen.more += u64::from(u64::from(lost) < since);
            self.seen.fewer += u64::from(u64::from(lost) > since);
        }
        self.rust.on_ack(&acked.ack);
        self.socket.on_ack(path, acked);
    }

    fn on_packets_lost(&mut self, path: &Path, lost: &LostPacket) {
        self.rust.on_packet_lost(lost);
        self.socket.on_lost(path, lost);
    }

    /// The packets were lost before.
    fn on_loss(&mut self, _path: &Path, loss: &Loss) {
        self.rust.on_loss(loss);
    }

    fn on_marked(&mut self, path: &Path, marked: &Marked) {
        self.rust.on_marked(marked);
        self.socket.on_marked(path, marked);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &Timeout) {
        self.rust.on_timeout(timeout);
        self.socket.core.on_timeout(path.now, 0);
    }

    fn on_idle(&mut self, path: &Path, idle: &Idle) {
        self.rust.on_idle(idle);
        self.socket.on_idle(path);
    }

    fn compare(&mut self) {
        let core = &self.socket.core;
        let phase = phase_number(self.rust.phase());
        let pacing = self.rust.pacing_rate().map_or(0, Rate::bytes_per_sec);
        let window = self.rust.window().get();
        self.seen.events += 1;
        self.seen.windows += u64::from(window == core.window());
        self.seen.pacing += u64::from(pacing == core.pacing());
        self.seen.phases += u64::from(phase == core.phase());
        self.seen.seen[core.mode() as usize] += 1;
        self.seen.bounded += u64::from(core.is_bounded());
    }
}

#[test]
fn the_core_of_bbr3_agrees_with_the_rust_algorithm_on_thousands_of_random_sequences() {
    let mut all = Outcome::default();
    let course = Course { jitter: true, loss: 0.4, marks: true, unrated: true, slow: true };
    for both in ran(0..SEQUENCES, course, EVENTS, Both::new) {
        all.add(&both.seen);
    }
    println!("{all:?}");
    let events = SEQUENCES * EVENTS;
    assert_eq!((all.windows, all.pacing, all.phases), (events, events, events), "{all:?}");
    // The sequences do go everywhere.
    let share = |part: u64| part as f64 / all.events as f64;
    assert!(all.seen.iter().all(|part| share(*part) > 0.002), "{all:?}");
    assert!(share(all.bounded) > 0.02, "{all:?}");
}

/// Linux does not keep with a packet what was in flight and lost when it was sent: it is found by a
/// few moments.
#[test]
fn what_was_in_flight_when_a_packet_was_sent_is_found() {
    let mut all = Outcome::default();
    let course = Course { jitter: true, loss: 0.02, marks: false, unrated: false, slow: false };
    for both in ran(0..SEQUENCES / 10, course, EVENTS, Both::new) {
        all.add(&both.seen);
    }
    println!("{all:?}");
    let share = |part: u64| part as f64 / all.asked as f64;
    assert!(share(all.near) > 0.75, "{all:?}");
    // Losses of the eighth of a round trip before it was sent may count, too.
    assert!(share(all.fewer) < 0.001 && share(all.more) < 0.1, "{all:?}");
}
