//! Mortise by the functions for C.
#![cfg(feature = "steer")]
#![expect(unsafe_code, reason = "the functions are for C")]

mod common;

use std::ffi::CStr;
use std::ptr::null;

use common::{MSS, RTT_NS, ack, create};
use trimtab_cc_ffi::*;

/// What a link of 12 Mbit/s sends in a round trip.
const PACKETS: u64 = 20;

/// CUBIC, which Mortise makes Copa.
fn steered(model: &CStr) -> RawCc {
    let mut cc = create(c"cubic");
    // SAFETY: it was created, and the model is there.
    assert_eq!(unsafe { trimtab_cc_steer(&mut cc, 0, model.as_ptr()) }, 0);
    cc
}

/// A download of so many round trips over a link of 12 Mbit/s, whose queue holds what the window is
/// above one bandwidth-delay product. Gives the delta of Copa at their end.
fn run(cc: &mut RawCc, rounds: u32) -> f64 {
    let (mut now, mut delivered) = (0, 0);
    // SAFETY: it was created.
    unsafe {
        for _ in 0..rounds {
            let packets = (trimtab_cc_window(cc) / MSS).min(64);
            for number in 1..=packets {
                trimtab_cc_on_sent(cc, now, MSS, number * MSS, 0);
            }
            let (began, before) = (now, delivered);
            for number in 1..=packets {
                let rtt_ns = RTT_NS.max(RTT_NS * number / PACKETS);
                now = began + rtt_ns;
                delivered += MSS;
                trimtab_cc_on_ack(cc, &ack(now, rtt_ns, delivered, before, packets, number));
            }
            if trimtab_cc_next_timer(cc) <= now {
                trimtab_cc_on_timer(cc, now);
            }
        }
        trimtab_cc_knob(cc, c"delta".as_ptr())
    }
}

/// A conference wants a shorter queue than video on demand does.
#[test]
fn delta_follows_the_qoe_model() {
    let [video, conference] = [c"vod", c"conference"].map(|model| {
        let mut cc = steered(model);
        let delta = run(&mut cc, 3000);
        // SAFETY: it was created, and is not used again.
        unsafe { trimtab_cc_free(&mut cc) };
        delta
    });
    assert!(video * 2.0 < conference, "{video} for video, {conference} for a conference");
}

/// A download of 80 Mbit bears more delay than one of 0.08 Mbit.
#[test]
fn delta_follows_the_factors_of_the_application() {
    let [large, small] = [80.0, 0.08].map(|size| {
        let mut cc = steered(c"download");
        // SAFETY: it was created, and is not used again.
        unsafe {
            assert_eq!(trimtab_cc_set_factor(&mut cc, c"R".as_ptr(), size), 0);
            let delta = run(&mut cc, 3000);
            trimtab_cc_free(&mut cc);
            delta
        }
    });
    assert!(large * 2.0 < small, "{large} for 80 Mbit, {small} for 0.08 Mbit");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut cc = steered(c"vod");
    // SAFETY: it was created, and null is one of what may be given.
    unsafe {
        assert_eq!(trimtab_cc_next_timer(&mut cc), u64::MAX, "nothing has happened yet");
        assert_eq!(trimtab_cc_steer(&mut cc, 0, c"radio".as_ptr()), -1);
        assert_eq!(trimtab_cc_steer(&mut cc, 0, null()), -1);
        assert_eq!(trimtab_cc_set_factor(&mut cc, c"V".as_ptr(), 10.0), 0, "it is steered still");
        assert_eq!(trimtab_cc_set_factor(&mut cc, c"no name".as_ptr(), 1.0), -1);
        assert_eq!(trimtab_cc_set_factor(&mut cc, null(), 1.0), -1);
        assert!(trimtab_cc_knob(&mut cc, c"beta".as_ptr()).is_nan(), "Copa has none");
        assert!(trimtab_cc_knob(&mut cc, null()).is_nan());
        assert_eq!(trimtab_cc_change(&mut cc, 1_000_000, c"cubic".as_ptr()), 0);
        assert_eq!(trimtab_cc_set_factor(&mut cc, c"V".as_ptr(), 10.0), -1, "the change ended it");
        trimtab_cc_free(&mut cc);
    }
}
