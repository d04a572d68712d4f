//! Shares of a whole.

use std::fmt;
use std::str::FromStr;

/// A share of something, 0 to 1; written in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// A share; brought into 0 to 1.
    pub fn new(share: f64) -> Self {
        Self(share.clamp(0.0, 1.0))
    }

    /// 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.trim()
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok())
            .filter(|percent| (0.0..=100.0).contains(percent))
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| {
                let number = text.trim().parse::<f64>().ok();
                let meant = number.filter(|percent| (1.0..=100.0).contains(percent));
                format!(
                    "{text:?} is no share: write it in percent, e.g. \"{}%\"",
                    meant.unwrap_or(10.0)
                )
            })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}
