//! A set: paths, an application and a datapath that all schemes of the board have in common.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use trimtab_steer::scheme::Scheme;
use trimtab_units::Duration;

use super::{Card, REFERENCE, SCHEMES};
use crate::run::links::hex;
use crate::scenario::{Scenario, ScenarioError};

/// Points that a quick set keeps at most.
const QUICK_POINTS: u32 = 3;
/// How long a run of a quick set lasts at most, after what its results leave out.
const QUICK_DURATION: Duration = Duration::from_secs(20);

/// The sets that ship, by their names. They need no file.
const SHIPPED: [(&str, &str); 5] = [
    ("alone", include_str!("../../scenarios/leaderboard/alone.toml")),
    ("kernel", include_str!("../../scenarios/leaderboard/kernel.toml")),
    ("shared", include_str!("../../scenarios/leaderboard/shared.toml")),
    ("short", include_str!("../../scenarios/leaderboard/short.toml")),
    ("video", include_str!("../../scenarios/leaderboard/video.toml")),
];

/// A set of paths, and who runs it.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its name: that of its file.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// What carries out its runs, as after `trimtab compare --datapath`.
    pub datapath: String,
    /// What runs, with its schemes under `cc`.
    pub scenario: Scenario,
    /// Whether submissions run it.
    pub submissions: bool,
}

/// The file of a set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default = "simulator")]
    datapath: String,
    #[serde(default)]
    schemes: Vec<String>,
    #[serde(default = "yes")]
    submissions: bool,
    /// A scenario file, in place of `scenario`.
    file: Option<PathBuf>,
    scenario: Option<Scenario>,
}

fn simulator() -> String {
    "sim".to_owned()
}

const fn yes() -> bool {
    true
}

/// Why there is no set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The folder or a file in it cannot be read.
    #[error("cannot read the sets in {}: {cause}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// The folder has no set.
    #[error("{} has no set: put a TOML file there, as in scenarios/leaderboard", .0.display())]
    None(PathBuf),
    /// No set has this name.
    #[error("no set {name:?}: there are {names}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The sets.
        names: String,
    },
    /// The file is no set; the message has line and column.
    #[error("set {name}: {}", cause.to_string().trim_end())]
    Parse {
        /// The set.
        name: String,
        /// What is wrong.
        cause: Box<toml::de::Error>,
    },
    /// Its scenario is wrong.
    #[error("set {name}: {cause}")]
    Scenario {
        /// The set.
        name: String,
        /// What is wrong.
        cause: Box<ScenarioError>,
    },
    /// It cannot be scored.
    #[error("set {name}: {why}")]
    Unfit {
        /// The set.
        name: String,
        /// Why, and what to do.
        why: String,
    },
}

/// The sets that ship.
///
/// # Errors
/// One of them is wrong, which a test rules out.
pub fn shipped() -> Result<Vec<Set>, SetError> {
    SHIPPED.iter().map(|(name, text)| Set::parse(name, text)).collect()
}

/// The sets of a folder: each TOML file in it is one, by its name. Scenario files that they name
/// count from it.
///
/// # Errors
/// The folder or a file in it cannot be read, it has none, or a file is no set.
pub fn folder(path: &Path) -> Result<Vec<Set>, SetError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |cause| SetError::Read { path, cause }
    };
    let entries = std::fs::read_dir(path).map_err(fail(path))?;
    let files: Result<Vec<PathBuf>, _> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut files = files.map_err(fail(path))?;
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    if files.is_empty() {
        return Err(SetError::None(path.to_owned()));
    }
    let read = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = std::fs::read_to_string(file).map_err(fail(file))?;
        Set::read(&name, &text, path)
    };
    files.iter().map(read).collect()
}

impl Set {
    /// A set that names no file.
    ///
    /// # Errors
    /// The text is no set, or its scenario cannot be run or scored.
    pub fn parse(name: &str, text: &str) -> Result<Self, SetError> {
        Self::read(name, text, Path::new(""))
    }

