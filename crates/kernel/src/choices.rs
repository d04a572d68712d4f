//! Which algorithm a socket gets, in the form that the hook of the root cgroup reads
//! (`bpf/core/choose.h`): the rules of a configuration, compiled.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use trimtab_steer::safety::Share;

use crate::arms::Arms;
use crate::assign::name_bytes;
use crate::error::Error;
use crate::layout::{
    CHOICE_SIZE, CHOICES_HEAD, CHOICES_MAX, CHOICES_SIZE, GIVES_ALGORITHM, GIVES_FORMER,
    GIVES_NOTHING, RawChoice,
};

/// Address families of Linux.
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
/// Bits of an IPv6 address before the IPv4 address that it maps (RFC 4291 §2.5.5.2).
const MAPPED_BITS: u8 = 96;
/// Places of prefixes, by which those that are held back are chosen.
const PLACES: f64 = (1_u64 << 53) as f64;

/// A rule, or a part of one: what a socket must be, and what it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The cookie of its network namespace; `None`: any.
    pub netns: Option<u64>,
    /// Number of a cgroup, and its level below the root, which is 0: the socket was made in it or in
    /// one below it; `None`: in any.
    pub cgroup: Option<(u64, u32)>,
    /// The first and the last local port.
    pub ports: (u16, u16),
    /// The first address of a prefix, and its length in bits: where the connection goes; `None`:
    /// anywhere.
    pub to: Option<(IpAddr, u8)>,
    /// What it gets.
    pub gives: Gives,
}

/// What a socket gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gives {
    /// The algorithm of this name, as the kernel has it.
    Algorithm(String),
    /// What it, or the socket that accepted it, ran before it was first given an algorithm. A socket
    /// that listens does not match: it has connections to anywhere.
    Former,
    /// It is left as it is.
    Nothing,
}

/// Choices in their order: the first that matches is in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// Share of the destination prefixes whose connections are left as they are, unless they get back
    /// what they ran before.
    pub holdback: Share,
    /// Which connections get the copy of what they would run without Trimtab, for comparison.
    pub arms: Arms,
    /// Those beyond the first [`MOST`](Self::MOST) are not looked at, and who matches none before is
    /// left as it is.
    pub list: Vec<Choice>,
}

/// A socket that asks.
#[derive(Clone, Debug)]
pub struct Asking<'a> {
    /// The cookie of its network namespace.
    pub netns: u64,
    /// Numbers of the cgroups from the root down to its own.
    pub cgroups: &'a [u64],
    /// Its local port.
    pub port: u16,
    /// Where it goes; `None` of one that listens.
    pub remote: Option<IpAddr>,
}

impl Choices {
    /// How many choices the kernel's program looks at.
    pub const MOST: usize = CHOICES_MAX;

    /// What a socket gets, as the kernel's program decides it; `None`: it is left as it is. A socket
    /// that listens has connections to anywhere: it gets what all choices that match give, down to
    /// the first which is about every destination.
    pub fn decide(&self, who: &Asking<'_>) -> Option<&Gives> {
        use trimtab_steer::safety::Arm;
        let found = self.find(who)?;
        let held = |remote| Arm::of(remote, self.holdback) == Arm::Holdback;
        (*found == Gives::Former || !who.remote.is_some_and(held)).then_some(found)
    }

    fn find(&self, who: &Asking<'_>) -> Option<&Gives> {
        let mut found: Option<&Gives> = None;
        let listens = who.remote.is_none();
        for choice in self.list.iter().take(CHOICES_MAX).filter(|choice| choice.is_for(who)) {
            let gives = &choice.gives;
            if *gives == Gives::Nothing || found.is_some_and(|before| before != gives) {
                return None;
            }
            found = Some(gives);
            if !listens || choice.to.is_none() {
                return found;
            }
        }
        None
    }

    /// As the map has it.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Error> {
        let list = &self.list[..self.list.len().min(CHOICES_MAX)];
        let mut bytes = Vec::with_capacity(CHOICES_SIZE);
        // A place below the share is held back; places are whole.
        bytes.extend(((self.holdback.get() * PLACES).ceil() as u64).to_ne_bytes());
        bytes.extend((list.len() as u64).to_ne_bytes());
        bytes.extend(self.arms.bytes()?);
        debug_assert_eq!(bytes.len(), CHOICES_HEAD);
        for choice in list {
            let choice = choice.raw()?.bytes();
            debug_assert_eq!(choice.len(), CHOICE_SIZE);
            bytes.extend(choice);
        }
        bytes.resize(CHOICES_SIZE, 0);
        Ok(bytes)
    }
}

impl Choice {
    fn is_for(&self, who: &Asking<'_>) -> bool {
        let (first, last) = self.ports;
        let goes_to = |(base, bits): (IpAddr, u8)| {
            who.remote.is_none_or(|remote| {
                let remote = remote.to_canonical();
                remote.is_ipv4() == base.is_ipv4() && masked(remote, bits) == masked(base, bits)
            })
        };
        let is_in = |(id, level): (u64, u32)| who.cgroups.get(level as usize) == Some(&id);
        let listens = who.remote.is_none();
        !(listens && self.gives == Gives::Former)
            && (first..=last).contains(&who.port)
            && self.netns.is_none_or(|netns| netns == who.netns)
            && self.cgroup.is_none_or(is_in)
            && self.to.is_none_or(goes_to)
    }

    fn raw(&self) -> Result<RawChoice, Error> {
        let mut raw = RawChoice {
            netns_cookie: self.netns.unwrap_or(0),
            cgroup_id: self.cgroup.map_or(0, |(id, _)| id),
            cgroup_level: self.cgroup.map_or(0, |(_, level)| level),
            port_first: self.ports.0.into(),
            port_last: self.ports.1.into(),
            ..RawChoice::default()
        };
        if let Some((base, bits)) = self.to {
            raw.to_family = if base.is_ipv4() { AF_INET } else { AF_INET6 };
            raw.to = words(masked(base, bits));
            raw.to_mask = words(mask(mapped_bits(base, bits)));
        }
        raw.gives = match &self.gives {
            Gives::Algorithm(name) => {
                raw.algorithm = name_bytes(name)?;
                GIVES_ALGORITHM
            }
            Gives::Former => GIVES_FORMER,
            Gives::Nothing => GIVES_NOTHING,
        };
        Ok(raw)
    }
}

/// Length of a prefix among IPv6 addresses.
fn mapped_bits(base: IpAddr, bits: u8) -> u8 {
    if base.is_ipv4() { bits.saturating_add(MAPPED_BITS).min(128) } else { bits.min(128) }
}

fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

/// The first bits of an address, mapped.
fn masked(address: IpAddr, bits: u8) -> u128 {
    let mapped = match address {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    };
    mapped.to_bits() & mask(mapped_bits(address, bits))
}

/// In network order.
fn words(address: u128) -> [u32; 4] {
    let bytes = address.to_be_bytes();
    let words = bytes.as_chunks::<4>().0;
    std::array::from_fn(|i| u32::from_ne_bytes(words[i]))
}
