//! The result as a table for the terminal.
//!
//! Columns that do not fit the width are left out, the least important first, rather than wrapped.

use comfy_table::{CellAlignment, Table, presets};

use crate::report::axis::{Along, along};
use crate::report::cells::findings;
use crate::report::gains::gains;
use crate::report::headline::{duel, headlines, merit};
use crate::result::{Comparison, Estimate, HarmRecord, RunRecord, Scale, Served, SummaryRow};
use crate::run::selection::fallbacks;
use crate::run::switches::SwitchCosts;
use crate::stats::harm::{harm, unknown};
use crate::stats::overload::{UNFINISHED_MAX, served_runs};
use crate::stats::summary::in_order;
use trimtab_steer::scheme::is_bound;

/// How to draw the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Characters per line.
    pub width: usize,
    /// Whether to draw lines; not into pipes and files.
    pub lines: bool,
}

impl Style {
    /// For standard output: as wide as the terminal, with lines; 120 characters without lines when it
    /// is none.
    pub fn of_stdout() -> Self {
        let terminal = console::Term::stdout();
        match terminal.size_checked() {
            Some((_, width)) if terminal.is_term() => Self { width: width.into(), lines: true },
            _ => Self { width: 120, lines: false },
        }
    }
}

/// A column: its head, and what stands in it for a scheme.
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) cells: Vec<String>,
}

/// The whole text: per application a table, sorted by experience with the bounds last, and how it goes
/// along the axis of the grid, if there is one; then the headlines, then how steering does cell by cell.
pub fn render(comparison: &Comparison, style: Style) -> String {
    let mut text = String::new();
    let all: Vec<&RunRecord> = comparison.runs.iter().collect();
    for app in in_order(comparison.summary.iter().map(|r| r.app.as_str())) {
        text += &main_table(app, &all, &comparison.summary, "", style);
        if let Some(served) = &comparison.served {
            let which = ", without overloaded cells";
            let runs = served_runs(&comparison.runs);
            text += &main_table(app, &runs, &served.summary, which, style);
        }
        if let Some(costs) = switch_columns(app, &comparison.runs) {
            text += &format!(
                "{app}: packets lost in the second after a switch{}\n{}\n\n",
                if costs.len() > 4 { ", and time until the flow had settled" } else { "" },
                table(costs, style)
            );
        }
        if let Some(columns) = harm_columns(app, &all) {
            let title = "harm to competing flows, 0 next to their own kind, 1 at worst";
            text += &format!("{app}: {title}\n{}\n\n", table(columns, style));
        }
        for along in along(comparison, app) {
            text += &format!("{app}: {}\n{}\n\n", along.title, table(axis_columns(&along), style));
        }
    }
    let first = gains(&comparison.summary, &comparison.runs);
    let lines = first.into_iter().chain(headlines(&comparison.summary));
    let advice = unknown(&comparison.runs).into_iter().map(harm_advice);
    let rest = findings(&comparison.cells).into_iter().chain(fallbacks(&comparison.runs));
    let served = comparison.served.iter().flat_map(served_lines);
    for line in lines.chain(served).chain(rest).chain(advice) {
        text += &wrapped(&format!("{line}."), style.width);
    }
    text
}

/// The main table of an application: best first, bounds last. Nothing without runs.
fn main_table(
    app: &str,
    runs: &[&RunRecord],
    summary: &[SummaryRow],
    which: &str,
    style: Style,
) -> String {
    let mut rows: Vec<&SummaryRow> = summary.iter().filter(|r| r.app == app).collect();
    rows.sort_by(|a, b| is_bound(&a.cc).cmp(&is_bound(&b.cc)).then(merit(b).total_cmp(&merit(a))));
    let count: u64 = rows.iter().map(|r| r.runs).sum();
    if count == 0 {
        return String::new();
    }
    let columns = columns(app, &rows, runs, summary);
    format!("{app} ({count} runs{which})\n{}\n\n", table(columns, style))
}

