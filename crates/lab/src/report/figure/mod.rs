//! Figures of papers, each a file of its own: distributions of experience, means with intervals, tradeoffs,
//! courses over time, and how schemes do along an axis or by how often they choose.
//!
//! [`figure`] draws one, [`write_all`] all that a comparison has. `lines.rs` draws what the report lacks.

mod ellipses;
mod lines;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::cast::{Role, cast};
use super::chart::{Axis, Frame, Scale, marked, open, path};
use super::headline::{duel, merit};
use super::look::{Look, looks};
use super::output::OutputError;
use super::picture::{Format, write};
use super::sheet::{Arrangement, compose};
use super::{distributions, own_qoe, plots, qoe_label, series};
use crate::result::{Comparison, RunRecord, SummaryRow};
use crate::stats::summary::in_order;
use trimtab_steer::scheme::is_bound;

pub use ellipses::Panels;
pub(crate) use ellipses::{moments, normalised};
pub(super) use lines::cumulative;
pub use lines::{Line, panel};

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Mean experience of every scheme, with its 95% interval.
    Qoe,
    /// Paired changes against the best scheme with fixed settings, with 95% intervals.
    Changes,
    /// Distributions, over requests or chunks, of experience and of what it is made of.
    Cdf,
    /// Throughput against delay, and for video bitrate against stalls, with the Pareto front.
    Tradeoff,
    /// Throughput against delay, normalised to the best scheme of each place, with the ellipses of one
    /// standard deviation over the places.
    Ellipses,
    /// Throughput, queue and steering of the first run on a trace over time, up to four schemes.
    Series,
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
    pub const ALL: [(&'static str, Self); 10] = [
        ("qoe", Self::Qoe),
        ("changes", Self::Changes),
        ("cdf", Self::Cdf),
        ("tradeoff", Self::Tradeoff),
        ("ellipses", Self::Ellipses),
        ("series", Self::Series),
        ("axis", Self::Axis),
        ("period", Self::Period),
        ("switches", Self::Switches),
        ("completion", Self::Completion),
    ];

    /// Whether it needs every request or the courses over time, which a comparison keeps on demand.
    pub fn needs_recording(self) -> bool {
        matches!(self, Self::Cdf | Self::Series)
    }
}

/// No figure is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no figure {0:?}: there are qoe, changes, cdf, tradeoff, ellipses, series, axis, period, switches and \
     completion"
)]
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
    /// There is nobody to compare with.
    #[error("the figure `changes` needs two schemes that are no bounds: name another with --cc")]
    NoPair,
    /// Nothing was asked for, or it was not kept.
    #[error("the figure `cdf` needs requests or chunks, one by one: no run kept any")]
    NoUnits,
    /// One place has no spread.
    #[error("the figure `ellipses` needs two runs of a scheme: name more traces, or seeds")]
    NoSpread,
    /// Courses over time were not kept.
    #[error("the figure `series` needs courses over time: no run kept any")]
    NoSeries,
    /// No axis has several values, or several do.
    #[error(
        "the figure `axis` needs one of rtt, buffer, loss, jitter, flows and rivals to have several values, \
         and the others one"
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

/// Schemes whose courses a figure shows; more hide each other.
const COURSES_MAX: usize = 4;

/// What a figure is drawn from: one application.
struct Subject<'a> {
    app: &'a str,
    runs: Vec<&'a RunRecord>,
    /// Best first, bounds last.
    rows: Vec<&'a SummaryRow>,
    cast: Vec<Role>,
    /// The best scheme, steered if any is, and the best one with fixed settings.
    pair: Option<(&'a str, &'a str)>,
    /// The scenario names the QoE model, so that is what the user asks about.
    own_qoe: bool,
}

impl<'a> Subject<'a> {
    fn new(comparison: &'a Comparison, app: &'a str) -> Self {
        let mut rows: Vec<&SummaryRow> =
            comparison.summary.iter().filter(|row| row.app == app).collect();
        rows.sort_by(|a, b| {
            is_bound(&a.cc).cmp(&is_bound(&b.cc)).then(merit(b).total_cmp(&merit(a)))
        });
        Self {
            app,
            runs: comparison.runs.iter().filter(|r| r.app == app).collect(),
            rows,
            cast: cast(&comparison.summary),
            pair: duel(&comparison.summary, app)
                .map(|duel| (duel.ahead.cc.as_str(), duel.behind.cc.as_str())),
            own_qoe: own_qoe(comparison, app),
        }
    }

