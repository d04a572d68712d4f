//! The same flow in ns-3, as a program of its own: `ns3/bulk.cc`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use thiserror::Error;

/// The compiled program.
#[derive(Clone, Debug)]
pub(crate) struct Ns3 {
    pub(crate) program: PathBuf,
}

/// It gave no result.
#[derive(Debug, Error)]
pub(crate) enum PeerError {
    #[error("cannot run {}: {source}; build it with `./dev bench`, or leave --ns3 away", program.display())]
    Start { program: PathBuf, source: std::io::Error },
    #[error("{} failed ({status}); run it by hand to see why, or leave --ns3 away", program.display())]
    Failed { program: PathBuf, status: std::process::ExitStatus },
    #[error(
        "{} printed {printed:?} where two numbers belong; build it anew with `./dev bench`",
        program.display()
    )]
    Output { program: PathBuf, printed: String },
}

impl Ns3 {
    /// Runs the flow; gives the packets that arrived, and the processor time of the simulation alone.
    pub(crate) fn run(
        &self,
        mbps: f64,
        rtt_ms: u64,
        queue_packets: u32,
        secs: u64,
    ) -> Result<(u64, Duration), PeerError> {
        let program = self.program.clone();
        let output = Command::new(&self.program)
            .args([
                mbps.to_string(),
                rtt_ms.to_string(),
                queue_packets.to_string(),
                secs.to_string(),
            ])
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| PeerError::Start { program: program.clone(), source })?;
        if !output.status.success() {
            return Err(PeerError::Failed { program, status: output.status });
        }
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<u64> = printed.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        match numbers[..] {
            [packets, ns] => Ok((packets, Duration::from_nanos(ns))),
            _ => Err(PeerError::Output { program, printed }),
        }
    }
}
