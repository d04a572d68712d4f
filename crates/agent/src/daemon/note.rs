//! What connections and rules give the log to tell, with the fields of a JSON line.

use std::fmt;

use log::Level;
use trimtab_datapath::Identity;

use super::logging;
use crate::config::Rule;

/// A line for the log.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    text: String,
    connection: Option<u64>,
    /// Of the client, never its address.
    network: Option<String>,
    rule: Option<String>,
}

impl Note {
    /// About a connection.
    pub(crate) fn of(identity: &Identity, rule: Option<&Rule>, text: String) -> Self {
        Self {
            text,
            connection: Some(identity.id.0),
            network: Some(logging::network(identity.remote.ip()).to_string()),
            rule: rule.map(|rule| rule.name.clone()),
        }
    }

    /// About a rule.
    pub(crate) fn on_rule(rule: &str, text: String) -> Self {
        Self { rule: Some(rule.to_owned()), ..Self::from(text) }
    }

    /// Writes the line.
    pub(crate) fn log(&self, level: Level) {
        let Self { text, connection, network, rule } = self;
        log::log!(
            level,
            connection = connection, network = network.as_deref(), rule = rule.as_deref();
            "{text}"
        );
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self { text, connection: None, network: None, rule: None }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
