//! The settings of a video session.

use thiserror::Error;
use trimtab_units::{Bytes, Duration, Rate};

use super::Vod;
use crate::{Abr, AppInfo, Bola, Form, Recipe, Setting, Settings};

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
        if self.length.is_zero() || self.length > LENGTH_MAX {
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
    /// Its entry in the table of applications.
    pub const INFO: AppInfo = AppInfo {
        name: "vod",
        about: "Video on demand",
        source: "Mortise, section 4 (2); Müller and Timmerer 2011; BOLA, INFOCOM 2016",
        label: "video service",
        users: "viewers of a video service",
        experience: "Viewers watch a video that comes in chunks. Experience per chunk is the logarithm of \
                     its bitrate less 2.66 per second of stalling (Mortise, eq. 8): higher is better, \
                     and it can be negative.",
        log: false,
        media: false,
        settings: &[
            ABR,
            LADDER,
            Setting {
                name: "length",
                form: Form::Time,
                default: "the length of the run",
                about: "playing time of the video",
            },
            Setting {
                name: "chunk",
                form: Form::Time,
                default: "4s",
                about: "playing time of a chunk, 100 ms to 60 s",
            },
            Setting {
                name: "buffer",
                form: Form::Time,
                default: "30s",
                about: "the most video that the player keeps, at least one chunk",
            },
            Setting {
                name: "startup",
                form: Form::Time,
                default: "4s",
                about: "video to download before the first frame",
            },
            Setting {
                name: "resume",
                form: Form::Time,
                default: "4s",
                about: "video to download before playback goes on after a stall",
            },
        ],
        // Both are scored by the chunks' bitrates and stalls; the second steers by the sharp corner.
        models: &["vod", "vod-printed"],
        factors: &["C"],
        make: |settings| {
            let default = VodConfig::default();
            let time = |name, default| settings.time(name).unwrap_or(default);
            let length = settings.time("length");
            let config = VodConfig {
                abr: abr(settings),
                ladder: ladder(settings),
                chunk_length: time("chunk", default.chunk_length),
                buffer_max: time("buffer", default.buffer_max),
                startup_buffer: time("startup", default.startup_buffer),
                resume_buffer: time("resume", default.resume_buffer),
                length: length.unwrap_or(default.length),
                ..default
            };
            config.check()?;
            Ok(Recipe::new(move |session| {
                let length = length.unwrap_or(session.length).clamp(LENGTH_MIN, LENGTH_MAX);
                let seed = session.seed;
                Self::with(VodConfig { length, seed, ..config.clone() }).into()
            }))
        },
    };
}

/// The shortest video.
const LENGTH_MIN: Duration = Duration::from_nanos(1);
/// The longest video.
const LENGTH_MAX: Duration = Duration::from_secs(24 * 3600);

/// How a player chooses bitrates, as a setting.
pub(crate) const ABR: Setting = Setting {
    name: "abr",
    form: Form::Choice(&["vlc", "bola"]),
    default: "vlc",
    about: "how bitrates are chosen: vlc by throughput and buffer, bola by buffer only",
};
/// The bitrates of a video, as a setting.
pub(crate) const LADDER: Setting = Setting {
    name: "ladder",
    form: Form::Choice(&["standard", "fast"]),
    default: "standard",
    about: "standard: 0.4 to 6 Mbit/s in five steps; fast: three more, up to 48 Mbit/s",
};

/// The rule of [`ABR`].
pub(crate) fn abr(settings: &Settings) -> Abr {
    match settings.choice(ABR.name) {
        Some("bola") => Abr::Bola(Bola::default()),
        _ => Abr::default(),
    }
}

/// The bitrates of [`LADDER`].
pub(crate) fn ladder(settings: &Settings) -> Vec<Rate> {
    match settings.choice(LADDER.name) {
        Some("fast") => VodConfig::fast_ladder(),
        _ => VodConfig::default().ladder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vlc;

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
