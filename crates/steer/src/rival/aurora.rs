//! The networks of Aurora and MOCC: two layers of tanh and a linear one (Jay et al., ICML 2019, §4.2;
//! Ma et al., EuroSys 2022), from the files that `python -m trimtab.rivals` makes of the authors'
//! checkpoints. MOCC's is wider, and has the weights of a preference as inputs after the history
//! (`stable_solve.py`, `loaded_agent.py` of `swz21/MOCC`).

use trimtab_cc::aurora::mocc::{Chooser, WEIGHTS};
use trimtab_cc::aurora::{History, Network, VALUES};

use crate::lstm::{Linear, LstmError, open};

/// What the files say that they are.
const AURORA: &str = "trimtab-aurora-mlp";
const MOCC: &str = "trimtab-mocc-mlp";
/// Units of the two layers.
const AURORA_UNITS: [usize; 2] = [32, 16];
const MOCC_UNITS: [usize; 2] = [64, 32];

/// Layers of so many units.
#[derive(Debug)]
struct Tanh<const FIRST: usize, const SECOND: usize> {
    first: Linear,
    second: Linear,
    head: Linear,
}

impl<const FIRST: usize, const SECOND: usize> Tanh<FIRST, SECOND> {
    fn parse(bytes: &[u8], format: &'static str, inputs: usize) -> Result<Self, LstmError> {
        let (file, _) = open(bytes, format)?;
        Ok(Self {
            first: Linear::read(&file, "layer0", FIRST, inputs)?,
            second: Linear::read(&file, "layer1", SECOND, FIRST)?,
            head: Linear::read(&file, "head", 1, SECOND)?,
        })
    }

    /// Allocates nothing.
    fn change(&self, input: &[f32]) -> f64 {
        let (mut first, mut second, mut change) = ([0.0; FIRST], [0.0; SECOND], [0.0]);
        self.first.apply(input, &mut first);
        first.iter_mut().for_each(|x| *x = libm::tanhf(*x));
        self.second.apply(&first, &mut second);
        second.iter_mut().for_each(|x| *x = libm::tanhf(*x));
        self.head.apply(&second, &mut change);
        f64::from(change[0])
    }
}

/// Aurora's weights, shared by all connections.
#[derive(Debug)]
pub struct AuroraMlp(Tanh<{ AURORA_UNITS[0] }, { AURORA_UNITS[1] }>);

impl AuroraMlp {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, LstmError> {
        Tanh::parse(bytes, AURORA, VALUES).map(Self)
    }
}

impl Network for AuroraMlp {
    fn change(&self, history: &History) -> f64 {
        self.0.change(&history.map(|value| value as f32))
    }
}

/// MOCC's weights, shared by all connections.
#[derive(Debug)]
pub struct MoccMlp(Tanh<{ MOCC_UNITS[0] }, { MOCC_UNITS[1] }>);

impl MoccMlp {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn parse(bytes: &[u8]) -> Result<Self, LstmError> {
        Tanh::parse(bytes, MOCC, VALUES + WEIGHTS).map(Self)
    }
}

impl Chooser for MoccMlp {
    fn change(&self, history: &History, weights: &[f64; WEIGHTS]) -> f64 {
        let mut input = [0.0_f32; VALUES + WEIGHTS];
        for (input, value) in input.iter_mut().zip(history.iter().chain(weights)) {
            *input = *value as f32;
        }
        self.0.change(&input)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Drawn weights; python/tests/test_rivals.py writes the same bytes.
    static DRAWN: &[u8] = include_bytes!("../../seeds/aurora/drawn");
    static MOCC_DRAWN: &[u8] = include_bytes!("../../seeds/mocc/drawn");
    /// What NumPy says on the same weights and histories: `python/tests/test_rivals.py` writes it.
    static CHANGES_OF_NUMPY: &str = include_str!("aurora_changes.txt");
    static MOCC_OF_NUMPY: &str = include_str!("mocc_changes.txt");

    /// A course that every value takes part in, the same in Python.
    fn history(step: usize) -> History {
        core::array::from_fn(|i| match i % 3 {
            0 => ((step * (i + 7)) % 41) as f64 / 100.0 - 0.2,
            1 => 1.0 + ((step * (i + 3)) % 53) as f64 / 25.0,
            _ => 1.0 + ((step * (i + 5)) % 37) as f64 / 30.0,
        })
    }

    /// The weights of a step, the same in Python.
    fn weights(step: usize) -> [f64; WEIGHTS] {
        let throughput = (1 + step % 8) as f64 / 10.0;
        [throughput, 0.9 - throughput, 0.1]
    }

    /// The largest difference to the lines of a file.
    fn difference(numpy: &str, change: impl Fn(usize) -> f64) -> f64 {
        let numpy: Vec<f64> = numpy.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numpy.len(), 2000);
        let of = |(step, want): (usize, &f64)| (change(step) - want).abs();
        numpy.iter().enumerate().map(of).fold(0.0, f64::max)
    }

    #[test]
    fn changes_as_numpy_does_in_two_thousand_histories() {
        let network = AuroraMlp::parse(DRAWN).unwrap();
        let most = difference(CHANGES_OF_NUMPY, |step| network.change(&history(step)));
        assert!(most < 2e-5, "{most}");
        let network = MoccMlp::parse(MOCC_DRAWN).unwrap();
        let change = |step| network.change(&history(step), &weights(step));
        let most = difference(MOCC_OF_NUMPY, change);
        assert!(most < 2e-5, "{most}");
    }

    /// The same with the authors' weights, which the user fetches: `leaky.rs` tells how.
    #[test]
    fn changes_as_numpy_does_with_a_file_of_the_users() {
        for cc in std::env::var("TRIMTAB_RIVALS").unwrap_or_default().split_whitespace() {
            let Some((rival, file)) = cc.split_once(":model=") else { continue };
            let file = file.split(':').next().unwrap_or_default();
            let Ok(numpy) = std::fs::read_to_string(format!("{file}.actions")) else { continue };
            let bytes = std::fs::read(file).unwrap();
            let most = match rival {
                "aurora" => {
                    let network = AuroraMlp::parse(&bytes).unwrap();
                    difference(&numpy, |step| network.change(&history(step)))
                }
                "mocc" => {
                    let network = MoccMlp::parse(&bytes).unwrap();
                    difference(&numpy, |step| network.change(&history(step), &weights(step)))
                }
                _ => continue,
            };
            println!("{cc}: largest difference {most:.8}");
            assert!(most < 1e-4, "{most}");
        }
    }

    #[test]
    fn other_models_are_refused() {
        let muses = include_bytes!("../../seeds/lstm/small");
        assert!(matches!(AuroraMlp::parse(muses), Err(LstmError::Kind(AURORA))));
        assert!(matches!(AuroraMlp::parse(MOCC_DRAWN), Err(LstmError::Kind(AURORA))));
        assert!(matches!(MoccMlp::parse(DRAWN), Err(LstmError::Kind(MOCC))));
        assert!(AuroraMlp::parse(&DRAWN[..DRAWN.len() / 2]).is_err());
    }
}
