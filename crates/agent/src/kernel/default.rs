//! The algorithm of new connections, by sysctl: set where the configuration asks for it, and left to an administrator
//! who sets something else.

use std::path::Path;

use crate::error::Error;

/// Where the kernel keeps it, for the network namespace of who asks.
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Sets it to ours; `former` keeps what it was, for an agent after this one, too.
pub(crate) fn set(ours: &str, former: &Path) -> Result<(), Error> {
    let now = read()?;
    if now != ours {
        std::fs::write(former, &now)
            .map_err(|e| Error::system(format!("write {}", former.display()), e))?;
        write(ours)?;
    }
    Ok(())
}

/// Puts back what was there before, unless somebody else has set it.
pub(crate) fn restore(ours: &str, former: &Path) -> Result<(), Error> {
    let kept = std::fs::read_to_string(former).unwrap_or_default();
    let _ = std::fs::remove_file(former);
    if kept.is_empty() || read()? != ours {
        return Ok(());
    }
    write(&kept)
}

/// The sysctl under our care.
#[derive(Debug)]
pub(crate) struct DefaultAlgorithm {
    /// What it is to be.
    ours: String,
    /// What somebody else has set.
    yielded_to: Option<String>,
}

impl DefaultAlgorithm {
    /// It was set to ours just now.
    pub(crate) fn new(ours: &str) -> Self {
        Self { ours: ours.to_owned(), yielded_to: None }
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
}

/// What connections of this network namespace run where the agent has not set it; `former` keeps what
/// it was before an agent did.
pub(crate) fn system(former: &Path) -> Option<String> {
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
