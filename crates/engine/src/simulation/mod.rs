//! Random faults, with clock and network simulated: the edge and the engine are the real ones, and
//! what is between them, the time of day and the file's disk do what a fault has them do.
//!
//! Same seed, same run: one thread takes all turns, and no part reads the machine's clock. An
//! episode is a small fleet of its own and [`EPISODE`] faults, which may overlap; then everything
//! is mended, and [`ledger`] checks what became of every report and every decision.
//! `TRIMTAB_FAULTS` sets how many faults are drawn, `TRIMTAB_FAULTS_SEED` the first seed.
//!
//! What is not simulated: PostgreSQL, NATS and a loss of power. `tests/long/faults.rs` has the
//! servers.

mod faults;
mod host;
mod ledger;
mod world;

use world::World;

/// Faults of an episode.
const EPISODE: u64 = 10;
/// Faults that the tests draw, where nobody asks for more.
const USUAL: u64 = 60;

/// A number from the environment.
fn asked(name: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return usual };
    text.parse().unwrap_or_else(|e| panic!("{name}={text:?} is no whole number: {e}"))
}

#[test]
fn under_random_faults_each_report_counts_once_others_go_on_and_no_decision_is_lost() {
    let faults = asked("TRIMTAB_FAULTS", USUAL);
    let first = asked("TRIMTAB_FAULTS_SEED", 1);
    let mut total = ledger::Summary::default();
    for seed in first..first + faults.div_ceil(EPISODE) {
        let mut world = World::new(seed);
        let drawn = world.live(EPISODE);
        let summary = world.check();
        println!("seed {seed}: {summary}; {}", drawn.join(", "));
        total.add(&summary);
    }
    println!("{faults} faults: {total}");
    assert!(total.prompt > 100, "too little was in time to show that others go on: {total}");
    assert!(total.again > 0, "no batch was sent again that was kept: {total}");
}