/// How many cells no scheme can serve, and the headlines without them.
fn served_lines(served: &Served) -> Vec<String> {
    let Served { cells, overloaded, summary } = served;
    let percent = 100.0 * UNFINISHED_MAX;
    let count = format!(
        "overloaded: in {overloaded} of {cells} cells every scheme leaves more than {percent}% of \
         its requests unfinished"
    );
    let without = headlines(summary).into_iter().map(|line| format!("without these cells: {line}"));
    std::iter::once(count).chain(without).collect()
}

/// A sentence in lines of at most `width` characters, broken between words.
pub fn wrapped(sentence: &str, width: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text += word;
        used += length;
    }
    text + "\n"
}

/// One column per value of the axis.
fn axis_columns(along: &Along) -> Vec<Column> {
    let names = along.rows.iter().map(|(cc, _)| cc.clone()).collect();
    let first = Column { head: "congestion control".to_owned(), cells: names };
    let at = |i: usize| along.rows.iter().map(|(_, cells)| cells[i].clone()).collect();
    let values = along.values.iter().enumerate();
    let rest = values.map(|(i, value)| Column { head: value.clone(), cells: at(i) });
    std::iter::once(first).chain(rest).collect()
}

/// The columns of an application in order of importance.
fn columns(
    app: &str,
    rows: &[&SummaryRow],
    runs: &[&RunRecord],
    summary: &[SummaryRow],
) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut add = |head: &str, cell: &dyn Fn(&SummaryRow) -> Option<String>| {
        let cells: Vec<Option<String>> = rows.iter().map(|r| cell(r)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(Option::unwrap_or_default).collect();
            columns.push(Column { head: head.to_owned(), cells });
        }
    };
    let mean = |cc: &str, f: &dyn Fn(&RunRecord) -> Option<f64>| {
        let v: Vec<f64> =
            runs.iter().copied().filter(|r| r.cc == cc && r.app == app).filter_map(f).collect();
        (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64)
    };
    let best_fixed = duel(summary, app).map(|d| d.behind.cc.clone());

    add("congestion control", &|r| Some(r.cc.clone()));
    let has_interval = rows.iter().any(|r| r.score_ci95.is_some());
    add(if has_interval { "QoE [95% interval]" } else { "QoE" }, &|r| {
        Some(with_interval(r.score, r.score_ci95, short))
    });
    if let Some(best) = &best_fixed {
        add(&format!("against {best}"), &|r| {
            let v = r.versus.iter().find(|v| v.cc == *best)?;
            let c = v.shown(r.scale);
            Some(with_interval(c.value, c.ci95, |v| c.text(v)))
        });
    }
    add("of omniscient", &|r| r.score_of_omniscient.map(|e| format!("{:.1}%", 100.0 * e.value)));
    // Users differ only where there are several.
    let several = |r: &SummaryRow| {
        runs.iter().any(|run| run.cc == r.cc && run.app == app && run.cell.flows > 1)
    };
    add("mean user", &|r| several(r).then(|| short(r.users_mean)));
    add("p5 user", &|r| several(r).then(|| short(r.users_p5)));
    add("Jain of QoE", &|r| r.users_jain.filter(|_| several(r)).map(|jain| format!("{jain:.3}")));
    add("Jain", &|r| mean(&r.cc, &|run| run.jain).map(|v| format!("{v:.3}")));
    add("friendliness", &|r| mean(&r.cc, &|run| run.friendliness).map(|v| format!("{v:.2}")));
    add("VMAF", &|r| mean(&r.cc, &|run| run.vmaf).map(|v| format!("{v:.1}")));
    add("frame delay", &|r| {
        let delay = mean(&r.cc, &|run| run.frame_delay_ms.map(|delay| delay.mean));
        delay.map(|v| format!("{} ms", short(v)))
    });
    add("dropped", &|r| mean(&r.cc, &|run| run.drop_ratio).map(|v| format!("{:.2}%", 100.0 * v)));
    add("frozen", &|r| mean(&r.cc, &|run| run.freeze_ratio).map(|v| format!("{:.2}%", 100.0 * v)));
    add("queue delay", &|r| Some(format!("{} ms", short(r.queue_delay_ms))));
    add("throughput", &|r| Some(format!("{} Mbit/s", short(r.throughput_mbps))));
    add("median RCT", &|r| {
        mean(&r.cc, &|run| run.rct_ms.map(|t| t.p50)).map(|v| format!("{} ms", short(v)))
    });
    add("stalled", &|r| mean(&r.cc, &|run| run.stall_ratio).map(|v| format!("{:.2}%", 100.0 * v)));
    add("bitrate", &|r| {
        mean(&r.cc, &|run| run.bitrate_kbps_mean).map(|v| format!("{} Mbit/s", short(v / 1000.0)))
    });
    add("p95 RCT", &|r| {
        mean(&r.cc, &|run| run.rct_ms.map(|t| t.p95)).map(|v| format!("{} ms", short(v)))
    });
    add("retransmitted", &|r| Some(format!("{:.2}%", 100.0 * r.retransmit_ratio)));
    // The metric of before, which flatters: requests weigh alike, and so do ratios.
    if let Some(best) = &best_fixed {
        add("mean of ratios", &|r| {
            let v = r.versus.iter().find(|v| v.cc == *best && r.scale == Scale::Ratio)?;
            Some(with_interval(v.change_percent?, v.change_ci95, |v| format!("{v:+.1}%")))
        });
    }
    columns
}

