//! Hand-overs: the C core in the kernel's role against `trimtab_cc::migrate::Switcher`, with
//! requests at random moments.
//!
//! The Rust side drives. Each time it switches, the core has to find that it is time, too, and
//! takes over from its own state. Windows of CUBIC and BBR are whole packets, Copa's are not, so
//! the window that goes over is the one of the Rust side: as the socket's window in the kernel, it
//! is none of the core's business. What BBR hands over is its own.

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use trimtab_cc::migrate::{HandOver, Switch, Switcher};
use trimtab_cc::{
    CongestionControl as _, Idle, Loss, LostPacket, Marked, Phase, Sent, Spec, Timeout,
};
use trimtab_units::Rate;

use super::AGREE;
use super::bbr_core::CoreBbr;
use super::bbr_socket::{SocketBbr, phase_number};
use super::bbr3_core::CoreBbr3;
use super::bbr3_socket::SocketBbr3;
use super::core::CoreCopa;
use super::cubic_socket::SocketCubic;
use super::driver::{Acked, Course, Pair, Path, ran, time};
use super::switch_core::{CorePath, cubic_is_converged};
use super::tally::tally;
use crate::algorithm::Algorithm;
use crate::knobs::{self, Words};
use crate::layout;

const SEQUENCES: u64 = 1500;
const EVENTS: u64 = 1500;
/// Those that hand over to each other. What Vivace hands over is a rate (`vivace.rs`), what Muses
/// does its window (`muses.rs`).
const SWITCHED: [Algorithm; 4] =
    [Algorithm::Copa, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Bbr3];
/// Values of δ that the kernel's integers have exactly.
const DELTAS: [f64; 4] = [0.5, 0.25, 0.0625, 0.03125];

tally! {
    /// How often the two agreed, and where the sequences went.
    struct Outcome {
        events: u64,
        /// Of these, with CUBIC and with BBR from a window of whole packets; and those of them
        /// after which both windows were the same to the packet.
        cubic: u64,
        cubic_windows: u64,
        bbr: u64,
        bbr_windows: u64,
        /// With BBRv3; and those after which both windows were the same to the byte.
        bbr3: u64,
        bbr3_windows: u64,
        /// With either from a part of a packet, which Copa had and the kernel does not; and those
        /// with the same windows.
        parts: u64,
        part_windows: u64,
        /// With Copa: after which both windows were the same within a hundredth. It decides by
        /// thresholds, see `mod.rs`.
        copa_windows: u64,
        /// Sum of the logarithms of the ratio of both windows.
        log_ratio: f64,
        modes: u64,
        /// After which the least round-trip time, its moment and the bandwidth were the same.
        paths: u64,
        full: u64,
        part: u64,
        /// Where nothing was known.
        over: u64,
        /// Of all these, those that the core made at the same event.
        agreed: u64,
        /// Full switches from BBR to Copa, and those of them in which the window handed over was
        /// the same to the packet. (CUBIC goes on with the core's.)
        points: u64,
        points_agreed: u64,
        /// Full switches to an algorithm that searches for what the path carries, since losses kept
        /// the old one from it.
        searches: u64,
        /// Full switches of each ordered pair, by their places in [`SWITCHED`].
        pairs: [[u64; 4]; 4],
    }
}

enum Running {
    Copa(CoreCopa),
    Cubic(SocketCubic),
    Bbr(SocketBbr),
    Bbr3(SocketBbr3),
}

impl Running {
    fn place(&self) -> usize {
        match self {
            Self::Copa(_) => 0,
            Self::Cubic(_) => 1,
            Self::Bbr(_) => 2,
            Self::Bbr3(_) => 3,
        }
    }
}

struct Both {
    rust: Switcher,
    core: Running,
    path: CorePath,
    /// What was asked for and waits: its knobs for the core.
    pending: Option<(Algorithm, Words)>,
    /// What the Rust side hands over, if it switches now: BBR and BBRv3 begin with windows of their
    /// own.
    record: Option<HandOver>,
    /// BBR began with a window of whole packets, or something else runs that did not get one from it.
    whole: bool,
    mss: u64,
    seed: u64,
    seen: Outcome,
}

