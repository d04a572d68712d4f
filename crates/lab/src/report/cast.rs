//! Who takes part in a report: each scheme keeps its number and its look (`look.rs`) through all of it.

use super::look::{Look, looks};
use crate::result::SummaryRow;
use crate::stats::summary::in_order;

/// How one scheme is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Role {
    /// Its name.
    pub(super) cc: String,
    /// Its number: the class `s0`, `s1` … of everything drawn for it, by which readers hide it.
    pub(super) number: usize,
    /// Its colour, dash pattern and marker.
    pub(super) look: Look,
}

/// Everybody who takes part, in the order of the summary.
pub(super) fn cast(summary: &[SummaryRow]) -> Vec<Role> {
    named(&in_order(summary.iter().map(|r| r.cc.as_str())))
}

/// Everybody of these names, in their order.
pub(super) fn named(names: &[&str]) -> Vec<Role> {
    let looks = looks(names);
    let role =
        |(number, (cc, look)): (usize, (&&str, Look))| Role { cc: (*cc).to_owned(), number, look };
    names.iter().zip(looks).enumerate().map(role).collect()
}

impl Role {
    /// Class and dash attributes of a line.
    pub(super) fn line(&self) -> String {
        let Self { number, look, .. } = self;
        format!("class=\"line {} s{number}\"{}", look.classes(), look.dashes())
    }

    /// Its marker, centred at a position; `size` 1 is some 13 units wide.
    pub(super) fn marker(&self, x: f64, y: f64, size: f64) -> String {
        let Self { number, look, .. } = self;
        let scale = if size == 1.0 { String::new() } else { format!(" scale({size})") };
        format!(
            "<path class=\"marker {} s{number}\" transform=\"translate({x:.1} {y:.1}){scale}\" d=\"{}\"/>",
            look.classes(),
            look.marker()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::summary::summarise;
    use crate::testing::run;

    #[test]
    fn numbers_follow_the_summary_and_looks_the_names() {
        let of = |names: &[&str]| {
            let runs: Vec<_> = names.iter().map(|cc| run(cc, "t", 0, 1.0)).collect();
            cast(&summarise(&runs))
        };
        let (a, b) = (of(&["cubic", "mortise"]), of(&["bbr", "omniscient", "cubic"]));
        assert_eq!((a[0].number, b[2].number), (0, 2));
        assert_eq!(a[0].look, b[2].look);
        assert!(b[2].line().starts_with("class=\"line blue s2\""), "{}", b[2].line());
    }
}
