//! The frame of a chart: scales, ticks, axes, text, all as inline SVG.
//!
//! Plotters' SVG backend was tried on paper and left: it writes fixed colours and fonts into every
//! element, so one file cannot serve light and dark screens, a printed page, and readers who turn
//! single lines off. What a report needs beyond that is a few linear and logarithmic axes.

use std::fmt::Write;

/// The most points that a line has a marker on each of.
const MARKED_MAX: usize = 24;

/// The plane that a chart is drawn on, in its own units; the page scales it to the screen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Width of the whole chart.
    pub(super) width: f64,
    /// Height of the whole chart.
    pub(super) height: f64,
    /// Left edge of the plane, where the vertical axis stands.
    pub(super) left: f64,
    /// Right edge of the plane.
    pub(super) right: f64,
    /// Upper edge of the plane.
    pub(super) top: f64,
    /// Lower edge of the plane, where the horizontal axis lies.
    pub(super) bottom: f64,
}

impl Frame {
    /// A chart of that size with room for axis labels.
    pub(super) const fn new(width: f64, height: f64) -> Self {
        Self { width, height, left: 66.0, right: width - 14.0, top: 14.0, bottom: height - 46.0 }
    }
}

/// Maps values to positions along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    lo: f64,
    hi: f64,
    log: bool,
    from: f64,
    to: f64,
    has_ticks: bool,
}

impl Scale {
    /// A linear scale over the values, widened to round numbers, from position `from` to `to`.
    pub(super) fn linear(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (lo, hi) = extent(values);
        // Sums of the same numbers in another order differ in their last digits only.
        let is_one = hi - lo <= 1e-9 * lo.abs().max(hi.abs());
        let (lo, hi) = if is_one { (lo - 0.5, hi + 0.5) } else { (lo, hi) };
        let step = nice_step(hi - lo);
        let (lo, hi) = (libm::floor(lo / step) * step, libm::ceil(hi / step) * step);
        Self { lo, hi, log: false, from, to, has_ticks: true }
    }

    /// A linear scale from zero.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        Self::linear(values.chain([0.0]), from, to)
    }

    /// A scale over exactly this range.
    pub(super) fn exact(lo: f64, hi: f64, from: f64, to: f64) -> Self {
        Self { lo, hi, log: false, from, to, has_ticks: true }
    }

    /// The same without ticks and lines of a grid, where something else than numbers stands at the axis.
    pub(super) fn without_ticks(self) -> Self {
        Self { has_ticks: false, ..self }
    }

    /// A logarithmic scale over the positive values, a tenth wider on both sides.
    pub(super) fn log(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (lo, hi) = extent(values.filter(|v| *v > 0.0));
        let (lo, hi) = if lo > 0.0 { (lo / 1.1, hi * 1.1) } else { (0.1, 10.0) };
        // At least a factor of three, or there is no round number to put a tick at.
        let middle = libm::sqrt(lo * hi);
        let half = libm::sqrt(3.0);
        Self {
            lo: lo.min(middle / half),
            hi: hi.max(middle * half),
            log: true,
            from,
            to,
            has_ticks: true,
        }
    }

    /// Where a value lies; values outside are put on the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let v = value.clamp(self.lo, self.hi);
        let share = if self.log {
            libm::log(v / self.lo) / libm::log(self.hi / self.lo)
        } else {
            (v - self.lo) / (self.hi - self.lo)
        };
        self.from + share * (self.to - self.from)
    }

    /// The text of a tick: with as many digits as tell it from its neighbours.
    pub(super) fn tick_text(&self, v: f64) -> String {
        if self.log {
            return tick(v);
        }
        let step = nice_step(self.hi - self.lo);
        // Of 12,000 to 12,400 every tick would be 12k.
        let (unit, letter) = match self.lo.abs().max(self.hi.abs()) {
            most if most >= 1e6 => (1e6, "M"),
            most if most >= 1e4 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let digits = (-libm::floor(libm::log10(step / unit) + 1e-9)).clamp(0.0, 9.0) as usize;
        if digits == 0 { tick(v) } else { format!("{:.digits$}{letter}", v / unit) }
    }

    /// Round values within the range, some five of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.has_ticks {
            return Vec::new();
        }
        if !self.log {
            let step = nice_step(self.hi - self.lo);
            let first = libm::ceil(self.lo / step - 1e-9);
            let count = libm::floor(self.hi / step + 1e-9) - first;
            return (0..=count as u32).map(|i| (first + f64::from(i)) * step).collect();
        }
        let decades = libm::log10(self.hi / self.lo);
        let mantissas: &[f64] = match decades {
            d if d < 1.5 => &[1.0, 2.0, 5.0],
            d if d < 3.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        // Powers of ten that many decades would crowd are left out.
        let each = libm::ceil(decades / 5.0).max(1.0);
        let first = libm::floor(libm::log10(self.lo) / each) * each;
        let last = libm::ceil(libm::log10(self.hi));
        (first as i32..=last as i32)
            .step_by(each as usize)
            .flat_map(|e| mantissas.iter().map(move |m| m * libm::pow(10.0, f64::from(e))))
            .filter(|v| (self.lo..=self.hi).contains(v))
            .collect()
    }
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (lo, hi) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    if lo <= hi { (lo, hi) } else { (0.0, 0.0) }
}

