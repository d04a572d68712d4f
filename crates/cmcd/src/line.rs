//! Lines of access logs: JSON objects, and the combined format of nginx and Apache.

use std::borrow::Cow;
use std::net::IpAddr;

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use trimtab_fleet_client::edge::{Key, Prefix, ServiceName, Together};
use trimtab_units::{Duration, Time};

use crate::{Cmcd, CmcdError};

/// The fields that are read of JSON, and their usual names: those of nginx's variables.
const FIELDS: [(&str, &str); 10] = [
    ("time", "msec"),
    ("address", "remote_addr"),
    ("duration", "request_time"),
    ("url", "request_uri"),
    ("query", "args"),
    ("status", "status"),
    ("cmcd_object", "http_cmcd_object"),
    ("cmcd_request", "http_cmcd_request"),
    ("cmcd_session", "http_cmcd_session"),
    ("cmcd_status", "http_cmcd_status"),
];
const HEADERS: [&str; 4] = ["cmcd_object", "cmcd_request", "cmcd_session", "cmcd_status"];
/// No request is believed to have taken longer.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

/// Why a line is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It begins as JSON, and is none.
    #[error("the line is no JSON object: {0}")]
    Json(String),
    /// It is not of the other format either.
    #[error("the line is neither a JSON object nor in the combined format: it has no {0}")]
    Combined(&'static str),
    /// A field is missing.
    #[error(
        "the line has no field {name:?}: if the {field} has another name, add --field {field}=NAME"
    )]
    Missing {
        /// What it is for.
        field: &'static str,
        /// The name that was looked for.
        name: String,
    },
    /// A field has no such value.
    #[error("the {field} {value:?}: expected {expected}")]
    Value {
        /// What it is for.
        field: &'static str,
        /// What it has, shortened.
        value: String,
        /// What is right.
        expected: &'static str,
    },
    /// What the player sent.
    #[error(transparent)]
    Cmcd(#[from] CmcdError),
}

/// What the fields of JSON are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields([String; FIELDS.len()]);

impl Default for Fields {
    fn default() -> Self {
        Self(FIELDS.map(|(_, name)| name.to_owned()))
    }
}

impl Fields {
    /// Another name for a field, written as `FIELD=NAME`, e.g. `address=client_ip`.
    ///
    /// # Errors
    /// Names the fields that there are.
    pub fn rename(&mut self, text: &str) -> Result<(), String> {
        let known = || FIELDS.map(|(field, _)| field).join(", ");
        let fail = || format!("{text:?}: expected FIELD=NAME, where FIELD is one of {}", known());
        let (field, name) = text.split_once('=').ok_or_else(fail)?;
        let at = FIELDS.iter().position(|(known, _)| *known == field).ok_or_else(fail)?;
        name.clone_into(&mut self.0[at]);
        Ok(())
    }

    fn name(&self, field: &str) -> &str {
        let at = FIELDS.iter().position(|(known, _)| *known == field);
        at.map_or("", |at| &self.0[at])
    }
}

/// One request that was served, as a log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The client's address.
    pub address: IpAddr,
    /// When the request came, since 1970; as `ended` where the log has no duration.
    pub started: Time,
    /// When it was served, since 1970.
    pub ended: Time,
    /// The status of HTTP.
    pub status: u16,
    /// The URL without its query.
    pub path: String,
    /// What the player sent; none where it sent no CMCD.
    pub data: Option<Cmcd>,
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// Its form, a field, or what the player sent, is not as it has to be.
    pub fn parse(text: &str, fields: &Fields) -> Result<Self, LineError> {
        if text.trim_start().starts_with('{') { json(text, fields) } else { combined(text) }
    }
}

fn wrong(field: &'static str, value: &str, expected: &'static str) -> LineError {
    LineError::Value { field, value: value.chars().take(40).collect(), expected }
}

fn address(text: &str) -> Result<IpAddr, LineError> {
    text.parse().map_err(|_| wrong("address", text, "an IP address"))
}

fn status(text: &str) -> Result<u16, LineError> {
    let status = text.parse().ok().filter(|status| (100..1000).contains(status));
    status.ok_or_else(|| wrong("status", text, "a status of HTTP, e.g. 200"))
}

fn seconds(field: &'static str, text: &str, most: f64) -> Result<f64, LineError> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=most).contains(seconds));
    seconds.ok_or_else(|| wrong(field, text, "seconds"))
}

fn since_1970(of: OffsetDateTime) -> Time {
    Time::from_nanos(u64::try_from(of.unix_timestamp_nanos()).unwrap_or(0))
}

/// Seconds since 1970, or the form of RFC 3339.
fn time_of_json(text: &str) -> Result<Time, LineError> {
    // Up to the year 5138: what is larger are other units.
    if let Ok(seconds) = seconds("time", text, 1e11) {
        // Logs have milliseconds; a floating-point number of this size has no nanoseconds.
        return Ok(Time::from_micros((seconds * 1e6).round() as u64));
    }
    let expected = "seconds since 1970, or e.g. 2026-11-29T17:23:03Z";
    OffsetDateTime::parse(text, &Rfc3339).map(since_1970).map_err(|_| wrong("time", text, expected))
}

