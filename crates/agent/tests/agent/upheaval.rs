//! Downloads go on while the agent is killed, upgraded and downgraded under them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use rustix::process::Signal;

use crate::assign::{rule_here, runs, start_in};
use crate::common::{self, A, Wire, need_kernel};
use crate::setup::{Agent, Setup};

const PORT: u16 = 7151;
/// `DOWNLOADS,INSTANTS` of the whole test, which `./dev upheaval` runs; without it a short one.
const VARIABLE: &str = "TRIMTAB_UPHEAVAL";
const SHORT: (u64, usize) = (60, 5);
/// At once.
const CLIENTS: u64 = 16;
const BYTES: usize = 300_000;
/// So long after its last packet no connection runs former programs.
const STALE: Duration = Duration::from_secs(60);

/// What a download has at each place, of its own.
fn byte(download: u64, place: usize) -> u8 {
    let word = (download << 32 | (place as u64 >> 3)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word.to_be_bytes()[place & 7]
}

/// Serves downloads: each client sends its number, and gets the bytes of that.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        std::thread::spawn(move || {
            let mut number = [0; 8];
            while stream.read_exact(&mut number).is_ok() {
                let download = u64::from_be_bytes(number);
                let bytes: Vec<u8> = (0..BYTES).map(|place| byte(download, place)).collect();
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
        });
    }
}

/// Asks for a download on a connection, and compares it.
fn fetch(stream: &mut TcpStream, download: u64) -> Result<(), String> {
    stream.write_all(&download.to_be_bytes()).map_err(|e| format!("{download}: ask: {e}"))?;
    let mut bytes = vec![0; BYTES];
    stream.read_exact(&mut bytes).map_err(|e| format!("{download}: read: {e}"))?;
    match (0..BYTES).find(|place| bytes[*place] != byte(download, *place)) {
        Some(place) => Err(format!("{download}: byte {place} is another one")),
        None => Ok(()),
    }
}

fn connect() -> Result<TcpStream, String> {
    let stream = TcpStream::connect(SocketAddr::from((A, PORT))).map_err(|e| e.to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(|e| e.to_string())?;
    Ok(stream)
}

/// What happens to the agent at one of the instants: it is killed, perhaps while it starts, or ended,
/// and one with the programs of another number of slots takes its place, which is an upgrade where
/// there are more and a downgrade where there are fewer.
fn shake(setup: &Setup, wire: &str, random: &mut Pcg64Mcg) -> Agent {
    let slots = [256, 1024, 4096][random.random_range(0..3)];
    let text = std::fs::read_to_string(setup.config()).expect("the configuration");
    let other = text.lines().map(|line| match line.starts_with("slots = ") {
        true => format!("slots = {slots}\n"),
        false => format!("{line}\n"),
    });
    std::fs::write(setup.config(), other.collect::<String>()).expect("write it");
    if random.random_bool(0.3) {
        // Killed at some moment of its start.
        let starting = crate::assign::spawn_in(wire, setup);
        std::thread::sleep(Duration::from_millis(random.random_range(0..1500)));
        drop(starting);
    }
    start_in(wire, setup)
}

#[test]
fn no_download_breaks_while_agents_come_and_go() {
    need_kernel!();
    let given = std::env::var(VARIABLE).ok();
    let (downloads, instants) = given.as_deref().map_or(SHORT, |given| {
        let parts = given.split_once(',').expect("DOWNLOADS,INSTANTS");
        (parts.0.parse().expect("a number"), parts.1.parse().expect("a number"))
    });
    let setup = Setup::new("_7");
    let wire = Wire::new("shake");
    wire.set_default("a", "reno");
    wire.limit("60mbit", 400_000);
    setup.configure("", &rule_here(PORT, "assign = true\nknobs = { delta = 0.2 }"));
    let mut agent = start_in("shake", &setup);
    let listener = wire.spawn("a", || TcpListener::bind((A, PORT)).unwrap()).join().unwrap();
    assert_eq!(runs(&listener), setup.algorithm());
    std::thread::spawn(move || serve(&listener));
    // It downloads once at the beginning, and once at the end: it has rested on former programs.
    let mut resting = wire.spawn("b", || connect().unwrap()).join().unwrap();
    fetch(&mut resting, u64::from(u32::MAX)).unwrap();

    static OVER: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicU64 = AtomicU64::new(0);
    // Each client downloads on a connection of its own, every third time on the one of before.
    let client = |client: u64| {
        wire.spawn("b", move || -> Result<(), String> {
            let mut kept = None;
            for round in 0.. {
                if OVER.load(Relaxed) {
                    break;
                }
                let mut stream = match kept.take().filter(|_| round % 3 != 0) {
                    Some(stream) => stream,
                    None => connect()?,
                };
                fetch(&mut stream, client << 16 | round)?;
                DONE.fetch_add(1, Relaxed);
                kept = Some(stream);
            }
            Ok(())
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let random = &mut Pcg64Mcg::seed_from_u64(23);
    let begun = Instant::now();
    let mut at_instants = 0;
    for _ in 0..instants {
        std::thread::sleep(Duration::from_millis(random.random_range(0..500)));
        let status = agent.status();
        at_instants += status.map_or(0, |status| status.programs.former.len());
        let signal = if random.random_bool(0.7) { Signal::KILL } else { Signal::TERM };
        agent.signal(signal);
        agent.wait();
        agent = shake(&setup, "shake", random);
    }
    while DONE.load(Relaxed) < downloads {
        std::thread::sleep(Duration::from_millis(10));
    }
    OVER.store(true, Relaxed);
    let broken: Vec<_> =
        clients.into_iter().filter_map(|client| client.join().unwrap().err()).collect();
    let done = DONE.load(Relaxed);
    println!(
        "{done} downloads during {instants} instants in {} s, {} broken; former programs met at an instant: {:.1}",
        begun.elapsed().as_secs(),
        broken.len(),
        at_instants as f64 / instants as f64,
    );
    assert_eq!(broken, Vec::<String>::new());
    if given.is_none() {
        return;
    }

    // One is open, and rests.
    let last = Instant::now();
    let former = || agent.status().map_or(usize::MAX, |status| status.programs.former.len());
    while former() > 0 {
        assert!(last.elapsed() < STALE, "{}", agent.status().expect("it answers"));
        std::thread::sleep(Duration::from_millis(200));
    }
    println!(
        "no connection on former programs {} s after the last packet",
        last.elapsed().as_secs()
    );
    fetch(&mut resting, u64::from(u32::MAX) - 1).unwrap();
}
