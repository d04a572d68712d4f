//! Lines as they come: of a log that grows, also where it is rotated, or of a pipe.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use serde::{Deserialize, Serialize};

/// The longest line that is read, in bytes; longer ones are left out.
pub const LINE_LEN_MAX: usize = 64 * 1024;
/// So much is read at a time.
const PIECE: usize = 64 * 1024;
/// So many pieces at most before others have their turn.
const PIECES_MAX: usize = 64;
/// Lines of a pipe that wait at most; then its writer does.
const WAITING_MAX: usize = 1024;

/// Whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Perhaps at once.
    Now,
    /// When somebody writes it.
    Later,
    /// Never: the pipe has ended.
    Never,
}

/// Where lines come from.
#[derive(Debug)]
pub enum Source {
    /// A file that somebody else writes.
    File(Tail),
    /// A pipe.
    Pipe(Receiver<String>),
}

impl Source {
    /// The lines of a pipe or a file that ends; a thread waits for them.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn pipe(mut from: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, lines) = sync_channel(WAITING_MAX);
        let read = move || {
            let (mut splitter, mut piece) = (Splitter::default(), vec![0; PIECE]);
            let mut is_heard = true;
            // A pipe that fails is one that has ended.
            while let Ok(len @ 1..) = from.read(&mut piece) {
                let mut each = |line: &str| is_heard &= sender.send(line.to_owned()).is_ok();
                splitter.add(&piece[..len], &mut each);
                if !is_heard {
                    return;
                }
            }
            splitter.add(b"\n", &mut |line: &str| is_heard &= sender.send(line.to_owned()).is_ok());
        };
        std::thread::Builder::new().name("cmcd-pipe".to_owned()).spawn(read)?;
        Ok(Self::Pipe(lines))
    }

    /// Hands over the lines that are there, some megabytes at most.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(&str)) -> io::Result<More> {
        match self {
            Self::File(tail) => tail.read(each),
            Self::Pipe(lines) => {
                for _ in 0..WAITING_MAX {
                    match lines.try_recv() {
                        Ok(line) => each(&line),
                        Err(TryRecvError::Empty) => return Ok(More::Later),
                        Err(TryRecvError::Disconnected) => return Ok(More::Never),
                    }
                }
                Ok(More::Now)
            }
        }
    }
}

/// Divides pieces into lines.
#[derive(Debug, Default)]
struct Splitter {
    begun: Vec<u8>,
    /// The line that has begun is too long.
    is_long: bool,
}

impl Splitter {
    fn add(&mut self, piece: &[u8], each: &mut impl FnMut(&str)) {
        let mut lines = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            self.is_long |= self.begun.len() + part.len() > LINE_LEN_MAX;
            if !self.is_long {
                self.begun.extend_from_slice(part);
            }
            if lines.peek().is_some() {
                if !self.is_long && !self.begun.is_empty() {
                    each(&String::from_utf8_lossy(&self.begun));
                }
                *self = Self::default();
            }
        }
    }
}

/// Where a line of a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file's device and inode, which it keeps when it is renamed.
    file: (u64, u64),
    /// Bytes from its start.
    offset: u64,
}

/// A file that somebody else writes lines to.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
    /// Bytes that were read.
    position: u64,
    splitter: Splitter,
    trouble: Option<io::Error>,
}

impl Tail {
    /// What is added to a file from now on.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn from_end(path: &Path) -> io::Result<Self> {
        let mut tail = Self::from_start(path)?;
        tail.position = tail.file.seek(SeekFrom::End(0))?;
        Ok(tail)
    }

    /// A file from a place on, if it is still there: by its name, or by that with `.1` behind it,
    /// which it gets when it is rotated. Another file with its name has come after it, and is read
    /// as a whole. Without a place, what is added from now on.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn resume(path: &Path, place: Option<Place>) -> io::Result<Self> {
        let Some(place) = place else { return Self::from_end(path) };
        let mut rotated = path.as_os_str().to_owned();
        rotated.push(".1");
        for name in [path.as_os_str(), &rotated] {
            let Ok(mut tail) = Self::from_start(Path::new(name)) else { continue };
            if tail.identity == place.file && tail.file.metadata()?.len() >= place.offset {
                tail.position = tail.file.seek(SeekFrom::Start(place.offset))?;
                tail.path = path.to_owned();
                return Ok(tail);
            }
        }
        Self::from_start(path)
    }

    /// Where the line begins that is handed over next.
    pub fn place(&self) -> Place {
        let offset = self.position.saturating_sub(self.splitter.begun.len() as u64);
        Place { file: self.identity, offset }
    }

    /// Why the file that has the name now cannot be read; the one before is kept meanwhile.
    pub fn trouble(&self) -> Option<&io::Error> {
        self.trouble.as_ref()
    }

    /// A file with what is in it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn from_start(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let identity = identity(&file.metadata()?);
        let (path, splitter) = (path.to_owned(), Splitter::default());
        Ok(Self { path, file, identity, position: 0, splitter, trouble: None })
    }

    /// Hands over what has been added since the last time, line by line, up to some megabytes.
    /// Where the file was moved away or cut off, goes on at the start of the one that is there now.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(&str)) -> io::Result<More> {
        let mut piece = vec![0; PIECE];
        for _ in 0..PIECES_MAX {
            let len = match self.file.read(&mut piece) {
                Ok(len) => len,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if len == 0 {
                return self.follow_rotation();
            }
            self.position += len as u64;
            self.splitter.add(&piece[..len], &mut each);
        }
        Ok(More::Now)
    }

    /// Opens the file anew where another one has its name, or it is shorter than what was read.
    /// While there is none, or none that may be read, the old one is kept.
    fn follow_rotation(&mut self) -> io::Result<More> {
        self.trouble = None;
        let Ok(there) = std::fs::metadata(&self.path) else { return Ok(More::Later) };
        let is_other = identity(&there) != self.identity;
        if !is_other && self.file.metadata()?.len() >= self.position {
            return Ok(More::Later);
        }
        match Self::from_start(&self.path) {
            Ok(next) => {
                *self = next;
                Ok(More::Now)
            }
            Err(e) => {
                self.trouble = Some(e);
                Ok(More::Later)
            }
        }
    }
}

