//! What a fleet on the kernel is made of, as a TOML file.

use std::path::Path;

use serde::Deserialize;
use trimtab_fleet::Service;
use trimtab_lab::fleet::error::{FleetScenarioError, read, value};
use trimtab_lab::run::links;
use trimtab_lab::scenario::{Buffer, Cell, Probability, TraceSource};
use trimtab_net::Capacity;
use trimtab_units::{Bytes, Duration};

/// The kernel's own algorithms that may be compared with.
const RIVALS: [&str; 5] = ["cubic", "bbr", "reno", "vegas", "westwood"];
/// Edges are processes and namespaces of one machine.
const EDGES_MAX: usize = 16;

/// A fleet on the kernel. `docs/reference/fleet-on-the-kernel.md` describes every key of its file.
#[derive(Clone, Debug)]
pub struct KernelFleet {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// How long the fleet learns.
    pub learn: Duration,
    /// How long each arm has the links in a round of the comparison: a multiple of the service's interval.
    pub block: Duration,
    /// Rounds of the comparison; each arm has one block in each. None: no comparison.
    pub rounds: u32,
    /// The engine's grace: how long after an interval edges may report it.
    pub grace: Duration,
    /// Algorithms of the kernel's own that take part in the comparison.
    pub compare_with: Vec<String>,
    /// What clients do.
    pub clients: Clients,
    /// The service.
    pub service: Service,
    /// The service as the engine reads it.
    pub(super) service_text: String,
    /// The reward, as it is written.
    pub reward: String,
    /// The edges.
    pub edges: Vec<EdgePlan>,
}

/// What the clients of an edge do: each downloads one file after another, each on a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// How many.
    pub count: u32,
    /// Sizes of files, log-uniform between these.
    pub size: (Bytes, Bytes),
    /// Mean pause between two downloads of a client; half of it to one and a half times as long.
    pub pause: Duration,
}

