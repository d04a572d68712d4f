//! A learnt policy: an actor of one hidden layer, read from a file (Floo §4.3.2, Appendix D: 200 units, leaky ReLU,
//! softmax); or an ensemble of them or of trees, which switches only where that is sure to pay.
//!
//! The file is in the safetensors format. `docs/reference/selection.md` has the names of its tensors and metadata.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use safetensors::tensor::SafeTensors;
use trimtab_cc::Spec;
use trimtab_units::Duration;

use super::features::{CANDIDATE_FEATURES, FEATURES, FEATURES_LEN, State, feature_index};
use super::file::{
    self, CANDIDATES_MAX, Metadata, ModelError, algorithms, checked, digest_of, first, period,
};
use super::forest::{self, Forest};
use super::network::{self, Network};
use crate::Distrust;

/// `format` of a file that this module reads.
pub const FORMAT: &str = "trimtab-select";
/// `version` of it. Another scale of a feature, or another meaning of a tensor, is another version.
pub const VERSION: &str = "1";
/// `version` of an ensemble's file.
pub const ENSEMBLE_VERSION: &str = "2";
/// `version` of the file of an ensemble of trees.
pub const FOREST_VERSION: &str = "3";
/// The most members of an ensemble.
pub const MEMBERS_MAX: usize = 16;
/// The most inputs: every number of the state, and every candidate.
const INPUTS_MAX: usize = FEATURES_LEN + CANDIDATES_MAX;

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
    members: Vec<Member>,
    /// Of an ensemble; `None` takes the candidate with the highest score at once.
    restraint: Option<Restraint>,
    sha256: String,
}

/// What scores the candidates.
#[derive(Clone, Debug)]
pub(super) enum Member {
    Network(Network),
    Forest(Forest),
}

impl Member {
    fn only(&self, kept: &[usize]) -> Self {
        match self {
            Self::Network(network) => Self::Network(network.only(kept)),
            Self::Forest(forest) => Self::Forest(forest.only(kept)),
        }
    }

    fn scores(&self, inputs: &[f32]) -> Option<[f32; CANDIDATES_MAX]> {
        match self {
            Self::Network(network) => network.scores(inputs.iter().copied()),
            Self::Forest(forest) => forest.scores(inputs),
        }
    }
}

/// What the tensors of a file come to, a number of each list for each input.
pub(super) struct Tensors {
    pub(super) members: Vec<Member>,
    pub(super) mean: Vec<f32>,
    pub(super) scale: Vec<f32>,
    pub(super) low: Vec<f32>,
    pub(super) high: Vec<f32>,
}

/// An ensemble has 1 to 16 members.
pub(super) fn check_members(count: usize, key: &'static str) -> Result<(), ModelError> {
    if (1..=MEMBERS_MAX).contains(&count) {
        return Ok(());
    }
    Err(ModelError::Value { key, found: count.to_string(), expected: "of 1 to 16 members" })
}

/// When an ensemble leaves what runs.
#[derive(Clone, Copy, Debug)]
struct Restraint {
    /// How many standard deviations over the members are taken off an advantage.
    caution: f32,
    /// What a switch costs: the least advantage that is left then, in units of the scores.
    margin: f32,
}

impl Restraint {
    fn parse(metadata: &Metadata) -> Result<Self, ModelError> {
        let number = |key: &'static str| {
            let text = file::value(metadata, key)?;
            let number = text.parse().ok().filter(|x: &f32| x.is_finite() && *x >= 0.0);
            number.ok_or_else(|| ModelError::Value {
                key,
                found: text.to_owned(),
                expected: "a number of at least 0",
            })
        };
        Ok(Self { caution: number("caution")?, margin: number("margin")? })
    }

    /// The candidate with the highest lower bound of its advantage over what runs, where that is
    /// more than a switch costs; else what runs.
    fn choose(self, scores: &[[f32; CANDIDATES_MAX]], candidates: usize, runs: usize) -> usize {
        let count = scores.len() as f32;
        let lower = |i: usize| {
            let advantages = || scores.iter().map(|of| of[i] - of[runs]);
            let mean = advantages().sum::<f32>() / count;
            let squares = advantages().map(|a| (a - mean) * (a - mean)).sum::<f32>();
            mean - self.caution * libm::sqrtf(squares / count)
        };
        let mut best = (runs, self.margin);
        for i in (0..candidates).filter(|i| *i != runs) {
            let bound = lower(i);
            if bound > best.1 {
                best = (i, bound);
            }
        }
        best.0
    }
}

