//! When the switch is made; what each algorithm makes of it is tested beside the algorithm.

use super::*;
use crate::testing::{acked, lost};
use crate::{Ack, Config, CongestionControl, Marked, Phase, Sent, Spec, get_knob, set_knob};

const MSS: Bytes = Bytes::new(1500);
const RTT: Duration = Duration::from_millis(20);

fn spec(name: &str) -> Spec {
    name.parse().unwrap()
}

/// A connection at 30 s, its algorithm in slow start.
fn connection(name: &str) -> (Switcher, Time) {
    let mut cca = Switcher::new(spec(name), &Config::with_mss(MSS, 0));
    let now = Time::from_secs(30);
    cca.on_ack(&ack(now));
    (cca, now)
}

fn ack(now: Time) -> Ack {
    acked(now, now - RTT, MSS, RTT)
}

fn name(cca: &Switcher) -> &'static str {
    cca.spec().algorithm().name
}

#[test]
fn a_full_switch_waits_for_slow_start_and_recovery_to_end() {
    let (mut cca, now) = connection("newreno");
    cca.request(spec("cubic"), Switch::Full, now);
    assert_eq!((name(&cca), cca.phase()), ("newreno", Phase::SlowStart));
    // A loss: recovery, until something sent after it arrives.
    cca.on_loss(&lost(now, now));
    cca.on_ack(&Ack { in_recovery: true, ..ack(now + RTT) });
    assert_eq!((name(&cca), cca.phase()), ("newreno", Phase::Recovery));
    let window = cca.window();
    cca.on_ack(&acked(now + RTT * 2, now + RTT, MSS, RTT));
    assert_eq!((name(&cca), cca.phase()), ("cubic", Phase::Steady));
    assert!(cca.window() >= window && cca.window() <= window + MSS);
    assert_eq!((cca.switches(), cca.pending().is_none()), (1, true));
}

/// A mark is answered for a round trip, too; and a window that is cut for one says what the path carries: what takes over does
/// not search for more.
#[test]
fn a_full_switch_waits_for_the_answer_to_a_mark() {
    let (mut cca, now) = connection("newreno");
    cca.request(spec("copa"), Switch::Full, now);
    let (inflight, prior_inflight) = (MSS, MSS);
    cca.on_marked(&Marked { now, newest_sent_at: now, inflight, prior_inflight });
    assert_eq!((name(&cca), cca.window()), ("newreno", MSS * 11 / 2));
    cca.on_ack(&ack(now + RTT));
    assert_eq!(name(&cca), "newreno");
    cca.on_ack(&acked(now + RTT * 2, now + RTT, MSS, RTT));
    assert_eq!((name(&cca), cca.phase()), ("copa", Phase::Steady));
}

#[test]
fn a_request_takes_the_place_of_the_one_before_it() {
    let (mut cca, now) = connection("newreno");
    cca.request(spec("cubic"), Switch::Full, now);
    cca.request(spec("vegas"), Switch::Full, now);
    assert_eq!(cca.pending().unwrap().algorithm().name, "vegas");
    cca.request(spec("newreno"), Switch::Full, now);
    assert!(cca.pending().is_none(), "it runs already");
    cca.request(spec("copa:delta=0.1"), Switch::Full, now);
    cca.request(spec("cubic"), Switch::Part, now);
    assert_eq!((name(&cca), cca.pending().is_none()), ("cubic", true));
}

#[test]
fn a_part_switch_is_made_at_once_and_starts_anew() {
    let (mut cca, now) = connection("newreno");
    let window = cca.window();
    cca.request(spec("cubic"), Switch::Part, now);
    assert_eq!((name(&cca), cca.phase()), ("cubic", Phase::SlowStart));
    assert_eq!((cca.window(), cca.ssthresh()), (window, None));
}

#[test]
fn where_nothing_ever_converged_the_new_one_starts_from_the_beginning() {
    let (mut cca, now) = connection("newreno");
    cca.request(spec("bbr"), Switch::Full, now);
    let sent =
        |inflight: u64| Sent { now, bytes: MSS, inflight: MSS * inflight, app_limited: true };
    cca.on_sent(&sent(2));
    assert_eq!(name(&cca), "newreno", "something is in flight");
    cca.on_sent(&sent(1));
    assert_eq!((name(&cca), cca.phase()), ("bbr", Phase::SlowStart));
    assert_eq!(cca.window(), MSS * 10);
}

#[test]
fn the_knobs_are_those_that_were_asked_for() {
    let (mut cca, now) = connection("newreno");
    cca.on_loss(&lost(now, now));
    cca.request(spec("copa:delta=0.1"), Switch::Full, now);
    cca.on_ack(&acked(now + RTT * 2, now + RTT, MSS, RTT));
    assert_eq!(name(&cca), "copa");
    assert_eq!(crate::get_knob(&cca, "delta"), Some(0.1));
}

