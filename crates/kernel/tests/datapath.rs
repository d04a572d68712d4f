//! The datapath on a real kernel. Skipped, with the reason, where the kernel or the rights are missing.

mod common;

use std::time::Duration;

use trimtab_kernel::{Algorithm, EventKind, Reporter};
use trimtab_qoe::Factors;
use trimtab_units::Bytes;

use common::{Loaded, Wire, need_kernel, wait_for};

const BYTES: u64 = 12_000_000;

/// The kernel knows each name once, and the tests of a file run side by side: each has a suffix of its own.
#[test]
fn a_connection_has_a_slot_with_sane_measurements_and_gives_it_back() {
    need_kernel!();
    let loaded = Loaded::new("_s", 64);
    loaded.datapath().set_default("delta", 0.05).unwrap();
    let events = loaded.datapath().events().unwrap();
    let wire = Wire::new("slot");
    wire.limit("50mbit", 200_000);
    let server = wire.serve(loaded.datapath().name(), 7001, BYTES, 1);
    let start = trimtab_kernel::now();
    let client = wire.fetch_all(7001);
    let flow = wait_for("the slot", || loaded.flow(7001));
    let mut reporter = Reporter::new(&flow, trimtab_kernel::now()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let report = reporter.report(&flow, trimtab_kernel::now(), Factors::default()).unwrap();
    let sample = flow.sample().unwrap();

    let identity = flow.identity();
    assert_eq!(identity.local.to_string(), "10.77.1.1:7001");
    assert_eq!(identity.remote.ip().to_string(), "10.77.2.1");
    assert_eq!(identity.algorithm, "copa");
    assert!(identity.opened >= start && !identity.adopted && identity.netns_cookie > 0);
    assert_eq!(sample.mss, Bytes::new(1448));
    assert!(
        sample.totals.acked <= sample.totals.sent && sample.inflight <= sample.totals.sent,
        "{sample:?}"
    );

    // The server has given the socket as much as its buffer takes.
    let given = report.responses.unsent + sample.inflight + sample.totals.acked;
    assert!(!report.responses.unsent.is_zero() && given <= Bytes::new(BYTES), "{given}");

    // 50 Mbit/s with headers is 47.8 Mbit/s of data; half a second of it, less what the machine withholds.
    let rate = (report.acked / report.interval).mbps();
    assert!((30.0..49.0).contains(&rate), "{rate} Mbit/s in {report:?}");
    let ratio = report.sent.ratio(report.acked);
    assert!((0.8..1.25).contains(&ratio) && report.lost.ratio(report.sent) < 0.02, "{report:?}");
    // The best sample: acknowledgements that come in bunches make it more than the wire's rate.
    let delivery = report.delivery_rate.unwrap().mbps();
    assert!(delivery > 40.0, "{delivery} Mbit/s at best in {report:?}");
    let (least, mean, most) =
        (report.rtt_min.unwrap(), report.rtt_mean.unwrap(), report.rtt_max.unwrap());
    assert!(least <= mean && mean <= most && report.min_rtt <= least, "{report:?}");
    // The buffer holds 32 ms; a busy machine adds its own.
    assert!(mean < trimtab_units::Duration::from_millis(80), "{report:?}");
    assert!(report.busy.as_millis() > 300, "nothing held the sender back: {report:?}");

    assert_eq!(client.join().unwrap(), BYTES);
    server.join().unwrap();
    wait_for("the end of the connection", || (!flow.is_open()).then_some(()));
    assert!(flow.sample().is_none() && flow.set("delta", 0.1).is_err());
    let stats = loaded.datapath().stats();
    assert_eq!((stats.live, stats.opened, stats.slotless), (0, 1, 0));

    let events = events.take().unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!((events[0].id, events[0].kind), (flow.id(), EventKind::Open));
    let EventKind::Close(totals) = events[1].kind else { panic!("{events:?}") };
    assert!(totals.acked >= Bytes::new(6_000_000) && totals.sent >= Bytes::new(6_000_000));
    // What was measured until everything had arrived, and not only until the last look.
    let took = totals.last.since(events[0].at);
    assert!(totals.busy <= took && totals.busy.as_millis() > 500, "{totals:?} of {took}");
    let mean = totals.rtt_sum / totals.rtt_count.max(1);
    assert!(
        totals.rtt_count > sample.totals.rtt_count
            && mean < trimtab_units::Duration::from_millis(80)
    );
}

/// What CUBIC acknowledges while it recovers is no time that counts twice.
#[test]
fn a_connection_that_loses_was_busy_no_longer_than_it_lived() {
    need_kernel!();
    let loaded = Loaded::new("_L", 64);
    let events = loaded.datapath().events().unwrap();
    let wire = Wire::new("loses");
    // A queue of ten packets.
    wire.limit("20mbit", 15_000);
    let name = loaded.options.name_of(Algorithm::Cubic);
    let server = wire.serve(&name, 7002, BYTES, 1);
    let client = wire.fetch_all(7002);
    assert_eq!(client.join().unwrap(), BYTES);
    server.join().unwrap();
    let ended = wait_for("its end", || {
        let events = events.take().unwrap();
        events.into_iter().find(|event| matches!(event.kind, EventKind::Close(_)))
    });
    let EventKind::Close(totals) = ended.kind else { panic!("{ended:?}") };
    let lost = totals.lost.ratio(totals.sent);
    assert!(lost > 0.0, "{totals:?}");
    // 12 MB at 20 Mbit/s.
    assert!((3.0..6.0).contains(&totals.busy.as_secs_f64()), "{totals:?}");
}
