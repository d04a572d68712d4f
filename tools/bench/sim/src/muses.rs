//! What a decision of Muses' shipped trees costs, from the signals to the action.

use std::hint::black_box;

use trimtab_cc::muses::{Past, SIGNALS, State, Trees};

use crate::cases::per_packet;
use crate::processor;

static MODEL: &[u8] = include_bytes!("../../../../models/muses.trees");
/// More states than a branch predictor learns by heart.
const STATES: u64 = 1 << 14;

/// States within what the trees learnt from, drawn the same each time.
fn states(trees: &Trees<'_>) -> Vec<State> {
    let mut random = 1u64;
    let mut draw = |(low, high): (i16, i16)| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let span = i64::from(high) - i64::from(low) + 1;
        (i64::from(low) + ((random >> 33) as i64).rem_euclid(span)) as i16
    };
    (0..STATES)
        .map(|_| core::array::from_fn::<i16, SIGNALS, _>(|signal| draw(trees.range(signal))))
        .collect()
}

/// One decision, mean over the trees of the model, ns: the inputs that follow from a state, and the walk.
pub(crate) fn decide() -> f64 {
    let trees = Trees::parse(MODEL).expect("the model that ships is sound");
    let states = states(&trees);
    let (spent, sum) = processor::timed(|| {
        let mut sum = 0;
        for tree in 0..trees.count() {
            let mut past = Past::default();
            for state in &states {
                let inputs = past.see(black_box(state));
                sum += u64::from(trees.decide(tree, &inputs).parts());
            }
        }
        sum
    });
    black_box(sum);
    per_packet(spent, STATES * trees.count() as u64)
}
