//! Video on demand: chunks, a playback buffer, and an adaptive bitrate rule.
//!
//! The player asks for one chunk at a time, at the bitrate that its rule chooses, as soon as the
//! buffer has room for a whole chunk. It begins to play when `startup_buffer` is downloaded, and
//! stalls when the buffer is empty, until `resume_buffer` is there (Mortise §4 (2); a stall is the
//! part of a chunk's download that outlasts the buffer, Eq. 8). Both waits also end when the buffer
//! has no room for more or the video is downloaded to its end.

mod config;
mod video;

pub use config::{VodConfig, VodConfigError};

use trimtab_units::{Bytes, Duration, Time};
use video::Video;

use crate::abr::{History, State};
use crate::player::Player;
use crate::{
    AppFactors, Application, ChunkRecord, Command, Concurrency, Outcome, Playback, RequestId,
    VideoRecord,
};

/// A video player.
#[derive(Clone, Debug)]
pub struct Vod {
    config: VodConfig,
    video: Video,
    /// `None` before the first poll.
    player: Option<Player>,
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

impl Vod {
    /// A player that has asked for nothing yet.
    ///
    /// # Errors
    /// A setting is outside its range.
    pub fn new(config: VodConfig) -> Result<Self, VodConfigError> {
        config.check()?;
        Ok(Self::with(config))
    }

    /// The same with settings that were checked.
    fn with(config: VodConfig) -> Self {
        Self {
            video: Video::new(&config),
            config,
            player: None,
            chunks: Vec::new(),
            rung: None,
            history: History::default(),
            download: None,
            stall_booked: Duration::ZERO,
        }
    }

    /// Whether the buffer of `player` has room for the next chunk.
    fn has_room(&self, player: &Player) -> bool {
        player.buffer <= self.room_level()
    }

    /// The level of the buffer at which there is room for the next chunk.
    fn room_level(&self) -> Duration {
        self.config.buffer_max - self.video.duration(self.chunks.len())
    }

    fn request(&mut self, now: Time, buffer: Duration) -> Command {
        let rung = self.config.abr.choose(&State {
            ladder: &self.config.ladder,
            buffer,
            buffer_max: self.config.buffer_max,
            chunk_length: self.config.chunk_length,
            previous: self.rung,
            history: self.history,
        });
        let index = self.chunks.len();
        let bitrate = self.config.ladder[rung];
        let size = self.video.size(index, bitrate);
        let id = RequestId(u32::try_from(index).unwrap_or(u32::MAX));
        self.rung = Some(rung);
        self.download = Some((id, size));
        self.chunks.push(ChunkRecord {
            bitrate,
            size,
            duration: self.video.duration(index),
            requested_at: now,
            completed_at: None,
            stall: Duration::ZERO,
            latency: None,
        });
        Command::Request { id, size, upload: self.config.upload }
    }

    /// The player as it will be at `now` if nothing arrives until then.
    fn player_at(&self, now: Time) -> Player {
        let mut player = self.player.unwrap_or_else(|| Player::new(now));
        player.advance(now);
        player
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
}

impl Application for Vod {
    fn poll(&mut self, now: Time) -> Option<Command> {
        let player = self.player_at(now);
        self.player = Some(player);
        let wanted = self.download.is_none() && self.video.has(self.chunks.len());
        (wanted && self.has_room(&player)).then(|| self.request(now, player.buffer))
    }

    fn next_timer(&self) -> Option<Time> {
        let Some(player) = self.player else {
            return Some(Time::ZERO);
        };
        if !self.video.has(self.chunks.len()) && self.download.is_none() {
            // The end of the show.
            return player.falls_to(Duration::ZERO);
        }
        match self.download {
            Some(_) => None,
            None => player.falls_to(self.room_level()),
        }
    }

    fn on_bytes(&mut self, _now: Time, id: RequestId, newly: Bytes) {
        if let Some((current, missing)) = &mut self.download
            && *current == id
        {
            *missing -= newly;
        }
    }

    fn on_complete(&mut self, now: Time, id: RequestId) {
        if self.download.is_none_or(|(current, _)| current != id) {
            return;
        }
        self.download = None;
        let mut player = self.player_at(now);
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.completed_at = Some(now);
            chunk.stall = player.stall_time - self.stall_booked;
            self.stall_booked = player.stall_time;
            self.history.add(chunk.size, now.since(chunk.requested_at));
            player.add(chunk.duration);
        }
        let more = self.video.has(self.chunks.len());
        if !more {
            player.complete();
        }
        let enough = match player.state {
            Playback::Starting => self.config.startup_buffer,
            _ => self.config.resume_buffer,
        };
        if player.buffer >= enough || !more || !self.has_room(&player) {
            player.play();
        }
        self.player = Some(player);
    }

    fn is_finished(&self) -> bool {
        self.player.is_some_and(|p| p.state == Playback::Ended)
    }

    fn factors(&self, now: Time) -> AppFactors {
        let player = self.player_at(now);
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

    fn concurrency(&self) -> Concurrency {
        Concurrency::InOrder
    }

    fn outcome(&self, now: Time) -> Outcome {
        let player = self.player_at(now);
        let mut chunks = self.chunks.clone();
        if let Some(chunk) = chunks.last_mut()
            && chunk.completed_at.is_none()
        {
            chunk.stall = player.stall_time - self.stall_booked;
        }
        Outcome::Video(VideoRecord {
            chunks,
            startup: player.startup,
            stalls: player.stalls,
            stall_time: player.stall_time,
            played: player.played,
        })
    }
}

#[cfg(test)]
mod tests;
