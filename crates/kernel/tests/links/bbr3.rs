//! BBRv3 in eBPF: Linux has none to compare it with, so it is compared with BBR.

use std::thread;
use std::time::Duration as StdDuration;

use trimtab_cc::Phase;
use trimtab_kernel::Algorithm;
use trimtab_net::LossConfig;

use crate::common::{self, Loaded, need_kernel, wait_for};
use crate::support::{PORT, bulk, flows, link, start, topology};

const TIME: StdDuration = StdDuration::from_secs(5);

/// What the draft promises: a full link, one that loses at random less than `loss_thresh` likewise,
/// and where the buffer is shallow, few losses after the start, where BBR loses on and on.
#[test]
fn bbr3_fills_a_link_and_loses_little_in_a_shallow_buffer() {
    need_kernel!();
    let loaded = Loaded::new("_3", 16);
    let name = |algorithm| loaded.datapath().name_of(algorithm);
    let [constant, lossy, shallow, first] = thread::scope(|scope| {
        [
            (link(24.0, 100), Algorithm::Bbr3),
            (link(24.0, 100).loss(LossConfig::Independent(0.01)), Algorithm::Bbr3),
            (link(24.0, 10), Algorithm::Bbr3),
            (link(24.0, 10), Algorithm::Bbr),
        ]
        .map(|(link, algorithm)| {
            let name = name(algorithm);
            scope.spawn(move || bulk(link, &name, 1, TIME))
        })
        .map(|run| run.join().expect("it ran"))
    });
    println!("{constant:?}\n{lossy:?}\nshallow {shallow:?}\nBBR shallow {first:?}");
    assert!(constant.goodput_mbps > 20.0, "{constant:?}");
    assert!(lossy.goodput_mbps > 15.0, "{lossy:?}");
    assert!(shallow.goodput_mbps > 12.0, "{shallow:?}");
    assert!(shallow.again_later < 0.5 * first.again_later, "{shallow:?}, BBR {first:?}");
}

/// Each phase comes up in the slot, ProbeRTT by knobs that are turned.
#[test]
fn bbr3_shows_its_phases_and_heeds_its_knobs() {
    need_kernel!();
    let loaded = Loaded::new("_4", 8);
    let mut topology = topology();
    start(&mut topology, link(24.0, 100));
    flows(&topology, &loaded.datapath().name_of(Algorithm::Bbr3), 1);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    assert_eq!(flow.identity().algorithm, "bbr3");
    let phase =
        |wanted| wait_for("the phase", || flow.sample().filter(|sample| sample.phase == wanted));
    phase(Phase::SlowStart);
    let steady = phase(Phase::Steady);
    let pacing = steady.pacing.expect("BBRv3 paces").mbps();
    assert!((15.0..40.0).contains(&pacing), "{steady:?}");
    assert_eq!(flow.set("probe_rtt_interval", 1.0).unwrap(), 1.0);
    assert_eq!(flow.set("probe_rtt_cwnd_gain", 0.25).unwrap(), 0.25);
    let probing = phase(Phase::ProbeRtt);
    // A quarter of the 40 packets that the path holds, and some that the machine's delays add.
    assert!(probing.window <= probing.mss * 20, "{probing:?}");
    assert_eq!(flow.set("probe_rtt_interval", 60.0).unwrap(), 60.0);
    phase(Phase::Steady);
}
