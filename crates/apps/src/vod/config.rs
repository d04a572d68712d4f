//! The settings of a video session.

use thiserror::Error;
use trimtab_units::{Bytes, Duration, Rate};

use super::Vod;
use crate::{Abr, Setting};

/// Settings of [`Vod`].
#[derive(Clone, Debug, PartialEq)]
pub struct VodConfig {
    /// Bitrates that the video comes in, lowest first, each above zero. Default: 0.4, 0.8, 1.5, 3 and
    /// 6 Mbit/s; Mortise §4 (2) fixes the lowest, B_min = 400 kbit/s. Where links are faster, see
    /// [`VodConfig::fast_ladder`].
    pub ladder: Vec<Rate>,
    /// Playing time of a chunk, 100 ms to 60 s. Default: 4 s.
    pub chunk_length: Duration,
    /// Playing time of the video, up to a day. Default: 120 s.
    pub length: Duration,
    /// Whether the video starts over at its end, for ever. Default: false.
    pub repeats: bool,
    /// The most video that the player keeps, at least one chunk. Default: 30 s.
    pub buffer_max: Duration,
    /// Video to download before the first frame. Default: 4 s, one chunk.
    pub startup_buffer: Duration,
    /// Video to download before playback goes on after a stall. Default: 4 s, one chunk.
    pub resume_buffer: Duration,
    /// The rule that chooses bitrates. Default: [`Vlc`](crate::Vlc).
    pub abr: Abr,
    /// Coefficient of variation of chunk sizes at one bitrate, 0 to 1. Default: 0, constant bitrate.
    pub size_variation: f64,
    /// Seed of the chunk sizes. Default: 0.
    pub seed: u64,
    /// Size of a request message. Default: 200 B.
    pub upload: Bytes,
}

impl Default for VodConfig {
    fn default() -> Self {
        Self {
            ladder: [0.4, 0.8, 1.5, 3.0, 6.0].map(Rate::from_mbps).to_vec(),
            chunk_length: Duration::from_secs(4),
            length: Duration::from_secs(120),
            repeats: false,
            buffer_max: Duration::from_secs(30),
            startup_buffer: Duration::from_secs(4),
            resume_buffer: Duration::from_secs(4),
            abr: Abr::default(),
            size_variation: 0.0,
            seed: 0,
            upload: Bytes::new(200),
        }
    }
}

impl VodConfig {
    /// The default ladder with three rungs for links that carry it easily (5G, Wi-Fi): up to 12, 24
    /// and 48 Mbit/s. Our own choice; the papers name none.
    pub fn fast_ladder() -> Vec<Rate> {
        [0.4, 0.8, 1.5, 3.0, 6.0, 12.0, 24.0, 48.0].map(Rate::from_mbps).to_vec()
    }

    /// Checks every setting against its range.
    ///
    /// # Errors
    /// One is outside.
    pub fn check(&self) -> Result<(), VodConfigError> {
        let rising = self.ladder.is_sorted_by(|a, b| a < b);
        if self.ladder.first().is_none_or(|r| r.is_zero()) || !rising {
            return Err(VodConfigError::Ladder);
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(60)).contains(&self.chunk_length) {
            return Err(VodConfigError::ChunkLength { given: self.chunk_length });
        }
        if self.length.is_zero() || self.length > Duration::from_secs(24 * 3600) {
            return Err(VodConfigError::Length { given: self.length });
        }
        if self.buffer_max < self.chunk_length {
            return Err(VodConfigError::BufferMax {
                given: self.buffer_max,
                chunk_length: self.chunk_length,
            });
        }
        if !(0.0..=1.0).contains(&self.size_variation) {
            return Err(VodConfigError::SizeVariation { given: self.size_variation });
        }
        match self.abr {
            Abr::Vlc(rule) if !(0.0..=1.0).contains(&rule.low_buffer) => {
                Err(VodConfigError::LowBuffer { given: rule.low_buffer })
            }
            Abr::Bola(rule) if !(rule.gamma_p > 0.0 && rule.gamma_p.is_finite()) => {
                Err(VodConfigError::GammaP { given: rule.gamma_p })
            }
            _ => Ok(()),
        }
    }
}

