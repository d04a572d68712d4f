//! Charts read as people read them: what stands where, by the ticks of the axes.

use roxmltree::{Document, Node};

use super::*;
use crate::report::chart::Scale;
use crate::testing::close;

/// A chart.
pub(super) struct Chart<'a> {
    svg: Document<'a>,
}

/// Which axis.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    X,
    Y,
}

impl<'a> Chart<'a> {
    pub(super) fn read(svg: &'a str) -> Self {
        Self { svg: Document::parse(svg).unwrap_or_else(|e| panic!("{e}: {svg}")) }
    }

    /// Everything of a class.
    pub(super) fn all(&self, class: &str) -> Vec<Node<'_, 'a>> {
        self.svg.descendants().filter(|node| has(*node, class)).collect()
    }

    /// What is drawn in this class for a scheme, by its number.
    fn of(&self, class: &str, number: usize) -> Vec<Node<'_, 'a>> {
        let own = format!("s{number}");
        self.all(class).into_iter().filter(|node| has(*node, &own)).collect()
    }

    /// Positions and values of an axis's ticks.
    fn ticks(&self, axis: Axis) -> Vec<(f64, f64)> {
        let texts = self.all("ticks")[0].children().filter(Node::is_element);
        let of = |node: Node<'_, '_>| match axis {
            Axis::X => (attribute(node, "x"), value(node.text().unwrap())),
            Axis::Y => (attribute(node, "y") - 4.0, value(node.text().unwrap())),
        };
        let anchor = match axis {
            Axis::X => "middle",
            Axis::Y => "end",
        };
        texts.filter(|node| node.attribute("text-anchor") == Some(anchor)).map(of).collect()
    }

    /// The value at a position of a linear axis.
    pub(super) fn at(&self, axis: Axis, position: f64) -> f64 {
        between(&self.ticks(axis), position)
    }

    /// The value at a position of a logarithmic axis.
    fn at_log(&self, axis: Axis, position: f64) -> f64 {
        let ticks: Vec<_> = self.ticks(axis).iter().map(|(p, v)| (*p, libm::log(*v))).collect();
        libm::exp(between(&ticks, position))
    }

    /// How much of an axis a tenth of a unit of the drawing is, to which positions are rounded.
    pub(super) fn rounding(&self, axis: Axis) -> f64 {
        (self.at(axis, 0.1) - self.at(axis, 0.0)).abs()
    }
}

fn has(node: Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
}

