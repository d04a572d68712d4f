//! Whether the limit of memory under which the agent runs fits its slots: the kernel counts its maps,
//! and what it keeps for each connection, as the agent's own.

use std::fs::read_to_string;
use std::path::Path;

use trimtab_units::Bytes;

/// The agent itself, its events, the trees of models and the knobs of destinations.
const BASE: Bytes = Bytes::new(40_000_000);
/// A slot, what the kernel keeps next to it, and what the agent keeps of a busy connection.
const OF_SLOT: Bytes = Bytes::new(7000);
/// What the kernel keeps of a connection without a slot, and how many there are for each slot.
const OF_WAITING: Bytes = Bytes::new(2048);
const WAITING: u64 = 4;

/// What so many slots may take in all, with four times as many connections that have not sent enough
/// for one.
fn need(slots: u32) -> Bytes {
    BASE + (OF_SLOT + OF_WAITING * WAITING) * u64::from(slots)
}

/// What to tell of a limit that is too low; `None` where it is not.
fn told(limit: Bytes, slots: u32) -> Option<String> {
    let need = need(slots);
    (limit < need).then(|| {
        let mb = |bytes: Bytes| bytes.get().div_ceil(1_000_000);
        let wanted = need.get().div_ceil(64 << 20) * 64;
        format!(
            "{slots} slots may take {} MB, and the agent's cgroup may use {} MB: the kernel would \
             kill the agent; set MemoryMax={wanted}M (`systemctl edit trimtab-agent`), or lower \
             datapath.slots",
            mb(need),
            mb(limit)
        )
    })
}

/// The lowest limit of these cgroups, as a process lists them, below this folder.
fn limit(list: &str, root: &Path) -> Option<Bytes> {
    let of_line = |line: &str| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let group = group.trim_start_matches('/');
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        // Each group above limits it, too.
        let all = Path::new(group).ancestors().map(|group| folder.join(group).join(file));
        let bytes = |path| read_to_string(path).ok()?.trim().parse::<u64>().ok();
        all.filter_map(bytes).min()
    };
    list.lines().filter_map(of_line).min().map(Bytes::new)
}

/// What is wrong with the limit under which this process runs.
pub(super) fn trouble(slots: u32) -> Option<String> {
    let list = read_to_string("/proc/self/cgroup").ok()?;
    told(limit(&list, Path::new("/sys/fs/cgroup"))?, slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_unit_that_ships_fits_the_slots_that_are_the_default() {
        let unit = include_str!("trimtab-agent.service");
        let max = unit.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.strip_suffix('M'));
        let max = Bytes::new(max.and_then(|mb| mb.parse().ok()).unwrap_or(0) << 20);
        let config = include_str!("agent.toml");
        let config = Config::parse(Path::new("agent.toml"), config).unwrap();
        assert_eq!(told(max, config.datapath.slots), None);
        let trouble = told(max, config.datapath.slots * 4).expect("too many");
        assert!(trouble.contains("set MemoryMax=1024M"), "{trouble}");
        assert!(trouble.starts_with("65536 slots may take 1036 MB"), "{trouble}");
    }

    #[test]
    fn the_lowest_limit_of_all_groups_around_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("system.slice/agent");
        std::fs::create_dir_all(&group).unwrap();
        let list = "1:name=systemd:/\n0::/system.slice/agent\n";
        assert_eq!(limit(list, root.path()), None);
        std::fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit(list, root.path()), None);
        std::fs::write(group.join("memory.max"), "3000000\n").unwrap();
        std::fs::write(root.path().join("system.slice/memory.max"), "2000000\n").unwrap();
        assert_eq!(limit(list, root.path()), Some(Bytes::new(2_000_000)));
        // Of the first version of cgroups.
        let old = root.path().join("memory/a");
        std::fs::create_dir_all(&old).unwrap();
        std::fs::write(old.join("memory.limit_in_bytes"), "1000000\n").unwrap();
        assert_eq!(limit("4:memory:/a\n0::/", root.path()), Some(Bytes::new(1_000_000)));
    }
}
