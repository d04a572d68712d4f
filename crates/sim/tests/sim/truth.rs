//! What must hold in every world: packets are conserved, a fork continues as its original, and a
//! bulk flow reaches what can be worked out on paper.

use trimtab_apps::{App, BulkConfig, DownloadConfig, Live, LiveConfig, Workload};
use trimtab_cc::muses::Trees;
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::muses::Policy;
use trimtab_units::{Bytes, Duration, Rate, Time};

fn flow(cc: &str, transport: Transport, app: App, seed: u64) -> FlowConfig {
    let control = Control::Algorithm { spec: cc.parse().unwrap(), steerer: None };
    FlowConfig {
        start: Time::from_millis(3 * seed),
        seed,
        ..FlowConfig::new(control, transport, app, Duration::from_millis(20))
    }
}

fn bulk(cc: &str, transport: Transport, seed: u64) -> FlowConfig {
    flow(cc, transport, App::bulk(&BulkConfig::default()), seed)
}

fn link(mbps: f64, packets: u32) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(mbps)))
        .queue(QueueConfig::drop_tail_packets(packets))
}

const TRANSPORTS: [Transport; 2] = [Transport::quic(), Transport::linux_tcp()];

/// Sent = at the link + on the way to it; at the link = dropped + delivered + in it.
#[test]
fn packets_are_conserved() {
    for transport in TRANSPORTS {
        for cc in ["cubic:linux", "newreno", "bbr"] {
            let lossy = link(12.0, 15).loss(LossConfig::Independent(0.02));
            let flows = (0..3).map(|i| bulk(cc, transport, i)).collect();
            let mut world = World::new(&WorldConfig { links: vec![(lossy, 5)], flows });
            for ms in (100..6_000).step_by(333) {
                world.run_until(Time::from_millis(ms));
                let sent: u64 = world.flows().iter().map(|f| f.sent().packets).sum();
                let dropped: u64 = world.flows().iter().map(|f| f.received().dropped).sum();
                let link = world.link_stats(0);
                assert_eq!(link.dropped().packets, dropped, "{cc}: every drop is someone's");
                let queued = world.queue(0).get().div_ceil(1500);
                assert_eq!(
                    link.arrivals.packets,
                    link.departures.packets + dropped + queued,
                    "{cc}"
                );
                assert!(sent >= link.arrivals.packets, "{cc}: nothing comes from nowhere");
                // What is on the way left within the last 10 ms, at no more than a window.
                let window: u64 = world.flows().iter().map(|f| f.window().get() / 1500 + 3).sum();
                assert!(sent - link.arrivals.packets <= window, "{cc}: nothing stays on the way");
            }
        }
    }
}

/// More packets than the initial window leave before the first acknowledgement: as a probe, where the
/// link is slow, or because the window starts larger. TCP's pacer once had no rate then, and waited
/// for ever.
#[test]
fn a_flow_goes_on_whatever_leaves_before_the_first_acknowledgement() {
    for transport in TRANSPORTS {
        for (cc, mbps) in [("cubic", 0.1), ("vegas", 0.1), ("copa:initial_window=40", 12.0)] {
            let app = App::download(DownloadConfig::new(Workload::parse("0 100000").unwrap()));
            let flows = vec![flow(cc, transport, app, 1)];
            let mut world = World::new(&WorldConfig { links: vec![(link(mbps, 100), 1)], flows });
            world.run_until(Time::from_secs(60));
            assert!(world.is_finished(), "{cc} is stuck");
        }
    }
}

/// Linux leaves pacing to an algorithm with `cong_control`: Muses' in eBPF paces at 5/4 of its window
/// per round trip, whether the window grows or not.
#[test]
fn muses_on_tcp_is_paced_as_its_ebpf_paces() {
    let trees = Trees::parse(include_bytes!("../../../../models/muses.trees")).unwrap();
    let control = Control::Muses { policy: Policy::Trees(trees), safe: None };
    let (app, rtt) = (App::bulk(&BulkConfig::default()), Duration::from_millis(100));
    let flows = vec![FlowConfig::new(control, Transport::linux_tcp(), app, rtt)];
    let mut world = World::new(&WorldConfig { links: vec![(link(200.0, 2000), 1)], flows });
    let (mut before, mut paced, mut fastest) = (0, 0.0_f64, 0.0_f64);
    for ms in (20..3000).step_by(10) {
        world.run_until(Time::from_millis(ms));
        let flow = &world.flows()[0];
        let (sent, window) = (flow.sent().packets, flow.window().as_f64() / 1500.0);
        let least = paced.min(window);
        // Ten packets are not paced, and a burst of a millisecond may fall on either side.
        if before > 10 && least > 40.0 {
            fastest = fastest.max((sent - before) as f64 / (paced.max(window) * 0.1));
        }
        (before, paced) = (sent, window);
    }
    assert!((1.15..1.45).contains(&fastest), "{fastest} windows per round trip");
}

