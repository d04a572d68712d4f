//! Processor time: what a run costs, whatever else runs on the machine.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What this process has used of the processors so far. The benchmarks have one thread, so it is that
/// of one core.
pub(crate) fn time() -> Duration {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
}

/// What `work` uses, and what it gives.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let before = time();
    let result = work();
    (time().saturating_sub(before), result)
}

/// The processor's name, for the record.
pub(crate) fn name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| "unknown".into(), |(_, name)| name.to_owned())
}
