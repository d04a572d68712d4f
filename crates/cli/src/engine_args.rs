//! The flags of `trimtab engine`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use trimtab_engine::AuditMark;
use trimtab_fleet_client::{Hold, Name, Role, Secret, Validity};

use crate::study_args::{ExperimentCommand, RolloutCommand};

/// Learn a configuration of congestion control for each aggregate of a fleet's traffic.
///
/// Once per interval, edges report statistics of the connections of each service to each destination
/// subnet. From these the engine learns which knobs give the highest reward of the service, and
/// distributes them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab engine run --config /etc/trimtab/engine.toml
  trimtab engine token add edge-17 --role edge --service tv
  trimtab engine aggregates 203.0.113
  trimtab engine explain tv/203.0.113.0/24
  trimtab engine what-if tv --algorithm bbr
  trimtab engine shared tv --with together.txt > together.new
  trimtab engine fit-surrogate tv
  trimtab engine pin tv/203.0.113.0/24 gamma=900 --reason 'trouble at the peer'
  trimtab engine pin tv/203.0.113.0/24 --algorithm bbr
  trimtab engine pause tv/203.0.112.0/20 --within --dry-run
  trimtab engine resume tv/all
  trimtab engine experiment start tv gamma-900 --treatment gamma=900 --block 6 --length 432 --metric reward --guard 'mean(loss) < +20%'
  trimtab engine rollout start tv gamma-900 --to gamma=900 --metric reward --guard 'mean(loss) < +20%'

