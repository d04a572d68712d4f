//! What can go wrong, each with one message that says what to do.

use std::path::PathBuf;

use rustix::io::Errno;
use trimtab_cc::KnobError;

use crate::algorithm::Algorithm;
use crate::models::TreesRefused;

/// Why the datapath did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel describes no types of its own.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux is missing), by which eBPF programs find its structures: \
         boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, as those of Debian 12, Ubuntu 22.04 and later are"
    )]
    NoBtf,
    /// The kernel cannot take a congestion control as eBPF.
    #[error(
        "this kernel takes no congestion control in eBPF (struct_ops): boot Linux 6.1 or later with \
         CONFIG_BPF_JIT=y and CONFIG_BPF_SYSCALL=y"
    )]
    NoStructOps,
    /// The kernel's congestion control has another form than any that there are programs for.
    #[error(
        "no eBPF program fits this kernel's congestion control (tcp_congestion_ops: {what}): \
         Trimtab knows those of Linux 6.1 to 7.2; boot one of these, or tell us which kernel this \
         is"
    )]
    Operation {
        /// Which operation, and what is wrong.
        what: String,
    },
    /// Not allowed.
    #[error(
        "not allowed to {what}: run as root, or with the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN \
         (systemd: AmbientCapabilities=)"
    )]
    NotAllowed {
        /// What was tried.
        what: &'static str,
    },
    /// There is no bpf file system, or not where it is needed.
    #[error(
        "cannot keep anything in {path}: {reason}; mount one with `mount -t bpf bpf /sys/fs/bpf`"
    )]
    NoBpfFs {
        /// The folder for what is kept.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The name of the algorithm is taken.
    #[error(
        "the kernel has a congestion control called {name} already, which {path} knows nothing of: it is another \
         program's, or its folder was removed; find it with `bpftool struct_ops` and unregister it there"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The folder for what is kept.
        path: PathBuf,
    },
    /// An option makes no sense.
    #[error("{what}")]
    Option {
        /// What and why.
        what: String,
    },
    /// The kernel refused something else.
    #[error("cannot {what}: {reason}; `trimtab doctor` lists what this kernel supports")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// What the kernel and libbpf said.
        reason: String,
    },
    /// A model of Muses has no place in the kernel.
    #[error(transparent)]
    Trees(#[from] TreesRefused),
    /// Knobs of connections to come are kept for as many destinations as there is room for.
    #[error(
        "knobs of connections to come are kept for {most} destinations, and there is no room for \
         more: connections to others begin with the defaults; longer prefixes or fewer rules that \
         tell ports, cgroups or namespaces apart need less"
    )]
    TowardsFull {
        /// How many there can be.
        most: u32,
    },
    /// No eBPF program is such an algorithm.
    #[error("no algorithm {name:?} runs in eBPF: give one of {}", Algorithm::ALL.map(Algorithm::name).join(", "))]
    NoAlgorithm {
        /// The name that was asked for.
        name: &'static str,
    },
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// No such knob.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

impl Error {
    /// What libbpf said, by its kind.
    pub(crate) fn of(what: &'static str, error: &libbpf_rs::Error) -> Self {
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Self::NotAllowed { what },
            _ => Self::refused(what, error, said::take()),
        }
    }

    /// The same of programs that the kernel was to load. The verifier refuses with EACCES, too:
    /// that is no missing right, unless the kernel refuses even a program that does nothing.
    pub(crate) fn of_programs(what: &'static str, error: &libbpf_rs::Error) -> Self {
        Self::of_verdict(what, error, said::take())
    }

    pub(crate) fn of_verdict(
        what: &'static str,
        error: &libbpf_rs::Error,
        lines: Vec<String>,
    ) -> Self {
        let none_at_all = lines.iter().any(|line| line.contains("load trivial BPF program"));
        match Errno::from_raw_os_error(number(error)) {
            Errno::PERM => Self::NotAllowed { what },
            Errno::ACCESS if none_at_all => Self::NotAllowed { what },
            _ => Self::refused(what, error, lines),
        }
    }

    fn refused(what: &'static str, error: &libbpf_rs::Error, lines: Vec<String>) -> Self {
        let reason = std::iter::once(chain(error)).chain(lines).collect::<Vec<_>>().join("; ");
        Self::Kernel { what, reason }
    }
}

impl From<Error> for trimtab_datapath::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Closed => Self::Closed,
            Error::Knob(error) => Self::Knob(error),
            other => Self::Refused(Box::new(other)),
        }
    }
}

/// The system's number of an error; 0 where it has none. The library has it in its text alone.
fn number(error: &libbpf_rs::Error) -> i32 {
    let text = chain(error);
    let number = text.rsplit_once("(os error ").and_then(|(_, end)| end.split_once(')'));
    number.and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

/// An error and its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// What libbpf prints besides its error codes: mostly the line that helps.
pub(crate) mod said {
    use std::sync::{Mutex, PoisonError};

    use libbpf_rs::PrintLevel;

    /// The last lines are those of the verifier's verdict.
    const LINES_MAX: usize = 12;

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// Has libbpf tell us instead of writing to the standard error output.
    pub(crate) fn listen() {
        libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
        take();
    }

    #[expect(clippy::needless_pass_by_value, reason = "libbpf-rs wants this type")]
    fn hear(_: PrintLevel, text: String) {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(
            text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()),
        );
        let surplus = lines.len().saturating_sub(LINES_MAX);
        lines.drain(..surplus);
    }

    /// What was said since the last time.
    pub(crate) fn take() -> Vec<String> {
        std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
