//! What comes and goes: connections by the thousand, the process that loaded, names and folders. On a real kernel;
//! skipped, with the reason, where it or the rights are missing.

mod common;

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};
use rustix::net::sockopt::set_tcp_congestion;
use trimtab_kernel::{Algorithm, Datapath, Error, EventKind, FlowId, Options, Origin, unload_pins};

use common::{A, Loaded, Wire, claim, need_kernel, wait_for};

fn available() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(path).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The names that the kernel does not have.
fn missing(options: &Options) -> Vec<String> {
    let available = available();
    let names = Algorithm::ALL.map(|algorithm| options.name_of(algorithm));
    names.into_iter().filter(|name| !available.contains(name)).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn ten_thousand_short_connections_leave_nothing() {
    need_kernel!();
    const CONNECTIONS: u64 = 10_000;
    let loaded = Loaded::new("_n", 256);
    let wire = Wire::new("short");
    let name = loaded.datapath().name().to_owned();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let server = wire.spawn("a", move || {
        let listener = TcpListener::bind((A, 7004)).unwrap();
        set_tcp_congestion(&listener, &name).unwrap();
        ready.send(()).unwrap();
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[7; 3000]).unwrap();
        }
    });
    is_ready.recv().unwrap();
    let client = wire.spawn("b", move || {
        let mut answer = Vec::new();
        for _ in 0..CONNECTIONS {
            answer.clear();
            TcpStream::connect((A, 7004)).unwrap().read_to_end(&mut answer).unwrap();
            assert_eq!(answer.len(), 3000);
        }
    });
    let events = loaded.datapath().events().unwrap();
    let (mut opened, mut closed) = (0, 0);
    let start = Instant::now();
    while closed < CONNECTIONS && start.elapsed() < Duration::from_secs(60) {
        for event in events.wait(Duration::from_millis(100)).unwrap() {
            match event.kind {
                EventKind::Open => opened += 1,
                EventKind::Active => panic!("nobody watches"),
                EventKind::Close(_) => closed += 1,
            }
        }
    }
    client.join().unwrap();
    server.join().unwrap();
    let stats = loaded.datapath().stats();
    assert_eq!((opened, closed), (CONNECTIONS, CONNECTIONS), "{stats:?}");
    assert_eq!((stats.live, stats.opened, stats.slotless), (0, CONNECTIONS, 0), "{stats:?}");
    assert_eq!(stats.lost_events, 0);
    assert_eq!(loaded.datapath().flows().count(), 0);
}

#[test]
fn connections_beyond_the_slots_run_with_the_defaults() {
    need_kernel!();
    let loaded = Loaded::new("_o", 2);
    loaded.datapath().set_default("delta", 0.05).unwrap();
    let wire = Wire::new("beyond");
    let _server = wire.serve(loaded.datapath().name(), 7005, 2_000_000, 5);
    wire.limit("100mbit", 100_000);
    let clients: Vec<_> = (0..5).map(|_| wire.fetch_all(7005)).collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), 2_000_000);
    }
    wait_for("the end of all", || (loaded.datapath().stats().live == 0).then_some(()));
    let stats = loaded.datapath().stats();
    // One that found no slot looks again, and may get one when another ends.
    assert!(stats.opened <= 5 && stats.opened + stats.slotless >= 5, "{stats:?}");
    assert!(stats.slotless >= 1, "all five were open at once: {stats:?}");
    // What was given back is used again.
    let _server = wire.serve(loaded.datapath().name(), 7006, 1000, 1);
    assert_eq!(wire.fetch_all(7006).join().unwrap(), 1000);
    assert_eq!(loaded.datapath().stats().opened, stats.opened + 1);
}