pub(super) fn attribute(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// By the first and the last tick.
fn between(ticks: &[(f64, f64)], position: f64) -> f64 {
    let ((p, v), (q, w)) = (ticks[0], *ticks.last().unwrap());
    v + (position - p) / (q - p) * (w - v)
}

/// The value of a tick's text.
fn value(text: &str) -> f64 {
    let (number, unit) = match text.strip_suffix('k') {
        Some(number) => (number, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
    };
    number.parse::<f64>().unwrap() * unit
}

/// Where a marker stands.
fn place(marker: Node<'_, '_>) -> (f64, f64) {
    let text = marker.attribute("transform").unwrap().strip_prefix("translate(").unwrap();
    let (x, y) = text.split(')').next().unwrap().split_once(' ').unwrap();
    (x.parse().unwrap(), y.parse().unwrap())
}

/// The points of a line.
pub(super) fn points(line: Node<'_, '_>) -> Vec<(f64, f64)> {
    let d = line.attribute("d").unwrap();
    let point = |text: &str| {
        let (x, y) = text.split_once(' ').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    d.split(['M', 'L']).filter(|part| !part.is_empty()).map(point).collect()
}

/// The charts of a page.
pub(super) fn charts(html: &str) -> Vec<&str> {
    let mut charts = Vec::new();
    for part in html.split("<svg ").skip(1) {
        let start = part.as_ptr() as usize - html.as_ptr() as usize - "<svg ".len();
        let end = start + html[start..].find("</svg>").unwrap() + "</svg>".len();
        charts.push(&html[start..end]);
    }
    charts
}

fn rows<'a>(comparison: &'a Comparison, app: &str) -> Vec<&'a SummaryRow> {
    comparison.summary.iter().filter(|row| row.app == app).collect()
}

/// Asserts that a number read off a chart is the one that was drawn.
#[track_caller]
fn near(read: f64, drawn: f64, rounding: f64) {
    assert!((read - drawn).abs() <= rounding, "{read} is read, {drawn} was drawn");
}

#[test]
fn changes_stand_where_the_axis_says_with_their_intervals() {
    let comparison = specimen();
    let cast = cast::cast(&comparison.summary);
    let rows = rows(&comparison, "download");
    let svg = plots::changes("changes", &cast, &rows, "bbr");
    let chart = Chart::read(&svg);
    let off = chart.rounding(Axis::X);
    let shown: Vec<&&SummaryRow> = rows.iter().filter(|row| row.cc != "bbr").collect();
    assert_eq!(chart.all("marker").len(), shown.len(), "each but the one compared with");
    for (row, whisker) in shown.iter().zip(chart.all("whisker")) {
        let number = cast.iter().find(|role| role.cc == row.cc).unwrap().number;
        let [marker] = chart.of("marker", number)[..] else { panic!("one marker of {}", row.cc) };
        let versus = row.versus.iter().find(|v| v.cc == "bbr").unwrap();
        near(chart.at(Axis::X, place(marker).0), versus.score_percent.unwrap(), off);
        let ends = whisker.attribute("d").unwrap();
        let (low, high) = ends[1..].split_once('H').unwrap();
        let low = low.split(' ').next().unwrap();
        let [from, to] = versus.score_ci95.unwrap();
        near(chart.at(Axis::X, low.parse().unwrap()), from, off);
        near(chart.at(Axis::X, high.parse().unwrap()), to, off);
        let title = format!("{}: {:+.2}%", row.cc, versus.score_percent.unwrap());
        assert!(svg.contains(&title), "{title}");
    }
    let zero = chart.all("zero")[0].attribute("d").unwrap();
    let zero: f64 = zero[1..].split(' ').next().unwrap().parse().unwrap();
    near(chart.at(Axis::X, zero), 0.0, off);
    let label = chart.all("label")[0].text().unwrap();
    assert_eq!(label, "QoE against bbr, %");
    // Video has differences only.
    let svg = plots::changes("changes", &cast, &self::rows(&comparison, "vod"), "bbr");
    assert_eq!(Chart::read(&svg).all("label")[0].text().unwrap(), "QoE against bbr, difference");
}

#[test]
fn means_stand_where_the_axis_says() {
    let comparison = specimen();
    let cast = cast::cast(&comparison.summary);
    let rows = rows(&comparison, "vod");
    let svg = plots::means("means", "QoE", &cast, &rows);
    let chart = Chart::read(&svg);
    let mut below = 0.0;
    for row in rows {
        let number = cast.iter().find(|role| role.cc == row.cc).unwrap().number;
        let (x, y) = place(chart.of("marker", number)[0]);
        near(chart.at(Axis::X, x), row.qoe_mean, chart.rounding(Axis::X));
        assert!(y > below + 20.0, "each in a row of its own");
        below = y;
    }
    assert_eq!(chart.all("label")[0].text().unwrap(), "mean QoE, with 95% interval");
}

#[test]
fn a_tradeoff_has_every_scheme_at_its_delay_and_throughput() {
    let comparison = specimen();
    let cast = cast::cast(&comparison.summary);
    let rows = rows(&comparison, "download");
    let means = plots::means_of(&rows, &[]);
    let svg = plots::tradeoff("x", &plots::RATE_AND_DELAY, &cast, &means).unwrap();
    let chart = Chart::read(&svg);
    assert_eq!(chart.all("marker").len(), 8);
    for row in &rows {
        let number = cast.iter().find(|role| role.cc == row.cc).unwrap().number;
        let (x, y) = place(chart.of("marker", number)[0]);
        let ratio = chart.at_log(Axis::X, x) / row.queue_delay_ms;
        assert!((0.99..1.01).contains(&ratio), "{}: {ratio}", row.cc);
        near(chart.at(Axis::Y, y), row.throughput_mbps, chart.rounding(Axis::Y));
    }
    let ticks = chart.ticks(Axis::X);
    assert!(ticks[0].0 > ticks[1].0, "less delay is further right");
    // Nobody pays, so nothing is traded.
    assert!(plots::tradeoff("x", &plots::BITRATE_AND_STALLS, &cast, &means).is_none());
}

#[test]
fn a_distribution_shows_its_percentiles() {
    let comparison = specimen();
    let cast = cast::cast(&comparison.summary);
    let sorted = |role: &Role| {
        let own = comparison.runs.iter().filter(|r| r.app == "download" && r.cc == role.cc);
        Sorted::new(own.flat_map(|run| run.units.iter().map(|unit| unit.qoe)))
    };
    let samples: Vec<(&Role, Sorted)> = cast.iter().map(|role| (role, sorted(role))).collect();
    for log in [false, true] {
        let svg = plots::cdf("cdf", "QoE", log, &samples);
        let chart = Chart::read(&svg);
        assert_eq!(chart.all("line").len(), 8);
        for (role, sorted) in &samples {
            let [line] = chart.of("line", role.number)[..] else { panic!("one of {}", role.cc) };
            let points = points(line);
            assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1));
            for percent in [10.0, 50.0, 90.0] {
                let (x, y) = points[(1.6 * percent) as usize];
                near(chart.at(Axis::Y, y), percent, chart.rounding(Axis::Y));
                let read = if log { chart.at_log(Axis::X, x) } else { chart.at(Axis::X, x) };
                let value = sorted.percentile(percent).unwrap();
                let off = if log { 0.01 * value } else { chart.rounding(Axis::X) };
                near(read, value, off);
            }
        }
    }
}

