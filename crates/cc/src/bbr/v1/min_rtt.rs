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
