//! How the steerer begins: the same program once more, without the loader's rights.
#![expect(
    unsafe_code,
    reason = "between fork and exec rights are given up, and a descriptor is kept"
)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::user::User;
use crate::error::Error;

/// Tells a process that it is the steerer: the number of its descriptor of the channel, and of the
/// loader's process.
const VARIABLE: &str = "TRIMTAB_LOADER";

/// Starts the steerer with its end of the channel.
pub(super) fn start(channel: &OwnedFd, user: Option<&User>) -> Result<Child, Error> {
    let mut arguments = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let number = channel.as_raw_fd();
    command
        .args(arguments)
        .env(VARIABLE, format!("{number}:{}", getpid().as_raw_nonzero()))
        // The loader alone speaks with the service manager.
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_USEC");
    let whose = user.map_or_else(String::new, |user| format!(" as the user {}", user.name));
    let user = user.cloned();
    // SAFETY: after the fork it makes system calls only, and takes no lock and no memory.
    unsafe { command.pre_exec(move || give_up(number, user.as_ref())) };
    command.spawn().map_err(|e| Error::system(format!("start the steerer{whose}"), e))
}

/// Leaves this process the user's rights, and the channel.
fn give_up(channel: RawFd, user: Option<&User>) -> io::Result<()> {
    // SAFETY: the loader keeps it open until the child has begun.
    fcntl_setfd(unsafe { BorrowedFd::borrow_raw(channel) }, FdFlags::empty())?;
    for bit in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // There is none of this number, nor of higher ones.
            Err(Errno::INVAL) => break,
            // The bounding set gives rights to root alone, and to programs with their own, which
            // `no_new_privs` ends.
            Err(Errno::PERM) if !rustix::process::geteuid().is_root() => break,
            Err(error) => return Err(error.into()),
        }
    }
    clear_ambient_capability_set()?;
    if let Some(user) = user {
        set_thread_groups(&user.groups)?;
        set_thread_res_gid(user.gid, user.gid, user.gid)?;
        set_thread_res_uid(user.uid, user.uid, user.uid)?;
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none)?;
    set_no_new_privs(true)?;
    Ok(())
}

/// The channel to the loader, in a process that a loader started as the steerer; `None` in any other.
/// From now on the steerer ends with the loader.
///
/// # Errors
/// The loader is gone, or was none.
pub(crate) fn as_steerer() -> Result<Option<(OwnedFd, u32)>, Error> {
    let Ok(told) = std::env::var(VARIABLE) else { return Ok(None) };
    let wrong = || {
        let what =
            format!("the environment has {VARIABLE}={told:?}, which no loader has set: unset it");
        Error::Refused(what)
    };
    let (channel, loader) = told.split_once(':').ok_or_else(wrong)?;
    let loader = loader.parse().ok().and_then(Pid::from_raw).ok_or_else(wrong)?;
    let channel: RawFd = channel.parse().ok().filter(|fd| *fd > 2).ok_or_else(wrong)?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|e| Error::system("end with the loader", e))?;
    // It may have ended before that.
    if getppid() != Some(loader) {
        return Err(wrong());
    }
    // SAFETY: our parent, the loader, opened it for us, and nobody else here knows of it.
    let channel = unsafe { OwnedFd::from_raw_fd(channel) };
    fcntl_setfd(&channel, FdFlags::CLOEXEC).map_err(|_| wrong())?;
    Ok(Some((channel, loader.as_raw_nonzero().get().unsigned_abs())))
}
