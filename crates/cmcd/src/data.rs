//! The keys of CMCD, version 1, with their types and units.

use core::fmt;

use percent_encoding::percent_decode_str;
use trimtab_units::{Duration, Rate};

use crate::syntax::{Value, pairs, quoted};

/// The longest data that is read, in bytes: what servers take of a whole request line.
pub const LEN_MAX: usize = 4096;
/// The longest `sid` and `cid`, in characters (CTA-5004).
const ID_LEN_MAX: usize = 64;
/// The longest number, in digits: what every number of JavaScript is exact to.
const DIGITS_MAX: usize = 15;
/// The longest time, in ms: 300 years, which a [`Duration`] can be.
const MS_MAX: u64 = 9_999_999_999_999;

/// What was requested: key `ot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// A manifest or playlist, `m`.
    Manifest,
    /// Audio, `a`.
    Audio,
    /// Video, `v`.
    Video,
    /// Audio and video in one, `av`.
    Muxed,
    /// An init segment, `i`.
    Init,
    /// Captions or subtitles, `c`.
    Caption,
    /// Timed text in ISOBMFF, `tt`.
    TimedText,
    /// A key, licence or certificate, `k`.
    Key,
    /// Anything else, `o`.
    Other,
}

/// The form of the stream: key `sf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamingFormat {
    /// MPEG-DASH, `d`.
    Dash,
    /// HTTP Live Streaming, `h`.
    Hls,
    /// Smooth Streaming, `s`.
    Smooth,
    /// Anything else, `o`.
    Other,
}

/// Whether all of the content exists already: key `st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamType {
    /// On demand, `v`.
    OnDemand,
    /// Live, `l`.
    Live,
}

const OBJECTS: [(&str, ObjectType); 9] = [
    ("m", ObjectType::Manifest),
    ("a", ObjectType::Audio),
    ("v", ObjectType::Video),
    ("av", ObjectType::Muxed),
    ("i", ObjectType::Init),
    ("c", ObjectType::Caption),
    ("tt", ObjectType::TimedText),
    ("k", ObjectType::Key),
    ("o", ObjectType::Other),
];
const FORMATS: [(&str, StreamingFormat); 4] = [
    ("d", StreamingFormat::Dash),
    ("h", StreamingFormat::Hls),
    ("s", StreamingFormat::Smooth),
    ("o", StreamingFormat::Other),
];
const STREAMS: [(&str, StreamType); 2] = [("v", StreamType::OnDemand), ("l", StreamType::Live)];

/// Bytes of the next object, first and last: key `nrr`. One of both may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte; none means that `last` counts from the end.
    pub first: Option<u64>,
    /// The last byte; none means up to the end.
    pub last: Option<u64>,
}

/// What a player sent with one request. Names of keys are those of CTA-5004; what it left out is
/// `None` or `false`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cmcd {
    /// `br`: encoded bitrate of the object, sent in kbit/s.
    pub bitrate: Option<Rate>,
    /// `bl`: media in the buffer when the request was made, sent in ms, rounded to 100 ms.
    pub buffer: Option<Duration>,
    /// `bs`: playback stalled for an empty buffer since the request before.
    pub is_starved: bool,
    /// `cid`: the content, at most 64 characters.
    pub content: Option<String>,
    /// `d`: how long the object plays, sent in ms.
    pub duration: Option<Duration>,
    /// `dl`: time until the object is needed, sent in ms, rounded to 100 ms.
    pub deadline: Option<Duration>,
    /// `mtp`: throughput that the player measured, sent in kbit/s, rounded to 100 kbit/s.
    pub measured: Option<Rate>,
    /// `nor`: the next object's path, relative to this one, decoded.
    pub next_object: Option<String>,
    /// `nrr`: bytes of the next object.
    pub next_range: Option<Range>,
    /// `ot`: what was requested.
    pub object: Option<ObjectType>,
    /// `pr`: speed of playback, 1 where it is left out, 0 while it is paused.
    pub playback_rate: Option<f64>,
    /// `rtp`: the throughput that the player asks for at most, sent in kbit/s.
    pub requested_max: Option<Rate>,
    /// `sf`: the form of the stream.
    pub format: Option<StreamingFormat>,
    /// `sid`: the session, at most 64 characters.
    pub session: Option<String>,
    /// `st`: live or on demand.
    pub stream: Option<StreamType>,
    /// `su`: needed at once, at the start, after a seek or after the buffer was empty.
    pub is_urgent: bool,
    /// `tb`: the highest bitrate of the content that the client may play, sent in kbit/s.
    pub top_bitrate: Option<Rate>,
}