Signals to `run`: SIGHUP reads the services and the certificate again, SIGTERM ends it; edges keep their configurations.")]
pub(crate) struct Engine {
    #[command(subcommand)]
    pub(crate) command: EngineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Run the engine.
    Run {
        /// The configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
    /// Run an engine to look at, with traffic that is made up: a decision every two seconds, in a
    /// temporary folder.
    Demo {
        /// The address, of this machine alone
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
        listen: std::net::SocketAddr,
    },
    /// Show the engine's state and its services.
    Status(AskEngine),
    /// List aggregates by name.
    Aggregates {
        /// A part of the service's name, a space, and the prefix
        search: Option<String>,
        /// Filter by service
        #[arg(long, value_name = "NAME")]
        service: Option<String>,
        /// Filter by hold state
        #[arg(long, value_name = "STATE")]
        hold: Option<HoldName>,
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: usize,
        #[command(flatten)]
        ask: AskEngine,
    },
    /// Explain an aggregate's decisions: its trials, their rewards, and the reasons of changes.
    Explain {
        /// The aggregate, e.g. tv/203.0.113.0/24
        #[arg(value_parser = aggregate)]
        aggregate: Name,
        /// Number of decisions, the latest ones
        #[arg(long, value_name = "N", default_value_t = 10)]
        last: usize,
        #[command(flatten)]
        ask: AskEngine,
    },
    /// Estimate what the reward would have been with another choice, from the decisions so far. The
    /// service needs acquisition = "thompson": certain choices say nothing of others.
    WhatIf {
        /// The service, e.g. tv, or one of its aggregates, e.g. tv/203.0.113.0/24
        #[arg(value_name = "SERVICE[/PREFIX]")]
        of: String,
        /// Knobs that are learnt, e.g. gamma=900; the others as they were chosen
        #[arg(required_unless_present = "algorithm", value_name = "KNOB=VALUE", value_parser = knob)]
        knobs: Vec<(String, f64)>,
        /// An algorithm of the service, e.g. bbr, as its description names it
        #[arg(long, value_name = "NAME")]
        algorithm: Option<String>,
        /// Decisions of each aggregate that are read, the latest ones, up to 10000
        #[arg(long, value_name = "N", default_value_t = 1000)]
        last: usize,
        #[command(flatten)]
        ask: AskEngine,
    },
    /// Find aggregates that share a bottleneck, by how their round-trip times move together. Prints
    /// the file of groups that edges read (`together`), with the evidence as remarks.
    Shared {
        /// The service, e.g. tv
        service: String,
        /// The file that edges read now: its groups are printed, too, and keep their names
        #[arg(long, value_name = "FILE")]
        with: Option<PathBuf>,
        /// Decisions of each aggregate that are read, the latest ones, up to 10000
        #[arg(long, value_name = "N", default_value_t = 200)]
        last: usize,
        #[command(flatten)]
        ask: AskEngine,
    },
    /// Fit a surrogate of the reward to the decisions so far, and print the line for the service's
    /// file, with how well it predicts what it was not fitted to.
    FitSurrogate {
        /// The service, e.g. tv
        service: String,
        /// Decisions of each aggregate that are read, the latest ones, up to 10000
        #[arg(long, value_name = "N", default_value_t = 1000)]
        last: usize,
        #[command(flatten)]
        ask: AskEngine,
    },
    /// Show what hosts found by comparing their rules with control arms.
    Comparisons(AskEngine),
    /// Keep an aggregate at its best guess.
    Pause(Order),
    /// Let an aggregate learn again, from pinned knobs where there are any; or, without an aggregate,
    /// end the orders of `safe`.
    Resume(Resume),
    /// Put every aggregate of all services, or of some, on its safe configuration at once, until
    /// `resume`.
    Safe {
        /// Only this service; may be given several times
        #[arg(long, value_name = "NAME")]
        service: Vec<String>,
        /// Why; everybody who looks at the engine sees it
        #[arg(long, value_name = "TEXT")]
        why: String,
        #[command(flatten)]
        ask: AskEngine,
    },
    /// Put the given knobs or another algorithm in force, and keep them.
    Pin {
        #[command(flatten)]
        order: Order,
        /// Knobs, e.g. gamma=900; others stay as they are
        #[arg(required_unless_present = "algorithm", value_name = "KNOB=VALUE", value_parser = knob)]
        knobs: Vec<(String, f64)>,
        /// Another algorithm of the service, e.g. bbr, as its description names it
        #[arg(long, value_name = "NAME", conflicts_with = "knobs")]
        algorithm: Option<String>,
    },
    /// Put the configuration of an earlier interval in force, and keep it.
    Rollback {
        #[command(flatten)]
        order: Order,
        /// The interval's number, from `explain`
        #[arg(long, value_name = "INTERVAL")]
        to: i64,
    },
    /// Discard what an aggregate has learnt, e.g. from damaged data or false reports.
    Reset(Order),
    /// List what operators did and what was refused, the latest first; or check that nobody changed it.
    Audit(Audit),
    /// Compare two configurations of a service, by whole aggregates or by time slots.
    #[command(subcommand)]
    Experiment(ExperimentCommand),
    /// Give a configuration to more and more aggregates, and take it back when a guard metric breaks.
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// Write a copy of the engine's file to a new file, on its machine, whether it runs or not.
    Backup {
        /// The copy, a file that there is not yet
        to: PathBuf,
        /// The engine's configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
    /// Move all that is in an engine's file into the empty PostgreSQL of a configuration. No engine may
    /// run on either; the file stays as it is.
    Move {
        /// The file, e.g. /var/lib/trimtab-engine/engine.db
        from: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// The configuration of an engine on PostgreSQL
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
    /// Make, rotate, list and revoke tokens, on the engine's machine.
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it. It is shown only once.
    Add {
        /// The token's name, which must be unique
        name: String,
        /// The token's rights
        #[arg(long)]
        role: RoleName,
        /// A service that an edge may report for; may be given several times
        #[arg(long, value_name = "NAME")]
        service: Vec<String>,
        /// A subnet that an edge may report about, e.g. 203.0.113.0/24, with all subnets within; may be
        /// given several times [default: any]
        #[arg(long, value_name = "SUBNET")]
        prefix: Vec<String>,
        /// For how long it is valid, e.g. 90d, or never
        #[arg(long, value_name = "TIME", default_value_t)]
        expires: Validity,
        /// The engine's configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
    /// Give a token another secret and print it. The one before is valid for a while, so that its
    /// user can take the new one without an outage.
    Rotate {
        /// The token's name
        name: String,
        /// For how long the new secret is valid, e.g. 90d, or never
        #[arg(long, value_name = "TIME", default_value_t)]
        expires: Validity,
        /// For how long the secret before is valid still, at most until it expires
        #[arg(long, value_name = "TIME", default_value = "1d")]
        overlap: Validity,
        /// The engine's configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
    /// List all tokens with when they expire and were last used, without their secrets.
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// The engine's configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
    /// Revoke a token.
    Revoke {
        /// The token's name
        name: String,
        /// The engine's configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
        config: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The aggregate, e.g. tv/203.0.113.0/24, or tv/all
    #[arg(value_parser = aggregate)]
    pub(crate) aggregate: Option<Name>,
    #[command(flatten)]
    pub(crate) many: Many,
    /// Without an aggregate: end the order for this service only; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with = "aggregate")]
    pub(crate) service: Vec<String>,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) ask: AskEngine,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Maximum number of lines
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Filter by kind
    #[arg(long, value_name = "KIND")]
    pub(crate) only: Option<AuditKind>,
    /// Check, on the engine's machine, that no line was changed, removed or inserted; exit status 1
    /// where one was
    #[arg(long, conflicts_with = "only")]
    pub(crate) verify: bool,
    /// With --verify: a line and its hash, as an earlier check printed them
    #[arg(long, value_name = "LINE:HASH", requires = "verify")]
    pub(crate) known: Option<AuditMark>,
    /// With --verify: the engine's configuration
    #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/engine.toml")]
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) ask: AskEngine,
}

/// Which lines of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditKind {
    /// What operators and the engine did
    Done,
    /// What was refused
    Refused,
}

/// An order for many aggregates.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Many {
    /// Every aggregate within the subnet, e.g. those of tv/203.0.112.0/20: on all, or on none
    #[arg(long, requires = "aggregate")]
    pub(crate) within: bool,
    /// Change nothing, and list what would change
    #[arg(long, requires = "aggregate")]
    pub(crate) dry_run: bool,
}

/// An order for an aggregate, or for many.
#[derive(Debug, Args)]
pub(crate) struct Order {
    /// The aggregate, e.g. tv/203.0.113.0/24, or tv/all, all/203.0.113.0/24 or all/all
    #[arg(value_parser = aggregate)]
    pub(crate) aggregate: Name,
    #[command(flatten)]
    pub(crate) many: Many,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) ask: AskEngine,
}

/// How to ask the engine.
#[derive(Debug, Args)]
pub(crate) struct AskEngine {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// A file with the token [default: the token in TRIMTAB_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) at: EngineAt,
}

/// Where the engine is.
#[derive(Debug, Args)]
pub(crate) struct EngineAt {
    /// The engine's address
    #[arg(
        long,
        value_name = "URL",
        env = "TRIMTAB_ENGINE",
        default_value = "http://127.0.0.1:7480"
    )]
    pub(crate) engine: String,
    /// A PEM file with the engine's certificate authorities [default: those of the web]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// A PEM file with a certificate to ask with, instead of a token
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "token_file")]
    certificate: Option<PathBuf>,
    /// A PEM file with the key of that certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

