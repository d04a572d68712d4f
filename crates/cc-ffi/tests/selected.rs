//! A learnt policy by the functions for C.
#![cfg(feature = "select")]
#![expect(unsafe_code, reason = "the functions are for C")]

mod common;

use std::ptr::{null, null_mut};

use common::{MSS, RTT_NS, ack, create};
use trimtab_cc_ffi::*;

/// It prefers BBR where packets are lost, and CUBIC, which is first, elsewhere.
static SMALL: &[u8] = include_bytes!("../../../fuzz/seeds/model/small");
const CUBIC: i32 = 0;
const BBR: i32 = 1;

fn policy() -> *mut RawPolicy {
    // SAFETY: the bytes are there.
    let policy = unsafe { trimtab_cc_policy_read(SMALL.as_ptr().cast(), SMALL.len()) };
    assert!(!policy.is_null());
    policy
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
                trimtab_cc_on_ack(
                    cc,
                    &ack(now, RTT_NS, before + number * MSS, before, PACKETS, number),
                );
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

/// A period of the policy is 12 s.
#[test]
fn the_algorithm_follows_what_the_policy_sees() {
    let (mut cc, policy) = (create(c"copa"), policy());
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
    let (mut cc, policy) = (create(c"copa"), policy());
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
    let (mut cc, policy) = (create(c"copa"), policy());
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
