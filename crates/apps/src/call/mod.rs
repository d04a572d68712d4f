//! Calls: video and audio that one end makes as it goes and the other shows at once.
//!
//! A [`Call`] has both ends and neither clock nor network. A transport of media asks it for what
//! was captured, hands it the packets that arrive, and tells it what bitrate the path carries.
//!
//! Read first: `record.rs` for what a call comes to, `encoder.rs` for what it sends (RFC 8593), and
//! `depacketizer.rs`, `jitter.rs` and `playout.rs` for what becomes of it.

mod application;
mod curves;
mod depacketizer;
mod encoder;
mod jitter;
mod moments;
mod playout;
mod quality;
mod record;
mod sound;

use trimtab_units::{Bytes, Duration, Rate, Time};

pub(crate) use application::OneCall;
pub use depacketizer::{FRAME_PACKETS_MAX, VideoPacket};
pub use encoder::Resolution;
pub use moments::{Moment, MomentKind, Still};
pub use quality::{Clip, Lag, Picture, Point, Quality, Rung};
pub use record::{AudioRecord, CallRecord, FrameRecord, Freezes};

use depacketizer::Depacketizer;
use encoder::Encoder;
use encoder::{CALL, GAME};
use playout::Playout;
use sound::Sound;

use crate::AppFactors;

/// From the capture of a frame to its first packet. Ours: an encoder of 720p on a desktop.
const ENCODE: Duration = Duration::from_millis(5);
/// Size of a frame of audio: Opus at 32 kbit/s.
const AUDIO_BYTES: Bytes = Bytes::new(80);
/// Without a frame for so long the receiver asks for a key frame (libwebrtc, `kMaxWaitForFrame`),
/// and before the first one for so long (`kMaxWaitForKeyFrame`).
const WAIT_FRAME: Duration = Duration::from_secs(3);
const WAIT_KEY: Duration = Duration::from_millis(200);

/// Settings of a [`Call`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallConfig {
    /// Frames per second, above zero.
    pub fps: f64,
    /// The resolutions of the encoder, lowest first, at least one.
    pub ladder: &'static [Resolution],
    /// What scores pictures.
    pub picture: Picture,
    /// Whether there is audio.
    pub audio: bool,
    /// Whether frames answer inputs: the viewer's inputs go to the other end with every frame, and
    /// pictures are shown as soon as they are decoded.
    pub interactive: bool,
    /// What the transport is to add.
    pub protection: Protection,
    /// How long the call lasts.
    pub length: Duration,
    /// From when to when its sending end is paused, counted from the beginning (RFC 8867 §5.8):
    /// nothing is captured then. `None` for never.
    pub pause: Option<(Duration, Duration)>,
    /// Seed of frame sizes.
    pub seed: u64,
}

impl CallConfig {
    /// A conference: 720p at 30 frames per second with audio, for 120 s.
    pub fn conference() -> Self {
        Self {
            fps: 30.0,
            ladder: &CALL,
            picture: Picture::default(),
            audio: true,
            interactive: false,
            protection: Protection::default(),
            length: Duration::from_secs(120),
            pause: None,
            seed: 0,
        }
    }

    /// The most that it asks of a path: its largest resolution with audio, in packets of this
    /// payload with this much around it.
    pub fn most(&self, payload: Bytes, header: Bytes) -> Rate {
        let interval = self.interval();
        let video = self.ladder.last().map_or(Rate::ZERO, |rung| {
            let frame = rung.most * interval;
            // A packet more, so that rounding leaves the most to the encoder, which keeps to it.
            let packets = frame.get().div_ceil(payload.get()) + 1;
            (frame + header * packets) / interval
        });
        let audio = if self.audio { (AUDIO_BYTES + header) / sound::FRAME } else { Rate::ZERO };
        video + audio
    }

    /// From one capture of video to the next, rounded up, so that a second never has a frame more.
    fn interval(&self) -> Duration {
        Duration::from_nanos((1e9 / self.fps).ceil() as u64)
    }

    /// A game: 720p at 60 frames per second that answer inputs.
    pub fn game() -> Self {
        Self { fps: 60.0, ladder: &GAME, interactive: true, ..Self::conference() }
    }
}

