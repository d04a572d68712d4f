//! What a comparison shows, in a sentence per application.

use crate::result::{Scale, SummaryRow, Versus};
use crate::scenario::AppKind;
use crate::stats::UNITS_MIN;
use crate::stats::summary::in_order;
use trimtab_steer::scheme::{is_bound, is_steered};

/// The two schemes that a reader wants to see side by side.
#[derive(Clone, Copy, Debug)]
pub struct Duel<'a> {
    /// The best steered scheme; the best one of all when none is steered.
    pub ahead: &'a SummaryRow,
    /// The best scheme with fixed knobs, other than the first.
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
/// alike; the score where that is not known.
pub fn merit(row: &SummaryRow) -> f64 {
    row.score_of_omniscient.map_or(row.score, |e| e.value)
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
    let users = users(app);
    let mut sentence = match verdict(v, ahead.scale) {
        Verdict::Apart { by, interval } => {
            format!("{} gives {users} {by} than {rival} (95% interval {interval})", ahead.cc)
        }
        Verdict::Unclear { by, interval } => format!(
            "{} and {rival} give {users} experiences that cannot be told apart (change {by}, 95% interval {interval})",
            ahead.cc
        ),
        Verdict::None { by, why } => {
            format!("{} vs. {rival}: {by} for {users}, without an interval: {why}", ahead.cc)
        }
    };
    if let Some(share) = ahead.score_of_omniscient {
        let percent = 100.0 * share.value;
        sentence +=
            &format!(", and {percent:.0}% of what a sender that sees the future could give");
    }
    sentence
}

/// Who the users of an application are.
pub(super) fn users(app: &str) -> String {
    AppKind::named(app)
        .map_or_else(|| format!("users of \"{app}\""), |kind| kind.info().users.to_owned())
}

enum Verdict {
    /// The interval leaves zero out.
    Apart { by: String, interval: String },
    /// The interval holds zero.
    Unclear { by: String, interval: String },
    /// The runs allow no interval, and so no verdict.
    None { by: String, why: String },
}

/// The paired change in words: in percent where that has a meaning, else as a difference.
fn verdict(v: &Versus, scale: Scale) -> Verdict {
    let c = v.shown(scale);
    let Some([lo, hi]) = c.ci95 else {
        let why = match v.pairs {
            1 => "one run shows no spread; try --seeds 5".to_owned(),
            n if n < UNITS_MIN as u64 => format!("{n} runs show too little; try --seeds 5"),
            n => format!("all {n} runs gave the same; try more traces"),
        };
        return Verdict::None { by: c.text(c.value), why };
    };
    let interval = format!("{} to {}", c.text(lo), c.text(hi));
    let size = |word: &str| {
        if c.percent {
            format!("{:.1}% {word} experience", c.value.abs())
        } else {
            format!("an experience {:.3} points {word}", c.value.abs())
        }
    };
    if lo > 0.0 {
        Verdict::Apart { by: size("better"), interval }
    } else if hi < 0.0 {
        Verdict::Apart { by: size("worse"), interval }
    } else {
        Verdict::Unclear { by: c.text(c.value), interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::summary::summarise;
    use crate::testing::run;

    fn rows(quality: &[(&str, f64)]) -> Vec<SummaryRow> {
        let runs: Vec<_> = (0..6)
            .flat_map(|t| quality.iter().map(move |(cc, q)| (t, cc, q)))
            // Gains differ a little from trace to trace, with the stated mean.
            .map(|(t, cc, q)| {
                let gain = 1.0 + (q - 1.0) * (1.0 + (f64::from(t) - 2.5) / 250.0);
                run(cc, &format!("t{t}"), 0, gain * f64::from(t + 1))
            })
            .collect();
        summarise(&runs)
    }

    #[test]
    fn steering_against_the_best_fixed_one() {
        let rows = rows(&[("cubic", 1.0), ("bbr", 1.1), ("mortise", 1.21), ("omniscient", 2.2)]);
        let lines = headlines(&rows);
        assert_eq!(
            lines,
            ["mortise gives users of a download service 10.0% better experience than the best \
              congestion control with fixed settings, bbr (95% interval +10.0% to +10.0%), and 55% of \
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
        let runs: Vec<_> = [("a", 1.0, 1.1), ("b", 1.1, 1.0), ("c", 1.0, 1.05), ("d", 1.05, 1.0)]
            .into_iter()
            .flat_map(|(trace, a, b)| [run("cubic", trace, 0, a), run("bbr", trace, 0, b)])
            .collect();
        let lines = headlines(&summarise(&runs));
        assert!(lines[0].contains("cannot be told apart"), "{lines:?}");
    }

    /// Of one run, `+0.8% (95% interval +0.8% to +0.8%)` would claim to know what nobody measured.
    #[test]
    fn without_spread_there_is_no_verdict() {
        let of = |seeds: u64| {
            let pair = |seed| [run("cubic", "t", seed, 1.0), run("bbr", "t", seed, 0.5)];
            headlines(&summarise(&(0..seeds).flat_map(pair).collect::<Vec<_>>())).remove(0)
        };
        let start = "cubic vs. the next best, bbr: +100.0% for users of a download service, without an interval: ";
        assert_eq!(of(1), format!("{start}one run shows no spread; try --seeds 5"));
        assert_eq!(of(2), format!("{start}2 runs show too little; try --seeds 5"));
        assert_eq!(of(5), format!("{start}all 5 runs gave the same; try more traces"));
    }

    #[test]
    fn an_application_of_ones_own_is_quoted() {
        let mut runs: Vec<_> =
            [("cubic", 1.0), ("bbr", 2.0)].map(|(cc, q)| run(cc, "t", 0, q)).into();
        runs.iter_mut().for_each(|r| r.app = "in between".to_owned());
        assert!(headlines(&summarise(&runs))[0].contains("users of \"in between\""));
    }

    #[test]
    fn the_first_of_equals_leads() {
        let lines = headlines(&rows(&[("cubic", 1.0), ("mortise", 1.2), ("mortise-disc", 1.2)]));
        assert!(lines[0].starts_with("mortise gives"), "{lines:?}");
    }

    #[test]
    fn one_scheme_makes_no_headline() {
        assert!(headlines(&rows(&[("cubic", 1.0), ("omniscient", 2.0)])).is_empty());
    }
}
