//! Traces: any bytes are a trace that is written as it was read and that a link can play, or an error with one line
//! to show.

use trimtab_net::{Capacity, Event, Link, LinkConfig, Packet, QueueConfig, Trace};
use trimtab_units::{Bytes, Time};

const PACKETS: u64 = 20;

/// Every packet comes out once, in order, and none before it went in.
fn play(trace: Trace) {
    let config = LinkConfig::new(Capacity::trace(trace)).queue(QueueConfig::UNLIMITED);
    let mut link = Link::new(&config, 1);
    let start = Time::from_millis(5);
    for number in 0..PACKETS {
        assert!(link.send(start, Packet { size: Bytes::new(1500), payload: number }).is_ok());
    }
    let mut expected = 0;
    while let Some(now) = link.next_event() {
        while let Some(event) = link.poll(now) {
            let Event::Delivered(delivery) = event else {
                panic!("dropped from an unlimited queue")
            };
            assert_eq!(delivery.packet.payload, expected);
            assert!(delivery.at >= start);
            expected += 1;
        }
    }
    assert_eq!(expected, PACKETS);
}

pub(crate) fn target(text: &[u8]) {
    match Trace::parse(text) {
        Ok(trace) => {
            assert!(trace.opportunities().is_sorted());
            let stats = trace.stats();
            assert!(trace.period().as_millis() > 0, "{stats:?}");
            let mut written = Vec::new();
            trace.write_text(&mut written).expect("memory takes what is written");
            assert_eq!(Trace::parse(&written).as_ref(), Ok(&trace));
            play(trace);
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}
