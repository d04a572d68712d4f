//! Copies of the store, and its way from a file into PostgreSQL, on the engine's machine.

use std::path::Path;

use crate::clock::now_ms;
use crate::config::{Config, Keep};
use crate::error::Error;
use crate::services::Services;
use crate::store::{Line, Moved, Postgres, Sqlite, Store, back_up, move_to};

/// Writes a copy of the file of a configuration to a new file, whether the engine runs or not.
///
/// # Errors
/// The configuration or store is wrong, it is in PostgreSQL, or the copy cannot be written.
pub fn back_up_store(config: &Path, to: &Path) -> Result<(), Error> {
    match Config::read(config)?.store {
        Keep::File(file) => Ok(back_up(&Sqlite::open_next_to_engine(&file)?, to)?),
        Keep::Shared { .. } => Err(Error::Refused(
            "the store is in PostgreSQL, which makes copies of its own: pg_dump or pg_basebackup"
                .to_owned(),
        )),
    }
}

/// Moves all that is in an engine's file into the PostgreSQL of a configuration, which has to be empty:
/// everything or nothing. Says how many rows of each table were moved. The file stays as it is.
///
/// # Errors
/// The configuration or a store is wrong, the configuration's is a file, an engine runs on either, or
/// there is something in PostgreSQL already.
pub fn move_store(config: &Path, from: &Path) -> Result<Vec<Moved>, Error> {
    let config = Config::read(config)?;
    let Keep::Shared { postgres, .. } = &config.store else {
        return Err(Error::Refused(
            "the configuration keeps all in a file: give one with [store] postgres".to_owned(),
        ));
    };
    if !from.exists() {
        return Err(Error::Refused(format!("there is no file {}", from.display())));
    }
    let lengths = Services::read(&config.services, config.grace)?.lengths();
    let file = Sqlite::open(from, &lengths)?;
    let server = Postgres::open(postgres, &lengths)?;
    let moved = move_to(&file, &server)?;
    server.write_down(&[Line {
        at_ms: now_ms(),
        who: crate::tokens::HERE.to_owned(),
        action: "store moved",
        subject: "everything".to_owned(),
        detail: format!("from {}", from.display()),
    }])?;
    Ok(moved)
}
