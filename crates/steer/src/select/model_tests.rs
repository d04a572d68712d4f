//! Files, good and damaged, and what their policies decide.

use std::collections::HashMap;

use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView, serialize};
use sha2::Digest;

use super::super::file::CHECKSUM;
use super::super::network::HIDDEN_MAX;
use super::*;
use crate::select::FEATURES_LEN;

/// What a file is made of.
struct Parts {
    metadata: HashMap<String, String>,
    tensors: Vec<(&'static str, Vec<usize>, Vec<f32>)>,
}

const HIDDEN: usize = 200;

/// A small generator of numbers between -1 and 1.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut x = seed | 1;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

impl Parts {
    /// A policy over all features and four algorithms.
    fn new(seed: u64) -> Self {
        let features: Vec<&str> = FEATURES.iter().map(|f| f.name).collect();
        let n = features.len();
        let mut metadata = HashMap::new();
        for (key, value) in [
            ("format", FORMAT),
            ("version", VERSION),
            ("features", &features.join(",")),
            ("algorithms", "cubic,bbr,copa,westwood"),
            ("first", "bbr"),
            ("period_ms", "12000"),
        ] {
            metadata.insert(key.to_owned(), value.to_owned());
        }
        let tensors = vec![
            ("fc1.weight", vec![HIDDEN, n], numbers(HIDDEN * n, seed)),
            ("fc1.bias", vec![HIDDEN], numbers(HIDDEN, seed + 1)),
            ("fc2.weight", vec![4, HIDDEN], numbers(4 * HIDDEN, seed + 2)),
            ("fc2.bias", vec![4], numbers(4, seed + 3)),
            ("norm.mean", vec![n], numbers(n, seed + 4)),
            ("norm.scale", vec![n], vec![0.5; n]),
            ("norm.low", vec![n], vec![-2.0; n]),
            ("norm.high", vec![n], vec![2.0; n]),
        ];
        let mut parts = Self { metadata, tensors };
        parts.seal();
        parts
    }

    fn bytes_of(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn seal(&mut self) {
        let mut digest = digest_of(&self.metadata.clone().into_iter().collect());
        self.tensors.iter().for_each(|t| digest.update(Self::bytes_of(&t.2)));
        let hex = digest.finalize().iter().map(|b| format!("{b:02x}")).collect();
        self.metadata.insert(CHECKSUM.to_owned(), hex);
    }

    fn set(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.to_owned(), value.to_owned());
        self.seal();
        self
    }

