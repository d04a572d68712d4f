//! Values of the configuration: ports, prefixes, and texts with units; one or a list of them.

use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A span of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// The first and the last of them.
    pub fn span(self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// Whether a port is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| text.trim().parse::<u16>().ok();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!("{text:?} is no port: write 443, or \"8000-8999\"")),
        }
    }
}

/// A prefix of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    base: IpAddr,
    length: u8,
}

impl Prefix {
    /// The first `length` bits of an address; all, where it has fewer.
    pub fn of(address: IpAddr, length: u8) -> Self {
        let address = address.to_canonical();
        let keep = |bits: u8| u32::from(bits.saturating_sub(length));
        match address {
            IpAddr::V4(a) => {
                let mask = u32::MAX.checked_shl(keep(32)).unwrap_or(0);
                Self { base: IpAddr::V4((a.to_bits() & mask).into()), length: length.min(32) }
            }
            IpAddr::V6(a) => {
                let mask = u128::MAX.checked_shl(keep(128)).unwrap_or(0);
                Self { base: IpAddr::V6((a.to_bits() & mask).into()), length: length.min(128) }
            }
        }
    }

    /// Whether an address begins with it.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.base.is_ipv4() && Self::of(address, self.length) == self
    }

    /// Its first address.
    pub fn base(self) -> IpAddr {
        self.base
    }

    /// How many bits all that begin with it share.
    pub fn bits(self) -> u8 {
        self.length
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || {
            format!("{text:?} is no prefix: write \"10.0.0.0/8\", \"2001:db8::/32\" or an address")
        };
        let (address, length) = match text.trim().split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().map_err(|_| fail())?)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| fail())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.unwrap_or(most);
        if length > most {
            return Err(fail());
        }
        let prefix = Self::of(address, length);
        if prefix.base != address {
            return Err(format!("{text:?} has bits beyond its length: did you mean \"{prefix}\"?"));
        }
        Ok(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.length)
    }
}

/// A value that is written as a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextVisitor(PhantomData)).map(Self)
    }
}

/// A number is read as a text without its unit, so that the error says which one is missing.
struct TextVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text with its unit")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// One value or a list, each a text or a whole number.
#[derive(Clone, Debug)]
pub(super) struct OneOrMany<T>(pub(super) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: FromStr<Err: fmt::Display>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        text.parse().map(|value| vec![value]).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(OneOrMany(mut some)) = list.next_element()? {
            all.append(&mut some);
        }
        Ok(all)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OneOrManyVisitor(PhantomData)).map(Self)
    }
}