/// The socket option on a connection that is open already, and away from it again.
#[test]
fn an_open_connection_is_adopted_and_let_go() {
    need_kernel!();
    let loaded = Loaded::new("_p", 8);
    let wire = Wire::new("adopt");
    let name = loaded.datapath().name().to_owned();
    let (tell, hear) = std::sync::mpsc::channel();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let host = wire.spawn("a", move || {
        let listener = TcpListener::bind("[::1]:7007").unwrap();
        set_tcp_congestion(&listener, "cubic").unwrap();
        let mut client = TcpStream::connect("[::1]:7007").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut exchange = |server: &mut TcpStream| {
            server.write_all(&[1; 10_000]).unwrap();
            client.read_exact(&mut [0; 10_000]).unwrap();
        };
        exchange(&mut server);
        set_tcp_congestion(&server, &name).unwrap();
        let cookie = rustix::net::sockopt::socket_cookie(&server).unwrap();
        exchange(&mut server);
        tell.send(cookie).unwrap();
        wait.recv().unwrap();
        set_tcp_congestion(&server, "cubic").unwrap();
        tell.send(0).unwrap();
        exchange(&mut server);
    });
    let cookie = hear.recv_timeout(Duration::from_secs(5)).unwrap();
    let flow = loaded.flow(7007).expect("a slot");
    assert!(flow.identity().adopted);
    assert_eq!(flow.identity().local.to_string(), "[::1]:7007");
    assert_eq!(flow.cookie(), Some(cookie));
    let sample = flow.sample().unwrap();
    assert!(sample.totals.acked.get() >= 10_000, "of its whole life: {sample:?}");
    go_on.send(()).unwrap();
    hear.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(!flow.is_open());
    assert_eq!(loaded.datapath().stats().live, 0);
    host.join().unwrap();
}

#[test]
fn what_is_loaded_is_found_again_and_removed_whole() {
    need_kernel!();
    let loaded = Loaded::new("_r", 8);
    let name = loaded.datapath().name().to_owned();
    assert_eq!(loaded.datapath().origin(), Origin::Loaded);
    assert!(available().contains(&name));
    loaded.datapath().set_default("delta", 0.07).unwrap();

    let again = Datapath::load(&loaded.options).unwrap();
    assert_eq!(again.origin(), Origin::Adopted);
    assert!((again.default_knob("delta").unwrap().unwrap() - 0.07).abs() < 1e-4);

    let elsewhere =
        Options { folder: "/sys/fs/bpf/trimtab-test-_r-2".into(), ..loaded.options.clone() };
    let error = Datapath::load(&elsewhere).unwrap_err();
    assert!(matches!(&error, Error::NameTaken { name: taken, .. } if *taken == name), "{error}");
    assert!(!elsewhere.folder.exists(), "nothing stays of an attempt that failed");

    again.unload().unwrap();
    assert!(!available().contains(&name));
    assert!(!loaded.options.folder.exists());
    unload_pins(&loaded.options.folder).expect("twice does no harm");
}

/// Before Linux 6.4: the entry is gone, and the removal was killed before the file was.
#[test]
fn a_removal_that_was_killed_is_finished_by_the_next() {
    need_kernel!();
    let loaded = Loaded::new("_k", 8);
    let folder = &loaded.options.folder;
    for file in folder.read_dir().unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("ops_") {
            let ops = libbpf_rs::MapHandle::from_pinned_path(file.path()).unwrap();
            ops.delete(&0_u32.to_ne_bytes()).unwrap();
        }
    }
    unload_pins(folder).unwrap();
    assert!(!folder.exists());
    assert!(!available().contains(&loaded.datapath().name().to_owned()));
}

#[test]
fn options_that_make_no_sense_are_refused_before_anything_is_done() {
    for (suffix, slots) in [("_ab", 8), ("a/b", 8), ("_x", 0)] {
        let options = Options { suffix: suffix.to_owned(), slots, ..Options::default() };
        assert!(matches!(Datapath::load(&options), Err(Error::Option { .. })), "{options:?}");
    }
}

