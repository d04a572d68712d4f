//! What can go wrong around a link.

use std::io;
use std::path::PathBuf;

/// Why a link could not be set up, or a program not be run behind it. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmuError {
    /// The kernel lacks TUN devices, or keeps them from us.
    #[error("cannot open /dev/net/tun: {cause}; {advice}", cause = .0, advice = advise_on_tun(.0))]
    NoTun(#[source] io::Error),
    /// Neither root nor user namespaces.
    #[error(
        "emulating a link needs network namespaces, and this user may not make them ({0}); run it as root, or allow \
         user namespaces (`sysctl user.max_user_namespaces=10000`, and where the system has them \
         `kernel.unprivileged_userns_clone=1` and `kernel.apparmor_restrict_unprivileged_userns=0`; in a container \
         give it the capabilities SYS_ADMIN and NET_ADMIN)"
    )]
    NotPermitted(#[source] io::Error),
    /// All addresses of the caller's namespace are taken.
    #[error(
        "no address is free for another link here: {links} links side by side are the most at this depth of nesting; \
         end some of them"
    )]
    TooMany {
        /// How many there can be.
        links: u32,
    },
    /// A program could not be started.
    #[error("cannot run {program:?}: {}", explain_start(cause))]
    Program {
        /// As it was named.
        program: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The program of the far side ended early.
    #[error("the server {program:?} ended before the program behind the link began: {status}")]
    ServerEnded {
        /// As it was named.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// A log could not be written.
    #[error("cannot write {}: {cause}; choose another place with --log", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The topology is not in the state that the call needs.
    #[error("the link {0}")]
    State(&'static str),
    /// Another system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

impl EmuError {
    /// For `map_err`: what was tried, then what the system said.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        |cause| Self::System { what: what.into(), cause: cause.into() }
    }
}

fn explain_start(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => "there is no such program; check its name and PATH".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "it may not be executed; check its permissions".to_owned()
        }
        _ => cause.to_string(),
    }
}

fn advise_on_tun(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "run it as root, or let this user open the device (`chmod a+rw /dev/net/tun`)"
        }
        _ => {
            "load the kernel's module with `modprobe tun`, or in a container hand the device in \
             (`--device /dev/net/tun`)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_to_do() {
        use io::ErrorKind::{NotFound, PermissionDenied};
        let program = |kind: io::ErrorKind| {
            EmuError::Program { program: "iperf".to_owned(), cause: kind.into() }.to_string()
        };
        for (message, words) in [
            (EmuError::NoTun(PermissionDenied.into()).to_string(), "chmod a+rw /dev/net/tun"),
            (EmuError::NoTun(NotFound.into()).to_string(), "modprobe tun"),
            (EmuError::NotPermitted(PermissionDenied.into()).to_string(), "run it as root"),
            (EmuError::TooMany { links: 7 }.to_string(), "7 links side by side are the most"),
            (program(NotFound), "check its name and PATH"),
            (program(PermissionDenied), "check its permissions"),
            (EmuError::State("runs already; stop it first").to_string(), "the link runs already"),
            (EmuError::system("move")(io::Error::from(NotFound)).to_string(), "cannot move: "),
        ] {
            assert!(message.contains(words) && !message.contains('\n'), "{message}");
        }
        assert!(program(NotFound).contains("\"iperf\""));
    }
}