impl Model {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no model, a damaged one, or one of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let versions = [VERSION, ENSEMBLE_VERSION, FOREST_VERSION];
        let metadata = &file::metadata(bytes, FORMAT, &versions)?;
        let version = file::value(metadata, "version")?;
        let restraint = (version != VERSION).then(|| Restraint::parse(metadata)).transpose()?;
        let features = file::features(metadata, Source::parse)?;
        if features.len() > INPUTS_MAX {
            return Err(ModelError::Value {
                key: "features",
                found: features.len().to_string(),
                expected: "at most one of each",
            });
        }
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
        let size = (features.len(), candidates.len());
        let mut digest = digest_of(metadata);
        let Tensors { members, mean, scale, low, high } = if version == FOREST_VERSION {
            forest::read(&file, size, &mut digest)?
        } else {
            network::read(&file, size, version == ENSEMBLE_VERSION, &mut digest)?
        };
        let sha256 = checked(digest, metadata)?;
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
        let inputs = features.into_iter().enumerate().map(input).collect();
        Ok(Self { members, restraint, inputs, candidates, first, period, sha256 })
    }

    /// A policy that has learnt nothing: Floo's 200 units over all features, weights between -1 and 1 drawn by `seed`.
    /// What training must beat, and what a decision costs. Several members are an ensemble.
    ///
    /// # Panics
    /// There are no candidates or members, or more than [`CANDIDATES_MAX`] or [`MEMBERS_MAX`].
    pub fn random(candidates: Vec<Spec>, members: usize, seed: u64) -> Self {
        assert!((1..=MEMBERS_MAX).contains(&members), "members: 1 to {MEMBERS_MAX}");
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
        let mut member = || {
            let weights = draw(FEATURES.len() * hidden);
            let network =
                Network::new(&weights, &draw(hidden), &draw(outputs * hidden), &draw(outputs));
            Member::Network(network)
        };
        Self {
            inputs: (0..FEATURES.len()).map(input).collect(),
            candidates,
            first: 0,
            period: super::PERIOD,
            members: (0..members).map(|_| member()).collect(),
            restraint: (members > 1).then_some(Restraint { caution: 1.0, margin: 0.0 }),
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
            members: self.members.iter().map(|member| member.only(&kept)).collect(),
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
        self.check(state, running)?;
        let mut scores = [[0.0; CANDIDATES_MAX]; MEMBERS_MAX];
        let scores = &mut scores[..self.members.len()];
        for (scores, member) in scores.iter_mut().zip(&self.members) {
            *scores = self.scores(member, state, running)?;
        }
        if let (Some(restraint), Some(runs)) = (self.restraint, running) {
            return Ok(restraint.choose(scores, self.candidates.len(), runs));
        }
        Ok(self.highest(scores))
    }

    /// The number of the candidate that it prefers where nothing has to be switched, so that a
    /// switch costs nothing.
    ///
    /// # Errors
    /// The state is not one of those that it learnt from.
    pub fn preferred(&self, state: &State, running: Option<usize>) -> Result<usize, Distrust> {
        Ok(self.highest(&[self.logits(state, running)?]))
    }

    /// The candidate of the highest score over all members, the first of equals. The softmax keeps
    /// their order, and so does the sum over members that of the mean.
    fn highest(&self, scores: &[[f32; CANDIDATES_MAX]]) -> usize {
        let sum = |i: usize| scores.iter().map(|of| of[i]).sum::<f32>();
        (1..self.candidates.len()).fold(0, |best, i| if sum(i) > sum(best) { i } else { best })
    }

    /// The logarithms of its preferences, up to a constant, on average over its members; those
    /// beyond the candidates are 0.
    ///
    /// # Errors
    /// The state is not one of those that it learnt from.
    pub fn logits(
        &self,
        state: &State,
        running: Option<usize>,
    ) -> Result<[f32; CANDIDATES_MAX], Distrust> {
        self.check(state, running)?;
        let mut logits = [0.0; CANDIDATES_MAX];
        for member in &self.members {
            let scores = self.scores(member, state, running)?;
            for (logit, score) in logits.iter_mut().zip(scores) {
                *logit += score / self.members.len() as f32;
            }
        }
        Ok(logits)
    }

    /// Whether the state is one of those that it learnt from.
    fn check(&self, state: &State, running: Option<usize>) -> Result<(), Distrust> {
        for input in &self.inputs {
            let (feature, x) = (input.source.name(), input.source.value(state, running));
            if !x.is_finite() {
                return Err(Distrust::NotFinite { feature });
            }
            if x < input.low || x > input.high {
                return Err(Distrust::OutOfDistribution { feature });
            }
        }
        Ok(())
    }

    fn scores(
        &self,
        member: &Member,
        state: &State,
        running: Option<usize>,
    ) -> Result<[f32; CANDIDATES_MAX], Distrust> {
        let mut normalised = [0.0; INPUTS_MAX];
        for (x, i) in normalised.iter_mut().zip(&self.inputs) {
            *x = (i.source.value(state, running) - i.mean) * i.gain;
        }
        member.scores(&normalised[..self.inputs.len()]).ok_or(Distrust::Overflow)
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
