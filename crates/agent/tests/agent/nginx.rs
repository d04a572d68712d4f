//! Programs as they are: nginx serves curl and a video player of our own through an emulated link, under an agent.
//!
//! Skipped, with the reason, where nginx or curl are missing; CI has to have them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use trimtab_agent::Standing;

use crate::common::{self, need_kernel, wait_for};
use crate::setup::Setup;
use crate::web::{LINK_MBPS, Site, need_programs, with_an_agent};

const PORT: u16 = 7131;
/// Bytes of the file for curl: 4 s of the link.
const FILE: usize = 6_000_000;
/// Bitrates of the video in kbit/s; a segment is a second.
const LADDER: [usize; 4] = [500, 1500, 3000, 6000];
const SEGMENTS: usize = 10;
/// A player asks for no more while it has this in store, and shows nothing before it has a segment.
const STORE_MAX: Duration = Duration::from_secs(3);

/// What a viewer has seen.
#[derive(Debug, Default)]
struct Seen {
    kbps: Vec<usize>,
    stalled: Duration,
}

/// A player as dash.js is in its simplest form: one connection, segment by segment, each of the highest bitrate below
/// four fifths of the throughput of the last ones.
fn play(server: Ipv4Addr) -> Seen {
    let stream = TcpStream::connect((server, PORT)).expect("connect");
    let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
    let mut stream = stream;
    let mut seen = Seen::default();
    let (mut store, mut throughput_kbps) = (Duration::ZERO, 0.0_f64);
    for _ in 0..SEGMENTS {
        if store >= STORE_MAX {
            std::thread::sleep(store - STORE_MAX + Duration::from_millis(1));
            store = STORE_MAX;
        }
        let affordable =
            LADDER.into_iter().rev().find(|kbps| *kbps as f64 <= 0.8 * throughput_kbps);
        let kbps = affordable.unwrap_or(LADDER[0]);
        let start = Instant::now();
        write!(stream, "GET /{kbps}.seg HTTP/1.1\r\nHost: video\r\n\r\n").expect("ask");
        let bytes = body(&mut reader);
        assert_eq!(bytes, kbps * 1000 / 8);
        let took = start.elapsed();
        let sample = bytes as f64 * 8.0 / 1000.0 / took.as_secs_f64();
        throughput_kbps =
            if throughput_kbps > 0.0 { 0.5 * throughput_kbps + 0.5 * sample } else { sample };
        if !seen.kbps.is_empty() {
            seen.stalled += took.saturating_sub(store);
            store = store.saturating_sub(took);
        }
        store += Duration::from_secs(1);
        seen.kbps.push(kbps);
    }
    seen
}

/// Reads an answer of HTTP; gives the length of what it brings.
fn body(reader: &mut BufReader<TcpStream>) -> usize {
    let mut length = 0;
    for (number, line) in reader.by_ref().lines().map(|line| line.expect("an answer")).enumerate() {
        assert!(number > 0 || line == "HTTP/1.1 200 OK", "{line}");
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.parse().expect("a length");
        }
    }
    std::io::copy(&mut reader.take(length as u64), &mut std::io::sink()).expect("the body");
    length
}

#[test]
fn nginx_serves_curl_and_a_player_through_a_link_under_the_agent() {
    need_kernel!();
    need_programs!("nginx", "curl");
    let setup = Setup::new("_t");
    let (mut topology, agent) = with_an_agent(&setup, PORT);
    let mut files = vec![("file.bin".to_owned(), vec![7; FILE])];
    files.extend(LADDER.map(|kbps| (format!("{kbps}.seg"), vec![1; kbps * 1000 / 8])));
    let _nginx = Site { port: PORT, files }.serve(&topology, setup.folder());
    let server = topology.server_address();

    let curl = topology.client().run(move || {
        Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--output", "/dev/null"])
            .args(["--write-out", "%{size_download} %{time_total}"])
            .arg(format!("http://{server}:{PORT}/file.bin"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("curl starts")
    });
    let flow = wait_for("decisions", || agent.flow(PORT).filter(|flow| flow.decisions > 8));
    assert_eq!((flow.standing, flow.rule.as_str()), (Standing::Steered, "video"), "{flow:?}");
    let output = curl.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    let (size, seconds) = told.split_once(' ').unwrap();
    assert_eq!(size, FILE.to_string());
    let mbps = FILE as f64 * 8e-6 / seconds.parse::<f64>().unwrap();
    assert!(mbps > 0.5 * LINK_MBPS && mbps < LINK_MBPS, "{mbps} Mbit/s of the link's {LINK_MBPS}");

    let seen = topology.client().run(move || play(server));
    assert_eq!(seen.kbps.len(), SEGMENTS);
    assert!(seen.stalled < Duration::from_millis(500), "{seen:?}");
    assert!(seen.kbps.iter().max() >= Some(&LADDER[2]), "the link holds more: {seen:?}");
    let status = agent.status().unwrap();
    let tally = &status.rules.iter().find(|rule| rule.rule == "video").unwrap().tally;
    assert!(tally.opened >= 2 && tally.decisions > 8, "{status}");
    topology.stop().unwrap();
}
