//! Files of trees, good and damaged.

use std::collections::HashMap;

use proptest::prelude::*;
use safetensors::tensor::{TensorView, serialize};

use super::*;
use crate::Distrust;
use crate::select::{FEATURES_LEN, FOREST_VERSION, FORMAT, Model, State, feature_index};

type Tensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

/// Two members over `busy` and `loss_rate`, of two trees each, for three candidates.
struct Parts {
    metadata: HashMap<String, String>,
    tensors: Vec<Tensor>,
}

fn bytes<T, const N: usize>(numbers: &[T], to: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(to).collect()
}

impl Parts {
    /// A member's first tree asks whether `busy` is at most 0.5, and then, on the other side, whether
    /// `loss_rate` is at most 0.1. Its second tree is a leaf.
    fn new() -> Self {
        let metadata = [
            ("format", FORMAT),
            ("version", FOREST_VERSION),
            ("features", "busy,loss_rate"),
            ("algorithms", "cubic,bbr,copa"),
            ("first", "bbr"),
            ("period_ms", "12000"),
            ("caution", "1"),
            ("margin", "0"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let leaves: [[f32; 3]; 8] = [
            // The first member: at rest, busy, busy with losses; and the second tree.
            [4.0, 0.0, 2.0],
            [0.0, 4.0, 2.0],
            [0.0, 2.0, 4.0],
            [0.0, 0.0, 0.0],
            // The other one is less sure of BBR.
            [4.0, 0.0, 2.0],
            [0.0, 1.0, 2.0],
            [0.0, 2.0, 4.0],
            [0.0, 0.0, 0.0],
        ];
        let floats = |numbers: &[f32]| bytes(numbers, |x| x.to_le_bytes());
        let tensors = vec![
            ("tree.splits", Dtype::U16, vec![2, 2], bytes(&[2u16, 0, 2, 0], |x| x.to_le_bytes())),
            ("split.input", Dtype::U8, vec![4], vec![0, 1, 0, 1]),
            ("split.threshold", Dtype::F32, vec![4], floats(&[0.5, 0.1, 0.5, 0.1])),
            (
                "split.next",
                Dtype::I16,
                vec![4, 2],
                bytes(&[-1i16, 1, -2, -3, -1, 1, -2, -3], |x| x.to_le_bytes()),
            ),
            ("leaf.score", Dtype::F32, vec![8, 3], floats(&leaves.concat())),
            ("norm.low", Dtype::F32, vec![2], floats(&[0.0, 0.0])),
            ("norm.high", Dtype::F32, vec![2], floats(&[1.0, 1.0])),
        ];
        Self { metadata: metadata.into(), tensors }.sealed()
    }

    fn sealed(mut self) -> Self {
        let metadata = self.metadata.clone().into_iter().collect();
        let mut digest = crate::select::file::digest_of(&metadata);
        self.tensors.iter().for_each(|tensor| digest.update(&tensor.3));
        let hex = digest.finalize().iter().map(|b| format!("{b:02x}")).collect();
        self.metadata.insert("sha256".to_owned(), hex);
        self
    }

    /// With other bytes in a tensor.
    fn with(mut self, name: &str, change: impl Fn(&mut Vec<usize>, &mut Vec<u8>)) -> Self {
        let tensor = self.tensors.iter_mut().find(|tensor| tensor.0 == name).unwrap();
        change(&mut tensor.2, &mut tensor.3);
        self.sealed()
    }

    fn file(&self) -> Vec<u8> {
        let views = self.tensors.iter().map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        serialize(views, Some(self.metadata.clone())).unwrap()
    }

    fn model(&self) -> Result<Model, ModelError> {
        Model::parse(&self.file())
    }

    fn error(&self) -> String {
        self.model().unwrap_err().to_string()
    }
}

fn state(busy: f32, loss: f32) -> State {
    let mut state = [0.0; FEATURES_LEN];
    state[feature_index("busy").unwrap()] = busy;
    state[feature_index("loss_rate").unwrap()] = loss;
    state
}

#[test]
fn trees_score_by_the_leaves_that_a_state_leads_to() {
    let model = Parts::new().model().unwrap();
    let scores = |busy, loss| model.logits(&state(busy, loss), None).unwrap();
    // The mean over the two trees of a member, and then over the members.
    assert_eq!(scores(0.5, 0.9)[..4], [2.0, 0.0, 1.0, 0.0], "at most the threshold is yes");
    assert_eq!(scores(0.6, 0.1)[..4], [0.0, 1.25, 1.0, 0.0]);
    assert_eq!(scores(0.6, 0.2)[..4], [0.0, 1.0, 2.0, 0.0]);
}

/// BBR has advantages of 2 and 0.5 over CUBIC: 1.25 on average, less their deviation of 0.75. Copa
/// has 1 by both.
#[test]
fn an_ensemble_of_trees_is_as_careful_as_one_of_networks() {
    let model = Parts::new().model().unwrap();
    let busy = state(0.6, 0.0);
    assert_eq!(model.decide(&busy, Some(0)), Ok(2));
    assert_eq!(model.preferred(&busy, Some(0)), Ok(1), "where nothing is switched");
    let kept = model.only(|spec| spec.algorithm().name != "copa").unwrap();
    assert_eq!(kept.decide(&busy, Some(0)), Ok(1), "1.25 less 0.75 is above 0");
    assert_eq!(
        model.decide(&state(1.1, 0.0), Some(0)),
        Err(Distrust::OutOfDistribution { feature: "busy" })
    );
}

#[test]
fn trees_that_do_not_fit_together_are_refused() {
    let next = |numbers: [i16; 8]| {
        Parts::new().with("split.next", move |_, data| *data = bytes(&numbers, |x| x.to_le_bytes()))
    };
    assert!(next([-1, 1, -2, -3, -1, 1, -2, -3]).model().is_ok());
    for numbers in [
        [0, 1, -2, -3, -1, 1, -2, -3],
        [-1, 1, 0, -3, -1, 1, -2, -3],
        [-1, 2, -2, -3, -1, 1, -2, -3],
        [-1, 1, -2, -4, -1, 1, -2, -3],
        [-1, 1, -2, i16::MIN, -1, 1, -2, -3],
    ] {
        let error = next(numbers).error();
        assert!(error.contains("split.next") && error.contains("later splits"), "{error}");
    }
    let error = Parts::new().with("split.input", |_, data| data[1] = 2).error();
    assert!(error.contains("split.input"), "{error}");
    let error = Parts::new().with("tree.splits", |_, data| data[0] = 3).error();
    assert!(error.contains("split.input is U8 [4]") && error.contains("U8 [5]"), "{error}");
    let error = Parts::new().with("tree.splits", |shape, _| *shape = vec![4]).error();
    assert!(error.contains("U16 of members and trees"), "{error}");
    let error = Parts::new().with("tree.splits", |_, data| data[1] = 0xff).error();
    assert!(error.contains("32767 splits"), "{error}");
    let nan = f32::NAN.to_le_bytes();
    let error = Parts::new().with("leaf.score", move |_, data| data[..4].copy_from_slice(&nan));
    assert!(error.error().contains("leaf.score"));
    let mut unsealed = Parts::new();
    unsealed.tensors[4].3[3] ^= 1;
    assert!(unsealed.error().contains("checksum"));
    let mut twice = Parts::new();
    twice.metadata.insert("features".into(), vec!["busy"; 43].join(","));
    assert!(twice.sealed().error().contains("at most one of each"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is in the tensors: an error of one line, or a model that answers.
    #[test]
    fn any_numbers_are_an_error_or_answer(
        tensor in 0..7usize, place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut parts = Parts::new();
        let data = &mut parts.tensors[tensor].3;
        let place = place.index(data.len());
        data[place] = byte;
        match parts.sealed().model() {
            Ok(model) => for (busy, loss) in [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)] {
                if let Ok(choice) = model.decide(&state(busy, loss), Some(0)) {
                    prop_assert!(choice < 3);
                }
            },
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

/// The seed of the fuzz target is an ensemble of trees, so what is found from there is found past
/// the header.
#[test]
fn the_fuzz_target_starts_from_trees() {
    let seed = Model::parse(include_bytes!("../../seeds/model/trees")).unwrap();
    let model = Parts::new().model().unwrap();
    for state in [state(0.5, 0.9), state(0.6, 0.1), state(0.6, 0.2)] {
        assert_eq!(seed.logits(&state, None), model.logits(&state, None));
    }
}
