//! Muses: the C walk against `Trees`, and the C core against `trimtab_cc::muses::Muses`. Everything
//! is in whole numbers, so the same is the same.

use std::sync::atomic::Ordering::Relaxed;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::migrate::{Migrate as _, PathView};
use trimtab_cc::muses::{Alarm, BINS, INPUTS, Inputs, Muses, Past, SIGNALS, State, Trees, log2};
use trimtab_cc::{CongestionControl as _, Decision, Idle, Loss, Marked, Sent, Timeout, set_knob};

use super::driver::{Acked, Course, Pair, Path};
use super::muses_core::{self, CoreMuses, Maps};
use super::tally::tally;
use crate::algorithm::Algorithm;
use crate::knobs::{self, Words};
use crate::layout;
use crate::models::{describe, nodes, sealed};

static MUSES: &[u8] = include_bytes!("muses.trees");
static WIDE: &[u8] = include_bytes!("muses-wide.trees");
static TREEG: &[u8] = include_bytes!("treeg.trees");
static SMALL: &[u8] = include_bytes!("../small.trees");

const SEQUENCES: u64 = 1000;
const EVENTS: u64 = 1500;
/// Of the format: docs/reference/trees.md.
const INPUTS_AT: usize = 20;
const NODE_SIZE: usize = 6;
/// The number of the model in these tests.
const MODEL: u32 = 3;
/// Its first node there.
const FIRST: usize = 17;

/// Maps with this model in them.
fn maps(trees: &Trees<'_>) -> Maps {
    let maps = Maps::new();
    for (place, word) in maps.nodes[FIRST..].iter().zip(nodes(trees).expect("not too deep")) {
        place.store(word, Relaxed);
    }
    let model = &maps.models[MODEL as usize];
    describe(model, trees, FIRST);
    model.trees.store(trees.count() as u32, Relaxed);
    maps
}

/// Any state, or one in the range of training.
fn state(trees: &Trees<'_>, rng: &mut Pcg64Mcg) -> State {
    let wild = rng.random_bool(0.2);
    std::array::from_fn(|signal| {
        let (low, high) = trees.range(signal);
        if wild { rng.random() } else { rng.random_range(low..=high) }
    })
}

/// What a tree is asked with in a state: what follows from it is any, too.
fn inputs(state: &State, rng: &mut Pcg64Mcg) -> Inputs {
    let mut inputs: Inputs = std::array::from_fn(|_| rng.random_range(-6000..6000));
    inputs[..SIGNALS].copy_from_slice(state);
    inputs
}

/// A model whose nodes compare all inputs: one that ships, of which each node asks for another
/// input at the same threshold.
fn of_all_inputs() -> Vec<u8> {
    let trees = Trees::parse(MUSES).expect("a model");
    let mut bytes = MUSES.to_vec();
    let count: usize = (0..trees.count()).map(|tree| trees.nodes(tree).len()).sum();
    let nodes_at = bytes.len() - NODE_SIZE * count;
    bytes[INPUTS_AT] = INPUTS as u8;
    for (index, node) in bytes[nodes_at..].chunks_exact_mut(NODE_SIZE).enumerate() {
        if node[0] & layout::LEAF == 0 {
            node[0] = (index % INPUTS) as u8;
        }
    }
    sealed(bytes)
}

/// The models that ship, and others: 300,000 states each, in and out of the range of training.
#[test]
fn the_walk_decides_as_the_rust_trees_do() {
    for bytes in [MUSES, WIDE, TREEG, SMALL, &of_all_inputs()] {
        let trees = Trees::parse(bytes).expect("a model");
        let maps = maps(&trees);
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut decided = std::collections::BTreeSet::new();
        let mut known = 0_u64;
        for i in 0..300_000 {
            let state = state(&trees, &mut rng);
            let tree = i % (trees.count() + 1);
            let inputs = inputs(&state, &mut rng);
            let factor = trees.decide(tree, &inputs).parts();
            assert_eq!(
                maps.walk(MODEL, tree as u32, &inputs),
                u32::from(factor),
                "{tree} {state:?}"
            );
            assert_eq!(maps.knows(MODEL, &state), trees.knows(&state), "{state:?}");
            assert_eq!(maps.segments(MODEL, &state), trees.segments(&state), "{state:?}");
            decided.insert(factor);
            known += u64::from(trees.knows(&state));
        }
        println!("{trees:?}: {} factors, {known} states in the range", decided.len());
        assert!(known > 100_000 && decided.len() > 3);
    }
}

