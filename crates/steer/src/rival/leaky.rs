//! The networks of Orca and Astraea: layers of leaky ReLU, and one output through tanh, from the file
//! that `python -m trimtab.rivals` makes of the authors' checkpoint. Theirs have a batch
//! normalisation after each layer; the file has it folded into the weights.

use alloc::vec::Vec;

use trimtab_cc::actor::Actor;
use trimtab_cc::{astraea, orca};

use crate::lstm::{Linear, LstmError, open, outputs};

/// What the files say that they are.
const ORCA: &str = "trimtab-orca-mlp";
const ASTRAEA: &str = "trimtab-astraea-mlp";
/// Layers before the output (`agent.py` of each).
const ORCA_LAYERS: usize = 2;
const ASTRAEA_LAYERS: usize = 3;
/// No layer has more units; the authors' have 64 to 256.
const UNITS_MAX: usize = 512;
/// What is left of a negative number (the default of `tf.nn.leaky_relu`).
const LEAK: f32 = 0.2;

/// The weights, shared by all connections.
#[derive(Debug)]
pub struct LeakyMlp {
    /// Each with the number of its units.
    layers: Vec<(Linear, usize)>,
    head: Linear,
    inputs: usize,
}

impl LeakyMlp {
    /// Reads the bytes of a file of Orca's.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn orca(bytes: &[u8]) -> Result<Self, LstmError> {
        Self::parse(bytes, ORCA, orca::VALUES, ORCA_LAYERS)
    }

    /// Reads the bytes of a file of Astraea's.
    ///
    /// # Errors
    /// It is no such model, or a damaged one.
    pub fn astraea(bytes: &[u8]) -> Result<Self, LstmError> {
        Self::parse(bytes, ASTRAEA, astraea::VALUES, ASTRAEA_LAYERS)
    }

    fn parse(
        bytes: &[u8],
        format: &'static str,
        inputs: usize,
        count: usize,
    ) -> Result<Self, LstmError> {
        let (file, _) = open(bytes, format)?;
        let (mut layers, mut width) = (Vec::with_capacity(count), inputs);
        for number in 0..count {
            let name = format!("layer{number}");
            let units = outputs(&file, &name, UNITS_MAX)?;
            layers.push((Linear::read(&file, &name, units, width)?, units));
            width = units;
        }
        Ok(Self { layers, head: Linear::read(&file, "head", 1, width)?, inputs })
    }
}

