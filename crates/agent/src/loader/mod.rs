//! Least privilege: the agent is two processes. The **loader**, which systemd starts, keeps the
//! capabilities. It loads the eBPF programs, opens the doors, starts the **steerer** and from then on
//! answers the few [requests](protocol::Request) of it that take a capability. The steerer does all
//! else, as a user of its own without any capability: it reads what applications, clients, engines and
//! models say.
//!
//! Both end together: the kernel kills the steerer when the loader ends, and the loader ends when the
//! steerer does, with its status.

pub(crate) mod check;
pub(crate) mod client;
mod confine;
mod folders;
pub(crate) mod protocol;
mod run;
mod serve;
mod sockets;
mod start;
mod user;

pub(crate) use client::Client;
pub(crate) use confine::confine;
pub(crate) use run::run;
pub(crate) use start::as_steerer;
