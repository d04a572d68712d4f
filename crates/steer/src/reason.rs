//! What a steering says of its actions and of itself, for records, decisions and metrics.

use trimtab_qoe::Hints;

use crate::Utility;

/// Why a steering asked for an action, for a host that explains it to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The gradient of the QoE model (Mortise §3.2); [`Insight`] has its numbers.
    Preference,
    /// As large bursts as the path has proven to hold.
    Burst,
    /// The next algorithm's turn.
    Turn,
    /// It does best by a rule (Floo Table 1), or was not tried for long.
    Rule(Utility),
    /// A learnt policy prefers it.
    Learnt,
    /// A learnt policy declined, and this is the fallback. This was the reason the first time.
    Fallback(Distrust),
    /// The one that took over was clearly worse than this one.
    Worse,
    /// The connection's states lie nearest to the group of this tree (Muses §IV-A).
    Nearest,
}

/// What a steering lets its host see of itself, for records, decisions and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Insight {
    /// The application's preference at the last decision; `None` where no QoE model is followed.
    pub preference: Option<Hints>,
    /// The tradeoff achieved at that decision, in Mbit/s per second of delay (Mortise Eq. 4).
    pub tradeoff: Option<f64>,
    /// What was chosen so far; `None` where no algorithm is chosen, or somebody outside does.
    pub selections: Option<Selections>,
    /// The model whose trees decide, by its checksum, and the tree in force; `None` without trees.
    pub tree: Option<(u32, usize)>,
}

/// What a steering needs of the datapath that carries out its actions and brings its reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// It may ask for another algorithm, so the datapath keeps what a hand-over needs.
    pub switching: bool,
    /// It goes by the application's responses, so its host measures them.
    pub responses: bool,
    /// It goes by the states that trees were asked for ([`Report::states`](crate::Report::states)).
    pub states: bool,
    /// It goes by the distribution of the round-trip times
    /// ([`Report::rtts`](crate::Report::rtts)), for a QoE model that does.
    pub samples: bool,
}

/// What a selector has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selections {
    /// Selections.
    pub made: u64,
    /// Those that chose another algorithm than the one before.
    pub changed: u64,
    /// Those for which the policy had no answer and the safe algorithm was chosen.
    pub fallbacks: u64,
    /// Switches after which the connection got clearly less, so that the algorithm from before came
    /// back.
    pub reverts: u64,
    /// Why, at the first of them. To be told once.
    pub distrust: Option<Distrust>,
}

/// Why a policy gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// A number of the state is not finite.
    #[error("{feature} is not finite")]
    NotFinite {
        /// Its name.
        feature: &'static str,
    },
    /// A number of the state is outside the range in which the policy learnt.
    #[error("{feature} is outside the range in which the policy learnt")]
    OutOfDistribution {
        /// Its name.
        feature: &'static str,
    },
    /// The weights are so large that the preferences are not finite.
    #[error("the policy's preferences are not finite")]
    Overflow,
    /// There is no model.
    #[error("there is no model: {0}")]
    NoModel(Unusable),
}

/// Why there is no model, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Nobody could read its file.
    #[error("its file cannot be read")]
    Missing,
    /// What is in the file is no model, or not the one that was written.
    #[error("its file is damaged, or no model")]
    Damaged,
    /// It is of another version of this program.
    #[error("its file is of another version")]
    Version,
    /// Of what it chooses among, fewer than two can run here.
    #[error("fewer than two of its algorithms can run here")]
    Candidates,
}
