//! The one setting that takes a netlink message: the ioctl for the length of a device's queue wants root, where
//! netlink is content with the rights over the device's own network namespace.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

/// Sets the packets that wait in the kernel to be read from a device, in the namespace of the calling thread.
pub(crate) fn set_queue_length(device: &str, packets: u32) -> io::Result<()> {
    // The protocol that none stands for, 0, is NETLINK_ROUTE.
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let index = rustix::net::netdevice::name_to_index(&socket, device)?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &message(index, packets), SendFlags::empty(), &kernel)?;
    // The answer is a `struct nlmsgerr`: after the header, 0 or a negative error number (netlink(7)).
    let mut answer = [0; 256];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let code = answer[..length].get(HEADER..HEADER + 4).and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The bytes of a `struct nlmsghdr`.
const HEADER: usize = 16;

/// A header, a `struct ifinfomsg` and one attribute (rtnetlink(7)), 16, 16 and 8 bytes.
fn message(index: u32, packets: u32) -> [u8; 40] {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let words: [u32; 10] = [
        // The whole length; type and flags; a sequence number and a port, of no matter here.
        40,
        pair(libc::RTM_NEWLINK, flags),
        0,
        0,
        // Any family; the device; no change of its flags.
        0,
        index,
        0,
        0,
        // The attribute's length and type; its value.
        pair(8, libc::IFLA_TXQLEN),
        packets,
    ];
    let mut bytes = [0; 40];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Two 16-bit fields as they lie in memory, in the machine's order.
fn pair(first: u16, second: u16) -> u32 {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field by field as `struct nlmsghdr`, `struct ifinfomsg` and `struct rtattr` have them.
    #[test]
    fn a_message_lies_in_memory_as_the_kernel_reads_it() {
        let bytes = message(7, 20_000);
        let u32_at = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let u16_at = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap());
        assert_eq!(u32_at(0) as usize, bytes.len());
        assert_eq!((u16_at(4), i32::from(u16_at(6))), (16, libc::NLM_F_REQUEST | libc::NLM_F_ACK));
        assert_eq!((bytes[16], u32_at(20), u32_at(24), u32_at(28)), (0, 7, 0, 0));
        assert_eq!((u16_at(32), u16_at(34), u32_at(36)), (8, 13, 20_000));
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        let error = set_queue_length("no-such-device", 5).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
    }
}
