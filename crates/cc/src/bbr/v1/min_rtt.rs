//! The minimum round-trip time, which ProbeRTT refreshes (`bbr_update_min_rtt`).

use trimtab_units::{Duration, Time};

/// Minimum filter over time, with one sample of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    value: Option<Duration>,
    /// When the value was measured, or ProbeRTT ended.
    stamp: Option<Time>,
}

impl MinRtt {
    /// What the connection measured, for a window that begins now.
    pub(super) fn known(value: Duration, now: Time) -> Self {
        Self { value: Some(value), stamp: Some(now) }
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.value
    }

    /// The window begins, unless it has.
    pub(super) fn start(&mut self, now: Time) {
        self.stamp.get_or_insert(now);
    }

    /// The value is good for another window.
    pub(super) fn refresh(&mut self, now: Time) {
        self.stamp = Some(now);
    }

    /// Takes a sample, and returns whether the old value had outlived the window. An expired value
    /// is not replaced by a larger one from an acknowledgement that the receiver may have delayed.
    pub(super) fn update(
        &mut self,
        now: Time,
        sample: Option<Duration>,
        maybe_delayed: bool,
        window: Duration,
    ) -> bool {
        let expired = self.stamp.is_some_and(|stamp| now.since(stamp) > window);
        if let Some(rtt) = sample {
            let lower = self.value.is_none_or(|min| rtt <= min);
            if lower || (expired && !maybe_delayed) {
                self.value = Some(rtt);
                self.stamp = Some(now);
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    /// `bbr_update_min_rtt`: lower or equal at once, higher only when the old one is over 10 s old.
    #[test]
    fn a_minimum_lives_for_its_window() {
        let at = Time::from_millis;
        let mut min = MinRtt::default();
        assert!(!min.update(at(5), ms(40), false, WINDOW), "no window has begun");
        assert!(!min.update(at(10), ms(50), false, WINDOW));
        assert_eq!(min.get(), ms(40));
        assert!(!min.update(at(1000), ms(40), false, WINDOW), "as low: the window begins anew");
        assert!(!min.update(at(11_000), ms(60), false, WINDOW), "just ten seconds");
        assert_eq!(min.get(), ms(40));
        assert!(min.update(at(11_001), None, false, WINDOW), "no sample, but over");
        assert!(min.update(at(11_002), ms(60), true, WINDOW));
        assert_eq!(min.get(), ms(40), "the receiver may have waited with that one");
        assert!(min.update(at(11_003), ms(60), false, WINDOW));
        assert_eq!(min.get(), ms(60));
        assert!(!min.update(at(11_004), ms(61), false, WINDOW));
    }

    #[test]
    fn a_window_begins_once_and_probe_rtt_renews_it() {
        let mut min = MinRtt::default();
        min.start(Time::ZERO);
        min.start(Time::from_secs(9));
        assert!(min.update(Time::from_nanos(10_000_000_001), None, false, WINDOW));
        min.refresh(Time::from_secs(11));
        assert!(!min.update(Time::from_secs(21), None, false, WINDOW));
        let mut known = MinRtt::known(Duration::from_millis(30), Time::from_secs(5));
        assert!(!known.update(Time::from_secs(15), ms(90), false, WINDOW));
        assert_eq!(known.get(), ms(30));
    }
}
