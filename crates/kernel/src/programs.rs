//! What the eBPF programs take, as the kernel counts it.

use libbpf_rs::query::ProgInfoIter;
use trimtab_units::Duration;

/// Whether it counts.
const COUNTS: &str = "/proc/sys/kernel/bpf_stats_enabled";
/// How the names of ours begin.
const OURS: &[u8] = b"tt_";

/// Runs of Trimtab's eBPF programs, and the time that they took, of all that are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTime {
    /// How often any of them ran since it was loaded.
    pub runs: u64,
    /// How long, all in all.
    pub time: Duration,
}

/// What the programs took; `None` where the kernel does not count it
/// (`sysctl kernel.bpf_stats_enabled=1` lets it, at a cost of some 20 ns for each run), or does not
/// report them.
pub fn program_time() -> Option<ProgramTime> {
    use std::os::unix::ffi::OsStrExt as _;
    let counts = std::fs::read_to_string(COUNTS).ok()?.trim() == "1";
    let ours = ProgInfoIter::default().filter(|program| program.name.as_bytes().starts_with(OURS));
    counts.then(|| {
        ours.fold(ProgramTime::default(), |sum, program| ProgramTime {
            runs: sum.runs + program.run_cnt,
            time: sum.time + Duration::from_nanos(program.run_time_ns),
        })
    })
}
