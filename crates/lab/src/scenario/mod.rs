//! Scenarios: everything that a comparison is made of, as a TOML file or as command line flags.
//!
//! Both give the same [`Scenario`], and `--print-scenario` writes the one that flags amount to.
//! `docs/reference/scenario.md` describes every key.
//!
//! ```
//! use trimtab_lab::scenario::Scenario;
//!
//! let scenario = Scenario::parse(
//!     r#"
//!     cc = ["newreno"]
//!     traces = ["constant:12Mbit/s"]
//!     rtt = ["20ms", "60ms"]
//!     buffer = "1BDP"
//!     [[app]]
//!     kind = "download"
//!     "#,
//! )
//! .unwrap();
//! assert_eq!(scenario.cells().len(), 2);
//! let typo = Scenario::parse("cc = [\"newreno\"]\nbufer = \"1BDP\"").unwrap_err().to_string();
//! assert!(typo.contains("line 2") && typo.contains("bufer"));
//! ```

mod app;
mod delay;
mod design;
mod given;
mod grid;
mod path;
pub(crate) mod quantity;
mod rivals;
mod source;
mod split;
mod steps;
mod transport;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
pub use trimtab_net::Part;
use trimtab_units::{Duration, Rate};

pub use app::{AppKind, AppSettings};
pub use delay::{Delay, DelayError};
pub use design::{Design, Range};
pub use given::Given;
pub use grid::{Cell, Job, Plan};
pub use path::PathSettings;
pub use quantity::{Buffer, Mark, Probability, QuantityError};
pub use rivals::{Rivals, Turn};
pub use source::{GeneratedKind, NamedTrace, TraceSource, TraceSourceError, named};
pub use transport::TransportKind;

use crate::run::links::LinkError;
use trimtab_steer::scheme::Scheme;

/// A comparison: who, doing what, over which links.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; heads the report.
    #[serde(default)]
    pub name: String,
    /// What it shows, in a sentence or two; stands below the name in the report.
    #[serde(default)]
    pub about: String,
    /// The schemes.
    #[serde(default)]
    pub cc: Vec<Scheme>,
    /// What carries the data of every flow.
    #[serde(default)]
    pub transport: TransportKind,
    /// The bottleneck's capacity over time: files, globs, generated links. Each one is an axis value
    /// of the grid.
    #[serde(with = "quantity::many", default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceSource>,
    /// Of the recordings that `traces` names, only those of this part of `traces/split.toml`.
    /// Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Part>,
    /// Base round-trip times, each constant or in steps.
    #[serde(with = "quantity::many", default = "default_rtt")]
    pub rtt: Vec<Delay>,
    /// Sizes of the bottleneck's droptail buffer.
    #[serde(with = "quantity::many", default = "default_buffer")]
    pub buffer: Vec<Buffer>,
    /// Probabilities of independent random loss, before the bottleneck.
    #[serde(with = "quantity::many", default = "default_loss")]
    pub loss: Vec<Probability>,
    /// Most that each data packet is late beyond the round-trip time; anything from none to this, alike.
    #[serde(with = "quantity::many", default = "default_jitter", skip_serializing_if = "is_calm")]
    pub jitter: Vec<Duration>,
    /// Which packets the bottleneck marks (ECN, RFC 3168); absent: none. One value, not an axis of the grid.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// Numbers of flows of the scheme that share the link.
    #[serde(deserialize_with = "quantity::counts::deserialize", default = "default_flows")]
    pub flows: Vec<u32>,
    /// How long after the flow before it each flow of the scheme starts.
    #[serde(with = "quantity::one", default)]
    pub stagger: Duration,
    /// How long each run lasts.
    #[serde(with = "quantity::one", default = "default_duration")]
    pub duration: Duration,
    /// Start of the run that the results leave out.
    #[serde(with = "quantity::one", default)]
    pub warmup: Duration,
    /// How many seeds each cell is run with: 0, 1, 2 …
    #[serde(default = "default_seeds")]
    pub seeds: u32,
    /// The first of them. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_seed: u64,
    /// Leave out the points of the grid where the trace's mean rate divided by the number of flows is
    /// below this.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub share_min: Option<Rate>,
    /// Take so many points of the grid of traces and cells, spread evenly, instead of all; of those
    /// that `share_min` leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thin: Option<u32>,
    /// Points drawn evenly from ranges of round-trip times, buffers, losses and jitter, in place of
    /// these four axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
    /// The applications; every cell is run with each.
    #[serde(default)]
    pub app: Vec<AppSettings>,
    /// Flows that compete with the scheme's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub competitor: Vec<Competitor>,
    /// Sets of competitors, in place of one: an axis of the grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Rivals>,
    /// Paths of their own, in place of the grid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathSettings>,
}

