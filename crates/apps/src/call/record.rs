//! What a call came to: every frame that was captured, and what the viewer saw of it.
//!
//! The same record comes from a simulated call and from a browser. The metrics are those of Mortise
//! Table 1.

use trimtab_qoe::conference_qoe;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::moments::{Moment, MomentKind, Still};
use super::quality::{Picture, Quality, fitted_vmaf};

/// The frames over which a freeze's rule takes the mean interval (W3C, Identifiers for WebRTC's
/// Statistics API, `freezeCount`).
const FREEZE_FRAMES: usize = 30;
/// A freeze is an interval this much longer than the mean, at least (same place).
const FREEZE_LONGER: Duration = Duration::from_millis(150);
/// … and this many times as long (same place).
const FREEZE_TIMES: u64 = 3;
/// The time over which the bitrate of a picture is taken.
const BITRATE_WINDOW: Duration = Duration::from_secs(1);
/// Weights of the MMSys'21 challenge's score: picture, audio, delay, rate, loss.
const MMSYS_WEIGHTS: [f64; 5] = [0.2, 0.1, 0.2, 0.2, 0.3];
/// The frame delay that scores nothing in it (the default of the challenge's evaluation).
const MMSYS_DELAY_MAX: Duration = Duration::from_millis(400);

/// The record of a call from one end to the other.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// When it began: the first frame's capture, or earlier.
    pub start: Time,
    /// When it ended, or now while it goes on.
    pub end: Time,
    /// From one capture to the next.
    pub interval: Duration,
    /// From when to when nothing was captured, since the sending end was paused.
    pub pause: Option<(Time, Time)>,
    /// Every frame that was captured, in that order; also those that the encoder skipped.
    pub frames: Vec<FrameRecord>,
    /// Every frame of audio, in the order of capture; none of a call without audio.
    pub audio: Vec<AudioRecord>,
    /// What scores its pictures where no VMAF was measured.
    pub picture: Picture,
    /// VMAF as measured on what the viewer saw, 0 to 100, over the whole call with its freezes.
    pub measured_vmaf: Option<f64>,
    /// Pictures of the [worst moments](Self::worst_moments), by time, where there are pictures: of a
    /// call to a browser.
    pub stills: Vec<Still>,
}

/// One frame of video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    /// When it was captured; of cloud gaming, when the input was made that it shows.
    pub captured_at: Time,
    /// Its size as encoded; zero for one that the encoder skipped.
    pub bytes: Bytes,
    /// The bitrate that the encoder was asked for.
    pub asked: Rate,
    /// Its resolution, in lines.
    pub height: u16,
    /// Whether it is a key frame.
    pub key: bool,
    /// When it was on the viewer's screen; `None` for one that never was.
    pub presented_at: Option<Time>,
}

/// One frame of audio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioRecord {
    /// When it was captured.
    pub captured_at: Time,
    /// When it was heard; `None` for one that was lost or late, and concealed.
    pub played_at: Option<Time>,
}

/// How often a picture stood still, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freezes {
    /// How often.
    pub count: u32,
    /// How long, in all: the intervals between the frames around the freezes.
    pub total: Duration,
}

impl FrameRecord {
    /// From its capture to the screen; `None` for one that never got there.
    pub fn delay(&self) -> Option<Duration> {
        Some(self.presented_at?.since(self.captured_at))
    }
}

impl CallRecord {
    /// How long it lasts so far.
    pub fn length(&self) -> Duration {
        self.end.since(self.start)
    }

    /// The delays of the frames that were presented, shortest first.
    fn delays(&self) -> Vec<Duration> {
        let mut delays: Vec<Duration> = self.frames.iter().filter_map(FrameRecord::delay).collect();
        delays.sort_unstable();
        delays
    }

    /// The mean delay of the frames that were presented; `None` without one.
    pub fn mean_delay(&self) -> Option<Duration> {
        let delays = self.delays();
        let sum = delays.iter().fold(Duration::ZERO, |sum, &delay| sum + delay);
        (!delays.is_empty()).then(|| sum / delays.len() as u64)
    }