#[test]
fn the_logarithm_is_the_same() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    for _ in 0..1_000_000 {
        let x = rng.random::<u64>() >> rng.random_range(0..64);
        assert_eq!(muses_core::log2(x), log2(x), "{x}");
    }
    assert_eq!([0, u64::MAX].map(muses_core::log2), [0, u64::MAX].map(log2));
}

/// What no loader would write: random bytes, and models of which some words are changed. No walk
/// goes on for ever, or to what is not there, and each gives a factor from a half to two; no state
/// is in a segment that there is not.
#[test]
fn whatever_the_maps_hold_a_walk_ends_with_a_factor() {
    let trees = Trees::parse(MUSES).expect("a model");
    let maps = maps(&trees);
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let mut keep = 0_u64;
    const ROUNDS: u64 = 3000;
    for round in 0..ROUNDS {
        let model = &maps.models[MODEL as usize];
        let wild = round % 2 == 0;
        for word in &maps.nodes {
            if wild && round % 64 == 0 {
                word.store(rng.random(), Relaxed);
            }
        }
        for _ in 0..200 {
            let at = FIRST + rng.random_range(0..20_000);
            // Back to the root, to itself, beyond the end, a signal that is not there, no factor: anything.
            maps.nodes[at].store(rng.random::<u64>() >> rng.random_range(0..48), Relaxed);
        }
        for word in model.weights.iter().chain(&model.component_low).chain(&model.component_width) {
            word.store(rng.random(), Relaxed);
        }
        for word in model.tree_first.iter().chain([&model.trees]) {
            word.store(if wild { rng.random() } else { rng.random_range(0..30_000) }, Relaxed);
        }
        for _ in 0..100 {
            let state = state(&trees, &mut rng);
            let inputs = inputs(&state, &mut rng);
            let factor = maps.walk(MODEL, rng.random_range(0..70), &inputs);
            assert!((8192..=32_768).contains(&factor));
            keep += u64::from(factor == 16_384);
            assert!(maps.segments(MODEL, &state).iter().all(|segment| *segment < BINS));
            maps.knows(MODEL, &state);
        }
    }
    assert!(keep < ROUNDS * 99, "some walks do come to a leaf: {keep}");
    assert_eq!(maps.models.len(), layout::MODELS_MAX);
}

tally! {
    /// How often the two agreed, and where the sequences went.
    struct Outcome {
        events: u64,
        decisions: u64,
        grew: u64,
        turned: u64,
        alarms: [u64; 2],
    }
}

struct Both {
    rust: Muses,
    core: CoreMuses,
    trees: Trees<'static>,
    tree: usize,
    past: Past,
    words: Words,
    mss: u64,
    sent: u64,
    seen: Outcome,
}

impl Both {
    fn new(path: &mut Path, seed: u64, trees: Trees<'static>) -> Self {
        let mut words = knobs::defaults(Algorithm::Muses);
        let mut set = |name: &str, value: f64| {
            let place = knobs::find(Algorithm::Muses, name).expect("a knob");
            words[place.index] = place.encode(value);
        };
        set("model", MODEL.into());
        set("tree", trees.first() as f64);
        let mut rust = Muses::new(&path.config(seed));
        if path.rng.random_bool(0.3) {
            let cap = path.rng.random_range(4..200);
            set("cap", cap.into());
            set_knob(&mut rust, "cap", cap.into()).expect("in range");
        }
        Self {
            rust,
            core: CoreMuses::new(&words, 10),
            tree: trees.first(),
            trees,
            past: Past::default(),
            words,
            mss: path.mss,
            sent: 0,
            seen: Outcome::default(),
        }
    }

