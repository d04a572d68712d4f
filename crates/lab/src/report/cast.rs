//! Who is drawn how: every scheme keeps its colour, dash and marker through the whole report.
//!
//! Colours alone do not tell lines apart for everybody, so each scheme also has a dash pattern, a
//! marker and, where there is room, its name beside it. Steered schemes are drawn thick and warm,
//! bounds thin and grey, so that the three kinds differ at a glance. The colours themselves stand in
//! `style.css`, one set for light and one for dark screens.

use crate::result::SummaryRow;
use crate::stats::summary::in_order;
use trimtab_steer::scheme::{is_bound, is_steered};

/// How one scheme is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Role {
    /// Its name.
    pub(super) cc: String,
    /// Its number: the class `s0`, `s1` … of everything drawn for it.
    pub(super) number: usize,
    /// The class of its colour.
    pub(super) color: String,
    /// Its dash pattern; empty for a solid line.
    pub(super) dash: &'static str,
}

/// Dash patterns of the rule-based schemes, told apart even without colour.
const DASHES: [&str; 6] = ["", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 4"];
const BOUND_DASHES: [&str; 3] = ["1.5 3", "5 4", "10 3 1.5 3"];
const STEERED_DASHES: [&str; 2] = ["", "6 3"];

/// The colours of `style.css` per kind.
const RULE_COLORS: usize = 6;
const STEERED_COLORS: usize = 2;

/// Everybody who takes part, in the order of the summary.
pub(super) fn cast(summary: &[SummaryRow]) -> Vec<Role> {
    let (mut rules, mut steered, mut bounds) = (0, 0, 0);
    let next = |n: &mut usize| {
        *n += 1;
        *n - 1
    };
    in_order(summary.iter().map(|r| r.cc.as_str()))
        .into_iter()
        .enumerate()
        .map(|(number, cc)| {
            let (color, dash) = if is_bound(cc) {
                let n = next(&mut bounds);
                ("bound".to_owned(), BOUND_DASHES[n % BOUND_DASHES.len()])
            } else if is_steered(cc) {
                let n = next(&mut steered);
                (format!("steered{}", n % STEERED_COLORS), STEERED_DASHES[n % STEERED_DASHES.len()])
            } else {
                let n = next(&mut rules);
                (format!("rule{}", n % RULE_COLORS), DASHES[n % DASHES.len()])
            };
            Role { cc: cc.to_owned(), number, color, dash }
        })
        .collect()
}

impl Role {
    /// Class and dash attributes of a line.
    pub(super) fn line(&self) -> String {
        let Self { number, color, dash, .. } = self;
        let dash =
            if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        format!("class=\"line s{number} {color}\"{dash}")
    }

    /// A marker centred at a position; its shape goes by the scheme's number.
    pub(super) fn marker(&self, x: f64, y: f64) -> String {
        let shape = match self.number % 6 {
            0 => "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0Z",
            1 => "M-5.5 -5.5H5.5V5.5H-5.5Z",
            2 => "M0 -7L6.5 5H-6.5Z",
            3 => "M0 -7.5L7 0L0 7.5L-7 0Z",
            4 => "M0 7L6.5 -5H-6.5Z",
            _ => "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
        };
        let Self { number, color, .. } = self;
        format!(
            "<path class=\"marker s{number} {color}\" transform=\"translate({x:.1} {y:.1})\" d=\"{shape}\"/>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::summary::summarise;
    use crate::testing::run;

    #[test]
    fn no_two_look_alike() {
        let names = [
            "cubic",
            "bbr",
            "copa:mit",
            "copa:mvfst",
            "vegas",
            "mortise",
            "mortise-disc",
            "oracle:copa",
            "oracle-dynamic:copa",
            "omniscient",
        ];
        let cast = cast(&summarise(&names.map(|cc| run(cc, "t", 0, 1.0))));
        assert_eq!(cast.len(), names.len());
        for (i, a) in cast.iter().enumerate() {
            for b in &cast[..i] {
                assert_ne!((&a.color, a.dash), (&b.color, b.dash), "{} and {}", a.cc, b.cc);
            }
        }
        assert!(cast[5].color.starts_with("steered") && cast[9].color == "bound");
    }
}
