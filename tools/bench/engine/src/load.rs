//! Edges: as many as wanted, each with a connection that it keeps, and as cheap as they can be, since they share the
//! machine with what is measured.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use trimtab_fleet::{Interval, Report, Sketch, Summary};

/// Connections that a report speaks of.
const CONNECTIONS: u32 = 100;

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The prefix of an aggregate.
pub(crate) fn prefix(number: u64) -> String {
    format!("10.{}.{}.0/24", number / 256 % 256, number % 256).replacen(
        "10.",
        &format!("{}.", 10 + number / 65536),
        1,
    )
}

/// What an edge reports of an aggregate: two statistics of a hundred connections.
pub(crate) fn report(aggregate: u64, interval: u64, version: u64) -> String {
    let spread = |k: u32| f64::from((k * 7919 + aggregate as u32 * 31 + interval as u32 * 17) % 97);
    let mut summary = Summary::new(CONNECTIONS.into());
    let throughput = Sketch::of((0..CONNECTIONS).map(|k| 10.0 + 0.3 * spread(k)));
    let loss = Sketch::of((0..CONNECTIONS).map(|k| 0.0001 * spread(k)));
    summary.set("throughput", throughput).expect("a statistic");
    summary.set("loss", loss).expect("a statistic");
    let key = format!("tv/{}", prefix(aggregate)).parse().expect("a key");
    let report = Report { key, interval: Interval(interval), version, summary, next: None };
    STANDARD.encode(report.encode().expect("a report"))
}

/// An edge.
pub(crate) struct Edge {
    stream: BufReader<TcpStream>,
    token: String,
    sequence: u64,
}

impl Edge {
    pub(crate) fn new(address: &str, token: &str) -> Result<Self, String> {
        let stream =
            TcpStream::connect(address).map_err(|e| format!("cannot reach {address}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned(), sequence: 0 })
    }

    /// Goes on at another engine.
    pub(crate) fn move_to(&mut self, address: &str) -> Result<(), String> {
        let sequence = self.sequence;
        *self = Self { sequence, ..Self::new(address, &self.token)? };
        Ok(())
    }

    /// Sends reports, a JSON list of them, and waits until they are kept.
    pub(crate) fn send(&mut self, reports: &str) -> Result<(), String> {
        self.sequence += 1;
        let body = format!(
            "{{\"sequence\":{},\"sent_ms\":{},\"reports\":{reports}}}",
            self.sequence,
            now_ms()
        );
        self.ask("POST", "/v1/reports", &body).map(|_| ())
    }

    /// A page.
    pub(crate) fn get(&mut self, path: &str) -> Result<String, String> {
        self.ask("GET", path, "")
    }

    /// The versions in force of aggregates, by their numbers; they wait so long for a change.
    pub(crate) fn versions(
        &mut self,
        aggregates: &[(u64, u64)],
        wait_s: u64,
    ) -> Result<Vec<(u64, u64)>, String> {
        let have: Vec<Value> = aggregates
            .iter()
            .map(
                |(n, version)| json!({ "service": "tv", "prefix": prefix(*n), "version": version }),
            )
            .collect();
        let body = json!({ "have": have, "wait_s": wait_s }).to_string();
        let answer: Value = serde_json::from_str(&self.ask("POST", "/v1/configurations", &body)?)
            .map_err(|e| e.to_string())?;
        let changed = answer["configurations"].as_array().cloned().unwrap_or_default();
        let by_prefix: std::collections::HashMap<String, u64> =
            aggregates.iter().map(|(n, _)| (prefix(*n), *n)).collect();
        Ok(changed
            .iter()
            .filter_map(|item| {
                let n = by_prefix.get(item["prefix"].as_str()?)?;
                Some((*n, item["version"].as_u64()?))
            })
            .collect())
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let mut request = String::with_capacity(body.len() + 200);
        let _ = write!(
            request,
            "{method} {path} HTTP/1.1\r\nHost: engine\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        let fail = |e: std::io::Error| format!("the engine went away: {e}");
        self.stream.get_mut().write_all(request.as_bytes()).map_err(fail)?;
        let mut status = String::new();
        self.stream.read_line(&mut status).map_err(fail)?;
        let mut len = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).map_err(fail)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().map_err(|_| "an odd answer".to_owned())?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; len];
        self.stream.read_exact(&mut answer).map_err(fail)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if status.split(' ').nth(1) == Some("200") {
            return Ok(answer);
        }
        Err(format!("{}: {answer}", status.trim()))
    }
}

/// A JSON list of texts that need no escapes.
pub(crate) fn list(reports: &[String]) -> String {
    format!("[\"{}\"]", reports.join("\",\""))
}
