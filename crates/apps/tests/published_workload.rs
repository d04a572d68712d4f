//! The workload that the Mortise artifact publishes, read as it is.

use std::path::{Path, PathBuf};

use trimtab_apps::Workload;
use trimtab_units::{Bytes, Duration};

/// The folder of shared data: `TRIMTAB_SHARED`, or `shared` next to the project's root.
fn shared() -> PathBuf {
    std::env::var_os("TRIMTAB_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    )
}

#[test]
fn the_published_workload_parses_to_its_known_sums() {
    let path = shared().join("workloads/mortise-app.wk");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            let why = format!("{}: {error}; set TRIMTAB_SHARED to the shared data", path.display());
            assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{why}");
            println!("skipped: {why}");
            return;
        }
    };
    let workload = Workload::parse(&text).unwrap();
    // The figures of the README in the file's folder.
    assert_eq!(workload.requests().len(), 92);
    assert_eq!(workload.length(), Duration::from_millis(149_324));
    assert!((workload.total_size().as_f64() / 1e6 - 58.3).abs() < 0.05);
    let sizes = workload.requests().iter().map(|r| r.size);
    assert_eq!(sizes.clone().min(), Some(Bytes::new(10_351)));
    assert_eq!(sizes.max(), Some(Bytes::new(3_198_351)));
}
