//! Two socket options that have no safe wrapper. Everything unsafe of this crate is in this file.
#![expect(unsafe_code, reason = "getsockopt and setsockopt take pointers")]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use trimtab_units::{Bytes, Duration, Rate};

/// Above what any link here carries, and not the value that means "no pacing".
const FAST: Rate = Rate::from_bytes_per_sec(1 << 40);

/// Has TCP pace the connection by itself, as the `fq` queueing discipline would
/// (`SO_MAX_PACING_RATE`, which turns pacing on whatever the rate).
pub(crate) fn pace(socket: &TcpStream) -> io::Result<()> {
    let rate: u64 = FAST.bytes_per_sec();
    let length = size_of_val(&rate) as libc::socklen_t;
    // SAFETY: the pointer is to `rate`, which lives through the call and has that length.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel tells of a connection (`TCP_INFO`), as far as it is used here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpInfo {
    /// Whether losses are being repaired and the window goes down to the threshold (RFC 6937).
    pub(crate) is_reducing: bool,
    /// Payload of a full packet.
    pub(crate) packet: Bytes,
    /// The congestion window, the slow-start threshold, and what is in flight, in packets.
    pub(crate) window: u32,
    pub(crate) threshold: u32,
    pub(crate) inflight: u32,
    /// Packets with data that left so far, and how many of them carried what had been sent before.
    pub(crate) sent: u64,
    pub(crate) resent: u64,
    /// The smoothed round-trip time.
    pub(crate) srtt: Duration,
    /// What the connection is paced at.
    pub(crate) pacing: Rate,
}

/// `TCP_ESTABLISHED` of linux/tcp_states.h.
const ESTABLISHED: u8 = 1;
/// States of the congestion control in which the window is brought to the threshold: `TCP_CA_CWR`
/// and `TCP_CA_Recovery` of linux/tcp.h.
const REDUCING: [u8; 2] = [2, 3];
/// As far as `struct tcp_info` of linux/tcp.h is read: to the end of `tcpi_data_segs_out`, which
/// Linux has since 4.6. Fields are only ever added at its end.
const LENGTH: usize = 160;

/// What the kernel tells of a connection; `None` when it has ended.
pub(crate) fn info(socket: &TcpStream) -> Option<TcpInfo> {
    let mut info = [0_u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which has as many, and how many it wrote to `length`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 || (length as usize) < LENGTH || info[0] != ESTABLISHED {
        return None;
    }
    // Where `tcpi_snd_mss` and the others lie.
    let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let pacing = info[104..112].try_into().map_or(0, u64::from_ne_bytes);
    let [unacked, sacked, lost, retransmitted] = [24, 28, 32, 36].map(word);
    Some(TcpInfo {
        is_reducing: REDUCING.contains(&info[1]),
        packet: Bytes::new(word(16).into()),
        window: word(80),
        threshold: word(76),
        // tcp_packets_in_flight() of net/tcp.h.
        inflight: (unacked + retransmitted).saturating_sub(sacked + lost),
        sent: word(156).into(),
        resent: word(100).into(),
        srtt: Duration::from_micros(word(68).into()),
        pacing: Rate::from_bytes_per_sec(pacing),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_has_a_window_and_can_be_paced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        pace(&client).unwrap();
        // Linux begins with ten packets (RFC 6928), of 536 bytes (RFC 9293, section 3.7.1) or more.
        let info = info(&client).unwrap();
        let window = info.packet * u64::from(info.window);
        assert!((5360..10_000_000).contains(&window.get()), "{info:?}");
        assert_eq!((info.inflight, info.sent, info.is_reducing), (0, 0, false));
    }
}
