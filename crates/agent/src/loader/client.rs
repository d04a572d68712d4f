//! The steerer's end of the channel.

use std::collections::BTreeMap;
use std::fs::File;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use log::warn;
use rustix::net::SendFlags;
use serde::de::DeserializeOwned;
use trimtab_fleet::experiment::ThreeArms;
use trimtab_kernel::{Choices, Datapath, Former, Gave, Keeper, Order, ProgramTime, Socket, Walked};
use trimtab_steer::safety::Share;
use trimtab_units::Duration;

use super::protocol::{ANSWER_MAX, DESCRIPTORS_MAX, ORDERS_AT_ONCE, Request, Taken, receive, send};
use crate::error::Error;

/// Asks the loader.
#[derive(Debug)]
pub(crate) struct Client(Mutex<OwnedFd>);

/// What the loader hands to the steerer.
pub(crate) struct Hand {
    pub(crate) datapath: Datapath,
    pub(crate) control: UnixListener,
    pub(crate) hints: Option<OwnedFd>,
    pub(crate) metrics: Option<TcpListener>,
    /// Held for as long as the steerer lives, too.
    pub(crate) locks: Vec<OwnedFd>,
    /// What connections run where no agent has set the default.
    pub(crate) system: Option<String>,
}

/// A network namespace that the loader has looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) far: bool,
    pub(crate) place: usize,
}

impl Client {
    pub(crate) fn new(channel: OwnedFd) -> Self {
        Self(Mutex::new(channel))
    }

    /// Asks, and gives the answer with its descriptors.
    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<(T, Vec<OwnedFd>), Error> {
        let fail = |e: &dyn std::fmt::Display| Error::system("ask the loader", e);
        let bytes = serde_json::to_vec(request).map_err(|e| fail(&e))?;
        let mut buffer = vec![0; ANSWER_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send(&channel, &bytes, &[], SendFlags::empty()).map_err(|e| fail(&e))?;
        let got = receive(&channel, &mut buffer, &mut space).map_err(|e| fail(&e))?;
        drop(channel);
        let answer: Result<T, String> =
            serde_json::from_slice(&buffer[..got.length]).map_err(|e| fail(&e))?;
        answer.map(|answer| (answer, got.descriptors)).map_err(Error::Refused)
    }

    /// The same of an answer without descriptors.
    fn tell<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        self.ask(request).map(|(answer, _)| answer)
    }

    /// Has the loader load the datapath and open the doors.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Hand, Error> {
        let (taken, mut descriptors) = self.ask::<Taken>(&Request::Take {})?;
        let short = || Error::system("take over from the loader", "descriptors are missing");
        if descriptors.len() < taken.maps {
            return Err(short());
        }
        let mut others = descriptors.split_off(taken.maps).into_iter();
        let keeper = Arc::<Self>::clone(self);
        Ok(Hand {
            datapath: Datapath::take_over(taken.handover, descriptors, keeper)?,
            control: others.next().ok_or_else(short)?.into(),
            hints: taken.hints.then(|| others.next().ok_or_else(short)).transpose()?,
            metrics: taken
                .metrics
                .then(|| others.next().map(TcpListener::from).ok_or_else(short))
                .transpose()?,
            locks: others.collect(),
            system: taken.system,
        })
    }

    /// Has the loader follow the configuration that the steerer is about to take over.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        self.tell(&Request::Reload {})
    }

    pub(crate) fn program_time(&self) -> Option<ProgramTime> {
        let time: Option<(u64, u64)> = self.tell(&Request::ProgramTime {}).ok()?;
        time.map(|(runs, time)| ProgramTime { runs, time: Duration::from_nanos(time) })
    }

    pub(crate) fn set_default(&self) -> Result<(), Error> {
        self.tell(&Request::SetDefault {})
    }

    pub(crate) fn restore_default(&self) -> Result<(), Error> {
        self.tell(&Request::RestoreDefault {})
    }

    /// The cookies of the network namespaces that the configuration names; `None`: there is none.
    pub(crate) fn namespaces(&self) -> BTreeMap<PathBuf, Option<u64>> {
        self.tell(&Request::Namespaces {}).unwrap_or_else(|error| {
            warn!("the cookies of network namespaces are unknown: {error}");
            BTreeMap::new()
        })
    }

    pub(crate) fn assign(&self) -> Result<(), Error> {
        self.tell(&Request::Assign {})
    }

    pub(crate) fn has_given(&self) -> bool {
        self.tell(&Request::HasGiven {}).unwrap_or(false)
    }

    /// The network namespaces that rules name, with the own one, or all others.
    pub(crate) fn places(&self, far: bool) -> Result<Vec<Place>, Error> {
        let count: usize = self.tell(&Request::Places { far })?;
        Ok((0..count).map(|place| Place { far, place }).collect())
    }

    /// The sockets of a network namespace, after orders were carried out.
    pub(crate) fn walk(&self, at: Place, orders: &[Order]) -> Result<Vec<Socket>, Error> {
        for orders in orders.chunks(ORDERS_AT_ONCE) {
            self.tell::<()>(&Request::Order { orders: orders.to_vec() })?;
        }
        let Place { far, place } = at;
        let ((), files) = self.ask(&Request::Walk { far, place })?;
        let read = |file: OwnedFd| -> std::io::Result<Vec<u8>> {
            let file = File::from(file);
            let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = files.into_iter().next().map(read).transpose();
        let bytes = bytes.map_err(|e| Error::system("read what a walk over sockets told", e))?;
        Ok(Walked(bytes.unwrap_or_default()).sockets())
    }

    pub(crate) fn follow(&self, choices: &Choices) -> Result<(), Error> {
        let list = choices.list.iter().take(Choices::MOST).cloned().collect();
        self.tell(&Request::Follow {
            holdback: choices.holdback.get(),
            rollout: choices.arms.rollout.map(Share::get),
            plan: choices.arms.plan.as_ref().map(ThreeArms::spec),
            list,
        })
    }

    pub(crate) fn unhook(&self) -> Result<(), Error> {
        self.tell(&Request::Unhook {})
    }

    pub(crate) fn gave(&self) -> Result<Gave, Error> {
        self.tell(&Request::Gave {})
    }

    /// Tells the service manager that the agent is ready.
    pub(crate) fn ready(&self) {
        self.hear(self.tell(&Request::Ready {}));
    }

    /// Tells it that the agent lives, and how it does.
    pub(crate) fn alive(&self, status: &str) {
        self.hear(self.tell(&Request::Alive { status: status.to_owned() }));
    }

    fn hear(&self, told: Result<(), Error>) {
        if let Err(error) = told {
            warn!("cannot notify the service manager: {error}");
        }
    }
}

impl Keeper for Client {
    fn formers(&self) -> Vec<Former> {
        self.tell(&Request::Formers {}).unwrap_or_default()
    }

    fn former_slots(&self) -> Vec<OwnedFd> {
        let mut all = Vec::new();
        loop {
            let asked = self.ask::<usize>(&Request::FormerSlots { beyond: all.len() });
            let Ok((count, some)) = asked else { return all };
            let none = some.is_empty();
            all.extend(some);
            if none || all.len() >= count {
                return all;
            }
        }
    }

    fn renew(&self) -> Option<String> {
        self.tell(&Request::Renew {}).unwrap_or_else(|error| Some(error.to_string()))
    }

    fn renew_soon(&self) {
        if let Err(error) = self.tell::<()>(&Request::RenewSoon {}) {
            warn!("connections on former programs keep them for now: {error}");
        }
    }
}