/// The hand-over of every algorithm that has converged lets the rate be: window = rate × round-trip
/// time (migration.md §8.5), without the gains.
#[test]
fn a_hand_over_keeps_window_and_rate_together() {
    for algorithm in crate::ALGORITHMS {
        let config = Config::with_mss(MSS, 0);
        let mut cca = (algorithm.build)(&config);
        cca.take_over(&crate::testing::hand_over(MSS * 80, RTT));
        let mut path = PathView::new();
        path.on_ack(&Ack { inflight: MSS * 80, ..ack(Time::from_secs(30)) });
        let record = HandOver::of(&cca, &path, Time::from_secs(30)).unwrap();
        let kept = (record.rate * record.srtt).ratio(MSS * 80);
        assert!((kept - 1.0).abs() < 0.05, "{}: {kept}", algorithm.name);
        assert_eq!(record.min_rtt, RTT);
    }
}

/// Converged, so that every full switch is made at once: losses with a queue have ended slow start.
fn settled() -> (Switcher, Time) {
    let (mut cca, now) = connection("newreno");
    let queued = Ack { srtt: RTT * 2, ..ack(now) };
    cca.on_ack(&queued);
    cca.on_loss(&lost(now, now));
    cca.on_ack(&acked(now + RTT * 2, now + RTT, MSS, RTT));
    (cca, now + RTT * 2)
}

/// Held back by losses that came without a queue.
fn starved() -> (Switcher, Time) {
    let (mut cca, now) = connection("newreno");
    cca.on_loss(&lost(now, now));
    cca.on_ack(&acked(now + RTT * 2, now + RTT, MSS, RTT));
    (cca, now + RTT * 2)
}

/// Floo §3.4: converged is what uses the capacity, and what random losses keep small does not. Who can search for the
/// capacity does; the others go on.
#[test]
fn who_takes_over_from_an_algorithm_that_losses_held_back_searches_for_the_capacity() {
    let phases = ["bbr", "bbr3", "copa", "cubic", "westwood", "vegas"].map(|next| {
        let of = |(mut cca, now): (Switcher, Time)| {
            cca.request(spec(next), Switch::Full, now);
            assert_eq!((name(&cca), cca.switches()), (next, 1));
            cca.phase()
        };
        (of(settled()), of(starved()))
    });
    let model = (Phase::ProbeRtt, Phase::SlowStart);
    let same = (Phase::Steady, Phase::Steady);
    assert_eq!(phases, [model, model, (Phase::Steady, Phase::SlowStart), same, same, same]);
}

#[test]
fn losses_without_a_queue_count_for_the_algorithm_that_had_them() {
    let (mut cca, now) = starved();
    assert!(cca.path().lost_without_queue());
    cca.request(spec("cubic"), Switch::Full, now);
    assert!(!cca.path().lost_without_queue(), "CUBIC has lost nothing yet");
    // Copa does not mind losses.
    let (mut cca, mut now) = settled();
    cca.request(spec("copa"), Switch::Full, now);
    cca.on_loss(&lost(now, now));
    assert!(cca.path().lost_without_queue());
    now += RTT * 2;
    cca.on_ack(&acked(now, now - RTT, MSS, RTT));
    cca.request(spec("bbr"), Switch::Full, now);
    assert_eq!((name(&cca), cca.phase()), ("bbr", Phase::ProbeRtt));
}

/// A search that the application never lets come to its end is not waited for.
#[test]
fn a_search_may_be_left_when_nothing_is_in_flight() {
    let (mut cca, now) = starved();
    cca.request(spec("bbr"), Switch::Full, now);
    cca.request(spec("copa"), Switch::Full, now);
    assert_eq!((name(&cca), cca.phase()), ("bbr", Phase::SlowStart));
    cca.on_sent(&Sent { now, bytes: MSS, inflight: MSS, app_limited: true });
    assert_eq!(name(&cca), "copa");
}

#[test]
fn knobs_that_were_turned_survive_a_switch_away_and_back() {
    let (mut cca, now) = settled();
    let delta = |cca: &Switcher| get_knob(cca, "delta").unwrap();
    cca.request(spec("copa:mvfst"), Switch::Full, now);
    assert_eq!((name(&cca), delta(&cca)), ("copa", 0.04));
    set_knob(&mut cca, "delta", 0.2).unwrap();
    // To the default, away from what was asked for.
    set_knob(&mut cca, "competitive", 1.0).unwrap();
    cca.request(spec("cubic"), Switch::Full, now);
    assert_eq!(name(&cca), "cubic");
    for how in [Switch::Full, Switch::Part] {
        cca.request(spec("copa:mvfst"), how, now);
        assert_eq!((name(&cca), delta(&cca)), ("copa", 0.2), "{how:?}");
        assert_eq!(get_knob(&cca, "competitive"), Some(1.0), "{how:?}");
        cca.request(spec("cubic"), Switch::Part, now);
    }
    // Asked for otherwise, it is as asked for.
    cca.request(spec("copa:delta=0.1"), Switch::Part, now);
    assert_eq!(delta(&cca), 0.1);
}
