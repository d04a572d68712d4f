//! Figures of papers as SVG files of their own: how schemes do along an axis or by how often they choose, what switches
//! cost, and completion times as distributions over the runs.

use std::fmt::{self, Write};
use std::str::FromStr;

use trimtab_units::Duration;

use super::cast::{Role, cast};
use super::chart::{Axis, Frame, Scale, escape, open, path};
use crate::result::{Comparison, RctRecord, RunRecord, SwitchRecord};
use crate::scenario::Scenario;
use crate::stats::Sorted;
use crate::stats::summary::in_order;

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The QoE where the scenario names a model, else the mean completion time, over the values of the
    /// axis of the grid that has several.
    Axis,
    /// The same over how often schemes choose (`every=TIME`).
    Period,
    /// Distributions of the loss in the second after a switch, and of the time until the flow had settled.
    Switches,
    /// Distributions, over the runs, of the mean, the median and the 90th percentile of completion times.
    Completion,
}

impl Kind {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("axis", Self::Axis),
        ("period", Self::Period),
        ("switches", Self::Switches),
        ("completion", Self::Completion),
    ];
}

/// No figure is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no figure {0:?}: there are axis, period, switches and completion")]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, kind)| *kind).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// Why a comparison has no such figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    /// No axis has several values, or several do.
    #[error(
        "the figure `axis` needs one of rtt, buffer, loss, jitter and flows to have several values, and the others one"
    )]
    NoAxis,
    /// No schemes differ in how often they choose.
    #[error(
        "the figure `period` needs schemes that differ in how often they choose, as floo:every=3s and floo:every=12s"
    )]
    NoPeriods,
    /// Nothing switches.
    #[error("the figure `switches` needs schemes that switch algorithms, as switch:cubic,bbr")]
    NoSwitches,
    /// Nothing has requests.
    #[error("the figure `completion` needs an application with requests, as web or download")]
    NoRequests,
}

/// For lines that are no schemes of a comparison: dark enough on white, and told apart by those who
/// see few colours (Okabe and Ito, "Color Universal Design", 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a08000", "#56b4e9", "#000000", "#7f7f7f"];
/// The colours of `style.css` for light screens, by class: a scheme looks alike in the report and here.
const CLASSES: [(&str, &str); 9] = [
    ("steered0", "#d1410c"),
    ("steered1", "#b8860b"),
    ("rule0", "#0067a8"),
    ("rule1", "#00805f"),
    ("rule2", "#8e4a92"),
    ("rule3", "#5b6b00"),
    ("rule4", "#3c8dd0"),
    ("rule5", "#7a5230"),
    ("bound", "#78818c"),
];
/// Of a panel.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
/// Of a row of the legend, below the panels.
const LINE: f64 = 18.0;
/// Where the legend begins, and how far two of its entries are apart.
const MARGIN: f64 = 52.0;
/// Of a letter of the legend, rounded up.
const LETTER: f64 = 6.6;
const STYLE: &str =
    ".grid path{stroke:#ddd;fill:none}.ticks text,.label{fill:#333}.line{fill:none;stroke-width:2}";

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pen {
    colour: &'static str,
    /// Empty for a solid line.
    dash: &'static str,
}

impl Pen {
    /// That of the line of this number; when all colours are taken, dashed.
    pub fn numbered(number: usize) -> Self {
        let dash = if number < COLOURS.len() { "" } else { "5 3" };
        Self { colour: COLOURS[number % COLOURS.len()], dash }
    }

    /// That of a scheme in the report.
    fn of(role: &Role) -> Self {
        let class = CLASSES.iter().find(|(class, _)| *class == role.color);
        Self { colour: class.map_or("#000000", |(_, colour)| colour), dash: role.dash }
    }

    fn stroke(self) -> String {
        let dash = match self.dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        format!("stroke=\"{}\"{dash}", self.colour)
    }
}

/// A line of a panel.
#[derive(Clone, Debug)]
pub struct Line {
    /// How it is drawn.
    pub pen: Pen,
    /// It breaks where a number is not finite.
    pub points: Vec<(f64, f64)>,
}

/// What a figure is drawn from: the runs of one application.
struct Subject<'a> {
    runs: Vec<&'a RunRecord>,
    cast: Vec<Role>,
    /// The scenario names the QoE model, so that is what the user asks about.
    own_qoe: bool,
}