/// Why data is no CMCD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CmcdError {
    /// It is longer than [`LEN_MAX`].
    #[error("CMCD of {0} bytes: at most {LEN_MAX} are read")]
    TooLong(usize),
    /// The argument is no text.
    #[error("the argument CMCD is not UTF-8 when it is decoded")]
    Encoding,
    /// There are too many keys.
    #[error("more than {0} keys of CMCD")]
    TooMany(usize),
    /// Where a key is expected is something else.
    #[error("{0} is no key of CMCD: a letter, then letters, digits and -_.*")]
    Key(String),
    /// A key is there twice.
    #[error("the key {0} is there twice")]
    Twice(String),
    /// Text does not end, or has what it may not.
    #[error("{0}: text stands in \"…\", with \\ before each \" and \\, without control characters")]
    Quotes(String),
    /// A list does not end.
    #[error("{0}: a list stands in (…)")]
    List(String),
    /// A report lacks a key.
    #[error("the report has no {0}: it belongs to each")]
    Lacks(&'static str),
    /// Reports of several players come at once.
    #[error("reports of two sessions at once: a post is of one")]
    Sessions,
    /// There are too many reports at once.
    #[error("more than {0} reports at once: send them more often")]
    Reports(usize),
    /// A value is followed by something else than a comma.
    #[error("{text} follows the value of {key}: expected a comma")]
    Follows {
        /// The key.
        key: String,
        /// What follows.
        text: String,
    },
    /// A value is not of the key's type.
    #[error("{key}={value}: expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value, shortened.
        value: String,
        /// What is right.
        expected: &'static str,
    },
}

impl Cmcd {
    /// From the query of a URL, as it is sent: what stands behind the `?`. `None` where the
    /// argument `CMCD` is not there.
    ///
    /// # Errors
    /// The argument is too long, or no CMCD of version 1.
    pub fn from_query(query: &str) -> Result<Option<Self>, CmcdError> {
        let argument = query.split('&').find_map(|argument| argument.strip_prefix("CMCD="));
        let Some(argument) = argument else { return Ok(None) };
        // Each byte is sent as three characters at most.
        if argument.len() > 3 * LEN_MAX {
            return Err(CmcdError::TooLong(argument.len()));
        }
        let text = percent_decode_str(argument).decode_utf8().map_err(|_| CmcdError::Encoding)?;
        Self::parse([&*text]).map(Some)
    }

    /// From the values of the headers `CMCD-Object`, `CMCD-Request`, `CMCD-Session` and
    /// `CMCD-Status`, those that were sent, in any order. Which key came in which does not matter.
    ///
    /// # Errors
    /// They are too long, or no CMCD of version 1.
    pub fn parse<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, CmcdError> {
        let (mut data, mut seen, mut len) = (Self::default(), Vec::new(), 0);
        for part in parts {
            len += part.len();
            if len > LEN_MAX {
                return Err(CmcdError::TooLong(len));
            }
            for (key, value) in pairs(part)? {
                if seen.contains(&key) {
                    return Err(CmcdError::Twice(key.to_owned()));
                }
                seen.push(key);
                data.set(key, &value)?;
            }
        }
        Ok(data)
    }

    /// Takes in a key; keys of others and of later versions are left out.
    fn set(&mut self, key: &str, value: &Value<'_>) -> Result<(), CmcdError> {
        match key {
            "br" => self.bitrate = Some(kbps("br", value)?),
            "bl" => self.buffer = Some(ms("bl", value)?),
            "bs" => self.is_starved = flag("bs", value)?,
            "cid" => self.content = Some(id("cid", value)?),
            "d" => self.duration = Some(ms("d", value)?),
            "dl" => self.deadline = Some(ms("dl", value)?),
            "mtp" => self.measured = Some(kbps("mtp", value)?),
            "nor" => self.next_object = Some(path(value)?),
            "nrr" => self.next_range = Some(range(value)?),
            "ot" => {
                let known = "m, a, v, av, i, c, tt, k or o";
                self.object = Some(token("ot", value, &OBJECTS, known)?);
            }
            "pr" => self.playback_rate = Some(decimal("pr", value)?),
            "rtp" => self.requested_max = Some(kbps("rtp", value)?),
            "sf" => self.format = Some(token("sf", value, &FORMATS, "d, h, s or o")?),
            "sid" => self.session = Some(id("sid", value)?),
            "st" => self.stream = Some(token("st", value, &STREAMS, "v or l")?),
            "su" => self.is_urgent = flag("su", value)?,
            "tb" => self.top_bitrate = Some(kbps("tb", value)?),
            "v" if *value != Value::Bare("1") => {
                return Err(wrong("v", value, "1, the version of CMCD that is read"));
            }
            _ => {}
        }
        Ok(())
    }
}

pub(crate) fn wrong(key: &'static str, value: &Value<'_>, expected: &'static str) -> CmcdError {
    CmcdError::Value { key, value: value.shown(), expected }
}

