//! What the kernel says of a TCP connection over netlink (`sock_diag`), as `ss` asks it: what runs it.
#![expect(unsafe_code, reason = "one socket option has no safe interface")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use trimtab_datapath::Identity;

/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` of `linux/netlink.h`, and the message that is an error.
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
/// Sizes of `nlmsghdr`, `inet_diag_req_v2` and `inet_diag_msg` (`linux/inet_diag.h`).
const HEADER: usize = 16;
const QUESTION: usize = 56;
const ANSWER: usize = 72;
/// Place of the state within `inet_diag_msg`.
const STATE_AT: usize = 1;
/// `TCP_LISTEN` of `linux/tcp_states.h`.
const LISTEN: u8 = 10;
/// `INET_DIAG_CONG`, the attribute with the algorithm's name, and the bit that asks for it.
const CONG: u16 = 4;
const CONG_BIT: u8 = 1 << (CONG - 1);
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// `INET_DIAG_NOCOOKIE`: any.
const ANY_COOKIE: u64 = u64::MAX;

/// Asks about connections of the network namespace in which it was made.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
}

/// A connection that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What runs it.
    pub(crate) algorithm: String,
}

impl SockDiag {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::SOCK_DIAG))?;
        Ok(Self { socket })
    }

    /// A connection, by its addresses and, where given, its cookie; `None` when there is none. For a
    /// connection that is gone the kernel answers with the socket that listens on its port; that is none.
    pub(crate) fn find(&self, who: &Identity, cookie: Option<u64>) -> io::Result<Option<Found>> {
        let question = question(who.local, who.remote, who.device, cookie.unwrap_or(ANY_COOKIE));
        sendto(&self.socket, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut buffer = vec![0; 8192];
        let (length, _) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        answer(&buffer[..length])
    }
}

fn question(local: SocketAddr, remote: SocketAddr, device: Option<u32>, cookie: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + QUESTION);
    bytes.extend(((HEADER + QUESTION) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]); // number and sender, which nobody reads
    let family = if local.is_ipv4() { AF_INET } else { AF_INET6 };
    bytes.extend([family, IPPROTO_TCP, CONG_BIT, 0]);
    bytes.extend(u32::MAX.to_ne_bytes()); // in any state
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        let mut words = [0; 16];
        match address {
            IpAddr::V4(a) => words[..4].copy_from_slice(&a.octets()),
            IpAddr::V6(a) => words.copy_from_slice(&a.octets()),
        }
        bytes.extend(words);
    }
    bytes.extend(device.unwrap_or(0).to_ne_bytes());
    bytes.extend((cookie as u32).to_ne_bytes());
    bytes.extend(((cookie >> 32) as u32).to_ne_bytes());
    bytes
}

fn answer(bytes: &[u8]) -> io::Result<Option<Found>> {
    let short = || io::Error::other("the kernel's answer is too short");
    let word = |at: usize| -> io::Result<u32> {
        let word = bytes.get(at..at + 4).ok_or_else(short)?;
        Ok(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
    };
    let half = |at: usize| word(at).map(|word| [word as u16, (word >> 16) as u16]);
    let [kind, _] = half(4)?;
    if kind == ERROR {
        let error = io::Error::from_raw_os_error((word(HEADER)? as i32).saturating_neg());
        let gone = matches!(error.raw_os_error(), Some(code) if code == libc::ENOENT || code == libc::ESTALE);
        return if gone { Ok(None) } else { Err(error) };
    }
    if bytes.get(HEADER + STATE_AT) == Some(&LISTEN) {
        return Ok(None);
    }
    let mut algorithm = String::new();
    let mut at = HEADER + ANSWER;
    while at + 4 <= bytes.len() {
        let [length, kind] = half(at)?.map(usize::from);
        if length < 4 {
            break;
        }
        if kind == usize::from(CONG) {
            let name = bytes.get(at + 4..at + length).ok_or_else(short)?;
            algorithm = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        }
        at += length.next_multiple_of(4);
    }
    Ok(Some(Found { algorithm }))
}

/// The cookie of a socket's network namespace.
pub(crate) fn netns_cookie(socket: impl AsFd) -> io::Result<u64> {
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to where `cookie` is, and that many are there.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// The supplementary groups of who made the other end of a Unix socket, as they were then.
pub(crate) fn peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    // The kernel says how many there are when there is too little room (`SO_PEERGROUPS` of
    // socket(7): ERANGE).
    let mut groups = vec![0_u32; 64];
    loop {
        let mut length = size_of_val(&groups[..]) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to where `groups` is, and that many are
        // there.
        let done = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let count = length as usize / size_of::<u32>();
        if done == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

/// The cookie of the network namespace of this thread.
pub(crate) fn own_netns() -> Option<u64> {
    netns_cookie(socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?).ok()
}

/// Of `asm-generic/socket.h`; the same on every architecture that Trimtab is built for.
const SO_NETNS_COOKIE: libc::c_int = 71;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use trimtab_datapath::FlowId;
    use trimtab_units::Time;

    use super::*;

    #[test]
    fn an_open_connection_is_found_by_its_addresses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_tcp_congestion(&stream, "reno").unwrap();
        let who = Identity {
            id: FlowId(1),
            algorithm: "copa",
            cookie: None,
            netns_cookie: netns_cookie(&stream).unwrap(),
            cgroup: None,
            local: stream.local_addr().unwrap(),
            remote: stream.peer_addr().unwrap(),
            device: None,
            opened: Time::ZERO,
            adopted: false,
            towards: false,
        };
        assert!(who.netns_cookie > 0);
        let diag = SockDiag::open().unwrap();
        let cookie = rustix::net::sockopt::socket_cookie(&stream).unwrap();
        let found = diag.find(&who, Some(cookie)).unwrap().unwrap();
        assert_eq!(found.algorithm, "reno");
        assert_eq!(diag.find(&who, Some(cookie + 1)).unwrap(), None);
        let elsewhere = Identity { remote: "127.0.0.1:1".parse().unwrap(), ..who };
        assert_eq!(diag.find(&elsewhere, None).unwrap(), None);
        // The other end has gone, and its port still listens.
        let accepted = listener.accept().unwrap().0;
        let gone = Identity { local: who.remote, remote: "127.0.0.1:1".parse().unwrap(), ..who };
        assert_eq!(diag.find(&gone, None).unwrap(), None, "the kernel answers with what listens");
        let there = Identity { local: who.remote, remote: who.local, ..who };
        assert!(diag.find(&there, None).unwrap().is_some());
        drop(accepted);
    }
}