/// What a transport of media adds to a call's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Parity packets (FEC).
    pub parity: bool,
    /// Feedback by RFC 8888 in place of transport-wide feedback.
    pub rfc8888: bool,
}

/// Something was captured and is ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    /// A frame of video.
    Video {
        /// Its number, from 0; frames that the encoder skips have none.
        frame: u32,
        /// Its size.
        bytes: Bytes,
        /// Whether it is a key frame.
        key: bool,
        /// Its media time.
        media_time: Time,
    },
    /// A frame of audio.
    Audio {
        /// Its number, from 0.
        number: u32,
        /// Its size.
        bytes: Bytes,
    },
}

/// A call from one end to the other.
#[derive(Clone, Debug)]
pub struct Call {
    config: CallConfig,
    interval: Duration,
    start: Option<Time>,
    // The sending end.
    encoder: Encoder,
    video_at: Time,
    audio_at: Time,
    /// Of encoded frames, the place in `frames`.
    encoded: Vec<u32>,
    newest_input: Option<Time>,
    // The receiving end.
    depacketizer: Depacketizer,
    playout: Playout,
    sound: Sound,
    /// When the receiver asks for a key frame unless a frame comes.
    key_due: Time,
    // What is recorded.
    frames: Vec<FrameRecord>,
    audio: Vec<AudioRecord>,
}

impl Call {
    /// A call that has not begun.
    pub fn new(config: CallConfig) -> Self {
        let interval = config.interval();
        Self {
            config,
            interval,
            start: None,
            encoder: Encoder::new(config.ladder, interval, config.seed),
            video_at: Time::MAX,
            audio_at: Time::MAX,
            encoded: Vec::new(),
            newest_input: None,
            depacketizer: Depacketizer::default(),
            playout: Playout::new(config.interactive),
            sound: Sound::new(),
            key_due: Time::MAX,
            frames: Vec::new(),
            audio: Vec::new(),
        }
    }

    /// Its settings.
    pub fn config(&self) -> &CallConfig {
        &self.config
    }

    /// The call begins. Nothing happens if it has begun.
    pub fn begin(&mut self, now: Time) {
        if self.start.is_none() {
            self.start = Some(now);
            self.video_at = now;
            self.audio_at = if self.config.audio { now } else { Time::MAX };
            self.key_due = now + WAIT_FRAME;
        }
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.start.is_some() && self.next_capture() == Time::MAX
    }

    fn end(&self) -> Time {
        self.start.map_or(Time::MAX, |start| start + self.config.length)
    }

    /// From one capture of video to the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The rate of its audio, without headers.
    pub fn audio_rate(&self) -> Rate {
        if self.config.audio { AUDIO_BYTES / sound::FRAME } else { Rate::ZERO }
    }

    /// When [`capture`](Self::capture) has something; [`Time::MAX`] for never.
    pub fn next_capture(&self) -> Time {
        (self.video_at + ENCODE).min(self.audio_at)
    }