/// A segment that arrives after its viewer has left leaves the next one due, which nobody asks for.
/// The simulator once asked for it at that moment for ever.
#[test]
fn a_response_may_come_after_its_client_has_stopped() {
    for stop in [5, 10, 20] {
        let app = App::Live(Live::new(LiveConfig::default()).unwrap());
        let mut flow = flow("cubic", Transport::quic(), app, 1);
        flow.stop = Time::from_secs(stop);
        let mut world =
            World::new(&WorldConfig { links: vec![(link(0.2, 20), 1)], flows: vec![flow] });
        world.run_until(Time::from_secs(stop));
        let before = world.flows()[0].received().goodput;
        world.run_until(Time::from_secs(stop + 60));
        assert!(world.flows()[0].received().goodput > before, "a response came late");
        assert!(world.is_finished());
    }
}

/// All response bytes arrive, in spite of losses, drops and timeouts, on either kind of transport.
#[test]
fn every_request_is_answered_whatever_is_lost() {
    let workload = Workload::parse(&"40 30000\n".repeat(40)).unwrap();
    for transport in TRANSPORTS {
        for (cc, seed) in ["cubic:linux", "bbr", "newreno"].into_iter().cycle().take(30).zip(1..) {
            let lossy = link(6.0, 4).loss(LossConfig::Independent(0.1));
            let app = App::download(DownloadConfig::new(workload.clone()));
            let flows = vec![flow(cc, transport, app, seed)];
            let mut world = World::new(&WorldConfig { links: vec![(lossy, seed)], flows });
            world.run_until(Time::from_secs(300));
            assert!(world.is_finished(), "{cc} leaves requests unanswered");
            assert_eq!(world.flows()[0].received().goodput, Bytes::new(40 * 30_000), "{cc}");
        }
    }
}

/// A fork and its original give the same state, to the last field, and so does a second world of the
/// same configuration.
#[test]
fn a_fork_continues_as_its_original() {
    for transport in TRANSPORTS {
        let config = WorldConfig {
            links: vec![(link(20.0, 40).loss(LossConfig::Independent(0.005)), 9)],
            flows: ["cubic", "bbr", "newreno"]
                .iter()
                .zip(0..)
                .map(|(cc, i)| bulk(cc, transport, i))
                .collect(),
        };
        let mut original = World::new(&config);
        original.run_until(Time::from_millis(2_345));
        let mut fork = original.clone();
        let mut again = World::new(&config);
        for world in [&mut original, &mut fork, &mut again] {
            world.run_until(Time::from_secs(6));
        }
        let state = format!("{original:?}");
        assert_eq!(state, format!("{fork:?}"));
        assert_eq!(state, format!("{again:?}"));
    }
}

/// A link of 12 Mbit/s, 20 ms and 20 packets of buffer (1 BDP): a loss-based flow that never lets it
/// run dry delivers the payload's share of the rate, and the queue's delay is between half of the
/// buffer and all of it.
#[test]
fn a_bulk_flow_reaches_the_closed_form() {
    for transport in TRANSPORTS {
        let flows = vec![bulk("cubic:linux", transport, 0)];
        let mut world = World::new(&WorldConfig { links: vec![(link(12.0, 20), 1)], flows });
        world.run_until(Time::from_secs(2));
        let before = world.flows()[0].received().goodput;
        world.run_until(Time::from_secs(32));
        let flow = &world.flows()[0];
        let goodput = (flow.received().goodput - before).bits() / 30.0 / 1e6;
        let share = transport.payload().ratio(transport.packet);
        assert!((goodput / (12.0 * share) - 1.0).abs() < 0.01, "{goodput} Mbit/s");
        let queue = flow.received().queue_delay.mean().as_millis_f64();
        assert!((8.0..=21.0).contains(&queue), "{queue} ms");
        // 10 ms each way and a transmission of 1 ms.
        let rtt = flow.min_rtt().as_millis_f64();
        assert!((20.0..=22.0).contains(&rtt), "{rtt} ms");
    }
}
