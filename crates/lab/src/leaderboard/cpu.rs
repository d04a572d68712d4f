//! What an acknowledgement costs, scheme by scheme.
//!
//! Every scheme gets the same packets and acknowledgements by the callbacks of a QUIC stack
//! ([`trimtab_stack::Path`]), without a network in between, so that the processor does nothing else. The
//! path's rate goes up and down between 20 and 30 Mbit/s, and one packet in 500 is lost. The cost includes
//! the adapter's own account of packets and the scheme's steering. Times of one machine say little on
//! another, so a scheme is compared with the reference in the same round.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use trimtab_plugin::PluginError;
use trimtab_stack::units::{Bytes, Duration as Span};
use trimtab_stack::{Config, Pacing, Paths, SharedPath, Stack, Traits};
use trimtab_steer::scheme::{PluginKind, Scheme, SchemeKind};

use super::REFERENCE;
use crate::run::pool::{INTERRUPTED, Interrupted};
use crate::run::prepare::{PrepareError, Prepared, prepare};
use crate::run::stack;
use crate::scenario::{AppKind, AppSettings, Scenario, ScenarioError};
use crate::stats::Sorted;

/// Packets of a round: half a minute of the path, in which Floo's policy (every 12 s) and Muses' choice
/// of a tree (every 10 s) decide more than once.
const PACKETS: u64 = 60_000;
/// In flight at all times.
const WINDOW: u64 = 100;
/// One in so many packets is lost.
const LOSS_EVERY: u64 = 500;
/// The spacing of acknowledgements in µs: at least this, and up to half as much again.
const SPACING_US: u64 = 400;
/// Packets from the highest rate of the path to the lowest.
const SWING: u64 = 1000;
/// A packet, as the path's MTU.
const MTU: u16 = 1500;

/// What an acknowledgement costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuRow {
    /// The scheme.
    pub cc: String,
    /// Processor time of an acknowledgement and the packet that it lets out, the median over rounds.
    pub ns: f64,
    /// The same over the reference's of the same round, the median over rounds.
    pub ratio: f64,
    /// The lowest and the highest of these ratios.
    pub range: [f64; 2],
}

/// Why nothing was timed.
#[derive(Debug, thiserror::Error)]
pub enum CpuError {
    /// A scheme cannot be prepared.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A scheme cannot be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// An algorithm from outside failed.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// A stack that paces by the algorithm's rate, and has no packets of its own.
#[derive(Clone, Debug)]
enum Bare {}

struct BareFactory(Paths);

impl From<Paths> for BareFactory {
    fn from(paths: Paths) -> Self {
        Self(paths)
    }
}

impl Stack for Bare {
    type Factory = BareFactory;
    const TRAITS: &'static Traits = &Traits { pacing: Pacing::ByRate, own: "none" };
}

/// Times the schemes in `rounds` rounds, in each of which every scheme has a turn; one more round
/// warms up. The reference runs whether it is among them or not. A Python plug-in runs in a process
/// of its own, whose time is not this one's: it is prepared, so that a wrong one is found here, and
/// has no row.
///
/// # Errors
/// A scheme cannot be prepared, an algorithm from outside fails, or the user asked to stop.
pub fn measure(schemes: &[Scheme], rounds: usize) -> Result<Vec<CpuRow>, CpuError> {
    let mut cc = schemes.to_vec();
    if !cc.iter().any(|scheme| scheme.label() == REFERENCE) {
        cc.extend(REFERENCE.parse::<Scheme>());
    }
    let prepared = prepare(&scenario(cc).plan()?)?;
    let schemes: Vec<&Scheme> = prepared.plan.scenario.cc.iter().filter(|cc| is_here(cc)).collect();
    let mut costs = vec![Vec::with_capacity(rounds); schemes.len()];
    for round in 0..=rounds {
        for turn in 0..schemes.len() {
            if INTERRUPTED.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Interrupted.into());
            }
            // Nobody is first in every round.
            let index = (turn + round) % schemes.len();
            let cost = cost(&prepared, schemes[index], round as u64);
            prepared.check_plugs()?;
            if round > 0 {
                costs[index].push(cost);
            }
        }
    }
    let reference = schemes.iter().position(|scheme| scheme.label() == REFERENCE).unwrap_or(0);
    let row = |(scheme, own): (&&Scheme, &Vec<f64>)| {
        let ratios = own.iter().zip(&costs[reference]).map(|(own, reference)| own / reference);
        let ratios = Sorted::new(ratios);
        let median = |of: &Sorted| of.percentile(50.0).unwrap_or(0.0);
        CpuRow {
            cc: scheme.label().to_owned(),
            ns: median(&Sorted::new(own.iter().copied())),
            ratio: median(&ratios),
            range: [0.0, 100.0].map(|percent| ratios.percentile(percent).unwrap_or(0.0)),
        }
    };
    Ok(schemes.iter().zip(&costs).map(row).collect())
}