/// An algorithm with some knobs, as both sides want it.
fn drawn(rng: &mut Pcg64Mcg) -> (Spec, Algorithm, Words) {
    let algorithm = SWITCHED[rng.random_range(0..SWITCHED.len())];
    let mut words = knobs::defaults(algorithm);
    let mut spec = Spec::new(algorithm.name()).expect("in the table");
    match algorithm {
        Algorithm::Copa => {
            let delta = DELTAS[rng.random_range(0..DELTAS.len())];
            for (name, value) in [("delta", delta), ("initial_window", 10.0)] {
                let place = knobs::find(algorithm, name).expect("a knob");
                words[place.index] = place.encode(value);
            }
            spec.set("delta", delta).expect("in range");
        }
        Algorithm::Cubic => {
            spec.set("linux", 1.0).expect("a knob");
            for place in knobs::places(algorithm) {
                let value = place.decode(words[place.index]);
                spec.set(place.knob.name, value).expect("in range");
            }
        }
        Algorithm::Bbr3 => {
            let place = knobs::find(algorithm, "loss_thresh").expect("a knob");
            spec.set("loss_thresh", place.decode(words[place.index])).expect("in range");
        }
        _ => {}
    }
    (spec, algorithm, words)
}

impl Both {
    fn new(path: &mut Path, seed: u64) -> Self {
        let (spec, algorithm, words) = drawn(&mut path.rng);
        Self {
            rust: Switcher::new(spec, &path.config(seed)),
            core: begin(algorithm, &words, path.mss, 10 * path.mss, seed),
            path: CorePath::new(),
            pending: None,
            record: None,
            whole: true,
            mss: path.mss,
            seed,
            seen: Outcome::default(),
        }
    }

    fn is_recovering(&self) -> bool {
        self.rust.phase() == Phase::Recovery
    }

    /// The core's view. The Rust side's phase is the new algorithm's already where it has switched,
    /// and then was no recovery.
    fn is_converged(&self, switched: bool) -> bool {
        match &self.core {
            Running::Copa(copa) => copa.is_converged(),
            Running::Bbr(bbr) => bbr.core.is_converged(),
            Running::Bbr3(bbr) => bbr.core.is_converged(),
            Running::Cubic(cubic) => {
                let recovering = !switched && self.is_recovering();
                cubic_is_converged(cubic.window, cubic.threshold, recovering)
            }
        }
    }

    /// The Rust side has switched, in this way; so does the core, which found it `due` or did not.
    fn switched(&mut self, path: &Path, how: u32, due: bool) {
        let (algorithm, words) = self.pending.take().expect("it was asked for");
        self.seen.agreed += u64::from(due);
        let handed = match (&self.core, how) {
            (Running::Bbr(bbr), layout::HOW_FULL) => {
                Some(bbr.core.operating_window(path.srtt as u32, path.inflight() as u32))
            }
            (Running::Bbr3(bbr), layout::HOW_FULL) => {
                Some(bbr.core.operating_window(path.srtt as u32, path.inflight() as u32))
            }
            _ => None,
        };
        let from = self.core.place();
        let window = match (handed, algorithm) {
            (Some(packets), Algorithm::Cubic) => u64::from(packets) * self.mss,
            _ => self.rust.window().get(),
        };
        if let (Some(packets), Algorithm::Copa, true) = (handed, algorithm, self.whole) {
            self.seen.points += 1;
            self.seen.points_agreed += u64::from(window / self.mss == u64::from(packets));
        }
        let given = match (how, self.record) {
            (layout::HOW_FULL, Some(record)) => record.window.get(),
            _ => window,
        };
        self.whole = match (handed, algorithm) {
            (_, Algorithm::Bbr) => given.is_multiple_of(self.mss),
            (Some(_), Algorithm::Cubic) => self.whole,
            _ => true,
        };
        self.core = begin(algorithm, &words, self.mss, window, self.seed);
        match how {
            layout::HOW_FULL => {
                self.seen.full += 1;
                self.seen.pairs[from][self.core.place()] += 1;
                self.seen.searches += u64::from(self.rust.phase() == Phase::SlowStart);
                self.take_over(path, window);
            }
            layout::HOW_PART => {
                self.seen.part += 1;
                self.inherit(path, &words, window);
            }
            _ => {
                self.seen.over += 1;
                if matches!(self.core, Running::Bbr(_) | Running::Bbr3(_)) {
                    self.inherit(path, &words, window);
                }
            }
        }
        self.path.on_taken_over(how);
    }

