//! Our GCC next to libwebrtc's, on what Chromium's sender heard on emulated links: the same packets,
//! feedback and probes go in, and the targets are compared.
//!
//! `tests/libwebrtc/record.py` makes such recordings. Times in them are whole milliseconds, and those
//! of sending are when the pacer let go of a packet, not when the socket sent it. The detector sees
//! spans of that size: an overuse comes a feedback earlier or later, and all after it differs. So
//! each recording is played twice, with our detector and with what libwebrtc's said.

use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::string::String;
use std::vec::Vec;
use std::{array, println};

use flate2::read::GzDecoder;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::Gcc;
use super::trend::Usage;
use crate::{Ack, Arrival, Config, CongestionControl, Feedback, Sent};

/// What libwebrtc counts beyond an RTP packet: IPv4 and UDP.
const OVERHEAD: u64 = 20 + 8;
/// Rates that agree are within this share of libwebrtc's.
const CLOSE: f64 = 0.1;

/// A packet in flight.
#[derive(Clone, Copy)]
struct Flying {
    number: u16,
    sent_at: Time,
    bytes: Bytes,
    /// libwebrtc's probe, counted from 0.
    probe: Option<usize>,
}

/// A probe of libwebrtc that is being sent, in bursts of packets (`pacing_controller.cc`
/// `ProcessPackets()`).
struct Probing {
    number: usize,
    /// What is to be sent: bursts, and bytes.
    bursts: u64,
    bytes: u64,
    /// Bytes of a burst, and of the one that is being sent.
    burst: u64,
    sent: u64,
}

impl Probing {
    /// A packet of it leaves. Whether it is the last (`bitrate_prober.cc` `ProbeSent()`).
    fn send(&mut self, bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.sent += bytes;
        if self.sent < self.burst {
            return false;
        }
        (self.sent, self.bursts) = (0, self.bursts.saturating_sub(1));
        self.bursts == 0 && self.bytes == 0
    }
}

/// How much agreed.
#[derive(Clone, Copy, Default)]
struct Score {
    agreed: f64,
    compared: f64,
}

impl Score {
    fn add(&mut self, agrees: bool, weight: f64) {
        self.compared += weight;
        self.agreed += if agrees { weight } else { 0.0 };
    }

    fn share(self) -> f64 {
        self.agreed / self.compared
    }
}

/// A replay of a recording.
struct Replay {
    gcc: Gcc,
    /// Whether what libwebrtc's detector said counts instead of ours.
    forced: bool,
    flying: VecDeque<Flying>,
    probing: VecDeque<Probing>,
    /// Probes of libwebrtc so far, and ours: the first of them is its first, and so on.
    probes: usize,
    own_probes: Vec<u32>,
    inflight: Bytes,
    delivered: Bytes,
    min_rtt: Duration,
    /// libwebrtc's target and detector, and since when.
    theirs: Option<Rate>,
    usage: Usage,
    since: Time,
    targets: Score,
    detectors: Score,
}

impl Replay {
    fn new(forced: bool) -> Self {
        Self {
            gcc: Gcc::new(&Config::with_mss(Bytes::new(1200), 1)),
            forced,
            flying: VecDeque::new(),
            probing: VecDeque::new(),
            probes: 0,
            own_probes: Vec::new(),
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            min_rtt: Duration::MAX,
            theirs: None,
            usage: Usage::Normal,
            since: Time::ZERO,
            targets: Score::default(),
            detectors: Score::default(),
        }
    }

    /// Counts the time since the last event.
    fn pass(&mut self, now: Time) {
        let passed = now.since(self.since);
        self.since = now;
        let (Some(theirs), Some(ours)) = (self.theirs, self.gcc.target()) else { return };
        let agrees = (ours.ratio(theirs) - 1.0).abs() <= CLOSE;
        self.targets.add(agrees, passed.as_secs_f64());
    }

    /// A line, and those after it.
    fn on_line(&mut self, line: &str, after: &[&str]) {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let time = word();
        let now = Time::from_millis(time.parse().unwrap());
        self.pass(now);
        match word() {
            "P" => {
                let [_id, rate, bursts, bytes] = array::from_fn(|_| word().parse::<u64>().unwrap());
                // `min_probe_delta`: 2 ms.
                let burst = rate / 8 * 2 / 1000;
                let number = self.probes;
                self.probing.push_back(Probing { number, bursts, bytes, burst, sent: 0 });
                self.probes += 1;
            }
            "S" => {
                let number = word().parse().unwrap();
                let bytes = Bytes::new(word().parse::<u64>().unwrap() + OVERHEAD);
                self.send(now, number, bytes);
            }
            "F" => {
                self.usage = usage_after(time, after).unwrap_or(self.usage);
                self.gcc.trend.forced = self.forced.then_some(self.usage);
                let told: Vec<(u16, Option<Time>)> = words.map(arrival).collect();
                self.hear(now, &told);
                self.detectors.add(self.gcc.trend.usage() == self.usage, 1.0);
            }
            "L" => self.theirs = Some(Rate::from_bits_per_sec(word().parse().unwrap())),
            _ => {}
        }
    }

