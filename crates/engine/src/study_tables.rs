//! Experiments and rollouts on a terminal.

use std::fmt::Write as _;

use trimtab_fleet::experiment::{Effect, GuardReport, Phase, Report, Verdict};
use trimtab_fleet_client::{ExperimentBody, ExperimentsBody, RolloutBody, RolloutsBody};

use crate::tables::{finish, number, short, table, time};

fn interval_of(effect: Option<&Effect>) -> String {
    effect.map_or_else(
        || "-".to_owned(),
        |e| format!("{:+.4} ({:+.4} to {:+.4})", e.value, e.low, e.high),
    )
}

fn percent(effect: &Effect) -> String {
    let [value, low, high] = [effect.value, effect.low, effect.high].map(|v| 100.0 * v);
    format!("{value:+.1}% ({low:+.1}% to {high:+.1}%)")
}

/// Every experiment.
pub fn experiments_text(body: &ExperimentsBody) -> String {
    if body.experiments.is_empty() {
        return "no experiment yet; `trimtab engine experiment start` begins one\n".to_owned();
    }
    let head = ["EXPERIMENT", "STATE", "CONTROL", "TREATMENT", "BEGUN (UTC)", "EFFECT"];
    let mut rows = table(head, &[]);
    for one in &body.experiments {
        rows.add_row([
            format!("{}/{}", one.service, one.name),
            one.state.clone(),
            one.spec.control.to_string(),
            one.spec.treatment.to_string(),
            time(one.begun_ms),
            interval_of(one.report.as_ref().and_then(|report| report.effect.as_ref())),
        ]);
    }
    finish(&rows)
}

/// An experiment, with what it has shown.
pub fn experiment_text(body: &ExperimentBody) -> String {
    let mut text = format!(
        "{}/{} is {}: {} (treatment) vs. {} (control)\nbegun {} by {}{}\n",
        body.service,
        body.name,
        body.state,
        body.spec.treatment,
        body.spec.control,
        time(body.begun_ms),
        body.begun_by,
        reason(&body.reason)
    );
    if let Some(stopped) = &body.stopped {
        let _ = writeln!(text, "stopped by {stopped}");
    }
    match &body.report {
        Some(report) => text.push_str(&report_text(report)),
        None => text.push_str("its service no longer has what it compares\n"),
    }
    text
}

fn reason(reason: &str) -> String {
    if reason.trim().is_empty() { String::new() } else { format!(": {}", reason.trim()) }
}

fn report_text(report: &Report) -> String {
    let units = &report.units;
    let mut text = format!(
        "design: {}\n{} of {} intervals are over; {} aggregates, {} units under control, {} under treatment{}{}\n\n",
        report.design,
        report.elapsed,
        report.length,
        units.aggregates,
        units.control,
        units.treatment,
        if units.adjusted { ", adjusted for their rewards before" } else { "" },
        if units.left > 0 {
            format!("; {} taken out by operators or an alarm of their own", units.left)
        } else {
            String::new()
        }
    );
    let confidence = 100.0 * report.confidence;
    let effect = match &report.effect {
        Some(_) => format!("effect {} at {confidence:.2}%", interval_of(report.effect.as_ref())),
        None => format!("no estimate yet ({confidence:.2} % interval)"),
    };
    let _ = writeln!(
        text,
        "control {}, treatment {}\n{effect}{}{}",
        number(report.control),
        number(report.treatment),
        report.relative.as_ref().map_or_else(String::new, |r| format!(", {}", percent(r))),
        report.p.map_or_else(String::new, |p| format!(", p = {p:.3}"))
    );
    let least = report.detectable.map_or_else(|| "-".to_owned(), short);
    let _ = writeln!(text, "detectable with a power of 80%: {least}");
    text.push_str(&guards_text(&report.guards));
    let left = &report.left_out;
    let _ = writeln!(
        text,
        "left out: {} intervals after a change, {} under another version, {} without a value, {} unreported\n\n{}",
        left.wash_out, left.other_version, left.no_value, left.unreported, report.verdict
    );
    text
}

fn guards_text(guards: &[GuardReport]) -> String {
    let mut text = String::new();
    for guard in guards {
        let verdict = match guard.verdict {
            Verdict::Holds => "holds",
            Verdict::Open => "open",
            Verdict::Broken => "BROKEN",
        };
        let _ = writeln!(
            text,
            "guard {}: {verdict}; control {}, treatment {}, beyond the limit by {}",
            guard.guard,
            number(guard.control),
            number(guard.treatment),
            interval_of(guard.excess.as_ref())
        );
    }
    text
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Running => "running",
        Phase::Held => "held",
        Phase::Done => "done",
        Phase::RolledBack => "rolled back",
        Phase::Aborted => "aborted",
    }
}

fn stage(body: &RolloutBody) -> String {
    let share = (body.stage as usize).checked_sub(1).and_then(|i| body.spec.stages.get(i));
    let share = share.map_or(0.0, |share| 100.0 * share);
    format!("{} of {} ({}%)", body.stage, body.spec.stages.len(), short(share))
}

/// Every rollout.
pub fn rollouts_text(body: &RolloutsBody) -> String {
    if body.rollouts.is_empty() {
        return "no rollout yet; `trimtab engine rollout start` begins one\n".to_owned();
    }
    let mut rows = table(["ROLLOUT", "STATE", "STAGE", "FROM", "TO", "BEGUN (UTC)", "WHY"], &[]);
    for one in &body.rollouts {
        rows.add_row([
            format!("{}/{}", one.service, one.name),
            phase_name(one.phase).to_owned(),
            stage(one),
            one.spec.from.to_string(),
            one.spec.to.to_string(),
            time(one.begun_ms),
            one.why.clone(),
        ]);
    }
    finish(&rows)
}

/// What is known of a rollout's success metric.
fn success_text(success: &GuardReport) -> String {
    if success.treatment.is_none() || success.control.is_none() {
        return format!("{} has no data yet", success.guard);
    }
    let shown = match success.verdict {
        Verdict::Holds => "is better",
        Verdict::Open => "has no difference that shows",
        Verdict::Broken => "is worse",
    };
    let (seen, expected) = (number(success.treatment), number(success.control));
    format!("{} {shown}: {seen}, where {expected} was to be expected", success.guard)
}

/// A rollout, with what is known of its stage.
pub fn rollout_text(body: &RolloutBody) -> String {
    let mut text = format!(
        "{}/{} is {}, stage {}: from {} to {}\n{}\nbegun {} by {}{}\n",
        body.service,
        body.name,
        phase_name(body.phase),
        stage(body),
        body.spec.from,
        body.spec.to,
        body.why,
        time(body.begun_ms),
        body.begun_by,
        reason(&body.reason)
    );
    if let Some(judgement) = &body.judgement {
        let _ = writeln!(
            text,
            "{} of {} aggregates are switched; {} of {} to {} intervals of the stage are over\ncompared with {}",
            judgement.switched,
            judgement.aggregates,
            judgement.elapsed,
            body.spec.intervals,
            body.spec.intervals_max(),
            judgement.compared_with
        );
        if let Some(success) = &judgement.success {
            let _ = writeln!(text, "{}", success_text(success));
        }
        text.push_str(&guards_text(&judgement.guards));
    }
    text
}
