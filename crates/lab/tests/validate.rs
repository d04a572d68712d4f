//! The simulator vs. all measurements of Linux TCP over Mahimahi (issue A, figure 3).

use std::path::{Path, PathBuf};

use trimtab_lab::validate::{Options, ValidateError, validate};

/// The shared folder next to the project; `None` when it is not there and need not be.
fn shared() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("TRIMTAB_SHARED").map_or(usual, PathBuf::from);
    if folder.join("groundtruth").is_dir() {
        return Some(folder);
    }
    let missing = format!("no measurements in {}; TRIMTAB_SHARED can name them", folder.display());
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{missing}");
    println!("skipped: {missing}");
    None
}

#[test]
fn the_simulator_agrees_with_linux() {
    let Some(shared) = shared() else { return };
    let options =
        Options { ground_truth: shared.join("groundtruth"), traces: shared.join("traces") };
    let result = validate(&options).unwrap();
    assert!(
        result.links.len() >= 3 && result.cells.len() >= 110,
        "all of the campaign is compared"
    );
    assert!(result.holds(), "{}", result.to_markdown());
}

#[test]
fn a_folder_without_measurements_says_so() {
    let empty = tempfile::tempdir().unwrap();
    let options = Options { ground_truth: empty.path().into(), traces: empty.path().into() };
    let error = validate(&options).unwrap_err();
    assert!(matches!(error, ValidateError::Read { .. }));
    assert!(error.to_string().contains("give the folder"), "{error}");
}