    /// What is ready now; call until there is nothing. Where the transport is `congested` a frame
    /// of video is skipped: it was captured, and nobody sees it.
    pub fn capture(&mut self, now: Time, congested: bool) -> Option<Captured> {
        if self.audio_at <= now {
            let number = self.audio.len() as u32;
            self.audio.push(AudioRecord { captured_at: self.audio_at, played_at: None });
            self.audio_at = self.unless_past(self.audio_at + sound::FRAME);
            return Some(Captured::Audio { number, bytes: AUDIO_BYTES });
        }
        while self.video_at + ENCODE <= now {
            let media_time = self.video_at;
            self.video_at = self.unless_past(self.video_at + self.interval);
            let frame = self.encode(media_time, congested);
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// The pause by the clock of the call's ends.
    fn pause(&self) -> Option<(Time, Time)> {
        let ((from, to), start) = (self.config.pause?, self.start?);
        Some((start + from, start + to))
    }

    /// The time, or the end of a pause that it is in; never where the call has ended by then.
    fn unless_past(&self, at: Time) -> Time {
        let at = match self.pause() {
            Some((from, to)) if (from..to).contains(&at) => to,
            _ => at,
        };
        if at < self.end() { at } else { Time::MAX }
    }

    fn encode(&mut self, media_time: Time, skip: bool) -> Option<Captured> {
        let captured_at = self.newest_input.unwrap_or(media_time);
        let asked = self.encoder.asked();
        let (height, bytes) = (0, Bytes::ZERO);
        let skipped =
            FrameRecord { captured_at, bytes, asked, height, key: false, presented_at: None };
        if skip {
            self.frames.push(skipped);
            return None;
        }
        let coded = self.encoder.encode(media_time);
        let number = self.encoded.len() as u32;
        self.encoded.push(self.frames.len() as u32);
        let encoder::Encoded { bytes, height, key, asked } = coded;
        self.frames.push(FrameRecord { bytes, height, key, asked, ..skipped });
        Some(Captured::Video { frame: number, bytes, key, media_time })
    }

    /// The path carries this much video, without headers.
    pub fn ask(&mut self, rate: Rate) {
        self.encoder.ask(rate);
    }

    /// What the encoder was asked for last, within what it can do.
    pub fn asked(&self) -> Rate {
        self.encoder.asked()
    }

    /// The other end cannot go on without a key frame.
    pub fn request_key(&mut self) {
        self.encoder.request_key();
    }

    /// An input of the viewer reached the sending end.
    pub fn on_input(&mut self, made_at: Time) {
        self.newest_input = self.newest_input.max(Some(made_at));
    }

    /// A packet of video reached the receiving end. `again` says that it came by retransmission,
    /// and `rtt` is the round-trip time of these.
    pub fn on_video(&mut self, now: Time, packet: &VideoPacket, again: bool, rtt: Duration) {
        self.depacketizer.insert(now, packet, again);
        while let Some(frame) = self.depacketizer.pop() {
            self.key_due = now + WAIT_FRAME;
            let shown = self.playout.show(now, &frame, rtt);
            self.present(frame.frame, Some(shown.at));
            if let Some(unseen) = shown.instead_of {
                self.present(unseen, None);
            }
        }
    }

    fn present(&mut self, frame: u32, at: Option<Time>) {
        let place = self.encoded.get(frame as usize).map(|&place| place as usize);
        if let Some(record) = place.and_then(|place| self.frames.get_mut(place)) {
            record.presented_at = at;
        }
    }

    /// A frame of audio reached the receiving end.
    pub fn on_audio(&mut self, now: Time, number: u32) {
        if let Some(audio) = self.audio.get_mut(number as usize)
            && audio.played_at.is_none()
        {
            audio.played_at = self.sound.play(now, audio.captured_at);
        }
    }

    /// When the receiving end asks for a key frame; [`Time::MAX`] for never.
    pub fn key_due(&self) -> Time {
        self.unless_past(self.key_due)
    }

    /// It asks for one now. A frame that is not to be repaired makes it ask at once.
    pub fn on_key_asked(&mut self, now: Time) {
        self.key_due = now + if self.depacketizer.waits() { WAIT_KEY } else { WAIT_FRAME };
    }

    /// The live factors: none that a model of calls reads, but what the picture is now.
    pub(crate) fn factors(&self) -> AppFactors {
        AppFactors { bitrate: Some(self.encoder.asked()), ..AppFactors::default() }
    }

    /// What it came to by `now`. Frames that are on their way then were not presented.
    pub fn record(&self, now: Time) -> CallRecord {
        let start = self.start.unwrap_or(now);
        let by_now = |at: Option<Time>| at.filter(|&at| at <= now);
        let frames = self
            .frames
            .iter()
            .map(|frame| FrameRecord { presented_at: by_now(frame.presented_at), ..*frame });
        let audio = self.audio.iter();
        CallRecord {
            start,
            end: now.min(self.end()).max(start),
            interval: self.interval,
            pause: self.pause(),
            frames: frames.collect(),
            audio: audio
                .map(|audio| AudioRecord { played_at: by_now(audio.played_at), ..*audio })
                .collect(),
            picture: self.config.picture,
            measured_vmaf: None,
            stills: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
