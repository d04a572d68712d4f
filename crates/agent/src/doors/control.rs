//! The control socket: a line of JSON asks, a line of JSON answers.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::doors::access::{Access, Peer};
use crate::doors::serve::{self, Terms};
use crate::doors::view::{FlowView, Status, Why};
use crate::error::Error;
use crate::operate::{Done, Order};

pub(crate) const TERMS: Terms = Terms {
    question_max: 4096,
    is_whole: |question| question.contains(&b'\n'),
    within: Duration::from_secs(5),
};
/// The longest wait of a client for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Question {
    /// How the agent does.
    Status,
    /// The connections.
    Flows,
    /// Why a connection is as it is.
    Why {
        /// Its number, an address, or a part of one.
        flow: String,
    },
    /// Do something.
    Order {
        /// What, with which connections.
        order: Order,
    },
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer<T> {
    /// What was asked for.
    Ok(T),
    /// Why not.
    Error(String),
}

/// Makes a socket that only some can reach: root, and the groups of those who may use it. A file has
/// one group; where there are two, everybody reaches it, and [`Access`] alone tells them apart.
pub(crate) fn listen(path: &Path, access: &Access) -> Result<UnixListener, Error> {
    remove_old(path)?;
    // Nobody else may connect before the mode is set.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener.map_err(|e| fail("listen on", path, &e))?;
    if let Some(group) = access.file_group() {
        rustix::fs::chown(path, None, Some(group))
            .map_err(|e| fail("change the group of", path, &e))?;
    }
    set_mode(path, access.file_mode())?;
    Ok(listener)
}

/// Removes the socket of an earlier agent. The caller must have the lock.
pub(crate) fn remove_old(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(fail("remove", path, &e)),
        _ => Ok(()),
    }
}

/// Who may use a file.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| fail("change the mode of", path, &e))
}

fn fail(what: &str, path: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::system(format!("{what} {}", path.display()), e)
}

/// Answers clients; returns only when that is impossible.
pub(crate) fn serve(
    listener: &UnixListener,
    access: &Access,
    answer: impl Fn(Question, &Peer) -> Result<serde_json::Value, String>,
) -> std::io::Result<()> {
    serve::serve(listener, &TERMS, |question, stream: &UnixStream| {
        // Whose credentials the kernel does not tell is nobody.
        let peer = Peer::of(stream).unwrap_or_default();
        reply(question, |question| {
            access.check(&peer, matches!(question, Question::Order { .. }))?;
            answer(question, &peer)
        })
    })
}

/// The reply to a question, which may be none.
pub(crate) fn reply(
    question: &[u8],
    answer: impl Fn(Question) -> Result<serde_json::Value, String>,
) -> Vec<u8> {
    let reply = match serde_json::from_slice(question) {
        Ok(question) => match answer(question) {
            Ok(value) => Answer::Ok(value),
            Err(message) => Answer::Error(message),
        },
        Err(e) => Answer::Error(format!("cannot read the question: {e}")),
    };
    // A value of JSON is always one.
    let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Asks the agent that listens at `socket`.
fn ask<T: DeserializeOwned>(socket: &Path, question: &Question) -> Result<T, Error> {
    let no_agent = |e: &dyn std::fmt::Display| Error::NoAgent {
        path: socket.to_owned(),
        reason: e.to_string(),
    };
    let stream = UnixStream::connect(socket).map_err(|e| match e.kind() {
        ErrorKind::PermissionDenied => Error::NotAllowed { path: socket.to_owned() },
        _ => no_agent(&e),
    })?;
    let exchange = || -> std::io::Result<String> {
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        (&stream).write_all((serde_json::to_string(question)? + "\n").as_bytes())?;
        let mut text = String::new();
        (&stream).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = exchange().map_err(|e| no_agent(&e))?;
    match serde_json::from_str(&text).map_err(|e| no_agent(&e))? {
        Answer::Ok(value) => Ok(value),
        Answer::Error(message) => Err(Error::Refused(message)),
    }
}

/// How the agent at a socket does.
///
/// # Errors
/// None answers there.
pub fn ask_status(socket: &Path) -> Result<Status, Error> {
    ask(socket, &Question::Status)
}

/// The connections of the agent at a socket.
///
/// # Errors
/// None answers there.
pub fn ask_flows(socket: &Path) -> Result<Vec<FlowView>, Error> {
    ask(socket, &Question::Flows)
}

/// Why a connection of the agent at a socket is as it is; `flow` is its number, an address, or a part of one.
///
/// # Errors
/// None answers there, or it has no such connection, or several.
pub fn ask_why(socket: &Path, flow: &str) -> Result<Why, Error> {
    ask(socket, &Question::Why { flow: flow.to_owned() })
}

/// Has the agent at a socket do something.
///
/// # Errors
/// None answers there, the caller may not, or it cannot be done.
pub fn order(socket: &Path, order: &Order) -> Result<Done, Error> {
    ask(socket, &Question::Order { order: order.clone() })
}
