//! What the loader needs of a configuration. It reads no model, no formula and no other file.

use std::path::{Path, PathBuf};

use super::error::{ConfigError, Source};
use super::raw::Raw;
use super::{DatapathOptions, Detail, LogFormat, Sockets};

/// What is loaded, where, and for whom.
#[derive(Clone, Debug)]
pub(crate) struct Grounds {
    pub(crate) log: Detail,
    pub(crate) log_format: LogFormat,
    /// As whom all but the loading runs; `None`: by default.
    pub(crate) user: Option<String>,
    pub(crate) default_algorithm: bool,
    pub(crate) sockets: Sockets,
    pub(crate) datapath: DatapathOptions,
    /// The folder for what the engine of the fleet has chosen.
    pub(crate) fleet: Option<PathBuf>,
    /// The network namespaces that rules name.
    pub(crate) namespaces: Vec<PathBuf>,
    /// Whether a rule gives sockets an algorithm.
    pub(crate) assigns: bool,
    /// Whether connections may run what they would run without Trimtab, for comparison.
    pub(crate) compares: bool,
}

impl Grounds {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is no configuration.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(path, &super::read_text(path)?)
    }

    /// The same of a text; `path` is for messages.
    ///
    /// # Errors
    /// It is no configuration.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let source = Source { path, text };
        let raw = Raw::parse(&source)?;
        let named = raw.rule.iter().filter_map(|rule| rule.netns.as_ref());
        let absolute = named.map(toml::Spanned::get_ref).filter(|netns| netns.is_absolute());
        Ok(Self {
            namespaces: absolute.cloned().collect(),
            assigns: raw
                .rule
                .iter()
                .any(|rule| rule.assign.as_ref().is_some_and(|is| *is.get_ref())),
            compares: raw.compare.is_on() || raw.rollout.is_some(),
            fleet: raw.fleet.as_ref().map(|fleet| source.folder().join(&fleet.folder)),
            log: raw.log,
            log_format: raw.log_format,
            user: raw.user,
            default_algorithm: raw.default_algorithm,
            sockets: raw.sockets.into(),
            datapath: DatapathOptions::read(&source, raw.datapath)?,
        })
    }
}
