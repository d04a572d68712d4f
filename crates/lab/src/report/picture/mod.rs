//! Figures as PDF and PNG, from the SVG that `sheet.rs` writes: one drawing, three forms.
//!
//! `Picture` reads no SVG but ours: paths of straight lines and cubic curves, rectangles, text, groups.
//! `pdf.rs` keeps text as text, in an embedded font; `png.rs` paints. The font is in the program
//! (`dejavu-sans.ttf`), so a machine without fonts gives the same bytes.

mod font;
mod pdf;
mod png;

use std::path::Path;

use roxmltree::{Document, Node};

pub(super) use font::text_width;

use super::output::{OutputError, write_file};

/// The form of a figure's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Vector graphics for web pages.
    Svg,
    /// Vector graphics for papers, fonts embedded.
    Pdf,
    /// Pixels, three to the unit of the drawing.
    Png,
}

impl Format {
    /// All of them, by the ends of files' names.
    pub const ALL: [(&'static str, Self); 3] =
        [("svg", Self::Svg), ("pdf", Self::Pdf), ("png", Self::Png)];

    /// The format that a file's name ends in.
    pub fn of(path: &Path) -> Option<Self> {
        let end = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.iter().find(|(name, _)| *name == end).map(|(_, format)| *format)
    }
}

/// Writes a figure that `sheet.rs` composed, in the format that the file's name ends in, else as SVG.
///
/// # Errors
/// The system refuses, as [`write_file`] has it.
pub fn write(path: &Path, svg: &str) -> Result<(), OutputError> {
    let bytes = encode(Format::of(path).unwrap_or(Format::Svg), svg);
    let bytes = bytes.map_err(|cause| OutputError {
        path: path.to_owned(),
        cause: std::io::Error::other(cause),
    })?;
    write_file(path, |out| out.write_all(&bytes))
}

/// A figure's bytes in a format.
///
/// # Errors
/// The drawing has something that `Picture` does not read; figures of this crate do not.
pub fn encode(format: Format, svg: &str) -> Result<Vec<u8>, PictureError> {
    Ok(match format {
        Format::Svg => svg.as_bytes().to_owned(),
        Format::Pdf => pdf::bytes(&Picture::read(svg)?),
        Format::Png => png::bytes(&Picture::read(svg)?)?,
    })
}

/// Why a drawing cannot become a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw the figure: {0}; this is an error of Trimtab: report it, or write an .svg")]
pub struct PictureError(String);

/// A drawing as a list of shapes.
#[derive(Debug, PartialEq)]
struct Picture {
    width: f64,
    height: f64,
    shapes: Vec<Shape>,
}

/// Something that is drawn, in its own coordinates.
#[derive(Debug, PartialEq)]
struct Shape {
    /// From its own coordinates to those of the picture.
    place: Affine,
    style: Style,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    Path(Vec<Step>),
    Text { x: f64, y: f64, text: String },
}

/// A step of the pen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Move([f64; 2]),
    Line([f64; 2]),
    Curve([f64; 6]),
    Close,
}

type Rgb = [u8; 3];

/// How a shape is drawn; groups hand it on to what they hold.
#[derive(Clone, Debug, PartialEq)]
struct Style {
    fill: Option<Rgb>,
    stroke: Option<Rgb>,
    stroke_width: f64,
    is_round: bool,
    dash: Vec<f64>,
    font_size: f64,
    anchor: Anchor,
}

/// Which part of a text stands at its position.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// x' = a·x + c·y + e, y' = b·x + d·y + f, in the order of SVG and PDF.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Affine([f64; 6]);

impl Affine {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// First `inner`, then this.
    fn after(self, inner: Self) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, inner.0);
        Self([
            a * g + c * h,
            b * g + d * h,
            a * i + c * j,
            b * i + d * j,
            a * k + c * l + e,
            b * k + d * l + f,
        ])
    }

    fn translate(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }
}

impl Picture {
    fn read(svg: &str) -> Result<Self, PictureError> {
        let document = Document::parse(svg).map_err(|e| PictureError(e.to_string()))?;
        let root = document.root_element();
        let style = Style {
            fill: Some([0; 3]),
            stroke: None,
            stroke_width: 1.0,
            is_round: false,
            dash: Vec::new(),
            font_size: 16.0,
            anchor: Anchor::Start,
        };
        // A figure without panels is a point.
        let (width, height) = (number(root, "width")?.max(1.0), number(root, "height")?.max(1.0));
        let mut picture = Self { width, height, shapes: Vec::new() };
        picture.add(root, Affine::IDENTITY, &style)?;
        Ok(picture)
    }