impl Actor for LeakyMlp {
    /// Allocates nothing. What a history has beyond the inputs is left out.
    fn act(&self, history: &[f64]) -> f64 {
        let (mut from, mut to) = ([0.0_f32; UNITS_MAX], [0.0_f32; UNITS_MAX]);
        for (input, value) in from.iter_mut().zip(history) {
            *input = *value as f32;
        }
        let mut width = self.inputs;
        for (layer, units) in &self.layers {
            layer.apply(&from[..width], &mut to[..*units]);
            for x in &mut to[..*units] {
                *x = if *x < 0.0 { LEAK * *x } else { *x };
            }
            core::mem::swap(&mut from, &mut to);
            width = *units;
        }
        let mut action = [0.0];
        self.head.apply(&from[..width], &mut action);
        f64::from(libm::tanhf(action[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drawn weights; python/tests/test_rivals.py writes the same bytes.
    static ORCA_DRAWN: &[u8] = include_bytes!("../../seeds/orca/drawn");
    static ASTRAEA_DRAWN: &[u8] = include_bytes!("../../seeds/astraea/drawn");
    /// What NumPy says on the checkpoint's weights and the same histories:
    /// `python/tests/test_rivals.py` writes it.
    static ORCA_OF_NUMPY: &str = include_str!("orca_actions.txt");
    static ASTRAEA_OF_NUMPY: &str = include_str!("astraea_actions.txt");

    /// The highest of each number of a state in the course.
    const ORCA_MOST: &[f64] = &[1.0, 2.0, 0.1, 0.5, 0.03, 1.0, 1.0];
    const ASTRAEA_MOST: &[f64] = &[1.0, 2.0, 2.0, 2.0, 1.0, 0.2, 0.05, 1.0, 2.0, 0.05];

    /// A course that every value takes part in, the same in Python.
    fn history(step: usize, values: usize, most: &[f64]) -> Vec<f64> {
        let share = |i: usize| ((step * (i + 7)) % (31 + i)) as f64 / (31 + i) as f64;
        (0..values).map(|i| share(i) * most[i % most.len()]).collect()
    }

    /// The largest difference to NumPy over the lines of a file, and the mean of the actions' sizes.
    fn difference(network: &LeakyMlp, most: &[f64], numpy: &str) -> (f64, f64) {
        let numpy: Vec<f64> = numpy.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numpy.len(), 2000);
        let mut difference = 0.0_f64;
        for (step, want) in numpy.iter().enumerate() {
            let history = history(step, network.inputs, most);
            difference = difference.max((network.act(&history) - want).abs());
        }
        (difference, numpy.iter().map(|action| action.abs()).sum::<f64>() / numpy.len() as f64)
    }

    #[test]
    fn acts_as_numpy_does_in_two_thousand_histories() {
        let orca = LeakyMlp::orca(ORCA_DRAWN).unwrap();
        let astraea = LeakyMlp::astraea(ASTRAEA_DRAWN).unwrap();
        for (network, most, numpy) in
            [(orca, ORCA_MOST, ORCA_OF_NUMPY), (astraea, ASTRAEA_MOST, ASTRAEA_OF_NUMPY)]
        {
            let (difference, size) = difference(&network, most, numpy);
            assert!(difference < 2e-5, "{difference} of actions of {size}");
            assert!((0.05..0.95).contains(&size), "neither silent nor at its end: {size}");
        }
    }

    /// The same with the authors' weights, which the user fetches: `TRIMTAB_RIVALS` names the files as
    /// in `crates/sim/tests/sim/rivals.rs`, and `python/tests/test_rivals.py` writes FILE.actions next
    /// to each.
    #[test]
    fn acts_as_numpy_does_with_a_file_of_the_users() {
        for cc in std::env::var("TRIMTAB_RIVALS").unwrap_or_default().split_whitespace() {
            let Some((rival, file)) = cc.split_once(":model=") else { continue };
            let file = file.split(':').next().unwrap_or_default();
            let bytes = std::fs::read(file).unwrap();
            let (network, most) = match rival {
                "orca" => (LeakyMlp::orca(&bytes), ORCA_MOST),
                "astraea" => (LeakyMlp::astraea(&bytes), ASTRAEA_MOST),
                _ => continue,
            };
            let Ok(numpy) = std::fs::read_to_string(format!("{file}.actions")) else {
                println!("skipped: there is no {file}.actions");
                continue;
            };
            let (difference, size) = difference(&network.unwrap(), most, &numpy);
            println!("{cc}: largest difference {difference:.8}, mean size of an action {size:.3}");
            assert!(difference < 2e-5, "{difference} of actions of {size}");
        }
    }

    #[test]
    fn other_models_are_refused() {
        assert!(matches!(LeakyMlp::orca(ASTRAEA_DRAWN), Err(LstmError::Kind(ORCA))));
        assert!(matches!(LeakyMlp::astraea(ORCA_DRAWN), Err(LstmError::Kind(ASTRAEA))));
        assert!(LeakyMlp::orca(&ORCA_DRAWN[..ORCA_DRAWN.len() / 2]).is_err());
        let (file, _) = open(ORCA_DRAWN, ORCA).unwrap();
        assert!(outputs(&file, "layer0", 4).is_err(), "more units than there may be");
        assert!(outputs(&file, "layer7", UNITS_MAX).is_err(), "a layer that is not there");
        let deeper = LeakyMlp::parse(ORCA_DRAWN, ORCA, orca::VALUES, 3).unwrap_err();
        assert!(deeper.to_string().contains("layer2"), "{deeper}");
        let wider = LeakyMlp::parse(ORCA_DRAWN, ORCA, orca::VALUES + 1, 2).unwrap_err();
        assert!(wider.to_string().contains("layer0.weight"), "{wider}");
    }
}
