//! Live application factors: what a QoE model knows besides the network.

use alloc::string::String;
use core::fmt;

use trimtab_units::{Bytes, Duration};

/// The factors that the built-in models read, and that every formula may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factor {
    /// `R`: size of the request being answered, in Mbit.
    Request,
    /// `remaining`: what is still to be delivered of that request, in Mbit.
    Remaining,
    /// `C`: size of the video chunk being downloaded, in Mbit.
    Chunk,
    /// `V`: playback buffer, in seconds of video.
    Buffer,
    /// `Rbar`: mean size of the responses in flight together, in Mbit.
    MeanResponse,
}

impl Factor {
    /// Every one, in the order of their numbers.
    pub const ALL: [Factor; 5] =
        [Factor::Request, Factor::Remaining, Factor::Chunk, Factor::Buffer, Factor::MeanResponse];

    /// The name that formulas use.
    pub const fn name(self) -> &'static str {
        match self {
            Factor::Request => "R",
            Factor::Remaining => "remaining",
            Factor::Chunk => "C",
            Factor::Buffer => "V",
            Factor::MeanResponse => "Rbar",
        }
    }

    /// The factor of that name.
    pub fn from_name(name: &str) -> Option<Factor> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// Longest name of a factor, in bytes.
pub const FACTOR_NAME_LEN_MAX: usize = 23;
/// Most factors that an application may add to the [`Factor`]s.
pub const USER_FACTORS_MAX: usize = 8;

/// A factor name held inline, so that [`Factors`] is `Copy` and updating one never allocates.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Name {
    len: u8,
    bytes: [u8; FACTOR_NAME_LEN_MAX],
}

impl Name {
    /// Holds `text` if it is an identifier: a letter or `_`, then letters, digits or `_`.
    pub(crate) fn new(text: &str) -> Result<Self, FactorError> {
        let first_is_letter = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let all_allowed = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !first_is_letter || !all_allowed || text.len() > FACTOR_NAME_LEN_MAX {
            return Err(FactorError::BadName(text.into()));
        }
        let mut bytes = [0; FACTOR_NAME_LEN_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { len: text.len() as u8, bytes })
    }
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Why a factor could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactorError {
    /// The name is no identifier, or too long.
    #[error(
        "{0:?} cannot name a factor: use a letter or _, then letters, digits or _, at most \
         {FACTOR_NAME_LEN_MAX} characters"
    )]
    BadName(String),
    /// The name means something else in a formula.
    #[error("{0:?} cannot name a factor: it already means something in a formula")]
    Reserved(String),
    /// There is no room.
    #[error(
        "no room for factor {0:?}: an application has at most {USER_FACTORS_MAX} factors of its own"
    )]
    Full(String),
}

/// The live values of an application's factors.
///
/// A small `Copy` table without allocation: an application updates it whenever a request starts, a
/// chunk is chosen or its buffer moves. A factor that was never set is absent, not zero.
///
/// ```
/// use trimtab_qoe::{Factor, Factors};
/// use trimtab_units::Bytes;
///
/// let mut factors = Factors::new().with_request(Bytes::new(608_750));
/// assert_eq!(factors.get(Factor::Request), Some(4.87));
/// factors.set_named("viewers", 12.0).unwrap();
/// assert_eq!(factors.get_named("viewers"), Some(12.0));
/// assert_eq!(factors.get_named("R"), Some(4.87));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    known: [Option<f64>; Factor::ALL.len()],
    user: [(Name, f64); USER_FACTORS_MAX],
    user_len: usize,
}

