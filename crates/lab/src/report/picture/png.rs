//! A picture as pixels, by tiny-skia.

use tiny_skia::{
    Color, FillRule, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use super::font::{advance, face, glyph, outline};
use super::{Affine, Picture, PictureError, Rgb, Shape, Step, What};

/// Pixels to the unit of the drawing: at 96 units to the inch, 288 to the inch.
const SCALE: f64 = 3.0;

/// The picture as a PNG file.
pub(super) fn bytes(picture: &Picture) -> Result<Vec<u8>, PictureError> {
    let pixels = |length: f64| libm::ceil(length * SCALE) as u32;
    let (width, height) = (pixels(picture.width), pixels(picture.height));
    let mut image = Pixmap::new(width, height)
        .ok_or_else(|| PictureError(format!("{width} x {height} pixels are too many")))?;
    image.fill(Color::WHITE);
    for shape in &picture.shapes {
        draw(&mut image, shape);
    }
    image.encode_png().map_err(|e| PictureError(e.to_string()))
}

fn draw(image: &mut Pixmap, shape: &Shape) {
    let scaled = Affine([SCALE, 0.0, 0.0, SCALE, 0.0, 0.0]).after(shape.place);
    let style = &shape.style;
    match &shape.what {
        What::Path(steps) => {
            let mut path = PathBuilder::new();
            steps.iter().for_each(|step| add(&mut path, step));
            let Some(path) = path.finish() else { return };
            if let Some(colour) = style.fill {
                image.fill_path(&path, &paint(colour), FillRule::Winding, matrix(scaled), None);
            }
            if let Some(colour) = style.stroke {
                let dash: Vec<f32> = style.dash.iter().map(|&length| length as f32).collect();
                let stroke = Stroke {
                    width: style.stroke_width as f32,
                    line_join: if style.is_round { LineJoin::Round } else { LineJoin::Miter },
                    dash: StrokeDash::new(dash, 0.0),
                    ..Stroke::default()
                };
                image.stroke_path(&path, &paint(colour), &stroke, matrix(scaled), None);
            }
        }
        What::Text { x, y, text } => {
            let (Some(colour), Some(face)) = (style.fill, face()) else { return };
            let unit = style.font_size / f64::from(face.units_per_em());
            let mut pen = style.start(*x, text);
            for letter in text.chars() {
                let glyph = glyph(&face, letter);
                let mut contour = Contour(PathBuilder::new());
                outline(&face, glyph, &mut contour);
                // A font's y goes upwards.
                let place = scaled.after(Affine([unit, 0.0, 0.0, -unit, pen, *y]));
                if let Some(path) = contour.0.finish() {
                    image.fill_path(&path, &paint(colour), FillRule::Winding, matrix(place), None);
                }
                pen += style.font_size * advance(&face, glyph);
            }
        }
    }
}

fn paint([r, g, b]: Rgb) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint
}

fn matrix(Affine(parts): Affine) -> Transform {
    let [a, b, c, d, e, f] = parts.map(|part| part as f32);
    Transform::from_row(a, b, c, d, e, f)
}

fn add(path: &mut PathBuilder, step: &Step) {
    match *step {
        Step::Move([x, y]) => path.move_to(x as f32, y as f32),
        Step::Line([x, y]) => path.line_to(x as f32, y as f32),
        Step::Curve(points) => {
            let [a, b, c, d, e, f] = points.map(|point| point as f32);
            path.cubic_to(a, b, c, d, e, f);
        }
        Step::Close => path.close(),
    }
}

/// The outline of a glyph as tiny-skia takes it.
struct Contour(PathBuilder);

impl OutlineBuilder for Contour {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.0.close();
    }
}
