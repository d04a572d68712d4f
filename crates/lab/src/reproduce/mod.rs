//! The papers' figures, tables and headlines by name: what each shows, how ours is made, and a verdict.
//!
//! The catalogue is data, `scenarios/papers/*.toml`: a new figure is one entry there. [`catalogue`] reads it,
//! [`find`] looks a name up, [`Recipe`], [`FleetRecipe`] and [`SampleRecipe`] say what runs, [`Entry::run`]
//! does all of it, [`Entry::judge`] compares with the paper, and [`page`] makes `docs/reference/papers.md`.

mod area;
mod claim;
mod fleet;
mod judge;
mod page;
mod recipe;
mod record;
mod run;
mod samples;
mod verdict;

use serde::{Deserialize, Serialize};

use crate::fleet::FleetResult;
use crate::result::Comparison;
use crate::samples::Unit;

pub use area::AreaClaim;
pub use claim::{Claim, Quantity, Where};
pub use fleet::{FleetClaim, FleetRecipe};
pub use judge::JudgeError;
pub use page::{list, page};
pub use recipe::Recipe;
pub use record::{Record, Status};
pub use run::{ReproduceError, Setting};
pub use samples::{SampleError, SampleRecipe, ShareClaim};
pub use verdict::{Band, Counted, Finding, Outcome, Verdict, tally};

/// The catalogue's files: a paper each, and the parts of their systems.
const FILES: [&str; 5] = [
    include_str!("../../scenarios/papers/mortise.toml"),
    include_str!("../../scenarios/papers/floo.toml"),
    include_str!("../../scenarios/papers/muses.toml"),
    include_str!("../../scenarios/papers/pcc.toml"),
    include_str!("../../scenarios/papers/parts.toml"),
];

