//! The library as C sees it: the same structs, and answers to what is wrong.
#![expect(unsafe_code, reason = "the functions are for C")]

use std::ffi::CStr;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;
use std::ptr::null;

use trimtab_cc_ffi::*;

static SMALL: &[u8] = include_bytes!("../../../fuzz/seeds/trees/small");

const CONFIG: RawConfig =
    RawConfig { mss_bytes: 1500, initial_window_bytes: 0, min_window_bytes: 0, seed: 1, paced: 0 };

fn create(name: &CStr, config: &RawConfig) -> Option<RawCc> {
    let mut cc = RawCc::new();
    // SAFETY: all of them are there.
    (unsafe { trimtab_cc_create(&mut cc, name.as_ptr(), config) } == 0).then_some(cc)
}

fn muses(model: &[u8], safe: Option<&CStr>) -> Option<RawCc> {
    let mut cc = RawCc::new();
    let safe = safe.map_or(null(), CStr::as_ptr);
    // SAFETY: the model is used within the test only, where it stays.
    let made = unsafe {
        trimtab_cc_create_muses(&mut cc, model.as_ptr().cast(), model.len(), safe, &CONFIG)
    };
    (made == 0).then_some(cc)
}

/// Where each field of the header lies, by a C compiler, is where the Rust side has it.
#[test]
fn the_header_has_the_same_structs() {
    let mut rust = String::new();
    let mut c = String::from("#include <stdio.h>\n#include \"trimtab-cc.h\"\nint main(void) {\n");
    let mut same = |c_says: &str, rust_says: usize| {
        writeln!(rust, "{rust_says}").unwrap();
        writeln!(c, "printf(\"%zu\\n\", {c_says});").unwrap();
    };
    same("sizeof(struct trimtab_cc)", size_of::<RawCc>());
    same("sizeof(struct trimtab_cc_config)", size_of::<RawConfig>());
    same("sizeof(struct trimtab_cc_rate)", size_of::<RawRate>());
    same("sizeof(struct trimtab_cc_ack)", size_of::<RawAck>());
    same("sizeof(struct trimtab_cc_loss)", size_of::<RawLoss>());
    same("offsetof(struct trimtab_cc_config, seed)", offset_of!(RawConfig, seed));
    same("offsetof(struct trimtab_cc_config, paced)", offset_of!(RawConfig, paced));
    same("offsetof(struct trimtab_cc_rate, lost_bytes)", offset_of!(RawRate, lost_bytes));
    same("offsetof(struct trimtab_cc_rate, app_limited)", offset_of!(RawRate, app_limited));
    same("offsetof(struct trimtab_cc_ack, min_rtt_ns)", offset_of!(RawAck, min_rtt_ns));
    same("offsetof(struct trimtab_cc_ack, newest_sent_ns)", offset_of!(RawAck, newest_sent_ns));
    same("offsetof(struct trimtab_cc_ack, rate)", offset_of!(RawAck, rate));
    same("offsetof(struct trimtab_cc_ack, in_recovery)", offset_of!(RawAck, in_recovery));
    same("offsetof(struct trimtab_cc_loss, inflight_bytes)", offset_of!(RawLoss, inflight_bytes));
    same("sizeof(struct trimtab_cc_lost_packet)", size_of::<RawLostPacket>());
    let range = offset_of!(RawLostPacket, new_range);
    same("offsetof(struct trimtab_cc_lost_packet, new_range)", range);
    let delivered = offset_of!(RawLostPacket, delivered_at_send_bytes);
    same("offsetof(struct trimtab_cc_lost_packet, delivered_at_send_bytes)", delivered);
    same("sizeof(struct trimtab_cc_marked)", size_of::<RawMarked>());
    let prior = offset_of!(RawMarked, prior_inflight_bytes);
    same("offsetof(struct trimtab_cc_marked, prior_inflight_bytes)", prior);
    c += "return 0; }\n";

    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("sizes.c"), folder.path().join("sizes"));
    std::fs::write(&source, c).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let done = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .arg("-I")
        .arg(include)
        .output()
        .expect("a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let said = Command::new(program).output().unwrap().stdout;
    assert_eq!(String::from_utf8(said).unwrap(), rust);
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(create(c"cubic", &CONFIG).is_some() && create(c"copa:delta=0.1", &CONFIG).is_some());
    assert!(create(c"quick", &CONFIG).is_none());
    assert!(create(c"cubic:beta=7", &CONFIG).is_none());
    assert!(create(c"cubic", &RawConfig { mss_bytes: 0, ..CONFIG }).is_none());
    let mut cc = RawCc::new();
    // SAFETY: null is one of what may be given.
    unsafe {
        assert_eq!(trimtab_cc_create(&mut cc, null(), &CONFIG), -1);
        assert_eq!(trimtab_cc_create(&mut cc, c"cubic".as_ptr(), null()), -1);
    }
    assert!(muses(SMALL, Some(c"cubic")).is_some() && muses(SMALL, None).is_some());
    assert!(muses(SMALL, Some(c"quick")).is_none());
    for length in 0..SMALL.len() {
        assert!(muses(&SMALL[..length], None).is_none(), "{length} bytes");
    }
}

