use std::fs;
use std::sync::Arc;

use trimtab_net::{ReorderConfig, Trace};
use trimtab_units::Rate;

use super::*;

const DOWN: Direction = Direction::Down;

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn arrived(at: u64, size: u64, dropped: Option<DropCause>) -> Entry {
    Entry::Arrived { direction: DOWN, size: Bytes::new(size), at: ms(at), dropped }
}

fn delivered(arrived: u64, departed: u64, size: u64) -> Entry {
    let (arrived, departed) = (ms(arrived), ms(departed));
    let due = departed + Duration::from_millis(10);
    let size = Bytes::new(size);
    Entry::Delivered { direction: DOWN, size, arrived, departed, due, written: due }
}

/// One opportunity of 1500 bytes in each millisecond.
fn traced() -> LinkConfig {
    let trace = Trace::from_opportunities((1..=100).collect()).unwrap();
    LinkConfig::new(Capacity::trace(Arc::new(trace)))
}

fn log(link: &LinkConfig) -> (MahimahiLog, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let log = MahimahiLog::create(&folder.path().join("down.log"), DOWN, link).unwrap();
    (log, folder)
}

/// The lines behind the head.
fn lines(log: &MahimahiLog) -> Vec<String> {
    let text = fs::read_to_string(log.path()).unwrap();
    text.lines().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect()
}

#[test]
fn a_millisecond_has_opportunities_then_departures_then_arrivals() {
    let (mut log, _folder) = log(&traced());
    // The order in which the forwarder learns of them: the departure last.
    for entry in [
        arrived(1, 1500, None),
        arrived(2, 700, None),
        arrived(2, 900, Some(DropCause::QueueFull)),
        delivered(1, 2, 1500),
        Entry::Dropped {
            direction: DOWN,
            size: Bytes::new(700),
            arrived: ms(2),
            at: ms(3),
            cause: DropCause::Aqm,
        },
    ] {
        log.add(&entry);
    }
    log.write_until(Time::MAX).unwrap();
    assert_eq!(
        lines(&log),
        [
            "1 # 1500",
            "1 + 1500",
            "2 # 1500",
            "2 - 1500 1",
            "2 + 700",
            "2 + 900",
            "2 d 1 900",
            "3 # 1500",
            "3 d 1 700",
        ]
    );
}

#[test]
fn losses_of_other_programs_are_not_in_the_log() {
    let (mut log, _folder) = log(&LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0))));
    log.add(&arrived(1, 100, Some(DropCause::RandomLoss)));
    log.add(&arrived(2, 100, Some(DropCause::Policer)));
    log.add(&arrived(3, 100, Some(DropCause::Aqm)));
    log.write_until(Time::MAX).unwrap();
    assert_eq!(lines(&log), ["3 + 100", "3 d 1 100"], "a constant rate has no opportunities");
}

#[test]
fn every_size_has_the_overhead_of_the_link() {
    let mut link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)));
    link.overhead = Bytes::new(4);
    let (mut log, _folder) = log(&link);
    for entry in
        [arrived(1, 100, None), delivered(1, 6, 100), arrived(7, 50, Some(DropCause::QueueFull))]
    {
        log.add(&entry);
    }
    log.write_until(Time::MAX).unwrap();
    assert_eq!(lines(&log), ["1 + 104", "6 - 104 5", "7 + 54", "7 d 1 54"]);
}

#[test]
fn delays_are_whole_milliseconds_of_the_clock_of_mm_link() {
    let (mut log, _folder) = log(&LinkConfig::new(Capacity::Constant(Rate::MAX)));
    let (begin, end) = (Time::from_micros(1900), Time::from_micros(3100));
    log.add(&Entry::Delivered {
        direction: DOWN,
        size: Bytes::new(100),
        arrived: begin,
        departed: end,
        due: end,
        written: end,
    });
    log.write_until(Time::MAX).unwrap();
    // 1.2 ms went by, and on that clock 3 - 1.
    assert_eq!(lines(&log), ["3 - 100 2"]);
}

#[test]
fn lines_wait_until_nothing_earlier_can_come() {
    let mut link = traced();
    link.delay = Duration::from_millis(40).into();
    let (mut log, _folder) = log(&link);
    log.add(&arrived(30, 1500, None));
    // The lag is 5.04 s: before that, nothing of the 30th millisecond is written.
    log.write_until(ms(5069)).unwrap();
    assert!(lines(&log).iter().all(|line| line.ends_with("# 1500")), "{:?}", lines(&log));
    assert_eq!(lines(&log).len(), 28, "those of the milliseconds 1 to 28");
    log.add(&delivered(20, 29, 1500));
    log.write_until(ms(5071)).unwrap();
    let written = lines(&log);
    assert_eq!(written[28..], ["29 # 1500", "29 - 1500 9", "30 # 1500", "30 + 1500"]);
    // Nothing is written twice.
    log.write_until(ms(5071)).unwrap();
    log.write_until(Time::MAX).unwrap();
    assert_eq!(lines(&log), written);
}

#[test]
fn an_empty_log_has_a_head_alone() {
    let (mut log, _folder) = log(&traced());
    log.write_until(Time::MAX).unwrap();
    let text = fs::read_to_string(log.path()).unwrap();
    let head: Vec<&str> = text.lines().collect();
    assert_eq!(head[0], "# trimtab emu (downlink)");
    assert!(head[1].starts_with("# queue: "), "{text}");
    assert!(head[2].starts_with("# init timestamp: "), "{text}");
    assert_eq!(head[3..], ["# base timestamp: 0"]);
}

/// A trace loops: millisecond 101 has the opportunities of the first, and so on.
#[test]
fn opportunities_go_on_where_the_trace_begins_again() {
    let trace = Trace::from_opportunities(vec![1, 1, 1, 4]).unwrap();
    let (mut log, _folder) = log(&LinkConfig::new(Capacity::trace(Arc::new(trace))));
    log.add(&arrived(9, 100, None));
    log.write_until(Time::MAX).unwrap();
    let at: Vec<u64> = lines(&log)
        .iter()
        .filter(|line| line.contains(" # "))
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(at, [1, 1, 1, 4, 5, 5, 5, 8, 9, 9, 9]);
}

#[test]
fn the_lag_covers_all_that_may_hold_a_packet_back() {
    let mut link = LinkConfig::new(Capacity::Constant(Rate::MAX));
    let of = Duration::from_millis;
    assert_eq!(lag(&link), of(5000));
    link.delay = of(40).into();
    assert_eq!(lag(&link), of(5040));
    link.reorder = Some(ReorderConfig { probability: 0.1, extra: of(7) });
    assert_eq!(lag(&link), of(5047));
    for (jitter, more) in [
        (JitterConfig::Uniform { max: of(9) }, 9),
        (JitterConfig::Bell { max: of(9) }, 9),
        (JitterConfig::Burst { max: of(9), each: of(1) }, 1009),
    ] {
        link.jitter = jitter;
        assert_eq!(lag(&link), of(5047 + more), "{jitter:?}");
    }
}

#[test]
fn queues_are_named_as_mm_link_names_them() {
    for (queue, name) in [
        (QueueConfig::DropTail { bytes: None, packets: None }, "infinite"),
        (QueueConfig::drop_tail_packets(7), "droptail [packets=7]"),
        (QueueConfig::drop_tail_bytes(Bytes::new(9)), "droptail [bytes=9]"),
        (
            QueueConfig::DropTail { bytes: Some(Bytes::new(9)), packets: Some(7) },
            "droptail [bytes=9, packets=7]",
        ),
    ] {
        assert_eq!(queue_name(&queue), name);
    }
}