    fn add(
        &mut self,
        node: Node<'_, '_>,
        place: Affine,
        style: &Style,
    ) -> Result<(), PictureError> {
        let mut place = match node.attribute("transform") {
            Some(text) => place.after(transform(text)?),
            None => place,
        };
        let style = style.with(node)?;
        let shape = |what| Shape { place, style: style.clone(), what };
        match node.tag_name().name() {
            "svg" | "g" => {
                if node.tag_name().name() == "svg" {
                    let (x, y) = (number(node, "x")?, number(node, "y")?);
                    place = place.after(Affine::translate(x, y));
                }
                for child in node.children().filter(Node::is_element) {
                    self.add(child, place, &style)?;
                }
            }
            "path" => {
                let steps = steps(node.attribute("d").unwrap_or_default())?;
                self.shapes.push(shape(What::Path(steps)));
            }
            "rect" => {
                let (x, y) = (number(node, "x")?, number(node, "y")?);
                let (right, low) = (x + number(node, "width")?, y + number(node, "height")?);
                let corner =
                    [Step::Line([right, y]), Step::Line([right, low]), Step::Line([x, low])];
                let steps = [Step::Move([x, y])].into_iter().chain(corner).chain([Step::Close]);
                self.shapes.push(shape(What::Path(steps.collect())));
            }
            "text" => {
                let (x, y) = (number(node, "x")?, number(node, "y")?);
                let text = node.text().unwrap_or_default().to_owned();
                self.shapes.push(shape(What::Text { x, y, text }));
            }
            // Shown when a mouse stands on a line.
            "title" => {}
            other => return Err(PictureError(format!("<{other}> is not read"))),
        }
        Ok(())
    }
}

impl Style {
    fn with(&self, node: Node<'_, '_>) -> Result<Self, PictureError> {
        let mut style = self.clone();
        for attribute in node.attributes() {
            let value = attribute.value();
            match attribute.name() {
                "fill" => style.fill = paint(value)?,
                "stroke" => style.stroke = paint(value)?,
                "stroke-width" => style.stroke_width = parsed(value)?,
                "stroke-linejoin" => style.is_round = value == "round",
                "stroke-dasharray" => {
                    style.dash = value.split(' ').map(parsed).collect::<Result<_, _>>()?;
                }
                "font-size" => style.font_size = parsed(value)?,
                "text-anchor" => {
                    style.anchor = match value {
                        "middle" => Anchor::Middle,
                        "end" => Anchor::End,
                        _ => Anchor::Start,
                    };
                }
                _ => {}
            }
        }
        Ok(style)
    }

    /// Where a text begins that has its anchor at `x`.
    fn start(&self, x: f64, text: &str) -> f64 {
        let width = text_width(text, self.font_size);
        match self.anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        }
    }
}

fn number(node: Node<'_, '_>, name: &str) -> Result<f64, PictureError> {
    node.attribute(name).map_or(Ok(0.0), parsed)
}

fn parsed(text: &str) -> Result<f64, PictureError> {
    text.trim().parse().map_err(|_| PictureError(format!("{text:?} is no number")))
}

/// `#rrggbb`, or none.
fn paint(text: &str) -> Result<Option<Rgb>, PictureError> {
    if text == "none" {
        return Ok(None);
    }
    let channel = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    match (text.starts_with('#'), channel(1), channel(3), channel(5)) {
        (true, Some(r), Some(g), Some(b)) => Ok(Some([r, g, b])),
        _ => Err(PictureError(format!("{text:?} is no colour"))),
    }
}

/// `translate(x y)`, `scale(s)` and `rotate(-90)`, one after another.
fn transform(text: &str) -> Result<Affine, PictureError> {
    let fail = || PictureError(format!("{text:?} is no transform"));
    let mut all = Affine::IDENTITY;
    for part in text.split(')').map(str::trim).filter(|part| !part.is_empty()) {
        let (what, numbers) = part.split_once('(').ok_or_else(fail)?;
        let numbers = numbers.split(' ').map(parsed).collect::<Result<Vec<f64>, _>>()?;
        all = all.after(match (what, &numbers[..]) {
            ("translate", [x, y]) => Affine::translate(*x, *y),
            ("scale", [s]) => Affine([*s, 0.0, 0.0, *s, 0.0, 0.0]),
            ("rotate", [angle]) => {
                let (sin, cos) = (libm::sin(angle.to_radians()), libm::cos(angle.to_radians()));
                Affine([cos, sin, -sin, cos, 0.0, 0.0])
            }
            _ => return Err(fail()),
        });
    }
    Ok(all)
}

