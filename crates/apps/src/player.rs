//! The player's clockwork: what it shows when, given when chunks arrive.

use trimtab_units::{Duration, Time};

use crate::Playback;

/// Playback up to a moment. Small and `Copy`, so that a look at a later moment runs on a copy.
///
/// ```text
///             enough buffered                 buffer empty
/// Starting ────────────────────▶ Playing ◀──────────────────▶ Stalled
///                                   │         enough buffered
///                                   ▼ buffer empty, nothing more to come
///                                 Ended
/// ```
///
/// Every moment since the start belongs to exactly one of `startup`, `played` and `stall_time`, until
/// the end: their sum is the wall time. At another [`speed`](Self::speed) than 1, `played` is the
/// length of the video that was shown, not the time that it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Player {
    /// The moment that this is the state of.
    at: Time,
    pub(crate) state: Playback,
    /// Downloaded and not played.
    pub(crate) buffer: Duration,
    pub(crate) startup: Duration,
    pub(crate) played: Duration,
    pub(crate) stall_time: Duration,
    pub(crate) stalls: u32,
    /// Seconds of video that are shown per second, above zero. Default: 1.
    pub(crate) speed: f64,
    /// Whether all chunks of the video have arrived.
    complete: bool,
}

impl Player {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            at: now,
            state: Playback::Starting,
            buffer: Duration::ZERO,
            startup: Duration::ZERO,
            played: Duration::ZERO,
            stall_time: Duration::ZERO,
            stalls: 0,
            speed: 1.0,
            complete: false,
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: Time) {
        let passed = now.since(self.at);
        self.at = self.at.max(now);
        match self.state {
            Playback::Starting => self.startup += passed,
            Playback::Stalled => self.stall_time += passed,
            Playback::Ended => {}
            Playback::Playing => {
                let wanted = self.shown_in(passed);
                let shown = wanted.min(self.buffer);
                self.buffer -= shown;
                self.played += shown;
                if self.buffer.is_zero() && self.complete {
                    self.state = Playback::Ended;
                } else if wanted > shown {
                    self.state = Playback::Stalled;
                    self.stalls = self.stalls.saturating_add(1);
                    self.stall_time += self.time_for(wanted - shown);
                }
            }
        }
    }

    /// A chunk arrived at the moment that this is the state of.
    pub(crate) fn add(&mut self, chunk: Duration) {
        self.buffer += chunk;
    }

    /// Forgets what is downloaded and not shown, as when a viewer of a live stream joins anew.
    pub(crate) fn drop_buffer(&mut self) {
        self.buffer = Duration::ZERO;
    }

    /// Nothing more will arrive.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }

    /// Begins to play, or goes on after a stall.
    pub(crate) fn play(&mut self) {
        if matches!(self.state, Playback::Starting | Playback::Stalled) {
            self.state = Playback::Playing;
        }
    }

    /// How much video is shown in a span of time. Exact at normal speed.
    #[expect(clippy::float_cmp, reason = "the default itself, not a result")]
    fn shown_in(&self, time: Duration) -> Duration {
        if self.speed == 1.0 { time } else { time.mul_f64(self.speed) }
    }

    /// How long it takes to show so much video. Exact at normal speed.
    #[expect(clippy::float_cmp, reason = "the default itself, not a result")]
    fn time_for(&self, video: Duration) -> Duration {
        if self.speed == 1.0 { video } else { video.mul_f64(1.0 / self.speed) }
    }

    /// When the buffer will have fallen to `level`; `None` when it does not fall.
    pub(crate) fn falls_to(&self, level: Duration) -> Option<Time> {
        (self.state == Playback::Playing).then(|| self.at + self.time_for(self.buffer - level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }
    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn a_session_with_one_stall() {
        let mut p = Player::new(at(1000));
        p.advance(at(1500));
        p.add(ms(4000));
        p.play();
        assert_eq!(p.falls_to(ms(1000)), Some(at(4500)));
        p.advance(at(5500));
        assert_eq!((p.state, p.stalls), (Playback::Playing, 0), "empty, but nothing missed yet");
        p.advance(at(6200));
        assert_eq!((p.state, p.stalls, p.stall_time), (Playback::Stalled, 1, ms(700)));
        p.advance(at(6500));
        p.add(ms(4000));
        p.complete();
        assert_eq!(p.state, Playback::Stalled, "until playback is started");
        p.play();
        p.advance(at(10_500));
        assert_eq!(p.state, Playback::Ended);
        p.advance(at(20_000));
        assert_eq!((p.startup, p.played, p.stall_time), (ms(500), ms(8000), ms(1000)));
    }
}
