//! The loader's life: it starts the steerer, passes signals on, answers, and ends with it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use log::warn;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::folders;
use super::protocol::{ANSWER_MAX, REQUEST_MAX, receive, send};
use super::serve::Loader;
use super::start::start;
use super::user::User;
use crate::config::Grounds;
use crate::daemon::lock::Lock;
use crate::daemon::logging;
use crate::error::Error;

/// How long a steerer that has closed its channel may take to end.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Runs the agent: loads on behalf of a steerer, until that ends. Where it ends with an error, which
/// it reports, this process ends with the same status at once.
///
/// # Errors
/// The configuration is wrong, another agent runs, or the steerer does not start or was killed.
pub(crate) fn run(path: &Path) -> Result<(), Error> {
    let grounds = Grounds::read(path)?;
    logging::say(grounds.log, grounds.log_format);
    let user = User::of(grounds.user.as_deref())?;
    if user.is_none() && rustix::process::geteuid().is_root() {
        warn!(
            "there is no user trimtab, so what reads from the network runs as root, without any \
             capability; make it with `useradd --system --no-create-home --shell \
             /usr/sbin/nologin trimtab`"
        );
    }
    let lock = Lock::sockets(&grounds.sockets.folder)?;
    // Where one is in the other, the outer one last: then it is the user's.
    let state = grounds.sockets.state();
    for folder in grounds.fleet.iter().chain([&state]) {
        folders::give(folder, user.as_ref())?;
    }
    let mut signals = Signals::new()?;
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|e| Error::system("make a channel to the steerer", e))?;
    let mut steerer = start(&theirs, user.as_ref())?;
    drop(theirs);
    let mut loader = Loader::new(path, grounds, lock);
    serve(&mut loader, &ours, &mut signals, &steerer)?;
    drop(ours);
    let status = ended(&mut steerer);
    loader.close();
    match (status?, signals.stopped) {
        (status, _) if status.success() => Ok(()),
        (status, true) if status.signal() == Some(SIGTERM) => Ok(()),
        (status, _) => match status.code() {
            Some(code) => std::process::exit(code),
            None => Err(Error::Refused(format!(
                "the steerer, which does all but the loading, was killed ({status}); connections \
                 keep their last knobs until the next agent"
            ))),
        },
    }
}

/// Until the steerer closes the channel.
fn serve(
    loader: &mut Loader,
    channel: &OwnedFd,
    signals: &mut Signals,
    steerer: &Child,
) -> Result<(), Error> {
    let fail = |e: Errno| Error::system("hear the steerer", e);
    let mut buffer = vec![0; REQUEST_MAX];
    let mut reload = false;
    loop {
        let mut both = [
            PollFd::new(channel, PollFlags::IN),
            PollFd::new(&signals.hangups.0, PollFlags::IN),
            PollFd::new(&signals.stops.0, PollFlags::IN),
        ];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(fail(error)),
        }
        let has = |place: usize| !both[place].revents().is_empty();
        let (asked, hung_up, stopped) = (has(0), has(1), has(2));
        if stopped {
            drain(&signals.stops.0);
            signals.stopped = true;
            loader.manager.stopping();
            pass_on(steerer, Signal::TERM);
        }
        if hung_up {
            drain(&signals.hangups.0);
            reload = true;
        }
        // Before, it has no handler for it.
        if reload && loader.is_taken() {
            reload = false;
            loader.manager.reloading(trimtab_kernel::now());
            pass_on(steerer, Signal::HUP);
        }
        if !asked {
            continue;
        }
        let got = match receive(channel, &mut buffer, &mut []) {
            Err(Errno::CONNRESET) => return Ok(()),
            got => got.map_err(fail)?,
        };
        if got.length == 0 && !got.is_cut {
            return Ok(());
        }
        let (answer, descriptors) = if got.is_cut {
            let why = format!("a request has {REQUEST_MAX} bytes at most, and no descriptors");
            loader.refuse(&why);
            (Err(why), Vec::new())
        } else {
            loader.answer(&buffer[..got.length])
        };
        let mut bytes = serde_json::to_vec(&answer).unwrap_or_default();
        if bytes.len() > ANSWER_MAX {
            let long: Result<(), String> = Err("the answer is too long".to_owned());
            bytes = serde_json::to_vec(&long).unwrap_or_default();
        }
        // Who does not read the answers is no steerer of ours.
        match send(channel, &bytes, &descriptors, SendFlags::DONTWAIT) {
            Err(Errno::PIPE | Errno::CONNRESET | Errno::AGAIN) => return Ok(()),
            sent => sent.map_err(|e| Error::system("answer the steerer", e))?,
        }
    }
}

/// Its status, after it has closed the channel.
fn ended(steerer: &mut Child) -> Result<ExitStatus, Error> {
    let fail = |e: std::io::Error| Error::system("wait for the steerer", e);
    let begun = Instant::now();
    while begun.elapsed() < END_WITHIN {
        if let Some(status) = steerer.try_wait().map_err(fail)? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    steerer.kill().and_then(|()| steerer.wait()).map_err(fail)
}

fn pass_on(steerer: &Child, signal: Signal) {
    // One that has ended needs none.
    if let Err(error) = kill_process(Pid::from_child(steerer), signal)
        && error != Errno::SRCH
    {
        warn!("the signal {signal:?} does not reach the steerer: {error}");
    }
}

/// Signals, as bytes in pipes.
struct Signals {
    hangups: (UnixStream, UnixStream),
    stops: (UnixStream, UnixStream),
    /// Whether one has come that ends the agent.
    stopped: bool,
}

impl Signals {
    fn new() -> Result<Self, Error> {
        let fail = |e: std::io::Error| Error::system("wait for signals", e);
        let pair = |signals: &[i32]| -> std::io::Result<_> {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            for signal in signals {
                signal_hook::low_level::pipe::register(*signal, theirs.try_clone()?)?;
            }
            Ok((ours, theirs))
        };
        Ok(Self {
            hangups: pair(&[SIGHUP]).map_err(fail)?,
            stops: pair(&[SIGTERM, SIGINT]).map_err(fail)?,
            stopped: false,
        })
    }
}

fn drain(pipe: &UnixStream) {
    let mut bytes = [0; 64];
    while rustix::io::read(pipe.as_fd(), &mut bytes).is_ok_and(|length| length == bytes.len()) {}
}
