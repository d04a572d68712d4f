//! Who may use the control socket, by the credentials that the kernel has of the other end.

use std::os::fd::AsFd;

use rustix::fs::Gid;

use crate::config::Sockets;
use crate::error::Error;
use crate::kernel::sock_diag::peer_groups;

/// Groups of those who may ask, and of those who may give orders, next to root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    readers: Option<u32>,
    operators: Option<u32>,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    uid: u32,
    groups: Vec<u32>,
}

/// Nobody whom the settings could mean.
impl Default for Peer {
    fn default() -> Self {
        Self { uid: u32::MAX, groups: Vec::new() }
    }
}

impl Peer {
    /// As it was when it connected (`SO_PEERCRED` and `SO_PEERGROUPS` of socket(7)).
    pub(crate) fn of(socket: impl AsFd) -> std::io::Result<Self> {
        let of = rustix::net::sockopt::socket_peercred(&socket)?;
        let mut groups = peer_groups(&socket)?;
        groups.push(of.gid.as_raw());
        Ok(Self { uid: of.uid.as_raw(), groups })
    }

    /// As the log names who gave an order.
    pub(crate) fn name(&self) -> String {
        if self.uid == 0 { "root".to_owned() } else { format!("user {}", self.uid) }
    }

    fn is_in(&self, group: Option<u32>) -> bool {
        group.is_some_and(|group| self.groups.contains(&group))
    }
}

impl Access {
    /// As the configuration has it.
    ///
    /// # Errors
    /// A group is not there.
    pub(crate) fn new(sockets: &Sockets) -> Result<Self, Error> {
        let find = |key: &str, name: &Option<String>| {
            let Some(name) = name else { return Ok(None) };
            group_id(name).map(|gid| Some(gid.as_raw())).ok_or_else(|| no_group(key, name))
        };
        let readers = find("group", &sockets.group)?;
        Ok(Self { readers, operators: find("operators", &sockets.operators)? })
    }

    /// Whether somebody may ask, or give an order.
    ///
    /// # Errors
    /// Not: then how to be allowed to.
    pub(crate) fn check(&self, peer: &Peer, is_order: bool) -> Result<(), String> {
        let may_order = peer.uid == 0 || peer.is_in(self.operators);
        if may_order || !is_order && peer.is_in(self.readers) {
            return Ok(());
        }
        let (what, key) = if is_order { ("give orders", "operators") } else { ("ask", "group") };
        Err(format!(
            "{} may not {what} here: root may, and members of the group that the agent's \
             configuration names with [sockets] {key} = \"NAME\"",
            peer.name()
        ))
    }

    /// The group of the socket's file.
    pub(super) fn file_group(&self) -> Option<Gid> {
        match (self.readers, self.operators) {
            (Some(readers), Some(operators)) if readers != operators => None,
            (readers, operators) => readers.or(operators).map(Gid::from_raw),
        }
    }

    /// Its mode.
    pub(super) fn file_mode(&self) -> u32 {
        match (self.readers.or(self.operators), self.file_group()) {
            (None, _) => 0o600,
            (Some(_), Some(_)) => 0o660,
            (Some(_), None) => 0o666,
        }
    }
}

fn no_group(key: &str, group: &str) -> Error {
    Error::Refused(format!(
        "[sockets] {key}: there is no group {group} in /etc/group; make it with `groupadd {group}`"
    ))
}

/// The number of a group of `/etc/group`.
fn group_id(name: &str) -> Option<Gid> {
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    let fields = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let id =
        fields.into_iter().find(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()?;
    Some(Gid::from_raw(id))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn peer(uid: u32, groups: &[u32]) -> Peer {
        Peer { uid, groups: groups.to_vec() }
    }

    #[test]
    fn readers_ask_operators_give_orders_and_others_neither() {
        let access = Access { readers: Some(10), operators: Some(20) };
        for (who, asks, orders) in [
            (peer(0, &[]), true, true),
            (peer(1000, &[10]), true, false),
            (peer(1000, &[7, 20]), true, true),
            (peer(1000, &[7]), false, false),
            (Peer::default(), false, false),
        ] {
            assert_eq!(access.check(&who, false).is_ok(), asks, "{who:?}");
            assert_eq!(access.check(&who, true).is_ok(), orders, "{who:?}");
        }
        let none = Access { readers: None, operators: None };
        let refused = none.check(&peer(1000, &[0]), true).unwrap_err();
        assert!(refused.starts_with("user 1000 may not give orders"), "{refused}");
        assert!(refused.contains("[sockets] operators"), "{refused}");
    }

    #[test]
    fn the_file_lets_in_whom_the_check_does() {
        for (readers, operators, mode) in [
            (None, None, 0o600),
            (Some(10), None, 0o660),
            (None, Some(20), 0o660),
            (Some(10), Some(10), 0o660),
            (Some(10), Some(20), 0o666),
        ] {
            assert_eq!(Access { readers, operators }.file_mode(), mode);
        }
    }

    #[test]
    fn the_other_end_is_known_by_what_the_kernel_has_of_it() {
        let (here, _there) = UnixStream::pair().unwrap();
        let peer = Peer::of(&here).unwrap();
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
        assert!(peer.groups.contains(&rustix::process::getegid().as_raw()), "{peer:?}");
    }
}
