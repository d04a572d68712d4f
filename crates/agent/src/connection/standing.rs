//! How a connection stands, in a word.

use serde::{Deserialize, Serialize};

use crate::operate::Held;

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Its knobs follow its QoE.
    Steered,
    /// The algorithms of its rule take turns.
    Turning,
    /// It runs that of its rule's algorithms, or asks that of its model's trees, which does best,
    /// or which a policy prefers.
    Selecting,
    /// Decisions are made for it, and not carried out.
    Advised,
    /// It runs what the engine of the fleet chose for its aggregate.
    Customized,
    /// It has the knobs of its rule.
    Set,
    /// It runs another algorithm than its rule is about, and is measured only.
    Measured,
    /// It is left alone, for comparison.
    Holdback,
    /// It runs what it would run without Trimtab, for comparison.
    Former,
    /// No rule is for it: it is left alone.
    Unmatched,
    /// An operator paused its steering.
    Paused,
    /// An operator excluded the place that it goes to or comes from.
    Excluded,
    /// An operator had its former algorithm restored.
    Restored,
    /// The breaker of its rule tripped, and it has its former algorithm.
    Tripped,
    /// It suffered, and rests with the fallback.
    Resting,
    /// Somebody else turned its knobs: it is left to them.
    Yielded,
    /// This side has closed it, and all data was acknowledged: it is not open any more, though its socket is there.
    Closing,
}

impl From<Held> for Standing {
    fn from(held: Held) -> Self {
        match held {
            Held::Paused => Self::Paused,
            Held::Excluded => Self::Excluded,
            Held::Restored => Self::Restored,
            Held::Tripped => Self::Tripped,
        }
    }
}

impl Standing {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steered => "steered",
            Self::Turning => "turning",
            Self::Selecting => "selecting",
            Self::Advised => "advised",
            Self::Customized => "customized",
            Self::Set => "set",
            Self::Measured => "measured",
            Self::Holdback => "holdback",
            Self::Former => "former",
            Self::Unmatched => "unmatched",
            Self::Paused => "paused",
            Self::Excluded => "excluded",
            Self::Restored => "restored",
            Self::Tripped => "tripped",
            Self::Resting => "resting",
            Self::Yielded => "yielded",
            Self::Closing => "closing",
        }
    }

    /// What it means.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Steered => "a steering turns its knobs",
            Self::Turning => "the algorithms of its rule take turns",
            Self::Selecting => {
                "a selection or a policy chooses among its rule's algorithms or trees"
            }
            Self::Advised => "decisions for it are logged, and not carried out",
            Self::Customized => "it runs what the fleet's engine chose",
            Self::Set => "it has the knobs of its rule",
            Self::Measured => {
                "it runs another algorithm than that of its rule, so it is only measured"
            }
            Self::Holdback => "it is in the control group, and left alone",
            Self::Former => "it runs what it would run without Trimtab, for comparison",
            Self::Unmatched => "no rule matches it, so it is left alone",
            Self::Paused => "an operator paused its steering: it has what it had before",
            Self::Excluded => "an operator excluded it: no rule applies",
            Self::Restored => "an operator restored its former algorithm",
            Self::Tripped => "its rule did harm: it has its former algorithm until a resume",
            Self::Resting => "the guard ended its steering, and it rests with the fallback",
            Self::Yielded => "somebody else turned its knobs, so it is left alone",
            Self::Closing => "this side has closed it and sends nothing, so it is left alone",
        }
    }
}
