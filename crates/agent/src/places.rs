//! Cgroups and network namespaces, which files name in the configuration and numbers in the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trimtab_tcp::Identity;
use trimtab_units::{Duration, Time};

use crate::config::{Matches, Rule};

/// Between looks for what was not there.
const AGAIN: Duration = Duration::from_secs(1);
/// Cgroups below one that are looked through.
const CGROUPS_MAX: usize = 10_000;

/// The numbers of what the rules name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    cgroups: BTreeMap<String, BTreeSet<u64>>,
    namespaces: BTreeMap<PathBuf, Option<u64>>,
    looked_at: Time,
}

impl Places {
    pub(crate) fn new(rules: &[Rule], now: Time) -> Self {
        let mut places = Self::default();
        for rule in rules {
            if let Some(cgroup) = &rule.matches.cgroup {
                places.cgroups.insert(cgroup.clone(), BTreeSet::new());
            }
            if let Some(netns) = &rule.matches.netns {
                places.namespaces.insert(netns.clone(), None);
            }
        }
        places.look(now);
        places
    }

    /// The first rule that a connection matches.
    pub(crate) fn rule_of(
        &mut self,
        identity: &Identity,
        rules: &[Rule],
        now: Time,
    ) -> Option<usize> {
        // A cgroup or namespace that was made since may be meant.
        let unknown =
            identity.cgroup.is_some_and(|id| !self.cgroups.values().any(|all| all.contains(&id)));
        let missing = self.namespaces.values().any(Option::is_none);
        let any = !self.cgroups.is_empty() || !self.namespaces.is_empty();
        if any && (unknown || missing) && now.since(self.looked_at) >= AGAIN {
            self.look(now);
        }
        rules.iter().position(|rule| self.matches(&rule.matches, identity))
    }

    fn matches(&self, matches: &Matches, identity: &Identity) -> bool {
        let port = identity.local.port();
        let in_cgroup = |path: &String| {
            self.cgroups.get(path).zip(identity.cgroup).is_some_and(|(all, id)| all.contains(&id))
        };
        let in_netns =
            |path: &PathBuf| self.namespaces.get(path) == Some(&Some(identity.netns_cookie));
        (matches.ports.is_empty() || matches.ports.iter().any(|ports| ports.contains(port)))
            && (matches.to.is_empty()
                || matches.to.iter().any(|p| p.contains(identity.remote.ip())))
            && matches.cgroup.as_ref().is_none_or(in_cgroup)
            && matches.netns.as_ref().is_none_or(in_netns)
    }

    fn look(&mut self, now: Time) {
        self.looked_at = now;
        if let Some(root) = cgroup_root() {
            for (path, ids) in &mut self.cgroups {
                *ids = cgroups_below(&root.join(path.trim_start_matches('/')));
            }
        }
        for (path, cookie) in &mut self.namespaces {
            *cookie = netns_cookie(path).ok();
        }
    }
}

/// Where the second version of the cgroup file system is.
fn cgroup_root() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let path = fields.next()?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(path))
    })
}

/// A cgroup and all below it, by their inodes, which the kernel numbers them by.
fn cgroups_below(folder: &Path) -> BTreeSet<u64> {
    let mut ids = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(metadata) = folder.metadata() else { continue };
        ids.insert(metadata.ino());
        if ids.len() == CGROUPS_MAX {
            break;
        }
        let entries = folder.read_dir().into_iter().flatten().flatten();
        folders.extend(
            entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
        );
    }
    ids
}

/// Runs something in another network namespace, on a thread of its own.
pub(crate) fn within<T: Send>(
    netns: &Path,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let file = File::open(netns)?;
    std::thread::scope(|scope| {
        scope
            .spawn(move || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            })
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread ended early")))
    })
}

/// The cookie of a network namespace, by which connections name theirs.
pub(crate) fn netns_cookie(netns: &Path) -> io::Result<u64> {
    within(netns, || {
        crate::sock_diag::netns_cookie(&socket(AddressFamily::INET, SocketType::DGRAM, None)?)
    })
}
