//! What runs under our names goes on with the programs that were registered when it picked them:
//! connections, and also sockets that listen and the defaults of network namespaces, from which new
//! connections get theirs. These two are given what is registered now, and connections when they rest.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::Link;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Of the network namespace of the thread that asks.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Our names begin so.
const PREFIX: &str = "trimtab_";

/// In every network namespace that a process or a name holds. Gives why it was not possible in
/// some; `None` when it was in all.
pub(crate) fn everywhere(walk: &Path) -> Option<String> {
    let (walk, missing) = match open(walk) {
        Ok(walk) => (Some(walk), None),
        Err(why) => (None, Some(why)),
    };
    let work = move || {
        let own = here(walk.as_ref()).err().map(|error| error.to_string());
        let mut failed = own.into_iter().collect::<Vec<_>>();
        for (path, namespace) in network_namespaces() {
            let entered =
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
            if let Err(error) = entered.map_err(io::Error::from).and_then(|()| here(walk.as_ref()))
            {
                failed.push(format!("{}: {error}", path.display()));
            }
        }
        failed
    };
    // A thread of its own, which ends where it is.
    told(std::thread::spawn(work).join().ok(), missing)
}

/// The walk over listening sockets, or why there is none.
fn open(walk: &Path) -> Result<Link, String> {
    if !walk.exists() {
        return Err("this kernel has no walk over them (iter/tcp)".to_owned());
    }
    Link::open(walk).map_err(|e| format!("the walk over them does not open: {e:#}"))
}

/// What is left to tell: what failed where, `None` of a thread that panicked; and why sockets that
/// listen were left out everywhere.
fn told(failed: Option<Vec<String>>, missing: Option<String>) -> Option<String> {
    let Some(failed) = failed else {
        return Some(
            "network namespaces may go on with the former programs for new connections (the thread \
             that looks after them panicked): restart the servers, and tell us"
                .to_owned(),
        );
    };
    let namespaces = failed.first().map(|first| {
        format!(
            "{} network namespaces may go on with the former programs for new connections \
             ({first}): restart the servers there",
            failed.len()
        )
    });
    let sockets = missing.map(|why| {
        format!(
            "sockets that listen may go on with the former programs for new connections ({why}): \
             restart the servers"
        )
    });
    let all: Vec<_> = namespaces.into_iter().chain(sockets).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// In this thread's network namespace.
fn here(walk: Option<&Link>) -> io::Result<()> {
    let name = std::fs::read_to_string(DEFAULT)?;
    if name.starts_with(PREFIX) {
        std::fs::write(DEFAULT, name.trim())?;
    }
    walk.map_or(Ok(()), |link| crate::walk::walk(link, &mut [0; 64], |_| ()))
}

/// Each network namespace that a process or a name in `/run/netns` holds once, by the file that names
/// it; but for this thread's.
pub fn network_namespaces() -> Vec<(PathBuf, File)> {
    let entries = |folder: &str| Path::new(folder).read_dir().into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = entries("/proc")
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .map(|entry| entry.path().join("ns/net"));
    let named = entries("/run/netns").map(|entry| entry.path());
    let number = |path: &Path| Some(std::fs::metadata(path).ok()?).map(|of| (of.dev(), of.ino()));
    let mut seen: BTreeSet<_> = number(Path::new("/proc/thread-self/ns/net")).into_iter().collect();
    processes
        .chain(named)
        .filter(|path| number(path).is_some_and(|number| seen.insert(number)))
        // A process that has ended meanwhile needs nothing.
        .filter_map(|path| File::open(&path).ok().map(|file| (path, file)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_renewed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let walk = folder.path().join("renewal");
        let said = everywhere(&walk).unwrap();
        assert!(said.starts_with("sockets that listen may go on"), "{said}");
        assert!(said.contains("no walk over them (iter/tcp)"), "{said}");
        // Something, but no walk.
        std::fs::write(&walk, "").unwrap();
        let said = everywhere(&walk).unwrap();
        assert!(said.contains("does not open: "), "{said}");
    }

    #[test]
    fn a_thread_that_panicked_has_renewed_nothing() {
        assert_eq!(told(Some(Vec::new()), None), None);
        assert!(told(None, None).unwrap().contains("panicked"));
        let both = told(Some(vec!["/run/netns/a: denied".to_owned()]), Some("why".to_owned()));
        let both = both.unwrap();
        assert!(both.starts_with("1 network namespaces") && both.contains("; sockets"), "{both}");
    }
}