/// An acknowledgement of one packet over a path of 40 ms.
fn ack(now_ms: u64, delivered: u64, rate_bytes: u64) -> RawAck {
    const MS: u64 = 1_000_000;
    RawAck {
        now_ns: now_ms * MS,
        acked_bytes: 1500,
        rtt_ns: 40 * MS,
        srtt_ns: 40 * MS,
        min_rtt_ns: 40 * MS,
        inflight_bytes: 15_000,
        prior_inflight_bytes: 16_500,
        delivered_bytes: delivered,
        newest_sent_ns: (now_ms - 40) * MS,
        rate: RawRate {
            interval_ns: 40 * MS,
            delivered_bytes: rate_bytes,
            prior_delivered_bytes: 0,
            tx_in_flight_bytes: 15_000,
            lost_bytes: 0,
            app_limited: 0,
        },
        cwnd_limited: 1,
        in_recovery: 0,
    }
}

#[test]
fn trees_decide_and_start_where_another_connection_ended() {
    let mut cc = muses(SMALL, None).unwrap();
    // SAFETY: it was created.
    unsafe {
        assert_eq!((trimtab_cc_tree(&mut cc), trimtab_cc_window(&mut cc)), (1, 15_000));
        trimtab_cc_start_with(&mut cc, 0);
        trimtab_cc_start_with(&mut cc, -3);
        trimtab_cc_start_with(&mut cc, 99);
        assert_eq!(trimtab_cc_tree(&mut cc), 0);
        trimtab_cc_on_sent(&mut cc, 0, 1500, 15_000, 0);
        trimtab_cc_on_ack(&mut cc, &ack(50, 1500, 15_000));
        assert_eq!(trimtab_cc_window(&mut cc), 30_000, "tree 0 doubles where there is no queue");
        assert_eq!(trimtab_cc_pacing_rate(&mut cc), 0, "left to the transport");
        assert_eq!(trimtab_cc_next_timer(&mut cc), u64::MAX);
        trimtab_cc_on_timeout(&mut cc, 90_000_000, 15_000, 0);
        assert_eq!(trimtab_cc_window(&mut cc), 3_000);
    }
}

/// RFC 9002 §7.1: as a loss, once in a round trip. Copa, whose papers know no marks, is bounded.
#[test]
fn a_mark_is_answered_once_in_a_round_trip() {
    let mark = |now_ms: u64, sent_ms: u64, inflight_bytes| RawMarked {
        now_ns: now_ms * 1_000_000,
        newest_sent_ns: sent_ms * 1_000_000,
        inflight_bytes,
        prior_inflight_bytes: inflight_bytes,
    };
    for name in [c"cubic", c"copa"] {
        let mut cc = create(name, &CONFIG).unwrap();
        // SAFETY: it was created.
        unsafe {
            let before = trimtab_cc_window(&mut cc);
            trimtab_cc_on_sent(&mut cc, 0, 15_000, 15_000, 0);
            trimtab_cc_on_marked(&mut cc, &mark(40, 0, 15_000));
            let after = trimtab_cc_window(&mut cc);
            assert_eq!(after, before * 7 / 10, "RFC 9438 §4.6");
            trimtab_cc_on_marked(&mut cc, &mark(41, 1, 13_500));
            assert_eq!(trimtab_cc_window(&mut cc), after);
            trimtab_cc_on_marked(&mut cc, &mark(90, 50, 9_000));
            assert!(trimtab_cc_window(&mut cc) < after);
        }
    }
}

