//! A learnt policy by the functions for C.
#![cfg(feature = "select")]
#![expect(unsafe_code, reason = "the functions are for C")]

use std::ptr::{null, null_mut};

use trimtab_cc_ffi::*;

/// It prefers BBR where packets are lost, and CUBIC, which is first, elsewhere.
static SMALL: &[u8] = include_bytes!("../../../fuzz/seeds/model/small");
const CUBIC: i32 = 0;
const BBR: i32 = 1;

const MSS: u64 = 1500;
const RTT_NS: u64 = 20_000_000;

fn policy() -> *mut RawPolicy {
    // SAFETY: the bytes are there.
    let policy = unsafe { trimtab_cc_policy_read(SMALL.as_ptr().cast(), SMALL.len()) };
    assert!(!policy.is_null());
    policy
}

fn create() -> RawCc {
    let mut cc = RawCc::new();
    let config = RawConfig {
        mss_bytes: MSS,
        initial_window_bytes: 0,
        min_window_bytes: 0,
        seed: 1,
        paced: 1,
    };
    // SAFETY: all of them are there.
    assert_eq!(unsafe { trimtab_cc_create(&mut cc, c"copa".as_ptr(), &config) }, 0);
    cc
}

/// CUBIC has a knob that BBR has not.
fn is_cubic(cc: &mut RawCc) -> bool {
    // SAFETY: it was created.
    !unsafe { trimtab_cc_knob(cc, c"beta".as_ptr()) }.is_nan()
}

/// So many round trips, in each of which ten packets are sent and the last `lost` of them are lost.
fn run(cc: &mut RawCc, began_ns: u64, rounds: u64, lost: u64) -> u64 {
    const PACKETS: u64 = 10;
    // SAFETY: it was created.
    unsafe {
        for round in 0..rounds {
            let sent = began_ns + round * RTT_NS;
            let now = sent + RTT_NS;
            let before = round * (PACKETS - lost) * MSS;
            for number in 1..=PACKETS {
                trimtab_cc_on_sent(cc, sent, MSS, number * MSS, 0);
            }
            for number in 1..=PACKETS - lost {
                trimtab_cc_on_ack(cc, &ack(now, sent, before, number, PACKETS));
            }
            if lost > 0 {
                let loss = RawLoss {
                    now_ns: now,
                    lost_bytes: lost * MSS,
                    newest_sent_ns: sent,
                    inflight_bytes: 0,
                    prior_inflight_bytes: lost * MSS,
                };
                trimtab_cc_on_loss(cc, &loss);
            }
            if trimtab_cc_next_timer(cc) <= now {
                trimtab_cc_on_timer(cc, now);
            }
        }
    }
    began_ns + rounds * RTT_NS
}

/// Of packet `number` of a round that began at `sent`.
fn ack(now: u64, sent: u64, before: u64, number: u64, packets: u64) -> RawAck {
    RawAck {
        now_ns: now,
        acked_bytes: MSS,
        rtt_ns: now - sent,
        srtt_ns: RTT_NS,
        min_rtt_ns: RTT_NS,
        inflight_bytes: (packets - number) * MSS,
        prior_inflight_bytes: (packets - number + 1) * MSS,
        delivered_bytes: before + number * MSS,
        newest_sent_ns: sent,
        rate: RawRate {
            interval_ns: RTT_NS,
            delivered_bytes: number * MSS,
            prior_delivered_bytes: before,
            tx_in_flight_bytes: packets * MSS,
            lost_bytes: 0,
            app_limited: 0,
        },
        cwnd_limited: 1,
        in_recovery: 0,
    }
}

/// A period of the policy is 12 s.
#[test]
fn the_algorithm_follows_what_the_policy_sees() {
    let (mut cc, policy) = (create(), policy());
    // SAFETY: they were made, and are not used after they are freed.
    unsafe {
        assert_eq!(trimtab_cc_suited(&mut cc), -1, "nothing chooses");
        assert_eq!(trimtab_cc_select(&mut cc, 0, policy, -1), 0);
        trimtab_cc_policy_free(policy);
        assert!(is_cubic(&mut cc), "what the policy starts with takes over from Copa");
        let now = run(&mut cc, 0, 700, 0);
        assert!(is_cubic(&mut cc));
        assert_eq!(trimtab_cc_suited(&mut cc), CUBIC);
        let now = run(&mut cc, now, 1400, 3);
        assert!(!is_cubic(&mut cc), "packets are lost");
        assert_eq!(trimtab_cc_suited(&mut cc), BBR);
        run(&mut cc, now, 1400, 0);
        assert!(is_cubic(&mut cc), "no longer");
        trimtab_cc_free(&mut cc);
    }
}

#[test]
fn a_connection_begins_with_what_suited_the_last_one() {
    let (mut cc, policy) = (create(), policy());
    // SAFETY: as above.
    unsafe {
        assert_eq!(trimtab_cc_select(&mut cc, 0, policy, BBR), 0);
        assert!(!is_cubic(&mut cc));
        assert_eq!(trimtab_cc_change(&mut cc, 1, c"cubic".as_ptr()), 0, "the change ends it");
        run(&mut cc, 1, 1400, 3);
        assert!(is_cubic(&mut cc));
        assert_eq!(trimtab_cc_suited(&mut cc), -1);
        trimtab_cc_free(&mut cc);
        trimtab_cc_policy_free(policy);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (mut cc, policy) = (create(), policy());
    // SAFETY: as above; null is one of what may be given.
    unsafe {
        for length in 0..SMALL.len() {
            assert!(trimtab_cc_policy_read(SMALL.as_ptr().cast(), length).is_null(), "{length}");
        }
        assert!(trimtab_cc_policy_read(null(), 0).is_null());
        trimtab_cc_policy_free(null_mut());
        assert_eq!(trimtab_cc_select(&mut cc, 0, null(), -1), -1);
        assert_eq!(trimtab_cc_select(&mut cc, 0, policy, 2), -1, "it has two candidates");
        assert!(!is_cubic(&mut cc), "nothing has changed");
        // Where nothing chooses, nobody listens.
        trimtab_cc_on_response_sent(&mut cc, 1);
        trimtab_cc_on_response(&mut cc, 1, 1);
        trimtab_cc_set_unsent(&mut cc, 1);
        trimtab_cc_free(&mut cc);
        trimtab_cc_policy_free(policy);
    }
}
