//! When TCP waits to send more at once (Linux `tcp_tso_should_defer`).
//!
//! Linux hands the network card segments of several packets. Where the window has room for less than a
//! segment and the next acknowledgement is about to come, it waits for it: flows with small windows send
//! in pairs and leave a packet of their window unused, and flows with large ones send longer bursts.

use trimtab_units::{Duration, Time};

use super::Sender;
use crate::pacer::burst;
use crate::transport::LossDetection;

/// It waits only this soon after it sent, and only for an acknowledgement that is this near.
const NEAR: Duration = Duration::from_millis(1);
/// With this share of the window free it does not wait (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

impl Sender {
    /// Whether the window, which has room for a packet, is left alone until the next acknowledgement.
    pub(super) fn waits_for_a_full_segment(&mut self, now: Time) -> bool {
        let packet = self.transport.packet;
        if self.transport.loss_detection != LossDetection::RackTlp
            || self.recovery.since().is_some()
            || !self.resend.is_empty()
            || self.governor.algorithm().is_none()
            || self.pacer.continues(now, packet)
            || now > self.pacer.next().max(self.last_sent_at) + NEAR
            || !self.streams.has_more_than(self.transport.payload())
        {
            return false;
        }
        let window = self.window();
        let room = window - self.inflight();
        let segment = self.pacing_rate().map_or(packet * 2, |rate| burst(rate, packet));
        if room >= segment || room >= window / WINDOW_DIVISOR {
            return false;
        }
        let oldest = self.packets.in_flight_from();
        let Some(oldest) = self.packets.get(oldest) else { return false };
        let srtt = self.rtt.smoothed();
        oldest.record.sent_at() + srtt <= now + NEAR.min(srtt / 2)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_apps::Concurrency;
    use trimtab_cc::Spec;
    use trimtab_units::Bytes;

    use super::*;
    use crate::governor::Governor;
    use crate::streams::SendStreams;
    use crate::transport::Transport;

    /// A sender with ten packets in flight since time 0 on a path of 20 ms, that sent last half a
    /// millisecond ago, with so much of its window free and so much left to send.
    fn waits(transport: Transport, now: Time, room: u64, left: u64) -> bool {
        let spec: Spec = "newreno".parse().unwrap();
        let governor = Governor::Driven(spec.build(&transport.cc_config(0)).into());
        let mut streams = SendStreams::new(Concurrency::InOrder);
        streams.write(0, transport.payload() * 10 + Bytes::new(left));
        let rtt = Some((Time::ZERO, Duration::from_millis(20)));
        let mut sender = Sender::new(governor, streams, transport, rtt, 1);
        while sender.poll_send(Time::ZERO).is_some() {}
        let sent = sender.packets.next_number();
        for number in sent - room..sent {
            let packet = sender.packets.get_mut(number).unwrap();
            sender.tracker.on_discarded(now, &mut packet.record).unwrap();
        }
        sender.last_sent_at = now - Duration::from_micros(500);
        sender.waits_for_a_full_segment(now)
    }

    #[test]
    fn one_free_packet_waits_for_an_acknowledgement_that_is_near() {
        let (tcp, near) = (Transport::linux_tcp(), Time::from_micros(19_200));
        assert!(waits(tcp, near, 1, 100_000));
        assert!(!waits(tcp, Time::from_micros(18_900), 1, 100_000), "more than a millisecond away");
        assert!(!waits(tcp, near, 2, 100_000), "a segment is two packets at this rate");
        assert!(!waits(tcp, near, 1, 1448), "the last packet");
        assert!(!waits(Transport::quic(), near, 1, 100_000), "QUIC sends packets");
    }
}
