//! How a scheme is drawn: one colour, one dash pattern and one marker, by its name, in every figure.
//!
//! Schemes that papers compare have fixed looks (`KNOWN`). Any other name gets a look by its hash. Where
//! that is taken within a figure, it gets the next free one. The order in which schemes appear plays no part.
//!
//! Two lines of a figure differ in their dash pattern or in how dark they are, so a grey print shows who is
//! who. No two colours of a tone are distinguished by red and green alone: `DASHES` and markers help there.

use std::fmt::Write;

use trimtab_steer::scheme::{is_bound, is_steered};

/// How dark a colour is. CIE lightness: at most 36, 44 to 54, at least 64 of 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Dark,
    Middle,
    Light,
}

/// A colour: its class in the report, and its value on white and on dark screens.
#[derive(Debug, PartialEq, Eq)]
struct Colour {
    class: &'static str,
    light: &'static str,
    dark: &'static str,
    tone: Tone,
}

const fn colour(
    class: &'static str,
    light: &'static str,
    dark: &'static str,
    tone: Tone,
) -> Colour {
    Colour { class, light, dark, tone }
}

/// Steered schemes have the first three, bounds the fourth, all others the rest.
static COLOURS: [Colour; 16] = [
    colour("vermilion", "#d1410c", "#ff8a4a", Tone::Middle),
    colour("crimson", "#8f1237", "#f0709a", Tone::Dark),
    colour("amber", "#e08a00", "#ffc04a", Tone::Light),
    colour("grey", "#6d7580", "#8c96a2", Tone::Middle),
    colour("blue", "#00529b", "#58b0f0", Tone::Dark),
    colour("green", "#00805f", "#37c99a", Tone::Middle),
    colour("sky", "#4ba3e3", "#9cd4ff", Tone::Light),
    colour("purple", "#6f2c91", "#c08ae0", Tone::Dark),
    colour("magenta", "#b5407f", "#ea7fb8", Tone::Middle),
    colour("gold", "#c79a00", "#e8cc5a", Tone::Light),
    colour("brown", "#6b3f1d", "#cfa27c", Tone::Dark),
    colour("teal", "#007f8c", "#3cc0cc", Tone::Middle),
    colour("pink", "#e388b5", "#ffb8d8", Tone::Light),
    colour("black", "#1f2328", "#dfe3e8", Tone::Dark),
    colour("olive", "#747400", "#b5b53a", Tone::Middle),
    colour("lime", "#86ad00", "#c6e85a", Tone::Light),
];

/// Lengths of strokes and gaps, in the chart's units; empty for a solid line.
const DASHES: [&str; 8] = ["", "8 4", "2 2.5", "9 3 2 3", "16 4", "4 2", "9 3 2 3 2 3", "2 7"];

/// Outlines around the origin, some 13 units across: circle, square, triangle, diamond, triangle on its
/// tip, plus, hourglass, and half a disc.
const MARKERS: [&str; 8] = [
    "M-6 0C-6 -3.3 -3.3 -6 0 -6C3.3 -6 6 -3.3 6 0C6 3.3 3.3 6 0 6C-3.3 6 -6 3.3 -6 0Z",
    "M-5.5 -5.5H5.5V5.5H-5.5Z",
    "M0 -7L6.5 5H-6.5Z",
    "M0 -7.5L7 0L0 7.5L-7 0Z",
    "M0 7L6.5 -5H-6.5Z",
    "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-6 -6H6L-6 6H6Z",
    "M-6.5 3.5C-6.5 -5.5 6.5 -5.5 6.5 3.5Z",
];

/// The looks of schemes that papers compare: colour, dash pattern, marker. No two have both the same dash
/// pattern and the same tone.
const KNOWN: &[(&str, &str, usize, usize)] = &[
    ("mortise", "vermilion", 0, 3),
    ("mortise-disc", "amber", 6, 3),
    ("floo", "crimson", 1, 2),
    ("floo+mortise", "crimson", 3, 3),
    ("select:power", "amber", 7, 2),
    ("select:antelope", "crimson", 7, 4),
    ("omniscient", "grey", 7, 7),
    ("oracle:copa", "grey", 5, 1),
    ("oracle-dynamic:copa", "grey", 3, 3),
    ("static-best", "grey", 6, 2),
    ("cubic", "blue", 0, 0),
    ("bbr", "green", 1, 1),
    ("copa:mit", "purple", 2, 2),
    ("copa:mvfst", "sky", 3, 4),
    ("copa", "magenta", 4, 4),
    ("vegas", "brown", 4, 5),
    ("newreno", "black", 5, 7),
    ("westwood", "black", 6, 6),
    ("bbr3", "teal", 2, 6),
    ("vivace", "gold", 1, 6),
    ("ledbat", "lime", 4, 7),
    ("illinois", "pink", 5, 5),
    ("gcc", "sky", 2, 7),
    ("muses", "gold", 0, 1),
];