/// Flows with a congestion control of their own that share the link with the scheme.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Competitor {
    /// Their congestion control.
    pub cc: Scheme,
    /// How many.
    #[serde(default = "one_flow")]
    pub flows: u32,
    /// When they start.
    #[serde(with = "quantity::one", default)]
    pub start: Duration,
    /// When they stop asking for data. Default: with the run.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// They come and go: how long they ask for data, on a connection of its own each time.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Duration>,
    /// How long they stay away in between.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Duration>,
    /// What they do.
    #[serde(default = "AppKind::bulk")]
    pub app: AppKind,
    /// The QoE model that steers them, a name or a formula. Default: that of the application which
    /// they compete with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qoe: Option<String>,
}

fn default_rtt() -> Vec<Delay> {
    vec![Duration::from_millis(20).into()]
}
fn default_buffer() -> Vec<Buffer> {
    vec![Buffer::Bytes(trimtab_units::Bytes::new(150_000))]
}
fn default_loss() -> Vec<Probability> {
    vec![Probability::default()]
}
fn default_jitter() -> Vec<Duration> {
    vec![Duration::ZERO]
}
fn is_calm(jitter: &[Duration]) -> bool {
    jitter == [Duration::ZERO]
}
fn default_flows() -> Vec<u32> {
    vec![1]
}
fn default_duration() -> Duration {
    Duration::from_secs(120)
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(value: &u64) -> bool {
    *value == 0
}
const fn default_seeds() -> u32 {
    1
}
const fn one_flow() -> u32 {
    1
}

/// Why there is no scenario to run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The text is no scenario; the message has line and column.
    #[error("{}{}", path.as_ref().map_or(String::new(), |p| format!("{}: ", p.display())), .cause.to_string().trim_end())]
    Parse {
        /// The file, unless the text came from elsewhere.
        path: Option<PathBuf>,
        /// What is wrong, and where.
        cause: Box<toml::de::Error>,
    },
    /// The values do not make sense together.
    #[error("{0}")]
    Invalid(String),
    /// A trace cannot be found.
    #[error(transparent)]
    Trace(#[from] TraceSourceError),
    /// A trace cannot be read.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// The most runs that one comparison may amount to; more is a mistake in the grid.
const RUNS_MAX: usize = 1_000_000;

impl Default for Scenario {
    /// The defaults of every key: no schemes, no traces, no applications yet.
    fn default() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            cc: Vec::new(),
            transport: TransportKind::default(),
            traces: Vec::new(),
            split: None,
            rtt: default_rtt(),
            buffer: default_buffer(),
            loss: default_loss(),
            jitter: default_jitter(),
            mark: None,
            flows: default_flows(),
            stagger: Duration::ZERO,
            duration: default_duration(),
            warmup: Duration::ZERO,
            seeds: default_seeds(),
            first_seed: 0,
            share_min: None,
            thin: None,
            design: None,
            app: Vec::new(),
            competitor: Vec::new(),
            rivals: Vec::new(),
            path: Vec::new(),
        }
    }
}

impl Scenario {
    /// The demo: `scenarios/demo.toml`, which needs no file.
    pub fn demo() -> Self {
        // It is compiled in and parsed by a test.
        Self::parse(include_str!("../../scenarios/demo.toml")).unwrap_or_default()
    }

