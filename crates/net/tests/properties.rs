//! What holds for every link under every sequence of packets.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use trimtab_net::{
    Capacity, DelayConfig, Delivery, DropCause, Event, JitterConfig, Link, LinkConfig, LossConfig,
    Packet, PolicerConfig, QueueConfig, ReorderConfig, Trace,
};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// A packet to send: the time since the one before it, and its size.
type Sent = (Duration, Bytes);

fn packets() -> impl Strategy<Value = Vec<Sent>> {
    // Bursts, spacings below a millisecond, and idle times over many repetitions of a trace.
    let gap = prop_oneof![
        Just(0),
        0..3_000_000u64,
        (0..20u64).prop_map(|ms| ms * 1_000_000),
        0..300_000_000u64
    ];
    let packet = (gap.prop_map(Duration::from_nanos), (0..4000u64).prop_map(Bytes::new));
    prop::collection::vec(packet, 1..120)
}

fn trace() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0..40u32, 1..30).prop_filter_map("a trace has a length", |mut times| {
        times.sort_unstable();
        Trace::from_opportunities(times).ok()
    })
}

fn trace_capacity() -> impl Strategy<Value = Capacity> {
    (trace(), 0..200_000u64, prop_oneof![Just(1500u64), Just(1504), 1..3000u64]).prop_map(
        |(trace, offset, opportunity)| Capacity::Trace {
            trace: Arc::new(trace),
            offset: Duration::from_micros(offset),
            opportunity: Bytes::new(opportunity),
        },
    )
}

fn capacity() -> impl Strategy<Value = Capacity> {
    let constant =
        (1_000..20_000_000u64).prop_map(|rate| Capacity::Constant(Rate::from_bytes_per_sec(rate)));
    prop_oneof![constant, trace_capacity()]
}

fn drop_tail() -> impl Strategy<Value = QueueConfig> {
    let bytes = prop::option::of((0..30_000u64).prop_map(Bytes::new));
    (bytes, prop::option::of(0..20u32))
        .prop_map(|(bytes, packets)| QueueConfig::DropTail { bytes, packets })
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let codel =
        (prop::option::of(1..60u32), 0..8u64, 1..60u64).prop_map(|(packets, target, interval)| {
            QueueConfig::CoDel {
                bytes: None,
                packets,
                target: Duration::from_millis(target),
                interval: Duration::from_millis(interval),
            }
        });
    prop_oneof![drop_tail(), codel]
}

/// Constant delays, and some that step up and down, some of them often.
fn delay() -> impl Strategy<Value = DelayConfig> {
    let ms = |ms| Duration::from_millis(ms);
    let step = (prop_oneof![0..5u64, 0..3000u64], 0..150u64).prop_map(move |(a, b)| (ms(a), ms(b)));
    prop_oneof![
        (0..50u64).prop_map(move |delay| ms(delay).into()),
        prop::collection::vec(step, 0..5).prop_map(DelayConfig::steps),
    ]
}

fn impaired() -> impl Strategy<Value = LinkConfig> {
    let loss = prop_oneof![
        Just(LossConfig::None),
        (0.0..0.5f64).prop_map(LossConfig::Independent),
        (0.0..0.4f64, 1.0..9.0f64).prop_map(|(rate, burst)| LossConfig::bursts(rate, burst)),
    ];
    let policer = prop::option::of((0..3_000_000u64, 0..20_000u64).prop_map(|(rate, burst)| {
        PolicerConfig { rate: Rate::from_bytes_per_sec(rate), burst: Bytes::new(burst) }
    }));
    let jitter = prop_oneof![
        Just(JitterConfig::None),
        (0..9u64).prop_map(|ms| JitterConfig::Uniform { max: Duration::from_millis(ms) }),
        (0..9u64).prop_map(|ms| JitterConfig::Bell { max: Duration::from_millis(ms) }),
    ];
    (capacity(), queue(), loss, policer, jitter, delay(), 0..60u64).prop_map(
        |(capacity, queue, loss, policer, jitter, delay, overhead)| {
            let config = LinkConfig::new(capacity)
                .queue(queue)
                .loss(loss)
                .jitter(jitter)
                .delay(delay)
                .overhead(Bytes::new(overhead));
            LinkConfig { policer, ..config }
        },
    )
}

