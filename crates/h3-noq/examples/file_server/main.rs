//! Serves a folder by HTTP/3, each connection under a scheme of Trimtab's.
//!
//! ```sh
//! cargo run -p trimtab-h3-noq --example file_server -- --dir docs --cc mortise --report
//! ```
//!
//! The steering gets the size of each response as a live factor, and the playback buffer of a video
//! player that sends Common Media Client Data.

mod answer;
#[path = "../common/mod.rs"]
mod common;
mod kinds;
mod range;
mod site;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use common::Failure;
use common::server::{Options, Server};
use site::Site;

/// Serves a folder by HTTP/3, and steers the congestion control of each connection
#[derive(Debug, Parser)]
struct Arguments {
    /// Folder to serve
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    server: Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let site = Site::open(&arguments.dir)?;
    let server = Server::new(&arguments.server)?;
    server.print_address()?;
    let reports = arguments.server.report;
    let report = move |ended| {
        if reports {
            println!("{ended}");
        }
    };
    server.run(site, report).await
}
