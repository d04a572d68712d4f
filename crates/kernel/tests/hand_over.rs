//! A datapath that is handed to who has no capability, on a real kernel; skipped, with the reason,
//! where it or the rights are missing.

mod common;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, capabilities, set_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use trimtab_kernel::{Algorithm, Datapath, EventKind, Former, Keeper, Towards};

use common::{Loaded, Wire, need_kernel, wait_for};

/// The user without rights of every Linux (`nobody`).
const NOBODY: u32 = 65_534;

/// Has done for it what takes capabilities, by the process that has some.
#[derive(Debug)]
struct Asks(Arc<dyn Keeper>);

impl Keeper for Asks {
    fn formers(&self) -> Vec<Former> {
        std::thread::scope(|scope| scope.spawn(|| self.0.formers()).join().unwrap())
    }

    fn former_slots(&self) -> Vec<OwnedFd> {
        Vec::new()
    }

    fn renew(&self) -> Option<String> {
        None
    }

    fn renew_soon(&self) {}
}

/// This thread alone is nobody from now on: the kernel keeps rights by thread.
fn become_nobody() {
    set_thread_groups(&[]).unwrap();
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_res_gid(gid, gid, gid).unwrap();
    set_thread_res_uid(uid, uid, uid).unwrap();
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).unwrap();
    assert_eq!(capabilities(None).unwrap(), none);
}

/// Who has the descriptors measures, turns knobs, gets events and finds those that are gone,
/// without any capability; what needs some is refused.
#[test]
fn who_has_the_descriptors_needs_no_capability() {
    need_kernel!();
    let loaded = Loaded::new("_h", 16);
    let wire = Wire::new("handover");
    let (handover, descriptors) = loaded.datapath().hand_over().unwrap();
    assert_eq!(handover.folder, loaded.options.folder);
    let keeper = Arc::new(Asks(loaded.datapath().keeper()));
    let fewer = descriptors.iter().take(3).map(|one| one.try_clone().unwrap()).collect();
    let refused = Datapath::take_over(handover.clone(), fewer, keeper.clone()).unwrap_err();
    assert!(refused.to_string().contains("3 descriptors"), "{refused}");
    let options = loaded.options.clone();
    let name = loaded.options.name();
    let version = loaded.datapath().version();
    let server = wire.serve(&name, 7411, 1 << 30, 1);
    let client = wire.fetch(7411, Duration::from_secs(2));
    wait_for("the connection", || loaded.flow(7411));
    std::thread::spawn(move || {
        become_nobody();
        Datapath::load(&options).unwrap_err();
        let datapath = Datapath::take_over(handover, descriptors, keeper).unwrap();
        assert_eq!((datapath.version(), datapath.formers()), (version, Vec::new()));
        let events = datapath.events().unwrap();
        let flow = datapath.flows().find(|flow| flow.identity().local.port() == 7411).unwrap();
        assert!((flow.set("delta", 0.25).unwrap() - 0.25).abs() < 0.01);
        assert!((flow.knob("delta").unwrap() - 0.25).abs() < 0.01);
        datapath.set_default_of(Algorithm::Cubic, "beta", 0.8).unwrap();
        let towards = Towards::new(Algorithm::Copa, Ipv4Addr::new(192, 0, 2, 0).into(), 24);
        datapath.set_towards(&towards, [("delta", 0.1)]).unwrap();
        assert_eq!(datapath.towards(), [towards]);
        datapath.remove_towards(&towards).unwrap();
        assert_eq!(datapath.towards(), []);
        // The walk finds the connection's socket, so nothing is gone.
        assert_eq!(datapath.reap().unwrap(), []);
        assert_eq!(datapath.stats().live, 1);
        assert_eq!(datapath.evict(&BTreeSet::new()), []);
        let mut opened = false;
        let id = flow.identity().id;
        wait_for("the events of the connection", || {
            let told = events.wait(Duration::from_millis(100)).unwrap();
            opened |= told.iter().any(|one| one.id == id && one.kind == EventKind::Open);
            let closed = |kind: &EventKind| matches!(kind, EventKind::Close(_));
            told.iter().any(|one| one.id == id && closed(&one.kind)).then_some(())
        });
        assert!(opened);
    })
    .join()
    .unwrap();
    assert!(client.join().unwrap() > 0);
    server.join().unwrap();
}
