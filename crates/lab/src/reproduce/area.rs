//! Claims of how much delay and throughput vary from place to place: areas of ellipses.

use serde::{Deserialize, Serialize};

use super::judge::JudgeError;
use super::verdict::{Band, Finding};
use crate::report::figure::{Panels, moments, normalised};
use crate::result::RunRecord;
use crate::stats::{Ellipse, Estimate};

/// By how many percent the ellipse of a scheme is smaller than that of another, in the picture `ellipses`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AreaClaim {
    /// The scheme.
    pub scheme: String,
    /// The scheme that it is compared with.
    pub versus: String,
    /// The panel whose traces count, by its title.
    pub panel: String,
    /// What agrees with the paper, in percent by which the area is smaller.
    pub band: Band,
}

impl AreaClaim {
    /// What is compared, in words.
    pub fn subject(&self) -> String {
        let Self { scheme, versus, panel, .. } = self;
        format!("area of the ellipse of {scheme} at {panel} vs. {versus}")
    }
}

/// Judges a claim. An area has no interval: it is a figure of all places at once.
pub(super) fn judge(
    claim: &AreaClaim,
    panels: &Panels,
    all: &[RunRecord],
) -> Result<Finding, JudgeError> {
    let subject = claim.subject();
    let missing = || JudgeError::Missing { subject: claim.subject() };
    let parts = panels.get(&claim.panel).ok_or_else(missing)?;
    let app = all.first().map(|run| &run.app);
    let runs: Vec<&RunRecord> = all.iter().filter(|run| Some(&run.app) == app).collect();
    let runs = normalised(&runs);
    let of = |cc: &str| moments(&runs, cc, parts);
    let area = |cc: &str| of(cc).ellipse().as_ref().map(Ellipse::area).ok_or_else(missing);
    let (own, other) = (area(&claim.scheme)?, area(&claim.versus)?);
    if other <= 0.0 {
        return Err(JudgeError::NotPositive { subject });
    }
    let ours = Estimate { value: 100.0 * (1.0 - own / other), ci95: None };
    Ok(Finding::new(subject, true, &claim.band, ours, of(&claim.scheme).count()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;
    use crate::testing::run;

    #[test]
    fn the_scheme_that_varies_less_has_the_smaller_ellipse() {
        let at = |cc: &str, trace: &str, rtt, mbps| {
            let mut run = run(cc, trace, 0, 1.0);
            (run.rtt_ms.mean, run.throughput_mbps) = (rtt, mbps);
            run
        };
        // `low` has the least delay everywhere, and so does `top` have the most throughput.
        let mut runs = Vec::new();
        for (trace, wobble, wide) in [("a", 0.0, 0.0), ("b", 0.1, 0.2), ("c", 0.1, -0.2)] {
            runs.push(at("low", trace, 10.0, 1.0));
            runs.push(at("top", trace, 40.0, 10.0));
            runs.push(at("calm", trace, 20.0 + 10.0 * wobble, 8.0 + wide));
            runs.push(at("wild", trace, 20.0 + 20.0 * wobble, 8.0 + 2.0 * wide));
        }
        let panels = Panels::from([("all".to_owned(), Vec::new())]);
        let claim: AreaClaim = toml::from_str(
            "scheme = \"calm\"\nversus = \"wild\"\npanel = \"all\"\nband = { at_least = 50 }\n",
        )
        .unwrap();
        let finding = judge(&claim, &panels, &runs).unwrap();
        assert!((finding.ours.value - 75.0).abs() < 1e-6, "half as far both ways: {finding:?}");
        assert_eq!((finding.verdict, finding.runs), (Verdict::Agrees, 3));
        let back = AreaClaim { versus: "low".to_owned(), ..claim.clone() };
        let e = judge(&back, &panels, &runs).unwrap_err().to_string();
        assert!(e.contains("is not above 0"), "{e}");
        let e = judge(&claim, &Panels::new(), &runs).unwrap_err().to_string();
        assert!(e.contains("area of the ellipse of calm at all vs. wild"), "{e}");
    }
}
