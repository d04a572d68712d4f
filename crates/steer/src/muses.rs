//! The heavy policy of Muses, run natively: an LSTM of two layers and a softmax over the seven actions (Zhong et al.,
//! INFOCOM 2022, §II-C and §III-C). The light one, its trees, is [`trimtab_cc::muses::Trees`].
//!
//! [`Lstm`] is the model, read from the file that `./dev train-muses` writes and shared by all connections; [`Memory`]
//! is what a connection keeps of its past. A decision allocates nothing and gives the same on every machine.

use std::sync::Arc;

use safetensors::{Dtype, SafeTensorError, SafeTensors};
use sha2::{Digest, Sha256};
use trimtab_cc::migrate::Switcher;
use trimtab_cc::muses::{ACTIONS, Action, Muses, SIGNALS, State, Trees};
use trimtab_cc::{Config, Controller, Decision, Spec};

use crate::{Agent, Driver};

/// What the file says that it is.
const FORMAT: &str = "trimtab-muses-lstm";
/// The version that is read.
const VERSION: &str = "1";
const LAYERS: usize = 2;
/// The blocks of a layer's weights: input, forget, cell and output gate.
const GATES: usize = 4;
/// The most units of a layer.
const HIDDEN_MAX: usize = 512;
/// A signal farther than so many standard deviations from its mean in training was never seen there.
const FAR: f32 = 8.0;

/// Why a file is no LSTM that can be used.
#[derive(Debug, thiserror::Error)]
pub enum LstmError {
    /// It is no safetensors file.
    #[error("it is no safetensors file: {}", one_line(.0))]
    File(#[from] SafeTensorError),
    /// It is another kind of model, or of another version.
    #[error("it is no {FORMAT} model of version {VERSION}: train it again")]
    Kind,
    /// A tensor is missing, or has another shape than the others ask for.
    #[error("tensor {0} is missing or has a wrong shape: train it again")]
    Shape(String),
    /// A number is not finite, or a scale not above zero.
    #[error("tensor {0} has a number that cannot be: it is damaged, get it again")]
    Number(String),
    /// Its checksum is wrong.
    #[error("its checksum is wrong, it is damaged: get it again")]
    Checksum,
}

/// What a damaged file names may have any characters; an error is one line all the same.
fn one_line(problem: &impl std::fmt::Display) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    problem.to_string().chars().map(shown).collect()
}

/// A layer: for each of its inputs, and then for each of its own units, a row of weights of all gates. So a step adds
/// rows, which a processor does several numbers at a time without changing the order of any sum.
#[derive(Debug)]
struct Layer {
    rows: Vec<f32>,
    bias: Vec<f32>,
}

/// The weights.
#[derive(Debug)]
pub struct Lstm {
    hidden: usize,
    mean: [f32; SIGNALS],
    gain: [f32; SIGNALS],
    layers: [Layer; LAYERS],
    /// By action.
    head: Vec<f32>,
    head_bias: [f32; ACTIONS],
    sha256: String,
}

impl Lstm {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, LstmError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let metadata = header.metadata().as_ref().ok_or(LstmError::Kind)?;
        let says = |key: &str, what: &str| metadata.get(key).is_some_and(|v| v == what);
        if !says("format", FORMAT) || !says("version", VERSION) {
            return Err(LstmError::Kind);
        }
        let file = SafeTensors::deserialize(bytes)?;
        let sha256 = checksum(&file)?;
        if !says("sha256", &sha256) {
            return Err(LstmError::Checksum);
        }
        let hidden =
            file.tensor("layer0.hidden").map_or(0, |t| t.shape().last().copied().unwrap_or(0));
        if !(1..=HIDDEN_MAX).contains(&hidden) {
            return Err(LstmError::Shape("layer0.hidden".to_owned()));
        }
        let width = GATES * hidden;
        let layer = |number: usize, inputs: usize| {
            let named = |part: &str| format!("layer{number}.{part}");
            let mut rows = transposed(&floats(&file, &named("input"), &[width, inputs])?, inputs);
            rows.extend(transposed(&floats(&file, &named("hidden"), &[width, hidden])?, hidden));
            Ok::<_, LstmError>(Layer { rows, bias: floats(&file, &named("bias"), &[width])? })
        };
        let scale: [f32; SIGNALS] = array(&file, "norm.scale")?;
        if scale.iter().any(|s| *s <= 0.0 || !(1.0 / s).is_finite()) {
            return Err(LstmError::Number("norm.scale".to_owned()));
        }
        Ok(Self {
            hidden,
            mean: array(&file, "norm.mean")?,
            gain: scale.map(|s| 1.0 / s),
            layers: [layer(0, SIGNALS)?, layer(1, hidden)?],
            head: floats(&file, "head.weight", &[ACTIONS, hidden])?,
            head_bias: array(&file, "head.bias")?,
            sha256,
        })
    }

    /// Units of each layer.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// Its checksum in hexadecimal: its name.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Whether training saw values at all like these, in every signal.
    pub fn knows(&self, state: &State) -> bool {
        self.standardised(state).iter().all(|x| x.abs() <= FAR)
    }

    fn standardised(&self, state: &State) -> [f32; SIGNALS] {
        core::array::from_fn(|i| (f32::from(state[i]) - self.mean[i]) * self.gain[i])
    }
}

