//! The signals that end a program, caught so that the link can end after it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use signal_hook::SigId;

use crate::error::EmuError;

const CAUGHT: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// A pipe that becomes readable with each signal, and flags that tell which one it was.
pub(crate) struct Signals {
    pipe: OwnedFd,
    flags: [std::sync::Arc<std::sync::atomic::AtomicBool>; CAUGHT.len()],
    hooks: Vec<SigId>,
}

impl Signals {
    /// From now on these signals end up here. Programs that are started get them as usual.
    pub(crate) fn catch() -> Result<Self, EmuError> {
        let (pipe, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(EmuError::system("make a pipe"))?;
        let mut signals = Self { pipe, flags: Default::default(), hooks: Vec::new() };
        for (signal, flag) in CAUGHT.into_iter().zip(&signals.flags) {
            let number = signal.as_raw();
            let mut hook = || -> io::Result<()> {
                // The flag is up before the pipe wakes us: hooks run in the order of their registration.
                signals.hooks.push(signal_hook::flag::register(number, flag.clone())?);
                let write = write.try_clone()?;
                signals.hooks.push(signal_hook::low_level::pipe::register(number, write)?);
                Ok(())
            };
            hook().map_err(EmuError::system("catch signals"))?;
        }
        Ok(signals)
    }

    /// The signals that have come since the last call.
    pub(crate) fn take(&self) -> Vec<Signal> {
        while rustix::io::read(&self.pipe, &mut [0; 64]).is_ok_and(|n| n > 0) {}
        let up = |flag: &std::sync::atomic::AtomicBool| {
            flag.swap(false, std::sync::atomic::Ordering::SeqCst)
        };
        CAUGHT.into_iter().zip(&self.flags).filter(|(_, flag)| up(flag)).map(|(s, _)| s).collect()
    }

    /// Whether a terminal would send its Ctrl-C to this process and, with it, to the program.
    pub(crate) fn came_from_terminal(&self) -> bool {
        rustix::termios::tcgetpgrp(io::stdin())
            .is_ok_and(|group| group == rustix::process::getpgrp())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for hook in self.hooks.drain(..) {
            signal_hook::low_level::unregister(hook);
        }
    }
}
