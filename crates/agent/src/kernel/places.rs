//! Cgroups and network namespaces, which files name in the configuration and numbers in the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trimtab_kernel::{Choice, Gives, Identity, Socket, Towards};
use trimtab_units::{Duration, Time};

use crate::config::{Matches, Rule};
use crate::kernel::sock_diag::own_netns;
use crate::loader::Client;

/// Between looks for what was not there.
const AGAIN: Duration = Duration::from_secs(1);
/// The kernel's number of the root cgroup.
const ROOT_CGROUP: u64 = 1;
/// Cgroups below one that are looked through.
const CGROUPS_MAX: usize = 10_000;

/// Who enters network namespaces to ask for their cookies.
#[derive(Clone, Debug, Default)]
pub(crate) enum Namespaces {
    /// This process, which may.
    #[default]
    Here,
    /// The loader.
    Loader(Arc<Client>),
}

/// The numbers of what the rules name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    cgroups: BTreeMap<String, BTreeSet<u64>>,
    namespaces: BTreeMap<PathBuf, Option<u64>>,
    asked: Namespaces,
    /// The agent's own network namespace: that of rules which name neither a namespace nor a
    /// cgroup. `None` where the kernel does not tell it; then these rules are about every
    /// namespace.
    own: Option<u64>,
    looked_at: Time,
}

/// What rules look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    port: u16,
    /// `None` of a socket that listens: it has connections to anywhere.
    remote: Option<IpAddr>,
    cgroup: Option<u64>,
    netns: u64,
}