/// 1, 2 or 5 times a power of ten, so that a range holds four to ten steps.
fn nice_step(range: f64) -> f64 {
    let raw = range / 5.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(raw)));
    let factor = match raw / power {
        f if f < 1.5 => 1.0,
        f if f < 3.5 => 2.0,
        f if f < 7.5 => 5.0,
        _ => 10.0,
    };
    factor * power
}

/// An axis: its scale and what it shows.
pub(super) struct Axis<'a> {
    /// Where values lie.
    pub(super) scale: Scale,
    /// What it shows, with the unit.
    pub(super) label: &'a str,
}

/// Opens the SVG and draws grid, axes, ticks and labels. `title` is read aloud and shown on hover.
pub(super) fn open(frame: Frame, title: &str, x: &Axis<'_>, y: &Axis<'_>) -> String {
    let Frame { width, height, left, right, top, bottom } = frame;
    let title = escape(title);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n<g class=\"grid\">"
    );
    for v in x.scale.ticks() {
        let at = x.scale.at(v);
        let _ = write!(svg, "<path d=\"M{at:.1} {top}V{bottom}\"/>");
    }
    for v in y.scale.ticks() {
        let at = y.scale.at(v);
        let _ = write!(svg, "<path d=\"M{left} {at:.1}H{right}\"/>");
    }
    svg += "</g>\n<g class=\"ticks\">";
    for v in x.scale.ticks() {
        let (at, below) = (x.scale.at(v), bottom + 16.0);
        let _ = write!(
            svg,
            "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
            x.scale.tick_text(v)
        );
    }
    for v in y.scale.ticks() {
        let (at, before) = (y.scale.at(v) + 4.0, left - 6.0);
        let _ = write!(
            svg,
            "<text x=\"{before}\" y=\"{at:.1}\" text-anchor=\"end\">{}</text>",
            y.scale.tick_text(v)
        );
    }
    let (middle_x, middle_y, low) = ((left + right) / 2.0, (top + bottom) / 2.0, height - 8.0);
    let _ = write!(
        svg,
        "</g>\n<text class=\"label\" x=\"{middle_x}\" y=\"{low}\" text-anchor=\"middle\">{}</text>\
         <text class=\"label\" transform=\"translate(13 {middle_y}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        escape(x.label),
        escape(y.label)
    );
    svg
}

/// A line through the points; it breaks where a value is not finite.
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    let mut pen_down = false;
    for (x, y) in points {
        if !(x.is_finite() && y.is_finite()) {
            pen_down = false;
            continue;
        }
        let _ = write!(d, "{}{x:.1} {y:.1}", if pen_down { "L" } else { "M" });
        pen_down = true;
    }
    d
}

/// Where the markers of a line stand: on every point of a short line, on five of a long one. Lines that lie
/// on each other show all markers, as the line of each `number` begins elsewhere.
pub(super) fn marked(points: &[(f64, f64)], number: usize) -> Vec<(f64, f64)> {
    let step = if points.len() <= MARKED_MAX { 1 } else { points.len() / 5 };
    let offset = (number % 8) * step / 8;
    let is_drawn = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    points.iter().skip(offset).step_by(step).copied().filter(is_drawn).collect()
}

/// The text of a tick: no digits that say nothing.
pub(super) fn tick(v: f64) -> String {
    match v.abs() {
        0.0 => "0".to_owned(),
        a if a >= 1e6 => format!("{}M", trimmed(v / 1e6, 1)),
        a if a >= 1e4 => format!("{}k", trimmed(v / 1e3, 0)),
        a if a >= 10.0 => trimmed(v, 0),
        a if a >= 1.0 => trimmed(v, 1),
        a if a >= 1e-3 => trimmed(v, 3),
        _ => format!("{v:.0e}"),
    }
}

