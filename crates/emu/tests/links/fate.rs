//! What becomes of packets: the emulator's logs, judged by the link in virtual time.

use std::io::Read;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use trimtab_emu::{Config, Direction, EmuError, Fate, Passage};
use trimtab_net::mahimahi_log::{Log, OPPORTUNITY, OVERHEAD, replay};
use trimtab_net::{Capacity, LossConfig, Trace};
use trimtab_units::{Bytes, Duration};

use crate::support::{bulk, constant_trace, delay_only, link, topology, trace};

const DELAY: Duration = Duration::from_millis(10);
const SECOND: StdDuration = StdDuration::from_secs(1);

/// The emulator's log, replayed by the link in virtual time, has the same departures and drops: the real time gave
/// the arrivals and nothing else.
#[test]
fn the_simulator_agrees_packet_by_packet() {
    let Some(mut topology) = topology() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut down = link(trace(constant_trace(4)), 30, DELAY);
    down.overhead = OVERHEAD;
    if let Capacity::Trace { opportunity, .. } = &mut down.capacity {
        *opportunity = OPPORTUNITY;
    }
    let log = Some(folder.path().to_owned());
    topology.start(&Config { down, up: delay_only(DELAY), seed: 1, log }).unwrap();
    bulk(&topology, SECOND);
    // What is under way arrives.
    thread::sleep(StdDuration::from_millis(100));
    let report = topology.stop().unwrap();

    let log = Log::load(&folder.path().join("down.log")).unwrap();
    let result = replay(&log, &log.link(Arc::new(constant_trace(4))));
    assert_eq!(result.mismatches.first(), None, "of {}", result.mismatches.len());
    assert_eq!(result.arrivals as u64, report.down.arrivals);
    assert_eq!(result.departures as u64, report.down.deliveries);
    assert_eq!(result.drops as u64, report.down.drops.queue_full);
    assert!(result.departures > 3000 && result.drops > 10, "the queue was full: {result:?}");

    // The rows of packets.csv are the same packets, with real times.
    let table = std::fs::read_to_string(folder.path().join("packets.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let of = |fate: &str| rows.iter().filter(|row| row[0] == "down" && row[1] == fate).count();
    assert_eq!((of("delivered"), of("queue-full")), (result.departures, result.drops));
    for row in rows.iter().filter(|row| row[1] == "delivered") {
        let [arrival, departure, delivery, queueing, one_way, late] =
            [3, 4, 5, 6, 7, 8].map(|column| row[column].parse::<f64>().unwrap());
        assert!((departure - arrival - queueing).abs() < 1e-5, "{row:?}");
        assert!((delivery - arrival - one_way).abs() < 1e-5, "{row:?}");
        assert!(late >= 0.0 && (queueing + 10.0 + late - one_way).abs() < 1e-5, "{row:?}");
    }
}

/// The observer gets the same fate of each packet as the link's own books have in the end.
#[test]
fn an_observer_sees_every_packet_with_its_headers() {
    let Some(mut topology) = topology() else { return };
    let seen = Arc::new(Mutex::new([0_u64; 3]));
    let eye = Arc::clone(&seen);
    let observer = move |passage: &Passage<'_>| {
        assert_eq!(passage.packet[0] >> 4, 4, "the packet begins with its IPv4 header");
        if passage.direction == Direction::Down {
            let mut counts = eye.lock().unwrap();
            match passage.fate {
                Fate::Arrived => counts[0] += 1,
                Fate::Delivered { at, departed } => {
                    assert!(passage.arrived < departed && departed + DELAY <= at, "{passage:?}");
                    counts[1] += 1;
                }
                Fate::Dropped { at } => {
                    assert!(at >= passage.arrived);
                    counts[2] += 1;
                }
            }
        }
    };
    let down = link(trace(constant_trace(2)), 10, DELAY);
    let config = Config { down, up: delay_only(DELAY), seed: 1, log: None };
    topology.start_observed(&config, Box::new(observer)).unwrap();
    bulk(&topology, SECOND);
    let down = topology.stop().unwrap().down;
    let told = *seen.lock().unwrap();
    assert_eq!(told, [down.arrivals, down.deliveries, down.drops.queue_full]);
    assert!(told[1] > 1000 && told[2] > 0, "{told:?}");
}

/// Sends datagrams of 1000 bytes of payload from the client to the server, one per `gap`; how many arrived.
fn datagrams(topology: &trimtab_emu::Topology, count: usize, gap: StdDuration) -> usize {
    let address = (topology.server_address(), 7000);
    let server = topology.server().run(move || UdpSocket::bind(address)).unwrap();
    server.set_read_timeout(Some(StdDuration::from_millis(500))).unwrap();
    let client = topology.client().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    let sender = thread::spawn(move || {
        for _ in 0..count {
            client.send_to(&[0; 1000], address).unwrap();
            thread::sleep(gap);
        }
    });
    let received = (0..count).take_while(|_| server.recv(&mut [0; 1500]).is_ok()).count();
    sender.join().unwrap();
    received
}

/// Losses are those of the seed, by number of the packet.
#[test]
fn random_losses_repeat_with_the_seed() {
    let Some(mut topology) = topology() else { return };
    let mut up = delay_only(DELAY);
    up.loss = LossConfig::Independent(0.2);
    let config = Config { down: delay_only(DELAY), up, seed: 5, log: None };
    let mut lost = Vec::new();
    for _ in 0..2 {
        topology.start(&config).unwrap();
        let received = datagrams(&topology, 1000, StdDuration::from_micros(100));
        let report = topology.stop().unwrap();
        assert_eq!(report.up.arrivals, 1000, "nothing else is on the link: {:?}", report.up);
        assert_eq!(received as u64 + report.up.drops.random_loss, 1000);
        lost.push(report.up.drops.random_loss);
    }
    assert_eq!(lost[0], lost[1]);
    // 200 are expected, with a standard deviation of 12.6.
    assert!((140..260).contains(&lost[0]), "{lost:?}");
}

#[test]
fn a_round_trip_takes_the_delay_of_both_directions() {
    let Some(mut topology) = topology() else { return };
    topology
        .start(&Config {
            down: delay_only(DELAY),
            up: delay_only(DELAY + DELAY),
            seed: 0,
            log: None,
        })
        .unwrap();
    let address = (topology.server_address(), 7);
    let server = topology.server().run(move || UdpSocket::bind(address)).unwrap();
    let echo = thread::spawn(move || {
        for _ in 0..20 {
            let (length, from) = server.recv_from(&mut [0; 100]).unwrap();
            server.send_to(&vec![0; length], from).unwrap();
        }
    });
    let client = topology.client().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let begin = Instant::now();
            client.send_to(&[0; 100], address).unwrap();
            client.recv(&mut [0; 100]).unwrap();
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    echo.join().unwrap();
    times.sort_by(f64::total_cmp);
    assert!(times[0] >= 30.0, "never early: {times:?}");
    assert!(times[10] < 31.0, "the median: {times:?}");
}

/// Nothing passes during an outage, and the transfer goes on after it.
#[test]
fn a_transfer_survives_an_outage() {
    let Some(mut topology) = topology() else { return };
    // 12 Mbit/s, but nothing from 0.5 s to 1.5 s; then for long.
    let times = (1..500).chain(1500..20_000).collect();
    let down = link(trace(Trace::from_opportunities(times).unwrap()), 50, DELAY);
    let folder = tempfile::tempdir().unwrap();
    let log = Some(folder.path().to_owned());
    topology.start(&Config { down, up: delay_only(DELAY), seed: 0, log }).unwrap();
    bulk(&topology, 4 * SECOND);
    topology.stop().unwrap();
    let table = std::fs::read_to_string(folder.path().join("packets.csv")).unwrap();
    let departures: Vec<f64> = table
        .lines()
        .filter(|line| line.starts_with("down,delivered,1500"))
        .map(|line| line.split(',').nth(4).unwrap().parse().unwrap())
        .collect();
    let between = |from: f64, to: f64| departures.iter().filter(|&&t| from <= t && t < to).count();
    assert_eq!(between(500.0, 1500.0), 0);
    // The sender's timer, doubled a few times, fires within a second; from then on the link is full (1000 a second).
    assert!(between(1500.0, 2600.0) > 0, "it began again");
    assert!(between(3000.0, 4000.0) > 800, "{}", between(3000.0, 4000.0));
}

#[test]
fn states_and_places_that_do_not_do() {
    let Some(mut topology) = topology() else { return };
    assert!(matches!(topology.stop(), Err(EmuError::State(_))));
    let config = Config { down: delay_only(DELAY), up: delay_only(DELAY), seed: 0, log: None };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let e = topology.start(&Config { log: Some(file.join("log")), ..config.clone() }).unwrap_err();
    assert!(matches!(e, EmuError::Log { .. }) && e.to_string().contains("--log"), "{e}");
    topology.start(&config).unwrap();
    assert!(matches!(topology.start(&config), Err(EmuError::State(_))));
    topology.stop().unwrap();
}

/// A packet is as large as the link's largest at most, whatever the kernel would like to hand over at once.
#[test]
fn packets_have_the_size_of_the_wire() {
    let Some(mut topology) = topology() else { return };
    let folder = tempfile::tempdir().unwrap();
    let log = Some(folder.path().to_owned());
    let down = link(trace(constant_trace(1)), 100, DELAY);
    topology.start(&Config { down, up: delay_only(DELAY), seed: 0, log }).unwrap();
    bulk(&topology, StdDuration::from_millis(300));
    topology.stop().unwrap();
    let mut table = String::new();
    std::fs::File::open(folder.path().join("packets.csv"))
        .unwrap()
        .read_to_string(&mut table)
        .unwrap();
    let largest =
        table.lines().skip(1).map(|l| l.split(',').nth(2).unwrap().parse().unwrap()).max();
    assert_eq!(largest.map(Bytes::new), Some(Bytes::new(1500)));
}
