//! A datapath between two processes: one with capabilities that loads and keeps it, and one without any
//! that reads measurements and turns knobs.

use std::fmt::Debug;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::datapath::Origin;
use crate::pins::{Former, Pins};
use crate::renew;

/// What there is to know of a datapath that is handed over, next to the descriptors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// The folder that keeps it.
    pub folder: PathBuf,
    /// Appended to the algorithms' names.
    pub suffix: String,
    /// Where it came from.
    pub origin: Origin,
    /// What may have kept the former programs; `None` where nothing has.
    pub unreached: Option<String>,
}

/// What a datapath needs now and then, and only a process with capabilities can do: open maps by their
/// number, and enter network namespaces.
pub trait Keeper: Debug + Send + Sync {
    /// Programs that were replaced and still run connections.
    fn formers(&self) -> Vec<Former>;

    /// The slots of those that have this layout, each a descriptor of its map.
    fn former_slots(&self) -> Vec<OwnedFd>;

    /// Gives what rests or listens, in every network namespace, what is registered now, and has who is
    /// told to leave its slot do so. Gives why it was not possible in some; `None` when it was in all.
    fn renew(&self) -> Option<String>;

    /// The same, without waiting for it.
    fn renew_soon(&self);
}

impl Keeper for Pins {
    fn formers(&self) -> Vec<Former> {
        Self::formers(self)
    }

    fn former_slots(&self) -> Vec<OwnedFd> {
        let all = Self::former_slots(self);
        all.iter().filter_map(|map| map.as_fd().try_clone_to_owned().ok()).collect()
    }

    fn renew(&self) -> Option<String> {
        renew::everywhere(&self.renewal())
    }

    fn renew_soon(&self) {
        let walk = self.renewal();
        let renew = move || drop(renew::everywhere(&walk));
        // Where no thread starts now, the next call does it.
        let _ = std::thread::Builder::new().name("renewal".to_owned()).spawn(renew);
    }
}
