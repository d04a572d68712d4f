//! The result as one HTML file: no network, no dependencies, light and dark, wide and narrow.
//!
//! Read [`page`] first: it is the order of the report. `chart.rs` draws frames, `plots.rs` and
//! `series.rs` fill them, `cast.rs` says who is drawn how, `style.css` has every colour.

pub mod archive;
mod axis;
mod call;
mod cast;
pub mod cells;
mod chart;
pub mod figure;
pub mod fleet;
mod gains;
pub mod headline;
pub mod leaderboard;
pub mod look;
pub mod output;
pub mod picture;
mod plots;
pub mod samples;
mod series;
pub mod sheet;
pub mod table;

use std::fmt::Write;
use std::path::Path;

use cast::Role;
use chart::escape;
use trimtab_net::Trace;

use crate::report::gains::gains;
use crate::report::headline::{duel, headlines, merit};
use crate::report::output::OutputError;
use crate::result::{Comparison, RunRecord, SummaryRow, UnitRecord};
use crate::scenario::{AppKind, Scenario};
use crate::stats::Sorted;
use crate::stats::summary::in_order;
use trimtab_steer::scheme::{is_bound, is_steered};

/// Traces per application whose course over time is drawn; more would make the file heavy and nobody
/// would open them all.
const TRACES_MAX: usize = 8;

/// The folder of the figures within that of `--out`.
const FIGURES: &str = "figures";

/// Writes a comparison's tables as Parquet into a folder, and its figures into `figures` in it.
///
/// # Errors
/// The system refuses. The tables appear together or not at all, and before the figures.
pub fn write_folder(folder: &Path, comparison: &Comparison) -> Result<(), OutputError> {
    archive::write(folder, &comparison.runs)?;
    figure::write_all(&folder.join(FIGURES), comparison)
}

/// The report as HTML. `title` and `about` are those of the scenario.
pub fn page(comparison: &Comparison, title: &str, about: &str) -> String {
    let cast = cast::cast(&comparison.summary);
    let title = if title.is_empty() { "comparison" } else { title };
    let mut html = opening(title);
    if !about.is_empty() {
        let _ = writeln!(html, "<p class=\"about\">{}</p>", escape(about));
    }
    let lines = gains(&comparison.summary, &comparison.runs);
    for line in lines.into_iter().chain(headlines(&comparison.summary)) {
        let _ = writeln!(html, "<p class=\"headline\">{}.</p>", escape(&capitalised(&line)));
    }
    let _ = writeln!(html, "<p class=\"scope\">{}</p>\n</header>", scope(comparison));
    html += &legend(&cast);
    html += "<main>\n";
    for app in in_order(comparison.summary.iter().map(|r| r.app.as_str())) {
        html += &application(app, comparison, &cast);
    }
    html += GLOSSARY;
    html += &repeat(comparison);
    html + "</main>\n" + CLOSING
}

/// The end of a page, with what its legend does.
const CLOSING: &str =
    concat!("<script>\n", include_str!("script.js"), "</script>\n</body>\n</html>\n");

/// Head and title of a page, up to what its header says.
fn opening(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{0} · Trimtab</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"kicker\">Trimtab: which congestion control serves the users?</p>\n<h1>{0}</h1>\n",
        escape(title),
        include_str!("style.css"),
        look::stylesheet()
    )
}

