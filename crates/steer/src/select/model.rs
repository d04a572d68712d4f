//! A learnt policy: an actor of one hidden layer, read from a file (Floo §4.3.2, Appendix D: 200 units, leaky ReLU,
//! softmax).
//!
//! The file is in the safetensors format. `docs/reference/selection.md` has the names of its tensors and metadata.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use sha2::{Digest, Sha256};
use trimtab_cc::{Spec, SpecError};
use trimtab_units::Duration;

use super::features::{FEATURES, State, feature_index};

/// `format` of a file that this module reads.
pub const FORMAT: &str = "trimtab-select";
/// `version` of it. Another scale of a feature, or another meaning of a tensor, is another version.
pub const VERSION: &str = "1";
/// The most hidden units, so that a decision needs no memory but the stack's.
pub const HIDDEN_MAX: usize = 512;
/// The most candidates.
pub const CANDIDATES_MAX: usize = 16;
/// Slope of the leaky ReLU below 0.
const SLOPE: f32 = 0.01;
/// The key of the checksum: SHA-256 over `KEY=VALUE` and a line feed for every other key in ascending order, then over
/// the bytes of the tensors in the order of [`TENSORS`].
const CHECKSUM: &str = "sha256";
/// The tensors.
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

/// Why a file is no model that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// It is not in the safetensors format, or damaged.
    #[error("the model is no safetensors file, or a damaged one: {}", one_line(.0))]
    Format(#[from] SafeTensorError),
    /// It lacks something.
    #[error("the model has no {0}")]
    Missing(&'static str),
    /// It is of another kind or version.
    #[error(
        "the model has {key} {found:?} and this program reads {expected:?}: train it again with this version"
    )]
    Version {
        /// The key of the metadata.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// It wants a feature that there is not.
    #[error(
        "the model wants the feature {0:?}, which this program does not measure: train it again with this version"
    )]
    Feature(String),
    /// It chooses among algorithms that there are not.
    #[error("the model chooses {text:?}: {}", one_line(problem))]
    Algorithm {
        /// As the file names it.
        text: String,
        /// What is wrong with it.
        problem: SpecError,
    },
    /// A value of the metadata is out of its range.
    #[error("the model's {key} is {found:?}; it must be {expected}")]
    Value {
        /// The key of the metadata.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A tensor has another type or shape than the rest of the file asks for.
    #[error("the model's {name} is {found}; it must be F32 {expected:?}")]
    Shape {
        /// The tensor.
        name: &'static str,
        /// Its type and shape.
        found: String,
        /// The shape that it must have.
        expected: Vec<usize>,
    },
    /// A tensor has a number that is not finite, a scale that is not positive, or a range that ends before it
    /// begins.
    #[error(
        "the model's {0} has a number that is not finite, a scale that is not above 0, or a range without anything in it"
    )]
    Number(&'static str),
    /// The checksum does not fit.
    #[error(
        "the model is damaged: it does not have the checksum that it names; copy or train it again"
    )]
    Checksum,
}

impl ModelError {
    /// What it means to whoever goes on without the model.
    pub fn unusable(&self) -> Unusable {
        match self {
            Self::Version { .. } | Self::Feature(_) => Unusable::Version,
            _ => Unusable::Damaged,
        }
    }
}

/// Why there is no model, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody could read its file.
    #[error("its file cannot be read")]
    Missing,
    /// What is in the file is no model, or not the one that was written.
    #[error("its file is damaged, or no model")]
    Damaged,
    /// It is of another version of this program.
    #[error("its file is of another version")]
    Version,
    /// Of what it chooses among, fewer than two can run here.
    #[error("fewer than two of its algorithms can run here")]
    Candidates,
}

/// What a damaged file names may have any characters; an error is one line all the same.
fn one_line(problem: &impl std::fmt::Display) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    problem.to_string().chars().map(shown).collect()
}

