//! Folders for what outlives the agent, which the steerer's user gets.

use std::fs::{DirBuilder, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, chownat};

use super::user::User;
use crate::error::Error;

/// Makes a folder, and gives it to the user with all that is in it. One that is not root's any more
/// is left as it is: who may write there could have linked other files into it.
pub(super) fn give(folder: &Path, user: Option<&User>) -> Result<(), Error> {
    let make = || -> io::Result<()> {
        match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
            // It is in a folder that the user got before, and the steerer makes it.
            Err(e) if e.kind() == ErrorKind::PermissionDenied && user.is_some() => return Ok(()),
            made => made?,
        }
        match user {
            Some(user) if symlink_metadata(folder)?.uid() == 0 => give_all(folder, user),
            _ => Ok(()),
        }
    };
    let whose = user.map_or_else(String::new, |user| format!(" for the user {}", user.name));
    make().map_err(|e| Error::system(format!("make the folder {}{whose}", folder.display()), e))
}

/// What is in it first: until then nobody else may write there.
fn give_all(path: &Path, user: &User) -> io::Result<()> {
    if symlink_metadata(path)?.is_dir() {
        for entry in path.read_dir()? {
            give_all(&entry?.path(), user)?;
        }
    }
    chownat(CWD, path, Some(user.uid), Some(user.gid), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}