    fn send(&mut self, now: Time, number: u16, bytes: Bytes) {
        let mut probe = None;
        if let Some(probing) = self.probing.front_mut() {
            probe = Some(probing.number);
            if probing.send(bytes.get()) {
                self.probing.pop_front();
            }
        }
        self.flying.push_back(Flying { number, sent_at: now, bytes, probe });
        self.inflight += bytes;
        self.gcc.on_sent(&Sent { now, bytes, inflight: self.inflight, app_limited: false });
        self.take_probes(now);
    }

    fn take_probes(&mut self, now: Time) {
        let probes = std::iter::from_fn(|| self.gcc.take_probe(now));
        self.own_probes.extend(probes.map(|probe| probe.id));
    }

    fn hear(&mut self, now: Time, told: &[(u16, Option<Time>)]) {
        let prior_inflight = self.inflight;
        let mut packets = Vec::new();
        for &(number, arrived_at) in told {
            let Some(at) = self.flying.iter().position(|p| p.number == number) else { continue };
            let Flying { sent_at, bytes, probe, .. } = self.flying[at];
            if arrived_at.is_some() {
                self.flying.remove(at);
                self.inflight -= bytes;
            }
            let probe = probe.and_then(|number| self.own_probes.get(number).copied());
            packets.push(Arrival { sent_at, arrived_at, bytes, probe, marked: false });
        }
        let newest = packets.iter().rfind(|packet| packet.arrived_at.is_some());
        let rtt = newest.map(|newest| now.since(newest.sent_at));
        if let (Some(newest), Some(rtt)) = (newest, rtt) {
            self.min_rtt = self.min_rtt.min(rtt);
            let acked = prior_inflight - self.inflight;
            self.delivered += acked;
            self.gcc.on_ack(&Ack {
                now,
                acked,
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: self.min_rtt,
                inflight: self.inflight,
                prior_inflight,
                delivered: self.delivered,
                newest_sent_at: newest.sent_at,
                rate: None,
                cwnd_limited: false,
                in_recovery: false,
            });
        }
        let inflight = self.inflight;
        self.gcc.on_feedback(&Feedback { now, packets: &packets, rtt, inflight });
        self.take_probes(now);
    }
}

/// A packet of a feedback: `NUMBER:US` or `NUMBER:-`.
fn arrival(text: &str) -> (u16, Option<Time>) {
    let (number, time) = text.split_once(':').unwrap();
    let arrived = time.parse::<u64>().ok().map(|us| Time::from_millis(us / 1000));
    (number.parse().unwrap(), arrived)
}

/// What libwebrtc's detector made of a feedback: the next line of that time with its word, if it had
/// one.
fn usage_after(time: &str, after: &[&str]) -> Option<Usage> {
    let same = after.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut same = same.take_while(|words| words[0] == time && words[1] != "F");
    same.find(|words| words[1] == "D").map(|words| match words[3] {
        "2" => Usage::Under,
        "3" => Usage::Over,
        _ => Usage::Normal,
    })
}

fn play(lines: &[&str], forced: bool) -> Replay {
    let mut replay = Replay::new(forced);
    for (i, line) in lines.iter().enumerate() {
        replay.on_line(line, &lines[i + 1..]);
    }
    replay
}

/// The shares that have to agree: targets with our detector, with libwebrtc's, and the detectors.
#[test]
fn targets_are_libwebrtcs() {
    println!("recording   target  with libwebrtc's detector  detector");
    let mut failed = Vec::new();
    for (name, least) in [
        ("step", [0.95, 0.95, 0.95]),
        ("constant", [0.95, 0.95, 0.95]),
        ("cellular", [0.95, 0.95, 0.95]),
        ("lossy", [0.3, 0.95, 0.95]),
        // A fifth is lost. Whether an observation has 249 or 250 ms depends on the times of sending,
        // and which candidate explains such losses best is close.
        ("heavy", [0.6, 0.6, 0.95]),
        ("capacity", [0.9, 0.95, 0.95]),
        ("wifi", [0.95, 0.95, 0.95]),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libwebrtc");
        let file = std::fs::File::open(folder.join(name).with_extension("txt.gz")).unwrap();
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let (own, forced) = (play(&lines, false), play(&lines, true));
        let shares = [own.targets, forced.targets, own.detectors].map(Score::share);
        let [target, given, detector] = shares.map(|share| share * 1e2);
        println!("{name:<11} {target:>5.1}% {given:>26.1}% {detector:>8.1}%");
        if shares.iter().zip(least).any(|(&share, least)| share < least) {
            failed.push((name, shares));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
