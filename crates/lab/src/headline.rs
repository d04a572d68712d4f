//! What a comparison shows, in a sentence per application.

use crate::contender::{is_bound, is_steered};
use crate::result::{Scale, SummaryRow, Versus};
use crate::summary::in_order;

/// The two contenders that a reader wants to see side by side.
#[derive(Clone, Copy, Debug)]
pub struct Duel<'a> {
    /// The best steered contender; the best one of all when none is steered.
    pub ahead: &'a SummaryRow,
    /// The best contender with fixed knobs, other than the first.
    pub behind: &'a SummaryRow,
}

/// The duel of an application; `None` when fewer than two real senders took part.
pub fn duel<'a>(summary: &'a [SummaryRow], app: &str) -> Option<Duel<'a>> {
    let real = || summary.iter().filter(|r| r.app == app && !is_bound(&r.cc));
    let best = |rows: &mut dyn Iterator<Item = &'a SummaryRow>| {
        // The first of equals, as the scenario names them.
        rows.fold(None, |best: Option<&SummaryRow>, row| match best {
            Some(best) if merit(best) >= merit(row) => Some(best),
            _ => Some(row),
        })
    };
    let ahead = best(&mut real().filter(|r| is_steered(&r.cc))).or_else(|| best(&mut real()))?;
    let behind = best(&mut real().filter(|r| r.cc != ahead.cc && !is_steered(&r.cc)))?;
    Some(Duel { ahead, behind })
}

/// What "best" goes by: the share of what `omniscient` reached, which weighs slow and fast links
/// alike; mean experience where that is not known.
pub fn merit(row: &SummaryRow) -> f64 {
    row.of_omniscient.map_or(row.qoe_mean, |e| e.value)
}

/// One sentence per application, in the order of the summary.
pub fn headlines(summary: &[SummaryRow]) -> Vec<String> {
    in_order(summary.iter().map(|r| r.app.as_str()))
        .into_iter()
        .filter_map(|app| duel(summary, app).map(|d| sentence(app, &d)))
        .collect()
}

fn sentence(app: &str, duel: &Duel<'_>) -> String {
    let Duel { ahead, behind } = duel;
    let Some(v) = ahead.versus.iter().find(|v| v.cc == behind.cc) else {
        return format!("{app}: {} and {} have no run in common", ahead.cc, behind.cc);
    };
    let rival = match (is_steered(&ahead.cc), is_steered(&behind.cc)) {
        (true, false) => format!("the best congestion control with fixed settings, {}", behind.cc),
        _ => format!("the next best, {}", behind.cc),
    };
    let (verdict, interval) = verdict(v, ahead.scale);
    let users = users(app);
    let mut sentence = match verdict {
        Verdict::Better(by) => {
            format!("{} gives {users} {by} than {rival} (95% interval {interval})", ahead.cc)
        }
        Verdict::Worse(by) => {
            format!("{} gives {users} {by} than {rival} (95% interval {interval})", ahead.cc)
        }
        Verdict::Unclear(by) => format!(
            "{} and {rival} give {users} experiences that cannot be told apart (change {by}, 95% interval {interval})",
            ahead.cc
        ),
    };
    if let Some(share) = ahead.of_omniscient {
        let percent = 100.0 * share.value;
        sentence +=
            &format!(", and {percent:.0}% of what a sender that sees the future could give");
    }
    sentence
}

/// Who the users of an application are.
fn users(app: &str) -> String {
    match app {
        "download" => "users of a download service".to_owned(),
        "vod" => "viewers of a video service".to_owned(),
        "web" => "readers of web pages".to_owned(),
        "bulk" => "bulk transfers".to_owned(),
        other => format!("users of {other}"),
    }
}

enum Verdict {
    Better(String),
    Worse(String),
    /// The interval holds zero.
    Unclear(String),
}

/// The paired change in words: in percent where that has a meaning, else as a difference.
fn verdict(v: &Versus, scale: Scale) -> (Verdict, String) {
    let c = v.shown(scale);
    let [lo, hi] = c.ci95;
    let size = |word: &str| {
        if c.percent {
            format!("{:.1}% {word} experience", c.value.abs())
        } else {
            format!("an experience {:.3} points {word}", c.value.abs())
        }
    };
    let verdict = if lo > 0.0 {
        Verdict::Better(size("better"))
    } else if hi < 0.0 {
        Verdict::Worse(size("worse"))
    } else {
        Verdict::Unclear(c.text(c.value))
    };
    (verdict, format!("{} to {}", c.text(lo), c.text(hi)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::summarise;
    use crate::testing::run;

    fn rows(quality: &[(&str, f64)]) -> Vec<SummaryRow> {
        let runs: Vec<_> = (0..6)
            .flat_map(|t| quality.iter().map(move |(cc, q)| (t, cc, q)))
            .map(|(t, cc, q)| run(cc, &format!("t{t}"), 0, q * f64::from(t + 1)))
            .collect();
        summarise(&runs)
    }

    #[test]
    fn steering_against_the_best_fixed_one() {
        let rows = rows(&[("cubic", 1.0), ("bbr", 1.1), ("mortise", 1.21), ("omniscient", 2.0)]);
        let lines = headlines(&rows);
        assert_eq!(
            lines,
            ["mortise gives users of a download service 10.0% better experience than the best \
              congestion control with fixed settings, bbr (95% interval +10.0% to +10.0%), and 60% of \
              what a sender that sees the future could give"]
        );
    }

    #[test]
    fn losing_is_said_too() {
        let lines = headlines(&rows(&[("cubic", 1.0), ("mortise", 0.8)]));
        assert!(lines[0].contains("20.0% worse experience than"), "{lines:?}");
    }

    #[test]
    fn equals_cannot_be_told_apart() {
        let lines = headlines(&rows(&[("cubic", 1.0), ("bbr", 1.0)]));
        assert!(lines[0].contains("cannot be told apart"), "{lines:?}");
    }

    #[test]
    fn the_first_of_equals_leads() {
        let lines = headlines(&rows(&[("cubic", 1.0), ("mortise", 1.2), ("mortise-disc", 1.2)]));
        assert!(lines[0].starts_with("mortise gives"), "{lines:?}");
    }

    #[test]
    fn one_contender_makes_no_headline() {
        assert!(headlines(&rows(&[("cubic", 1.0), ("omniscient", 2.0)])).is_empty());
    }
}
