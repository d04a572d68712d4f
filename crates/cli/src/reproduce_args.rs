//! The flags of `trimtab reproduce`.

use std::path::PathBuf;

use clap::Args;

use crate::args::Work;

/// Run figures, tables and headlines of the papers by name, and judge the papers' numbers by ours.
///
/// Writes the result, the verdict and the picture of each figure into a folder of its own. A figure
/// whose result is there is not run again, so an interrupted command goes on where it was.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab reproduce --list
  trimtab reproduce mortise/fig12
  trimtab reproduce mortise/fig13 muses/table4 --quick --out /tmp/quick
  trimtab reproduce --out reproduced
  trimtab reproduce --out reproduced --record scenarios/papers/verdicts.toml
  trimtab reproduce --page > docs/reference/papers.md

`docs/reference/papers.md` has every name, and what it is compared by.")]
pub(crate) struct Reproduce {
    /// Their names, e.g. mortise/fig12 [default: all that run]
    #[arg(value_name = "FIGURE")]
    pub(crate) figures: Vec<String>,

    /// List the figures, and run nothing
    #[arg(long, conflicts_with_all = ["figures", "page"])]
    pub(crate) list: bool,

    /// Print the page of the documentation that describes them, in Markdown, and run nothing
    #[arg(long, conflicts_with_all = ["figures", "json"])]
    pub(crate) page: bool,

    /// Take the verdicts of whole runs in --out over into a file, for the counts of --list and --page, and
    /// run nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["figures", "list", "page", "json", "quick"])]
    pub(crate) record: Option<PathBuf>,

    /// One seed, half a minute, and six points of the grid at most: shows that a figure runs, and
    /// says little of the paper
    #[arg(long)]
    pub(crate) quick: bool,

    /// The folder of results
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    pub(crate) out: PathBuf,

    /// The folder of scenarios, as in Trimtab's repository
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    pub(crate) scenarios: PathBuf,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) work: Work,
}