/// What a scheme is to a comparison, which its colours and the width of its line show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its knobs are steered or its algorithm is chosen: thick and warm.
    Steered,
    /// No real sender can reach it: thin and grey.
    Bound,
    /// Any other, and lines that are no schemes.
    Plain,
}

impl Kind {
    fn of(name: &str) -> Self {
        if is_bound(name) {
            Self::Bound
        } else if is_steered(name) {
            Self::Steered
        } else {
            Self::Plain
        }
    }

    fn colours(self) -> &'static [Colour] {
        match self {
            Self::Steered => &COLOURS[..3],
            Self::Bound => &COLOURS[3..4],
            Self::Plain => &COLOURS[4..],
        }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    kind: Kind,
    colour: &'static Colour,
    dash: &'static str,
    marker: &'static str,
}

impl Look {
    /// The classes that give a line its colour and width in the report.
    pub(super) fn classes(&self) -> String {
        let width = match self.kind {
            Kind::Steered => " thick",
            Kind::Bound => " thin",
            Kind::Plain => "",
        };
        format!("{}{width}", self.colour.class)
    }

    /// The dash pattern as an attribute, with a space before it; nothing for a solid line.
    pub(super) fn dashes(&self) -> String {
        match self.dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        }
    }

    /// The outline of its marker around the origin.
    pub(super) fn marker(&self) -> &'static str {
        self.marker
    }

    /// What a reader of a grey print tells it by.
    fn in_grey(&self) -> (&'static str, Tone) {
        (self.dash, self.colour.tone)
    }
}

/// The looks of the lines of a figure, by their names.
pub fn looks(names: &[&str]) -> Vec<Look> {
    let mut looks: Vec<Option<Look>> = names.iter().map(|name| known(name)).collect();
    // The others by name, so that the order of appearance plays no part.
    let mut others: Vec<usize> = (0..names.len()).filter(|&i| looks[i].is_none()).collect();
    others.sort_by_key(|&i| names[i]);
    for i in others {
        // A name that stands twice is one scheme.
        let same = (0..i).find(|&j| names[j] == names[i]).and_then(|j| looks[j]);
        let taken: Vec<Look> = looks.iter().flatten().copied().collect();
        looks[i] = Some(same.unwrap_or_else(|| free(names[i], &taken)));
    }
    looks.into_iter().flatten().collect()
}

fn known(name: &str) -> Option<Look> {
    let &(_, class, dash, marker) = KNOWN.iter().find(|(known, ..)| *known == name)?;
    let colour = COLOURS.iter().find(|colour| colour.class == class)?;
    Some(Look { kind: Kind::of(name), colour, dash: DASHES[dash], marker: MARKERS[marker] })
}

/// The look of the name's hash, or the first one after it that nobody in the figure has: best one with a
/// colour of its own, else one that differs in grey, else one that differs at all.
fn free(name: &str, taken: &[Look]) -> Look {
    let kind = Kind::of(name);
    let colours = kind.colours();
    let (start, count) = (hash(name), colours.len() * DASHES.len());
    let candidate = |i: usize| {
        let at = (start as usize % count + i) % count;
        // The colour turns fastest: neighbours differ in it.
        let (colour, dash) = (&colours[at % colours.len()], DASHES[at / colours.len()]);
        Look { kind, colour, dash, marker: MARKERS[(start >> 32) as usize % MARKERS.len()] }
    };
    let all = || (0..count).map(candidate);
    let in_grey = |look: &Look| taken.iter().all(|other| other.in_grey() != look.in_grey());
    let in_colour = |look: &Look| taken.iter().all(|other| other.colour != look.colour);
    let at_all = |look: &Look| {
        taken.iter().all(|other| (other.colour, other.dash) != (look.colour, look.dash))
    };
    all()
        .find(|look| in_grey(look) && in_colour(look))
        .or_else(|| all().find(in_grey))
        .or_else(|| all().find(at_all))
        .unwrap_or_else(|| candidate(0))
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo): the same on every machine and in every version.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The value of a colour on white, by its class.
pub(super) fn on_white(class: &str) -> Option<&'static str> {
    COLOURS.iter().find(|colour| colour.class == class).map(|colour| colour.light)
}