/// `29/Nov/2026:17:23:03 +0000`.
fn time_of_combined(text: &str) -> Result<Time, LineError> {
    const FORM: &str = "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] \
                        [offset_hour sign:mandatory][offset_minute]";
    let fail = || wrong("time", text, "e.g. 29/Nov/2026:17:23:03 +0000");
    let form = time::format_description::parse_borrowed::<2>(FORM).map_err(|_| fail())?;
    OffsetDateTime::parse(text, &form).map(since_1970).map_err(|_| fail())
}

fn json(text: &str, fields: &Fields) -> Result<Line, LineError> {
    let all: Map<String, Value> =
        serde_json::from_str(text).map_err(|e| LineError::Json(e.to_string()))?;
    let get = |field: &str| -> Option<Cow<'_, str>> {
        let text: Cow<'_, str> = match all.get(fields.name(field))? {
            Value::String(text) => text.into(),
            Value::Number(number) => number.to_string().into(),
            _ => return None,
        };
        // What servers write for nothing.
        (!text.is_empty() && text != "-").then_some(text)
    };
    let need = |field: &'static str| {
        let name = || fields.name(field).to_owned();
        get(field).ok_or_else(|| LineError::Missing { field, name: name() })
    };
    let ended = time_of_json(&need("time")?)?;
    let took = get("duration")
        .map_or(Ok(0.0), |text| seconds("duration", &text, DURATION_MAX.as_secs_f64()))?;
    // Of a request that was none, servers log no URL.
    let has_url = all.contains_key(fields.name("url"));
    let url = if has_url { get("url").unwrap_or_default() } else { need("url")? };
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let headers: Vec<_> = HEADERS.iter().filter_map(|header| get(header)).collect();
    let data = if headers.is_empty() {
        Cmcd::from_query(get("query").as_deref().unwrap_or(query))?
    } else {
        Some(Cmcd::parse(headers.iter().map(|header| &**header))?)
    };
    Ok(Line {
        address: address(&need("address")?)?,
        started: ended - Duration::from_secs_f64(took),
        ended,
        status: status(&need("status")?)?,
        path: path.to_owned(),
        data,
    })
}

/// `ADDRESS - USER [TIME] "METHOD URL PROTOCOL" STATUS BYTES "REFERER" "AGENT"`, and perhaps the
/// request's duration in seconds behind it.
fn combined(text: &str) -> Result<Line, LineError> {
    let no = LineError::Combined;
    let (client, rest) = text.split_once(' ').ok_or(no("client's address"))?;
    let (_, rest) = rest.split_once('[').ok_or(no("[time]"))?;
    let (time, rest) = rest.split_once(']').ok_or(no("[time]"))?;
    let mut quoted = rest.split('"');
    let request = quoted.nth(1).ok_or(no("\"request\""))?;
    let behind = quoted.next().ok_or(no("\"request\""))?;
    // Of a request that was none, servers log no URL.
    let url = request.split(' ').nth(1).unwrap_or_default();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let ended = time_of_combined(time)?;
    let took = match quoted.next_back().map(str::trim) {
        None | Some("") => 0.0,
        Some(text) => seconds("duration", text, DURATION_MAX.as_secs_f64())?,
    };
    let code = behind.split_whitespace().next().ok_or(no("status"))?;
    Ok(Line {
        address: address(client)?,
        started: ended - Duration::from_secs_f64(took),
        ended,
        status: status(code)?,
        path: path.to_owned(),
        data: Cmcd::from_query(query)?,
    })
}

/// Which lines count, and for which aggregate.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The service that they are of.
    pub service: ServiceName,
    /// Bits of the client's address that aggregates are distinguished by: of IPv4, and of IPv6; as
    /// the rule of the agent has them. At most 32 and 128.
    pub prefix: [u8; 2],
    /// Prefixes of so many bits that are one aggregate, as the rule has them.
    pub together: Together,
    /// Only requests whose path begins with this count.
    pub path: String,
    /// What the fields of JSON are named.
    pub fields: Fields,
}

impl Reader {
    /// The aggregate of a line and what it has; `None` where it has no CMCD, is of another path, or
    /// was not served (status 400 or above).
    ///
    /// # Errors
    /// As [`Line::parse`].
    pub fn read(&self, text: &str) -> Result<Option<(Key, Line)>, LineError> {
        let line = Line::parse(text, &self.fields)?;
        let counts = line.data.is_some() && line.status < 400 && line.path.starts_with(&self.path);
        Ok(counts.then(|| (self.key(line.address), line)))
    }