/// What each scheme does to each set of competing flows; `None` where that is not known of any.
fn harm_columns(app: &str, runs: &[&RunRecord]) -> Option<Vec<Column>> {
    let of_app: Vec<&RunRecord> = runs.iter().copied().filter(|r| r.app == app).collect();
    let schemes = in_order(of_app.iter().map(|r| r.cc.as_str()));
    let mut known: Vec<(&str, &str, HarmRecord)> = Vec::new();
    for set in in_order(of_app.iter().map(|r| r.cell.rivals.as_str())) {
        let next_to: Vec<&RunRecord> =
            of_app.iter().copied().filter(|r| r.cell.rivals == set).collect();
        let harms = schemes.iter().filter_map(|cc| Some((set, *cc, harm(&next_to, cc)?)));
        known.extend(harms);
    }
    let names = |head: &str, name: &dyn Fn(&(&str, &str, HarmRecord)) -> String| Column {
        head: head.to_owned(),
        cells: known.iter().map(name).collect(),
    };
    let column = |head: &str, of: fn(&HarmRecord) -> Estimate| Column {
        head: head.to_owned(),
        cells: known
            .iter()
            .map(|(.., harm)| of(harm))
            .map(|e| with_interval(e.value, e.ci95, |v| format!("{v:+.2}")))
            .collect(),
    };
    let mut columns = vec![names("congestion control", &|(_, cc, _)| (*cc).to_owned())];
    if known.iter().any(|(set, ..)| !set.is_empty()) {
        columns.push(names("next to", &|(set, ..)| (*set).to_owned()));
    }
    columns.extend([
        column("throughput", |harm| harm.throughput),
        column("delay", |harm| harm.delay),
        column("loss", |harm| harm.loss),
    ]);
    (!known.is_empty()).then_some(columns)
}

/// What to do to see the harm to competitors of this algorithm.
pub(crate) fn harm_advice(cc: &str) -> String {
    format!("add {cc} to --cc to see the harm done")
}

/// A value with its interval, where it has one.
fn with_interval(value: f64, ci95: Option<[f64; 2]>, text: impl Fn(f64) -> String) -> String {
    match ci95 {
        Some([lo, hi]) => format!("{} [{}, {}]", text(value), text(lo), text(hi)),
        None => text(value),
    }
}