    /// Parses a scenario; paths in it are relative to the working directory.
    ///
    /// # Errors
    /// It is no TOML, has a key that is not known, or a value that is none: with line and column.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text)
            .map_err(|cause| ScenarioError::Parse { path: None, cause: Box::new(cause) })
    }

    /// Reads a scenario file; paths in it are relative to the file, and come out relative to the
    /// working directory.
    ///
    /// # Errors
    /// As [`Scenario::parse`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ScenarioError::Read { path: path.to_owned(), cause })?;
        let mut scenario: Self = toml::from_str(&text).map_err(|cause| ScenarioError::Parse {
            path: Some(path.to_owned()),
            cause: Box::new(cause),
        })?;
        scenario.rebase(path.parent().unwrap_or(Path::new("")));
        if scenario.name.is_empty() {
            scenario.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(scenario)
    }

    /// Makes paths that are relative to `base` relative to where `base` is.
    pub(crate) fn rebase(&mut self, base: &Path) {
        let of_paths = self.path.iter_mut().map(|path| &mut path.trace);
        for source in self.traces.iter_mut().chain(of_paths) {
            source.rebase(base);
        }
        for app in &mut self.app {
            app.rebase(base);
        }
    }

    /// Every scheme that takes part: those that are compared, then those of competitors.
    pub fn schemes(&self) -> impl Iterator<Item = &Scheme> {
        self.cc.iter().chain(self.competitors().map(|competitor| &competitor.cc))
    }

    /// The same, to be changed.
    pub(crate) fn schemes_mut(&mut self) -> impl Iterator<Item = &mut Scheme> {
        let of_rivals = self.rivals.iter_mut().flat_map(|set| &mut set.competitor);
        let of_paths = self.path.iter_mut().flat_map(|path| &mut path.competitor);
        let competitors = self.competitor.iter_mut().chain(of_rivals).chain(of_paths);
        self.cc.iter_mut().chain(competitors.map(|competitor| &mut competitor.cc))
    }

    /// Every competitor: those of all runs, of sets of rivals, and of paths.
    pub fn competitors(&self) -> impl Iterator<Item = &Competitor> {
        let of_rivals = self.rivals.iter().flat_map(|set| &set.competitor);
        let of_paths = self.path.iter().flat_map(|path| &path.competitor);
        self.competitor.iter().chain(of_rivals).chain(of_paths)
    }

    /// The scenario as TOML, every default written out.
    pub fn to_toml(&self) -> String {
        // Every value of a scenario is text, a number or a list of them: this cannot fail.
        toml::to_string(self).unwrap_or_default()
    }

    /// Checks that the values make sense together.
    ///
    /// # Errors
    /// The first thing that does not, and what to do about it.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let fail = |message: String| Err(ScenarioError::Invalid(message));
        if self.cc.is_empty() {
            return fail(
                "no scheme: name at least one with --cc, or under `cc` in the scenario".into(),
            );
        }
        if let Some(twice) = twice(self.cc.iter().map(Scheme::label)) {
            return fail(format!("{twice} is named twice as a scheme: name each once"));
        }
        if !self.path.is_empty() {
            path::validate(self)?;
        } else if self.traces.is_empty() {
            return fail("no trace: give --traces, or `traces` in the scenario".into());
        }
        if self.app.is_empty() {
            return fail("no application: give --app, or an [[app]] table in the scenario".into());
        }
        for app in &self.app {
            app.validate()?;
        }
        if let Some(twice) = twice(self.app.iter().map(AppSettings::label)) {
            return fail(format!("two applications are called {twice}: give one a `name`"));
        }
        if self.duration.is_zero() || self.warmup >= self.duration {
            let (d, w) = (self.duration, self.warmup);
            return fail(format!("a run of {d} with a warmup of {w} leaves nothing to measure"));
        }
        if self.seeds == 0
            || self.flows.is_empty()
            || self.flows.contains(&0)
            || self.thin == Some(0)
        {
            return fail("seeds, flows and thin are at least 1".into());
        }
        rivals::validate(self)?;
        design::validate(self)?;
        let last = self.first_seed.checked_add(u64::from(self.seeds - 1));
        if last.is_none_or(|last| i64::try_from(last).is_err()) {
            let most = i64::MAX;
            return fail(format!("the last seed is above {most}: lower `first_seed`"));
        }
        let (traces, cells) = match &self.design {
            Some(design) => (1, design.points as usize * self.cells().len()),
            None => (self.traces.len().max(self.path.len()), self.cells().len()),
        };
        let axes = [traces, cells, self.app.len(), self.cc.len(), self.seeds as usize];
        if self.thin.is_none()
            && axes.iter().try_fold(1_usize, |n, a| n.checked_mul(*a)).is_none_or(|n| n > RUNS_MAX)
        {
            return fail(format!(
                "the grid has more than {RUNS_MAX} runs: shorten an axis, or set `thin`"
            ));
        }
        Ok(())
    }
}

