//! The engine's configuration: a TOML file, checked as a whole before anything starts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use toml::Spanned;
use trimtab_units::{Bytes, Duration};

use crate::logging::LogFormat;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It says something wrong.
    #[error("{}:{line}: {message}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl ConfigError {
    pub(crate) fn read(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Read { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Something wrong at a byte of a text.
    pub(crate) fn at(path: &Path, text: &str, at: usize, message: &str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        Self::Wrong {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            message: message.trim_end().replace('\n', "; "),
        }
    }
}

/// The engine's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The folder with a TOML file for each service.
    pub services: PathBuf,
    /// How long after an interval edges may still report it.
    pub grace: Duration,
    /// How far an edge's clock may be off.
    pub skew: Duration,
    /// How long ago an interval may have ended that edges report.
    pub age: Duration,
    /// How long decisions are kept.
    pub keep: Duration,
    /// How long lines of the audit are kept.
    pub keep_audit: Duration,
    /// Where it keeps what it must not lose.
    pub store: Keep,
    /// Its certificate and key, in PEM; without, it speaks plain HTTP.
    pub tls: Option<Tls>,
    /// What clients may do by the name in their certificate.
    pub(crate) clients: Vec<ClientRule>,
    /// Who is sent events.
    pub(crate) webhooks: Vec<Webhook>,
    /// Where its traces go; none: they are off.
    pub(crate) traces: Option<TraceSettings>,
    /// What it takes from others at most.
    pub limits: Limits,
    /// How lines of its log are written.
    pub log_format: LogFormat,
}

/// Where the engine keeps what it must not lose.
#[derive(Clone, Debug)]
pub enum Keep {
    /// A file of SQLite's: one engine, and no other server.
    File(PathBuf),
    /// Tables in PostgreSQL: as many engines as there is work for.
    Shared {
        /// The tables.
        postgres: Box<PostgresSettings>,
        /// Where reports go by way of NATS.
        broker: Option<BrokerSettings>,
    },
}

/// Where PostgreSQL is.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    pub(crate) config: postgres::Config,
    /// Where to hear of changes, where `config` is of a pooler.
    pub(crate) listen: Option<postgres::Config>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) authority: Option<PathBuf>,
}

/// Where the broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    pub(crate) nats: Vec<String>,
    pub(crate) stream: String,
    pub(crate) replicas: usize,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) authority: Option<PathBuf>,
}

impl BrokerSettings {
    /// The subject of batches of reports.
    pub(crate) fn reports(&self) -> String {
        format!("{}.reports", self.stream)
    }

    /// The subject on which engines tell each other of changes.
    pub(crate) fn changed(&self) -> String {
        format!("{}.changed", self.stream)
    }
}

/// Files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate and those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities that sign certificates of clients; none: clients have tokens alone.
    pub clients: Option<PathBuf>,
}

/// What the engine takes from others at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The body of a request.
    pub body: Bytes,
    /// Requests of a token in a second, on average; in a burst ten times as many.
    pub requests_per_second: u32,
    /// Requests of an address in a second that come with a valid token; none: no limit.
    pub requests_per_address: Option<u32>,
    /// Requests of an address in a second that come without one.
    pub strangers_per_address: u32,
    /// Connections at a time.
    pub connections: u32,
    /// Connections of an address at a time.
    pub connections_per_address: u32,
    /// Aggregates that an edge may make in an hour.
    pub new_aggregates: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawLimits {
    #[serde(deserialize_with = "given")]
    body: Option<Bytes>,
    requests_per_second: u32,
    requests_per_address: Option<u32>,
    strangers_per_address: u32,
    connections: u32,
    connections_per_address: u32,
    new_aggregates: u32,
}

impl Default for RawLimits {
    fn default() -> Self {
        Self {
            body: None,
            requests_per_second: 20,
            requests_per_address: None,
            strangers_per_address: 10,
            connections: 20_000,
            connections_per_address: 1000,
            new_aggregates: 1000,
        }
    }
}

