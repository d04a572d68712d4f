//! Figures of distributions that are sampled without a run: segments of traces, requests of applications.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trimtab_net::Segmentation;
use trimtab_units::Duration;

use super::judge::JudgeError;
use super::verdict::{Band, Counted, Finding};
use crate::samples::{
    Part, RequestsError, Sampled, SegmentsError, Unit, requests, segments, share,
};
use crate::scenario::{AppSettings, TraceSource, TraceSourceError};

/// The folder within that of scenarios from which traces are named: that of the catalogue.
const FOLDER: &str = "papers";

/// How long a session lasts: the mean of Floo, section 4.2.
const SESSION: Duration = Duration::from_secs(206);

/// Sessions of an application.
const SESSIONS: u64 = 100;

/// Samples, and the paper's claims of them. It has `traces`, which are segmented, or `app`, whose requests
/// are sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleRecipe {
    /// Traces, files or globs, by the names of their sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub traces: BTreeMap<String, Vec<String>>,
    /// An application with its settings. Its kind is the name of its set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppSettings>,
    /// What the paper claims.
    #[serde(rename = "claim")]
    pub claims: Vec<ShareClaim>,
}

/// A claim of a share, in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareClaim {
    /// Whose samples: the name of a set.
    pub of: String,
    /// What of them.
    pub quantity: Sampled,
    /// Which part of the distribution.
    pub part: Part,
    /// The share that the paper states, in percent, which the picture shows.
    pub stated: f64,
    /// What agrees with the paper.
    pub band: Band,
}

impl ShareClaim {
    /// What is compared, in words.
    pub fn subject(&self) -> String {
        format!("{} of {}: {}", self.part.words(), self.of, self.quantity.name())
    }
}

/// Why there are no samples.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// A trace is named wrongly.
    #[error("in the catalogue: {0}")]
    Name(#[from] TraceSourceError),
    /// Traces have no segments.
    #[error(transparent)]
    Segments(#[from] SegmentsError),
    /// The application has no requests.
    #[error(transparent)]
    Requests(#[from] RequestsError),
}

impl SampleRecipe {
    /// The traces of each set, as seen from the working directory.
    ///
    /// # Errors
    /// A name is that of no trace.
    pub fn sources(
        &self,
        folder: &Path,
    ) -> Result<BTreeMap<&str, Vec<TraceSource>>, TraceSourceError> {
        let source = |text: &String| -> Result<TraceSource, TraceSourceError> {
            let mut source: TraceSource = text.parse()?;
            source.rebase(&folder.join(FOLDER));
            Ok(source)
        };
        let mut sets = BTreeMap::new();
        for (name, texts) in &self.traces {
            let sources: Result<Vec<_>, _> = texts.iter().map(source).collect();
            sets.insert(name.as_str(), sources?);
        }
        Ok(sets)
    }

    /// Takes the samples, set by set. `folder` is that of scenarios.
    ///
    /// # Errors
    /// A trace is not there, or something of the recipe is wrong.
    pub fn sample(&self, folder: &Path) -> Result<Vec<(String, Vec<Unit>)>, SampleError> {
        let mut sets = Vec::new();
        for (name, sources) in self.sources(folder)? {
            sets.push((name.to_owned(), segments(&sources, &Segmentation::default())?));
        }
        if let Some(app) = &self.app {
            sets.push((app.label().to_owned(), requests(app, SESSION, SESSIONS)?));
        }
        Ok(sets)
    }

    /// The points that the paper states of each distribution, in ascending order.
    pub fn stated(&self) -> BTreeMap<Sampled, Vec<(f64, f64)>> {
        let mut points: BTreeMap<Sampled, Vec<(f64, f64)>> = BTreeMap::new();
        for claim in &self.claims {
            let of = points.entry(claim.quantity).or_default();
            // Of several sets the paper states the same.
            of.extend(claim.part.point(claim.stated).filter(|point| !of.contains(point)));
        }
        points.retain(|_, of| !of.is_empty());
        points.values_mut().for_each(|of| of.sort_by(|a, b| a.0.total_cmp(&b.0)));
        points
    }
}

/// Judges a claim by the samples.
pub(super) fn judge(
    claim: &ShareClaim,
    sets: &[(String, Vec<Unit>)],
) -> Result<Finding, JudgeError> {
    let missing = || JudgeError::Missing { subject: claim.subject() };
    let (_, units) = sets.iter().find(|(name, _)| *name == claim.of).ok_or_else(missing)?;
    let ours = share(units, claim.quantity, claim.part).ok_or_else(missing)?;
    let count = units.iter().map(|unit| unit.of(claim.quantity).len()).sum();
    let finding = Finding::new(claim.subject(), false, &claim.band, ours, count);
    Ok(Finding { counted: Counted::Samples, ..finding })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    fn recipe() -> SampleRecipe {
        toml::from_str(
            "traces.steps = [\"step:12Mbit/s@5s,6Mbit/s@8s,24Mbit/s@4s\"]\n\
             claim = [\n\
               { of = \"steps\", quantity = \"segment-length\", part = { above = 4.5 }, stated = 90, \
                 band = { at_least = 90, contradicts_below = 50 } },\n\
               { of = \"steps\", quantity = \"segment-change\", part = { above = 49 }, stated = 80, \
                 band = { at_least = 80 } },\n\
             ]\n",
        )
        .unwrap()
    }

    #[test]
    fn shares_are_judged_by_their_bands() {
        let recipe = recipe();
        let sets = recipe.sample(Path::new("nowhere")).unwrap();
        let findings: Vec<Finding> =
            recipe.claims.iter().map(|claim| judge(claim, &sets).unwrap()).collect();
        // Two of three segments; one trace has no interval.
        assert!((findings[0].ours.value - 200.0 / 3.0).abs() < 1e-9, "{findings:?}");
        assert_eq!((findings[0].verdict, findings[0].runs), (Verdict::Smaller, 3));
        assert_eq!((findings[1].verdict, findings[1].runs), (Verdict::Agrees, 2));
        assert_eq!(findings[0].subject, "percent above 4.5 of steps: length of segments, s");
        let e = judge(&ShareClaim { of: "x".to_owned(), ..recipe.claims[0].clone() }, &sets);
        assert!(e.unwrap_err().to_string().contains("nothing that ran has the percent above 4.5"));
    }

    #[test]
    fn the_stated_points_lie_on_the_curve() {
        let points = recipe().stated();
        assert_eq!(points[&Sampled::SegmentLength], [(4.5, 10.0)]);
        assert_eq!(points[&Sampled::SegmentChange], [(49.0, 20.0)]);
    }
}