    fn take_over(&mut self, path: &Path, window: u64) {
        let inflight = path.inflight();
        let record = self.record;
        let record = || record.expect("a full switch hands over");
        match &mut self.core {
            Running::Copa(copa) => {
                let (delivered, inflight) = (path.delivered * self.mss, inflight * self.mss);
                let fields = [path.now, window, path.srtt, delivered, inflight];
                copa.take_over(&self.path, &fields);
            }
            Running::Cubic(cubic) => cubic.take_over(&self.path),
            Running::Bbr(bbr) => {
                let record = record();
                bbr.core.take_over(
                    &self.path,
                    &[
                        path.now,
                        record.window.get(),
                        path.srtt,
                        path.delivered,
                        inflight,
                        record.recent_bandwidth.bytes_per_sec(),
                        record.saw_empty_queue.into(),
                        record.modelled.into(),
                    ],
                );
                bbr.draw_if_used();
            }
            Running::Bbr3(bbr) => {
                let record = record();
                bbr.core.take_over(
                    &self.path,
                    &[
                        path.now,
                        record.window.get(),
                        path.srtt,
                        path.delivered,
                        inflight,
                        record.bandwidth.bytes_per_sec(),
                        (record.loss * f64::from(layout::SCALE_Q16)).ceil() as u64,
                        record.saw_empty_queue.into(),
                        record.modelled.into(),
                    ],
                );
                bbr.draw_if_used();
            }
        }
    }

    fn inherit(&mut self, path: &Path, words: &Words, window: u64) {
        match &mut self.core {
            Running::Copa(copa) => copa.inherit(),
            Running::Cubic(_) => {}
            Running::Bbr(bbr) => {
                let packets = (window / self.mss) as u32;
                let core = CoreBbr::new(words, self.mss, packets, path.srtt.max(1));
                *bbr = SocketBbr::new(core, self.seed);
            }
            Running::Bbr3(bbr) => {
                let core = CoreBbr3::new(words, self.mss, window, path.srtt.max(1));
                *bbr = SocketBbr3::new(core, self.seed);
            }
        }
    }

    /// After an acknowledgement, which may let a pending switch happen.
    fn follow(&mut self, path: &Path, before: u64) {
        let switched = self.rust.switches() > before;
        let converged = self.is_converged(switched);
        let due = self.path.is_due(layout::HOW_FULL, converged, path.in_recovery());
        self.path.note_converged(converged);
        if switched {
            self.switched(path, layout::HOW_FULL, due);
        }
    }

    /// Before a loss: the kernel asks CUBIC for a threshold, once for each episode of them.
    fn note_cut(&mut self, path: &Path) {
        if matches!(self.core, Running::Cubic(_)) && !self.rust.path().in_recovery() {
            self.path.on_cut(path.srtt);
        }
    }

