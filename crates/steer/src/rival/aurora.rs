//! Aurora's network: two layers of tanh and a linear one (Jay et al., ICML 2019, §4.2), from the file
//! that `python -m trimtab.rivals` makes of the authors' checkpoint.

use trimtab_cc::aurora::{History, Network, VALUES};

use crate::lstm::{Linear, LstmError, open};

/// What the file says that it is.
const FORMAT: &str = "trimtab-aurora-mlp";
/// Units of the two layers.
const FIRST: usize = 32;
const SECOND: usize = 16;

/// The weights, shared by all connections.
#[derive(Debug)]
pub struct AuroraMlp {
    first: Linear,
    second: Linear,
    head: Linear,
}

impl AuroraMlp {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, LstmError> {
        let (file, _) = open(bytes, FORMAT)?;
        Ok(Self {
            first: Linear::read(&file, "layer0", FIRST, VALUES)?,
            second: Linear::read(&file, "layer1", SECOND, FIRST)?,
            head: Linear::read(&file, "head", 1, SECOND)?,
        })
    }
}

impl Network for AuroraMlp {
    fn change(&self, history: &History) -> f64 {
        let input = history.map(|value| value as f32);
        let (mut first, mut second, mut change) = ([0.0; FIRST], [0.0; SECOND], [0.0]);
        self.first.apply(&input, &mut first);
        first.iter_mut().for_each(|x| *x = libm::tanhf(*x));
        self.second.apply(&first, &mut second);
        second.iter_mut().for_each(|x| *x = libm::tanhf(*x));
        self.head.apply(&second, &mut change);
        f64::from(change[0])
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Drawn weights; python/tests/test_rivals.py writes the same bytes.
    static DRAWN: &[u8] = include_bytes!("../../../../fuzz/seeds/aurora/drawn");
    /// What NumPy says on the same weights and histories: `python/tests/test_rivals.py` writes it.
    static CHANGES_OF_NUMPY: &str = include_str!("aurora_changes.txt");

    /// A course that every value takes part in, the same in Python.
    fn history(step: usize) -> History {
        core::array::from_fn(|i| match i % 3 {
            0 => ((step * (i + 7)) % 41) as f64 / 100.0 - 0.2,
            1 => 1.0 + ((step * (i + 3)) % 53) as f64 / 25.0,
            _ => 1.0 + ((step * (i + 5)) % 37) as f64 / 30.0,
        })
    }

    #[test]
    fn changes_as_numpy_does_in_two_thousand_histories() {
        let network = AuroraMlp::parse(DRAWN).unwrap();
        let numpy: Vec<f64> = CHANGES_OF_NUMPY.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numpy.len(), 2000);
        for (step, want) in numpy.into_iter().enumerate() {
            let got = network.change(&history(step));
            assert!((got - want).abs() < 2e-5, "step {step}: {got}, and NumPy has {want}");
        }
    }

    #[test]
    fn other_models_are_refused() {
        let muses = include_bytes!("../../../../fuzz/seeds/lstm/small");
        assert!(matches!(AuroraMlp::parse(muses), Err(LstmError::Kind(FORMAT))));
        assert!(AuroraMlp::parse(&DRAWN[..DRAWN.len() / 2]).is_err());
    }
}
