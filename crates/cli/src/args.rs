//! Every verb and flag, each declared once: help and completions come from here.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use trimtab_lab::run::pool::Effort;
use trimtab_lab::scenario::{
    AppKind, Buffer, Delay, Mark, Probability, TraceSource, TransportKind,
};
use trimtab_units::Duration;

pub(crate) use crate::cmcd_args::Cmcd;
pub(crate) use crate::compare_args::Compare;
use crate::compare_args::picture;
use crate::datapath;
pub(crate) use crate::engine_args::{
    AskEngine, Audit, AuditKind, Engine, EngineCommand, Order, Resume, TokenCommand,
};
pub(crate) use crate::leaderboard_args::Leaderboard;
pub(crate) use crate::reproduce_args::Reproduce;
pub(crate) use crate::study_args::{ExperimentCommand, RolloutCommand, Which};
pub(crate) use crate::trace_args::{Generate, Output, Random, Trace, TraceCommand};

/// Congestion control that serves what users feel: compare algorithms by quality of experience.
#[derive(Debug, Parser)]
#[command(name = "trimtab", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Box<Compare>),
    Trace(Trace),
    /// List schemes.
    #[command(subcommand)]
    Cc(Cc),
    /// List applications.
    #[command(subcommand)]
    App(AppCommand),
    /// Customization for a fleet of servers.
    #[command(subcommand)]
    Fleet(Fleet),
    Conform(Conform),
    Leaderboard(Leaderboard),
    Parity(Parity),
    Reproduce(Reproduce),
    Validate(Validate),
    Emu(Box<Emu>),
    /// Cleans up after an `emu` that was killed; not for users.
    #[command(hide = true)]
    EmuWatchdog {
        /// The network namespaces whose processes end with the emulator.
        #[arg(required = true)]
        namespaces: Vec<u64>,
    },
    Agent(Agent),
    Engine(Box<Engine>),
    Cmcd(Cmcd),
    /// Check what this machine supports of TCP tuning, what is missing, and what to do.
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// The machine's files; another folder's for tests
        #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
        root: PathBuf,
    },
    /// Write the manual pages into a folder.
    Manual {
        /// The folder; created where it is missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Write a completion script for a shell to standard output.
    #[command(
        after_help = "Examples:\n  trimtab completions bash > ~/.local/share/bash-completion/completions/trimtab\n  trimtab completions fish > ~/.config/fish/completions/trimtab.fish"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Tune the TCP connections of this machine, by a policy.
///
/// Without a verb, runs the daemon. It loads Trimtab's congestion control into the kernel, finds
/// every connection that runs it, and steers each by the first rule of the configuration that
/// matches. It needs root.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  trimtab agent --config /etc/trimtab/agent.toml
  trimtab agent check --config /etc/trimtab/agent.toml
  trimtab agent status
  trimtab agent flows --json
  trimtab agent why 192.0.2.7
  trimtab agent top

Signals: SIGHUP reads the configuration again, SIGTERM ends the agent; connections get back their own knobs."
)]
pub(crate) struct Agent {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/agent.toml")]
    pub(crate) config: PathBuf,

