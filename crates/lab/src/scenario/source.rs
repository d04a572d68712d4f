//! Where the bottleneck's capacity comes from: files, globs, constant, stepped and generated links.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use trimtab_units::{Duration, Rate};

/// One entry of `traces`, or one value of `--traces`.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceSource {
    /// A file in Mahimahi's format, plain or .gz, or a glob of them.
    Files(PathBuf),
    /// A constant rate: `constant:12Mbit/s`.
    Constant(Rate),
    /// Rates that follow each other over and over, with how long each lasts:
    /// `step:12Mbit/s,48Mbit/s@20s`, `step:24Mbit/s@10s,0Mbit/s@3s,24Mbit/s@7s`.
    Steps(Vec<(Duration, Rate)>),
    /// A link that looks like a cellular or Wi-Fi one: `cellular:seed=3,length=60s`.
    Generated {
        /// What it looks like.
        kind: GeneratedKind,
        /// Its seed.
        seed: u64,
        /// Its length before it repeats.
        length: Duration,
    },
    /// A generated trace that ships with the project: `demo:wifi-steady`; all of them: `demo`.
    Demo(Option<String>),
}

/// What a generated link looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratedKind {
    /// Like an LTE link (Mortise, appendix A).
    Cellular,
    /// Like a Wi-Fi link (Muses, Table II).
    Wifi,
}

impl GeneratedKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Cellular => "cellular",
            Self::Wifi => "wifi",
        }
    }
}

/// The length of a generated link when none is given.
const GENERATED_LENGTH: Duration = Duration::from_secs(180);

/// Why a trace is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceSourceError {
    /// The text names no link.
    #[error("trace {text:?}: {problem}")]
    Text {
        /// The text.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No file matches.
    #[error("no trace file matches {}: {}", pattern.display(), advice(pattern))]
    Missing {
        /// The path or glob.
        pattern: PathBuf,
    },
}

/// What to do about a missing file.
fn advice(pattern: &Path) -> String {
    let fetch = "`trimtab trace fetch` lists the public sets that it can bring";
    if shared_part(pattern).is_some() {
        format!(
            "this scenario uses the shared trace collection, a folder `shared` next to the project; \
             set TRIMTAB_SHARED to where it is, or name other traces with --traces ({fetch})"
        )
    } else {
        format!("check the path; {fetch}")
    }
}

/// What follows `shared` in a path that leaves the project for it, as `../../shared/traces/x.gz`.
fn shared_part(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components().skip_while(|c| *c != Component::Normal("shared".as_ref()));
    parts.next()?;
    path.components().any(|c| c == Component::ParentDir).then(|| parts.collect())
}

/// `path` as seen from the working directory when it is relative to `base`.
pub(super) fn rebased(base: &Path, path: &Path) -> PathBuf {
    if let (Some(rest), Some(shared)) = (shared_part(path), std::env::var_os("TRIMTAB_SHARED")) {
        return PathBuf::from(shared).join(rest);
    }
    base.join(path)
}

impl TraceSource {
    /// A path that is relative to `base` becomes one that is relative to the working directory.
    pub fn rebase(&mut self, base: &Path) {
        if let Self::Files(pattern) = self {
            *pattern = rebased(base, pattern);
        }
    }
}

impl FromStr for TraceSource {
    type Err = TraceSourceError;

    /// Parses a path, a glob, or `constant:`, `step:`, `cellular:`, `wifi:` with their settings.
    fn from_str(text: &str) -> Result<Self, TraceSourceError> {
        let fail = |problem: String| TraceSourceError::Text { text: text.to_owned(), problem };
        let Some((kind, rest)) = text.split_once(':') else {
            return match text {
                "demo" => Ok(Self::Demo(None)),
                "cellular" => generated(GeneratedKind::Cellular, "").map_err(fail),
                "wifi" => generated(GeneratedKind::Wifi, "").map_err(fail),
                "" => Err(fail("it is empty".to_owned())),
                _ => Ok(Self::Files(text.into())),
            };
        };
        match kind {
            "demo" => demo(rest).map_err(fail),
            "constant" => rate(rest).map(Self::Constant).map_err(fail),
            "step" => steps(rest).map_err(fail),
            "cellular" => generated(GeneratedKind::Cellular, rest).map_err(fail),
            "wifi" => generated(GeneratedKind::Wifi, rest).map_err(fail),
            _ => Ok(Self::Files(text.into())),
        }
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|e| format!("{text:?}: {e}"))?;
    if rate.is_zero() { Err("the rate is zero".to_owned()) } else { Ok(rate) }
}