/// The steps of a path of `M`, `L`, `H`, `V`, `C` and `Z`.
fn steps(d: &str) -> Result<Vec<Step>, PictureError> {
    let fail = || PictureError(format!("{d:?} is no path"));
    let mut steps = Vec::new();
    let (mut x, mut y) = (0.0, 0.0);
    let mut rest = d;
    while let Some(command) = rest.chars().next() {
        let after = command.len_utf8();
        let end = rest[after..].find(|c: char| c.is_ascii_alphabetic());
        let end = end.map_or(rest.len(), |at| after + at);
        let numbers =
            rest[after..end].split_whitespace().map(parsed).collect::<Result<Vec<_>, _>>()?;
        rest = &rest[end..];
        match (command, &numbers[..]) {
            ('M', &[to_x, to_y]) => {
                (x, y) = (to_x, to_y);
                steps.push(Step::Move([x, y]));
            }
            ('L', &[to_x, to_y]) => {
                (x, y) = (to_x, to_y);
                steps.push(Step::Line([x, y]));
            }
            ('H', &[to_x]) => {
                x = to_x;
                steps.push(Step::Line([x, y]));
            }
            ('V', &[to_y]) => {
                y = to_y;
                steps.push(Step::Line([x, y]));
            }
            ('C', curves) if !curves.is_empty() && curves.len() % 6 == 0 => {
                for curve in curves.chunks(6) {
                    let curve: [f64; 6] = curve.try_into().map_err(|_| fail())?;
                    (x, y) = (curve[4], curve[5]);
                    steps.push(Step::Curve(curve));
                }
            }
            ('Z', []) => steps.push(Step::Close),
            _ => return Err(fail()),
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"40\" \
        viewBox=\"0 0 60 40\" font-size=\"11\"><rect width=\"60\" height=\"40\" fill=\"#ffffff\"/>\
        <svg x=\"10\" y=\"0\" width=\"50\" height=\"40\" viewBox=\"0 0 50 40\">\
        <path fill=\"#d1410c\" transform=\"translate(20 20) scale(0.5)\" d=\"M-10 -10H10V10H-10Z\"/>\
        <text fill=\"#00805f\" transform=\"translate(13 20) rotate(-90)\" text-anchor=\"middle\">λδ</text>\
        <path fill=\"none\" stroke=\"#00529b\" stroke-width=\"4\" stroke-dasharray=\"8 4\" \
        d=\"M0 36L40 36\"><title>x</title></path></svg></svg>";

    #[test]
    fn places_add_up_along_groups() {
        let picture = Picture::read(DRAWING).unwrap();
        assert_eq!((picture.width, picture.height, picture.shapes.len()), (60.0, 40.0, 4));
        assert_eq!(picture.shapes[1].place, Affine([0.5, 0.0, 0.0, 0.5, 30.0, 20.0]));
        let Affine([a, b, c, d, e, f]) = picture.shapes[2].place;
        assert!(a.abs() < 1e-9 && (b + 1.0).abs() < 1e-9 && (c - 1.0).abs() < 1e-9);
        assert!(d.abs() < 1e-9 && (e, f) == (23.0, 20.0));
        assert_eq!(picture.shapes[3].style.dash, [8.0, 4.0]);
    }

    #[test]
    fn what_is_not_ours_is_an_error() {
        for (svg, problem) in [
            ("<svg><circle/></svg>", "<circle> is not read"),
            ("<svg><path d=\"M0 0Q1 1 2 2\"/></svg>", "is no path"),
            ("<svg><path fill=\"red\" d=\"\"/></svg>", "\"red\" is no colour"),
            ("<svg><g transform=\"skewX(3)\"/></svg>", "is no transform"),
        ] {
            let e = Picture::read(svg).unwrap_err().to_string();
            assert!(e.contains(problem), "{e}");
        }
    }

    /// Pixels of the drawing, at three to the unit.
    #[test]
    fn a_png_has_the_colours_where_they_belong() {
        let png = encode(Format::Png, DRAWING).unwrap();
        let image = tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert_eq!((image.width(), image.height()), (180, 120));
        let at = |x: u32, y: u32| {
            let p = image.pixel(3 * x, 3 * y).unwrap();
            [p.red(), p.green(), p.blue()]
        };
        assert_eq!(at(2, 2), [0xff, 0xff, 0xff]);
        assert_eq!(at(30, 20), [0xd1, 0x41, 0x0c], "the square");
        assert_eq!(at(37, 20), [0xff, 0xff, 0xff], "it is half as large as its path");
        assert_eq!(at(14, 36), [0x00, 0x52, 0x9b], "a stroke");
        assert_eq!(at(20, 36), [0xff, 0xff, 0xff], "a gap");
        let green = image.pixels().iter().filter(|p| p.green() > p.red() && p.red() == 0).count();
        assert!(green > 30, "the text has {green} pixels");
    }

    #[test]
    fn a_pdf_has_its_font_and_the_same_bytes_every_time() {
        let pdf = encode(Format::Pdf, DRAWING).unwrap();
        assert!(pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF"));
        let has = |what: &str| pdf.windows(what.len()).any(|part| part == what.as_bytes());
        assert!(has("/FontFile2") && has("/ToUnicode") && has("/MediaBox [0 0 45 30]"));
        assert_eq!(pdf, encode(Format::Pdf, DRAWING).unwrap());
    }

    #[test]
    fn formats_go_by_the_ends_of_names() {
        assert_eq!(Format::of(Path::new("a/b.PDF")), Some(Format::Pdf));
        assert_eq!(Format::of(Path::new("pdf")), None);
    }

    /// What the pen does, step by step (SVG 2, §9.3).
    #[test]
    fn a_path_goes_where_its_letters_say() {
        use Step::{Close, Curve, Line, Move};
        let got = steps("M1 2L3 4H5V6C1 2 3 4 5 6 7 8 9 10 11 12V0Z").unwrap();
        let (first, second) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let (a, b, c, d) = ([1.0, 2.0], [3.0, 4.0], [5.0, 4.0], [5.0, 6.0]);
        let end = [11.0, 0.0];
        assert_eq!(
            got,
            [Move(a), Line(b), Line(c), Line(d), Curve(first), Curve(second), Line(end), Close]
        );
        assert!(steps("").unwrap().is_empty());
        for wrong in ["M1", "M1 2 3", "H1 2", "C1 2 3", "Z1", "M1 x", "5 5", "λ1 2", "M1 2λ"] {
            let e = steps(wrong).unwrap_err().to_string();
            assert!(e.starts_with("cannot draw the figure: ") && e.contains("report it"), "{e}");
        }
    }

    #[test]
    fn transforms_follow_each_other_from_the_inside_out() {
        let at = |text: &str, x: f64, y: f64| {
            let Affine([a, b, c, d, e, f]) = transform(text).unwrap();
            (a * x + c * y + e, b * x + d * y + f)
        };
        assert_eq!(at("translate(10 20) scale(2)", 1.0, 1.0), (12.0, 22.0));
        assert_eq!(at("scale(2) translate(10 20)", 1.0, 1.0), (22.0, 42.0));
        let (x, y) = at("translate(13 20) rotate(-90)", 5.0, 0.0);
        assert!((x - 13.0).abs() < 1e-9 && (y - 15.0).abs() < 1e-9, "upwards: {x}, {y}");
        for wrong in ["translate(1)", "scale(1 2)", "rotate(λ)", "scale 2", "λ(1)"] {
            assert!(transform(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_begins_where_its_anchor_puts_it() {
        let style = |anchor| Style { anchor, font_size: 10.0, ..read_style() };
        let width = text_width("cubic", 10.0);
        assert!(width > 15.0 && width < 50.0, "{width}");
        assert_eq!(style(Anchor::Start).start(100.0, "cubic"), 100.0);
        assert_eq!(style(Anchor::Middle).start(100.0, "cubic"), 100.0 - width / 2.0);
        assert_eq!(style(Anchor::End).start(100.0, "cubic"), 100.0 - width);
    }

    fn read_style() -> Style {
        Picture::read(DRAWING).unwrap().shapes[2].style.clone()
    }
}
