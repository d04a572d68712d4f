//! What is measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use trimtab_fleet_client::{Client, Role};
use trimtab_servers::{Disk, Servers};

use crate::load::{Edge, list, now_ms, report};
use crate::process::{Engine, Site};
use crate::{Cli, Figure};

/// Edges that send at a time when a rate is measured, and aggregates of each (the paper calculation's, too).
const EDGES: u64 = 64;
const AGGREGATES_OF_EDGE: u64 = 20;
/// Intervals of twenty minutes in a day: figures measured with short ones are converted to these.
const INTERVALS_PER_DAY: f64 = 72.0;
const INTERVAL_S: f64 = 1200.0;
/// The intervals of a fleet that is measured. A report teaches only what was in force in an
/// interval that really was, so they are short.
const SHORT: &str = "1s";
const SHORT_MS: u64 = 1000;
/// Intervals that many aggregates live through: the first makes them, the last is measured.
const INTERVALS: u64 = 4;
/// Intervals at the end of a long life that are measured.
const LAST: u64 = 12;
/// Intervals of the comparison, until much is known and after that.
const WARM: u64 = 24;
const LAST_COMPARED: u64 = 4;
/// Reports of a batch of many aggregates, and names of a question.
const BATCH: u64 = 200;
const NAMES: usize = 1000;
/// How long an engine that has nothing to do is watched.
const IDLE: Duration = Duration::from_secs(10);
/// Decisions whose delay is taken.
const DELAYS: u64 = 12;
/// No case takes longer.
const PATIENCE: Duration = Duration::from_secs(1200);

type Note<'a> = &'a mut dyn FnMut(Figure);

pub(crate) fn figure(name: impl Into<String>, value: f64, unit: &'static str) -> Figure {
    Figure { name: name.into(), value, unit }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Interval by interval: every aggregate is reported by an edge under the version in force, and decided on.
struct Fleet<'a> {
    site: &'a Site,
    edges: Vec<Edge>,
    /// The version in force of each aggregate.
    versions: Vec<u64>,
    client: Client,
    decided: i64,
    /// Decisions that changed a configuration.
    changed: u64,
}

impl<'a> Fleet<'a> {
    /// Edges at these engines, in turn.
    fn new(
        site: &'a Site,
        engines: &[Engine],
        aggregates: u64,
        name: &str,
    ) -> Result<Self, String> {
        let edges = engines
            .iter()
            .enumerate()
            .map(|(n, engine)| {
                Edge::new(&engine.address, &site.token(&format!("{name}-{n}"), Role::Edge)?)
            })
            .collect::<Result<_, _>>()?;
        let viewer = site.token(&format!("{name}-viewer"), Role::Viewer)?;
        let client = Client::new(&engines[0].url(), &viewer, None).map_err(|e| e.to_string())?;
        let decided = client.status().map_err(|e| e.to_string())?.counts.decisions;
        Ok(Self {
            site,
            edges,
            versions: vec![0; aggregates as usize],
            client,
            decided,
            changed: 0,
        })
    }

