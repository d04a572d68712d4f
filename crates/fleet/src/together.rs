//! Which prefixes are one aggregate, although no single prefix holds them: they share a bottleneck.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{KeyError, Prefix};

/// Prefixes that are steered as one.
///
/// As text: a line for each group, prefixes with blanks between them. The first one names the
/// aggregate. What comes after `#` is a remark.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Together {
    /// By member, the first of its group.
    first: BTreeMap<Prefix, Prefix>,
}

/// What is wrong with the text of groups.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TogetherError {
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub why: TogetherMistake,
}

/// A mistake in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TogetherMistake {
    /// It is no prefix.
    #[error(transparent)]
    Prefix(#[from] KeyError),
    /// A group of one.
    #[error("{0} is alone: write at least two prefixes that are one aggregate, or drop the line")]
    Alone(Prefix),
    /// It is in another group, too, or twice in this one.
    #[error("{0} is there twice: a prefix is in one group, once")]
    Twice(Prefix),
}

impl Together {
    /// Reads groups.
    ///
    /// # Errors
    /// Says which line is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, TogetherError> {
        let mut first = BTreeMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            let fail = |why| TogetherError { line, why };
            let content = content.split('#').next().unwrap_or_default();
            let group = content.split_whitespace().map(str::parse::<Prefix>);
            let group = group.collect::<Result<Vec<_>, _>>().map_err(|e| fail(e.into()))?;
            let Some(&leader) = group.first() else { continue };
            if group.len() == 1 {
                return Err(fail(TogetherMistake::Alone(leader)));
            }
            for prefix in group {
                if first.insert(prefix, leader).is_some() {
                    return Err(fail(TogetherMistake::Twice(prefix)));
                }
            }
        }
        Ok(Self { first })
    }

    /// The same with pairs: a pair joins the groups of its two prefixes. A group that was there keeps
    /// its name, since what was learnt goes by that; a new one has that of its first prefix.
    #[must_use]
    pub fn with_pairs(mut self, pairs: impl IntoIterator<Item = (Prefix, Prefix)>) -> Self {
        let before: BTreeSet<Prefix> = self.first.values().copied().collect();
        for (one, other) in pairs {
            let mut names = [self.of(one), self.of(other)];
            names.sort_by_key(|name| (!before.contains(name), *name));
            let [name, former] = names;
            self.first.extend([(name, name), (former, name)]);
            self.first.values_mut().filter(|of| **of == former).for_each(|of| *of = name);
        }
        self
    }

    /// The same, if all prefixes are as long as those of who reads it: so many bits of IPv4, and of
    /// IPv6. Others would be in no aggregate.
    ///
    /// # Errors
    /// One has another length.
    pub fn of_bits(self, [v4, v6]: [u8; 2]) -> Result<Self, WrongBits> {
        let bits = |prefix: &Prefix| if prefix.address().is_ipv4() { v4 } else { v6 };
        match self.first.keys().find(|prefix| prefix.len() != bits(prefix)) {
            Some(prefix) => Err(WrongBits { prefix: *prefix, bits: bits(prefix) }),
            None => Ok(self),
        }
    }

    /// The prefix whose aggregate this one is in: its own, where it is in no group.
    pub fn of(&self, prefix: Prefix) -> Prefix {
        self.first.get(&prefix).copied().unwrap_or(prefix)
    }

    /// The aggregates that have other prefixes than by other groups: their names here and there.
    pub fn changed_since(&self, before: &Self) -> BTreeSet<Prefix> {
        let prefixes = self.first.keys().chain(before.first.keys());
        let moved = prefixes.filter(|prefix| self.of(**prefix) != before.of(**prefix));
        moved.flat_map(|prefix| [self.of(*prefix), before.of(*prefix)]).collect()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

/// A prefix of a group that no aggregate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{prefix} is no aggregate here, where prefixes have {bits} bits: write it so long")]
pub struct WrongBits {
    prefix: Prefix,
    bits: u8,
}

/// Short, however many there are: what depends on the groups compares this.
impl core::fmt::Debug for Together {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut digest = DefaultHasher::new();
        self.hash(&mut digest);
        write!(f, "Together({} prefixes, {:016x})", self.first.len(), digest.finish())
    }
}

