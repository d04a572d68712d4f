//! A network of one hidden layer with leaky ReLU (Floo Appendix D), of which an ensemble has several.

use alloc::string::ToString;
use alloc::vec::Vec;

use safetensors::tensor::SafeTensors;
use sha2::{Digest, Sha256};

use super::file::{CANDIDATES_MAX, ModelError, floats, tensor};
use super::model::{Member, Tensors, check_members};

/// The most hidden units, so that a decision needs no memory but the stack's.
pub const HIDDEN_MAX: usize = 512;
/// Slope of the leaky ReLU below 0.
const SLOPE: f32 = 0.01;
/// Sums that run at once, so that a processor adds several numbers in a step. Their order is the same
/// on all of them.
const LANES: usize = 8;
/// Inputs that are added in one pass over the units, which are then read and written once for all.
const BLOCK: usize = 4;

/// Weights and biases of both layers.
#[derive(Clone, Debug)]
pub(super) struct Network {
    hidden: usize,
    /// By input, then hidden unit: so the units of one input lie side by side.
    weights: Vec<f32>,
    biases: Vec<f32>,
    /// By candidate, then hidden unit.
    out_weights: Vec<f32>,
    out_biases: Vec<f32>,
}

impl Network {
    /// Of weights by hidden unit, then input, as files have them.
    pub(super) fn new(
        weights: &[f32],
        biases: &[f32],
        out_weights: &[f32],
        out_biases: &[f32],
    ) -> Self {
        let hidden = biases.len();
        let inputs = weights.len() / hidden;
        let transposed = (0..inputs * hidden).map(|k| weights[(k % hidden) * inputs + k / hidden]);
        Self {
            hidden,
            weights: transposed.collect(),
            biases: biases.to_vec(),
            out_weights: out_weights.to_vec(),
            out_biases: out_biases.to_vec(),
        }
    }

    /// The same for some of the candidates, by their numbers.
    pub(super) fn only(&self, kept: &[usize]) -> Self {
        let row = |i: &usize| self.out_weights[i * self.hidden..][..self.hidden].iter().copied();
        Self {
            out_weights: kept.iter().flat_map(row).collect(),
            out_biases: kept.iter().map(|i| self.out_biases[*i]).collect(),
            ..self.clone()
        }
    }

    /// Its scores of the candidates, by normalised inputs; those beyond them are 0. Where one is not
    /// finite, there is none.
    pub(super) fn scores(
        &self,
        mut inputs: impl Iterator<Item = f32>,
    ) -> Option<[f32; CANDIDATES_MAX]> {
        let mut units = [0.0; HIDDEN_MAX];
        let units = &mut units[..self.hidden];
        units.copy_from_slice(&self.biases);
        for weights in self.weights.chunks(BLOCK * self.hidden) {
            let x: [f32; BLOCK] = core::array::from_fn(|_| inputs.next().unwrap_or_default());
            add(units, weights, &x);
        }
        for unit in units.iter_mut() {
            *unit = if *unit < 0.0 { *unit * SLOPE } else { *unit };
        }
        let mut scores = [0.0; CANDIDATES_MAX];
        let rows = self.out_weights.chunks_exact(self.hidden);
        for ((score, bias), row) in scores.iter_mut().zip(&self.out_biases).zip(rows) {
            *score = bias + dot(row, units);
            if !score.is_finite() {
                return None;
            }
        }
        Some(scores)
    }
}

/// The tensors of a file.
const TENSORS: [&str; 8] = [
    "fc1.weight",
    "fc1.bias",
    "fc2.weight",
    "fc2.bias",
    "norm.mean",
    "norm.scale",
    "norm.low",
    "norm.high",
];

