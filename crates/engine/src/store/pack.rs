//! Documents that are alike, kept small: what they share is kept once, as a *shape*, and of each only what differs.
//!
//! A decision is a kilobyte of JSON, a learner's state four, and nearly all of both is names. A
//! shape is the text of one object with its numbers, its nested objects and the strings with digits
//! in them taken out; there are some dozens of them, however many aggregates there are. What was
//! taken out is a few bytes each. The text comes back letter by letter, whatever it is: nothing
//! here depends on what the learning writes, and a text that is no JSON is kept whole.

use std::collections::HashMap;

/// Stands in a shape where something was taken out. JSON does not have it outside of escapes.
const HOLE: char = '\u{1}';
/// Deeper documents are kept whole.
const DEPTH_MAX: usize = 16;
/// Longer shapes are no shapes: the text is kept whole.
const SHAPE_LEN_MAX: usize = 4096;

/// What a value begins with: below `INT_MAX` it is that number; then repeats of one of the last values; then these.
const INT_MAX: u8 = 64;
const AGAIN_MAX: u8 = 64;
const INT: u8 = 128;
const TEXT: u8 = 129;
const OBJECT: u8 = 130;
/// The same object as one before.
const OBJECT_AGAIN: u8 = 131;
/// And so many of the leading bytes of a floating-point number; the others are zero.
const FLOAT: u8 = 132;

/// The shapes that there are, with their numbers.
pub(super) trait Shapes {
    /// Why one cannot be read or written.
    type Error;

    /// The number of a shape, which is written down where it is new.
    fn number(&mut self, shape: &str) -> Result<u64, Self::Error>;

    /// The shape of a number; none where there is none.
    fn text(&mut self, number: u64) -> Result<Option<String>, Self::Error>;
}

/// A part that was taken out.
enum Part<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
    Object(Object<'a>),
}

struct Object<'a> {
    shape: String,
    parts: Vec<Part<'a>>,
}

/// Texts in few bytes; [`unpack`] gives them back. What comes in several of them is kept once.
pub(super) fn pack<S: Shapes>(texts: &[&str], shapes: &mut S) -> Result<Vec<u8>, S::Error> {
    let mut packer = Packer { bytes: Vec::new(), numbers: Vec::new(), objects: HashMap::new() };
    for text in texts {
        let whole = (Scanner { text, at: 0 }).whole();
        packer.part(&whole.map_or(Part::Text(text), Part::Object), shapes)?;
    }
    Ok(packer.bytes)
}

struct Packer {
    bytes: Vec<u8>,
    numbers: Vec<u64>,
    /// Those that were written, and when.
    objects: HashMap<Vec<u8>, u64>,
}

impl Packer {
    fn part<S: Shapes>(&mut self, part: &Part<'_>, shapes: &mut S) -> Result<(), S::Error> {
        match part {
            Part::Int(value) => self.int(*value),
            Part::Float(value) => self.float(value.to_bits()),
            Part::Text(text) => {
                self.bytes.push(TEXT);
                put_number(&mut self.bytes, text.len() as u64);
                self.bytes.extend(text.as_bytes());
            }
            Part::Object(object) => {
                let inner = plain(object);
                if let Some(&index) = self.objects.get(&inner) {
                    self.bytes.push(OBJECT_AGAIN);
                    put_number(&mut self.bytes, index);
                    return Ok(());
                }
                self.objects.insert(inner, self.objects.len() as u64);
                self.bytes.push(OBJECT);
                put_number(&mut self.bytes, shapes.number(&object.shape)?);
                for part in &object.parts {
                    self.part(part, shapes)?;
                }
            }
        }
        Ok(())
    }

    fn int(&mut self, value: i64) {
        if (0..i64::from(INT_MAX)).contains(&value) {
            self.bytes.push(value as u8);
        } else {
            self.bytes.push(INT);
            put_number(&mut self.bytes, zigzag(value));
        }
    }

    fn float(&mut self, bits: u64) {
        let mut recent = self.numbers.iter().rev().take(usize::from(AGAIN_MAX));
        if let Some(back) = recent.position(|&other| other == bits) {
            self.bytes.push(INT_MAX + back as u8);
        } else {
            let len = 8 - bits.trailing_zeros() as usize / 8;
            self.bytes.push(FLOAT + len as u8);
            self.bytes.extend(&bits.to_be_bytes()[..len]);
        }
        self.numbers.push(bits);
    }
}

