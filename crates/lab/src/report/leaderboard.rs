//! The leaderboard as one HTML file, in the form of a comparison's report, and as a table for a terminal.
//!
//! Read [`page`] first: it is the order of the page.

use std::fmt::Write;

use trimtab_steer::scheme::is_steered;

use super::cast::{self, Role};
use super::chart::escape;
use super::plots::{Point, plane};
use super::table::{Column, Style, table};
use super::{CLOSING, capitalised, interval, legend, opening};
use crate::leaderboard::{Board, Card, CpuRow, LeftOut, PathRow, REFERENCE, Row, SetScores};
use crate::result::{Change, Scale};
use crate::stats::Estimate;

/// A chart with more schemes names those on its front only.
const NAMED: usize = 12;

/// The board as HTML.
pub fn page(board: &Board) -> String {
    let names: Vec<&str> = board.standings.iter().map(|standing| standing.cc.as_str()).collect();
    let cast = cast::named(&names);
    let mut html = opening("Leaderboard");
    let quick = if board.quick { " It is of a quick run, which says little." } else { "" };
    let _ = writeln!(
        html,
        "<p class=\"about\">{} schemes over {} sets of paths: what their users feel compared with \
         {REFERENCE}'s, what they do to others, and what they cost.{quick}</p>",
        names.len(),
        board.sets.len(),
    );
    for set in &board.sets {
        if let Some(line) = lead(set) {
            let _ = writeln!(html, "<p class=\"headline\">{}</p>", escape(&line));
        }
    }
    html += "</header>\n";
    html += &legend(&cast);
    html += "<main>\n";
    html += &overall(board);
    for set in &board.sets {
        html += &section(board, set, &cast);
    }
    html += &cards(&board.cards);
    html += &meaning(board);
    html + "</main>\n" + CLOSING
}

/// Who leads a set, in a sentence.
fn lead(set: &SetScores) -> Option<String> {
    let best = set.rows.first()?;
    let change = shown(set, best.change);
    let name = capitalised(&set.name);
    if change.value <= 0.0 {
        return Some(format!("{name}: no scheme gives users more than {REFERENCE}."));
    }
    let told = match change.ci95 {
        Some([low, high]) => {
            let apart = if low > 0.0 { "" } else { ", and cannot be told apart from it" };
            format!("{apart} (95% interval {} to {})", change.text(low), change.text(high))
        }
        None => String::new(),
    };
    let value = change.text(change.value);
    Some(format!("{name}: {} leads, {value} QoE vs. {REFERENCE}{told}.", best.cc))
}

/// A change as people read it.
fn shown(set: &SetScores, change: Estimate) -> Change {
    let Estimate { value, ci95 } = change;
    Change { value, ci95, percent: set.scale == Scale::Ratio }
}

fn number(set: &SetScores, value: f64) -> String {
    shown(set, Estimate { value, ci95: None }).text(value)
}

/// A cell with a value and its interval below.
fn cell(change: Change) -> String {
    change.text(change.value) + &interval(change.ci95, |v| change.text(v))
}

fn ratio(row: &CpuRow) -> String {
    let times = |v: f64| format!("{v:.2}×");
    times(row.ratio) + &interval(Some(row.range), times)
}

fn harm(row: &Row) -> Option<Change> {
    let Estimate { value, ci95 } = row.harm?.throughput;
    Some(Change { value, ci95, percent: false })
}

/// All schemes over all sets.
fn overall(board: &Board) -> String {
    let mut html = String::from(
        "<section>\n<h2>All sets</h2>\n<p>By the mean place: 0 is the best scheme of every set, 1 \
         the last. Sets differ in their units, so ranks are averaged.</p>\n\
         <div class=\"scroll\"><table class=\"wide\">\n<thead><tr><th>scheme</th><th>mean place</th>",
    );
    for set in &board.sets {
        let _ = write!(html, "<th>{}</th>", escape(&set.name));
    }
    html += "<th>harm</th><th>processor time</th></tr></thead>\n<tbody>\n";
    for standing in &board.standings {
        let _ = write!(html, "<tr{}>{}", class(&standing.cc), name(board, &standing.cc));
        let _ = write!(html, "<td>{:.2}</td>", standing.place);
        for set in &board.sets {
            let row = set.rows.iter().find(|row| row.cc == standing.cc);
            let change = row.map_or(String::new(), |row| cell(shown(set, row.change)));
            let _ = write!(html, "<td>{change}</td>");
        }
        let harm = harmed(board, &standing.cc).map_or(String::new(), cell);
        let cpu = board.cpu_of(&standing.cc).map_or(String::new(), ratio);
        let _ = writeln!(html, "<td>{harm}</td><td>{cpu}</td></tr>");
    }
    html += "</tbody>\n</table></div>\n";
    html += &left_out(board);
    html + "</section>\n"
}

