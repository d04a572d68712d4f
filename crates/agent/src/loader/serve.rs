//! What the loader does for the steerer.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use log::warn;
use serde::Serialize;
use serde_json::Value;
use trimtab_fleet::experiment::ThreeArms;
use trimtab_kernel::{Algorithm, Arms, Assigner, Choices, Datapath, Keeper};
use trimtab_steer::safety::Share;

use super::check::Allowed;
use super::protocol::{DESCRIPTORS_MAX, Request, Taken, decode};
use super::sockets::{self, Walks};
use crate::config::{Grounds, STEP};
use crate::daemon::lock::Lock;
use crate::daemon::notify::Manager;
use crate::doors::access::Access;
use crate::doors::{control, hints, http};
use crate::error::Error;
use crate::kernel::assign::{copies, name_of};
use crate::kernel::{default, places};

/// Refused requests that are reported: a steerer that somebody took over fills no log.
const REPORTED: usize = 10;

/// An answer, with descriptors.
type Answer = (Value, Vec<OwnedFd>);

/// The loader, after it has started the steerer.
#[derive(Debug)]
pub(super) struct Loader {
    path: PathBuf,
    grounds: Grounds,
    lock: Lock,
    keeper: Option<Arc<dyn Keeper>>,
    /// Network namespaces of the rules, also of configurations before.
    namespaces: BTreeSet<PathBuf>,
    allowed: Allowed,
    walks: Walks,
    pub(super) manager: Manager,
    refused: usize,
}

fn value(answer: impl Serialize) -> Result<Answer, Error> {
    let value = serde_json::to_value(answer).map_err(|e| Error::system("answer the steerer", e))?;
    Ok((value, Vec::new()))
}

impl Loader {
    pub(super) fn new(path: &Path, grounds: Grounds, lock: Lock) -> Self {
        Self {
            allowed: Allowed::new(&grounds),
            namespaces: grounds.namespaces.iter().cloned().collect(),
            path: path.to_owned(),
            grounds,
            lock,
            keeper: None,
            walks: Walks::default(),
            manager: Manager::from_environment(),
            refused: 0,
        }
    }

    /// Whether the steerer has taken the datapath.
    pub(super) fn is_taken(&self) -> bool {
        self.keeper.is_some()
    }

    /// Another configuration calls for other things. Sockets, datapath and user stay.
    fn follow(&mut self, grounds: Grounds) {
        self.grounds.default_algorithm = grounds.default_algorithm;
        self.grounds.assigns = grounds.assigns;
        self.grounds.compares = grounds.compares;
        self.namespaces.extend(grounds.namespaces);
        self.allowed = Allowed::new(&self.grounds);
    }

    /// The answer to a datagram, which may be anything.
    pub(super) fn answer(&mut self, datagram: &[u8]) -> (Result<Value, String>, Vec<OwnedFd>) {
        let checked = decode(datagram).and_then(|request| {
            let given = self.is_taken() && Assigner::has_given(self.folder());
            self.allowed.check(&request, given).map(|()| request)
        });
        let request = match checked {
            Ok(request) => request,
            Err(why) => {
                self.refuse(&why);
                return (Err(why), Vec::new());
            }
        };
        match self.carry_out(request) {
            Ok((value, descriptors)) => (Ok(value), descriptors),
            Err(error) => (Err(error.to_string()), Vec::new()),
        }
    }

    /// Reports a request that no steerer of ours makes.
    pub(super) fn refuse(&mut self, why: &str) {
        self.refused += 1;
        if self.refused <= REPORTED {
            warn!("the loader has refused a request of the steerer: {why}");
        }
    }

    fn folder(&self) -> &Path {
        &self.grounds.datapath.folder
    }

