//! The range of the target.

use trimtab_stack::units::Rate;

/// What an encoder can do: the target stays in this range, whatever the algorithm says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bitrates {
    /// The least. So much leaves even where the algorithm's window is full, so that feedback comes
    /// and the algorithm can recover. Default: 30 kbit/s (libwebrtc, `kDefaultMinVideoBitrateBps`).
    pub least: Rate,
    /// Before anything is known of the path. Default: 300 kbit/s (libwebrtc,
    /// `BitrateConstraints::start_bitrate_bps`).
    pub start: Rate,
    /// The most. Default: 2.5 Mbit/s (libwebrtc's for 720p, `GetMaxDefaultVideoBitrateKbps`).
    pub most: Rate,
}

impl Default for Bitrates {
    fn default() -> Self {
        Self {
            least: Rate::from_bits_per_sec(30_000),
            start: Rate::from_bits_per_sec(300_000),
            most: Rate::from_bits_per_sec(2_500_000),
        }
    }
}

impl Bitrates {
    /// The rate within the range; the start where there is none.
    pub(crate) fn clamp(&self, rate: Option<Rate>) -> Rate {
        rate.unwrap_or(self.start).min(self.most).max(self.least)
    }
}
