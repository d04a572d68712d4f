//! The models: gradient-boosted regression trees, one sum of trees per candidate, read from a file
//! (40 trees of depth 3 in the published `ModelTrain.py`).
//!
//! The file is in the safetensors format. `docs/reference/selection.md` has the names of its tensors and metadata.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use sha2::Digest;
use trimtab_cc::Spec;
use trimtab_units::Duration;

use super::interval::{FEATURES, Inputs, feature_index};
use crate::Distrust;
use crate::select::file::{
    self, CANDIDATES_MAX, ModelError, algorithms, checked, data, digest_of, doubles, first, floats,
    period, tensor,
};

/// `format` of a file that this module reads.
pub const FORMAT: &str = "trimtab-antelope";
/// `version` of it. Another scale of a feature, or another meaning of a tensor, is another version.
pub const VERSION: &str = "1";
/// The most questions from a tree's root to its leaves.
pub const DEPTH_MAX: usize = 8;
/// The most trees of a candidate.
pub const TREES_MAX: usize = 1024;

/// A question: is the input above the threshold? Answers of no stand on the left.
#[derive(Clone, Copy, Debug)]
struct Split {
    input: u8,
    threshold: f64,
}

/// An input that the trees ask for.
#[derive(Clone, Copy, Debug)]
struct Input {
    /// Its place in [`FEATURES`].
    feature: usize,
    /// The range in which the trees learnt.
    low: f32,
    high: f32,
}

/// One model per candidate, ready to decide.
#[derive(Clone, Debug)]
pub struct Boosted {
    inputs: Vec<Input>,
    candidates: Vec<Spec>,
    first: usize,
    period: Duration,
    depth: usize,
    trees: usize,
    /// By candidate, then tree; of a tree, the root, the two below it, and so on.
    splits: Vec<Split>,
    leaves: Vec<f64>,
    /// What each candidate's sum begins with.
    base: Vec<f64>,
    sha256: String,
}

impl Boosted {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, a damaged one, or one of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let metadata = &file::metadata(bytes, FORMAT, &[VERSION])?;
        let features = file::features(metadata, feature_index)?;
        if features.len() > FEATURES.len() {
            return Err(ModelError::Value {
                key: "features",
                found: features.len().to_string(),
                expected: "1 to 7 of them",
            });
        }
        let candidates = algorithms(metadata)?;
        let first = first(metadata, &candidates)?;
        let period = period(metadata)?;