fn steps(text: &str) -> Result<TraceSource, String> {
    let example = "write step:RATE,RATE,…@TIME, e.g. step:12Mbit/s,48Mbit/s@20s";
    let steps: Vec<(Duration, Rate)> = super::steps::read(text, example)?;
    // A trace ends with its last packet, as in Mahimahi's format: what follows it would be lost.
    if steps.last().is_some_and(|(_, rate)| rate.is_zero()) {
        return Err(
            "the last rate is zero, and a trace ends with its last packet: let the outage \
                    come first or in the middle"
                .to_owned(),
        );
    }
    Ok(TraceSource::Steps(steps))
}

fn demo(name: &str) -> Result<TraceSource, String> {
    let names = demo_names();
    if names.contains(&name) {
        Ok(TraceSource::Demo(Some(name.to_owned())))
    } else {
        Err(format!("no demo trace {name:?}; there are {}", names.join(", ")))
    }
}

/// The names of the traces that ship with the project.
fn demo_names() -> Vec<&'static str> {
    trimtab_net::generate::demo_set().into_iter().map(|(name, _)| name).collect()
}

fn generated(kind: GeneratedKind, text: &str) -> Result<TraceSource, String> {
    let (mut seed, mut length) = (0, GENERATED_LENGTH);
    for setting in text.split(',').filter(|s| !s.is_empty()) {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("{setting:?} is no setting: write NAME=VALUE"))?;
        let wrong = |e: &dyn fmt::Display| format!("{name} = {value:?}: {e}");
        match name {
            "seed" => seed = value.parse().map_err(|_| wrong(&"a seed is a whole number"))?,
            "length" => length = value.parse().map_err(|e| wrong(&e))?,
            _ => return Err(format!("no setting {name:?}; there are seed and length")),
        }
    }
    if length < Duration::from_secs(1) {
        return Err("a generated link is at least 1s long".to_owned());
    }
    Ok(TraceSource::Generated { kind, seed, length })
}

impl fmt::Display for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(pattern) => pattern.display().fmt(f),
            Self::Constant(rate) => write!(f, "constant:{rate}"),
            Self::Steps(steps) => super::steps::write(f, steps),
            Self::Demo(None) => f.write_str("demo"),
            Self::Demo(Some(name)) => write!(f, "demo:{name}"),
            Self::Generated { kind, seed, length } => {
                write!(f, "{}:seed={seed}", kind.name())?;
                if *length != GENERATED_LENGTH {
                    write!(f, ",length={length}")?;
                }
                Ok(())
            }
        }
    }
}

/// A single trace with the name that its runs carry.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTrace {
    /// The file's name without `.gz` and `.trace`, with its folder where two files share the name;
    /// of other sources, the text that names them.
    pub name: String,
    /// Where it comes from: [`TraceSource::Files`] with a single file, or any other source.
    pub source: TraceSource,
}

