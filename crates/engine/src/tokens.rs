//! Tokens, made, rotated and revoked on the engine's machine: by who may write its store, whether the engine runs or
//! not.

use std::path::Path;
use trimtab_fleet_client::{NewToken, RotateToken, Token};

use crate::api::{new_token, rotation};
use crate::clock::now_ms;
use crate::config::Config;
use crate::error::Error;
use crate::run::open_tables;
use crate::services::Services;

/// In the audit log, who acts on the engine's machine.
pub(crate) const HERE: &str = "(the engine's machine)";

/// Makes a token in the store of a configuration; the token itself is shown only this once.
///
/// # Errors
/// The configuration or store is wrong, the name is taken, or an edge has no services, or some that do not exist.
pub fn add_token(config: &Path, new: &NewToken) -> Result<String, Error> {
    let config = Config::read(config)?;
    let known = Services::read(&config.services, config.grace)?;
    if let Some(stray) = new.services.iter().find(|service| !known.has(service)) {
        return Err(Error::Refused(format!(
            "there is no service {stray:?} in {}",
            config.services.display()
        )));
    }
    let (secret, token) = new_token(new).map_err(Error::Refused)?;
    match open_tables(&config)?.add_token(&token, HERE)? {
        Some(_) => Ok(secret),
        None => Err(Error::Refused(format!(
            "there was a token {:?} already: take another name",
            new.name
        ))),
    }
}

/// Gives a token of the store of a configuration another secret, which is shown only this once. An engine that runs
/// takes it within two seconds, and the one before for as long as is asked for.
///
/// # Errors
/// The configuration or store is wrong, there is no such token, or the secret before is to be valid for ever.
pub fn rotate_token(config: &Path, asked: &RotateToken) -> Result<String, Error> {
    let (secret, rotation) = rotation(asked).map_err(Error::Refused)?;
    if open_tables(&Config::read(config)?)?.rotate_token(&rotation, HERE)? {
        return Ok(secret);
    }
    Err(none(&asked.name))
}

/// Every token in the store of a configuration.
///
/// # Errors
/// The configuration or store is wrong.
pub fn list_tokens(config: &Path) -> Result<Vec<Token>, Error> {
    let kept = open_tables(&Config::read(config)?)?.tokens()?;
    Ok(kept.into_iter().map(|kept| kept.token).collect())
}

/// Revokes a token in the store of a configuration; an engine that runs heeds it within two seconds.
///
/// # Errors
/// The configuration or store is wrong, or there is no such token.
pub fn revoke_token(config: &Path, name: &str) -> Result<(), Error> {
    if open_tables(&Config::read(config)?)?.revoke_token(name, HERE, now_ms())? {
        return Ok(());
    }
    Err(none(name))
}

fn none(name: &str) -> Error {
    Error::Refused(format!("there is no token {name:?} that is not revoked"))
}
