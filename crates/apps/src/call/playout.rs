//! When frames are shown: libwebrtc's timing (`VCMTiming`, `TimestampExtrapolator`,
//! `VideoRenderFrames`), on a display of 60 Hz, for players of 120 Hz.
//!
//! A frame is due the playout delay after the time at which its like arrives on average. The delay
//! grows when a frame is late, by so much, up to what jitter, decoder and display may take, and falls
//! with that at once. A late frame is decoded and shown at once. Of several that are ready for one
//! refresh of the display the viewer sees the last.

use trimtab_units::{Bytes, Duration, Time};

use super::depacketizer::Decodable;
use super::jitter::Jitter;

/// What decoding takes. Ours: a frame of 720p on a desktop.
const DECODE: Duration = Duration::from_millis(4);
/// What the display path takes (`kDefaultRenderDelay`).
const RENDER: Duration = Duration::from_millis(10);
/// Frames over which the mean arrival is taken. Ours; libwebrtc fits a line by least squares.
const ARRIVALS: f64 = 300.0;
/// Refreshes of the display per second: of people in a call, and of players.
const REFRESHES: u64 = 60;
const REFRESHES_OF_PLAYERS: u64 = 120;

/// The playout of one stream.
#[derive(Clone, Debug)]
pub(super) struct Playout {
    /// Whether frames are shown as soon as they are decoded, as games do (libwebrtc with a playout
    /// delay of zero).
    at_once: bool,
    jitter: Jitter,
    /// Media time and completion of the last frame without retransmissions.
    before: Option<(Time, Time)>,
    /// The first frame's media time.
    origin: Option<Time>,
    /// Mean of completion less media time, in ms, and of how many.
    arrival_ms: f64,
    arrivals: f64,
    delay: Duration,
    decoded_at: Time,
    /// The frame on the screen, and when it got there.
    shown: Option<(u32, Time)>,
}

/// A frame goes to the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// When.
    pub(super) at: Time,
    /// A frame that was meant for the same refresh and is not seen.
    pub(super) instead_of: Option<u32>,
}

impl Playout {
    pub(super) fn new(at_once: bool) -> Self {
        Self {
            at_once,
            jitter: Jitter::new(),
            before: None,
            origin: None,
            arrival_ms: 0.0,
            arrivals: 0.0,
            delay: Duration::ZERO,
            decoded_at: Time::ZERO,
            shown: None,
        }
    }

    /// A frame can be decoded now. `rtt` is the round-trip time of retransmissions.
    pub(super) fn show(&mut self, now: Time, frame: &Decodable, rtt: Duration) -> Shown {
        let possible = self.decoded_at.max(now);
        let ready = if self.at_once {
            self.decoded_at = possible + DECODE;
            self.decoded_at
        } else {
            self.due(possible, frame, rtt)
        };
        let refreshes = if self.at_once { REFRESHES_OF_PLAYERS } else { REFRESHES };
        let nanos = u128::from(ready.as_nanos()) * u128::from(refreshes);
        let refresh = nanos.div_ceil(1_000_000_000);
        // Rounded up, so that a refresh is never before what it shows.
        let at = (refresh * 1_000_000_000).div_ceil(u128::from(refreshes));
        let at = Time::from_nanos(u64::try_from(at).unwrap_or(u64::MAX));
        let before = self.shown.filter(|&(_, shown_at)| shown_at >= at);
        let at = before.map_or(at, |(_, shown_at)| shown_at);
        let instead_of = before.map(|(frame, _)| frame);
        self.shown = Some((frame.frame, at));
        Shown { at, instead_of }
    }

