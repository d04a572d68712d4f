//! Other programs, or other options, take the place of those that are loaded: as after an upgrade
//! of the package, or a change of the configuration. On a real kernel; skipped, with the reason,
//! where it or the rights are missing.

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use rustix::fs::inotify;
use rustix::net::sockopt::set_tcp_congestion;
use trimtab_kernel::{
    Algorithm, Assigner, Datapath, Error, Options, Origin, Socket, open_connections,
};
use trimtab_units::Bytes;

use common::{Loaded, Wire, need_kernel, wait_for};

/// Two ends of a connection of this listener's.
fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, client)
}

fn exchange((server, client): &mut (TcpStream, TcpStream)) {
    server.write_all(&[1; 10_000]).unwrap();
    client.read_exact(&mut [0; 10_000]).unwrap();
}

/// A connection that exchanges all the time. One that rests for 30 s is given the present programs,
/// and an emulated machine may take as long to load them.
struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    fn keep(mut pair: (TcpStream, TcpStream)) -> Self {
        exchange(&mut pair);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            while !stopped.load(Relaxed) {
                exchange(&mut pair);
                std::thread::sleep(Duration::from_millis(100));
            }
        };
        Self { stop, thread: Some(std::thread::spawn(work)) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().map(JoinHandle::join).expect("once").expect("it exchanges");
    }
}

/// Changes bytes of the control that is kept, as another version would have written them.
fn write_control(folder: &std::path::Path, at: usize, bytes: &[u8]) {
    let control = MapHandle::from_pinned_path(folder.join("tt_control")).unwrap();
    let key = 0_u32.to_ne_bytes();
    let mut value = control.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    value[at..at + bytes.len()].copy_from_slice(bytes);
    control.update(&key, &value, MapFlags::ANY).unwrap();
}

/// The kernel's number of the map of slots that is kept.
fn slots_map(folder: &std::path::Path) -> u32 {
    let map = MapHandle::from_pinned_path(folder.join("tt_slots")).unwrap();
    libbpf_rs::MapInfo::new(map.as_fd()).unwrap().info.id
}

/// Slots are filled at two, and the administrator gives more, as the agent's log advises.
#[test]
fn other_options_take_effect_and_open_connections_go_on() {
    need_kernel!();
    let mut loaded = Loaded::new("_1", 2);
    let wire = Wire::new("options");
    let more = Options { slots: 1000, ..loaded.options.clone() };
    wire.spawn("a", move || {
        let name = loaded.datapath().name().to_owned();
        let listener = TcpListener::bind("[::1]:0").unwrap();
        set_tcp_congestion(&listener, &name).unwrap();
        let before: Vec<_> = (0..3).map(|_| Busy::keep(connect(&listener))).collect();
        assert_eq!((loaded.datapath().stats().live, loaded.datapath().stats().slotless), (2, 1));

        loaded.let_go();
        let datapath = Datapath::load(&more).unwrap();
        let Origin::Replaced(found) = datapath.origin() else { panic!("{:?}", datapath.origin()) };
        assert_eq!(found.slots, 2);
        assert_eq!((datapath.stats().slots, datapath.version().slots), (1000, 1000));
        assert_eq!(datapath.unreached(), None);
        let formers = datapath.formers();
        assert_eq!(formers.len(), 1, "{formers:?}");
        assert_eq!((formers[0].layout, formers[0].connections), (found.layout, 2));

        // What was open goes on with what it runs.
        assert_eq!(datapath.stats().live, 0);
        // The listener is the one of before. What it accepts has the new slots.
        let mut after: Vec<_> = (0..4).map(|_| connect(&listener)).collect();
        after.iter_mut().for_each(exchange);
        assert_eq!((datapath.stats().live, datapath.stats().slotless), (4, 0));

        // The former programs and maps go with their last connection.
        drop(before);
        wait_for("the end of the former programs", || datapath.formers().is_empty().then_some(()));
        assert_eq!(Datapath::load(&more).unwrap().origin(), Origin::Adopted);
        drop(after);
        wait_for("the end of all", || (datapath.stats().live == 0).then_some(()));
    })
    .join()
    .unwrap();
}