#[test]
fn courses_over_time_are_means_of_their_bins() {
    let comparison = specimen();
    let cast = cast::cast(&comparison.summary);
    let runs: Vec<&RunRecord> = comparison.runs.iter().filter(|r| r.app == "download").collect();
    let (_, group) = series::group(&cast, &runs, "nyc-bus-2").unwrap();
    assert_eq!(group.len(), 8);
    let panels = series::charts("download", &group, &["mortise", "bbr"]);
    assert_eq!(panels.len(), 5, "throughput, queue, δ, λ and τ");
    let chart = Chart::read(&panels[0]);
    assert_eq!(chart.all("line").len(), 8, "one line per scheme");
    assert_eq!(chart.all("extra").len(), 6, "those that are not shown at first");
    for (role, run) in &group {
        let drawn = points(chart.of("line", role.number)[0]);
        let values = &run.series.as_ref().unwrap().throughput_mbps;
        assert_eq!(drawn.len(), 300, "two of 600 bins to a point");
        for i in [0, 7, 150, 299] {
            let (x, y) = drawn[i];
            let mean = (values[2 * i] + values[2 * i + 1]) / 2.0;
            near(chart.at(Axis::Y, y), mean, chart.rounding(Axis::Y));
            near(chart.at(Axis::X, x), 0.2 * i as f64, chart.rounding(Axis::X));
        }
    }
    let steered: Vec<usize> =
        panels[2..].iter().map(|p| Chart::read(p).all("line").len()).collect();
    assert_eq!(steered, [8, 8, 8]);
    let empty = |panel: &str, number| {
        let chart = Chart::read(panel);
        let line = chart.of("line", number)[0].attribute("d").unwrap().to_owned();
        line.is_empty()
    };
    let number = |cc: &str| cast.iter().find(|role| role.cc == cc).unwrap().number;
    assert!(empty(&panels[2], number("cubic")) && !empty(&panels[2], number("mortise")));
}

/// The looks, `COLOUR thick` and the dashes, that a scheme has in a page.
type Looks = std::collections::BTreeMap<String, std::collections::BTreeSet<(String, String)>>;

#[test]
fn every_chart_of_the_page_is_drawn_within_its_bounds_in_the_same_colours() {
    let comparison = specimen();
    let html = page(&comparison, "x", "");
    let all = charts(&html);
    let legend = comparison.summary.len() / 2;
    assert!(all.len() > legend + 2 * 6 * 5, "{} charts", all.len());
    let mut looks = Looks::new();
    for svg in all {
        let chart = Chart::read(svg);
        let bounds: Vec<f64> = chart
            .svg
            .root_element()
            .attribute("viewBox")
            .unwrap()
            .split(' ')
            .map(|n| n.parse().unwrap())
            .collect();
        let inside = |(x, y): (f64, f64)| {
            let is = (0.0..=bounds[2]).contains(&x) && (0.0..=bounds[3]).contains(&y);
            assert!(is, "({x}, {y}) is outside of {bounds:?}");
        };
        let (lines, markers) = (chart.all("line"), chart.all("marker"));
        markers.iter().for_each(|marker| inside(place(*marker)));
        let drawn = lines.iter().filter(|line| !line.attribute("d").unwrap().contains('H'));
        drawn.for_each(|line| points(*line).into_iter().for_each(inside));
        for line in &lines {
            let classes = line.attribute("class").unwrap();
            let (look, scheme) = classes.rsplit_once(' ').unwrap();
            let dashes = line.attribute("stroke-dasharray").unwrap_or_default();
            let look = (look.to_owned(), dashes.to_owned());
            looks.entry(scheme.to_owned()).or_default().insert(look);
        }
    }
    assert_eq!(looks.len(), legend, "every scheme is drawn");
    assert!(looks.values().all(|all| all.len() == 1), "one look for each: {looks:?}");
    let distinct: std::collections::BTreeSet<_> = looks.values().collect();
    assert_eq!(distinct.len(), legend, "and no two alike: {looks:?}");
}

