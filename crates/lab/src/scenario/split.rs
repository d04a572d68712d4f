//! Of the traces that a scenario names, those of one part of `traces/split.toml`.

use std::path::Path;

use trimtab_net::{Part, recording_name};

use super::{NamedTrace, ScenarioError, TraceSource};

/// Those of the traces that are recordings of this part, and those that come from no file.
///
/// # Errors
/// None is left.
pub(super) fn of(part: Part, traces: Vec<NamedTrace>) -> Result<Vec<NamedTrace>, ScenarioError> {
    let kinds = part.recordings();
    let is_in = |file: &Path| {
        let kind = file.parent().and_then(Path::file_name).unwrap_or_default();
        let names = kinds.get(&*kind.to_string_lossy());
        names.is_some_and(|names| names.contains(&recording_name(file)))
    };
    let kept: Vec<NamedTrace> = traces
        .into_iter()
        .filter(|trace| match &trace.source {
            TraceSource::Files(file) => is_in(file),
            _ => true,
        })
        .collect();
    if kept.is_empty() {
        return Err(ScenarioError::Invalid(format!(
            "none of the traces is in the part {part} of traces/split.toml: name recordings of the \
             shared collection, or leave out `split`"
        )));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(files: &[&str]) -> Vec<NamedTrace> {
        let trace = |text: &&str| {
            let source: TraceSource = text.parse().unwrap();
            NamedTrace { name: (*text).to_owned(), source }
        };
        files.iter().map(trace).collect()
    }

    #[test]
    fn a_part_keeps_its_own_and_what_is_no_file() {
        let first = |part: Part| {
            let (kind, names) = part.recordings().into_iter().next().unwrap();
            format!("x/{kind}/{}.trace.gz", names[0])
        };
        let [train, _, test] = Part::ALL.map(first);
        let all = traces(&[&train, &test, "constant:6Mbit/s"]);
        let kept = of(Part::Test, all).unwrap();
        let names: Vec<&str> = kept.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, [test.as_str(), "constant:6Mbit/s"]);
        let e = of(Part::Test, traces(&["mine/bus.trace"])).unwrap_err().to_string();
        assert!(e.contains("the part test"), "{e}");
    }
}
