//! Files of learnt policies, made by the tests.

use std::collections::HashMap;

use safetensors::Dtype;
use safetensors::tensor::{TensorView, serialize};
use sha2::{Digest, Sha256};

/// A policy that prefers each candidate by a weighted sum of numbers of the state, and a constant.
pub(crate) struct Policy<'a> {
    pub(crate) features: &'a [&'a str],
    /// Each with its constant, and a weight for each feature.
    pub(crate) candidates: &'a [(&'a str, f32, &'a [f32])],
    /// Within which the features are trusted.
    pub(crate) range: (f32, f32),
    pub(crate) period_ms: u32,
}

impl Policy<'_> {
    /// The bytes of its file (`docs/reference/selection.md`).
    pub(crate) fn file(&self) -> Vec<u8> {
        let (n, c) = (self.features.len(), self.candidates.len());
        let names: Vec<&str> = self.candidates.iter().map(|(name, ..)| *name).collect();
        let mut metadata = HashMap::from([
            ("format".to_owned(), "trimtab-select".to_owned()),
            ("version".to_owned(), "1".to_owned()),
            ("features".to_owned(), self.features.join(",")),
            ("algorithms".to_owned(), names.join(",")),
            ("period_ms".to_owned(), self.period_ms.to_string()),
        ]);
        let identity = (0..n * n).map(|i| f32::from(u8::from(i % (n + 1) == 0))).collect();
        let weights = self.candidates.iter().flat_map(|(.., weights)| weights.to_vec()).collect();
        let constants = self.candidates.iter().map(|(_, constant, _)| *constant).collect();
        let tensors: [(&str, Vec<usize>, Vec<f32>); 8] = [
            ("fc1.weight", vec![n, n], identity),
            ("fc1.bias", vec![n], vec![0.0; n]),
            ("fc2.weight", vec![c, n], weights),
            ("fc2.bias", vec![c], constants),
            ("norm.mean", vec![n], vec![0.0; n]),
            ("norm.scale", vec![n], vec![1.0; n]),
            ("norm.low", vec![n], vec![self.range.0; n]),
            ("norm.high", vec![n], vec![self.range.1; n]),
        ];
        let mut digest = Sha256::new();
        let mut lines: Vec<String> = metadata.iter().map(|(k, v)| format!("{k}={v}\n")).collect();
        lines.sort();
        lines.iter().for_each(|line| digest.update(line));
        let bytes = tensors.map(|(name, shape, numbers)| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            digest.update(&bytes);
            (name, shape, bytes)
        });
        let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        metadata.insert("sha256".to_owned(), sha256);
        let views = bytes.iter().map(|(name, shape, bytes)| {
            (
                *name,
                TensorView::new(Dtype::F32, shape.clone(), bytes).expect("as many as the shape"),
            )
        });
        serialize(views, Some(metadata)).expect("a model")
    }
}