    fn read(name: &str, text: &str, folder: &Path) -> Result<Self, SetError> {
        let unfit = |why: String| SetError::Unfit { name: name.to_owned(), why };
        let wrong = |cause| SetError::Scenario { name: name.to_owned(), cause: Box::new(cause) };
        let file: File = toml::from_str(text)
            .map_err(|cause| SetError::Parse { name: name.to_owned(), cause: Box::new(cause) })?;
        let mut scenario = match (file.scenario, file.file) {
            (Some(mut scenario), None) => {
                scenario.rebase(folder);
                scenario
            }
            (None, Some(path)) => Scenario::load(&folder.join(path)).map_err(wrong)?,
            _ => {
                let why = "give either a [scenario] table or `file`, the path of a scenario file";
                return Err(unfit(why.to_owned()));
            }
        };
        let schemes: Vec<&str> = match &file.schemes[..] {
            [] => SCHEMES.to_vec(),
            schemes => schemes.iter().map(String::as_str).collect(),
        };
        let schemes: Result<Vec<Scheme>, _> = schemes.iter().map(|cc| cc.parse()).collect();
        scenario.cc = schemes.map_err(|e| unfit(e.to_string()))?;
        scenario.name = name.to_owned();
        scenario.about.clone_from(&file.about);
        scenario.validate().map_err(wrong)?;
        if !scenario.cc.iter().any(|cc| cc.label() == REFERENCE) {
            let why = format!("its schemes lack {REFERENCE}, which all are compared with: add it");
            return Err(unfit(why));
        }
        if let Some(bound) = scenario.cc.iter().find(|cc| cc.is_bound()) {
            return Err(unfit(format!("{bound} is a bound, and no sender: leave it out")));
        }
        if scenario.app.len() != 1 {
            let why = "experiences of two applications have no common scale: give one [[app]]";
            return Err(unfit(why.to_owned()));
        }
        let File { about, datapath, submissions, .. } = file;
        Ok(Self { name: name.to_owned(), about, datapath, scenario, submissions })
    }

