//! The flags of `trimtab cmcd`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use trimtab_units::Duration;

use crate::engine_args::EngineAt;

/// Report the QoE of video players to the engine of a fleet.
///
/// Players add Common Media Client Data (CMCD, CTA-5004) to their requests, in the query or in
/// headers. From an access log this computes the bitrate, the share of stalled time, the stalls and
/// the startup time of each session. Players may also post reports of what was shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trimtab cmcd show /var/log/nginx/access.log
  trimtab cmcd follow /var/log/nginx/cmcd.log --service tv --token-file /etc/trimtab/cmcd.token
  trimtab cmcd follow --listen 127.0.0.1:7490 --service tv --token-file /etc/trimtab/cmcd.token
  shipper | trimtab cmcd follow - --service tv --token-file cmcd.token --field time=ts")]
pub(crate) struct Cmcd {
    #[command(subcommand)]
    pub(crate) command: CmcdCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CmcdCommand {
    /// Follow a log, or listen to players, and report to the engine.
    Follow(Box<Follow>),
    /// Show the statistics of a log by interval and subnet, without an engine.
    Show {
        /// The log: JSON objects or the combined format, line by line; - for standard input
        #[arg(value_name = "LOG")]
        log: PathBuf,
        #[command(flatten)]
        lines: Lines,
        /// Length of the intervals
        #[arg(long, value_name = "TIME", default_value = "1min")]
        interval: Duration,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Follow {
    /// The log: JSON objects or the combined format, line by line; - for standard input
    #[arg(value_name = "LOG", required_unless_present = "listen")]
    pub(crate) log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) lines: Lines,
    /// Take in reports that players post (CMCD version 2, event mode) at this address, by HTTP
    /// without TLS
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// The header in which a proxy writes the address of the client that posts, e.g.
    /// X-Forwarded-For; its last address counts [default: who connects]
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub(crate) client_header: Option<String>,
    /// The service that the requests are of
    #[arg(long, value_name = "NAME")]
    pub(crate) service: String,
    #[command(flatten)]
    pub(crate) at: EngineAt,
    /// A file with an edge's token, which no agent or server uses
    #[arg(long, value_name = "FILE", required_unless_present = "certificate")]
    pub(crate) token_file: Option<PathBuf>,
    /// A folder of this process alone, for the last configurations and the place in the log
    #[arg(long, value_name = "DIR", default_value = "/var/lib/trimtab-cmcd")]
    pub(crate) folder: PathBuf,
    /// Time until the line of a request is in the log; shorter than the engine's grace
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) wait: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Lines {
    /// Only requests whose path begins with this [default: all]
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub(crate) path: String,
    /// Bits of the client's address that make an aggregate, IPv4 and IPv6, as the agent's rule has
    /// them
    #[arg(long, value_name = "BITS,BITS", default_value = "24,48", value_parser = prefix)]
    pub(crate) prefix: [u8; 2],
    /// A file of prefixes that are one aggregate, as the agent's rule has it [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) together: Option<PathBuf>,
    /// Name of a field of JSON, e.g. address=client_ip; may be given several times [default: names
    /// of nginx's variables]
    #[arg(long, value_name = "FIELD=NAME")]
    pub(crate) field: Vec<String>,
}

fn prefix(text: &str) -> Result<[u8; 2], String> {
    let fail = || "write two numbers, up to 32 and up to 128, e.g. 24,48".to_owned();
    let (four, six) = text.split_once(',').ok_or_else(fail)?;
    let bits = |text: &str, most: u8| text.parse().ok().filter(|bits| *bits <= most);
    Ok([bits(four, 32).ok_or_else(fail)?, bits(six, 128).ok_or_else(fail)?])
}
