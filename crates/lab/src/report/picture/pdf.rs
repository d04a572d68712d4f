//! A picture as a page of PDF, by pdf-writer: text stays text, in the embedded font.

use std::collections::BTreeMap;

use pdf_writer::types::{
    CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap,
};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use ttf_parser::Face;

use super::font::{FILE, advance, face, glyph};
use super::{Affine, Picture, Rgb, Shape, Step, What};

/// Points (72 to the inch) to the unit of the drawing (96 to the inch).
const SCALE: f64 = 0.75;

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const FONT: Ref = Ref::new(5);
const CID_FONT: Ref = Ref::new(6);
const DESCRIPTOR: Ref = Ref::new(7);
const FONT_FILE: Ref = Ref::new(8);
const TO_UNICODE: Ref = Ref::new(9);

const FONT_RESOURCE: Name<'static> = Name(b"F1");
const FONT_NAME: Name<'static> = Name(b"TRMTAB+DejaVuSans");
/// Glyphs stand by their numbers in the font.
const IDENTITY: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// The picture as a PDF file of one page of its size.
pub(super) fn bytes(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.width * SCALE, picture.height * SCALE);
    let mut content = Content::new();
    // PDF's y goes upwards.
    content.transform(single(Affine([SCALE, 0.0, 0.0, -SCALE, 0.0, height])));
    let face = face();
    let mut used = BTreeMap::new();
    for shape in &picture.shapes {
        content.save_state();
        content.transform(single(shape.place));
        match &shape.what {
            What::Path(steps) => path(&mut content, shape, steps),
            What::Text { x, y, text } => {
                if let Some(face) = &face {
                    write_text(&mut content, shape, (*x, *y), text, face, &mut used);
                }
            }
        }
        content.restore_state();
    }

    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES);
    pdf.pages(PAGES).kids([PAGE]).count(1);
    let mut page = pdf.page(PAGE);
    page.media_box(Rect::new(0.0, 0.0, width as f32, height as f32)).parent(PAGES);
    page.contents(CONTENT);
    page.resources().fonts().pair(FONT_RESOURCE, FONT);
    page.finish();
    pdf.stream(CONTENT, &deflated(&content.finish())).filter(Filter::FlateDecode);
    if let Some(face) = &face {
        embed(&mut pdf, face, &used);
    }
    pdf.finish()
}

fn path(content: &mut Content, shape: &Shape, steps: &[Step]) {
    let style = &shape.style;
    if let Some(colour) = style.fill {
        let [r, g, b] = share(colour);
        content.set_fill_rgb(r, g, b);
    }
    if let Some(colour) = style.stroke {
        let [r, g, b] = share(colour);
        content.set_stroke_rgb(r, g, b);
        content.set_line_width(style.stroke_width as f32);
        content.set_line_cap(LineCapStyle::ButtCap);
        let join = if style.is_round { LineJoinStyle::RoundJoin } else { LineJoinStyle::MiterJoin };
        content.set_line_join(join);
        content.set_dash_pattern(style.dash.iter().map(|&length| length as f32), 0.0);
    }
    for step in steps {
        match *step {
            Step::Move([x, y]) => content.move_to(x as f32, y as f32),
            Step::Line([x, y]) => content.line_to(x as f32, y as f32),
            Step::Curve(points) => {
                let [a, b, c, d, e, f] = points.map(|point| point as f32);
                content.cubic_to(a, b, c, d, e, f)
            }
            Step::Close => content.close_path(),
        };
    }
    match (style.fill, style.stroke) {
        (Some(_), Some(_)) => content.fill_nonzero_and_stroke(),
        (Some(_), None) => content.fill_nonzero(),
        (None, Some(_)) => content.stroke(),
        (None, None) => content.end_path(),
    };
}

/// Writes a text, and adds its glyphs to those that are `used`, with what they stand for.
fn write_text(
    content: &mut Content,
    shape: &Shape,
    (x, y): (f64, f64),
    text: &str,
    face: &Face<'_>,
    used: &mut BTreeMap<u16, char>,
) {
    let Some(colour) = shape.style.fill else { return };
    let mut numbers = Vec::new();
    for letter in text.chars() {
        let glyph = glyph(face, letter).0;
        numbers.extend_from_slice(&glyph.to_be_bytes());
        used.insert(glyph, letter);
    }
    let [r, g, b] = share(colour);
    content.set_fill_rgb(r, g, b);
    content.begin_text();
    content.set_font(FONT_RESOURCE, shape.style.font_size as f32);
    let start = shape.style.start(x, text);
    content.set_text_matrix(single(Affine([1.0, 0.0, 0.0, -1.0, start, y])));
    content.show(Str(&numbers));
    content.end_text();
}

/// The font's file, the widths of the glyphs that are used, and the letters that they stand for.
fn embed(pdf: &mut Pdf, face: &Face<'_>, used: &BTreeMap<u16, char>) {
    let thousandths = |units: i16| 1000.0 * f32::from(units) / f32::from(face.units_per_em());
    let mut font = pdf.type0_font(FONT);
    font.base_font(FONT_NAME).encoding_predefined(Name(b"Identity-H"));
    font.descendant_font(CID_FONT).to_unicode(TO_UNICODE);
    font.finish();

    let mut cid = pdf.cid_font(CID_FONT);
    cid.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(IDENTITY);
    cid.font_descriptor(DESCRIPTOR).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for &number in used.keys() {
        let width = 1000.0 * advance(face, ttf_parser::GlyphId(number));
        widths.consecutive(number, [width as f32]);
    }
    widths.finish();
    cid.finish();

    let bounds = face.global_bounding_box();
    pdf.font_descriptor(DESCRIPTOR)
        .name(FONT_NAME)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(
            thousandths(bounds.x_min),
            thousandths(bounds.y_min),
            thousandths(bounds.x_max),
            thousandths(bounds.y_max),
        ))
        .italic_angle(0.0)
        .ascent(thousandths(face.ascender()))
        .descent(thousandths(face.descender()))
        .cap_height(thousandths(face.capital_height().unwrap_or(face.ascender())))
        // No table of the font says it; 80 is usual for an upright text face.
        .stem_v(80.0)
        .font_file2(FONT_FILE);
    let packed = deflated(FILE);
    let mut file = pdf.stream(FONT_FILE, &packed);
    file.filter(Filter::FlateDecode).pair(Name(b"Length1"), FILE.len() as i32);
    file.finish();

    let mut letters = UnicodeCmap::new(Name(b"Trimtab-Letters"), IDENTITY);
    used.iter().for_each(|(&number, &letter)| letters.pair(number, letter));
    pdf.stream(TO_UNICODE, &letters.finish());
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    // Into memory nothing fails.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

fn share(colour: Rgb) -> [f32; 3] {
    colour.map(|channel| f32::from(channel) / 255.0)
}

fn single(Affine(parts): Affine) -> [f32; 6] {
    parts.map(|part| part as f32)
}
