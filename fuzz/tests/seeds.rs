//! Every target on its seeds, and on seeds that were changed at random. libFuzzer, which looks for
//! inputs that reach new code, is for `./dev fuzz`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Changed inputs per target.
const CASES: u32 = 1500;

/// The longest input, bytes: as in `./dev fuzz`.
const LONGEST: usize = 4096;

/// One change of an input.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// A piece is copied to another place.
    Copy(Index, usize, Index),
    Truncate(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let telling = select(vec![
        "0",
        "-1",
        "1e308",
        "18446744073709551615",
        "NaN",
        "inf",
        "\n",
        "\r\n",
        "\0",
        "\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "=",
        "%",
        "#",
        "ms",
        "Mbit/s",
        "null",
        "true",
        "é",
    ]);
    let piece = prop_oneof![
        telling.prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..9),
    ];
    prop_oneof![
        any::<(Index, u8)>().prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<Index>(), piece).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (any::<Index>(), 1..33_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<Index>(), 1..65_usize, any::<Index>())
            .prop_map(|(from, length, to)| Change::Copy(from, length, to)),
        any::<Index>().prop_map(Change::Truncate),
    ]
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>) {
        let place = |index: &Index| index.index(input.len() + 1);
        match self {
            Change::Set(at, byte) => {
                let at = place(at);
                if let Some(old) = input.get_mut(at) {
                    *old = *byte;
                }
            }
            Change::Insert(at, bytes) => {
                let at = place(at);
                input.splice(at..at, bytes.iter().copied());
            }
            Change::Remove(at, length) => {
                let at = place(at);
                let end = input.len().min(at + length);
                input.drain(at..end);
            }
            Change::Copy(from, length, to) => {
                let (from, to) = (place(from), place(to));
                let piece = input[from..input.len().min(from + length)].to_vec();
                input.splice(to..to, piece);
            }
            Change::Truncate(at) => {
                let at = place(at);
                input.truncate(at);
            }
        }
        input.truncate(LONGEST);
    }
}

/// The seeds of a target, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Keeps what failed where libFuzzer would, and reports it.
fn report(name: &str, input: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
    let file = folder.join("seeds");
    std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, input)).unwrap();
    format!("{name} fails: cargo run -p trimtab-fuzz -- {name} {}", file.display())
}

#[test]
fn every_target_takes_its_seeds_and_changed_ones() {
    let mut failures = Vec::new();
    for &(name, target) in trimtab_fuzz::TARGETS {
        let fails = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| target(input))).is_err();
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        if let Some(seed) = seeds.iter().find(|seed| fails(seed)) {
            failures.push(report(name, seed));
            continue;
        }
        let inputs = (select(seeds), prop::collection::vec(change(), 1..9)).prop_map(
            |(mut input, changes)| {
                changes.iter().for_each(|change| change.apply(&mut input));
                input
            },
        );
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let tried = TestRunner::new_with_rng(config, rng).run(&inputs, |input| {
            prop_assert!(!fails(&input));
            Ok(())
        });
        match tried {
            Ok(()) => {}
            Err(TestError::Fail(_, input)) => failures.push(report(name, &input)),
            Err(TestError::Abort(why)) => panic!("{name}: {why}"),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_unknown_target_is_refused_with_the_names() {
    let refused = trimtab_fuzz::target("unit").unwrap_err();
    assert!(refused.contains("'unit'") && refused.contains("units, workload"), "{refused}");
}
