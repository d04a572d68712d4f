//! The rights to make network namespaces: root has them, and everybody has them in a user namespace of their own
//! where the system allows that.

use std::fs;
use std::io;

use rustix::thread::CapabilitySet;

use crate::error::EmuError;
use crate::sys;

/// Where the rights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process has them: it is root, or already in a user namespace that is its own.
    Held,
    /// From a new user namespace, in which the user is root and outside of which nothing has changed. The network
    /// that the process came from is out of reach for links: only private topologies can be made.
    UserNamespace,
}

/// Gets the rights to make network namespaces, in a new user namespace if need be.
///
/// Call it at the start of `main`: the system lets only a process with a single thread change its user namespace.
///
/// # Errors
/// [`EmuError::NotPermitted`] when the process has not the rights and the system gives it no user namespace.
pub fn acquire() -> Result<Privilege, EmuError> {
    if holds() {
        return Ok(Privilege::Held);
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let enter = || -> io::Result<()> {
        sys::unshare_user()?;
        // Without this the system does not let us map our group (user_namespaces(7)).
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    enter().map_err(EmuError::NotPermitted)?;
    if holds() {
        Ok(Privilege::UserNamespace)
    } else {
        // Some systems give the namespace and keep its rights (AppArmor's restriction).
        Err(EmuError::NotPermitted(io::ErrorKind::PermissionDenied.into()))
    }
}

fn holds() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