/// What a connection's policy remembers, and the policy.
#[derive(Clone, Debug)]
pub struct Memory {
    lstm: Arc<Lstm>,
    /// What each layer gives out, and its cells.
    short: [Vec<f32>; LAYERS],
    long: [Vec<f32>; LAYERS],
    gates: Vec<f32>,
}

impl Memory {
    /// Of a connection that has seen nothing.
    pub fn new(lstm: Arc<Lstm>) -> Self {
        let blank = || vec![0.0; lstm.hidden];
        Self {
            short: [blank(), blank()],
            long: [blank(), blank()],
            gates: vec![0.0; GATES * lstm.hidden],
            lstm,
        }
    }

    /// The policy.
    pub fn lstm(&self) -> &Lstm {
        &self.lstm
    }

    /// The action in the next state of the connection; of equals the first. Allocates nothing.
    pub fn decide(&mut self, state: &State) -> Action {
        let input = self.lstm.standardised(state);
        self.step(0, &input);
        let first = core::mem::take(&mut self.short[0]);
        self.step(1, &first);
        self.short[0] = first;
        let score = |action: usize| {
            let row = &self.lstm.head[action * self.lstm.hidden..][..self.lstm.hidden];
            let sum: f32 = row.iter().zip(&self.short[1]).map(|(w, x)| w * x).sum();
            self.lstm.head_bias[action] + sum
        };
        let (mut best, mut most) = (0, score(0));
        for action in 1..ACTIONS {
            let here = score(action);
            if here > most {
                (best, most) = (action, here);
            }
        }
        Action::new(best as u8).unwrap_or(Action::KEEP)
    }

    fn step(&mut self, number: usize, input: &[f32]) {
        let layer = &self.lstm.layers[number];
        let (short, long) = (&mut self.short[number], &mut self.long[number]);
        self.gates.copy_from_slice(&layer.bias);
        let rows = layer.rows.chunks_exact(self.gates.len());
        for (x, row) in input.iter().chain(short.iter()).zip(rows) {
            for (gate, weight) in self.gates.iter_mut().zip(row) {
                *gate += weight * x;
            }
        }
        let hidden = short.len();
        for unit in 0..hidden {
            let gate = |block: usize| self.gates[block * hidden + unit];
            let cell = sigmoid(gate(1)) * long[unit] + sigmoid(gate(0)) * libm::tanhf(gate(2));
            long[unit] = cell;
            short[unit] = sigmoid(gate(3)) * libm::tanhf(cell);
        }
    }
}

impl Agent for Memory {
    fn answer(&mut self, state: &State) -> Decision {
        Decision { factor: self.decide(state).factor(), known: self.lstm.knows(state) }
    }

