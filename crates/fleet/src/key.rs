//! Who is configured together: a service to a destination prefix (paper 002 §3.1).

use core::fmt;
use core::str::FromStr;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Makes serde write a type as text, by `Display` and `FromStr`.
macro_rules! as_text {
    ($type:ident, $error:ident) => {
        impl TryFrom<String> for $type {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}
pub(crate) use as_text;

/// A subnet has at least 16 clusters: with fewer, chance often leaves one arm without any.
const CLUSTER_BITS_MIN: u8 = 4;

/// How long the prefix of a cluster is, of addresses of this family: usually, and at most.
const fn cluster_of(address: IpAddr) -> (u8, u8) {
    if address.is_ipv4() { (28, 32) } else { (56, 64) }
}

/// The longest name of a service, in bytes.
pub const SERVICE_NAME_LEN_MAX: usize = 63;

/// A type of service, such as `tv` or `game-downloads`: lower-case letters, digits, `-`, `_` and `.`, beginning with a
/// letter or digit, at most [`SERVICE_NAME_LEN_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServiceName(String);

impl ServiceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServiceName {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if first && text.len() <= SERVICE_NAME_LEN_MAX && text.bytes().all(good) {
            Ok(Self(text.to_owned()))
        } else {
            Err(KeyError::ServiceName(shortened(text)))
        }
    }
}

as_text!(ServiceName, KeyError);

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A destination subnet: IPv4 or IPv6, no bits set behind its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(IpNet);

impl Prefix {
    /// Bits that tell destinations apart unless somebody says otherwise: of IPv4, of IPv6.
    pub const BITS: [u8; 2] = [24, 48];

    /// The subnet of an address with so many bits, for IPv4 and IPv6. An IPv6 address that stands for
    /// an IPv4 address counts as that.
    ///
    /// # Panics
    /// There are more than 32 bits for IPv4, or more than 128 for IPv6.
    pub fn of(address: IpAddr, [v4, v6]: [u8; 2]) -> Self {
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { v4 } else { v6 };
        Self(IpNet::new(address, bits).expect("no more bits than an address has").trunc())
    }

    /// The cluster that a client of this aggregate is in, where arms run side by side: its /28, or /56
    /// of IPv6, and smaller ones of a subnet that has fewer than 16 of these. Clients of other subnets
    /// that are one aggregate with this one ([`Together`](crate::Together)) have clusters as large.
    /// `None` where there are none that are small enough.
    pub fn cluster(&self, client: IpAddr) -> Option<Self> {
        let client = client.to_canonical();
        let own = self.cluster_bits()?;
        let is_same_family = client.is_ipv4() == self.address().is_ipv4();
        let bits = if is_same_family { own } else { cluster_of(client).0 };
        Some(Self(IpNet::new(client, bits).expect("no more bits than an address has").trunc()))
    }

    /// How long the prefixes of its clusters are; `None` where it has none.
    pub fn cluster_bits(&self) -> Option<u8> {
        let (usual, most) = cluster_of(self.address());
        Some(usual.max(self.len() + CLUSTER_BITS_MIN)).filter(|bits| *bits <= most)
    }

    /// Whether an address is in the subnet.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// Its length in bits.
    pub fn len(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether it is every address of its family.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first address.
    pub fn address(&self) -> IpAddr {
        self.0.addr()
    }
}

impl FromStr for Prefix {
    type Err = KeyError;
    /// Parses `203.0.113.0/24`, `2001:db8::/32`; a lone address is a subnet of one.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let net = net.map_err(|_| KeyError::Prefix(shortened(text)))?;
        if net == net.trunc() {
            Ok(Self(net))
        } else {
            Err(KeyError::HostBits { given: net.to_string(), meant: net.trunc().to_string() })
        }
    }
}

as_text!(Prefix, KeyError);

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An aggregate: written as `tv/203.0.113.0/24`, ordered by service and then by prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key {
    /// The type of service.
    pub service: ServiceName,
    /// Where its connections go.
    pub prefix: Prefix,
}

impl FromStr for Key {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (service, prefix) =
            text.split_once('/').ok_or_else(|| KeyError::Form(shortened(text)))?;
        Ok(Self { service: service.parse()?, prefix: prefix.parse()? })
    }
}

as_text!(Key, KeyError);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.prefix)
    }
}

/// Why a text is no key, or no part of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no `/` in it.
    #[error("{0:?} is no aggregate: write SERVICE/PREFIX, e.g. tv/203.0.113.0/24")]
    Form(String),
    /// The service's name is empty, too long, or has other characters than it may.
    #[error(
        "{0:?} is no name of a service: 1 to {SERVICE_NAME_LEN_MAX} lower-case letters, digits, - \
         _ . beginning with a letter or digit"
    )]
    ServiceName(String),
    /// The prefix is none.
    #[error(
        "{0:?} is no prefix: write an address and a length, e.g. 203.0.113.0/24 or 2001:db8::/32"
    )]
    Prefix(String),
    /// Bits behind the length are set, so that one subnet would have many names.
    #[error("{given} has bits set behind its length: did you mean {meant}?")]
    HostBits {
        /// As it was given.
        given: String,
        /// The subnet that it lies in.
        meant: String,
    },
}

