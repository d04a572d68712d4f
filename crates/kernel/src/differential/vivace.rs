//! Vivace: the C core against `trimtab_cc::Vivace`.
//!
//! A gradient is a small difference, and its sign decides: one that is nearly zero may be negative
//! by fixed point alone, and from there on the two go different ways on the same path. So the
//! sequences are judged by how far they agree, to a millionth or so.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::migrate::{HandOver, Migrate as _, PathView};
use trimtab_cc::{
    Ack, CongestionControl as _, Idle, Loss, LostPacket, Marked, Phase, Sent, Timeout, Vivace,
    set_knob,
};
use trimtab_units::{Bytes, Duration, Rate};

use super::driver::{Acked, Course, Pair, Path, ran, time};
use super::path::spread;
use super::tally::tally;
use super::vivace_core::CoreVivace;
use crate::algorithm::Algorithm;
use crate::knobs::{self, Place, Words};

const SEQUENCES: u64 = 2000;
const EVENTS: u64 = 1500;
/// Rates agree to this share.
const AGREE: f64 = 1e-4;

tally! {
    /// How far the two agreed, and where the sequences went.
    struct Outcome {
        events: u64,
        /// Events up to the first after which they differed.
        agreed: u64,
        /// Different rates that were agreed on.
        rates: u64,
        starting: u64,
        /// Sequences that began with more than the initial window.
        opened: u64,
    }
}

struct Both {
    rust: Vivace,
    core: CoreVivace,
    words: Words,
    mss: u64,
    last: u64,
    differ: bool,
    seen: Outcome,
}

impl Both {
    fn new(path: &mut Path, seed: u64) -> Self {
        let words = knobs::defaults(Algorithm::Vivace);
        let mut both = Self {
            rust: Vivace::new(&path.config(seed)),
            core: CoreVivace::new(&words, path.mss, 10, seed % 2 == 1),
            words,
            mss: path.mss,
            last: 0,
            differ: false,
            seen: Outcome::default(),
        };
        for place in knobs::places(Algorithm::Vivace) {
            if path.rng.random_bool(0.2) {
                both.turn(path, place);
            } else {
                both.set(place, place.knob.default);
            }
        }
        let rtt = spread(&mut path.rng, 500.0, 300_000.0) as u64;
        both.rust.on_established(Duration::from_micros(rtt));
        both.core.on_established(rtt);
        both.seen.opened += u64::from(both.window() > 10);
        both
    }

    /// Turns a knob, on both to what the kernel's integer can say.
    fn turn(&mut self, path: &mut Path, place: Place) {
        let knob = place.knob;
        let value = match knob.name {
            "unified" | "early" | "brakes" => f64::from(path.rng.random_bool(0.5)),
            // Slow start should end, most of the time.
            "initial_rate" => path.rng.random_range(0.0..10.0),
            _ if knob.min > 0.0 => spread(&mut path.rng, knob.min, knob.max),
            _ => path.rng.random_range(knob.min..=knob.max),
        };
        self.set(place, value);
    }

    fn set(&mut self, place: Place, value: f64) {
        let knob = place.knob;
        self.words[place.index] = place.encode(value);
        let value = place.decode(self.words[place.index]).clamp(knob.min, knob.max);
        set_knob(&mut self.rust, knob.name, value).expect("in range");
        self.core.set_knobs(&self.words);
    }
}

impl Pair for Both {
    const ACTS: u32 = 2;

    fn window(&self) -> u64 {
        self.rust.window().get() / self.mss
    }

    fn act(&mut self, path: &mut Path) {
        let index = path.rng.random_range(0..Vivace::KNOBS.len());
        let place = knobs::places(Algorithm::Vivace).nth(index).expect("one of them");
        self.turn(path, place);
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent, _first: bool) {
        self.rust.on_sent(sent);
        // The packet itself is counted already.
        self.core.on_send(path.now, (path.sent_to() - 1) as u32, sent.app_limited.into());
    }

    fn on_ack(&mut self, path: &Path, acked: &Acked) {
        self.rust.on_ack(&acked.ack);
        self.core.on_ack(&[
            path.now,
            acked.newest_sent_us,
            acked.rtt_us,
            path.srtt,
            acked.packets,
            acked.rate.0,
            acked.rate.1,
        ]);
    }

    fn on_loss(&mut self, _path: &Path, loss: &Loss) {
        let packets = loss.lost.get() / self.mss;
        for i in 0..packets {
            self.rust.on_packet_lost(&LostPacket {
                now: loss.now,
                bytes: Bytes::new(self.mss),
                sent_at: loss.newest_sent_at,
                tx_in_flight: Bytes::ZERO,
                lost_since_sent: Bytes::ZERO,
                app_limited: false,
                delivered_at_send: Bytes::ZERO,
                new_range: i == 0,
            });
        }
        self.rust.on_loss(loss);
        self.core.on_lost(loss.newest_sent_at.as_micros(), packets as u32);
    }

    fn on_marked(&mut self, path: &Path, marked: &Marked) {
        self.rust.on_marked(marked);
        let inflight = marked.prior_inflight.get() / self.mss;
        self.core.on_marked(path.now, marked.newest_sent_at.as_micros(), inflight as u32);
    }