    /// What the core and the kernel make of an acknowledgement, before any switch.
    fn core_ack(&mut self, path: &Path, acked: &Acked, before: bool, after: bool) {
        let ack = &acked.ack;
        match &mut self.core {
            Running::Copa(copa) => copa.on_ack(&[
                path.now,
                ack.acked.get(),
                acked.rtt_us,
                path.srtt,
                ack.delivered.get(),
                ack.inflight.get(),
                acked.newest_sent_us,
                ack.cwnd_limited.into(),
                ack.in_recovery.into(),
            ]),
            Running::Cubic(cubic) => cubic.on_ack(path, acked, before, after),
            Running::Bbr(bbr) => bbr.on_ack(path, acked),
            Running::Bbr3(bbr) => bbr.on_ack(path, acked),
        }
    }
}

impl Pair for Both {
    const ACTS: u32 = 20;

    fn window(&self) -> u64 {
        self.rust.window().get() / self.mss
    }

    /// Asks for an algorithm.
    fn act(&mut self, path: &mut Path) {
        let (spec, algorithm, words) = drawn(&mut path.rng);
        let how = if path.rng.random_bool(0.8) { Switch::Full } else { Switch::Part };
        let before = self.rust.switches();
        let converged = self.is_converged(false);
        self.record = HandOver::of(self.rust.controller(), self.rust.path(), time(path.now));
        self.rust.request(spec, how, time(path.now));
        self.pending = self.rust.pending().is_some().then_some((algorithm, words));
        let number = if how == Switch::Full { layout::HOW_FULL } else { layout::HOW_PART };
        if self.rust.switches() > before {
            let due = self.path.is_due(number, converged, path.in_recovery());
            self.pending = Some((algorithm, words));
            self.switched(path, number, due);
        }
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent, first: bool) {
        let before = self.rust.switches();
        let converged = self.is_converged(false);
        self.rust.on_sent(sent);
        if self.rust.switches() > before {
            let due = self.path.starts_over(converged, path.delivered > 0);
            self.switched(path, 0, due);
        }
        match &mut self.core {
            Running::Copa(copa) if first => copa.on_first_sent(path.now),
            Running::Cubic(cubic) if first => cubic.core.on_first_sent(path.now, path.last_sent),
            Running::Copa(_) | Running::Cubic(_) => {}
            Running::Bbr(bbr) => {
                let rate = self.rust.pacing_rate().expect("BBR always paces");
                bbr.on_sent(sent, first, rate);
            }
            Running::Bbr3(bbr) => bbr.on_sent(sent, first),
        }
    }

    fn on_ack(&mut self, path: &Path, acked: &Acked) {
        let switches = self.rust.switches();
        let before = self.is_recovering();
        if let Some((Algorithm::Bbr | Algorithm::Bbr3, _)) = self.pending {
            let (mut old, mut view) = (self.rust.controller().clone(), self.rust.path().clone());
            view.on_ack(&acked.ack);
            old.on_ack(&acked.ack);
            self.record = HandOver::of(&old, &view, acked.ack.now);
        }
        self.rust.on_ack(&acked.ack);
        let after = self.rust.switches() == switches && self.is_recovering();
        let sample = acked.ack.rate;
        let rate = sample.map_or(0, |sample| sample.rate().bytes_per_sec());
        let slow = sample.is_some_and(|sample| sample.app_limited);
        self.path.on_sample(path.now, path.srtt, acked.rtt_us, rate, slow);
        self.core_ack(path, acked, before, after);
        self.follow(path, switches);
    }

    fn on_packets_lost(&mut self, path: &Path, lost: &LostPacket) {
        self.rust.on_packet_lost(lost);
        if let Running::Bbr3(bbr) = &mut self.core {
            bbr.on_lost(path, lost);
        }
    }

    fn on_loss(&mut self, path: &Path, loss: &Loss) {
        self.note_cut(path);
        self.rust.on_loss(loss);
        let newest = loss.newest_sent_at.as_micros();
        match &mut self.core {
            Running::Copa(copa) => copa.on_loss(path.now, loss.lost.get(), newest),
            Running::Cubic(cubic) => cubic.on_loss(path, newest),
            Running::Bbr(bbr) => bbr.on_loss(),
            Running::Bbr3(_) => {}
        }
    }

