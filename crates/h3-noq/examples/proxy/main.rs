//! Speaks HTTP/3 to clients, each connection under a scheme of Trimtab's, and HTTP/1.1 to an
//! origin.
//!
//! ```sh
//! cargo run -p trimtab-h3-noq --example proxy -- --origin 127.0.0.1:8080 --cc mortise --report
//! ```

mod body;
#[path = "../common/mod.rs"]
mod common;
mod forward;
mod headers;

use std::process::ExitCode;

use clap::Parser;
use common::Failure;
use common::server::{Options, Server};
use forward::Origin;
use http::uri::Authority;

/// Speaks HTTP/3 to clients and HTTP/1.1 to an origin, and steers the congestion control of each
/// client's connection
#[derive(Debug, Parser)]
struct Arguments {
    /// Where requests go, by HTTP/1.1: HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    origin: Authority,
    #[command(flatten)]
    server: Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let server = Server::new(&arguments.server)?;
    server.print_address()?;
    let reports = arguments.server.report;
    let report = move |ended| {
        if reports {
            println!("{ended}");
        }
    };
    let origin = Origin::new(arguments.origin);
    server.run(origin, report).await
}