/// What is quoted of a text that nobody vouches for.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["tv/203.0.113.0/24", "game-downloads.eu/2001:db8::/32", "0/0.0.0.0/0"] {
            let key: Key = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<Key>(&json).unwrap(), key);
        }
        let one: Key = "tv/203.0.113.9".parse().unwrap();
        assert_eq!(one.to_string(), "tv/203.0.113.9/32");
        assert!(one.prefix.contains("203.0.113.9".parse().unwrap()));
        assert!(!one.prefix.contains("203.0.113.8".parse().unwrap()));
    }

    #[test]
    fn clusters_are_parts_of_a_subnet_and_at_least_sixteen() {
        for (prefix, client, cluster) in [
            ("203.0.113.0/24", "203.0.113.77", Some("203.0.113.64/28")),
            ("203.0.113.0/24", "::ffff:203.0.113.77", Some("203.0.113.64/28")),
            ("10.0.0.0/8", "10.9.8.7", Some("10.9.8.0/28")),
            ("203.0.113.128/26", "203.0.113.129", Some("203.0.113.128/30")),
            ("203.0.113.128/29", "203.0.113.129", None),
            ("203.0.113.0/24", "203.0.114.17", Some("203.0.114.16/28")),
            ("203.0.113.0/24", "2001:db8:0:1234::1", Some("2001:db8:0:1200::/56")),
            ("2001:db8::/48", "203.0.113.77", Some("203.0.113.64/28")),
            ("2001:db8::/48", "2001:db8:0:1234::1", Some("2001:db8:0:1200::/56")),
            ("2001:db8::/60", "2001:db8:0:3::1", Some("2001:db8:0:3::/64")),
            ("2001:db8::/61", "2001:db8:0:3::1", None),
        ] {
            let prefix: Prefix = prefix.parse().unwrap();
            let found = prefix.cluster(client.parse().unwrap()).map(|found| found.to_string());
            assert_eq!(found.as_deref(), cluster, "{prefix} {client}");
        }
    }

    #[test]
    fn order_is_by_service_and_then_by_address() {
        let texts =
            ["a/10.0.0.0/8", "a/10.0.0.0/9", "a/9.0.0.0/8", "a/2001:db8::/32", "b/1.0.0.0/8"];
        let mut keys: Vec<Key> = texts.map(|t| t.parse().unwrap()).into();
        keys.sort();
        let sorted: Vec<_> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(
            sorted,
            ["a/9.0.0.0/8", "a/10.0.0.0/8", "a/10.0.0.0/9", "a/2001:db8::/32", "b/1.0.0.0/8"]
        );
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, words) in [
            ("tv", "write SERVICE/PREFIX"),
            ("TV/10.0.0.0/8", "is no name of a service"),
            ("-tv/10.0.0.0/8", "is no name of a service"),
            ("/10.0.0.0/8", "is no name of a service"),
            ("tv/10.0.0.0/33", "is no prefix"),
            ("tv/", "is no prefix"),
            ("tv/10.1.2.3/8", "did you mean 10.0.0.0/8?"),
        ] {
            let message = text.parse::<Key>().unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
        let long = "x".repeat(1_000_000);
        assert!(long.parse::<Key>().unwrap_err().to_string().len() < 300);
    }

    proptest! {
        #[test]
        fn every_address_has_a_subnet_that_is_read_back(
            bits in any::<u128>(), is_v4 in any::<bool>(), length in 0..=128u8,
        ) {
            let (length, address) = if is_v4 {
                (length % 33, IpAddr::from((bits as u32).to_be_bytes()))
            } else {
                (length, IpAddr::from(bits.to_be_bytes()))
            };
            let text = format!("{address}/{length}");
            // A refusal names the subnet that is meant, and that one is taken.
            let prefix = match text.parse::<Prefix>() {
                Ok(prefix) => prefix,
                Err(KeyError::HostBits { given, meant }) => {
                    prop_assert_eq!(given, text);
                    meant.parse().unwrap()
                }
                Err(other) => panic!("{text}: {other}"),
            };
            prop_assert!(prefix.contains(address));
            prop_assert_eq!((prefix.len(), prefix.is_empty()), (length, length == 0));
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
            let other = if is_v4 { "::1" } else { "127.0.0.1" };
            prop_assert!(!prefix.contains(other.parse().unwrap()), "of another family");
        }

        #[test]
        fn what_is_taken_as_a_name_is_read_back(text in "[a-zA-Z0-9_.-]{0,70}") {
            let is_name = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && text.len() <= SERVICE_NAME_LEN_MAX
                && !text.contains(|c: char| c.is_ascii_uppercase());
            let name = text.parse::<ServiceName>();
            prop_assert_eq!(name.is_ok(), is_name, "{}", text);
            if let Ok(name) = name {
                prop_assert_eq!(name.as_str(), text);
            }
        }
    }
}