/// What became of each packet, by its number.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fates {
    delivered: Vec<Delivery<usize>>,
    dropped: Vec<(usize, DropCause)>,
}

impl Fates {
    fn drain(&mut self, link: &mut Link<usize>, now: Time) {
        while let Some(event) = link.poll(now) {
            match event {
                Event::Delivered(delivery) => self.delivered.push(delivery),
                Event::Dropped(dropped) => {
                    self.dropped.push((dropped.packet.payload, dropped.cause));
                }
            }
        }
    }

    /// Sends the packets, polling between them whenever the link asks for it if `is_punctual`, and otherwise
    /// only at the end.
    fn of(link: &mut Link<usize>, packets: &[Sent], is_punctual: bool) -> Self {
        let mut fates = Self::default();
        let mut now = Time::ZERO;
        let first = link.stats().arrivals.packets as usize;
        for (number, &(gap, size)) in (first..).zip(packets) {
            now += gap;
            while let Some(due) = link.next_event().filter(|&due| is_punctual && due <= now) {
                fates.drain(link, due);
            }
            if let Err(dropped) = link.send(now, Packet { size, payload: number }) {
                assert_eq!((dropped.at, dropped.packet.payload), (now, number));
                fates.dropped.push((number, dropped.cause));
            }
        }
        if is_punctual {
            while let Some(due) = link.next_event() {
                fates.drain(link, due);
            }
        } else {
            fates.drain(link, now + Duration::from_secs(100_000));
        }
        fates
    }
}

