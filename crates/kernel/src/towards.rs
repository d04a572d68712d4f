//! Knobs of connections to come by where they go: what is known of a destination acts in the first round trip.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use rustix::io::Errno;

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::layout::{self, Control, MAPPED_BITS, RawTowards, TOWARDS_WHO_BITS};
use std::sync::atomic::Ordering::Relaxed;

/// Bits of an IPv6 address.
const ADDRESS_BITS: u32 = 128;

/// Connections to come, by where they go and as far as they are told apart by more ([`By`]).
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

/// What connections are told apart by, beside algorithm and destination.
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
    /// All connections of an algorithm whose destination shares so many bits with this one (of 32 for IPv4, of 128 for IPv6; more are
    /// as many).
    pub fn new(algorithm: Algorithm, destination: IpAddr, bits: u8) -> Self {
        let (address, bits) = match destination.to_canonical() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), MAPPED_BITS as u8 + bits.min(32)),
            IpAddr::V6(v6) => (v6, bits.min(ADDRESS_BITS as u8)),
        };
        let rest = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
        let base = Ipv6Addr::from_bits(address.to_bits() & !rest);
        Self { algorithm, port: 0, netns: 0, cgroup: 0, base, bits }
    }

    /// The same, where the local port, the network namespace (its `SO_NETNS_COOKIE`) and the cgroup that made the socket count as far as
    /// they are not 0.
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
        if self.base().is_ipv4() { self.bits.saturating_sub(MAPPED_BITS as u8) } else { self.bits }
    }

    fn raw(&self) -> RawTowards {
        let words = self.base.octets();
        let words = words.as_chunks::<4>().0;
        RawTowards {
            bits: TOWARDS_WHO_BITS + u32::from(self.bits),
            cca: self.algorithm.slot_number(),
            local_port: self.port.into(),
            key_rest: 0,
            netns_cookie: self.netns,
            cgroup_id: self.cgroup,
            addr: std::array::from_fn(|i| u32::from_ne_bytes(words[i])),
        }
    }

    /// `None` of what this version does not write.
    fn of(raw: &RawTowards) -> Option<Self> {
        let mut octets = [0; 16];
        for (four, word) in octets.as_chunks_mut::<4>().0.iter_mut().zip(raw.addr) {
            *four = word.to_ne_bytes();
        }
        Some(Self {
            algorithm: Algorithm::of_slot(raw.cca)?,
            port: raw.local_port.try_into().ok()?,
            netns: raw.netns_cookie,
            cgroup: raw.cgroup_id,
            base: Ipv6Addr::from(octets),
            bits: raw.bits.checked_sub(TOWARDS_WHO_BITS)?.try_into().ok()?,
        })
    }
}

impl fmt::Display for Towards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base(), self.bits())
    }
}

impl By {
    pub(crate) fn of(control: &Control) -> Self {
        let word = control.towards_by.load(Relaxed);
        let has = |bit: u32| word & bit != 0;
        Self {
            port: has(layout::BY_PORT),
            netns: has(layout::BY_NETNS),
            cgroup: has(layout::BY_CGROUP),
        }
    }

    pub(crate) fn store(self, control: &Control) {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let word = bit(self.port, layout::BY_PORT)
            | bit(self.netns, layout::BY_NETNS)
            | bit(self.cgroup, layout::BY_CGROUP);
        control.towards_by.store(word, Relaxed);
    }
}

/// The map, which lies in the kernel's memory alone: an entry is exchanged whole.
#[derive(Debug)]
pub(crate) struct Table(pub(crate) MapHandle);

impl Table {
    /// Writes the knobs of connections to come.
    pub(crate) fn set(&self, towards: &Towards, words: &[u32]) -> Result<(), Error> {
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.0.update(&towards.raw().bytes(), &value, MapFlags::ANY).map_err(|error| {
            // The library's error does not give the number.
            match errno() {
                Some(Errno::NOSPC) => Error::TowardsFull { most: self.0.max_entries() },
                _ => Error::of("keep the knobs of connections to come", &error),
            }
        })
    }

    /// Removes them; that there are none is no error.
    pub(crate) fn remove(&self, towards: &Towards) -> Result<(), Error> {
        self.remove_raw(&towards.raw().bytes())
    }

    fn remove_raw(&self, key: &[u8]) -> Result<(), Error> {
        self.0.delete(key).or_else(|error| match errno() {
            Some(Errno::NOENT) => Ok(()),
            _ => Err(Error::of("remove the knobs of connections to come", &error)),
        })
    }

    /// Those that there are.
    pub(crate) fn all(&self) -> Vec<Towards> {
        let read = |key: Vec<u8>| Towards::of(&RawTowards::read(&mut key.as_slice())?);
        self.0.keys().filter_map(read).collect()
    }

    /// Removes all.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let keys: Vec<_> = self.0.keys().collect();
        keys.iter().try_for_each(|key| self.remove_raw(key))
    }
}

/// Why the last call of the kernel was refused.
fn errno() -> Option<Errno> {
    std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_bits_does_not_count_and_mapped_ipv4_is_ipv4() {
        let of = |address: &str, bits| {
            Towards::new(Algorithm::Vivace, address.parse().expect("an address"), bits)
        };
        assert_eq!(of("203.0.113.77", 24), of("::ffff:203.0.113.5", 24));
        assert_eq!(of("203.0.113.77", 24).to_string(), "203.0.113.0/24");
        assert_eq!(of("2001:db8:7:8::1", 48).to_string(), "2001:db8:7::/48");
        assert_eq!(of("10.1.2.3", 99).to_string(), "10.1.2.3/32");
        assert_eq!(of("10.1.2.3", 0).to_string(), "0.0.0.0/0");
        assert_eq!(of("2001:db8::1", 0).to_string(), "::/0");
        for one in [of("203.0.113.77", 24), of("2001:db8:7:8::1", 56), of("10.1.2.3", 32)] {
            let one = one.by(443, 1 << 40, 7);
            let bytes = one.raw().bytes();
            assert_eq!(
                RawTowards::read(&mut bytes.as_slice()).as_ref().and_then(Towards::of),
                Some(one)
            );
        }
    }
}
