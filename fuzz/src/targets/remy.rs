//! Tables of RemyCC: any bytes are one that a connection can run by, or an error with one line to show.

use std::sync::Arc;

use trimtab_cc::remy::{AXES, MEMORY_MAX, Remy};
use trimtab_cc::{Config, CongestionControl};
use trimtab_steer::rival::{read_dna, write_dna};
use trimtab_units::Rate;

pub(crate) fn target(bytes: &[u8]) {
    match read_dna(bytes) {
        Ok(table) => {
            for x in [0.0, 1.0, 1.5, 7.25, 4000.0, MEMORY_MAX, 1e12] {
                if let Some(whisker) = table.find(&[x; AXES]) {
                    assert!(whisker.domain.contains(&[x; AXES]));
                    assert!(whisker.window(u32::MAX) <= 1_000_000);
                }
            }
            assert_eq!(read_dna(&write_dna(&table)).as_ref(), Ok(&table));
            let config = Config::default();
            let remy = Remy::new(&config, Arc::new(table));
            assert!(remy.window() >= config.min_window);
            assert!(remy.pacing_rate().is_none_or(|rate| rate > Rate::ZERO));
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
