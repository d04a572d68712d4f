//! The comparison: some destination prefixes are left alone, so that what steering brings can be
//! seen.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Share;

/// Which side of the comparison a connection is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// Steered, or with the rule's knobs.
    Treated,
    /// Left with the algorithm's own defaults.
    Holdback,
    /// With the algorithm that it would run without Trimtab.
    Former,
}

impl Arm {
    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Treated => "treated",
            Self::Holdback => "holdback",
            Self::Former => "former",
        }
    }

    /// The arm of a destination. Both arms are whole prefixes, /24 and /48, since connections to one
    /// place share its bottleneck: steering one would change the other.
    pub fn of(destination: IpAddr, holdback: Share) -> Self {
        Self::of_key(PrefixKey::of(destination).as_ref(), holdback)
    }

    /// The arm of anything with a key, e.g. of a user.
    pub fn of_key(key: &[u8], holdback: Share) -> Self {
        // 53 bits, as a double holds.
        let place = (mix(fnv(key)) >> 11) as f64 / (1_u64 << 53) as f64;
        if place < holdback.get() { Self::Holdback } else { Self::Treated }
    }

    /// How many of a destination's bits all of an arm share.
    pub fn prefix(destination: IpAddr) -> u8 {
        if destination.to_canonical().is_ipv4() { 24 } else { 48 }
    }
}

/// What the prefix of a destination is drawn by: the 4 or 16 bytes of its first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixKey {
    bytes: [u8; 16],
    length: usize,
}

impl PrefixKey {
    /// That of the prefix which a destination is in, /24 or /48.
    pub fn of(destination: IpAddr) -> Self {
        let unused = |bits: u32| bits - u32::from(Arm::prefix(destination));
        let mut bytes = [0; 16];
        let length = match destination.to_canonical() {
            IpAddr::V4(a) => {
                let base = a.to_bits() & (u32::MAX << unused(u32::BITS));
                bytes[..4].copy_from_slice(&base.to_be_bytes());
                4
            }
            IpAddr::V6(a) => {
                bytes = (a.to_bits() & (u128::MAX << unused(u128::BITS))).to_be_bytes();
                16
            }
        };
        Self { bytes, length }
    }
}

impl AsRef<[u8]> for PrefixKey {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// FNV-1a (draft-eastlake-fnv §2): the same on every machine and in every version, so that no
/// prefix changes sides.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Spreads the hash's bits, of which FNV leaves the upper ones alike for short inputs (the
/// finaliser of MurmurHash3).
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_prefixes_are_held_back_in_the_share_that_was_asked_for() {
        let share = Share::new(0.1);
        let mut held = 0;
        for i in 0..10_000_u32 {
            let address = |host| IpAddr::from([10, (i >> 8) as u8, i as u8, host]);
            let arm = Arm::of(address(1), share);
            assert_eq!(arm, Arm::of(address(254), share));
            held += u32::from(arm == Arm::Holdback);
        }
        // Binomial: 1000, give or take 30.
        assert!((880..1120).contains(&held), "{held}");
        let mapped = "::ffff:10.0.0.9".parse().unwrap();
        assert_eq!(Arm::of(mapped, share), Arm::of("10.0.0.1".parse().unwrap(), share));
        assert_eq!(Arm::of(mapped, Share::new(0.0)), Arm::Treated);
        assert_eq!(Arm::of(mapped, Share::new(1.0)), Arm::Holdback);
    }
}