    /// The aggregate of a client.
    pub fn key(&self, address: IpAddr) -> Key {
        let prefix = self.together.of(Prefix::of(address, self.prefix));
        Key { service: self.service.clone(), prefix }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COMBINED: &str = "203.0.113.7 - - [29/Nov/2026:18:36:23 +0100] \"GET /tv/1.m4s?\
        CMCD=br%3D3200%2Csid%3D%22a%22 HTTP/2.0\" 206 812345 \"-\" \"Mozilla/5.0 (X11)\"";
    const JSON: &str = r#"{"msec":1795973783.250,"remote_addr":"2001:db8::7","request_time":"0.250",
        "request_uri":"/tv/1.m4s","status":200,"http_cmcd_object":"br=3200,d=4000,ot=v",
        "http_cmcd_session":"sid=\"a\"","http_cmcd_status":"","http_cmcd_request":"-"}"#;

    fn at_ms(ms: u64) -> Time {
        Time::from_secs(1_795_973_783) + Duration::from_millis(ms)
    }

    #[test]
    fn both_formats_are_read() {
        let line = Line::parse(COMBINED, &Fields::default()).unwrap();
        assert_eq!((line.started, line.ended, line.status), (at_ms(0), at_ms(0), 206));
        assert_eq!((line.address, &*line.path), ([203, 0, 113, 7].into(), "/tv/1.m4s"));
        assert_eq!(line.data.unwrap().to_string(), "br=3200,sid=\"a\"");
        let line = Line::parse(&format!("{COMBINED} 0.25"), &Fields::default()).unwrap();
        assert_eq!(at_ms(0).since(line.started), Duration::from_millis(250));
        let line = Line::parse(JSON, &Fields::default()).unwrap();
        assert_eq!((line.ended, line.started), (at_ms(250), at_ms(0)));
        assert_eq!(line.data.unwrap().to_string(), "br=3200,d=4000,ot=v,sid=\"a\"");
    }

    #[test]
    fn fields_have_the_names_that_a_log_gives_them() {
        let mut fields = Fields::default();
        for name in ["time=ts", "address=cliIP", "url=reqPath", "query=queryStr", "status=code"] {
            fields.rename(name).unwrap();
        }
        let text = r#"{"ts":"2026-11-29T17:36:23.25Z","cliIP":"203.0.113.7","code":"200",
            "reqPath":"/a","queryStr":"x=1&CMCD=bs"}"#;
        let line = Line::parse(text, &fields).unwrap();
        assert_eq!((line.ended, line.data.unwrap().is_starved), (at_ms(250), true));
        let error = fields.rename("when=ts").unwrap_err();
        assert!(error.contains("FIELD is one of time, address, duration"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| Line::parse(text, &Fields::default()).unwrap_err().to_string();
        for (text, what) in [
            ("", "no client's address"),
            ("203.0.113.7 - -", "no [time]"),
            ("203.0.113.7 - - [x] y", "no \"request\""),
            ("{\"msec\":", "the line is no JSON object"),
            ("{}", "no field \"msec\": if the time has another name, add --field time=NAME"),
            ("{\"msec\":1795973783250}", "expected seconds since 1970"),
            (&COMBINED.replace("Nov", "Now"), "expected e.g. 29/Nov/2026:17:23:03 +0000"),
            (&COMBINED.replace("203.0", "203"), "the address \"203.113.7\": expected an IP"),
            (&COMBINED.replace(" 206 ", " - "), "the status \"-\""),
            (&COMBINED.replace("3200", "x"), "br=\"x\": expected a whole number of kbit/s"),
            (&JSON.replace("0.250\"", "-1\""), "the duration \"-1\": expected seconds"),
        ] {
            assert!(error(text).contains(what), "{text}: {}", error(text));
        }
    }

    #[test]
    fn what_counts_is_served_has_cmcd_and_is_of_the_path() {
        let service: ServiceName = "tv".parse().unwrap();
        let fields = Fields::default();
        let (prefix, together, path) = ([24, 48], Together::default(), "/tv/".to_owned());
        let reader = Reader { service, prefix, together, path, fields };
        let key = |text: &str| reader.read(text).unwrap().map(|(key, _)| key.to_string());
        assert_eq!(key(COMBINED).as_deref(), Some("tv/203.0.113.0/24"));
        assert_eq!(key(JSON).as_deref(), Some("tv/2001:db8::/48"));
        for other in [("/tv/", "/vod/"), ("206", "404"), ("?CMCD", "?cmcd"), ("GET ", "")] {
            assert_eq!(key(&COMBINED.replace(other.0, other.1)), None, "{other:?}");
        }
        let (none, some) = ("\"request_uri\":\"\"", "\"request_uri\":\"/tv/1.m4s\"");
        assert_eq!(key(&JSON.replace(some, none)), None, "no request at all");
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(
            is_json in any::<bool>(), at in any::<prop::sample::Index>(), c in any::<char>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut text: Vec<char> = (if is_json { JSON } else { COMBINED }).chars().collect();
            let at = at.index(text.len());
            text[at] = c;
            for text in [&text[..], &text[..cut.index(text.len())]] {
                let text: String = text.iter().collect();
                if let Err(error) = Line::parse(&text, &Fields::default()) {
                    prop_assert!(!error.to_string().contains('\n'), "{}", error);
                }
            }
        }
    }
}
