//! `trimtab trace segments` and `trimtab app cdf`.

use std::collections::BTreeMap;
use std::path::Path;

use trimtab_lab::report::picture;
use trimtab_lab::report::samples::figure;
use trimtab_lab::samples::{self, Part, Sampled, Unit, pooled, share, summary};
use trimtab_lab::scenario::{AppKind, AppSettings, TraceSource};
use trimtab_net::Segmentation;
use trimtab_units::Duration;

use crate::{Failure, print};

pub(crate) fn segments(
    sources: &[TraceSource],
    how: &Segmentation,
    as_json: bool,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let units = samples::segments(sources, how).map_err(Failure::input)?;
    let mut text = String::new();
    for unit in &units {
        text += &format!("{}\n{}", unit.name, steadiness(std::slice::from_ref(unit)));
    }
    if units.len() > 1 {
        text += &format!("all {} traces\n{}", units.len(), steadiness(&units));
    }
    finish("all traces", units, text, as_json, output)
}

/// The shares of Mortise's appendix A.
fn steadiness(units: &[Unit]) -> String {
    let lengths = pooled(units, Sampled::SegmentLength);
    let changes = pooled(units, Sampled::SegmentChange);
    let percent = |quantity, part| share(units, quantity, part).map_or(0.0, |share| share.value);
    let length = |part| percent(Sampled::SegmentLength, part);
    let count = lengths.values().len();
    let mut text = format!(
        "  {count} segment{}, median {:.1} s: {:.0}% over 3 s, {:.0}% under 17 s",
        if count == 1 { "" } else { "s" },
        lengths.percentile(50.0).unwrap_or(0.0),
        length(Part::Above(3.0)),
        length(Part::Below(17.0)),
    );
    match changes.percentile(95.0) {
        Some(p95) => {
            let large = percent(Sampled::SegmentChange, Part::Above(50.0));
            let count = changes.values().len();
            text += &format!("; {count} changes: {large:.0}% above 50%, p95 {p95:.0}%\n");
        }
        None => text += "; no change\n",
    }
    text
}

pub(crate) fn requests(
    app: AppKind,
    set: &[String],
    length: Duration,
    sessions: u64,
    as_json: bool,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let settings = AppSettings::with(app, set).map_err(Failure::input)?;
    let units = samples::requests(&settings, length, sessions).map_err(Failure::input)?;
    let count: usize = units.iter().map(|unit| unit.of(Sampled::Response).len()).sum();
    let text = format!("{app}: {count} requests of {sessions} sessions\n{}", summary(&units));
    finish(app.name(), units, text, as_json, output)
}

/// Draws the samples where a file is named, and prints them.
fn finish(
    name: &str,
    units: Vec<Unit>,
    text: String,
    as_json: bool,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let text = if as_json {
        format!("{}\n", serde_json::to_string_pretty(&units).unwrap_or_default())
    } else {
        text
    };
    if let Some(path) = output {
        let svg = figure(&[(name.to_owned(), units)], &BTreeMap::new());
        picture::write(path, &svg).map_err(Failure::input)?;
    }
    print(&text)
}
