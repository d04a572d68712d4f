//! The secret that a client asks with: a text, or a file that may change while the client runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;

/// A token, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The token itself.
    Text(String),
    /// A file with it. One that changes is read again, so that a token can be replaced while its
    /// user runs.
    File(PathBuf),
    /// Files in PEM with a certificate, and those that vouch for it, and its key: no token is sent.
    /// Where they change, the next question comes with the new ones.
    Certificate {
        /// The certificate.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

/// A token is in no log by mistake.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Certificate { certificate, .. } => {
                f.debug_tuple("Certificate").field(certificate).finish()
            }
        }
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Secret {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<PathBuf> for Secret {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// By what a file shows that it has changed: its number, its length, and when it was written.
pub(crate) type Stamp = (u64, u64, i64, i64);

/// A token that is read when it is used.
#[derive(Debug)]
pub(crate) struct Credential {
    file: Option<PathBuf>,
    /// The text, and of which state of the file it is.
    known: Mutex<(String, Option<Stamp>)>,
}

impl Credential {
    /// A token that is given.
    pub(crate) fn text(text: &str) -> Self {
        Self { file: None, known: Mutex::new((text.trim().to_owned(), None)) }
    }

    /// One in a file, which is read the first time.
    pub(crate) fn file(path: PathBuf) -> Result<Self, Error> {
        let stamp = stamp(&path);
        let text = read(&path)
            .map_err(|why| Error::NoToken(format!("cannot read {}: {why}", path.display())))?;
        Ok(Self { file: Some(path), known: Mutex::new((text, stamp)) })
    }

    /// The secret as it is now. A file that is away or empty leaves the last one in place.
    pub(crate) fn now(&self) -> String {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &self.file {
            // Before the text: what is written while it is read is read again.
            let stamp = stamp(path);
            if stamp.is_some()
                && stamp != known.1
                && let Ok(text) = read(path)
            {
                *known = (text, stamp);
            }
        }
        known.0.clone()
    }
}

pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let of = std::fs::metadata(path).ok()?;
    Some((of.ino(), of.len(), of.mtime(), of.mtime_nsec()))
}

fn read(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let text = text.trim();
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_read_again_and_one_that_goes_leaves_the_last_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edge.token");
        let missing = Credential::file(path.clone()).unwrap_err().to_string();
        assert!(missing.contains("edge.token") && missing.contains("No such file"), "{missing}");
        std::fs::write(&path, "one\n").unwrap();
        let credential = Credential::file(path.clone()).unwrap();
        assert_eq!(credential.now(), "one");
        // In place, by another file of the same length, and by one that is written bit by bit.
        std::fs::write(&path, "second\n").unwrap();
        assert_eq!(credential.now(), "second");
        let next = folder.path().join("next");
        std::fs::write(&next, "third!\n").unwrap();
        std::fs::rename(&next, &path).unwrap();
        assert_eq!(credential.now(), "third!");
        std::fs::write(&path, "").unwrap();
        assert_eq!(credential.now(), "third!");
        std::fs::write(&path, "fourth").unwrap();
        assert_eq!(credential.now(), "fourth");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(credential.now(), "fourth");
    }

    #[test]
    fn a_text_stays_as_it_is_and_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::from("trimtab_secret")), "Text(…)");
        assert_eq!(Credential::text(" trimtab_secret \n").now(), "trimtab_secret");
    }
}
