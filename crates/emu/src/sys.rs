//! The system calls that have no safe wrapper: ioctls of network devices, a namespace of one's own, real-time
//! scheduling, and a child that dies with its parent. Everything unsafe of this crate is in this file.
#![expect(unsafe_code, reason = "these system calls take pointers, or act on the whole process")]

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::ioctl::{Opcode, Setter, Updater, ioctl};
use rustix::thread::UnshareFlags;

/// `struct ifreq` of linux/if.h: a device's name and one value, whose form depends on the request.
#[repr(C)]
#[derive(Clone, Copy)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// The name of a network device, at most 15 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceName([u8; libc::IFNAMSIZ]);

impl DeviceName {
    /// Cuts what is too long: the kernel would, too.
    pub(crate) fn new(name: &str) -> Self {
        let mut bytes = [0; libc::IFNAMSIZ];
        let length = name.len().min(libc::IFNAMSIZ - 1);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self(bytes)
    }

    pub(crate) fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

impl InterfaceRequest {
    fn new(name: DeviceName, value: &[u8]) -> Self {
        let mut request = Self { name: name.0, value: [0; 24] };
        request.value[..value.len()].copy_from_slice(value);
        request
    }
}

/// `struct sockaddr_in`: family in the machine's order, then port and address in the network's.
fn socket_address(address: Ipv4Addr) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[4..8].copy_from_slice(&address.octets());
    bytes
}

/// Makes `tun`, freshly opened from `/dev/net/tun`, a device for IP packets in the network namespace of the
/// calling thread. `%d` in the name stands for the first number that is free. Returns the name.
pub(crate) fn make_tun(tun: BorrowedFd<'_>, name: DeviceName) -> io::Result<DeviceName> {
    const TUNSETIFF: Opcode = libc::TUNSETIFF as Opcode;
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
    let mut request = InterfaceRequest::new(name, &flags.to_ne_bytes());
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, _>::new(&mut request)) }?;
    Ok(DeviceName(request.name))
}

/// What can be set of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// Its address.
    Address(Ipv4Addr),
    /// The mask of its subnet, after the address.
    Netmask(Ipv4Addr),
    /// The largest packet, in bytes.
    Mtu(u16),
    /// On.
    Up,
}

/// Sets something of a device in the network namespace of the calling thread. `socket` is any IPv4 socket of it.
pub(crate) fn set(socket: BorrowedFd<'_>, device: DeviceName, setting: Setting) -> io::Result<()> {
    const SIOCSIFADDR: Opcode = libc::SIOCSIFADDR as Opcode;
    const SIOCSIFNETMASK: Opcode = libc::SIOCSIFNETMASK as Opcode;
    const SIOCSIFMTU: Opcode = libc::SIOCSIFMTU as Opcode;
    const SIOCSIFFLAGS: Opcode = libc::SIOCSIFFLAGS as Opcode;
    let request = |value: &[u8]| InterfaceRequest::new(device, value);
    // SAFETY: each of these reads a `struct ifreq` with a value of the form that is given here (netdevice(7)).
    unsafe {
        match setting {
            Setting::Address(a) => {
                ioctl(socket, Setter::<SIOCSIFADDR, _>::new(request(&socket_address(a))))
            }
            Setting::Netmask(a) => {
                ioctl(socket, Setter::<SIOCSIFNETMASK, _>::new(request(&socket_address(a))))
            }
            Setting::Mtu(mtu) => {
                let mtu = i32::from(mtu).to_ne_bytes();
                ioctl(socket, Setter::<SIOCSIFMTU, _>::new(request(&mtu)))
            }
            Setting::Up => {
                let flags = ((libc::IFF_UP | libc::IFF_RUNNING) as u16).to_ne_bytes();
                ioctl(socket, Setter::<SIOCSIFFLAGS, _>::new(request(&flags)))
            }
        }
    }?;
    Ok(())
}

/// The address and netmask of a device in the network namespace of the calling thread.
pub(crate) fn address(
    socket: BorrowedFd<'_>,
    device: DeviceName,
) -> io::Result<(Ipv4Addr, Ipv4Addr)> {
    const SIOCGIFADDR: Opcode = libc::SIOCGIFADDR as Opcode;
    const SIOCGIFNETMASK: Opcode = libc::SIOCGIFNETMASK as Opcode;
    let of = |request: &InterfaceRequest| {
        let [_, _, _, _, a, b, c, d, ..] = request.value;
        Ipv4Addr::new(a, b, c, d)
    };
    let mut request = InterfaceRequest::new(device, &socket_address(Ipv4Addr::UNSPECIFIED));
    // SAFETY: both read and write a `struct ifreq` (netdevice(7)).
    let address = unsafe {
        ioctl(socket, Updater::<SIOCGIFADDR, _>::new(&mut request))?;
        of(&request)
    };
    // SAFETY: as above.
    unsafe { ioctl(socket, Updater::<SIOCGIFNETMASK, _>::new(&mut request)) }?;
    Ok((address, of(&request)))
}

/// `struct rtentry` of linux/route.h, with its pointers as numbers, for they are null here.
#[repr(C)]
struct Route {
    pad1: libc::c_ulong,
    destination: [u8; 16],
    gateway: [u8; 16],
    netmask: [u8; 16],
    flags: libc::c_ushort,
    pad2: libc::c_short,
    pad3: libc::c_ulong,
    pad4: usize,
    metric: libc::c_short,
    device: usize,
    mtu: libc::c_ulong,
    window: libc::c_ulong,
    irtt: libc::c_ushort,
}

const _: () = assert!(size_of::<Route>() == size_of::<libc::rtentry>());

/// Sends everything that has no other route to `gateway`.
pub(crate) fn set_default_route(socket: BorrowedFd<'_>, gateway: Ipv4Addr) -> io::Result<()> {
    const SIOCADDRT: Opcode = libc::SIOCADDRT as Opcode;
    let any = socket_address(Ipv4Addr::UNSPECIFIED);
    let route = Route {
        pad1: 0,
        destination: any,
        gateway: socket_address(gateway),
        netmask: any,
        flags: libc::RTF_UP | libc::RTF_GATEWAY,
        pad2: 0,
        pad3: 0,
        pad4: 0,
        metric: 0,
        device: 0,
        mtu: 0,
        window: 0,
        irtt: 0,
    };
    // SAFETY: SIOCADDRT reads a `struct rtentry`, whose null device means that the gateway decides.
    unsafe { ioctl(socket, Setter::<SIOCADDRT, _>::new(route)) }?;
    Ok(())
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: file descriptors stay shared, which is all that the wrapper warns of.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Moves the process, which must have one thread only, into a new user namespace.
pub(crate) fn unshare_user() -> io::Result<()> {
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    Ok(())
}

/// Lets the calling thread run before every ordinary one, and before those of a lower priority
/// (sched(7), `SCHED_FIFO`).
pub(crate) fn schedule_first(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the call reads one `struct sched_param`; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes the child that `command` will spawn die when the thread that spawned it ends, however it ends.
pub(crate) fn die_with_parent(command: &mut Command) {
    let kill = || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; this is one system call.
    unsafe { command.pre_exec(kill) };
}
