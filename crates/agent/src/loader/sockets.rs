//! Walks over sockets, for the steerer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};
use trimtab_kernel::{Assigner, Choices, Gave, Order, Walked};

use crate::error::Error;
use crate::kernel::assign::reach::{at, far_places, near_places};
use crate::kernel::places::cgroup_root;

/// Orders of all requests for one walk: the kernel's side holds as many.
const ORDERS_MAX: usize = 1 << 16;

/// The walk, where it is loaded, and where it goes.
#[derive(Debug, Default)]
pub(super) struct Walks {
    assigner: Option<Assigner>,
    near: Vec<Option<File>>,
    far: Vec<Option<File>>,
    orders: Vec<Order>,
}

impl Walks {
    /// Loads the walk, unless it is.
    pub(super) fn load(&mut self, folder: &Path) -> Result<(), Error> {
        if self.assigner.is_none() {
            self.assigner = Some(Assigner::load(folder)?);
        }
        Ok(())
    }

    fn assigner(&self) -> Result<&Assigner, Error> {
        let none = || Error::Refused("the walk over sockets is not loaded".to_owned());
        self.assigner.as_ref().ok_or_else(none)
    }

    /// Looks for the network namespaces of these files and the own one, or for all others; gives how
    /// many there are.
    pub(super) fn look(&mut self, far: bool, files: &BTreeSet<PathBuf>) -> usize {
        if far {
            self.far = far_places(&self.near).into_iter().map(Some).collect();
            self.far.len()
        } else {
            self.near = near_places(files);
            self.near.len()
        }
    }

    /// Keeps orders for the next walk.
    pub(super) fn order(&mut self, orders: Vec<Order>) {
        let room = ORDERS_MAX.saturating_sub(self.orders.len());
        self.orders.extend(orders.into_iter().take(room));
    }

    /// Walks over the sockets of the network namespace in this place.
    pub(super) fn walk(&mut self, far: bool, place: usize) -> Result<Walked, Error> {
        let orders = std::mem::take(&mut self.orders);
        let places = if far { &self.far } else { &self.near };
        let none = || Error::Refused(format!("there is no network namespace {place}"));
        let place = places.get(place).ok_or_else(none)?;
        let assigner = self.assigner()?;
        at(place.as_ref(), || assigner.walk(&orders))
    }

    /// Has the hook of the root cgroup follow these.
    pub(super) fn follow(&self, choices: &Choices, folder: &Path) -> Result<(), Error> {
        let none = || {
            let what = "no cgroup file system of the second version is mounted";
            Error::Refused(what.to_owned())
        };
        let (assigner, root) = (self.assigner()?, cgroup_root().ok_or_else(none)?);
        assigner.follow(choices)?;
        Ok(assigner.hook(folder, &root)?)
    }

    /// What the hook gave.
    pub(super) fn gave(&self) -> Result<Gave, Error> {
        Ok(self.assigner()?.gave()?)
    }
}

/// What a walk told, as a file without a name.
pub(super) fn file(walked: &Walked) -> Result<OwnedFd, Error> {
    let write = || -> std::io::Result<OwnedFd> {
        let mut file = File::from(memfd_create("trimtab-sockets", MemfdFlags::CLOEXEC)?);
        file.write_all(&walked.0)?;
        Ok(file.into())
    };
    write().map_err(|e| Error::system("hand over what a walk over sockets told", e))
}
