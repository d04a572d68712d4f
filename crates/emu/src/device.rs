//! The two ends of a link: TUN devices, from which we read what the kernel sends and to which we write what it
//! shall receive.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::address::Block;
use crate::error::EmuError;
use crate::namespace::{Namespace, any_socket};
use crate::netlink;
use crate::sys::{self, DeviceName, Setting};

/// The largest packet, that of Ethernet and of one opportunity in Mahimahi's traces. The kernel cuts what is larger
/// before it reaches us (we offer it no offloading), so each read gives one packet as on a wire.
pub(crate) const MTU: u16 = 1500;

/// How many packets the kernel keeps for us to read. TCP hands over a whole window at once when it does not pace,
/// and what does not fit here is lost before the link; the default of 500 is less than some windows. Costs 8 bytes
/// each.
const QUEUE_PACKETS: u32 = 20_000;

/// The name of the end inside. The end outside is `trimtab0`, `trimtab1`, ... whichever is free.
const INNER: &str = "link";
const OUTER: &str = "trimtab%d";

/// One end. Its device vanishes when the last copy of the file is closed.
#[derive(Debug)]
pub(crate) struct Tun {
    file: File,
    name: DeviceName,
}

impl Tun {
    /// Makes a device in the namespace of the calling thread.
    fn new(name: &str) -> Result<Self, EmuError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(EmuError::NoTun)?;
        let name =
            sys::make_tun(file.as_fd(), DeviceName::new(name)).map_err(|cause| {
                match cause.kind() {
                    io::ErrorKind::PermissionDenied => EmuError::NotPermitted(cause),
                    _ => EmuError::system("make a TUN device")(cause),
                }
            })?;
        Ok(Self { file, name })
    }

    /// Gives the device an address and turns it on.
    fn configure(&self, address: Ipv4Addr, netmask: Ipv4Addr) -> Result<(), EmuError> {
        let socket = any_socket()?;
        // The link carries what programs send. IPv6 would send by itself: router solicitations, group reports.
        let ipv6 = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name.as_str());
        match fs::write(ipv6, "1") {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(EmuError::system("turn IPv6 off on the link's device")(cause));
            }
            _ => {}
        }
        netlink::set_queue_length(self.name.as_str(), QUEUE_PACKETS)
            .map_err(EmuError::system("set the length of the device's queue"))?;
        for setting in
            [Setting::Mtu(MTU), Setting::Address(address), Setting::Netmask(netmask), Setting::Up]
        {
            sys::set(socket.as_fd(), self.name, setting)
                .map_err(EmuError::system(format!("set {setting:?} of {}", self.name.as_str())))?;
        }
        Ok(())
    }

    pub(crate) fn try_clone(&self) -> Result<Self, EmuError> {
        let file = self.file.try_clone().map_err(EmuError::system("copy a file descriptor"))?;
        Ok(Self { file, name: self.name })
    }

    /// Reads one packet; `None` when there is none.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Hands one packet to the kernel.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }

    /// Throws away the packets that wait to be read.
    pub(crate) fn discard_waiting(&self) {
        let mut buffer = [0; MTU as usize];
        while let Ok(Some(_)) = self.read(&mut buffer) {}
    }

    /// The packets that the kernel dropped because [`QUEUE_PACKETS`] waited already. Call it in the device's
    /// namespace.
    pub(crate) fn overflows(&self) -> io::Result<u64> {
        let text = fs::read_to_string("/proc/thread-self/net/dev")?;
        // "  name: " and 16 numbers, of which the 12th counts the packets that were not sent.
        const DROPPED_ON_SENDING: usize = 11;
        let line = text.lines().find_map(|line| {
            let (name, numbers) = line.split_once(':')?;
            (name.trim() == self.name.as_str()).then_some(numbers)
        });
        let number = line.and_then(|l| l.split_ascii_whitespace().nth(DROPPED_ON_SENDING));
        number.and_then(|n| n.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Both ends of a link, in their namespaces, with their addresses.
pub(crate) struct Ends {
    pub(crate) outer: Tun,
    pub(crate) inner: Tun,
    pub(crate) block: Block,
}

impl Ends {
    /// Makes both ends and the routes to them.
    pub(crate) fn new(outside: &Namespace, inside: &Namespace) -> Result<Self, EmuError> {
        let (outer, block) = outside.run(make_outer)?;
        let inner = inside.run(move || make_inner(block))?;
        Ok(Self { outer, inner, block })
    }
}

fn make_outer() -> Result<(Tun, Block), EmuError> {
    let parent = {
        let socket = any_socket()?;
        // Without such a device, this namespace is not behind a link.
        let ends = sys::address(socket.as_fd(), DeviceName::new(INNER)).ok();
        ends.and_then(|(address, netmask)| Block::of_inner_end(address, netmask))
    };
    let tun = Tun::new(OUTER)?;
    // The kernel found a number that no other device has, so nobody else takes this block.
    let number = tun.name.as_str().trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    let block = number
        .and_then(|number| Block::new(parent, number))
        .ok_or(EmuError::TooMany { links: Block::links_inside(parent) })?;
    tun.configure(block.outer(), block.netmask())?;
    Ok((tun, block))
}

fn make_inner(block: Block) -> Result<Tun, EmuError> {
    let tun = Tun::new(INNER)?;
    tun.configure(block.inner(), block.netmask())?;
    let socket = any_socket()?;
    sys::set_default_route(socket.as_fd(), block.outer())
        .map_err(EmuError::system("set the route through the link"))?;
    // For links that are started inside.
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        .map_err(EmuError::system("let the namespace forward packets"))?;
    Ok(tun)
}
