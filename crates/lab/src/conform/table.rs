//! Verdicts as a table for the terminal.

use super::{Check, Conformance, Row, Verdict};
use crate::report::table::{Column, Style, table, wrapped};

impl Conformance {
    /// The table of what applies, and what failed.
    pub fn render(&self, style: Style) -> String {
        let applies = |row: &&Row| !matches!(row.verdict, Verdict::NotApplicable(_));
        let column = |head: &str, of: fn(&Row) -> String| Column {
            head: head.to_owned(),
            cells: self.rows.iter().filter(applies).map(of).collect(),
        };
        let columns = vec![
            column("check", |row| row.check.name.to_owned()),
            column("subject", |row| row.subject.clone()),
            column("verdict", |row| row.verdict.word().to_owned()),
            column("measured", measured),
            column("conforms", bounds),
        ];
        let mut text = format!("{}\n\n", table(columns, style));
        for row in &self.rows {
            let (subject, Check { name, about, clause, .. }) = (&row.subject, row.check);
            let sentence = match &row.verdict {
                Verdict::Measured(finding) if !finding.holds() => {
                    format!("{subject} fails {name}: {about} ({clause})")
                }
                Verdict::Ended(reason) => format!("{subject} in {name}: {reason}."),
                _ => continue,
            };
            text += &wrapped(&sentence, style.width);
        }
        let count = |word: &str| self.rows.iter().filter(|row| row.verdict.word() == word).count();
        let (pass, fail, ended) = (count("pass"), count("fail"), count("ended"));
        let ended = match ended {
            0 => String::new(),
            ended => format!(", {ended} connections ended"),
        };
        let other = count("n/a");
        text + &format!(
            "{pass} pass, {fail} fail{ended}, {other} do not apply; --json has the reasons.\n"
        )
    }
}

/// What was measured, with its unit.
fn measured(row: &Row) -> String {
    match &row.verdict {
        Verdict::Measured(finding) if finding.value.is_nan() => "not reached".to_owned(),
        Verdict::Measured(finding) => format!("{} {}", number(finding.value), finding.unit),
        Verdict::Ended(_) => "connection ended".to_owned(),
        Verdict::NotApplicable(reason) => (*reason).to_owned(),
    }
}

/// What conforms.
fn bounds(row: &Row) -> String {
    let Verdict::Measured(finding) = &row.verdict else { return String::new() };
    let (least, most) = (finding.least, finding.most);
    match (least.is_finite(), most.is_finite()) {
        (true, true) => format!("{} to {}", number(least), number(most)),
        (true, false) => format!("at least {}", number(least)),
        (false, true) => format!("at most {}", number(most)),
        (false, false) => String::new(),
    }
}

/// Three digits, at most two of them after the point.
fn number(value: f64) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}