    fn fork(&self) -> Box<dyn Agent> {
        Box::new(self.clone())
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// What answers the states of a connection.
#[derive(Clone, Debug)]
pub enum Policy {
    /// The trees of a model; one alone is TreeG, the paper's baseline.
    Trees(Trees<'static>),
    /// The heavy policy.
    Lstm(Arc<Lstm>),
}

impl Policy {
    /// A new connection under this policy. The algorithm of `safe` takes over when the policy's
    /// guard raises an alarm; `None` lets the policy go on.
    pub fn driver(&self, safe: Option<Spec>, limits: &Config) -> Driver {
        let muses = match self {
            Self::Trees(trees) => Muses::with_trees(limits, *trees),
            Self::Lstm(_) => Muses::new(limits),
        };
        let driver = match safe {
            Some(safe) => Driver::from(Switcher::guarded(muses, safe, limits)),
            None => Driver::from(Controller::from(muses)),
        };
        match self {
            Self::Trees(_) => driver,
            Self::Lstm(lstm) => driver.with_agent(Box::new(Memory::new(lstm.clone()))),
        }
    }
}

/// Of all tensors, by name.
fn checksum(file: &SafeTensors<'_>) -> Result<String, LstmError> {
    let mut names = file.names();
    names.sort_unstable();
    let mut digest = Sha256::new();
    for name in names {
        digest.update(name.as_bytes());
        digest.update(file.tensor(name)?.data());
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The numbers of a tensor of this shape: as they are, or whole ones of eight bits with a scale for each row in another
/// tensor, `NAME.scale`.
fn floats(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, LstmError> {
    let wrong = || LstmError::Shape(name.to_owned());
    let view = file.tensor(name).map_err(|_| wrong())?;
    if view.shape() != shape {
        return Err(wrong());
    }
    let numbers: Vec<f32> = match (view.dtype(), shape) {
        (Dtype::F32, _) => {
            let (numbers, _) = view.data().as_chunks::<4>();
            numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
        (Dtype::I8, [rows, columns]) => {
            let scales = floats(file, &format!("{name}.scale"), &[*rows])?;
            let rows = view.data().chunks_exact((*columns).max(1)).zip(scales);
            let scaled = |(row, scale): (&[u8], f32)| {
                row.iter()
                    .map(move |byte| f32::from(byte.cast_signed()) * scale)
                    .collect::<Vec<_>>()
            };
            rows.flat_map(scaled).collect()
        }
        _ => return Err(wrong()),
    };
    let good = numbers.iter().all(|x| x.is_finite());
    if good { Ok(numbers) } else { Err(LstmError::Number(name.to_owned())) }
}

fn array<const N: usize>(file: &SafeTensors<'_>, name: &str) -> Result<[f32; N], LstmError> {
    let numbers = floats(file, name, &[N])?;
    numbers.try_into().map_err(|_| LstmError::Shape(name.to_owned()))
}

/// Rows and columns of a matrix with so many columns exchanged.
fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    let rows = matrix.len() / columns;
    (0..matrix.len()).map(|k| matrix[(k % rows) * columns + k / rows]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four units with drawn weights; python/tests/test_muses_lstm.py writes the same bytes.
    static SMALL: &[u8] = include_bytes!("../../../fuzz/seeds/lstm/small");

    fn lstm() -> Arc<Lstm> {
        Arc::new(Lstm::parse(SMALL).unwrap())
    }

    /// A course that every signal takes part in.
    fn state(step: i16) -> State {
        core::array::from_fn(|i| 3000 + 900 * ((step * (i as i16 + 2)) % 7 - 3) + 10 * step)
    }

    /// What JAX says on the same weights and states: the line `GOLDEN` of python/tests/test_muses_lstm.py.
    const GOLDEN: &str = "1111113003555555555555555555555555555555";

    #[test]
    fn decides_as_the_training_does() {
        let mut memory = Memory::new(lstm());
        let said: String =
            (0..40).map(|step| char::from(b'0' + memory.decide(&state(step)).number())).collect();
        assert_eq!(said, GOLDEN);
        assert_eq!(memory.lstm().hidden(), 4);
    }

    /// The same four units in whole numbers; python/tests/test_muses_lstm.py writes this file, too.
    static BYTES: &[u8] = include_bytes!("../../../fuzz/seeds/lstm/bytes");

    #[test]
    fn weights_may_be_whole_numbers_with_a_scale_for_each_row() {
        let mut memory = Memory::new(Arc::new(Lstm::parse(BYTES).unwrap()));
        let said: String =
            (0..40).map(|step| char::from(b'0' + memory.decide(&state(step)).number())).collect();
        assert_eq!(said, GOLDEN);
        let full = lstm();
        let rows = memory
            .lstm()
            .layers
            .iter()
            .zip(&full.layers)
            .flat_map(|(a, b)| a.rows.iter().zip(&b.rows).map(|(a, b)| (a - b).abs()));
        // Weights are at most 3; half a step of 127 is the most that one is off.
        let most = rows.fold(0.0, f32::max);
        assert!(most > 0.0 && most <= 3.0 / 254.0, "{most}");
    }

    #[test]
    fn what_is_far_from_all_that_was_learnt_is_not_known() {
        let lstm = lstm();
        assert!(lstm.knows(&state(1)));
        let mut far = state(1);
        far[3] = i16::MAX;
        assert!(!lstm.knows(&far));
    }

    /// A signal may be off by [`FAR`] of training's deviations, to both sides.
    #[test]
    fn the_limit_is_in_deviations_of_what_was_learnt() {
        let parsed = Lstm::parse(SMALL).unwrap();
        let lstm = Lstm { mean: [1000.0; SIGNALS], gain: [0.01; SIGNALS], ..parsed };
        let off = |by: f32| lstm.knows(&[(1000.0 + by) as i16; SIGNALS]);
        let most = FAR * 100.0;
        assert!(off(0.0) && off(most - 1.0) && off(1.0 - most));
        assert!(!off(most + 2.0) && !off(-most - 2.0));
    }

    #[test]
    fn damaged_files_are_refused_in_one_line() {
        for length in (0..SMALL.len()).step_by(7) {
            let problem = Lstm::parse(&SMALL[..length]).unwrap_err().to_string();
            assert!(!problem.contains('\n'), "{problem}");
        }
        let mut bytes = SMALL.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(matches!(Lstm::parse(&bytes), Err(LstmError::Checksum)));
        let other = include_bytes!("../../../fuzz/seeds/model/small");
        assert!(matches!(Lstm::parse(other), Err(LstmError::Kind)));
    }
}
