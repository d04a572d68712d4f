//! Links that fail: a transfer goes on when the fault is over.

use std::time::Duration;

use trimtab_kernel::Algorithm;
use trimtab_net::{LinkConfig, LossConfig};

use crate::common::{self, Loaded, need_kernel};
use crate::support::{flows, link, start, topology, until_full};

/// One connection of each algorithm, over a good link, a bad one and a good one again.
fn survives(suffix: &str, bad: &LinkConfig, time: Duration, at_most: Duration) {
    let loaded = Loaded::new(suffix, 8);
    super::muses::shipped(&loaded);
    std::thread::scope(|scope| {
        for algorithm in Algorithm::ALL {
            let name = loaded.datapath().name_of(algorithm);
            scope.spawn(move || {
                let mut topology = topology();
                start(&mut topology, link(12.0, 50));
                let received = flows(&topology, &name, 1).remove(0);
                until_full(&received, Duration::from_secs(5));
                topology.stop().unwrap();
                start(&mut topology, bad.clone());
                std::thread::sleep(time);
                topology.stop().unwrap();
                start(&mut topology, link(12.0, 50));
                let stalled = until_full(&received, at_most);
                println!("{name}: at full rate {stalled:.1?} after the end");
            });
        }
    });
}

#[test]
fn a_buffer_of_one_packet() {
    need_kernel!();
    survives("_1", &link(12.0, 1), Duration::from_secs(2), Duration::from_secs(4));
}

#[test]
fn thirty_percent_of_loss() {
    need_kernel!();
    let mut lossy = link(12.0, 50);
    lossy.loss = LossConfig::Independent(0.3);
    // Timeouts double up to some seconds under such a loss.
    survives("_3", &lossy, Duration::from_secs(2), Duration::from_secs(8));
}

/// TCP's timer doubles while nothing comes back: it tries again at most as long after the end as
/// the outage was. Then the rate has to be found again, for which there is as much time.
#[test]
fn an_outage_of_ten_seconds() {
    need_kernel!();
    let mut dead = link(12.0, 50);
    dead.loss = LossConfig::Independent(1.0);
    survives("_0", &dead, Duration::from_secs(10), Duration::from_secs(20));
}
