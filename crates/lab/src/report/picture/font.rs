//! The font of figures: DejaVu Sans, reduced to Latin, Greek and the signs of charts.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The font's file; `dejavu-sans.txt` has its licence and how it was reduced.
pub(super) const FILE: &[u8] = include_bytes!("dejavu-sans.ttf");

/// The parsed font; `None` does not happen, since the file is ours.
pub(super) fn face() -> Option<Face<'static>> {
    Face::parse(FILE, 0).ok()
}

/// The glyph of a character; an empty box where the font has none.
pub(super) fn glyph(face: &Face<'_>, letter: char) -> GlyphId {
    face.glyph_index(letter).unwrap_or(GlyphId(0))
}

/// How far a glyph moves the pen, as a share of the font's size.
pub(super) fn advance(face: &Face<'_>, glyph: GlyphId) -> f64 {
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em())
}

/// The width of a line of text in the font's size.
pub(in crate::report) fn text_width(text: &str, size: f64) -> f64 {
    let Some(face) = face() else { return 0.0 };
    size * text.chars().map(|letter| advance(&face, glyph(&face, letter))).sum::<f64>()
}

/// Draws the outline of a glyph, in units of the font, y upwards.
pub(super) fn outline(face: &Face<'_>, glyph: GlyphId, pen: &mut dyn OutlineBuilder) {
    face.outline_glyph(glyph, pen);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the font's own table: figures of 0.636, an m of 0.974 and an i of 0.278 of the size.
    #[test]
    fn widths_are_those_of_the_font() {
        assert!((text_width("42", 10.0) - 12.724).abs() < 0.01);
        assert!((text_width("im", 10.0) - 12.52).abs() < 0.01);
    }

    #[test]
    fn charts_have_all_their_letters() {
        let face = face().unwrap();
        for letter in "δλτ→−≤éß→±µ".chars() {
            assert_ne!(glyph(&face, letter), GlyphId(0), "{letter}");
        }
        assert_eq!(glyph(&face, '漢'), GlyphId(0));
    }
}