/// What was run, in a line.
fn scope(comparison: &Comparison) -> String {
    let runs = &comparison.runs;
    let distinct = |f: &dyn Fn(&RunRecord) -> String| {
        let mut all: Vec<String> = runs.iter().map(f).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let cell = |r: &RunRecord| format!("{:?}", r.cell);
    format!(
        "{} of {} over {} and {}, {} each, on {}. Every scheme saw the same links, the same losses \
         and the same requests.",
        plural(runs.len(), "run"),
        plural(distinct(&|r| r.cc.clone()), "scheme"),
        plural(distinct(&|r| r.trace.clone()), "trace"),
        plural(distinct(&cell), "network setting"),
        plural(distinct(&|r| r.seed.to_string()), "seed"),
        runs.first().map_or("no transport", |r| r.transport.title()),
    )
}

/// The schemes with their lines; each is a switch.
fn legend(cast: &[Role]) -> String {
    let mut html =
        String::from("<nav class=\"legend\" aria-label=\"Schemes: select to hide or show\">\n");
    for role in cast {
        let kind = if is_bound(&role.cc) {
            "bound: no real sender can reach it"
        } else if is_steered(&role.cc) {
            "steered"
        } else {
            "fixed settings"
        };
        let (line, name, n) = (role.line(), escape(&role.cc), role.number);
        let marker = role.marker(17.0, 8.0, 0.7);
        let _ = writeln!(
            html,
            "<button type=\"button\" data-s=\"{n}\" aria-pressed=\"true\" title=\"{kind}\">\
             <svg viewBox=\"0 0 34 16\" aria-hidden=\"true\"><path {line} d=\"M1 8H33\"/>{marker}</svg>{name}</button>"
        );
    }
    html + "</nav>\n"
}

/// Everything about one application.
fn application(app: &str, comparison: &Comparison, cast: &[Role]) -> String {
    let mut rows: Vec<&SummaryRow> = comparison.summary.iter().filter(|r| r.app == app).collect();
    rows.sort_by(|a, b| is_bound(&a.cc).cmp(&is_bound(&b.cc)).then(merit(b).total_cmp(&merit(a))));
    let runs: Vec<&RunRecord> = comparison.runs.iter().filter(|r| r.app == app).collect();
    let pair = duel(&comparison.summary, app);
    let reference = pair.map(|d| d.behind.cc.as_str());

    let (name, meaning) = about_app(app);
    let mut html =
        format!("<section>\n<h2>{}</h2>\n<p>{}</p>\n", escape(&capitalised(name)), escape(meaning));
    html += &table(&rows, &runs, reference);
    html += "<div class=\"plots\">\n";
    let mut figure = |caption: &str, svg: String| {
        let _ = writeln!(html, "<figure><figcaption>{caption}</figcaption>\n{svg}</figure>");
    };
    if let Some(cc) = reference {
        let caption = "<b>Who serves users better?</b> Change of the experience, each run against \
                       the same run of the best congestion control with fixed settings. The bar is \
                       the 95% interval: where it crosses the line, the two cannot be told apart.";
        figure(caption, plots::changes(&format!("{app}: paired changes"), cast, &rows, cc));
    }
    for plot in distributions(app, own_qoe(comparison, app)) {
        let samples = plot.samples(cast, &runs);
        if samples.iter().any(|(_, s)| !s.values().is_empty()) {
            figure(
                plot.caption,
                plots::cdf(&format!("{app}: {}", plot.label), plot.label, plot.log, &samples),
            );
        }
    }
    let caption = "<b>What does speed cost in delay?</b> Up and right is better. The line joins \
                   the senders that no other beats in both; which point on it serves users best \
                   depends on what they do.";
    let means = plots::means_of(&rows, &runs);
    let title = format!("{app}: throughput and delay");
    if let Some(plot) = plots::tradeoff(&title, &plots::RATE_AND_DELAY, cast, &means) {
        figure(caption, plot);
    }
    html += "</div>\n";
    let shown: Vec<&str> =
        pair.map_or(Vec::new(), |d| vec![d.ahead.cc.as_str(), d.behind.cc.as_str()]);
    html += &call::calls(cast, &runs, &shown);
    html += &course(app, cast, &runs, &shown);
    html + "</section>\n"
}

/// Name and meaning of an application, for a stranger.
fn about_app(app: &str) -> (&str, &'static str) {
    let other = (app, "Experience as the scenario's formula defines it: higher is better.");
    AppKind::named(app).map_or(other, |kind| (kind.info().label, kind.info().experience))
}

/// Whether the scenario names the QoE model of the application.
fn own_qoe(comparison: &Comparison, app: &str) -> bool {
    // The record of a comparison that was not made by a scenario has none.
    let scenario = Scenario::parse(&comparison.provenance.scenario).ok();
    scenario.iter().flat_map(|s| &s.app).any(|a| a.label() == app && a.qoe.is_some())
}

/// What an axis of experience is called, with its unit where it has one.
fn qoe_label(app: &str, own_qoe: bool) -> &'static str {
    match app {
        "download" if !own_qoe => "QoE, Mbit/s",
        "web" if !own_qoe => "QoE, s",
        _ => "QoE",
    }
}

/// A distribution that is worth a chart.
struct Distribution {
    caption: &'static str,
    label: &'static str,
    log: bool,
    value: fn(&UnitRecord) -> Option<f64>,
}

impl Distribution {
    fn samples<'a>(&self, cast: &'a [Role], runs: &[&RunRecord]) -> Vec<(&'a Role, Sorted)> {
        let of = |role: &Role| {
            let own = runs.iter().filter(|r| r.cc == role.cc);
            Sorted::new(own.flat_map(|r| r.units.iter()).filter_map(self.value))
        };
        cast.iter().map(|role| (role, of(role))).collect()
    }
}

