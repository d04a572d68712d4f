//! Contexts: times in which the network behaves alike (paper 002 §4.2, §4.3).

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_units::Time;

use crate::Prefix;
use crate::key::as_text;

/// A context of a service, by its number; [`Contexts::name`] says which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Context(pub u16);

/// Seconds of a day.
const DAY_S: u64 = 24 * 3600;

/// How far local time is ahead of UTC, in whole minutes: `+05:30`, `-03:00`, `Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UtcOffset {
    minutes: i16,
}

impl FromStr for UtcOffset {
    type Err = ContextsError;
    fn from_str(text: &str) -> Result<Self, ContextsError> {
        let fail = || ContextsError::UtcOffset(text.chars().take(40).collect());
        if text == "Z" {
            return Ok(Self::default());
        }
        let (sign, rest) = match text.split_at_checked(1).ok_or_else(fail)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return Err(fail()),
        };
        let (hours, minutes) = rest.split_once(':').ok_or_else(fail)?;
        let number = |part: &str, max: i16| {
            let digits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
            part.parse::<i16>().ok().filter(|&n| digits && n <= max).ok_or_else(fail)
        };
        // UTC+14:00 is as far as any land goes.
        let total = number(hours, 14)? * 60 + number(minutes, 59)?;
        if total > 14 * 60 { Err(fail()) } else { Ok(Self { minutes: sign * total }) }
    }
}

as_text!(UtcOffset, ContextsError);

impl fmt::Display for UtcOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let minutes = self.minutes.unsigned_abs();
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// How the week is divided; default: three bands of the day, on weekdays and on weekends (§4.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Contexts {
    /// The local hours at which bands of the day begin, ascending from 0.
    pub bands: Vec<u8>,
    /// Whether Saturday and Sunday have contexts of their own.
    pub weekend: bool,
    /// Local time of every prefix that `offsets` does not name.
    pub utc_offset: UtcOffset,
    /// Local time by prefix; the longest that holds an aggregate's prefix counts.
    pub offsets: BTreeMap<Prefix, UtcOffset>,
}

impl Default for Contexts {
    fn default() -> Self {
        Self {
            bands: vec![0, 8, 16],
            weekend: true,
            utc_offset: UtcOffset::default(),
            offsets: BTreeMap::new(),
        }
    }
}

/// Why contexts cannot be as they are described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextsError {
    /// The bands are none.
    #[error(
        "bands of the day begin at hours that ascend from 0 and are below 24, e.g. [0, 8, 16]; not {0:?}"
    )]
    Bands(Vec<u8>),
    /// The offset is none.
    #[error("{0:?} is no offset from UTC: write it as \"+05:30\" or \"-03:00\", at most 14 hours")]
    UtcOffset(String),
}

impl Contexts {
    /// Checks the bands.
    ///
    /// # Errors
    /// They do not ascend from 0, or one is not an hour.
    pub fn check(&self) -> Result<(), ContextsError> {
        let ascending = self.bands.windows(2).all(|pair| pair[0] < pair[1]);
        let hours = self.bands.first() == Some(&0) && self.bands.iter().all(|&hour| hour < 24);
        if ascending && hours { Ok(()) } else { Err(ContextsError::Bands(self.bands.clone())) }
    }

