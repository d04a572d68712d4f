//! What the steerer asks of the loader: a datagram of JSON asks, another answers, with descriptors
//! where there are any. One request at a time.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, Result as Io};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use trimtab_fleet::experiment::ThreeArmsSpec;
use trimtab_kernel::{Choice, Handover, Order};

use crate::error::in_one_line;

/// The longest request, in bytes.
pub(crate) const REQUEST_MAX: usize = 1 << 16;
/// The longest answer, in bytes: what a socket takes at once by default is somewhat more.
pub(crate) const ANSWER_MAX: usize = 1 << 17;
/// Descriptors in an answer.
pub(crate) const DESCRIPTORS_MAX: usize = 64;
/// Orders in a request: they stay below its longest length.
pub(crate) const ORDERS_AT_ONCE: usize = 400;

/// What takes a capability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Load the datapath, or take over what is loaded, and open the doors: [`Taken`], with
    /// descriptors. Once.
    Take {},
    /// Read the configuration again: the steerer has taken it over.
    Reload {},
    /// Programs that were replaced and still run connections.
    Formers {},
    /// How many of them have slots of this layout; the descriptors of those beyond the first so many.
    FormerSlots {
        /// Slots that the steerer has already.
        beyond: usize,
    },
    /// Give what rests or listens what is registered now, in every network namespace.
    Renew {},
    /// The same, without an answer to wait for.
    RenewSoon {},
    /// Runs of the eBPF programs and nanoseconds that they took, where the kernel counts.
    ProgramTime {},
    /// Make our algorithm the default of new connections, if the configuration sets one.
    SetDefault {},
    /// Put back what was the default before.
    RestoreDefault {},
    /// The cookies of the network namespaces that the configuration names.
    Namespaces {},
    /// Load the walk over sockets.
    Assign {},
    /// Whether any agent has given sockets algorithms.
    HasGiven {},
    /// Look for network namespaces: those of the configuration and the own one, or all others. How
    /// many there are.
    Places {
        /// All others.
        far: bool,
    },
    /// Orders for the next walk.
    Order {
        /// Each gives a socket one of our algorithms, or the one that it had before.
        orders: Vec<Order>,
    },
    /// Walk over the sockets of a network namespace, and carry out the orders: a file with
    /// [`Walked`](trimtab_kernel::Walked).
    Walk {
        /// Of which look.
        far: bool,
        /// Its place among those.
        place: usize,
    },
    /// Have the hook of the root cgroup give sockets algorithms by these choices.
    Follow {
        /// Share of destination prefixes that are left as they are.
        holdback: f64,
        /// Share of those that a rollout has reached; `None`: there is no rollout.
        rollout: Option<f64>,
        /// Which of them run what they would run without Trimtab, for comparison, and when.
        plan: Option<ThreeArmsSpec>,
        /// In their order.
        list: Vec<Choice>,
    },
    /// Have it give nothing any more.
    Unhook {},
    /// What it gave.
    Gave {},
    /// Tell the service manager that the agent is ready.
    Ready {},
    /// Tell it that the agent lives.
    Alive {
        /// How it does, in a line.
        status: String,
    },
}

/// The answer to [`Request::Take`]. Descriptors follow in this order: the datapath's, the control
/// socket, that for hints and that for metrics, where there are, and the locks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) handover: Handover,
    /// How many descriptors are the datapath's.
    pub(crate) maps: usize,
    pub(crate) hints: bool,
    pub(crate) metrics: bool,
    /// What connections run where no agent has set the default.
    pub(crate) system: Option<String>,
}

/// The request in a datagram.
///
/// # Errors
/// There is none in it: one line that tells why.
pub(crate) fn decode(datagram: &[u8]) -> Result<Request, String> {
    if datagram.len() > REQUEST_MAX {
        return Err(format!("a request has {REQUEST_MAX} bytes at most"));
    }
    serde_json::from_slice(datagram).map_err(|e| format!("no request: {}", in_one_line(&e)))
}

/// Sends a datagram.
pub(crate) fn send(
    socket: &OwnedFd,
    datagram: &[u8],
    descriptors: &[OwnedFd],
    flags: SendFlags,
) -> Io<()> {
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(Errno::TOOMANYREFS);
    }
    let flags = flags | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(datagram)], &mut control, flags).map(drop)
}

/// What has come.
pub(crate) struct Received {
    /// Bytes; none where the other end is gone.
    pub(crate) length: usize,
    /// The datagram did not fit, or had descriptors that nobody asked for.
    pub(crate) is_cut: bool,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Receives a datagram, with as many descriptors as have room in `space`.
pub(crate) fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    space: &mut [MaybeUninit<u8>],
) -> Io<Received> {
    let mut control = RecvAncillaryBuffer::new(space);
    let got = loop {
        let mut into = [IoSliceMut::new(buffer)];
        match recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(all) = message {
            descriptors.extend(all);
        }
    }
    let is_cut = got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(Received { length: got.bytes, is_cut, descriptors })
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::Interval;
    use trimtab_fleet::experiment::Schedule;
    use trimtab_kernel::Gives;

    use super::*;

    #[test]
    fn a_request_of_the_most_choices_or_orders_fits() {
        let choice = Choice {
            netns: Some(u64::MAX),
            cgroup: Some((u64::MAX, u32::MAX)),
            ports: (u16::MAX, u16::MAX),
            to: Some(("2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap(), 128)),
            gives: Gives::Algorithm("trimtab_cubic_x".to_owned()),
        };
        let list = vec![choice; trimtab_kernel::Choices::MOST];
        let name = || "trimtab_cubic_x".to_owned();
        let order = Order { cookie: u64::MAX, from: name(), to: name() };
        let orders = vec![order; ORDERS_AT_ONCE];
        let plan = Some(ThreeArmsSpec {
            start: Interval(u64::MAX),
            block: u32::MAX,
            pairs: u32::MAX,
            wash_out: u32::MAX,
            share: 1.0 / 7.0,
            schedule: Schedule::Together,
            seed: u64::MAX,
        });
        let (holdback, rollout) = (1.0 / 3.0, Some(1.0 / 3.0));
        let follow = Request::Follow { holdback, rollout, plan, list };
        for request in [follow, Request::Order { orders }] {
            let bytes = serde_json::to_vec(&request).unwrap();
            assert!(bytes.len() < REQUEST_MAX, "{}", bytes.len());
            assert_eq!(decode(&bytes), Ok(request));
        }
        assert!(decode(b"").is_err() && decode(b"{\"load\":{}}").is_err());
        assert!(decode(&[b' '; REQUEST_MAX + 1]).unwrap_err().contains("at most"));
    }

    #[test]
    fn an_error_that_quotes_a_name_stays_in_one_line() {
        let why = decode(br#"{"follow":{"hold\nback":0}}"#).unwrap_err();
        assert!(why.contains(r"hold\nback") && !why.contains('\n'), "{why}");
    }
}
