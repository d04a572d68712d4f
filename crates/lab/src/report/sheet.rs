//! A figure as an SVG of its own: panels next to or below each other, one legend below them all.
//!
//! Panels come as the report draws them, with classes. On a sheet, attributes stand in their place
//! (`attributes`): word processors, LaTeX and `picture/` read those and no style sheets.

use std::fmt::Write;

use super::chart::escape;
use super::look::{Look, on_white};
use super::picture::text_width;

/// How panels stand on a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Next to each other.
    Row,
    /// Below each other.
    Column,
}

/// Of all text, in the sheet's units.
const FONT_SIZE: f64 = 11.0;
/// Height of a row of the legend.
const ROW: f64 = 19.0;
/// Where rows of the legend begin and how far from the right edge they end.
const MARGIN: f64 = 24.0;
/// Of the piece of line in the legend: the longest dash pattern shows once.
const KEY: f64 = 40.0;
/// Between two entries of the legend.
const GAP: f64 = 20.0;
/// Of a marker on a line, as a share of its full size.
pub(super) const MARK: f64 = 0.62;

/// Panels with one legend of their lines below. Each panel is an `<svg>` with a `viewBox`.
pub fn compose(legend: &[(String, Look)], panels: &[String], arrangement: Arrangement) -> String {
    let sizes: Vec<(f64, f64)> = panels.iter().map(|panel| size(panel)).collect();
    let sum = |of: fn(&(f64, f64)) -> f64| sizes.iter().map(of).sum::<f64>();
    let most = |of: fn(&(f64, f64)) -> f64| sizes.iter().map(of).fold(0.0, f64::max);
    let (width, bottom) = match arrangement {
        Arrangement::Row => (sum(|s| s.0), most(|s| s.1)),
        Arrangement::Column => (most(|s| s.0), sum(|s| s.1)),
    };
    let marked = panels.iter().any(|panel| panel.contains("class=\"marker"));
    let (keys, height) = keys(legend, marked, width, bottom);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" \
         font-size=\"{FONT_SIZE}\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut at = 0.0;
    for (panel, (own_width, own_height)) in panels.iter().zip(&sizes) {
        let (x, y) = match arrangement {
            Arrangement::Row => (at, 0.0),
            Arrangement::Column => (0.0, at),
        };
        // Within another drawing it would fill all of that.
        let sized =
            format!("<svg x=\"{x}\" y=\"{y}\" width=\"{own_width}\" height=\"{own_height}\" ");
        svg += &with_attributes(&panel.replacen("<svg ", &sized, 1));
        svg.push('\n');
        at += if arrangement == Arrangement::Row { *own_width } else { *own_height };
    }
    svg + &with_attributes(&keys) + "</svg>\n"
}

/// The legend below a sheet's panels, and the height of the whole sheet.
fn keys(legend: &[(String, Look)], marked: bool, width: f64, bottom: f64) -> (String, f64) {
    // Entries follow each other like words; a row ends where the next one does not fit.
    let (mut x, mut y) = (MARGIN, bottom + 10.0);
    let mut keys = String::new();
    for (name, look) in legend {
        let length = KEY + 7.0 + text_width(name, FONT_SIZE);
        if x > MARGIN && x + length > width - MARGIN {
            (x, y) = (MARGIN, y + ROW);
        }
        let (classes, dashes, end) = (look.classes(), look.dashes(), x + KEY);
        let _ = write!(keys, "<path class=\"line {classes}\"{dashes} d=\"M{x:.1} {y}H{end:.1}\"/>");
        if marked {
            let middle = x + KEY / 2.0;
            let _ = write!(
                keys,
                "<path class=\"marker {classes}\" transform=\"translate({middle:.1} {y}) scale({MARK})\" d=\"{}\"/>",
                look.marker()
            );
        }
        let (text_x, text_y) = (x + KEY + 7.0, y + 4.0);
        let _ = writeln!(
            keys,
            "<text class=\"name\" x=\"{text_x:.1}\" y=\"{text_y}\">{}</text>",
            escape(name)
        );
        x += length + GAP;
    }
    let height = if legend.is_empty() { bottom } else { y + ROW };
    (keys, height)
}

/// Width and height by the `viewBox`.
fn size(svg: &str) -> (f64, f64) {
    let numbers = svg.split_once("viewBox=\"").and_then(|(_, rest)| rest.split_once('"'));
    let mut numbers = numbers.map_or("", |(numbers, _)| numbers).split(' ').skip(2);
    let mut next = || numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
    (next(), next())
}

/// The drawing with attributes in place of its classes.
fn with_attributes(svg: &str) -> String {
    let mut parts = svg.split(" class=\"");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (classes, rest) = part.split_once('"').unwrap_or((part, ""));
        out += &attributes(classes);
        out += rest;
    }
    out
}

