//! draft-ietf-ccwg-bbr: what can be seen from outside of the states, and test cases of its appendix.

use trimtab_units::{Duration, Rate};

use super::check::{By, Check, Finding, bbr};
use super::film::{Film, film};
use super::rfc9002::unreached;
use super::subject::{Family, Look, Scene};

const MS: Duration = Duration::from_millis(1);
/// The path of the appendix: its bottleneck's rate in Mbit/s, and our round-trip time in seconds.
const MBPS: f64 = 10.0;
const RTT: f64 = 0.04;
/// What a pacing rate is lower than the bandwidth by (`BBR.PacingMarginPercent`).
const MARGIN: f64 = 0.99;
/// Packets of 1500 bytes in a bandwidth-delay product of that path.
const BDP: f64 = MBPS * 1e6 / 8.0 * RTT / 1500.0;

pub(super) static CHECKS: &[Check] = &[
    Check {
        name: "bbr-startup-exit",
        clause: "draft-ietf-ccwg-bbr, Exiting STARTUP on Bandwidth Plateau",
        about: "STARTUP ends after three rounds in which the bandwidth grew by less than a quarter.",
        scene: "10 Mbit/s, 40 ms; rounds from when the link is full to when the pacing rate falls",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &path(), 3.0, MS)?;
            let full = film.looks.iter().find(|look| film.packets(look.inflight) >= BDP);
            let (Some(full), Some(exit)) = (full, startup_exit(&film)) else {
                return unreached("rounds");
            };
            let full = full.at.as_secs_f64();
            let looks = film.between(full, exit);
            let rounds = looks.iter().map(|look| MS.ratio(look.srtt)).sum();
            Ok(Finding::new(rounds, 2.0, 6.0, "rounds"))
        },
    },
    Check {
        name: "bbr-drain",
        clause: "draft-ietf-ccwg-bbr, Exiting DRAIN Based on Inflight",
        about: "DRAIN empties the queue that STARTUP made.",
        scene: "10 Mbit/s, 40 ms; least in flight in the second after STARTUP, over the BDP",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &path(), 4.0, MS)?;
            let Some(exit) = startup_exit(&film) else { return unreached("BDP") };
            let least = film.between(exit, exit + 1.0).iter().map(|look| look.inflight).min();
            let least = film.packets(least.unwrap_or_default()) / BDP;
            Ok(Finding::new(least, 0.5, 1.25, "BDP"))
        },
    },
    Check {
        name: "bbr-bandwidth",
        clause: "draft-ietf-ccwg-bbr, Exiting STARTUP on Bandwidth Plateau",
        about: "The bandwidth estimate is within 2% of the link's.",
        scene: "10 Mbit/s, 40 ms; median pacing rate from 2 to 12 s, less its margin of 1%, over \
                the link's rate",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &path(), 12.0, MS * 5)?;
            let link = MBPS * subject.packet().as_f64() / 1500.0;
            let looks = film.between(2.0, 12.0).iter();
            let rates: Vec<f64> = looks.filter_map(|look| Some(look.pacing?.mbps())).collect();
            Ok(Finding::new(median(rates) / MARGIN / link, 0.98, 1.02, "times"))
        },
    },
    Check {
        name: "bbr-inflight",
        clause: "draft-ietf-ccwg-bbr, BBR.max_inflight",
        about: "In ProbeBW at most the window's gain of the bandwidth-delay product is in flight.",
        scene: "10 Mbit/s, 40 ms; 95th percentile in flight from 2 to 12 s, over the BDP",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &path(), 12.0, MS * 5)?;
            let looks = film.between(2.0, 12.0).iter();
            let mut inflight: Vec<f64> = looks.map(|look| film.packets(look.inflight)).collect();
            inflight.sort_by(f64::total_cmp);
            let p95 = inflight.get(inflight.len() * 95 / 100).copied().unwrap_or(f64::NAN);
            Ok(Finding::new(p95 / BDP, 0.9, 2.25, "BDP"))
        },
    },
    Check {
        name: "bbr-probe-rtt",
        clause: "draft-ietf-ccwg-bbr, Entering and Exiting PROBE_RTT",
        about: "When the lowest round-trip time was not seen for 5 s (version 1: 10 s), the window \
                falls to half a BDP (version 1: 4 packets).",
        scene: "10 Mbit/s, 40 ms; seconds until at most 0.6 BDP is in flight, from 2 s on",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &path(), 14.0, MS * 2)?;
            let deep = |packets: f64| packets <= 0.6 * BDP;
            let dip = film.between(2.0, 14.0).iter().find(|look| deep(film.packets(look.inflight)));
            let Some(dip) = dip else { return unreached("s") };
            let (least, most) = match subject.family() {
                Family::Bbr1 => (10.0, 11.5),
                _ => (5.0, 6.5),
            };
            Ok(Finding::new(dip.at.as_secs_f64(), least, most, "s"))
        },
    },
    Check {
        name: "bbr-random-loss",
        clause: "draft-ietf-ccwg-bbr, BBR.LossThresh",
        about: "Random loss below 2% does not starve the flow, as it does CUBIC.",
        scene: "100 Mbit/s, 40 ms, 1% random loss; goodput from 3 to 13 s, over the link's rate",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let scene = Scene::new(100.0, Duration::from_secs_f64(RTT)).buffer(1000).lossy(0.01);
            let film = film(subject, &scene, 13.0, MS * 10)?;
            Ok(Finding::new(film.goodput(3.0, 13.0) / 100.0, 0.5, 1.0, "times"))
        },
    },
];

fn path() -> Scene {
    Scene::new(MBPS, Duration::from_secs_f64(RTT)).buffer(1000)
}

/// When the pacing rate falls for the first time, in seconds.
fn startup_exit(film: &Film) -> Option<f64> {
    let fast = |look: &Look| look.pacing.map_or(0.0, Rate::mbps);
    let exit = film.looks.windows(2).find(|pair| fast(&pair[1]) < 0.7 * fast(&pair[0]))?;
    Some(exit[1].at.as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