    fn alarm(&self) -> u32 {
        match self.rust.alarm() {
            None => 0,
            Some(Alarm::Unknown) => layout::ALARM_UNKNOWN,
            Some(Alarm::RunAway) => layout::ALARM_RUN_AWAY,
            Some(Alarm::Starved) => layout::ALARM_STARVED,
        }
    }
}

impl Pair for Both {
    const ACTS: u32 = 2;

    fn window(&self) -> u64 {
        self.rust.window().get() / self.mss
    }

    /// Another tree is chosen.
    fn act(&mut self, path: &mut Path) {
        self.tree = path.rng.random_range(0..self.trees.count());
        let place = knobs::find(Algorithm::Muses, "tree").expect("a knob");
        self.words[place.index] = place.encode(self.tree as f64);
        self.core.set_knobs(&self.words);
        self.seen.turned += 1;
    }

    fn on_sent(&mut self, _path: &Path, sent: &Sent, _first: bool) {
        self.rust.on_sent(sent);
        self.sent += 1;
    }

    fn on_ack(&mut self, _path: &Path, acked: &Acked) {
        let before = self.rust.cwnd();
        let ack = &acked.ack;
        self.rust.on_ack(ack);
        let since = ack.rate.map_or(0, |sample| {
            (sample.delivered + ack.inflight + sample.lost - sample.tx_in_flight).get()
        });
        let state = self.rust.awaiting().copied();
        let ended = self.core.on_ack(&[
            ack.now.as_micros(),
            self.mss,
            std::mem::take(&mut self.sent),
            acked.packets,
            acked.prior_inflight,
            acked.rtt_us,
            ack.srtt.as_micros(),
            ack.min_rtt.as_micros(),
            acked.rate.1,
            acked.rate.0,
            acked.newest_sent_us,
            since,
            ack.cwnd_limited.into(),
        ]);
        assert_eq!(ended, state.is_some());
        let Some(state) = state else { return };
        let inputs = self.past.see(&state);
        assert_eq!(self.core.inputs(), inputs);
        let factor = self.trees.decide(self.tree, &inputs);
        let known = self.trees.knows(&state);
        self.rust.on_decision(Decision { factor, known });
        self.seen.decisions += 1;
        self.seen.grew += u64::from(self.rust.cwnd() > before);
    }

    fn on_loss(&mut self, _path: &Path, loss: &Loss) {
        self.rust.on_loss(loss);
    }

    fn on_marked(&mut self, path: &Path, marked: &Marked) {
        self.rust.on_marked(marked);
        self.core.on_marked(path.now, marked.newest_sent_at.as_micros(), self.mss as u32);
    }

    fn on_timeout(&mut self, _path: &Path, timeout: &Timeout) {
        self.rust.on_timeout(timeout);
        self.core.on_timeout();
    }

    fn on_idle(&mut self, _path: &Path, idle: &Idle) {
        self.rust.on_idle(idle);
        self.core.on_idle();
    }

    fn compare(&mut self) {
        self.seen.events += 1;
        assert_eq!((self.core.cwnd(), self.core.alarm()), (self.rust.cwnd(), self.alarm()));
    }
}

/// Every state, every window and every alarm, with trees that change at random.
#[test]
fn the_core_of_muses_agrees_with_the_rust_algorithm_on_a_thousand_random_sequences() {
    let all: &'static [u8] = of_all_inputs().leak();
    let mut sum = Outcome::default();
    let mut alarms = [0_u64; 2];
    for seed in 0..SEQUENCES {
        let bytes = [TREEG, MUSES, all][(seed % 3) as usize];
        let trees = Trees::parse(bytes).expect("a model");
        let _maps = maps(&trees);
        let mut path = Path::new(
            seed,
            Course { jitter: true, loss: 0.05, marks: true, unrated: true, slow: true },
        );
        let mut both = Both::new(&mut path, seed, trees);
        path.run(&mut both, EVENTS);
        sum.add(&both.seen);
        for (count, alarm) in alarms.iter_mut().zip([Alarm::Unknown, Alarm::RunAway]) {
            *count += u64::from(both.rust.alarm() == Some(alarm));
        }
    }
    sum.alarms = alarms;
    println!("{sum:?}");
    // The sequences do go everywhere.
    assert_eq!(sum.events, SEQUENCES * EVENTS);
    assert!(sum.decisions > sum.events / 20 && sum.grew > sum.decisions / 50, "{sum:?}");
    assert!(sum.turned > 100 && alarms.iter().all(|n| *n > 0), "{sum:?}");
}