        let file = SafeTensors::deserialize(bytes)?;
        let leaves = tensor(&file, "leaf.value")?;
        let (trees, depth) = size(&leaves)?;
        let (count, nodes) = (candidates.len(), (1 << depth) - 1);
        let asked = tensor(&file, "split.input")?;
        let thresholds = tensor(&file, "split.threshold")?;
        let base = tensor(&file, "base")?;
        let (low, high) = (tensor(&file, "norm.low")?, tensor(&file, "norm.high")?);
        let mut digest = digest_of(metadata);
        for view in [&asked, &thresholds, &leaves, &base, &low, &high] {
            digest.update(view.data());
        }
        let asked = data(&asked, "split.input", Dtype::U8, &[count, trees, nodes])?;
        let thresholds = doubles(&thresholds, "split.threshold", &[count, trees, nodes])?;
        let leaves = doubles(&leaves, "leaf.value", &[count, trees, nodes + 1])?;
        let base = doubles(&base, "base", &[count])?;
        let low = floats(&low, "norm.low", &[features.len()])?;
        let high = floats(&high, "norm.high", &[features.len()])?;
        if let Some(wrong) = asked.iter().find(|input| usize::from(**input) >= features.len()) {
            return Err(ModelError::Value {
                key: "split.input",
                found: wrong.to_string(),
                expected: "the number of one of its features",
            });
        }
        file::check_ranges(&low, &high)?;
        let sha256 = checked(digest, metadata)?;
        let input = |(i, feature): (usize, usize)| Input { feature, low: low[i], high: high[i] };
        let splits = asked.iter().zip(thresholds);
        Ok(Self {
            inputs: features.into_iter().enumerate().map(input).collect(),
            candidates,
            first,
            period,
            depth,
            trees,
            splits: splits.map(|(&input, threshold)| Split { input, threshold }).collect(),
            leaves,
            base,
            sha256,
        })
    }

    /// The same models where only some of their candidates can run: the others are never chosen.
    /// `None` where fewer than two remain. Connections start with what they did before, or else with
    /// the first that remains.
    #[must_use]
    pub fn only(&self, can_run: impl Fn(&Spec) -> bool) -> Option<Self> {
        let kept: Vec<usize> =
            (0..self.candidates.len()).filter(|i| can_run(&self.candidates[*i])).collect();
        if kept.len() < 2 {
            return None;
        }
        let nodes = (1 << self.depth) - 1;
        let splits = |i: &usize| self.splits[i * self.trees * nodes..][..self.trees * nodes].iter();
        let ends = self.trees * (nodes + 1);
        let leaves = |i: &usize| self.leaves[i * ends..][..ends].iter();
        Some(Self {
            candidates: kept.iter().map(|i| self.candidates[*i]).collect(),
            first: kept.iter().position(|i| *i == self.first).unwrap_or(0),
            splits: kept.iter().flat_map(splits).copied().collect(),
            leaves: kept.iter().flat_map(leaves).copied().collect(),
            base: kept.iter().map(|i| self.base[*i]).collect(),
            ..self.clone()
        })
    }

    /// What it chooses among.
    pub fn candidates(&self) -> &[Spec] {
        &self.candidates
    }

    /// Number of the candidate that a connection starts with where nothing is known of its destination.
    pub fn first(&self) -> usize {
        self.first
    }

    /// How often it wants to choose.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Its checksum in hexadecimal: its name.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The number of the candidate that is foretold the highest reward. It allocates nothing.
    ///
    /// # Errors
    /// The inputs are not like those that it learnt from.
    pub fn decide(&self, inputs: &Inputs) -> Result<usize, Distrust> {
        let rewards = self.rewards(inputs)?;
        let rewards = &rewards[..self.candidates.len()];
        // The first of equals.
        let better = |best: usize, i: usize| if rewards[i] > rewards[best] { i } else { best };
        Ok((0..rewards.len()).fold(0, better))
    }

    /// The reward that is foretold of each candidate, in percent; those beyond the candidates are 0.
    ///
    /// # Errors
    /// The inputs are not like those that it learnt from.
    pub fn rewards(&self, inputs: &Inputs) -> Result<[f64; CANDIDATES_MAX], Distrust> {
        let mut asked = [0.0; FEATURES.len()];
        for (x, input) in asked.iter_mut().zip(&self.inputs) {
            let (feature, given) = (FEATURES[input.feature].name, inputs[input.feature]);
            if !given.is_finite() {
                return Err(Distrust::NotFinite { feature });
            }
            if given < input.low || given > input.high {
                return Err(Distrust::OutOfDistribution { feature });
            }
            *x = f64::from(given);
        }
        let nodes = (1 << self.depth) - 1;
        let mut rewards = [0.0; CANDIDATES_MAX];
        let splits = self.splits.chunks_exact(self.trees * nodes);
        let leaves = self.leaves.chunks_exact(self.trees * (nodes + 1));
        for (((reward, base), splits), leaves) in
            rewards.iter_mut().zip(&self.base).zip(splits).zip(leaves)
        {
            let trees = splits.chunks_exact(nodes).zip(leaves.chunks_exact(nodes + 1));
            *reward = trees.fold(*base, |sum, (splits, leaves)| {
                let mut node = 0;
                for _ in 0..self.depth {
                    let Split { input, threshold } = splits[node];
                    let is_above = asked[usize::from(input)] > threshold;
                    node = 2 * node + 1 + usize::from(is_above);
                }
                sum + leaves[node - nodes]
            });
            if !reward.is_finite() {
                return Err(Distrust::Overflow);
            }
        }
        Ok(rewards)
    }
}

/// The number of trees of a candidate and their depth, by the shape of the leaves.
fn size(view: &TensorView<'_>) -> Result<(usize, usize), ModelError> {
    if let &[_, trees, leaves] = view.shape() {
        let depth = leaves.checked_ilog2().unwrap_or(0) as usize;
        let is_whole = leaves.is_power_of_two() && (1..=DEPTH_MAX).contains(&depth);
        if is_whole && (1..=TREES_MAX).contains(&trees) {
            return Ok((trees, depth));
        }
    }
    Err(ModelError::Shape {
        name: "leaf.value",
        found: format!("{:?} {:?}", view.dtype(), view.shape()),
        expected: format!(
            "F64 of candidates, 1 to {TREES_MAX} trees, and 2 to {} leaves, a power of two",
            1 << DEPTH_MAX
        ),
    })
}

#[cfg(test)]
#[path = "boosted_tests.rs"]
pub(super) mod tests;
