//! A learnt policy: an actor of one hidden layer, read from a file (Floo §4.3.2, Appendix D: 200 units, leaky ReLU,
//! softmax).
//!
//! The file is in the safetensors format. `docs/reference/selection.md` has the names of its tensors and metadata.

use safetensors::tensor::SafeTensors;
use sha2::Digest;
use trimtab_cc::Spec;
use trimtab_units::Duration;

use super::features::{CANDIDATE_FEATURES, FEATURES, State, feature_index};
use super::file::{
    self, CANDIDATES_MAX, ModelError, algorithms, checked, digest_of, first, floats, period, tensor,
};
use crate::Distrust;

/// `format` of a file that this module reads.
pub const FORMAT: &str = "trimtab-select";
/// `version` of it. Another scale of a feature, or another meaning of a tensor, is another version.
pub const VERSION: &str = "1";
/// The most hidden units, so that a decision needs no memory but the stack's.
pub const HIDDEN_MAX: usize = 512;
/// Slope of the leaky ReLU below 0.
const SLOPE: f32 = 0.01;
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

/// Where an input comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The number at this place of the state.
    Feature(usize),
    /// 1 while the candidate of this number runs, else 0.
    Candidate(usize),
    /// The same for a candidate that cannot run here: always 0.
    Absent,
}

impl Source {
    /// What a model file calls it.
    fn parse(name: &str) -> Option<Self> {
        let candidate = || CANDIDATE_FEATURES.iter().position(|c| *c == name);
        feature_index(name).map(Self::Feature).or_else(|| candidate().map(Self::Candidate))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Feature(i) => FEATURES[i].name,
            Self::Candidate(i) => CANDIDATE_FEATURES[i],
            Self::Absent => "a candidate that cannot run here",
        }
    }

    fn value(self, state: &State, running: Option<usize>) -> f32 {
        match self {
            Self::Feature(i) => state[i],
            Self::Candidate(i) => f32::from(u8::from(running == Some(i))),
            Self::Absent => 0.0,
        }
    }
}

/// How the policy takes in one number.
#[derive(Clone, Copy, Debug)]
struct Input {
    source: Source,
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
        let metadata = &file::metadata(bytes, FORMAT, VERSION)?;
        let features = file::features(metadata, Source::parse)?;
        let candidates = algorithms(metadata)?;
        let beyond =
            |source: &&Source| matches!(source, Source::Candidate(i) if *i >= candidates.len());
        if let Some(source) = features.iter().find(beyond) {
            return Err(ModelError::Value {
                key: "features",
                found: source.name().to_owned(),
                expected: "the number of one of its algorithms, from 0",
            });
        }
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
        let sha256 = checked(digest, metadata)?;
        let [weights, biases, out_weights, out_biases, mean, scale, low, high] = tensors;
        if scale.iter().any(|s| *s <= 0.0 || !(1.0 / s).is_finite()) {
            return Err(ModelError::Number("norm.scale"));
        }
        file::check_ranges(&low, &high)?;
        let input = |(i, source): (usize, Source)| Input {
            source,
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
        let input = |i| Input {
            source: Source::Feature(i),
            mean: 0.0,
            gain: 1.0,
            low: f32::MIN,
            high: f32::MAX,
        };
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
        let renumbered = |input: &Input| {
            let source = match input.source {
                Source::Candidate(i) => {
                    kept.iter().position(|k| *k == i).map_or(Source::Absent, Source::Candidate)
                }
                other => other,
            };
            Input { source, ..*input }
        };
        Some(Self {
            inputs: self.inputs.iter().map(renumbered).collect(),
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

    /// The number of the candidate that it prefers while the one of number `running` runs, or none of them (`None`). It
    /// allocates nothing.
    ///
    /// # Errors
    /// The state is not one of those that it learnt from.
    pub fn decide(&self, state: &State, running: Option<usize>) -> Result<usize, Distrust> {
        let logits = self.logits(state, running)?;
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
    pub fn logits(
        &self,
        state: &State,
        running: Option<usize>,
    ) -> Result<[f32; CANDIDATES_MAX], Distrust> {
        let mut units = [0.0; HIDDEN_MAX];
        let units = &mut units[..self.hidden];
        units.copy_from_slice(&self.biases);
        for (input, weights) in self.inputs.iter().zip(self.weights.chunks_exact(self.hidden)) {
            let (feature, x) = (input.source.name(), input.source.value(state, running));
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

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
