//! What the kernel counts of an agent: its loader, and the steerer that this has started.

use std::fs::{create_dir, read_dir, read_to_string, remove_dir};
use std::path::{Path, PathBuf};

/// Ticks of `/proc/PID/stat` in a second: 100 on every architecture that Linux runs Trimtab on (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// A process and those that it has started; `None` where it is gone.
fn family(pid: u32) -> Option<Vec<u32>> {
    let mut all = vec![pid];
    for thread in read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let children = read_to_string(thread.path().join("children")).ok()?;
        all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Some(all)
}

/// Seconds of processor time that an agent has used, of all its threads, in user space and in the kernel.
pub(crate) fn cpu_s(agent: u32) -> Option<f64> {
    family(agent)?.into_iter().map(cpu_s_of).sum()
}

fn cpu_s_of(pid: u32) -> Option<f64> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold spaces; user and kernel time are the 12th and 13th field after it.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_S)
}

/// The sum of a line of `/proc/PID/status` in kB, as MB.
pub(crate) fn memory_mb(agent: u32, line: &str) -> Option<f64> {
    family(agent)?.into_iter().map(|pid| memory_mb_of(pid, line)).sum()
}

fn memory_mb_of(pid: u32, line: &str) -> Option<f64> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}

/// A cgroup whose memory is counted, with what the kernel keeps for its processes, as eBPF maps; gone
/// when dropped, after its processes.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
    usage: &'static str,
}

impl Group {
    /// `None` where the system has no such cgroups, or the caller may not make one.
    pub(crate) fn new() -> Option<Self> {
        let name = format!("trimtab-bench-{}", std::process::id());
        let second = Path::new("/sys/fs/cgroup");
        let has_memory = |all: String| all.split_whitespace().any(|one| one == "memory");
        let group = if read_to_string(second.join("cgroup.subtree_control")).is_ok_and(has_memory) {
            Self { folder: second.join(name), usage: "memory.current" }
        } else {
            // Of the first version of cgroups.
            Self { folder: second.join("memory").join(name), usage: "memory.usage_in_bytes" }
        };
        create_dir(&group.folder).ok()?;
        group.folder.join(group.usage).exists().then_some(group)
    }

    /// Who writes its number there is in it.
    pub(crate) fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// What is in use.
    pub(crate) fn memory_mb(&self) -> Option<f64> {
        let bytes: f64 = read_to_string(self.folder.join(self.usage)).ok()?.trim().parse().ok()?;
        Some(bytes / 1e6)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Where a process of it is left, so is the folder.
        let _ = remove_dir(&self.folder);
    }
}