    /// The looks of lines by their names; those of schemes are the cast's.
    fn looks(&self, names: &[String]) -> Vec<Look> {
        let among: Vec<&str> = self.cast.iter().map(|role| role.cc.as_str()).collect();
        let others = names.iter().map(String::as_str).filter(|name| !among.contains(name));
        let all: Vec<&str> = among.iter().copied().chain(others).collect();
        let looks = looks(&all);
        let of = |name: &String| all.iter().position(|other| other == name).map(|i| looks[i]);
        names.iter().filter_map(of).collect()
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
        if self.goes_by_time() { "mean completion time, ms" } else { self.qoe_label() }
    }

    fn qoe_label(&self) -> &'static str {
        qoe_label(self.app, self.own_qoe)
    }
}

/// What a sheet is composed of: the names of its lines, its panels, and how these stand.
struct Drawn {
    names: Vec<String>,
    panels: Vec<String>,
    arrangement: Arrangement,
}

/// Draws a figure of a comparison's first application, as an SVG.
///
/// # Errors
/// The comparison does not have what the figure shows.
pub fn figure(kind: Kind, comparison: &Comparison) -> Result<String, FigureError> {
    figure_in(kind, comparison, &Panels::new())
}

/// As [`figure`], with the traces of the figure `ellipses` in panels of their own.
///
/// # Errors
/// The comparison does not have what the figure shows.
pub fn figure_in(
    kind: Kind,
    comparison: &Comparison,
    panels: &Panels,
) -> Result<String, FigureError> {
    let app = comparison.runs.first().map_or("", |run| run.app.as_str());
    of_subject(kind, &Subject::new(comparison, app), None, panels)
}

/// Writes every figure that a comparison has into a folder, as SVG, PDF and PNG: `APP-KIND.svg`, and a
/// course over time for each of its first traces, `APP-series-TRACE.svg`.
///
/// # Errors
/// The system refuses; figures before that are written.
pub fn write_all(folder: &Path, comparison: &Comparison) -> Result<(), OutputError> {
    std::fs::create_dir_all(folder)
        .map_err(|cause| OutputError { path: folder.to_owned(), cause })?;
    let write = |name: &str, svg: &str| {
        let file = |end: &str| folder.join(format!("{}.{end}", file_name(name)));
        Format::ALL.iter().try_for_each(|(end, _)| write(&file(end), svg))
    };
    for app in in_order(comparison.runs.iter().map(|run| run.app.as_str())) {
        let subject = Subject::new(comparison, app);
        for (name, kind) in Kind::ALL.iter().filter(|(_, kind)| *kind != Kind::Series) {
            // What the comparison does not have is no figure of it.
            if let Ok(svg) = of_subject(*kind, &subject, None, &Panels::new()) {
                write(&format!("{app}-{name}"), &svg)?;
            }
        }
        for trace in series_traces(&subject) {
            if let Ok(svg) = of_subject(Kind::Series, &subject, Some(trace), &Panels::new()) {
                write(&format!("{app}-series-{trace}"), &svg)?;
            }
        }
    }
    Ok(())
}

/// A name as that of a file: letters, digits and what is harmless; anything else is a hyphen.
fn file_name(name: &str) -> String {
    let harmless = |c: char| if c.is_alphanumeric() || "-_.+=@".contains(c) { c } else { '-' };
    name.chars().map(harmless).collect()
}

/// The first traces of which a course over time was kept.
fn series_traces<'a>(subject: &Subject<'a>) -> Vec<&'a str> {
    let with = subject.runs.iter().filter(|run| run.series.is_some());
    let mut traces = in_order(with.map(|run| run.trace.as_str()));
    traces.truncate(super::TRACES_MAX);
    traces
}

