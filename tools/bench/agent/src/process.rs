//! What the kernel counts of a process.

use std::fs::read_to_string;

/// Ticks of `/proc/PID/stat` in a second: 100 on every architecture that Linux runs Trimtab on (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// Seconds of processor time that a process has used, of all its threads, in user space and in the kernel.
pub(crate) fn cpu_s(pid: u32) -> Option<f64> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold spaces; user and kernel time are the 12th and 13th field after it.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_S)
}

/// A line of `/proc/PID/status` in kB, as MB.
pub(crate) fn memory_mb(pid: u32, line: &str) -> Option<f64> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}