/// The package brings another program and the same layout: only the hash of what is loaded tells.
#[test]
fn a_changed_program_reaches_the_host() {
    need_kernel!();
    let loaded = Loaded::new("_2", 8);
    let ours = loaded.datapath().version().programs.unwrap();
    // The last word of the control.
    let end = MapHandle::from_pinned_path(loaded.options.folder.join("tt_control")).unwrap();
    let at = end.value_size() as usize - 8;
    write_control(&loaded.options.folder, at, &(ours ^ 1).to_ne_bytes());
    let before = slots_map(&loaded.options.folder);
    let datapath = Datapath::load(&loaded.options).unwrap();
    let Origin::Replaced(found) = datapath.origin() else { panic!("{:?}", datapath.origin()) };
    assert_eq!(found.programs, Some(ours ^ 1));
    assert_eq!(datapath.version().programs, Some(ours));
    assert_ne!(slots_map(&loaded.options.folder), before, "another object is in the kernel");
}

/// The package brings another layout, and a registration that this version does not know.
#[test]
fn another_layout_gives_way_and_the_names_are_there_throughout() {
    need_kernel!();
    let loaded = Loaded::new("_3", 8);
    let folder = loaded.options.folder.clone();
    write_control(&folder, 0, &4711_u32.to_ne_bytes());
    let kind = if folder.join("link_bbr").exists() { "link" } else { "ops" };
    // A version before had another algorithm, and no PCC.
    let other = Loaded::new("_5", 8);
    let theirs = folder.join(format!("{kind}_other"));
    std::fs::rename(other.options.folder.join(format!("{kind}_cubic")), &theirs).unwrap();
    let pcc = folder.join(format!("{kind}_vivace"));
    if kind == "ops" {
        MapHandle::from_pinned_path(&pcc).unwrap().delete(&[0; 4]).unwrap();
    }
    std::fs::remove_file(&pcc).unwrap();

    let over = AtomicBool::new(false);
    let name = loaded.datapath().name().to_owned();
    let picks = std::thread::scope(|scope| {
        let picker = scope.spawn(|| {
            let mut refused = 0;
            for turn in 0_u32.. {
                if over.load(Relaxed) {
                    return (turn, refused);
                }
                let socket = TcpListener::bind("[::1]:0").unwrap();
                refused += u32::from(set_tcp_congestion(&socket, &name).is_err());
                // An emulated machine has little time for both.
                std::thread::sleep(Duration::from_micros(100));
            }
            unreachable!("it is stopped before")
        });
        let datapath = Datapath::load(&loaded.options);
        over.store(true, Relaxed);
        let origin = datapath.unwrap().origin();
        let Origin::Replaced(found) = origin else { panic!("{origin:?}") };
        assert_eq!((found.layout, found.programs), (4711, None));
        picker.join().unwrap()
    });
    println!("{} picks, {} refused", picks.0, picks.1);
    // Before Linux 6.4 the one must go before the other comes.
    assert!(picks.0 > 10 && (picks.1 == 0 || kind == "ops"), "{picks:?}");
    assert!(!theirs.exists() && pcc.exists());
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list = std::fs::read_to_string(list).unwrap();
    for algorithm in Algorithm::ALL {
        let name = loaded.options.name_of(algorithm);
        assert_eq!(list.split_whitespace().filter(|one| *one == name).count(), 1, "{list}");
    }
}

fn available() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(path).unwrap().split_whitespace().map(str::to_owned).collect()
}

fn are_available(options: &Options) -> bool {
    let available = available();
    Algorithm::ALL.iter().all(|algorithm| available.contains(&options.name_of(*algorithm)))
}

/// The kernel takes the programs, and then somebody else has the name of one of them.
#[test]
fn a_name_that_is_taken_leaves_in_service_what_is() {
    need_kernel!();
    let loaded = Loaded::new("_8", 8);
    if loaded.options.folder.join("ops_bbr").exists() {
        eprintln!("skipped: before Linux 6.4 the one must go before the other comes");
        return;
    }
    let other = Loaded::new("_9", 8);
    let copa = other.options.name_of(Algorithm::Copa);
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Bbr) {
        let file = format!("link_{}", algorithm.name());
        std::fs::remove_file(other.options.folder.join(file)).unwrap();
    }
    wait_for("their end", || (!available().contains(&copa)).then_some(()));
    let before = loaded.datapath().version();

    let theirs = Options { suffix: "_9".to_owned(), ..loaded.options.clone() };
    let error = Datapath::load(&theirs).unwrap_err();
    let bbr = theirs.name_of(Algorithm::Bbr);
    assert!(matches!(&error, Error::NameTaken { name, .. } if *name == bbr), "{error}");
    wait_for("the end of those that were free", || (!available().contains(&copa)).then_some(()));
    assert!(are_available(&loaded.options), "{:?}", available());
    assert_eq!(loaded.datapath().version(), before);
    assert_eq!(Datapath::load(&loaded.options).unwrap().origin(), Origin::Adopted);
    // And those of other names take the place where all are free.
    drop(other);
    wait_for("the end of the other", || (!available().contains(&bbr)).then_some(()));
    let datapath = Datapath::load(&theirs).unwrap();
    assert!(matches!(datapath.origin(), Origin::Replaced(_)), "{:?}", datapath.origin());
    assert!(are_available(&theirs));
    wait_for("the end of ours", || (!are_available(&loaded.options)).then_some(()));
}