#[test]
fn the_table_of_the_page_has_the_numbers_of_the_summary() {
    let comparison = specimen();
    let html = page(&comparison, "x", "");
    let section = html.split("<section>").nth(1).unwrap();
    let table = &section[section.find("<table>").unwrap()..section.find("</table>").unwrap()];
    let heads: Vec<&str> =
        table.split("<th>").skip(1).map(|t| t.split("</th>").next().unwrap()).collect();
    assert_eq!(heads[..4], ["scheme", "QoE", "against copa:mvfst", "of omniscient"]);
    let at = |head: &str| heads.iter().position(|h| *h == head).unwrap() - 1;
    let mut order = Vec::new();
    for line in table.lines().filter(|line| line.contains("scope=\"row\"")) {
        let cc = line.split("scope=\"row\">").nth(1).unwrap().split("</th>").next().unwrap();
        let cells: Vec<&str> =
            line.split("<td>").skip(1).map(|t| t.split("</td>").next().unwrap()).collect();
        let row = rows(&comparison, "download").into_iter().find(|row| row.cc == cc).unwrap();
        let [low, high] = row.score_ci95.unwrap();
        assert_eq!(
            cells[at("QoE")],
            format!("{:.3} <small>{low:.3} to {high:.3}</small>", row.score)
        );
        let share = 100.0 * row.score_of_omniscient.unwrap().value;
        assert_eq!(cells[at("of omniscient")], format!("{share:.1}%"));
        assert_eq!(cells[at("throughput, Mbit/s")], format!("{:.2}", row.throughput_mbps));
        assert_eq!(cells[at("queue delay, ms")], format!("{:.1}", row.queue_delay_ms));
        let versus = row.versus.iter().find(|v| v.cc == "copa:mvfst");
        let change = versus.map_or(String::new(), |v| format!("{:+.1}%", v.score_percent.unwrap()));
        assert!(cells[at("against copa:mvfst")].starts_with(&change), "{line}");
        order.push(cc);
    }
    assert_eq!(order.len(), 8);
    assert_eq!(order[6..], ["omniscient", "oracle:copa"], "bounds stand last: {order:?}");
    let wait = |cc: &str| {
        let own = comparison.runs.iter().filter(|r| r.app == "download" && r.cc == cc);
        let medians: Vec<f64> = own.map(|run| run.rct_ms.unwrap().p50).collect();
        format!("<td>{:.0}</td>", medians.iter().sum::<f64>() / medians.len() as f64)
    };
    let row = table.lines().find(|line| line.contains(">cubic</th>")).unwrap();
    assert!(row.contains(&wait("cubic")), "{row}");
    let legend = html.matches("<button type=\"button\" data-s=").count();
    assert_eq!(legend, 8, "a switch for each scheme");
}

#[test]
fn what_a_page_leaves_out_is_counted() {
    let mut comparison = specimen();
    let more: Vec<RunRecord> = (6..11)
        .flat_map(|t| {
            let of_first = comparison.runs.iter().filter(|r| r.trace == "nyc-bus-0");
            of_first.map(move |r| RunRecord { trace: format!("nyc-bus-{t}"), ..r.clone() })
        })
        .collect();
    comparison.runs.extend(more);
    let html = page(&comparison, "x", "");
    assert_eq!(html.matches("<p>3 more traces are in the files").count(), 2, "in each application");
    assert_eq!(html.matches("<details").count(), 2 * TRACES_MAX + 1, "and the scenario");
    assert!(
        html.contains("176 runs of 8 schemes over 11 traces and 1 network setting, 1 seed each")
    );
}

