//! What players send by themselves: the event mode of CMCD's version 2 (CTA-5004-A).
//!
//! A report is a line of a body that is posted. It says in which state the player is, and counts
//! stalls since the session began. So a report that is lost loses nothing but precision, and one
//! that comes twice counts once.

use trimtab_units::{Duration, Rate, Time};

use crate::CmcdError;
use crate::data::{LEN_MAX, id, kbps, ms, number, token, wrong};
use crate::syntax::{Value, pairs};

/// The most reports in one body.
pub const REPORTS_MAX: usize = 256;

/// What a player does: key `sta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The viewer wants to see it, and waits, `s`.
    Starting,
    /// Media is shown, `p`.
    Playing,
    /// The viewer looks for another place, `k`.
    Seeking,
    /// It stands still, for an empty buffer, `r`.
    Rebuffering,
    /// The viewer or the player has paused, `a`.
    Paused,
    /// It waits for something else, `w`.
    Waiting,
    /// It is at its end, `e`.
    Ended,
    /// It failed, `f`.
    Failed,
    /// The viewer has gone, `q`.
    Quit,
    /// It loads, and will be wanted later, `d`.
    Preloading,
}

const STATES: [(&str, State); 10] = [
    ("s", State::Starting),
    ("p", State::Playing),
    ("k", State::Seeking),
    ("r", State::Rebuffering),
    ("a", State::Paused),
    ("w", State::Waiting),
    ("e", State::Ended),
    ("f", State::Failed),
    ("q", State::Quit),
    ("d", State::Preloading),
];

/// One report of a player, as far as it is read: keys that are not named here are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `sid`: the session, at most 64 characters.
    pub session: String,
    /// `ts`: when it happened by the player's clock, since 1970, sent in ms.
    pub at: Time,
    /// `sn`: the number of the report in its session.
    pub number: Option<u64>,
    /// `sta`: the state from now on.
    pub state: Option<State>,
    /// `pb`, or `br` without it: encoded bitrate of what is shown from now on, sent in kbit/s; of
    /// the video, or of the audio without video.
    pub bitrate: Option<Rate>,
    /// `msd`: from the viewer's wish to the first picture, sent in ms, once in a session.
    pub startup: Option<Duration>,
    /// `bsa`: stalls since the session began.
    pub stalls: Option<u64>,
    /// `bsda`: how long playback has stood still since the session began, sent in ms.
    pub stalled: Option<Duration>,
}

impl Event {
    /// Reads the body of a POST: a report on each line, all of one session, so that nobody makes up
    /// hundreds at once.
    ///
    /// # Errors
    /// One of them is no report, they are of two sessions, or more than [`REPORTS_MAX`].
    pub fn parse_all(body: &str) -> Result<Vec<Self>, CmcdError> {
        let lines = body.lines().filter(|line| !line.trim().is_empty());
        let mut all: Vec<Self> = Vec::new();
        for line in lines {
            if all.len() == REPORTS_MAX {
                return Err(CmcdError::Reports(REPORTS_MAX));
            }
            let event = Self::parse(line)?;
            if all.first().is_some_and(|first| first.session != event.session) {
                return Err(CmcdError::Sessions);
            }
            all.push(event);
        }
        Ok(all)
    }

    /// Reads one report.
    ///
    /// # Errors
    /// It is too long, no CMCD of version 2, or has no `sid` or no `ts`.
    pub fn parse(line: &str) -> Result<Self, CmcdError> {
        if line.len() > LEN_MAX {
            return Err(CmcdError::TooLong(line.len()));
        }
        let (mut seen, mut version) = (Vec::new(), None);
        let (mut session, mut at) = (None, None);
        let (mut playhead, mut requested) = (None, None);
        let mut event = Self {
            session: String::new(),
            at: Time::ZERO,
            number: None,
            state: None,
            bitrate: None,
            startup: None,
            stalls: None,
            stalled: None,
        };
        for (key, value) in pairs(line)? {
            if seen.contains(&key) {
                return Err(CmcdError::Twice(key.to_owned()));
            }
            seen.push(key);
            match key {
                "sid" => session = Some(id("sid", &value)?),
                "ts" => at = Some(Time::ZERO + ms("ts", &value)?),
                "sn" => event.number = Some(number("sn", &value, "a whole number")?),
                "sta" => {
                    let known = "s, p, k, r, a, w, e, f, q or d";
                    event.state = Some(token("sta", &value, &STATES, known)?);
                }
                "pb" => playhead = rate("pb", &value)?,
                "br" => requested = rate("br", &value)?,
                "msd" => event.startup = Some(ms("msd", &value)?),
                "bsa" => event.stalls = Some(count(&value)?),
                "bsda" => {
                    let all = items("bsda", &value, ms)?;
                    event.stalled = Some(all.iter().map(|(_, time)| *time).sum());
                }
                "v" => version = Some(value),
                _ => {}
            }
        }
        let two = Value::Bare("2");
        if version.as_ref() != Some(&two) {
            let other = version.unwrap_or(Value::Alone);
            return Err(wrong("v", &other, "2, the version of CMCD that has reports"));
        }
        event.session = session.ok_or(CmcdError::Lacks("sid"))?;
        event.at = at.ok_or(CmcdError::Lacks("ts"))?;
        event.bitrate = playhead.or(requested);
        Ok(event)
    }
}