/// From one algorithm to the other on an open connection, as the holder of its socket may do.
#[test]
fn a_connection_changes_its_algorithm() {
    need_kernel!();
    let loaded = Loaded::new("_w", 8);
    let wire = Wire::new("switch");
    let names = Algorithm::ALL.map(|algorithm| loaded.datapath().name_of(algorithm));
    let [copa, cubic, bbr, ..] = names.clone();
    assert!(names.iter().all(|name| available().contains(name)));
    let (tell, hear) = std::sync::mpsc::channel();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let host = wire.spawn("a", move || {
        let listener = TcpListener::bind((A, 7010)).unwrap();
        set_tcp_congestion(&listener, &copa).unwrap();
        let mut client = TcpStream::connect((A, 7010)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for next in [&cubic, &bbr, &copa, &copa] {
            server.write_all(&[1; 100_000]).unwrap();
            client.read_exact(&mut [0; 100_000]).unwrap();
            tell.send(()).unwrap();
            wait.recv().unwrap();
            set_tcp_congestion(&server, next).unwrap();
        }
    });
    let mut before = None;
    let expected = [Algorithm::Copa, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Copa];
    for (turn, expected) in expected.iter().enumerate() {
        hear.recv_timeout(Duration::from_secs(5)).unwrap();
        let flow = loaded.flow(7010).expect("a slot");
        let sample = flow.sample().unwrap();
        assert_eq!(flow.algorithm(), *expected);
        assert_eq!(flow.identity().adopted, turn > 0);
        // What was sent is of the whole connection; the window is inherited.
        assert!(sample.totals.acked.get() >= 100_000 * (turn as u64 + 1), "{sample:?}");
        assert!(sample.window >= sample.mss * 2, "{sample:?}");
        if let Some(former) = before.replace(flow) {
            assert!(!former.is_open());
        }
        go_on.send(()).unwrap();
    }
    host.join().unwrap();
    wait_for("the end", || (loaded.datapath().stats().live == 0).then_some(()));
    assert_eq!(loaded.datapath().stats().opened, 4, "the last change was none");
}

/// A process that loads a datapath with so many slots and turns its knobs.
fn spawn_loader(folder: &str, suffix: &str, slots: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "loader_to_be_killed", "--nocapture"])
        .env("TRIMTAB_TEST_LOADER", folder)
        .env("TRIMTAB_TEST_SUFFIX", suffix)
        .env("TRIMTAB_TEST_SLOTS", slots.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the loader prints when it has turned a knob for the first time.
const TURNED: &str = "a knob is turned";

/// Not a test of its own: what the next ones kill.
#[test]
fn loader_to_be_killed() {
    let Ok(folder) = std::env::var("TRIMTAB_TEST_LOADER") else { return };
    let suffix = std::env::var("TRIMTAB_TEST_SUFFIX").unwrap();
    let slots = std::env::var("TRIMTAB_TEST_SLOTS").unwrap().parse().unwrap();
    let options = Options { folder: folder.into(), suffix, slots, ..Options::default() };
    let datapath = Datapath::load(&options).unwrap();
    let start = Instant::now();
    let mut turned = false;
    while start.elapsed() < Duration::from_secs(30) {
        for flow in datapath.flows() {
            if flow.set("delta", 0.03).is_ok() && !turned {
                turned = true;
                println!("{TURNED}");
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whenever it is killed, also while it loads or replaces what was there: the next one has the
/// programs and options that it asked for, and nothing is left in the end.
#[test]
fn a_loader_may_be_killed_at_any_moment() {
    need_kernel!();
    const MOMENTS: u32 = 12;
    let _claim = claim("_y");
    let folder = "/sys/fs/bpf/trimtab-test-_y";
    let options =
        Options { folder: folder.into(), suffix: "_y".to_owned(), slots: 8, ..Options::default() };
    unload_pins(&options.folder).unwrap();
    let start = Instant::now();
    Datapath::load(&options).unwrap();
    let took = start.elapsed();
    let mut seen = std::collections::BTreeSet::new();
    for moment in 0..MOMENTS {
        let mut loader = spawn_loader(folder, "_y", 16);
        // From before it begins until after it is done.
        std::thread::sleep(took * moment * 3 / (2 * MOMENTS));
        loader.kill().unwrap();
        loader.wait().unwrap();
        let datapath = Datapath::load(&options).unwrap_or_else(|e| panic!("after {moment}: {e}"));
        let (origin, version) = (datapath.origin(), datapath.version());
        seen.insert(match origin {
            Origin::Replaced(found) => format!("replaced layout {}, {}", found.layout, found.slots),
            other => format!("{other:?}"),
        });
        assert_eq!((version.slots, datapath.stats().slots), (8, 8), "after {moment}: {origin:?}");
        assert_ne!(version.programs, None, "after {moment}: {origin:?}, {version:?}");
        let files = files(&options.folder);
        assert!(!files.contains(&"next".to_owned()), "after {moment}: {origin:?}, {files:?}");
        assert_eq!(missing(&options), [""; 0], "after {moment}: {origin:?}");
        if moment % 4 == 0 {
            datapath.unload().unwrap();
        }
    }
    println!("{seen:?}");
    unload_pins(&options.folder).unwrap();
    assert!(!available().iter().any(|name| name.ends_with("_y")));
    assert!(!options.folder.exists());
}

/// Killed after it made what was to be and before it touched what is: that stays, and nothing of the
/// other holds memory for ever.
#[test]
fn what_a_killed_replacement_had_made_ready_is_gone_after_the_next_load() {
    need_kernel!();
    let loaded = Loaded::new("_F", 8);
    let folder = &loaded.options.folder;
    let next = folder.join("next");
    std::fs::create_dir(&next).unwrap();
    let mut slots = MapHandle::from_pinned_path(folder.join("tt_slots")).unwrap();
    slots.pin(next.join("tt_slots")).unwrap();
    assert_eq!(Datapath::load(&loaded.options).unwrap().origin(), Origin::Adopted);
    assert!(!next.exists());
}

/// As a first start leaves it that is killed between two renames, or a removal between two files.
#[test]
fn a_part_of_what_was_kept_is_made_whole_by_the_next() {
    need_kernel!();
    let loaded = Loaded::new("_G", 8);
    let folder = &loaded.options.folder;
    let but_control: Vec<_> = files(folder)
        .into_iter()
        .filter(|name| !["tt_control", "renewal"].contains(&name.as_str()))
        .filter(|name| !name.starts_with("link_") && !name.starts_with("ops_"))
        .collect();
    let single = ["tt_slots", "tt_models", "walk"].map(|name| vec![name.to_owned()]);
    for gone in single.into_iter().chain([but_control]) {
        for name in &gone {
            std::fs::remove_file(folder.join(name)).unwrap();
        }
        let datapath =
            Datapath::load(&loaded.options).unwrap_or_else(|e| panic!("without {gone:?}: {e}"));
        let origin = datapath.origin();
        assert_ne!(origin, Origin::Adopted, "without {gone:?}");
        assert_ne!(datapath.version().programs, None, "without {gone:?}: {origin:?}");
        assert_eq!(missing(&loaded.options), [""; 0], "without {gone:?}: {origin:?}");
        let files = files(folder);
        assert!(gone.iter().all(|name| files.contains(name)), "{gone:?}: {files:?}");
        assert!(!files.contains(&"next".to_owned()), "{gone:?}: {files:?}");
    }
    assert_eq!(Datapath::load(&loaded.options).unwrap().origin(), Origin::Adopted);
}

/// A registration is ended before its file goes: a removal that broke off there has left every file,
/// and that is not the whole.
#[test]
fn what_a_removal_has_begun_with_is_not_adopted() {
    need_kernel!();
    let loaded = Loaded::new("_H", 8);
    let folder = &loaded.options.folder;
    let obstacle = folder.join("obstacle");
    std::fs::create_dir(&obstacle).unwrap();
    unload_pins(folder).expect_err("it is no file");
    std::fs::remove_dir(&obstacle).unwrap();
    // Which files went before it came to the obstacle is the kernel's affair.
    let copa = loaded.options.name();
    if let Ok(link) = Link::open(folder.join("link_copa")) {
        // Not before Linux 6.11.
        if link.detach().is_ok() {
            assert_eq!(missing(&loaded.options), [copa]);
        }
    } else if let Ok(ops) = MapHandle::from_pinned_path(folder.join("ops_copa")) {
        ops.delete(&0_u32.to_ne_bytes()).unwrap();
        assert_eq!(missing(&loaded.options), [copa]);
    }
    let datapath = Datapath::load(&loaded.options).unwrap();
    assert_ne!(datapath.origin(), Origin::Adopted);
    assert_ne!(datapath.version().programs, None);
    assert_eq!(missing(&loaded.options), [""; 0]);
}

/// Who may open the maps may turn every knob: nobody but root.
#[test]
fn what_is_kept_is_roots_alone() {
    need_kernel!();
    let loaded = Loaded::new("_m", 8);
    let folder = &loaded.options.folder;
    let about = std::fs::metadata(folder).unwrap();
    assert_eq!((about.permissions().mode() & 0o777, about.uid()), (0o700, 0));
    let mut files = 0;
    for entry in folder.read_dir().unwrap() {
        let about = entry.unwrap().metadata().unwrap();
        assert_eq!((about.permissions().mode() & 0o077, about.uid()), (0, 0));
        files += 1;
    }
    assert_eq!(files, 8 + 2 + Algorithm::ALL.len(), "maps, the walks, registrations");
}

#[test]
fn a_killed_loader_leaves_transfers_and_knobs_as_they_are() {
    need_kernel!();
    let _claim = claim("_q");
    let folder = "/sys/fs/bpf/trimtab-test-_q";
    unload_pins(folder.as_ref()).unwrap();
    let mut loader = spawn_loader(folder, "_q", 8);
    let options =
        Options { folder: folder.into(), suffix: "_q".to_owned(), slots: 8, ..Options::default() };
    let names = Algorithm::ALL.map(|algorithm| options.name_of(algorithm));
    let loaded = || names.iter().all(|name| available().contains(name));
    // The verifier takes minutes on an emulated machine that is busy.
    let start = std::time::Instant::now();
    while !loaded() {
        assert_eq!(loader.try_wait().unwrap(), None, "the loader ended");
        assert!(start.elapsed() < Duration::from_secs(300), "the loader did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
    let wire = Wire::new("killed");
    wire.limit("50mbit", 200_000);
    let _server = wire.serve(&options.name(), 7008, 12_000_000, 1);
    let client = wire.fetch_all(7008);
    // A machine that stalls may let it come late.
    let mut printed = BufReader::new(loader.stdout.take().unwrap()).lines();
    assert!(printed.any(|line| line.unwrap().contains(TURNED)), "the loader turned no knob");

    loader.kill().unwrap();
    assert_eq!(loader.wait().unwrap().signal(), Some(9));
    std::thread::sleep(Duration::from_millis(200));
    let datapath = Datapath::load(&options).unwrap();
    assert_eq!(datapath.origin(), Origin::Adopted);
    let flow = datapath.flows().next().expect("the connection that was open");
    // Not what is in force, which is less while Copa competes.
    let delta = flow.knob("delta").unwrap();
    assert!((delta - 0.03).abs() < 1e-4, "the last knob stays, not {delta}");
    let before = flow.sample().unwrap().totals.acked;
    std::thread::sleep(Duration::from_millis(200));
    assert!(flow.sample().unwrap().totals.acked > before, "the transfer goes on");
    assert_eq!(client.join().unwrap(), 12_000_000);
    wait_for("the end", || (datapath.stats().live == 0).then_some(()));
    datapath.unload().unwrap();
    assert!(!available().contains(&options.name()));
}

/// A kernel that leaves out `release` is not at hand everywhere, so the slot of one connection gets
/// the number of another, which has no socket.
#[test]
fn a_slot_without_a_socket_is_taken_back_and_no_other() {
    need_kernel!();
    let loaded = Loaded::new("_r", 8);
    let wire = Wire::new("reap");
    let host = wire.spawn("a", move || {
        let datapath = loaded.datapath();
        let listener = TcpListener::bind("[::1]:7015").unwrap();
        set_tcp_congestion(&listener, datapath.name()).unwrap();
        // One that has sent something, and is quiet.
        let connect = || {
            let client = TcpStream::connect("[::1]:7015").unwrap();
            let (mut server, _) = listener.accept().unwrap();
            server.write_all(&[1; 1000]).unwrap();
            (&client).read_exact(&mut [0; 1000]).unwrap();
            let opened = datapath.stats().opened;
            let flow = datapath.flows().find(|flow| flow.id().0 == opened).unwrap();
            (flow, server, client)
        };
        let (first, second) = (connect(), connect());
        assert_eq!(datapath.reap().unwrap(), []);

        let slots = MapHandle::from_pinned_path(datapath.folder().join("tt_slots")).unwrap();
        let index = first.0.slot_number();
        let mut slot = slots.lookup(&index.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        // Its number is the first word.
        slot[..8].copy_from_slice(&1000_u64.to_ne_bytes());
        slots.update(&index.to_ne_bytes(), &slot, MapFlags::ANY).unwrap();
        assert_eq!(datapath.reap().unwrap(), [FlowId(1000)]);
        assert_eq!(datapath.reap().unwrap(), []);
        assert!(second.0.is_open() && datapath.stats().live == 1);

        // The next connection has the slot. When the socket that had it before closes, that is none of its business.
        let third = connect();
        assert_eq!(third.0.slot_number(), index);
        drop(first);
        drop((second.1, second.2));
        wait_for("the end of the second", || (!second.0.is_open()).then_some(()));
        assert!(third.0.is_open() && datapath.stats().live == 1);
        drop((third.1, third.2));
        wait_for("the end of the third", || (datapath.stats().live == 0).then_some(()));
    });
    host.join().unwrap();
}