    fn carry_out(&mut self, request: Request) -> Result<Answer, Error> {
        if let Request::Take {} = request {
            return self.take();
        }
        let untaken = || Error::Refused("the datapath is not taken".to_owned());
        let keeper = Arc::clone(self.keeper.as_ref().ok_or_else(untaken)?);
        match request {
            Request::Take {} => self.take(),
            Request::Reload {} => {
                self.follow(Grounds::read(&self.path)?);
                value(())
            }
            Request::Formers {} => value(keeper.formers()),
            Request::FormerSlots { beyond } => {
                let slots = keeper.former_slots();
                let (count, _) = value(slots.len())?;
                Ok((count, slots.into_iter().skip(beyond).take(DESCRIPTORS_MAX).collect()))
            }
            Request::Renew {} => value(keeper.renew()),
            Request::RenewSoon {} => {
                keeper.renew_soon();
                value(())
            }
            Request::ProgramTime {} => {
                let time = trimtab_kernel::program_time();
                value(time.map(|time| (time.runs, time.time.as_nanos())))
            }
            Request::SetDefault {} => value(default::set(&self.copa(), &self.former())?),
            Request::RestoreDefault {} => value(default::restore(&self.copa(), &self.former())?),
            Request::Namespaces {} => {
                let cookie = |path: &PathBuf| (path.clone(), places::netns_cookie(path).ok());
                value(self.namespaces.iter().map(cookie).collect::<BTreeMap<_, _>>())
            }
            Request::Assign {} => {
                let folder = self.folder().to_owned();
                value(self.walks.load(&folder)?)
            }
            Request::HasGiven {} => value(Assigner::has_given(self.folder())),
            Request::Places { far } => value(self.walks.look(far, &self.namespaces)),
            Request::Order { orders } => {
                self.walks.order(orders);
                value(())
            }
            Request::Walk { far, place } => {
                let walked = self.walks.walk(far, place)?;
                self.allowed.saw(&walked.sockets());
                Ok((Value::Null, vec![sockets::file(&walked)?]))
            }
            Request::Follow { holdback, rollout, plan, list } => {
                let arms = Arms {
                    rollout: rollout.map(Share::new),
                    plan: plan.and_then(|spec| ThreeArms::new(spec).ok()),
                    step: STEP,
                    copies: copies(&self.grounds.datapath.suffix),
                };
                let choices = Choices { holdback: Share::new(holdback), arms, list };
                value(self.walks.follow(&choices, self.folder())?)
            }
            Request::Unhook {} => value(Assigner::unhook(self.folder())?),
            Request::Gave {} => value(self.walks.gave()?),
            Request::Ready {} => {
                self.manager.ready();
                value(())
            }
            Request::Alive { status } => {
                self.manager.alive(&status);
                value(())
            }
        }
    }

    /// Our algorithm that becomes the default.
    fn copa(&self) -> String {
        name_of(&self.grounds.datapath.suffix, Algorithm::Copa)
    }

    /// Where that is kept what the default was before.
    fn former(&self) -> PathBuf {
        self.grounds.sockets.folder.join("former-algorithm")
    }

    /// Loads the datapath, and opens the doors.
    fn take(&mut self) -> Result<Answer, Error> {
        if self.is_taken() {
            return Err(Error::Refused("the datapath is taken already".to_owned()));
        }
        let had_bpf_fs = places::has_bpf_fs();
        // What another agent uses is not to be replaced under it.
        let known = self.folder().exists();
        if known {
            self.lock.datapath(&self.grounds.datapath.folder)?;
        }
        let datapath = Datapath::load(&self.grounds.datapath.to_load())?;
        if !had_bpf_fs {
            warn!(
                "there was no bpf file system, so one was mounted; in a mount namespace of its own, \
                 as `ip netns exec` makes one, it ends with that, and `trimtab agent unload` finds \
                 it nowhere else: use `nsenter --net=/run/netns/NAME`"
            );
        }
        if !known {
            self.lock.datapath(datapath.folder())?;
        }
        let sockets = &self.grounds.sockets;
        let (handover, mut descriptors) = datapath.hand_over()?;
        let maps = descriptors.len();
        descriptors.push(control::listen(&sockets.control(), &Access::new(sockets)?)?.into());
        if sockets.hints {
            descriptors.push(hints::open(&sockets.hints())?);
        }
        if let Some(address) = sockets.metrics {
            descriptors.push(http::listen(address)?.into());
        }
        descriptors.extend(self.lock.descriptors()?);
        let taken = Taken {
            handover,
            maps,
            hints: sockets.hints,
            metrics: sockets.metrics.is_some(),
            system: default::system(&self.former()),
        };
        let (answer, _) = value(taken)?;
        self.keeper = Some(datapath.keeper());
        Ok((answer, descriptors))
    }

    /// Closes the doors, after the steerer has ended.
    pub(super) fn close(&self) {
        if self.is_taken() {
            for socket in [self.grounds.sockets.control(), self.grounds.sockets.hints()] {
                let _ = std::fs::remove_file(socket);
            }
        }
    }
}
