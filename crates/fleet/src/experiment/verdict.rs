//! What an experiment's figures amount to, as sentences that claim no more than they show.

use super::analysis::interval_text;
use super::{Experiment, Plan, Report, Verdict};
use crate::Service;

pub(super) fn verdict(
    report: &Report,
    experiment: &Experiment,
    plan: &Plan,
    service: &Service,
) -> String {
    let mut text = String::new();
    if experiment.control == experiment.treatment {
        text.push_str("Both arms run the same: this shows what chance does. ");
    }
    let Some(effect) = &report.effect else {
        text.push_str(
            "Too little is known to compare: each arm needs two aggregates with results, a \
             switchback two pairs of blocks.",
        );
        return text;
    };
    let metric =
        if experiment.metric.is_some() { plan.metric.text() } else { service.reward().text() };
    let sure = effect.low > 0.0 || effect.high < 0.0;
    let interval = interval_text(effect);
    let bounds = |what: &str| format!("{what} {interval} in {metric}");
    text.push_str(&match (sure, effect.value > 0.0) {
        (true, true) => format!("{}.", bounds("The treatment is higher by")),
        (true, false) => format!("{}.", bounds("The treatment is lower: it differs by")),
        (false, _) => {
            let least = report.detectable.unwrap_or(f64::NAN);
            format!(
                "{}, which may be none: a difference smaller than {least:.4} would be missed in \
                 more than one of five such experiments.",
                bounds("The difference is")
            )
        }
    });
    if !report.over {
        text.push_str(&format!(
            " It is not over ({} of {} intervals): the interval is wide enough to be looked at \
             each time, and narrower at the end.",
            report.elapsed, report.length
        ));
    }
    for guard in &report.guards {
        match guard.verdict {
            Verdict::Broken => text.push_str(&format!(" {} is broken.", guard.guard)),
            Verdict::Open => {
                text.push_str(&format!(" Whether {} holds cannot be told.", guard.guard));
            }
            Verdict::Holds => {}
        }
    }
    text
}
