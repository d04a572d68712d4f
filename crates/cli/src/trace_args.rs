//! The flags of `trimtab trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trimtab_lab::scenario::TraceSource;
use trimtab_units::{Duration, Rate};

use crate::compare_args::picture;

/// Describe, make and fetch traces of links.
#[derive(Debug, Args)]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Describe traces: length, mean rate, spread, outages.
    #[command(
        after_help = "Examples:\n  trimtab trace info traces/*.trace.gz\n  trimtab trace info --json wifi:seed=3"
    )]
    Info {
        /// Files, globs or generated links
        #[arg(required = true)]
        traces: Vec<TraceSource>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Draw the rate of a trace over time, as HTML or SVG by the name of the output.
    #[command(after_help = "Example:\n  trimtab trace plot traces/lte.trace.gz --output lte.svg")]
    Plot {
        /// A file or generated link
        trace: TraceSource,
        /// Where to: a name that ends in .svg, .pdf, .png or .html
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Find the stretches of steady rate in traces (PELT): how long they last, and how far neighbours
    /// differ.
    ///
    /// The shares printed are those that Mortise states of production links (appendix A). The paper
    /// gives neither cost nor penalty of its segmentation; with another penalty the shares differ.
    #[command(
        after_help = "Examples:\n  trimtab trace segments traces/*.trace.gz --output segments.svg\n  trimtab trace segments --json --penalty 1 cellular:seed=3"
    )]
    Segments {
        /// Files, globs or generated links
        #[arg(required = true)]
        traces: Vec<TraceSource>,
        /// Length of the bins whose rates are segmented
        #[arg(long, value_name = "TIME", default_value = "500ms")]
        bin: Duration,
        /// The cost of a change, in squared logarithms of the rate: of 0.5, a change by half counts when
        /// it lasts six bins on both sides
        #[arg(long, value_name = "COST", default_value_t = 0.5, value_parser = positive)]
        penalty: f64,
        /// As JSON, with every value
        #[arg(long)]
        json: bool,
        /// Draw the distributions into a file that ends in .svg, .pdf or .png
        #[arg(long, short, value_name = "FILE", value_parser = picture)]
        output: Option<PathBuf>,
    },
    /// Convert between Mahimahi's format and tables of rates (CSV).
    ///
    /// The table has two columns, time in seconds and rate in Mbit/s.
    #[command(
        after_help = "Examples:\n  trimtab trace convert log.csv link.trace.gz\n  trimtab trace convert link.trace.gz log.csv --bin 100ms"
    )]
    Convert {
        /// A trace, or a table of rates (.csv)
        from: PathBuf,
        /// A table of rates (.csv), or else a trace, compressed if it ends in .gz
        to: PathBuf,
        /// Length of a row when writing a table
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        bin: Duration,
    },
    /// Make a trace.
    #[command(subcommand)]
    Generate(Generate),
    /// Fetch a public set of traces from its authors' repository.
    ///
    /// Without a set, lists them with their licences.
    #[command(
        after_help = "Example:\n  trimtab trace fetch nyc --to traces/nyc\n  trimtab compare --traces 'traces/nyc/*'"
    )]
    Fetch {
        /// Which set
        set: Option<String>,
        /// The folder to put it in [default: `traces/SET`]
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Where the files of repositories are served
        #[arg(long, hide = true, env = "TRIMTAB_FETCH_FROM", default_value = trimtab_lab::fetch::BASE_URL)]
        from: String,
    },
}

/// What a generated link looks like.
#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Like an LTE link
    Cellular(Random),
    /// Like a Wi-Fi link
    Wifi(Random),
    /// A constant rate
    Constant {
        /// The rate, e.g. 12Mbit/s
        #[arg(long)]
        rate: Rate,
        #[command(flatten)]
        output: Output,
    },
    /// Rates that follow each other, over and over
    Step {
        /// The rates, e.g. 12Mbit/s,48Mbit/s
        #[arg(long, value_delimiter = ',', required = true)]
        rates: Vec<Rate>,
        /// How long each lasts, e.g. 20s
        #[arg(long)]
        each: Duration,
        #[command(flatten)]
        output: Output,
    },
}

/// Settings of a generator.
#[derive(Debug, Args)]
pub(crate) struct Random {
    /// The seed: the same seed makes the same trace
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The length before it repeats
    #[arg(long, default_value = "180s")]
    pub(crate) length: Duration,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Where a made trace goes.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// The file, compressed if it ends in .gz [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Reads a number above zero.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{text:?} is no number above 0"))
}