/// An edge: the link to its clients.
#[derive(Clone, Debug)]
pub struct EdgePlan {
    /// Its name.
    pub name: String,
    /// The capacity's source.
    pub source: TraceSource,
    /// The capacity.
    pub capacity: Capacity,
    /// Round-trip time, buffer and loss.
    pub cell: Cell,
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    name: String,
    #[serde(default)]
    about: String,
    learn: String,
    block: String,
    rounds: u32,
    grace: String,
    #[serde(default)]
    #[serde(alias = "beside")]
    compare_with: Vec<String>,
    clients: RawClients,
    service: toml::Table,
    edge: Vec<RawEdge>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClients {
    count: u32,
    size: [String; 2],
    pause: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEdge {
    name: String,
    link: String,
    rtt: String,
    buffer: String,
    #[serde(default = "none")]
    loss: String,
}

fn none() -> String {
    "0%".to_owned()
}

impl KernelFleet {
    /// Parses a scenario; paths of traces in it are relative to `folder`.
    ///
    /// # Errors
    /// Says what is wrong with it, and what would be right.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, FleetScenarioError> {
        let raw: Raw = toml::from_str(text)?;
        raw.checked(folder)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// As [`KernelFleet::parse`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, FleetScenarioError> {
        let mut fleet = Self::parse(&read(path)?, path.parent().unwrap_or(Path::new("")))?;
        if fleet.name.is_empty() {
            fleet.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(fleet)
    }

    /// The same fleet with other times, each checked as in a file: how long it learns, and how many rounds compare.
    ///
    /// # Errors
    /// One is out of its range.
    pub fn with(
        mut self,
        learn: Option<Duration>,
        rounds: Option<u32>,
    ) -> Result<Self, FleetScenarioError> {
        self.learn = learn.unwrap_or(self.learn);
        self.rounds = rounds.unwrap_or(self.rounds);
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), FleetScenarioError> {
        let interval = self.service.interval();
        if self.grace >= interval || self.grace.is_zero() {
            return Err(value(
                "grace",
                format!("above nothing, and shorter than the service's interval, {interval}"),
            ));
        }
        if self.learn < interval * 2 {
            return Err(value("learn", format!("two intervals of {interval} or more")));
        }
        if self.block.is_zero() || !self.block.as_nanos().is_multiple_of(interval.as_nanos()) {
            return Err(value(
                "block",
                format!("a multiple of the service's interval, {interval}"),
            ));
        }
        if self.rounds > 1000 {
            return Err(value("rounds", "1000 at most"));
        }
        Ok(())
    }
}

impl Raw {
    fn checked(self, folder: &Path) -> Result<KernelFleet, FleetScenarioError> {
        let time =
            |key: &str, text: &str| text.parse::<Duration>().map_err(|e| value(key, e.to_string()));
        let service_text = self.service.to_string();
        let service = Service::parse(&service_text).map_err(|cause| {
            FleetScenarioError::Service { key: "service".to_owned(), cause: Box::new(cause) }
        })?;
        if service.algorithm().name != "vivace" {
            return Err(value("service.algorithm", "agents customize vivace"));
        }
        let reward = self.service.get("reward").and_then(toml::Value::as_str).unwrap_or_default();
        if let Some(stray) = self.compare_with.iter().find(|cc| !RIVALS.contains(&cc.as_str())) {
            return Err(value(
                "compare_with",
                format!("no {stray:?}; there are {}", RIVALS.join(", ")),
            ));
        }
        let size =
            |text: &String| text.parse::<Bytes>().map_err(|e| value("clients.size", e.to_string()));
        let clients = Clients {
            count: self.clients.count,
            size: (size(&self.clients.size[0])?, size(&self.clients.size[1])?),
            pause: time("clients.pause", &self.clients.pause)?,
        };
        if !(1..=64).contains(&clients.count) {
            return Err(value("clients.count", "1 to 64"));
        }
        if clients.size.0.is_zero() || clients.size.0 > clients.size.1 {
            return Err(value("clients.size", "[\"LEAST\", \"MOST\"], the least above nothing"));
        }
        let edges: Vec<EdgePlan> =
            self.edge.into_iter().map(|edge| edge.checked(folder)).collect::<Result<_, _>>()?;
        if !(1..=EDGES_MAX).contains(&edges.len()) {
            return Err(value("edge", format!("1 to {EDGES_MAX} of them")));
        }
        for (place, edge) in edges.iter().enumerate() {
            if edges[..place].iter().any(|other| other.name == edge.name) {
                return Err(value("edge", format!("two are called {:?}", edge.name)));
            }
        }
        let fleet = KernelFleet {
            name: self.name,
            about: self.about,
            learn: time("learn", &self.learn)?,
            block: time("block", &self.block)?,
            rounds: self.rounds,
            grace: time("grace", &self.grace)?,
            compare_with: self.compare_with,
            clients,
            reward: reward.to_owned(),
            service,
            service_text,
            edges,
        };
        fleet.check()?;
        Ok(fleet)
    }
}

impl RawEdge {
    fn checked(self, folder: &Path) -> Result<EdgePlan, FleetScenarioError> {
        let key = |key: &str| format!("edge {:?}: {key}", self.name);
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        // It names folders and tokens.
        if self.name.is_empty() || self.name.len() > 30 || !self.name.chars().all(good) {
            return Err(value(key("name"), "1 to 30 lower-case letters, digits and -"));
        }
        let mut source =
            self.link.parse::<TraceSource>().map_err(|e| value(key("link"), e.to_string()))?;
        source.rebase(folder);
        let capacity = links::capacity(&source).map_err(|e| value(key("link"), e.to_string()))?;
        let rtt = self.rtt.parse::<Duration>().map_err(|e| value(key("rtt"), e.to_string()))?;
        if rtt > Duration::from_secs(5) {
            return Err(value(key("rtt"), "5s at most"));
        }
        let buffer =
            self.buffer.parse::<Buffer>().map_err(|e| value(key("buffer"), e.to_string()))?;
        let loss =
            self.loss.parse::<Probability>().map_err(|e| value(key("loss"), e.to_string()))?;
        if loss.get() > 0.5 {
            return Err(value(key("loss"), "50% at most"));
        }
        let cell =
            Cell { rtt: rtt.into(), buffer, loss, jitter: Duration::ZERO, flows: 1, rivals: None };
        Ok(EdgePlan { name: self.name, source, capacity, cell })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
learn = "20s"
block = "6s"
rounds = 2
grace = "500ms"
[clients]
count = 2
size = ["100KB", "1MB"]
pause = "100ms"
[service]
name = "files"
interval = "3s"
reward = "mean(throughput)"
[service.knobs]
gamma = { min = 1, max = 5000, scale = "log" }
[[edge]]
name = "a"
link = "constant:10Mbit/s"
rtt = "20ms"
buffer = "1BDP"
"#;

    #[test]
    fn what_is_wrong_is_named_with_what_would_be_right() {
        let told = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            KernelFleet::parse(&text, Path::new("")).unwrap_err().to_string()
        };
        for (from, to, said) in [
            ("\"500ms\"", "\"3s\"", "shorter than the service's interval, 3s"),
            ("\"6s\"", "\"7s\"", "block: a multiple of the service's interval, 3s"),
            ("\"20s\"", "\"4s\"", "learn: two intervals of 3s or more"),
            ("rounds = 2", "rounds = 2\ncompare_with = [\"quic\"]", "no \"quic\"; there are cubic"),
            ("count = 2", "count = 0", "clients.count: 1 to 64"),
            ("\"100KB\", \"1MB\"", "\"2MB\", \"1MB\"", "the least above nothing"),
            ("name = \"a\"", "name = \"A b\"", "lower-case letters"),
            ("\"1BDP\"", "\"1BDP\"\nloss = \"1\"", "it needs its unit"),
            ("gamma =", "gamme =", "did you mean gamma?"),
            ("rtt = ", "delay = ", "unknown field `delay`"),
        ] {
            let message = told(from, to);
            assert!(message.contains(said), "{from} to {to}: {message}");
        }
        let twice = GOOD.to_owned() + &GOOD[GOOD.find("[[edge]]").unwrap()..];
        let message = KernelFleet::parse(&twice, Path::new("")).unwrap_err().to_string();
        assert!(message.contains("two are called \"a\""), "{message}");
    }

    #[test]
    fn the_fleet_that_ships_compares_with_vivaces_own_defaults() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/kernel/fleet.toml");
        let fleet = KernelFleet::load(&file).unwrap();
        assert_eq!(fleet.edges.len(), 3);
        let safe = fleet.service.configured(&fleet.service.safe());
        let fastest = fleet.edges.iter().map(|edge| edge.capacity.mean_rate().mbps());
        let fastest = fastest.fold(0.0, f64::max);
        for (name, value) in safe {
            let knob = fleet.service.algorithm().knobs.iter().find(|k| k.name == name).unwrap();
            // No limit of slow start, and one far above every link, are the same.
            let none = name == "startup_rate_max" && value >= 4.0 * fastest;
            assert!(none || (value - knob.default).abs() < 1e-9, "{name} = {value}");
        }
    }

    #[test]
    fn times_can_be_replaced_and_are_checked_again() {
        let fleet = || KernelFleet::parse(GOOD, Path::new("")).unwrap();
        let other = fleet().with(Some(Duration::from_secs(9)), Some(0)).unwrap();
        assert_eq!((other.learn, other.rounds), (Duration::from_secs(9), 0));
        assert!(fleet().with(Some(Duration::from_secs(5)), None).is_err());
        assert_eq!(fleet().edges[0].capacity.mean_rate().mbps(), 10.0);
    }

    #[test]
    fn every_limit_is_kept_to() {
        let edge = &GOOD[GOOD.find("[[edge]]").unwrap()..];
        let edges = |count: usize| {
            let more = (1..count).map(|n| edge.replace("\"a\"", &format!("\"a-{n}\"")));
            GOOD.to_owned() + &more.collect::<String>()
        };
        let parse = |text: &str| KernelFleet::parse(text, Path::new(""));
        assert_eq!(parse(&edges(16)).unwrap().edges.len(), 16);
        let told = |text: &str| parse(text).unwrap_err().to_string();
        assert!(told(&edges(17)).contains("edge: 1 to 16"), "{}", told(&edges(17)));
        for (from, to, said) in [
            ("rounds = 2", "rounds = 1001", "rounds: 1000 at most"),
            ("rtt = \"20ms\"", "rtt = \"6s\"", "edge \"a\": rtt: 5s at most"),
            ("\"1BDP\"", "\"1BDP\"\nloss = \"51%\"", "edge \"a\": loss: 50% at most"),
            ("constant:10Mbit/s", "no/such.trace", "edge \"a\": link: "),
            ("\"500ms\"", "\"0s\"", "grace: above nothing"),
            ("count = 2", "count = 65", "clients.count: 1 to 64"),
            ("\"100KB\"", "\"0B\"", "clients.size"),
            ("\"100KB\"", "\"100\"", "clients.size"),
            ("\"100ms\"", "\"100\"", "clients.pause"),
            ("\"6s\"", "\"0s\"", "block: a multiple"),
            ("[service]", "[service]\nalgorithm = \"cubic\"", "service"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            assert!(told(&text).contains(said), "{to}: {}", told(&text));
        }
    }

    #[test]
    fn a_file_gives_its_name_and_the_folder_of_its_traces() {
        let folder = tempfile::tempdir().unwrap();
        let opportunities: String = (1..=1000).map(|ms| format!("{ms}\n")).collect();
        std::fs::write(folder.path().join("own.trace"), opportunities).unwrap();
        let file = folder.path().join("two-edges.toml");
        std::fs::write(&file, GOOD.replace("constant:10Mbit/s", "own.trace")).unwrap();
        let fleet = KernelFleet::load(&file).unwrap();
        assert_eq!(fleet.name, "two-edges");
        assert!((fleet.edges[0].capacity.mean_rate().mbps() - 12.0).abs() < 1e-9);
        assert_eq!((fleet.edges[0].cell.loss.get(), fleet.rounds), (0.0, 2));
        let missing = KernelFleet::load(&folder.path().join("missing.toml")).unwrap_err();
        assert!(missing.to_string().contains("missing.toml"), "{missing}");
        // The engine reads the same service.
        assert_eq!(Service::parse(&fleet.service_text).unwrap().name().as_str(), "files");
    }
}