    fn on_timeout(&mut self, _path: &Path, timeout: &Timeout) {
        self.rust.on_timeout(timeout);
        self.core.on_timeout();
    }

    fn on_idle(&mut self, _path: &Path, idle: &Idle) {
        self.rust.on_idle(idle);
    }

    fn compare(&mut self) {
        let rust = self.rust.pacing_rate().map_or(0, Rate::bytes_per_sec);
        let core = self.core.pacing();
        let apart = rust.abs_diff(core) as f64 > (AGREE * rust as f64).max(1.5);
        let windows = self.window().abs_diff(self.core.window()) > 1 + self.window() / 1000;
        let starting = self.rust.phase() == Phase::SlowStart;
        self.differ |= apart || windows || starting != self.core.is_starting();
        self.seen.events += 1;
        if self.differ {
            return;
        }
        self.seen.agreed += 1;
        self.seen.rates += u64::from(rust != self.last);
        self.seen.starting += u64::from(starting);
        self.last = rust;
    }
}

#[test]
fn the_core_of_vivace_agrees_with_the_rust_algorithm_on_thousands_of_random_sequences() {
    let mut all = Outcome::default();
    let mut throughout = 0;
    let course = Course { jitter: true, loss: 0.2, marks: true, unrated: true, slow: true };
    for both in ran(0..SEQUENCES, course, EVENTS, Both::new) {
        throughout += u64::from(!both.differ);
        all.add(&both.seen);
    }
    println!("{all:?}, {throughout} of {SEQUENCES} sequences throughout");
    let share = |part: u64| part as f64 / all.events as f64;
    assert!(throughout * 100 >= SEQUENCES * 95, "only {throughout} sequences agree throughout");
    assert!(share(all.agreed) > 0.97, "{all:?}");
    // The sequences do go everywhere.
    assert!(all.rates > 20 * SEQUENCES && share(all.starting) < 0.8, "{all:?}");
    assert!(all.opened > SEQUENCES / 50, "{all:?}");
}

/// What a connection knows of its path when this is handed over.
fn seen(from: &HandOver) -> PathView {
    let mut view = PathView::new();
    view.on_ack(&Ack {
        now: from.now,
        acked: from.window,
        rtt: Some(from.min_rtt),
        srtt: from.srtt,
        min_rtt: from.min_rtt,
        inflight: from.inflight,
        prior_inflight: from.inflight,
        delivered: from.delivered,
        newest_sent_at: from.min_rtt_at,
        rate: None,
        cwnd_limited: true,
        in_recovery: false,
    });
    view
}

/// From what another algorithm hands over both go on at the same rate, in the same phase, with the
/// same window, and would hand over the same.
#[test]
fn the_core_of_vivace_takes_over_as_the_rust_algorithm() {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let words = knobs::defaults(Algorithm::Vivace);
    let mut starved = 0;
    for seed in 0..2000 {
        let path = Path::new(
            seed,
            Course { jitter: false, loss: 0.01, marks: true, unrated: false, slow: false },
        );
        let (mut rust, mut core) =
            (Vivace::new(&path.config(seed)), CoreVivace::new(&words, path.mss, 10, seed % 2 == 1));
        let min_rtt = spread(&mut rng, 500.0, 300_000.0) as u64;
        let srtt = min_rtt + (min_rtt as f64 * rng.random_range(0.0..2.0)) as u64;
        let window = path.bytes(rng.random_range(2..5000));
        let bandwidth = spread(&mut rng, 20_000.0, 1e9) as u64;
        let from = HandOver {
            now: time(9_000_000),
            window,
            rate: window / Duration::from_micros(srtt),
            srtt: Duration::from_micros(srtt),
            min_rtt: Duration::from_micros(min_rtt),
            min_rtt_at: time(8_000_000),
            bandwidth: Rate::from_bytes_per_sec(bandwidth),
            recent_bandwidth: Rate::from_bytes_per_sec(bandwidth),
            loss: 0.0,
            inflight: window,
            delivered: window,
            modelled: false,
            saw_empty_queue: false,
            starved: rng.random_bool(0.3),
        };
        if seed % 5 == 0 {
            rust.inherit(window, from.srtt);
            core.inherit(window.get(), srtt);
        } else {
            starved += u64::from(from.starved);
            rust.take_over(&from);
            core.take_over(&[
                9_000_000,
                window.get(),
                srtt,
                bandwidth,
                min_rtt,
                8_000_000,
                from.starved.into(),
            ]);
        }
        let rate = rust.pacing_rate().expect("it has one").bytes_per_sec();
        assert!(rate.abs_diff(core.pacing()) <= 1 + rate / 100_000, "{rate} {}", core.pacing());
        assert_eq!(rust.phase() == Phase::SlowStart, core.is_starting());
        let packets = rust.window().get() / path.mss;
        assert!(packets.abs_diff(core.window()) <= 1, "{packets} {}", core.window());
        let point = rust.operating_point(&seen(&from)).window.get() / path.mss;
        let handed = u64::from(core.operating_window());
        assert!(point.max(1).abs_diff(handed) <= 1, "{point} {handed}");
    }
    assert!(starved > 200, "{starved}");
}
