//! Of which connections an order is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::Prefix;

/// Connections, by what an operator knows of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// All of them.
    All,
    /// Those of a rule, by its name: `rule:web`.
    Rule(String),
    /// One, by its number in `trimtab agent flows`: `flow:17`. Until it ends.
    Flow(u64),
    /// Those to an address or a prefix: `192.0.2.0/24`.
    To(Prefix),
    /// Those with a local port: `port:443`.
    Port(u16),
    /// Those whose socket was made in a cgroup or below it: `cgroup:/system.slice/nginx.service`.
    Cgroup(String),
}

/// What there is to know of a connection or a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) rule: Option<&'a str>,
    /// `None` of a socket that is no connection under the agent's care.
    pub(crate) flow: Option<u64>,
    /// `None` of a socket that listens.
    pub(crate) remote: Option<IpAddr>,
    pub(crate) port: u16,
    pub(crate) cgroup: Option<u64>,
}

impl Target {
    /// Whether a connection is one of these; `cgroups` are the numbers of those that this names.
    pub(crate) fn covers(
        &self,
        subject: &Subject<'_>,
        cgroups: &std::collections::BTreeSet<u64>,
    ) -> bool {
        match self {
            Self::All => true,
            Self::Rule(name) => subject.rule == Some(name),
            Self::Flow(id) => subject.flow == Some(*id),
            Self::To(prefix) => subject.remote.is_some_and(|remote| prefix.contains(remote)),
            Self::Port(port) => subject.port == *port,
            Self::Cgroup(_) => subject.cgroup.is_some_and(|id| cgroups.contains(&id)),
        }
    }

    /// Whether it is a place that an exclusion can name: one that outlives connections and rules.
    pub(crate) fn is_place(&self) -> bool {
        matches!(self, Self::To(_) | Self::Port(_) | Self::Cgroup(_))
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms = "write all, rule:NAME, flow:NUMBER, port:NUMBER, cgroup:/PATH, or a \
                     destination as 192.0.2.0/24";
        let fail = |what: &str| format!("{text:?} names no connections: {what}; {forms}");
        let number = |of: &str| fail(&format!("{of:?} is no number"));
        match text.trim().split_once(':') {
            None if text.trim() == "all" => Ok(Self::All),
            Some(("rule", name)) if !name.is_empty() => Ok(Self::Rule(name.to_owned())),
            Some(("flow", id)) => id.parse().map(Self::Flow).map_err(|_| number(id)),
            Some(("port", port)) => port.parse().map(Self::Port).map_err(|_| number(port)),
            Some(("cgroup", path)) if path.starts_with('/') => Ok(Self::Cgroup(path.to_owned())),
            Some(("cgroup", _)) => Err(fail("a cgroup is named by its whole path")),
            // An address of IPv6 has colons, too.
            _ => text.parse().map(Self::To).map_err(|why: String| fail(&why)),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Rule(name) => write!(f, "rule:{name}"),
            Self::Flow(id) => write!(f, "flow:{id}"),
            Self::To(prefix) => write!(f, "{prefix}"),
            Self::Port(port) => write!(f, "port:{port}"),
            Self::Cgroup(path) => write!(f, "cgroup:{path}"),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_form_is_read_as_it_is_written_and_covers_what_it_names() {
        let subject = Subject {
            rule: Some("web"),
            flow: Some(17),
            remote: Some("192.0.2.7".parse().unwrap()),
            port: 443,
            cgroup: Some(9),
        };
        let cgroups = BTreeSet::from([9]);
        for (text, covers) in [
            ("all", true),
            ("rule:web", true),
            ("rule:video", false),
            ("flow:17", true),
            ("flow:18", false),
            ("192.0.2.0/24", true),
            ("198.51.100.0/24", false),
            ("2001:db8::/32", false),
            ("port:443", true),
            ("port:80", false),
            ("cgroup:/a/b", true),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
            assert_eq!(target.covers(&subject, &cgroups), covers, "{text}");
        }
        let listens = Subject { remote: None, flow: None, ..subject };
        let one: Target = "192.0.2.7".parse().unwrap();
        assert!(one.covers(&subject, &cgroups) && !one.covers(&listens, &cgroups));
    }

    #[test]
    fn a_target_that_is_none_is_refused_with_the_forms_that_there_are() {
        for text in ["", "web", "rule:", "flow:x", "port:70000", "cgroup:nginx", "192.0.2.1/24"] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains("rule:NAME") && error.contains("192.0.2.0/24"), "{error}");
        }
    }
}