/// Default limits of a request's body: without a broker, and with one, whose own default limit of a
/// message the body must fit.
const BODY: u64 = 4_000_000;
const BODY_BROKER: u64 = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default = "listen")]
    listen: Spanned<SocketAddr>,
    services: PathBuf,
    #[serde(default = "grace", deserialize_with = "parsed")]
    grace: Duration,
    #[serde(default)]
    skew: Option<Spanned<String>>,
    #[serde(default = "age", deserialize_with = "parsed")]
    age: Duration,
    #[serde(default = "keep", deserialize_with = "parsed")]
    keep: Duration,
    #[serde(default = "keep_audit", deserialize_with = "parsed")]
    keep_audit: Duration,
    store: Spanned<RawStore>,
    broker: Option<Spanned<RawBroker>>,
    tls: Option<RawTls>,
    #[serde(default)]
    plaintext: bool,
    #[serde(default)]
    log_format: LogFormat,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    client: Vec<Spanned<RawClient>>,
    #[serde(default)]
    webhook: Vec<RawWebhook>,
    traces: Option<RawTraces>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStore {
    file: Option<PathBuf>,
    postgres: Option<Spanned<String>>,
    listen: Option<Spanned<String>>,
    password_file: Option<PathBuf>,
    authority: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBroker {
    nats: Spanned<Addresses>,
    #[serde(default = "stream")]
    stream: Spanned<String>,
    #[serde(default = "replicas")]
    replicas: Spanned<usize>,
    token_file: Option<PathBuf>,
    authority: Option<PathBuf>,
}

/// One or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Addresses {
    One(String),
    Several(Vec<String>),
}

fn stream() -> Spanned<String> {
    Spanned::new(0..0, "trimtab".to_owned())
}

fn replicas() -> Spanned<usize> {
    Spanned::new(0..0, 1)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
}

fn listen() -> Spanned<SocketAddr> {
    Spanned::new(0..0, SocketAddr::from(([127, 0, 0, 1], 7480)))
}

fn grace() -> Duration {
    Duration::from_secs(30)
}

/// No less than this, however short the grace is.
const SKEW_LEAST: Duration = Duration::from_secs(5);

fn age() -> Duration {
    Duration::from_secs(24 * 3600)
}

/// A week: with 100,000 aggregates and an interval of 20 minutes, that is 50 million decisions.
fn keep() -> Duration {
    Duration::from_secs(7 * 24 * 3600)
}

/// A year.
fn keep_audit() -> Duration {
    Duration::from_secs(365 * 24 * 3600)
}

fn parsed<'de, D: Deserializer<'de>, T: std::str::FromStr<Err: std::fmt::Display>>(
    from: D,
) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    parsed(from).map(Some)
}

impl Config {
    /// Reads a file. Paths in it are taken from its folder.
    ///
    /// # Errors
    /// It cannot be read, or says something wrong: then where, and what to do.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|e| ConfigError::read(path, e))?;
        Self::parse(path, &text)
    }

    /// Reads a text; `path` is where it is from.
    ///
    /// # Errors
    /// It says something wrong: then where, and what to do.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let raw: Raw = toml::from_str(text).map_err(|e| {
            ConfigError::at(path, text, e.span().map_or(0, |span| span.start), e.message())
        })?;
        let from_here = |file: PathBuf| path.parent().unwrap_or(Path::new("")).join(file);
        if raw.tls.is_none() && !raw.plaintext && !raw.listen.get_ref().ip().is_loopback() {
            let message = format!(
                "tokens would travel in the clear from {}: give [tls] a certificate and a key, or, where something in \
                 front of the engine speaks TLS, say plaintext = true",
                raw.listen.get_ref()
            );
            return Err(ConfigError::at(path, text, raw.listen.span().start, &message));
        }
        let has_authority = raw.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
        let place = Place { path, text, plaintext: raw.plaintext };
        let clients = place.clients(raw.client, has_authority)?;
        let webhooks = place.webhooks(raw.webhook)?;
        let traces = raw.traces.map(|traces| place.traces(traces)).transpose()?;
        let skew = place.skew(raw.skew, raw.grace)?;
        let store = place.keep(raw.store, raw.broker)?;
        let body = raw.limits.body.unwrap_or(Bytes::new(match store {
            Keep::Shared { broker: Some(_), .. } => BODY_BROKER,
            Keep::File(_) | Keep::Shared { broker: None, .. } => BODY,
        }));
        Ok(Self {
            listen: raw.listen.into_inner(),
            services: from_here(raw.services),
            grace: raw.grace,
            skew,
            age: raw.age,
            keep: raw.keep,
            keep_audit: raw.keep_audit,
            store,
            tls: raw.tls.map(|tls| Tls {
                certificate: from_here(tls.certificate),
                key: from_here(tls.key),
                clients: tls.clients.map(from_here),
            }),
            clients,
            webhooks,
            traces,
            log_format: raw.log_format,
            limits: Limits {
                body,
                requests_per_second: raw.limits.requests_per_second,
                requests_per_address: raw.limits.requests_per_address,
                strangers_per_address: raw.limits.strangers_per_address,
                connections: raw.limits.connections,
                connections_per_address: raw.limits.connections_per_address,
                new_aggregates: raw.limits.new_aggregates,
            },
        })
    }
}

