//! The door for applications: each may say what is good for its own connections (`trimtab-app-sdk`).
//!
//! A process that may open the socket may send. Whose a connection is, the kernel says: the
//! message's addresses must be those of a connection in the sender's network namespace, its cookie
//! that connection's, and the connection's user the sender's. What a sender says of itself is not
//! believed. One thread serves all, and waits for none: a message arrives whole or not at all. A
//! user who sends too much waits, nobody else.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, send, socket_with,
};
use trimtab_app_sdk::wire::{Answer, MESSAGE_MAX, Message};
use trimtab_datapath::{FlowId, Identity};
use trimtab_qoe::{Factor, Factors, Model};
use trimtab_units::{Duration, Time};

use crate::daemon::Shared;
use crate::doors::control;
use crate::error::Error;
use crate::kernel::places;
use crate::kernel::sock_diag::{SockDiag, netns_cookie, netns_of};

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
/// Connections that are remembered of one sender, and network namespaces.
const KNOWN_MAX: usize = 1 << 14;
const NAMESPACES_MAX: usize = 64;
/// How long a user who has sent too much waits at least.
const REST: Duration = Duration::from_millis(20);
const ROOT: u32 = 0;

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
        diags: HashMap::new(),
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
    /// By the cookies of network namespaces.
    diags: HashMap<u64, SockDiag>,
}

struct Sender {
    socket: OwnedFd,
    uid: u32,
    /// The network namespace in which it made its socket.
    netns: OwnedFd,
    netns_cookie: u64,
    /// Connections by what messages call them, of which it was found that they are its own.
    known: HashMap<Name, FlowId>,
    gone: bool,
}

/// What a message calls a connection: its cookie and addresses.
type Name = (u64, SocketAddr, SocketAddr);

fn name(message: &Message) -> Name {
    (message.cookie, message.local, message.remote)
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
        let (netns, netns_cookie) = match (netns_of(&socket), netns_cookie(&socket)) {
            (Ok(netns), Ok(cookie)) => (netns, cookie),
            (Err(e), _) | (_, Err(e)) => {
                let why = format!("cannot read the sender's network namespace: {e}");
                return tell(&socket, &Answer::Refused(why));
            }
        };
        let known = HashMap::new();
        self.senders.push(Sender { socket, uid, netns, netns_cookie, known, gone: false });
    }

    /// Reads what a sender has sent, until its turn is over.
    fn hear(&mut self, i: usize, now: Time) {
        let mut bytes = [0; MESSAGE_MAX];
        for _ in 0..TURN {
            let sender = &mut self.senders[i];
            match recv(&sender.socket, &mut bytes[..], RecvFlags::empty()) {
                Ok((length, _)) if length > 0 => {
                    let uid = sender.uid;
                    let taken_in = self.on_message(i, &bytes[..length], now);
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
    fn on_message(&mut self, i: usize, bytes: &[u8], now: Time) -> bool {
        let (answer, wanted) = match serde_json::from_slice::<Message>(bytes) {
            Ok(message) => (self.take_in(i, &message, now), message.answer),
            Err(e) => (Answer::Refused(format!("cannot read the hint: {e}")), true),
        };
        if wanted || answer != Answer::Ok {
            tell(&self.senders[i].socket, &answer);
        }
        answer == Answer::Ok
    }

    fn take_in(&mut self, i: usize, message: &Message, now: Time) -> Answer {
        let id = match self.senders[i].known.get(&name(message)) {
            Some(id) => *id,
            None => match self.find(i, message) {
                Ok(id) => id,
                Err(answer) => return answer,
            },
        };
        let (model, factors) = match content(message) {
            Ok(content) => content,
            Err(why) => return Answer::Refused(why),
        };
        if self.shared.core().hint(id, model, factors, now) {
            return Answer::Ok;
        }
        self.senders[i].known.remove(&name(message));
        self.unknown(message)
    }

    /// The connection that a message names, if it is the sender's.
    fn find(&mut self, i: usize, message: &Message) -> Result<FlowId, Answer> {
        let (local, remote): (SocketAddr, SocketAddr) = (message.local, message.remote);
        let who: Identity = {
            let core = self.shared.core();
            // In the sender's own namespace alone: elsewhere the same addresses are somebody else's.
            let id = core.by_addresses(local, remote, self.senders[i].netns_cookie);
            id.and_then(|id| core.identity(id))
        }
        .ok_or_else(|| self.unknown(message))?;
        let found = self
            .diag(i)
            .and_then(|diag| diag.find(&who, Some(message.cookie)))
            .map_err(|e| Answer::Refused(format!("cannot read the connection's owner: {e}")))?
            .ok_or_else(|| self.unknown(message))?;
        let sender = &mut self.senders[i];
        if sender.uid != ROOT && sender.uid != found.uid {
            return Err(Answer::Refused(format!(
                "the connection {local} -> {remote} belongs to user {}, and hints of user {} are not taken for it",
                found.uid, sender.uid
            )));
        }
        if sender.known.len() >= KNOWN_MAX {
            sender.known.clear(); // each is found again when it is named
        }
        sender.known.insert(name(message), who.id);
        Ok(who.id)
    }

    /// The connections to come of who sends hints are in the agent's care from their beginning.
    fn unknown(&self, message: &Message) -> Answer {
        self.shared.on_early_hint();
        unknown(message)
    }

    /// What answers for the network namespace of a sender.
    fn diag(&mut self, i: usize) -> std::io::Result<&SockDiag> {
        let sender = &self.senders[i];
        let netns = sender.netns_cookie;
        if !self.diags.contains_key(&netns) {
            let diag = places::within_file(&sender.netns, || SockDiag::open_in(netns))?;
            if self.diags.len() >= NAMESPACES_MAX {
                self.diags.clear();
            }
            self.diags.insert(netns, diag);
        }
        self.diags.get(&netns).ok_or_else(|| std::io::Error::other("no namespace"))
    }
}

/// The model and the factors of a message.
fn content(message: &Message) -> Result<(Option<Model>, Factors), String> {
    let mut factors = Factors::new();
    for (name, value) in &message.factors {
        if !value.is_finite() {
            return Err(format!("the factor {name} is no finite number"));
        }
        factors.set_named(name, *value).map_err(|e| e.to_string())?;
    }
    let own: Vec<&str> = message
        .factors
        .keys()
        .map(String::as_str)
        .filter(|name| Factor::from_name(name).is_none())
        .collect();
    let parse = |text: &String| Model::parse(text, &own).map_err(|e| format!("the QoE model: {e}"));
    Ok((message.model.as_ref().map(parse).transpose()?, factors))
}

fn unknown(message: &Message) -> Answer {
    Answer::Unknown(format!(
        "no connection {} -> {} with this cookie in the sender's network namespace is under the \
         agent's care: it must run the agent's congestion control (socket option TCP_CONGESTION, \
         or the system's default)",
        message.local, message.remote
    ))
}

/// Answers; a client that does not read misses it.
fn tell(socket: &OwnedFd, answer: &Answer) {
    if let Ok(bytes) = serde_json::to_vec(answer) {
        let _ = send(socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}