fn of_subject(
    kind: Kind,
    subject: &Subject<'_>,
    trace: Option<&str>,
    panels: &Panels,
) -> Result<String, FigureError> {
    let drawn = match kind {
        Kind::Qoe => Drawn {
            // Names stand at their rows.
            names: Vec::new(),
            panels: vec![plots::means(
                &format!("{}: mean experience", subject.app),
                subject.qoe_label(),
                &subject.cast,
                &subject.rows,
            )],
            arrangement: Arrangement::Row,
        },
        Kind::Changes => changes(subject)?,
        Kind::Cdf => cdf(subject)?,
        Kind::Tradeoff => tradeoff(subject),
        Kind::Ellipses => ellipses::ellipses(subject, panels)?,
        Kind::Series => courses(subject, trace)?,
        Kind::Axis => lines::along(subject)?,
        Kind::Period => lines::by_period(subject)?,
        Kind::Switches => lines::switches(subject)?,
        Kind::Completion => lines::completion(subject)?,
    };
    let looks = subject.looks(&drawn.names);
    let legend: Vec<(String, Look)> = drawn.names.into_iter().zip(looks).collect();
    Ok(compose(&legend, &drawn.panels, drawn.arrangement))
}

fn changes(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let (_, against) = subject.pair.ok_or(FigureError::NoPair)?;
    let title = format!("{}: paired changes", subject.app);
    let panel = plots::changes(&title, &subject.cast, &subject.rows, against);
    Ok(Drawn { names: Vec::new(), panels: vec![panel], arrangement: Arrangement::Row })
}

fn cdf(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let plots = distributions(subject.app, subject.own_qoe);
    let panels: Vec<String> = plots
        .iter()
        .filter_map(|plot| {
            let samples = plot.samples(&subject.cast, &subject.runs);
            let title = format!("{}: {}", subject.app, plot.label);
            let has_any = samples.iter().any(|(_, s)| !s.values().is_empty());
            has_any.then(|| plots::cdf(&title, plot.label, plot.log, &samples))
        })
        .collect();
    if panels.is_empty() {
        return Err(FigureError::NoUnits);
    }
    let names = in_order(subject.runs.iter().map(|run| run.cc.as_str()));
    let names = names.into_iter().map(str::to_owned).collect();
    Ok(Drawn { names, panels, arrangement: Arrangement::Row })
}

fn tradeoff(subject: &Subject<'_>) -> Drawn {
    let means = plots::means_of(&subject.rows, &subject.runs);
    let panel = |(what, name): (&plots::Tradeoff, &str)| {
        plots::tradeoff(&format!("{}: {name}", subject.app), what, &subject.cast, &means)
    };
    let panels = [
        (&plots::RATE_AND_DELAY, "throughput and delay"),
        (&plots::BITRATE_AND_STALLS, "bitrate and stalls"),
    ];
    // Names stand at their markers.
    let panels = panels.into_iter().filter_map(panel).collect();
    Drawn { names: Vec::new(), panels, arrangement: Arrangement::Row }
}

/// The pair that the headline compares, and then the best others.
fn courses(subject: &Subject<'_>, trace: Option<&str>) -> Result<Drawn, FigureError> {
    let traces = series_traces(subject);
    let trace = trace.or(traces.first().copied()).ok_or(FigureError::NoSeries)?;
    let pair = subject.pair.into_iter().flat_map(|(ahead, behind)| [ahead, behind]);
    let real = subject.rows.iter().map(|row| row.cc.as_str()).filter(|cc| !is_bound(cc));
    let bounds = subject.rows.iter().map(|row| row.cc.as_str()).filter(|cc| is_bound(cc));
    let mut shown = in_order(pair.chain(real).chain(bounds));
    shown.truncate(COURSES_MAX);
    let Some((_, group)) = series::group(&subject.cast, &subject.runs, trace) else {
        return Err(FigureError::NoSeries);
    };
    let group: Vec<(&Role, &RunRecord)> =
        group.into_iter().filter(|(role, _)| shown.contains(&role.cc.as_str())).collect();
    let panels = series::charts(&format!("{} on {trace}", subject.app), &group, &shown);
    // In the order of the cast, as in all figures of the comparison.
    let names = group.iter().map(|(role, _)| role.cc.clone()).collect();
    Ok(Drawn { names, panels, arrangement: Arrangement::Column })
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests;
