//! The time of day. Everything else gets the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, UTC.
pub(crate) fn now_ms() -> i64 {
    // A clock before 1970 is as good as one at it: edges with a right clock are then refused for their skew.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
