//! What applications and the agent say to each other: a message of JSON each, over a socket of whole messages
//! (`SOCK_SEQPACKET`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The longest message, in bytes.
pub const MESSAGE_MAX: usize = 4096;

/// What an application says of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The socket's cookie (`SO_COOKIE`).
    pub cookie: u64,
    /// The socket's own address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// The QoE model: a name as `vod`, or a formula; absent: as before, or the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Live factors by their names in formulas, in their units there.
    #[serde(default)]
    pub factors: BTreeMap<String, f64>,
    /// Whether to answer when all is well; what is wrong is answered always.
    pub answer: bool,
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Taken in.
    Ok,
    /// The agent knows no such connection, or not yet.
    Unknown(String),
    /// Not taken in.
    Refused(String),
}
