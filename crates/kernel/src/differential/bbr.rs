//! BBR: the C core against `trimtab_cc::Bbr`.
//!
//! Both count in integers, so windows, pacing rates and phases are the same, not nearly the same.

use rand::RngExt as _;
use trimtab_cc::{Bbr, CongestionControl as _, Idle, Loss, Marked, Sent, Timeout, set_knob};
use trimtab_units::{Duration, Rate};

use super::bbr_core::CoreBbr;
use super::bbr_socket::{SocketBbr, phase_number};
use super::driver::{Acked, Course, Pair, Path, ran, time};
use super::path::spread;
use super::tally::tally;
use super::{EVENTS, SEQUENCES};
use crate::algorithm::Algorithm;
use crate::knobs::{self, Place, Words};

tally! {
    /// How often the two agreed, and where the sequences went.
    struct Outcome {
        events: u64,
        windows: u64,
        pacing: u64,
        phases: u64,
        /// Events in each phase, by its number.
        seen: [u64; 5],
        policed: u64,
    }
}

struct Both {
    rust: Bbr,
    socket: SocketBbr,
    words: Words,
    mss: u64,
    seen: Outcome,
}

impl Both {
    fn new(path: &mut Path, seed: u64) -> Self {
        let words = knobs::defaults(Algorithm::Bbr);
        let mut both = Self {
            rust: Bbr::new(&path.config(seed)),
            socket: SocketBbr::new(CoreBbr::new(&words, path.mss, 10, 0), seed),
            words,
            mss: path.mss,
            seen: Outcome::default(),
        };
        for place in knobs::places(Algorithm::Bbr) {
            if path.rng.random_bool(0.2) {
                both.turn(path, place);
            }
        }
        // `init` finds the handshake's round-trip time in the socket, where there is one.
        if path.rng.random_bool(0.5) {
            let rtt = spread(&mut path.rng, 500.0, 300_000.0) as u64;
            both.rust.on_established(Duration::from_micros(rtt));
            both.socket = SocketBbr::new(CoreBbr::new(&both.words, path.mss, 10, rtt), seed);
        }
        both
    }

    /// Turns a knob, on both to what the kernel's integer can say.
    fn turn(&mut self, path: &mut Path, place: Place) {
        let knob = place.knob;
        // Long intervals of ProbeRTT would leave that out.
        let most = if knob.name == "probe_rtt_interval" { 10.0 } else { knob.max };
        let value = if knob.min > 0.0 {
            spread(&mut path.rng, knob.min, most)
        } else {
            path.rng.random_range(knob.min..=most)
        };
        self.words[place.index] = place.encode(value);
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
                self.socket.core.on_spurious_loss();
            }
            1..3 => {
                let index = path.rng.random_range(0..Bbr::KNOBS.len());
                let place = knobs::places(Algorithm::Bbr).nth(index).expect("one of them");
                self.turn(path, place);
            }
            _ => {
                let Some(acked) = path.acknowledge_nothing() else { return };
                self.on_ack(path, &acked);
            }
        }
    }

    fn on_sent(&mut self, _path: &Path, sent: &Sent, first: bool) {
        self.rust.on_sent(sent);
        let rate = self.rust.pacing_rate().expect("BBR always paces");
        self.socket.on_sent(sent, first, rate);
    }

    fn on_ack(&mut self, path: &Path, acked: &Acked) {
        self.rust.on_ack(&acked.ack);
        self.socket.on_ack(path, acked);
    }

    fn on_loss(&mut self, _path: &Path, loss: &Loss) {
        self.rust.on_loss(loss);
        self.socket.on_loss();
    }

    /// Linux's `bbr` does not answer.
    fn on_marked(&mut self, _path: &Path, marked: &Marked) {
        self.rust.on_marked(marked);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &Timeout) {
        self.rust.on_timeout(timeout);
        self.socket.on_timeout(path);
    }

    fn on_idle(&mut self, path: &Path, idle: &Idle) {
        self.rust.on_idle(idle);
        self.socket.on_idle(path);
    }

    fn compare(&mut self) {
        let core = &self.socket.core;
        let phase = phase_number(self.rust.phase());
        let pacing = self.rust.pacing_rate().map_or(0, Rate::bytes_per_sec);
        self.seen.events += 1;
        self.seen.windows += u64::from(self.window() == u64::from(core.window()));
        self.seen.pacing += u64::from(pacing == core.pacing());
        self.seen.phases += u64::from(phase == core.phase());
        self.seen.seen[phase as usize] += 1;
        self.seen.policed += u64::from(core.is_policed());
    }
}

#[test]
fn the_core_of_bbr_agrees_with_the_rust_algorithm_on_thousands_of_random_sequences() {
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
    assert!(share(all.policed) > 0.01, "{all:?}");
}

/// A path of a packet each millisecond, 40 ms long, for two seconds with each acknowledgement by
/// itself and for two with `step` as one, of which the last is distinguished (`told`) or not; the
/// window then, in packets.
fn steady(step: u64, told: bool) -> u32 {
    const RTT_MS: u64 = 40;
    let words = knobs::defaults(Algorithm::Bbr);
    let mut core = CoreBbr::new(&words, 1448, 10, RTT_MS * 1000);
    let mut on_acks = |ms: u64, acked: u64, before: u64| {
        let (now_us, delivered) = (1_000_000 + ms * 1000, ms);
        let prior = delivered.saturating_sub(RTT_MS);
        let (rtt_us, rate_us) = (RTT_MS * 1000, RTT_MS * 1000);
        let fields = [
            [now_us, 0, 1448, rtt_us, rtt_us, acked],
            [0, delivered, prior, 0, RTT_MS, RTT_MS + 1],
            [RTT_MS, rate_us, 0, 0, 0, before],
        ];
        core.on_ack(fields.as_flattened().try_into().expect("as many"));
    };
    for ms in 1..=2000 {
        on_acks(ms, 1, 0);
    }
    for ms in (2000 + step..=4000).step_by(step as usize) {
        on_acks(ms, step, if told { step - 1 } else { 0 });
    }
    core.window()
}

/// In the kernel several acknowledgements may be one to the algorithm. Those that came before it
/// was asked are no burst.
#[test]
fn acknowledgements_that_are_taken_together_are_no_burst() {
    let each = steady(1, true);
    assert!((80..=92).contains(&each), "twice the path's 40 packets and a little: {each}");
    assert!(steady(10, true).abs_diff(each) <= 1, "{} and {each}", steady(10, true));
    assert!(steady(10, false) >= each + 8, "{} and {each}", steady(10, false));
}
