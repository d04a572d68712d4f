//! When the switch is made; how each algorithm takes it is tested in the algorithm's folder.

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

/// A mark is answered for a round trip, too; and a window that is cut for one says what the path
/// carries: what takes over does not search for more.
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

/// In slow start, and with a request that waits.
#[test]
fn what_does_harm_gives_way_at_once_with_what_is_known() {
    let (mut cca, now) = connection("newreno");
    cca.request(spec("cubic"), Switch::Full, now);
    let window = cca.window();
    cca.give_way(spec("copa"), now);
    assert_eq!((name(&cca), cca.phase()), ("copa", Phase::Steady));
    assert_eq!((cca.window(), cca.switches()), (window, 1));
    assert!(cca.pending().is_none(), "that was for the one that gave way");
    cca.give_way(spec("copa"), now);
    assert_eq!(cca.switches(), 1, "it runs already");
    // Before the first round trip there is only the window.
    let mut fresh = Switcher::new(spec("cubic"), &Config::with_mss(MSS, 0));
    fresh.give_way(spec("newreno"), Time::ZERO);
    assert_eq!((name(&fresh), fresh.phase()), ("newreno", Phase::SlowStart));
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
        // Sprout knows no more than 1000 packets per second, and this path has 4000.
        let least = if algorithm.name == "sprout" { 0.2 } else { 0.95 };
        assert!((least..1.05).contains(&kept), "{}: {kept}", algorithm.name);
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
    // The path's delay is known: there was no queue when it was measured.
    let model = (Phase::Drain, Phase::SlowStart);
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
    assert_eq!((name(&cca), cca.phase()), ("bbr", Phase::Drain));
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

#[test]
fn another_spec_of_the_same_algorithm_only_turns_knobs() {
    let (mut cca, now) = connection("copa:mvfst");
    let (window, switches) = (cca.window(), cca.switches());
    cca.request(spec("bbr"), Switch::Full, now);
    assert!(!cca.turn(spec("bbr")), "it does not run yet");
    assert!(cca.turn(spec("copa:delta=0.1")));
    assert_eq!((get_knob(&cca, "delta"), get_knob(&cca, "competitive")), (Some(0.1), Some(1.0)));
    assert_eq!((cca.window(), cca.switches(), cca.pending().is_none()), (window, switches, true));
    assert!(cca.spec().is_same(&spec("copa:delta=0.1")), "it comes back so");
}

/// Where an algorithm operates: a window is as much per round trip, a model has its own bandwidth
/// and allows twice what it uses.
#[test]
fn operating_points_are_without_gains() {
    let mut path = PathView::new();
    path.on_ack(&Ack { inflight: MSS * 50, ..ack(Time::from_secs(30)) });
    let window = OperatingPoint::of_window(MSS * 80, &path);
    assert_eq!(window.rate, MSS * 4000 / Duration::from_secs(1));
    assert!(!window.modelled && !window.cut_by_losses && window.bandwidth.is_none());
    assert!(OperatingPoint::of_cut_window(MSS * 80, &path).cut_by_losses);
    let mbps = Rate::from_mbps;
    for (bandwidth, window, want) in [(24.0, 160, 50), (48.0, 160, 80), (48.0, 60, 60)] {
        let point = OperatingPoint::of_model(mbps(bandwidth), MSS * window, &path);
        assert_eq!((point.window, point.rate), (MSS * want, mbps(bandwidth)), "{bandwidth}");
        assert!(point.modelled && point.bandwidth == Some(mbps(bandwidth)));
    }
}

/// BBR takes a minimum of five seconds ago from its like, and measures again after any other.
#[test]
fn a_queue_is_known_to_be_small_after_a_model_with_a_fresh_minimum() {
    let record = |modelled, age: u64| HandOver {
        modelled,
        min_rtt_at: Time::from_secs(30) - Duration::from_millis(age),
        ..crate::testing::hand_over(MSS * 80, RTT)
    };
    assert!(record(true, 4999).queue_is_known_small());
    assert!(!record(true, 5000).queue_is_known_small());
    assert!(!record(false, 0).queue_is_known_small());
}

/// Nothing is handed over before a round trip was measured; what is has no rate of zero.
#[test]
fn a_record_needs_a_round_trip_and_has_rates_above_zero() {
    let cca = spec("newreno").build(&Config::with_mss(MSS, 0));
    assert!(HandOver::of(&cca, &PathView::new(), Time::ZERO).is_none());
    let mut path = PathView::new();
    let long = Duration::from_secs(40_000);
    path.on_ack(&acked(Time::from_secs(50_000), Time::from_secs(10_000), MSS, long));
    let record = HandOver::of(&cca, &path, Time::from_secs(50_000)).unwrap();
    assert_eq!(record.rate, Rate::from_bytes_per_sec(1), "less than a byte per second");
    assert_eq!((record.srtt, record.min_rtt), (long, long));
}

/// Every event reaches the algorithm that runs, and the view of the path.
#[test]
fn events_go_to_the_algorithm_and_to_the_path() {
    let (mut cca, now) = connection("newreno");
    assert_eq!(cca.window(), MSS * 11);
    cca.on_timeout(&crate::testing::timed_out(now + RTT));
    assert_eq!((cca.window(), cca.ssthresh()), (MSS * 2, Some(MSS * 11 / 2)));
    assert!(cca.path().in_recovery());
    cca.on_spurious_loss(now + RTT);
    assert_eq!(cca.window(), MSS * 11);
    let (idle, rto) = (RTT * 30, RTT * 10);
    set_knob(&mut cca, "linux", 1.0).unwrap();
    cca.on_idle(&crate::Idle { now: now + RTT * 40, idle, rto });
    assert_eq!(cca.window(), MSS * 10, "halved, but never below the initial window");
    assert!(!cca.manages_recovery() && cca.pacing_rate().is_none());
    let (mut bbr, now) = connection("bbr");
    let paced = bbr.pacing_rate().unwrap();
    assert!(bbr.manages_recovery());
    bbr.on_established(RTT / 20);
    assert!(bbr.pacing_rate().unwrap() > paced, "a handshake of 1 ms");
    bbr.on_timer(now);
    assert_eq!(bbr.next_timer(), None);
}
