//! The door for applications: each may say what is good for its own connections (`trimtab-app-sdk`).
//!
//! A process that may open the socket may send. Which connection a message is about, the kernel
//! says: the first one brings a descriptor of the socket along, of which the agent reads addresses,
//! cookie and network namespace; later ones name the cookie. So who holds no descriptor of a
//! connection cannot speak for it, and what a sender says of itself is not believed. One thread
//! serves all, and waits for none: a message arrives whole or not at all. A user who sends too much
//! waits, nobody else.

use std::collections::{BTreeSet, HashMap};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_cookie, socket_peercred, socket_protocol, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, getpeername, getsockname, ipproto, listen, recvmsg,
    send, socket_with,
};
use trimtab_app_sdk::wire::{Answer, MESSAGE_MAX, Message};
use trimtab_datapath::FlowId;
use trimtab_units::{Duration, Time};

use crate::daemon::{Shared, spawn};
use crate::doors::control;
use crate::error::Error;
use crate::kernel::sock_diag::netns_cookie;

/// Senders at once: all, and of one user.
const SENDERS_MAX: usize = 256;
const SENDERS_PER_USER_MAX: usize = 64;
/// Messages of one user in a second, and at once.
const MESSAGES_PER_S: f64 = 2000.0;
const MESSAGES_AT_ONCE: f64 = 500.0;
/// A message that is refused, or about a connection that is not known, counts as so many. Finding that out costs more
/// than an update of a connection that was found before, and nobody needs it often.
const REFUSED_COSTS: f64 = 10.0;
/// Messages that are read of one sender before the next one's turn.
const TURN: usize = 32;
/// Connections that are remembered of one sender.
const KNOWN_MAX: usize = 1 << 14;
/// How long a user who has sent too much waits at least.
const REST: Duration = Duration::from_millis(20);

/// Makes the socket, which every user may open.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, Error> {
    control::remove_old(path)?;
    let make = || -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, 64)?;
        Ok(socket)
    };
    let socket = make().map_err(|e| Error::system(format!("listen on {}", path.display()), e))?;
    control::set_mode(path, 0o666)?;
    Ok(socket)
}

/// Serves clients; never returns.
pub(crate) fn serve(listener: OwnedFd, shared: Arc<Shared>) {
    let mut door = Door {
        listener,
        shared,
        senders: Vec::new(),
        buckets: HashMap::new(),
        closing: Closing::default(),
    };
    loop {
        door.turn();
    }
}

struct Door {
    listener: OwnedFd,
    shared: Arc<Shared>,
    senders: Vec<Sender>,
    buckets: HashMap<u32, Bucket>,
    closing: Closing,
}

struct Sender {
    socket: OwnedFd,
    uid: u32,
    /// Connections by their cookies, of which it has passed descriptors.
    known: HashMap<u64, FlowId>,
    gone: bool,
}

/// Descriptors that are none of a socket, by who passed them. To close one may take as long as its
/// file system likes, which may be that user's own (FUSE): no thread of the agent's waits for that.
/// Until it is done the user is not let in, so each has one such descriptor at most.
#[derive(Clone, Debug, Default)]
struct Closing(Arc<Mutex<BTreeSet<u32>>>);

impl Closing {
    fn users(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, uid: u32, descriptors: Vec<OwnedFd>) {
        self.users().insert(uid);
        let all = self.clone();
        let close = move || {
            drop(descriptors);
            all.users().remove(&uid);
        };
        // Where no thread can be had, dropping what it would have run closes them here.
        if spawn("closing", close).is_err() {
            self.users().remove(&uid);
        }
    }
}

/// What a user may send.
struct Bucket {
    left: f64,
    at: Time,
}

impl Bucket {
    fn fill(&mut self, now: Time) {
        let new = now.since(self.at).as_secs_f64() * MESSAGES_PER_S;
        self.left = (self.left + new).min(MESSAGES_AT_ONCE);
        self.at = now;
    }
}

impl Door {
    /// Waits for somebody, and gives everyone a turn.
    fn turn(&mut self) {
        let now = trimtab_kernel::now();
        self.buckets.values_mut().for_each(|bucket| bucket.fill(now));
        let may = |uid: u32| self.buckets.get(&uid).is_none_or(|bucket| bucket.left >= 1.0);
        let waits = self.senders.iter().any(|sender| !may(sender.uid));
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let in_turn: Vec<usize> =
            (0..self.senders.len()).filter(|&i| may(self.senders[i].uid)).collect();
        fds.extend(in_turn.iter().map(|&i| PollFd::new(&self.senders[i].socket, PollFlags::IN)));
        let rest = Timespec { tv_sec: 0, tv_nsec: REST.as_nanos() as i64 };
        if poll(&mut fds, waits.then_some(&rest)).is_err() {
            return; // a signal
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        for (&i, _) in in_turn.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            self.hear(i, now);
        }
        self.senders.retain(|sender| !sender.gone);
        self.buckets.retain(|uid, bucket| {
            bucket.left < MESSAGES_AT_ONCE || self.senders.iter().any(|s| s.uid == *uid)
        });
        if ready[0] {
            self.let_in();
        }
    }

