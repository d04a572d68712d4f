//! Indigo's network: an LSTM of one layer and a linear one (Yan et al., ATC 2018, §5; the authors'
//! `dagger/models.py`), from the file that `python -m trimtab.rivals` makes of the authors' checkpoint.

use alloc::boxed::Box;
use alloc::sync::Arc;

use trimtab_cc::indigo::{Action, Network, State, VALUES};

use crate::lstm::{Cells, Layer, Linear, LstmError, open};

/// What the file says that it is.
const FORMAT: &str = "trimtab-indigo-lstm";
/// Units of the layer (`models.py`: `lstm_dim`).
const HIDDEN: usize = 32;
/// What the values of a state are divided by (`helpers.py`: `normalize()`).
const SCALE: [f64; VALUES] = [200.0, 200.0, 200.0, 5000.0];
const ACTIONS: usize = Action::ALL.len();
/// The last action is a part of the input, as a one among zeros.
const INPUTS: usize = VALUES + ACTIONS;

/// The weights, shared by all connections.
#[derive(Debug)]
pub struct IndigoLstm {
    layer: Layer,
    head: Linear,
}

impl IndigoLstm {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, LstmError> {
        let (file, _) = open(bytes, FORMAT)?;
        let layer = Layer::read(&file, 0, INPUTS, HIDDEN)?;
        Ok(Self { layer, head: Linear::read(&file, "head", ACTIONS, HIDDEN)? })
    }

    /// The network of a new connection.
    pub fn network(self: &Arc<Self>) -> Box<dyn Network> {
        // `run_sender.py`: `prev_action` begins as the last.
        let cells = Cells::new(HIDDEN);
        Box::new(IndigoMemory { lstm: self.clone(), cells, last: ACTIONS - 1 })
    }
}

/// What a connection's network remembers.
#[derive(Clone, Debug)]
struct IndigoMemory {
    lstm: Arc<IndigoLstm>,
    cells: Cells,
    last: usize,
}

impl Network for IndigoMemory {
    fn decide(&mut self, state: &State) -> Action {
        let mut input = [0.0; INPUTS];
        for ((input, value), scale) in input.iter_mut().zip(state).zip(SCALE) {
            *input = (value / scale) as f32;
        }
        input[VALUES + self.last] = 1.0;
        self.lstm.layer.step(&input, &mut self.cells);
        self.last = self.lstm.head.best(self.cells.out());
        Action::ALL[self.last]
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drawn weights; python/tests/test_rivals.py writes the same bytes.
    static DRAWN: &[u8] = include_bytes!("../../seeds/indigo/drawn");
    /// What NumPy says on the same weights and states: `python/tests/test_rivals.py` writes it.
    static ACTIONS_OF_NUMPY: &str = include_str!("indigo_actions.txt");

    /// A course in whole thousandths that every value takes part in, the same in Python.
    fn state(step: u64) -> State {
        let part = |a: u64, m: u64| ((step * a) % m) as f64;
        [part(37, 400), part(53, 211) / 2.0, part(71, 223) / 2.0, 2.0 + part(97, 900)]
    }

    #[test]
    fn decides_as_numpy_does_in_two_thousand_states() {
        let mut network = Arc::new(IndigoLstm::parse(DRAWN).unwrap()).network();
        let said = (0..2000).map(|step| network.decide(&state(step)));
        let number = |action| Action::ALL.iter().position(|other| *other == action).unwrap();
        let said: Vec<u8> = said.map(|action| b'0' + number(action) as u8).collect();
        assert_eq!(std::str::from_utf8(&said).unwrap(), ACTIONS_OF_NUMPY.trim());
        for action in b'0'..b'5' {
            let count = said.iter().filter(|other| **other == action).count();
            assert!(count >= 30, "action {action} is tried {count} times");
        }
    }

    #[test]
    fn other_models_and_cut_ones_are_refused() {
        let muses = include_bytes!("../../seeds/lstm/small");
        assert!(matches!(IndigoLstm::parse(muses), Err(LstmError::Kind(FORMAT))));
        for length in (0..DRAWN.len()).step_by(97) {
            let problem = IndigoLstm::parse(&DRAWN[..length]).unwrap_err().to_string();
            assert!(!problem.contains('\n'), "{problem}");
        }
    }
}
