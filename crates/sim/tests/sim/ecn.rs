//! Congestion marks (ECN): who answers them, and by how much.

use trimtab_apps::{App, BulkConfig};
use trimtab_net::{Capacity, LinkConfig, MarkConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

const PACKET: Bytes = Bytes::new(1500);
const SECONDS: u64 = 60;

fn flow(cc: &str, transport: Transport, seed: u64) -> FlowConfig {
    let control = Control::Algorithm { spec: cc.parse().unwrap(), steerer: None };
    let app = App::bulk(&BulkConfig::default());
    FlowConfig { seed, ..FlowConfig::new(control, transport, app, Duration::from_millis(20)) }
}

/// 20 Mbit/s and two bandwidth-delay products of buffer.
fn link(mark: MarkConfig) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(20.0)))
        .queue(QueueConfig::drop_tail_packets(67))
        .mark(mark)
}

fn run(link: LinkConfig, flows: Vec<FlowConfig>) -> World {
    let mut world = World::new(&WorldConfig { links: vec![(link, 1)], flows });
    world.run_until(Time::from_secs(SECONDS));
    world
}

/// Goodput of each flow in Mbit/s.
fn goodputs(world: &World) -> Vec<f64> {
    let of = |flow: &trimtab_sim::Flow| flow.received().goodput.bits() / SECONDS as f64 / 1e6;
    world.flows().iter().map(of).collect()
}

fn alone(cc: &str, transport: Transport, mark: MarkConfig) -> f64 {
    goodputs(&run(link(mark), vec![flow(cc, transport, 1)]))[0]
}

/// All that answer, and CUBIC as the transport has it. Allegro, Sprout and Verus are not among them:
/// marks bound what they keep in flight, and no paper says what they make of a marking queue.
fn answering(transport: Transport) -> (&'static str, [&'static str; 10]) {
    let cubic = if transport == Transport::quic() { "cubic" } else { "cubic:linux" };
    let others = [
        "newreno",
        "westwood",
        "vegas",
        "copa",
        "copa:mvfst",
        "vivace",
        "bbr3",
        "ledbat",
        "illinois",
        "c2tcp",
    ];
    (cubic, others)
}

/// Nobody gets more than 1.3 times what CUBIC does, whatever share of the packets is marked; BBRv1 is Linux's, which
/// does not answer. `trimtab compare --scenario scenarios/links/ecn.toml` has the figures.
#[test]
fn random_marks_leave_nobody_much_more_than_cubic() {
    for transport in [Transport::quic(), Transport::linux_tcp()] {
        let (cubic, others) = answering(transport);
        for share in [0.01, 0.03, 0.1, 0.3] {
            let mark = MarkConfig::Random(share);
            let of_cubic = alone(cubic, transport, mark);
            for cc in others {
                let got = alone(cc, transport, mark) / of_cubic;
                assert!(got <= 1.3, "{cc} with {share} marked: {got:.2} times CUBIC");
                assert!(got >= 0.4, "{cc} with {share} marked: {got:.2} times CUBIC");
            }
            if share == 0.1 {
                let bbr = alone("bbr", transport, mark) / of_cubic;
                assert!(bbr > 10.0, "{bbr}: does it answer?");
            }
        }
    }
}

/// A queue that marks from half a bandwidth-delay product on stays short of its buffer, and the
/// link stays in use. Flows of one kind share it, and next to CUBIC nobody takes more than twice as
/// much.
#[test]
fn a_threshold_keeps_the_queue_short_without_losses() {
    let mark = MarkConfig::Above(PACKET * 17);
    for transport in [Transport::quic(), Transport::linux_tcp()] {
        let (cubic, others) = answering(transport);
        for cc in others {
            let world = run(link(mark), vec![flow(cc, transport, 1)]);
            let got = goodputs(&world)[0];
            assert!(got > 15.0, "{cc} alone: {got} Mbit/s");
            let (sent, dropped) =
                (world.flows()[0].sent().packets, world.flows()[0].received().dropped);
            assert!(dropped * 1000 < sent, "{cc}: {dropped} of {sent}: more than slow start's");
            let own =
                goodputs(&run(link(mark), vec![flow(cc, transport, 1), flow(cc, transport, 2)]));
            assert!(own[0] < 2.0 * own[1] && own[1] < 2.0 * own[0], "{cc}: {own:?}");
            let next_to =
                goodputs(&run(link(mark), vec![flow(cubic, transport, 1), flow(cc, transport, 2)]));
            assert!(next_to[1] < 2.0 * next_to[0], "{cc} next to CUBIC: {next_to:?}");
        }
    }
}

/// Without marks in the link's configuration nothing is marked, and with every packet marked the window stays at its
/// floor: no reduction is undone, none is missed.
#[test]
fn none_or_all() {
    for transport in [Transport::quic(), Transport::linux_tcp()] {
        let none = run(link(MarkConfig::None), vec![flow("cubic", transport, 1)]);
        assert_eq!(none.flows()[0].marks(), 0);
        let all = run(link(MarkConfig::Random(1.0)), vec![flow("cubic", transport, 1)]);
        let sent = all.flows()[0].sent();
        assert!(all.flows()[0].marks() + 2 >= sent.packets, "{sent:?}");
        assert!(all.flows()[0].window() <= PACKET * 3, "{}", all.flows()[0].window());
        assert!(goodputs(&all)[0] < 1.3, "{:?}", goodputs(&all));
    }
}
