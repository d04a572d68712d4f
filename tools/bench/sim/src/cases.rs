//! What is measured in every round: each case once, so that they meet the same moods of the machine.

use std::hint::black_box;
use std::time::Duration as Spent;

use trimtab_apps::{App, DownloadConfig, VodConfig, Workload};
use trimtab_net::{Capacity, Link, LinkConfig, Packet, QueueConfig};
use trimtab_sim::{World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{memory, muses, processor, selection, worlds};

/// Simulated time of the basic case: 0.18 million packets at 12 Mbit/s.
pub(crate) const SECS: u64 = 180;
/// Flows in the cases that compare numbers of flows; a quarter of an hour of flow in each.
pub(crate) const FLOWS: [u64; 4] = [1, 4, 16, 64];
const FLOW_SECS: u64 = 960;

/// The cases, by the names of their samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Case {
    /// One bulk flow at 12, 48 and 1000 Mbit/s, ns per packet.
    Bulk12,
    Bulk48,
    Bulk1000,
    /// So many flows that share a link of 12 Mbit/s for each, ns per packet.
    Flows(u64),
    /// The link alone, ns per packet.
    BareLink,
    /// The flow that ns-3 has, ns per packet.
    LikeNs3,
    /// That flow in ns-3, ns per packet.
    Ns3,
    /// A minute of downloads and two of video on a cellular link, ms per run.
    Download,
    Vod,
    /// A copy of a running world with 64 flows, and of as many bytes in one block, us.
    Clone,
    CopyBlock,
    /// To choose the algorithm: to take in an acknowledgement, ns; to decide and to switch, us.
    Collect,
    Decide,
    DecideEnsemble,
    Switch,
    /// A decision of Muses' trees, ns.
    Muses,
}

/// Nanoseconds per packet.
pub(crate) fn per_packet(spent: Spent, packets: u64) -> f64 {
    spent.as_nanos() as f64 / packets.max(1) as f64
}

fn simulate(config: &WorldConfig, secs: u64) -> f64 {
    let mut world = World::new(config);
    let (spent, ()) = processor::timed(|| world.run_until(Time::from_secs(secs)));
    per_packet(spent, memory::packets(&world))
}

/// Packets through a link and nothing else, in pairs as acknowledgements clock them out.
fn bare_link() -> f64 {
    // As much as the simulator makes the link carry with each packet.
    type Carried = [u64; 6];
    const PACKETS: u64 = 180_000;
    let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(worlds::MBPS)))
        .queue(QueueConfig::drop_tail_packets(20));
    let mut link: Link<Carried> = Link::new(&config, 1);
    let (spent, out) = processor::timed(|| {
        let mut out = 0;
        for number in 0..PACKETS {
            let now = Time::from_millis(number / 2 * 2);
            while let Some(event) = link.poll(now) {
                black_box(&event);
                out += 1;
            }
            let packet = Packet { size: Bytes::new(1500), payload: [number; 6] };
            if link.send(now, black_box(packet)).is_err() {
                out += 1;
            }
        }
        out
    });
    per_packet(spent, out)
}

/// Runs one session of an application on a phone, to its end; milliseconds.
fn session(app: App, length: Duration) -> f64 {
    let config = worlds::phone(app);
    let (spent, world) = processor::timed(|| {
        let mut world = World::new(&config);
        world.run_until(Time::ZERO + length);
        world
    });
    black_box(world.events());
    spent.as_secs_f64() * 1e3
}

/// Measures every case once but that of ns-3.
pub(crate) fn round(running: &World) -> Vec<(Case, f64)> {
    let mut samples = vec![
        (Case::Bulk12, simulate(&worlds::bulk(1, 12.0), SECS)),
        (Case::BareLink, bare_link()),
        (Case::LikeNs3, simulate(&worlds::like_ns3(worlds::MBPS), SECS)),
        // As many packets as at 12 Mbit/s.
        (Case::Bulk48, simulate(&worlds::bulk(1, 48.0), SECS / 4)),
        (Case::Bulk1000, simulate(&worlds::bulk(1, 1000.0), 3)),
    ];
    for flows in FLOWS {
        let config = worlds::bulk(flows, worlds::MBPS);
        samples.push((Case::Flows(flows), simulate(&config, FLOW_SECS / flows)));
    }
    let download = App::download(DownloadConfig::new(Workload::demo()));
    samples.push((Case::Download, session(download, Duration::from_secs(75))));
    let vod = App::vod(VodConfig::default()).expect("the default is a valid video");
    samples.push((Case::Vod, session(vod, Duration::from_secs(150))));
    let (clone, block) = memory::copies(running);
    samples.push((Case::Clone, clone.as_secs_f64() * 1e6));
    samples.push((Case::CopyBlock, block.as_secs_f64() * 1e6));
    samples.extend([
        (Case::Collect, selection::collect()),
        (Case::Decide, selection::decide(1)),
        (Case::DecideEnsemble, selection::decide(5)),
        (Case::Switch, selection::switch()),
        (Case::Muses, muses::decide()),
    ]);
    samples
}
