//! Tells systemd how the agent does (`sd_notify`, as its manual page has it: a datagram to `$NOTIFY_SOCKET`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use trimtab_units::Time;

/// The service manager; nobody, where no service manager started the agent.
#[derive(Debug)]
pub(crate) struct Manager {
    to: Option<(UnixDatagram, SocketAddr)>,
}

impl Manager {
    pub(crate) fn from_environment() -> Self {
        Self { to: std::env::var("NOTIFY_SOCKET").ok().and_then(|path| connect(&path)) }
    }

    /// The agent is there.
    pub(crate) fn ready(&self) {
        self.send("READY=1\n");
    }

    /// It takes over another configuration; [`Manager::ready`] ends that.
    pub(crate) fn reloading(&self, now: Time) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.as_micros()));
    }

    /// It ends.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\n");
    }

    /// It lives, and this is how it does.
    pub(crate) fn alive(&self, status: &str) {
        self.send(&format!("WATCHDOG=1\nSTATUS={status}\n"));
    }

    fn send(&self, message: &str) {
        if let Some((socket, to)) = &self.to {
            // A manager that does not listen is no reason to do anything else.
            let _ = socket.send_to_addr(message.as_bytes(), to);
        }
    }
}

fn connect(path: &str) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).ok()?,
        None => SocketAddr::from_pathname(path).ok()?,
    };
    Some((UnixDatagram::unbound().ok()?, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_the_manager_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("trimtab-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, address) in [
            (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
            (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}")),
        ] {
            let manager = Manager { to: connect(&address) };
            manager.ready();
            let mut buffer = [0; 64];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\n");
        }
    }
}
