//! The thread that writes logs, so that no path waits for a disk.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::paths::lock;

/// Opens what the log with this name goes to.
pub(super) type Open = dyn Fn(&str) -> io::Result<Box<dyn Write + Send>> + Send + Sync;

/// Writes for any number of logs. It ends with the last of them.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: SyncSender<Job>,
}

/// A log, as its path holds it.
pub(super) struct Output {
    jobs: SyncSender<Job>,
    log: Arc<Log>,
}

/// What the thread does.
enum Job {
    Write(Arc<Log>, Vec<u8>),
    Flush(SyncSender<()>),
}

/// A log, as the thread holds it.
struct Log {
    name: String,
    /// Nothing is written any more.
    has_ended: AtomicBool,
    state: Mutex<State>,
}

/// What the thread writes to.
enum State {
    Unopened(Arc<Open>),
    Open(Box<dyn Write + Send>),
    Closed,
}

impl Writer {
    /// Starts the thread, for which at most so many chunks wait.
    pub(super) fn spawn(waiting: usize) -> io::Result<Self> {
        let (jobs, todo) = sync_channel(waiting);
        thread::Builder::new().name("trimtab-qlog".into()).spawn(move || work(&todo))?;
        Ok(Self { jobs })
    }

    /// A log, opened when its first chunk is written.
    pub(super) fn output(&self, name: String, open: Arc<Open>) -> Output {
        let state = Mutex::new(State::Unopened(open));
        let log = Arc::new(Log { name, has_ended: AtomicBool::new(false), state });
        Output { jobs: self.jobs.clone(), log }
    }

    /// Waits until all is written that was handed over before.
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(0);
        if self.jobs.send(Job::Flush(done)).is_ok() {
            // It fails where the thread has ended, and nothing is left to wait for.
            let _ = wait.recv();
        }
    }
}

impl Output {
    /// Whether nothing more is written.
    pub(super) fn has_ended(&self) -> bool {
        self.log.has_ended.load(Ordering::Relaxed)
    }

    /// Hands a chunk over. It never waits.
    pub(super) fn write(&self, chunk: Vec<u8>) {
        if self.has_ended() {
            return;
        }
        match self.jobs.try_send(Job::Write(self.log.clone(), chunk)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.log.end(&"the disk is slower than the connections"),
            Err(TrySendError::Disconnected(_)) => self.log.end(&"the thread that writes has ended"),
        }
    }
}

impl Log {
    /// Ends the log. Only the first cause is reported.
    fn end(&self, cause: &dyn fmt::Display) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            log::error!(
                "cannot write the qlog {}: {cause}; it ends here, and its connection goes on. Give \
                 the folder more room, or log fewer connections",
                self.name
            );
        }
    }

    fn write(&self, chunk: &[u8]) -> io::Result<()> {
        let mut state = lock(&self.state);
        if let State::Unopened(open) = &*state {
            let opened = open(&self.name);
            *state = match opened {
                Ok(to) => State::Open(to),
                Err(problem) => {
                    *state = State::Closed;
                    return Err(problem);
                }
            };
        }
        let State::Open(to) = &mut *state else { return Ok(()) };
        let written = to.write_all(chunk).and_then(|()| to.flush());
        if written.is_err() {
            *state = State::Closed;
        }
        written
    }
}

/// Until the last log and the last `Writer` are gone.
fn work(todo: &Receiver<Job>) {
    for job in todo {
        match job {
            Job::Write(log, chunk) => {
                if let Err(problem) = log.write(&chunk) {
                    log.end(&problem);
                }
            }
            // Who waits may have given up.
            Job::Flush(done) => drop(done.send(())),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.log.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that takes nothing until it may.
    struct Slow(Arc<Mutex<Receiver<()>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = lock(&self.0).recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_slow_disk() {
        let writer = Writer::spawn(2).unwrap();
        let (allow, allowed) = sync_channel(0);
        let allowed = Arc::new(Mutex::new(allowed));
        let slow = writer.output(
            "slow".into(),
            Arc::new(move |_: &str| Ok(Box::new(Slow(allowed.clone())) as _)),
        );
        // One is being written at most, two wait, and a fourth has no room.
        for _ in 0..4 {
            slow.write(vec![1]);
        }
        assert!(slow.has_ended());
        drop(allow);
        writer.flush();
        assert!(slow.has_ended(), "a log with a gap would mislead");
    }
}