/// The items of a list, each with the kind of track behind its semicolon; a value that is no list
/// is one item.
fn items<'a, T>(
    key: &'static str,
    value: &Value<'a>,
    read: impl Fn(&'static str, &Value<'_>) -> Result<T, CmcdError>,
) -> Result<Vec<(&'a str, T)>, CmcdError> {
    let all = match value {
        Value::List(all) | Value::Bare(all) => all,
        Value::Alone | Value::Quoted(_) => return Ok(vec![("", read(key, value)?)]),
    };
    let item = |text: &'a str| {
        let (bare, kind) = text.split_once(';').unwrap_or((text, ""));
        Ok((kind, read(key, &Value::Bare(bare))?))
    };
    all.split(' ').filter(|text| !text.is_empty()).map(item).collect()
}

/// The bitrate of the video: it has no kind, or one that is not audio.
fn rate(key: &'static str, value: &Value<'_>) -> Result<Option<Rate>, CmcdError> {
    let all = items(key, value, kbps)?;
    let video = all.iter().find(|(kind, _)| *kind != "a").or(all.first());
    Ok(video.map(|(_, rate)| *rate))
}

fn count(value: &Value<'_>) -> Result<u64, CmcdError> {
    let all = items("bsa", value, |key, value| number(key, value, "whole numbers"))?;
    Ok(all.iter().fold(0, |sum, (_, stalls)| sum.saturating_add(*stalls)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the library for players and hls.js write them.
    const BODY: &str = "bsa=(1),bsda=(2300),e=ps,msd=812,pb=(128;a 3000;v),sid=\"a\",sn=3,sta=p,\
        ts=1795973783250,v=2\n\
        e=t,br=(1500),nor=(\"a,b);.m4s\";r=\"0-9\"),sid=\"a\",ts=1795973784250,v=2\n\n";

    #[test]
    fn each_line_is_a_report() {
        let all = Event::parse_all(BODY).unwrap();
        let expected = Event {
            session: "a".to_owned(),
            at: Time::from_millis(1_795_973_783_250),
            number: Some(3),
            state: Some(State::Playing),
            bitrate: Some(Rate::from_mbps(3.0)),
            startup: Some(Duration::from_millis(812)),
            stalls: Some(1),
            stalled: Some(Duration::from_millis(2300)),
        };
        assert_eq!(all[0], expected);
        assert_eq!((all.len(), all[1].bitrate), (2, Some(Rate::from_mbps(1.5))));
        assert_eq!(Event::parse_all(" \n"), Ok(vec![]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| Event::parse_all(text).unwrap_err().to_string();
        for (text, what) in [
            ("sid=\"a\",ts=1", "v=nothing: expected 2"),
            ("sid=\"a\",ts=1,v=1", "v=\"1\": expected 2"),
            ("ts=1,v=2", "the report has no sid"),
            ("sid=\"a\",v=2", "the report has no ts"),
            ("sid=\"a\",ts=x,v=2", "ts=\"x\": expected a whole number of milliseconds"),
            ("sid=\"a\",ts=1,ts=1,v=2", "the key ts is there twice"),
            ("sta=z,v=2", "sta=\"z\": expected s, p, k"),
            ("bsa=(1 x),v=2", "bsa=\"x\": expected whole numbers"),
            ("sid=\"a\",ts=1,v=2\nsid=\"b\",ts=1,v=2", "reports of two sessions at once"),
            ("bsda=(1,v=2", "bsda: a list stands in (…)"),
            ("pb=(1)x,v=2", "follows the value of pb"),
            (&"sid=\"a\",ts=1,v=2\n".repeat(REPORTS_MAX + 1), "more than 256 reports"),
            (&" ".repeat(LEN_MAX + 1).replace(' ', "x"), "CMCD of 4097 bytes"),
        ] {
            assert!(error(text).contains(what), "{text:.80}: {}", error(text));
        }
    }

    proptest! {
        #[test]
        fn no_body_is_too_odd(at in any::<prop::sample::Index>(), c in any::<char>()) {
            let mut text: Vec<char> = BODY.chars().collect();
            let at = at.index(text.len());
            text[at] = c;
            let text: String = text.iter().collect();
            if let Err(error) = Event::parse_all(&text) {
                prop_assert!(!error.to_string().contains('\n'), "{}", error);
            }
        }
    }
}