#[test]
fn ticks_tell_values_apart_on_any_axis() {
    for seed in 0..2000_u64 {
        let magnitude = libm::pow(10.0, 11.0 * noise(seed) - 4.0);
        let values = [magnitude * (noise(seed + 7000) - 0.3), magnitude * noise(seed + 9000)];
        for scale in [
            Scale::linear(values.into_iter(), 66.0, 446.0),
            Scale::from_zero(values.into_iter(), 66.0, 446.0),
        ] {
            let ticks = scale.ticks();
            assert!((2..=13).contains(&ticks.len()), "{values:?}: {ticks:?}");
            let texts: Vec<String> = ticks.iter().map(|v| scale.tick_text(*v)).collect();
            assert!(texts.windows(2).all(|pair| pair[0] != pair[1]), "{values:?}: {texts:?}");
            let step = ticks[1] - ticks[0];
            for (tick, text) in ticks.iter().zip(&texts) {
                near(value(text), *tick, 0.01 * step);
                assert!((66.0..=446.0).contains(&scale.at(*tick)), "{values:?}: {tick}");
            }
            let [a, b] = values.map(|v| scale.at(v));
            assert_eq!(values[0] < values[1], a < b, "{values:?} at {a} and {b}");
        }
    }
}

#[test]
fn ticks_of_a_logarithmic_axis_stand_at_their_values() {
    for seed in 0..500_u64 {
        let values = [
            libm::pow(10.0, 9.0 * noise(seed) - 3.0),
            libm::pow(10.0, 9.0 * noise(seed + 999) - 3.0),
        ];
        let scale = Scale::log(values.into_iter(), 0.0, 400.0);
        let ticks = scale.ticks();
        assert!((1..=12).contains(&ticks.len()), "{values:?}: {ticks:?}");
        for pair in ticks.windows(2) {
            let (p, q) = (scale.at(pair[0]), scale.at(pair[1]));
            assert!(p < q && pair[0] < pair[1], "{values:?}: {ticks:?}");
            let middle = scale.at(libm::sqrt(pair[0] * pair[1]));
            close(middle, (p + q) / 2.0);
        }
        for tick in &ticks {
            near(value(&scale.tick_text(*tick)), *tick, 0.01 * tick);
        }
        assert!(values.iter().all(|v| (0.0..=400.0).contains(&scale.at(*v))));
    }
}

