//! `trimtab parity`.

use std::fs;
use std::path::Path;

use trimtab_lab::report::output::write_file;
use trimtab_lab::report::table::Style;
use trimtab_lab::result::Comparison;
use trimtab_lab::validate::parity::{parity, scenario};

use crate::args::Parity;
use crate::{Failure, print};

pub(crate) fn run(args: &Parity) -> Result<(), Failure> {
    let comparison = load(&args.comparison)?;
    let fail = |e| Failure::input(format!("{}: {e}", args.comparison.display()));
    let model = (args.model.open)(&scenario(&comparison).map_err(fail)?)?;
    let parity = parity(&comparison, model.as_ref(), args.work.effort()).map_err(fail)?;
    let as_json = || format!("{}\n", serde_json::to_string_pretty(&parity).unwrap_or_default());
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => print(&as_json())?,
        Some(path) => {
            write_file(path, |out| out.write_all(as_json().as_bytes())).map_err(Failure::input)?;
            print(&parity.render(Style::of_stdout()))?;
        }
        None => print(&parity.render(Style::of_stdout()))?,
    }
    if parity.holds() {
        Ok(())
    } else {
        Err(Failure::check(format!("{} is out of its bands: see the table", parity.model.name())))
    }
}

fn load(path: &Path) -> Result<Comparison, Failure> {
    let fail = |problem: String| Failure::input(format!("{}: {problem}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| fail(format!("cannot be read: {e}")))?;
    serde_json::from_str(&text)
        .map_err(|e| fail(format!("not the JSON of `trimtab compare --json`: {e}")))
}
