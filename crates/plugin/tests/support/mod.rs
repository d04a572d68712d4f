//! A connection for plug-ins in tests: events at round numbers.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::path::Path;

use trimtab_cc::{Ack, Config, CongestionControl, Controller, Loss, Sent, Timeout};
use trimtab_plugin::{Plug, PluginError, load};
use trimtab_steer::scheme::{Scheme, SchemeKind};
use trimtab_units::{Bytes, Duration, Time};

pub(crate) const MSS: Bytes = Bytes::new(1500);
pub(crate) const RTT: Duration = Duration::from_millis(50);

pub(crate) fn config(seed: u64) -> Config {
    Config::with_mss(MSS, seed)
}

/// Loads what a text names.
pub(crate) fn plug(text: &str) -> Result<Plug, PluginError> {
    let scheme: Scheme = text.parse().unwrap();
    let SchemeKind::Plugin(settings) = scheme.kind() else { panic!("{text} is a plug-in") };
    load(text, settings)
}

/// Why a text cannot be loaded: one line.
pub(crate) fn refused(text: &str) -> String {
    plug(text).unwrap_err().to_string()
}

/// An acknowledgement of a packet that left a round-trip time before.
pub(crate) fn ack(now: Time, packets: u64) -> Ack {
    Ack {
        now,
        acked: MSS * packets,
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        inflight: MSS * 10,
        prior_inflight: MSS * (10 + packets),
        delivered: MSS * packets,
        newest_sent_at: Time::ZERO + now.since(Time::ZERO + RTT),
        rate: None,
        cwnd_limited: true,
        in_recovery: false,
    }
}

pub(crate) fn loss(now: Time) -> Loss {
    Loss {
        now,
        lost: MSS,
        newest_sent_at: Time::ZERO + now.since(Time::ZERO + RTT),
        inflight: MSS * 9,
        prior_inflight: MSS * 10,
    }
}

/// Round trips of ten packets each, with a loss every fifth, and timers when they are due. A
/// timeout ends it. The windows after each event.
pub(crate) fn drive(cca: &mut Controller, from_ms: u64, round_trips: u64) -> Vec<Bytes> {
    let mut windows = Vec::new();
    for i in 0..round_trips * 10 {
        let now = Time::from_millis(from_ms + 50 + i * 5);
        while let Some(at) = cca.next_timer().filter(|at| *at <= now) {
            cca.on_timer(at);
            windows.push(cca.window());
        }
        cca.on_sent(&Sent { now, bytes: MSS, inflight: MSS * 10, app_limited: false });
        if i % 50 == 49 {
            cca.on_loss(&loss(now));
            windows.push(cca.window());
        }
        cca.on_ack(&ack(now, 1));
        windows.push(cca.window());
    }
    let now = Time::from_millis(from_ms + 50 + round_trips * 50);
    cca.on_timeout(&Timeout { now, prior_inflight: MSS * 10, inflight: Bytes::ZERO });
    windows.push(cca.window());
    windows
}

/// A file of the crate.
pub(crate) fn of_crate(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
