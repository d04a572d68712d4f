//! Flows that agents set: what they see, do and earn.

use std::sync::Arc;

use trimtab_apps::{App, BulkConfig};
use trimtab_envs::agents::{
    Arena, ArenaRules, Interval, Knob, MEASURES, Measure, OBSERVATION_SETS, REWARDS, TURNS, Turn,
};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{FlowConfig, Transport, WorldConfig};
use trimtab_units::{Duration, Rate, Time};

const MBPS: f64 = 12.0;
const RTT: Duration = Duration::from_millis(20);

fn measure(name: &str) -> Measure {
    *MEASURES.iter().find(|measure| measure.name == name).unwrap()
}

/// Sets the knob to an action, for 100 ms.
fn rules(knob: Knob) -> ArenaRules {
    ArenaRules {
        knob,
        turn: TURNS[0],
        range: (0.1, 1_000.0),
        start: None,
        interval: Interval::Time(Duration::from_millis(100)),
        observe: vec![measure("loss"), measure("latency_ratio")],
        history: 3,
        reward: None,
        steps: None,
    }
}

/// A link of 12 Mbit/s and 20 ms with a queue of 100 ms.
fn link() -> WorldConfig {
    let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(MBPS)))
        .queue(QueueConfig::drop_tail_packets(100));
    WorldConfig { links: vec![(link, 1)], flows: Vec::new() }
}

fn arena_of(rules: ArenaRules, agents: usize) -> Arena {
    let flow = || {
        let app = App::bulk(&BulkConfig::default());
        FlowConfig::new(Arena::CONTROL, Transport::quic(), app, RTT)
    };
    let config = WorldConfig { flows: (0..agents).map(|_| flow()).collect(), ..link() };
    Arena::new(Arc::new(rules), &config, agents, None, Time::from_millis(10_000))
}

fn arena(knob: Knob) -> Arena {
    arena_of(rules(knob), 1)
}

fn value(arena: &Arena, agent: usize, name: &str) -> f64 {
    let place = MEASURES.iter().position(|measure| measure.name == name).unwrap();
    arena.measures(agent)[place]
}

fn steps(arena: &mut Arena, action: f32, count: usize) {
    (0..count).for_each(|_| arena.step(&[action]));
}

#[test]
fn a_rate_below_the_capacity_passes_unchanged() {
    let mut arena = arena(Knob::Rate);
    steps(&mut arena, 6.0, 10);
    let seen = |name| value(&arena, 0, name);
    assert!((seen("throughput_mbps") - 6.0).abs() < 0.2, "{}", seen("throughput_mbps"));
    assert!((seen("send_ratio") - 1.0).abs() < 0.05, "{}", seen("send_ratio"));
    assert_eq!((seen("loss"), seen("pace_mbps"), seen("capacity_mbps")), (0.0, 6.0, MBPS));
    // A packet of 1 ms on the link, and the acknowledgement of every second one.
    assert!((21.0..24.0).contains(&seen("rtt_ms")), "{}", seen("rtt_ms"));
    assert!(seen("queue_packets") <= 1.0 && seen("latency_gradient").abs() < 0.01);
}

/// At 1.25 times the capacity each second of sending puts a quarter of a second into the queue, until
/// its 100 packets are full, 100 ms; then a fifth is lost.
#[test]
fn a_rate_above_the_capacity_fills_the_queue_and_then_loses() {
    let mut arena = arena(Knob::Rate);
    steps(&mut arena, 6.0, 5);
    steps(&mut arena, 15.0, 3);
    assert!((value(&arena, 0, "latency_gradient") - 0.25).abs() < 0.01);
    assert!((value(&arena, 0, "throughput_mbps") - MBPS).abs() < 0.3);
    assert_eq!(value(&arena, 0, "loss"), 0.0);
    steps(&mut arena, 15.0, 10);
    assert!((value(&arena, 0, "loss") - 0.2).abs() < 0.03, "{}", value(&arena, 0, "loss"));
    let rtt = value(&arena, 0, "rtt_ms");
    assert!((115.0..125.0).contains(&rtt), "{rtt}");
    assert!(value(&arena, 0, "queue_packets") > 95.0);
}

