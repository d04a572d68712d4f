//! Fuzz targets: each takes what a user or a peer hands in, and panics where that shows a defect.
//!
//! `./dev fuzz` runs them under libFuzzer, which looks for inputs that reach new code. The test
//! `seeds` tries the seeds and changed ones without it. A new target is a file in `src/targets`, a
//! line here and a folder with a seed.

/// What a target reads: bytes, or the text that they begin with.
trait Input<'a> {
    fn of(data: &'a [u8]) -> Self;
}

impl<'a> Input<'a> for &'a [u8] {
    fn of(data: &'a [u8]) -> Self {
        data
    }
}

impl<'a> Input<'a> for &'a str {
    fn of(data: &'a [u8]) -> Self {
        data.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        mod targets {
            $(pub(crate) mod $name;)*
        }

        /// All targets, by name.
        pub const TARGETS: &[(&str, fn(&[u8]))] =
            &[$((stringify!($name), |data| targets::$name::target(Input::of(data)))),*];
    };
}

targets! {
    access_log
    antelope
    astraea
    aurora
    cmcd
    cmcd_reports
    config
    control
    formula
    hints
    http
    indigo
    loader
    lstm
    mahimahi_log
    mocc
    model
    orca
    orders
    remy
    report
    scenario
    service
    spec
    trace
    trace_file
    transport
    trees
    units
    workload
}

/// The target of that name.
///
/// # Errors
///
/// One line that lists the names where there is no such target.
pub fn target(name: &str) -> Result<fn(&[u8]), String> {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.map(|&(_, target)| target).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|&(name, _)| name).collect();
        format!("there is no fuzz target '{name}': take one of {}", names.join(", "))
    })
}
