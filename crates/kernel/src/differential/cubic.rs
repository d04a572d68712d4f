//! CUBIC: the C core in the kernel's role against `trimtab_cc::Cubic` as Linux has it.

use rand::RngExt as _;
use trimtab_cc::{
    CongestionControl as _, Cubic, Idle, Loss, Marked, Phase, Sent, Timeout, set_knob,
};

use super::cubic_core::{CoreCubic, is_astray, root};
use super::cubic_socket::{SocketCubic, packets_of};
use super::driver::{Acked, Course, Pair, Path, ran};
use super::path::spread;
use super::tally::tally;
use super::{EVENTS, SEQUENCES};
use crate::algorithm::Algorithm;
use crate::knobs::{self, Words};

tally! {
    /// How often the two agreed, and where the sequences went.
    struct Outcome {
        events: u64,
        windows: u64,
        thresholds: u64,
        slow_start: u64,
        recovery: u64,
        exits: u64,
    }
}

struct Both {
    rust: Cubic,
    socket: SocketCubic,
    words: Words,
    mss: u64,
    seen: Outcome,
}

impl Both {
    fn new(path: &mut Path, seed: u64) -> Self {
        let mut rust = Cubic::new(&path.config(seed));
        let mut words = knobs::defaults(Algorithm::Cubic);
        set_knob(&mut rust, "linux", 1.0).expect("a knob");
        for place in knobs::places(Algorithm::Cubic) {
            let knob = place.knob;
            if path.rng.random_bool(0.5) && knob.name != "fast_convergence" {
                words[place.index] = place.encode(path.rng.random_range(knob.min..=knob.max));
            }
            let value = place.decode(words[place.index]).clamp(knob.min, knob.max);
            set_knob(&mut rust, knob.name, value).expect("in range");
        }
        let socket = SocketCubic::new(&words, 10);
        Self { rust, socket, words, mss: path.mss, seen: Outcome::default() }
    }

    fn is_recovering(&self) -> bool {
        self.rust.phase() == Phase::Recovery
    }
}

impl Pair for Both {
    const ACTS: u32 = 2;

    fn window(&self) -> u64 {
        self.rust.window().get() / self.mss
    }

    /// Turns the steepness or the decrease, on both to what the kernel's integer can say.
    fn act(&mut self, path: &mut Path) {
        let name = if path.rng.random_bool(0.5) { "c" } else { "beta" };
        let place = knobs::find(Algorithm::Cubic, name).expect("a knob");
        let value = spread(&mut path.rng, place.knob.min, place.knob.max);
        self.words[place.index] = place.encode(value);
        let value = place.decode(self.words[place.index]).clamp(place.knob.min, place.knob.max);
        set_knob(&mut self.rust, name, value).expect("in range");
        self.socket.core.set_knobs(&self.words);
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent, first: bool) {
        self.rust.on_sent(sent);
        if first {
            self.socket.core.on_first_sent(path.now, path.last_sent);
        }
    }

    fn on_ack(&mut self, path: &Path, acked: &Acked) {
        let before = self.is_recovering();
        self.rust.on_ack(&acked.ack);
        let after = self.is_recovering();
        self.socket.on_ack(path, acked, before, after);
    }

    fn on_loss(&mut self, path: &Path, loss: &Loss) {
        self.rust.on_loss(loss);
        self.socket.on_loss(path, loss.newest_sent_at.as_micros());
    }

    /// The kernel asks for a threshold, and reduces the window to it, as for losses (`tcp_enter_cwr`).
    fn on_marked(&mut self, path: &Path, marked: &Marked) {
        self.rust.on_marked(marked);
        self.socket.on_loss(path, marked.newest_sent_at.as_micros());
    }

    fn on_timeout(&mut self, path: &Path, timeout: &Timeout) {
        let before = self.is_recovering();
        self.rust.on_timeout(timeout);
        self.socket.on_timeout(path, before);
    }

    fn on_idle(&mut self, _path: &Path, idle: &Idle) {
        if self.socket.idles_alike() {
            self.rust.on_idle(idle);
            self.socket.adopt(self.rust.window(), self.rust.ssthresh(), self.mss);
        }
    }

    fn compare(&mut self) {
        let threshold = packets_of(self.rust.ssthresh(), self.mss);
        let phase = self.rust.phase();
        self.seen.events += 1;
        self.seen.windows += u64::from(self.window() == u64::from(self.socket.window));
        self.seen.thresholds += u64::from(threshold == self.socket.threshold);
        self.seen.slow_start += u64::from(phase == Phase::SlowStart);
        self.seen.recovery += u64::from(phase == Phase::Recovery);
    }
}

/// Windows are whole packets, so they are the same, not nearly the same.
#[test]
fn the_core_of_cubic_agrees_with_the_rust_algorithm_on_thousands_of_random_sequences() {
    let mut all = Outcome::default();
    let course = Course { jitter: true, loss: 0.05, marks: true, unrated: false, slow: false };
    for both in ran(0..SEQUENCES, course, EVENTS, Both::new) {
        all.add(&Outcome { exits: both.socket.exits, ..both.seen });
    }
    println!("{all:?}");
    let share = |part: u64| part as f64 / all.events as f64;
    assert_eq!((all.windows, all.thresholds), (SEQUENCES * EVENTS, SEQUENCES * EVENTS), "{all:?}");
    // The sequences do go everywhere.
    assert!(share(all.slow_start) > 0.02 && share(all.recovery) > 0.02, "{all:?}");
    assert!(all.exits > 100, "{all:?}");
}

/// What stood in `ssthresh` and `cwnd` when Linux 6.18 had left a hook out.
#[test]
fn a_window_that_no_hook_gave_is_put_right() {
    for given in [0, 2, 10, 2_097_151, 0x7fff_ffff] {
        assert!(!is_astray(given), "{given}");
    }
    for left_over in [2_097_152, 108_266_323, 2_165_326_096, u32::MAX] {
        assert!(is_astray(left_over), "{left_over}");
    }
    let words = knobs::defaults(Algorithm::Cubic);
    assert_eq!(CoreCubic::new(&words).put_right(20), 14, "as after a loss at 20 packets");
    assert_eq!(
        CoreCubic::new(&words).put_right(2_165_326_096),
        7,
        "a new connection's: nothing else is known"
    );
    assert_eq!(CoreCubic::new(&words).put_right(0), 7);
}

#[test]
fn the_cube_root_is_exact_to_its_last_bit() {
    for whole in [1u64, 2, 3, 10, 1023, 1024, 1_048_576, 2_097_151] {
        let cube = whole * whole * whole;
        assert_eq!(u64::from(root(cube)), whole);
        assert_eq!(u64::from(root(cube - 1)), whole - 1);
    }
    assert_eq!(root(0), 0);
}