impl Subject<'_> {
    /// The pen of a scheme; of a name that is no scheme's, that of its number.
    fn pen(&self, name: &str, number: usize) -> Pen {
        self.cast.iter().find(|role| role.cc == name).map_or(Pen::numbered(number), Pen::of)
    }

    /// Whether a run is worth its mean completion time in ms, else its mean experience.
    fn goes_by_time(&self) -> bool {
        !self.own_qoe && self.runs.iter().all(|run| run.rct_ms.is_some())
    }

    /// What a run is worth in a figure.
    fn worth(&self, run: &RunRecord) -> f64 {
        let time = run.rct_ms.as_ref().filter(|_| self.goes_by_time());
        time.map_or(run.qoe.mean, |rct| rct.mean)
    }

    fn worth_label(&self) -> &'static str {
        if self.goes_by_time() { "mean completion time, ms" } else { "QoE" }
    }
}

/// Draws a figure of a comparison's first application.
///
/// # Errors
/// The comparison does not have what the figure shows.
pub fn figure(kind: Kind, comparison: &Comparison) -> Result<String, FigureError> {
    let app = comparison.runs.first().map_or("", |run| run.app.as_str());
    // The record of a comparison that was not made by a scenario has none.
    let scenario = Scenario::parse(&comparison.provenance.scenario).ok();
    let of_app = scenario.iter().flat_map(|s| &s.app).find(|a| a.label() == app);
    let subject = Subject {
        runs: comparison.runs.iter().filter(|r| r.app == app).collect(),
        cast: cast(&comparison.summary),
        own_qoe: of_app.is_some_and(|app| app.qoe.is_some()),
    };
    let (names, panels) = match kind {
        Kind::Axis => along(&subject)?,
        Kind::Period => by_period(&subject)?,
        Kind::Switches => switches(&subject)?,
        Kind::Completion => completion(&subject)?,
    };
    let legend: Vec<(String, Pen)> = names
        .into_iter()
        .enumerate()
        .map(|(i, name)| (name.clone(), subject.pen(&name, i)))
        .collect();
    Ok(compose(&legend, &panels))
}

/// Panels side by side, with one legend of their lines below.
pub fn compose(legend: &[(String, Pen)], panels: &[String]) -> String {
    let width = WIDTH * panels.len() as f64;
    // Entries follow each other like words; a row ends where the next one does not fit.
    let (mut x, mut y) = (MARGIN, HEIGHT + 8.0);
    let mut keys = String::new();
    for (name, pen) in legend {
        let length = 32.0 + LETTER * name.chars().count() as f64;
        if x > MARGIN && x + length > width {
            (x, y) = (MARGIN, y + LINE);
        }
        let (end, text, stroke) = (x + 24.0, x + 32.0, pen.stroke());
        let _ = writeln!(
            keys,
            "<path class=\"line\" {stroke} d=\"M{x:.1} {y}H{end:.1}\"/><text x=\"{text:.1}\" y=\"{}\">{}</text>",
            y + 4.0,
            escape(name)
        );
        x += length + 18.0;
    }
    let height = y + LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let x = WIDTH * i as f64;
        let _ = writeln!(svg, "<g transform=\"translate({x} 0)\">{panel}</g>");
    }
    svg + &keys + "</svg>\n"
}

/// The names of the lines, and the panels.
type Drawn = (Vec<String>, Vec<String>);