    /// How many there are.
    pub fn count(&self) -> u16 {
        self.bands.len() as u16 * if self.weekend { 2 } else { 1 }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Context> {
        (0..self.count()).map(Context)
    }

    /// The context of a prefix at a time since 1970-01-01 00:00 UTC.
    pub fn at(&self, prefix: &Prefix, at: Time) -> Context {
        let offset = self.offset_of(prefix);
        let seconds =
            (at.as_nanos() / 1_000_000_000).saturating_add_signed(i64::from(offset.minutes) * 60);
        let hour = (seconds % DAY_S / 3600) as u8;
        let band = self.bands.iter().rposition(|&begins| begins <= hour).unwrap_or(0) as u16;
        // 1970-01-01 was a Thursday: the third day after it is a Sunday.
        let is_weekend = matches!((seconds / DAY_S + 3) % 7, 5 | 6);
        let bands = self.bands.len() as u16;
        Context(if self.weekend && is_weekend { bands + band } else { band })
    }

    fn offset_of(&self, prefix: &Prefix) -> UtcOffset {
        let holding = self
            .offsets
            .iter()
            .filter(|(p, _)| p.len() <= prefix.len() && p.contains(prefix.address()));
        holding.max_by_key(|(p, _)| p.len()).map_or(self.utc_offset, |(_, &offset)| offset)
    }

    /// The name of a context, such as `weekday 16-24`; just `16-24` where weekends are no contexts of their own.
    pub fn name(&self, context: Context) -> String {
        let bands = self.bands.len();
        let band = usize::from(context.0) % bands.max(1);
        let begins = self.bands.get(band).copied().unwrap_or(0);
        let ends = self.bands.get(band + 1).copied().unwrap_or(24);
        let hours = format!("{begins:02}-{ends:02}");
        match (self.weekend, usize::from(context.0) < bands) {
            (true, true) => format!("weekday {hours}"),
            (true, false) => format!("weekend {hours}"),
            (false, _) => hours,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-11-20 was a Friday.
    const FRIDAY: u64 = 1_795_132_800;

    fn name(contexts: &Contexts, prefix: &str, at_s: u64) -> String {
        contexts.name(contexts.at(&prefix.parse().unwrap(), Time::from_secs(at_s)))
    }

    #[test]
    fn six_by_default() {
        let contexts = Contexts::default();
        contexts.check().unwrap();
        assert_eq!(contexts.count(), 6);
        let at =
            |day: u64, hour: u64| name(&contexts, "10.0.0.0/8", FRIDAY + day * DAY_S + hour * 3600);
        assert_eq!(at(0, 0), "weekday 00-08");
        assert_eq!(at(0, 7), "weekday 00-08");
        assert_eq!(at(0, 8), "weekday 08-16");
        assert_eq!(at(0, 23), "weekday 16-24");
        assert_eq!(at(1, 0), "weekend 00-08");
        assert_eq!(at(2, 23), "weekend 16-24");
        assert_eq!(at(3, 0), "weekday 00-08");
    }

    #[test]
    fn local_time_counts() {
        let mut contexts =
            Contexts { utc_offset: "+05:30".parse().unwrap(), ..Contexts::default() };
        contexts.offsets.insert("10.0.0.0/8".parse().unwrap(), "-03:00".parse().unwrap());
        contexts.offsets.insert("10.1.0.0/16".parse().unwrap(), "Z".parse().unwrap());
        // Friday 02:40 UTC: 08:10 in India, 23:40 the day before in Brazil.
        let at = FRIDAY + 160 * 60;
        assert_eq!(name(&contexts, "192.0.2.0/24", at), "weekday 08-16");
        assert_eq!(name(&contexts, "10.9.0.0/16", at), "weekday 16-24");
        assert_eq!(name(&contexts, "10.1.2.0/24", at), "weekday 00-08");
        // Friday 19:00 UTC is Saturday in India.
        assert_eq!(name(&contexts, "192.0.2.0/24", FRIDAY + 19 * 3600), "weekend 00-08");
    }

    #[test]
    fn may_be_fewer() {
        let contexts = Contexts { bands: vec![0], weekend: false, ..Contexts::default() };
        assert_eq!((contexts.count(), name(&contexts, "10.0.0.0/8", FRIDAY)), (1, "00-24".into()));
    }

    #[test]
    fn mistakes_are_refused() {
        for bands in [vec![], vec![8, 16], vec![0, 8, 8], vec![0, 24]] {
            let contexts = Contexts { bands, ..Contexts::default() };
            assert!(contexts.check().unwrap_err().to_string().contains("e.g. [0, 8, 16]"));
        }
        for offset in ["", "5", "+5:00", "+15:00", "+14:01", "+00:60", "++1:00"] {
            assert!(offset.parse::<UtcOffset>().is_err(), "{offset}");
        }
    }

    proptest! {
        #[test]
        fn each_moment_has_one_context_that_comes_again_after_a_week(
            at_s in 0..4_000_000_000u64,
            later in prop::collection::btree_set(1..24u8, 0..5),
            weekend in any::<bool>(),
            offset in -14 * 60..=14 * 60i16,
        ) {
            let sign = if offset < 0 { '-' } else { '+' };
            let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
            let utc_offset: UtcOffset = format!("{sign}{hours:02}:{minutes:02}").parse().unwrap();
            let bands = [0].into_iter().chain(later).collect();
            let contexts = Contexts { bands, weekend, utc_offset, ..Contexts::default() };
            contexts.check().unwrap();
            let prefix = "10.0.0.0/8".parse().unwrap();
            let at = |at_s| contexts.at(&prefix, Time::from_secs(at_s));
            let context = at(at_s);
            prop_assert!(context.0 < contexts.count());
            prop_assert_eq!(at(at_s + 7 * DAY_S), context);
            // The band holds the local hour, and Saturday is two days after Thursday, day 0.
            let local_s = at_s as i64 + i64::from(offset) * 60;
            prop_assume!(local_s >= 0);
            let (day, hour) = (local_s / 86_400 % 7, local_s % 86_400 / 3600);
            let name = contexts.name(context);
            let (begins, ends) = name[name.len() - 5..].split_once('-').unwrap();
            let hours = begins.parse::<i64>().unwrap()..ends.parse().unwrap();
            prop_assert!(hours.contains(&hour), "{} has no {}", name, hour);
            prop_assert_eq!(name.starts_with("weekend"), weekend && matches!(day, 2 | 3));
        }
    }

    #[test]
    fn every_context_has_a_name_of_its_own() {
        for weekend in [false, true] {
            let contexts = Contexts { weekend, bands: vec![0, 6, 7, 23], ..Contexts::default() };
            let names: std::collections::BTreeSet<String> =
                contexts.all().map(|context| contexts.name(context)).collect();
            assert_eq!(names.len(), usize::from(contexts.count()), "{names:?}");
        }
    }

    #[test]
    fn offsets_are_read_back_as_they_are_written() {
        for text in ["+05:30", "-03:00", "+14:00", "-14:00", "+00:00", "-00:30"] {
            assert_eq!(text.parse::<UtcOffset>().unwrap().to_string(), text);
        }
        assert_eq!("Z".parse::<UtcOffset>().unwrap().to_string(), "+00:00");
    }
}