    fn on_marked(&mut self, path: &Path, marked: &Marked) {
        if matches!(self.core, Running::Cubic(_)) && !self.rust.path().in_recovery() {
            self.path.on_marked();
        }
        self.rust.on_marked(marked);
        let newest = marked.newest_sent_at.as_micros();
        match &mut self.core {
            Running::Copa(copa) => copa.on_marked(path.now, newest),
            Running::Cubic(cubic) => cubic.on_loss(path, newest),
            Running::Bbr(_) => {}
            Running::Bbr3(bbr) => bbr.on_marked(path, marked),
        }
    }

    fn on_timeout(&mut self, path: &Path, timeout: &Timeout) {
        let before = self.is_recovering();
        self.note_cut(path);
        self.rust.on_timeout(timeout);
        match &mut self.core {
            Running::Copa(copa) => copa.on_timeout(path.now),
            Running::Cubic(cubic) => cubic.on_timeout(path, before),
            Running::Bbr(bbr) => bbr.on_timeout(path),
            Running::Bbr3(bbr) => bbr.core.on_timeout(path.now, 0),
        }
    }

    fn on_idle(&mut self, path: &Path, idle: &Idle) {
        match &mut self.core {
            Running::Copa(copa) => {
                self.rust.on_idle(idle);
                copa.on_idle();
            }
            Running::Cubic(cubic) if cubic.idles_alike() => {
                self.rust.on_idle(idle);
                cubic.adopt(self.rust.window(), self.rust.ssthresh(), self.mss);
            }
            Running::Cubic(_) => {}
            Running::Bbr(bbr) => {
                self.rust.on_idle(idle);
                bbr.on_idle(path);
            }
            Running::Bbr3(bbr) => {
                self.rust.on_idle(idle);
                bbr.on_idle(path);
            }
        }
    }

    fn compare(&mut self) {
        let rust = self.rust.window().as_f64();
        let phase = self.rust.phase();
        let slow_start = phase == Phase::SlowStart;
        let mode = match &self.core {
            Running::Copa(copa) => {
                let core = copa.window() as f64;
                let slack = (AGREE * rust.max(core)).max(0.1 * self.mss as f64);
                self.seen.copa_windows += u64::from((rust - core).abs() <= slack);
                self.seen.log_ratio += (core / rust).ln();
                copa.is_in_slow_start() == slow_start
            }
            Running::Cubic(cubic) => {
                let same = u64::from(self.window() == u64::from(cubic.window));
                if self.whole {
                    self.seen.cubic += 1;
                    self.seen.cubic_windows += same;
                } else {
                    self.seen.parts += 1;
                    self.seen.part_windows += same;
                }
                phase == Phase::Recovery || slow_start == (cubic.window < cubic.threshold)
            }
            Running::Bbr(bbr) => {
                let same = u64::from(self.window() == u64::from(bbr.core.window()));
                if self.whole {
                    self.seen.bbr += 1;
                    self.seen.bbr_windows += same;
                } else {
                    self.seen.parts += 1;
                    self.seen.part_windows += same;
                }
                bbr.core.phase() == phase_number(phase)
            }
            Running::Bbr3(bbr) => {
                self.seen.bbr3 += 1;
                self.seen.bbr3_windows += u64::from(self.rust.window().get() == bbr.core.window());
                bbr.core.phase() == phase_number(phase)
            }
        };
        let known = self.rust.path().min_rtt();
        let known = known.map(|(rtt, at)| (rtt.as_micros() as u32, (at.as_nanos() / 1000) as u32));
        self.seen.events += 1;
        self.seen.modes += u64::from(mode);
        // In the core rates are multiples of 64 bytes per second.
        let rate = self.rust.path().bandwidth().map_or(0, Rate::bytes_per_sec);
        let same_rate = rate.abs_diff(self.path.bandwidth()) <= 64;
        let recent = self.rust.path().recent_bandwidth().map_or(0, Rate::bytes_per_sec);
        let same_rate = same_rate && recent.abs_diff(self.path.recent_bandwidth()) <= 64;
        let empty = self.rust.path().saw_empty_queue() == self.path.saw_empty_queue();
        self.seen.paths += u64::from(known == self.path.min_rtt() && same_rate && empty);
    }
}

