//! The application's side.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_cookie};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, getpeername, recv, sendmsg, socket_with,
};
use trimtab_qoe::Factors;

use crate::wire::{Answer, MESSAGE_MAX, Message};

/// Where the agent listens, unless its configuration says otherwise.
pub const SOCKET: &str = "/run/trimtab/hints.sock";
/// The agent answers within this, or is taken for gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// A connection that has just opened may not be known yet: asked for again so often, after so long each.
const TRIES: u32 = 10;
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Why a hint was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// No agent listens.
    #[error("no agent takes hints at {}: {reason}. Start one with [sockets] hints = true, or go on \
             without", .path.display())]
    NoAgent {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The agent knows no such connection.
    #[error("{0}")]
    Unknown(String),
    /// The agent does not take it in.
    #[error("{0}")]
    Refused(String),
    /// The agent is busy: this hint was dropped, the next one may be sent when there is something new.
    #[error(
        "the agent is busy, and the hint was dropped; send the next one when something has changed"
    )]
    Busy,
    /// The descriptor is no TCP connection.
    #[error("this is no TCP connection that is open: {0}")]
    NotConnected(String),
    /// The message is too long.
    #[error("a hint has at most {MESSAGE_MAX} bytes: shorten the formula or the names of factors")]
    TooLong,
}

/// A connection that was described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    cookie: u64,
}

impl Connection {
    pub(crate) fn of(socket: impl AsFd) -> Result<Self, HintError> {
        let fail = |e: Errno| HintError::NotConnected(e.to_string());
        let socket = socket.as_fd();
        getpeername(socket).map_err(fail)?.ok_or_else(|| fail(Errno::NOTCONN))?;
        Ok(Self { cookie: socket_cookie(socket).map_err(fail)? })
    }
}

/// Which connection a message is about.
#[derive(Clone, Copy, Debug)]
enum Whose<'a> {
    /// This socket's.
    Of(BorrowedFd<'a>),
    /// One that was described.
    Described(&'a Connection),
}

/// The way to the agent. May be shared by threads; each message is one system call.
#[derive(Debug)]
pub struct Hints {
    socket: OwnedFd,
    path: PathBuf,
}

impl Hints {
    /// Connects to the agent of this machine: at `$TRIMTAB_HINTS` where that is set, else at [`SOCKET`].
    ///
    /// # Errors
    /// None listens.
    pub fn connect() -> Result<Self, HintError> {
        let path = std::env::var_os("TRIMTAB_HINTS").map_or_else(|| SOCKET.into(), PathBuf::from);
        Self::connect_to(&path)
    }

    /// Connects to the agent that listens at a socket.
    ///
    /// # Errors
    /// None listens there.
    pub fn connect_to(path: &Path) -> Result<Self, HintError> {
        let open = || -> Result<OwnedFd, Errno> {
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_WITHIN))?;
            connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(socket)
        };
        match open() {
            Ok(socket) => Ok(Self { socket, path: path.to_owned() }),
            Err(errno) => Err(gone(path, errno)),
        }
    }

    /// Says what is good for a connection: the name of a QoE model or a formula, unless the
    /// policy's is right, and what is known at the beginning. The agent gets the socket's descriptor,
    /// reads from it which connection it is, and closes it. Waits for the agent's answer. Not
    /// while another thread describes, too: the answers would be mixed up.
    ///
    /// # Errors
    /// The agent does not know the connection, or refuses: since it is no TCP connection, or the model is wrong.
    pub fn describe(
        &self,
        socket: impl AsFd,
        model: Option<&str>,
        live: &Factors,
    ) -> Result<Connection, HintError> {
        let connection = Connection::of(&socket)?;
        self.refusal_of_before()?;
        let mut tries = TRIES;
        loop {
            self.send(Whose::Of(socket.as_fd()), model, live, true)?;
            match self
                .answer(RecvFlags::empty())?
                .ok_or_else(|| gone(&self.path, Errno::TIMEDOUT))?
            {
                Answer::Ok => return Ok(connection),
                Answer::Refused(why) => return Err(HintError::Refused(why)),
                Answer::Unknown(why) if tries == 0 => return Err(HintError::Unknown(why)),
                Answer::Unknown(_) => std::thread::sleep(AGAIN_AFTER),
            }
            tries -= 1;
        }
    }

    /// Says what has changed on a connection that was described here: factors that are not set stay as they were said
    /// before. Does not wait.
    ///
    /// # Errors
    /// The agent is busy or gone, or refused an earlier hint, which it says with the next one.
    pub fn update(&self, connection: &Connection, live: &Factors) -> Result<(), HintError> {
        self.refusal_of_before()?;
        self.send(Whose::Described(connection), None, live, false)
    }

    fn send(
        &self,
        whose: Whose<'_>,
        model: Option<&str>,
        live: &Factors,
        answer: bool,
    ) -> Result<(), HintError> {
        let message = Message {
            cookie: match whose {
                Whose::Of(_) => None,
                Whose::Described(connection) => Some(connection.cookie),
            },
            model: model.map(str::to_owned),
            factors: live.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            answer,
        };
        // Nothing of a message can fail to be written as JSON.
        let bytes = serde_json::to_vec(&message).unwrap_or_default();
        if bytes.len() > MESSAGE_MAX {
            return Err(HintError::TooLong);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        let socket = match whose {
            Whose::Of(socket) => vec![socket],
            Whose::Described(_) => Vec::new(),
        };
        if !socket.is_empty() {
            // There is room for one.
            along.push(SendAncillaryMessage::ScmRights(&socket));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut along, flags) {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN) => Err(HintError::Busy),
            Err(errno) => Err(gone(&self.path, errno)),
        }
    }

    /// What the agent has said; `None` when nothing came.
    fn answer(&self, flags: RecvFlags) -> Result<Option<Answer>, HintError> {
        let mut bytes = [0; MESSAGE_MAX];
        match recv(&self.socket, &mut bytes[..], flags) {
            Ok((0, _)) => Err(gone(&self.path, Errno::CONNRESET)),
            Ok((length, _)) => serde_json::from_slice(&bytes[..length])
                .map(Some)
                .map_err(|e| HintError::Refused(format!("an answer that is none: {e}"))),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(gone(&self.path, errno)),
        }
    }

    /// The agent's objections to earlier hints, of which the last is reported.
    fn refusal_of_before(&self) -> Result<(), HintError> {
        let mut result = Ok(());
        while let Some(answer) = self.answer(RecvFlags::DONTWAIT)? {
            match answer {
                Answer::Ok => {}
                Answer::Unknown(why) => result = Err(HintError::Unknown(why)),
                Answer::Refused(why) => result = Err(HintError::Refused(why)),
            }
        }
        result
    }
}

fn gone(path: &Path, errno: Errno) -> HintError {
    HintError::NoAgent { path: path.to_owned(), reason: errno.to_string() }
}
