//! Kills at any instant, and a full disk, in the middle of an experiment and of a staged rollout.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use trimtab_fleet_client::{DecisionBody, Name};

use super::*;
use crate::common::Chance;

/// Sets it when dropped, so that nobody waits for a test that failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something with an engine that is killed all the time, and started again; gives how often.
/// Every other kill is where an interval ends and all is written: reports, decisions, and what a
/// study does next.
fn under_kills(site: &Site, seed: u64, work: impl FnOnce(&dyn Fn() -> Client)) -> usize {
    let engine = Mutex::new(site.start());
    let ended = AtomicBool::new(false);
    let lock = || engine.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let (mut chance, mut kills) = (Chance(seed), 0);
            while !ended.load(Ordering::Relaxed) {
                // Longer than the grace, for which an engine that comes waits before it closes anything.
                std::thread::sleep(Duration::from_millis(500 + (chance.next() * 500.0) as u64));
                if kills % 2 == 0 {
                    let end = (now_ms() / 1000 + 1) * 1000;
                    sleep_until(end + (chance.next() * 400.0) as i64);
                }
                let mut engine = lock();
                engine.child.kill().expect("kill -9");
                engine.child.wait().expect("it ends");
                *engine = site.start();
                kills += 1;
            }
            kills
        });
        let ends = Ends(&ended);
        let url = || lock().url.clone();
        work(&|| Client::new(&url(), &site.operator, None).expect("a client"));
        drop(ends);
        killer.join().expect("no panic")
    })
}

/// What was decided on one aggregate, as far as anybody has seen it: none of it may change or go.
#[derive(Default)]
struct Seen(BTreeMap<i64, DecisionBody>);

impl Seen {
    fn look(&mut self, client: &Client) {
        let name = Name { service: "tv".to_owned(), prefix: prefix(5) };
        let Ok(body) = client.decisions(&name, 1000) else { return };
        let now: BTreeMap<_, _> = body.decisions.into_iter().map(|d| (d.interval, d)).collect();
        for (interval, decision) in &self.0 {
            assert_eq!(now.get(interval), Some(decision), "a decision was lost or changed");
        }
        self.0 = now;
    }
}

/// Those that were last told to run the configuration that is tried.
fn treated(edges: &Edges) -> BTreeSet<String> {
    let is = |gamma: f64| (gamma - 100.0).abs() < 1e-6;
    let told = edges.versions.iter().filter(|(_, (_, gamma))| is(*gamma));
    told.map(|(prefix, _)| prefix.clone()).collect()
}

/// A site whose intervals are closed long enough after their end for an edge to reach an engine that was killed there.
fn site() -> Site {
    Site::at(0, "300ms", SETTINGS)
}

/// Waits until there is enough to begin a study with.
fn learn_first(edges: &mut Edges, engine: &dyn Fn() -> Client) {
    serve_until(edges, engine, 10, |client| {
        let known = client.status().ok()?.counts;
        (known.aggregates == AGGREGATES as i64 && known.decisions >= 24).then_some(())
    });
}

#[test]
fn kills_at_any_instant_of_an_experiment_change_neither_its_arms_nor_what_it_finds() {
    let site = site();
    let mut edges = Edges::new(&site, -2.0);
    let kills = under_kills(&site, 8, |engine| {
        learn_first(&mut edges, engine);
        let new = safe_against_100(Design::Prefixes { share: 0.5 }, 10);
        let begun = loop {
            // One that was killed before it answered may have begun it.
            if let Ok(body) = engine().experiment("tv", "gamma-100") {
                break body;
            }
            let _ = engine().begin_experiment(&new);
        };
        let (mut arms, mut seen, mut over) = (BTreeSet::new(), Seen::default(), None);
        for _ in 0..30 {
            edges.serve(engine);
            seen.look(&engine());
            let Ok(body) = engine().experiment("tv", "gamma-100") else { continue };
            assert_eq!((&body.spec, body.begun_ms), (&begun.spec, begun.begun_ms));
            match body.state.as_str() {
                "waiting" => {}
                "running" => {
                    let now = treated(&edges);
                    assert!(arms.is_empty() || arms == now, "{arms:?} became {now:?}");
                    arms = now;
                }
                _ => {
                    over = body.report;
                    break;
                }
            }
        }
        let report = over.expect("it ends");
        let effect = report.effect.expect("it is known");
        assert_eq!(arms.len(), AGGREGATES / 2);
        assert!((effect.value - 2.0).abs() < 0.4 && effect.low > 0.0, "{report:?}");
        assert_eq!((report.units.aggregates, report.guards[0].verdict), (12, Verdict::Holds));
        assert!(!seen.0.is_empty());
    });
    println!("{kills} kills");
    assert!(kills >= 8, "{kills} kills are too few to show anything");
}

