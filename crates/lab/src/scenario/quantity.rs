//! Values with their units as TOML strings: `"20 ms"`, `"150KB"`, `"0.5%"`; lists of them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, Serializer};
use trimtab_units::{Bytes, Duration, Rate};

use super::{Delay, TraceSource};

/// A value that is written as text with its unit.
pub(crate) trait Quantity: FromStr<Err: fmt::Display> + fmt::Display {
    /// What the text should look like, for error messages.
    const EXPECTED: &'static str;
}

impl Quantity for Duration {
    const EXPECTED: &'static str = "a duration with its unit in quotes, such as \"20ms\"";
}
impl Quantity for Delay {
    const EXPECTED: &'static str = "a delay with its unit in quotes, such as \"20ms\" or \
                                    \"step:20ms,150ms@20s\"";
}
impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate with its unit in quotes, such as \"1Mbit/s\"";
}
impl Quantity for Buffer {
    const EXPECTED: &'static str =
        "a buffer size in quotes, such as \"150KB\", \"2BDP\" or \"100packets\"";
}
impl Quantity for TraceSource {
    const EXPECTED: &'static str =
        "a trace in quotes: a file, a glob, or such as \"constant:12Mbit/s\"";
}
impl Quantity for Probability {
    const EXPECTED: &'static str = "a loss rate in quotes, such as \"0.5%\"";
}

/// Why a text is no buffer size, loss rate or mark.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(pub(super) String);

/// The size of a bottleneck's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// So many bytes.
    Bytes(Bytes),
    /// A multiple of the bandwidth-delay product: mean rate of the trace times base round-trip time.
    Bdp(f64),
    /// So many packets of any size.
    Packets(u64),
}

impl FromStr for Buffer {
    type Err = QuantityError;

    /// Parses `150KB`, `1.5BDP`, `100packets`. Case does not matter.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let lower = text.trim().to_ascii_lowercase();
        let fail = || QuantityError(format!("{text:?} is not {}", Self::EXPECTED));
        if let Some(number) = lower.strip_suffix("bdp") {
            let bdp: f64 = number.trim().parse().map_err(|_| fail())?;
            return if bdp > 0.0 && bdp <= 1e6 { Ok(Self::Bdp(bdp)) } else { Err(fail()) };
        }
        let packets = ["packets", "packet", "pkts"].iter().find_map(|s| lower.strip_suffix(s));
        if let Some(number) = packets {
            let packets: u64 = number.trim().parse().map_err(|_| fail())?;
            return if packets > 0 { Ok(Self::Packets(packets)) } else { Err(fail()) };
        }
        let bytes: Bytes = text
            .parse()
            .map_err(|e| QuantityError(format!("buffer {text:?}: {e}, BDP, packets")))?;
        if bytes < Bytes::new(1500) {
            return Err(QuantityError(format!("buffer {text:?} holds no packet of 1500 bytes")));
        }
        Ok(Self::Bytes(bytes))
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(b) => b.fmt(f),
            Self::Bdp(b) => write!(f, "{b}BDP"),
            Self::Packets(n) => write!(f, "{n}packets"),
        }
    }
}

/// A probability, 0 to 1, written in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probability(f64);

impl Probability {
    /// As a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// From percent, 0 to 100.
    pub(super) const fn from_percent(percent: f64) -> Self {
        Self(percent / 100.0)
    }
}

impl FromStr for Probability {
    type Err = QuantityError;

    /// Parses `0.5%`, `2 %`, `0`. A number other than zero without `%` is an error: whether 1 is
    /// everything or a hundredth is a guess.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let fail = |why: &str| QuantityError(format!("{text:?} is no loss rate: {why}"));
        let trimmed = text.trim();
        let number = trimmed.strip_suffix('%').unwrap_or(trimmed).trim_end();
        let percent: f64 = number.parse().map_err(|_| fail("write it as 0.5%"))?;
        if percent != 0.0 && !trimmed.ends_with('%') {
            return Err(fail("it needs its unit, e.g. 0.5%"));
        }
        if !(0.0..=100.0).contains(&percent) {
            return Err(fail("it lies between 0% and 100%"));
        }
        Ok(Self::from_percent(percent))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded so that 0.02 is 2%, not 2.0000000000000004%.
        write!(f, "{}%", libm::round(self.0 * 1e10) / 1e8)
    }
}

/// Which packets the bottleneck marks (ECN).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// Each with this probability.
    Share(Probability),
    /// Those that find so much waiting in the queue, or more.
    Above(Buffer),
}

impl Quantity for Mark {
    const EXPECTED: &'static str = "a share of the packets (at most 100%) or a queue length in \
                                    quotes, such as \"10%\", \"20packets\" or \"0.5BDP\"";
}