    /// One interval; how long it took.
    fn live_on(&mut self) -> Result<Duration, String> {
        // What was decided before is in force in an interval of its own, which ends now.
        std::thread::sleep(Duration::from_millis(2 * SHORT_MS - now_ms() % SHORT_MS));
        let begun = Instant::now();
        let (interval, versions) = (now_ms() / SHORT_MS - 1, &self.versions);
        let parts = self.edges.len() as u64;
        let aggregates = versions.len() as u64;
        std::thread::scope(|scope| {
            let sent: Vec<_> = self
                .edges
                .iter_mut()
                .zip(0..parts)
                .map(|(edge, part)| {
                    scope.spawn(move || {
                        let own: Vec<u64> = (part..aggregates).step_by(parts as usize).collect();
                        own.chunks(BATCH as usize).try_for_each(|some| {
                            let reports: Vec<String> = some
                                .iter()
                                .map(|&n| report(n, interval, versions[n as usize]))
                                .collect();
                            edge.send(&list(&reports))
                        })
                    })
                })
                .collect();
            sent.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        self.decided += aggregates as i64;
        while self.client.status().map_err(|e| e.to_string())?.counts.decisions < self.decided {
            if begun.elapsed() > PATIENCE {
                return Err(format!("not all is decided after {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let took = begun.elapsed();
        let have: Vec<(u64, u64)> = (0..aggregates).zip(self.versions.iter().copied()).collect();
        for some in have.chunks(NAMES) {
            for (n, version) in self.edges[0].versions(some, 0)? {
                self.versions[n as usize] = version;
                self.changed += 1;
            }
        }
        if self.changed == 0 {
            return Err("no decision changed a configuration: nothing is learnt".to_owned());
        }
        Ok(took)
    }
}

/// One engine with a file, and so many aggregates.
pub(crate) fn many_aggregates(aggregates: u64, note: Note<'_>) -> Result<(), String> {
    let site = Site::with_file(SHORT)?;
    let engines = [site.start()?];
    let engine = &engines[0];
    let bare = engine.used()?;
    let mut fleet = Fleet::new(&site, &engines, aggregates, "edge")?;
    for _ in 1..INTERVALS {
        fleet.live_on()?;
    }
    let (before, bytes_before) = (engine.used()?, fleet.site.store_bytes());
    fleet.changed = 0;
    let took = fleet.live_on()?;
    let (after, bytes_after) = (engine.used()?, fleet.site.store_bytes());
    std::thread::sleep(IDLE);
    let idle = engine.used()?.processor_s - after.processor_s;
    let n = aggregates as f64;
    let processor_s = after.processor_s - before.processor_s;
    let written = (after.written - before.written) as f64;
    let kept = bytes_after.saturating_sub(bytes_before) as f64;
    note(figure("aggregates of one engine with a file", n, ""));
    note(figure("… decisions that change a configuration", 100.0 * fleet.changed as f64 / n, "%"));
    note(figure("… an interval of all of them takes", took.as_secs_f64(), "s"));
    note(figure(
        "… and of a core, at one interval in 20 min",
        100.0 * processor_s / INTERVAL_S,
        "%",
    ));
    note(figure("processor time of a report and its decision", 1e6 * processor_s / n, "us"));
    note(figure(
        "memory of an aggregate",
        (after.resident.saturating_sub(bare.resident)) as f64 / n,
        "bytes",
    ));
    note(figure("memory of the engine", after.resident as f64 / 1e6, "MB"));
    note(figure(
        "the store's file, of an aggregate and its decisions",
        bytes_after as f64 / n,
        "bytes",
    ));
    note(figure("… which a decision makes larger by", kept / n, "bytes"));
    note(figure("… and a day of all of them", kept * INTERVALS_PER_DAY / 1e9, "GB"));
    note(figure("written to the disk for a report and its decision", written / n, "bytes"));
    note(figure("… and in a day for all of them", written * INTERVALS_PER_DAY / 1e9, "GB"));
    note(figure("an engine with nothing to do, of a core", 100.0 * idle / IDLE.as_secs_f64(), "%"));
    Ok(())
}

/// What a decision takes once much is remembered of every context, which the first intervals do not show.
pub(crate) fn long_lived(cli: &Cli, note: Note<'_>) -> Result<(), String> {
    let site = Site::with_file(SHORT)?;
    let engines = [site.start()?];
    let mut fleet = Fleet::new(&site, &engines, cli.long_lived, "edge")?;
    let last = cli.intervals.min(LAST);
    let (mut before, mut bytes_before) = (engines[0].used()?, site.store_bytes());
    for n in 0..cli.intervals {
        if n + last == cli.intervals {
            (before, bytes_before) = (engines[0].used()?, site.store_bytes());
            fleet.changed = 0;
        }
        fleet.live_on()?;
    }
    let (after, bytes_after) = (engines[0].used()?, site.store_bytes());
    let decisions = (cli.long_lived * last) as f64;
    let processor_s = (after.processor_s - before.processor_s) / decisions;
    note(figure("aggregates that live for long", cli.long_lived as f64, ""));
    note(figure("… for so many intervals", cli.intervals as f64, ""));
    // An aggregate that learnt nothing would be cheap.
    note(figure(
        "… decisions of theirs that change a configuration",
        100.0 * fleet.changed as f64 / decisions,
        "%",
    ));
    note(figure("processor time of a report and its decision then", 1e6 * processor_s, "us"));
    note(figure(
        format!("… of a core, for {} aggregates every 20 min", cli.aggregates),
        100.0 * processor_s * cli.aggregates as f64 / INTERVAL_S,
        "%",
    ));
    note(figure(
        "the store's file, which a decision makes larger by then",
        bytes_after.saturating_sub(bytes_before) as f64 / decisions,
        "bytes",
    ));
    note(figure(
        "written to the disk for a report and its decision then",
        (after.written - before.written) as f64 / decisions,
        "bytes",
    ));
    Ok(())
}

/// A way to keep it all, and how many engines do.
struct Way {
    name: &'static str,
    engines: usize,
    /// PostgreSQL instead of a file, and whether with a broker.
    postgres: Option<bool>,
}

const WAYS: [Way; 5] = [
    Way { name: "a file", engines: 1, postgres: None },
    Way { name: "PostgreSQL, one engine", engines: 1, postgres: Some(false) },
    Way { name: "PostgreSQL, two engines", engines: 2, postgres: Some(false) },
    Way { name: "PostgreSQL and NATS, one engine", engines: 1, postgres: Some(true) },
    Way { name: "PostgreSQL and NATS, two engines", engines: 2, postgres: Some(true) },
];

#[derive(Default)]
struct Measured {
    reports_per_s: Vec<f64>,
    /// Processor time of a report, engines and servers, in microseconds.
    processor_us: Vec<f64>,
    decided_per_s: Vec<f64>,
    delay_ms: Vec<f64>,
}

/// The ways compared, each in every round.
pub(crate) fn ways(cli: &Cli, note: Note<'_>) -> Result<(), String> {
    let servers = Servers::start(Disk::Synced)?;
    let mut all: Vec<Measured> = WAYS.iter().map(|_| Measured::default()).collect();
    for _ in 0..cli.rounds {
        for (way, measured) in WAYS.iter().zip(&mut all) {
            let site = |interval: &str| match way.postgres {
                None => Site::with_file(interval),
                Some(broker) => Site::new(interval, &servers.configuration(broker)),
            };
            let start =
                |site: &Site| (0..way.engines).map(|_| site.start()).collect::<Result<Vec<_>, _>>();
            // Nothing is decided meanwhile.
            let long = site("24h")?;
            let of_servers = || servers.processor_s();
            let (rate, processor_us) = ingest(&long, &start(&long)?, &of_servers, cli.seconds)?;
            measured.reports_per_s.push(rate);
            measured.processor_us.push(processor_us);
            let usual = site(SHORT)?;
            let engines = start(&usual)?;
            let mut fleet = Fleet::new(&usual, &engines, cli.compared, "edge")?;
            for _ in 0..WARM {
                fleet.live_on()?;
            }
            let took = (0..LAST_COMPARED).map(|_| fleet.live_on()).sum::<Result<Duration, _>>()?;
            let decided = (cli.compared * LAST_COMPARED) as f64;
            measured.decided_per_s.push(decided / took.as_secs_f64());
            drop(engines);
            let short = site(SHORT)?;
            measured.delay_ms.push(delay(&short, &start(&short)?)?);
        }
    }
    let base = all.first().map_or(f64::NAN, |m| median(m.reports_per_s.clone()));
    let base_processor = all.first().map_or(f64::NAN, |m| median(m.processor_us.clone()));
    let base_decided = all.first().map_or(f64::NAN, |m| median(m.decided_per_s.clone()));
    for (way, measured) in WAYS.iter().zip(all) {
        let (reports, decided) = (median(measured.reports_per_s), median(measured.decided_per_s));
        note(figure(format!("{}: reports kept", way.name), reports, "1/s"));
        note(figure("… vs. a file", reports / base, "x"));
        let processor_us = median(measured.processor_us);
        note(figure("… processor time of each, engines and servers", processor_us, "us"));
        note(figure("… vs. a file", processor_us / base_processor, "x"));
        note(figure(format!("{}: aggregates reported and decided", way.name), decided, "1/s"));
        note(figure("… vs. a file", decided / base_decided, "x"));
        note(figure(
            format!("{}: from report to decision", way.name),
            median(measured.delay_ms),
            "ms",
        ));
    }
    Ok(())
}

/// Reports kept in a second, with many edges that send all the time; and the processor time of each,
/// in microseconds, of the engines and of what else is counted.
pub(crate) fn ingest(
    site: &Site,
    engines: &[Engine],
    others_s: &dyn Fn() -> f64,
    seconds: u64,
) -> Result<(f64, f64), String> {
    let interval = now_ms() / 86_400_000;
    let (kept, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let edges: Vec<(Edge, String)> = (0..EDGES)
        .map(|n| {
            let token = site.token(&format!("edge-{n}"), Role::Edge)?;
            let of = n * AGGREGATES_OF_EDGE..(n + 1) * AGGREGATES_OF_EDGE;
            let reports: Vec<String> = of.map(|a| report(a, interval, 0)).collect();
            let address = &engines[n as usize % engines.len()].address;
            Ok((Edge::new(address, &token)?, list(&reports)))
        })
        .collect::<Result<_, String>>()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = edges
            .into_iter()
            .map(|(mut edge, reports)| {
                let (kept, ended) = (&kept, &ended);
                scope.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        edge.send(&reports)?;
                        kept.fetch_add(AGGREGATES_OF_EDGE, Ordering::Relaxed);
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        // The first second warms up.
        std::thread::sleep(Duration::from_secs(1));
        let processor_s = || {
            engines.iter().try_fold(others_s(), |sum, engine| {
                Ok::<f64, String>(sum + engine.used()?.processor_s)
            })
        };
        let (from, at, used) = (kept.load(Ordering::Relaxed), Instant::now(), processor_s()?);
        std::thread::sleep(Duration::from_secs(seconds));
        let (elapsed_s, reports) =
            (at.elapsed().as_secs_f64(), (kept.load(Ordering::Relaxed) - from) as f64);
        let each_us = 1e6 * (processor_s()? - used) / reports;
        ended.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
        Ok((reports / elapsed_s, each_us))
    })
}

/// From a report of an interval that is over to the edge that gets the new configuration, in ms; from one engine to
/// another where there are two.
fn delay(site: &Site, engines: &[Engine]) -> Result<f64, String> {
    let token = site.token("edge", Role::Edge)?;
    let mut sender = Edge::new(&engines[0].address, &token)?;
    let mut listener = Edge::new(&engines[0].address, &token)?;
    if let Some(other) = engines.get(1) {
        listener.move_to(&other.address)?;
    }
    let (mut version, mut taken) = (0, Vec::new());
    for _ in 0..DELAYS {
        // Well after a second began, so that the last one may be closed at once, and is reported once.
        std::thread::sleep(Duration::from_millis(1100 - now_ms() % 1000));
        let sent = Instant::now();
        sender.send(&list(&[report(0, now_ms() / 1000 - 1, version)]))?;
        // A decision may leave the configuration as it is; that one is not sent.
        if let Some((_, heard)) = listener.versions(&[(0, version)], 2)?.first() {
            taken.push(sent.elapsed().as_secs_f64() * 1000.0);
            version = *heard;
        }
    }
    if taken.is_empty() {
        return Err("no decision changed a configuration".to_owned());
    }
    Ok(median(taken))
}
