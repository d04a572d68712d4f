//! The flags of `trimtab compare`.

use std::path::PathBuf;

use clap::Args;
use trimtab_lab::report::figure::{Kind, UnknownKind};
use trimtab_lab::report::picture::Format;
use trimtab_lab::scenario::{AppKind, Buffer, Delay, Mark, Part, Probability, TraceSource};
use trimtab_steer::scheme::Scheme;
use trimtab_units::{Duration, Rate};

use crate::args::{Transport, applications};
use crate::datapath;

/// Compare congestion controls by what users of an application experience.
///
/// Without any argument, runs the demo: downloads and video over generated cellular and Wi-Fi links.
/// Every scheme sees the same links, losses and requests, and the results are compared run by run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab compare --html report.html
  trimtab compare --app vod --cc cubic --cc bbr --cc mortise --traces traces/*.trace.gz
  trimtab compare --app download --cc copa:delta=0.1 --traces constant:12Mbit/s --rtt 20ms --rtt 80ms
  trimtab compare --scenario scenarios/mortise/grid.toml --json grid.json --out grid/
  trimtab compare --app bulk --cc bbr --traces constant:48Mbit/s --print-scenario > mine.toml
  trimtab compare --datapath kernel --app download --cc cubic --cc mortise --traces wifi:seed=1 --duration 30s
  trimtab compare --datapath quic --app web --cc cubic --cc mortise --traces wifi:seed=1 --duration 30s

A value that may be given several times is an axis of the grid: every combination is run.")]
pub(crate) struct Compare {
    /// The application of the users; may be given several times. `trimtab app list` describes the applications
    #[arg(long, value_name = "APP", value_parser = applications())]
    pub(crate) app: Vec<AppKind>,

    /// A congestion control: an algorithm with its settings (copa:mit, copa:delta=0.1), steering
    /// (mortise, mortise:sigma=0.3,cpd=0, mortise-disc), a learnt policy (muses, treeg), algorithms in turn
    /// (switch:cubic,bbr:every=20s, switch:cubic,bbr:part) or a bound (oracle:copa, oracle:copa:restart=0.5,
    /// oracle-dynamic:copa, omniscient); may be given several times. `trimtab cc list` describes them
    #[arg(long, value_name = "CC")]
    pub(crate) cc: Vec<Scheme>,

    /// Traces of the bottleneck: files in Mahimahi's format (plain or .gz), globs, or
    /// constant:12Mbit/s, step:12Mbit/s,48Mbit/s@20s, cellular:seed=1, wifi:seed=1, demo
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    pub(crate) traces: Vec<TraceSource>,

    /// Only the recordings of this part of the split, `train`, `validate` or `test`
    #[arg(long, value_name = "PART")]
    pub(crate) split: Option<Part>,

    /// What carries out the runs: `sim`, the simulator; `kernel`, the TCP of this machine over an
    /// emulated link, in real time, as root; `quic`, noq's QUIC over such a link, likewise;
    /// `quic-virtual`, noq's QUIC in virtual time; `s2n-virtual`, s2n-quic in virtual time;
    /// `webrtc`, calls to Chromium over such a link; or `webrtc-virtual`, WebRTC in virtual time
    #[arg(long, value_name = "DATAPATH", default_value = "sim", value_parser = datapath::parser())]
    pub(crate) datapath: &'static datapath::Entry,

    /// What carries the data of every flow [default: quic; tcp on the kernel]
    #[arg(long, value_name = "TRANSPORT")]
    pub(crate) transport: Option<Transport>,

    /// A workload file to replay with --app download: lines of `interval_ms size_bytes`
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,

    /// The QoE model: download, vod, web, or a formula in T (Mbit/s), D (s) and L (0 to 1)
    #[arg(long, value_name = "MODEL")]
    pub(crate) qoe: Option<String>,

    /// Base round-trip time, e.g. 20ms, or one that steps over and over, e.g. step:20ms@20s,150ms@20s;
    /// may be given several times
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Vec<Delay>,

    /// Size of the bottleneck's droptail buffer, e.g. 150KB, 2BDP or 100packets; may be given several
    /// times
    #[arg(long, value_name = "SIZE")]
    pub(crate) buffer: Vec<Buffer>,

    /// Random loss, e.g. 0.1%; may be given several times
    #[arg(long, value_name = "PERCENT")]
    pub(crate) loss: Vec<Probability>,

    /// Maximum extra delay per data packet, e.g. 5ms; may be given several times
    #[arg(long, value_name = "TIME")]
    pub(crate) jitter: Vec<Duration>,

    /// Which packets the bottleneck marks (ECN): a share, e.g. 10%, or those that arrive at a queue of
    /// this length or more, e.g. 20packets or 0.5BDP [default: none]
    #[arg(long, value_name = "WHICH")]
    pub(crate) mark: Option<Mark>,

    /// Flows of each scheme that share the link; may be given several times
    #[arg(long, value_name = "N")]
    pub(crate) flows: Vec<u32>,

    /// How long each run lasts, e.g. 120s
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,

    /// How many seeds each combination is run with
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u32>,

    /// The first seed; use other seeds for the evaluation than for the choice of settings
    #[arg(long, value_name = "SEED")]
    pub(crate) first_seed: Option<u64>,

    /// Leave out points of the grid where the mean rate of the trace divided by the flows is below
    /// this, e.g. 1Mbit/s; before --thin
    #[arg(long, value_name = "RATE")]
    pub(crate) share_min: Option<Rate>,

    /// Number of points of the grid to run, spread evenly [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) thin: Option<u32>,

    /// A scenario file; the flags above replace its settings
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,

    /// Write the scenario that corresponds to the flags, and run nothing
    #[arg(long)]
    pub(crate) print_scenario: bool,

    /// Runs at once [default: all cores; one on the kernel]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// Write the results as JSON; `-` for standard output, in place of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Draw a figure into a file that ends in .svg, .pdf or .png; may be given several times. KIND is
    /// `qoe` (means with intervals), `changes` (paired, with intervals), `cdf` (distributions over
    /// requests or chunks), `tradeoff` (throughput against delay), `ellipses`
    /// (the same over that of the best scheme of each place, with deviations), `series` (over time), `axis` (over the
    /// axis of the grid with several values), `period` (over selection periods), `switches` (what
    /// switches cost) or `completion` (completion times over the runs)
    #[arg(long, value_name = "KIND=FILE", value_parser = plot)]
    pub(crate) plot: Vec<(Kind, PathBuf)>,

    /// Write runs, requests and time series as Parquet files into a folder, and every figure as SVG,
    /// PDF and PNG into its subfolder `figures`
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// No progress bar
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Reads `KIND=FILE`.
fn plot(text: &str) -> Result<(Kind, PathBuf), String> {
    let (kind, file) = text
        .split_once('=')
        .ok_or_else(|| "it takes KIND=FILE, e.g. axis=figure.svg".to_owned())?;
    let kind = kind.parse().map_err(|e: UnknownKind| e.to_string())?;
    Ok((kind, picture(file)?))
}

/// Reads the name of a figure's file: its end is its format.
pub(crate) fn picture(file: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(file);
    match Format::of(&path) {
        Some(_) => Ok(path),
        None => Err(format!("{file}: name a file that ends in .svg, .pdf or .png")),
    }
}
