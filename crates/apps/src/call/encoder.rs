//! A live video encoder, as a model of how large its frames are.
//!
//! RFC 8593 §5: after a change of the bitrate an encoder ignores further requests for τ; a
//! transient begins with one large frame, which the smaller ones after it make up for; in the
//! steady state frame sizes vary by Laplace's distribution. Where we depart from it:
//!
//! * A transient is what a key frame begins: the first frame, one that the receiver asked for, a
//!   change of resolution. A rate controller moves its target several times a second, and encoders
//!   follow small changes by their quantizer, without a burst.
//! * The burst scales with the bitrate. The RFC gives one size, for 1 Mbit/s.
//! * Frames come by the camera's clock; the RFC also varies their intervals.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::draw::Draw;

/// How long an encoder ignores requests after it followed one (RFC 8593 Table 1, tau_v).
const REACTION: Duration = Duration::from_millis(200);
/// Size of the large frame over the mean one (Table 1: K_B of 13.5 kB at a B_0 of 4.17 kB).
const BURST: f64 = 13.5 / 4.17;
/// Frames of the transient, the large one included (Table 1, K_d).
const BURST_FRAMES: u32 = 8;
/// Scale of the deviation of frame sizes (Table 1, SCALE_B).
const DEVIATION: f64 = 0.15;
/// No frame is smaller than this share of the mean one. Ours: the distribution has no end.
const SMALLEST: f64 = 0.1;
/// The least bitrate (libwebrtc, limits by resolution). RFC 8593's encoder stops at 150 kbit/s.
const RATE_MIN: Rate = Rate::from_bits_per_sec(30_000);
/// A rung is left downwards at this share of the bitrate that leads up to it, so that streams do
/// not flap. Ours.
const LEAVE: f64 = 0.8;
/// The least time from a change of resolution to one upwards. Ours.
const CLIMB_AFTER: Duration = Duration::from_secs(4);
/// The least time between key frames that receivers ask for (libwebrtc,
/// `kMinKeyframeSendIntervalMs`).
const KEY_INTERVAL: Duration = Duration::from_millis(300);

/// A resolution that the encoder may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Lines.
    pub height: u16,
    /// The bitrate from which it is used.
    pub from: Rate,
    /// The most that it takes.
    pub most: Rate,
}

/// Resolutions of calls (libwebrtc, `EncoderInfoSettings`, default limits of a single stream).
pub(super) const CALL: [Resolution; 3] =
    [rung(180, 0, 300_000), rung(360, 300_000, 800_000), rung(720, 900_000, 2_500_000)];
/// Resolutions of games. Ours: they move more than people who talk, at twice the frame rate.
pub(super) const GAME: [Resolution; 2] =
    [rung(360, 0, 3_000_000), rung(720, 2_500_000, 10_000_000)];

const fn rung(height: u16, from: u64, most: u64) -> Resolution {
    Resolution { height, from: Rate::from_bits_per_sec(from), most: Rate::from_bits_per_sec(most) }
}

/// An encoder.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    ladder: &'static [Resolution],
    interval: Duration,
    draw: Draw,
    /// What it was asked for last.
    asked: Rate,
    /// What it codes at, and since when.
    coding: Rate,
    since: Option<Time>,
    rung: usize,
    climbed_at: Time,
    /// Frames of the transient that are still to come.
    transient: u32,
    key_wanted: bool,
    key_at: Time,
}

/// A frame as it was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) bytes: Bytes,
    pub(super) height: u16,
    pub(super) key: bool,
    /// The bitrate that was asked for.
    pub(super) asked: Rate,
}

impl Encoder {
    /// An encoder of frames this far apart, with at least one resolution, lowest first.
    pub(super) fn new(ladder: &'static [Resolution], interval: Duration, seed: u64) -> Self {
        Self {
            ladder,
            interval,
            draw: Draw::new(seed, 0x0ca1),
            asked: RATE_MIN,
            coding: RATE_MIN,
            since: None,
            rung: 0,
            climbed_at: Time::ZERO,
            transient: 0,
            key_wanted: true,
            key_at: Time::ZERO,
        }
    }

    /// Asks for a bitrate. It follows as far as it can.
    pub(super) fn ask(&mut self, rate: Rate) {
        let most = self.ladder.last().map_or(RATE_MIN, |top| top.most);
        self.asked = rate.max(RATE_MIN).min(most);
    }

    /// What it was asked for last, within what it can do.
    pub(super) fn asked(&self) -> Rate {
        self.asked
    }

    /// Asks for a key frame. One that comes too soon after another waits.
    pub(super) fn request_key(&mut self) {
        self.key_wanted = true;
    }

    /// Encodes the frame of `now`.
    pub(super) fn encode(&mut self, now: Time) -> Encoded {
        // §5.1: a request within τ of the last change is ignored; the next frame asks again.
        if self.since.is_none_or(|since| now >= since + REACTION) && self.coding != self.asked {
            (self.coding, self.since) = (self.asked, Some(now));
        }
        let switched = self.choose_resolution(now);
        let first = self.key_at == Time::ZERO && self.key_wanted;
        let due = self.key_wanted && (first || now >= self.key_at + KEY_INTERVAL);
        let key = switched || due;
        if key {
            (self.key_wanted, self.key_at) = (false, now.max(Time::from_nanos(1)));
            self.transient = BURST_FRAMES;
        }
        let mean = (self.coding * self.interval).as_f64();
        let share = match self.transient {
            // §5.3.
            0 => (1.0 + self.draw.laplace(DEVIATION)).max(SMALLEST),
            // §5.2: the mean over the transient is that of the bitrate.
            BURST_FRAMES => BURST,
            _ => (f64::from(BURST_FRAMES) - BURST) / f64::from(BURST_FRAMES - 1),
        };
        self.transient = self.transient.saturating_sub(1);
        Encoded {
            bytes: Bytes::from_f64(mean * share).max(Bytes::new(1)),
            height: self.ladder[self.rung].height,
            key,
            asked: self.asked,
        }
    }