/// An object as bytes that tell it from others, without numbers of shapes.
fn plain(object: &Object<'_>) -> Vec<u8> {
    fn add(object: &Object<'_>, bytes: &mut Vec<u8>) {
        bytes.extend(object.shape.as_bytes());
        for part in &object.parts {
            match part {
                Part::Int(value) => bytes.extend([&[2][..], &value.to_be_bytes()].concat()),
                Part::Float(value) => bytes.extend([&[3][..], &value.to_be_bytes()].concat()),
                Part::Text(text) => {
                    bytes.push(4);
                    bytes.extend((text.len() as u64).to_be_bytes());
                    bytes.extend(text.as_bytes());
                }
                Part::Object(object) => {
                    bytes.push(5);
                    add(object, bytes);
                    bytes.push(6);
                }
            }
        }
    }
    let mut bytes = Vec::new();
    add(object, &mut bytes);
    bytes
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn put_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Finds the parts of a text.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// The text as one object; none where it is not, or is too odd.
    fn whole(mut self) -> Option<Object<'a>> {
        if !self.text.starts_with('{') || self.text.contains(HOLE) {
            return None;
        }
        let object = self.object(0)?;
        (self.at == self.text.len()).then_some(object)
    }

    fn object(&mut self, depth: usize) -> Option<Object<'a>> {
        let bytes = self.text.as_bytes();
        let (mut shape, mut parts) = (String::new(), Vec::new());
        // Where text that belongs to the shape begins.
        let mut from = self.at;
        self.at += 1;
        loop {
            match *bytes.get(self.at)? {
                b'}' => {
                    self.at += 1;
                    shape.push_str(&self.text[from..self.at]);
                    return (shape.len() <= SHAPE_LEN_MAX && depth < DEPTH_MAX)
                        .then_some(Object { shape, parts });
                }
                b'"' => {
                    let begin = self.at;
                    let end = self.string_end()?;
                    let inside = &self.text[begin + 1..end - 1];
                    if inside.bytes().any(|byte| byte.is_ascii_digit()) {
                        shape.push_str(&self.text[from..=begin]);
                        shape.push(HOLE);
                        parts.push(Part::Text(inside));
                        from = end - 1;
                    }
                    self.at = end;
                }
                b'{' => {
                    shape.push_str(&self.text[from..self.at]);
                    shape.push(HOLE);
                    parts.push(Part::Object(self.object(depth + 1)?));
                    from = self.at;
                }
                b'-' | b'0'..=b'9' => {
                    shape.push_str(&self.text[from..self.at]);
                    shape.push(HOLE);
                    parts.push(self.number());
                    from = self.at;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Behind the closing quote of a string that begins here.
    fn string_end(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            match *bytes.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn number(&mut self) -> Part<'a> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let len = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let word = &rest[..len];
        self.at += len;
        let int = word.parse::<i64>().ok().filter(|int| int.to_string() == word);
        let float = || word.parse::<f64>().ok().filter(|float| written(*float) == word);
        int.map(Part::Int).or_else(|| float().map(Part::Float)).unwrap_or(Part::Text(word))
    }
}

/// A number as JSON has it.
fn written(value: f64) -> String {
    serde_json::Value::from(value).to_string()
}

/// What [`pack`] made these bytes of, so many texts; none where they are nothing that it makes.
pub(super) fn unpack<S: Shapes, const N: usize>(
    bytes: &[u8],
    shapes: &mut S,
) -> Result<Option<[String; N]>, S::Error> {
    let mut unpacker =
        Unpacker { rest: bytes, numbers: Vec::new(), objects: Vec::new(), shapes, failed: None };
    let texts: Option<Vec<String>> = (0..N).map(|_| unpacker.part(0)).collect();
    let done = unpacker.rest.is_empty();
    match unpacker.failed {
        Some(e) => Err(e),
        None => Ok(texts.filter(|_| done).and_then(|texts| texts.try_into().ok())),
    }
}

struct Unpacker<'a, S: Shapes> {
    rest: &'a [u8],
    numbers: Vec<u64>,
    objects: Vec<String>,
    shapes: &'a mut S,
    failed: Option<S::Error>,
}

impl<S: Shapes> Unpacker<'_, S> {
    fn part(&mut self, depth: usize) -> Option<String> {
        let tag = self.byte()?;
        match tag {
            ..INT_MAX => Some(tag.to_string()),
            INT_MAX..INT => {
                let back = usize::from(tag - INT_MAX);
                let bits = *self.numbers.iter().rev().nth(back)?;
                self.numbers.push(bits);
                Some(written(f64::from_bits(bits)))
            }
            INT => {
                let number = self.number()?;
                Some(((number >> 1) as i64 ^ -((number & 1) as i64)).to_string())
            }
            TEXT => {
                let len = usize::try_from(self.number()?).ok()?;
                let (text, rest) = self.rest.split_at_checked(len)?;
                self.rest = rest;
                String::from_utf8(text.to_vec()).ok()
            }
            OBJECT if depth <= DEPTH_MAX => self.object(depth),
            OBJECT_AGAIN => {
                let index = usize::try_from(self.number()?).ok()?;
                self.objects.get(index).cloned()
            }
            FLOAT..=140 => {
                let (head, rest) = self.rest.split_at_checked(usize::from(tag - FLOAT))?;
                self.rest = rest;
                let mut bits = [0; 8];
                bits[..head.len()].copy_from_slice(head);
                let bits = u64::from_be_bytes(bits);
                self.numbers.push(bits);
                Some(written(f64::from_bits(bits)))
            }
            _ => None,
        }
    }

    fn object(&mut self, depth: usize) -> Option<String> {
        let number = self.number()?;
        let shape = match self.shapes.text(number) {
            Ok(shape) => shape?,
            Err(e) => {
                self.failed = Some(e);
                return None;
            }
        };
        // Counted before those inside it, as they were when it was written.
        let index = self.objects.len();
        self.objects.push(String::new());
        let mut text = String::with_capacity(shape.len() + 64);
        for (count, piece) in shape.split(HOLE).enumerate() {
            if count > 0 {
                let part = self.part(depth + 1)?;
                text.push_str(&part);
            }
            text.push_str(piece);
        }
        self.objects[index].clone_from(&text);
        Some(text)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Shapes that were looked up, so that they are not looked up again.
#[derive(Debug, Default)]
pub(super) struct Seen {
    numbers: HashMap<String, u64>,
    texts: HashMap<u64, String>,
}

impl Seen {
    pub(super) fn number(&self, shape: &str) -> Option<u64> {
        self.numbers.get(shape).copied()
    }

    pub(super) fn text(&self, number: u64) -> Option<String> {
        self.texts.get(&number).cloned()
    }

    pub(super) fn add(&mut self, number: u64, shape: &str) {
        self.numbers.insert(shape.to_owned(), number);
        self.texts.insert(number, shape.to_owned());
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[derive(Default)]
    struct Known(Vec<String>);

    impl Shapes for Known {
        type Error = Infallible;

        fn number(&mut self, shape: &str) -> Result<u64, Infallible> {
            let at = self.0.iter().position(|known| known == shape).unwrap_or_else(|| {
                self.0.push(shape.to_owned());
                self.0.len() - 1
            });
            Ok(at as u64)
        }

        fn text(&mut self, number: u64) -> Result<Option<String>, Infallible> {
            Ok(self.0.get(number as usize).cloned())
        }
    }

    fn there_and_back(text: &str, known: &mut Known) -> usize {
        let Ok(bytes) = pack(&[text, "and", text], known);
        let Ok(back) = unpack(&bytes, known);
        assert_eq!(back, Some([text.to_owned(), "and".to_owned(), text.to_owned()]));
        let Ok(bytes) = pack(&[text], known);
        bytes.len()
    }

    #[test]
    fn every_text_comes_back_letter_by_letter() {
        let mut known = Known::default();
        for text in [
            "",
            "{}",
            "{",
            "}{",
            "because 7",
            "{\"a\":1}",
            "{\"a\": 1.0, \"b\":[-0.0,1e5,1E5,007,18446744073709551615,-5,64,1e-320]}",
            "{\"a b\":{\"10\":[{\"x\":0.1},{\"x\":0.1},{\"x\":{\"x\":0.1}}]},\"c\":null}",
            "{\"quote \\\" 1\":\"back \\\\\",\"é1\":\"\u{1F600}2\"}",
            "{\"bad\":1-2-3}",
            "{\"hole\":\"\u{1}\"}",
            "{\"open\":\"",
            "{\"open\\",
            "{} {}",
        ] {
            there_and_back(text, &mut known);
        }
        there_and_back(&format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100)), &mut known);
        there_and_back(&format!("{{\"{}\":1}}", "x".repeat(9000)), &mut known);
    }

    #[test]
    fn alike_documents_share_a_shape_and_repeats_cost_two_bytes() {
        let mut known = Known::default();
        let settings = "{\"radius\":0.15,\"rate\":0.123456789012345}";
        let text = |n: u32| {
            let learners: Vec<String> = (0..6)
                .map(|k| format!("\"{k}\":{{\"settings\":{settings},\"steps\":{n}}}"))
                .collect();
            format!("{{\"learners\":{{{}}},\"version\":{n}}}", learners.join(","))
        };
        there_and_back(&text(5), &mut known);
        let shapes = known.0.len();
        assert_eq!(shapes, 4, "document, learners, one of them, its settings");
        let long = text(9);
        let len = there_and_back(&long, &mut known);
        assert_eq!(known.0.len(), shapes);
        assert!(len * 6 < long.len(), "{len} bytes of {}", long.len());
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut known = Known::default();
        let Ok(good) = pack(&["{\"a\":[1.5,1.5,300,\"x9\",{\"b\":2}]}"], &mut known);
        for cut in 0..good.len() {
            assert_eq!(unpack::<_, 1>(&good[..cut], &mut known), Ok(None), "{cut}");
        }
        for at in 0..good.len() {
            for to in 0..=255 {
                let mut bytes = good.clone();
                bytes[at] = to;
                // Whatever it is, it is said without a panic.
                let _ = unpack::<_, 1>(&bytes, &mut known);
            }
        }
    }
}
