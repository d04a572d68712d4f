//! What a run of an application achieved.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{CallRecord, RequestId};

/// What the run of an application achieved so far.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Data without an end, of which the connection itself says all.
    Endless,
    /// Every request that was sent, in that order.
    Requests(Vec<RequestRecord>),
    /// What the viewer saw.
    Video(VideoRecord),
    /// What one end of a call saw of the other.
    Call(CallRecord),
}

/// The life of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its name.
    pub id: RequestId,
    /// Size of the response's body.
    pub size: Bytes,
    /// When the workload wanted it sent.
    pub scheduled_at: Time,
    /// When the client handed it to the transport.
    pub sent_at: Time,
    /// When the first byte of the response reached the client.
    pub first_byte_at: Option<Time>,
    /// When the last byte did; `None` for a request that is not finished.
    pub completed_at: Option<Time>,
    /// How much of the body has reached the client; all of it once the request is finished.
    pub received: Bytes,
}

impl RequestRecord {
    /// Request completion time: from sending to the last byte of the response, and so with the wait
    /// behind earlier responses (Floo §3.3). `None` while the request is not finished.
    pub fn completion_time(&self) -> Option<Duration> {
        self.completed_at.map(|t| t.since(self.sent_at))
    }
}

/// A session of a video player. While the video has not ended, `startup`, `stall_time` and `played`
/// add up to the time since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoRecord {
    /// Every chunk that was requested, in playing order; at most the last one is not complete.
    pub chunks: Vec<ChunkRecord>,
    /// From the start to the first frame, or to now when there was none.
    pub startup: Duration,
    /// How often playback ran out of video. The wait for the first frame does not count.
    pub stalls: u32,
    /// How long it stood still for that, in all.
    pub stall_time: Duration,
    /// How much of the video was shown.
    pub played: Duration,
}

/// The life of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// Nominal bitrate: the rung of the ladder.
    pub bitrate: Rate,
    /// Its size.
    pub size: Bytes,
    /// Its playing time.
    pub duration: Duration,
    /// When it was requested.
    pub requested_at: Time,
    /// When its last byte arrived; `None` while it is in download.
    pub completed_at: Option<Time>,
    /// How long playback stood still for want of this chunk (T_n of Mortise §4 (2)).
    pub stall: Duration,
    /// Live video: how far the picture was behind the live edge when the last byte arrived. `None`
    /// for a chunk in download, and on demand.
    pub latency: Option<Duration>,
}