/// Whether this process runs all of the scheme.
fn is_here(scheme: &Scheme) -> bool {
    match scheme.kind().governing() {
        SchemeKind::Plugin(settings) => settings.kind != PluginKind::Python,
        _ => true,
    }
}

/// What the schemes are prepared by: its link carries nothing.
fn scenario(cc: Vec<Scheme>) -> Scenario {
    let link = "constant:24Mbit/s".parse();
    let app = AppKind::named("download").map(AppSettings::new);
    Scenario {
        cc,
        traces: link.into_iter().collect(),
        app: app.into_iter().collect(),
        ..Scenario::default()
    }
}

/// Nanoseconds of this thread per packet of a connection of the scheme.
fn cost(prepared: &Prepared, scheme: &Scheme, seed: u64) -> f64 {
    let epoch = Instant::now();
    let (config, _): (Config<Bare>, _) =
        stack::config(scheme, &prepared.apps[0], prepared, (seed, epoch));
    let (factory, handle) = config.connection();
    let path = factory.0.build(epoch, MTU);
    let times = times(epoch);
    let before = thread_time();
    run(&path, &times);
    let spent = thread_time().saturating_sub(before);
    drop(handle);
    spent.as_nanos() as f64 / PACKETS as f64
}

/// When each packet leaves, which is when the acknowledgement of the one a window before it arrives.
fn times(epoch: Instant) -> Vec<Instant> {
    let mut at = epoch;
    let spacing = |n: u64| {
        let phase = n % (2 * SWING);
        let rise = phase.min(2 * SWING - phase);
        Duration::from_micros(SPACING_US + SPACING_US * rise / (2 * SWING))
    };
    let next = |n| {
        at += spacing(n);
        at
    };
    (0..PACKETS + WINDOW).map(next).collect()
}

/// All packets of a round. A lost one is found by the acknowledgement of the next (RFC 9002 §6.1).
fn run(path: &SharedPath, times: &[Instant]) {
    let is_lost = |number: u64| number % LOSS_EVERY == LOSS_EVERY - 1;
    for (number, &now) in (0_u64..).zip(times) {
        if let Some(acked) = number.checked_sub(WINDOW)
            && !is_lost(acked)
        {
            let sent = times[acked as usize];
            let mut path = path.lock();
            let rtt = Span::from_nanos((now - sent).as_nanos() as u64);
            path.on_acked(now, sent, acked, rtt);
            path.on_end_acks(now, false);
            if let Some(before) = acked.checked_sub(1).filter(|&before| is_lost(before)) {
                path.on_packet_lost(now, before);
                path.on_losses(now, false);
            }
        }
        black_box(path.offer());
        path.on_sent(now, Bytes::new(MTU.into()), number);
    }
}

/// What this thread has used of the processors so far.
fn thread_time() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_goes_up_and_down_and_every_packet_is_accounted_for() {
        let epoch = Instant::now();
        let times = times(epoch);
        let spacing = |n: u64| times[n as usize] - times[n as usize - 1];
        assert_eq!(spacing(2 * SWING), Duration::from_micros(400), "30 Mbit/s");
        assert_eq!(spacing(SWING), Duration::from_micros(600), "20 Mbit/s");
        let (factory, handle) = Config::<Bare>::new("cubic").unwrap().connection();
        let path = factory.0.build(epoch, MTU);
        run(&path, &times);
        let metrics = handle.metrics().unwrap();
        let packets = |n: u64| Bytes::new(MTU.into()) * n;
        // The last that is lost is found by an acknowledgement that does not come any more.
        let lost = PACKETS / LOSS_EVERY;
        assert_eq!(metrics.sent, packets(PACKETS + WINDOW));
        assert_eq!(metrics.lost, packets(lost - 1));
        assert_eq!(metrics.delivered, packets(PACKETS - lost));
        assert_eq!(metrics.inflight, packets(WINDOW + 1));
    }

    /// The LSTM of Muses multiplies matrices every 10 ms, and NewReno adds a packet per window.
    #[test]
    fn a_network_costs_more_than_an_addition() {
        let schemes = ["newreno", "muses:lstm"].map(|cc| cc.parse().unwrap());
        let rows = measure(&schemes, 3).unwrap();
        let of = |cc: &str| rows.iter().find(|row| row.cc == cc).unwrap();
        assert_eq!(of("cubic").ratio, 1.0);
        assert_eq!(of("cubic").range, [1.0, 1.0]);
        assert!(of("muses:lstm").ratio > 1.5 * of("newreno").ratio, "{rows:?}");
        assert!(rows.iter().all(|row| row.range[0] <= row.ratio && row.ratio <= row.range[1]));
    }
}
