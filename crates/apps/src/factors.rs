//! What a QoE model needs to know of a running application.

use trimtab_qoe::Factors;
use trimtab_units::{Bytes, Duration, Rate};

/// The live factors of an application (Mortise §3.2): what turns an operating point of the network
/// into an experience of this user at this moment. `None` where the application has no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AppFactors {
    /// Bytes of all outstanding responses that the client does not have yet.
    pub outstanding: Bytes,
    /// How many responses are outstanding.
    pub outstanding_requests: u32,
    /// Size of the oldest outstanding response: R of Mortise Eq. 6.
    pub request_size: Option<Bytes>,
    /// Mean size of the outstanding responses: R̄ of Mortise Eq. 22.
    pub mean_outstanding_size: Option<Bytes>,
    /// Size of the video chunk in download, or of the last one while none is: C of Mortise Eq. 8.
    pub chunk_size: Option<Bytes>,
    /// Nominal bitrate of that chunk.
    pub chunk_bitrate: Option<Rate>,
    /// Video that is downloaded and not played yet: V of Mortise Eq. 8.
    pub buffer: Option<Duration>,
    /// Nominal bitrate of the chunk on the screen, once playback has begun.
    pub bitrate: Option<Rate>,
    /// What the player does.
    pub playback: Option<Playback>,
}

impl From<&AppFactors> for Factors {
    /// The factors as QoE models name them.
    fn from(app: &AppFactors) -> Self {
        let mut factors = Self::new().with_remaining(app.outstanding);
        if let Some(size) = app.request_size {
            factors = factors.with_request(size);
        }
        if let Some(size) = app.mean_outstanding_size {
            factors = factors.with_mean_response(size);
        }
        if let Some(size) = app.chunk_size {
            factors = factors.with_chunk(size);
        }
        if let Some(buffer) = app.buffer {
            factors = factors.with_buffer(buffer);
        }
        factors
    }
}

/// What a video player does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Playback {
    /// It fills its buffer before the first frame.
    Starting,
    /// It plays.
    Playing,
    /// It ran out of video and waits for more.
    Stalled,
    /// It has played the whole video.
    Ended,
}