/// The first value that occurs more than once.
fn twice<'a>(values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    values.into_iter().find(|v| !seen.insert(*v))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "cc = [\"newreno\"]\ntraces = [\"constant:12Mbit/s\"]\n[[app]]\nkind = \"vod\"\n";

    fn error(text: &str) -> String {
        Scenario::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_the_papers_setting() {
        let s = Scenario::parse(SMALL).unwrap();
        s.validate().unwrap();
        assert_eq!(s.rtt, [Duration::from_millis(20).into()]);
        assert_eq!(s.buffer[0].to_string(), "150KB");
        assert_eq!(s.seeds, 1);
    }

    #[test]
    fn printed_scenario_reads_back() {
        let text = format!(
            "rtt = [\"20ms\", \"60ms\"]\nloss = \"0.5%\"\njitter = [\"0ms\", \"5ms\"]\n\
             mark = \"0.5BDP\"\nbuffer=[\"30KB\",\"2BDP\"]\nshare_min = \"1.5 Mbit/s\"\nthin = 3\n\
             {SMALL}abr = \"bola\"\n[[competitor]]\ncc = \"newreno\"\nstart = \"5s\"\n"
        );
        let printed = Scenario::parse(&text).unwrap().to_toml();
        let again = Scenario::parse(&printed).unwrap_or_else(|e| panic!("{printed}\n{e}"));
        assert_eq!(again.to_toml(), printed);
        assert_eq!(again.share_min, Some(Rate::from_mbps(1.5)));
        assert_eq!(again.loss[0].get(), 0.005);
        assert_eq!(again.jitter[1], Duration::from_millis(5));
        assert_eq!(again.mark, Some(Mark::Above(Buffer::Bdp(0.5))));
        assert_eq!(again.competitor[0].start, Duration::from_secs(5));
    }

    #[test]
    fn an_incomplete_scenario_prints_what_reads_back() {
        let printed = Scenario::parse("seeds = 2").unwrap().to_toml();
        assert_eq!(Scenario::parse(&printed).unwrap().to_toml(), printed);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, place, advice) in [
            (
                "cc = [\"newreno\"]\n\nbufer = \"1KB\"\n",
                "line 3, column 1",
                "unknown field `bufer`",
            ),
            ("rtt = 20\n", "line 1, column 7", "\"20ms\""),
            ("rtt = \"20\"\n", "needs a unit", "ms"),
            ("mark = 0.1\n", "line 1, column 8", "\"10%\""),
            ("mark = \"110%\"\n", "line 1, column 8", "at most 100%"),
            ("share_min = 1\n", "line 1, column 13", "\"1Mbit/s\""),
            ("cc = [\"newreno\", \"kubic\"]\n", "line 1", "\"kubic\": unknown congestion control"),
            ("[[app]]\nkind = \"downlod\"\n", "line 2", "download"),
            ("seeds = \n", "line 1", "seeds = "),
        ] {
            let e = error(text);
            assert!(e.contains(place) && e.contains(advice), "{text}: {e}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let invalid = |extra: &str| {
            Scenario::parse(&format!("{extra}\n{SMALL}"))
                .unwrap()
                .validate()
                .unwrap_err()
                .to_string()
        };
        assert!(invalid("warmup = \"120s\"").contains("nothing to measure"));
        assert!(invalid("seeds = 0").contains("at least 1"));
        assert!(invalid("seeds = 4000000000").contains("more than 1000000 runs"));
        let e = Scenario::parse("cc = [\"newreno\"]").unwrap().validate().unwrap_err().to_string();
        assert!(e.contains("--traces"), "{e}");
    }

    #[test]
    fn every_scenario_that_ships_is_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let pattern = folder.join("**/*.toml");
        let mut seen = 0;
        for file in glob::glob(&pattern.to_string_lossy()).unwrap().map(Result::unwrap) {
            // Those of fleets, the papers' figures and the leaderboard's sets have a form and tests
            // of their own.
            let folder = file.parent().unwrap();
            let other = folder.ends_with("fleet")
                || folder.ends_with("papers")
                || folder.ends_with("leaderboard")
                || file.ends_with("kernel/fleet.toml");
            if !other {
                let s = Scenario::load(&file).unwrap_or_else(|e| panic!("{e}"));
                s.validate().unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                assert!(!s.about.is_empty(), "{}: say what it shows", file.display());
                seen += 1;
            }
        }
        assert!(seen >= 10, "{seen} scenarios");
        let demo = Scenario::demo();
        assert_eq!(demo.plan().unwrap().traces.len(), 10, "the demo needs no file");
    }

    #[test]
    fn a_missing_file_is_named() {
        let e = Scenario::load(Path::new("no/such/file.toml")).unwrap_err().to_string();
        assert!(e.contains("no/such/file.toml"), "{e}");
    }

    /// The first scheme, trace and application, with these lines before them.
    fn refused(lines: &str) -> String {
        let scenario = Scenario::parse(&format!("{lines}\n{SMALL}")).unwrap();
        scenario.validate().unwrap_err().to_string()
    }

    #[test]
    fn every_refusal_names_the_key_and_the_way_out() {
        let bare = |text: &str| Scenario::parse(text).unwrap().validate().unwrap_err().to_string();
        let app = "[[app]]\nkind = \"vod\"\n";
        for (e, words) in [
            (bare(""), "no scheme: name at least one with --cc, or under `cc`"),
            (bare("cc = [\"cubic\"]"), "no trace: give --traces, or `traces`"),
            (
                bare("cc = [\"cubic\"]\ntraces = \"demo\""),
                "no application: give --app, or an [[app]]",
            ),
            (
                bare("cc = [\"cubic\", \"cubic\"]"),
                "cubic is named twice as a scheme: name each once",
            ),
            (refused("duration = \"0s\""), "a run of 0s with a warmup of 0s leaves nothing"),
            (refused("duration = \"5s\"\nwarmup = \"6s\""), "a run of 5s with a warmup of 6s"),
            (refused("flows = [1, 0]"), "seeds, flows and thin are at least 1"),
            (refused("flows = []"), "seeds, flows and thin are at least 1"),
            (refused("thin = 0"), "seeds, flows and thin are at least 1"),
        ] {
            assert!(e.contains(words), "{words}: {e}");
            assert!(!e.contains('\n'), "on one line: {e}");
        }
        let after = |lines: &str| {
            let text = format!("{SMALL}{lines}");
            Scenario::parse(&text).unwrap().validate().unwrap_err().to_string()
        };
        assert!(after(app).contains("two applications are called vod: give one a `name`"));
        let e = after("[[competitor]]\ncc = \"oracle:copa\"\n");
        assert!(e.contains("oracle:copa sees what no sender sees, so it cannot compete"), "{e}");
        let e = after("qoe = \"T * a\"\nfactors = { a = inf }\n");
        assert!(e.contains("factor a is not a finite number"), "{e}");
    }

    /// TOML and Parquet, in which seeds are kept, have 64-bit integers with a sign.
    #[test]
    fn seeds_that_no_record_can_hold_are_refused() {
        let last = |first_seed: u64, seeds: u32| {
            let scenario = Scenario { first_seed, seeds, ..Scenario::parse(SMALL).unwrap() };
            scenario.validate().map(|()| scenario)
        };
        let most = i64::MAX as u64;
        let kept = last(most - 3, 4).unwrap();
        assert_eq!(Scenario::parse(&kept.to_toml()).unwrap().first_seed, most - 3);
        assert_eq!(kept.plan().unwrap().jobs.last().unwrap().seed, most);
        for (first_seed, seeds) in [(most - 3, 5), (u64::MAX, 1), (u64::MAX, 2)] {
            let e = last(first_seed, seeds).unwrap_err().to_string();
            assert!(e.contains("lower `first_seed`"), "{e}");
        }
    }

    #[test]
    fn mistakes_in_tables_have_their_line() {
        for (lines, place, words) in [
            ("[[app]]\nname = \"x\"\n", "line 5", "missing field `kind`"),
            ("[[competitor]]\nflows = 2\n", "line 5", "missing field `cc`"),
            ("[[competitor]]\ncc = \"bbr\"\nflow = 2\n", "line 7", "unknown field `flow`"),
            ("[[competitor]]\ncc = \"bbr\"\nstart = 5\n", "line 7", "such as \"20ms\""),
            ("[[path]]\nname = \"a\"\nrtt = \"1ms\"\n", "line 5", "missing field `trace`"),
            ("[[path]]\ntrace = \"constant:0\"\n", "line 6", "the rate is zero"),
        ] {
            let e = error(&format!("{SMALL}{lines}"));
            assert!(e.contains(place) && e.contains(words), "{lines}: {e}");
        }
        let e = error(&format!("transport = \"udp\"\n{SMALL}"));
        assert!(e.contains("line 1, column 13") && e.contains("`quic`, `noq`, `tcp`"), "{e}");
    }

    /// What the record of a comparison says is what was run.
    #[test]
    fn a_printed_scenario_has_the_same_grid() {
        let text = "cc = [\"cubic\", \"bbr\", \"omniscient\"]\nrtt = [\"7ms\", \"1.5s\"]\n\
            buffer = [\"3packets\", \"0.3BDP\", \"77777B\"]\nloss = [\"0%\", \"0.037%\"]\n\
            jitter = [\"0ms\", \"333us\"]\nflows = [1, 3]\nthin = 17\nseeds = 2\nfirst_seed = 40\n\
            stagger = \"1.25s\"\nwarmup = \"10ms\"\nduration = \"61s\"\nshare_min = \"77kbit/s\"\n\
            traces = [\"constant:1234567bit/s\", \"step:3Mbit/s@2s,1Mbit/s@3ms\", \"wifi\"]\n\
            transport = \"tcp\"\nmark = \"12.5%\"\n\
            [[app]]\nkind = \"download\"\nqoe = \"T - p * D\"\nfactors = { p = 0.1 }\n\
            [[competitor]]\ncc = \"bbr\"\nflows = 2\nstart = \"3.5s\"\n";
        let scenario = Scenario::parse(text).unwrap();
        let again = Scenario::parse(&scenario.to_toml()).unwrap();
        let (plan, same) = (scenario.plan().unwrap(), again.plan().unwrap());
        assert_eq!(plan.jobs.len(), 17 * 2 * 3);
        assert_eq!(plan.jobs, same.jobs);
        assert_eq!(plan.traces, same.traces);
        assert_eq!(again.to_toml(), scenario.to_toml());
        let times = |s: &Scenario| (s.stagger, s.warmup, s.duration, s.share_min, s.mark);
        assert_eq!(times(&again), times(&scenario));
        assert_eq!(again.app[0].factors, scenario.app[0].factors);
    }
}