mod clients;
mod keep;
mod traces;
mod webhooks;
pub(crate) use clients::ClientRule;
use clients::RawClient;
use keep::Place;
use traces::RawTraces;
pub(crate) use traces::TraceSettings;
use webhooks::RawWebhook;
pub(crate) use webhooks::Webhook;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("/etc/trimtab/engine.toml"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_said_has_a_default_and_paths_start_at_the_file() {
        let config = parse("services = \"services\"\n[store]\nfile = \"../e.db\"\n").unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:7480");
        assert_eq!(config.services, Path::new("/etc/trimtab/services"));
        let Keep::File(file) = config.store else { panic!("a file") };
        assert_eq!(file, Path::new("/etc/trimtab/../e.db"));
        assert_eq!(config.grace, Duration::from_secs(30));
        assert_eq!(config.keep_audit, Duration::from_secs(365 * 24 * 3600));
        assert_eq!(config.limits.body, Bytes::new(4_000_000));
        assert_eq!(config.log_format, LogFormat::Text);
        let json = parse("services = \"s\"\nlog_format = \"json\"\n[store]\nfile = \"e\"\n");
        assert_eq!(json.unwrap().log_format, LogFormat::Json);
    }

    #[test]
    fn an_edge_whose_clock_is_taken_is_not_always_late() {
        let with =
            |lines: &str| parse(&format!("services = \"s\"\n{lines}\n[store]\nfile = \"e\"\n"));
        let skew = |lines: &str| with(lines).unwrap().skew;
        assert_eq!(skew(""), Duration::from_secs(30), "as the grace");
        assert_eq!(skew("grace = \"2min\""), Duration::from_secs(120));
        assert_eq!(skew("grace = \"20ms\""), Duration::from_secs(5));
        assert_eq!(skew("skew = \"10s\""), Duration::from_secs(10));
        let refused = with("skew = \"2min\"").unwrap_err();
        assert!(
            refused.starts_with("/etc/trimtab/engine.toml:2: ") && refused.contains("late"),
            "{refused}"
        );
        assert!(with("skew = \"10\"").unwrap_err().contains("unit"));
    }

    #[test]
    fn tokens_never_travel_in_the_clear_by_oversight() {
        let text = "services = \"s\"\nlisten = \"0.0.0.0:7480\"\n";
        let store = "[store]\nfile = \"e.db\"\n";
        let refused = parse(&format!("{text}{store}")).unwrap_err();
        assert!(
            refused.starts_with("/etc/trimtab/engine.toml:2: tokens would travel"),
            "{refused}"
        );
        assert!(parse(&format!("{text}plaintext = true\n{store}")).is_ok());
        let tls = "[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
        let config = parse(&format!("{text}{store}{tls}")).unwrap();
        assert_eq!(config.tls.unwrap().key, Path::new("/etc/trimtab/k.pem"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let refused =
            parse("services = \"s\"\ngrace = \"30\"\n[store]\nfile = \"e\"\n").unwrap_err();
        assert!(
            refused.starts_with("/etc/trimtab/engine.toml:2: ") && refused.contains("unit"),
            "{refused}"
        );
        let refused = parse("services = \"s\"\n[store]\nfile = \"e\"\nfrob = 1\n").unwrap_err();
        assert!(
            refused.starts_with("/etc/trimtab/engine.toml:4: ") && refused.contains("frob"),
            "{refused}"
        );
    }

    const SHARED: &str =
        "services = \"s\"\n[store]\npostgres = \"host=/run/postgresql dbname=t\"\n";

    #[test]
    fn several_engines_share_postgresql_and_a_broker() {
        let config =
            parse(&format!("{SHARED}[broker]\nnats = \"nats://localhost:4222\"\n")).unwrap();
        let Keep::Shared { postgres, broker: Some(broker) } = config.store else { panic!("both") };
        assert_eq!(postgres.config.get_dbname(), Some("t"));
        assert_eq!((broker.reports().as_str(), broker.replicas), ("trimtab.reports", 1));
        assert_eq!(config.limits.body, Bytes::new(1_000_000), "a broker's default");
        let several =
            "[broker]\nnats = [\"nats://[::1]:4222\", \"127.0.0.1\"]\nstream = \"tv_2\"\n";
        let config = parse(&format!("{SHARED}{several}[limits]\nbody = \"2MB\"\n")).unwrap();
        let Keep::Shared { broker: Some(broker), .. } = config.store else { panic!("both") };
        assert_eq!((broker.nats.len(), broker.changed().as_str()), (2, "tv_2.changed"));
        assert_eq!(config.limits.body, Bytes::new(2_000_000));
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_would() {
        let refused = |store: &str| parse(&format!("services = \"s\"\n{store}")).unwrap_err();
        let postgres = "[store]\npostgres = \"host=/run dbname=t\"\n";
        for (store, line, said) in [
            ("[store]\n", 2, "where to keep it?"),
            ("[store]\nfile = \"e\"\npostgres = \"host=/run\"\n", 2, "give one"),
            ("[store]\nfile = \"e\"\nauthority = \"a\"\n", 2, "go with postgres"),
            ("[store]\nfile = \"e\"\n[broker]\nnats = \"a\"\n", 4, "needs none"),
            ("[store]\nfile = \"e\"\nlisten = \"host=/run\"\n", 2, "go with postgres"),
            (&format!("{postgres}listen = \"dbname=t\"\n"), 4, "listen names no host"),
            ("[store]\npostgres = \"host=a frob=1\"\n[broker]\nnats = \"a\"\n", 3, "frob"),
            ("[store]\npostgres = \"dbname=t\"\n[broker]\nnats = \"a\"\n", 3, "names no host"),
            (
                "[store]\npostgres = \"host=db.example\"\n[broker]\nnats = \"a\"\n",
                3,
                "in the clear",
            ),
            (&format!("{postgres}[broker]\nnats = []\n"), 5, "names no server"),
            (&format!("{postgres}[broker]\nnats = \"http://a b\"\n"), 5, "no address of NATS"),
            (&format!("{postgres}[broker]\nnats = \"nats://b.example\"\n"), 5, "in the clear"),
            (
                &format!("{postgres}[broker]\nnats = \"localhost\"\nstream = \"a.b\"\n"),
                6,
                "letters",
            ),
            (
                &format!("{postgres}[broker]\nnats = \"localhost\"\nreplicas = 9\n"),
                6,
                "1 to 5 copies",
            ),
        ] {
            let refused = refused(store);
            let place = format!("/etc/trimtab/engine.toml:{line}: ");
            assert!(refused.starts_with(&place) && refused.contains(said), "{store}: {refused}");
        }
    }

    /// Each of every kind of line.
    const WHOLE: [&str; 3] = [
        "services = \"s\"\nplaintext = true\n[store]\n\
         postgres = \"postgresql://kim:secret@db.example:5433/tv?sslmode=disable\"\n\
         authority = \"a.pem\"\n[broker]\nnats = \"b.example\"\ntoken_file = \"t\"\n",
        "services = \"services\"\n[store]\nfile = \"engine.db\"\n[limits]\nbody = \"1MB\"\n",
        "listen = \"0.0.0.0:7480\"\nservices = \"s\"\ngrace = \"20ms\"\nkeep = \"24h\"\n[tls]\n\
         certificate = \"c.pem\"\nkey = \"k.pem\"\n[store]\n\
         postgres = \"host=/run/postgresql user=trimtab dbname=trimtab\"\npassword_file = \"p\"\n\
         [broker]\nnats = [\"nats://127.0.0.1:4222\", \"tls://[::1]:4222\"]\nstream = \"tv\"\n\
         replicas = 3\n",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Lines of one within another, and pieces that are cut out or put in.
        #[test]
        fn any_text_is_a_configuration_or_a_message_with_its_place(
            (of, from) in (0..3_usize, 0..3_usize),
            picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
            piece in "[ -~\n]{0,6}|[^\u{0}]{0,3}",
        ) {
            let mut text = WHOLE[of].to_owned();
            for (at, what) in picks {
                let lines: Vec<&str> = WHOLE[from].lines().collect();
                let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
                let Some(&place) = places.get(at.index(places.len().max(1))) else { break };
                match what.index(3) {
                    0 => text.insert_str(place, &piece),
                    1 => drop(text.remove(place)),
                    _ => text.insert_str(place, &format!("\n{}\n", lines[what.index(lines.len())])),
                }
            }
            match Config::parse(Path::new("engine.toml"), &text) {
                // What does not encrypt listens to this machine alone, unless it says that it may.
                Ok(config) => prop_assert!(
                    config.tls.is_some() || config.listen.ip().is_loopback() || text.contains("plaintext")
                ),
                Err(error) => prop_assert!(error.to_string().starts_with("engine.toml:"), "{error}"),
            }
        }
    }
}