fn whole(text: &str) -> Option<u64> {
    let is_number = text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

pub(crate) fn number(
    key: &'static str,
    value: &Value<'_>,
    unit: &'static str,
) -> Result<u64, CmcdError> {
    let Value::Bare(text) = value else { return Err(wrong(key, value, unit)) };
    whole(text).ok_or_else(|| wrong(key, value, unit))
}

pub(crate) fn kbps(key: &'static str, value: &Value<'_>) -> Result<Rate, CmcdError> {
    let kbps = number(key, value, "a whole number of kbit/s")?;
    Ok(Rate::from_bytes_per_sec(kbps.saturating_mul(125)))
}

pub(crate) fn ms(key: &'static str, value: &Value<'_>) -> Result<Duration, CmcdError> {
    let unit = "a whole number of milliseconds";
    let ms = Some(number(key, value, unit)?).filter(|ms| *ms <= MS_MAX);
    ms.map(Duration::from_millis).ok_or_else(|| wrong(key, value, unit))
}

fn decimal(key: &'static str, value: &Value<'_>) -> Result<f64, CmcdError> {
    let fail = || wrong(key, value, "a decimal number such as 1.5");
    let Value::Bare(text) = value else { return Err(fail()) };
    let (before, after) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = [before, after].iter().all(|part| !part.is_empty() && whole(part).is_some());
    text.parse().ok().filter(|_| is_number).ok_or_else(fail)
}

fn flag(key: &'static str, value: &Value<'_>) -> Result<bool, CmcdError> {
    match value {
        Value::Alone | Value::Bare("?1") => Ok(true),
        Value::Bare("?0") => Ok(false),
        _ => Err(wrong(key, value, "the key alone")),
    }
}

fn text<'a>(
    key: &'static str,
    value: &'a Value<'_>,
    expected: &'static str,
) -> Result<&'a str, CmcdError> {
    match value {
        Value::Quoted(text) => Ok(text),
        _ => Err(wrong(key, value, expected)),
    }
}

pub(crate) fn id(key: &'static str, value: &Value<'_>) -> Result<String, CmcdError> {
    let expected = "1 to 64 characters in \"…\"";
    let id = text(key, value, expected)?;
    if id.is_empty() || id.chars().count() > ID_LEN_MAX {
        return Err(wrong(key, value, expected));
    }
    Ok(id.to_owned())
}

fn path(value: &Value<'_>) -> Result<String, CmcdError> {
    let expected = "a path in \"…\", percent-encoded UTF-8";
    let decoded = percent_decode_str(text("nor", value, expected)?).decode_utf8();
    decoded.map(Into::into).map_err(|_| wrong("nor", value, expected))
}

fn range(value: &Value<'_>) -> Result<Range, CmcdError> {
    let expected = "bytes such as \"0-999\", \"1000-\" or \"-500\"";
    let fail = || wrong("nrr", value, expected);
    let (first, last) = text("nrr", value, expected)?.split_once('-').ok_or_else(fail)?;
    let end = |text: &str| match text {
        "" => Ok(None),
        text => whole(text).map(Some).ok_or_else(fail),
    };
    let range = Range { first: end(first)?, last: end(last)? };
    match (range.first, range.last) {
        (None, None) => Err(fail()),
        (Some(first), Some(last)) if first > last => Err(fail()),
        _ => Ok(range),
    }
}

pub(crate) fn token<T: Copy>(
    key: &'static str,
    value: &Value<'_>,
    known: &[(&str, T)],
    expected: &'static str,
) -> Result<T, CmcdError> {
    let Value::Bare(text) = value else { return Err(wrong(key, value, expected)) };
    let found = known.iter().find(|(name, _)| name == text).map(|(_, of)| *of);
    found.ok_or_else(|| wrong(key, value, expected))
}

fn name<T: Copy + PartialEq>(of: T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, other)| *other == of).map_or("", |(name, _)| *name)
}

/// As players write it in one header, or before it is percent-encoded into the query; keys in
/// the order of the alphabet.
impl fmt::Display for Cmcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kbps = |rate: Option<Rate>| rate.map(|rate| (rate.bytes_per_sec() / 125).to_string());
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis().to_string());
        let id = |text: &Option<String>| text.as_deref().map(quoted);
        let range = self.next_range.map(|Range { first, last }| {
            let end = |end: Option<u64>| end.map(|end| end.to_string()).unwrap_or_default();
            format!("\"{}-{}\"", end(first), end(last))
        });
        let next = self.next_object.as_deref().map(|path| {
            let set = percent_encoding::NON_ALPHANUMERIC;
            format!("\"{}\"", percent_encoding::utf8_percent_encode(path, set))
        });
        let all = [
            ("bl", ms(self.buffer)),
            ("br", kbps(self.bitrate)),
            ("bs", self.is_starved.then(String::new)),
            ("cid", id(&self.content)),
            ("d", ms(self.duration)),
            ("dl", ms(self.deadline)),
            ("mtp", kbps(self.measured)),
            ("nor", next),
            ("nrr", range),
            ("ot", self.object.map(|of| name(of, &OBJECTS).to_owned())),
            ("pr", self.playback_rate.map(|rate| rate.to_string())),
            ("rtp", kbps(self.requested_max)),
            ("sf", self.format.map(|of| name(of, &FORMATS).to_owned())),
            ("sid", id(&self.session)),
            ("st", self.stream.map(|of| name(of, &STREAMS).to_owned())),
            ("su", self.is_urgent.then(String::new)),
            ("tb", kbps(self.top_bitrate)),
        ];
        let mut comma = "";
        for (key, value) in all {
            match value.as_deref() {
                None => continue,
                Some("") => write!(f, "{comma}{key}")?,
                Some(value) => write!(f, "{comma}{key}={value}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
