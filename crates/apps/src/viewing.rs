//! The viewer's side of a video session, on demand or live: which chunks were asked for, what came of
//! them, and what was shown.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::abr::{Abr, History, State};
use crate::player::Player;
use crate::{AppFactors, ChunkRecord, Command, Playback, RequestId, VideoRecord};

/// What a player downloads, chunk by chunk, one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Viewing {
    /// Every chunk that was requested; all but the last are complete.
    chunks: Vec<ChunkRecord>,
    /// The rung of the last of them.
    rung: Option<usize>,
    history: History,
    /// The chunk in download, and how much of it is missing.
    download: Option<(RequestId, Bytes)>,
    /// Stall time that is on the books of complete chunks.
    stall_booked: Duration,
}

/// What decides the bitrate of the next chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) abr: &'a Abr,
    pub(crate) ladder: &'a [Rate],
    pub(crate) buffer: Duration,
    pub(crate) buffer_max: Duration,
    pub(crate) chunk_length: Duration,
}

impl Viewing {
    /// Chunks that were requested so far.
    pub(crate) fn requested(&self) -> usize {
        self.chunks.len()
    }

    /// Whether a chunk is in download.
    pub(crate) fn is_busy(&self) -> bool {
        self.download.is_some()
    }

    /// Asks for the next chunk, of a playing time and with a size at the chosen bitrate.
    pub(crate) fn request(
        &mut self,
        now: Time,
        choice: Choice<'_>,
        (duration, upload): (Duration, Bytes),
        size: impl FnOnce(Rate) -> Bytes,
    ) -> Command {
        let rung = choice.abr.choose(&State {
            ladder: choice.ladder,
            buffer: choice.buffer,
            buffer_max: choice.buffer_max,
            chunk_length: choice.chunk_length,
            previous: self.rung,
            history: self.history,
        });
        let bitrate = choice.ladder[rung];
        let size = size(bitrate);
        let id = RequestId(u32::try_from(self.chunks.len()).unwrap_or(u32::MAX));
        self.rung = Some(rung);
        self.download = Some((id, size));
        self.chunks.push(ChunkRecord {
            bitrate,
            size,
            duration,
            requested_at: now,
            completed_at: None,
            stall: Duration::ZERO,
            latency: None,
        });
        Command::Request { id, size, upload }
    }

    /// More of a chunk arrived.
    pub(crate) fn on_bytes(&mut self, id: RequestId, newly: Bytes) {
        if let Some((current, missing)) = &mut self.download
            && *current == id
        {
            *missing -= newly;
        }
    }

    /// The last byte of the chunk in download arrived, with the player as it is at `now`: its playing
    /// time, which the player has then. `None` for another request than that.
    pub(crate) fn complete(
        &mut self,
        now: Time,
        id: RequestId,
        player: &mut Player,
        latency: Option<Duration>,
    ) -> Option<Duration> {
        self.download.take_if(|(current, _)| *current == id)?;
        let chunk = self.chunks.last_mut()?;
        chunk.completed_at = Some(now);
        chunk.stall = player.stall_time - self.stall_booked;
        chunk.latency = latency;
        self.stall_booked = player.stall_time;
        self.history.add(chunk.size, now.since(chunk.requested_at));
        player.add(chunk.duration);
        Some(chunk.duration)
    }

    /// What a QoE model needs to know, with the player as it is now.
    pub(crate) fn factors(&self, player: &Player) -> AppFactors {
        let chunk = self.chunks.last();
        let size = self.download.and(chunk).map(|c| c.size);
        AppFactors {
            outstanding: self.download.map_or(Bytes::ZERO, |(_, missing)| missing),
            outstanding_requests: u32::from(self.download.is_some()),
            request_size: size,
            mean_outstanding_size: size,
            chunk_size: chunk.map(|c| c.size),
            chunk_bitrate: chunk.map(|c| c.bitrate),
            buffer: Some(player.buffer),
            bitrate: match player.state {
                Playback::Starting => None,
                _ => self.chunk_shown(player.buffer).map(|c| c.bitrate),
            },
            playback: Some(player.state),
        }
    }

    /// The chunk on the screen while `buffer` is still to come: found from the end, because the
    /// buffer holds few chunks and a session many. During a stall it is the last one shown.
    fn chunk_shown(&self, buffer: Duration) -> Option<&ChunkRecord> {
        let mut to_end = Duration::ZERO;
        self.chunks.iter().rev().filter(|chunk| chunk.completed_at.is_some()).find(|chunk| {
            to_end += chunk.duration;
            to_end >= buffer
        })
    }

    /// What the viewer saw, with the player as it is now.
    pub(crate) fn record(&self, player: &Player) -> VideoRecord {
        let mut chunks = self.chunks.clone();
        if let Some(chunk) = chunks.last_mut()
            && chunk.completed_at.is_none()
        {
            chunk.stall = player.stall_time - self.stall_booked;
        }
        VideoRecord {
            chunks,
            startup: player.startup,
            stalls: player.stalls,
            stall_time: player.stall_time,
            played: player.played,
        }
    }
}