/// By Little's law a window of 30 packets over 12 Mbit/s is 30 ms.
#[test]
fn a_window_sets_the_round_trip() {
    let mut arena = arena(Knob::Window);
    steps(&mut arena, 30.0, 10);
    let rtt = value(&arena, 0, "rtt_ms");
    assert!((28.0..33.0).contains(&rtt), "{rtt}");
    assert!((value(&arena, 0, "throughput_mbps") - MBPS).abs() < 0.3);
    assert!((value(&arena, 0, "in_flight_packets") - 30.0).abs() <= 2.0);
    assert_eq!((value(&arena, 0, "window_packets"), value(&arena, 0, "pace_mbps")), (30.0, 0.0));
    steps(&mut arena, 10.0, 10);
    let half = value(&arena, 0, "throughput_mbps");
    assert!((5.0..6.2).contains(&half), "10 packets in 21 ms or a little more: {half}");
}

#[test]
fn an_interval_lasts_as_long_as_it_is_asked_to() {
    let with = |interval| arena_of(ArenaRules { interval, ..rules(Knob::Window) }, 1);
    let mut by_time = with(Interval::Time(Duration::from_millis(30)));
    steps(&mut by_time, 10.0, 2);
    assert_eq!(value(&by_time, 0, "interval_ms"), 30.0);
    let mut by_trips = with(Interval::RoundTrips(2.0));
    by_trips.step(&[10.0]);
    let rtt = value(&by_trips, 0, "rtt_ms");
    by_trips.step(&[10.0]);
    assert!((value(&by_trips, 0, "interval_ms") - 2.0 * rtt).abs() < 1e-3);
    let mut by_acks = with(Interval::Ack);
    for _ in 0..50 {
        by_acks.step(&[10.0]);
        assert!(value(&by_acks, 0, "acks") <= 1.0 && value(&by_acks, 0, "throughput_mbps") > 0.0);
    }
    // Each acknowledges two of ten packets in flight: 50 are ten round trips, and one and a half
    // came before.
    let spent = by_acks.world().now().as_secs_f64();
    assert!((0.23..0.28).contains(&spent), "{spent} s");
}