    /// A quantile of these delays, 0 to 1 (nearest rank); `None` without one.
    pub fn delay_quantile(&self, quantile: f64) -> Option<Duration> {
        let delays = self.delays();
        let rank = (quantile.clamp(0.0, 1.0) * delays.len() as f64).ceil() as usize;
        delays.get(rank.max(1) - 1).copied()
    }

    /// Freezes by the W3C's rule: an interval between presented frames of at least three times the
    /// mean of the last 30 or 150 ms more than it. The wait from the last frame to the end of the
    /// call counts as an interval. A pause of the sending end does not count. Before there are 30 the
    /// mean is over those there are, the capture interval being the first.
    pub fn frozen(&self) -> Vec<Moment> {
        let mut shown: Vec<Time> = self.frames.iter().filter_map(|f| f.presented_at).collect();
        shown.sort_unstable();
        shown.push(self.end);
        let mut recent = vec![self.interval];
        let mut frozen = Vec::new();
        for pair in shown.windows(2) {
            let interval = pair[1].since(pair[0]) - self.paused(pair[0], pair[1]);
            let sum = recent.iter().fold(Duration::ZERO, |sum, &interval| sum + interval);
            let mean = sum / recent.len() as u64;
            if interval >= (mean * FREEZE_TIMES).max(mean + FREEZE_LONGER) {
                let from = pair[1] - interval;
                frozen.push(Moment { from, until: pair[1], kind: MomentKind::Frozen });
            }
            recent.push(interval);
            if recent.len() > FREEZE_FRAMES {
                recent.remove(0);
            }
        }
        frozen
    }

    /// How often and how long the picture [stood still](Self::frozen).
    pub fn freezes(&self) -> Freezes {
        let frozen = self.frozen();
        let total = frozen.iter().fold(Duration::ZERO, |total, moment| total + moment.length());
        Freezes { count: frozen.len() as u32, total }
    }

    /// How long the sending end was paused between two times.
    fn paused(&self, from: Time, to: Time) -> Duration {
        self.pause.map_or(Duration::ZERO, |(begins, ends)| to.min(ends).since(from.max(begins)))
    }

    /// The share of the call in which the picture stood still, 0 to 1. A call in which no frame was
    /// ever presented is one freeze.
    pub fn freeze_ratio(&self) -> f64 {
        if self.frames.iter().all(|frame| frame.presented_at.is_none()) {
            return 1.0;
        }
        self.freezes().total.ratio(self.length()).min(1.0)
    }

    /// The share of captured frames that were never presented, 0 to 1 (M of Mortise Eq. 12).
    pub fn drop_ratio(&self) -> f64 {
        self.share(|frame| frame.presented_at.is_none())
    }

    /// The share of captured frames that were on the screen later than `deadline` after their
    /// capture, or never.
    pub fn deadline_misses(&self, deadline: Duration) -> f64 {
        self.share(|frame| frame.delay().is_none_or(|delay| delay > deadline))
    }

    fn share(&self, of: impl Fn(&FrameRecord) -> bool) -> f64 {
        let count = self.frames.iter().filter(|frame| of(frame)).count();
        if self.frames.is_empty() { 1.0 } else { count as f64 / self.frames.len() as f64 }
    }

    /// The mean bitrate of the video that was presented, over the whole call.
    pub fn bitrate(&self) -> Rate {
        let shown = self.frames.iter().filter(|frame| frame.presented_at.is_some());
        let bytes: Bytes = shown.map(|frame| frame.bytes).sum();
        if self.length().is_zero() { Rate::ZERO } else { bytes / self.length() }
    }

    /// The mean of the bitrates that the encoder was asked for, frame by frame; zero without a frame.
    pub fn asked(&self) -> Rate {
        let sum: Rate = self.frames.iter().map(|frame| frame.asked).sum();
        sum.mul_f64(1.0 / self.frames.len().max(1) as f64)
    }

    /// VMAF, 0 to 100: as measured; else by the clip's curves, with the picture that the viewer saw
    /// at each capture interval; else by Mortise's fit to the mean bitrate (Eq. 16).
    pub fn vmaf(&self) -> f64 {
        self.measured_vmaf
            .or_else(|| self.picture().map(|quality| quality.vmaf))
            .unwrap_or_else(|| fitted_vmaf(self.bitrate()))
    }