/// What the switches of each scheme that switches cost, over all its runs with an application.
fn switch_columns(app: &str, runs: &[RunRecord]) -> Option<Vec<Column>> {
    let costs: Vec<SwitchCosts> = in_order(runs.iter().map(|r| r.cc.as_str()))
        .into_iter()
        .filter_map(|cc| SwitchCosts::of(cc, runs.iter().filter(|r| r.app == app && r.cc == cc)))
        .collect();
    let column = |head: &str, cell: &dyn Fn(&SwitchCosts) -> String| Column {
        head: head.to_owned(),
        cells: costs.iter().map(cell).collect(),
    };
    let mut columns = vec![
        column("congestion control", &|c| c.cc.clone()),
        column("lost: mean", &|c| percent(c.loss.mean())),
        column("p50", &|c| percent(c.loss.percentile(50.0))),
        column("p90", &|c| percent(c.loss.percentile(90.0))),
    ];
    if costs.iter().any(|c| !c.settled.values().is_empty()) {
        let seconds = |ms: Option<f64>| ms.map_or(String::new(), |ms| short(ms / 1000.0) + " s");
        columns.extend([
            column("settled: mean", &|c| seconds(c.settled.mean())),
            column("p50", &|c| seconds(c.settled.percentile(50.0))),
            column("p90", &|c| seconds(c.settled.percentile(90.0))),
            column("never", &|c| percent(Some(c.unsettled))),
        ]);
    }
    (!costs.is_empty()).then_some(columns)
}

fn percent(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!("{:.2}%", 100.0 * share))
}

/// Three significant digits, as many as a comparison by eye can use.
pub(crate) fn short(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 || a == 0.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    }
}