/// A quantity of a run's place in the grid, with its unit.
type Place = (&'static str, fn(&RunRecord) -> f64);

const PLACES: [Place; 5] = [
    ("base round-trip time, ms", |run| run.cell.rtt_ms),
    ("buffer, KB", |run| run.cell.buffer_bytes as f64 / 1e3),
    ("random loss, %", |run| run.cell.loss * 100.0),
    ("jitter, ms", |run| run.cell.jitter_ms),
    ("flows", |run| f64::from(run.cell.flows)),
];

fn along(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    let has_several = |place: &Place| {
        runs.iter().any(|run| runs.first().is_some_and(|first| place.1(run) != place.1(first)))
    };
    // A buffer in bandwidth-delay products follows the round-trip time.
    let mut several: Vec<Place> = PLACES.into_iter().filter(has_several).collect();
    if several.len() == 2 && several[0].0 == PLACES[0].0 && several[1].0 == PLACES[1].0 {
        several.pop();
    }
    let [(label, at)] = several[..] else { return Err(FigureError::NoAxis) };
    let names = names(runs.iter().map(|run| run.cc.as_str()));
    let lines = names.iter().enumerate().map(|(i, cc)| {
        let own = runs.iter().filter(|run| run.cc == *cc);
        let points = means(own.map(|run| (at(run), subject.worth(run))));
        Line { pen: subject.pen(cc, i), points }
    });
    let lines: Vec<Line> = lines.collect();
    Ok((names, vec![panel(label, false, subject.worth_label(), &lines)]))
}

fn by_period(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    // What a scheme is called without its period, and the period in seconds.
    let parts = |cc: &str| -> Option<(String, f64)> {
        let every = cc.split(':').find_map(|part| part.strip_prefix("every="))?;
        let seconds = every.parse::<Duration>().ok()?.as_secs_f64();
        Some((cc.replacen(&format!(":every={every}"), "", 1), seconds))
    };
    let with: Vec<(String, f64, f64)> = runs
        .iter()
        .filter_map(|run| parts(&run.cc).map(|(name, seconds)| (name, seconds, subject.worth(run))))
        .collect();
    let mut names = names(with.iter().map(|(name, ..)| name.as_str()));
    let of = |name: &str| {
        means(with.iter().filter(|(n, ..)| n == name).map(|(_, seconds, worth)| (*seconds, *worth)))
    };
    names.retain(|name| of(name).len() > 1);
    if names.is_empty() {
        return Err(FigureError::NoPeriods);
    }
    let mut lines: Vec<Line> = names
        .iter()
        .enumerate()
        .map(|(i, name)| Line { pen: subject.pen(name, i), points: of(name) })
        .collect();
    // Who does not choose is level.
    let ends = || lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let (least, most) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
    for cc in in_order(runs.iter().map(|run| run.cc.as_str())) {
        if parts(cc).is_none() {
            let own = runs.iter().filter(|run| run.cc == cc);
            let level = means(own.map(|run| (0.0, subject.worth(run))))[0].1;
            let points = vec![(least, level), (most, level)];
            lines.push(Line { pen: subject.pen(cc, names.len()), points });
            names.push(cc.to_owned());
        }
    }
    Ok((names, vec![panel("selection period, s", true, subject.worth_label(), &lines)]))
}

fn switches(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    let names =
        names(runs.iter().filter(|run| !run.switches.is_empty()).map(|run| run.cc.as_str()));
    if names.is_empty() {
        return Err(FigureError::NoSwitches);
    }
    let distribution = |value: fn(&SwitchRecord) -> Option<f64>| -> Vec<Line> {
        let of = |(i, cc): (usize, &String)| {
            let own = runs.iter().filter(|run| run.cc == *cc).flat_map(|run| &run.switches);
            let sorted = Sorted::new(own.filter_map(value));
            let point = |i: u32| Some((sorted.percentile(f64::from(i) / 2.0)?, f64::from(i) / 2.0));
            Line { pen: subject.pen(cc, i), points: (0..=200).filter_map(point).collect() }
        };
        names.iter().enumerate().map(of).collect()
    };
    let losses = distribution(|switch| Some(switch.loss_ratio * 100.0));
    let label = "% of switches at or below";
    let mut panels = vec![panel("lost in the second after a switch, %", false, label, &losses)];
    // Who never settles counts with the whole turn.
    let settled = distribution(|switch| {
        switch.settles.map(|_| switch.settled_ms.unwrap_or(switch.turn_ms) / 1e3)
    });
    if settled.iter().any(|line| !line.points.is_empty()) {
        panels.push(panel("until the flow had settled, s", false, label, &settled));
    }
    Ok((names, panels))
}

/// What sums up the completion times of a run, with what it is called.
type Summary = (&'static str, fn(&RctRecord) -> f64);

fn completion(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    let names = names(runs.iter().filter(|run| run.rct_ms.is_some()).map(|run| run.cc.as_str()));
    if names.is_empty() {
        return Err(FigureError::NoRequests);
    }
    let distribution = |(label, value): Summary| {
        let of = |(i, cc): (usize, &String)| {
            let own = runs.iter().filter(|run| run.cc == *cc);
            let sorted = Sorted::new(own.filter_map(|run| run.rct_ms.as_ref().map(value)));
            let point = |i: u32| Some((sorted.percentile(f64::from(i) / 2.0)?, f64::from(i) / 2.0));
            Line { pen: subject.pen(cc, i), points: (0..=200).filter_map(point).collect() }
        };
        let lines: Vec<Line> = names.iter().enumerate().map(of).collect();
        panel(label, true, "% of runs at or below", &lines)
    };
    let panels: [Summary; 3] = [
        ("mean completion time of a run, ms", |rct| rct.mean),
        ("its median, ms", |rct| rct.p50),
        ("its 90th percentile, ms", |rct| rct.p90),
    ];
    let panels = panels.into_iter().map(distribution).collect();
    Ok((names, panels))
}

fn names<'a>(of: impl Iterator<Item = &'a str>) -> Vec<String> {
    in_order(of).into_iter().map(str::to_owned).collect()
}

/// The mean of the second numbers for each of the first, in ascending order.
fn means(samples: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut samples: Vec<(f64, f64)> = samples.collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |same: &[(f64, f64)]| {
        (same[0].0, same.iter().map(|(_, y)| y).sum::<f64>() / same.len() as f64)
    };
    samples.chunk_by(|a, b| a.0 == b.0).map(of).collect()
}

/// A panel; its vertical axis is logarithmic where values differ by more than ten times.
pub fn panel(label: &str, log: bool, y_label: &str, lines: &[Line]) -> String {
    let frame = Frame::new(WIDTH, HEIGHT);
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let (xs, ys) = (|| points().map(|(x, _)| x), || points().map(|(_, y)| y));
    let (least, most) =
        (ys().fold(f64::INFINITY, f64::min), ys().fold(f64::NEG_INFINITY, f64::max));
    let scale = if log {
        Scale::log(xs(), frame.left, frame.right)
    } else {
        Scale::from_zero(xs(), frame.left, frame.right)
    };
    let x = Axis { scale, label };
    let scale = if least > 0.0 && most > 10.0 * least {
        Scale::log(ys(), frame.bottom, frame.top)
    } else {
        Scale::linear(ys(), frame.bottom, frame.top)
    };
    let y = Axis { scale, label: y_label };
    // Within another drawing it would fill all of that.
    let size = format!("<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" ");
    let mut svg = open(frame, label, &x, &y).replacen("<svg ", &size, 1);
    for line in lines {
        let stroke = line.pen.stroke();
        let drawn = path(line.points.iter().map(|(px, py)| (x.scale.at(*px), y.scale.at(*py))));
        let _ = writeln!(svg, "<path class=\"line\" {stroke} d=\"{drawn}\"/>");
    }
    svg + "</svg>"
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::run::Recording;
    use crate::run::pool::Effort;
    use crate::scenario::Scenario;

    fn comparison(text: &str) -> Comparison {
        let scenario = Scenario::parse(text).unwrap();
        let effort = Effort { jobs: None, quiet: true };
        compare(&scenario, effort, Recording::default(), "x", &crate::run::simulator::Simulator)
            .unwrap()
    }

    fn lines(svg: &str) -> usize {
        svg.matches("<path class=\"line\"").count()
    }

    #[test]
    fn a_line_for_each_scheme_over_the_axis() {
        let c = comparison(
            "cc = [\"cubic\", \"bbr\"]\ntraces = [\"constant:8Mbit/s\"]\njitter = [\"0ms\", \"5ms\", \"20ms\"]\nduration = \"4s\"\n[[app]]\nkind = \"download\"\n",
        );
        let svg = figure(Kind::Axis, &c).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        // A line and its key each.
        assert_eq!(lines(&svg), 4, "{svg}");
        assert!(svg.contains("jitter, ms") && svg.contains("mean completion time, ms"));
        assert!(svg.contains(">cubic</text>") && svg.contains(">bbr</text>"));
        let own = c.runs.iter().filter(|run| run.cc == "bbr");
        let points = means(own.map(|run| (run.cell.jitter_ms, run.rct_ms.unwrap().mean)));
        assert_eq!(points.iter().map(|p| p.0).collect::<Vec<_>>(), [0.0, 5.0, 20.0]);
        assert!(points[2].1 > points[0].1, "late packets cost: {points:?}");
        let svg = figure(Kind::Completion, &c).unwrap();
        assert_eq!(lines(&svg), 8, "two lines in each of three panels, and their keys: {svg}");
        assert!(svg.contains("its 90th percentile, ms") && svg.contains("% of runs at or below"));
        for kind in [Kind::Period, Kind::Switches] {
            assert!(figure(kind, &c).unwrap_err().to_string().contains(&format!("`{kind}` needs")));
        }
    }

    #[test]
    fn an_own_qoe_is_what_the_axis_shows() {
        let c = comparison(
            "cc = [\"cubic\", \"mortise\", \"omniscient\"]\ntraces = [\"constant:8Mbit/s\"]\nrtt = [\"20ms\", \"40ms\"]\nduration = \"3s\"\n[[app]]\nkind = \"download\"\nqoe = \"T - D\"\n",
        );
        let svg = figure(Kind::Axis, &c).unwrap();
        assert!(svg.contains(">QoE</text>") && !svg.contains("completion time"), "{svg}");
    }

    /// A reader who looks from the report to the figure finds a scheme by its colour.
    #[test]
    fn schemes_look_as_in_the_report() {
        let style = include_str!("style.css");
        for (class, colour) in CLASSES {
            assert!(style.contains(&format!("--{class}: {colour};")), "{class} is not {colour}");
        }
        let c = comparison(
            "cc = [\"cubic\", \"mortise\", \"omniscient\"]\ntraces = [\"constant:8Mbit/s\"]\nrtt = [\"20ms\", \"40ms\"]\nduration = \"3s\"\n[[app]]\nkind = \"download\"\n",
        );
        let svg = figure(Kind::Axis, &c).unwrap();
        for colour in ["#0067a8", "#d1410c", "#78818c"] {
            assert_eq!(svg.matches(&format!("stroke=\"{colour}\"")).count(), 2, "{colour}: {svg}");
        }
    }

    #[test]
    fn the_legend_wraps_like_words() {
        let legend: Vec<(String, Pen)> =
            (0..9).map(|i| (format!("copa:delta=0.0{i}"), Pen::numbered(i))).collect();
        let svg = compose(&legend, &["<svg/>".to_owned()]);
        let place = |text: &str| -> (f64, f64) {
            let at = svg.find(&format!(">{text}</text>")).unwrap();
            let tag = &svg[svg[..at].rfind("<text").unwrap()..at];
            let of = |name: &str| {
                let from = tag.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
                tag[from..].split('"').next().unwrap().parse().unwrap()
            };
            (of("x"), of("y"))
        };
        let places: Vec<(f64, f64)> = legend.iter().map(|(name, _)| place(name)).collect();
        assert!(places.iter().all(|(x, _)| x + 15.0 * LETTER <= WIDTH), "{places:?}");
        assert_eq!(places[0].1, places[1].1, "the second stands next to the first");
        assert!(places[8].1 > places[0].1, "nine do not fit one row");
    }

    #[test]
    fn periods_are_told_from_names() {
        let c = comparison(
            "cc = [\"cubic\", \"select:power:every=1s\", \"select:power:every=2s\", \"floo:every=1s\"]\ntraces = [\"constant:8Mbit/s\"]\nduration = \"6s\"\n[[app]]\nkind = \"web\"\n",
        );
        let svg = figure(Kind::Period, &c).unwrap();
        // The one that has a single period is left out, and CUBIC is level.
        assert_eq!(lines(&svg), 4, "{svg}");
        assert!(svg.contains(">select:power</text>") && svg.contains(">cubic</text>"));
        assert!(!svg.contains("floo") && svg.contains("selection period, s"));
        assert_eq!(figure(Kind::Axis, &c), Err(FigureError::NoAxis));
    }

    #[test]
    fn switches_have_two_distributions_of_bulk_transfers() {
        let c = comparison(
            "cc = [\"switch:cubic,bbr:every=8s\", \"switch:cubic,bbr:every=8s:part\", \"cubic\"]\ntraces = [\"constant:8Mbit/s\"]\nduration = \"40s\"\n[[app]]\nkind = \"bulk\"\n[[app]]\nkind = \"web\"\n",
        );
        let svg = figure(Kind::Switches, &c).unwrap();
        assert_eq!(lines(&svg), 2 * 2 + 2, "two panels and the key: {svg}");
        assert_eq!(svg.matches("<svg width=\"460\" height=\"300\" viewBox").count(), 2, "{svg}");
        assert!(svg.contains("lost in the second after") && svg.contains("had settled, s"));
    }
}
