//! Algorithms that take over from each other while connections come and go, on a real kernel;
//! skipped, with the reason, where it or the rights are missing. (What a switch does to a transfer
//! is in `links/switching.rs`.)

mod common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use trimtab_cc::migrate::Switch;
use trimtab_kernel::{Algorithm, Datapath, unload_pins};

use common::{Loaded, Wire, need_kernel, wait_for};

const BYTES: u64 = 400_000;
const AT_ONCE: usize = 20;
const ROUNDS: usize = 3;

/// Asks every connection for the next algorithm, again and again, in full and in part.
fn stir(datapath: &Datapath, over: &AtomicBool) {
    for turn in 0_u32.. {
        if over.load(Relaxed) {
            return;
        }
        let how = if turn.is_multiple_of(3) { Switch::Part } else { Switch::Full };
        for flow in datapath.flows() {
            let to = match flow.algorithm() {
                Algorithm::Copa => Algorithm::Cubic,
                Algorithm::Cubic => Algorithm::Bbr,
                Algorithm::Bbr => Algorithm::Bbr3,
                _ => Algorithm::Copa,
            };
            // It may have ended meanwhile.
            let _ = flow.switch(to, None, how);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_that_switch_all_the_time_arrive_whole_and_leave_nothing() {
    need_kernel!();
    let loaded = Loaded::new("_e", 256);
    let wire = Wire::new("stir");
    wire.limit("100mbit", 100_000);
    let over = AtomicBool::new(false);
    let count = AT_ONCE * ROUNDS;
    let _server = wire.serve(loaded.datapath().name(), 7061, BYTES, count);
    let mut switches = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| stir(loaded.datapath(), &over));
        for _ in 0..ROUNDS {
            let fetch = |_| wire.fetch_all(7061);
            let clients: Vec<_> = (0..AT_ONCE).map(fetch).collect();
            std::thread::sleep(Duration::from_millis(300));
            switches += loaded
                .datapath()
                .flows()
                .filter_map(|f| f.switching())
                .map(|s| s.switches)
                .sum::<u32>();
            for client in clients {
                assert_eq!(client.join().unwrap(), BYTES);
            }
        }
        over.store(true, Relaxed);
    });
    println!("{switches} switches");
    assert!(switches > 20, "only {switches} switches");
    // Some kernels leave out hooks, `release` among them; see docs/concepts/ebpf-datapath.md.
    let mut reaped = 0;
    wait_for("the end of all", || {
        reaped += loaded.datapath().reap().unwrap().len();
        (loaded.datapath().stats().live == 0).then_some(())
    });
    println!("{reaped} of {count} slots were left");
    let stats = loaded.datapath().stats();
    assert_eq!(
        (stats.opened, stats.slotless, stats.lost_events),
        (count as u64, 0, 0),
        "{stats:?}"
    );
    assert_eq!(loaded.datapath().flows().count(), 0);
}

/// The other algorithm is gone from the kernel, so it cannot take over, and the one that runs goes on.
#[test]
fn what_the_kernel_refuses_changes_nothing() {
    need_kernel!();
    const ENOENT: i32 = 2;
    let loaded = Loaded::new("_g", 8);
    let wire = Wire::new("refused");
    wire.limit("20mbit", 50_000);
    let _server = wire.serve(loaded.datapath().name(), 7062, 4_000_000, 1);
    let client = wire.fetch_all(7062);
    let flow = wait_for("the slot", || loaded.flow(7062));
    unload_pins(&loaded.options.folder).unwrap();
    flow.switch(Algorithm::Cubic, None, Switch::Full).unwrap();
    let answer = || flow.switching().filter(|switching| switching.pending.is_none());
    let switching = wait_for("the answer", answer);
    assert_eq!((switching.switches, switching.refused), (0, Some(ENOENT)), "{switching:?}");
    assert_eq!(flow.algorithm(), Algorithm::Copa);
    flow.set("delta", 0.1).unwrap();
    wait_for("the knob", || (flow.sample()?.delta - 0.1).abs().lt(&1e-3).then_some(()));
    assert_eq!(client.join().unwrap(), 4_000_000);
}
