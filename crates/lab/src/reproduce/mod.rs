//! The papers' figures, tables and headlines by name: what each shows, how ours is made, and a verdict.
//!
//! The catalogue is data, `scenarios/papers/*.toml`: a new figure is one entry there. [`catalogue`] reads it,
//! [`find`] looks a name up, [`Recipe::scenario`] says what runs, [`judge`] compares with the paper, and
//! [`page`] makes `docs/reference/papers.md`.

mod page;
mod verdict;

use std::path::Path;

use serde::{Deserialize, Serialize};
use trimtab_net::Part;

use crate::scenario::{AppKind, Given, Scenario, ScenarioError, TransportKind};

pub use page::{list, page};
pub use verdict::{JudgeError, Outcome, Verdict, judge};

/// The catalogue's files, a paper each.
const FILES: [&str; 4] = [
    include_str!("../../../../scenarios/papers/mortise.toml"),
    include_str!("../../../../scenarios/papers/floo.toml"),
    include_str!("../../../../scenarios/papers/muses.toml"),
    include_str!("../../../../scenarios/papers/pcc.toml"),
];

/// Points of the grid that a quick run keeps at most.
const QUICK_POINTS: u32 = 6;

/// A figure, table or headline of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name, `PAPER/FIGURE`.
    pub name: String,
    /// The section of the paper.
    pub section: String,
    /// What it shows.
    pub shows: String,
    /// What the paper finds, with its number where it prints one.
    pub paper: String,
    /// How ours is made; nothing where one machine or this command cannot make it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Recipe>,
    /// Without `run`: why not, and what stands in for it. With it: what is known of a difference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Entry {
    /// The name as that of a folder.
    pub fn folder(&self) -> String {
        self.name.replace('/', "-")
    }
}

/// What runs for an entry, and what of it is compared with the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The scenario file, in the folder of scenarios.
    pub scenario: String,
    /// An application in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppKind>,
    /// The transport in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    /// The schemes in place of the scenario's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<String>,
    /// The number of seeds in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    /// The part of the recordings in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Part>,
    /// The picture in the paper's form: a kind of `trimtab compare --plot`.
    pub picture: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The scheme whose quantity it is.
    pub scheme: String,
    /// The scheme that it is compared with, or `best fixed`: the best that is not steered. Without one the
    /// quantity itself is compared with the paper's, and else by how many percent the scheme is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<String>,
    /// The application whose runs count, by its name in the results [default: the first].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// From this value on, ours agrees with the paper; exclusive where it equals `contradicts_below`.
    pub at_least: f64,
    /// Above this value, ours contradicts the paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Up to this value, ours contradicts the paper; between it and `at_least` it is smaller.
    #[serde(default)]
    pub contradicts_below: f64,
}

/// What of a result is compared with the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// The users' mean experience, in the unit of the QoE model.
    Qoe,
    /// The mean request completion time, in milliseconds.
    RctMean,
    /// The 90th percentile of request completion times, in milliseconds.
    RctP90,
    /// Jain's index over the scheme's flows, 0 to 1.
    Jain,
    /// The rate of a flow of the scheme over that of a competing flow.
    Friendliness,
}

impl Quantity {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qoe => "QoE",
            Self::RctMean => "mean completion time",
            Self::RctP90 => "90th percentile of completion times",
            Self::Jain => "Jain's index",
            Self::Friendliness => "friendliness",
        }
    }
}

impl Recipe {
    /// The scenario, from a folder of scenarios. `quick` keeps one seed and [a few](QUICK_POINTS) points of the
    /// grid, which shows that it works and says little of the paper.
    ///
    /// # Errors
    /// The scenario cannot be read, or does not fit the recipe.
    pub fn scenario(&self, folder: &Path, quick: bool) -> Result<Scenario, ScenarioError> {
        let cc: Result<Vec<_>, _> = self.cc.iter().map(|cc| cc.parse()).collect();
        let given = Given {
            app: self.app.into_iter().collect(),
            cc: cc.map_err(|e| ScenarioError::Invalid(format!("in the catalogue: {e}")))?,
            transport: self.transport,
            seeds: if quick { Some(1) } else { self.seeds },
            ..Given::default()
        };
        let mut scenario = given.scenario(Some(&folder.join(&self.scenario)))?;
        scenario.split = self.split.or(scenario.split);
        if quick {
            scenario.thin = Some(scenario.thin.map_or(QUICK_POINTS, |n| n.min(QUICK_POINTS)));
        }
        Ok(scenario)
    }
}

/// A file of the catalogue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    entry: Vec<Entry>,
}

/// Why there is no such entry.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The catalogue itself is wrong, which its test rules out.
    #[error("the catalogue of the papers' figures does not read: {0}")]
    Malformed(#[from] toml::de::Error),
    /// No entry has this name.
    #[error("no figure {name:?}: the nearest are {nearest}; `trimtab reproduce --list` has all")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that differ from it the least.
        nearest: String,
    },
}

/// Every entry, paper by paper.
///
/// # Errors
/// A file of the catalogue does not read.
pub fn catalogue() -> Result<Vec<Entry>, CatalogueError> {
    let files: Result<Vec<File>, _> = FILES.iter().map(|text| toml::from_str(text)).collect();
    Ok(files?.into_iter().flat_map(|file| file.entry).collect())
}

/// The entry of this name.
///
/// # Errors
/// There is none: the error names the nearest.
pub fn find<'a>(entries: &'a [Entry], name: &str) -> Result<&'a Entry, CatalogueError> {
    entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        names.sort_by_key(|known| strsim::damerau_levenshtein(known, name));
        names.truncate(3);
        CatalogueError::Unknown { name: name.to_owned(), nearest: names.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::figure::Kind;

    #[test]
    fn entries_are_complete_and_their_scenarios_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let entries = catalogue().unwrap();
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), entries.len(), "a name is taken twice");
        for entry in &entries {
            let name = &entry.name;
            let Some(recipe) = &entry.run else {
                assert!(!entry.note.is_empty(), "{name} says nothing of why");
                continue;
            };
            recipe.picture.parse::<Kind>().unwrap();
            assert!(recipe.contradicts_below <= recipe.at_least, "{name}");
            assert!(recipe.at_most.is_none_or(|most| most > recipe.at_least), "{name}");
            let scenario =
                recipe.scenario(&folder, false).unwrap_or_else(|e| panic!("{name}: {e}"));
            let has = |label: &str| scenario.cc.iter().any(|cc| cc.label() == label);
            assert!(has(&recipe.scheme), "{name} does not run {}", recipe.scheme);
            let fixed = scenario.cc.iter().any(|cc| !cc.is_steered() && !cc.is_bound());
            assert!(fixed || recipe.picture != "changes", "{name} has nobody to draw changes from");
            let rival = recipe.versus.as_deref().filter(|versus| *versus != verdict::BEST_FIXED);
            assert!(rival.is_none_or(has), "{name} does not run {rival:?}");
        }
    }

    #[test]
    fn a_wrong_name_gets_the_nearest() {
        let entries = catalogue().unwrap();
        assert_eq!(find(&entries, "mortise/fig12").unwrap().folder(), "mortise-fig12");
        let message = find(&entries, "mortise/fig21x").unwrap_err().to_string();
        assert!(message.contains("the nearest are mortise/fig21, "), "{message}");
    }
}
