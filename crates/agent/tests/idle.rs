//! The memory of idle connections, as the system counts it: with what the allocator keeps between
//! pieces that are in use. In a program of its own, whose memory nothing else changes.
#![expect(unsafe_code, reason = "one socket option has no safe interface")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use trimtab_agent::{Config, Core, Datapath, Link};
use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Trees;
use trimtab_cc::{Copa, Phase};
use trimtab_datapath::{
    Alarm, Algorithm, By, Error, Event, EventKind, FlowId, Identity, Switching, Totals, Towards,
};
use trimtab_kernel::KernelLink;
use trimtab_qoe::Factors;
use trimtab_steer::{KnobValues, Report, Responses};
use trimtab_units::{Bytes, Duration, Rate, Time};

const CONNECTIONS: u32 = 100_000;
/// Of these, connections that transfer something and are steered, before they are idle again.
const STEERED: u32 = 10_000;
/// Bytes of each that was never steered; the target is half a kilobyte.
const BAR: f64 = 500.0;
/// Bytes more of each that was: `why` has its last decision.
const BAR_STEERED: f64 = 250.0;
const STEP: Duration = Duration::from_millis(10);

/// What the kernel has of a connection.
#[derive(Debug)]
struct Slot {
    acks: AtomicU64,
    watched: AtomicBool,
    /// Bits of the values, in the order of Copa's knobs.
    knobs: [AtomicU64; Copa::KNOBS.len()],
}

impl Slot {
    fn new() -> Self {
        let knobs = std::array::from_fn(|i| AtomicU64::new(Copa::KNOBS[i].default.to_bits()));
        Self { acks: AtomicU64::new(0), watched: AtomicBool::new(false), knobs }
    }

    fn knob(&self, name: &str) -> Result<&AtomicU64, Error> {
        let unknown = || Error::Refused("no such knob".into());
        let place = Copa::KNOBS.iter().position(|knob| knob.name == name);
        place.map(|place| &self.knobs[place]).ok_or_else(unknown)
    }
}

/// A connection of 12 Mbit/s and 20 ms, as large in memory as one of the kernel's.
#[derive(Debug)]
struct Flow {
    slots: Arc<Vec<Slot>>,
    index: u32,
    identity: Identity,
    began: Option<Box<Time>>,
}

impl Flow {
    fn slot(&self) -> &Slot {
        &self.slots[self.index as usize]
    }
}

#[derive(Debug)]
struct Host {
    slots: Arc<Vec<Slot>>,
    /// The network namespace, which the rule is about.
    netns: u64,
}

impl Host {
    fn algorithm() -> Algorithm {
        let all = trimtab_kernel::Datapath::ALGORITHMS;
        *all.iter().find(|algorithm| algorithm.name() == "copa").expect("the datapath has Copa")
    }

    fn flow(&self, index: u32) -> Flow {
        let [_, a, b, c] = index.to_be_bytes();
        let identity = Identity {
            id: FlowId(u64::from(index) + 1),
            algorithm: "copa",
            cookie: None,
            netns_cookie: self.netns,
            cgroup: Some(1),
            local: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 443)),
            remote: SocketAddr::from((Ipv4Addr::new(10, a, b, c), 5000)),
            device: None,
            opened: Time::ZERO,
            adopted: false,
            towards: false,
        };
        Flow { slots: Arc::clone(&self.slots), index, identity, began: None }
    }

    fn event(&self, index: u32, kind: EventKind, at: Time) -> Event {
        Event { id: FlowId(u64::from(index) + 1), slot: index, at, kind }
    }
}

impl Datapath for Host {
    type Link = Flow;

    const ALGORITHMS: &'static [Algorithm] = trimtab_kernel::Datapath::ALGORITHMS;

    /// An event tells of each.
    fn links(&self) -> Vec<Flow> {
        Vec::new()
    }

    fn link(&self, slot: u32) -> Option<Flow> {
        Some(self.flow(slot))
    }

    fn add_trees(&self, _: &Trees<'_>) -> Result<f64, Error> {
        Err(Error::Closed)
    }

    fn set_towards(&self, _: &Towards, _: &[(String, f64)]) -> Result<(), Error> {
        Ok(())
    }

    fn remove_towards(&self, _: &Towards) -> Result<(), Error> {
        Ok(())
    }

    fn towards(&self) -> Vec<Towards> {
        Vec::new()
    }

    fn tell_apart(&self, _: By) -> Result<(), Error> {
        Ok(())
    }

    fn set_default(&self, _: Algorithm, _: &str, value: f64) -> Result<f64, Error> {
        Ok(value)
    }
}

impl Link for Flow {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn algorithm(&self) -> Algorithm {
        Host::algorithm()
    }

    fn cookie(&self) -> Option<u64> {
        None
    }

    fn is_closing(&self) -> bool {
        false
    }

    fn acks(&self) -> Option<u64> {
        Some(self.slot().acks.load(Relaxed))
    }

    fn watch(&mut self) -> bool {
        self.began = None;
        self.slot().watched.store(true, Relaxed);
        true
    }