impl Who {
    /// Connections to come; what they are not told apart by no rule looks at.
    pub(crate) fn towards(towards: &Towards) -> Self {
        let cgroup = Some(towards.cgroup()).filter(|id| *id != 0);
        Self { port: towards.port(), remote: Some(towards.base()), cgroup, netns: towards.netns() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn netns(&self) -> u64 {
        self.netns
    }

    pub(crate) fn cgroup(&self) -> Option<u64> {
        self.cgroup
    }
}

impl From<&Identity> for Who {
    fn from(identity: &Identity) -> Self {
        Self {
            port: identity.local.port(),
            remote: Some(identity.remote.ip()),
            cgroup: identity.cgroup,
            netns: identity.netns_cookie,
        }
    }
}

impl From<&Socket> for Who {
    fn from(socket: &Socket) -> Self {
        Self {
            port: socket.local.port(),
            remote: socket.remote.map(|remote| remote.ip()),
            cgroup: socket.cgroup,
            netns: socket.netns_cookie,
        }
    }
}

impl Places {
    pub(crate) fn new(rules: &[Rule], asked: Namespaces, now: Time) -> Self {
        let mut places = Self { own: own_netns(), asked, ..Self::default() };
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

    /// Who enters network namespaces.
    pub(crate) fn asked(&self) -> Namespaces {
        self.asked.clone()
    }

    /// The first rule that a connection matches.
    pub(crate) fn rule_of(&mut self, who: &Who, rules: &[Rule], now: Time) -> Option<usize> {
        self.refresh(who, now);
        rules.iter().position(|rule| self.matches(&rule.matches, who))
    }

    /// The rules of the connections that a socket may accept: any of these, and no other; empty when it may accept some
    /// that no rule is for.
    pub(crate) fn rules_of_listener(&mut self, who: &Who, rules: &[Rule], now: Time) -> Vec<usize> {
        self.refresh(who, now);
        let mut all = Vec::new();
        for (place, rule) in rules.iter().enumerate() {
            if self.matches(&rule.matches, who) {
                all.push(place);
                if rule.matches.to.is_empty() {
                    return all;
                }
            }
        }
        Vec::new()
    }

    /// A cgroup or namespace that was made since the last look may be meant.
    fn refresh(&mut self, who: &Who, now: Time) {
        let unknown =
            who.cgroup.is_some_and(|id| !self.cgroups.values().any(|all| all.contains(&id)));
        let missing = self.namespaces.values().any(Option::is_none);
        let any = !self.cgroups.is_empty() || !self.namespaces.is_empty();
        if any && (unknown || missing) && now.since(self.looked_at) >= AGAIN {
            self.look(now);
        }
    }

    /// What rules name and is not there: nothing matches these until it is.
    pub(crate) fn missing(&mut self, rules: &[Rule], now: Time) -> Vec<String> {
        let has_gaps = |places: &Self| {
            places.namespaces.values().any(Option::is_none)
                || places.cgroups.values().any(BTreeSet::is_empty)
        };
        if has_gaps(self) && now.since(self.looked_at) >= AGAIN {
            self.look(now);
        }
        let of = |rule: &Rule| {
            let Matches { cgroup, netns, .. } = &rule.matches;
            let no_netns = |path: &&PathBuf| self.namespaces.get(*path) == Some(&None);
            let no_cgroup =
                |path: &&String| self.cgroups.get(*path).is_some_and(BTreeSet::is_empty);
            let what = match (netns.as_ref().filter(no_netns), cgroup.as_ref().filter(no_cgroup)) {
                (Some(path), _) => format!("no network namespace {}", path.display()),
                (None, Some(path)) => format!("no cgroup {path} (of the second version)"),
                (None, None) => return None,
            };
            Some(format!("rule {} matches nothing as long as there is {what}", rule.name))
        };
        rules.iter().filter_map(of).collect()
    }

    fn matches(&self, matches: &Matches, who: &Who) -> bool {
        let in_cgroup = |path: &String| {
            self.cgroups.get(path).zip(who.cgroup).is_some_and(|(all, id)| all.contains(&id))
        };
        let is_there = match (&matches.netns, &matches.cgroup) {
            (Some(path), _) => self.namespaces.get(path) == Some(&Some(who.netns)),
            // A cgroup is a place, too: that of a container has a namespace which no file may name.
            (None, Some(_)) => true,
            (None, None) => self.own.is_none_or(|own| own == who.netns),
        };
        let goes_to = |remote: IpAddr| matches.to.iter().any(|prefix| prefix.contains(remote));
        (matches.ports.is_empty() || matches.ports.iter().any(|ports| ports.contains(who.port)))
            && (matches.to.is_empty() || who.remote.is_none_or(goes_to))
            && matches.cgroup.as_ref().is_none_or(in_cgroup)
            && is_there
    }

    /// A rule as the hook of the root cgroup reads it, which gives who matches an algorithm of this
    /// name: for each of its spans of ports and of its destinations. None where what it names is not
    /// there. Of a rule that the hook cannot tell: who may match it is left to the walk.
    pub(crate) fn choices(&self, matches: &Matches, gives: Option<&str>) -> Vec<Choice> {
        let netns = match (&matches.netns, &matches.cgroup) {
            (Some(path), _) => match self.namespaces.get(path) {
                Some(Some(cookie)) => Some(*cookie),
                _ => return Vec::new(),
            },
            (None, Some(_)) => None,
            (None, None) => self.own,
        };
        let named = |name: &str| Gives::Algorithm(name.to_owned());
        let mut gives = gives.map_or(Gives::Nothing, named);
        let mut cgroup = None;
        if let Some(path) = &matches.cgroup {
            match cgroup_at(path) {
                Ok(found) => cgroup = Some(found),
                Err(NoCgroup::Missing) => return Vec::new(),
                Err(NoCgroup::InNamespace) => gives = Gives::Nothing,
            }
        }
        let every_port = [(0, u16::MAX)];
        let spans: Vec<_> = matches.ports.iter().map(|ports| ports.span()).collect();
        let spans = if spans.is_empty() { every_port.as_slice() } else { spans.as_slice() };
        let to: Vec<_> = matches.to.iter().map(|to| Some((to.base(), to.bits()))).collect();
        let to = if to.is_empty() { [None].as_slice() } else { to.as_slice() };
        let of = |&ports: &(u16, u16)| {
            let gives = &gives;
            to.iter().map(move |&to| Choice { netns, cgroup, ports, to, gives: gives.clone() })
        };
        spans.iter().flat_map(of).collect()
    }

    fn look(&mut self, now: Time) {
        self.looked_at = now;
        if let Some(root) = cgroup_root() {
            for (path, ids) in &mut self.cgroups {
                *ids = cgroups_below(&root.join(path.trim_start_matches('/')));
            }
        }
        if self.namespaces.is_empty() {
            return;
        }
        match &self.asked {
            Namespaces::Here => {
                for (path, cookie) in &mut self.namespaces {
                    *cookie = netns_cookie(path).ok();
                }
            }
            Namespaces::Loader(loader) => {
                let found = loader.namespaces();
                for (path, cookie) in &mut self.namespaces {
                    *cookie = found.get(path).copied().flatten();
                }
            }
        }
    }
}

/// Why a cgroup is not told by its number and level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoCgroup {
    /// There is none of this path.
    Missing,
    /// What is mounted here is not the root of all, so its level is unknown.
    InNamespace,
}

/// Number and level of a cgroup.
fn cgroup_at(path: &str) -> Result<(u64, u32), NoCgroup> {
    let root = cgroup_root().ok_or(NoCgroup::Missing)?;
    let number = |path: &Path| path.metadata().map(|of| of.ino()).map_err(|_| NoCgroup::Missing);
    let id = number(&root.join(path.trim_start_matches('/')))?;
    if number(&root)? != ROOT_CGROUP {
        return Err(NoCgroup::InNamespace);
    }
    let level = path.split('/').filter(|name| !name.is_empty()).count();
    Ok((id, level as u32))
}

/// Where cgroups of the second version are mounted.
pub(crate) fn cgroup_root() -> Option<PathBuf> {
    mount_of("cgroup2")
}

/// Where a file system of this kind is mounted first.
fn mount_of(kind: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let path = fields.next()?;
        (fields.next()? == kind).then(|| PathBuf::from(path))
    })
}