/// A loss of one packet, of `inflight_bytes`.
fn loss(now_ms: u64, sent_ms: u64, inflight_bytes: u64) -> RawLoss {
    RawLoss {
        now_ns: now_ms * 1_000_000,
        lost_bytes: 1500,
        newest_sent_ns: sent_ms * 1_000_000,
        inflight_bytes: inflight_bytes - 1500,
        prior_inflight_bytes: inflight_bytes,
    }
}

/// RFC 9438 §4.9: CUBIC gets back what a loss took that was none.
#[test]
fn a_spurious_loss_is_undone() {
    let mut cc = create(c"cubic", &CONFIG).unwrap();
    // SAFETY: it was created.
    unsafe {
        trimtab_cc_on_established(&mut cc, 40_000_000);
        let before = trimtab_cc_window(&mut cc);
        trimtab_cc_on_sent(&mut cc, 0, 15_000, 15_000, 0);
        trimtab_cc_on_loss(&mut cc, &loss(40, 0, 15_000));
        assert_eq!(trimtab_cc_window(&mut cc), before * 7 / 10);
        trimtab_cc_on_spurious_loss(&mut cc, 45_000_000);
        assert_eq!(trimtab_cc_window(&mut cc), before);
    }
}

/// The window stays, but for the minimum, which is two of the new packets.
#[test]
fn packets_of_another_size_change_the_limits() {
    let mut cc = create(c"cubic", &CONFIG).unwrap();
    let large = RawConfig { mss_bytes: 9000, ..CONFIG };
    // SAFETY: it was created, and null is one of what may be given.
    unsafe {
        let before = trimtab_cc_window(&mut cc);
        assert_eq!(trimtab_cc_on_mtu(&mut cc, null()), -1);
        assert_eq!(trimtab_cc_on_mtu(&mut cc, &RawConfig { mss_bytes: 0, ..CONFIG }), -1);
        assert_eq!(trimtab_cc_on_mtu(&mut cc, &RawConfig { mss_bytes: 1200, ..CONFIG }), 0);
        assert_eq!(trimtab_cc_window(&mut cc), before);
        assert_eq!(trimtab_cc_on_mtu(&mut cc, &large), 0);
        trimtab_cc_on_discarded(&mut cc, 1_000_000, 1200, 0);
        trimtab_cc_on_timeout(&mut cc, 90_000_000, 15_000, 0);
        assert_eq!(trimtab_cc_window(&mut cc), 18_000);
    }
}

/// BBRv3's Startup ends in a round that loses six ranges, which it sees where the caller reports each
/// packet: it then paces by no more than was delivered.
#[test]
fn bbr3_sees_single_packets() {
    // Rounds of 40 ms, each with twice as many packets; in the last, every other one is lost.
    let paced = |told: bool| {
        let mut cc = create(c"bbr3", &CONFIG).unwrap();
        let (mut delivered, mut round_began) = (0, 0);
        // SAFETY: it was created.
        unsafe {
            for round in 0..6 {
                let (packets, now) = (10_u64 << round, 40 * (round + 2));
                trimtab_cc_on_sent(&mut cc, (now - 40) * 1_000_000, 1500, packets * 1500, 0);
                let lossy = round == 5;
                for place in 0..8 * u64::from(lossy) {
                    let lost = RawLostPacket {
                        now_ns: now * 1_000_000,
                        bytes: 1500,
                        sent_ns: (now - 40) * 1_000_000,
                        tx_in_flight_bytes: packets * 1500,
                        lost_since_sent_bytes: 1500 * (place + 1),
                        delivered_at_send_bytes: round_began,
                        app_limited: 0,
                        new_range: 1,
                    };
                    if told {
                        trimtab_cc_on_packet_lost(&mut cc, &lost);
                    }
                    trimtab_cc_on_loss(&mut cc, &loss(now, now - 40, packets * 1500));
                }
                let bytes = packets * 1500 / if lossy { 2 } else { 1 };
                delivered += bytes;
                let mut ack = ack(now, delivered, bytes);
                ack.acked_bytes = bytes;
                ack.rate.prior_delivered_bytes = round_began;
                ack.rate.tx_in_flight_bytes = packets * 1500;
                ack.rate.lost_bytes = 12_000 * u64::from(lossy);
                ack.in_recovery = u8::from(lossy);
                trimtab_cc_on_ack(&mut cc, &ack);
                round_began = delivered;
            }
            // The round ends when a packet is acknowledged that left after these.
            let mut last = ack(330, delivered + 1500, 240_000);
            last.rate.prior_delivered_bytes = round_began;
            (last.rate.tx_in_flight_bytes, last.rate.lost_bytes) = (480_000, 12_000);
            last.in_recovery = 1;
            trimtab_cc_on_ack(&mut cc, &last);
            trimtab_cc_pacing_rate(&mut cc)
        }
    };
    let (told, untold) = (paced(true), paced(false));
    assert!(told * 2 < untold, "{told} of {untold} bytes per second");
}

