//! The headers of a TCP packet (RFC 791, RFC 9293 §3.1), as far as measurements need them.

/// A TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    /// The first byte of the payload.
    pub(crate) sequence: u32,
    /// All before this byte has arrived at who sends this packet.
    pub(crate) acknowledged: u32,
    /// Bytes of payload.
    pub(crate) length: u32,
    /// Blocks that arrived beyond it (RFC 2018 §3), and how many there are: as many as fit the options.
    sack: [(u32, u32); SACK_MAX],
    blocks: usize,
}

const SACK_MAX: usize = 4;
const PROTOCOL_TCP: u8 = 6;
/// Kinds of options: end of the list, no operation, and selective acknowledgement.
const END: u8 = 0;
const NOTHING: u8 = 1;
const SACK: u8 = 5;

impl Segment {
    /// Reads an IPv4 packet; `None` when it is anything else than a whole TCP packet.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let &first = packet.first()?;
        if first >> 4 != 4 || *packet.get(9)? != PROTOCOL_TCP {
            return None;
        }
        let total = usize::from(u16_at(packet, 2)?);
        let tcp = packet.get(usize::from(first & 0xf) * 4..total)?;
        let header = usize::from(*tcp.get(12)? >> 4) * 4;
        let mut segment = Self {
            source: u16_at(tcp, 0)?,
            destination: u16_at(tcp, 2)?,
            sequence: u32_at(tcp, 4)?,
            acknowledged: u32_at(tcp, 8)?,
            length: u32::try_from(tcp.len().checked_sub(header)?).ok()?,
            sack: [(0, 0); SACK_MAX],
            blocks: 0,
        };
        segment.read_options(tcp.get(20..header)?);
        Some(segment)
    }

    fn read_options(&mut self, mut options: &[u8]) {
        while let Some(&kind) = options.first() {
            let length = match kind {
                END => return,
                NOTHING => 1,
                _ => usize::from(options.get(1).copied().unwrap_or(0)).max(2),
            };
            if kind == SACK {
                let blocks = options.get(2..length).unwrap_or_default().chunks_exact(8);
                for block in blocks.take(SACK_MAX) {
                    if let (Some(start), Some(end)) = (u32_at(block, 0), u32_at(block, 4)) {
                        self.sack[self.blocks] = (start, end);
                        self.blocks += 1;
                    }
                }
                return;
            }
            options = options.get(length..).unwrap_or_default();
        }
    }

    /// The blocks that arrived beyond a gap.
    pub(crate) fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..self.blocks]
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A packet for the tests of this crate.
#[cfg(test)]
pub(crate) fn packet(
    (source, destination): (u16, u16),
    sequence: u32,
    acknowledged: u32,
    length: usize,
    sack: &[(u32, u32)],
) -> Vec<u8> {
    // Timestamps first, as Linux has them: two no-operations and 10 bytes.
    let mut options = vec![NOTHING, NOTHING, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    if !sack.is_empty() {
        options.extend([NOTHING, NOTHING, SACK, 2 + 8 * sack.len() as u8]);
        for (start, end) in sack {
            options.extend(start.to_be_bytes());
            options.extend(end.to_be_bytes());
        }
    }
    let header = 20 + options.len();
    let total = (20 + header + length) as u16;
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[9] = PROTOCOL_TCP;
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend(acknowledged.to_be_bytes());
    packet.extend([(header as u8 / 4) << 4, 0x10, 0, 0, 0, 0, 0, 0]);
    packet.extend(options);
    packet.resize(usize::from(total), 0);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        let blocks = [(3000, 4448), (9000, 9100)];
        let segment = Segment::read(&packet((80, 4000), 17, 99, 1448, &blocks)).unwrap();
        assert_eq!((segment.source, segment.destination), (80, 4000));
        assert_eq!((segment.sequence, segment.acknowledged, segment.length), (17, 99, 1448));
        assert_eq!(segment.sack(), blocks);
    }

    #[test]
    fn what_is_no_whole_tcp_packet_is_not_read() {
        let whole = packet((1, 2), 3, 4, 100, &[(5, 6)]);
        for length in 0..whole.len() {
            assert_eq!(Segment::read(&whole[..length]), None, "cut after {length} bytes");
        }
        let mut udp = whole.clone();
        udp[9] = 17;
        assert_eq!(Segment::read(&udp), None);
        let mut v6 = whole;
        v6[0] = 0x60;
        assert_eq!(Segment::read(&v6), None);
    }

    #[test]
    fn broken_options_do_no_harm() {
        for kind in 0..=255 {
            let mut broken = packet((1, 2), 3, 4, 0, &[(5, 6), (7, 8)]);
            for at in 40..broken.len() {
                broken[at] = kind;
                let segment = Segment::read(&broken).unwrap();
                assert!(segment.sack().len() <= SACK_MAX);
            }
        }
    }

    #[test]
    fn options_of_ip_and_what_follows_the_packet_are_no_payload() {
        let plain = packet((80, 4000), 17, 99, 100, &[(5, 6)]);
        let mut longer = plain.clone();
        longer[0] = 0x46;
        longer.splice(20..20, [1, 1, 1, 0]);
        let total = (longer.len() as u16).to_be_bytes();
        longer[2..4].copy_from_slice(&total);
        // Ethernet pads short packets.
        longer.extend([0; 18]);
        assert_eq!(Segment::read(&longer), Segment::read(&plain));
        assert_eq!(Segment::read(&plain).unwrap().length, 100);
    }

    #[test]
    fn more_blocks_than_fit_are_left_out() {
        let blocks = [(1, 2), (3, 4), (5, 6)];
        let segment = Segment::read(&packet((1, 2), 0, 0, 0, &blocks)).unwrap();
        assert_eq!(segment.sack(), blocks);
        let mut short = packet((1, 2), 0, 0, 0, &blocks);
        // An option whose length is beyond its end.
        let at = short.len() - 25;
        assert_eq!(short[at], 2 + 8 * 3);
        short[at] = 255;
        assert_eq!(Segment::read(&short).unwrap().sack(), []);
    }
}