/// The columns as text, the last left out where they are wider than the style.
pub(crate) fn table(mut columns: Vec<Column>, style: Style) -> String {
    while columns.len() > 2 && width(&columns) > style.width {
        columns.pop();
    }
    let mut table = Table::new();
    table.load_style(if style.lines { presets::UTF8_BORDERS_ONLY } else { presets::NOTHING });
    table.set_header(columns.iter().map(|c| c.head.as_str()));
    let rows = columns.first().map_or(0, |c| c.cells.len());
    for row in 0..rows {
        table.add_row(columns.iter().map(|c| c.cells[row].as_str()));
    }
    for i in 1..columns.len() {
        if let Some(column) = table.column_mut(i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Into a pipe, no spaces at the ends of lines.
    table.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Characters that a table of these columns takes: a space on either side of each, and a line or a
/// space between them and around.
fn width(columns: &[Column]) -> usize {
    let of = |c: &Column| {
        c.cells.iter().chain([&c.head]).map(|t| t.chars().count()).max().unwrap_or(0) + 2
    };
    columns.iter().map(of).sum::<usize>() + columns.len() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cells::cells;
    use crate::result::{Provenance, SCHEMA};
    use crate::stats::overload::served;
    use crate::stats::summary::summarise;
    use crate::testing::run;

    fn comparison() -> Comparison {
        let runs: Vec<RunRecord> = (0..6_i32)
            .flat_map(|t| {
                [("cubic", 1.0), ("omniscient", 2.0), ("mortise", 1.5)]
                    .map(|(cc, q)| run(cc, &format!("t{t}"), 0, q * f64::from(t + 1)))
            })
            .collect();
        Comparison {
            schema: SCHEMA.to_owned(),
            provenance: Provenance::default(),
            summary: summarise(&runs),
            cells: cells(&runs),
            served: served(&runs),
            runs,
        }
    }

    #[test]
    fn best_first_bounds_last_headline_below() {
        let text = render(&comparison(), Style { width: 200, lines: false });
        let first: Vec<&str> =
            text.lines().map(|l| l.split_whitespace().next().unwrap_or("")).collect();
        assert_eq!(
            first[..6],
            ["download", "congestion", "mortise", "cubic", "omniscient", ""],
            "{text}"
        );
        assert!(text.contains("+50.0%") && !text.contains("+50.0% ["), "no interval: {text}");
        assert!(text.contains("mortise vs. the best congestion control"), "{text}");
    }

    #[test]
    fn the_worst_cell_stands_below_the_headline() {
        let text = render(&comparison(), Style { width: 200, lines: false });
        let last = text.lines().last().unwrap();
        assert!(last.contains("mortise: below the best algorithm of the cell"), "{text}");
    }

    #[test]
    fn sentences_break_between_words() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree\n");
        assert_eq!(wrapped("one two three", 8), "one two\nthree\n");
        assert_eq!(wrapped("unbreakable now", 4), "unbreakable\nnow\n");
    }

    #[test]
    fn narrow_terminals_get_fewer_columns() {
        for width in [60, 80, 100, 140] {
            let text = render(&comparison(), Style { width, lines: true });
            let widest =
                text.lines().filter(|l| l.starts_with(['│', '┌'])).map(|l| l.chars().count()).max();
            assert!(widest.unwrap() <= width, "{width}: {text}");
            assert!(text.contains("mortise") && text.contains("QoE"), "{text}");
        }
    }

    /// Two runs of a scheme with everything that has a column.
    fn with_everything() -> Comparison {
        let runs: Vec<RunRecord> = [("cubic", 0.0), ("bbr", 1.0)]
            .into_iter()
            .flat_map(|(cc, more)| [(cc, more, 0), (cc, more, 1)])
            .map(|(cc, more, seed)| {
                let mut r = run(cc, "t", seed, 2.0 + more + seed as f64);
                r.stall_ratio = Some(0.02 + 0.02 * seed as f64);
                r.bitrate_kbps_mean = Some(2500.0 + 1000.0 * seed as f64);
                r.jain = Some(0.9 - 0.1 * seed as f64);
                r.friendliness = Some(1.0 + seed as f64);
                r.rct_ms.as_mut().unwrap().p50 = 400.0 + 200.0 * seed as f64;
                r
            })
            .collect();
        Comparison { summary: summarise(&runs), cells: Vec::new(), runs, ..comparison() }
    }

    #[test]
    fn columns_are_means_over_the_runs_of_their_scheme() {
        let text = render(&with_everything(), Style { width: 400, lines: false });
        let cells = |line: usize| -> Vec<&str> {
            let line = text.lines().nth(line).unwrap();
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
        };
        assert_eq!(cells(0), ["download (4 runs)"]);
        for (head, bbr, cubic) in [
            ("congestion control", "bbr", "cubic"),
            ("QoE", "3.50", "2.50"),
            ("Jain", "0.850", "0.850"),
            ("friendliness", "1.50", "1.50"),
            ("queue delay", "15.0 ms", "15.0 ms"),
            ("throughput", "10.0 Mbit/s", "10.0 Mbit/s"),
            ("median RCT", "500 ms", "500 ms"),
            ("stalled", "3.00%", "3.00%"),
            ("bitrate", "3.00 Mbit/s", "3.00 Mbit/s"),
            ("p95 RCT", "2000 ms", "2000 ms"),
            ("retransmitted", "1.00%", "1.00%"),
        ] {
            let at = cells(1)
                .iter()
                .position(|h| *h == head)
                .unwrap_or_else(|| panic!("{head}: {text}"));
            // CUBIC is what the others are compared with: its cell in that column is empty.
            let skipped = usize::from(at > 2);
            assert_eq!((cells(2)[at], cells(3)[at - skipped]), (bbr, cubic), "{head}: {text}");
        }
        assert_eq!((cells(1)[2], cells(2)[2]), ("against cubic", "+1.000"), "{text}");
    }

    #[test]
    fn switches_have_a_table_of_what_they_cost() {
        let mut c = with_everything();
        let switch = |loss_ratio, settled_ms: Option<f64>| crate::result::SwitchRecord {
            at_ms: 8000.0,
            from: "cubic".to_owned(),
            to: "bbr".to_owned(),
            waited_ms: 0.0,
            loss_ratio,
            turn_ms: 8000.0,
            settled_ms,
            settles: Some(settled_ms.is_some()),
            queue_delay_ms: 1.0,
        };
        c.runs[0].switches = vec![switch(0.01, Some(400.0))];
        c.runs[1].switches = vec![switch(0.03, None)];
        let text = render(&c, Style { width: 200, lines: false });
        let at = text.lines().position(|l| l.contains("after a switch, and time until")).unwrap();
        let row: Vec<&str> = text.lines().nth(at + 2).unwrap().split_whitespace().collect();
        let expected =
            ["cubic", "2.00%", "2.00%", "2.80%", "4.20", "s", "4.20", "s", "7.24", "s", "50.00%"];
        assert_eq!(row, expected, "{text}");
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.0, 0.123, 1.0, 9.99, 12.34, 99.94, 123.4, 12345.6, -0.5, -12.34].map(short);
        assert_eq!(
            texts,
            ["0", "0.12", "1.00", "9.99", "12.3", "99.9", "123", "12346", "-0.50", "-12.3"]
        );
    }
}
