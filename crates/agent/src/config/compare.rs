//! How the arms are compared, how a change is rolled out, and when a rule's breaker trips.

use serde::Deserialize;
use trimtab_units::Duration;

use super::Share;
use super::error::{ConfigError, Source};
use super::value::Text;

/// Time is counted in steps of this length.
pub(crate) const STEP: Duration = Duration::from_secs(5);

/// Which clusters share a bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// The connections of one cluster, at its end: clusters change arms each for itself.
    #[default]
    Clients,
    /// All connections of the host, at its end: all clusters change arms at once.
    Host,
}

/// The comparison with what connections would run otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compare {
    /// Share of time that clusters spend in the controls, half with the former algorithm and half
    /// held back; 0: there is no comparison.
    pub share: Share,
    /// How long a cluster keeps its arm.
    pub block: Duration,
    /// How long after a change of arms nothing counts.
    pub wash_out: Duration,
    /// Pairs of blocks until there is a result, and the next comparison begins.
    pub pairs: u32,
    /// Which clusters share a bottleneck.
    pub bottleneck: Bottleneck,
}

/// A rollout to more and more networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Shares of the networks to which the rules apply, stage by stage.
    pub stages: Vec<Share>,
    /// How long a stage is.
    pub every: Duration,
}

/// How much worse than the control arms a rule may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breaker {
    /// Whether it trips at all.
    pub on: bool,
    /// Lost share above that of the controls.
    pub loss: Share,
    /// Share by which the queueing delay is above that of the controls.
    pub delay: Share,
    /// Share by which the goodput is below that of the controls.
    pub goodput: Share,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCompare {
    share: toml::Spanned<Text<Share>>,
    block: toml::Spanned<Text<Duration>>,
    wash_out: toml::Spanned<Text<Duration>>,
    pairs: toml::Spanned<u32>,
    bottleneck: Bottleneck,
}

fn here<T>(value: T) -> toml::Spanned<T> {
    toml::Spanned::new(0..0, value)
}

impl RawCompare {
    /// Whether anything is compared.
    pub(super) fn is_on(&self) -> bool {
        self.share.get_ref().0.get() > 0.0
    }
}

impl Default for RawCompare {
    fn default() -> Self {
        Self {
            share: here(Text(Share::new(0.0))),
            block: here(Text(Duration::from_secs(300))),
            wash_out: here(Text(Duration::from_secs(10))),
            pairs: here(24),
            bottleneck: Bottleneck::default(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRollout {
    stages: toml::Spanned<Vec<Text<Share>>>,
    #[serde(default = "stage")]
    every: Text<Duration>,
}

fn stage() -> Text<Duration> {
    Text(Duration::from_secs(3600))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawBreaker {
    on: bool,
    loss: Text<Share>,
    delay: Text<Share>,
    goodput: Text<Share>,
}

impl Default for RawBreaker {
    fn default() -> Self {
        Self {
            on: true,
            loss: Text(Share::new(0.02)),
            delay: Text(Share::new(1.0)),
            goodput: Text(Share::new(0.3)),
        }
    }
}

impl Compare {
    pub(super) fn read(source: &Source<'_>, raw: &RawCompare) -> Result<Self, ConfigError> {
        let fail = |at: usize, what: &str| source.error(at, what);
        let compare = Self {
            share: raw.share.get_ref().0,
            block: raw.block.get_ref().0,
            wash_out: raw.wash_out.get_ref().0,
            pairs: *raw.pairs.get_ref(),
            bottleneck: raw.bottleneck,
        };
        if compare.share.get() > 0.5 {
            let what = "share: the controls get half of the time at most, \"50%\"";
            return Err(fail(raw.share.span().start, what));
        }
        if compare.block < STEP * 4 || compare.block > Duration::from_secs(24 * 3600) {
            return Err(fail(raw.block.span().start, "block: a block is 20s to 24h long"));
        }
        if !(4..=200).contains(&compare.pairs) {
            let what = "pairs: a comparison has 4 to 200 pairs of blocks";
            return Err(fail(raw.pairs.span().start, what));
        }
        if compare.wash_out < STEP || compare.wash_out * 2 > compare.block {
            let what = "wash_out: 5s or more, and half of a block at most";
            return Err(fail(raw.wash_out.span().start, what));
        }
        Ok(compare)
    }
}

impl Rollout {
    pub(super) fn read(source: &Source<'_>, raw: &RawRollout) -> Result<Self, ConfigError> {
        let stages: Vec<Share> = raw.stages.get_ref().iter().map(|share| share.0).collect();
        let ascend = stages.windows(2).all(|pair| pair[0].get() < pair[1].get());
        let begins = stages.first().is_some_and(|share| share.get() > 0.0);
        if !ascend || !begins {
            let what = "stages: shares of the networks that ascend, as [\"1%\", \"5%\", \"25%\", \"100%\"]";
            return Err(source.error(raw.stages.span().start, what));
        }
        Ok(Self { stages, every: raw.every.0 })
    }
}

impl From<&RawBreaker> for Breaker {
    fn from(raw: &RawBreaker) -> Self {
        Self { on: raw.on, loss: raw.loss.0, delay: raw.delay.0, goodput: raw.goodput.0 }
    }
}