impl FromStr for Mark {
    type Err = QuantityError;

    /// Parses `10%` as a share, and everything else as the size of a buffer.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim().ends_with('%') {
            text.parse().map(Self::Share)
        } else {
            text.parse().map(Self::Above)
        }
        .map_err(|_: QuantityError| QuantityError(format!("{text:?} is not {}", Self::EXPECTED)))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::Above(length) => length.fmt(f),
        }
    }
}

/// One value with its unit.
pub(crate) mod one {
    use super::*;

    pub(crate) fn serialize<T: Quantity, S: Serializer>(v: &T, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(v)
    }

    pub(crate) fn deserialize<'de, T: Quantity, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
        struct Text<T>(PhantomData<T>);
        impl<T: Quantity> Visitor<'_> for Text<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(|e| E::custom(format_args!("{e}")))
            }
        }
        d.deserialize_str(Text(PhantomData))
    }
}

/// One value with its unit, or none: the key is absent.
pub(crate) mod optional {
    use super::*;

    pub(crate) fn serialize<T: Quantity, S: Serializer>(
        v: &Option<T>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        match v {
            Some(v) => s.collect_str(v),
            None => s.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: Quantity, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<T>, D::Error> {
        one::deserialize(d).map(Some)
    }
}

/// One value or a list of them; never an empty list.
pub(crate) mod many {
    use super::*;

    pub(crate) fn serialize<T: Quantity, S: Serializer>(
        values: &[T],
        s: S,
    ) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(Some(values.len()))?;
        for v in values {
            seq.serialize_element(&v.to_string())?;
        }
        seq.end()
    }

    pub(crate) fn deserialize<'de, T: Quantity, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Vec<T>, D::Error> {
        struct OneOrMore<T>(PhantomData<T>);
        impl<'de, T: Quantity> Visitor<'de> for OneOrMore<T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or a list of them", T::EXPECTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
                Ok(vec![text.parse().map_err(|e| E::custom(format_args!("{e}")))?])
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(text) = seq.next_element::<String>()? {
                    let value = text.parse().map_err(|e| A::Error::custom(format_args!("{e}")))?;
                    values.push(value);
                }
                if values.is_empty() {
                    return Err(A::Error::custom("the list is empty"));
                }
                Ok(values)
            }
        }
        d.deserialize_any(OneOrMore(PhantomData))
    }
}

