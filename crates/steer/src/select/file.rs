//! What files of learnt policies have in common: safetensors with strings that say what the numbers
//! are, and a checksum over all of it. `docs/reference/selection.md` has both kinds of them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use sha2::{Digest, Sha256};
use trimtab_cc::{Spec, SpecError};
use trimtab_units::Duration;

use crate::Unusable;

/// The strings of a file by their keys. The library has them in a map that depends on its features.
pub(super) type Metadata = BTreeMap<String, String>;

/// The most candidates.
pub const CANDIDATES_MAX: usize = 16;
/// The key of the checksum: SHA-256 over `KEY=VALUE` and a line feed for every other key in ascending order, then over
/// the bytes of the tensors in the order in which the kind of the file lists them.
pub(super) const CHECKSUM: &str = "sha256";

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
    #[error("the model's {name} is {found}; it must be {expected}")]
    Shape {
        /// The tensor.
        name: &'static str,
        /// Its type and shape.
        found: String,
        /// Those that it must have.
        expected: String,
    },
    /// A tensor has a number that is not finite, a scale that is not positive, or a range that ends before it
    /// begins.
    #[error(
        "the model's {0} has a number that is not finite, a scale that is not above 0, or a range \
         without anything in it"
    )]
    Number(&'static str),
    /// The checksum does not fit.
    #[error(
        "the model is damaged: it does not have the checksum that it names; copy or train it again"
    )]
    Checksum,
}

impl ModelError {
    /// What it means to a host that goes on without the model.
    pub fn unusable(&self) -> Unusable {
        match self {
            Self::Version { .. } | Self::Feature(_) => Unusable::Version,
            _ => Unusable::Damaged,
        }
    }
}

/// What a damaged file names may have any characters; an error is one line all the same.
pub(super) fn one_line(problem: &impl core::fmt::Display) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    problem.to_string().chars().map(shown).collect()
}

pub(super) fn value<'a>(metadata: &'a Metadata, key: &'static str) -> Result<&'a str, ModelError> {
    metadata.get(key).map(String::as_str).ok_or(ModelError::Missing(key))
}

/// The metadata of a file of this format and one of these versions, the first of which errors name.
pub(super) fn metadata(
    bytes: &[u8],
    format: &'static str,
    versions: &[&'static str],
) -> Result<Metadata, ModelError> {
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    let metadata = header.metadata().clone().ok_or(ModelError::Missing("metadata"))?;
    let metadata: Metadata = metadata.into_iter().collect();
    expect(&metadata, "format", &[format])?;
    expect(&metadata, "version", versions)?;
    Ok(metadata)
}

/// The inputs that the model asks for, each as `parse` finds it by its name.
pub(super) fn features<T>(
    metadata: &Metadata,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ModelError> {
    let one = |name: &str| parse(name.trim()).ok_or_else(|| ModelError::Feature(name.to_owned()));
    value(metadata, "features")?.split(',').map(one).collect()
}

/// Of the metadata, to go on with the tensors.
pub(super) fn digest_of(metadata: &Metadata) -> Sha256 {
    let mut keys: Vec<_> = metadata.iter().filter(|(key, _)| *key != CHECKSUM).collect();
    keys.sort_unstable();
    let mut digest = Sha256::new();
    for (key, value) in keys {
        digest.update(format!("{key}={value}\n"));
    }
    digest
}

fn expect(
    metadata: &Metadata,
    key: &'static str,
    expected: &[&'static str],
) -> Result<(), ModelError> {
    let found = value(metadata, key)?;
    if expected.contains(&found) {
        return Ok(());
    }
    Err(ModelError::Version { key, found: found.to_owned(), expected: expected[0] })
}

pub(super) fn algorithms(metadata: &Metadata) -> Result<Vec<Spec>, ModelError> {
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
pub(super) fn first(metadata: &Metadata, candidates: &[Spec]) -> Result<usize, ModelError> {
    let Some(text) = metadata.get("first") else { return Ok(0) };
    let wanted = parse_spec(text)?;
    let same = |s: &Spec| s.is_same(&wanted);
    candidates.iter().position(same).ok_or_else(|| ModelError::Value {
        key: "first",
        found: text.clone(),
        expected: "one of its algorithms",
    })
}

pub(super) fn period(metadata: &Metadata) -> Result<Duration, ModelError> {
    let text = value(metadata, "period_ms")?;
    let wrong =
        || ModelError::Value { key: "period_ms", found: text.to_owned(), expected: "1 to 3600000" };
    let ms: u64 = text.parse().map_err(|_| wrong())?;
    if (1..=3_600_000).contains(&ms) { Ok(Duration::from_millis(ms)) } else { Err(wrong()) }
}

pub(super) fn tensor<'a>(
    file: &SafeTensors<'a>,
    name: &'static str,
) -> Result<TensorView<'a>, ModelError> {
    file.tensor(name).map_err(|_| ModelError::Missing(name))
}

/// The bytes of a tensor of this type and shape.
pub(super) fn data<'a>(
    view: &TensorView<'a>,
    name: &'static str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<&'a [u8], ModelError> {
    if view.dtype() != dtype || view.shape() != shape {
        let found = format!("{:?} {:?}", view.dtype(), view.shape());
        return Err(ModelError::Shape { name, found, expected: format!("{dtype:?} {shape:?}") });
    }
    Ok(view.data())
}

/// The finite numbers of a tensor in single precision.
pub(super) fn floats(
    view: &TensorView<'_>,
    name: &'static str,
    shape: &[usize],
) -> Result<Vec<f32>, ModelError> {
    let bytes = data(view, name, Dtype::F32, shape)?;
    finite(bytes, name, f32::from_le_bytes, f32::is_finite)
}

/// The finite numbers of a tensor in double precision.
pub(super) fn doubles(
    view: &TensorView<'_>,
    name: &'static str,
    shape: &[usize],
) -> Result<Vec<f64>, ModelError> {
    let bytes = data(view, name, Dtype::F64, shape)?;
    finite(bytes, name, f64::from_le_bytes, f64::is_finite)
}

/// The numbers of `N` bytes each, if all are finite.
fn finite<T: Copy, const N: usize>(
    bytes: &[u8],
    name: &'static str,
    read: fn([u8; N]) -> T,
    is_finite: fn(T) -> bool,
) -> Result<Vec<T>, ModelError> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let numbers: Vec<T> = numbers.iter().map(|bytes| read(*bytes)).collect();
    if numbers.iter().all(|x| is_finite(*x)) { Ok(numbers) } else { Err(ModelError::Number(name)) }
}

/// The ranges in which the model learnt must have something in them.
pub(super) fn check_ranges(low: &[f32], high: &[f32]) -> Result<(), ModelError> {
    let is_empty = low.iter().zip(high).any(|(low, high)| low > high);
    if is_empty { Err(ModelError::Number("norm.low")) } else { Ok(()) }
}

/// The checksum in hexadecimal, if it is the one that the file names.
pub(super) fn checked(digest: Sha256, metadata: &Metadata) -> Result<String, ModelError> {
    let sha256: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if value(metadata, CHECKSUM)? == sha256 { Ok(sha256) } else { Err(ModelError::Checksum) }
}
