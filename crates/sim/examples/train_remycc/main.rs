//! Makes a table for `remycc`, as Remy does, in the simulator.
//!
//! Read first: Winstein and Balakrishnan, "TCP ex Machina", SIGCOMM 2013, §4.3: improve the action of
//! the rule that is used most until nothing nearby is better, then the next rule's; after four rounds
//! split the rule that is used most at its median memory. Where this is smaller than Remy:
//!
//! * It tries one number of an action at a time, not all combinations.
//! * It splits by the three values of the paper's memory, into eight rules.
//! * It ends after so many tables, not after days.
//!
//! The result depends on the arguments alone. It goes on from the table of a file, if that is there:
//!
//! ```text
//! cargo run --release -p trimtab-sim --example train_remycc -- models/remycc.dna 1500
//! ```

mod networks;
mod search;

use std::path::Path;

use trimtab_cc::remy::{Domain, Table, Whisker};
use trimtab_steer::rival::{read_dna, write_dna};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: train_remycc FILE.dna TABLES";
    let path = arguments.next().ok_or(usage)?;
    let tables: u32 = arguments.next().ok_or(usage)?.parse()?;
    let begin = if Path::new(&path).exists() {
        read_dna(&std::fs::read(&path)?).map_err(|problem| format!("{path}: {problem}"))?
    } else {
        // Remy's first rule (`whisker.hh`, `get_optimizer()`).
        let first = Whisker { domain: Domain::ALL, increment: 1, multiple: 1.0, pause_ms: 3.0 };
        Table::new(vec![first])?
    };
    let mut search = search::Search::new(begin);
    while search.tried() < tables {
        search.round();
        std::fs::write(&path, write_dna(search.best()))?;
        let rules = search.best().whiskers().len();
        println!("{} tables tried, {rules} rules, utility {:.4}", search.tried(), search.utility());
    }
    for whisker in search.best().whiskers() {
        println!("{whisker:?}");
    }
    Ok(())
}