fn trimmed(v: f64, digits: usize) -> String {
    let text = format!("{v:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Text that is safe between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let s = Scale::from_zero([3.0, 47.0].into_iter(), 0.0, 100.0);
        assert_eq!(s.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        let s = Scale::log([12.0, 900.0].into_iter(), 0.0, 100.0);
        assert_eq!(s.ticks().iter().map(|&v| tick(v)).collect::<Vec<_>>(), ["30", "100", "300"]);
        let s = Scale::log([5.0, 5.0].into_iter(), 0.0, 100.0);
        assert_eq!(s.ticks(), [5.0], "one value still has a tick");
        let s = Scale::log([0.02, 3e6].into_iter(), 0.0, 100.0);
        let texts: Vec<String> = s.ticks().iter().map(|&v| tick(v)).collect();
        assert_eq!(texts, ["1", "100", "10k", "1M"], "many decades have few ticks");
        assert!(s.without_ticks().ticks().is_empty());
        let s = Scale::linear([5.05, 5.10].into_iter(), 0.0, 100.0);
        let texts: Vec<String> = s.ticks().iter().map(|&v| s.tick_text(v)).collect();
        assert_eq!(texts, ["5.05", "5.06", "5.07", "5.08", "5.09", "5.10"]);
        let s = Scale::linear([12_010.0, 12_390.0].into_iter(), 0.0, 100.0);
        let texts: Vec<String> = s.ticks().iter().map(|&v| s.tick_text(v)).collect();
        assert_eq!(texts, ["12.0k", "12.1k", "12.2k", "12.3k", "12.4k"]);
        let s = Scale::linear([2.0].into_iter(), 0.0, 100.0);
        assert!(s.ticks().len() >= 2);
        assert!(!Scale::log(std::iter::empty(), 0.0, 1.0).ticks().is_empty());
    }

    #[test]
    fn positions() {
        let s = Scale::from_zero([10.0].into_iter(), 100.0, 0.0);
        assert_eq!((s.at(0.0), s.at(5.0), s.at(10.0), s.at(99.0)), (100.0, 50.0, 0.0, 0.0));
        let s = Scale { lo: 1.0, hi: 100.0, log: true, from: 0.0, to: 2.0, has_ticks: true };
        assert!((s.at(10.0) - 1.0).abs() < 1e-12);
        assert_eq!(s.at(-4.0), 0.0);
    }

    #[test]
    fn text_is_short_and_safe() {
        let shown = [0.0, 0.25, 1.5, 20.0, 1000.0, 25_000.0, 2.5e6, -3.0].map(tick);
        assert_eq!(shown, ["0", "0.25", "1.5", "20", "1000", "25k", "2.5M", "-3"]);
        assert_eq!(escape("<a b=\"&\">"), "&lt;a b=&quot;&amp;&quot;&gt;");
    }

    #[test]
    fn lines_on_each_other_have_markers_of_their_own() {
        let short = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)];
        assert_eq!(marked(&short, 4), [(0.0, 1.0), (2.0, 3.0)]);
        let long: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i), 0.0)).collect();
        let (a, b) = (marked(&long, 0), marked(&long, 1));
        assert_eq!((a.len(), b.len()), (5, 5));
        assert!(a.iter().all(|point| !b.contains(point)));
    }

    #[test]
    fn a_gap_breaks_the_line() {
        let d = path([(0.0, 0.0), (1.0, f64::NAN), (2.0, 2.0), (3.0, 1.0)].into_iter());
        assert_eq!(d, "M0.0 0.0M2.0 2.0L3.0 1.0");
    }

    #[test]
    fn values_that_differ_by_rounding_only_are_one() {
        let value = 0.1 + 0.2;
        assert_ne!(value, 0.3);
        let s = Scale::linear([0.3, value].into_iter(), 0.0, 100.0);
        assert_eq!(s, Scale { lo: s.lo, hi: s.hi, ..Scale::linear([0.3].into_iter(), 0.0, 100.0) });
        assert!(s.hi - s.lo >= 1.0 && (s.at(value) - s.at(0.3)).abs() < 1e-9, "{s:?}");
    }
}
