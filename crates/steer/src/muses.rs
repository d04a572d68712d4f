//! The heavy policy of Muses, run natively: an LSTM of two layers and a softmax over the seven actions (Zhong et al.,
//! INFOCOM 2022, §II-C and §III-C). The light one, its trees, is [`trimtab_cc::muses::Trees`].
//!
//! [`Lstm`] is the model, read from the file that `./dev train-muses` writes and shared by all connections; [`Memory`]
//! is what a connection keeps of its past. A decision allocates nothing and gives the same on every machine.

use std::sync::Arc;

use trimtab_cc::migrate::Switcher;
use trimtab_cc::muses::{ACTIONS, Action, Muses, SIGNALS, State, Trees};
use trimtab_cc::{Config, Controller, Decision, Spec};

pub use crate::lstm::LstmError;
use crate::lstm::{Cells, Layer, Linear, array, open};
use crate::{Agent, Driver};

/// What the file says that it is.
const FORMAT: &str = "trimtab-muses-lstm";
const LAYERS: usize = 2;
/// The most units of a layer.
const HIDDEN_MAX: usize = 512;
/// A signal farther than so many standard deviations from its mean in training was never seen there.
const FAR: f32 = 8.0;

/// The weights.
#[derive(Debug)]
pub struct Lstm {
    hidden: usize,
    mean: [f32; SIGNALS],
    gain: [f32; SIGNALS],
    layers: [Layer; LAYERS],
    head: Linear,
    sha256: String,
}

impl Lstm {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, LstmError> {
        let (file, sha256) = open(bytes, FORMAT)?;
        let hidden =
            file.tensor("layer0.hidden").map_or(0, |t| t.shape().last().copied().unwrap_or(0));
        if !(1..=HIDDEN_MAX).contains(&hidden) {
            return Err(LstmError::Shape("layer0.hidden".to_owned()));
        }
        let scale: [f32; SIGNALS] = array(&file, "norm.scale")?;
        if scale.iter().any(|s| *s <= 0.0 || !(1.0 / s).is_finite()) {
            return Err(LstmError::Number("norm.scale".to_owned()));
        }
        Ok(Self {
            hidden,
            mean: array(&file, "norm.mean")?,
            gain: scale.map(|s| 1.0 / s),
            layers: [
                Layer::read(&file, 0, SIGNALS, hidden)?,
                Layer::read(&file, 1, hidden, hidden)?,
            ],
            head: Linear::read(&file, "head", ACTIONS, hidden)?,
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
    cells: [Cells; LAYERS],
}

impl Memory {
    /// Of a connection that has seen nothing.
    pub fn new(lstm: Arc<Lstm>) -> Self {
        Self { cells: [Cells::new(lstm.hidden), Cells::new(lstm.hidden)], lstm }
    }

    /// The policy.
    pub fn lstm(&self) -> &Lstm {
        &self.lstm
    }

    /// The action in the next state of the connection; of equals the first. Allocates nothing.
    pub fn decide(&mut self, state: &State) -> Action {
        let input = self.lstm.standardised(state);
        let [first, second] = &mut self.cells;
        let [lower, upper] = &self.lstm.layers;
        lower.step(&input, first);
        upper.step(first.out(), second);
        let best = self.lstm.head.best(second.out());
        Action::new(best as u8).unwrap_or(Action::KEEP)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Four units with drawn weights; python/tests/test_muses_lstm.py writes the same bytes.
    static SMALL: &[u8] = include_bytes!("../seeds/lstm/small");

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
    static BYTES: &[u8] = include_bytes!("../seeds/lstm/bytes");

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
            .flat_map(|(a, b)| a.rows().iter().zip(b.rows()).map(|(a, b)| (a - b).abs()));
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
        let other = include_bytes!("../seeds/model/small");
        assert!(matches!(Lstm::parse(other), Err(LstmError::Kind(_))));
    }
}
