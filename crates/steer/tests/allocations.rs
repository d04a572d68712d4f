//! Nothing on the way from an acknowledgement to a selection allocates.
//!
//! Without the test harness, whose own thread may allocate at the same moment.

use std::alloc::System;
use std::sync::Arc;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use trimtab_cc::muses::{Muses, Trees};
use trimtab_cc::{Ack, Config, CongestionControl, Phase, RateSample, Sent, Spec};
use trimtab_qoe::Factors;
use trimtab_steer::muses::{Lstm, Memory};
use trimtab_steer::select::antelope::Boosted;
use trimtab_steer::select::{Model, Selector, SelectorConfig};
use trimtab_steer::{Action, Collector, KnobValues, Snapshot, Steer};
use trimtab_units::{Bytes, Duration, Time};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MSS: Bytes = Bytes::new(1500);
const RTT: Duration = Duration::from_millis(40);

fn ack(now: Time, delivered: Bytes) -> Ack {
    Ack {
        now,
        acked: MSS,
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        inflight: MSS * 10,
        prior_inflight: MSS * 11,
        delivered,
        newest_sent_at: now - RTT,
        rate: Some(RateSample {
            delivered: MSS * 10,
            interval: RTT,
            prior_delivered: Bytes::ZERO,
            app_limited: false,
            tx_in_flight: MSS * 11,
            lost: Bytes::ZERO,
        }),
        cwnd_limited: true,
        in_recovery: false,
    }
}

/// The models that ship.
static TREES: &[u8] = include_bytes!("../../../models/muses.trees");
static LSTM: &[u8] = include_bytes!("../../../models/muses.safetensors");
static BOOSTED: &[u8] = include_bytes!("../../../models/antelope.safetensors");

fn main() {
    let candidates = ["cubic", "bbr", "copa", "westwood"].map(|n| Spec::new(n).unwrap()).to_vec();
    selections("floo", SelectorConfig::of_model(Model::random(candidates.clone(), 1, 4)));
    selections("an ensemble", SelectorConfig::of_model(Model::random(candidates, 5, 4)));
    let boosted = SelectorConfig::of_boosted(Boosted::parse(BOOSTED).unwrap());
    selections("antelope", SelectorConfig { period: Duration::from_secs(12), ..boosted });
    decisions();
}

/// Ten minutes in which trees decide and are chosen, and a minute in which the LSTM does.
fn decisions() {
    let mut light = Muses::with_trees(&Config::default(), Trees::parse(TREES).unwrap());
    let mut heavy = Muses::new(&Config::default());
    let mut memory = Memory::new(Arc::new(Lstm::parse(LSTM).unwrap()));
    let (mut decided, mut chosen) = (0, 0);
    let region = Region::new(ALLOCATOR);
    let mut tree = light.tree();
    for n in 1..=60_000u64 {
        let ack = ack(Time::from_millis(10 * n), MSS * n);
        light.on_ack(&ack);
        chosen += u32::from(tree != light.tree());
        tree = light.tree();
        if n <= 6_000 {
            heavy.on_ack(&ack);
            if let Some(state) = heavy.awaiting().copied() {
                heavy.on_decision(memory.decide(&state).into());
                decided += 1;
            }
        }
    }
    let stats = region.change();
    assert_eq!((stats.allocations, stats.reallocations), (0, 0));
    assert_eq!(decided, 6_000);
    assert!(chosen >= 1, "the first tree is the global one");
    println!("test ten_minutes_of_trees_and_one_of_the_lstm_allocate_nothing ... ok");
}

/// Ten minutes of acknowledgements and fifty selections.
fn selections(by: &str, config: SelectorConfig) {
    let mut selector = Selector::new(config);
    let mut collector = Collector::new(Time::ZERO);
    let mut running = selector.algorithm().algorithm().name;
    let mut now = Time::ZERO;
    let mut report_at = now + selector.interval(RTT);
    let region = Region::new(ALLOCATOR);
    for n in 1..=60_000u64 {
        now += Duration::from_millis(10);
        collector.on_sent(&Sent { now, bytes: MSS, inflight: MSS * 10, app_limited: false });
        collector.on_ack(&ack(now, MSS * n));
        collector.on_response_sent(Duration::from_millis(n % 50));
        collector.on_response_arrived(MSS * (n % 9 + 1), RTT);
        if now >= report_at {
            let end = Snapshot {
                algorithm: running,
                srtt: RTT,
                min_rtt: RTT,
                window: MSS * (n % 100),
                inflight: MSS * 10,
                mss: MSS,
                phase: Phase::Steady,
                knobs: KnobValues::NONE,
                unsent: MSS * (n % 7),
                factors: Factors::new(),
            };
            if let Some(Action::Switch { to, .. }) = selector.on_report(&collector.report(now, end))
            {
                running = to.algorithm().name;
            }
            report_at = now + selector.interval(RTT);
        }
    }
    let stats = region.change();
    assert_eq!((stats.allocations, stats.reallocations), (0, 0));
    assert_eq!(selector.selections().made, 50);
    assert_eq!(selector.selections().fallbacks, 0);
    println!(
        "test ten_minutes_of_acknowledgements_and_fifty_selections_by_{by}_allocate_nothing ... ok"
    );
}
