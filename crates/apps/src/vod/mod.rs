//! Video on demand: chunks, a playback buffer, and an adaptive bitrate rule.
//!
//! The player asks for one chunk at a time, at the bitrate that its rule chooses, as soon as the
//! buffer has room for a whole chunk. It begins to play when `startup_buffer` is downloaded, and
//! stalls when the buffer is empty, until `resume_buffer` is there (Mortise §4 (2); a stall is the
//! part of a chunk's download that outlasts the buffer, Eq. 8). Both waits also end when the buffer
//! has no room for more or the video is downloaded to its end.

mod config;
mod video;

pub(crate) use config::{ABR, LADDER, abr, ladder};
pub use config::{VodConfig, VodConfigError};

use trimtab_units::{Bytes, Duration, Time};
use video::Video;

use crate::player::Player;
use crate::viewing::{Choice, Viewing};
use crate::{AppFactors, Application, Command, Concurrency, Outcome, Playback, RequestId};

/// A video player.
#[derive(Clone, Debug)]
pub struct Vod {
    config: VodConfig,
    video: Video,
    /// `None` before the first poll.
    player: Option<Player>,
    viewing: Viewing,
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
        let video = Video::new(&config);
        Self { config, video, player: None, viewing: Viewing::default() }
    }

    /// Whether the buffer of `player` has room for the next chunk.
    fn has_room(&self, player: &Player) -> bool {
        player.buffer <= self.room_level()
    }

    /// The level of the buffer at which there is room for the next chunk.
    fn room_level(&self) -> Duration {
        self.config.buffer_max - self.video.duration(self.viewing.requested())
    }

    fn request(&mut self, now: Time, buffer: Duration) -> Command {
        let choice = Choice {
            abr: &self.config.abr,
            ladder: &self.config.ladder,
            buffer,
            buffer_max: self.config.buffer_max,
            chunk_length: self.config.chunk_length,
        };
        let index = self.viewing.requested();
        let chunk = (self.video.duration(index), self.config.upload);
        self.viewing.request(now, choice, chunk, |bitrate| self.video.size(index, bitrate))
    }

    /// The player as it will be at `now` if nothing arrives until then.
    fn player_at(&self, now: Time) -> Player {
        let mut player = self.player.unwrap_or_else(|| Player::new(now));
        player.advance(now);
        player
    }

    /// Whether there is another chunk to ask for.
    fn has_more(&self) -> bool {
        self.video.has(self.viewing.requested())
    }
}

impl Application for Vod {
    fn poll(&mut self, now: Time) -> Option<Command> {
        let player = self.player_at(now);
        self.player = Some(player);
        let wanted = !self.viewing.is_busy() && self.has_more();
        (wanted && self.has_room(&player)).then(|| self.request(now, player.buffer))
    }

    fn next_timer(&self) -> Option<Time> {
        let Some(player) = self.player else {
            return Some(Time::ZERO);
        };
        if self.viewing.is_busy() {
            return None;
        }
        // Room for the next chunk, or the end of the show.
        player.falls_to(if self.has_more() { self.room_level() } else { Duration::ZERO })
    }

    fn on_bytes(&mut self, _now: Time, id: RequestId, newly: Bytes) {
        self.viewing.on_bytes(id, newly);
    }

    fn on_complete(&mut self, now: Time, id: RequestId) {
        let mut player = self.player_at(now);
        if self.viewing.complete(now, id, &mut player, None).is_none() {
            return;
        }
        let more = self.has_more();
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
        self.viewing.factors(&self.player_at(now))
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::InOrder
    }

    fn outcome(&self, now: Time) -> Outcome {
        Outcome::Video(self.viewing.record(&self.player_at(now)))
    }
}

#[cfg(test)]
mod tests;
