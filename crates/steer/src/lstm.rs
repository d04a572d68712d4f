//! Small networks, read from their files: the LSTMs of Muses and Indigo, and the linear layers of
//! Aurora, MOCC, Orca and Astraea.
//!
//! A step allocates nothing and gives the same on every machine.

use safetensors::{Dtype, SafeTensorError, SafeTensors};
use sha2::{Digest, Sha256};

/// The version of the files that are read.
const VERSION: &str = "1";
/// The blocks of a layer's weights: input, forget, cell and output gate.
const GATES: usize = 4;

/// Why a file is no network that can be used.
#[derive(Debug, thiserror::Error)]
pub enum LstmError {
    /// It is no safetensors file.
    #[error("it is no safetensors file: {}", one_line(.0))]
    File(#[from] SafeTensorError),
    /// It is another kind of model, or of another version.
    #[error("it is no {0} model of version {VERSION}: train or convert it again")]
    Kind(&'static str),
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

/// A layer of an LSTM: for each of its inputs, and then for each of its own units, a row of weights of
/// all gates. So a step adds rows, which a processor does several numbers at a time without changing
/// the order of any sum.
#[derive(Debug)]
pub(crate) struct Layer {
    rows: Vec<f32>,
    bias: Vec<f32>,
}

impl Layer {
    /// Reads layer `number` of a file.
    pub(crate) fn read(
        file: &SafeTensors<'_>,
        number: usize,
        inputs: usize,
        hidden: usize,
    ) -> Result<Self, LstmError> {
        let width = GATES * hidden;
        let named = |part: &str| format!("layer{number}.{part}");
        let mut rows = transposed(&floats(file, &named("input"), &[width, inputs])?, inputs);
        rows.extend(transposed(&floats(file, &named("hidden"), &[width, hidden])?, hidden));
        Ok(Self { rows, bias: floats(file, &named("bias"), &[width])? })
    }

    /// The weights.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// Takes an input. Allocates nothing.
    pub(crate) fn step(&self, input: &[f32], cells: &mut Cells) {
        let Cells { short, long, gates } = cells;
        gates.copy_from_slice(&self.bias);
        let rows = self.rows.chunks_exact(gates.len());
        for (x, row) in input.iter().chain(short.iter()).zip(rows) {
            for (gate, weight) in gates.iter_mut().zip(row) {
                *gate += weight * x;
            }
        }
        let hidden = short.len();
        for unit in 0..hidden {
            let gate = |block: usize| gates[block * hidden + unit];
            let cell = sigmoid(gate(1)) * long[unit] + sigmoid(gate(0)) * libm::tanhf(gate(2));
            long[unit] = cell;
            short[unit] = sigmoid(gate(3)) * libm::tanhf(cell);
        }
    }
}

/// What a layer remembers of a connection: what it gives out, and its cells.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    short: Vec<f32>,
    long: Vec<f32>,
    gates: Vec<f32>,
}

impl Cells {
    /// Of a layer of so many units that has seen nothing.
    pub(crate) fn new(hidden: usize) -> Self {
        let blank = |length: usize| vec![0.0; length];
        Self { short: blank(hidden), long: blank(hidden), gates: blank(GATES * hidden) }
    }

    /// What the layer gives out.
    pub(crate) fn out(&self) -> &[f32] {
        &self.short
    }
}

/// A linear layer.
#[derive(Debug)]
pub(crate) struct Linear {
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// Reads the layer of this name from a file.
    pub(crate) fn read(
        file: &SafeTensors<'_>,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self, LstmError> {
        let weights = floats(file, &format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Self { weights, bias: floats(file, &format!("{name}.bias"), &[outputs])? })
    }

    fn outputs<'a>(&'a self, input: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let rows = self.weights.chunks_exact(input.len().max(1));
        rows.zip(&self.bias).map(move |(row, bias)| {
            let sum: f32 = row.iter().zip(input).map(|(w, x)| w * x).sum();
            bias + sum
        })
    }

    /// Its outputs for an input.
    pub(crate) fn apply(&self, input: &[f32], out: &mut [f32]) {
        for (out, value) in out.iter_mut().zip(self.outputs(input)) {
            *out = value;
        }
    }

    /// The number of its highest output; of equals the first.
    pub(crate) fn best(&self, input: &[f32]) -> usize {
        let (mut best, mut most) = (0, f32::NEG_INFINITY);
        for (action, here) in self.outputs(input).enumerate() {
            if here > most {
                (best, most) = (action, here);
            }
        }
        best
    }
}

/// How many outputs the linear layer of this name has, up to a most.
pub(crate) fn outputs(file: &SafeTensors<'_>, name: &str, most: usize) -> Result<usize, LstmError> {
    let bias = format!("{name}.bias");
    match file.tensor(&bias).map(|view| view.shape().to_vec()).as_deref() {
        Ok(&[outputs]) if (1..=most).contains(&outputs) => Ok(outputs),
        _ => Err(LstmError::Shape(bias)),
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-x))
}

/// The tensors of a file whose format has this name, and their checksum in hexadecimal.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    format: &'static str,
) -> Result<(SafeTensors<'a>, String), LstmError> {
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    let metadata = header.metadata().as_ref().ok_or(LstmError::Kind(format))?;
    let says = |key: &str, what: &str| metadata.get(key).is_some_and(|v| v == what);
    if !says("format", format) || !says("version", VERSION) {
        return Err(LstmError::Kind(format));
    }
    let file = SafeTensors::deserialize(bytes)?;
    let sha256 = checksum(&file)?;
    if says("sha256", &sha256) { Ok((file, sha256)) } else { Err(LstmError::Checksum) }
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

pub(crate) fn array<const N: usize>(
    file: &SafeTensors<'_>,
    name: &str,
) -> Result<[f32; N], LstmError> {
    let numbers = floats(file, name, &[N])?;
    numbers.try_into().map_err(|_| LstmError::Shape(name.to_owned()))
}

/// Rows and columns of a matrix with so many columns exchanged.
fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    let rows = matrix.len() / columns;
    (0..matrix.len()).map(|k| matrix[(k % rows) * columns + k / rows]).collect()
}
