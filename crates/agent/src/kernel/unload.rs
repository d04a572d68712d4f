//! `trimtab agent unload`: takes the datapath out of the kernel, and says what it found.

use std::fmt;
use std::path::{Path, PathBuf};

use trimtab_kernel::Algorithm;

use crate::config::Config;
use crate::daemon::lock::Lock;
use crate::daemon::reset_knobs;
use crate::doors::table::count;
use crate::error::Error;
use crate::kernel::assign;

/// The algorithms that programs may pick.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// What an unload found, and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// The folder of the datapath.
    pub folder: PathBuf,
    /// Whether anything was there.
    pub was_loaded: bool,
    /// Sockets that were given back what they ran before.
    pub given_back: usize,
    /// Open connections whose knobs stay as they are: they run programs of another layout.
    pub keep_knobs: u64,
    /// Algorithms of these names that the kernel still has, of which the folder knows nothing.
    pub elsewhere: Vec<String>,
}

/// Takes the datapath of a configuration (the default one without) out of the kernel. Sockets that
/// were given an algorithm get back what they ran before, in this network namespace and in those
/// that the rules name.
///
/// # Errors
/// An agent uses it, or the kernel refuses.
pub fn unload(path: Option<&Path>) -> Result<Unloaded, Error> {
    let config = path.map_or_else(|| Config::parse(Path::new("default"), ""), Config::read)?;
    let mut lock = Lock::sockets_if_there(&config.sockets.folder)?;
    let folder = config.datapath.folder.clone();
    let was_loaded = folder.exists();
    if was_loaded {
        lock.datapath(&folder)?;
    }
    let given_back = assign::give_back(&config)?;
    let keep_knobs = reset_all(&folder);
    trimtab_kernel::unload_pins(&folder)?;
    let available = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    let ours = Algorithm::ALL.map(|algorithm| assign::name_of(&config.datapath.suffix, algorithm));
    let is_there = |name: &String| available.split_whitespace().any(|one| one == name);
    let elsewhere = ours.into_iter().filter(is_there).collect();
    Ok(Unloaded { folder, was_loaded, given_back, keep_knobs, elsewhere })
}

/// Open connections get their algorithms' own knobs, where an agent that was killed has left
/// others. Gives how many connections this version cannot reach.
fn reset_all(folder: &Path) -> u64 {
    // Nothing is to be loaded for this; memory of another layout is left alone.
    let (flows, beyond) = trimtab_kernel::open_connections(folder);
    for flow in &flows {
        reset_knobs(flow);
    }
    beyond
}

impl fmt::Display for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        if self.was_loaded {
            let but = match self.keep_knobs {
                0 => String::new(),
                beyond => format!(
                    ", but {} on programs of another layout with the last ones",
                    count(beyond, "connection")
                ),
            };
            writeln!(
                f,
                "{folder}: out of the kernel; open connections go on with their algorithms' own \
                 knobs{but}; sockets that got back what they ran before: {}",
                self.given_back
            )?;
        } else {
            writeln!(f, "{folder}: nothing is loaded")?;
        }
        if !self.elsewhere.is_empty() {
            writeln!(
                f,
                "note: the kernel still has {}, loaded from another folder or in another mount \
                 namespace, as `ip netns exec` makes one: run this there (`nsenter \
                 --mount=/proc/PID/ns/mnt trimtab agent unload`), or with that agent's --config",
                self.elsewhere.join(", ")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_that_there_was_nothing_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (run, pins) = (folder.path().join("run"), folder.path().join("pins"));
        let path = folder.path().join("agent.toml");
        // No algorithm of the kernel is called so.
        let text = format!(
            "[sockets]\nfolder = {run:?}\n[datapath]\nfolder = {pins:?}\nsuffix = \"_q\"\n"
        );
        std::fs::write(&path, text).unwrap();
        let unloaded = unload(Some(&path)).unwrap();
        assert_eq!(unloaded.to_string(), format!("{}: nothing is loaded\n", pins.display()));
        assert!(!run.exists() && !pins.exists());
        let kept = Unloaded { was_loaded: true, keep_knobs: 2, ..unloaded.clone() };
        let said = kept.to_string();
        assert!(
            said.contains("own knobs, but 2 connections on programs of another layout"),
            "{said}"
        );
        let elsewhere = Unloaded { elsewhere: vec!["trimtab_copa".to_owned()], ..unloaded };
        assert!(
            elsewhere.to_string().contains("still has trimtab_copa, loaded from another folder")
        );
    }
}
