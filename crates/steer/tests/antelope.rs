//! What scikit-learn foretells by its own trees is what Rust foretells by the file that was made of them.
//! `python/tests/golden_antelope.py` wrote both files.

use safetensors::SafeTensors;
use trimtab_steer::select::antelope::{Boosted, FEATURES_LEN};

const MODEL: &[u8] = include_bytes!("../../../fuzz/seeds/antelope/small");
const GOLDEN: &[u8] = include_bytes!("data/antelope.safetensors");

#[test]
fn rewards_are_those_of_scikit_learn() {
    let models = Boosted::parse(MODEL).unwrap();
    let golden = SafeTensors::deserialize(GOLDEN).unwrap();
    let (inputs, rewards) = (golden.tensor("inputs").unwrap(), golden.tensor("rewards").unwrap());
    let inputs: Vec<f32> =
        inputs.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let rewards: Vec<f64> =
        rewards.data().as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let (rows, _) = inputs.as_chunks::<FEATURES_LEN>();
    assert_eq!((rows.len(), rewards.len()), (200, 400));
    let mut won = [0; 2];
    for (row, expected) in rows.iter().zip(rewards.chunks(2)) {
        let got = models.rewards(row).unwrap();
        // The library may fuse a product and a sum where the processor can.
        assert!((got[0] - expected[0]).abs() < 1e-12 && (got[1] - expected[1]).abs() < 1e-12);
        let winner = usize::from(expected[1] > expected[0]);
        assert_eq!(models.decide(row), Ok(winner));
        won[winner] += 1;
    }
    assert!(won.iter().all(|won| *won >= 40), "each is best somewhere: {won:?}");
}
