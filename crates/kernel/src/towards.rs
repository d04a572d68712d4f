//! Knobs of connections to come by where they go: what is known of a destination acts in the first round trip.

use std::net::Ipv6Addr;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use trimtab_datapath::{By, Towards};

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::layout::{self, Control, RawTowards, TOWARDS_WHO_BITS};
use crate::mapping::Map;

const _: () = assert!(Towards::MAPPED_BITS as u32 == layout::MAPPED_BITS);

/// As the map has them.
fn raw(towards: &Towards) -> Result<RawTowards, Error> {
    let (base, bits) = towards.mapped();
    let words = base.octets();
    let words = words.as_chunks::<4>().0;
    Ok(RawTowards {
        bits: TOWARDS_WHO_BITS + u32::from(bits),
        cca: Algorithm::of(towards.algorithm())?.layout().number,
        local_port: towards.port().into(),
        key_rest: 0,
        netns_cookie: towards.netns(),
        cgroup_id: towards.cgroup(),
        addr: std::array::from_fn(|i| u32::from_ne_bytes(words[i])),
    })
}

/// From what the map has; `None` of what this version does not write.
fn towards(raw: &RawTowards) -> Option<Towards> {
    let mut octets = [0; 16];
    for (four, word) in octets.as_chunks_mut::<4>().0.iter_mut().zip(raw.addr) {
        *four = word.to_ne_bytes();
    }
    let algorithm = Algorithm::of_slot(raw.cca)?;
    let bits = raw.bits.checked_sub(TOWARDS_WHO_BITS)?.try_into().ok()?;
    let port = raw.local_port.try_into().ok()?;
    let to = Towards::of_mapped(algorithm, Ipv6Addr::from(octets), bits);
    Some(to.by(port, raw.netns_cookie, raw.cgroup_id))
}

/// What connections are distinguished by now.
pub(crate) fn by(control: &Control) -> By {
    let word = control.towards_by.load(Relaxed);
    let has = |bit: u32| word & bit != 0;
    By { port: has(layout::BY_PORT), netns: has(layout::BY_NETNS), cgroup: has(layout::BY_CGROUP) }
}

/// Tells them apart by this from now on.
pub(crate) fn store_by(by: By, control: &Control) {
    let bit = |set: bool, bit: u32| if set { bit } else { 0 };
    let word = bit(by.port, layout::BY_PORT)
        | bit(by.netns, layout::BY_NETNS)
        | bit(by.cgroup, layout::BY_CGROUP);
    control.towards_by.store(word, Relaxed);
}

/// The map, which lies in the kernel's memory alone: an entry is exchanged whole.
#[derive(Debug)]
pub(crate) struct Table(pub(crate) Map);

impl Table {
    /// Writes the knobs of connections to come.
    pub(crate) fn set(&self, towards: &Towards, words: &[u32]) -> Result<(), Error> {
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let what = "keep the knobs of connections to come";
        self.0.update(&raw(towards)?.bytes(), &value).map_err(|error| match error {
            Errno::NOSPC => Error::TowardsFull { most: self.0.entries() },
            _ => Error::Kernel { what, reason: error.to_string() },
        })
    }

    /// Removes them; that there are none is no error.
    pub(crate) fn remove(&self, towards: &Towards) -> Result<(), Error> {
        self.remove_raw(&raw(towards)?.bytes())
    }

    fn remove_raw(&self, key: &[u8]) -> Result<(), Error> {
        let what = "remove the knobs of connections to come";
        self.0.delete(key).or_else(|error| match error {
            Errno::NOENT => Ok(()),
            _ => Err(Error::Kernel { what, reason: error.to_string() }),
        })
    }

    /// Those that there are.
    pub(crate) fn all(&self) -> Vec<Towards> {
        let read = |key: Vec<u8>| towards(&RawTowards::read(&mut key.as_slice())?);
        self.0.keys().into_iter().filter_map(read).collect()
    }

    /// Removes all.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        self.0.keys().iter().try_for_each(|key| self.remove_raw(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_holds_every_part_of_a_destination() {
        for (address, bits) in [("203.0.113.77", 24), ("2001:db8:7:8::1", 56), ("10.1.2.3", 32)] {
            let address = address.parse().expect("an address");
            let one = Towards::new(Algorithm::Vivace, address, bits).by(443, 1 << 40, 7);
            let bytes = raw(&one).expect("an algorithm of the kernel").bytes();
            assert_eq!(
                RawTowards::read(&mut bytes.as_slice()).as_ref().and_then(towards),
                Some(one)
            );
        }
        let elsewhere = trimtab_datapath::Algorithm::new("ledbat", &[]);
        let one = Towards::new(elsewhere, "10.1.2.3".parse().expect("an address"), 32);
        assert!(matches!(raw(&one), Err(Error::NoAlgorithm { name: "ledbat" })));
    }
}
