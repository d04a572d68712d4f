//! `trimtab conform`.

use std::path::Path;

use trimtab_lab::conform::{self, Check, Simulated, Subject};
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::table::{Style, wrapped};
use trimtab_testbed::OnKernel;

use crate::args::Conform;
use crate::{Failure, print};

/// Characters in a line of a description.
const WIDTH: usize = 92;

/// What is checked where the user names nothing.
static SUBJECTS: &[&str] = &["sim:newreno", "sim:cubic", "sim:bbr", "sim:bbr3", "sim:copa"];

pub(crate) fn run(args: &Conform) -> Result<(), Failure> {
    let checks: Vec<&'static Check> = conform::checks()
        .filter(|check| args.check.is_empty() || args.check.iter().any(|name| name == check.name))
        .collect();
    if args.list {
        return print(&checks.into_iter().map(described).collect::<String>());
    }
    let named: Vec<&str> = args.subject.iter().map(String::as_str).collect();
    let defaults = || SUBJECTS.iter().chain(quic::SUBJECTS).copied().collect();
    let named: Vec<&str> = if named.is_empty() { defaults() } else { named };
    let subjects = named.into_iter().map(subject).collect::<Result<Vec<_>, _>>()?;
    let result = conform::conform(&checks, &subjects, args.work.effort());
    let result = result.map_err(Failure::interrupted)?;
    let as_json = || format!("{}\n", serde_json::to_string_pretty(&result).unwrap_or_default());
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => print(&as_json())?,
        Some(path) => {
            // A minute's result must not be lost to a full disk.
            print(&result.render(Style::of_stdout()))?;
            write_file(path, |out| out.write_all(as_json().as_bytes())).map_err(Failure::input)?;
        }
        None => print(&result.render(Style::of_stdout()))?,
    }
    for warning in subjects.iter().flat_map(|subject| subject.warnings()) {
        eprintln!("warning: {warning}");
    }
    if result.holds() {
        Ok(())
    } else {
        Err(Failure::check("an algorithm of Trimtab fails a check: see the table"))
    }
}

fn described(check: &Check) -> String {
    let Check { name, clause, about, scene, .. } = check;
    let scene = wrapped(&format!("Path: {scene}."), WIDTH).replace('\n', "\n    ");
    let about = wrapped(about, WIDTH).replace('\n', "\n    ");
    format!("{name} ({clause})\n    {about}{}\n", scene.trim_end())
}

/// What a name stands for.
fn subject(name: &str) -> Result<Box<dyn Subject>, Failure> {
    let fail = |e: &dyn std::fmt::Display| Failure::input(format!("--subject {name}: {e}"));
    match name.split_once(':') {
        Some(("sim", text)) => Ok(Box::new(Simulated::new(text).map_err(|e| fail(&e))?)),
        Some((stack @ ("noq" | "quinn"), text)) => quic::subject(stack, text).map_err(|e| fail(&e)),
        Some(("s2n", text)) => s2n::subject(text).map_err(|e| fail(&e)),
        Some(("kernel", text)) => Ok(Box::new(OnKernel::named(text).map_err(|e| fail(&e))?)),
        _ => Err(fail(
            &"a subject is sim:ALGORITHM, noq:trimtab/ALGORITHM, noq:ALGORITHM, quinn:ALGORITHM, \
              s2n:trimtab/ALGORITHM, s2n:ALGORITHM, kernel:trimtab/ALGORITHM or kernel:ALGORITHM",
        )),
    }
}

#[cfg(feature = "quic")]
mod quic {
    use trimtab_lab::run::datapath::RunError;
    use trimtab_quic::{OnNoq, OnQuinn};

    use super::Subject;

    pub(super) static SUBJECTS: &[&str] = &[
        "noq:trimtab/newreno",
        "noq:trimtab/cubic",
        "noq:trimtab/bbr3",
        "noq:newreno",
        "noq:cubic",
        "noq:bbr3",
        "quinn:newreno",
        "quinn:cubic",
        "quinn:bbr",
    ];

    pub(super) fn subject(stack: &str, text: &str) -> Result<Box<dyn Subject>, RunError> {
        Ok(match stack {
            "noq" => Box::new(OnNoq::named(text)?),
            _ => Box::new(OnQuinn::named(text)?),
        })
    }
}

#[cfg(not(feature = "quic"))]
mod quic {
    use super::Subject;

    pub(super) static SUBJECTS: &[&str] = &[];

    pub(super) fn subject(_: &str, _: &str) -> Result<Box<dyn Subject>, &'static str> {
        Err("this trimtab was built without QUIC: build it with ./dev build, or with cargo build \
             --release -p trimtab --features quic")
    }
}

#[cfg(feature = "s2n")]
mod s2n {
    use trimtab_lab::run::datapath::RunError;
    use trimtab_quic::OnS2n;

    use super::Subject;

    pub(super) fn subject(text: &str) -> Result<Box<dyn Subject>, RunError> {
        Ok(Box::new(OnS2n::named(text)?))
    }
}

#[cfg(not(feature = "s2n"))]
mod s2n {
    use super::Subject;

    pub(super) fn subject(_: &str) -> Result<Box<dyn Subject>, &'static str> {
        Err("this trimtab was built without s2n-quic: build it with cargo build --release \
             -p trimtab --features s2n")
    }
}