/// The harm of a scheme in the first set where others share the links.
fn harmed(board: &Board, cc: &str) -> Option<Change> {
    let set = board.sets.iter().find(|set| set.rows.iter().any(|row| row.harm.is_some()))?;
    harm(set.rows.iter().find(|row| row.cc == cc)?)
}

fn left_out(board: &Board) -> String {
    let line = |one: &LeftOut| format!("<p>{}</p>\n", escape(&one.to_string()));
    board.left_out.iter().map(line).collect()
}

fn class(cc: &str) -> &'static str {
    if is_steered(cc) { " class=\"steered-row\"" } else { "" }
}

/// A scheme at the head of a row; a submission leads to its card.
fn name(board: &Board, cc: &str) -> String {
    let text = escape(cc);
    match board.cards.iter().position(|card| card.scheme.label() == cc) {
        Some(card) => {
            format!("<th scope=\"row\"><a href=\"#card-{card}\">{text}</a></th>")
        }
        None => format!("<th scope=\"row\">{text}</th>"),
    }
}

/// A set: its table, its fronts, and its paths.
fn section(board: &Board, set: &SetScores, cast: &[Role]) -> String {
    let (title, about) = (escape(&capitalised(&set.name)), escape(&set.about));
    let mut html = format!("<section>\n<h2>{title}</h2>\n<p>{about}</p>\n");
    let has_harm = set.rows.iter().any(|row| row.harm.is_some());
    let _ = write!(
        html,
        "<div class=\"scroll\"><table>\n<thead><tr><th>scheme</th><th>QoE vs. {REFERENCE}</th>\
         <th>worst tenth</th>{}<th>queue delay, ms</th><th>runs</th></tr></thead>\n<tbody>\n",
        if has_harm { "<th>harm: throughput</th><th>delay</th><th>loss</th>" } else { "" }
    );
    for row in &set.rows {
        let _ = write!(
            html,
            "<tr{}>{}<td>{}</td><td>{}</td>",
            class(&row.cc),
            name(board, &row.cc),
            cell(shown(set, row.change)),
            number(set, row.worst)
        );
        if has_harm {
            let harms = row.harm.map(|harm| [harm.throughput, harm.delay, harm.loss]);
            for at in 0..3 {
                let one = harms.map(|harms| {
                    let Estimate { value, ci95 } = harms[at];
                    cell(Change { value, ci95, percent: false })
                });
                let _ = write!(html, "<td>{}</td>", one.unwrap_or_default());
            }
        }
        let _ = writeln!(html, "<td>{:.1}</td><td>{}</td></tr>", row.queue_delay_ms, row.runs);
    }
    html += "</tbody>\n</table></div>\n<div class=\"plots\">\n";
    html += &harm_front(set, cast);
    html += &cpu_front(board, set, cast);
    html += "</div>\n<h3>Path by path</h3>\n";
    html += &paths(board, set);
    html + "</section>\n"
}

/// What a chart of changes has along its vertical axis.
fn gain_label(set: &SetScores) -> String {
    let unit = if set.scale == Scale::Ratio { "%" } else { "difference" };
    format!("QoE vs. {REFERENCE}, {unit} (better →)")
}

fn harm_front(set: &SetScores, cast: &[Role]) -> String {
    let caption = "<b>Who gains, and at whose cost?</b> Up and right is better. Harm is how much less \
                   competing flows get than next to their own kind. The line joins the schemes that \
                   no other beats in both.";
    let cost = "harm to others' throughput (better →)";
    front(set, cast, caption, (cost, false), &|row| harm(row).map(|harm| harm.value))
}

fn cpu_front(board: &Board, set: &SetScores, cast: &[Role]) -> String {
    let caption = format!(
        "<b>What does experience cost in processor time?</b> Up and right is better. Time of an \
         acknowledgement compared with {REFERENCE}'s. The line joins the schemes that no other \
         beats in both."
    );
    let label = format!("processor time, {REFERENCE} is 1 (better →)");
    front(set, cast, &caption, (&label, true), &|row| board.cpu_of(&row.cc).map(|cpu| cpu.ratio))
}

/// A chart of a set's changes over a cost; nothing where fewer than two schemes have one.
fn front(
    set: &SetScores,
    cast: &[Role],
    caption: &str,
    (label, log): (&str, bool),
    cost: &dyn Fn(&Row) -> Option<f64>,
) -> String {
    let point = |row: &Row| {
        let role = cast.iter().find(|role| role.cc == row.cc)?;
        Some(Point { role, cost: cost(row)?, gain: row.change.value })
    };
    let points: Vec<Point<'_>> = set.rows.iter().filter_map(point).collect();
    if points.len() < 2 {
        return String::new();
    }
    let title = format!("{}: {label}", set.name);
    let svg = plane(&title, (label, &gain_label(set)), log, &points, NAMED);
    format!("<figure><figcaption>{caption}</figcaption>\n{svg}</figure>\n")
}