    /// The set of this name.
    ///
    /// # Errors
    /// There is none: the error lists those there are.
    pub fn find<'a>(sets: &'a [Self], name: &str) -> Result<&'a Self, SetError> {
        sets.iter().find(|set| set.name == name).ok_or_else(|| {
            let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
            SetError::Unknown { name: name.to_owned(), names: names.join(", ") }
        })
    }

    /// The set with these submissions among its schemes, where it takes some.
    #[must_use]
    pub fn with(mut self, cards: &[Card]) -> Self {
        if self.submissions {
            self.scenario.cc.extend(cards.iter().map(|card| card.scheme.clone()));
        }
        self
    }

    /// The set with one seed, a few paths and short runs: it shows that it works, and says little.
    #[must_use]
    pub fn quick(mut self) -> Self {
        let scenario = &mut self.scenario;
        scenario.seeds = 1;
        scenario.thin = Some(scenario.thin.map_or(QUICK_POINTS, |n| n.min(QUICK_POINTS)));
        scenario.duration = scenario.duration.min(scenario.warmup + QUICK_DURATION);
        self
    }

    /// What one scheme of the set runs.
    pub fn of(&self, scheme: &Scheme) -> Scenario {
        Scenario { cc: vec![scheme.clone()], ..self.scenario.clone() }
    }

    /// The name of the file that keeps what a scheme's runs gave. It tells apart what the scheme's own
    /// files hold: a plug-in that was built again is another.
    pub fn result_file(scheme: &Scheme) -> String {
        let label = scheme.label();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = label.chars().map(plain).take(40).collect();
        let mut hash = Sha256::new();
        hash.update(label);
        for part in label.split([':', ',', '=']) {
            // An ONNX model has a second file, which says what it sees.
            for file in [PathBuf::from(part), Path::new(part).with_extension("toml")] {
                if let Ok(bytes) = std::fs::read(&file) {
                    hash.update(&bytes);
                }
            }
        }
        format!("{name}-{}.json", &hex(&hash.finalize())[..12])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a set needs below its `about`.
    pub(crate) const SMALL: &str = "schemes = [\"cubic\", \"bbr\", \"vegas\"]\n[scenario]\n\
        traces = [\"constant:12Mbit/s\"]\n[[scenario.app]]\nkind = \"download\"\n";

    fn error(text: &str) -> String {
        Set::parse("x", text).unwrap_err().to_string()
    }

    #[test]
    fn the_sets_that_ship_need_no_file_and_have_all_schemes() {
        let sets = shipped().unwrap();
        for set in &sets {
            let plan = set.scenario.plan().unwrap();
            assert!(plan.scenario.path.len() >= 4, "{}", set.name);
            let of_kernel = set.datapath == "kernel";
            assert_eq!(of_kernel, !set.submissions, "{}", set.name);
            assert!(of_kernel || set.scenario.cc.len() == SCHEMES.len(), "{}", set.name);
            let quick = set.clone().quick().scenario.plan().unwrap();
            assert_eq!(quick.jobs.len(), 3 * set.scenario.cc.len(), "{}", set.name);
        }
        assert_eq!(Set::find(&sets, "short").unwrap().name, "short");
        let e = Set::find(&sets, "long").unwrap_err().to_string();
        assert_eq!(e, "no set \"long\": there are alone, kernel, shared, short, video");
    }

    #[test]
    fn what_cannot_be_scored_is_refused_with_what_to_do() {
        let about = format!("about = \"x\"\n{SMALL}");
        Set::parse("x", &about).unwrap();
        for (text, expected) in [
            ("about = \"x\"", "give either a [scenario] table or `file`"),
            (&about.replace("about", "abuot"), "unknown field `abuot`"),
            (&about.replace("\"cubic\", ", ""), "its schemes lack cubic"),
            (&about.replace("vegas", "omniscient"), "omniscient is a bound, and no sender"),
            (&about.replace("vegas", "vegsa"), "did you mean vegas?"),
            (&format!("{about}[[scenario.app]]\nkind = \"vod\"\n"), "give one [[app]]"),
            (&about.replace("12Mbit/s", "12"), "constant:12"),
        ] {
            let e = error(text);
            assert!(e.starts_with("set x: ") && e.contains(expected), "{text}: {e}");
        }
    }

    #[test]
    fn a_folder_of_sets_may_name_scenario_files() {
        let dir = tempfile::tempdir().unwrap();
        let e = folder(dir.path()).unwrap_err().to_string();
        assert!(e.contains("has no set: put a TOML file there"), "{e}");
        let scenario = "cc = [\"bbr\"]\ntraces = [\"constant:12Mbit/s\"]\n\
            [[app]]\nkind = \"download\"\n";
        let own = dir.path().join("scenarios");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("mine.toml"), scenario).unwrap();
        let set = "about = \"mine\"\nfile = \"scenarios/mine.toml\"\n";
        std::fs::write(dir.path().join("held.toml"), set).unwrap();
        let sets = folder(dir.path()).unwrap();
        assert_eq!((sets.len(), sets[0].name.as_str()), (1, "held"));
        assert_eq!(sets[0].scenario.cc.len(), SCHEMES.len(), "the board's, not the file's");
        let e = folder(&dir.path().join("none")).unwrap_err().to_string();
        assert!(e.starts_with("cannot read the sets in "), "{e}");
    }

    /// A plug-in that changed is another, and runs again.
    #[test]
    fn results_are_kept_by_what_the_schemes_files_hold() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.py");
        std::fs::write(&file, "class A: pass\n").unwrap();
        let scheme: Scheme = format!("python:{}:A", file.display()).parse().unwrap();
        let first = Set::result_file(&scheme);
        assert_eq!(first, Set::result_file(&scheme));
        std::fs::write(&file, "class A: 1\n").unwrap();
        assert_ne!(first, Set::result_file(&scheme));
        let copa: Scheme = "copa:mit".parse().unwrap();
        assert!(Set::result_file(&copa).starts_with("copa-mit-"));
    }
}
