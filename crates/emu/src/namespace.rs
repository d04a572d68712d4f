//! Network namespaces without a name: they live as long as someone holds them or runs in them, so nothing of them
//! outlives a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::EmuError;
use crate::sys::{self, DeviceName, Setting};

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace and a thread that lives in it.
///
/// The thread opens sockets and starts programs there on behalf of the others: a socket belongs for ever to the
/// namespace of the thread that opened it, whichever thread uses it.
pub struct Namespace {
    file: File,
    /// `None` once dropped.
    jobs: Option<Sender<Job>>,
    worker: Option<JoinHandle<()>>,
}

impl Namespace {
    /// A new namespace, in which only the loopback device is up.
    ///
    /// # Errors
    /// [`EmuError::NotPermitted`] without the right to make one.
    pub fn new() -> Result<Self, EmuError> {
        let namespace = Self::begin(|| sys::unshare_network().map_err(EmuError::NotPermitted))?;
        namespace.run(|| {
            let socket = any_socket()?;
            sys::set(socket.as_fd(), DeviceName::new("lo"), Setting::Up)
                .map_err(EmuError::system("bring up the loopback device"))
        })?;
        Ok(namespace)
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn current() -> Result<Self, EmuError> {
        Self::begin(|| Ok(()))
    }

    /// Starts the thread, lets it move with `enter`, and asks it where it is.
    fn begin(
        enter: impl FnOnce() -> Result<(), EmuError> + Send + 'static,
    ) -> Result<Self, EmuError> {
        let (jobs, todo) = channel::<Job>();
        let (tell, told) = channel();
        let work = move || {
            let file = enter().and_then(|()| {
                File::open("/proc/thread-self/ns/net")
                    .map_err(EmuError::system("open /proc/thread-self/ns/net (is /proc mounted?)"))
            });
            let entered = file.is_ok();
            // The other side waits for it.
            let _ = tell.send(file);
            if entered {
                todo.iter().for_each(|job| job());
            }
        };
        let worker = thread::Builder::new()
            .name("namespace".into())
            .spawn(work)
            .map_err(EmuError::system("start a thread"))?;
        let file =
            told.recv().map_err(|_| EmuError::State("lost the thread of its namespace"))??;
        Ok(Self { file, jobs: Some(jobs), worker: Some(worker) })
    }

    /// Runs `job` inside and returns what it gives. Jobs run one after the other: for what takes long, there is
    /// [`thread`](Self::thread).
    ///
    /// # Panics
    /// When an earlier job did.
    pub fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (tell, told) = channel();
        let job = Box::new(move || {
            // Nobody waits any more when the caller was unwound.
            let _ = tell.send(job());
        });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        assert!(sent, "an earlier job in this namespace panicked");
        told.recv().expect("a job in a namespace panicked")
    }

    /// Starts a thread inside.
    ///
    /// # Errors
    /// When the system has no more threads or file descriptors.
    pub fn thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>, EmuError> {
        let file = self.file.try_clone().map_err(EmuError::system("copy a file descriptor"))?;
        let work = move || {
            // It was allowed for the worker, and nothing has changed.
            enter(file.as_fd()).expect("a namespace that was made can be entered");
            work()
        };
        thread::Builder::new().spawn(work).map_err(EmuError::system("start a thread"))
    }

    /// Starts a program inside. It dies when this namespace is dropped or its owner dies, even by `kill -9`; what
    /// it starts itself does not, see [`kill_all`](Self::kill_all).
    ///
    /// # Errors
    /// [`EmuError::Program`] when it cannot be started.
    pub fn spawn(&self, mut command: Command) -> Result<Child, EmuError> {
        let program = command.get_program().to_string_lossy().into_owned();
        sys::die_with_parent(&mut command);
        self.run(move || command.spawn()).map_err(|cause| EmuError::Program { program, cause })
    }

    /// Sets a sysctl below `net.` of this namespace, as `set_sysctl("net.ipv4.tcp_rmem", "4096 131072 67108864")`.
    ///
    /// # Errors
    /// When there is no such sysctl in a namespace, or it refuses the value.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<(), EmuError> {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        let text = value.to_owned();
        // A sysctl is that of the namespace of the thread that opens it.
        self.run(move || fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes()))
            .map_err(EmuError::system(format!("set the sysctl {name} to {value:?}")))
    }

    /// Reads a file below `/proc/net` as it looks inside.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn proc_net(&self, file: &str) -> Result<String, EmuError> {
        let path = Path::new("/proc/thread-self/net").join(file);
        self.run(move || fs::read_to_string(path))
            .map_err(EmuError::system(format!("read /proc/net/{file}")))
    }

    /// What tells this namespace from all others.
    ///
    /// # Errors
    /// When the system refuses to look at an open file.
    pub fn id(&self) -> Result<NamespaceId, EmuError> {
        let about = self.file.metadata().map_err(EmuError::system("look at a namespace"))?;
        Ok(NamespaceId(about.ino()))
    }

    /// Kills all processes inside.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn kill_all(&self) -> Result<(), EmuError> {
        self.id()?.kill_all()
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(worker) = self.worker.take() {
            // It can only have panicked in a job, whose caller knows.
            let _ = worker.join();
        }
    }
}

/// Moves the calling thread into a namespace, for good.
fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?)
}

/// A socket to ask the kernel about the network of the calling thread with.
pub(crate) fn any_socket() -> Result<std::net::UdpSocket, EmuError> {
    // Unbound would do, but the standard library has none.
    std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))
        .map_err(EmuError::system("open a socket"))
}

/// The inode number of a network namespace: unique while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceId(pub u64);

impl NamespaceId {
    /// Kills all processes inside, again and again until there are none: a process may be starting another one.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn kill_all(self) -> Result<(), EmuError> {
        use rustix::process::{Pid, Signal, kill_process};
        const ROUNDS_MAX: u32 = 100;
        for _ in 0..ROUNDS_MAX {
            let pids = self.processes().map_err(EmuError::system("look for processes in /proc"))?;
            if pids.is_empty() {
                break;
            }
            for pid in pids.into_iter().filter_map(Pid::from_raw) {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
            thread::sleep(std::time::Duration::from_millis(5));
        }
        Ok(())
    }

    /// The processes inside, without this one and without those that have ended and wait to be reaped.
    fn processes(self) -> io::Result<Vec<i32>> {
        let own = std::process::id().cast_signed();
        let pids = fs::read_dir("/proc")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|&pid| pid != own)
            // Fails for a process of another user, for one that has ended meanwhile, and for a zombie.
            .filter(|pid| {
                fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|m| m.ino() == self.0)
            });
        Ok(pids.collect())
    }
}
