//! draft-ietf-ccwg-bbr: what can be seen from outside of the states, and test cases of its appendix.

use trimtab_net::{Capacity, PolicerConfig, generate};
use trimtab_units::{Bytes, Duration, Rate};

use super::check::{By, Check, Finding, bbr, bbr3, paced_bbr};
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
        applies: paced_bbr,
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
        applies: paced_bbr,
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
        applies: paced_bbr,
        measure: |subject| {
            let film = film(subject, &path(), 12.0, MS * 5)?;
            let link = MBPS * subject.packet().as_f64() / 1500.0;
            let pacing = film.median_pacing(2.0, 12.0);
            Ok(Finding::new(pacing / MARGIN / link, 0.98, 1.02, "times"))
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
        name: "bbr-longer-path",
        clause: "draft-ietf-ccwg-bbr, BBR.min_rtt Min Filter",
        about: "A longer path is believed when the lowest round-trip time is 10 s old, and filled.",
        scene: "10 Mbit/s, 20 ms, which becomes 200 ms at 4 s, a queue of 200 packets; goodput from \
                20 to 24 s, over the link's rate",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let scene = Scene::new(MBPS, MS * 20).buffer(200).rtt_from(4.0, MS * 200);
            let film = film(subject, &scene, 24.0, MS * 20)?;
            Ok(Finding::new(film.goodput(20.0, 24.0) / MBPS, 0.7, 1.0, "times"))
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
    Check {
        name: "bbr-startup-limited",
        clause: "draft-ietf-ccwg-bbr, Never Exiting PROBE_UP (or STARTUP) When Application-Limited",
        about: "A flow that the application limits does not leave STARTUP without a loss: it is fast \
                when there is more to send.",
        scene: "10 Mbit/s, 40 ms, 3 kB every 40 ms for 5 s, then 5 MB; goodput from 0.5 to 1.5 s \
                into these, over the link's rate",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let trickle = (0..125).map(|number| (number * 40, 3000));
            let scene = path().asking(trickle.chain([(5000, 5_000_000)]));
            let film = film(subject, &scene, 6.5, MS * 5)?;
            Ok(Finding::new(film.goodput(5.5, 6.5) / MBPS, 0.85, 1.0, "times"))
        },
    },
    Check {
        name: "bbr-rise",
        clause: "draft-ietf-ccwg-bbr, Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached",
        about: "Ten times the bandwidth is found within some probes.",
        scene: "10 Mbit/s, which becomes 100 Mbit/s at 4 s, 40 ms; seconds from then until goodput \
                over 200 ms is 85 Mbit/s",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &stepping([(4, MBPS), (20, 10.0 * MBPS)]), 16.0, MS * 20)?;
            let fast = (205..800).map(|look| f64::from(look) / 50.0);
            let fast = fast.into_iter().find(|&end| film.goodput(end - 0.2, end) >= 85.0);
            Ok(Finding::new(fast.unwrap_or(f64::NAN) - 4.0, 0.2, 8.0, "s"))
        },
    },
    Check {
        name: "bbr-fall",
        clause: "draft-ietf-ccwg-bbr, Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down",
        about: "A tenth of the bandwidth is believed after the filter of the maximum has expired.",
        scene: "100 Mbit/s, which becomes 10 Mbit/s at 4 s, 40 ms, a queue of 333 packets; median \
                pacing rate from 14 to 20 s, over the link's rate",
        by: By::Algorithm,
        applies: paced_bbr,
        measure: |subject| {
            let scene = stepping([(4, 10.0 * MBPS), (20, MBPS)]).buffer(333);
            let film = film(subject, &scene, 20.0, MS * 20)?;
            Ok(Finding::new(film.median_pacing(14.0, 20.0) / MBPS, 0.7, 1.3, "times"))
        },
    },
    Check {
        name: "bbr-policer",
        clause: "draft-ietf-ccwg-bbr, Handling Token Bucket Policers",
        about: "Behind a policer the flow conforms to its rate without excessive loss.",
        scene: "100 Mbit/s, 40 ms, policed to 10 Mbit/s with a bucket of 50 kB; packets lost from \
                10 to 20 s",
        by: By::Algorithm,
        applies: bbr3,
        measure: |subject| {
            let mut scene = Scene::new(100.0, Duration::from_secs_f64(RTT));
            let (rate, burst) = (Rate::from_mbps(MBPS), Bytes::new(50_000));
            scene.link.policer = Some(PolicerConfig { rate, burst });
            let film = film(subject, &scene, 20.0, MS * 20)?;
            let (from, to) = (film.at(10.0), film.at(20.0));
            let share = (to.lost - from.lost) as f64 / (to.sent - from.sent) as f64;
            Ok(Finding::new(100.0 * share, 0.0, 5.0, "%"))
        },
    },
    Check {
        name: "bbr-small-bdp",
        clause: "draft-ietf-ccwg-bbr, Correctly Managing Sub-Packet BDPs",
        about: "Where a packet fills the path, the window is at least four packets.",
        scene: "1 Mbit/s, 8 ms, a queue of 100 packets; the smallest window from 3 to 12 s",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let film = film(subject, &Scene::new(1.0, MS * 8).buffer(100), 12.0, MS * 10)?;
            let least = film.between(3.0, 12.0).iter().map(|look| look.window).min();
            let least = film.packets(least.unwrap_or_default());
            Ok(Finding::new(least, 3.99, 20.0, "packets"))
        },
    },
    Check {
        name: "bbr-idle-probe-rtt",
        clause: "draft-ietf-ccwg-bbr, Skipping PROBE_RTT Due to Application-Limited Sending",
        about: "After a pause that drained the queue there is no ProbeRTT.",
        scene: "10 Mbit/s, 40 ms, 3 MB, nothing until 9 s, 3 MB; goodput in the second after, over \
                the link's rate",
        by: By::Algorithm,
        applies: bbr,
        measure: |subject| {
            let scene = path().asking([(0, 3_000_000), (9000, 3_000_000)]);
            let film = film(subject, &scene, 10.2, MS * 5)?;
            Ok(Finding::new(film.goodput(9.1, 10.1) / MBPS, 0.9, 1.0, "times"))
        },
    },
];

fn path() -> Scene {
    Scene::new(MBPS, Duration::from_secs_f64(RTT)).buffer(1000)
}

/// The same, but that its rate in Mbit/s changes: how many seconds each rate lasts.
fn stepping(rates: [(u64, f64); 2]) -> Scene {
    let steps = rates.map(|(lasts, mbps)| (Duration::from_secs(lasts), Rate::from_mbps(mbps)));
    let mut scene = path();
    // The rates are none that a trace cannot have.
    if let Ok(trace) = generate::steps(&steps) {
        scene.link.capacity = Capacity::trace(trace);
    }
    scene
}

/// When the pacing rate falls for the first time, in seconds.
fn startup_exit(film: &Film) -> Option<f64> {
    let fast = |look: &Look| look.pacing.map_or(0.0, Rate::mbps);
    let exit = film.looks.windows(2).find(|pair| fast(&pair[1]) < 0.7 * fast(&pair[0]))?;
    Some(exit[1].at.as_secs_f64())
}
