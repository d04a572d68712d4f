//! The algorithm of new connections, by sysctl: set where the configuration asks for it, and left to an administrator
//! who sets something else.

use std::path::PathBuf;

use crate::error::Error;

/// Where the kernel keeps it, for the network namespace of who asks.
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// The sysctl under our care.
#[derive(Debug)]
pub(crate) struct DefaultAlgorithm {
    /// What it is to be.
    ours: String,
    /// What it was before; kept in a file for an agent after this one.
    former: PathBuf,
    /// What somebody else has set.
    yielded_to: Option<String>,
}

impl DefaultAlgorithm {
    /// Sets it; `former` keeps what it was.
    pub(crate) fn set(ours: &str, former: PathBuf) -> Result<Self, Error> {
        let now = read()?;
        if now != ours {
            std::fs::write(&former, &now)
                .map_err(|e| Error::system(format!("write {}", former.display()), e))?;
            write(ours)?;
        }
        Ok(Self { ours: ours.to_owned(), former, yielded_to: None })
    }

    /// Looks whether somebody has set something else; tells so once.
    pub(crate) fn look(&mut self) -> Option<String> {
        if self.yielded_to.is_some() {
            return None;
        }
        let now = read().ok().filter(|now| *now != self.ours)?;
        self.yielded_to = Some(now);
        self.trouble()
    }

    /// What it was left to.
    pub(crate) fn trouble(&self) -> Option<String> {
        let other = self.yielded_to.as_ref()?;
        Some(format!(
            "net.ipv4.tcp_congestion_control was set to {other} by hand, and is left so: new connections are not \
             tuned unless they pick {}; reload or restart the agent to take it back",
            self.ours
        ))
    }

    /// Puts back what was there before, unless somebody else has set it.
    pub(crate) fn restore(&self) -> Result<(), Error> {
        let former = std::fs::read_to_string(&self.former).unwrap_or_default();
        let _ = std::fs::remove_file(&self.former);
        if former.is_empty() || read()? != self.ours {
            return Ok(());
        }
        write(&former)
    }
}

/// What connections of this network namespace run where the agent has not set it; `former` keeps what
/// it was before an agent did.
pub(crate) fn system(former: &std::path::Path) -> Option<String> {
    let kept = std::fs::read_to_string(former).ok().filter(|name| !name.is_empty());
    kept.or_else(|| read().ok())
}

fn read() -> Result<String, Error> {
    std::fs::read_to_string(SYSCTL)
        .map(|text| text.trim().to_owned())
        .map_err(|e| Error::system(format!("read {SYSCTL}"), e))
}

fn write(name: &str) -> Result<(), Error> {
    std::fs::write(SYSCTL, name).map_err(|e| Error::system(format!("set {SYSCTL} to {name}"), e))
}
