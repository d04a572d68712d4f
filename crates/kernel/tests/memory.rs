//! What a connection does for whose state the kernel has no memory. On a real kernel; skipped, with
//! the reason, where it or the rights are missing.

mod common;

use std::io::ErrorKind;
use std::time::Duration;

use trimtab_kernel::Algorithm;

use common::{Loaded, Wire, need_kernel, wait_for};

/// What a socket may have of the kernel's memory apart from its buffers; socket storage counts,
/// too. One byte is too little for any.
const LIMIT: &str = "/proc/sys/net/core/optmem_max";

/// Sets the limit of a namespace; where one holds for all (before Linux 6.8), that one. Gives what it
/// was.
fn set_limit(wire: &Wire, side: &'static str, value: &str) -> String {
    let value = value.to_owned();
    let work = move || {
        let before = std::fs::read_to_string(LIMIT)?;
        std::fs::write(LIMIT, &value).map(|()| before)
    };
    match wire.spawn(side, work.clone()).join().expect("thread") {
        Err(error) if error.kind() == ErrorKind::NotFound => work(),
        set => set,
    }
    .expect("set the limit")
}

/// No connection gets a slot. It runs Reno: it fills the link in congestion avoidance, and answers
/// losses, so that the queue of a few packets overflows now and then and not all the time. Before
/// this it went on with its first ten packets for ever.
#[test]
fn without_memory_every_algorithm_is_reno() {
    need_kernel!();
    let loaded = Loaded::new("_6", 64);
    // Or Copa takes over at once, for want of a model.
    loaded.datapath().set_default_of(Algorithm::Muses, "safe", 0.0).unwrap();
    let wire = Wire::new("memory");
    // 20 Mbit/s and 50 ms of queue.
    wire.limit("20mbit", 125_000);
    for (port, algorithm) in (7080..).zip(Algorithm::ALL) {
        let name = algorithm.name();
        // A machine that stalls may sleep until the transfer is over: then another one is tried.
        let under_way = (0..5).find_map(|attempt| {
            let port = port + 20 * attempt;
            let before = set_limit(&wire, "a", "1");
            let server = wire.serve(&loaded.datapath().name_of(algorithm), port, 8_000_000, 1);
            let client = wire.fetch_all(port);
            // On a machine that stalls the connection may take its time to open.
            wait_for("the connection", || (!wire.transport(port).is_empty()).then_some(()));
            std::thread::sleep(Duration::from_secs(2));
            let stats = loaded.datapath().stats();
            let info = wire.transport(port);
            set_limit(&wire, "a", before.trim());
            info.contains(" notsent:").then_some((port, server, client, stats, info))
        });
        let (port, server, client, stats, info) = under_way.expect("a transfer under way");
        assert_eq!(stats.live, 0, "{name} has memory");
        println!("{name}: {info}");
        let number = |field: &str| {
            let rest = info.split_once(field).map(|(_, rest)| rest).unwrap_or_default();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().ok()
        };
        // The queue holds 82 packets: Reno is between half of that and all.
        let window = number(" cwnd:").expect("a window");
        assert!((30..=200).contains(&window), "{name}: {window} packets in {info}");
        let threshold = number(" ssthresh:").expect("a threshold, since losses were answered");
        assert!((2..=120).contains(&threshold), "{name}: {threshold} packets in {info}");
        // There is memory again: the next acknowledgement takes it.
        wait_for("the slot", || loaded.flow(port));
        assert_eq!(loaded.flow(port).unwrap().algorithm(), algorithm);
        assert_eq!(client.join().unwrap(), 8_000_000);
        server.join().unwrap();
        wait_for("the end", || (loaded.datapath().stats().live == 0).then_some(()));
    }
}
