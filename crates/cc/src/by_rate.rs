//! What rate controllers of media share over any transport: how much may be in flight at a rate.

use trimtab_units::{Bytes, Duration, Rate};

use crate::Config;

/// Media may have the bytes of a round trip and of this in flight: frames come in bursts, and the
/// rate bounds them, not the window (libwebrtc `rate_control_settings.cc`, the `QueueSize` of
/// WebRTC-CongestionWindow).
const MEDIA_MORE: Duration = Duration::from_millis(350);
/// A stream may have so many round trips in flight: the window must not bind before the rate does.
const STREAM_ROUNDS: u64 = 2;

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Media,
    Stream,
}

/// The window at a rate; two packets at least (`goog_cc_network_control.cc`,
/// `UpdateCongestionWindowSize()`).
pub(crate) fn window(rate: Rate, srtt: Duration, over: Transport, config: &Config) -> Bytes {
    let time = match over {
        Transport::Media => srtt + MEDIA_MORE,
        Transport::Stream => srtt * STREAM_ROUNDS,
    };
    (rate * time).max(config.mss * 2).max(config.min_window)
}
