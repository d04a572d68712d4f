//! Fleets with one seed after the other, each kept in a file, so that a run that was stopped goes on.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::chooser::{Scheme, SimulateError};
use super::result::FleetResult;
use super::{Fared, FleetScenario, fare};
use crate::report::output::write_file;
use crate::run::pool::Effort;

/// The schema of the files.
const SCHEMA: &str = "trimtab.fleet-seed/1";

/// A fleet with one seed.
#[derive(Serialize, Deserialize)]
struct SeedFile {
    schema: String,
    /// What was simulated, and by which version of the program.
    digest: String,
    seed: u64,
    services: Vec<Vec<Fared>>,
}

/// Runs a fleet with each of these seeds and sums up all of them. `schemes` come from outside, and
/// take part where others do. With a `folder`, a seed whose file `seed-N.json` is there is not run
/// again, and others leave their file.
///
/// # Errors
/// The user asked to stop, or a scheme does not do its part; a file is of another scenario, or
/// cannot be read or written.
pub fn simulate(
    scenario: &FleetScenario,
    seeds: RangeInclusive<u64>,
    schemes: &[Scheme],
    effort: Effort,
    folder: Option<&Path>,
    command: &str,
) -> Result<FleetResult, SimulateError> {
    let (first, count) = (*seeds.start(), seeds.clone().count());
    let digest = digest(scenario, schemes);
    let mut all: Vec<Vec<Fared>> = Vec::new();
    for (done, seed) in seeds.enumerate() {
        let file = folder.map(|folder| folder.join(format!("seed-{seed}.json")));
        let kept = match &file {
            Some(file) if file.exists() => Some(read(file, &digest, seed)?),
            _ => None,
        };
        let services = match kept {
            Some(services) => services,
            None => {
                let services = fare(scenario, seed, schemes, effort).map_err(|e| match folder {
                    Some(folder) if matches!(e, SimulateError::Interrupted(_)) => {
                        SimulateError::Stopped { folder: folder.to_owned(), done, all: count }
                    }
                    _ => e,
                })?;
                match file {
                    Some(file) => write(&file, &digest, seed, services)?,
                    None => services,
                }
            }
        };
        append(&mut all, services);
    }
    Ok(FleetResult::of(scenario, (first, count as u64), command, &all))
}

/// The aggregates of one more fleet after those of the others.
fn append(all: &mut Vec<Vec<Fared>>, services: Vec<Vec<Fared>>) {
    if all.is_empty() {
        *all = services;
        return;
    }
    for (all, one) in all.iter_mut().flatten().zip(services.into_iter().flatten()) {
        debug_assert_eq!(all.name, one.name, "the same schemes with each seed");
        all.courses.extend(one.courses);
        if let (Some(all), Some(one)) = (&mut all.joined, one.joined) {
            all.add(one);
        }
        if let (Some(all), Some(one)) = (&mut all.found, &one.found) {
            all.merge(one);
        }
    }
}

/// Stands for everything that decides the figures but the seed, in any process: the file, what options
/// replace of it, and who takes part.
fn digest(scenario: &FleetScenario, schemes: &[Scheme]) -> String {
    let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    let options = (scenario.aggregates, scenario.connections, scenario.duration.as_nanos());
    let mut text =
        format!("{} {} {options:?} {names:?}", env!("CARGO_PKG_VERSION"), scenario.source);
    if let Some(after) = scenario.together_after {
        text.push_str(&format!(" together after {after}"));
    }
    for service in &scenario.services {
        if service.prior().weight() > 0.0 {
            text.push_str(&format!(" prior {:?}", service.prior().cells()));
        }
    }
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fail(file: &Path, cause: impl Into<String>) -> SimulateError {
    SimulateError::Store { file: file.to_owned(), cause: cause.into() }
}

fn read(file: &Path, digest: &str, seed: u64) -> Result<Vec<Vec<Fared>>, SimulateError> {
    let text =
        fs::read(file).map_err(|e| fail(file, format!("cannot read the result of a seed: {e}")))?;
    let kept: SeedFile = serde_json::from_slice(&text).map_err(|e| {
        fail(file, format!("is not the result of a seed: {e}; remove it to run the seed again"))
    })?;
    if (&*kept.schema, &*kept.digest, kept.seed) != (SCHEMA, digest, seed) {
        return Err(fail(
            file,
            "is of another scenario, another option or another version; name another folder with \
             --out, or remove it to run the seed again",
        ));
    }
    Ok(kept.services)
}

fn write(
    file: &Path,
    digest: &str,
    seed: u64,
    services: Vec<Vec<Fared>>,
) -> Result<Vec<Vec<Fared>>, SimulateError> {
    let kept = SeedFile { schema: SCHEMA.to_owned(), digest: digest.to_owned(), seed, services };
    write_file(file, |out| Ok(serde_json::to_writer(out, &kept)?))
        .map_err(|e| fail(file, format!("cannot write the result of a seed: {e}")))?;
    Ok(kept.services)
}

#[cfg(test)]
mod tests;
