//! The ECN field of IP headers (RFC 3168 §5), to read and to mark.

/// Not the transport of a packet that understands marks.
const NOT_CAPABLE: u8 = 0b00;
/// Congestion experienced.
const MARKED: u8 = 0b11;

/// Whether the packet's transport understands marks: ECT(0), ECT(1), or marked before. What is no IP packet does not.
pub(crate) fn is_capable(packet: &[u8]) -> bool {
    match packet {
        [first, second, ..] if first >> 4 == 4 => second & 0b11 != NOT_CAPABLE,
        [first, second, ..] if first >> 4 == 6 => second >> 4 & 0b11 != NOT_CAPABLE,
        _ => false,
    }
}

/// Marks a packet that is capable of it. IPv4's header checksum follows (RFC 1624 eq. 3); IPv6 has none.
pub(crate) fn mark(packet: &mut [u8]) {
    if packet.first().is_some_and(|first| first >> 4 == 6) {
        packet[1] |= MARKED << 4;
        return;
    }
    if packet.len() < 20 {
        return;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= MARKED;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one's complement sum over an IPv4 header, which is all ones where its checksum is right.
    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 =
            header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_marked_ipv4_packet_has_its_checksum() {
        for (tos, id) in [(0x02, 0), (0x01, 7), (0xba, 0xffff), (0x02, 0x1234)] {
            let [high, low] = u16::to_be_bytes(id);
            let mut packet =
                [0x45, tos, 5, 220, high, low, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let checksum = !sum(&packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            assert!(is_capable(&packet));
            mark(&mut packet);
            assert_eq!((packet[1], sum(&packet)), (tos | 3, 0xffff), "{tos:x} {id:x}");
            let once = packet;
            mark(&mut packet);
            assert_eq!(packet, once, "a second mark changes nothing");
        }
    }

    #[test]
    fn an_ipv6_packet_has_the_field_across_two_bytes() {
        let mut packet = [0_u8; 40];
        packet[..2].copy_from_slice(&[0x6b, 0xa5]); // traffic class 0xba: ECT(0)
        assert!(is_capable(&packet));
        mark(&mut packet);
        assert_eq!(packet[..2], [0x6b, 0xb5]);
    }

    #[test]
    fn what_cannot_be_marked_is_known() {
        for packet in [&[][..], &[0x45], &[0x45, 0xb8], &[0x60, 0x0f], &[0x15, 3]] {
            assert!(!is_capable(packet), "{packet:x?}");
        }
    }

    /// A header with options is longer, and its checksum is over all of it.
    #[test]
    fn only_the_field_and_the_checksum_change() {
        let mut random = 1_u32;
        let mut next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        for words in [5_u8, 6, 15] {
            for _ in 0..2000 {
                let mut packet: Vec<u8> =
                    (0..usize::from(words) * 4 + 30).map(|_| next()).collect();
                packet[0] = 0x40 | words;
                packet[1] = packet[1] & !0b11 | (1 + next() % 2);
                packet[10..12].fill(0);
                let header = usize::from(words) * 4;
                let checksum = !sum(&packet[..header]);
                packet[10..12].copy_from_slice(&checksum.to_be_bytes());
                let before = packet.clone();
                mark(&mut packet);
                assert_eq!(sum(&packet[..header]), 0xffff, "{before:x?}");
                assert_eq!(packet[1], before[1] | 0b11);
                let others = |p: &[u8]| [&p[..1], &p[2..10], &p[12..]].concat();
                assert_eq!(others(&packet), others(&before));
            }
        }
    }

    #[test]
    fn a_piece_of_a_header_is_left_as_it_is() {
        for length in 0..20 {
            let mut packet = vec![0x45; length];
            mark(&mut packet);
            assert_eq!(packet, vec![0x45; length]);
        }
    }
}