/// One whole number or a list of them.
pub(crate) mod counts {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u32>, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Vec<u32>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or a list of them")
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Vec<u32>, E> {
                let n =
                    u32::try_from(n).map_err(|_| E::custom("it lies between 0 and 4294967295"))?;
                Ok(vec![n])
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u32>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(values)
            }
        }
        d.deserialize_any(OneOrMore)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    #[test]
    fn buffers() {
        assert_eq!("150KB".parse(), Ok(Buffer::Bytes(Bytes::new(150_000))));
        assert_eq!("1.5 BDP".parse(), Ok(Buffer::Bdp(1.5)));
        assert_eq!("100packets".parse(), Ok(Buffer::Packets(100)));
        for wrong in ["", "150", "0BDP", "-1BDP", "nanBDP", "0packets", "100B"] {
            assert!(wrong.parse::<Buffer>().is_err(), "{wrong}");
        }
        for text in ["150KB", "0.5BDP", "100packets"] {
            assert_eq!(text.parse::<Buffer>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn marks() {
        for text in ["10%", "20packets", "0.5BDP"] {
            assert_eq!(text.parse::<Mark>().unwrap().to_string(), text);
        }
        assert!(matches!("10%".parse(), Ok(Mark::Share(share)) if share.get() == 0.1));
        for wrong in ["", "0", "0.1", "110%", "-1%", "%", "0packets", "1KB", "often"] {
            let e = wrong.parse::<Mark>().unwrap_err().to_string();
            assert!(e.contains(&format!("{wrong:?} is not")) && e.contains("20packets"), "{e}");
        }
    }

    #[test]
    fn loss_rates() {
        assert_eq!("0.5%".parse::<Probability>().unwrap().get(), 0.005);
        assert_eq!("0".parse::<Probability>().unwrap().get(), 0.0);
        for wrong in ["", "0.5", "101%", "-1%", "nan%", "a lot"] {
            assert!(wrong.parse::<Probability>().is_err(), "{wrong}");
        }
        for text in ["0%", "0.5%", "2%", "0.01%"] {
            assert_eq!(text.parse::<Probability>().unwrap().to_string(), text);
        }
    }

    /// Asserts that a value reads back as it is printed, as the record of a comparison needs.
    fn reads_back<T: Quantity + PartialEq + fmt::Debug>(value: &T) {
        let text = value.to_string();
        let again = text.parse::<T>().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(&again, value, "printed as {text}");
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_value() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for _ in 0..2000 {
            // Of all magnitudes alike.
            let mut any = |most: u32| random.random::<u64>() >> random.random_range(64 - most..64);
            let duration = Duration::from_nanos(any(50));
            let (time, rate) = (Duration::from_nanos(1_000_000 + any(40)), any(40));
            reads_back(&duration);
            reads_back(&Rate::from_bytes_per_sec(rate));
            reads_back(&Buffer::Bytes(Bytes::new(1500 + any(40))));
            reads_back(&Buffer::Packets(1 + any(40)));
            reads_back(&Buffer::Bdp((1 + any(29)) as f64 / 1024.0));
            reads_back(&Mark::Above(Buffer::Packets(1 + any(20))));
            let rates = [any(36), 0, 1 + any(36)].map(Rate::from_bytes_per_sec);
            let times = [time, Duration::from_secs(1 + any(9)), time];
            reads_back(&TraceSource::Steps(times.into_iter().zip(rates).collect()));
            let steps = times.map(|time| format!("{duration}@{time}")).join(",");
            reads_back(&format!("step:{steps}").parse::<Delay>().unwrap());
            reads_back(&TraceSource::Constant(Rate::from_bytes_per_sec(1 + rate)));
            let length = Duration::from_secs(1 + any(12));
            let (kind, seed) = (crate::scenario::GeneratedKind::Wifi, any(64));
            reads_back(&TraceSource::Generated { kind, seed, length });
            let percent = any(20) as f64 / f64::from(1 << 20) * 100.0;
            let share: Probability = format!("{percent:.6}%").parse().unwrap();
            reads_back(&share);
            reads_back(&Mark::Share(share));
        }
    }

    /// A buffer or a loss rate, which is an axis of the grid.
    #[derive(Debug, serde::Deserialize)]
    struct Axes {
        #[serde(deserialize_with = "many::deserialize")]
        buffer: Vec<Buffer>,
        #[serde(deserialize_with = "counts::deserialize")]
        flows: Vec<u32>,
    }

    #[test]
    fn an_axis_is_one_value_or_a_list_of_them() {
        let read = |buffer: &str, flows: &str| {
            let text = format!("buffer = {buffer}\nflows = {flows}\n");
            toml::from_str::<Axes>(&text).map_err(|e| e.to_string())
        };
        let axes = read("\"2BDP\"", "3").unwrap();
        assert_eq!((axes.buffer, axes.flows), (vec![Buffer::Bdp(2.0)], vec![3]));
        let axes = read("[\"9packets\", \"2BDP\"]", "[1, 16]").unwrap();
        assert_eq!(axes.buffer, [Buffer::Packets(9), Buffer::Bdp(2.0)]);
        assert_eq!(axes.flows, [1, 16]);
        for (buffer, flows, line, words) in [
            ("[]", "1", "line 1, column 10", "the list is empty"),
            ("[\"1KB\"]", "1", "line 1, column 10", "\"1KB\" holds no packet of 1500 bytes"),
            ("[\"2BDP\", 3]", "1", "line 1, column 19", "expected a string"),
            ("2", "1", "line 1, column 10", "\"150KB\", \"2BDP\" or \"100packets\""),
            ("\"150\"", "1", "line 1, column 10", "BDP, packets"),
            ("\"0BDP\"", "1", "line 1, column 10", "\"0BDP\" is not a buffer size in quotes"),
            ("\"2BDP\"", "-1", "line 2, column 9", "it lies between 0 and 4294967295"),
            ("\"2BDP\"", "5000000000", "line 2, column 9", "it lies between 0 and 4294967295"),
            ("\"2BDP\"", "1.5", "line 2, column 9", "a whole number, or a list of them"),
            ("\"2BDP\"", "[1, \"2\"]", "line 2, column 13", "expected u32"),
        ] {
            let e = read(buffer, flows).unwrap_err();
            assert!(e.contains(line) && e.contains(words), "{buffer}, {flows}: {e}");
        }
    }

    #[test]
    fn a_loss_rate_names_the_mistake_and_the_way_to_write_it() {
        for (text, words) in [
            ("0.5", "it needs its unit, e.g. 0.5%"),
            ("half", "write it as 0.5%"),
            ("101%", "it lies between 0% and 100%"),
            ("-0.1%", "it lies between 0% and 100%"),
        ] {
            let e = text.parse::<Probability>().unwrap_err().to_string();
            assert_eq!(e, format!("{text:?} is no loss rate: {words}"));
        }
    }
}
