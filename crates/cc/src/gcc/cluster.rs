//! What a probe found: the rates at which its packets left and arrived (libwebrtc
//! `probe_bitrate_estimator.cc`).

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{Arrival, Probe};

/// Share of a probe's packets and bytes that has to arrive (`kMinReceivedProbesPercent`,
/// `kMinReceivedBytesPercent`).
const ARRIVED: f64 = 0.8;
/// What arrives faster than twice the rate it left at tells nothing (`kMaxValidRatio`).
const RATIO_MAX: f64 = 2.0;
/// What arrives slower than this found the capacity (`kMinRatioForUnsaturatedLink`), of which this
/// share is used (`kTargetUtilizationFraction`).
const UNSATURATED: f64 = 0.9;
const UTILISATION: f64 = 0.95;
/// A probe takes no longer (`kMaxProbeInterval`).
const SPAN_MAX: Duration = Duration::from_secs(1);
/// Probes under way at the same time.
const CLUSTERS: usize = 4;

/// The packets of a probe that arrived.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    id: u32,
    packets_min: u32,
    bytes_min: u32,
    packets: u32,
    bytes: u32,
    last_sent_bytes: u32,
    first_arrival_bytes: u32,
    sent: (Time, Time),
    arrived: (Time, Time),
}

/// The last few probes.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    clusters: [Option<Cluster>; CLUSTERS],
    next: u8,
}

fn small(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

impl Clusters {
    /// A probe leaves.
    pub(super) fn expect(&mut self, probe: &Probe) {
        self.clusters[usize::from(self.next)] = Some(Cluster {
            id: probe.id,
            packets_min: probe.packets,
            bytes_min: small(probe.bytes),
            packets: 0,
            bytes: 0,
            last_sent_bytes: 0,
            first_arrival_bytes: 0,
            sent: (Time::from_nanos(u64::MAX), Time::ZERO),
            arrived: (Time::from_nanos(u64::MAX), Time::ZERO),
        });
        self.next = (self.next + 1) % CLUSTERS as u8;
    }

    /// A packet of a probe arrived. The rate that the probe shows, once enough of it has
    /// (`HandleProbeAndEstimateBitrate()`).
    pub(super) fn add(&mut self, packet: &Arrival) -> Option<Rate> {
        let (id, arrival) = (packet.probe?, packet.arrived_at?);
        let cluster = self.clusters.iter_mut().flatten().find(|cluster| cluster.id == id)?;
        cluster.add(packet.sent_at, arrival, small(packet.bytes));
        cluster.rate()
    }
}

impl Cluster {
    fn add(&mut self, sent: Time, arrival: Time, bytes: u32) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.sent.0 = self.sent.0.min(sent);
        if sent >= self.sent.1 {
            (self.sent.1, self.last_sent_bytes) = (sent, bytes);
        }
        if arrival < self.arrived.0 {
            (self.arrived.0, self.first_arrival_bytes) = (arrival, bytes);
        }
        self.arrived.1 = self.arrived.1.max(arrival);
    }

    fn rate(&self) -> Option<Rate> {
        let enough = |have: u32, want: u32| f64::from(have) >= ARRIVED * f64::from(want);
        if !enough(self.packets, self.packets_min) || !enough(self.bytes, self.bytes_min) {
            return None;
        }
        // The last packet's own time on the wire is not in the span of leaving, nor is that of the
        // first in the span of arriving.
        let rate = |(first, last): (Time, Time), without: u32| {
            let span = last.since(first);
            let bytes = Bytes::new(u64::from(self.bytes - without));
            (!span.is_zero() && span <= SPAN_MAX).then(|| bytes / span)
        };
        let left = rate(self.sent, self.last_sent_bytes)?;
        let arrived = rate(self.arrived, self.first_arrival_bytes)?;
        if arrived > left.mul_f64(RATIO_MAX) {
            return None;
        }
        let saturated = arrived < left.mul_f64(UNSATURATED);
        Some(if saturated { arrived.mul_f64(UTILISATION) } else { left.min(arrived) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A probe of ten packets of 1000 bytes that leave and arrive so many milliseconds apart.
    fn play(gap: u64, arriving: u64, packets: u64) -> Vec<Option<Rate>> {
        let mut clusters = Clusters::default();
        let rate = Rate::from_mbps(8.0);
        clusters.expect(&Probe { id: 7, rate, packets: 5, bytes: Bytes::new(10_000) });
        let arrival = |i: u64| Arrival {
            sent_at: Time::from_millis(1000 + i * gap),
            arrived_at: Some(Time::from_millis(5_000 + i * arriving)),
            bytes: Bytes::new(1000),
            probe: Some(7),
            marked: false,
        };
        (0..packets).map(|i| clusters.add(&arrival(i))).collect()
    }

    #[test]
    fn a_probe_shows_its_rate_or_the_capacity() {
        // 8 Mbit/s, known with eight packets of ten.
        let seen = play(1, 1, 10);
        assert!(seen[..7].iter().all(Option::is_none));
        assert_eq!((seen[7], seen[9]), (Some(Rate::from_mbps(8.0)), Some(Rate::from_mbps(8.0))));
        // At 4 Mbit/s the link is full: 95% of it.
        assert_eq!(play(1, 2, 10)[9], Some(Rate::from_mbps(3.8)));
        // What arrives together, or faster than twice, shows nothing.
        assert_eq!((play(1, 0, 10)[9], play(3, 1, 10)[9]), (None, None));
    }

    #[test]
    fn a_packet_of_another_probe_shows_nothing() {
        let mut clusters = Clusters::default();
        let packet = Arrival {
            sent_at: Time::ZERO,
            arrived_at: Some(Time::from_millis(1)),
            bytes: Bytes::new(1000),
            probe: Some(3),
            marked: false,
        };
        assert_eq!(clusters.add(&packet), None);
        assert_eq!(clusters.add(&Arrival { probe: None, ..packet }), None);
    }
}