impl Factors {
    /// No factor set.
    pub fn new() -> Self {
        Self::default()
    }
    /// The value of `factor` in its unit, if it was set.
    pub fn get(&self, factor: Factor) -> Option<f64> {
        self.known[factor as usize]
    }
    /// Sets `factor`, in its unit.
    pub fn set(&mut self, factor: Factor, value: f64) {
        self.known[factor as usize] = Some(value);
    }
    /// The value of the factor of that name, built in or the application's own, if it was set.
    pub fn get_named(&self, name: &str) -> Option<f64> {
        match Factor::from_name(name) {
            Some(factor) => self.get(factor),
            None => self.get_user(name),
        }
    }
    /// The factors that are set, by their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        let known = Factor::ALL.into_iter().filter_map(|f| Some((f.name(), self.get(f)?)));
        known.chain(self.user[..self.user_len].iter().map(|(name, value)| (name.as_str(), *value)))
    }

    /// These, and where one is not set, the one of `others`. A name that no longer fits is left out.
    #[must_use]
    pub fn or(&self, others: &Factors) -> Self {
        let mut all = *self;
        for factor in Factor::ALL {
            if let (None, Some(value)) = (all.get(factor), others.get(factor)) {
                all.set(factor, value);
            }
        }
        for (name, value) in &others.user[..others.user_len] {
            if all.get_named(name.as_str()).is_none() {
                let _ = all.set_named(name.as_str(), *value);
            }
        }
        all
    }

    /// Sets the factor of that name: a built-in one, or one of the application's own.
    ///
    /// # Errors
    /// When the name is not usable or [`USER_FACTORS_MAX`] other names are taken.
    pub fn set_named(&mut self, name: &str, value: f64) -> Result<(), FactorError> {
        if let Some(factor) = Factor::from_name(name) {
            self.set(factor, value);
            return Ok(());
        }
        let used = &mut self.user[..self.user_len];
        if let Some(slot) = used.iter_mut().find(|(n, _)| n.as_str() == name) {
            slot.1 = value;
            return Ok(());
        }
        let name_held = Name::new(name)?;
        let slot =
            self.user.get_mut(self.user_len).ok_or_else(|| FactorError::Full(name.into()))?;
        *slot = (name_held, value);
        self.user_len += 1;
        Ok(())
    }
    /// With the size of the current request, `R`.
    pub fn with_request(mut self, size: Bytes) -> Self {
        self.set(Factor::Request, mbit(size));
        self
    }
    /// With what remains of the current request, `remaining`.
    pub fn with_remaining(mut self, size: Bytes) -> Self {
        self.set(Factor::Remaining, mbit(size));
        self
    }
    /// With the size of the current chunk, `C`.
    pub fn with_chunk(mut self, size: Bytes) -> Self {
        self.set(Factor::Chunk, mbit(size));
        self
    }
    /// With the playback buffer, `V`.
    pub fn with_buffer(mut self, buffer: Duration) -> Self {
        self.set(Factor::Buffer, buffer.as_secs_f64());
        self
    }
    /// With the mean size of concurrent responses, `Rbar`.
    pub fn with_mean_response(mut self, size: Bytes) -> Self {
        self.set(Factor::MeanResponse, mbit(size));
        self
    }

    /// A positive, finite size; anything else counts as not set.
    pub(crate) fn positive(&self, factor: Factor) -> Option<f64> {
        self.get(factor).filter(|v| *v > 0.0 && v.is_finite())
    }
    pub(crate) fn get_user(&self, name: &str) -> Option<f64> {
        let used = &self.user[..self.user_len];
        used.iter().find(|(n, _)| n.as_str() == name).map(|&(_, value)| value)
    }
}

/// Mbit (10^6 bits) in that many bytes.
pub(crate) fn mbit(size: Bytes) -> f64 {
    size.bits() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_not_zero() {
        let mut f = Factors::new();
        assert_eq!(f.get(Factor::Buffer), None);
        f.set(Factor::Buffer, 0.0);
        assert_eq!(f.get_named("V"), Some(0.0));
        assert_eq!(f.get_named("nothing"), None);
    }

    #[test]
    fn names_lead_back_to_factors() {
        for factor in Factor::ALL {
            assert_eq!(Factor::from_name(factor.name()), Some(factor));
        }
        assert_eq!(Factor::from_name("r"), None);
    }

    #[test]
    fn room_for_eight_of_ones_own() {
        let mut f = Factors::new();
        for i in 0..USER_FACTORS_MAX {
            f.set_named(&format!("mine_{i}"), i as f64).unwrap();
        }
        f.set_named("mine_3", 33.0).unwrap();
        assert_eq!(f.get_named("mine_3"), Some(33.0));
        assert_eq!(f.set_named("one_more", 1.0), Err(FactorError::Full("one_more".into())));
        f.set_named("C", 2.0).unwrap();
        assert_eq!(f.get(Factor::Chunk), Some(2.0));
    }

    #[test]
    fn those_that_are_set_are_listed() {
        let mut f = Factors::new().with_buffer(Duration::from_secs(2));
        f.set_named("mine", 3.0).unwrap();
        assert_eq!(f.iter().collect::<Vec<_>>(), [("V", 2.0), ("mine", 3.0)]);
        assert_eq!(Factors::new().iter().next(), None);
    }

    #[test]
    fn names_are_identifiers() {
        let mut f = Factors::new();
        for bad in ["", "2x", "a b", "é", "a-b", "abcdefghijklmnopqrstuvwx"] {
            assert_eq!(f.set_named(bad, 1.0), Err(FactorError::BadName(bad.into())));
        }
        f.set_named("abcdefghijklmnopqrstuvw", 1.0).unwrap();
    }

    #[test]
    fn sizes_are_in_mbit() {
        let f = Factors::new()
            .with_request(Bytes::new(1_000_000))
            .with_remaining(Bytes::new(500_000))
            .with_chunk(Bytes::new(250_000))
            .with_mean_response(Bytes::new(10_000))
            .with_buffer(Duration::from_millis(1500));
        let all: Vec<_> = Factor::ALL.iter().map(|&x| f.get(x).unwrap()).collect();
        assert_eq!(all, [8.0, 4.0, 2.0, 1.5, 0.08]);
    }
}