    fn file(&self) -> Vec<u8> {
        let data: Vec<Vec<u8>> = self.tensors.iter().map(|t| Self::bytes_of(&t.2)).collect();
        let views = self.tensors.iter().zip(&data).map(|((name, shape, _), data)| {
            (*name, TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
        });
        serialize(views, Some(self.metadata.clone())).unwrap()
    }

    fn model(&self) -> Result<Model, ModelError> {
        Model::parse(&self.file())
    }

    fn error(&self) -> String {
        self.model().unwrap_err().to_string()
    }

    /// The same by the textbook, in double precision.
    fn logits(&self, state: &State) -> Vec<f64> {
        let t = |i: usize| self.tensors[i].2.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let (w1, b1, w2, b2, mean, scale) = (t(0), t(1), t(2), t(3), t(4), t(5));
        let x: Vec<f64> =
            state.iter().enumerate().map(|(i, &s)| (f64::from(s) - mean[i]) / scale[i]).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let unit = |(row, b): (&[f64], &f64)| {
            let z = dot(row, &x) + b;
            if z < 0.0 { 0.01 * z } else { z }
        };
        let units: Vec<f64> = w1.chunks(x.len()).zip(&b1).map(unit).collect();
        w2.chunks(units.len()).zip(&b2).map(|(row, b)| dot(row, &units) + b).collect()
    }
}

fn state(seed: u64) -> State {
    let values = numbers(FEATURES_LEN, seed);
    core::array::from_fn(|i| values[i])
}

#[test]
fn a_good_file_decides_as_the_textbook_does() {
    let parts = Parts::new(7);
    let model = parts.model().unwrap();
    assert_eq!((model.candidates().len(), model.first()), (4, 1));
    assert_eq!(model.period(), Duration::from_secs(12));
    assert_eq!(Some(model.sha256()), parts.metadata.get("sha256").map(String::as_str));
    let mut chosen = [0; 4];
    for seed in 0..200 {
        let state = state(seed * 31 + 5);
        let expected = parts.logits(&state);
        let got = model.logits(&state, None).unwrap();
        for (got, expected) in got.iter().zip(&expected) {
            assert!((f64::from(*got) - expected).abs() < 1e-3, "{got} {expected}");
        }
        let best = (0..4).max_by(|&a, &b| expected[a].total_cmp(&expected[b])).unwrap();
        assert_eq!(model.decide(&state, None).unwrap(), best);
        chosen[best] += 1;
    }
    assert!(
        chosen.iter().filter(|&&n| n > 0).count() > 1,
        "a test of a constant is none: {chosen:?}"
    );
}

#[test]
fn a_policy_may_use_fewer_features_in_another_order() {
    let mut parts = Parts::new(3).set("features", "rtt_min,thpt_max");
    parts.tensors[0] = ("fc1.weight", vec![HIDDEN, 2], numbers(HIDDEN * 2, 9));
    for (i, name) in ["norm.mean", "norm.scale", "norm.low", "norm.high"].into_iter().enumerate() {
        let by = [0.0, 1.0, -1.0, 1.0][i];
        parts.tensors[4 + i] = (name, vec![2], vec![by; 2]);
    }
    parts.seal();
    let model = parts.model().unwrap();
    let mut state = [f32::NAN; FEATURES_LEN];
    (state[0], state[1]) = (0.25, 0.5);
    let got = model.logits(&state, None).unwrap();
    // Only these two are looked at, and swapped they are something else.
    (state[0], state[1]) = (0.5, 0.25);
    assert_ne!(model.logits(&state, None).unwrap(), got);
    state[1] = f32::NAN;
    assert_eq!(model.decide(&state, None), Err(Distrust::NotFinite { feature: FEATURES[1].name }));
}

#[test]
fn states_that_it_did_not_learn_from_are_not_decided() {
    let model = Parts::new(7).model().unwrap();
    let good = state(1);
    for i in 0..FEATURES_LEN {
        let with = |x: f32| {
            let mut state = good;
            state[i] = x;
            model.decide(&state, None)
        };
        for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(with(x), Err(Distrust::NotFinite { feature: FEATURES[i].name }));
        }
        for x in [-2.01, 2.01] {
            assert_eq!(with(x), Err(Distrust::OutOfDistribution { feature: FEATURES[i].name }));
        }
        assert!(with(2.0).is_ok() && with(-2.0).is_ok());
    }
}

#[test]
fn other_kinds_and_versions_say_so() {
    let e = Parts::new(1).set("format", "gpt").error();
    assert!(e.contains("format \"gpt\"") && e.contains("trimtab-select"), "{e}");
    let e = Parts::new(1).set("version", "4").error();
    assert!(e.contains("version \"4\"") && e.contains("train it again"), "{e}");
    let e = Parts::new(1).set("features", "rtt_min,mood").error();
    assert!(e.contains("\"mood\""), "{e}");
    let e = Parts::new(1).set("algorithms", "cubic,speedy").error();
    assert!(e.contains("\"speedy\""), "{e}");
    let e = Parts::new(1).set("algorithms", "cubic").error();
    assert!(e.contains("2 to 16"), "{e}");
    let e = Parts::new(1).set("first", "vegas").error();
    assert!(e.contains("first") && e.contains("vegas"), "{e}");
    for period in ["0", "-1", "12s", "3600001"] {
        let e = Parts::new(1).set("period_ms", period).error();
        assert!(e.contains("period_ms"), "{e}");
    }
    let e = Parts::new(1).set("algorithms", "cubic,bbr,copa").error();
    assert!(e.contains("fc2.weight") && e.contains("[3, 200]"), "{e}");
    let mut parts = Parts::new(1);
    parts.tensors[3].2[0] += 0.5;
    assert!(parts.error().contains("checksum"));
    let mut parts = Parts::new(1);
    parts.metadata.insert("period_ms".to_owned(), "13000".to_owned());
    assert!(parts.error().contains("checksum"));
    let mut parts = Parts::new(1);
    parts.metadata.remove("features");
    assert!(parts.error().contains("no features"));
    let mut parts = Parts::new(1);
    parts.tensors.pop();
    assert!(parts.error().contains("no norm.high"));
}

#[test]
fn candidates_with_knobs_are_parted_by_semicolons() {
    let model =
        Parts::new(1).set("algorithms", "cubic;bbr;copa:mvfst;copa:delta=0.1,competitive=0");
    let model = model.set("first", "copa:mvfst").model().unwrap();
    assert_eq!((model.candidates().len(), model.first()), (4, 2));
    assert_eq!(model.candidates()[3].settings(), [("delta", 0.1), ("competitive", 0.0)]);
}

#[test]
fn numbers_that_are_none_are_refused() {
    let mut parts = Parts::new(1);
    parts.tensors[0].2[5] = f32::NAN;
    parts.seal();
    assert!(parts.error().contains("fc1.weight"));
    let mut parts = Parts::new(1);
    parts.tensors[5].2[0] = 0.0;
    parts.seal();
    assert!(parts.error().contains("norm.scale"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One flipped bit anywhere is found, or (in the spelling of the header) changes nothing.
    #[test]
    fn a_damaged_file_is_no_model(place in 0.0..1.0f64, bit in 0..8u8) {
        let mut file = Parts::new(1).file();
        let last = file.len() - 1;
        file[(place * last as f64) as usize] ^= 1 << bit;
        match Model::parse(&file) {
            Err(_) => {}
            Ok(model) => {
                let whole = Parts::new(1).model().unwrap();
                prop_assert_eq!(model.sha256(), whole.sha256());
            }
        }
    }

    #[test]
    fn a_cut_file_is_no_model(keep in 0.0..1.0f64) {
        let file = Parts::new(1).file();
        let keep = (keep * file.len() as f64) as usize;
        prop_assert!(Model::parse(&file[..keep]).is_err());
    }

    /// Whatever the state, the answer is a candidate or a reason; never a panic.
    #[test]
    fn any_state_has_an_answer(bits in prop::array::uniform26(any::<u32>())) {
        let model = Parts::new(1).model().unwrap();
        if let Ok(choice) = model.decide(&bits.map(f32::from_bits), None) {
            prop_assert!(choice < model.candidates().len());
        }
    }
}

#[test]
fn a_random_policy_chooses_this_and_that() {
    let candidates = ["cubic", "bbr", "copa", "westwood"].map(|n| Spec::new(n).unwrap()).to_vec();
    let model = Model::random(candidates.clone(), 1, 1);
    let mut chosen = [0; 4];
    (0..100).for_each(|seed| chosen[model.decide(&state(seed), None).unwrap()] += 1);
    assert!(chosen.iter().filter(|&&n| n > 0).count() > 1, "{chosen:?}");
    let other = Model::random(candidates, 1, 2);
    assert!((0..100).any(|s| model.decide(&state(s), None) != other.decide(&state(s), None)));
}

/// The seed of the fuzz target is a model, so what is found from there is found past the header.
#[test]
fn the_fuzz_target_starts_from_a_model() {
    let model = Model::parse(include_bytes!("../../seeds/model/small")).unwrap();
    let mut state = [0.0; FEATURES_LEN];
    state[2] = 1.0;
    assert_eq!(
        model.decide(&state, None),
        Ok(1),
        "loss_rate is the second input, bbr the second output"
    );
}

/// Finite numbers may add up to what is none.
#[test]
fn preferences_that_overflow_are_not_acted_upon() {
    let mut parts = Parts::new(5);
    parts.tensors[2].2 = vec![3e38; 4 * HIDDEN];
    parts.tensors[0].2.iter_mut().for_each(|w| *w *= 1e6);
    parts.seal();
    assert_eq!(parts.model().unwrap().decide(&state(5), None), Err(Distrust::Overflow));
}

#[test]
fn ranges_and_scales_that_fit_nothing_are_refused() {
    let mut empty = Parts::new(6);
    empty.tensors[6].2[3] = 2.5;
    empty.seal();
    assert!(empty.error().contains("norm.low"), "{}", empty.error());
    let mut tiny = Parts::new(6);
    tiny.tensors[5].2[3] = 1e-40;
    tiny.seal();
    assert!(tiny.error().contains("norm.scale"), "{}", tiny.error());
}

/// A name in a damaged file is quoted by the error of the format's reader as it is. The fuzzer found this one.
#[test]
fn errors_are_one_line_whatever_a_file_names() {
    let file = include_bytes!("../../seeds/model/name-with-line-feed");
    let error = Model::parse(file).unwrap_err().to_string();
    assert!(error.contains("\\n") && !error.contains('\n'), "{error}");
}

/// The candidates that can run here keep their preferences.
#[test]
fn candidates_that_cannot_run_are_never_preferred() {
    let model = Model::parse(&Parts::new(5).file()).unwrap();
    let states: Vec<State> = (0..50u64)
        .map(|seed| {
            let drawn = numbers(FEATURES_LEN, seed + 90);
            core::array::from_fn(|i| drawn[i])
        })
        .collect();
    let name = |model: &Model, i: usize| model.candidates()[i].algorithm().name;
    let kernel = model.only(|spec| ["copa", "cubic"].contains(&spec.algorithm().name)).unwrap();
    assert_eq!((name(&kernel, 0), name(&kernel, 1)), ("cubic", "copa"));
    assert_eq!(kernel.first(), 0, "BBR, which is first in the file, cannot run");
    let mut masked = 0;
    for state in &states {
        let all = model.logits(state, None).unwrap();
        let expected = if all[2] > all[0] { "copa" } else { "cubic" };
        assert_eq!(name(&kernel, kernel.decide(state, None).unwrap()), expected);
        masked += u32::from(name(&model, model.decide(state, None).unwrap()) != expected);
    }
    assert!(masked > 0, "some prefer another one of the four");
    let without_cubic = model.only(|spec| spec.algorithm().name != "cubic").unwrap();
    assert_eq!(name(&without_cubic, without_cubic.first()), "bbr");
    assert!(model.only(|spec| spec.algorithm().name == "copa").is_none());
}

/// A policy over two settings of Copa that always prefers the one that does not run.
fn alternating() -> Parts {
    let mut parts = Parts::new(1)
        .set("features", "candidate_0,candidate_1")
        .set("algorithms", "copa:delta=0.1;copa:delta=0.5")
        .set("first", "copa:delta=0.1");
    let (mut below, mut above) = (vec![0.0; HIDDEN * 2], vec![0.0; 2 * HIDDEN]);
    // Unit 0 is candidate 0 and unit 1 candidate 1; each speaks for the other one.
    (below[0], below[3]) = (1.0, 1.0);
    (above[1], above[HIDDEN]) = (1.0, 1.0);
    let constant = |by: f32| vec![by; 2];
    parts.tensors = vec![
        ("fc1.weight", vec![HIDDEN, 2], below),
        ("fc1.bias", vec![HIDDEN], vec![0.0; HIDDEN]),
        ("fc2.weight", vec![2, HIDDEN], above),
        ("fc2.bias", vec![2], constant(0.0)),
        ("norm.mean", vec![2], constant(0.0)),
        ("norm.scale", vec![2], constant(1.0)),
        ("norm.low", vec![2], constant(-0.5)),
        ("norm.high", vec![2], constant(1.5)),
    ];
    parts.seal();
    parts
}

/// Two settings of one algorithm have the same name, and are two candidates all the same.
#[test]
fn a_policy_can_tell_two_settings_of_one_algorithm_apart() {
    let model = alternating().model().unwrap();
    let state = [0.0; FEATURES_LEN];
    assert_eq!(model.decide(&state, Some(0)), Ok(1));
    assert_eq!(model.decide(&state, Some(1)), Ok(0));
    assert_eq!(model.decide(&state, None), Ok(0), "the first of equals");
    let candidates = model.candidates().to_vec();
    let running = |asked: &Spec, name| crate::select::running(&candidates, asked, name);
    assert_eq!(running(&candidates[1], "copa"), Some(1));
    assert_eq!(
        running(&"copa:delta=0.3".parse().unwrap(), "copa"),
        Some(0),
        "the nearest there is"
    );
    assert_eq!(running(&candidates[1], "cubic"), None);
}

/// Its numbers are those of the file, whichever candidates can run.
#[test]
fn candidates_that_cannot_run_keep_their_place_in_the_input() {
    let parts = alternating().set("algorithms", "copa:delta=0.1;bbr").set("first", "bbr");
    let mut parts = parts.set("features", "candidate_1,candidate_2");
    parts.metadata.insert("algorithms".into(), "cubic;copa:delta=0.1;copa:delta=0.5".into());
    parts.metadata.insert("first".into(), "cubic".into());
    // Three outputs: CUBIC is never preferred.
    parts.tensors[2].1 = vec![3, HIDDEN];
    parts.tensors[2].2.splice(0..0, vec![0.0; HIDDEN]);
    parts.tensors[3] = ("fc2.bias", vec![3], vec![-1.0, 0.0, 0.0]);
    parts.seal();
    let all = parts.model().unwrap();
    let state = [0.0; FEATURES_LEN];
    assert_eq!((all.decide(&state, Some(1)), all.decide(&state, Some(2))), (Ok(2), Ok(1)));
    let copas = all.only(|spec| spec.algorithm().name == "copa").unwrap();
    assert_eq!((copas.decide(&state, Some(0)), copas.decide(&state, Some(1))), (Ok(1), Ok(0)));
    let one = all.only(|spec| !spec.is_same(&"copa:delta=0.5".parse().unwrap())).unwrap();
    assert_eq!(one.decide(&state, Some(1)), Ok(1), "the other one cannot run");
    let mut beyond = parts.set("features", "candidate_1,candidate_3");
    beyond.seal();
    assert!(beyond.error().contains("candidate_3") && beyond.error().contains("from 0"));
}

/// A file whose policy has so many hidden units.
fn of_units(hidden: usize) -> Parts {
    let mut parts = Parts::new(2);
    let n = FEATURES_LEN;
    parts.tensors[0] = ("fc1.weight", vec![hidden, n], numbers(hidden * n, 1));
    parts.tensors[1] = ("fc1.bias", vec![hidden], numbers(hidden, 2));
    parts.tensors[2] = ("fc2.weight", vec![4, hidden], numbers(4 * hidden, 3));
    parts.seal();
    parts
}

#[test]
fn a_policy_has_as_many_units_as_there_is_room_for() {
    for hidden in [1, HIDDEN_MAX] {
        let parts = of_units(hidden);
        let (got, expected) =
            (parts.model().unwrap().logits(&state(1), None), parts.logits(&state(1)));
        assert!((f64::from(got.unwrap()[3]) - expected[3]).abs() < 1e-3, "{hidden}");
    }
    for hidden in [0, HIDDEN_MAX + 1] {
        let error = of_units(hidden).error();
        assert!(error.contains(&format!("fc1.bias is \"{hidden}\"")), "{error}");
    }
}

#[test]
fn the_bounds_of_the_metadata_are_permitted() {
    for (text, period) in [("1", Duration::from_millis(1)), ("3600000", Duration::from_secs(3600))]
    {
        assert_eq!(Parts::new(1).set("period_ms", text).model().unwrap().period(), period);
    }
    let candidates = |count: usize| {
        let deltas: Vec<_> = (1..=count).map(|i| format!("copa:delta=0.{i:02}")).collect();
        let mut parts = Parts::new(1).set("algorithms", &deltas.join(";"));
        parts.metadata.remove("first");
        parts.tensors[2] = ("fc2.weight", vec![count, HIDDEN], numbers(count * HIDDEN, 3));
        parts.tensors[3] = ("fc2.bias", vec![count], numbers(count, 4));
        parts.seal();
        parts
    };
    let most = candidates(CANDIDATES_MAX).model().unwrap();
    assert_eq!((most.candidates().len(), most.first()), (CANDIDATES_MAX, 0));
    assert!(candidates(CANDIDATES_MAX + 1).error().contains("2 to 16"));
}

/// A host trains again what is of another version, and copies again what is damaged.
#[test]
fn an_error_says_what_a_host_can_do() {
    use crate::Unusable;
    let why = |parts: &Parts| parts.model().unwrap_err().unusable();
    assert_eq!(why(&Parts::new(1).set("version", "4")), Unusable::Version);
    assert_eq!(why(&Parts::new(1).set("features", "mood")), Unusable::Version);
    assert_eq!(why(&Parts::new(1).set("period_ms", "0")), Unusable::Damaged);
    let mut parts = Parts::new(1);
    parts.tensors[3].2[0] += 0.5;
    assert_eq!(why(&parts), Unusable::Damaged);
}

#[test]
fn a_tensor_of_another_shape_is_named_with_both() {
    let mut parts = Parts::new(1);
    parts.tensors[4] = ("norm.mean", vec![3], vec![0.0; 3]);
    parts.seal();
    let error = parts.error();
    assert!(error.contains("norm.mean is F32 [3]") && error.contains("F32 [26]"), "{error}");
}

/// An ensemble over one feature whose members score three candidates by these biases, whatever the
/// state. `bbr` is first.
fn ensemble(biases: &[[f32; 3]], caution: &str, margin: &str) -> Parts {
    let count = biases.len();
    let mut parts = Parts::new(1).set("version", ENSEMBLE_VERSION).set("features", "busy");
    for (key, value) in [("algorithms", "cubic,bbr,copa"), ("caution", caution), ("margin", margin)]
    {
        parts.metadata.insert(key.to_owned(), value.to_owned());
    }
    parts.tensors[0] = ("fc1.weight", vec![count, 2, 1], vec![0.0; count * 2]);
    parts.tensors[1] = ("fc1.bias", vec![count, 2], vec![0.0; count * 2]);
    parts.tensors[2] = ("fc2.weight", vec![count, 3, 2], vec![0.0; count * 6]);
    parts.tensors[3] = ("fc2.bias", vec![count, 3], biases.concat());
    for tensor in &mut parts.tensors[4..] {
        *tensor = (tensor.0, vec![1], vec![tensor.2[0]; 1]);
    }
    parts.tensors[4].2 = vec![0.0];
    parts.seal();
    parts
}

/// Over CUBIC, BBR has advantages of 0.1 and 0.3: 0.2 on average, 0.1 is their deviation. Copa has
/// 0.15 by both.
#[test]
fn an_ensemble_switches_where_the_lower_bound_of_the_advantage_is_above_the_margin() {
    let biases = [[0.0, 0.1, 0.15], [0.0, 0.3, 0.15]];
    let by = |caution, margin| ensemble(&biases, caution, margin).model().unwrap();
    let state = [0.0; FEATURES_LEN];
    let from = |model: &Model, runs| model.decide(&state, runs).unwrap();
    assert_eq!(from(&by("0", "0"), Some(0)), 1, "the highest mean");
    assert_eq!(from(&by("1", "0"), Some(0)), 2, "0.15 is surer than 0.2 less 0.1");
    assert_eq!(from(&by("1", "0.14"), Some(0)), 2);
    assert_eq!(from(&by("1", "0.16"), Some(0)), 0, "no switch pays");
    assert_eq!(from(&by("0", "0.1"), Some(2)), 2, "0.05 is less than a switch costs");
    assert_eq!(from(&by("0", "0.04"), Some(2)), 1);
    assert_eq!(from(&by("3", "0.5"), None), 1, "of no candidate nothing is known to stay for");
    let logits = by("1", "0").logits(&state, Some(0)).unwrap();
    assert!((logits[1] - 0.2).abs() < 1e-6 && (logits[2] - 0.15).abs() < 1e-6, "{logits:?}");
    let kept = by("1", "0").only(|spec| spec.algorithm().name != "copa").unwrap();
    assert_eq!(from(&kept, Some(0)), 1, "0.2 less 0.1 is above 0");
}

#[test]
fn an_ensemble_without_a_number_that_it_needs_is_refused() {
    let biases = [[0.0; 3]; 2];
    for (caution, margin) in [("-1", "0"), ("0", "much"), ("inf", "0"), ("NaN", "0")] {
        let error = ensemble(&biases, caution, margin).error();
        assert!(error.contains("a number of at least 0"), "{error}");
    }
    let mut parts = ensemble(&biases, "1", "0");
    parts.metadata.remove("margin");
    parts.seal();
    assert!(parts.error().contains("no margin"));
    let error = ensemble(&[[0.0; 3]; MEMBERS_MAX + 1], "1", "0").error();
    assert!(error.contains("1 to 16 members"), "{error}");
    let mut parts = ensemble(&biases, "1", "0");
    parts.tensors[3] = ("fc2.bias", vec![3], vec![0.0; 3]);
    parts.seal();
    assert!(parts.error().contains("[2, 3]"), "{}", parts.error());
}
