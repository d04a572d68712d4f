//! The file as it is written, before it is checked: what serde reads, with the places of what may be wrong.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use trimtab_units::{Bytes, Duration};

use super::compare::{RawBreaker, RawCompare, RawRollout};
use super::error::{ConfigError, Source};
use super::value::{OneOrMany, Ports, Prefix, Text};
use super::{Detail, LogFormat, Mode, Sockets};
use super::{Safety, Share};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default)]
    pub(super) mode: Mode,
    #[serde(default)]
    pub(super) log: Detail,
    #[serde(default)]
    pub(super) log_format: LogFormat,
    pub(super) user: Option<String>,
    #[serde(default = "no_holdback")]
    pub(super) holdback: Text<Share>,
    #[serde(default)]
    pub(super) default_algorithm: bool,
    #[serde(default = "cpu")]
    pub(super) cpu: Text<Share>,
    #[serde(default)]
    pub(super) safety: RawSafety,
    #[serde(default)]
    pub(super) compare: RawCompare,
    pub(super) rollout: Option<RawRollout>,
    #[serde(default)]
    pub(super) breaker: RawBreaker,
    #[serde(default)]
    pub(super) sockets: RawSockets,
    #[serde(default)]
    pub(super) datapath: RawDatapath,
    pub(super) fleet: Option<RawFleet>,
    #[serde(default, deserialize_with = "rules")]
    pub(super) rule: Vec<RawRule>,
}

impl Raw {
    pub(super) fn parse(source: &Source<'_>) -> Result<Self, ConfigError> {
        let wrong =
            |e: toml::de::Error| source.error(e.span().map_or(0, |span| span.start), e.message());
        toml::from_str(source.text).map_err(wrong)
    }
}

fn rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RawRule>, D::Error> {
    from.deserialize_any(RulesVisitor)
}

struct RulesVisitor;

impl<'de> Visitor<'de> for RulesVisitor {
    type Value = Vec<RawRule>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rules, each below [[rule]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Vec<RawRule>, A::Error> {
        Err(A::Error::custom("there may be several rules: write [[rule]], with two brackets"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<RawRule>, A::Error> {
        let mut all = Vec::new();
        while let Some(rule) = list.next_element()? {
            all.push(rule);
        }
        Ok(all)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFleet {
    pub(super) engine: String,
    pub(super) token_file: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) authority: Option<PathBuf>,
    #[serde(default = "fleet_folder")]
    pub(super) folder: PathBuf,
}

fn fleet_folder() -> PathBuf {
    PathBuf::from("/var/lib/trimtab/edge")
}

fn no_holdback() -> Text<Share> {
    Text(Share::new(0.0))
}

/// A margin to the 5% of a core that the agent may take in all.
fn cpu() -> Text<Share> {
    Text(Share::new(0.04))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSafety {
    pub(super) loss: Text<Share>,
    pub(super) delay: Text<Duration>,
    pub(super) after: Text<Duration>,
    pub(super) rest: Text<Duration>,
}

impl Default for RawSafety {
    fn default() -> Self {
        let Safety { loss, delay, after, rest } = Safety::default();
        Self { loss: Text(loss), delay: Text(delay), after: Text(after), rest: Text(rest) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSockets {
    pub(super) folder: PathBuf,
    pub(super) group: Option<String>,
    pub(super) operators: Option<String>,
    pub(super) state: Option<PathBuf>,
    pub(super) hints: bool,
    pub(super) metrics: Option<SocketAddr>,
}

impl Default for RawSockets {
    fn default() -> Self {
        Self {
            folder: PathBuf::from(crate::FOLDER),
            group: None,
            operators: None,
            state: None,
            hints: true,
            metrics: None,
        }
    }
}

impl From<RawSockets> for Sockets {
    fn from(raw: RawSockets) -> Self {
        let RawSockets { folder, group, operators, state, hints, metrics } = raw;
        Self { folder, group, operators, state, hints, metrics }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawDatapath {
    pub(super) folder: PathBuf,
    pub(super) suffix: String,
    pub(super) slots: u32,
    pub(super) slot_after: Text<Bytes>,
    pub(super) cgroup_share: Spanned<Text<Share>>,
    pub(super) unrestricted: bool,
}

/// Three initial windows (RFC 6928): shorter connections end before a steering could learn anything.
const SLOT_AFTER: Bytes = Bytes::new(45_000);

impl Default for RawDatapath {
    fn default() -> Self {
        let options = trimtab_kernel::Options::default();
        Self {
            folder: options.folder,
            suffix: options.suffix,
            slots: options.slots,
            slot_after: Text(SLOT_AFTER),
            cgroup_share: Spanned::new(0..0, Text(Share::new(1.0))),
            unrestricted: options.unrestricted,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub(super) name: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) port: OneOrMany<Ports>,
    #[serde(default)]
    pub(super) to: OneOrMany<Prefix>,
    pub(super) cgroup: Option<Spanned<String>>,
    pub(super) netns: Option<Spanned<PathBuf>>,
    pub(super) qoe: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) factors: Numbers,
    pub(super) algorithm: Option<Spanned<String>>,
    pub(super) assign: Option<Spanned<bool>>,
    pub(super) steer: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) turns: Vec<Spanned<String>>,
    pub(super) every: Option<Spanned<Text<Duration>>>,
    pub(super) switch: Option<Spanned<String>>,
    pub(super) select: Option<Spanned<String>>,
    pub(super) model: Option<Spanned<String>>,
    pub(super) safe: Option<Spanned<String>>,
    pub(super) service: Option<Spanned<String>>,
    pub(super) prefix: Option<Spanned<[u8; 2]>>,
    pub(super) together: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) knobs: Numbers,
}

/// A table of numbers, in its order, with the places of its keys.
#[derive(Debug, Default)]
pub(super) struct Numbers(Vec<(Spanned<String>, f64)>);

impl<'a> IntoIterator for &'a Numbers {
    type Item = &'a (Spanned<String>, f64);
    type IntoIter = std::slice::Iter<'a, (Spanned<String>, f64)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Numbers {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, (Spanned<String>, f64)> {
        self.0.iter()
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table of numbers, e.g. { delta = 0.1 }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(Numbers(all))
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(NumbersVisitor)
    }
}
