//! What can go wrong, and what to do.

use std::io;
use std::path::PathBuf;

use trimtab_emu::EmuError;

/// Why a call cannot be carried out. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebrtcError {
    /// The folder with the tools that measure pictures is missing, or lacks a file.
    #[error(
        "cannot open {}: {cause}; install ffmpeg with libvmaf and the clips with ./dev quality, and \
         name their folder in TRIMTAB_QUALITY (default: target/quality)",
        path.display()
    )]
    Quality {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A tool failed.
    #[error("ffmpeg cannot {task}: {said}")]
    Ffmpeg {
        /// What it was to do.
        task: &'static str,
        /// Its last words.
        said: String,
    },
    /// The browser cannot be started.
    #[error("cannot start chromium: {0}; install it, e.g. apt-get install chromium")]
    NoBrowser(io::Error),
    /// The browser does not do as told.
    #[error("the browser failed at {task}: {said}")]
    Browser {
        /// What it was told.
        task: String,
        /// What it answered.
        said: String,
    },
    /// The peer connection failed.
    #[error(
        "the peer connection failed to {task}: {said}; try again with the environment's log on"
    )]
    Peer {
        /// What it was to do.
        task: &'static str,
        /// What it reports.
        said: String,
    },
    /// The encoder failed.
    #[error("openh264 cannot {task}: {said}")]
    Encoder {
        /// What it was to do.
        task: &'static str,
        /// What it reports.
        said: String,
    },
    /// The system refused something.
    #[error("cannot {task}: {cause}")]
    System {
        /// What was tried.
        task: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// A scheme needs what only the simulator has.
    #[error(
        "{scheme}: it is a bound, which needs the future of the link or copies of the world; take \
         --datapath sim, or another scheme such as copa"
    )]
    Bound {
        /// As the user named it.
        scheme: String,
    },
    /// The application is no call.
    #[error("--datapath {datapath} runs calls only; take --app conference, or --datapath sim")]
    NoCall {
        /// What was to run it.
        datapath: &'static str,
    },
    /// More than one flow takes part.
    #[error(
        "--datapath {datapath} runs one call alone on a link; take one flow without competitors, or \
         --datapath sim"
    )]
    Company {
        /// What was to run it.
        datapath: &'static str,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The thread of a run has ended by a panic.
    #[error("the thread of a run has panicked; report this as a bug, with the command")]
    Thread,
    /// The link cannot be emulated.
    #[error(transparent)]
    Emu(#[from] EmuError),
}

#[cfg(feature = "browser")]
impl WebrtcError {
    pub(crate) fn system<E: Into<io::Error>>(task: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::System { task, cause: cause.into() }
    }

    pub(crate) fn peer<E: ToString>(task: &'static str) -> impl FnOnce(E) -> Self {
        move |said| Self::Peer { task, said: said.to_string() }
    }

    pub(crate) fn encoder<E: ToString>(task: &'static str) -> impl FnOnce(E) -> Self {
        move |said| Self::Encoder { task, said: said.to_string() }
    }
}