/// Why a policy gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// A number of the state is not finite.
    #[error("{} is not finite", FEATURES[*feature].name)]
    NotFinite {
        /// Its place in [`FEATURES`](super::FEATURES).
        feature: usize,
    },
    /// A number of the state is outside the range in which the policy learnt.
    #[error("{} is outside the range in which the policy learnt", FEATURES[*feature].name)]
    OutOfDistribution {
        /// Its place in [`FEATURES`](super::FEATURES).
        feature: usize,
    },
    /// The weights are so large that the preferences are not finite.
    #[error("the policy's preferences are not finite")]
    Overflow,
    /// There is no model.
    #[error("there is no model: {0}")]
    NoModel(Unusable),
}

/// How the policy takes in one number of a state.
#[derive(Clone, Copy, Debug)]
struct Input {
    feature: usize,
    mean: f32,
    /// One over the scale.
    gain: f32,
    low: f32,
    high: f32,
}

/// A learnt policy, ready to decide.
#[derive(Clone, Debug)]
pub struct Model {
    inputs: Vec<Input>,
    candidates: Vec<Spec>,
    first: usize,
    period: Duration,
    hidden: usize,
    /// By input, then hidden unit: so the units of one input lie side by side.
    weights: Vec<f32>,
    biases: Vec<f32>,
    /// By candidate, then hidden unit.
    out_weights: Vec<f32>,
    out_biases: Vec<f32>,
    sha256: String,
}