    fn begin(&mut self, now: Time) -> bool {
        self.began = Some(Box::new(now));
        true
    }

    fn report(&mut self, now: Time, factors: Factors) -> Option<Report> {
        let interval = now.since(std::mem::replace(self.began.as_mut()?, now));
        let rate = Rate::from_mbps(12.0);
        let rtt = Duration::from_millis(40);
        Some(Report {
            now,
            interval,
            algorithm: "copa",
            sent: rate * interval,
            acked: rate * interval,
            lost: Bytes::ZERO,
            busy: interval,
            rtt_samples: 10,
            rtt_variance: 0.0,
            rtt_mean: Some(rtt),
            rtt_min: Some(rtt),
            rtt_max: Some(rtt),
            rtts: None,
            srtt: rtt,
            min_rtt: Duration::from_millis(20),
            delivery_rate: Some(rate),
            delivery_rate_any: Some(rate),
            window: rate * rtt,
            inflight: rate * rtt,
            mss: Bytes::new(1448),
            phase: Phase::Steady,
            knobs: KnobValues::NONE,
            states: None,
            responses: Responses::default(),
            factors,
        })
    }

    fn totals(&self) -> Option<Totals> {
        Some(Totals::default())
    }

    fn set(&self, knob: &str, value: f64) -> Result<f64, Error> {
        self.slot().knob(knob)?.store(value.to_bits(), Relaxed);
        Ok(value)
    }

    fn set_of(&self, _: Algorithm, _: &str, value: f64) -> Result<f64, Error> {
        Ok(value)
    }

    fn alarm(&self) -> Option<Alarm> {
        None
    }

    fn knob(&self, knob: &str) -> Result<f64, Error> {
        Ok(f64::from_bits(self.slot().knob(knob)?.load(Relaxed)))
    }

    fn switch(&self, _: Algorithm, _: Option<&[(&str, f64)]>, _: Switch) -> Result<(), Error> {
        Ok(())
    }

    fn switching(&self) -> Option<Switching> {
        None
    }
}

/// The cookie of this network namespace (`SO_NETNS_COOKIE`).
fn netns() -> u64 {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the kernel writes at most so many bytes to `cookie`, and how many to `length`.
    let code = unsafe {
        let to = (&raw mut cookie).cast();
        let file = socket.as_raw_fd();
        libc::getsockopt(file, libc::SOL_SOCKET, SO_NETNS_COOKIE, to, &raw mut length)
    };
    assert_eq!(code, 0, "Linux 5.14 or later");
    cookie
}

/// Memory of this process that no file backs, in bytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kilobytes.expect("Linux tells it") * 1024.0
}

/// So many seconds pass, in which something is acknowledged on the first connections.
fn pass(core: &mut Core<Host>, from: Time, seconds: u64, active: u32) -> Time {
    let end = from + Duration::from_secs(seconds);
    let mut now = from;
    while now < end {
        for index in 0..active {
            let slot = &core.datapath().slots[index as usize];
            slot.acks.fetch_add(1, Relaxed);
            if slot.watched.swap(false, Relaxed) {
                let event = core.datapath().event(index, EventKind::Active, now);
                core.on_event(&event, now);
            }
        }
        core.run(now);
        now += STEP;
    }
    core.sweep(now);
    now
}

#[test]
fn an_idle_connection_takes_half_a_kilobyte() {
    assert_eq!(size_of::<Flow>(), size_of::<KernelLink>());
    let rules = "[[rule]]\nname = \"web\"\nport = 443\nqoe = \"download\"\nsteer = \"mortise\"\n";
    let config = Config::parse(Path::new("agent.toml"), rules).expect("a configuration");
    let slots: Vec<Slot> = (0..CONNECTIONS).map(|_| Slot::new()).collect();
    let host = Host { slots: Arc::new(slots), netns: netns() };
    let mut core = Core::new(host, config, Time::ZERO);
    let before = memory();

    // Each says something short, and falls silent.
    let mut now = Time::ZERO;
    for index in 0..CONNECTIONS {
        let event = core.datapath().event(index, EventKind::Open, now);
        core.on_event(&event, now);
    }
    core.run(now);
    core.datapath().slots.iter().for_each(|slot| slot.acks.store(2, Relaxed));
    now = pass(&mut core, now, 30, 0);
    assert_eq!((core.len(), core.run(now)), (CONNECTIONS as usize, None), "all sleep");
    let idle = memory();
    let each = (idle - before) / f64::from(CONNECTIONS);
    assert!(each <= BAR, "{each:.0} bytes each");

    let reports = core.reports();
    now = pass(&mut core, now, 3, STEERED);
    let reports = (core.reports() - reports) as f64 / f64::from(STEERED);
    assert!(reports > 20.0, "{reports} reports of each");
    now = pass(&mut core, now, 30, 0);
    assert_eq!(core.run(now), None, "all sleep again");
    let more = (memory() - idle) / f64::from(STEERED);
    println!("{each:.0} bytes of an idle connection, {more:.0} more of one that was steered");
    assert!(more <= BAR_STEERED, "{more:.0} bytes more of each that was steered");
}