/// Every path with the schemes on it, the best first.
fn paths(board: &Board, set: &SetScores) -> String {
    let Some(first) = set.rows.first() else { return String::new() };
    let mut html = String::new();
    for path in &first.paths {
        let on = |row: &'_ Row| row.paths.iter().position(|other| other.path == path.path);
        let mut here: Vec<(&str, &PathRow)> = set
            .rows
            .iter()
            .filter_map(|row| Some((row.cc.as_str(), &row.paths[on(row)?])))
            .collect();
        here.sort_by(|a, b| b.1.change.total_cmp(&a.1.change));
        let Some(&(best, lead)) = here.first() else { continue };
        let has_harm = here.iter().any(|(_, row)| row.harm.is_some());
        let _ = write!(
            html,
            "<details><summary>{} <small>{} {}</small></summary>\n<div class=\"scroll\"><table>\n\
             <thead><tr><th>scheme</th><th>QoE vs. {REFERENCE}</th><th>QoE</th>\
             <th>throughput, Mbit/s</th><th>queue delay, ms</th><th>lost</th>{}</tr></thead>\n<tbody>\n",
            escape(&path.path),
            escape(best),
            number(set, lead.change),
            if has_harm { "<th>harm</th>" } else { "" }
        );
        for (cc, row) in here {
            let harm = match (has_harm, row.harm) {
                (false, _) => String::new(),
                (true, harm) => {
                    format!("<td>{}</td>", harm.map_or(String::new(), |harm| format!("{harm:+.3}")))
                }
            };
            let _ = writeln!(
                html,
                "<tr{}>{}<td>{}</td><td>{:.3}</td><td>{:.2}</td><td>{:.1}</td><td>{:.2}%</td>{harm}</tr>",
                class(cc),
                name(board, cc),
                number(set, row.change),
                row.score,
                row.throughput_mbps,
                row.queue_delay_ms,
                100.0 * row.loss_ratio
            );
        }
        html += "</tbody>\n</table></div></details>\n";
    }
    html
}

/// What submissions say of themselves.
fn cards(cards: &[Card]) -> String {
    if cards.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section>\n<h2>Submissions</h2>\n");
    for (number, card) in cards.iter().enumerate() {
        let _ = writeln!(
            html,
            "<h3 id=\"card-{number}\">{}</h3>\n<dl>\n<dt>Authors</dt><dd>{}</dd>\n\
             <dt>Source</dt><dd>{}</dd>\n<dt>Licence</dt><dd>{}</dd>\n\
             <dt>Trained on</dt><dd>{}</dd>\n<dt>To run it</dt><dd>{}</dd>\n</dl>",
            escape(card.scheme.label()),
            escape(&card.authors.join(", ")),
            escape(&card.source),
            escape(&card.licence),
            escape(&card.training),
            escape(&card.run)
        );
    }
    html + "</section>\n"
}

/// How to read it, and how to repeat it.
fn meaning(board: &Board) -> String {
    format!(
        "<section>\n<h2>What the columns mean</h2>\n<dl>\n\
         <dt>QoE vs. {REFERENCE}</dt><dd>Each run against {REFERENCE}'s run with the same path and \
         seed: the geometric mean of the ratios, or the mean difference for video, with its 95% \
         interval.</dd>\n\
         <dt>worst tenth</dt><dd>The same over the tenth of the runs where it is least.</dd>\n\
         <dt>harm</dt><dd>How much worse competing flows fare than next to their own kind: 0 is \
         {REFERENCE} next to {REFERENCE}, 1 the most; below 0 they fare better (Ware et al., HotNets \
         2019).</dd>\n\
         <dt>processor time</dt><dd>Of an acknowledgement in the adapter for a QUIC stack, compared \
         with {REFERENCE} in the same round: the median, the lowest and the highest round. A Python \
         plug-in runs in a process of its own, and has none.</dd>\n</dl>\n</section>\n\
         <section>\n<h2>Do it again</h2>\n<p>Trimtab {}. The same command gives the same bytes, but \
         for processor time.</p>\n<pre><code>{}</code></pre>\n</section>\n",
        escape(&board.version),
        escape(&board.command)
    )
}

