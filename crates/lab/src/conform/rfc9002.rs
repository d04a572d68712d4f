//! RFC 9002 §7: what holds for every QUIC sender, and Reno as it describes it.

use trimtab_units::Duration;

use super::check::{By, Check, Finding, all, reno, slow_starters};
use super::film::film;
use super::subject::{Scene, Subject};
use crate::run::datapath::RunError;

const MS: Duration = Duration::from_millis(1);

pub(super) static CHECKS: &[Check] = &[
    Check {
        name: "initial-window",
        clause: "RFC 9002 §7.2",
        about: "The initial window is 10 packets, which acknowledgements of the handshake may add to.",
        scene: "200 ms round trip; the window before the first response leaves",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let film = film(subject, &Scene::new(100.0, MS * 200), 0.09, MS)?;
            Ok(Finding::new(film.window(0.09), 9.99, 11.0, "packets"))
        },
    },
    Check {
        name: "minimum-window",
        clause: "RFC 9002 §7.2",
        about: "The window never falls below 2 packets.",
        scene: "10 Mbit/s, 50 ms, 30% random loss for 20 s; the smallest window",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let film = film(subject, &Scene::new(10.0, MS * 50).lossy(0.3), 20.0, MS * 5)?;
            let least = film.looks.iter().map(|look| look.window).min().unwrap_or_default();
            Ok(Finding::new(film.packets(least), 2.0, f64::INFINITY, "packets"))
        },
    },
    Check {
        name: "window-kept",
        clause: "RFC 9002 §7",
        about: "No packet leaves that would put more in flight than the window.",
        scene: "1 Gbit/s, 100 ms, the first 700 ms; most bytes in flight when \
                a packet leaves, over the window",
        by: By::Transport,
        applies: all,
        measure: |subject| {
            let film = film(subject, &Scene::new(1000.0, MS * 100), 0.7, MS)?;
            let pairs = film.looks.windows(2).filter(|pair| pair[1].sent > pair[0].sent);
            let most = pairs.map(|pair| {
                // It may have shrunk after the packet left.
                let window = pair[0].window.max(pair[1].window);
                pair[1].inflight.ratio(window)
            });
            Ok(Finding::new(most.fold(f64::NAN, f64::max), 0.0, 1.0, "windows"))
        },
    },
    Check {
        name: "slow-start",
        clause: "RFC 9002 §7.3.1",
        about: "In slow start the window grows by what is acknowledged.",
        scene: "1 Gbit/s, 100 ms, from 200 to 700 ms; growth, over what was acknowledged",
        by: By::Algorithm,
        applies: slow_starters,
        measure: |subject| {
            let film = film(subject, &Scene::new(1000.0, MS * 100), 0.7, MS)?;
            let acked = |seconds| {
                let look = film.at(seconds);
                look.sent as f64 - film.packets(look.inflight)
            };
            let growth = (film.window(0.7) - film.window(0.2)) / (acked(0.7) - acked(0.2));
            Ok(Finding::new(growth, 0.95, 1.05, "times"))
        },
    },
    Check {
        name: "reno-reduction",
        clause: "RFC 9002 §7.3.2",
        about: "A loss halves Reno's window.",
        scene: "100 Mbit/s, 100 ms, packets 60 and 1000 lost; the window after the second loss over \
                that before",
        by: By::Algorithm,
        applies: reno,
        measure: |subject| reduction(subject, 0.5),
    },
    Check {
        name: "one-reduction",
        clause: "RFC 9002 §7.3.2",
        about: "Losses of one round trip reduce the window once.",
        scene: "100 Mbit/s, 100 ms, packets 200, 205, 210, 215 and 220 lost; reductions in 3 s",
        by: By::Algorithm,
        applies: slow_starters,
        measure: |subject| {
            let scene = Scene::new(100.0, MS * 100).losing(&[200, 205, 210, 215, 220]);
            let falls = film(subject, &scene, 3.0, MS)?.falls().len();
            Ok(Finding::new(falls as f64, 1.0, 1.0, "reductions"))
        },
    },
    Check {
        name: "reno-avoidance",
        clause: "RFC 9002 §7.3.3",
        about: "In congestion avoidance Reno grows by at most a packet per window acknowledged.",
        scene: "100 Mbit/s, 100 ms, packet 60 lost; growth per round trip, over 20 of them",
        by: By::Algorithm,
        applies: reno,
        measure: |subject| {
            let film = film(subject, &Scene::new(100.0, MS * 100).losing(&[60]), 4.0, MS)?;
            let Some(fall) = film.falls().first().copied() else { return unreached("packets") };
            let from = fall.at.as_secs_f64() + 0.3;
            let growth = (film.window(from + 2.0) - film.window(from)) / 20.0;
            Ok(Finding::new(growth, 0.9, 1.0, "packets"))
        },
    },
    Check {
        name: "persistent-congestion",
        clause: "RFC 9002 §7.6.2",
        about: "Persistent congestion reduces the window to the minimum.",
        scene: "20 Mbit/s, 50 ms, nothing passes from 2 to 5 s; the smallest window after, to which \
                the acknowledgement that shows it may add 2 packets",
        by: By::Algorithm,
        applies: slow_starters,
        measure: |subject| {
            let film = film(subject, &outage(), 12.0, MS)?;
            let least = film.between(5.0, 12.0).iter().map(|look| look.window).min();
            let least = film.packets(least.unwrap_or_default());
            Ok(Finding::new(least, 2.0, 4.0, "packets"))
        },
    },
    Check {
        name: "probes",
        clause: "RFC 9002 §7.5",
        about: "Probe packets leave though the window is full.",
        scene: "20 Mbit/s, 50 ms, nothing passes from 2 to 5 s; packets that leave in its last 2.5 s",
        by: By::Transport,
        applies: all,
        measure: |subject| {
            let film = film(subject, &outage(), 5.0, MS)?;
            let probes = film.at(5.0).sent - film.at(2.5).sent;
            Ok(Finding::new(probes as f64, 2.0, 20.0, "packets"))
        },
    },
    Check {
        name: "pacing",
        clause: "RFC 9002 §7.7",
        about: "No burst is much larger than the initial window.",
        scene: "40 Mbit/s, 50 ms, 200 kB every 2 s, four times; most packets in half a millisecond",
        by: By::Transport,
        applies: all,
        measure: |subject| {
            let scene = Scene::new(40.0, MS * 50).asking_every(2000, 200_000, 8000);
            let film = film(subject, &scene, 8.0, Duration::from_micros(500))?;
            let bursts = film.looks.windows(2).map(|pair| pair[1].sent - pair[0].sent);
            Ok(Finding::new(bursts.max().unwrap_or(0) as f64, 1.0, 20.0, "packets"))
        },
    },
    Check {
        name: "application-limited",
        clause: "RFC 9002 §7.8",
        about: "A window that is not used does not grow; that of BBR does until an initial window \
                is delivered.",
        scene: "100 Mbit/s, 100 ms, 1 kB every 50 ms for 10 s; the window at the end over that at \
                the start",
        by: By::Algorithm,
        applies: all,
        measure: |subject| {
            let scene = Scene::new(100.0, MS * 100).asking_every(50, 1000, 10_000);
            let film = film(subject, &scene, 10.0, MS * 10)?;
            let growth = film.window(10.0) / film.window(0.05);
            // BBRSetCwnd of draft-ietf-ccwg-bbr: `C.delivered < InitialCwnd`.
            let most = if subject.family().is_bbr() { 2.01 } else { 1.01 };
            Ok(Finding::new(growth, 0.0, most, "times"))
        },
    },
];

/// An outage of three seconds, long enough for several probes.
fn outage() -> Scene {
    Scene::new(20.0, MS * 50).buffer(200).lossy_during(1.0, 2.0, 5.0)
}

/// A finding of a scene that did not come about.
pub(super) fn unreached(unit: &'static str) -> Result<Finding, RunError> {
    Ok(Finding::new(f64::NAN, f64::NEG_INFINITY, f64::INFINITY, unit))
}

/// What the window falls to for a loss in congestion avoidance, and that it should.
pub(super) fn reduction(subject: &dyn Subject, factor: f64) -> Result<Finding, RunError> {
    let film = film(subject, &Scene::new(100.0, MS * 100).losing(&[60, 1000]), 6.0, MS)?;
    let Some(fall) = film.falls().get(1).copied() else { return unreached("times") };
    Ok(Finding::new(fall.after / fall.before, factor - 0.01, factor + 0.01, "times"))
}
