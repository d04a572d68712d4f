//! `trimtab emu`.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use trimtab_emu::program::{self, Notice, Program};
use trimtab_emu::{Config, NamespaceId, privilege, watchdog};
use trimtab_lab::report::output::write_file;
use trimtab_lab::run::links;
use trimtab_lab::scenario::{Buffer, Cell, Mark, Probability, TraceSource};
use trimtab_net::mahimahi_log::{OPPORTUNITY, OVERHEAD};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_units::{Duration, Rate};

use crate::Failure;
use crate::args::Emu;

/// Runs the program; its exit code.
pub(crate) fn run(args: Emu) -> Result<u8, Failure> {
    let config = config(&args)?;
    let privilege = privilege::acquire().map_err(Failure::input)?;
    let program = program(args.program, args.server);
    let ended = program::run(program, &config, privilege, tell).map_err(Failure::input)?;
    if !args.quiet {
        eprintln!("{}", ended.report);
    }
    if let Some(path) = &args.json {
        write_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &ended.report)?;
            out.write_all(b"\n")
        })
        .map_err(Failure::input)?;
    }
    Ok(exit_code(ended.status))
}

/// The watchdog of an emulator.
pub(crate) fn watch(namespaces: &[u64]) -> Result<(), Failure> {
    let namespaces: Vec<NamespaceId> = namespaces.iter().copied().map(NamespaceId).collect();
    watchdog::watch(&namespaces).map_err(Failure::input)
}

fn config(args: &Emu) -> Result<Config, Failure> {
    let rtt = args.delay.longest() * 2;
    let link = |trace: Option<&TraceSource>, buffer: Option<Buffer>, loss: Probability| {
        let mut link = LinkConfig::new(capacity(trace)?).delay(args.delay.config().clone());
        if let Some(buffer) = buffer {
            link.queue = queue(buffer, &link.capacity, rtt)?;
        }
        if loss.get() > 0.0 {
            link.loss = LossConfig::Independent(loss.get());
        }
        if args.mahimahi {
            link.overhead = OVERHEAD;
            if let Capacity::Trace { opportunity, .. } = &mut link.capacity {
                *opportunity = OPPORTUNITY;
            }
        }
        Ok(link)
    };
    let mut down = link(args.trace.as_ref(), args.buffer, args.loss)?;
    if let Some(mark) = args.mark {
        if let Mark::Above(length) = mark {
            has_bdp(length, &down.capacity, rtt)?;
        }
        down.mark = mark.on(down.capacity.mean_rate(), rtt);
    }
    let up = link(args.up.as_ref(), args.up_buffer, args.up_loss)?;
    Ok(Config { down, up, seed: args.seed, log: args.log.clone() })
}

fn capacity(source: Option<&TraceSource>) -> Result<Capacity, Failure> {
    source.map_or(Ok(Capacity::Constant(Rate::MAX)), links::capacity).map_err(Failure::input)
}

fn queue(buffer: Buffer, capacity: &Capacity, rtt: Duration) -> Result<QueueConfig, Failure> {
    has_bdp(buffer, capacity, rtt)?;
    let cell = Cell {
        rtt: rtt.into(),
        buffer,
        loss: Probability::default(),
        jitter: Duration::ZERO,
        flows: 1,
        rivals: None,
    };
    Ok(cell.queue(capacity.mean_rate()))
}

/// Whether the link has a bandwidth-delay product, where a size is given in it.
fn has_bdp(size: Buffer, capacity: &Capacity, rtt: Duration) -> Result<(), Failure> {
    if matches!(size, Buffer::Bdp(_)) && (capacity.mean_rate() == Rate::MAX || rtt.is_zero()) {
        let problem = "a size in BDP needs a link with a rate and a delay";
        return Err(Failure::input(format!(
            "{problem}: give --trace and --delay, or a size, e.g. 150KB"
        )));
    }
    Ok(())
}

fn program(words: Vec<std::ffi::OsString>, server: Option<String>) -> Program {
    let mut words = words.into_iter();
    let first =
        words.next().or_else(|| std::env::var_os("SHELL")).unwrap_or_else(|| "/bin/sh".into());
    let mut command = Command::new(first);
    command.args(words);
    let server = server.map(|line| {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(line);
        shell
    });
    let mut watchdog = Command::new("/proc/self/exe");
    watchdog.arg("emu-watchdog");
    Program { command, server, watchdog }
}

fn tell(notice: Notice) {
    eprintln!(
        "note: {}",
        match notice {
            Notice::Alone =>
                "without root nothing is at the other side of the link; start a program there with --server",
            Notice::ServerSilent => "the server has not opened a socket within 5 s; going on",
        }
    );
}

/// As shells have it: 128 and the number of the signal for a program that was killed.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
