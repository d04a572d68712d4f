//! `./dev outputs`: the outputs that the documentation quotes are those that its commands print.
//!
//! [`page`] says how a block is marked. Every page's commands run in a folder of their own, in which
//! `scenarios` is the project's, with the `trimtab` that `./dev` has built first on the path.

mod page;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use thiserror::Error;

use page::{Kind, PageError, blocks, contents, replace};

/// Bring the outputs that README.md and docs/ quote up to date.
#[derive(Debug, Parser)]
#[command(name = "./dev outputs")]
struct Arguments {
    /// Change nothing, and end with exit code 1 when a page is out of date
    #[arg(long)]
    check: bool,
    /// Also the outputs that take minutes; some need the traces in ../shared or $TRIMTAB_SHARED
    #[arg(long)]
    slow: bool,
    /// The pages [default: README.md and all of docs/]
    pages: Vec<PathBuf>,
}

/// Why the pages could not be looked at.
#[derive(Debug, Error)]
enum OutputsError {
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("cannot write {}: {cause}", path.display())]
    Write { path: PathBuf, cause: std::io::Error },
    #[error("{}: {problem}", path.display())]
    Page { path: PathBuf, problem: PageError },
    #[error("no folder to run commands in: {0}")]
    Folder(std::io::Error),
    #[error("`{command}` could not be run: {cause}")]
    Start { command: String, cause: std::io::Error },
    #[error("`{command}` failed:\n{stderr}")]
    Failed { command: String, stderr: String },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(stale) if arguments.check => {
            eprintln!("{stale} block(s) differ from what their commands print: run ./dev outputs");
            ExitCode::from(1)
        }
        Ok(stale) => {
            eprintln!("{stale} block(s) changed: read what the text around them says");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// How many blocks are not what their commands print.
fn run(arguments: &Arguments) -> Result<usize, OutputsError> {
    let mut pages = arguments.pages.clone();
    if pages.is_empty() {
        pages.push(PathBuf::from("README.md"));
        find_pages(Path::new("docs"), &mut pages)?;
    }
    let mut stale = 0;
    for path in &pages {
        stale += bring_up_to_date(path, arguments)?;
    }
    Ok(stale)
}

/// Every Markdown file below a folder, in the order of their names.
fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<(), OutputsError> {
    let fail = |cause| OutputsError::Read { path: folder.to_owned(), cause };
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths =
        entries.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(fail)?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            find_pages(&path, pages)?;
        } else if path.extension().is_some_and(|e| e == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Runs the commands of a page; says which blocks are stale, and replaces them unless it only checks.
fn bring_up_to_date(path: &Path, arguments: &Arguments) -> Result<usize, OutputsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| OutputsError::Read { path: path.to_owned(), cause })?;
    let blocks =
        blocks(&text).map_err(|problem| OutputsError::Page { path: path.to_owned(), problem })?;
    if blocks.is_empty() {
        return Ok(0);
    }
    let folder = tempfile::tempdir().map_err(OutputsError::Folder)?;
    let root = std::env::current_dir().map_err(OutputsError::Folder)?;
    // What commands read of the project: scenarios, and the programs of jq that pages have next to them.
    for name in ["scenarios", "docs"] {
        std::os::unix::fs::symlink(root.join(name), folder.path().join(name))
            .map_err(OutputsError::Folder)?;
    }
    let mut new = Vec::new();
    for block in blocks.iter().filter(|block| arguments.slow || !block.slow) {
        let found = contents(block, &text, |command| shell(command, folder.path()))?;
        if let Kind::File(name) = &block.kind {
            let path = folder.path().join(name);
            std::fs::write(&path, found.join("\n") + "\n")
                .map_err(|cause| OutputsError::Write { path, cause })?;
        }
        let old: Vec<&str> = text.lines().skip(block.lines.start).take(block.lines.len()).collect();
        if found != old {
            report(path, block.lines.start, &old, &found);
            new.push((block.lines.clone(), found));
        }
    }
    if !arguments.check && !new.is_empty() {
        std::fs::write(path, replace(&text, &new))
            .map_err(|cause| OutputsError::Write { path: path.to_owned(), cause })?;
    }
    Ok(new.len())
}

/// What a command prints, run by the shell in a folder.
fn shell(command: &str, folder: &Path) -> Result<String, OutputsError> {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|cause| OutputsError::Start { command: command.to_owned(), cause })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(OutputsError::Failed { command: command.to_owned(), stderr })
    }
}

/// Shows the first line that differs; `git diff` shows the rest.
fn report(path: &Path, start: usize, old: &[&str], new: &[String]) {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let line = |text: Option<&str>| text.unwrap_or("(the end)").to_owned();
    eprintln!(
        "{}:{}:\n  - {}\n  + {}",
        path.display(),
        start + same + 1,
        line(old.get(same).copied()),
        line(new.get(same).map(String::as_str))
    );
}