    /// The mean quality by the clip's curves; `None` where pictures are scored by the fit, or no
    /// frame was captured. In the place of a frame that was never presented the viewer sees the
    /// last one that was, and before the first one nothing.
    pub fn picture(&self) -> Option<Quality> {
        let Picture::Clip(clip) = self.picture else { return None };
        let fps = Duration::from_secs(1).ratio(self.interval);
        let mut sum = Quality { vmaf: 0.0, ssim: 0.0, psnr: 0.0 };
        let mut last: Option<(Time, Quality)> = None;
        let (mut oldest, mut bytes) = (0, Bytes::ZERO);
        for frame in &self.frames {
            bytes += frame.bytes;
            while self.frames[oldest].captured_at + BITRATE_WINDOW <= frame.captured_at {
                bytes -= self.frames[oldest].bytes;
                oldest += 1;
            }
            let window = frame.captured_at.since(self.frames[oldest].captured_at) + self.interval;
            if frame.presented_at.is_some() {
                let stream = clip.encoded(frame.height, bytes / window, fps);
                last = Some((frame.captured_at, stream));
            }
            if let Some((captured_at, stream)) = last {
                let age = frame.captured_at.since(captured_at).as_secs_f64();
                let Quality { vmaf, ssim, psnr } = clip.seen(stream, age);
                sum.vmaf += vmaf;
                sum.ssim += ssim;
                sum.psnr += psnr;
            }
        }
        let n = self.frames.len() as f64;
        let mean = Quality { vmaf: sum.vmaf / n, ssim: sum.ssim / n, psnr: sum.psnr / n };
        (!self.frames.is_empty()).then_some(mean)
    }

    /// The share of audio that was heard, 0 to 1; 1 of a call without audio.
    pub fn audio_heard(&self) -> f64 {
        let heard = self.audio.iter().filter(|audio| audio.played_at.is_some()).count();
        if self.audio.is_empty() { 1.0 } else { heard as f64 / self.audio.len() as f64 }
    }

    /// The QoE of the call, 0 to 100 (Mortise Eq. 13). A call without a presented frame scores 0.
    pub fn qoe(&self) -> f64 {
        self.mean_delay().map_or(0.0, |delay| conference_qoe(self.vmaf(), delay, self.drop_ratio()))
    }

