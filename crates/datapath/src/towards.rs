//! Connections to come, by where they go.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::Algorithm;

/// Bits of an IPv6 address.
const ADDRESS_BITS: u8 = 128;
/// Connections to come, by where they go and as far as they are distinguished by more ([`By`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Towards {
    algorithm: Algorithm,
    port: u16,
    netns: u64,
    cgroup: u64,
    base: Ipv6Addr,
    /// Of the base, in which IPv4 is mapped into IPv6.
    bits: u8,
}

/// What connections are distinguished by, next to algorithm and destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct By {
    /// Their local port.
    pub port: bool,
    /// Their network namespace.
    pub netns: bool,
    /// The cgroup that made their sockets.
    pub cgroup: bool,
}

impl Towards {
    /// Of an IPv6 address that stands for an IPv4 one, the bits before that (RFC 4291 §2.5.5.2).
    pub const MAPPED_BITS: u8 = 96;

    /// All connections of an algorithm whose destination shares so many bits with this one (of 32
    /// for IPv4, of 128 for IPv6; more are as many).
    pub fn new(algorithm: impl Into<Algorithm>, destination: IpAddr, bits: u8) -> Self {
        let (address, bits) = match destination.to_canonical() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), Self::MAPPED_BITS + bits.min(32)),
            IpAddr::V6(v6) => (v6, bits),
        };
        Self::of_mapped(algorithm, address, bits)
    }

    /// The same of an IPv6 address, or of an IPv4 address that is mapped into IPv6, and so many of
    /// its 128 bits.
    pub fn of_mapped(algorithm: impl Into<Algorithm>, address: Ipv6Addr, bits: u8) -> Self {
        let (algorithm, bits) = (algorithm.into(), bits.min(ADDRESS_BITS));
        let rest = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
        let base = Ipv6Addr::from_bits(address.to_bits() & !rest);
        Self { algorithm, port: 0, netns: 0, cgroup: 0, base, bits }
    }

    /// The same, where the local port, the network namespace (its `SO_NETNS_COOKIE`) and the cgroup
    /// that made the socket count as far as they are not 0.
    #[must_use]
    pub fn by(self, port: u16, netns: u64, cgroup: u64) -> Self {
        Self { port, netns, cgroup, ..self }
    }

    /// What they run.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Their local port; 0 where it does not count.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cookie of their network namespace; 0 where it does not count.
    pub fn netns(&self) -> u64 {
        self.netns
    }

    /// The cgroup that made their sockets; 0 where it does not count.
    pub fn cgroup(&self) -> u64 {
        self.cgroup
    }

    /// The first address of the destination.
    pub fn base(&self) -> IpAddr {
        IpAddr::V6(self.base).to_canonical()
    }

    /// How many bits of it count, of 32 for IPv4 and of 128 for IPv6.
    pub fn bits(&self) -> u8 {
        if self.base().is_ipv4() { self.bits.saturating_sub(Self::MAPPED_BITS) } else { self.bits }
    }

    /// The first address of the destination and its bits, with IPv4 mapped into IPv6.
    pub fn mapped(&self) -> (Ipv6Addr, u8) {
        (self.base, self.bits)
    }
}

impl fmt::Display for Towards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base(), self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_bits_does_not_count_and_mapped_ipv4_is_ipv4() {
        let of = |address: &str, bits| {
            let algorithm = Algorithm::new("vivace", &[]);
            Towards::new(algorithm, address.parse().expect("an address"), bits)
        };
        assert_eq!(of("203.0.113.77", 24), of("::ffff:203.0.113.5", 24));
        assert_eq!(of("203.0.113.77", 24).to_string(), "203.0.113.0/24");
        assert_eq!(of("2001:db8:7:8::1", 48).to_string(), "2001:db8:7::/48");
        assert_eq!(of("10.1.2.3", 99).to_string(), "10.1.2.3/32");
        assert_eq!(of("10.1.2.3", 0).to_string(), "0.0.0.0/0");
        assert_eq!(of("2001:db8::1", 0).to_string(), "::/0");
        for one in [of("203.0.113.77", 24), of("2001:db8:7:8::1", 56), of("10.1.2.3", 32)] {
            let (base, bits) = one.mapped();
            assert_eq!(Towards::of_mapped(one.algorithm(), base, bits), one);
        }
    }
}
