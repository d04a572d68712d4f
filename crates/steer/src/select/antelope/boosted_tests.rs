//! Files, good and damaged, and what their models foretell.

use std::collections::HashMap;

use proptest::prelude::*;
use safetensors::tensor::serialize;

use super::*;
use crate::select::Unusable;
use crate::select::antelope::FEATURES_LEN;
use crate::select::file::CHECKSUM;

const TREES: usize = 4;
const NODES: usize = 7;

/// What a file is made of: three candidates with four trees of depth 3 each.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) metadata: HashMap<String, String>,
    pub(crate) asked: Vec<u8>,
    pub(crate) thresholds: Vec<f64>,
    pub(crate) leaves: Vec<f64>,
    pub(crate) base: Vec<f64>,
    pub(crate) low: Vec<f32>,
    pub(crate) high: Vec<f32>,
}

impl Parts {
    /// Trees that ask for every input.
    pub(crate) fn new(seed: u64) -> Self {
        let names: Vec<&str> = FEATURES.iter().map(|f| f.name).collect();
        let pairs = [
            ("format", FORMAT),
            ("version", VERSION),
            ("features", &names.join(",")),
            ("algorithms", "cubic,bbr,vegas"),
            ("first", "bbr"),
            ("period_ms", "2000"),
        ];
        let mut x = seed | 1;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 11) as f64 / (1u64 << 53) as f64
        };
        let n = 3 * TREES * NODES;
        Self {
            metadata: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            asked: (0..n).map(|_| (next() * FEATURES_LEN as f64) as u8).collect(),
            thresholds: (0..n).map(|_| next()).collect(),
            leaves: (0..3 * TREES * (NODES + 1)).map(|_| next() - 0.5).collect(),
            base: (0..3).map(|_| next()).collect(),
            low: vec![0.0; FEATURES_LEN],
            high: vec![1.0; FEATURES_LEN],
        }
    }

    fn tensors(&self) -> [(&'static str, Dtype, Vec<usize>, Vec<u8>); 6] {
        let doubles = |n: &[f64]| n.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let floats = |n: &[f32]| n.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let shape = |each: usize| vec![3, TREES, each];
        [
            ("split.input", Dtype::U8, shape(NODES), self.asked.clone()),
            ("split.threshold", Dtype::F64, shape(NODES), doubles(&self.thresholds)),
            ("leaf.value", Dtype::F64, shape(NODES + 1), doubles(&self.leaves)),
            ("base", Dtype::F64, vec![3], doubles(&self.base)),
            ("norm.low", Dtype::F32, vec![self.low.len()], floats(&self.low)),
            ("norm.high", Dtype::F32, vec![self.high.len()], floats(&self.high)),
        ]
    }

    /// The bytes, with the right checksum; `change` is made to the tensors first.
    fn with(&self, change: impl Fn(&mut (&'static str, Dtype, Vec<usize>, Vec<u8>))) -> Vec<u8> {
        let mut metadata = self.metadata.clone();
        let mut tensors = self.tensors();
        tensors.iter_mut().for_each(change);
        let mut digest = digest_of(&metadata.clone().into_iter().collect());
        tensors.iter().for_each(|tensor| digest.update(&tensor.3));
        let sum = digest.finalize().iter().map(|b| format!("{b:02x}")).collect();
        metadata.insert(CHECKSUM.to_owned(), sum);
        let views = tensors.iter().map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        serialize(views, Some(metadata)).unwrap()
    }

    pub(crate) fn file(&self) -> Vec<u8> {
        self.with(|_| {})
    }

    fn set(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.to_owned(), value.to_owned());
        self
    }

    fn error(&self) -> String {
        Boosted::parse(&self.file()).unwrap_err().to_string()
    }
}

#[test]
fn a_tree_goes_right_above_its_threshold() {
    let mut parts = Parts::new(1);
    // Only the first tree of the second candidate says anything: which of its leaves it is.
    parts.leaves.fill(0.0);
    parts.base.fill(0.0);
    let first = TREES * (NODES + 1);
    (0..8).for_each(|leaf| parts.leaves[first + leaf] = leaf as f64);
    let at = TREES * NODES;
    // The root asks for input 0, the level below for 1, the last one for 2.
    for (node, input) in [0, 1, 1, 2, 2, 2, 2].into_iter().enumerate() {
        (parts.asked[at + node], parts.thresholds[at + node]) = (input, 0.5);
    }
    let models = Boosted::parse(&parts.file()).unwrap();
    for leaf in 0..8u8 {
        let bit = |n: u8| if leaf >> n & 1 == 1 { 0.6 } else { 0.5 };
        let rewards = models.rewards(&[bit(2), bit(1), bit(0), 0.0, 0.0, 0.0, 0.0]).unwrap();
        assert_eq!(rewards[..3], [0.0, f64::from(leaf), 0.0]);
    }
}

/// Each candidate that can run keeps its own trees.
#[test]
fn what_cannot_run_is_never_chosen_and_changes_no_other_reward() {
    let models = Boosted::parse(&Parts::new(3).file()).unwrap();
    let inputs = [0.3; FEATURES_LEN];
    let all = models.rewards(&inputs).unwrap();
    let best = models.decide(&inputs).unwrap();
    let left_out = models.candidates()[best];
    let others = models.only(|spec| !spec.is_same(&left_out)).unwrap();
    let kept: Vec<usize> = (0..3).filter(|i| *i != best).collect();
    let rewards = others.rewards(&inputs).unwrap();
    assert_eq!(rewards[..2], [all[kept[0]], all[kept[1]]]);
    assert_eq!(others.candidates().len(), 2);
    let first = models.candidates()[models.first()];
    let begins = others.candidates()[others.first()];
    assert!(begins.is_same(&first) || first.is_same(&left_out), "{begins:?}");
    assert!(models.only(|spec| spec.is_same(&left_out)).is_none(), "one is no choice");
}

#[test]
fn the_first_of_equals_wins() {
    let mut parts = Parts::new(1);
    parts.leaves.fill(0.25);
    parts.base = vec![0.0, 1.0, 1.0];
    let models = Boosted::parse(&parts.file()).unwrap();
    assert_eq!(models.decide(&[0.5; FEATURES_LEN]), Ok(1));
    assert_eq!(models.rewards(&[0.5; FEATURES_LEN]).unwrap()[..3], [1.0, 2.0, 2.0]);
    assert_eq!((models.first(), models.period()), (1, Duration::from_secs(2)));
    assert_eq!(models.sha256().len(), 64);
}

#[test]
fn what_is_not_like_training_is_not_decided() {
    let models = Boosted::parse(&Parts::new(5).file()).unwrap();
    for (i, feature) in FEATURES.iter().map(|f| f.name).enumerate() {
        let with = |x: f32| {
            let mut inputs = [0.5; FEATURES_LEN];
            inputs[i] = x;
            models.decide(&inputs)
        };
        for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(with(x), Err(Distrust::NotFinite { feature }));
        }
        for x in [-0.001, 1.001] {
            assert_eq!(with(x), Err(Distrust::OutOfDistribution { feature }));
        }
        assert!(with(0.0).is_ok() && with(1.0).is_ok());
    }
    let mut parts = Parts::new(5);
    parts.leaves.fill(f64::MAX);
    let models = Boosted::parse(&parts.file()).unwrap();
    assert_eq!(models.decide(&[0.5; FEATURES_LEN]), Err(Distrust::Overflow));
}

