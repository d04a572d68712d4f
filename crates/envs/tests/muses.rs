//! A whole flow of each policy of Muses that ships, decision by decision: what it did yesterday it
//! does today, on every machine.

use std::path::PathBuf;
use std::sync::Arc;

use trimtab_cc::muses::{Counts, Factor, Past, State, Trees};
use trimtab_envs::muses::{Environments, EnvironmentsConfig, Oracle, Part, Rollout, Setting};
use trimtab_steer::muses::{Lstm, Memory};
use trimtab_units::Duration;

/// Long enough for the trees to choose once.
const LENGTH: Duration = Duration::from_secs(20);
const SEED: u64 = 3;

fn shipped(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// How many decisions a flow over a shared Wi-Fi network took, a sum over all states and factors in
/// their order, and the window that each second began with, in 1/256 of a doubling.
fn trace<F: Into<Factor>>(mut policy: impl FnMut(&State) -> F) -> (u32, u64, Vec<i16>) {
    let networks = Environments::new(&EnvironmentsConfig {
        setting: Setting::SharedWifi,
        part: Part::Test,
        length: LENGTH + Duration::from_secs(2),
        recorded: None,
        generated: 1,
        delay_max: None,
        oracle: Oracle::PAPER,
    })
    .unwrap();
    let mut rollout = Rollout::lasting(&networks.draw(SEED), 1, LENGTH, SEED);
    // FNV-1a over the little-endian bytes.
    let (mut decisions, mut sum, mut windows) = (0, 0xcbf2_9ce4_8422_2325u64, Vec::new());
    while !rollout.is_done() {
        let state = rollout.state();
        let factor: Factor = policy(&state).into();
        if decisions % 100 == 0 {
            windows.push(state[6]);
        }
        let bytes = state
            .iter()
            .flat_map(|signal| signal.to_le_bytes())
            .chain(factor.parts().to_le_bytes());
        sum = bytes.fold(sum, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        decisions += 1;
        rollout.act(factor);
    }
    (decisions, sum, windows)
}

fn by_trees(file: &str) -> impl FnMut(&State) -> Factor {
    let trees = Trees::parse(shipped(file).leak()).unwrap();
    let (mut counts, mut past, mut tree) = (Counts::default(), Past::default(), trees.first());
    move |state| {
        if trees.count() > 1 && counts.add(trees.segments(state)) >= trees.states() {
            tree = trees.nearest(&counts);
            counts = Counts::default();
        }
        trees.decide(tree, &past.see(state))
    }
}

#[test]
fn the_trees_do_what_they_did() {
    assert_eq!(
        trace(by_trees("muses.trees")),
        (
            1367,
            13025531893654521999,
            vec![
                3410, 4187, 4324, 4158, 4209, 4221, 4327, 4306, 4346, 4333, 4177, 4202, 4373, 4351
            ]
        )
    );
    assert_eq!(
        trace(by_trees("treeg.trees")),
        (
            1363,
            4626824361405731878,
            vec![
                3410, 4187, 4324, 4158, 4209, 4221, 4327, 4306, 4346, 4333, 4222, 4155, 4345, 4348
            ]
        )
    );
}

#[test]
fn the_lstm_does_what_it_did() {
    let lstm = Arc::new(Lstm::parse(&shipped("muses.safetensors")).unwrap());
    let mut memory = Memory::new(lstm);
    assert_eq!(
        trace(|state| memory.decide(state)),
        (
            1356,
            2959720459993866249,
            vec![
                3410, 4245, 4330, 4275, 4275, 4274, 4409, 4354, 4354, 4246, 4110, 4110, 4464, 4267
            ]
        )
    );
}
