//! Under libFuzzer (`./dev fuzz`): the target that `TRIMTAB_FUZZ` names. Otherwise: runs a target on
//! files, for a debugger, and to see whether what once failed is mended.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod under_libfuzzer {
    use std::sync::LazyLock;

    static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
        let name = std::env::var("TRIMTAB_FUZZ").unwrap_or_default();
        trimtab_fuzz::target(&name).unwrap_or_else(|why| panic!("TRIMTAB_FUZZ: {why}"))
    });

    libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
}

#[cfg(not(fuzzing))]
fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: trimtab-fuzz TARGET FILE...")?;
    let target = trimtab_fuzz::target(&name)?;
    for file in arguments {
        target(&std::fs::read(&file).map_err(|error| format!("cannot read {file}: {error}"))?);
        println!("{name} takes {file}");
    }
    Ok(())
}