impl EngineAt {
    /// The certificate to ask with, or the file of a token; none where neither is given.
    pub(crate) fn secret(&self, token_file: Option<&Path>) -> Option<Secret> {
        let pair = self.certificate.clone().zip(self.key.clone());
        let certificate = pair.map(|(certificate, key)| Secret::Certificate { certificate, key });
        certificate.or_else(|| token_file.map(|path| Secret::File(path.to_owned())))
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HoldName {
    Learning,
    Paused,
    Pinned,
}

impl From<HoldName> for Hold {
    fn from(name: HoldName) -> Self {
        match name {
            HoldName::Learning => Self::Learning,
            HoldName::Paused => Self::Paused,
            HoldName::Pinned => Self::Pinned,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleName {
    /// May report for its services and read their configurations
    Edge,
    /// May read everything, and pause, pin and roll back
    Operator,
    /// May read everything
    Viewer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Edge => Self::Edge,
            RoleName::Operator => Self::Operator,
            RoleName::Viewer => Self::Viewer,
        }
    }
}

fn aggregate(text: &str) -> Result<Name, String> {
    let (service, prefix) =
        text.split_once('/').ok_or("write SERVICE/PREFIX, e.g. tv/203.0.113.0/24")?;
    Ok(Name { service: service.to_owned(), prefix: prefix.to_owned() })
}

fn knob(text: &str) -> Result<(String, f64), String> {
    let fail = || "write KNOB=VALUE, e.g. gamma=900".to_owned();
    let (knob, value) = text.split_once('=').ok_or_else(fail)?;
    Ok((knob.to_owned(), value.parse().map_err(|_| fail())?))
}
