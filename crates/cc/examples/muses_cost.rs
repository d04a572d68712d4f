//! What a decision of Muses costs: `cargo run --release -p trimtab-cc --example muses_cost [MODEL]`.

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use trimtab_cc::muses::{Counts, Past, SIGNALS, State, Trees};

/// States that are asked for, again and again: more than a branch predictor can learn by heart.
const STATES: usize = 1 << 14;
const ROUNDS: usize = 40;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "models/muses.trees".to_owned());
    let bytes = std::fs::read(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"));
    let trees = Trees::parse(&bytes).unwrap_or_else(|problem| panic!("{path}: {problem}"));
    let mut random = 1u64;
    let mut draw = |(low, high): (i16, i16)| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let span = i64::from(high) - i64::from(low) + 1;
        (i64::from(low) + ((random >> 33) as i64).rem_euclid(span)) as i16
    };
    let states: Vec<State> = (0..STATES)
        .map(|_| core::array::from_fn::<i16, SIGNALS, _>(|signal| draw(trees.range(signal))))
        .collect();
    // The best of some rounds: others use the machine too.
    let best = |work: &dyn Fn(&State) -> usize| {
        let round = |_| {
            let start = Instant::now();
            let sum: usize = states.iter().map(work).sum();
            black_box(sum);
            start.elapsed().as_nanos() as f64 / STATES as f64
        };
        (0..ROUNDS).map(round).fold(f64::MAX, f64::min)
    };
    println!("{path}: {} trees, {} bytes", trees.count(), bytes.len());
    // A walk with what makes a tree's inputs of a state.
    let past = RefCell::new(Past::default());
    let decide = |tree, state: &State| trees.decide(tree, &past.borrow_mut().see(state));
    let walks =
        (0..trees.count()).map(|tree| best(&|state| usize::from(decide(tree, state).parts())));
    let (mean, worst) = walks.fold((0.0, 0.0f64), |(sum, worst), ns| (sum + ns, worst.max(ns)));
    println!(
        "a decision: {:.0} ns, {worst:.0} ns by the slowest tree",
        mean / trees.count() as f64
    );
    let counted = best(&|state| trees.segments(state).iter().sum());
    println!("where a state is counted for the selection: {counted:.0} ns");
    let mut counts = Counts::default();
    states.iter().take(1000).for_each(|state| {
        counts.add(trees.segments(state));
    });
    let chosen = best(&|_| trees.nearest(black_box(&counts)));
    println!("a selection, every {} states: {chosen:.0} ns", trees.states());
}
