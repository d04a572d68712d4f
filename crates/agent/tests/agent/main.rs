//! The agent on a real kernel, in a process of its own. Skipped, with the reason, where the kernel or the rights are
//! missing.

mod access;
mod arms;
mod assign;
mod breaker;
mod browser;
mod bulk;
#[path = "../../../kernel/tests/common/mod.rs"]
mod common;
mod doors;
#[path = "../../../engine/tests/common/mod.rs"]
mod engine;
mod faults;
mod fleet;
mod former;
mod harm;
mod hints;
mod hook;
mod learnt;
mod lifetime;
mod log;
mod model;
mod muses;
mod nginx;
mod operate;
mod policy;
mod privilege;
mod quota;
mod setup;
mod transfer;
mod turns;
mod upheaval;
mod web;
mod webm;

/// Not a test by itself: the process of an engine, which the others start.
#[test]
fn engine_process() {
    engine::run_if_asked();
}

/// Not a test by itself: the process of an agent, which the others start.
#[test]
fn agent_in_a_process_of_its_own() {
    let Some(config) = std::env::var_os(setup::CONFIG_VARIABLE) else { return };
    if privilege::is_attacker() {
        return privilege::attack();
    }
    if let Err(error) = trimtab_agent::run(config.as_ref()) {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
}
