//! The measured cells in the simulator: the same topology, the same traces, the same windows.
//!
//! ```text
//! sender --- delay D --- [loss] --- trace link ---> receiver
//!        <-- delay D ------------ trace link ---
//! ```
//!
//! Each of the four is a program of Mahimahi's that sleeps for whole milliseconds. The emulator's
//! opportunities carry 1504 bytes, a packet and the 4 bytes of its tunnel.

use std::sync::Arc;

use trimtab_apps::{App, Application, BulkConfig, DownloadConfig, Outcome, Workload};
use trimtab_cc::Spec;
use trimtab_net::mahimahi_log::OPPORTUNITY;
use trimtab_net::{Capacity, JitterConfig, LinkConfig, LossConfig, QueueConfig, Trace};
use trimtab_sim::{Control, FlowConfig, Histogram, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::data::{BulkRun, Emulator, Session};

/// What the emulator's tunnel adds to each packet.
const TUNNEL: Bytes = Bytes::new(4);
/// Mahimahi's programs. How late they woke up was measured with the recordings (README.md of the
/// ground truth): 80 us in the median, 200 us at the 99th percentile, 0.9 ms at most in the median
/// second. What a packet costs a program (`poll`, `read`, and `write` into a tunnel, in which the
/// kernel receives it) was not measured. 50 us was chosen by the cells at 48 Mbit/s and 20 ms: with
/// 10 us BBR has 17.8 ms of queue in four products, with 40, 50 and 60 us 20.5 to 21.0, and Linux
/// has 21.3.
const PROGRAM: JitterConfig = JitterConfig::Polled {
    late: Duration::from_micros(80),
    rarely: Duration::from_micros(200),
    each: Duration::from_micros(50),
};
/// How long Trimtab's emulator takes to pass a packet on: the median gap between two packets of a
/// burst, 5 us for acknowledgements and 4 us for data, in the logs of nine runs at 48 Mbit/s.
const EACH: Duration = Duration::from_micros(5);
/// The links of a world, by number: down and up, and the delay of each direction.
const DOWN: usize = 0;
const UP: usize = 1;
const DELAY_DOWN: usize = 2;
const DELAY_UP: usize = 3;
/// What the server puts before each response.
const FRAMING: u64 = 28;
/// How long a session may last before it counts as broken.
const SESSION_MAX: Duration = Duration::from_secs(400);

/// What one simulated run gave, in the units of the measurements.
#[derive(Clone, Debug)]
pub(crate) struct Outcomes {
    /// Per flow.
    pub(crate) goodput_mbps: Vec<f64>,
    pub(crate) queue_mean_ms: f64,
    pub(crate) retransmit_pct: f64,
    /// Request completion times, in the order of the requests; empty for bulk.
    pub(crate) rct_ms: Vec<f64>,
}

/// The algorithm as Linux has it.
pub(crate) fn spec(cca: &str) -> Option<Spec> {
    let name = match cca {
        "cubic" => "cubic:linux",
        "reno" => "newreno:linux",
        "bbr" => "bbr",
        _ => return None,
    };
    name.parse().ok()
}

fn link(trace: &Arc<Trace>, offset: Duration, queue: QueueConfig) -> LinkConfig {
    let capacity = Capacity::Trace { trace: trace.clone(), offset, opportunity: OPPORTUNITY };
    LinkConfig::new(capacity).queue(queue).overhead(TUNNEL)
}

/// What an emulator adds to the departures that the link decides on.
fn jitter(emulator: Emulator) -> JitterConfig {
    match emulator {
        Emulator::Mahimahi => PROGRAM,
        Emulator::Trimtab { late, .. } => JitterConfig::Burst { max: late, each: EACH },
    }
}

/// What `mm-loss` does with a run's probability.
pub(crate) fn random_loss(run: &BulkRun) -> LossConfig {
    if run.loss > 0.0 { LossConfig::Independent(run.loss) } else { LossConfig::None }
}

/// The links in the order of their numbers, each with random numbers of its own. Mahimahi's delays are programs, too.
fn links(
    down: LinkConfig,
    up: LinkConfig,
    delay: Duration,
    emulator: Emulator,
    seed: u64,
) -> Vec<(LinkConfig, u64)> {
    let wire = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(delay);
    let wire = if emulator == Emulator::Mahimahi { wire.jitter(PROGRAM) } else { wire };
    let jitter = jitter(emulator);
    let all = [down.jitter(jitter), up.jitter(jitter), wire.clone(), wire];
    all.into_iter().zip(0..).map(|(link, i)| (link, seed ^ i << 32)).collect()
}

/// The hosts of the recordings. Mahimahi's receivers sent one acknowledgement for 3.3 packets where
/// four arrive together. A timer of the host is as late as the emulator's, which ran on the same host.
fn transport(emulator: Emulator) -> Transport {
    let linux = Transport { ack_wait_least: Duration::ZERO, ..Transport::linux_tcp() };
    match emulator {
        Emulator::Mahimahi => linux,
        Emulator::Trimtab { late, acks_pairs } => {
            let ack_wait = if acks_pairs { Duration::ZERO } else { linux.ack_wait };
            Transport { ack_wait, timer_late: late, ..linux }
        }
    }
}

fn flow(spec: Spec, app: App, start: Time, emulator: Emulator, seed: u64) -> FlowConfig {
    FlowConfig {
        control: Control::Algorithm { spec, steerer: None },
        resume: None,
        transport: transport(emulator),
        app,
        start,
        stop: Time::MAX,
        forward: vec![DELAY_DOWN, DOWN],
        reverse: vec![UP, DELAY_UP],
        forward_delay: Duration::ZERO.into(),
        reverse_delay: Duration::ZERO.into(),
        jitter: JitterConfig::None,
        seed,
    }
}

/// A world of bulk flows and the time in it that the measurements call 0: the arrival of the first
/// data at the downlink, a delay up and a delay down after the first request.
pub(crate) fn bulk_world(
    run: &BulkRun,
    specs: &[Spec],
    trace: &Arc<Trace>,
    loss: LossConfig,
    seed: u64,
) -> (World, Time) {
    let delay = Duration::from_millis(u64::from(run.rtt_ms / 2));
    let buffer = QueueConfig::drop_tail_packets(run.buffer_packets);
    let down = link(trace, Duration::ZERO, buffer).loss(loss);
    let up = link(trace, Duration::ZERO, QueueConfig::UNLIMITED);
    let first = run.flow_starts_s.iter().copied().fold(f64::INFINITY, f64::min);
    let flows = specs.iter().zip(&run.flow_starts_s).enumerate().map(|(i, (&spec, &start_s))| {
        let start = Time::ZERO + Duration::from_secs_f64(start_s - first);
        let app = App::bulk(&BulkConfig::default());
        flow(spec, app, start, run.emulator, seed * 16 + i as u64)
    });
    let flows = flows.collect();
    let world =
        World::new(&WorldConfig { links: links(down, up, delay, run.emulator, seed), flows });
    (world, Time::ZERO + delay * 2 + Duration::from_millis(1))
}

/// Simulates a run of bulk flows.
pub(crate) fn bulk(
    run: &BulkRun,
    specs: &[Spec],
    trace: &Arc<Trace>,
    loss: LossConfig,
    seed: u64,
) -> Outcomes {
    let (mut world, zero) = bulk_world(run, specs, trace, loss, seed);
    let at = |s: f64| zero + Duration::from_secs_f64(s);
    world.run_until(at(run.window_s.0));
    let before = Snapshot::take(&world);
    world.run_until(at(run.window_s.1));
    let after = Snapshot::take(&world);
    world.run_until(at(run.duration_s));
    let seconds = run.window_s.1 - run.window_s.0;
    let goodput = after.goodput.iter().zip(&before.goodput);
    Outcomes {
        goodput_mbps: goodput.map(|(&a, &b)| (a - b).bits() / seconds / 1e6).collect(),
        queue_mean_ms: (after.queue_ms - before.queue_ms) / (after.packets - before.packets),
        retransmit_pct: retransmit_pct(&world, |sent| sent.packets),
        rct_ms: Vec::new(),
    }
}

/// Sums since the start of a world.
struct Snapshot {
    goodput: Vec<Bytes>,
    queue_ms: f64,
    packets: f64,
}

impl Snapshot {
    fn take(world: &World) -> Self {
        let waits = || world.flows().iter().map(|f| &f.received().queue_delay);
        let sum = |h: &Histogram| h.mean().as_millis_f64() * h.count() as f64;
        Self {
            goodput: world.flows().iter().map(|f| f.received().goodput).collect(),
            queue_ms: waits().map(sum).sum(),
            packets: waits().map(|h| h.count() as f64).sum(),
        }
    }
}

fn retransmit_pct(world: &World, of: impl Fn(&trimtab_sim::SendTotals) -> u64) -> f64 {
    let again: u64 = world.flows().iter().map(|f| f.sent().retransmits).sum();
    let all: u64 = world.flows().iter().map(|f| of(f.sent())).sum();
    100.0 * again as f64 / all.max(1) as f64
}

/// A world of one session of downloads.
pub(crate) fn download_world(
    session: &Session,
    spec: Spec,
    trace: &Arc<Trace>,
    delay: Duration,
    seed: u64,
) -> World {
    // The link's clock has whole milliseconds; the rest of the position is when the client starts.
    let offset = Duration::from_millis(session.trace_ms as u64);
    let start = Time::ZERO + (Duration::from_millis_f64(session.trace_ms) - offset);
    let buffer = QueueConfig::drop_tail_packets(session.buffer_packets);
    let both = || link(trace, offset, buffer);
    let links = links(both(), both(), delay, Emulator::Mahimahi, seed);
    let app = App::download(DownloadConfig::new(workload(session)));
    World::new(&WorldConfig {
        links,
        flows: vec![flow(spec, app, start, Emulator::Mahimahi, seed)],
    })
}

/// Simulates a session of downloads.
pub(crate) fn download(
    session: &Session,
    spec: Spec,
    trace: &Arc<Trace>,
    delay: Duration,
    seed: u64,
) -> Outcomes {
    let mut world = download_world(session, spec, trace, delay, seed);
    let step = Duration::from_secs(1);
    while !world.is_finished() && world.now() < Time::ZERO + SESSION_MAX {
        world.run_until(world.now() + step);
    }
    let flow = &world.flows()[0];
    let Outcome::Requests(records) = flow.app().outcome(world.now()) else { unreachable!() };
    let rct = |r: &trimtab_apps::RequestRecord| {
        r.completion_time().unwrap_or(SESSION_MAX).as_millis_f64()
    };
    let end = records.iter().filter_map(|r| r.completed_at).max().unwrap_or(world.now());
    let start = records.first().map_or(Time::ZERO, |r| r.sent_at);
    let goodput = flow.received().goodput.bits() / end.since(start).as_secs_f64() / 1e6;
    Outcomes {
        goodput_mbps: vec![goodput],
        queue_mean_ms: flow.received().queue_delay.mean().as_millis_f64(),
        retransmit_pct: retransmit_pct(&world, |sent| sent.packets),
        rct_ms: records.iter().map(rct).collect(),
    }
}

/// The requests at the times at which the measured client sent them, to the millisecond.
fn workload(session: &Session) -> Workload {
    let mut before = 0;
    let mut text = String::new();
    for request in &session.requests {
        let at = request.sent_ms.round() as u64;
        let size = u64::from(request.size_bytes) + FRAMING;
        text.push_str(&format!("{} {size}\n", at - before));
        before = at;
    }
    Workload::parse(&text).expect("sizes and gaps come from a measured workload")
}
