//! `trimtab validate`.

use std::path::Path;

use trimtab_lab::report::output::write_file;
use trimtab_lab::validate::{Options, validate};

use crate::args::Validate;
use crate::{Failure, print};

pub(crate) fn run(args: Validate) -> Result<(), Failure> {
    let Validate { ground_truth, traces, json } = args;
    let result = validate(&Options { ground_truth, traces }).map_err(Failure::input)?;
    let as_json = || format!("{}\n", serde_json::to_string_pretty(&result).unwrap_or_default());
    match json.as_deref() {
        Some(path) if path == Path::new("-") => print(&as_json())?,
        Some(path) => {
            write_file(path, |out| out.write_all(as_json().as_bytes())).map_err(Failure::input)?;
            print(&result.to_markdown())?;
        }
        None => print(&result.to_markdown())?,
    }
    if result.holds() {
        Ok(())
    } else {
        Err(Failure::check("the simulator is out of its bands: see the page"))
    }
}
