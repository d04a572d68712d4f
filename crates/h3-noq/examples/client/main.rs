//! Fetches URLs by HTTP/3, all of a server's at once over one connection.
//!
//! ```sh
//! cargo run -p trimtab-h3-noq --example client -- --insecure https://localhost:4433/README.md
//! ```

mod fetch;
mod session;
mod trust;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use http::Uri;
use trust::Trust;

/// What the program ends with.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Fetches URLs by HTTP/3, all of a server's at once over one connection
#[derive(Debug, Parser)]
struct Arguments {
    /// What to fetch: https://HOST[:PORT]/PATH
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Uri>,
    /// Folder for what arrives, by the last part of each URL; default: it is discarded
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Scheme for what this client sends, e.g. bbr3; the server's decides how fast it fetches
    #[arg(long, value_name = "SCHEME", default_value = "cubic")]
    cc: String,
    /// Trust any certificate
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Trust the certificates in this file, in PEM; default: those of Mozilla's programme
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all were fetched.
async fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let trust = match &arguments.ca {
        Some(file) => Trust::file(file)?,
        None if arguments.insecure => Trust::Anybody,
        None => Trust::Mozilla,
    };
    let mut all = true;
    for fetched in
        fetch::all(&arguments.urls, &arguments.cc, trust, arguments.out.as_deref()).await?
    {
        match fetched {
            Ok(fetched) => {
                all &= fetched.status.is_success();
                println!("{fetched}");
            }
            Err(problem) => {
                all = false;
                eprintln!("error: {problem}");
            }
        }
    }
    Ok(all)
}