fn begin(algorithm: Algorithm, words: &Words, mss: u64, window: u64, seed: u64) -> Running {
    let packets = (window / mss) as u32;
    match algorithm {
        Algorithm::Copa => Running::Copa(CoreCopa::new(words, mss as u32, mss as u32, window)),
        Algorithm::Cubic => Running::Cubic(SocketCubic::new(words, packets)),
        Algorithm::Bbr => Running::Bbr(SocketBbr::new(CoreBbr::new(words, mss, packets, 0), seed)),
        Algorithm::Bbr3 => {
            Running::Bbr3(SocketBbr3::new(CoreBbr3::new(words, mss, window, 0), seed))
        }
        _ => unreachable!("it is none of those that are drawn"),
    }
}

#[test]
fn the_core_hands_over_as_the_rust_switcher_on_random_sequences() {
    let mut all = Outcome::default();
    let course = Course { jitter: false, loss: 0.02, marks: false, unrated: true, slow: false };
    for both in ran(0..SEQUENCES, course, EVENTS, Both::new) {
        all.add(&both.seen);
    }
    println!("{all:?}");
    let share = |part: u64| part as f64 / all.events as f64;
    let switches = all.full + all.part + all.over;
    // Where two rates differ by less than 64 bytes per second, the core may keep the younger.
    assert!(share(all.paths) > 0.999, "what is known of the path: {all:?}");
    assert_eq!(all.cubic_windows, all.cubic, "{all:?}");
    assert_eq!(all.bbr_windows, all.bbr, "{all:?}");
    assert_eq!(all.bbr3_windows, all.bbr3, "{all:?}");
    assert!(all.part_windows as f64 > 0.98 * all.parts as f64, "{all:?}");
    assert_eq!(all.points_agreed, all.points, "{all:?}");
    let copa = (all.events - all.cubic - all.bbr - all.bbr3 - all.parts) as f64;
    assert!(all.copa_windows as f64 > 0.99 * copa, "{all:?}");
    assert!((all.log_ratio / copa).abs() < 3e-4, "neither is larger on the whole: {all:?}");
    assert!(share(all.modes) > 0.999, "slow start: {all:?}");
    assert!(all.agreed as f64 > 0.999 * switches as f64, "moments: {all:?}");
    // The sequences do go everywhere.
    assert!(all.full > 2000 && all.part > 1000 && all.over > 20, "{all:?}");
    assert!(all.searches > 100, "{all:?}");
    for (from, row) in all.pairs.iter().enumerate() {
        for (to, pairs) in row.iter().enumerate() {
            assert!(from == to || *pairs > 100, "{from} to {to}: {all:?}");
        }
    }
}

/// With marks, which are answered for a round trip: the moments, and what CUBIC and BBR make of the hand-over.
#[test]
fn the_core_hands_over_alike_where_the_path_marks() {
    let mut all = Outcome::default();
    let course = Course { jitter: false, loss: 0.02, marks: true, unrated: true, slow: false };
    for both in ran((1..SEQUENCES).step_by(3), course, EVENTS, Both::new) {
        all.add(&both.seen);
    }
    println!("{all:?}");
    let switches = all.full + all.part + all.over;
    assert!(switches > 1000 && all.cubic > 100_000 && all.bbr > 100_000, "{all:?}");
    assert_eq!(all.cubic_windows, all.cubic, "{all:?}");
    assert!(all.bbr_windows as f64 > 0.9998 * all.bbr as f64, "{all:?}");
    assert!(all.agreed as f64 > 0.999 * switches as f64, "moments: {all:?}");
}
