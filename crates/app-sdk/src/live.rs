//! What an application knows of a connection while it runs.

use std::collections::BTreeMap;

use trimtab_units::{Bytes, Duration};

/// Live factors of a connection. What is not given stays as it was said before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    pub(crate) factors: BTreeMap<String, f64>,
}

impl Live {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, name: &str, value: f64) -> Self {
        self.factors.insert(name.to_owned(), value);
        self
    }

    /// Size of the response that is being sent: `R` of formulas.
    #[must_use]
    pub fn with_request(self, size: Bytes) -> Self {
        self.with("R", mbit(size))
    }

    /// What is left of it: `remaining`.
    #[must_use]
    pub fn with_remaining(self, size: Bytes) -> Self {
        self.with("remaining", mbit(size))
    }

    /// Size of the video chunk that is being sent: `C`.
    #[must_use]
    pub fn with_chunk(self, size: Bytes) -> Self {
        self.with("C", mbit(size))
    }

    /// Level of the player's buffer: `V`.
    #[must_use]
    pub fn with_buffer(self, level: Duration) -> Self {
        self.with("V", level.as_secs_f64())
    }

    /// Mean size of the responses that are sent together: `Rbar`.
    #[must_use]
    pub fn with_mean_response(self, size: Bytes) -> Self {
        self.with("Rbar", mbit(size))
    }

    /// A factor of the application's own, which its formula names.
    #[must_use]
    pub fn with_own(self, name: &str, value: f64) -> Self {
        self.with(name, value)
    }
}

/// Sizes are in Mbit (10^6 bits) in formulas.
fn mbit(size: Bytes) -> f64 {
    size.bits() / 1e6
}
