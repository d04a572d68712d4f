//! Application-limited regions: what was sent is far less than the target (libwebrtc
//! `alr_detector.cc`, `interval_budget.cc`).

use trimtab_units::{Bytes, Duration, Rate, Time};

/// Share of the target that has to be used (`kDefaultAlrBandwidthUsagePercent`).
const USED: f64 = 0.65;
/// A region begins and ends with so much of the budget left (`kDefaultAlrStartBudgetLevelPercent`,
/// `kDefaultAlrStopBudgetLevelPercent`).
const START: f64 = 0.80;
const STOP: f64 = 0.50;
/// The budget holds what the used share sends in so long (`kWindowMs`).
const WINDOW: Duration = Duration::from_millis(500);

/// A budget of bytes that fills at the rate which has to be used, and empties by what was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Alr {
    /// What is left, in bytes; negative when more was sent.
    left: f64,
    sent_at: Option<Time>,
    since: Option<Time>,
}

impl Alr {
    /// When the region began, inside one.
    pub(super) fn since(&self) -> Option<Time> {
        self.since
    }

    /// A packet left while this was the target (`OnBytesSent()`).
    pub(super) fn on_sent(&mut self, now: Time, bytes: Bytes, target: Rate) {
        let Some(last) = self.sent_at.replace(now) else { return };
        let rate = target.mul_f64(USED);
        let full = (rate * WINDOW).as_f64().max(1.0);
        let filled = (rate * now.since(last)).as_f64();
        self.left = ((self.left - bytes.as_f64()).max(-full) + filled).min(full);
        let level = self.left / full;
        if level > START {
            self.since = self.since.or(Some(now));
        } else if level < STOP {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At half of the target the budget fills by 15% of the target: 0.8 · 0.65 · 500 ms after 1.73
    /// s.
    #[test]
    fn half_of_the_target_is_a_region_and_three_quarters_end_it() {
        let (mut alr, target) = (Alr::default(), Rate::from_mbps(1.0));
        let mut send = |from: u64, to: u64, bytes: u64| {
            let mut turned = None;
            for ms in (from..to).step_by(10) {
                let before = alr.since().is_some();
                alr.on_sent(Time::from_millis(ms), Bytes::new(bytes), target);
                if alr.since().is_some() != before {
                    turned = turned.or(Some(ms));
                }
            }
            (turned, alr.since().is_some())
        };
        let (began, inside) = send(0, 4000, 625);
        assert!(inside && began.is_some_and(|ms| (1700..1770).contains(&ms)), "{began:?}");
        // At 95% of it the full budget empties by 30%: half of it in 540 ms.
        let (ended, inside) = send(4000, 8000, 1187);
        assert!(!inside && ended.is_some_and(|ms| (4500..4600).contains(&ms)), "{ended:?}");
        assert_eq!(send(8000, 12_000, 875), (None, false), "70% is enough");
    }
}