/// What `style.css` says of these classes, for a white page.
fn attributes(classes: &str) -> String {
    let mut words = classes.split(' ');
    let what = words.next().unwrap_or_default();
    let colour = words.clone().find_map(on_white).unwrap_or("#000000");
    let width = |plain: f64| {
        if words.clone().any(|word| word == "thick") {
            plain * 1.5
        } else if words.clone().any(|word| word == "thin") {
            plain * 0.8
        } else {
            plain
        }
    };
    match what {
        "grid" => " stroke=\"#e4e7ea\" stroke-width=\"0.8\" fill=\"none\"".to_owned(),
        "ticks" | "label" => " fill=\"#3d444d\"".to_owned(),
        "name" => " fill=\"#1b1f24\"".to_owned(),
        "line" => format!(
            " fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
            width(1.9)
        ),
        "marker" => format!(" fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"1\""),
        "whisker" => format!(" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\""),
        "zero" => " fill=\"none\" stroke=\"#1b1f24\" stroke-width=\"1\"".to_owned(),
        "front" => {
            " fill=\"none\" stroke=\"#6d7580\" stroke-width=\"1.2\" stroke-dasharray=\"3 3\""
                .to_owned()
        }
        "capacity" => " fill=\"#e7ebf0\" stroke=\"#aab4c0\" stroke-width=\"0.8\"".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::looks;
    use super::*;

    #[test]
    fn the_legend_wraps_like_words() {
        let names: Vec<String> = (0..9).map(|i| format!("copa:delta=0.0{i}")).collect();
        let all = looks(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let legend: Vec<(String, Look)> = names.into_iter().zip(all).collect();
        let panel = "<svg viewBox=\"0 0 460 300\"></svg>".to_owned();
        let svg = compose(&legend, &[panel], Arrangement::Row);
        let place = |text: &str| -> (f64, f64) {
            let at = svg.find(&format!(">{text}</text>")).unwrap();
            let tag = &svg[svg[..at].rfind("<text").unwrap()..at];
            let of = |name: &str| {
                let from = tag.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
                tag[from..].split('"').next().unwrap().parse().unwrap()
            };
            (of(" x"), of(" y"))
        };
        let places: Vec<(f64, f64)> = legend.iter().map(|(name, _)| place(name)).collect();
        assert!(
            places.iter().all(|(x, _)| x + text_width("copa:delta=0.00", FONT_SIZE) <= 460.0),
            "{places:?}"
        );
        assert_eq!(places[0].1, places[1].1, "the second stands next to the first");
        assert!(places[8].1 > places[0].1, "nine do not fit one row");
        assert_eq!(size(&svg).1, places[8].1 - 4.0 + ROW);
    }

    #[test]
    fn no_class_is_left() {
        let look = looks(&["mortise"])[0];
        let panel = format!(
            "<svg viewBox=\"0 0 9 9\"><g class=\"extra\"><path class=\"line {} s0\"/></g></svg>",
            look.classes()
        );
        let svg = compose(&[], &[panel], Arrangement::Column);
        assert!(!svg.contains("class=") && svg.contains("stroke=\"#d1410c\""), "{svg}");
        assert_eq!(size(&svg), (9.0, 9.0), "no legend takes no room");
    }

    #[test]
    fn panels_stand_next_to_each_other_or_below_each_other() {
        let panels = ["<svg viewBox=\"0 0 460 300\"/>", "<svg viewBox=\"0 0 200 340\"/>"];
        let panels = panels.map(str::to_owned);
        for (arrangement, whole, second) in [
            (
                Arrangement::Row,
                (660.0, 340.0),
                "<svg x=\"460\" y=\"0\" width=\"200\" height=\"340\"",
            ),
            (
                Arrangement::Column,
                (460.0, 640.0),
                "<svg x=\"0\" y=\"300\" width=\"200\" height=\"340\"",
            ),
        ] {
            let svg = compose(&[], &panels, arrangement);
            assert_eq!(size(&svg), whole);
            assert!(svg.contains(second), "{svg}");
            assert!(svg.contains(&format!(
                "width=\"{}\" height=\"{}\" fill=\"#ffffff\"",
                whole.0, whole.1
            )));
        }
    }

    /// Each key of the legend has the colour, the dashes and the marker of its line.
    #[test]
    fn keys_look_like_their_lines() {
        let names = ["cubic", "bbr", "mortise", "omniscient"];
        let legend: Vec<(String, Look)> =
            names.iter().map(|name| (*name).to_owned()).zip(looks(&names)).collect();
        let panel = |marker: &str| format!("<svg viewBox=\"0 0 460 300\">{marker}</svg>");
        let svg = compose(&legend, &[panel("<path class=\"marker\" d=\"\"/>")], Arrangement::Row);
        for (name, look) in &legend {
            let line = attributes(&format!("line {}", look.classes()));
            let key = format!("<path{line}{}", look.dashes());
            assert_eq!(svg.matches(&key).count(), 1, "{name}: {svg}");
            assert!(svg.contains(look.marker()), "{name}: {svg}");
        }
        let plain = compose(&legend, &[panel("")], Arrangement::Row);
        assert!(!plain.contains(legend[0].1.marker()), "no markers where lines have none: {plain}");
    }
}
