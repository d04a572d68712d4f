//! What tests of steered connections share.

use std::ffi::CStr;

use trimtab_cc_ffi::{RawAck, RawCc, RawConfig, RawRate, trimtab_cc_create};

pub(crate) const MSS: u64 = 1500;
pub(crate) const RTT_NS: u64 = 20_000_000;

/// A connection that is paced.
pub(crate) fn create(algorithm: &CStr) -> RawCc {
    let mut cc = RawCc::new();
    let config = RawConfig {
        mss_bytes: MSS,
        initial_window_bytes: 0,
        min_window_bytes: 0,
        seed: 1,
        paced: 1,
    };
    // SAFETY: all of them are there.
    assert_eq!(unsafe { trimtab_cc_create(&mut cc, algorithm.as_ptr(), &config) }, 0);
    cc
}

/// Of packet `number` of a round.
pub(crate) fn ack(
    now: u64,
    rtt: u64,
    delivered: u64,
    before: u64,
    packets: u64,
    number: u64,
) -> RawAck {
    RawAck {
        now_ns: now,
        acked_bytes: MSS,
        rtt_ns: rtt,
        srtt_ns: rtt,
        min_rtt_ns: RTT_NS,
        inflight_bytes: (packets - number) * MSS,
        prior_inflight_bytes: (packets - number + 1) * MSS,
        delivered_bytes: delivered,
        newest_sent_ns: now - rtt,
        rate: RawRate {
            interval_ns: rtt,
            delivered_bytes: delivered - before,
            prior_delivered_bytes: before,
            tx_in_flight_bytes: packets * MSS,
            lost_bytes: 0,
            app_limited: 0,
        },
        cwnd_limited: 1,
        in_recovery: 0,
    }
}