    /// When a frame is ready for the display that can be decoded from then on
    /// (`VideoStreamBufferController::OnFrameReady()`). One that came by retransmission says nothing of
    /// the delay.
    fn due(&mut self, possible: Time, frame: &Decodable, rtt: Duration) -> Time {
        let &Decodable { media_time, complete_at, bytes, repaired, .. } = frame;
        self.origin = self.origin.or(Some(media_time));
        let elapsed = self.origin.map_or(Duration::ZERO, |origin| media_time.since(origin));
        if repaired {
            self.jitter.on_repaired(elapsed);
        } else {
            self.learn(elapsed, media_time, complete_at, bytes);
        }
        let expected = media_time + Duration::from_millis_f64(self.arrival_ms);
        let render_at = expected + self.delay;
        let decode_at = render_at - (DECODE + RENDER);
        let decoding_at = possible.max(decode_at);
        if !repaired {
            // `UpdateCurrentDelay()`: it grows by what a frame is late, and is never above the target.
            let jitter = self.jitter.delay(rtt);
            let delay = if self.delay.is_zero() { jitter } else { self.delay };
            self.delay = (delay + decoding_at.since(decode_at)).min(jitter + DECODE + RENDER);
        }
        self.decoded_at = decoding_at + DECODE;
        render_at.max(self.decoded_at)
    }

    fn learn(&mut self, elapsed: Duration, media_time: Time, complete_at: Time, bytes: Bytes) {
        let late_ms = self.before.map_or(0.0, |(media, complete)| {
            let apart = complete_at.as_millis_f64() - complete.as_millis_f64();
            apart - media_time.since(media).as_millis_f64()
        });
        self.before = Some((media_time, complete_at));
        self.jitter.on_frame(elapsed, late_ms, bytes);
        self.arrivals = (self.arrivals + 1.0).min(ARRIVALS);
        let arrival_ms = complete_at.since(media_time).as_millis_f64();
        self.arrival_ms += (arrival_ms - self.arrival_ms) / self.arrivals;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays frames that arrive `arrives(i)` ms after their capture; gives their delays in ms.
    fn play(frames: u64, arrives: impl Fn(u64) -> u64) -> (Vec<f64>, usize) {
        let mut playout = Playout::new(false);
        let (mut delays, mut unseen, mut now) = (Vec::new(), 0, Time::ZERO);
        for i in 0..frames {
            let media_time = Time::from_nanos(33_333_333 * i);
            let complete_at = media_time + Duration::from_millis(arrives(i));
            now = now.max(complete_at);
            let bytes = Bytes::new(4000);
            let frame =
                Decodable { frame: i as u32, media_time, bytes, complete_at, repaired: false };
            let shown = playout.show(now, &frame, Duration::from_millis(40));
            unseen += usize::from(shown.instead_of.is_some());
            delays.push(shown.at.since(media_time).as_millis_f64());
        }
        (delays, unseen)
    }

    #[test]
    fn on_a_steady_path_the_delay_is_that_of_arrival_jitter_decoder_and_display() {
        let (delays, unseen) = play(900, |_| 30);
        // 30 ms and 1 + 10 of jitter, 4 + 10 of decoder and display, and 0 to 16.7 to the refresh.
        let tail = &delays[600..];
        assert!(tail.iter().all(|d| (54.0..=73.5).contains(d)), "{:?}", &tail[..6]);
        assert_eq!(unseen, 0);
    }

    #[test]
    fn jitter_makes_the_delay_longer_so_that_frames_come_in_time() {
        let jitter = |i: u64| 30 + (i * 7919) % 60;
        let (delays, _) = play(900, jitter);
        let tail = &delays[600..];
        let spread = tail.iter().fold(0.0, |a: f64, &b| a.max(b))
            - tail.iter().fold(f64::MAX, |a, &b| a.min(b));
        assert!(spread < 40.0, "arrivals spread over 60 ms, and pictures over {spread}");
    }

    #[test]
    fn after_a_stall_frames_are_shown_as_fast_as_they_decode_and_some_are_not_seen() {
        // Nothing arrives from 10 s on for half a second, then all at once.
        let stall = |i: u64| {
            let captured = i * 100 / 3;
            if (10_000..10_500).contains(&captured) { 10_530 - captured } else { 30 }
        };
        let (delays, unseen) = play(600, stall);
        // 15 frames decode in 60 ms, in which the display shows four.
        assert!((8..=12).contains(&unseen), "{unseen}");
        assert!(delays[300] > 500.0 && delays[330] < 200.0, "{:?}", &delays[300..330]);
    }
}
