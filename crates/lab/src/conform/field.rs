//! Defects that users met in the field, each as a scene in which it would show.

use trimtab_units::{Duration, Time};

use super::check::{By, Check, Finding, all, bbr};
use super::film::{film, median};
use super::subject::{Scene, Trial};
use crate::run::datapath::RunError;

const MS: Duration = Duration::from_millis(1);
/// Runs with different losses.
const SEEDS: u64 = 10;

pub(super) static CHECKS: &[Check] = &[
    Check {
        name: "field-standing-queue",
        clause: "moq-dev/moq#2432",
        about: "BBR keeps the round-trip time of a link that is too slow for its source short.",
        scene: "5 Mbit/s, 100 ms, a queue of 500 ms; median round-trip time from 10 to 30 s",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &Scene::new(5.0, MS * 100).buffer(208), 30.0, MS * 20)?;
            let rtts = film.between(10.0, 30.0).iter().map(|look| look.srtt.as_millis_f64());
            Ok(Finding::new(median(rtts.collect()), 100.0, 160.0, "ms"))
        },
    },
    Check {
        name: "field-limited-burst",
        clause: "n0-computer/noq#800",
        about: "A response after a pause is paced by what is known of the path.",
        scene: "20 Mbit/s, 50 ms, a queue of 25 packets, 45 kB every 250 ms; packets lost",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let scene = Scene::new(20.0, MS * 50).buffer(25).asking_every(250, 45_000, 10_000);
            let film = film(subject, &scene, 10.0, MS * 10)?;
            let end = film.at(10.0);
            Ok(Finding::new(100.0 * end.lost as f64 / end.sent as f64, 0.0, 1.0, "%"))
        },
    },
    Check {
        name: "field-fast-long",
        clause: "litespeedtech/lsquic#554",
        about: "On a fast and long path the estimate leaves its first plateau.",
        scene: "500 Mbit/s, 100 ms, a queue without end; goodput in the fourth second",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let film = film(subject, &Scene::new(500.0, MS * 100), 4.0, MS * 20)?;
            Ok(Finding::new(film.goodput(3.0, 4.0), 64.0, f64::INFINITY, "Mbit/s"))
        },
    },
    Check {
        name: "field-overshoot",
        clause: "RFC 9000 §2.2",
        about: "A connection survives that slow start fills a long queue until it overflows.",
        scene: "500 Mbit/s, 100 ms, a queue of a BDP; goodput in the fourth second",
        by: By::Transport,
        applies: all,
        measure: |subject| {
            let film = film(subject, &Scene::new(500.0, MS * 100).buffer(4167), 4.0, MS * 20)?;
            Ok(Finding::new(film.goodput(3.0, 4.0), 64.0, f64::INFINITY, "Mbit/s"))
        },
    },
    Check {
        name: "field-short-path",
        clause: "private-octopus/picoquic#2118",
        about: "On a path of microseconds the window does not stay at 5 packets.",
        scene: "1 Gbit/s, 0.1 ms, for 0.3 s; the window at the end",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let scene = Scene::new(1000.0, Duration::from_micros(100)).buffer(1000);
            let film = film(subject, &scene, 0.3, MS)?;
            Ok(Finding::new(film.window(0.3), 6.0, f64::INFINITY, "packets"))
        },
    },
    Check {
        name: "field-bad-start",
        clause: "Cloudflare, May 2026: When idle isn't idle",
        about: "After heavy losses at the start the window grows again.",
        scene: "100 Mbit/s, 10 ms, 30% random loss in the first 2 s, 10 MB, ten seeds; runs that \
                end within 10 s",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let mut ended = 0;
            for seed in 1..=SEEDS {
                let scene = Scene::new(100.0, MS * 10).buffer(83).lossy_during(0.3, 0.0, 2.0);
                let scene = scene.asking([(0, 10_000_000)]).seed(seed);
                let mut trial = subject.begin(&scene)?;
                ended += u64::from(arrives(trial.as_mut(), 10_000_000)?);
            }
            Ok(Finding::new(100.0 * ended as f64 / SEEDS as f64, 100.0, 100.0, "%"))
        },
    },
];

/// Whether so many bytes arrive within 10 s.
fn arrives(trial: &mut dyn Trial, bytes: u64) -> Result<bool, RunError> {
    for tenth in 1..=100 {
        trial.run_until(Time::from_millis(100 * tenth))?;
        if trial.look().goodput.get() >= bytes {
            return Ok(true);
        }
    }
    Ok(false)
}