impl Model {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no model, a damaged one, or one of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let metadata = header.metadata().as_ref().ok_or(ModelError::Missing("metadata"))?;
        expect(metadata, "format", FORMAT)?;
        expect(metadata, "version", VERSION)?;
        let features = value(metadata, "features")?
            .split(',')
            .map(|name| {
                let unknown = || ModelError::Feature(name.to_owned());
                feature_index(name.trim()).ok_or_else(unknown)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let candidates = algorithms(metadata)?;
        let first = first(metadata, &candidates)?;
        let period = period(metadata)?;

        let file = SafeTensors::deserialize(bytes)?;
        let (inputs, outputs) = (features.len(), candidates.len());
        let hidden = tensor(&file, "fc1.bias")?.shape().first().copied().unwrap_or(0);
        if hidden == 0 || hidden > HIDDEN_MAX {
            return Err(ModelError::Value {
                key: "fc1.bias",
                found: hidden.to_string(),
                expected: "of 1 to 512 units",
            });
        }
        let shapes: [&[usize]; 8] = [
            &[hidden, inputs],
            &[hidden],
            &[outputs, hidden],
            &[outputs],
            &[inputs],
            &[inputs],
            &[inputs],
            &[inputs],
        ];
        let mut digest = digest_of(metadata);
        let mut tensors: [Vec<f32>; 8] = Default::default();
        for ((name, shape), numbers) in TENSORS.into_iter().zip(shapes).zip(&mut tensors) {
            let view = tensor(&file, name)?;
            *numbers = floats(&view, name, shape)?;
            digest.update(view.data());
        }
        let sha256: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if value(metadata, CHECKSUM)? != sha256 {
            return Err(ModelError::Checksum);
        }
        let [weights, biases, out_weights, out_biases, mean, scale, low, high] = tensors;
        if scale.iter().any(|s| *s <= 0.0 || !(1.0 / s).is_finite()) {
            return Err(ModelError::Number("norm.scale"));
        }
        if low.iter().zip(&high).any(|(low, high)| low > high) {
            return Err(ModelError::Number("norm.low"));
        }
        let input = |(i, feature): (usize, usize)| Input {
            feature,
            mean: mean[i],
            gain: 1.0 / scale[i],
            low: low[i],
            high: high[i],
        };
        let transposed = (0..inputs * hidden).map(|k| weights[(k % hidden) * inputs + k / hidden]);
        Ok(Self {
            weights: transposed.collect(),
            inputs: features.into_iter().enumerate().map(input).collect(),
            candidates,
            first,
            period,
            hidden,
            biases,
            out_weights,
            out_biases,
            sha256,
        })
    }

    /// A policy that has learnt nothing: Floo's 200 units over all features, weights between -1 and 1 drawn by `seed`.
    /// What training must beat, and what a decision costs.
    ///
    /// # Panics
    /// There are no candidates, or more than [`CANDIDATES_MAX`].
    pub fn random(candidates: Vec<Spec>, seed: u64) -> Self {
        assert!(
            (1..=CANDIDATES_MAX).contains(&candidates.len()),
            "candidates: 1 to {CANDIDATES_MAX}"
        );
        let hidden = 200;
        let input =
            |feature| Input { feature, mean: 0.0, gain: 1.0, low: f32::MIN, high: f32::MAX };
        let mut drawn = seed;
        let mut draw = |n: usize| -> Vec<f32> {
            let mut one = || {
                // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); its upper 24 bits are exact in single precision.
                drawn = drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let n = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((n ^ (n >> 31)) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
            };
            (0..n).map(|_| one()).collect()
        };
        let outputs = candidates.len();
        Self {
            inputs: (0..FEATURES.len()).map(input).collect(),
            candidates,
            first: 0,
            period: super::PERIOD,
            hidden,
            weights: draw(FEATURES.len() * hidden),
            biases: draw(hidden),
            out_weights: draw(outputs * hidden),
            out_biases: draw(outputs),
            sha256: String::new(),
        }
    }

    /// The same policy where only some of its candidates can run: the others are never preferred. `None` where fewer
    /// than two remain. Connections start with what they did before, or else with the first that remains.
    #[must_use]
    pub fn only(&self, can_run: impl Fn(&Spec) -> bool) -> Option<Self> {
        let kept: Vec<usize> =
            (0..self.candidates.len()).filter(|i| can_run(&self.candidates[*i])).collect();
        if kept.len() < 2 {
            return None;
        }
        let row = |i: &usize| self.out_weights[i * self.hidden..][..self.hidden].iter().copied();
        Some(Self {
            candidates: kept.iter().map(|i| self.candidates[*i]).collect(),
            first: kept.iter().position(|i| *i == self.first).unwrap_or(0),
            out_weights: kept.iter().flat_map(row).collect(),
            out_biases: kept.iter().map(|i| self.out_biases[*i]).collect(),
            ..self.clone()
        })
    }

    /// What it chooses among.
    pub fn candidates(&self) -> &[Spec] {
        &self.candidates
    }

    /// Number of the candidate that a connection starts with.
    pub fn first(&self) -> usize {
        self.first
    }

    /// How often it wants to choose.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Its checksum in hexadecimal: its name. Empty of one that no file holds.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The number of the candidate that it prefers. It allocates nothing.
    ///
    /// # Errors
    /// The state is not one of those that it learnt from.
    pub fn decide(&self, state: &State) -> Result<usize, Distrust> {
        let logits = self.logits(state)?;
        let logits = &logits[..self.candidates.len()];
        // The softmax keeps their order. The first of equals.
        let mut best = 0;
        for (i, &logit) in logits.iter().enumerate() {
            if logit > logits[best] {
                best = i;
            }
        }
        Ok(best)
    }

    /// The logarithms of its preferences, up to a constant; those beyond the candidates are 0.
    ///
    /// # Errors
    /// The state is not one of those that it learnt from.
    pub fn logits(&self, state: &State) -> Result<[f32; CANDIDATES_MAX], Distrust> {
        let mut units = [0.0; HIDDEN_MAX];
        let units = &mut units[..self.hidden];
        units.copy_from_slice(&self.biases);
        for (input, weights) in self.inputs.iter().zip(self.weights.chunks_exact(self.hidden)) {
            let (feature, x) = (input.feature, state[input.feature]);
            if !x.is_finite() {
                return Err(Distrust::NotFinite { feature });
            }
            if x < input.low || x > input.high {
                return Err(Distrust::OutOfDistribution { feature });
            }
            let x = (x - input.mean) * input.gain;
            for (unit, weight) in units.iter_mut().zip(weights) {
                *unit += weight * x;
            }
        }
        for unit in units.iter_mut() {
            *unit = if *unit < 0.0 { *unit * SLOPE } else { *unit };
        }
        let mut logits = [0.0; CANDIDATES_MAX];
        let rows = self.out_weights.chunks_exact(self.hidden);
        for ((logit, bias), row) in logits.iter_mut().zip(&self.out_biases).zip(rows) {
            *logit = bias + row.iter().zip(units.iter()).map(|(w, u)| w * u).sum::<f32>();
            if !logit.is_finite() {
                return Err(Distrust::Overflow);
            }
        }
        Ok(logits)
    }
}

fn value<'a>(
    metadata: &'a HashMap<String, String>,
    key: &'static str,
) -> Result<&'a str, ModelError> {
    metadata.get(key).map(String::as_str).ok_or(ModelError::Missing(key))
}

