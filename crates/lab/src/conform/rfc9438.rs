//! RFC 9438: CUBIC.

use trimtab_units::Duration;

use super::check::{By, Check, Finding, cubic};
use super::film::{Fall, Film, film};
use super::rfc9002::{reduction, unreached};
use super::subject::Scene;

const MS: Duration = Duration::from_millis(1);
/// C, in packets/s³ (§5.1).
const C: f64 = 0.4;
/// `beta_cubic` (§4.6).
const BETA: f64 = 0.7;

pub(super) static CHECKS: &[Check] = &[
    Check {
        name: "cubic-reduction",
        clause: "RFC 9438 §4.6",
        about: "A loss leaves 0.7 of CUBIC's window.",
        scene: "100 Mbit/s, 100 ms, packets 60 and 1000 lost; the window after the second loss over \
                that before",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| reduction(subject, BETA),
    },
    Check {
        name: "cubic-growth",
        clause: "RFC 9438 §4.2, §4.4, §4.5",
        about: "After a loss the window follows W_cubic, past W_max at K.",
        scene: "100 Mbit/s, 100 ms, packet 400 lost; largest distance from W_cubic until 1.5 K",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let film = film(subject, &Scene::new(100.0, MS * 100).losing(&[400]), 13.0, MS)?;
            let Some(fall) = film.falls().first().copied() else { return unreached("%") };
            Ok(Finding::new(100.0 * distance(&film, fall), 0.0, 4.0, "%"))
        },
    },
    Check {
        name: "fast-convergence",
        clause: "RFC 9438 §4.7",
        about: "A loss below W_max makes 0.85 of the window the next W_max.",
        scene: "100 Mbit/s, 100 ms, packet 400 lost and one a second later; the window when it \
                should be at W_max, over that W_max",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let path = Scene::new(100.0, MS * 100);
            let once = film(subject, &path.clone().losing(&[400]), 3.0, MS)?;
            let Some(first) = once.falls().first().copied() else { return unreached("times") };
            let second = once.at(first.at.as_secs_f64() + 1.0).sent;
            let twice = film(subject, &path.losing(&[400, second]), 10.0, MS)?;
            let Some(fall) = twice.falls().get(1).copied() else { return unreached("times") };
            let w_max = fall.before * (1.0 + BETA) / 2.0;
            let k = ((w_max - fall.after) / C).cbrt();
            let then = twice.window(fall.at.as_secs_f64() + k);
            Ok(Finding::new(then / w_max, 0.96, 1.04, "times"))
        },
    },
    Check {
        name: "reno-friendly",
        clause: "RFC 9438 §4.3",
        about: "On a path where Reno is faster than W_cubic, the window grows by 0.53 packets per \
                round trip.",
        scene: "1 Gbit/s, 20 ms, packet 40 lost; growth per round trip until the window before \
                the loss is reached",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let film = film(subject, &Scene::new(1000.0, MS * 20).losing(&[40]), 5.0, MS)?;
            let Some(fall) = film.falls().first().copied() else { return unreached("packets") };
            Ok(Finding::new(
                slope(&film, fall.after + 2.0, fall.before - 1.0),
                0.45,
                0.6,
                "packets",
            ))
        },
    },
    Check {
        name: "reno-friendly-beyond",
        clause: "RFC 9438 §4.3",
        about: "There, above the window before the loss, it grows by a packet per round trip.",
        scene: "1 Gbit/s, 20 ms, packet 40 lost; growth per round trip over 8 packets above",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let film = film(subject, &Scene::new(1000.0, MS * 20).losing(&[40]), 5.0, MS)?;
            let Some(fall) = film.falls().first().copied() else { return unreached("packets") };
            let growth = slope(&film, fall.before + 4.0, fall.before + 12.0);
            Ok(Finding::new(growth, 0.9, 1.1, "packets"))
        },
    },
    Check {
        name: "cubic-idle",
        clause: "RFC 9438 §4.2, §5.8",
        about: "Time in which the application sends nothing does not count as growth.",
        scene: "1 Gbit/s, 50 ms, packet 200 lost, 10 MB, nothing for half a minute, 50 MB; the \
                window four round trips into these, over that before",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let scene = Scene::new(1000.0, MS * 50).losing(&[200]);
            let scene = scene.asking([(0, 10_000_000), (35_000, 50_000_000)]);
            let film = film(subject, &scene, 35.3, MS * 5)?;
            let growth = film.window(35.25) / film.window(35.0);
            Ok(Finding::new(growth, 0.0, 1.1, "times"))
        },
    },
];

/// Figure 1 of RFC 9438: the window this long after a fall to `after`.
fn w_cubic(fall: Fall, seconds: f64) -> f64 {
    let k = ((fall.before - fall.after) / C).cbrt();
    C * (seconds - k).powi(3) + fall.before
}

/// The largest distance of the window from W_cubic, as a share of it, until 1.5 K after a fall.
/// The epoch begins when recovery ends, a round trip later (§4.2).
fn distance(film: &Film, fall: Fall) -> f64 {
    let k = ((fall.before - fall.after) / C).cbrt();
    let from = fall.at.as_secs_f64() + 0.1;
    let looks = film.between(from, from + 1.5 * k);
    let distance = looks.iter().map(|look| {
        let should = w_cubic(fall, look.at.as_secs_f64() - from);
        (film.packets(look.window) / should - 1.0).abs()
    });
    distance.fold(f64::NAN, f64::max)
}

/// Growth per round trip of 20 ms between two windows, in packets.
fn slope(film: &Film, from: f64, to: f64) -> f64 {
    let Some(fall) = film.falls().first().copied() else { return f64::NAN };
    let after = film.looks.iter().filter(|look| look.at >= fall.at);
    let reaches = |packets: f64| {
        after.clone().find(|look| film.packets(look.window) >= packets).map(|look| look.at)
    };
    match (reaches(from), reaches(to)) {
        (Some(begin), Some(end)) => (to - from) / end.since(begin).ratio(MS * 20),
        _ => f64::NAN,
    }
}
