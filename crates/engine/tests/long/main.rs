//! What takes minutes, in one program, so that tests wait at the same time.

#[path = "../common/mod.rs"]
mod common;
mod edge_outage;
mod faults;
mod proxy;
mod studies;

/// The tests start this program again as an engine.
#[test]
fn engine_process() {
    common::run_if_asked();
}