/// Of the metadata, to go on with the tensors.
fn digest_of(metadata: &HashMap<String, String>) -> Sha256 {
    let mut keys: Vec<_> = metadata.iter().filter(|(key, _)| *key != CHECKSUM).collect();
    keys.sort_unstable();
    let mut digest = Sha256::new();
    for (key, value) in keys {
        digest.update(format!("{key}={value}\n"));
    }
    digest
}

fn expect(
    metadata: &HashMap<String, String>,
    key: &'static str,
    expected: &'static str,
) -> Result<(), ModelError> {
    let found = value(metadata, key)?;
    if found == expected {
        return Ok(());
    }
    Err(ModelError::Version { key, found: found.to_owned(), expected })
}

fn algorithms(metadata: &HashMap<String, String>) -> Result<Vec<Spec>, ModelError> {
    let text = value(metadata, "algorithms")?;
    // A comma separates knobs as well, so candidates with knobs need another sign between them.
    let sign = if text.contains(';') { ';' } else { ',' };
    let specs = text.split(sign).map(parse_spec).collect::<Result<Vec<_>, _>>()?;
    if specs.len() < 2 || specs.len() > CANDIDATES_MAX {
        return Err(ModelError::Value {
            key: "algorithms",
            found: text.to_owned(),
            expected: "2 to 16 of them",
        });
    }
    Ok(specs)
}

fn parse_spec(text: &str) -> Result<Spec, ModelError> {
    let wrong = |problem| ModelError::Algorithm { text: text.trim().to_owned(), problem };
    text.parse().map_err(wrong)
}

/// The candidate that connections start with: the first one where the file does not say.
fn first(metadata: &HashMap<String, String>, candidates: &[Spec]) -> Result<usize, ModelError> {
    let Some(text) = metadata.get("first") else { return Ok(0) };
    let wanted = parse_spec(text)?;
    let same = |s: &Spec| s.is_same(&wanted);
    candidates.iter().position(same).ok_or_else(|| ModelError::Value {
        key: "first",
        found: text.clone(),
        expected: "one of its algorithms",
    })
}

fn period(metadata: &HashMap<String, String>) -> Result<Duration, ModelError> {
    let text = value(metadata, "period_ms")?;
    let wrong =
        || ModelError::Value { key: "period_ms", found: text.to_owned(), expected: "1 to 3600000" };
    let ms: u64 = text.parse().map_err(|_| wrong())?;
    if (1..=3_600_000).contains(&ms) { Ok(Duration::from_millis(ms)) } else { Err(wrong()) }
}

fn tensor<'a>(file: &SafeTensors<'a>, name: &'static str) -> Result<TensorView<'a>, ModelError> {
    file.tensor(name).map_err(|_| ModelError::Missing(name))
}

fn floats(
    view: &TensorView<'_>,
    name: &'static str,
    shape: &[usize],
) -> Result<Vec<f32>, ModelError> {
    if view.dtype() != Dtype::F32 || view.shape() != shape {
        let found = format!("{:?} {:?}", view.dtype(), view.shape());
        return Err(ModelError::Shape { name, found, expected: shape.to_vec() });
    }
    let (numbers, _) = view.data().as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    if numbers.iter().all(|x| x.is_finite()) { Ok(numbers) } else { Err(ModelError::Number(name)) }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