/// Reads the members of a file over so many inputs and candidates, and adds its tensors to the
/// digest.
///
/// # Errors
/// The tensors do not fit together.
pub(super) fn read(
    file: &SafeTensors<'_>,
    (inputs, outputs): (usize, usize),
    is_ensemble: bool,
    digest: &mut Sha256,
) -> Result<Tensors, ModelError> {
    let biases = tensor(file, "fc1.bias")?;
    let (count, hidden) = match biases.shape() {
        [count, hidden] if is_ensemble => (*count, *hidden),
        shape => (1, shape.first().copied().unwrap_or(0)),
    };
    check_members(count, "fc1.bias")?;
    if hidden == 0 || hidden > HIDDEN_MAX {
        return Err(ModelError::Value {
            key: "fc1.bias",
            found: hidden.to_string(),
            expected: "of 1 to 512 units",
        });
    }
    // The members are an axis of their own, first, which the file of a single actor has not.
    let skipped = usize::from(!is_ensemble);
    let shapes: [&[usize]; 8] = [
        &[count, hidden, inputs][skipped..],
        &[count, hidden][skipped..],
        &[count, outputs, hidden][skipped..],
        &[count, outputs][skipped..],
        &[inputs],
        &[inputs],
        &[inputs],
        &[inputs],
    ];
    let mut tensors: [Vec<f32>; 8] = Default::default();
    for ((name, shape), numbers) in TENSORS.into_iter().zip(shapes).zip(&mut tensors) {
        let view = tensor(file, name)?;
        *numbers = floats(&view, name, shape)?;
        digest.update(view.data());
    }
    let [weights, biases, out_weights, out_biases, mean, scale, low, high] = tensors;
    let member = |i: usize| {
        let of = |all: &'_ [f32]| all[i * all.len() / count..(i + 1) * all.len() / count].to_vec();
        let network =
            Network::new(&of(&weights), &of(&biases), &of(&out_weights), &of(&out_biases));
        Member::Network(network)
    };
    Ok(Tensors { members: (0..count).map(member).collect(), mean, scale, low, high })
}

/// Adds the products of some inputs and their weights to all units, input after input.
fn add(units: &mut [f32], weights: &[f32], x: &[f32; BLOCK]) {
    let hidden = units.len();
    if weights.len() == BLOCK * hidden {
        let (a, weights) = weights.split_at(hidden);
        let (b, weights) = weights.split_at(hidden);
        let (c, d) = weights.split_at(hidden);
        let weights = a.iter().zip(b).zip(c.iter().zip(d));
        for (unit, ((a, b), (c, d))) in units.iter_mut().zip(weights) {
            *unit = *unit + a * x[0] + b * x[1] + c * x[2] + d * x[3];
        }
        return;
    }
    for (x, weights) in x.iter().zip(weights.chunks_exact(hidden)) {
        for (unit, weight) in units.iter_mut().zip(weights) {
            *unit += weight * x;
        }
    }
}

/// The sum of products.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_in_blocks_add_up_as_one_by_one() {
        for inputs in 1..10 {
            let number = |i: usize| ((i * 37 % 19) as f32 - 9.0) / 7.0;
            let weights: Vec<f32> = (0..inputs * 5).map(number).collect();
            let x: Vec<f32> = (0..inputs).map(|i| number(i + 100)).collect();
            // The units themselves are what comes out, where they are above 0.
            let identity: Vec<f32> = (0..25).map(|i| f32::from(u8::from(i % 6 == 0))).collect();
            let network = Network::new(&weights, &[90.0; 5], &identity, &[0.0; 5]);
            let scores = network.scores(x.iter().copied()).unwrap();
            for unit in 0..5 {
                let row = &weights[unit * inputs..][..inputs];
                let expected = row.iter().zip(&x).fold(90.0, |sum, (w, x)| sum + w * x);
                assert_eq!(scores[unit], expected, "{inputs} inputs");
            }
        }
    }

    #[test]
    fn a_sum_in_lanes_has_every_product_once() {
        for n in [0, 1, 7, 8, 9, 200, 203] {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let expected: usize = (0..n).map(|i| 2 * i).sum();
            assert_eq!(dot(&a, &vec![2.0; n]), expected as f32, "{n}");
        }
    }
}
