//! A connection's slot in memory of our own, with the test in the role of the kernel's program.

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use trimtab_datapath::{FlowId, Switching};
use trimtab_qoe::Factors;

use super::*;
use crate::reporter::Reporter;

/// As many free slots.
fn slots(entries: usize) -> Arc<Mapping<Slot>> {
    let memory = memfd_create("slots", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&memory, (entries * size_of::<Slot>()) as u64).expect("room");
    Arc::new(Mapping::new(&memory, entries).expect("mapped"))
}

/// Opens a connection in a slot.
fn open(slots: &Arc<Mapping<Slot>>, index: u32, id: u64, algorithm: Algorithm) -> Flow {
    let slot = &slots[index as usize];
    slot.cca.store(algorithm.layout().number, Relaxed);
    slot.mss_bytes.store(1000, Relaxed);
    slot.pacing_bytes_per_s.store(u64::MAX, Relaxed);
    slot.id.store(id, Relaxed);
    Flow::at(slots, index).expect("it is open")
}

#[test]
fn a_free_slot_and_one_that_is_not_there_are_no_connection() {
    let slots = slots(2);
    assert!(Flow::at(&slots, 0).is_none());
    assert!(Flow::at(&slots, 2).is_none());
    slots[1].id.store(7, Relaxed);
    assert!(Flow::at(&slots, 1).is_none(), "no algorithm has the number 0");
}

#[test]
fn a_connection_has_the_identity_that_its_slot_tells() {
    let slots = slots(1);
    let slot = &slots[0];
    slot.family.store(AF_INET6, Relaxed);
    // ::ffff:192.0.2.1, in network order.
    slot.local_addr[2].store(u32::from_ne_bytes([0, 0, 0xff, 0xff]), Relaxed);
    slot.local_addr[3].store(u32::from_ne_bytes([192, 0, 2, 1]), Relaxed);
    slot.local_port.store(443, Relaxed);
    slot.remote_addr[0].store(u32::from_ne_bytes([0x20, 0x01, 0x0d, 0xb8]), Relaxed);
    slot.remote_addr[3].store(u32::from_ne_bytes([0, 0, 0, 9]), Relaxed);
    slot.remote_port.store(50_000, Relaxed);
    slot.flags.store(layout::FLAG_ADOPTED, Relaxed);
    let flow = open(&slots, 0, 3, Algorithm::Bbr);
    let identity = flow.identity();
    assert_eq!(identity.id, FlowId(3));
    assert_eq!(identity.algorithm, "bbr");
    assert_eq!(identity.local.to_string(), "192.0.2.1:443");
    assert_eq!(identity.remote.to_string(), "[2001:db8::9]:50000");
    assert_eq!((identity.cookie, identity.cgroup, identity.device), (None, None, None));
    assert!(identity.adopted && !identity.towards);
}

#[test]
fn nothing_is_read_while_the_program_writes() {
    let slots = slots(1);
    let flow = open(&slots, 0, 1, Algorithm::Copa);
    slots[0].seq.store(1, Relaxed);
    assert_eq!(flow.sample(), None);
    slots[0].seq.store(2, Relaxed);
    assert!(flow.sample().is_some());
}

#[test]
fn a_slot_that_has_changed_hands_takes_no_orders_for_the_connection_before() {
    let slots = slots(1);
    let first = open(&slots, 0, 1, Algorithm::Copa);
    let second = open(&slots, 0, 2, Algorithm::Copa);
    assert!(!first.is_open() && second.is_open());
    assert!(matches!(first.set("delta", 0.1), Err(Error::Closed)));
    assert!(matches!(first.knob("delta"), Err(Error::Closed)));
    assert!(matches!(first.switch(Algorithm::Bbr, None, Switch::Full), Err(Error::Closed)));
    assert_eq!((first.sample(), first.switching(), first.acks()), (None, None, None));
    assert_eq!((load(&slots[0].version), load(&slots[0].next)), (0, 0));
}