/// Finds every file and gives every trace a name of its own. Files of a glob come in the order of
/// their names; a trace that is named twice comes once.
///
/// # Errors
/// A path or glob matches nothing.
pub fn named(sources: &[TraceSource]) -> Result<Vec<NamedTrace>, TraceSourceError> {
    let mut traces: Vec<NamedTrace> = Vec::new();
    for source in sources {
        match source {
            TraceSource::Files(pattern) => {
                for file in files(pattern)? {
                    let name = trimtab_net::recording_name(&file);
                    traces.push(NamedTrace { name, source: TraceSource::Files(file) });
                }
            }
            TraceSource::Demo(wanted) => {
                let wanted = |n: &&str| wanted.as_ref().is_none_or(|w| w == n);
                traces.extend(demo_names().into_iter().filter(wanted).map(|name| NamedTrace {
                    name: name.to_owned(),
                    source: TraceSource::Demo(Some(name.to_owned())),
                }));
            }
            other => traces.push(NamedTrace { name: other.to_string(), source: other.clone() }),
        }
    }
    // The same file named twice is one trace; two files of the same name get their folder's too.
    let mut distinct: Vec<NamedTrace> = Vec::new();
    for trace in traces {
        if distinct.iter().any(|t| t.source == trace.source) {
            continue;
        }
        distinct.push(trace);
    }
    let names: Vec<String> = distinct.iter().map(|t| t.name.clone()).collect();
    for trace in &mut distinct {
        if let TraceSource::Files(file) = &trace.source
            && names.iter().filter(|n| **n == trace.name).count() > 1
        {
            let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
            trace.name = format!("{}/{}", folder.to_string_lossy(), trace.name);
        }
    }
    Ok(distinct)
}

/// The files that a path or glob names; at least one.
fn files(pattern: &Path) -> Result<Vec<PathBuf>, TraceSourceError> {
    if pattern.is_file() {
        return Ok(vec![pattern.to_owned()]);
    }
    let missing = || TraceSourceError::Missing { pattern: pattern.to_owned() };
    let text = pattern.to_string_lossy();
    let matches = glob::glob(&text).map_err(|e| TraceSourceError::Text {
        text: text.to_string(),
        problem: format!("the pattern is wrong: {e}"),
    })?;
    let mut files: Vec<PathBuf> = matches.filter_map(Result::ok).filter(|p| p.is_file()).collect();
    files.sort();
    if files.is_empty() { Err(missing()) } else { Ok(files) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_parse_and_print_alike() {
        for text in [
            "a/b/*.trace.gz",
            "constant:12Mbit/s",
            "step:12Mbit/s,48Mbit/s@20s",
            "step:24Mbit/s@10s,0bit/s@3s,24Mbit/s@7s",
            "cellular:seed=3",
            "wifi:seed=1,length=60s",
            "demo",
            "demo:wifi-steady",
        ] {
            assert_eq!(text.parse::<TraceSource>().unwrap().to_string(), text);
        }
        assert_eq!("cellular".parse::<TraceSource>().unwrap().to_string(), "cellular:seed=0");
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let e = |text: &str| text.parse::<TraceSource>().unwrap_err().to_string();
        assert!(e("constant:12").contains("needs a unit"), "{}", e("constant:12"));
        assert!(e("constant:0").contains("zero"));
        assert!(e("step:12Mbit/s").contains("step:12Mbit/s,48Mbit/s@20s"));
        assert!(e("step:12Mbit/s@1s,6Mbit/s").contains("step:12Mbit/s,48Mbit/s@20s"));
        assert!(e("step:12Mbit/s@1s,0bit/s@1s").contains("the last rate is zero"));
        assert!(e("cellular:speed=1").contains("there are seed and length"));
        assert!(e("wifi:length=1ms").contains("at least 1s"));
        assert!(e("demo:x").contains("cellular-walking"));
    }

    #[test]
    fn files_are_found_and_named_apart() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["bus/a.trace.gz", "bus/b.trace", "walk/a.trace.gz"] {
            std::fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(file), "1\n").unwrap();
        }
        let all = TraceSource::Files(dir.path().join("*/*.trace*"));
        let one = TraceSource::Files(dir.path().join("bus/b.trace"));
        let traces = named(&[all, one, "constant:1Mbit/s".parse().unwrap()]).unwrap();
        let names: Vec<&str> = traces.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["bus/a", "b", "walk/a", "constant:1Mbit/s"]);
        let e = named(&[TraceSource::Files(dir.path().join("*.gz"))]).unwrap_err().to_string();
        assert!(e.contains("no trace file matches") && e.contains("trace fetch"), "{e}");
    }

    #[test]
    fn the_shared_collection_is_explained() {
        let e = TraceSourceError::Missing { pattern: "scenarios/../../shared/traces/*.gz".into() };
        assert!(e.to_string().contains("TRIMTAB_SHARED"), "{e}");
    }
}
