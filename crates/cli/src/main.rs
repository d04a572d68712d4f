//! The `trimtab` command: parse, call one library function, map the result to an exit code.
//!
//! Exit codes: 0 done, 1 a check failed (`conform`, `validate`, `parity`, `doctor`), 2 bad input or
//! nowhere to write, 130 interrupted; `emu` ends with the code of its program.

mod agent;
mod args;
mod cmcd;
mod cmcd_args;
mod compare;
mod compare_args;
mod conform;
mod datapath;
mod emu;
mod engine;
mod engine_args;
mod fleet;
mod leaderboard;
mod leaderboard_args;
mod list;
mod manual;
mod parity;
mod reproduce;
mod reproduce_args;
mod samples;
mod study;
mod study_args;
mod trace;
mod trace_args;
mod validate;

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{CommandFactory, Parser};

use args::{AppCommand, Cc, Cli, Command};

/// A failure for the user: one message that says what to do, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// Bad input, or nowhere to write.
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// A check came out wrong.
    pub(crate) fn check(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }

    /// The user pressed Ctrl-C, or SIGTERM came: 128 and the number of SIGINT, as shells have it.
    pub(crate) fn interrupted(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), code: 130 }
    }

    /// Whether the user wants it to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.code == 130
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn main() -> ExitCode {
    // A panic is a defect of ours and not of the input: print that, and where to report it.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("error: this is a defect in trimtab, please report it with the command: {panic}");
    }));
    let cli = Cli::parse();
    let first_interrupt = || {
        if trimtab_lab::run::pool::INTERRUPTED.swap(true, Ordering::Relaxed) {
            // The second signal does not wait for runs to end.
            std::process::exit(130);
        }
    };
    // `emu` passes signals on to its program, and needs to be without other threads to change its user namespace; the
    // agent and the engine have their own.
    if !matches!(cli.command, Command::Emu(_) | Command::Agent(_) | Command::Engine(_)) {
        // SIGTERM and SIGHUP as well: without a handler they end the program at once, and a temporary file
        // or a browser's folder may stay.
        let _ = ctrlc::set_handler(first_interrupt);
    }
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

/// The exit code.
fn run(cli: Cli) -> Result<u8, Failure> {
    let done = match cli.command {
        Command::Emu(args) => return emu::run(*args),
        Command::EmuWatchdog { namespaces } => emu::watch(&namespaces),
        Command::Compare(args) => compare::run(&args),
        Command::Trace(args) => trace::run(args.command),
        Command::Cc(Cc::List { json }) => list::schemes(json),
        Command::Cc(Cc::Header) => print(trimtab_plugin::HEADER),
        Command::App(AppCommand::List { json }) => list::applications(json),
        Command::App(AppCommand::Cdf { app, set, length, sessions, json, output }) => {
            samples::requests(app, &set, length, sessions, json, output.as_deref())
        }
        Command::Fleet(args) => fleet::run(&args),
        Command::Conform(args) => conform::run(&args),
        Command::Leaderboard(args) => leaderboard::run(&args),
        Command::Parity(args) => parity::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Validate(args) => validate::run(args),
        Command::Agent(args) => agent::run(args),
        Command::Engine(args) => engine::run(*args),
        Command::Cmcd(args) => cmcd::run(args),
        Command::Doctor { json, root } => agent::doctor(&root, json),
        Command::Manual { folder } => manual::write(&folder),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "trimtab", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    };
    done.map(|()| 0)
}

/// Writes to standard output. A reader that went away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