    #[command(subcommand)]
    pub(crate) command: Option<AgentCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Show the agent's state, with sums by rule.
    Status(AskAgent),
    /// List the connections that the agent steers.
    Flows(AskAgent),
    /// Explain the state of a connection by its latest decisions.
    Why {
        /// The connection's number, its address, or a part of the address that is unique
        flow: String,
        #[command(flatten)]
        ask: AskAgent,
    },
    /// Show the agent and its busiest connections live.
    ///
    /// Keys: s changes the order, p pauses, the arrows scroll, q ends. With --json, one line per
    /// update.
    Top {
        /// Time between two updates
        #[arg(long, value_name = "TIME", default_value = "1s")]
        interval: Duration,
        /// End after this number of updates; with --json only
        #[arg(long, value_name = "N", requires = "json")]
        looks: Option<u64>,
        #[command(flatten)]
        ask: AskAgent,
    },
    /// Pause steering: connections get back what they had before, and are measured.
    ///
    /// Sockets keep the algorithm that a rule gave them, with its own defaults.
    #[command(after_help = TARGETS)]
    Pause(OrderAgent),
    /// End the orders on a target, and re-arm the breaker of a rule.
    ///
    /// `resume all` ends all orders but exclusions, which are ended by their own names.
    #[command(after_help = TARGETS)]
    Resume(EndOrder),
    /// Leave a destination, a port or a cgroup alone: no rule applies there.
    ///
    /// Sockets to which a rule gave an algorithm get back their former one, also open ones.
    #[command(after_help = TARGETS)]
    Exclude(OrderAgent),
    /// Reset knobs to their defaults, and forget what was learnt; steering begins anew.
    #[command(after_help = TARGETS)]
    Reset(EndOrder),
    /// Give sockets back their former algorithm at once, also open ones.
    ///
    /// No rule applies to them until `trimtab agent resume`.
    #[command(after_help = TARGETS)]
    Restore(OrderAgent),
    /// Check a configuration, without starting an agent or changing anything.
    Check {
        /// The configuration
        #[arg(long, value_name = "FILE", default_value = "/etc/trimtab/agent.toml")]
        config: PathBuf,
    },
    /// Remove Trimtab's congestion control from the kernel, when no agent runs.
    ///
    /// Open connections that run it keep it, with their own knobs, until they close. Sockets to which
    /// a rule with `assign` gave it get back their earlier algorithm.
    Unload {
        /// The configuration; needed where it names another folder than the default, or network
        /// namespaces in its rules
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// What `trimtab agent` gives orders about.
const TARGETS: &str = "Targets:
  all                                    every connection
  rule:NAME                              those of a rule
  flow:NUMBER                            one, by its number in `trimtab agent flows`
  192.0.2.0/24, 2001:db8::/48, ADDRESS   those to a destination
  port:NUMBER                            those with a local port
  cgroup:/PATH                           those of a cgroup and all below it

Orders act at once, on open connections too, and outlive the agent's restart. `trimtab agent
status` lists them. Root may give them, and the group that [sockets] operators names.";

/// An order to the agent.
#[derive(Debug, Args)]
pub(crate) struct OrderAgent {
    /// Which connections
    #[arg(value_name = "TARGET")]
    pub(crate) target: trimtab_agent::Target,

    /// How long it is in force, e.g. 10min [default: until it is resumed]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasts: Option<Duration>,

    #[command(flatten)]
    pub(crate) ask: AskAgent,
}

/// An order to the agent that does not last.
#[derive(Debug, Args)]
pub(crate) struct EndOrder {
    /// Which connections
    #[arg(value_name = "TARGET")]
    pub(crate) target: trimtab_agent::Target,

    #[command(flatten)]
    pub(crate) ask: AskAgent,
}

/// How to ask the agent.
#[derive(Debug, Args)]
pub(crate) struct AskAgent {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// The agent's control socket
    #[arg(long, value_name = "SOCKET", default_value = "/run/trimtab/agent.sock")]
    pub(crate) socket: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    Simulate(FleetSimulate),
    Real(FleetReal),
}

/// Run a fleet on this machine's kernel: an engine, edges with agents, and clients behind emulated links that differ.
///
/// The fleet learns for a while. Then the learnt knobs, the initial ones and other algorithms take
/// turns with the same links and downloads. Needs root; removes everything it made at the end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo trimtab fleet real --scenario scenarios/kernel/fleet.toml --json kernel.json --plot kernel.svg
  sudo trimtab fleet real --scenario scenarios/kernel/fleet.toml --learn 2min --rounds 4 --keep /tmp/fleet

`docs/reference/fleet-on-the-kernel.md` describes scenario files and results.")]
pub(crate) struct FleetReal {
    /// The scenario file
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,

    /// How long the fleet learns, e.g. 8min [default: the scenario's]
    #[arg(long, value_name = "TIME")]
    pub(crate) learn: Option<Duration>,

    /// Rounds of the comparison; 0: none [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,

    /// Write the results as JSON; `-` for standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Draw what each edge learnt over time into a file that ends in .svg, .pdf or .png
    #[arg(long, value_name = "FILE", value_parser = picture)]
    pub(crate) plot: Option<PathBuf>,

    /// Keep configurations, logs and the engine's store in this folder, which must not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Simulate a fleet: engine, edges and learners in virtual time on simulated links.
///
/// Compares the learner with the best fixed configuration of each aggregate and context in hindsight, the
/// best single one for all, random search, an epsilon-greedy grid, no adaptation, and other algorithms.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab fleet simulate --scenario scenarios/fleet/downloads.toml
  trimtab fleet simulate --scenario scenarios/fleet/policing.toml --seed 2 --json policing.json
  trimtab fleet simulate --scenario scenarios/fleet/downloads.toml --aggregates 10 --duration 48h --plot regret.svg
  trimtab fleet simulate --scenario scenarios/fleet/tv.toml --aggregates 30 --duration 72h --seeds 21..30 --out tv
  trimtab fleet simulate --scenario scenarios/fleet/downloads.toml --aggregates 4 --scheme 'Bayesian=python3 python/trimtab/bayes.py'

`docs/concepts/customize.md` describes scenario files of fleets.")]
pub(crate) struct FleetSimulate {
    /// The scenario file
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,

    /// The seed of links, connections and draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Simulate a fleet with each of these seeds, both ends included, e.g. 21..30, and sum up all
    #[arg(long, value_name = "A..B", value_parser = seeds, conflicts_with = "seed")]
    pub(crate) seeds: Option<RangeInclusive<u64>>,

    /// Keep the figures of each seed in this folder; a run that was stopped goes on from there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Number of aggregates [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) aggregates: Option<u32>,

    /// Connections of each aggregate per interval; more connections, less noise in the rewards
    /// [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) connections: Option<u32>,

    /// How long the fleet runs in virtual time, e.g. 168h [default: the scenario's]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,

    /// After this time of the run, e.g. 24h, join aggregates that share a bottleneck by the log, as
    /// `trimtab engine shared` finds them. Needs 10 aggregates and 48 intervals [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) together_after: Option<Duration>,

    /// Begin with what another fleet found, as --save-prior wrote it, in place of the scenario's
    /// prior [default: the scenario's]
    #[arg(long, value_name = "FILE")]
    pub(crate) prior: Option<PathBuf>,

    /// Write what the aggregates found together into this file, as tables `[[prior]]` for the
    /// description of a service
    #[arg(long, value_name = "FILE")]
    pub(crate) save_prior: Option<PathBuf>,

    /// Add a scheme that another program computes. The program is started for each aggregate, reads
    /// `{"begin": …}`, `{"choose": CONTEXT}` and `{"learn": …}` line by line, and answers each
    /// `choose` with a list of numbers from 0 to 1, one for each knob
    #[arg(long, alias = "contender", value_name = "NAME=COMMAND", value_parser = scheme)]
    pub(crate) scheme: Vec<(String, String)>,

    /// How long such a program may take for an answer, e.g. 5s; longer ends the simulation with an
    /// error
    #[arg(long, value_name = "TIME", alias = "contender-timeout", default_value = "60s")]
    pub(crate) scheme_timeout: Duration,

    /// Write the results as JSON; `-` for standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Draw reward and regret over time into a file that ends in .svg, .pdf or .png
    #[arg(long, value_name = "FILE", value_parser = picture)]
    pub(crate) plot: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// How to go about many runs.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// Runs at once [default: all cores]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// No progress bar
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Work {
    pub(crate) fn effort(&self) -> Effort {
        Effort { jobs: self.jobs.map(usize::from), quiet: self.quiet }
    }
}

/// Check congestion controllers against their specifications, and for defects met in the field.
///
/// Each check puts a connection on a path in virtual time, or that of the kernel on one in real time,
/// measures a behaviour that shows from outside, and gives a verdict. Ends with exit code 1 when an
/// algorithm of Trimtab fails.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab conform
  trimtab conform --subject sim:cubic --subject noq:cubic --check cubic-idle
  trimtab conform --subject noq:trimtab/copa --json copa.json
  sudo trimtab conform --subject kernel:cubic --check reno-friendly-beyond
  trimtab conform --list

`docs/reference/conformance.md` has the verdicts, and what they say of noq, quinn and Linux.")]
pub(crate) struct Conform {
    /// What is checked: sim:ALGORITHM, Trimtab's in the simulator; noq:trimtab/ALGORITHM, Trimtab's
    /// on the QUIC stack noq; noq:newreno, noq:cubic or noq:bbr3, noq's own; quinn:newreno,
    /// quinn:cubic or quinn:bbr, quinn's own; kernel:cubic, kernel:reno or kernel:bbr, Linux's own,
    /// and kernel:trimtab/ALGORITHM, Trimtab's in eBPF, both in real time and as root. Repeat for
    /// several [default: the main ones of each in virtual time]
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) subject: Vec<String>,

    /// A check. Repeat for several [default: all]
    #[arg(long, value_name = "CHECK", value_parser = checks())]
    pub(crate) check: Vec<String>,

    /// Describe the checks, and check nothing
    #[arg(long, conflicts_with_all = ["subject", "json"])]
    pub(crate) list: bool,

    /// Write the verdicts as JSON; `-` for standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// The checks as values of an option.
fn checks() -> impl TypedValueParser<Value = String> {
    let checks = trimtab_lab::conform::checks();
    let names = checks.map(|check| PossibleValue::new(check.name).help(check.about));
    PossibleValuesParser::new(names)
}

/// Compare the simulator with another datapath: the kernel, or noq.
///
/// Repeats the runs of a comparison on that datapath in the simulator, or on another model, and
/// prints how both differ. Ends with exit code 1 when the median of a quantity is out of its band.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab compare --datapath kernel --app download --cc cubic --cc mortise --traces wifi:seed=1 --json kernel.json
  trimtab parity kernel.json
  trimtab compare --datapath quic-virtual --scenario scenarios/quic/parity.toml --json noq.json
  trimtab parity noq.json
  trimtab compare --datapath quic --scenario scenarios/quic/sockets.toml --json quic.json
  trimtab parity quic.json --model quic-virtual
  trimtab compare --datapath webrtc-virtual --app conference --cc gcc --traces wifi:seed=1 --json calls.json
  trimtab parity calls.json")]
pub(crate) struct Parity {
    /// The result of `compare --json` on another datapath than the simulator; its trace paths are
    /// relative to the working directory
    #[arg(value_name = "FILE")]
    pub(crate) comparison: PathBuf,

    /// What repeats the runs, and is judged by them
    #[arg(long, value_name = "DATAPATH", default_value = "sim", value_parser = datapath::parser())]
    pub(crate) model: &'static datapath::Entry,

    /// Write both sides as JSON; `-` for standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) work: Work,
}

/// Compare the simulator with measurements of Linux TCP over Mahimahi.
///
/// Simulates every measured cell, prints the differences as a page in Markdown, and ends with exit
/// code 1 when the median of a metric is out of its band.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  trimtab validate --ground-truth groundtruth/ --traces traces/ > docs/reference/validation.md")]
pub(crate) struct Validate {
    /// The folder with bulk.csv, download.csv, download-sessions.csv and links/
    #[arg(long, value_name = "DIR")]
    pub(crate) ground_truth: PathBuf,

    /// A folder below which the recorded traces lie as NAME.trace.gz
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: PathBuf,

    /// Write the comparison as JSON; `-` for standard output, in place of the page
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Run a program behind a link, in real time: unmodified programs, real sockets.
///
/// The program runs in a network namespace of its own and reaches the rest of this machine through the
/// link. Data to the program is the downlink. At the end a summary of the link and of its accuracy
/// goes to standard error; the exit code is the program's.
///
/// The address of the other side is in the program's environment as TRIMTAB_SERVER. Links nest: run
/// the command again inside. Without root the other side is empty, and needs a program of its own
/// (--server).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab emu --trace traces/lte.trace.gz --delay 10ms --buffer 150KB
  trimtab emu --trace constant:12Mbit/s --delay 20ms --buffer 2BDP --loss 0.1% -- sh -c 'curl http://$TRIMTAB_SERVER/'
  trimtab emu --trace wifi:seed=1 --delay 10ms --server 'python3 -m http.server 80' \\
    -- sh -c 'curl -o /dev/null http://$TRIMTAB_SERVER/'")]
pub(crate) struct Emu {
    /// The downlink: a file in Mahimahi's format (plain or .gz), constant:12Mbit/s,
    /// step:12Mbit/s,48Mbit/s@20s, cellular:seed=1 or wifi:seed=1 [default: no limit]
    #[arg(long, value_name = "TRACE")]
    pub(crate) trace: Option<TraceSource>,

    /// The uplink [default: no limit]
    #[arg(long, value_name = "TRACE")]
    pub(crate) up: Option<TraceSource>,

    /// Propagation delay in each direction, e.g. 10ms, or one that steps over and over, e.g.
    /// step:10ms@20s,75ms@20s
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) delay: Delay,

    /// Size of the downlink's droptail buffer, e.g. 150KB, 2BDP or 100packets [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) buffer: Option<Buffer>,

    /// Size of the uplink's droptail buffer [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) up_buffer: Option<Buffer>,

    /// Random loss on the downlink, e.g. 0.1%
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub(crate) loss: Probability,

    /// Which packets of ECN-capable connections the downlink marks: a share, e.g. 10%, or those that
    /// arrive at a queue of this length or more, e.g. 20packets or 0.5BDP [default: none]
    #[arg(long, value_name = "WHICH")]
    pub(crate) mark: Option<Mark>,

    /// Random loss on the uplink
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub(crate) up_loss: Probability,

    /// The seed of the random losses
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Count bytes as Mahimahi does: 4 more per packet, 1504 per opportunity of a trace
    #[arg(long)]
    pub(crate) mahimahi: bool,

    /// A shell command for the other side, which then is a network namespace of its own; the program is
    /// started when the server listens
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<String>,

    /// Write packets.csv, and down.log and up.log in the form of Mahimahi's mm-link, into a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,

    /// Write the link's summary as JSON; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Print no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// The program and its arguments [default: $SHELL]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// The applications as values of an option.
pub(crate) fn applications() -> impl TypedValueParser<Value = AppKind> {
    let names = AppKind::all().map(|kind| PossibleValue::new(kind.name()).help(kind.info().about));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<AppKind>())
}

/// Reads `NAME=COMMAND`.
/// The most seeds of one command.
const SEEDS_MAX: u64 = 1000;

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let ends = text.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..=b.parse().ok()?));
    ends.filter(|seeds| !seeds.is_empty() && seeds.end() - seeds.start() < SEEDS_MAX).ok_or_else(
        || format!("it takes A..B, e.g. 21..30: whole numbers that ascend, at most {SEEDS_MAX}"),
    )
}

fn scheme(text: &str) -> Result<(String, String), String> {
    let (name, command) = text
        .split_once('=')
        .filter(|(name, command)| !name.is_empty() && !command.trim().is_empty())
        .ok_or_else(|| "it takes NAME=COMMAND, e.g. mine=./choose.py".to_owned())?;
    Ok((name.to_owned(), command.to_owned()))
}

/// A transport protocol on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Transport {
    /// QUIC by its RFCs
    Quic,
    /// QUIC as in the stack noq, whose pacer saves up what it did not send
    Noq,
    /// TCP as in Linux: one byte stream, delivered in order
    Tcp,
}

impl From<Transport> for TransportKind {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Quic => Self::Quic,
            Transport::Noq => Self::Noq,
            Transport::Tcp => Self::Tcp,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    /// List applications with their settings and the QoE models that suit them.
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print distributions of the gaps between requests and of the sizes of messages, without a network.
    ///
    /// `trimtab reproduce mortise/fig19` and `floo/fig5` compare them with what the papers state.
    #[command(
        after_help = "Examples:\n  trimtab app cdf download\n  trimtab app cdf web --set pauses=false --output web.svg"
    )]
    Cdf {
        /// An application with requests by a schedule: download or web
        #[arg(value_name = "APP", value_parser = applications())]
        app: AppKind,
        /// A setting of the application, as in a scenario; may be given several times
        #[arg(long, value_name = "NAME=VALUE")]
        set: Vec<String>,
        /// Length of a session
        #[arg(long, value_name = "TIME", default_value = "206s")]
        length: Duration,
        /// How many sessions, with the seeds from 0 on
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        sessions: u64,
        /// As JSON, with every value
        #[arg(long)]
        json: bool,
        /// Draw the distributions into a file that ends in .svg, .pdf or .png
        #[arg(long, short, value_name = "FILE", value_parser = picture)]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cc {
    /// List algorithms, steering and bounds with their settings.
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print trimtab_plugin.h, the interface of `--cc plugin:FILE`.
    Header,
}
