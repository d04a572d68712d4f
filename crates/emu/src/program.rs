//! One program behind a link: what `trimtab emu` does.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::error::EmuError;
use crate::privilege::Privilege;
use crate::report::Report;
use crate::signals::Signals;
use crate::topology::{Config, ServerSide, Topology};
use crate::watchdog::Watchdog;

/// For how long a server may take to listen, and a program to end that was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to run.
#[derive(Debug)]
pub struct Program {
    /// The program behind the link.
    pub command: Command,
    /// A program for the other side, which then is a namespace of its own: a server for tests. It is started
    /// first, and waited for until it listens.
    pub server: Option<Command>,
    /// A command that calls [`watch`](crate::watchdog::watch) with the namespaces that are added to its arguments.
    pub watchdog: Command,
}

/// How it went.
#[derive(Debug)]
pub struct Ended {
    /// How the program ended.
    pub status: ExitStatus,
    /// What the link did.
    pub report: Report,
}

/// A remark for the user, while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The caller's network is out of reach, so nothing is at the other side.
    Alone,
    /// The server has not opened a socket in time.
    ServerSilent,
}

/// Runs a program behind a link until it ends, then kills what it left behind. Its environment has the address of
/// the other side in `TRIMTAB_SERVER` (and in `MAHIMAHI_BASE`, for scripts that know Mahimahi); a server has that of
/// the program in `TRIMTAB_CLIENT`.
///
/// SIGTERM, SIGHUP, SIGQUIT and SIGINT to this process go on to the program, but not a Ctrl-C of the terminal, which
/// the program has had itself.
///
/// # Errors
/// Whatever keeps the link from being set up or the program from being started; nothing is left behind then.
pub fn run(
    program: Program,
    config: &Config,
    privilege: Privilege,
    mut notice: impl FnMut(Notice),
) -> Result<Ended, EmuError> {
    let Program { mut command, server, watchdog } = program;
    let signals = Signals::catch()?;
    let mut topology = Topology::new(match (&server, privilege) {
        (None, Privilege::Held) => ServerSide::Here,
        _ => ServerSide::Private,
    })
    .or_else(|e| match e {
        // Root in a user namespace can lack the rights over the network that it is in.
        EmuError::NotPermitted(_) => Topology::new(ServerSide::Private),
        e => Err(e),
    })?;
    let mut namespaces = vec![topology.client().id()?];
    if topology.server_side() == ServerSide::Private {
        namespaces.push(topology.server().id()?);
        if server.is_none() {
            notice(Notice::Alone);
        }
    }
    let watchdog = Watchdog::start(watchdog, &namespaces)?;

    let outcome = (|| {
        if let Some(server) = server {
            start_server(&topology, server, &mut notice)?;
        }
        topology.start(config)?;
        let address = topology.server_address().to_string();
        command.env("TRIMTAB_SERVER", &address).env("MAHIMAHI_BASE", &address);
        let child = topology.client().spawn(command)?;
        let status = wait(child, &signals)?;
        let report = topology.stop()?;
        Ok(Ended { status, report })
    })();
    let killed = namespaces.iter().try_for_each(|namespace| namespace.kill_all());
    watchdog.dismiss();
    killed.and(outcome)
}

fn start_server(
    topology: &Topology,
    mut server: Command,
    notice: &mut impl FnMut(Notice),
) -> Result<(), EmuError> {
    let program = server.get_program().to_string_lossy().into_owned();
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    server
        .env("TRIMTAB_SERVER", topology.server_address().to_string())
        .env("TRIMTAB_CLIENT", topology.client_address().to_string())
        // Standard input and output are the program's, and so is Ctrl-C.
        .stdin(Stdio::null())
        .stdout(stderr.map_err(EmuError::system("copy a file descriptor"))?)
        .process_group(0);
    let mut child = topology.server().spawn(server)?;
    let begin = Instant::now();
    while !listens(topology)? {
        if let Some(status) = child.try_wait().map_err(EmuError::system("wait for the server"))?
            // A daemon that went into the background has done well.
            && !status.success()
        {
            return Err(EmuError::ServerEnded { program, status });
        }
        if begin.elapsed() > PATIENCE {
            notice(Notice::ServerSilent);
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Whether someone on the server's side listens for TCP or has a UDP socket.
fn listens(topology: &Topology) -> Result<bool, EmuError> {
    // A line is "  0: ADDRESS PORT... STATE ...", of which 0A is LISTEN (include/net/tcp_states.h).
    let has = |file: &str, state: &str| -> Result<bool, EmuError> {
        let table = match topology.server().proc_net(file) {
            // Without IPv6 there is none.
            Err(EmuError::System { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                return Ok(false);
            }
            table => table?,
        };
        Ok(table.lines().skip(1).any(|l| l.split_ascii_whitespace().nth(3) == Some(state)))
    };
    // 07, "closed", is a UDP socket that is not connected.
    Ok(has("tcp", "0A")? || has("tcp6", "0A")? || has("udp", "07")? || has("udp6", "07")?)
}

/// Waits for the program, and passes signals on to it.
fn wait(mut child: Child, signals: &Signals) -> Result<ExitStatus, EmuError> {
    let pid = Pid::from_child(&child);
    let process =
        pidfd_open(pid, PidfdFlags::empty()).map_err(EmuError::system("watch the program"))?;
    let mut kill_at: Option<Instant> = None;
    loop {
        let timeout = kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.map(|t| Timespec {
            tv_sec: t.as_secs().cast_signed(),
            tv_nsec: t.subsec_nanos().into(),
        });
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [watch(process.as_fd()), watch(signals.as_fd())];
        // Interrupted by a signal, it looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        if !fds[0].revents().is_empty() {
            return child.wait().map_err(EmuError::system("wait for the program"));
        }
        for signal in signals.take() {
            if signal == Signal::INT && signals.came_from_terminal() {
                continue;
            }
            // If it has just ended, that shows in the next round.
            let _ = kill_process(pid, signal);
            if signal == Signal::TERM || signal == Signal::HUP {
                kill_at = Some(kill_at.unwrap_or(Instant::now() + PATIENCE));
            }
        }
        if kill_at.is_some_and(|at| at <= Instant::now()) {
            let _ = kill_process(pid, Signal::KILL);
            kill_at = Some(Instant::now() + PATIENCE);
        }
    }
}
