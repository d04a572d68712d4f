//! The worlds that are measured.

use trimtab_apps::{App, BulkConfig};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// Round-trip propagation delay of all of them.
pub(crate) const RTT: Duration = Duration::from_millis(20);
/// Capacity per flow where the number of flows varies, and of the basic case, Mbit/s.
pub(crate) const MBPS: f64 = 12.0;

/// A drop-tail link whose queue holds one bandwidth-delay product.
fn link(mbps: f64) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(mbps)))
        .queue(QueueConfig::drop_tail_packets(queue_packets(mbps)))
}

/// One bandwidth-delay product in packets of 1500 bytes.
pub(crate) fn queue_packets(mbps: f64) -> u32 {
    ((Rate::from_mbps(mbps) * RTT).get() / 1500) as u32
}

/// A CUBIC flow over link 0.
pub(crate) fn flow(transport: Transport, app: App, number: u64) -> FlowConfig {
    let spec = "cubic".parse().expect("the zoo has CUBIC");
    FlowConfig {
        // Apart, so that the flows do not move in step.
        start: Time::from_millis(13 * number),
        seed: number,
        ..FlowConfig::new(Control::Algorithm { spec, steerer: None }, transport, app, RTT)
    }
}

/// So many bulk flows over QUIC, sharing a link that has so much for each.
pub(crate) fn bulk(flows: u64, mbps: f64) -> WorldConfig {
    let app = || App::bulk(&BulkConfig::default());
    WorldConfig {
        links: vec![(link(mbps * flows as f64), 1)],
        flows: (0..flows).map(|number| flow(Transport::quic(), app(), number)).collect(),
    }
}

/// The same flow as the program for ns-3 has: TCP, data and acknowledgements each over a link.
pub(crate) fn like_ns3(mbps: f64) -> WorldConfig {
    let app = App::bulk(&BulkConfig::default());
    WorldConfig {
        links: vec![(link(mbps), 1), (link(mbps), 2)],
        flows: vec![FlowConfig { reverse: vec![1], ..flow(Transport::linux_tcp(), app, 0) }],
    }
}

/// One user of an application on a phone: a cellular link with a buffer of 150 KB.
pub(crate) fn phone(app: App) -> WorldConfig {
    let (_, trace) = trimtab_net::generate::demo_set().swap_remove(0); // cellular-stationary
    let link = LinkConfig::new(Capacity::trace(trace))
        .queue(QueueConfig::drop_tail_bytes(Bytes::new(150_000)));
    WorldConfig { links: vec![(link, 1)], flows: vec![flow(Transport::linux_tcp(), app, 0)] }
}
