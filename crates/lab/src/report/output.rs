//! Writing results: whole or not at all.
//!
//! Everything is first written to a temporary file next to its destination and renamed at the end, so
//! a full disk, a crash or Ctrl-C leaves either the old file or the new one, never half of one.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Why a result was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {}", path.display(), explanation(cause))]
pub struct OutputError {
    /// The destination.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub cause: io::Error,
}

fn explanation(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full, and nothing was written; free some space or choose another place"
                .into()
        }
        io::ErrorKind::PermissionDenied => {
            "permission denied; choose a place that you may write to".into()
        }
        io::ErrorKind::IsADirectory => "it is a folder; name a file".into(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is in the way of the folder; choose another name".into()
        }
        _ => cause.to_string(),
    }
}

/// A file that does not exist under its name until [`commit`](Draft::commit).
pub struct Draft {
    path: PathBuf,
    place: Place,
}

enum Place {
    /// Next to the destination; removed when dropped.
    Temporary(NamedTempFile),
    /// A device or pipe, which cannot be replaced by renaming.
    Special(fs::File),
}

impl Draft {
    /// Begins a file; makes its folder if there is none.
    ///
    /// # Errors
    /// The folder cannot be made or written to, or the destination is a folder.
    pub fn new(path: &Path) -> Result<Self, OutputError> {
        let fail = |cause| OutputError { path: path.to_owned(), cause };
        Ok(Self { path: path.to_owned(), place: place(path).map_err(fail)? })
    }

    /// Writes the file's content.
    ///
    /// # Errors
    /// The system refuses, or `write` does: the destination stays as it was.
    pub fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let file: &mut dyn Write = match &mut self.place {
            Place::Temporary(file) => file,
            Place::Special(file) => file,
        };
        let mut buffered = BufWriter::new(file);
        let written = write(&mut buffered).and_then(|()| buffered.flush());
        written.map_err(|cause| OutputError { path: self.path.clone(), cause })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The system refuses: the destination stays as it was.
    pub fn commit(self) -> Result<(), OutputError> {
        let path = self.path;
        match self.place {
            Place::Special(_) => Ok(()),
            Place::Temporary(file) => {
                // Space that was promised and is not there shows up here, before the old file goes.
                let synced = file.as_file().sync_all();
                synced
                    .and_then(|()| file.persist(&path).map(drop).map_err(|e| e.error))
                    .map_err(|cause| OutputError { path, cause })
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn place(path: &Path) -> io::Result<Place> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => {
            return fs::OpenOptions::new().write(true).open(path).map(Place::Special);
        }
        _ => {}
    }
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".trimtab-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What a plain new file gets; the umask takes its share off.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map(Place::Temporary)
}

/// Writes one file, whole or not at all. `-` is standard output. A line on standard error names it
/// where a folder was made for it: a mistyped path would else leave one that nobody asked for.
///
/// # Errors
/// The system refuses: the destination stays as it was.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = write(&mut out).and_then(|()| out.flush());
        // A reader that has seen enough (`| head`) is no failure.
        if written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return Ok(());
        }
        return written.map_err(|cause| OutputError { path: "standard output".into(), cause });
    }
    let folder = folder_of(path);
    let is_new = !folder.exists();
    let mut draft = Draft::new(path)?;
    draft.write(write)?;
    draft.commit()?;
    if is_new {
        eprintln!("made the folder {}", folder.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/folder/a.json");
        write_file(&path, |out| out.write_all(b"old")).unwrap();
        let full = || Err(io::ErrorKind::StorageFull.into());
        let e = write_file(&path, |out| out.write_all(b"ne").and_then(|()| full())).unwrap_err();
        assert!(e.to_string().contains("the disk is full"), "{e}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn a_folder_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let e = write_file(dir.path(), |_| Ok(())).unwrap_err();
        assert!(e.to_string().contains("it is a folder"), "{e}");
        fs::write(dir.path().join("f"), "").unwrap();
        let e = write_file(&dir.path().join("f/g/h"), |_| Ok(())).unwrap_err();
        assert!(e.to_string().contains("a file is in the way"), "{e}");
    }

    /// A device is written to, not replaced.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_says_so() {
        let e = write_file(Path::new("/dev/full"), |out| out.write_all(b"x")).unwrap_err();
        assert!(e.to_string().contains("the disk is full"), "{e}");
    }
}