fn identity(of: &Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn lines(tail: &mut Tail) -> Vec<String> {
        let mut all = Vec::new();
        while tail.read(|line| all.push(line.to_owned())).unwrap() == More::Now {}
        all
    }

    #[test]
    fn lines_come_when_they_are_whole_and_long_ones_never() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"before\n").unwrap();
        let mut tail = Tail::from_end(&path).unwrap();
        assert_eq!(lines(&mut tail), [""; 0]);
        log.write_all(b"one\ntw").unwrap();
        assert_eq!(lines(&mut tail), ["one"]);
        let long = vec![b'x'; LINE_LEN_MAX * 3];
        log.write_all(&[b"o\n", &long[..], b"\nthree\n\xff\n"].concat()).unwrap();
        assert_eq!(lines(&mut tail), ["two", "three", "\u{fffd}"]);
        assert_eq!(lines(&mut Tail::from_start(&path).unwrap()).len(), 5);
    }

    #[test]
    fn a_pipe_has_its_lines_and_ends() {
        let text: String = (0..5000).map(|number| format!("{number}\n")).collect();
        let mut pipe = Source::pipe(io::Cursor::new(text + "last")).unwrap();
        let mut all = Vec::new();
        while pipe.read(|line| all.push(line.to_owned())).unwrap() != More::Never {}
        assert_eq!((all.len(), &*all[4999], &*all[5000]), (5001, "4999", "last"));
    }

    #[test]
    fn a_rotated_log_is_read_to_its_end_and_then_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = File::create(&path).unwrap();
        let mut tail = Tail::from_end(&path).unwrap();
        std::fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        log.write_all(b"last\n").unwrap();
        assert_eq!(lines(&mut tail), ["last"], "there is no new one yet");
        log.write_all(b"very last\n").unwrap();
        std::fs::write(&path, "first\n").unwrap();
        assert_eq!(lines(&mut tail), ["very last", "first"]);
        // Copied and cut off.
        std::fs::write(&path, "a\n").unwrap();
        assert_eq!(lines(&mut tail), ["a"]);
    }

    #[test]
    fn a_new_log_that_cannot_be_read_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = File::create(&path).unwrap();
        let mut tail = Tail::from_end(&path).unwrap();
        std::fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        // Also root may not open it.
        std::os::unix::net::UnixListener::bind(&path).unwrap();
        log.write_all(b"last\n").unwrap();
        assert_eq!(lines(&mut tail), ["last"]);
        assert!(tail.trouble().is_some());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "first\n").unwrap();
        assert_eq!(lines(&mut tail), ["first"]);
        assert!(tail.trouble().is_none());
    }

    #[test]
    fn a_place_is_found_again_also_where_the_log_was_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = File::create(&path).unwrap();
        let mut tail = Tail::from_start(&path).unwrap();
        log.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(lines(&mut tail), ["one", "two"]);
        let place = Some(tail.place());
        log.write_all(b"ee\n").unwrap();
        assert_eq!(lines(&mut Tail::resume(&path, place).unwrap()), ["three"]);
        std::fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        std::fs::write(&path, "four\n").unwrap();
        assert_eq!(lines(&mut Tail::resume(&path, place).unwrap()), ["three", "four"]);
        std::fs::remove_file(folder.path().join("access.log.1")).unwrap();
        assert_eq!(lines(&mut Tail::resume(&path, place).unwrap()), ["four"]);
        assert_eq!(lines(&mut Tail::resume(&path, None).unwrap()), [""; 0]);
    }
}
