//! The courses of δ around a step, as SVG: a panel for each step and application, two in a row.

use std::fmt::Write;

use trimtab_lab::result::Series;

use crate::Step;
use crate::oracle::Oracle;

/// A course and who made it.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) series: Series,
}

pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) step: Step,
    pub(crate) oracle: Oracle,
    pub(crate) lines: Vec<Line>,
}

/// The size of a panel and of the plane in it, in the units of the drawing.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = HEIGHT - 36.0;
const COLUMNS: usize = 2;
/// What is drawn: seconds before and after the step, and the range of δ.
const BEFORE: f64 = 3.0;
const AFTER: f64 = 9.0;
const DELTAS: (f64, f64) = (0.01, 1.0);
const TICKS: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
const COLOURS: [&str; 2] = ["#1565c0", "#c62828"];

/// The whole drawing.
pub(crate) fn svg(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (WIDTH * COLUMNS as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = (WIDTH * (i % COLUMNS) as f64, HEIGHT * (i / COLUMNS) as f64);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">{}</g>", draw(panel));
    }
    svg + "</svg>\n"
}

fn across(after: f64) -> f64 {
    LEFT + (after + BEFORE) / (AFTER + BEFORE) * (RIGHT - LEFT)
}

fn up(delta: f64) -> f64 {
    let (low, high) = DELTAS;
    let share = libm::log(delta.clamp(low, high) / low) / libm::log(high / low);
    BOTTOM - share * (BOTTOM - TOP)
}

fn draw(panel: &Panel) -> String {
    let Panel { title, step, oracle, lines } = panel;
    let (low, high) = oracle.as_good;
    let from = across(0.0);
    let mut svg = String::new();
    let (width, middle) = (RIGHT - from, f64::midpoint(LEFT, RIGHT));
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"18\" text-anchor=\"middle\" font-size=\"12\">{title}</text>\n\
         <rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"#e8f0e8\"/>",
        up(high),
        up(low) - up(high)
    );
    for delta in TICKS {
        let y = up(delta);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{delta}</text>",
            LEFT - 5.0,
            y + 4.0
        );
    }
    for second in [-3.0, 0.0, 3.0, 6.0, 9.0] {
        let x = across(second);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{second} s</text>",
            BOTTOM + 15.0
        );
    }
    let best = up(oracle.best);
    let _ = writeln!(
        svg,
        "<path d=\"M{from:.1} {TOP}V{BOTTOM}\" stroke=\"#888\"/>\
         <path d=\"M{from:.1} {best:.1}H{RIGHT}\" stroke=\"#2e7d32\" stroke-dasharray=\"5 3\"/>\n\
         <text x=\"12\" y=\"{:.1}\">δ</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#2e7d32\">oracle, and what is as good</text>",
        f64::midpoint(TOP, BOTTOM),
        RIGHT,
        BOTTOM + 29.0
    );
    for (i, (line, colour)) in lines.iter().zip(COLOURS).enumerate() {
        let x = LEFT + 90.0 * i as f64;
        let _ = writeln!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{x}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            path(&line.series, step.at.as_secs_f64()),
            BOTTOM + 29.0,
            line.name
        );
    }
    svg
}

/// The line of δ; it breaks where there is none.
fn path(series: &Series, step: f64) -> String {
    let mut d = String::new();
    let mut pen_down = false;
    for (i, delta) in series.delta.iter().enumerate() {
        let after = (i + 1) as f64 * series.bin_ms / 1000.0 - step;
        if !(-BEFORE..=AFTER).contains(&after) || !delta.is_finite() {
            pen_down = false;
            continue;
        }
        let _ =
            write!(d, "{}{:.1} {:.1}", if pen_down { "L" } else { "M" }, across(after), up(*delta));
        pen_down = true;
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lie_within_their_panel_and_break() {
        let delta = vec![0.5, 0.5, f64::NAN, 0.05, 5.0];
        let series = Series { bin_ms: 1000.0, delta, ..Series::default() };
        // The first bin ends 4 s before the step.
        let d = path(&series, 5.0);
        assert_eq!(d.matches('M').count(), 2, "{d}");
        assert!(d.ends_with(&format!("L{:.1} {TOP:.1}", across(0.0))), "{d}");
    }
}
