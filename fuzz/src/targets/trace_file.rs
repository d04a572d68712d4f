//! Trace files: any bytes on the disk, gzip or not, are a trace or an error that names the file.

use std::path::PathBuf;
use std::sync::LazyLock;
use trimtab_net::Trace;

/// One file per process, so that two fuzzers do not share it.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("trimtab-fuzz-{}.trace", std::process::id()))
});

pub(crate) fn target(bytes: &[u8]) {
    std::fs::write(&*PATH, bytes).expect("the temporary folder can be written");
    let loaded = Trace::load(&PATH);
    std::fs::remove_file(&*PATH).expect("the file was just written");
    match loaded {
        Ok(trace) => assert!(!trace.opportunities().is_empty()),
        Err(error) => assert!(error.to_string().contains("trimtab-fuzz-")),
    }
}