/// As in guard.rs of trimtab-cc: a queue of others stays, and a fortieth of the rate is left.
#[test]
fn who_is_left_hardly_anything_by_others_gives_way_here_too() {
    let trees = Trees::parse(SMALL).expect("a model");
    let _maps = maps(&trees);
    let mut words = knobs::defaults(Algorithm::Muses);
    words[knobs::find(Algorithm::Muses, "model").expect("a knob").index] = MODEL;
    let states = |interval_us: u64, rtt_us: u64| {
        let mut core = CoreMuses::new(&words, 10);
        let mut ack = |i: u64, interval_us: u64, rtt_us: u64| {
            let now = 1_000_000 + i * 10_000;
            let sent = now - rtt_us;
            core.on_ack(&[
                now,
                1448,
                1,
                1,
                4,
                rtt_us,
                rtt_us,
                40_000,
                interval_us,
                1,
                sent,
                1448,
                1,
            ]);
            core.alarm()
        };
        ack(0, 250, 40_000);
        (1..1000).find(|&i| ack(i, interval_us, rtt_us) == layout::ALARM_STARVED)
    };
    assert!(states(10_000, 80_000).is_some_and(|n| (100..140).contains(&n)));
    assert_eq!(states(1_000, 80_000), None, "a quarter of it");
    assert_eq!(states(10_000, 45_000), None, "hardly a queue");
}

/// Of a window that ran away only what the path carries is handed over.
#[test]
fn a_window_that_ran_away_is_not_handed_over() {
    let trees = Trees::parse(SMALL).expect("a model");
    let _maps = maps(&trees);
    let mut path = Path::new(
        1,
        Course { jitter: false, loss: 1e-4, marks: true, unrated: false, slow: false },
    );
    let mut words = knobs::defaults(Algorithm::Muses);
    words[knobs::find(Algorithm::Muses, "model").expect("a knob").index] = MODEL;
    let mut both = Both::new(&mut path, 1, trees);
    both.core = CoreMuses::new(&words, 10);
    let packets = both.core.cwnd() / 1024;
    assert_eq!(u64::from(both.core.operating_window(1000, 40_000)), packets, "nothing is wrong");
    // Without a model: an alarm, but of another kind.
    let mut none = CoreMuses::new(&knobs::defaults(Algorithm::Muses), 10);
    let fields = [1_000_000, 1448, 1, 1, 4, 40_000, 40_000, 40_000, 40_000, 1, 960_000, 1448, 1];
    assert!(none.on_ack(&fields));
    assert_eq!((none.alarm(), none.cwnd() / 1024), (layout::ALARM_NO_MODEL, 10), "it stays");
    // Tree 0 doubles without a queue; an acknowledgement of a packet every 10 ms is 145 kB/s, 4 packets in 40 ms.
    let mut now = 1_000_000;
    while both.core.alarm() == 0 {
        now += 10_000;
        assert!(now < 10_000_000);
        let sent = now - 40_000;
        both.core.on_ack(&[now, 1448, 1, 1, 4, 40_000, 40_000, 40_000, 10_000, 1, sent, 1448, 1]);
    }
    assert_eq!(both.core.alarm(), layout::ALARM_RUN_AWAY);
    assert!(both.core.cwnd() / 1024 > 100);
    assert_eq!(both.core.operating_window(144_800, 40_000), 4);
    assert_eq!(both.core.operating_window(100, 40_000), 2, "two packets at least");
    let least = both.rust.operating_point(&PathView::new()).window;
    assert_eq!(least, both.rust.window(), "the same of Rust's, which has no alarm");
}
