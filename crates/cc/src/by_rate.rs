//! What rate controllers of media share over any transport: how much may be in flight at a rate, and
//! how they answer acknowledgements, which report no arrivals.

use trimtab_units::{Bytes, Duration, Rate};

use crate::ceiling::Ceiling;
use crate::{Ack, Arrival, Config, Feedback};

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

/// The window at a rate.
pub(crate) fn window(rate: Rate, srtt: Duration, over: Transport, config: &Config) -> Bytes {
    match over {
        Transport::Media => media_window(rate, srtt, MEDIA_MORE, config),
        Transport::Stream => holding(rate, srtt * STREAM_ROUNDS, config),
    }
}

/// The window of media at a rate, with so much more than a round trip in flight.
pub(crate) fn media_window(rate: Rate, srtt: Duration, more: Duration, config: &Config) -> Bytes {
    holding(rate, srtt + more, config)
}

/// What is sent in so long; two packets at least (`goog_cc_network_control.cc`,
/// `UpdateCongestionWindowSize()`).
fn holding(rate: Rate, time: Duration, config: &Config) -> Bytes {
    (rate * time).max(config.mss * 2).max(config.min_window)
}

/// Takes an acknowledgement as feedback on one packet, which arrived now.
pub(crate) fn as_feedback(ack: &Ack, receive: impl FnOnce(&Feedback<'_>)) {
    let arrival = Arrival {
        sent_at: ack.newest_sent_at,
        arrived_at: Some(ack.now),
        bytes: ack.acked,
        probe: None,
        marked: false,
    };
    let Ack { now, rtt, inflight, .. } = *ack;
    receive(&Feedback { now, packets: &[arrival], rtt, inflight });
}

/// Lets the bound of marks grow by an acknowledgement. A rate leaves most of the window free: the
/// bound counts as used from a third on.
pub(crate) fn grow(ceiling: &mut Ceiling, ack: &Ack, mss: Bytes) {
    let uses = !ceiling.is_set() || ack.prior_inflight * 3 >= ceiling.get();
    ceiling.on_ack(ack, uses, mss);
}