/// The rules of the report's style sheet that give each class its colour on light and on dark screens.
pub(super) fn stylesheet() -> String {
    let variables = |value: fn(&Colour) -> &'static str| {
        COLOURS.iter().fold(String::new(), |mut css, colour| {
            let _ = write!(css, "--{}: {}; ", colour.class, value(colour));
            css
        })
    };
    let mut css = format!(
        ":root {{ {}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {}}} }}\n",
        variables(|colour| colour.light),
        variables(|colour| colour.dark)
    );
    for Colour { class, .. } in &COLOURS {
        let _ = writeln!(
            css,
            ".{class} {{ stroke: var(--{class}); }} .marker.{class} {{ fill: var(--{class}); stroke: var(--card); }}"
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CIE lightness of a colour, 0 to 100, from its sRGB value (IEC 61966-2-1, CIE 15).
    fn lightness(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        };
        let luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
        116.0 * libm::cbrt(luminance) - 16.0
    }

    fn differ_in_grey(a: &Look, b: &Look) -> bool {
        a.dash != b.dash || (lightness(a.colour.light) - lightness(b.colour.light)).abs() >= 10.0
    }

    #[test]
    fn tones_are_what_they_are_called() {
        for Colour { class, light, tone, .. } in &COLOURS {
            let (least, most) = match tone {
                Tone::Dark => (0.0, 36.0),
                Tone::Middle => (44.0, 54.0),
                Tone::Light => (64.0, 70.0),
            };
            let l = lightness(light);
            assert!((least..=most).contains(&l), "{class}: {l:.1}");
        }
    }

    #[test]
    fn a_scheme_looks_the_same_in_every_cast() {
        let first = looks(&["cubic", "bbr", "mortise"]);
        let second = looks(&["omniscient", "vegas", "copa:delta=0.3", "cubic"]);
        assert_eq!(first[0], second[3]);
        assert_eq!((first[0].colour.class, first[0].dash), ("blue", ""));
        let one_way = looks(&["copa:delta=0.1", "copa:delta=0.2", "bbr:pacing_margin=0"]);
        let other_way = looks(&["bbr:pacing_margin=0", "copa:delta=0.2", "copa:delta=0.1"]);
        assert_eq!(one_way, other_way.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_grey_print_shows_who_is_who() {
        let known: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
        let looks = looks(&known);
        assert_eq!(looks.len(), known.len(), "every colour of the table exists");
        for (i, a) in looks.iter().enumerate() {
            for (j, b) in looks[..i].iter().enumerate() {
                assert!(differ_in_grey(a, b), "{} and {}", known[i], known[j]);
            }
        }
    }

    #[test]
    fn names_without_a_fixed_look_keep_out_of_each_others_way() {
        let names: Vec<String> = (1..=12).map(|i| format!("copa:delta=0.{i:02}")).collect();
        let mut cast = vec!["cubic", "bbr", "mortise", "omniscient", "oracle:cubic"];
        cast.extend(names.iter().map(String::as_str));
        let looks = looks(&cast);
        for (i, a) in looks.iter().enumerate() {
            for (j, b) in looks[..i].iter().enumerate() {
                assert!(differ_in_grey(a, b), "{} and {}", cast[i], cast[j]);
            }
        }
        let alone = super::looks(&["copa:delta=0.05", "copa:delta=0.05"]);
        assert_eq!(alone[0], alone[1], "a name that stands twice is one scheme");
    }

    #[test]
    fn more_lines_than_looks_still_have_one_each() {
        let names: Vec<String> = (0..200).map(|i| format!("edge {i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(looks(&names).len(), 200);
    }

    #[test]
    fn kinds_differ_at_a_glance() {
        let looks = looks(&["mortise:sigma=0.5", "oracle:vegas", "cubic:beta=0.8"]);
        assert!(looks[0].classes().ends_with(" thick") && looks[1].classes().ends_with(" thin"));
        assert!(!looks[2].classes().contains(' '), "{}", looks[2].classes());
    }
}