/// The distributions of an application; those without values are not drawn.
fn distributions(app: &str, own_qoe: bool) -> Vec<Distribution> {
    let experience = Distribution {
        caption: "<b>Experience of every request or chunk.</b> A line further right is better; its \
                  lower end shows the users who are served worst.",
        label: qoe_label(app, own_qoe),
        log: AppKind::named(app).is_some_and(|kind| kind.info().log),
        value: |u| Some(u.qoe),
    };
    let waiting = Distribution {
        caption: "<b>How long users wait.</b> From the request to the last byte. A line further left is better.",
        label: "completion time, ms",
        log: true,
        value: |u| u.bitrate_kbps.is_none().then_some(u.duration_ms),
    };
    let bitrate = Distribution {
        caption: "<b>How sharp the picture is.</b> Bitrate of every chunk. A line further right is better.",
        label: "bitrate, kbit/s",
        log: false,
        value: |u| u.bitrate_kbps,
    };
    vec![waiting, bitrate, experience]
}

fn table(rows: &[&SummaryRow], runs: &[&RunRecord], reference: Option<&str>) -> String {
    let mean = |cc: &str, f: fn(&RunRecord) -> Option<f64>| {
        let v: Vec<f64> = runs.iter().filter(|r| r.cc == cc).filter_map(|r| f(r)).collect();
        (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64)
    };
    type Value = fn(&RunRecord) -> Option<f64>;
    type Text = fn(f64) -> String;
    let details: Vec<(&str, Value, Text)> = vec![
        ("median wait, ms", |r| r.rct_ms.map(|t| t.p50), |v| format!("{v:.0}")),
        ("p95 wait, ms", |r| r.rct_ms.map(|t| t.p95), |v| format!("{v:.0}")),
        ("bitrate, Mbit/s", |r| r.bitrate_kbps_mean, |v| format!("{:.2}", v / 1000.0)),
        ("stalled", |r| r.stall_ratio, |v| format!("{:.2}%", 100.0 * v)),
        ("start-up, ms", |r| r.startup_ms, |v| format!("{v:.0}")),
        ("behind live, s", |r| r.latency_ms, |v| format!("{:.2}", v / 1000.0)),
        ("VMAF", |r| r.vmaf, |v| format!("{v:.1}")),
        ("frame delay, ms", |r| r.frame_delay_ms.map(|d| d.mean), |v| format!("{v:.0}")),
        ("p95 frame delay, ms", |r| r.frame_delay_ms.map(|d| d.p95), |v| format!("{v:.0}")),
        ("frozen", |r| r.freeze_ratio, |v| format!("{:.2}%", 100.0 * v)),
        ("frames dropped", |r| r.drop_ratio, |v| format!("{:.2}%", 100.0 * v)),
        ("throughput, Mbit/s", |r| Some(r.throughput_mbps), |v| format!("{v:.2}")),
        ("queue delay, ms", |r| Some(r.queue_delay_ms.mean), |v| format!("{v:.1}")),
        ("p95 queue delay, ms", |r| Some(r.queue_delay_ms.p95), |v| format!("{v:.1}")),
        ("sent again", |r| Some(r.retransmit_ratio), |v| format!("{:.2}%", 100.0 * v)),
        ("Jain", |r| r.jain, |v| format!("{v:.3}")),
        ("friendliness", |r| r.friendliness, |v| format!("{v:.2}")),
    ];
    let details: Vec<_> =
        details.into_iter().filter(|d| rows.iter().any(|r| mean(&r.cc, d.1).is_some())).collect();
    let with_share = rows.iter().any(|r| r.score_of_omniscient.is_some());

    let mut html =
        String::from("<div class=\"scroll\"><table>\n<thead><tr><th>scheme</th><th>QoE</th>");
    if let Some(cc) = reference {
        let _ = write!(html, "<th>against {}</th>", escape(cc));
    }
    html += if with_share { "<th>of omniscient</th>" } else { "" };
    for (head, ..) in &details {
        let _ = write!(html, "<th>{head}</th>");
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        let class = if is_bound(&row.cc) {
            " class=\"bound-row\""
        } else if is_steered(&row.cc) {
            " class=\"steered-row\""
        } else {
            ""
        };
        let _ = write!(
            html,
            "<tr{class}><th scope=\"row\">{}</th><td>{:.3}{}</td>",
            escape(&row.cc),
            row.score,
            interval(row.score_ci95, |v| format!("{v:.3}"))
        );
        if reference.is_some() {
            let _ = write!(html, "<td>{}</td>", change(row, reference));
        }
        if with_share {
            let share = row.score_of_omniscient.map(|e| format!("{:.1}%", 100.0 * e.value));
            let _ = write!(html, "<td>{}</td>", share.unwrap_or_default());
        }
        for (_, value, text) in &details {
            let _ = write!(html, "<td>{}</td>", mean(&row.cc, *value).map_or(String::new(), text));
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table></div>\n"
}

fn change(row: &SummaryRow, reference: Option<&str>) -> String {
    let Some(v) = row.versus.iter().find(|v| Some(v.cc.as_str()) == reference) else {
        return String::new();
    };
    let c = v.shown(row.scale);
    c.text(c.value) + &interval(c.ci95, |v| c.text(v))
}

/// The interval behind a value, in small print; nothing where there is none.
fn interval(ci95: Option<[f64; 2]>, text: impl Fn(f64) -> String) -> String {
    ci95.map_or(String::new(), |[lo, hi]| format!(" <small>{} to {}</small>", text(lo), text(hi)))
}

/// Charts over time of the first runs on every trace.
fn course(app: &str, cast: &[Role], runs: &[&RunRecord], shown: &[&str]) -> String {
    let with_series = || runs.iter().filter(|r| r.series.is_some());
    let traces = in_order(with_series().map(|r| r.trace.as_str()));
    if traces.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<h3>Over time</h3>\n<p>Capacity is the filled area. Shown are {}; <label><input type=\"checkbox\" class=\"all\"> all schemes</label>.</p>\n",
        escape(&shown.join(" and "))
    );
    for (i, trace) in traces.iter().take(TRACES_MAX).enumerate() {
        let Some((first, group)) = series::group(cast, runs, trace) else { continue };
        let setting = setting(first);
        let open = if i == 0 { " open" } else { "" };
        let _ = writeln!(
            html,
            "<details{open}><summary>{} <small>{setting}</small></summary>\n<div class=\"scroll\">{}</div></details>",
            escape(trace),
            series::charts(&format!("{app} on {trace}"), &group, shown).concat()
        );
    }
    if traces.len() > TRACES_MAX {
        let left = traces.len() - TRACES_MAX;
        let _ = writeln!(html, "<p>{left} more traces are in the files of <code>--out</code>.</p>");
    }
    html
}

/// Where in the grid a run is.
fn setting(run: &RunRecord) -> String {
    let c = &run.cell;
    format!(
        "RTT {}, buffer {} KB, loss {}%{}, {} flow{}{}, seed {}",
        c.rtt_text(),
        c.buffer_bytes as f64 / 1000.0,
        libm::round(1e6 * c.loss) / 1e4,
        match c.jitter_ms {
            0.0 => String::new(),
            jitter => format!(", jitter {jitter} ms"),
        },
        c.flows,
        if c.flows == 1 { "" } else { "s" },
        match c.rivals.as_str() {
            "" => String::new(),
            rivals => format!(", next to {}", escape(rivals)),
        },
        run.seed
    )
}

const GLOSSARY: &str = include_str!("glossary.html");

fn repeat(comparison: &Comparison) -> String {
    let p = &comparison.provenance;
    let mut html = format!(
        "<section>\n<h2>Do it again</h2>\n\
         <p>Trimtab {}. The same command gives the same bytes.</p>\n<pre><code>{}</code></pre>\n\
         <details><summary>The whole scenario</summary><pre><code>{}</code></pre></details>\n",
        escape(&p.version),
        escape(&p.command),
        escape(p.scenario.trim_end())
    );
    if !p.traces.is_empty() {
        html += "<details><summary>Checksums of the traces</summary><pre><code>";
        for t in &p.traces {
            let _ = writeln!(html, "{}  {}", t.sha256, escape(&t.trace));
        }
        html += "</code></pre></details>\n";
    }
    html + "</section>\n"
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The rate of a trace over time as one SVG image.
pub fn trace_svg(name: &str, trace: &Trace) -> String {
    let chart = series::capacity_chart(name, trace);
    sheet::compose(&[], &[chart], sheet::Arrangement::Row)
}

/// The rate of a trace over time as an HTML page.
pub fn trace_page(name: &str, trace: &Trace) -> String {
    let (s, title) = (trace.stats(), escape(name));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} · Trimtab</title>\n<style>\n{}</style>\n</head>\n<body>\n<header><h1>{title}</h1>\n\
         <p>{:.1} s, mean {:.2} Mbit/s. Of 100 ms bins, 5% are below {:.2} and 5% above {:.2} Mbit/s; {:.1}% are empty.</p>\n\
         </header>\n<main><figure>{}</figure></main>\n</body>\n</html>\n",
        include_str!("style.css"),
        s.duration.as_secs_f64(),
        s.mean.mbps(),
        s.p5.mbps(),
        s.p95.mbps(),
        100.0 * s.outage_fraction,
        series::capacity_chart(name, trace)
    )
}

#[cfg(test)]
mod tests;
