//! Trace files: plain text or gzip, told apart by their first bytes and not by their name.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::trace::{Trace, TraceError};

/// The first bytes of a gzip file (RFC 1952 section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// A trace of more text than this is a mistake, or a gzip file made to fill the memory. It is 40 million
/// lines: an hour at 130 Mbit/s.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// Why a trace file could not be read or written. The message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct TraceFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: TraceFileProblem,
}

/// What is wrong with a trace file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFileProblem {
    /// There is no such file.
    #[error("there is no such file; check the path")]
    Missing,
    /// The path is a folder.
    #[error("this is a folder, not a trace file; name the files in it")]
    Folder,
    /// The operating system refused.
    #[error("the file cannot be {verb}: {error}")]
    Io {
        /// "read" or "written".
        verb: &'static str,
        /// The reason that the operating system gave.
        error: io::Error,
    },
    /// A gzip file ends too early.
    #[error("the gzip data end too early: the file is truncated, copy or download it again")]
    Truncated,
    /// A gzip file is damaged.
    #[error("the gzip data are damaged ({0}); copy or download the file again")]
    Damaged(io::Error),
    /// The text is longer than 256 MiB.
    #[error("the trace is longer than 256 MiB of text; cut a shorter window from it")]
    TooLong,
    /// The text is not a trace.
    #[error(transparent)]
    Trace(TraceError),
}

impl Trace {
    /// Reads a trace file, plain or compressed with gzip, whatever its name.
    ///
    /// # Errors
    /// [`TraceFileError`] when the file cannot be read, is truncated, or is not a trace.
    pub fn load(path: &Path) -> Result<Self, TraceFileError> {
        let fail = |problem| TraceFileError { path: path.to_owned(), problem };
        let text = read_text(path).map_err(fail)?;
        Self::parse(&text).map_err(|error| fail(TraceFileProblem::Trace(error)))
    }

    /// Writes Mahimahi's format, compressed with gzip when the name ends in `.gz`. The same trace gives
    /// the same bytes.
    ///
    /// # Errors
    /// [`TraceFileError`] when the operating system refuses, for instance because the disk is full.
    pub fn write(&self, path: &Path) -> Result<(), TraceFileError> {
        let write = || -> io::Result<()> {
            let file = BufWriter::new(File::create(path)?);
            if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
                let mut encoder = GzEncoder::new(file, Compression::best());
                self.write_text(&mut encoder)?;
                encoder.finish()?.into_inner()?.sync_all()
            } else {
                let mut file = file;
                self.write_text(&mut file)?;
                file.into_inner()?.sync_all()
            }
        };
        write().map_err(|error| TraceFileError {
            path: path.to_owned(),
            problem: TraceFileProblem::Io { verb: "written", error },
        })
    }

    /// Writes Mahimahi's format as plain text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, mut out: impl Write) -> io::Result<()> {
        for time in self.opportunities() {
            writeln!(out, "{time}")?;
        }
        Ok(())
    }
}

/// The text of a file, decompressed when it is gzip.
pub(crate) fn read_text(path: &Path) -> Result<Vec<u8>, TraceFileProblem> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => TraceFileProblem::Missing,
        io::ErrorKind::IsADirectory => TraceFileProblem::Folder,
        _ => TraceFileProblem::Io { verb: "read", error },
    };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut magic = Vec::with_capacity(GZIP_MAGIC.len());
    file.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable)?;
    let is_gzip = magic == GZIP_MAGIC;
    let whole = magic.as_slice().chain(file);
    let mut text = Vec::new();
    if is_gzip {
        let undone = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => TraceFileProblem::Truncated,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                TraceFileProblem::Damaged(error)
            }
            _ => unreadable(error),
        };
        let decoder = MultiGzDecoder::new(whole);
        decoder.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text).map_err(undone)?;
    } else {
        whole.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
    }
    if text.len() as u64 > TEXT_BYTES_MAX { Err(TraceFileProblem::TooLong) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn problem(path: &Path) -> TraceFileProblem {
        Trace::load(path).unwrap_err().problem
    }

    #[test]
    fn files_read_back_and_compress() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace::from_opportunities((1..=5000).collect()).unwrap();
        let [plain, packed] = ["t.trace", "t.trace.gz"].map(|name| folder.path().join(name));
        trace.write(&plain).unwrap();
        trace.write(&packed).unwrap();
        assert_eq!(Trace::load(&plain).unwrap(), trace);
        assert_eq!(Trace::load(&packed).unwrap(), trace);
        assert!(fs::metadata(&packed).unwrap().len() * 2 < fs::metadata(&plain).unwrap().len());
        // The name does not matter for reading.
        let renamed = folder.path().join("renamed.trace");
        fs::rename(&packed, &renamed).unwrap();
        assert_eq!(Trace::load(&renamed).unwrap(), trace);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.trace.gz");
        assert!(matches!(problem(&path), TraceFileProblem::Missing));
        assert!(matches!(problem(folder.path()), TraceFileProblem::Folder));
        Trace::from_opportunities((1..=5000).collect()).unwrap().write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for length in [2, 10, 11, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(problem(&path), TraceFileProblem::Truncated), "{length} bytes");
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x55;
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(problem(&path), TraceFileProblem::Damaged(_)));
        fs::write(&path, b"").unwrap();
        assert!(matches!(problem(&path), TraceFileProblem::Trace(TraceError::Empty)));
        fs::write(&path, b"1\n2\nthree\n").unwrap();
        let message = Trace::load(&path).unwrap_err().to_string();
        assert!(
            message.contains("t.trace.gz") && message.contains("line 3 is \"three\""),
            "{message}"
        );
    }

    #[test]
    fn a_refused_write_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let trace = Trace::from_opportunities(vec![1]).unwrap();
        let error = trace.write(&folder.path().join("no/such/folder")).unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error}");
    }
}