    fn let_in(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(socket) = accept_with(&self.listener, flags) else { return };
        let Ok(who) = socket_peercred(&socket) else { return };
        let uid = who.uid.as_raw();
        let same_user = self.senders.iter().filter(|sender| sender.uid == uid).count();
        if self.senders.len() >= SENDERS_MAX || same_user >= SENDERS_PER_USER_MAX {
            let why = format!(
                "too many senders of hints: {SENDERS_PER_USER_MAX} of a user and {SENDERS_MAX} in all; use one for all \
                 connections of a process"
            );
            tell(&socket, &Answer::Refused(why));
            return;
        }
        if self.closing.users().contains(&uid) {
            let why = "a descriptor that this user passed is still being closed".to_owned();
            return tell(&socket, &Answer::Refused(why));
        }
        self.senders.push(Sender { socket, uid, known: HashMap::new(), gone: false });
    }

    /// Reads what a sender has sent, until its turn is over.
    fn hear(&mut self, i: usize, now: Time) {
        let mut bytes = [0; MESSAGE_MAX];
        for _ in 0..TURN {
            let sender = &mut self.senders[i];
            match hear_one(&sender.socket, &mut bytes) {
                Ok((length, descriptors)) if length > 0 => {
                    let uid = sender.uid;
                    let taken_in = self.on_message(i, &bytes[..length], descriptors, now);
                    let bucket = self
                        .buckets
                        .entry(uid)
                        .or_insert(Bucket { left: MESSAGES_AT_ONCE, at: now });
                    bucket.left -= if taken_in { 1.0 } else { REFUSED_COSTS };
                    if bucket.left < 1.0 {
                        return;
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return,
                _ => {
                    sender.gone = true;
                    return;
                }
            }
        }
    }

    /// Answers where that is needed; whether the message was taken in.
    fn on_message(&mut self, i: usize, bytes: &[u8], descriptors: Vec<OwnedFd>, now: Time) -> bool {
        // This asks no file system.
        if descriptors.iter().any(|one| socket_type(one).is_err()) {
            let sender = &mut self.senders[i];
            sender.gone = true;
            let why = "the descriptor that came along is none of a socket".to_owned();
            tell(&sender.socket, &Answer::Refused(why));
            self.closing.close(sender.uid, descriptors);
            return false;
        }
        let (answer, wanted) = match Message::parse(bytes) {
            Ok(message) => (self.take_in(i, &message, &descriptors, now), message.answer),
            Err(why) => (Answer::Refused(why), true),
        };
        if wanted || answer != Answer::Ok {
            tell(&self.senders[i].socket, &answer);
        }
        answer == Answer::Ok
    }

    fn take_in(
        &mut self,
        i: usize,
        message: &Message,
        descriptors: &[OwnedFd],
        now: Time,
    ) -> Answer {
        let named = match (message.cookie, descriptors) {
            (Some(cookie), []) => self.senders[i].known.get(&cookie).map(|id| (cookie, *id)),
            (None, [socket]) => match self.find(socket) {
                Ok(found) => found,
                Err(why) => {
                    return Answer::Refused(format!(
                        "this is no TCP connection that is open: {why}"
                    ));
                }
            },
            _ => {
                let why = "a message brings one descriptor along, or names the cookie of one that came before";
                return Answer::Refused(why.to_owned());
            }
        };
        let Some((cookie, id)) = named else { return self.unknown() };
        let (model, factors) = match message.content() {
            Ok(content) => content,
            Err(why) => return Answer::Refused(why),
        };
        let known = &mut self.senders[i].known;
        if !self.shared.core().hint(id, model, factors, now) {
            known.remove(&cookie);
            return self.unknown();
        }
        if known.len() >= KNOWN_MAX && !known.contains_key(&cookie) {
            known.clear(); // each is described again when it is named
        }
        known.insert(cookie, id);
        Answer::Ok
    }

    /// The connections to come of who sends hints are in the agent's care from their beginning.
    fn unknown(&self) -> Answer {
        self.shared.on_early_hint();
        unknown()
    }

    /// The connection of a socket, with its cookie; `None` when it is not under the agent's care.
    fn find(&self, socket: &OwnedFd) -> Result<Option<(u64, FlowId)>, std::io::Error> {
        if socket_protocol(socket)? != Some(ipproto::TCP) {
            return Err(std::io::Error::other("another protocol"));
        }
        let address = |any: rustix::net::SocketAddrAny| -> Result<SocketAddr, std::io::Error> {
            any.try_into().map_err(|_| std::io::Error::other("addresses of another kind"))
        };
        let local = address(getsockname(socket)?)?;
        let remote = address(getpeername(socket)?.ok_or(Errno::NOTCONN)?)?;
        let (cookie, netns) = (socket_cookie(socket)?, netns_cookie(socket)?);
        let id = self.shared.core().by_addresses(local, remote, netns);
        Ok(id.map(|id| (cookie, id)))
    }
}

/// A message, and the descriptors that came along. The kernel closes those for which there is no room.
fn hear_one(socket: &OwnedFd, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let heard = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut along, flags)?;
    let descriptors = along.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(all) => Some(all),
        _ => None,
    });
    Ok((heard.bytes, descriptors.flatten().collect()))
}

fn unknown() -> Answer {
    Answer::Unknown(
        "no such connection is under the agent's care: it must run the agent's congestion control \
         (socket option TCP_CONGESTION, or the system's default), and be described with its descriptor \
         before its cookie is named"
            .to_owned(),
    )
}

/// Answers; a client that does not read misses it.
fn tell(socket: &OwnedFd, answer: &Answer) {
    if let Ok(bytes) = serde_json::to_vec(answer) {
        let _ = send(socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}
