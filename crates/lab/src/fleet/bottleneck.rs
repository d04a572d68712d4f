//! Connections over one link: one alone, or several with flows that nobody steers.

use trimtab_apps::{App, Application, Bulk, BulkConfig, ChunkRecord, Outcome, RequestRecord};
use trimtab_cc::Spec;
use trimtab_net::JitterConfig;
use trimtab_sim::{Control, Flow, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Duration, Time};

use super::connection::{Connection, PATIENCE};
use super::shared::Shared;

/// How often connections are looked at for their end.
const LOOK: Duration = Duration::from_millis(250);
/// How long the flows of others have been there when the first connection begins: slow start is
/// over in some ten round trips, and those of fleets are at most a tenth of a second or two.
const AHEAD: Duration = Duration::from_secs(2);

/// What came of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    pub(super) throughput_mbps: f64,
    pub(super) rtt_s: f64,
    pub(super) loss: f64,
    pub(super) request_time_s: f64,
    /// Of video; zero otherwise.
    pub(super) rebuffering: f64,
    pub(super) bitrate_mbps: f64,
}

/// What a flow of others got while the connections began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CrossCame {
    pub(super) throughput_mbps: f64,
    pub(super) rtt_s: f64,
    pub(super) loss: f64,
}

/// A link with the connections on it. The first one's link is it; each has a round-trip time of its
/// own.
pub(super) struct Bottleneck<'a> {
    pub(super) connections: Vec<Connection>,
    pub(super) shared: &'a Shared,
}

impl Bottleneck<'_> {
    /// Runs the connections, each with its algorithm; without one by a sender that sees the link.
    /// What came of each, and of each of the others.
    pub(super) fn run(&self, specs: &[Option<Spec>]) -> (Vec<Came>, Vec<CrossCame>) {
        let first = &self.connections[0];
        let cross = &self.shared.cross;
        let steered = self.connections.iter().zip(specs).map(|(connection, spec)| {
            flow(*spec, connection.client(), self.begins(connection), connection)
        });
        let others = cross.iter().map(|(_, spec)| {
            let bulk = App::Bulk(Bulk::new(&BulkConfig::default()));
            flow(Some(*spec), bulk, Time::ZERO, first)
        });
        let flows = steered.chain(others).collect();
        let mut world = World::new(&WorldConfig { links: vec![(first.link(), first.seed)], flows });
        let count = self.connections.len();
        let mut gone = Vec::new();
        if !cross.is_empty() {
            world.run_until(Time::ZERO + AHEAD);
            let before: Vec<Totals> = world.flows()[count..].iter().map(Totals::of).collect();
            world.run_until(world.now() + self.shared.within);
            let after = world.flows()[count..].iter().map(Totals::of);
            gone = before.iter().zip(after).map(|(b, a)| a.since(b, self.shared.within)).collect();
        }
        let last = self.connections.iter().map(|c| self.begins(c)).max().unwrap_or(Time::ZERO);
        let is_done = |world: &World| world.flows()[..count].iter().all(|f| f.app().is_finished());
        while !is_done(&world) && world.now() < last + PATIENCE {
            world.run_until(world.now() + LOOK);
        }
        let came = |(flow, connection): (&Flow, &Connection)| {
            Came::of(flow, self.begins(connection), world.now())
        };
        (world.flows().iter().zip(&self.connections).map(came).collect(), gone)
    }

    fn begins(&self, connection: &Connection) -> Time {
        let ahead = if self.shared.cross.is_empty() { Duration::ZERO } else { AHEAD };
        Time::ZERO + ahead + self.shared.within.mul_f64(connection.begins)
    }
}

/// A flow over the link, with the round-trip time of a connection.
fn flow(spec: Option<Spec>, app: App, start: Time, connection: &Connection) -> FlowConfig {
    let rtt = connection.rtt;
    FlowConfig {
        control: spec
            .map_or(Control::Omniscient, |spec| Control::Algorithm { spec, steerer: None }),
        resume: None,
        transport: Transport::quic(),
        app,
        start,
        stop: Time::MAX,
        forward: vec![0],
        reverse: Vec::new(),
        forward_delay: rtt.mul_f64(0.5).into(),
        reverse_delay: (rtt - rtt.mul_f64(0.5)).into(),
        jitter: JitterConfig::None,
        seed: connection.seed,
    }
}

/// What a flow had until a moment.
struct Totals {
    received: f64,
    packets: u64,
    dropped: u64,
    rtts: u64,
    rtt_sum_s: f64,
}

impl Totals {
    fn of(flow: &Flow) -> Self {
        let (sent, received) = (flow.sent(), flow.received());
        let rtts = sent.rtt.count();
        Self {
            received: received.goodput.get() as f64,
            packets: sent.packets,
            dropped: received.dropped,
            rtts,
            rtt_sum_s: sent.rtt.mean().as_secs_f64() * rtts as f64,
        }
    }

    fn since(self, before: &Self, time: Duration) -> CrossCame {
        let rtts = (self.rtts - before.rtts).max(1) as f64;
        let packets = (self.packets - before.packets).max(1) as f64;
        CrossCame {
            throughput_mbps: (self.received - before.received) * 8e-6 / time.as_secs_f64(),
            rtt_s: (self.rtt_sum_s - before.rtt_sum_s) / rtts,
            loss: (self.dropped - before.dropped) as f64 / packets,
        }
    }
}

impl Came {
    /// What came of a flow that began at `begun`.
    fn of(flow: &Flow, begun: Time, now: Time) -> Self {
        let (sent, received) = (flow.sent(), flow.received());
        let mut came = Self {
            rtt_s: sent.rtt.mean().as_secs_f64(),
            loss: received.dropped as f64 / sent.packets.max(1) as f64,
            ..Self::default()
        };
        let took = match flow.app().outcome(now) {
            Outcome::Requests(requests) => {
                let done = requests.first().and_then(RequestRecord::completion_time);
                let took = done.unwrap_or(PATIENCE);
                came.request_time_s = took.as_secs_f64();
                took
            }
            Outcome::Video(video) => {
                let watched = video.played + video.stall_time;
                if !watched.is_zero() {
                    came.rebuffering = video.stall_time.ratio(watched);
                }
                let chunks: Vec<_> =
                    video.chunks.iter().filter(|c| c.completed_at.is_some()).collect();
                let sum: f64 = chunks.iter().map(|c| c.bitrate.mbps()).sum();
                came.bitrate_mbps = sum / chunks.len().max(1) as f64;
                came.request_time_s = video.startup.as_secs_f64();
                // Of the time in which something was asked for.
                let busy = |c: &&ChunkRecord| Some(c.completed_at?.since(c.requested_at));
                chunks.iter().filter_map(busy).fold(Duration::ZERO, |sum, d| sum + d)
            }
            Outcome::Call(_) | Outcome::Endless => now.since(begun),
        };
        came.throughput_mbps = (received.goodput / took.max(Duration::from_micros(1))).mbps();
        came
    }
}

#[cfg(test)]
mod tests;