/// Why a video cannot be played with these settings.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum VodConfigError {
    /// The ladder is empty, not rising, or begins at zero.
    #[error("the ladder needs one bitrate above zero or more, each higher than the one before")]
    Ladder,
    /// The length of a chunk is outside its range.
    #[error("a chunk of {given} is outside the range 100ms to 60s")]
    ChunkLength {
        /// What was given.
        given: Duration,
    },
    /// The length of the video is outside its range.
    #[error("a video of {given} is outside the range above 0s to 24h")]
    Length {
        /// What was given.
        given: Duration,
    },
    /// The buffer does not hold a chunk.
    #[error(
        "a buffer of {given} holds no chunk of {chunk_length}: enlarge it or cut shorter chunks"
    )]
    BufferMax {
        /// What was given.
        given: Duration,
        /// The length of a chunk.
        chunk_length: Duration,
    },
    /// The variation of chunk sizes is outside its range.
    #[error("a size variation of {given} is outside the range 0 to 1")]
    SizeVariation {
        /// What was given.
        given: f64,
    },
    /// The rule's low-buffer share is outside its range.
    #[error("a low-buffer share of {given} is outside the range 0 to 1")]
    LowBuffer {
        /// What was given.
        given: f64,
    },
    /// The rule's γp is outside its range.
    #[error("γp of BOLA is a number above 0, not {given}")]
    GammaP {
        /// What was given.
        given: f64,
    },
}

impl Vod {
    pub(crate) const SETTINGS: &'static [Setting] = &[
        Setting {
            name: "ladder",
            default: "0.4, 0.8, 1.5, 3, 6 Mbit/s",
            about: "bitrates that the video comes in, lowest first",
        },
        Setting { name: "chunk_length", default: "4s", about: "playing time of a chunk" },
        Setting { name: "length", default: "120s", about: "playing time of the video" },
        Setting { name: "repeats", default: "false", about: "whether the video starts over" },
        Setting { name: "buffer_max", default: "30s", about: "the most video the player keeps" },
        Setting {
            name: "startup_buffer",
            default: "4s",
            about: "video to download before the first frame",
        },
        Setting {
            name: "resume_buffer",
            default: "4s",
            about: "video to download before going on after a stall",
        },
        Setting { name: "abr", default: "vlc", about: "the rule that chooses bitrates: vlc, bola" },
        Setting {
            name: "size_variation",
            default: "0",
            about: "coefficient of variation of chunk sizes at one bitrate",
        },
        Setting { name: "seed", default: "0", about: "seed of the chunk sizes" },
        Setting { name: "upload", default: "200 B", about: "size of a request message" },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bola, Vlc};

    #[test]
    fn ranges() {
        let check = |change: &dyn Fn(&mut VodConfig)| {
            let mut config = VodConfig::default();
            change(&mut config);
            config.check()
        };
        assert_eq!(check(&|_| {}), Ok(()));
        assert_eq!(check(&|c| c.ladder = VodConfig::fast_ladder()), Ok(()));
        assert_eq!(check(&|c| c.ladder.clear()), Err(VodConfigError::Ladder));
        assert_eq!(check(&|c| c.ladder[0] = Rate::ZERO), Err(VodConfigError::Ladder));
        assert_eq!(check(&|c| c.ladder[1] = c.ladder[2]), Err(VodConfigError::Ladder));
        let zero = Duration::ZERO;
        let chunk = VodConfigError::ChunkLength { given: zero };
        assert_eq!(check(&|c| c.chunk_length = zero), Err(chunk));
        assert_eq!(check(&|c| c.length = zero), Err(VodConfigError::Length { given: zero }));
        assert_eq!(
            check(&|c| c.buffer_max = Duration::from_secs(3)).unwrap_err().to_string(),
            "a buffer of 3s holds no chunk of 4s: enlarge it or cut shorter chunks"
        );
        assert!(check(&|c| c.size_variation = f64::NAN).is_err());
        assert!(check(&|c| c.abr = Abr::Vlc(Vlc { low_buffer: 1.1 })).is_err());
        let bola = |gamma_p| Abr::Bola(Bola { gamma_p, ..Bola::default() });
        assert!(check(&|c| c.abr = bola(f64::NAN)).is_err());
        assert!(check(&|c| c.abr = bola(0.0)).is_err());
        assert!(check(&|c| c.abr = bola(5.0)).is_ok());
    }
}
