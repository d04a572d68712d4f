//! The time of day. Everything else gets the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, UTC.
pub(crate) fn now_ms() -> i64 {
    #[cfg(test)]
    if let Some(ms) = simulated::now_ms() {
        return ms;
    }
    // A clock before 1970 is as good as one at it: edges with a right clock are then refused for their skew.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Whether something that is done again and again is due: so long after the last time, or where that
/// is of the future, since the clock was set back meanwhile. All in ms.
pub(crate) fn is_due(last_ms: i64, every_ms: i64, now_ms: i64) -> bool {
    !(0..every_ms).contains(&now_ms.saturating_sub(last_ms))
}

/// The clock of a simulation: that of every thread that follows it.
#[cfg(test)]
pub(crate) mod simulated {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    thread_local! {
        static FOLLOWED: RefCell<Option<Arc<AtomicI64>>> = const { RefCell::new(None) };
    }

    /// From now on this thread goes by this clock, in ms since 1970; none: by that of the machine.
    pub(crate) fn follow(clock: Option<Arc<AtomicI64>>) {
        FOLLOWED.set(clock);
    }

    pub(super) fn now_ms() -> Option<i64> {
        FOLLOWED.with_borrow(|clock| Some(clock.as_ref()?.load(Ordering::Relaxed)))
    }
}