/// Rules 1 to 4 of [`Link`]'s documentation, one opportunity at a time, with arrivals in whole ms. Returns the
/// departure of each packet in ms, `None` for a drop.
fn by_the_book(
    times: &[u32],
    offset_ms: u64,
    opportunity: u64,
    (bytes_max, packets_max): (u64, u64),
    arrivals_ms: &[(u64, u64)],
) -> Vec<Option<u64>> {
    let mut departures = vec![None; arrivals_ms.len()];
    let mut queue: VecDeque<(usize, u64)> = VecDeque::new();
    let mut in_service: Option<(usize, u64)> = None;
    let mut pass = |ms: u64, queue: &mut VecDeque<(usize, u64)>| {
        let mut left = opportunity;
        while left > 0 {
            let Some((packet, missing)) = in_service.take().or_else(|| queue.pop_front()) else {
                break;
            };
            let sent = missing.min(left);
            left -= sent;
            if sent == missing {
                departures[packet] = Some(ms);
            } else {
                in_service = Some((packet, missing - sent));
            }
        }
    };
    let period = u64::from(*times.last().unwrap());
    let mut opportunities = (0..)
        .flat_map(|round| times.iter().map(move |&time| round * period + u64::from(time)))
        .filter_map(|position| position.checked_sub(offset_ms))
        .peekable();
    for (number, &(at, size)) in arrivals_ms.iter().enumerate() {
        while let Some(ms) = opportunities.next_if(|&ms| ms <= at) {
            pass(ms, &mut queue);
        }
        let queued: u64 = queue.iter().map(|&(_, size)| size).sum();
        if (queue.len() as u64) < packets_max && queued + size <= bytes_max {
            queue.push_back((number, size));
        }
    }
    for _ in 0..500_000 {
        pass(opportunities.next().unwrap(), &mut queue);
    }
    departures
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        // A failure prints its input; that becomes a test with a name, not a line in a file.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The lazy arithmetic of a trace-driven link gives what the rules give when they are carried out one
    /// by one.
    #[test]
    fn a_trace_link_keeps_the_rules(
        capacity in trace_capacity(),
        queue in drop_tail(),
        packets in packets(),
    ) {
        let Capacity::Trace { trace, offset, opportunity } = &capacity else { unreachable!() };
        let QueueConfig::DropTail { bytes, packets: most } = queue else { unreachable!() };
        // The book works in bytes that exist.
        let packets: Vec<Sent> =
            packets.into_iter().map(|(gap, size)| (gap, size.max(Bytes::new(1)))).collect();
        let mut now = Time::ZERO;
        let mut arrivals = Vec::new();
        for &(gap, size) in &packets {
            now += gap;
            arrivals.push((now.as_millis(), size.get()));
        }
        let limits = (bytes.map_or(u64::MAX, Bytes::get), most.map_or(u64::MAX, u64::from));
        let expected = by_the_book(
            trace.opportunities(), offset.as_millis(), opportunity.get(), limits, &arrivals,
        );
        let mut link = Link::new(&LinkConfig::new(capacity.clone()).queue(queue), 1);
        let fates = Fates::of(&mut link, &packets, true);
        let mut departures = vec![None; packets.len()];
        for delivery in &fates.delivered {
            departures[delivery.packet.payload] = Some(delivery.departed_at);
        }
        let expected: Vec<_> = expected.into_iter().map(|ms| ms.map(Time::from_millis)).collect();
        prop_assert_eq!(departures, expected);
    }

    /// Every packet has one fate; the statistics and the queue agree; packets keep their order; and what
    /// leaves in any span of time fits into the capacity of that span.
    #[test]
    fn packets_are_conserved_and_keep_their_order(
        config in impaired(),
        packets in packets(),
        cut in 0..120usize,
        seed: u64,
    ) {
        let mut link = Link::new(&config, seed);
        // In the middle, with packets under way.
        let mut fates = Fates::of(&mut link, &[], true);
        let mut now = Time::ZERO;
        for (number, &(gap, size)) in packets.iter().take(cut).enumerate() {
            now += gap;
            if let Err(dropped) = link.send(now, Packet { size, payload: number }) {
                fates.dropped.push((number, dropped.cause));
            }
            fates.drain(&mut link, now);
        }
        let stats = *link.stats();
        let waiting = link.queue_packets() as u64;
        prop_assert_eq!(
            stats.arrivals.packets,
            stats.departures.packets + stats.dropped().packets + waiting
        );
        prop_assert_eq!(
            stats.arrivals.bytes,
            stats.departures.bytes + stats.dropped().bytes + link.queue_bytes()
        );
        let under_way = link.transit_packets() as u64;
        prop_assert_eq!(stats.departures.packets, stats.deliveries.packets + under_way);
        prop_assert_eq!(stats.deliveries.packets, fates.delivered.len() as u64);

        // To the end.
        let mut link = Link::new(&config, seed);
        let fates = Fates::of(&mut link, &packets, true);
        let mut numbers: Vec<usize> = fates.dropped.iter().map(|&(number, _)| number).collect();
        numbers.extend(fates.delivered.iter().map(|delivery| delivery.packet.payload));
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..packets.len()).collect::<Vec<_>>());
        prop_assert_eq!(link.queue_packets() + link.transit_packets(), 0);
        prop_assert_eq!(link.next_event(), None);

        let in_order = |key: &dyn Fn(&Delivery<usize>) -> u64| fates.delivered.is_sorted_by_key(key);
        prop_assert!(in_order(&|delivery| delivery.packet.payload as u64));
        prop_assert!(in_order(&|delivery| delivery.at.as_nanos()));
        prop_assert!(in_order(&|delivery| delivery.departed_at.as_nanos()));
        for delivery in &fates.delivered {
            prop_assert!(delivery.departed_at >= delivery.enqueued_at);
            prop_assert!(delivery.at >= delivery.departed_at + config.delay.at(delivery.departed_at));
        }
        for (first, delivery) in fates.delivered.iter().enumerate() {
            // From just before that departure, since a trace may have more opportunities in its millisecond.
            let from = delivery.departed_at - Duration::from_nanos(1);
            let mut carried = Bytes::ZERO;
            for later in &fates.delivered[first + 1..] {
                carried += later.packet.size + config.overhead;
                let span = config.capacity.bytes_between(from, later.departed_at);
                // Departures are rounded down to the nanosecond, and the span to a byte.
                prop_assert!(carried <= span + Bytes::new(2));
            }
        }
    }

    /// It makes no difference how often a link is polled, and a clone goes on like its original.
    #[test]
    fn polling_and_cloning_change_nothing(
        config in impaired(),
        packets in packets(),
        cut in 0..120usize,
        seed: u64,
    ) {
        let sorted = |mut fates: Fates| {
            fates.dropped.sort_unstable_by_key(|&(number, _)| number);
            fates
        };
        let new = || Link::new(&config, seed);
        let punctual = sorted(Fates::of(&mut new(), &packets, true));
        let late = sorted(Fates::of(&mut new(), &packets, false));
        prop_assert_eq!(&punctual, &late);
        prop_assert_eq!(&punctual, &sorted(Fates::of(&mut new(), &packets, true)));

        let mut link = new();
        let mut now = Time::ZERO;
        for (number, &(gap, size)) in packets.iter().take(cut).enumerate() {
            now += gap;
            let _ = link.send(now, Packet { size, payload: number });
        }
        let rest: Vec<Sent> = std::iter::once((now.since(Time::ZERO), Bytes::new(1)))
            .chain(packets.iter().skip(cut).copied())
            .collect();
        let mut copy = link.clone();
        let original = sorted(Fates::of(&mut link, &rest, true));
        prop_assert_eq!(original, sorted(Fates::of(&mut copy, &rest, false)));
    }

    /// Without randomness and CoDel the link announces its deliveries to the nanosecond.
    #[test]
    fn deliveries_come_when_announced(
        capacity in capacity(),
        queue in drop_tail(),
        packets in packets(),
        delay in delay(),
    ) {
        let config = LinkConfig::new(capacity).queue(queue).delay(delay);
        let mut link = Link::new(&config, 1);
        let mut now = Time::ZERO;
        for (number, &(gap, size)) in packets.iter().enumerate() {
            now += gap;
            while let Some(due) = link.next_event().filter(|&due| due <= now) {
                let Some(Event::Delivered(delivery)) = link.poll(due) else {
                    return Err(TestCaseError::fail("nothing at the announced time"));
                };
                prop_assert_eq!(delivery.at, due);
            }
            prop_assert_eq!(link.poll(now), None);
            let _ = link.send(now, Packet { size, payload: number });
        }
    }

    /// Reordering delays some packets and loses none, and deliveries still come in order of time.
    #[test]
    fn reordering_only_reorders(
        config in impaired(),
        packets in packets(),
        probability in 0.0..0.6f64,
        extra in 1..80u64,
        seed: u64,
    ) {
        let extra = Duration::from_millis(extra);
        let reordering = config.clone().reorder(ReorderConfig { probability, extra });
        let plain = Fates::of(&mut Link::new(&config, seed), &packets, true);
        let fates = Fates::of(&mut Link::new(&reordering, seed), &packets, true);
        prop_assert!(fates.delivered.is_sorted_by_key(|delivery| delivery.at));
        let mut by_number = fates.delivered.clone();
        by_number.sort_unstable_by_key(|delivery| delivery.packet.payload);
        prop_assert_eq!(by_number.len(), plain.delivered.len());
        for (moved, still) in by_number.iter().zip(&plain.delivered) {
            prop_assert_eq!(moved.packet, still.packet);
            prop_assert!(moved.at == still.at || moved.at == still.at + extra);
        }
    }

    /// The parser takes any bytes, and what it accepts it writes and reads again.
    #[test]
    fn the_parser_never_panics(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[-+0-9 .\\r\\n]{0,200}".prop_map(String::into_bytes),
        ],
    ) {
        if let Ok(trace) = Trace::parse(&bytes) {
            let mut text = Vec::new();
            trace.write_text(&mut text).unwrap();
            prop_assert_eq!(Trace::parse(&text), Ok(trace.clone()));
            prop_assert!(trace.stats().cv >= 0.0);
        }
    }

    /// A trace looks the same in every repetition.
    #[test]
    fn a_trace_repeats(trace in trace(), from in 0..100u64, span in 0..100u64, rounds in 1..1000u64) {
        let period = trace.period();
        let capacity = Capacity::trace(trace);
        let later = |ms: u64| Time::from_millis(ms) + period * rounds;
        // The first round has no opportunity that ended the one before it.
        let (from, to) = (from + period.as_millis(), from + period.as_millis() + span);
        prop_assert_eq!(
            capacity.bytes_between(Time::from_millis(from), Time::from_millis(to)),
            capacity.bytes_between(later(from), later(to))
        );
    }
}