/// The groups as text, in the order of their prefixes.
impl core::fmt::Display for Together {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut groups: BTreeMap<Prefix, Vec<Prefix>> = BTreeMap::new();
        for (&member, &leader) in &self.first {
            groups.entry(leader).or_default().extend((member != leader).then_some(member));
        }
        for (leader, members) in groups {
            write!(f, "{leader}")?;
            members.iter().try_for_each(|member| write!(f, " {member}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_prefix_of_a_group_names_it() {
        let text = "# one access network\n203.0.113.0/24 198.51.100.0/24  192.0.2.0/24 # of a town\n\n\
                    2001:db8:1::/48\t2001:db8:2::/48\n";
        let together = Together::parse(text).unwrap();
        for member in ["203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24"] {
            assert_eq!(together.of(prefix(member)), prefix("203.0.113.0/24"));
        }
        assert_eq!(together.of(prefix("2001:db8:2::/48")), prefix("2001:db8:1::/48"));
        assert_eq!(together.of(prefix("10.0.0.0/24")), prefix("10.0.0.0/24"));
        assert_eq!(Together::parse(&together.to_string()), Ok(together));
        assert!(Together::parse(" # nothing\n\n").unwrap().is_empty());
    }

    #[test]
    fn pairs_make_groups() {
        let pairs = [(5, 6), (1, 2), (3, 4), (4, 2), (6, 5)];
        let of = |n: u8| prefix(&format!("10.0.{n}.0/24"));
        let pairs = pairs.map(|(one, other)| (of(one), of(other)));
        let together = Together::default().with_pairs(pairs);
        assert_eq!(
            together.to_string(),
            "10.0.1.0/24 10.0.2.0/24 10.0.3.0/24 10.0.4.0/24\n10.0.5.0/24 10.0.6.0/24\n"
        );
    }

    #[test]
    fn a_group_keeps_its_name_when_others_join_it() {
        let before = Together::parse("10.0.5.0/24 10.0.6.0/24\n10.0.8.0/24 10.0.9.0/24").unwrap();
        let of = |n: u8| prefix(&format!("10.0.{n}.0/24"));
        let after = before.clone().with_pairs([(of(1), of(6)), (of(2), of(3))]);
        assert_eq!(
            after.to_string(),
            "10.0.2.0/24 10.0.3.0/24\n10.0.5.0/24 10.0.1.0/24 10.0.6.0/24\n10.0.8.0/24 10.0.9.0/24\n"
        );
        assert_ne!(format!("{before:?}"), format!("{after:?}"));
        let one = before.with_pairs([(of(9), of(6))]);
        assert_eq!(one.of(of(9)), of(5), "of two that were there the first");
        assert_eq!(one.of(of(8)), of(5));
    }

    #[test]
    fn prefixes_are_as_long_as_aggregates() {
        let together = Together::parse("10.0.5.0/24 2001:db8::/48").unwrap();
        assert_eq!(together.clone().of_bits([24, 48]), Ok(together.clone()));
        let wrong = together.of_bits([24, 56]).unwrap_err().to_string();
        assert!(wrong.starts_with("2001:db8::/48 is no aggregate here, where prefixes have 56"));
    }

    #[test]
    fn mistakes_say_their_line() {
        for (text, words) in [
            ("\n10.0.0.0/24", "line 2: 10.0.0.0/24 is alone"),
            ("10.0.0.0/24 10.0.1.0/24\n10.0.2.0/24 10.0.1.0/24", "line 2: 10.0.1.0/24 is there"),
            ("10.0.0.0/24 10.0.0.0/24", "line 1: 10.0.0.0/24 is there twice"),
            ("10.0.0.0/24 10.0.1.1/24", "line 1: 10.0.1.1/24 has bits set"),
            ("10.0.0.0/24, 10.0.1.0/24", "line 1: \"10.0.0.0/24,\" is no prefix"),
        ] {
            let told = Together::parse(text).unwrap_err().to_string();
            assert!(told.starts_with(words), "{told}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f./: #\n]{0,80}") {
            if let Ok(together) = Together::parse(&text) {
                prop_assert_eq!(Together::parse(&together.to_string()).unwrap(), together);
            }
        }
    }
}
