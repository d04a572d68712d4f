//! The folder with measurements that some tests compare with.

use std::path::{Path, PathBuf};

/// The folder next to the project (or where `TRIMTAB_SHARED` says). `None`, with a printed line, when
/// it is not there: then the calling test has nothing to check. Under CI its absence is a failure.
pub(crate) fn shared() -> Option<PathBuf> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("TRIMTAB_SHARED").map_or_else(usual, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let missing = format!("there is no folder {} (set TRIMTAB_SHARED)", folder.display());
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{missing}");
    eprintln!("skipped: {missing}");
    None
}