/// A figure, table or headline of a paper, or a part of its system. It has one of `compare`, `fleet`,
/// `samples`, `command` and a note that says why there is none of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name: `PAPER/FIGURE`, or `KIND/PART`.
    pub name: String,
    /// The section of the paper.
    pub section: String,
    /// What it shows.
    pub shows: String,
    /// What the paper finds, with its number where it prints one. Parts have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub paper: String,
    /// The comparison that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Recipe>,
    /// The fleet that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetRecipe>,
    /// The samples that make it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleRecipe>,
    /// The command that makes it, where it is another than this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Of what does not run: why not, and what stands in for it. Of the rest: what is known of a difference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Entry {
    /// The name as that of a folder.
    pub fn folder(&self) -> String {
        self.name.replace('/', "-")
    }

    /// Whether `trimtab reproduce` runs it.
    pub fn runs(&self) -> bool {
        self.compare.is_some() || self.fleet.is_some() || self.samples.is_some()
    }

    /// How many claims of the paper it judges.
    pub fn claims(&self) -> usize {
        let compared = self.compare.as_ref().map_or(0, |r| r.claims.len() + r.areas.len());
        let simulated = self.fleet.as_ref().map_or(0, |r| r.claims.len());
        compared + simulated + self.samples.as_ref().map_or(0, |r| r.claims.len())
    }

    /// Compares the result of the entry's comparison with the paper. A quick run may lack what a claim is about,
    /// so such claims are left out.
    ///
    /// # Errors
    /// The runs lack what is compared.
    pub fn judge(&self, result: &Comparison, quick: bool) -> Result<Outcome, JudgeError> {
        let recipe = || self.compare.iter();
        let claims = recipe().flat_map(|recipe| &recipe.claims);
        let areas =
            recipe().flat_map(|recipe| recipe.areas.iter().map(move |area| (area, &recipe.panels)));
        let claims = claims.map(|claim| judge::judge(claim, &result.runs));
        let areas = areas.map(|(claim, panels)| area::judge(claim, panels, &result.runs));
        self.outcome(claims.chain(areas), quick)
    }

    /// Compares the result of the entry's fleet with the paper, as [`Self::judge`].
    ///
    /// # Errors
    /// The result lacks what is compared.
    pub fn judge_fleet(&self, result: &FleetResult, quick: bool) -> Result<Outcome, JudgeError> {
        let claims = self.fleet.iter().flat_map(|recipe| &recipe.claims);
        self.outcome(claims.map(|claim| fleet::judge(claim, result)), quick)
    }

    /// Compares the samples of the entry with the paper.
    ///
    /// # Errors
    /// There are no samples of what is compared.
    pub fn judge_samples(&self, sets: &[(String, Vec<Unit>)]) -> Result<Outcome, JudgeError> {
        let claims = self.samples.iter().flat_map(|recipe| &recipe.claims);
        self.outcome(claims.map(|claim| samples::judge(claim, sets)), false)
    }

    fn outcome(
        &self,
        findings: impl Iterator<Item = Result<Finding, JudgeError>>,
        quick: bool,
    ) -> Result<Outcome, JudgeError> {
        let findings: Result<Vec<_>, _> = findings.filter(|f| f.is_ok() || !quick).collect();
        Ok(Outcome::new(self, findings?, quick))
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
    use std::path::Path;

    use super::*;
    use crate::report::figure::Kind;
    use crate::scenario::AppSettings;

    #[test]
    fn entries_are_complete_and_their_scenarios_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let entries = catalogue().unwrap();
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), entries.len(), "a name is taken twice");
        for entry in &entries {
            let name = &entry.name;
            let ways = usize::from(entry.compare.is_some())
                + usize::from(entry.fleet.is_some())
                + usize::from(entry.samples.is_some())
                + usize::from(!entry.command.is_empty());
            assert!(ways == 1 || ways == 0 && !entry.note.is_empty(), "{name} has {ways} ways");
            if let Some(recipe) = &entry.compare {
                check(name, recipe, &folder);
            }
            if let Some(recipe) = &entry.samples {
                let sets = recipe.sources(&folder).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(
                    sets.is_empty() == recipe.app.is_some(),
                    "{name}: traces or an application"
                );
                assert!(!recipe.claims.is_empty(), "{name} claims nothing");
                let app = recipe.app.as_ref().map(AppSettings::label);
                for claim in &recipe.claims {
                    assert!(claim.band.is_sound(), "{name}");
                    let is_there = sets.contains_key(claim.of.as_str()) || app == Some(&claim.of);
                    assert!(is_there, "{name} does not sample {}", claim.of);
                }
            }
            if let Some(recipe) = &entry.fleet {
                let scenario = recipe.scenario(&folder, false);
                let scenario = scenario.unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(!recipe.claims.is_empty(), "{name} claims nothing");
                for claim in &recipe.claims {
                    assert!(claim.band.is_sound(), "{name}");
                    let known = |wanted: &Option<String>| {
                        wanted.as_ref().is_none_or(|wanted| {
                            scenario.services.iter().any(|s| s.name().as_str() == wanted)
                        })
                    };
                    assert!(known(&claim.service) && known(&claim.versus_service), "{name}");
                }
            }
        }
    }

    fn check(name: &str, recipe: &Recipe, folder: &Path) {
        recipe.picture.parse::<Kind>().unwrap();
        let scenario = recipe.scenario(folder, false).unwrap_or_else(|e| panic!("{name}: {e}"));
        let has = |label: &str| scenario.cc.iter().any(|cc| cc.label() == label);
        let fixed = scenario.cc.iter().any(|cc| !cc.is_steered() && !cc.is_bound());
        assert!(fixed || recipe.picture != "changes", "{name} has nobody to draw changes from");
        assert!(recipe.claims.len() + recipe.areas.len() > 0, "{name} claims nothing");
        for claim in &recipe.areas {
            assert!(claim.band.is_sound() && recipe.panels.contains_key(&claim.panel), "{name}");
            assert!(has(&claim.scheme) && has(&claim.versus), "{name} does not run {claim:?}");
        }
        for claim in &recipe.claims {
            assert!(claim.band.is_sound(), "{name}");
            assert!(has(&claim.scheme), "{name} does not run {}", claim.scheme);
            let rival = claim.versus.as_deref().filter(|versus| *versus != judge::BEST_FIXED);
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