#[test]
fn a_file_may_leave_features_out() {
    let mut parts = Parts::new(2).set("features", "lost,min_rtt");
    (parts.low, parts.high) = (vec![0.0; 2], vec![1.0; 2]);
    parts.asked.fill(1);
    let models = Boosted::parse(&parts.file()).unwrap();
    let with = |x: f32| models.rewards(&[x, f32::NAN, 9.0, 9.0, 9.0, 0.5, 9.0]).unwrap();
    assert_ne!(with(0.0), with(1.0), "the second of them is the lowest round-trip time");
}

#[test]
fn mistakes_have_one_clear_error() {
    let parts = || Parts::new(9);
    let e = parts().set("version", "2").error();
    assert!(e.contains("version \"2\" and this program reads \"1\""), "{e}");
    let e = parts().set("format", "trimtab-select").error();
    assert!(e.contains("reads \"trimtab-antelope\""), "{e}");
    let e = parts().set("features", "lost,speed").error();
    assert!(e.contains("\"speed\", which this program does not measure"), "{e}");
    let e = parts().set("features", &["lost"; 8].join(",")).error();
    assert!(e.contains("features is \"8\"; it must be 1 to 7"), "{e}");
    let e = parts().set("algorithms", "cubic").error();
    assert!(e.contains("2 to 16"), "{e}");
    let e = parts().set("algorithms", "cubic,quick,vegas").error();
    assert!(e.contains("the model chooses \"quick\": "), "{e}");
    let e = parts().set("algorithms", "copa:delta=0.1;copa:delta=9;vegas").error();
    assert!(e.contains("the model chooses \"copa:delta=9\": ") && !e.contains('\n'), "{e}");
    let e = parts().set("first", "copa").error();
    assert!(e.contains("first is \"copa\""), "{e}");
    let e = parts().set("period_ms", "0").error();
    assert!(e.contains("1 to 3600000"), "{e}");
    let e = parts().set("algorithms", "cubic,bbr").error();
    assert!(e.contains("split.input is U8 [3, 4, 7]; it must be U8 [2, 4, 7]"), "{e}");
    let mut wrong = parts();
    wrong.asked[5] = FEATURES_LEN as u8;
    assert!(wrong.error().contains("split.input is \"7\"; it must be the number of one"));
    let mut wrong = parts();
    wrong.thresholds[0] = f64::NAN;
    assert!(wrong.error().contains("split.threshold has a number that is not finite"));
    let mut wrong = parts();
    (wrong.low[3], wrong.high[3]) = (0.6, 0.5);
    assert!(wrong.error().contains("norm.low"));
}

