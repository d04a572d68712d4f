//! A call from a live encoder to a browser, in real time.

use std::time::{Duration as StdDuration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use trimtab_apps::{CallRecord, FrameRecord, Picture, Still};
use trimtab_rtc::units::{Bytes, Duration, Rate, Time};

use super::browser::{Browser, Presented};
use super::encoder::Encoder;
use super::peer::{CLOCK_RATE, Peer};
use super::stills::{self, Shot};
use super::studio::{Clip, Studio};
use super::vmaf::{self, Measured, Slot};
use crate::error::WebrtcError;
use crate::rates::{BACKLOG_MAX, video_rate};

/// The first timestamp, so that none is zero.
const TIMESTAMP: u32 = 1_000_000;
/// How long the connection may take.
const PATIENCE: StdDuration = StdDuration::from_secs(20);
/// How often the browser's frames are fetched, in frames.
const FETCH: u64 = 50;

/// What is sent: a clip, at so many frames per second, 1 to 60.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The pictures.
    pub clip: &'a Clip,
    /// How many a second.
    pub fps: u32,
}

/// The sending end of a call, and what has been sent.
pub(crate) struct Call<'a> {
    peer: Peer,
    encoder: Encoder,
    clip: &'a Clip,
    fps: u32,
    began: Instant,
    began_unix_ms: f64,
    frames: Vec<Frame>,
    wants_key: bool,
}

/// A captured frame.
#[derive(Debug)]
struct Frame {
    captured_at: Time,
    asked: Rate,
    /// As encoded; `None` where it was left out.
    data: Option<Vec<u8>>,
    is_key: bool,
    presented_at: Option<Time>,
}

impl<'a> Call<'a> {
    /// Waits until the peer is connected.
    pub(crate) fn connect(peer: &mut Peer) -> Result<(), WebrtcError> {
        let end = Instant::now() + PATIENCE;
        while !peer.is_connected() {
            if Instant::now() > end {
                return Err(WebrtcError::peer("reach the receiver")("it took too long"));
            }
            peer.run_until(Instant::now() + StdDuration::from_millis(5))?;
        }
        Ok(())
    }

    /// The call begins now.
    pub(crate) fn begin(peer: Peer, most: Rate, scene: Scene<'a>) -> Result<Self, WebrtcError> {
        let Scene { clip, fps } = scene;
        let encoder = Encoder::new(&clip.frame(0), fps, most)?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            peer,
            encoder,
            clip,
            fps,
            began: Instant::now(),
            began_unix_ms: unix.as_secs_f64() * 1e3,
            frames: Vec::new(),
            wants_key: true,
        })
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Goes on until then.
    pub(crate) fn run_until(
        &mut self,
        until: Time,
        browser: &mut Browser,
    ) -> Result<(), WebrtcError> {
        loop {
            let number = self.frames.len() as u64;
            let next = Time::ZERO + self.interval() * number;
            self.peer.run_until(self.instant(next.min(until)))?;
            if next >= until {
                return Ok(());
            }
            self.capture(number)?;
            if number % FETCH == FETCH - 1 {
                self.fetch(browser)?;
            }
        }
    }

    /// Lets what was sent arrive, and captures no more.
    pub(crate) fn settle(
        &mut self,
        time: Duration,
        browser: &mut Browser,
    ) -> Result<(), WebrtcError> {
        let until = self.instant(self.now() + time);
        self.peer.run_until(until)?;
        self.fetch(browser)
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1) / u64::from(self.fps)
    }

    /// The RTP timestamp of a frame.
    fn timestamp(&self, number: u64) -> u32 {
        TIMESTAMP.wrapping_add((number as u32).wrapping_mul(CLOCK_RATE / self.fps))
    }

    fn instant(&self, at: Time) -> Instant {
        self.began + StdDuration::from_nanos(at.as_nanos())
    }

    /// Captures, encodes and sends a frame.
    fn capture(&mut self, number: u64) -> Result<(), WebrtcError> {
        let captured_at = self.now();
        self.wants_key |= self.peer.take_key_frame_request();
        let target = self.peer.target();
        let asked = video_rate(target.bitrate(), Rate::ZERO, self.interval());
        let mut frame = Frame { captured_at, asked, data: None, is_key: false, presented_at: None };
        if target.backlog() < BACKLOG_MAX {
            let picture = self.clip.frame(number as usize);
            let at_ms = captured_at.as_millis();
            if let Some(made) = self.encoder.encode(&picture, at_ms, asked, self.wants_key)? {
                self.wants_key &= !made.is_key;
                frame.is_key = made.is_key;
                let timestamp = self.timestamp(number);
                self.peer.send_frame(made.data.clone(), timestamp)?;
                frame.data = Some(made.data);
            }
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Takes note of what the browser has presented.
    pub(crate) fn fetch(&mut self, browser: &mut Browser) -> Result<(), WebrtcError> {
        for Presented { timestamp, unix_ms } in browser.take_frames()? {
            let number = (timestamp.wrapping_sub(TIMESTAMP) / (CLOCK_RATE / self.fps)) as usize;
            if let Some(frame) = self.frames.get_mut(number) {
                let at = Time::from_millis_f64((unix_ms - self.began_unix_ms).max(0.0));
                frame.presented_at.get_or_insert(at);
            }
        }
        Ok(())
    }

    /// The sending end.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Bytes of video that were presented.
    pub(crate) fn presented(&self) -> Bytes {
        let shown = self.frames.iter().filter(|frame| frame.presented_at.is_some());
        Bytes::new(shown.map(|frame| frame.data.as_ref().map_or(0, Vec::len) as u64).sum())
    }

    /// What the viewer saw, without a measured VMAF.
    pub(crate) fn record(&self, end: Time) -> CallRecord {
        let height = self.clip.size().height as u16;
        let of = |frame: &Frame| FrameRecord {
            captured_at: frame.captured_at,
            bytes: Bytes::new(frame.data.as_ref().map_or(0, Vec::len) as u64),
            asked: frame.asked,
            height,
            key: frame.is_key,
            presented_at: frame.presented_at,
        };
        CallRecord {
            start: Time::ZERO,
            end,
            interval: self.interval(),
            frames: self.frames.iter().map(of).collect(),
            audio: Vec::new(),
            pause: None,
            picture: Picture::default(),
            measured_vmaf: None,
            stills: Vec::new(),
        }
    }

    /// VMAF of what the viewer saw, and pictures of the worst moments of this record.
    pub(crate) fn measure(
        &self,
        studio: &Studio,
        record: &CallRecord,
    ) -> Result<(Option<f64>, Vec<Still>), WebrtcError> {
        let frames = self.frames.iter().enumerate();
        let slots: Vec<Slot<'_>> = frames
            .map(|(picture, frame)| Slot {
                picture,
                data: frame.data.as_deref(),
                is_presented: frame.presented_at.is_some(),
            })
            .collect();
        let moments = record.worst_moments();
        let shots: Vec<Shot> =
            moments.iter().filter_map(|moment| Shot::of(moment, record)).collect();
        let keep = shots.iter().filter_map(|shot| shot.seen).collect();
        let Measured { vmaf, kept } = vmaf::measure(studio, self.clip, &slots, &keep)?;
        Ok((vmaf, stills::develop(studio, self.clip, &shots, &kept)?))
    }
}

/// What getStats reports of a call, by the names of the W3C.
#[derive(Clone, Debug, Default)]
pub struct Stats(pub(crate) Value);

impl Stats {
    /// A number, e.g. `freezeCount`; `None` where the browser does not report it.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0[name].as_f64()
    }
}
