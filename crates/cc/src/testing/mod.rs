//! Events for unit tests: the fields that a test does not care about at sensible values.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::migrate::HandOver;
use crate::{Ack, Loss, Timeout};

pub(crate) mod actor;
pub(crate) mod link;
pub(crate) mod media;

/// An acknowledgement of `acked` bytes sent at `sent`; the window limits the sender, and nothing
/// is known of what was delivered before.
pub(crate) fn acked(now: Time, sent: Time, acked: Bytes, rtt: Duration) -> Ack {
    Ack {
        now,
        acked,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        inflight: Bytes::ZERO,
        prior_inflight: acked,
        delivered: acked,
        newest_sent_at: sent,
        rate: None,
        cwnd_limited: true,
        in_recovery: false,
    }
}

/// The loss of one packet sent at `sent`.
pub(crate) fn lost(now: Time, sent: Time) -> Loss {
    let packet = Bytes::new(1500);
    Loss { now, lost: packet, newest_sent_at: sent, inflight: packet, prior_inflight: packet * 2 }
}

/// A timeout with nothing left in flight.
pub(crate) fn timed_out(now: Time) -> Timeout {
    Timeout { now, prior_inflight: Bytes::ZERO, inflight: Bytes::ZERO }
}

/// What is handed over on the path of migration.md §10: 4000 packets/s, 20 ms, 30 s after the start.
pub(crate) fn hand_over(window: Bytes, srtt: Duration) -> HandOver {
    HandOver {
        now: Time::from_secs(30),
        window,
        rate: window / srtt,
        srtt,
        min_rtt: Duration::from_millis(20),
        min_rtt_at: Time::from_secs(28),
        bandwidth: Rate::from_mbps(48.0),
        recent_bandwidth: Rate::from_mbps(48.0),
        loss: 0.0,
        inflight: window,
        delivered: Bytes::new(100_000_000),
        modelled: false,
        saw_empty_queue: false,
        starved: false,
    }
}
