//! A process that cleans up when the emulator cannot: it waits for the emulator's end and, when that was not an
//! orderly one, kills whatever is left in the emulator's namespaces. Devices and namespaces then vanish by
//! themselves. (The emulator's own children die with it; what they started, as a shell's background jobs, would live
//! on behind a link that is gone.)

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::EmuError;
use crate::namespace::NamespaceId;

/// The watchdog as the emulator sees it.
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// Starts `command`, which is to call [`watch`] with the namespaces that it gets as arguments.
    pub(crate) fn start(
        mut command: Command,
        namespaces: &[NamespaceId],
    ) -> Result<Self, EmuError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .args(namespaces.iter().map(|NamespaceId(inode)| inode.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is not for it.
            .process_group(0)
            .spawn()
            .map_err(|cause| EmuError::Program { program, cause })?;
        Ok(Self(child))
    }

    /// Nothing is left to clean up.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            // If it is gone it needs no word.
            let _ = pipe.write_all(b"done");
        }
        let _ = self.0.wait();
    }
}

/// What the watchdog does: waits until the pipe on its standard input closes, and unless a word came through it
/// kills all processes of the namespaces.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn watch(namespaces: &[NamespaceId]) -> Result<(), EmuError> {
    let mut word = Vec::new();
    let heard = io::stdin().read_to_end(&mut word);
    if heard.is_ok() && !word.is_empty() {
        return Ok(());
    }
    namespaces.iter().try_for_each(|namespace| namespace.kill_all())
}