#[test]
fn a_trace_is_drawn_at_its_rate_under_its_name() {
    let trace = crate::run::links::trace(&"step:12Mbit/s,48Mbit/s@2s".parse().unwrap()).unwrap();
    let svg = series::capacity_chart("a < b & c", &trace);
    let chart = Chart::read(&svg);
    let d = chart.all("capacity")[0].attribute("d").unwrap();
    let line: Vec<(f64, f64)> = d
        .split(['M', 'L'])
        .filter(|part| !part.is_empty())
        .take(40)
        .map(|p| p.split_once(' ').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    let read: Vec<f64> = line.iter().map(|(_, y)| chart.at(Axis::Y, *y)).collect();
    for (i, rate) in [(3, 12.0), (17, 12.0), (23, 48.0), (37, 48.0)] {
        near(read[i], rate, 0.5);
        near(chart.at(Axis::X, line[i].0), 0.1 * i as f64, 2.0 * chart.rounding(Axis::X));
    }
    assert!(trace_page("a", &trace).contains("4.0 s, mean 30.00 Mbit/s"));
    let svg = trace_svg("a < b & c", &trace);
    assert!(Document::parse(&svg).is_ok() && svg.contains("#e7ebf0"), "its own colours: {svg}");
}

/// A panel of lines with these points.
fn panel_of(log: bool, names: &[&str], points: &[Vec<(f64, f64)>]) -> String {
    let looks = look::looks(names);
    let line = |(look, points): (look::Look, &Vec<(f64, f64)>)| figure::Line {
        look,
        points: points.clone(),
    };
    let lines: Vec<figure::Line> = looks.into_iter().zip(points).map(line).collect();
    figure::panel("x", log, "y", &lines)
}

#[test]
fn a_panel_has_a_line_for_each_scheme_through_its_points() {
    let names = ["cubic", "bbr", "mortise"];
    let of = |k: f64| (1..=5).map(|i| (f64::from(i), k * f64::from(i))).collect::<Vec<_>>();
    // Less than ten times apart, the vertical axis is linear; more, and it is logarithmic.
    for (log, factors, log_y) in [(false, [1.0, 1.2, 1.5], false), (true, [1.0, 3.0, 50.0], true)] {
        let points = factors.map(of);
        let svg = panel_of(log, &names, &points);
        let chart = Chart::read(&svg);
        let lines = chart.all("line");
        assert_eq!((lines.len(), chart.all("marker").len()), (3, 15), "a marker on every point");
        let looks: std::collections::BTreeSet<_> =
            lines.iter().map(|l| (l.attribute("class"), l.attribute("stroke-dasharray"))).collect();
        assert_eq!(looks.len(), 3, "they differ: {looks:?}");
        for (line, drawn) in lines.iter().zip(&points) {
            for ((x, y), (value_x, value_y)) in self::points(*line).iter().zip(drawn) {
                let read = |axis, at: f64, log| {
                    if log { chart.at_log(axis, at) } else { chart.at(axis, at) }
                };
                let (x, y) = (read(Axis::X, *x, log), read(Axis::Y, *y, log_y));
                assert!((x / value_x - 1.0).abs() < 0.01, "{x} is read, {value_x} was drawn");
                assert!((y / value_y - 1.0).abs() < 0.01, "{y} is read, {value_y} was drawn");
            }
        }
    }
}

#[test]
fn a_gap_in_a_panel_breaks_one_line_and_moves_no_axis() {
    let whole = vec![vec![(1.0, 2.0), (2.0, 3.0), (3.0, 8.0)]];
    let broken = vec![vec![(1.0, 2.0), (2.0, f64::NAN), (3.0, 8.0)]];
    let [whole, broken] = [whole, broken].map(|points| panel_of(false, &["cubic"], &points));
    let (a, b) = (Chart::read(&whole), Chart::read(&broken));
    assert_eq!(a.ticks(Axis::Y), b.ticks(Axis::Y));
    let d = |chart: &Chart<'_>| chart.all("line")[0].attribute("d").unwrap().to_owned();
    assert_eq!((d(&a).matches('M').count(), d(&b).matches('M').count()), (1, 2));
    assert!(!broken.contains("NaN"), "{broken}");
}

/// Schemes of a fleet in two panels: rewards by window, and regret of those that have some.
#[test]
fn a_fleet_has_the_same_colours_in_both_panels() {
    let scheme = |name: &str, windows: &[f64], regret: &[f64]| crate::fleet::SchemeResult {
        name: name.to_owned(),
        reward: 1.0,
        late_reward: 1.0,
        to_best: None,
        guess_to_best: None,
        regret_exponent: None,
        regret: regret.to_vec(),
        windows: windows.to_vec(),
        statistics: Vec::new(),
        cross: Vec::new(),
        fallbacks: 0,
    };
    let schemes = vec![
        scheme("learnt", &[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]),
        scheme("start", &[1.0, 1.0, 1.0], &[2.0, 4.0, 6.0]),
        scheme("bbr", &[0.5, 0.5, 0.5], &[]),
    ];
    let service = crate::fleet::ServiceResult {
        service: "games".to_owned(),
        reward: "mean(throughput)".to_owned(),
        schemes,
        close_after: None,
        outage: None,
        verdict: None,
        versus: None,
        learnt: Vec::new(),
        ran: Vec::new(),
        joined: None,
        found: Vec::new(),
    };
    let result = |services| crate::fleet::FleetResult {
        schema: "trimtab.fleet/2",
        version: "1",
        command: String::new(),
        scenario: "games".to_owned(),
        about: String::new(),
        seed: 0,
        seeds: 1,
        aggregates: 1,
        intervals: 72,
        connections: 1,
        baselines_every: 1,
        services,
        paper: Vec::new(),
    };
    let svg = super::fleet::plot(&result(vec![service]));
    let document = Document::parse(&svg).unwrap();
    let drawn = document.descendants().filter(|n| n.attribute("stroke-linejoin").is_some());
    let looks: Vec<_> =
        drawn.map(|n| (n.attribute("stroke").unwrap(), n.attribute("stroke-dasharray"))).collect();
    // Three lines, two of regret, three keys.
    assert_eq!(looks.len(), 8, "{looks:?}");
    assert_eq!(looks[..2], looks[3..5], "the same scheme, the same look");
    assert_eq!(looks[..3], looks[5..], "and so in the legend");
    assert!(looks[0] != looks[1] && looks[1] != looks[2] && looks[0] != looks[2], "{looks:?}");
    for text in ["mean reward", "regret per aggregate", "intervals", "learnt", "start", "bbr"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}: {svg}");
    }
    assert!(Document::parse(&super::fleet::plot(&result(Vec::new()))).is_ok(), "nothing to draw");
}
