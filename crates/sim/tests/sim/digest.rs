//! What a set of runs comes to, to the last bit. Work on speed must not change it; a change of
//! behaviour does, and its review begins with the difference in this table.
//!
//! `INSTA_UPDATE=always cargo test -p trimtab-sim --test sim digest` writes the table anew.

use std::fmt::Write as _;

use trimtab_apps::{App, Application, BulkConfig, DownloadConfig, VodConfig, WebConfig, Workload};
use trimtab_net::{
    Capacity, JitterConfig, LinkConfig, LossConfig, QueueConfig, ReorderConfig, generate,
};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn flow(cc: &str, transport: Transport, app: App) -> FlowConfig {
    let control = match cc {
        "omniscient" => Control::Omniscient,
        spec => Control::Algorithm { spec: spec.parse().unwrap(), steerer: None },
    };
    FlowConfig::new(control, transport, app, Duration::from_millis(20))
}

fn bulk(cc: &str, transport: Transport) -> FlowConfig {
    flow(cc, transport, App::bulk(&BulkConfig::default()))
}

fn link(mbps: f64, packets: u32) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(mbps)))
        .queue(QueueConfig::drop_tail_packets(packets))
}

/// A link that changes between 1 and 40 Mbit/s.
fn changing() -> Capacity {
    let steps = [12.0, 30.0, 4.0, 1.0, 22.0, 40.0, 8.0];
    let steps = steps.map(|mbps| (Duration::from_millis(700), Rate::from_mbps(mbps)));
    Capacity::trace(generate::steps(&steps).unwrap())
}

/// Runs for `secs` and describes each flow in a line.
fn run(table: &mut String, name: &str, secs: u64, links: Vec<LinkConfig>, flows: Vec<FlowConfig>) {
    let links = links.into_iter().zip(1..).collect();
    let mut world = World::new(&WorldConfig { links, flows });
    world.run_until(Time::from_secs(secs));
    for (i, flow) in world.flows().iter().enumerate() {
        let (sent, received) = (flow.sent(), flow.received());
        let all = format!(
            "{sent:?} {received:?} {:?} {:?}",
            flow.app().outcome(world.now()),
            flow.window()
        );
        writeln!(
            table,
            "{name:20} {i} | {:6} {:5} {:5} {:4} {:2} | {:9} {:9} {:8} | {:016x}",
            sent.packets,
            sent.lost,
            sent.retransmits,
            sent.spurious,
            sent.timeouts,
            received.goodput.get(),
            sent.rtt.mean().as_micros(),
            received.queue_delay.mean().as_micros(),
            hash(&all)
        )
        .unwrap();
    }
}

#[test]
fn runs_come_to_what_they_came_to() {
    let (quic, tcp) = (Transport::quic(), Transport::linux_tcp());
    let mut table = String::from(
        "run                  # | sent lost resent spurious timeouts | goodput B, RTT us, wait us | digest\n",
    );
    let t = &mut table;
    run(t, "cubic quic", 20, vec![link(12.0, 20)], vec![bulk("cubic", quic)]);
    run(t, "cubic tcp", 20, vec![link(12.0, 20)], vec![bulk("cubic:linux", tcp)]);
    run(t, "fast", 2, vec![link(400.0, 600)], vec![bulk("cubic", quic)]);
    let crowd = || (0..8).map(|i| FlowConfig { seed: i, ..bulk("newreno", quic) }).collect();
    run(t, "crowd", 5, vec![link(12.0, 20)], crowd());
    let mixed = ["cubic", "bbr", "bbr3", "copa", "vegas", "westwood"];
    let one_each = |transport| mixed.iter().map(|cc| bulk(cc, transport)).collect::<Vec<_>>();
    run(t, "one of each, quic", 10, vec![link(48.0, 160)], one_each(quic));
    run(t, "one of each, tcp", 10, vec![link(48.0, 160)], one_each(tcp));
    let lossy = || link(24.0, 100).loss(LossConfig::Independent(0.01));
    run(t, "loss, bbr quic", 10, vec![lossy()], vec![bulk("bbr", quic)]);
    run(t, "loss, bbr tcp", 10, vec![lossy()], vec![bulk("bbr", tcp)]);
    run(t, "loss, cubic tcp", 10, vec![lossy()], vec![bulk("cubic", tcp)]);
    let held_back = ReorderConfig { probability: 0.02, extra: Duration::from_millis(4) };
    let unruly = || {
        let jitter = JitterConfig::Uniform { max: Duration::from_millis(3) };
        link(24.0, 100).jitter(jitter).reorder(held_back).loss(LossConfig::bursts(0.005, 3.0))
    };
    run(t, "unruly, quic", 10, vec![unruly()], vec![bulk("cubic", quic)]);
    run(t, "unruly, tcp", 10, vec![unruly()], vec![bulk("cubic", tcp)]);
    let codel = || LinkConfig::new(changing()).queue(QueueConfig::codel(Some(1000)));
    run(t, "codel, changing", 10, vec![codel()], vec![bulk("copa", quic), bulk("cubic", tcp)]);
    // Acknowledgements and data share the way back, and it is narrow.
    let both = |cc| FlowConfig { reverse: vec![1], ..bulk(cc, quic) };
    let other = FlowConfig { forward: vec![1], reverse: vec![0], ..bulk("cubic", tcp) };
    let ways = vec![link(24.0, 60), link(2.0, 10)];
    run(t, "two ways", 10, ways, vec![both("cubic"), both("bbr3"), other]);
    let two_hops = FlowConfig { forward: vec![0, 1], ..bulk("cubic", quic) };
    run(t, "two hops", 10, vec![link(24.0, 60), link(12.0, 20)], vec![two_hops]);
    let web = App::web(&WebConfig { seed: 5, ..WebConfig::default() });
    let download = App::download(DownloadConfig::new(Workload::demo()));
    let vod = App::vod(VodConfig::default()).unwrap();
    let buffer = QueueConfig::drop_tail_bytes(Bytes::new(150_000));
    let phone = || LinkConfig::new(changing()).queue(buffer);
    let apps = vec![
        flow("cubic", quic, web.clone()),
        flow("bbr", tcp, download.clone()),
        flow("copa", quic, vod),
    ];
    run(t, "apps", 30, vec![phone()], apps);
    let start = FlowConfig {
        start: Time::from_millis(500),
        stop: Time::from_secs(8),
        ..flow("cubic", tcp, web)
    };
    run(t, "web, stops", 12, vec![phone().loss(LossConfig::Independent(0.02))], vec![start]);
    run(
        t,
        "omniscient",
        10,
        vec![phone()],
        vec![flow("omniscient", quic, download), bulk("omniscient", quic)],
    );
    insta::assert_snapshot!(table);
}