/// The board as a table for a terminal, and what did not run.
pub fn render(board: &Board, style: Style) -> String {
    let column = |head: &str, of: &dyn Fn(&str) -> String| Column {
        head: head.to_owned(),
        cells: board.standings.iter().map(|standing| of(&standing.cc)).collect(),
    };
    let mut columns = vec![column("scheme", &str::to_owned)];
    let places = board.standings.iter().map(|standing| format!("{:.2}", standing.place));
    columns.push(Column { head: "mean place".to_owned(), cells: places.collect() });
    for set in &board.sets {
        let of = |cc: &str| {
            let row = set.rows.iter().find(|row| row.cc == cc);
            row.map_or(String::new(), |row| number(set, row.change.value))
        };
        columns.push(column(&set.name, &of));
    }
    let harm = |cc: &str| harmed(board, cc).map_or(String::new(), |harm| harm.text(harm.value));
    columns.push(column("harm", &harm));
    let cpu = |cc: &str| board.cpu_of(cc).map_or(String::new(), |row| format!("{:.2}×", row.ratio));
    columns.push(column("processor time", &cpu));
    let mut text = format!("QoE vs. {REFERENCE}, harm to others, and processor time\n");
    text += &table(columns, style);
    text += "\n\n";
    for line in board.sets.iter().filter_map(lead) {
        text += &super::table::wrapped(&line, style.width);
    }
    for one in &board.left_out {
        text += &super::table::wrapped(&one.to_string(), style.width);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaderboard::{Set, score};
    use crate::testing::run;

    fn board() -> Board {
        let text = "about = \"a <b>\"\nschemes = [\"cubic\", \"bbr\"]\n[scenario]\n\
            traces = [\"constant:12Mbit/s\"]\n[[scenario.app]]\nkind = \"download\"\n";
        let set = Set::parse("alone", text).unwrap();
        let runs = [("cubic", 1.0), ("bbr", 2.0), ("python:a<b.py", 1.5)];
        let runs: Vec<_> = runs
            .iter()
            .flat_map(|(cc, qoe)| ["near", "far"].map(|path| run(cc, path, 0, *qoe)))
            .collect();
        let card = Card::parse(
            "scheme = \"python:a<b.py\"\nauthors = [\"A & B\"]\nsource = \"s\"\nlicence = \"MIT\"\n\
             training = \"none\"\nrun = \"r\"\n",
        );
        let cpu = |cc: &str, ratio| CpuRow {
            cc: cc.to_owned(),
            ns: 100.0 * ratio,
            ratio,
            range: [ratio, ratio],
        };
        let scores = vec![score(&set, &runs).unwrap()];
        let cpu = vec![cpu("cubic", 1.0), cpu("bbr", 1.5)];
        let board = Board::new(scores, cpu, vec![card.unwrap()], "trimtab leaderboard");
        let why = "it needs root".to_owned();
        let set = LeftOut { set: "kernel".to_owned(), cc: None, why };
        let why = "no <module>".to_owned();
        let scheme = LeftOut { set: "alone".to_owned(), cc: Some("vegas".to_owned()), why };
        Board { left_out: vec![set, scheme], ..board }
    }

    #[test]
    fn the_page_has_rows_fronts_paths_and_cards_and_escapes_them() {
        let html = page(&board());
        let from = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
        assert!(from("Alone: bbr leads, +100.0% QoE vs. cubic.") < from("<main>"));
        assert!(from("<th scope=\"row\">bbr</th><td>0.00</td><td>+100.0%</td>") > from("<main>"));
        from("<td>1.50× <small>1.50× to 1.50×</small></td>");
        from("<p>Set kernel did not run: it needs root.</p>");
        from("<p>Set alone ran without vegas: no &lt;module&gt;.</p>");
        from("processor time, cubic is 1");
        from("<details><summary>far (20ms, 150KB, 0% loss, 1 flow) <small>bbr +100.0%</small>");
        from("<th scope=\"row\"><a href=\"#card-0\">python:a&lt;b.py</a></th>");
        from("<h3 id=\"card-0\">python:a&lt;b.py</h3>");
        from("<dd>A &amp; B</dd>");
        from("<p>a &lt;b&gt;</p>");
        assert!(!html.contains("harm: throughput"), "nobody shares these links");
    }

    #[test]
    fn the_terminal_has_a_row_for_each_scheme() {
        let text = render(&board(), Style { width: 100, lines: false });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].trim_start().starts_with("bbr"), "{text}");
        assert!(lines[2].contains("0.00") && lines[2].ends_with("1.50×"), "{text}");
        assert!(lines[3].contains("python:a<b.py") && lines[3].contains("+50.0%"), "{text}");
        let left_out = "Set kernel did not run: it needs root.\n\
                        Set alone ran without vegas: no <module>.\n";
        assert!(text.ends_with(left_out), "{text}");
    }
}