/// The names have passed to the new programs, and what is kept is partly theirs, as after a kill
/// between two renames. The names stay, and what ran before is known.
#[test]
fn a_replacement_that_broke_off_is_taken_up_by_the_next() {
    need_kernel!();
    let loaded = Loaded::new("_B", 8);
    let folder = loaded.options.folder.clone();
    let layout = loaded.datapath().version().layout;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_tcp_congestion(&listener, loaded.datapath().name()).unwrap();
    let _busy = Busy::keep(connect(&listener));
    let port = listener.local_addr().unwrap().port();
    let is_known = || {
        let (flows, beyond) = open_connections(&folder);
        assert_eq!(beyond, 0);
        flows.iter().filter(|flow| flow.identity().local.port() == port).count() == 1
    };
    assert!(is_known());
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let gone = inotify::WatchFlags::MOVED_FROM | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, &folder, gone).unwrap();
    for (slots, file) in (16..).zip(["tt_taken", "tt_models", "tt_events", "walk"]) {
        let more = Options { slots, ..loaded.options.clone() };
        // No file takes the place of a folder.
        std::fs::remove_file(folder.join(file)).unwrap();
        std::fs::create_dir(folder.join(file)).unwrap();
        let error = Datapath::load(&more).unwrap_err();
        assert!(matches!(error, Error::NoBpfFs { .. }), "{file}: {error}");
        assert!(folder.join("tt_control").exists() && are_available(&loaded.options), "{file}");
        assert!(is_known(), "{file}");
        std::fs::remove_dir(folder.join(file)).unwrap();

        let datapath = Datapath::load(&more).unwrap();
        let origin = datapath.origin();
        let Origin::Replaced(found) = origin else { panic!("{file}: {origin:?}") };
        assert_eq!(found.programs, None, "{file}");
        let formers = datapath.formers();
        let open: u64 = formers.iter().map(|former| former.connections).sum();
        assert_eq!(open, 1, "{file}: {formers:?}");
        assert!(formers.iter().all(|former| former.layout == layout), "{file}: {formers:?}");
        assert!(is_known(), "{file}");
        assert_eq!(datapath.former_flows().unwrap().len(), 1, "{file}");
    }
    // Nor was there a moment without a control.
    let mut buffer = [MaybeUninit::uninit(); 1 << 14];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let mut files = Vec::new();
    while let Ok(event) = events.next() {
        files.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    assert!(files.contains(&"walk".to_owned()), "this test's own removal: {files:?}");
    assert!(!files.contains(&"tt_control".to_owned()), "{files:?}");
}

/// The names have passed already, and what they have passed to never came to be what is kept.
#[test]
fn what_opens_after_a_replacement_broke_off_is_known_too() {
    need_kernel!();
    let loaded = Loaded::new("_E", 8);
    let folder = loaded.options.folder.clone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let known = |flows: Vec<trimtab_kernel::Flow>| {
        flows.iter().filter(|flow| flow.identity().local.port() == port).count()
    };
    for (round, file) in ["tt_taken", "tt_slots"].into_iter().enumerate() {
        let more = Options { slots: 16 + round as u32, ..loaded.options.clone() };
        // No file takes the place of a folder.
        let aside = folder.join("aside");
        std::fs::rename(folder.join(file), &aside).unwrap();
        std::fs::create_dir(folder.join(file)).unwrap();
        Datapath::load(&more).unwrap_err();
        std::fs::remove_dir(folder.join(file)).unwrap();
        std::fs::rename(&aside, folder.join(file)).unwrap();

        set_tcp_congestion(&listener, &more.name()).unwrap();
        let busy = Busy::keep(connect(&listener));
        assert_eq!(known(open_connections(&folder).0), 1, "{file}");
        let datapath = Datapath::load(&more).unwrap();
        assert_eq!(known(open_connections(&folder).0), 1, "{file}");
        assert_eq!(known(datapath.former_flows().unwrap()), 1, "{file}");
        drop(busy);
        wait_for("its end", || known(open_connections(&folder).0).eq(&0).then_some(()));
    }
}

