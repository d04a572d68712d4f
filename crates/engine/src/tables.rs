//! What people see on a terminal of what the engine says.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table};
use serde_json::Value;
use trimtab_fleet::Sharing;
use trimtab_fleet_client::experiment::Effect;
use trimtab_fleet_client::{
    AggregateBody, AggregatesBody, AuditBody, BulkBody, BulkChange, BulkState, ComparisonsBody,
    DecisionsBody, Expiring, SafeBody, SafeOrder, SharedBody, StatusBody, Token, UnreadableBody,
    WhatIfBody,
};

use crate::certified::CERTIFIED;
use crate::store::{AuditCheck, Moved};

/// A time, as `2026-11-22 04:20:00`, in UTC.
pub(crate) fn time(ms: i64) -> String {
    // Days to a date by the calendar's 400-year cycle, begun on 1 March so that a leap day is the last of its year.
    let (days, second) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 1000);
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, year) =
        if month < 10 { (month + 3, year + era * 400) } else { (month - 9, year + era * 400 + 1) };
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{of_month:02} {hour:02}:{minute:02}:{:02}", second % 60)
}

/// A time with its milliseconds, as RFC 3339 writes it: `2026-11-22T04:20:00.042Z`.
pub(crate) fn iso_time(ms: i64) -> String {
    format!("{}.{:03}Z", time(ms).replace(' ', "T"), ms.rem_euclid(1000))
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

/// The knobs of a configuration, as `gamma 100, delta 0.5`.
fn knobs(configuration: &Value) -> String {
    let empty = serde_json::Map::new();
    let all = configuration["knobs"].as_object().unwrap_or(&empty);
    let one = |(knob, value): (&String, &Value)| {
        value
            .as_f64()
            .map_or_else(|| format!("{knob} {value}"), |value| format!("{knob} {}", short(value)))
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Four digits that matter.
pub(crate) fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 3 - libm::floor(libm::log10(value.abs())) as i32 };
    let text = format!("{value:.*}", digits.clamp(0, 9) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

pub(crate) fn table<const N: usize>(head: [&str; N], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(head);
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

pub(crate) fn finish(table: &Table) -> String {
    table.lines().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

/// Orders that keep services on their safe configurations, a line each.
fn orders(all: &[SafeOrder]) -> String {
    let line = |SafeOrder { service, who, at_ms, why }: &SafeOrder| {
        let service = service.as_deref().unwrap_or("every service");
        let since = time(*at_ms);
        format!("SAFE: {service}, since {since} UTC, by order of {who}: {why}\n")
    };
    all.iter().map(line).collect()
}

/// The same where nobody asked for anything else.
pub fn safe_text(body: &SafeBody) -> String {
    if body.orders.is_empty() {
        return "no order keeps a service on its safe configuration\n".to_owned();
    }
    orders(&body.orders)
}

/// How the engine does.
pub fn status_text(status: &StatusBody) -> String {
    let counts = &status.counts;
    let mut text = format!(
        "trimtab engine {}, up {:.0} s\n\
         {} aggregates ({} paused, {} pinned), {} edges, {} decisions, {} reports wait\n\n",
        status.version,
        status.up_s,
        counts.aggregates,
        counts.paused,
        counts.pinned,
        counts.edges,
        counts.decisions,
        counts.waiting_reports
    );
    for one in &status.damaged {
        let _ = writeln!(
            text,
            "{}/{} is set aside since {}, and nothing is decided about it: {}",
            one.service,
            one.prefix,
            time(one.since_ms),
            one.reason
        );
    }
    text.push_str(&orders(&status.safe));
    for Expiring { name, expires_ms } in &status.expiring {
        let at = time(*expires_ms);
        let _ = writeln!(
            text,
            "the token {name} expires on {at} UTC: `trimtab engine token rotate {name}` makes \
             another secret"
        );
    }
    let mut rows = table(["SERVICE", "INTERVAL", "ALGORITHM", "REWARD", "KNOBS"], &[1]);
    for service in &status.services {
        let names: Vec<&str> = service.knobs.iter().map(|knob| knob.name.as_str()).collect();
        rows.add_row([
            service.name.clone(),
            format!("{} s", service.interval_ms as f64 / 1000.0),
            [&[service.algorithm.clone()][..], &service.others].concat().join(", "),
            service.reward.clone(),
            names.join(", "),
        ]);
    }
    text.push_str(&finish(&rows));
    text
}

/// Aggregates.
pub fn aggregates_text(body: &AggregatesBody) -> String {
    let mut damaged = String::new();
    for UnreadableBody { service, prefix, damaged: why } in &body.unreadable {
        let _ = writeln!(damaged, "DAMAGED: {service}/{prefix}: {why}");
    }
    if body.aggregates.is_empty() && body.unreadable.is_empty() {
        return "no matches; aggregates appear when edges report\n".to_owned();
    }
    let mut rows =
        table(["AGGREGATE", "STATE", "REWARD", "DECISIONS", "VERSION", "IN FORCE"], &[2, 3, 4]);
    for one in &body.aggregates {
        rows.add_row([
            format!("{}/{}", one.service, one.prefix),
            one.hold.name().to_owned(),
            number(one.reward),
            one.decisions.to_string(),
            one.version.to_string(),
            knobs(&one.configuration),
        ]);
    }
    let more = if body.more { "there are more: search, or raise --limit\n" } else { "" };
    finish(&rows) + more + &damaged
}

/// What hosts found by comparing their rules.
pub fn comparisons_text(body: &ComparisonsBody) -> String {
    if body.comparisons.is_empty() {
        return "none yet; agents with [compare] and [fleet] send what they find\n".to_owned();
    }
    let head = [
        "HOST", "RULE", "VS.", "NETWORKS", "STATE", "METRIC", "STEERED", "CONTROL", "CHANGE",
        "RECEIVED",
    ];
    let mut rows = table(head, &[3, 6, 7]);
    for one in &body.comparisons {
        let found = &one.found;
        let state = if found.over { "over" } else { "running" };
        let row = |[metric, steered, control, change]: [String; 4]| {
            [
                one.host.clone(),
                found.rule.clone(),
                found.control.clone(),
                found.networks.to_string(),
                state.to_owned(),
                metric,
                steered,
                control,
                change,
                time(one.received_ms),
            ]
        };
        if found.metrics.is_empty() {
            rows.add_row(row(["too little is known", "-", "-", "-"].map(str::to_owned)));
        }
        for of in &found.metrics {
            let change = match (&of.change, &of.difference) {
                (Some(Effect { value, low, high }), _) => {
                    let [value, low, high] = [value, low, high].map(|share| share * 100.0);
                    format!("{value:+.1}% ({low:+.1} to {high:+.1}%)")
                }
                (None, Some(Effect { value, low, high })) => {
                    format!("{value:+.4} ({low:+.4} to {high:+.4})")
                }
                (None, None) => "-".to_owned(),
            };
            let (steered, control) = (number(Some(of.steered)), number(Some(of.control)));
            rows.add_row(row([of.metric.clone(), steered, control, change]));
        }
    }
    finish(&rows)
}

/// An aggregate, in a line.
pub fn aggregate_text(one: &AggregateBody) -> String {
    format!(
        "{}/{} is {}; in force, version {} of {}: {}\n",
        one.service,
        one.prefix,
        one.hold.name(),
        one.version,
        one.configuration["algorithm"].as_str().unwrap_or("-"),
        knobs(&one.configuration)
    )
}

/// What an order for many aggregates changed, or would change.
pub fn bulk_text(body: &BulkBody) -> String {
    let verb = if body.done { "changed" } else { "would change" };
    let mut text = format!(
        "{verb} {} aggregates; {} are as ordered already\n",
        body.changes.len(),
        body.unchanged
    );
    if body.changes.is_empty() {
        return text;
    }
    let state = |one: &BulkState| {
        let algorithm = one.configuration["algorithm"].as_str().unwrap_or("-");
        format!("{}, {algorithm} {}", one.hold.name(), knobs(&one.configuration))
    };
    let mut rows = table(["AGGREGATE", "BEFORE", "AFTER"], &[]);
    for BulkChange { service, prefix, before, after } in &body.changes {
        rows.add_row([format!("{service}/{prefix}"), state(before), state(after)]);
    }
    text.push_str(&finish(&rows));
    text
}

/// An aggregate and why it is as it is.
pub fn explain_text(one: &AggregateBody, history: &DecisionsBody) -> String {
    let mut text = aggregate_text(one);
    for decision in &history.decisions {
        let _ = write!(
            text,
            "\n{} interval {}, version {}, {} reports, reward {}\n  in force: {}\n  {}\n",
            time(decision.begins_ms),
            decision.interval,
            decision.version,
            decision.reports,
            number(decision.reward),
            knobs(&decision.configuration),
            decision.why["sentence"].as_str().unwrap_or("-")
        );
    }
    if let Some(why) = &history.damaged {
        let _ = writeln!(text, "\nDAMAGED: {why}");
    } else if history.decisions.is_empty() {
        text.push_str("nothing was decided yet\n");
    }
    text
}

/// What another choice would have brought.
pub fn what_if_text(body: &WhatIfBody) -> String {
    let found = &body.estimate;
    let of = body.prefix.as_ref().map_or_else(String::new, |prefix| format!("/{prefix}"));
    let mut rows = table(["", "MEAN REWARD", "95% FROM", "TO"], &[1, 2, 3]);
    rows.add_row(["as it was".to_owned(), number(Some(found.actual)), "-".into(), "-".into()]);
    for (name, Effect { value, low, high }) in [
        (format!("{}, doubly robust", found.target), found.robust),
        (format!("{}, by weights", found.target), found.weighted),
        ("gain, doubly robust".to_owned(), found.gain),
    ] {
        let [value, low, high] = [value, low, high].map(|figure| number(Some(figure)));
        rows.add_row([name, value, low, high]);
    }
    format!(
        "{}{of}: {} intervals of {} aggregates, {} of them with {}, which count as {:.0}\n{}\
         left out of {} decisions: {} certain, {} without a reward, {} with no arm that fits\n",
        body.service,
        found.intervals,
        body.aggregates,
        found.matched,
        found.target,
        found.effective,
        finish(&rows),
        found.decisions,
        found.certain,
        found.unrewarded,
        found.impossible,
    )
}

/// Which aggregates share bottlenecks, as the file that edges read.
pub fn shared_text(body: &SharedBody) -> String {
    let Sharing { aggregates, left_out, pairs, found } = &body.sharing;
    let mut text = format!(
        "# {}: {} of {pairs} pairs of {aggregates} aggregates share a bottleneck; {left_out} \
         aggregates have too few intervals\n",
        body.service,
        found.len()
    );
    for shared in found {
        let [first, second] = shared.halves;
        let _ = writeln!(
            text,
            "# {} and {}: rank correlation {:.2} in {} intervals, {first:.2} and {second:.2} in \
             their halves",
            shared.one, shared.other, shared.correlation, shared.intervals
        );
    }
    body.together.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text
}

/// The audit log.
pub fn audit_text(body: &AuditBody) -> String {
    let mut rows = table(["WHEN (UTC)", "WHO", "WHAT", "OF WHAT", "HOW"], &[]);
    for line in &body.lines {
        rows.add_row([&time(line.at_ms), &line.who, &line.action, &line.subject, &line.detail]);
    }
    finish(&rows)
}

/// What a check of the audit found.
pub fn audit_check_text(check: &AuditCheck) -> String {
    match check {
        AuditCheck { found: Some(found), .. } => format!("the audit is not whole: {found}\n"),
        AuditCheck { lines: 0, .. } => "the audit has no lines yet\n".to_owned(),
        AuditCheck { first, end, .. } => format!(
            "the audit is whole: lines {first} to {}\nkeep this elsewhere, for --known of a later \
             check: {end}\n",
            end.line
        ),
    }
}

/// What was moved of each table.
pub fn moved_text(moved: &[Moved]) -> String {
    let mut rows = table(["TABLE", "ROWS MOVED"], &[1]);
    for (table, count) in moved {
        rows.add_row([(*table).to_owned(), count.to_string()]);
    }
    finish(&rows)
}

/// Every token.
pub fn tokens_text(tokens: &[Token]) -> String {
    let head = ["NAME", "ROLE", "SERVICES", "MADE (UTC)", "EXPIRES (UTC)", "LAST USED (UTC)", ""];
    let mut rows = table(head, &[]);
    for token in tokens {
        let remark = match (token.revoked_ms, &token.former) {
            (Some(at), _) => format!("revoked {}", time(at)),
            (None, Some(former)) => format!(
                "the secret before: until {}, last used {}",
                time(former.expires_ms),
                former.used_ms.map_or_else(|| "never".to_owned(), time)
            ),
            (None, None) => String::new(),
        };
        rows.add_row([
            token.name.clone(),
            token.role.name().to_owned(),
            token.services.join(", "),
            time(token.created_ms),
            match token.expires_ms {
                Some(at) => time(at),
                None if token.name.starts_with(CERTIFIED) => "with its certificate".to_owned(),
                None => "never".to_owned(),
            },
            token.used_ms.map_or_else(|| "never".to_owned(), time),
            remark,
        ]);
    }
    finish(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(1_795_320_000_000), "2026-11-22 04:00:00");
        assert_eq!(time(951_782_399_000), "2000-02-28 23:59:59");
        assert_eq!(time(951_868_799_000), "2000-02-29 23:59:59");
        assert_eq!(time(-1000), "1969-12-31 23:59:59");
    }

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!(
            ["0", "0.05", "1234.5", "98.76", "100"].map(|t| short(t.parse().unwrap())),
            ["0", "0.05", "1234", "98.76", "100"]
        );
    }
}