    /// The score of the MMSys'21 challenge on bandwidth estimation, 0 to 100, of a call on a path
    /// of this capacity that lost this share of its packets. As its public evaluation does, delays
    /// score from the shortest (1) to 400 ms (0) by their 95th percentile. Its audio score needs
    /// the sound; here it is the share of audio that was heard.
    pub fn mmsys(&self, capacity: Rate, loss: f64) -> f64 {
        let quantile = |q| self.delay_quantile(q).unwrap_or(MMSYS_DELAY_MAX).min(MMSYS_DELAY_MAX);
        let room = MMSYS_DELAY_MAX - quantile(0.0);
        let delay =
            if room.is_zero() { 0.0 } else { (MMSYS_DELAY_MAX - quantile(0.95)).ratio(room) };
        let rate = self.bitrate().ratio(capacity).min(1.0);
        let parts =
            [self.vmaf() / 100.0, self.audio_heard(), delay, rate, 1.0 - loss.clamp(0.0, 1.0)];
        MMSYS_WEIGHTS.iter().zip(parts).map(|(weight, part)| 100.0 * weight * part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Frames every 40 ms of which frame `i` is presented `delay(i)` after its capture.
    fn call(frames: u64, delay: impl Fn(u64) -> Option<u64>) -> CallRecord {
        let frame = |i: u64| {
            let captured_at = Time::from_millis(40 * i);
            FrameRecord {
                captured_at,
                bytes: Bytes::new(5000),
                asked: Rate::from_mbps(1.0),
                height: 360,
                key: i == 0,
                presented_at: delay(i).map(|delay| captured_at + ms(delay)),
            }
        };
        CallRecord {
            start: Time::ZERO,
            end: Time::from_millis(40 * frames),
            interval: ms(40),
            pause: None,
            frames: (0..frames).map(frame).collect(),
            audio: Vec::new(),
            picture: Picture::default(),
            measured_vmaf: None,
            stills: Vec::new(),
        }
    }

    #[test]
    fn a_steady_call() {
        let call = call(250, |_| Some(60));
        assert_eq!((call.mean_delay(), call.delay_quantile(0.95)), (Some(ms(60)), Some(ms(60))));
        assert_eq!(call.freezes(), Freezes::default());
        assert_eq!((call.drop_ratio(), call.freeze_ratio()), (0.0, 0.0));
        assert_eq!((call.bitrate(), call.asked()), (Rate::from_mbps(1.0), Rate::from_mbps(1.0)));
        assert_eq!((call.deadline_misses(ms(59)), call.deadline_misses(ms(60))), (1.0, 0.0));
        // 0.5·VMAF + 0.3·(100 − 60/3) + 0.2·100.
        assert!((call.qoe() - (0.5 * call.vmaf() + 24.0 + 20.0)).abs() < 1e-9);
        let fitted = CallRecord { picture: Picture::Fit, ..call.clone() };
        assert!((fitted.vmaf() - 45.276).abs() < 0.01, "qoe.md section 11: {}", fitted.vmaf());
        let measured = CallRecord { measured_vmaf: Some(80.0), ..call };
        assert_eq!(measured.qoe(), 40.0 + 24.0 + 20.0);
    }

    #[test]
    fn freezes_follow_the_rule_of_the_w3c() {
        // At a mean of 40 ms a freeze takes 190 ms: five frames missing make 240, three make 160.
        let missing =
            |from: u64, n: u64| call(250, move |i| (!(from..from + n).contains(&i)).then_some(50));
        assert_eq!(missing(100, 5).freezes(), Freezes { count: 1, total: ms(240) });
        assert_eq!(missing(100, 3).freezes().count, 0);
        // 40·250 ms long.
        assert!((missing(100, 5).freeze_ratio() - 0.024).abs() < 1e-12);
        // The end counts: the last frame was on the screen 410 ms before it.
        let seen = missing(240, 10).freezes();
        assert_eq!(seen, Freezes { count: 1, total: ms(390) });
        assert_eq!(call(250, |_| None).freeze_ratio(), 1.0);
    }

    /// Nothing from 4 s to 5 s, of which the sending end was paused until 4.5 s.
    #[test]
    fn a_pause_is_no_part_of_a_freeze() {
        let call = call(250, |i| (!(100..125).contains(&i)).then_some(50));
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let whole = call.freezes();
        assert_eq!(whole, Freezes { count: 1, total: ms(1040) });
        let paused = CallRecord { pause: Some((at(4010), at(4510))), ..call };
        assert_eq!(paused.freezes(), Freezes { count: 1, total: ms(540) });
    }

    #[test]
    fn a_frozen_picture_costs_vmaf_and_the_fit_knows_nothing_of_it() {
        let whole = call(250, |_| Some(50));
        let frozen = call(250, |i| (i < 125).then_some(50));
        assert_eq!(frozen.drop_ratio(), 0.5);
        let (whole, frozen) = (whole.picture().unwrap(), frozen.picture().unwrap());
        assert!(frozen.vmaf < 0.75 * whole.vmaf, "{frozen:?} {whole:?}");
        assert!(frozen.ssim < whole.ssim && frozen.psnr < whole.psnr);
    }

    #[test]
    fn the_challenges_score_by_hand() {
        let mut call = call(100, |i| Some(if i % 10 == 0 { 220 } else { 40 }));
        call.measured_vmaf = Some(90.0);
        call.audio = [Some(Time::from_millis(50)), None]
            .map(|played_at| AudioRecord { captured_at: Time::ZERO, played_at })
            .to_vec();
        // p95 is 220 ms: (400 − 220)/(400 − 40) = 0.5; half of the capacity; 10% loss.
        let expected = 0.2 * 90.0 + 0.1 * 50.0 + 0.2 * 50.0 + 0.2 * 50.0 + 0.3 * 90.0;
        assert!((call.mmsys(Rate::from_mbps(2.0), 0.1) - expected).abs() < 1e-9);
    }

    #[test]
    fn nothing_ever_presented_is_worth_nothing() {
        let call = call(100, |_| None);
        assert_eq!((call.qoe(), call.mean_delay(), call.drop_ratio()), (0.0, None, 1.0));
        assert_eq!(call.bitrate(), Rate::ZERO);
    }
}
