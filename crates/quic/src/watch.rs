//! What passes the link towards the clients, measured packet by packet: waits in the queue and
//! losses. It looks at headers only.

use trimtab_emu::{Direction, Fate, Passage};
use trimtab_units::{Bytes, Duration};

use crate::world::Crossed;

const PROTOCOL_UDP: u8 = 17;

/// The flows of a run as the link sees them.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The client's port of each flow, which names it.
    ports: Vec<u16>,
    flows: Vec<Crossed>,
    /// What left the queue.
    pub(crate) carried: Bytes,
    /// Waits of all packets since last asked, and how many these are.
    recent: (Duration, u64),
}

impl Watch {
    /// Watches the flows whose clients have these ports.
    pub(crate) fn new(ports: Vec<u16>) -> Self {
        let flows = vec![Crossed::default(); ports.len()];
        Self { ports, flows, ..Self::default() }
    }

    pub(crate) fn flows(&self) -> &[Crossed] {
        &self.flows
    }

    /// The mean wait since the last call, in milliseconds; NaN when no packet passed.
    pub(crate) fn take_queue_delay_ms(&mut self) -> f64 {
        let (total, count) = std::mem::take(&mut self.recent);
        if count == 0 { f64::NAN } else { total.as_millis_f64() / count as f64 }
    }

    /// A packet passes.
    pub(crate) fn see(&mut self, passage: &Passage<'_>) {
        if passage.direction != Direction::Down {
            return;
        }
        let Some(client) = destination(passage.packet) else { return };
        let Some(index) = self.ports.iter().position(|&port| port == client) else { return };
        match passage.fate {
            Fate::Arrived => {}
            Fate::Dropped { .. } => self.flows[index].dropped += 1,
            Fate::Delivered { departed, .. } => {
                self.carried += Bytes::new(passage.packet.len() as u64);
                let wait = departed.since(passage.arrived);
                self.flows[index].queue.record(wait);
                self.recent = (self.recent.0 + wait, self.recent.1 + 1);
            }
        }
    }
}

/// The port that a UDP packet over IPv4 (RFC 768, RFC 791) goes to; `None` of any other packet.
fn destination(packet: &[u8]) -> Option<u16> {
    let &first = packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != PROTOCOL_UDP {
        return None;
    }
    let udp = packet.get(usize::from(first & 0xf) * 4..)?;
    Some(u16::from_be_bytes(udp.get(2..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use trimtab_units::Time;

    use super::*;

    /// A UDP packet of 100 bytes to a port.
    fn packet(port: u16) -> Vec<u8> {
        let mut packet = vec![0; 100];
        (packet[0], packet[9]) = (0x45, PROTOCOL_UDP);
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        packet
    }

    fn passage(packet: &[u8], direction: Direction, fate: Fate) -> Passage<'_> {
        Passage { direction, packet, arrived: Time::from_millis(3), fate }
    }

    #[test]
    fn waits_and_losses_are_those_of_each_flow() {
        let mut watch = Watch::new(vec![7000, 7001]);
        let fate = Fate::Delivered { at: Time::from_millis(19), departed: Time::from_millis(9) };
        let (first, second, other) = (packet(7000), packet(7001), packet(7002));
        watch.see(&passage(&first, Direction::Down, Fate::Arrived));
        watch.see(&passage(&first, Direction::Down, fate));
        watch.see(&passage(&second, Direction::Down, Fate::Dropped { at: Time::ZERO }));
        watch.see(&passage(&other, Direction::Down, fate));
        watch.see(&passage(&first, Direction::Up, fate));
        let [first, second] = watch.flows() else { panic!("two flows") };
        assert_eq!((first.dropped, first.queue.count()), (0, 1));
        assert_eq!(first.queue.mean(), Duration::from_millis(6));
        assert_eq!((second.dropped, second.queue.count()), (1, 0));
        assert_eq!(watch.carried, Bytes::new(100));
        assert!((watch.take_queue_delay_ms() - 6.0).abs() < 1e-9);
        assert!(watch.take_queue_delay_ms().is_nan(), "nothing since");
    }

    #[test]
    fn what_is_no_udp_packet_has_no_port() {
        let whole = packet(7000);
        assert_eq!(destination(&whole), Some(7000));
        assert!((0..24).all(|length| destination(&whole[..length]).is_none()));
        let with = |at: usize, value: u8| {
            let mut packet = whole.clone();
            packet[at] = value;
            packet
        };
        assert_eq!(destination(&with(9, 6)), None, "TCP");
        assert_eq!(destination(&with(0, 0x65)), None, "IPv6");
        // Options of IP move the header of UDP.
        let mut options = with(0, 0x46);
        options.splice(20..20, [1; 4]);
        assert_eq!(destination(&options), Some(7000));
    }
}
