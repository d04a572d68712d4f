//! RFC 9406: HyStart++, with which CUBIC is to leave its first slow start (RFC 9438 §4.10).

use trimtab_units::Duration;

use super::check::{By, Check, Finding, cubic};
use super::film::film;
use super::subject::Scene;

const MS: Duration = Duration::from_millis(1);

pub(super) static CHECKS: &[Check] = &[
    Check {
        name: "hystart-exit",
        clause: "RFC 9406 §4.2, RFC 9438 §4.10",
        about: "Slow start ends when the round-trip time grows, before a loss.",
        scene: "10 Mbit/s, 100 ms, a queue without end; the window at 5 s, over the BDP",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let film = film(subject, &Scene::new(10.0, MS * 100), 5.0, MS)?;
            Ok(Finding::new(film.window(5.0) / 83.3, 1.0, 12.0, "BDP"))
        },
    },
    Check {
        name: "hystart-css",
        clause: "RFC 9406 §4.2",
        about: "After that the window grows by a quarter per round trip, for five rounds.",
        scene: "1 Gbit/s, 100 ms, which becomes 130 ms at 0.4 s; growth per round trip from 0.7 \
                to 1.09 s",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let scene = Scene::new(1000.0, MS * 100).rtt_from(0.4, MS * 130);
            let film = film(subject, &scene, 1.2, MS)?;
            let growth = (film.window(1.09) / film.window(0.7)).cbrt();
            Ok(Finding::new(growth, 1.15, 1.35, "times"))
        },
    },
    Check {
        name: "hystart-resume",
        clause: "RFC 9406 §4.2",
        about: "Where the round-trip time falls again in that time, slow start goes on.",
        scene: "1 Gbit/s, 100 ms, which becomes 130 ms from 0.4 to 0.6 s; growth per 100 ms from \
                0.9 to 1.1 s",
        by: By::Algorithm,
        applies: cubic,
        measure: |subject| {
            let scene = Scene::new(1000.0, MS * 100).rtt_during(0.4, 0.6, MS * 130);
            let film = film(subject, &scene, 1.2, MS)?;
            let growth = (film.window(1.1) / film.window(0.9)).sqrt();
            Ok(Finding::new(growth, 1.6, 2.1, "times"))
        },
    },
];