#[test]
fn a_knob_is_written_before_the_word_that_tells_of_it() {
    let slots = slots(1);
    let flow = open(&slots, 0, 5, Algorithm::Copa);
    assert_eq!(flow.set("delta", 0.25).unwrap(), 0.25);
    assert_eq!(flow.knob("delta").unwrap(), 0.25);
    assert_eq!(load(&slots[0].copa_knobs[0]), 4 * layout::SCALE_Q16, "1/delta");
    assert_eq!((slots[0].knobs_for.load(Relaxed), load(&slots[0].version)), (5, 1));
    // Of an algorithm that does not run, and none that there is.
    assert_eq!(flow.set_of(Algorithm::Bbr, "cwnd_gain", 2.5).unwrap(), 2.5);
    assert_eq!(load(&slots[0].version), 2);
    assert!(flow.set("cwnd_gain", 2.5).is_err());
    assert_eq!(load(&slots[0].version), 2, "nothing was written");
}

#[test]
fn an_order_to_switch_says_who_how_and_that_it_is_another_than_before() {
    let slots = slots(1);
    let slot = &slots[0];
    let flow = open(&slots, 0, 1, Algorithm::Copa);
    let none = Switching { pending: None, switches: 0, took: Duration::ZERO, refused: None };
    assert_eq!(flow.switching(), Some(none));

    flow.switch(Algorithm::Vivace, None, Switch::Part).unwrap();
    let bytes = load(&slot.next).to_le_bytes();
    let vivace = Algorithm::Vivace.layout().number as u8;
    assert_eq!(bytes, [vivace, layout::HOW_PART as u8, 1, 0]);
    let pending = Some(Algorithm::Vivace.neutral());
    assert_eq!(flow.switching(), Some(Switching { pending, ..none }));

    flow.switch(Algorithm::Vivace, None, Switch::Full).unwrap();
    assert_eq!(load(&slot.next).to_le_bytes(), [vivace, layout::HOW_FULL as u8, 2, 0]);

    // The program carries it out, and the kernel refuses.
    slot.next_done.store(load(&slot.next), Relaxed);
    slot.refused.store(1, Relaxed);
    assert_eq!(flow.switching(), Some(Switching { refused: Some(1), ..none }));
}

#[test]
fn a_switch_with_settings_sets_all_knobs_but_an_initial_window_that_is_the_systems() {
    let slots = slots(1);
    let flow = open(&slots, 0, 1, Algorithm::Cubic);
    let copa = |name| &slots[0].copa_knobs[knobs::find(Algorithm::Copa, name).unwrap().index];
    copa("initial_window").store(10 * 1024, Relaxed);
    copa("velocity_max").store(77, Relaxed);

    flow.switch(Algorithm::Copa, None, Switch::Full).unwrap();
    assert_eq!((load(copa("velocity_max")), load(copa("delta"))), (77, 0), "as they were left");

    flow.switch(Algorithm::Copa, Some(&[("delta", 0.5)]), Switch::Full).unwrap();
    assert_eq!(load(copa("delta")), 2 * layout::SCALE_Q16);
    assert_ne!(load(copa("velocity_max")), 77, "the default");
    assert_eq!(load(copa("initial_window")), 10 * 1024);

    let order = load(&slots[0].next);
    assert!(flow.switch(Algorithm::Copa, Some(&[("beta", 0.5)]), Switch::Full).is_err());
    assert_eq!(load(&slots[0].next), order, "nothing was ordered");
}