#[test]
fn trees_have_a_sensible_shape() {
    let with_leaves = |shape: &[usize]| {
        let file = Parts::new(1).with(|tensor| {
            if tensor.0 == "leaf.value" {
                tensor.2 = shape.to_vec();
                tensor.3 = vec![0; shape.iter().product::<usize>() * 8];
            }
        });
        Boosted::parse(&file).unwrap_err().to_string()
    };
    for shape in
        [&[3, 4, 6][..], &[3, 4, 1], &[3, 0, 8], &[3, 4, 0], &[3, 1, 512], &[3, 1025, 2], &[3, 8]]
    {
        let e = with_leaves(shape);
        assert!(e.contains("leaf.value is F64") && e.contains("2 to 256 leaves"), "{shape:?}: {e}");
    }
    // A depth of its own; then the splits do not fit.
    assert!(with_leaves(&[3, 4, 16]).contains("it must be U8 [3, 4, 15]"));
}

#[test]
fn a_changed_byte_is_noticed() {
    let file = Parts::new(4).file();
    for at in [file.len() - 1, file.len() - 500, file.len() - 1000] {
        let mut file = file.clone();
        file[at] ^= 1;
        let e = Boosted::parse(&file).unwrap_err();
        assert!(matches!(
            e,
            ModelError::Checksum | ModelError::Value { .. } | ModelError::Number(_)
        ));
        assert_eq!(e.unusable(), Unusable::Damaged);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_models_or_an_error_of_one_line(at in 0usize..3000, cut in 0usize..3000, to: u8) {
        let mut file = Parts::new(6).file();
        let (at, end) = (at % file.len(), file.len() - cut % 50);
        file[at] = to;
        for bytes in [&file[..], &file[..end], &file[..cut.min(file.len())]] {
            if let Err(e) = Boosted::parse(bytes) {
                prop_assert!(!e.to_string().contains('\n'), "{e}");
            }
        }
    }
}
