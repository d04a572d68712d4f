//! `trimtab agent check`: what is wrong with a configuration, without starting an agent.

use std::fmt;
use std::path::{Path, PathBuf};

use trimtab_units::Time;

use crate::config::Config;
use crate::doors::access::Access;
use crate::error::Error;
use crate::kernel::places::{Namespaces, Places};

/// A configuration with which an agent would start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its file.
    pub path: PathBuf,
    /// How many rules it has.
    pub rules: usize,
    /// What `trimtab agent status` would name: models that cannot be used, places that are not there.
    pub troubles: Vec<String>,
}

/// Reads a configuration as an agent would, with the files that it names.
///
/// # Errors
/// No agent would start with it, or none would take it over: why, with its place in the file where it has one.
pub fn check(path: &Path) -> Result<Checked, Error> {
    checked(path, &Config::read(path)?)
}

/// What a configuration of this file names that is not there, or cannot be used.
pub(crate) fn checked(path: &Path, config: &Config) -> Result<Checked, Error> {
    if let Some(fleet) = &config.fleet {
        fleet.options().map_err(|why| Error::Refused(format!("[fleet]: {why}")))?;
    }
    Access::new(&config.sockets)?;
    let missing =
        Places::new(&config.rules, Namespaces::Here, Time::ZERO).missing(&config.rules, Time::ZERO);
    let troubles = [config.troubles(), config.remarks(), missing].concat();
    Ok(Checked { path: path.to_owned(), rules: config.rules.len(), troubles })
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for trouble in &self.troubles {
            writeln!(f, "note: {trouble}")?;
        }
        writeln!(f, "{}: good, rules: {}", self.path.display(), self.rules)
    }
}
