//! Two socket options that have no safe wrapper. Everything unsafe of this crate is in this file.
#![expect(unsafe_code, reason = "getsockopt and setsockopt take pointers")]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use trimtab_units::{Bytes, Rate};

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

/// Where `struct tcp_info` of linux/tcp.h has `tcpi_snd_mss` and `tcpi_snd_cwnd`. Fields are only
/// ever added at its end.
const SND_MSS: usize = 16;
const SND_CWND: usize = 80;
const LENGTH: usize = 104;

/// The congestion window of a connection (`TCP_INFO`); `None` when it has ended.
pub(crate) fn window(socket: &TcpStream) -> Option<Bytes> {
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
    let field = |at: usize| {
        let bytes = info.get(at..at + 4)?;
        Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)))
    };
    if result != 0 || (length as usize) < SND_CWND + 4 {
        return None;
    }
    Some(Bytes::new(field(SND_MSS)? * field(SND_CWND)?))
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
        let window = window(&client).unwrap();
        assert!((5360..10_000_000).contains(&window.get()), "{window:?}");
    }
}