    /// Takes the resolution that suits the bitrate. Whether it changed.
    fn choose_resolution(&mut self, now: Time) -> bool {
        let before = self.rung;
        while self.rung > 0 && self.coding < self.ladder[self.rung].from.mul_f64(LEAVE) {
            self.rung -= 1;
        }
        let fits = |rung: &Resolution| self.coding >= rung.from;
        let best = self.ladder.iter().rposition(fits).unwrap_or(0);
        let first = self.key_at == Time::ZERO;
        if best > self.rung && (first || now >= self.climbed_at + CLIMB_AFTER) {
            self.rung = best;
        }
        if self.rung != before {
            self.climbed_at = now;
        }
        self.rung != before && !first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Duration = Duration::from_nanos(33_333_333);

    fn run(encoder: &mut Encoder, from: u64, frames: u64) -> Vec<Encoded> {
        (from..from + frames).map(|i| encoder.encode(Time::ZERO + FRAME * i)).collect()
    }

    fn mean(frames: &[Encoded]) -> f64 {
        frames.iter().map(|f| f.bytes.as_f64()).sum::<f64>() / frames.len() as f64
    }

    #[test]
    fn sizes_are_those_of_rfc_8593() {
        let mut encoder = Encoder::new(&CALL, FRAME, 1);
        encoder.ask(Rate::from_mbps(1.0));
        let frames = run(&mut encoder, 0, 3000);
        // B_0 = R_v / 8 / FPS = 4.17 kB; the first is K_B = 13.5 kB.
        assert!((frames[0].bytes.as_f64() - 13_490.0).abs() < 50.0, "{:?}", frames[0]);
        assert!((mean(&frames[..8]) / 4167.0 - 1.0).abs() < 0.01, "the transient makes up for it");
        let steady = &frames[8..];
        assert!((mean(steady) / 4167.0 - 1.0).abs() < 0.02);
        // The mean absolute deviation of Laplace's distribution is its scale.
        let deviation = steady.iter().map(|f| (f.bytes.as_f64() / 4167.0 - 1.0).abs()).sum::<f64>();
        assert!((deviation / steady.len() as f64 - 0.15).abs() < 0.01);
        assert_eq!(frames.iter().filter(|f| f.key).count(), 1);
    }

    #[test]
    fn requests_within_the_reaction_time_are_ignored() {
        let mut encoder = Encoder::new(&CALL, FRAME, 1);
        encoder.ask(Rate::from_mbps(0.5));
        run(&mut encoder, 0, 60);
        encoder.ask(Rate::from_mbps(0.6));
        run(&mut encoder, 60, 1);
        encoder.ask(Rate::from_mbps(0.3));
        let before = run(&mut encoder, 61, 5);
        let after = run(&mut encoder, 67, 60);
        assert!((mean(&before) / 2500.0 - 1.0).abs() < 0.25, "still at 0.6 Mbit/s");
        assert!((mean(&after) / 1250.0 - 1.0).abs() < 0.1, "200 ms later at 0.3");
    }

    #[test]
    fn resolutions_do_not_flap() {
        let mut encoder = Encoder::new(&CALL, FRAME, 1);
        let mut heights = Vec::new();
        for i in 0..3000 {
            // Up and down around the 900 kbit/s of 720p every second.
            encoder.ask(Rate::from_mbps(if i / 30 % 2 == 0 { 0.95 } else { 0.75 }));
            heights.push(encoder.encode(Time::ZERO + FRAME * i).height);
        }
        let switches = heights.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(switches <= 1, "{switches}");
        encoder.ask(Rate::from_mbps(0.2));
        assert_eq!(
            run(&mut encoder, 3000, 30)[29].height,
            180,
            "what is starved goes down at once"
        );
    }

    #[test]
    fn key_frames_that_are_asked_for_keep_their_distance() {
        let mut encoder = Encoder::new(&CALL, FRAME, 1);
        encoder.ask(Rate::from_mbps(0.5));
        let mut keys = Vec::new();
        for i in 0..60 {
            encoder.request_key();
            keys.push(encoder.encode(Time::ZERO + FRAME * i).key);
        }
        // 2 s at one per 300 ms, which is one per ten frames.
        assert_eq!(keys.iter().filter(|&&key| key).count(), 6);
    }

    #[test]
    fn bitrates_keep_to_what_the_encoder_can_do() {
        let mut encoder = Encoder::new(&CALL, FRAME, 1);
        encoder.ask(Rate::ZERO);
        assert_eq!(encoder.asked(), RATE_MIN);
        encoder.ask(Rate::MAX);
        assert_eq!(encoder.asked(), Rate::from_mbps(2.5));
    }
}