/// Connections in memory of another layout are counted, since nobody can turn their knobs.
#[test]
fn connections_of_another_layout_are_counted() {
    need_kernel!();
    let loaded = Loaded::new("_C", 8);
    let folder = loaded.options.folder.clone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_tcp_congestion(&listener, loaded.datapath().name()).unwrap();
    let _busy = Busy::keep(connect(&listener));
    let open = || {
        let (flows, beyond) = open_connections(&folder);
        (flows.len(), beyond)
    };
    assert_eq!(open(), (1, 0));
    write_control(&folder, 0, &4711_u32.to_ne_bytes());
    assert_eq!(open(), (0, 1));
    // Replaced, it is a former one, and still not to be read.
    let _datapath = Datapath::load(&loaded.options).unwrap();
    assert_eq!(open(), (0, 1));
}

/// Sockets that listen are not renewed where the kernel cannot walk over them, and that is reported. To
/// look for what is loaded renews none.
#[test]
fn a_load_tells_what_it_did_not_renew_and_a_look_renews_nothing() {
    need_kernel!();
    let loaded = Loaded::new("_D", 8);
    std::fs::remove_file(loaded.options.folder.join("renewal")).unwrap();
    let found = Datapath::find(&loaded.options).unwrap().expect("it is loaded");
    assert_eq!(found.unreached(), None);
    let adopted = Datapath::load(&loaded.options).unwrap();
    let told = adopted.unreached().expect("it cannot have been done");
    assert!(told.contains("no walk over them (iter/tcp)"), "{told}");
}

/// A namespace whose default it is gives new connections the new programs, without anybody setting it again.
#[test]
fn the_default_of_a_namespace_is_renewed() {
    need_kernel!();
    let loaded = Loaded::new("_4", 8);
    let wire = Wire::new("renewed");
    wire.set_default("a", loaded.datapath().name());
    let more = Options { slots: 16, ..loaded.options.clone() };
    let datapath = Datapath::load(&more).unwrap();
    let pair = wire.spawn("a", || {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let mut pair = connect(&listener);
        exchange(&mut pair);
        pair
    });
    let pair = pair.join().unwrap();
    let found: Vec<_> = datapath.flows().map(|flow| *flow.identity()).collect();
    assert_eq!(found.len(), 2, "both ends have the default: {found:?}");
    drop(pair);
    let start = Instant::now();
    while datapath.stats().live > 0 && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Or the namespace would hold the programs. Reno is one that every namespace may have.
    wire.set_default("a", "reno");
}

/// To set what a connection runs already would mark it as one whose program chose that, and rules would
/// leave it alone from then on. With a slot or without one, and by the walk of another datapath, too.
#[test]
fn a_connection_that_rests_on_the_present_programs_is_not_marked_as_chosen() {
    need_kernel!();
    let loaded = Loaded::new("_I", 8);
    let other = Loaded::new("_J", 8);
    let wire = Wire::new("rested");
    let (name, folder) = (loaded.datapath().name().to_owned(), loaded.options.folder.clone());
    wire.set_default("a", &name);
    let open = || {
        let pair = wire.spawn("a", || {
            let listener = TcpListener::bind("[::1]:0").unwrap();
            let mut pair = connect(&listener);
            exchange(&mut pair);
            pair
        });
        pair.join().unwrap()
    };
    let connections = || -> Vec<Socket> {
        let folder = folder.clone();
        let all = wire.spawn("a", move || Assigner::load(&folder).unwrap().sockets().unwrap());
        all.join().unwrap().into_iter().filter(|socket| socket.remote.is_some()).collect()
    };
    let with_slots = open();
    loaded.datapath().set_slot_after(Algorithm::Copa, Bytes::new(1 << 30));
    let without = open();
    assert_eq!(loaded.datapath().stats().live, 2, "the ends of the first have slots");
    std::thread::sleep(Duration::from_secs(31));
    // The same walk, which is over when it returns.
    for walking in [&loaded, &other] {
        walking.datapath().evict(&BTreeSet::new());
    }
    let rested = connections();
    let are_ours = rested.iter().all(|socket| socket.algorithm == name);
    assert!(rested.len() == 4 && are_ours, "{rested:?}");
    assert!(rested.iter().all(|socket| !socket.chosen), "{rested:?}");

    // On former programs, the same walk does set it.
    let more = Options { slots: 16, ..loaded.options.clone() };
    let datapath = Datapath::load(&more).unwrap();
    let moved = connections();
    assert!(moved.len() == 4 && moved.iter().all(|socket| socket.chosen), "{moved:?}");
    drop((with_slots, without));
    wait_for("their end", || (datapath.stats().live == 0).then_some(()));
    // Or the namespace would hold the programs.
    wire.set_default("a", "reno");
}