/// Tree 0 doubles for ever here; the guard gives the connection to CUBIC, with a window that the path carries.
#[test]
fn a_window_that_runs_away_is_taken_away() {
    let mut cc = muses(SMALL, Some(c"cubic")).unwrap();
    // SAFETY: it was created.
    unsafe {
        trimtab_cc_start_with(&mut cc, 0);
        let mut now = 50;
        while trimtab_cc_tree(&mut cc) >= 0 {
            trimtab_cc_start_with(&mut cc, 0);
            trimtab_cc_on_ack(&mut cc, &ack(now, 1500 * now, 60_000));
            now += 10;
            assert!(now < 2_000, "it gives way within a second or two");
        }
        let window = trimtab_cc_window(&mut cc);
        assert!((15_000..=120_000).contains(&window), "{window} bytes for a path of 60,000");
        trimtab_cc_on_loss(&mut cc, &loss(3_000, 2_990, window));
        assert!(trimtab_cc_window(&mut cc) < window, "CUBIC halves, or nearly");
    }
}

/// A live connection gets other knobs, then another algorithm, without a search for the path's
/// capacity. A text that names none changes nothing.
#[test]
fn a_change_keeps_what_is_known_of_the_path() {
    let mut cc = create(c"cubic", &CONFIG).unwrap();
    // SAFETY: it was created, and null is one of what may be given.
    unsafe {
        assert_eq!(trimtab_cc_phase(&mut cc), 0, "slow start");
        let mut delivered = 0;
        for round in 1..=20 {
            for packet in 0..10 {
                delivered += 1500;
                let mut ack = ack(40 * round + packet, delivered, 60_000);
                ack.srtt_ns += 20_000_000; // a queue, without which losses say little of the path
                trimtab_cc_on_ack(&mut cc, &ack);
            }
        }
        trimtab_cc_on_loss(&mut cc, &loss(900, 860, 60_000));
        let window = trimtab_cc_window(&mut cc);
        for refused in [c"quick".as_ptr(), c"copa:delta=9".as_ptr(), null()] {
            assert_eq!(trimtab_cc_change(&mut cc, 910_000_000, refused), -1);
        }
        assert_eq!(trimtab_cc_change(&mut cc, 910_000_000, c"cubic:beta=0.5".as_ptr()), 0);
        assert_eq!(trimtab_cc_window(&mut cc), window);
        trimtab_cc_on_loss(&mut cc, &loss(1000, 960, window));
        assert_eq!(trimtab_cc_window(&mut cc), window / 2, "the knob has turned");
        assert_eq!(trimtab_cc_change(&mut cc, 1_010_000_000, c"copa:delta=0.1".as_ptr()), 0);
        assert_eq!(trimtab_cc_phase(&mut cc), 2, "Copa needs no slow start");
        assert!(trimtab_cc_window(&mut cc) >= window / 2);
        assert!(trimtab_cc_pacing_rate(&mut cc) > 0, "Copa paces, CUBIC does not");
    }
}

/// RFC 9406 §4.2: slow start grows by at most 8 packets for an acknowledgement, unless the
/// transport paces.
#[test]
fn a_transport_that_paces_may_grow_by_all_that_was_acknowledged() {
    let grown = |paced| {
        let mut cc = create(c"cubic", &RawConfig { paced, ..CONFIG }).unwrap();
        let mut ack = ack(40, 15_000, 15_000);
        (ack.acked_bytes, ack.cwnd_limited) = (15_000, 1);
        // SAFETY: it was created.
        unsafe {
            trimtab_cc_on_ack(&mut cc, &ack);
            trimtab_cc_window(&mut cc)
        }
    };
    assert_eq!((grown(0), grown(1)), (15_000 + 8 * 1500, 30_000));
}