/// Whether this mount namespace has a bpf file system.
pub(crate) fn has_bpf_fs() -> bool {
    mount_of("bpf").is_some()
}

/// The numbers of a cgroup, named as in `/proc/PID/cgroup`, and of all below it; empty where there
/// is none.
pub(crate) fn cgroup_ids(path: &str) -> BTreeSet<u64> {
    let root = mount_of("cgroup2");
    root.map(|root| cgroups_below(&root.join(path.trim_start_matches('/')))).unwrap_or_default()
}

/// A cgroup and all below it, by their inodes, which the kernel numbers them by.
fn cgroups_below(folder: &Path) -> BTreeSet<u64> {
    let mut ids = BTreeSet::new();
    each_cgroup_below(folder, |id, _| {
        ids.insert(id);
    });
    ids
}

/// The paths of cgroups, as in `/proc/PID/cgroup`, by their numbers. Without those that are gone, and
/// those that are not among the first 10,000 found.
pub(crate) fn cgroup_paths(ids: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut paths = BTreeMap::new();
    let Some(root) = cgroup_root() else { return paths };
    each_cgroup_below(&root, |id, folder| {
        if ids.contains(&id)
            && let Ok(path) = folder.strip_prefix(&root)
        {
            paths.insert(id, format!("/{}", path.display()));
        }
    });
    paths
}

/// Number and folder of a cgroup and of those below it, 10,000 at most.
fn each_cgroup_below(folder: &Path, mut each: impl FnMut(u64, &Path)) {
    let mut folders = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(metadata) = folder.metadata() else { continue };
        each(metadata.ino(), &folder);
        seen += 1;
        if seen == CGROUPS_MAX {
            break;
        }
        let entries = folder.read_dir().into_iter().flatten().flatten();
        folders.extend(
            entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
        );
    }
}

/// Runs something in another network namespace, on a thread of its own.
pub(crate) fn within_file<T: Send>(
    file: impl AsFd + Send,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
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
    netns_cookie_of(&File::open(netns)?)
}

/// The same of a namespace that is open.
pub(crate) fn netns_cookie_of(netns: &File) -> io::Result<u64> {
    within_file(netns, || {
        crate::kernel::sock_diag::netns_cookie(&socket(
            AddressFamily::INET,
            SocketType::DGRAM,
            None,
        )?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// A rule for another port of the host took what listened in a shell of Mahimahi, once any rule named a namespace.
    #[test]
    fn what_a_rule_names_and_is_not_there_is_told_until_it_is() {
        let text = "[[rule]]\nname = \"a\"\nnetns = \"/run/netns/nope\"\n\
                    [[rule]]\nname = \"b\"\ncgroup = \"/nope\"\n\
                    [[rule]]\nname = \"c\"\nnetns = \"/proc/self/ns/net\"\n\
                    [[rule]]\nname = \"d\"\nnetns = \"/proc/self/status\"\n";
        let rules = Config::parse(Path::new("agent.toml"), text).unwrap().rules;
        let mut places = Places::new(&rules, Namespaces::Here, Time::ZERO);
        let told = places.missing(&rules, Time::ZERO);
        let begins = ["rule a matches nothing", "rule b matches nothing", "rule d matches nothing"];
        assert!(
            told.len() == 3 && told.iter().zip(begins).all(|(t, b)| t.starts_with(b)),
            "{told:?}"
        );
        assert!(told[0].ends_with("no network namespace /run/netns/nope"), "{told:?}");
    }

    #[test]
    fn a_rule_applies_where_it_says_and_in_the_agents_own_namespace_otherwise() {
        let text = "[[rule]]\nname = \"elsewhere\"\nport = 443\nnetns = \"/nowhere\"\n\
                    [[rule]]\nname = \"here\"\nport = 443\n\
                    [[rule]]\nname = \"pods\"\nport = 80\ncgroup = \"/pods\"\n";
        let rules = Config::parse(Path::new("agent.toml"), text).unwrap().rules;
        let mut places = Places::new(&rules, Namespaces::Here, Time::ZERO);
        let own = own_netns().expect("Linux 5.14 or later");
        places.cgroups.insert("/pods".to_owned(), BTreeSet::from([7]));
        for (port, netns, cgroup, expected) in [
            (443, own, None, Some(1)),
            (443, own + 1, None, None),
            (80, own, None, None),
            (80, own + 1, Some(7), Some(2)),
        ] {
            let who = Who { port, remote: None, cgroup, netns };
            assert_eq!(places.rule_of(&who, &rules, Time::ZERO), expected, "{who:?}");
            let listens = places.rules_of_listener(&who, &rules, Time::ZERO);
            assert_eq!(listens, Vec::from_iter(expected), "{who:?}");
        }
        places.namespaces.insert("/nowhere".into(), Some(own + 1));
        let who = Who { port: 443, remote: None, cgroup: None, netns: own + 1 };
        assert_eq!(places.rule_of(&who, &rules, Time::ZERO), Some(0));
    }
}