#[test]
fn kills_at_any_instant_of_a_rollout_do_not_keep_it_from_going_back() {
    let site = site();
    let mut edges = Edges::new(&site, 2.0);
    let kills = under_kills(&site, 9, |engine| {
        learn_first(&mut edges, engine);
        // Nothing breaks the guard: the success metric alone takes it back.
        let new = rollout("bad", "mean(throughput) < +10%");
        while engine().rollout("tv", "bad").is_err() {
            let _ = engine().begin_rollout(&new);
        }
        let (mut last, mut had, mut seen) = (None, BTreeSet::new(), Seen::default());
        let mut left = 3;
        for _ in 0..40 {
            edges.serve(engine);
            seen.look(&engine());
            had.extend(treated(&edges));
            let Ok(body) = engine().rollout("tv", "bad") else { continue };
            if let Some((Phase::RolledBack, why)) = &last {
                assert_eq!((body.phase, &body.why), (Phase::RolledBack, why));
                left -= i32::from(treated(&edges).is_empty());
            }
            assert!(body.stage <= 1, "what harms does not get further: {body:?}");
            last = Some((body.phase, body.why));
            if left == 0 {
                break;
            }
        }
        let (phase, why) = last.expect("it is there");
        assert!(phase == Phase::RolledBack && why.contains("reward is worse in stage 1"), "{why}");
        assert_eq!((had.len(), left), (3, 0), "a quarter of twelve had it, and nobody keeps it");
    });
    println!("{kills} kills");
    assert!(kills >= 6, "{kills} kills are too few to show anything");
}

/// A small disk of its own.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`, with the reason, for who may not mount one.
    fn new(size: &str) -> Option<Self> {
        let disk = Self(tempfile::tempdir().expect("a folder"));
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(disk.0.path())
            .output()
            .expect("mount");
        if mounted.status.success() {
            return Some(disk);
        }
        eprintln!("skipped: it needs root: {}", String::from_utf8_lossy(&mounted.stderr).trim());
        None
    }

    fn filler(&self) -> std::path::PathBuf {
        self.0.path().join("filler")
    }

    /// Takes what room there is.
    fn fill(&self) {
        use std::io::Write as _;
        let mut file = std::fs::File::create(self.filler()).expect("a file");
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("it is there");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Nothing is acknowledged that is not kept, each refusal says why, the log does not fill, and when
/// there is room again the experiment goes on to its end.
#[test]
fn a_full_disk_in_an_experiment_loses_nothing_and_it_goes_on_when_there_is_room() {
    let Some(disk) = Disk::new("16m") else { return };
    let file = disk.0.path().join("engine.db");
    let store = format!("[store]\nfile = {file:?}\n");
    let site = Site::with_store((0, "300ms", SETTINGS), &store);
    let engine = site.start();
    let ask = || Client::new(&engine.url, &site.operator, None).expect("a client");
    let mut edges = Edges::new(&site, -2.0);
    learn_first(&mut edges, &ask);
    let new = safe_against_100(Design::Prefixes { share: 0.5 }, 14);
    ask().begin_experiment(&new).expect("it begins");
    for _ in 0..3 {
        edges.serve(&ask);
    }
    let arms = treated(&edges);
    let mut seen = Seen::default();
    seen.look(&ask());

    disk.fill();
    // Some room is in the file itself.
    let waits = (0..1000).find_map(|_| {
        let sent = edges.batch(now_ms() as u64 / 1000 - 1);
        let answer = engine.client(&site.edge).report(&sent);
        answer.err().map(|why| (sent, why.to_string()))
    });
    let (waits, why) = waits.expect("there is an end to it");
    assert!(
        why.contains("the engine's disk is full: keep what you have, and send it later"),
        "{why}"
    );
    std::thread::sleep(Duration::from_millis(2500));
    let again = engine.client(&site.edge).report(&waits).unwrap_err().to_string();
    assert!(again.contains("disk is full"), "{again}");
    // Who reads is answered.
    let body = ask().experiment("tv", "gamma-100").expect("it is there");
    assert_eq!(body.state, "running");
    seen.look(&ask());
    let said = engine.said("no room left for");
    // The two refusals, and that nothing is closed.
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().all(|line| line.contains("make room on that disk")), "{said:?}");

    disk.make_room();
    let kept = engine.client(&site.edge).report(&waits).expect("there is room again");
    assert!(kept.kept + kept.late + kept.repeated > 0, "{kept:?}");
    let body = loop {
        edges.serve(&ask);
        seen.look(&ask());
        let body = ask().experiment("tv", "gamma-100").expect("it is there");
        if body.state != "running" {
            break body;
        }
        assert_eq!(treated(&edges), arms, "{body:?}");
    };
    let report = body.report.expect("a report");
    assert_eq!((body.state.as_str(), report.over), ("over", true));
    assert!((report.effect.expect("it is known").value - 2.0).abs() < 0.4, "{report:?}");
    let said = engine.said("intervals are closed again");
    assert_eq!(said.len(), 1, "{said:?}");
}