/// The program sets the extremes of an interval aside when it sees that another has begun.
#[test]
fn the_extremes_are_those_of_the_interval_that_ended() {
    let slots = slots(1);
    let slot = &slots[0];
    let flow = open(&slots, 0, 1, Algorithm::Copa);
    slot.rtt_min_us.store(20_000, Relaxed);
    slot.rtt_max_us.store(30_000, Relaxed);
    slot.rate_packets.store(10, Relaxed);
    slot.rate_us.store(1000, Relaxed);
    let ms = Duration::from_millis;

    let none_came_since = flow.start_interval().unwrap().extremes;
    assert_eq!(none_came_since.rtt, Some((ms(20), ms(30))));
    assert_eq!(none_came_since.delivery_rate, Some(Rate::from_bytes_per_sec(10_000_000)));

    // An acknowledgement comes: what was is set aside, and another sample begins the interval.
    slot.last_rtt_min_us.store(20_000, Relaxed);
    slot.last_rtt_max_us.store(40_000, Relaxed);
    slot.rtt_min_us.store(50_000, Relaxed);
    slot.interval_epoch.store(load(&slot.epoch), Relaxed);
    assert_eq!(flow.sample().unwrap().extremes.rtt, Some((ms(20), ms(40))));

    flow.start_interval().unwrap();
    let nothing_came = flow.start_interval().unwrap().extremes;
    assert_eq!(nothing_came, Extremes::default());
}

#[test]
fn why_muses_is_not_trusted_is_told_whatever_runs_now() {
    let slots = slots(1);
    let flow = open(&slots, 0, 1, Algorithm::Copa);
    let alarms = [
        (0, None),
        (layout::ALARM_UNKNOWN, Some(Alarm::Unknown)),
        (layout::ALARM_RUN_AWAY, Some(Alarm::RunAway)),
        (layout::ALARM_NO_MODEL, Some(Alarm::NoModel)),
        (layout::ALARM_STARVED, Some(Alarm::Starved)),
    ];
    for (bits, alarm) in alarms {
        slots[0].flags.store(bits << layout::FLAG_ALARM_SHIFT, Relaxed);
        let sample = flow.sample().unwrap();
        assert_eq!((sample.alarm, sample.states), (alarm, None));
    }
}

/// Sums become differences; a report ends with what the connection is like at its end.
#[test]
fn a_report_tells_what_came_in_its_interval() {
    let slots = slots(1);
    let slot = &slots[0];
    let flow = open(&slots, 0, 1, Algorithm::Copa);
    slot.sent_bytes.store(50_000, Relaxed);
    slot.rtt_sum_us.store(1_000_000, Relaxed);
    slot.rtt_count.store(40, Relaxed);
    let start = Time::from_micros(1_000_000);
    let mut reporter = Reporter::new(&flow, start).expect("open");

    slot.sent_bytes.store(80_000, Relaxed);
    slot.acked_bytes.store(20_000, Relaxed);
    slot.lost_bytes.store(3_000, Relaxed);
    slot.rtt_sum_us.store(1_090_000, Relaxed);
    slot.rtt_count.store(43, Relaxed);
    slot.busy_us.store(70_000, Relaxed);
    slot.srtt_us.store(31_000, Relaxed);
    let now = start + Duration::from_millis(50);
    let report = reporter.report(&flow, now, Factors::default()).expect("open");
    assert_eq!(report.interval, Duration::from_millis(50));
    assert_eq!((report.sent, report.acked), (Bytes::new(30_000), Bytes::new(20_000)));
    assert_eq!(report.lost, Bytes::new(3_000));
    assert_eq!(report.rtt_samples, 3);
    assert_eq!(report.rtt_mean, Some(Duration::from_millis(30)));
    // Some of it was of the interval before, in which no acknowledgement told of it.
    assert_eq!(report.busy, report.interval);
    assert_eq!(report.min_rtt, Duration::from_millis(31), "the smoothed one where none is known");

    let later = now + Duration::from_millis(10);
    let quiet = reporter.report(&flow, later, Factors::default()).expect("open");
    assert_eq!((quiet.sent, quiet.rtt_samples, quiet.rtt_mean), (Bytes::ZERO, 0, None));
    slot.id.store(0, Relaxed);
    assert!(reporter.report(&flow, later, Factors::default()).is_none(), "it has ended");
}