#[test]
fn observations_are_a_history_and_episodes_end() {
    let mut arena = arena_of(ArenaRules { steps: Some(4), ..rules(Knob::Rate) }, 1);
    let first = arena.observation(0).to_vec();
    assert_eq!(first, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    arena.step(&[500.0]);
    let now = arena.observation(0).to_vec();
    assert_eq!(&now[..4], &first[2..]);
    assert_eq!(now[5], value(&arena, 0, "latency_ratio") as f32);
    for _ in 0..3 {
        assert!(!arena.is_done());
        arena.step(&[500.0]);
    }
    let (done, events) = (arena.is_done(), arena.events());
    arena.step(&[500.0]);
    assert!(done && arena.events() == events, "what is over stays as it is");
}

#[test]
fn a_copy_goes_on_as_the_original_would_and_may_do_otherwise() {
    let mut arena = arena(Knob::Rate);
    steps(&mut arena, 9.0, 5);
    let (mut same, mut other) = (arena.clone(), arena.clone());
    for action in [3.0, 15.0, 12.0] {
        arena.step(&[action]);
        same.step(&[action]);
        other.step(&[action * 2.0]);
    }
    let bits = |arena: &Arena| (arena.measures(0).map(f64::to_bits), arena.events());
    assert_eq!(bits(&arena), bits(&same));
    assert_ne!(bits(&arena), bits(&other));
}

#[test]
fn agents_share_a_link() {
    let mut arena = arena_of(rules(Knob::Rate), 2);
    for _ in 0..20 {
        arena.step(&[12.0, 4.0]);
    }
    let got = [0, 1].map(|agent| value(&arena, agent, "throughput_mbps"));
    assert!((got[0] + got[1] - MBPS).abs() < 0.5, "{got:?}");
    assert!(got[0] > 2.0 * got[1], "{got:?}");
}

/// Aurora's reward by hand: 6 Mbit/s are 500 packets a second.
#[test]
fn rewards_are_their_formulas() {
    let worth = |name: &str, action| {
        let reward = REWARDS.iter().find(|reward| reward.name == name).copied();
        let mut arena = arena_of(ArenaRules { reward, ..rules(Knob::Rate) }, 1);
        steps(&mut arena, action, 10);
        (arena.reward(0), value(&arena, 0, "throughput_mbps"), value(&arena, 0, "rtt_ms") * 1e-3)
    };
    let (aurora, mbps, rtt) = worth("aurora", 6.0);
    assert!((aurora - 1e-3 * (10.0 * mbps * 1e6 / 12e3 - 1e3 * rtt)).abs() < 1e-9);
    assert!((4.8..5.1).contains(&aurora), "{aurora}");
    let (orca, ..) = worth("orca", 6.0);
    assert!((0.95..=1.0).contains(&orca), "its highest throughput at no queue: {orca}");
    let (power, mbps, rtt) = worth("power", 6.0);
    assert!((power - mbps / rtt).abs() < 1e-9);
    for reward in &REWARDS {
        let (calm, ..) = worth(reward.name, 11.0);
        let (lossy, ..) = worth(reward.name, 40.0);
        assert!(calm > lossy && lossy.is_finite(), "{}: {calm}, {lossy}", reward.name);
    }
}

#[test]
fn every_name_is_one_measure_and_sets_name_measures() {
    for (i, measure) in MEASURES.iter().enumerate() {
        let mut others = MEASURES[i + 1..].iter();
        assert!(others.all(|other| other.name != measure.name), "{}", measure.name);
        assert!(measure.range.0 < measure.range.1 && !measure.about.is_empty());
    }
    let known = |name: &&str| MEASURES.iter().any(|measure| measure.name == *name);
    assert!(OBSERVATION_SETS.iter().all(|set| set.measures.iter().all(known)));
}

#[test]
fn actions_and_their_opposites_cancel() {
    let of = |name: &str| TURNS.iter().find(|turn| turn.name == name).unwrap();
    for turn in TURNS.iter().filter(|turn: &&Turn| turn.range.is_some()) {
        for action in [0.5, 2.0] {
            let there = (turn.of)(8.0, action);
            assert!(there > 8.0, "{}", turn.name);
            assert!(((turn.of)(there, -action) - 8.0).abs() < 1e-12, "{}", turn.name);
        }
    }
    // Aurora §3.1, Eq. 1: 5% more for an action of 2. Orca §4.2: twice as much for one of 1.
    assert!(((of("aurora").of)(10.0, 2.0) - 10.5).abs() < 1e-12);
    assert!(((of("orca").of)(10.0, 1.0) - 20.0).abs() < 1e-12);
}

#[test]
fn intervals_are_written_with_their_unit() {
    assert_eq!("1rtt".parse(), Ok(Interval::RoundTrips(1.0)));
    assert_eq!("0.5rtt".parse(), Ok(Interval::RoundTrips(0.5)));
    assert_eq!("30ms".parse(), Ok(Interval::Time(Duration::from_millis(30))));
    assert_eq!("ack".parse(), Ok(Interval::Ack));
    for wrong in ["", "rtt", "0rtt", "-1rtt", "NaNrtt", "30", "0ms", "acks"] {
        let error = wrong.parse::<Interval>().unwrap_err();
        assert!(error.contains("\"30ms\""), "{error}");
    }
}
