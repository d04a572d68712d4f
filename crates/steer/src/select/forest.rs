//! Regression trees whose leaves score every candidate. A member of an ensemble is the mean of some.
//!
//! Extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006). They need no
//! scaling of their inputs and no arithmetic but comparisons and sums, so they also run where there
//! is no floating-point unit to speak of.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use safetensors::tensor::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

use super::file::{CANDIDATES_MAX, ModelError, data, floats, tensor};
use super::model::{Member, Tensors};

/// The most splits of a tree: a place in it is a number of 16 bits with a sign.
pub const SPLITS_MAX: usize = i16::MAX as usize;

/// A question: is the input at most the threshold? Answers of yes stand first.
#[derive(Clone, Copy, Debug)]
struct Split {
    input: u8,
    threshold: f32,
    /// Of the same tree: the number of the next split, or -1 - the number of a leaf.
    next: [i16; 2],
}

/// Where a tree begins among the splits and leaves of its member, and how many splits it has.
#[derive(Clone, Copy, Debug)]
struct Root {
    split: usize,
    leaf: usize,
    splits: usize,
}

/// Some trees.
#[derive(Clone, Debug)]
pub(super) struct Forest {
    roots: Vec<Root>,
    splits: Vec<Split>,
    /// By leaf, then candidate.
    scores: Vec<f32>,
    candidates: usize,
}

impl Forest {
    /// The same for some of the candidates, by their numbers.
    pub(super) fn only(&self, kept: &[usize]) -> Self {
        let leaves = self.scores.chunks_exact(self.candidates);
        Self {
            scores: leaves.flat_map(|leaf| kept.iter().map(|i| leaf[*i])).collect(),
            candidates: kept.len(),
            ..self.clone()
        }
    }

    /// Its scores of the candidates; those beyond them are 0. Where one is not finite, there is none.
    pub(super) fn scores(&self, inputs: &[f32]) -> Option<[f32; CANDIDATES_MAX]> {
        let mut scores = [0.0; CANDIDATES_MAX];
        for root in &self.roots {
            let leaf = root.leaf + self.leaf(root, inputs);
            let of = &self.scores[leaf * self.candidates..][..self.candidates];
            scores.iter_mut().zip(of).for_each(|(score, of)| *score += of);
        }
        let count = self.roots.len() as f32;
        scores.iter_mut().for_each(|score| *score /= count);
        scores.iter().all(|score| score.is_finite()).then_some(scores)
    }

    /// The number of the leaf of a tree that the inputs lead to.
    fn leaf(&self, root: &Root, inputs: &[f32]) -> usize {
        if root.splits == 0 {
            return 0;
        }
        let mut place = 0;
        loop {
            let split = self.splits[root.split + place];
            let is_above = inputs[usize::from(split.input)] > split.threshold;
            match split.next[usize::from(is_above)] {
                next @ 0.. => place = next as usize,
                leaf => return (-1 - leaf) as usize,
            }
        }
    }
}

/// Reads the members of a file over so many inputs and candidates, and adds its tensors to the
/// digest.
///
/// # Errors
/// The tensors do not fit together.
pub(super) fn read(
    file: &SafeTensors<'_>,
    (inputs, candidates): (usize, usize),
    digest: &mut Sha256,
) -> Result<Tensors, ModelError> {
    let names =
        ["tree.splits", "split.input", "split.threshold", "split.next", "leaf.score", "norm.low"];
    let [sizes, asked, thresholds, next, scores, low] = names.map(|name| tensor(file, name));
    let (sizes, asked, thresholds) = (sizes?, asked?, thresholds?);
    let (next, scores, low, high) = (next?, scores?, low?, tensor(file, "norm.high")?);
    for view in [&sizes, &asked, &thresholds, &next, &scores, &low, &high] {
        digest.update(view.data());
    }
    let &[members, trees] = sizes.shape() else {
        return Err(ModelError::Shape {
            name: "tree.splits",
            found: format!("{:?} {:?}", sizes.dtype(), sizes.shape()),
            expected: "U16 of members and trees".to_string(),
        });
    };
    super::model::check_members(members, "tree.splits")?;
    let sizes = data(&sizes, "tree.splits", Dtype::U16, &[members, trees])?;
    let (sizes, _) = sizes.as_chunks::<2>();
    let sizes: Vec<usize> = sizes.iter().map(|size| u16::from_le_bytes(*size).into()).collect();
    if trees == 0 || sizes.iter().any(|size| *size > SPLITS_MAX) {
        return Err(wrong("tree.splits", "1 tree of each member or more, of at most 32767 splits"));
    }
    let total: usize = sizes.iter().sum();
    let asked = data(&asked, "split.input", Dtype::U8, &[total])?;
    if asked.iter().any(|input| usize::from(*input) >= inputs) {
        return Err(wrong("split.input", "the numbers of its features"));
    }
    let thresholds = floats(&thresholds, "split.threshold", &[total])?;
    let next = data(&next, "split.next", Dtype::I16, &[total, 2])?;
    let (next, _) = next.as_chunks::<2>();
    let next: Vec<i16> = next.iter().map(|place| i16::from_le_bytes(*place)).collect();
    let scores = floats(&scores, "leaf.score", &[total + sizes.len(), candidates])?;
    let mut splits =
        asked.iter().zip(thresholds).zip(next.chunks_exact(2)).map(
            |((&input, threshold), next)| Split { input, threshold, next: [next[0], next[1]] },
        );
    let mut scores = scores.into_iter();
    let mut member = |sizes: &[usize]| {
        let mut forest =
            Forest { roots: Vec::new(), splits: Vec::new(), scores: Vec::new(), candidates };
        for (number, &size) in sizes.iter().enumerate() {
            let split = forest.splits.len();
            forest.roots.push(Root { split, leaf: split + number, splits: size });
            forest.splits.extend(splits.by_ref().take(size));
            leads_on(&forest.splits[split..])?;
        }
        forest
            .scores
            .extend(scores.by_ref().take((forest.splits.len() + sizes.len()) * candidates));
        Ok(Member::Forest(forest))
    };
    Ok(Tensors {
        members: sizes.chunks_exact(trees).map(&mut member).collect::<Result<_, ModelError>>()?,
        mean: alloc::vec![0.0; inputs],
        scale: alloc::vec![1.0; inputs],
        low: floats(&low, "norm.low", &[inputs])?,
        high: floats(&high, "norm.high", &[inputs])?,
    })
}

/// Every split of a tree leads to a later one or to a leaf, so every way ends.
fn leads_on(splits: &[Split]) -> Result<(), ModelError> {
    let leads = |(place, split): (usize, &Split)| {
        split.next.iter().all(|&next| match usize::try_from(next) {
            Ok(next) => next > place && next < splits.len(),
            Err(_) => (-1 - i32::from(next)) as usize <= splits.len(),
        })
    };
    if splits.iter().enumerate().all(leads) {
        return Ok(());
    }
    Err(wrong("split.next", "later splits of the same tree, or leaves as -1, -2 and so on"))
}

fn wrong(key: &'static str, expected: &'static str) -> ModelError {
    ModelError::Value { key, found: "another".to_string(), expected }
}

#[cfg(test)]
#[path = "forest_tests.rs"]
mod tests;
