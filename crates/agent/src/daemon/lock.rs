//! One agent at a time. The kernel gives the lock back when the process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Error;

/// How long after its loader a steerer ends at the latest, which holds the locks, too.
const STEERER_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The locks of an agent: its sockets' folder and the datapath's.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    sockets: Option<File>,
    datapath: Option<File>,
    /// Another process holds them, too.
    handed_over: bool,
}

impl Lock {
    /// Locks the folder of the sockets, which is made where it is missing.
    ///
    /// # Errors
    /// Another agent holds it, or it cannot be made.
    pub(crate) fn sockets(folder: &Path) -> Result<Self, Error> {
        if !folder.exists() {
            // Every user may pass through it, to the socket for hints; the files in it have their own modes.
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::set_permissions(folder, open))
                .map_err(|e| Error::system(format!("make {}", folder.display()), e))?;
        }
        let path = folder.join("agent.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| Error::system(format!("open {}", path.display()), e))?;
        let begun = Instant::now();
        while let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            let mut text = String::new();
            let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
            let pid: Option<u32> = text.trim().parse().ok();
            // Of a loader that was killed the steerer is about to end.
            let runs = pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}/exe")).exists());
            if errno != Errno::WOULDBLOCK || runs || begun.elapsed() > STEERER_ENDS_WITHIN {
                return Err(refused(errno, &path, pid));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let named = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        named.map_err(|e| Error::system(format!("write {}", path.display()), e))?;
        Ok(Self { sockets: Some(file), datapath: None, handed_over: false })
    }

    /// The same, without making the folder: where there is none, there is no agent.
    ///
    /// # Errors
    /// Another agent holds it.
    pub(crate) fn sockets_if_there(folder: &Path) -> Result<Self, Error> {
        if folder.exists() { Self::sockets(folder) } else { Ok(Self::default()) }
    }

    /// Locks the datapath's folder as well, whose agent may have its sockets elsewhere.
    ///
    /// # Errors
    /// Another agent holds it.
    pub(crate) fn datapath(&mut self, folder: &Path) -> Result<(), Error> {
        let file = File::open(folder)
            .map_err(|e| Error::system(format!("open {}", folder.display()), e))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| refused(errno, folder, None))?;
        self.datapath = Some(file);
        Ok(())
    }

    /// The locks for another process: they are given back when both have ended.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub(crate) fn descriptors(&mut self) -> Result<Vec<OwnedFd>, Error> {
        self.handed_over = true;
        let all = [&self.sockets, &self.datapath].into_iter().flatten();
        let all: std::io::Result<Vec<_>> = all.map(|file| Ok(file.try_clone()?.into())).collect();
        all.map_err(|e| Error::system("hand over the locks", e))
    }
}

impl Drop for Lock {
    /// Gives back locks that are nobody else's at once. Closing them would not do: a process that
    /// another thread is about to start holds copies until it runs its program.
    fn drop(&mut self) {
        if self.handed_over {
            return;
        }
        for file in [&self.sockets, &self.datapath].into_iter().flatten() {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

fn refused(errno: Errno, path: &Path, pid: Option<u32>) -> Error {
    if errno == Errno::WOULDBLOCK {
        Error::Running { pid, path: path.to_owned() }
    } else {
        Error::system(format!("lock {}", path.display()), errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_agent_is_refused_until_the_first_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (sockets, datapath) = (folder.path().join("run"), folder.path().join("bpf"));
        std::fs::create_dir(&datapath).unwrap();
        let mut first = Lock::sockets(&sockets).unwrap();
        first.datapath(&datapath).unwrap();
        let error = Lock::sockets(&sockets).unwrap_err();
        assert!(
            matches!(error, Error::Running { pid: Some(pid), .. } if pid == std::process::id())
        );
        // With sockets elsewhere, it is the datapath that two may not steer.
        let mut other = Lock::sockets(&folder.path().join("elsewhere")).unwrap();
        assert!(matches!(other.datapath(&datapath), Err(Error::Running { pid: None, .. })));
        drop(first);
        other.datapath(&datapath).unwrap();
        Lock::sockets(&sockets).unwrap();
    }

    #[test]
    fn copies_in_a_process_to_come_hold_up_no_later_agent() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::sockets(folder.path()).unwrap();
        // What a fork leaves to a child until it runs its program.
        let _copy = lock.sockets.as_ref().unwrap().try_clone().unwrap();
        drop(lock);
        Lock::sockets(folder.path()).unwrap();
    }

    #[test]
    fn a_steerer_keeps_the_locks_of_its_loader() {
        let folder = tempfile::tempdir().unwrap();
        let mut lock = Lock::sockets(folder.path()).unwrap();
        let steerers = lock.descriptors().unwrap();
        drop(lock);
        assert!(matches!(Lock::sockets(folder.path()), Err(Error::Running { .. })));
        drop(steerers);
        Lock::sockets(folder.path()).unwrap();
    }
}
