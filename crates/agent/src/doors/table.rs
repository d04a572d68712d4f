//! What the agent tells of itself, as tables that fit a terminal.

use std::fmt;

use trimtab_units::Duration;

use crate::config::Mode;
use crate::doors::view::{FlowView, FormerPrograms, Programs, RolloutStatus, RuleStatus, Status};
use crate::kernel::assign::Assigned;

/// A number, or a dash.
pub(crate) fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// So many of something.
pub(crate) fn count(number: impl TryInto<u64>, what: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Columns of a table, in their order.
#[derive(Debug)]
pub(crate) struct Columns<const N: usize> {
    /// Names and widths.
    pub(crate) all: [(&'static str, usize); N],
    /// Their places, those first that a narrow terminal shows.
    first: [usize; N],
}

/// Of [`FlowView`]s.
pub(crate) const FLOW: Columns<9> = Columns {
    all: [
        ("id", 7),
        ("remote", 26),
        ("port", 5),
        ("rule", 13),
        ("standing", 9),
        ("delta", 7),
        ("rtt ms", 8),
        ("Mbit/s", 8),
        ("score", 9),
    ],
    first: [1, 7, 6, 4, 0, 8, 3, 5, 2],
};

/// Of [`RuleStatus`]es.
const RULE: Columns<9> = Columns {
    all: [
        ("rule", 20),
        ("arm", 9),
        ("open", 7),
        ("active", 7),
        ("decisions", 10),
        ("fallbacks", 9),
        ("rtt ms", 8),
        ("loss %", 7),
        ("score", 9),
    ],
    first: [0, 1, 2, 8, 6, 7, 5, 4, 3],
};

impl<const N: usize> Columns<N> {
    /// The places of those that fit into so many characters, with one between two. The first one is always there.
    pub(crate) fn fitting(&self, width: usize) -> Vec<usize> {
        let (mut fit, mut used) = (Vec::new(), 0);
        for place in self.first {
            let more = self.all[place].1 + usize::from(!fit.is_empty());
            if fit.is_empty() || used + more <= width {
                fit.push(place);
                used += more;
            }
        }
        fit.sort_unstable();
        fit
    }

    /// A line of these columns; those from `right` on are numbers.
    fn line(&self, cells: &[String; N], places: &[usize], right: usize) -> String {
        let cell = |&place: &usize| {
            let ((_, width), text) = (self.all[place], &cells[place]);
            if place < right { format!("{text:<width$}") } else { format!("{text:>width$}") }
        };
        places.iter().map(cell).collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    fn names(&self) -> [String; N] {
        self.all.map(|(name, _)| name.to_owned())
    }
}

impl FlowView {
    /// The cells of its row.
    pub(crate) fn cells(&self) -> [String; FLOW.all.len()] {
        [
            self.id.to_string(),
            self.remote.clone(),
            self.local.rsplit(':').next().unwrap_or_default().to_owned(),
            self.rule.clone(),
            self.standing.name().to_owned(),
            cell(self.delta, 4),
            cell(self.rtt_ms, 1),
            cell(self.throughput_mbps, 2),
            cell(self.score, 3),
        ]
    }
}

/// The connections as a table.
pub fn flow_table(flows: &[FlowView]) -> String {
    let all = FLOW.fitting(usize::MAX);
    let row = |cells| FLOW.line(&cells, &all, usize::MAX) + "\n";
    row(FLOW.names()) + &flows.iter().map(|flow| row(flow.cells())).collect::<String>()
}

impl RuleStatus {
    fn cells(&self) -> [String; RULE.all.len()] {
        let tally = &self.tally;
        [
            self.rule.clone(),
            self.arm.name().to_owned(),
            self.open.to_string(),
            self.active.to_string(),
            tally.decisions.to_string(),
            tally.fallbacks.to_string(),
            cell(tally.rtt_mean().map(Duration::as_millis_f64), 1),
            format!("{:.2}", tally.loss() * 100.0),
            cell(tally.score_mean(), 3),
        ]
    }
}

impl Status {
    /// As a text of lines with so many characters at most.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mode = match self.mode {
            Mode::Apply => "apply",
            Mode::Advise => "advise (nothing is changed)",
        };
        let mut text = vec![
            format!(
                "trimtab agent {}, process {}, up {:.0} s, mode {mode}",
                self.version, self.pid, self.up_s
            ),
            format!("algorithm {}, configuration {}", self.algorithm, self.config),
            format!(
                "{} open, {} active{}; deciding takes {:.2}% of a core",
                count(self.open, "connection"),
                self.active,
                // Seldom, so there is no column for it.
                if self.closing > 0 {
                    format!(", {} closing", self.closing)
                } else {
                    String::new()
                },
                self.cpu * 100.0
            ),
        ];
        text.extend(self.troubles.iter().map(|trouble| format!("note: {trouble}")));
        text.extend(self.orders.iter().map(ToString::to_string));
        if let Some(RolloutStatus { stage, share, next_s }) = &self.rollout {
            let next = next_s.map_or_else(String::new, |s| format!("; the next one in {s:.0} s"));
            text.push(format!(
                "rollout: stage {stage}, {:.1}% of the networks{next}",
                share * 100.0
            ));
        }
        text.extend(self.comparisons.iter().map(ToString::to_string));
        text.extend(self.assigned.iter().map(|assigned| gave(assigned, self.mode)));
        let mut lines: Vec<String> = text.iter().flat_map(|line| wrapped(line, width)).collect();
        if !self.rules.is_empty() {
            let places = RULE.fitting(width);
            let cells = self.rules.iter().map(RuleStatus::cells);
            let rows = std::iter::once(RULE.names()).chain(cells);
            // The rule and the arm are texts.
            lines.extend(rows.map(|cells| RULE.line(&cells, &places, 2)));
        }
        lines
    }
}

impl Status {
    /// What is in the kernel. `top` has no room for it.
    fn loaded(&self) -> Vec<String> {
        let Programs { layout, build, slots, former } = &self.programs;
        let former = former.iter().map(|FormerPrograms { layout, connections }| {
            let open = count(*connections, "connection");
            format!("{open} on former programs (layout {layout}) until they close")
        });
        let now = format!("programs {build}, layout {layout}, {slots} slots");
        std::iter::once(now).chain(former).collect()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.lines(usize::MAX);
        lines.splice(2..2, self.loaded());
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// What a rule has given.
fn gave(assigned: &Assigned, mode: Mode) -> String {
    let Assigned { rule, algorithm, listeners, connections, pending, by_hand } = assigned;
    let mut text = format!(
        "rule {rule} gave {algorithm} to {} and {}",
        count(*listeners, "listening socket"),
        count(*connections, "open connection")
    );
    match (pending, mode) {
        (0, _) => {}
        (some, Mode::Advise) => text += &format!("; {} would get it", count(*some, "socket")),
        (some, Mode::Apply) => text += &format!("; {} without it yet", count(*some, "socket")),
    }
    match by_hand {
        0 => {}
        1 => text += "; 1 is left with what was chosen for it",
        many => text += &format!("; {many} are left with what was chosen for them"),
    }
    text
}

/// A line, broken between words.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(
            [0, 1, 2].map(|n| count(n, "connection")),
            ["0 connections", "1 connection", "2 connections"]
        );
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out_whole() {
        for width in [26, 40, 60, 80, 100, 101] {
            let places = FLOW.fitting(width);
            let line = FLOW.line(&FLOW.names(), &places, usize::MAX);
            assert!(line.len() <= width && line.contains("remote"), "{width}: {line}");
            let line = RULE.line(&RULE.names(), &RULE.fitting(width), 2);
            assert!(line.len() <= width && line.starts_with("rule"), "{width}: {line}");
        }
        assert_eq!(FLOW.fitting(100).len(), 9);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    }
}
