//! Addresses of links: private ones that no two links of a namespace share, and that nest.
//!
//! A link has a block of addresses: the first is its outer end, the second its inner end. The rest is for links
//! that are started inside. So the outer end needs one route for everything behind it, and its packets find their
//! way through any depth of links without translation. All of it is in 100.64.0.0/10, which no one on the Internet
//! uses (RFC 6598 section 3); Mahimahi takes its addresses from there, too.

use std::net::Ipv4Addr;

/// 100.64.0.0/10.
const ALL: Block = Block { base: Ipv4Addr::new(100, 64, 0, 0), length: 10 };

/// The prefix lengths of the blocks at each depth of nesting. Most links are not nested, so the first has the most
/// of them: 1023 links side by side, in each 63, in each of these 7, and one more.
const LENGTHS: [u8; 4] = [20, 26, 29, 30];

/// The addresses of one link and of those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    base: Ipv4Addr,
    length: u8,
}

impl Block {
    /// The block of the link with a number, from 0, in a namespace that is itself behind a link with the block
    /// `parent`, if it is. `None` when there is no such block.
    pub(crate) fn new(parent: Option<Self>, number: u32) -> Option<Self> {
        let parent = parent.unwrap_or(ALL);
        let length = LENGTHS.into_iter().find(|&length| length > parent.length)?;
        // The first part of the parent has the parent's own ends.
        let index = number.checked_add(1).filter(|&index| index <= parent.links())?;
        let base = parent.base.to_bits() + (index << (32 - length));
        Some(Self { base: Ipv4Addr::from_bits(base), length })
    }

    /// The block of which `address` with `netmask` is the inner end.
    pub(crate) fn of_inner_end(address: Ipv4Addr, netmask: Ipv4Addr) -> Option<Self> {
        let length = netmask.to_bits().leading_ones() as u8;
        let block = Self { base: Ipv4Addr::from_bits(address.to_bits().checked_sub(2)?), length };
        let is_ours = ALL.contains(block.base) && LENGTHS.contains(&length);
        (is_ours && block.base.to_bits() & !netmask.to_bits() == 0).then_some(block)
    }

    /// How many links fit side by side into the namespace behind this one.
    pub(crate) fn links(self) -> u32 {
        LENGTHS
            .into_iter()
            .find(|&length| length > self.length)
            .map_or(0, |length| (1 << (length - self.length)) - 1)
    }

    /// How many links fit side by side into a namespace behind `parent`.
    pub(crate) fn links_inside(parent: Option<Self>) -> u32 {
        parent.unwrap_or(ALL).links()
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX << (32 - self.length);
        address.to_bits() & mask == self.base.to_bits()
    }

    /// The end outside: the server's.
    pub(crate) fn outer(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base.to_bits() + 1)
    }

    /// The end inside: the client's.
    pub(crate) fn inner(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base.to_bits() + 2)
    }

    /// The mask of the whole block.
    pub(crate) fn netmask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX << (32 - self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_nest_and_do_not_overlap() {
        let first = Block::new(None, 0).unwrap();
        assert_eq!(first.outer(), Ipv4Addr::new(100, 64, 16, 1));
        assert_eq!(first.inner(), Ipv4Addr::new(100, 64, 16, 2));
        assert_eq!(first.netmask(), Ipv4Addr::new(255, 255, 240, 0));
        let last = Block::new(None, 1022).unwrap();
        assert_eq!(last.inner(), Ipv4Addr::new(100, 127, 240, 2));
        assert_eq!(Block::new(None, 1023), None);
        assert_eq!(Block::links_inside(None), 1023);

        // Every block at every depth, as ranges of addresses: inside its parent, apart from its siblings,
        // and clear of its parent's own ends.
        fn check(parent: Block, depth: usize) {
            let mut end = parent.base.to_bits() + 2;
            for number in 0..parent.links() {
                let block = Block::new(Some(parent), number).unwrap();
                let base = block.base.to_bits();
                assert!(base > end, "{block:?} overlaps what is before it");
                end = base + (!block.netmask().to_bits());
                assert!(parent.contains(Ipv4Addr::from_bits(end)), "{block:?} leaves {parent:?}");
                assert_eq!(Block::of_inner_end(block.inner(), block.netmask()), Some(block));
                check(block, depth + 1);
            }
            assert_eq!(Block::new(Some(parent), parent.links()), None);
            assert!(depth < 4 || parent.links() == 0);
        }
        check(first, 1);
        check(last, 1);
    }

    #[test]
    fn other_addresses_are_no_inner_end() {
        let mask = Ipv4Addr::new(255, 255, 240, 0);
        for (address, mask) in [
            (Ipv4Addr::new(10, 0, 0, 2), mask),
            (Ipv4Addr::new(100, 64, 16, 3), mask),
            (Ipv4Addr::new(100, 64, 16, 2), Ipv4Addr::new(255, 255, 255, 0)),
            (Ipv4Addr::new(0, 0, 0, 1), mask),
        ] {
            assert_eq!(Block::of_inner_end(address, mask), None, "{address}");
        }
    }
}
