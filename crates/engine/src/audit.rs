//! The check of the audit, made on the engine's machine: by who may read its store, whether the engine runs or not.

use std::path::Path;

use crate::config::Config;
use crate::error::Error;
use crate::run::open_tables;
use crate::store::{AuditCheck, AuditMark};

/// Checks the audit in the store of a configuration: that no line was changed, removed or inserted,
/// and that a line that is known from an earlier check is as it was.
///
/// # Errors
/// The configuration or store is wrong. That something is wrong with the audit is no error:
/// [`AuditCheck::found`] has it.
pub fn check_audit(config: &Path, known: Option<&AuditMark>) -> Result<AuditCheck, Error> {
    Ok(open_tables(&Config::read(config)?)?.check_audit(known)?)
}
