use trimtab_cc::Spec;
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::*;
use crate::testing::silent;

const MSS: Bytes = Bytes::new(1500);
const HALF: Duration = Duration::from_millis(500);

/// Half a second of a path at so many Mbit/s and ms, of which a share is lost.
fn report(now: Time, algorithm: &'static str, mbps: f64, rtt_ms: u64, loss: f64) -> Report {
    let rtt = Duration::from_millis(rtt_ms);
    let sent = Rate::from_mbps(mbps) * HALF;
    let lost = sent.mul_f64(loss);
    Report {
        sent,
        acked: sent - lost,
        lost,
        busy: HALF,
        rtt_samples: 50,
        rtt_mean: Some(rtt),
        rtt_min: Some(rtt),
        rtt_max: Some(rtt),
        srtt: rtt,
        mss: MSS,
        ..silent(now, HALF, algorithm)
    }
}

/// A path under each of two algorithms: Mbit/s, ms, loss.
type Path = (f64, u64, f64);

/// A minute of a selection by throughput that starts with CUBIC and tries BBR after 12 s. What ran
/// at the end of each second, and what the selector counted.
fn run(look: Option<Duration>, cubic: Path, bbr: Path) -> (Vec<&'static str>, Selections) {
    let candidates: Vec<Spec> = ["cubic", "bbr"].iter().filter_map(|n| Spec::new(n)).collect();
    let config = SelectorConfig::new(candidates, Policy::Rule(Utility::Throughput));
    let mut selector = Selector::new(SelectorConfig { look, ..config });
    let mut running = "cubic";
    let mut seen = Vec::new();
    for k in 1..=120 {
        let (mbps, rtt, loss) = if running == "cubic" { cubic } else { bbr };
        let report = report(Time::ZERO + HALF * k, running, mbps, rtt, loss);
        if let Some(action) = selector.on_report(&report) {
            let Action::Switch { to, .. } = action else { panic!("it only switches") };
            assert_eq!(
                selector.reason(&action) == Some(Reason::Worse),
                seen.last() == Some(&"bbr") && selector.selections.reverts > 0,
                "{seen:?}"
            );
            running = to.algorithm().name;
        }
        if k % 2 == 0 {
            seen.push(running);
        }
    }
    (seen, selector.selections())
}

const LOOK: Option<Duration> = Some(Duration::from_secs(2));

fn seconds_of(seen: &[&str], name: &str) -> usize {
    seen.iter().filter(|n| **n == name).count()
}

/// Half the rate at the same delay: 2 s and a report after BBR took over, CUBIC comes back, and for
/// four periods nothing is tried. Without a look BBR has its period of 12 s.
#[test]
fn what_was_clearly_worse_is_taken_back_and_rests() {
    let (seen, done) = run(LOOK, (10.0, 50, 0.0), (4.0, 50, 0.0));
    let first = seen.iter().position(|n| *n == "bbr").unwrap();
    assert_eq!(first, 11, "after a period: {seen:?}");
    let back = first + seen[first..].iter().position(|n| *n == "cubic").unwrap();
    assert!((2..=3).contains(&(back - first)), "{seen:?}");
    assert_eq!(done.reverts, 1);
    assert_eq!(seconds_of(&seen[back..back + 36], "bbr"), 0, "it rests: {seen:?}");
    let (seen, done) = run(None, (10.0, 50, 0.0), (4.0, 50, 0.0));
    assert_eq!((seconds_of(&seen[first..first + 12], "bbr"), done.reverts), (12, 0), "{seen:?}");
}

/// A third less at the same delay is within the margin, and so are twice the losses.
#[test]
fn what_is_hardly_worse_stays() {
    for bbr in [(7.0, 50, 0.0), (10.0, 60, 0.0), (10.0, 50, 0.08)] {
        let (_, done) = run(LOOK, (10.0, 50, 0.04), bbr);
        assert_eq!(done.reverts, 0, "{bbr:?}");
    }
}

/// The response time counts, not the rate alone: losses of a tenth more bring CUBIC back unless BBR
/// is clearly faster for them.
#[test]
fn losses_must_be_worth_it() {
    let (_, done) = run(LOOK, (10.0, 50, 0.0), (10.0, 50, 0.2));
    assert_eq!(done.reverts, 1);
    let (_, done) = run(LOOK, (10.0, 50, 0.0), (40.0, 50, 0.2));
    assert_eq!(done.reverts, 0);
}

/// The link becomes slower as BBR takes over: the rate falls and the queue grows. Of that no
/// algorithm is guilty.
#[test]
fn a_slower_link_is_no_reason() {
    let (_, done) = run(LOOK, (10.0, 50, 0.0), (4.0, 125, 0.0));
    assert_eq!(done.reverts, 0);
}

/// An idle connection says nothing.
#[test]
fn silence_says_nothing() {
    let (_, done) = run(LOOK, (10.0, 50, 0.0), (0.0, 50, 0.0));
    assert_eq!(done.reverts, 0);
}
