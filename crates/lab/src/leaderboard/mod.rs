//! The leaderboard: every scheme over held sets of paths, by what users feel, the harm to others, and
//! processor time.
//!
//! A [`Set`] is a scenario that all schemes run, one comparison for each scheme, so that a new scheme
//! runs alone and an interrupted board goes on where it was. [`score`] compares each with CUBIC run by
//! run, [`cpu`] times an acknowledgement, and a [`Card`] is what a submission says of itself. The
//! [`Board`] is all of it; `report/leaderboard.rs` makes the page.

mod card;
pub mod cpu;
mod score;
mod set;

use serde::{Deserialize, Serialize};

pub use card::{Card, CardError};
pub use cpu::CpuRow;
pub use score::{PathRow, Row, SetScores, score};
pub use set::{Set, SetError, folder, shipped};

/// The schema that [`Board::schema`] names.
pub const SCHEMA: &str = "trimtab.leaderboard/1";

/// The scheme that all others are compared with, as most of the Internet runs it (RFC 9438).
pub const REFERENCE: &str = "cubic";

/// The schemes of a set that names none: every algorithm for transfers, every steering, and every
/// learnt policy whose model ships.
pub const SCHEMES: [&str; 30] = [
    REFERENCE,
    "newreno",
    "bbr",
    "bbr3",
    "vegas",
    "westwood",
    "illinois",
    "ledbat",
    "copa:mit",
    "copa:mvfst",
    "vivace",
    "c2tcp",
    "allegro",
    "sprout",
    "verus",
    "remycc",
    "muses",
    "muses:lstm",
    "treeg",
    "mortise",
    "mortise-disc",
    "mortise:bbr3",
    "floo",
    "floo:counterfactual",
    "floo:shared",
    "floo+mortise",
    "select:power",
    "select:antelope",
    "select:antelope:paper",
    "select:antelope:copa",
];

/// A whole leaderboard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Board {
    /// `trimtab.leaderboard/1`.
    pub schema: String,
    /// The command line as it was typed.
    pub command: String,
    /// The version of Trimtab.
    pub version: String,
    /// Whether it is of a quick run, which says little.
    pub quick: bool,
    /// Every scheme, first the best by [`Standing::place`].
    pub standings: Vec<Standing>,
    /// Every set that ran.
    pub sets: Vec<SetScores>,
    /// Every set that did not, and schemes that the machine could not run in one that did.
    pub left_out: Vec<LeftOut>,
    /// What an acknowledgement costs, of schemes that run in this process. Of all of the board this
    /// alone differs from run to run.
    pub cpu: Vec<CpuRow>,
    /// What submissions say of themselves.
    pub cards: Vec<Card>,
}

/// A scheme over all sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The scheme.
    pub cc: String,
    /// The mean of its places over the sets that it ran: 0 is the best of every set, 1 the last. Sets
    /// differ in their units, so ranks are averaged and no changes.
    pub place: f64,
    /// How many sets it ran.
    pub sets: u64,
}

/// A set that did not run, or one scheme of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The set.
    pub set: String,
    /// The scheme; none where it is the whole set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// Why.
    pub why: String,
}

impl core::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { set, cc, why } = self;
        match cc {
            Some(cc) => write!(f, "Set {set} ran without {cc}: {why}."),
            None => write!(f, "Set {set} did not run: {why}."),
        }
    }
}

impl Board {
    /// The board of these scores.
    pub fn new(sets: Vec<SetScores>, cpu: Vec<CpuRow>, cards: Vec<Card>, command: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            quick: false,
            standings: standings(&sets),
            sets,
            left_out: Vec::new(),
            cpu,
            cards,
        }
    }

    /// What an acknowledgement of this scheme costs.
    pub fn cpu_of(&self, cc: &str) -> Option<&CpuRow> {
        self.cpu.iter().find(|row| row.cc == cc)
    }
}

/// Every scheme of the sets, by the mean of its places; among equals by name.
fn standings(sets: &[SetScores]) -> Vec<Standing> {
    let mut standings: Vec<Standing> = Vec::new();
    for row in sets.iter().flat_map(|set| &set.rows) {
        match standings.iter_mut().find(|standing| standing.cc == row.cc) {
            Some(known) => {
                known.place += row.place;
                known.sets += 1;
            }
            None => standings.push(Standing { cc: row.cc.clone(), place: row.place, sets: 1 }),
        }
    }
    for standing in &mut standings {
        standing.place /= standing.sets as f64;
    }
    standings.sort_by(|a, b| a.place.total_cmp(&b.place).then_with(|| a.cc.cmp(&b.cc)));
    standings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    /// Places and not changes are averaged: a set with large differences weighs no more.
    #[test]
    fn standings_are_means_of_places() {
        let set = |name: &str, scores: &[(&str, f64)]| {
            let runs: Vec<_> = scores.iter().map(|(cc, qoe)| run(cc, "t", 0, *qoe)).collect();
            let set = Set::parse(name, &format!("about = \"x\"\n{}", set::tests::SMALL)).unwrap();
            score(&set, &runs).unwrap()
        };
        let board = Board::new(
            vec![
                set("a", &[("cubic", 1.0), ("bbr", 100.0), ("vegas", 2.0)]),
                set("b", &[("cubic", 1.0), ("bbr", 0.9), ("vegas", 1.1)]),
                set("c", &[("cubic", 1.0), ("vegas", 0.5)]),
            ],
            Vec::new(),
            Vec::new(),
            "x",
        );
        let places: Vec<(&str, f64, u64)> =
            board.standings.iter().map(|s| (s.cc.as_str(), s.place, s.sets)).collect();
        assert_eq!(places, [("bbr", 0.5, 2), ("cubic", 0.5, 3), ("vegas", 0.5, 3)]);
        let text = serde_json::to_string(&board).unwrap();
        assert_eq!(serde_json::from_str::<Board>(&text).unwrap(), board);
    }

    #[test]
    fn every_scheme_of_the_board_is_one_and_needs_no_file() {
        use trimtab_steer::scheme::{Scheme, SchemeKind};
        for label in SCHEMES {
            let scheme: Scheme = label.parse().unwrap();
            assert!(!scheme.is_bound() && !matches!(scheme.kind(), SchemeKind::Plugin(_)));
        }
    }
}
