//! The flags of `trimtab leaderboard`.

use std::path::PathBuf;

use clap::Args;

use crate::args::Work;

/// Rank schemes over held sets of paths: QoE, harm to others, and processor time.
///
/// Writes a page (index.html), its numbers (leaderboard.json) and every run into a folder. What a scheme
/// ran on a set is not run again, so an interrupted command goes on where it was, and a submission runs
/// alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab leaderboard
  trimtab leaderboard alone shared --out board
  trimtab leaderboard alone shared short video --submit card.toml
  trimtab leaderboard --sets my-sets --cc cubic --cc mortise

`docs/how-to/leaderboard.md` describes sets, scores and cards.")]
pub(crate) struct Leaderboard {
    /// Sets to run, by their names, e.g. alone [default: all]
    #[arg(value_name = "SET")]
    pub(crate) chosen: Vec<String>,

    /// A folder of sets, a TOML file each [default: the sets that ship]
    #[arg(long, value_name = "DIR")]
    pub(crate) sets: Option<PathBuf>,

    /// Only these schemes of the sets, next to submissions; cubic always takes part [default: all]
    #[arg(long, value_name = "SCHEME")]
    pub(crate) cc: Vec<String>,

    /// The card of a submission, a TOML file; the scheme runs next to the others
    #[arg(long, value_name = "FILE")]
    pub(crate) submit: Vec<PathBuf>,

    /// One seed, three paths and twenty seconds: shows that it works, and says little
    #[arg(long)]
    pub(crate) quick: bool,

    /// The folder of page and results
    #[arg(long, value_name = "DIR", default_value = "leaderboard")]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) work: Work,
}
