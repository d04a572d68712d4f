//! What traces cost: a report without them, with a collector that takes them, and with one that is
//! gone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use trimtab_fleet_client::Role;

use crate::cases::{figure, ingest, median};
use crate::load::Edge;
use crate::process::{Engine, Site};
use crate::{Cli, Figure};

/// Where spans go.
#[derive(Clone, Copy)]
enum Spans {
    Nowhere,
    /// To a collector that takes all.
    Taken,
    /// To a port at which nobody listens.
    Refused,
}

const WAYS: [(&str, Spans); 3] = [
    ("no traces", Spans::Nowhere),
    ("traces to a collector", Spans::Taken),
    ("traces to a collector that is gone", Spans::Refused),
];

/// Processor time of a report, with each way in every round.
pub(crate) fn traces(cli: &Cli, note: &mut dyn FnMut(Figure)) -> Result<(), String> {
    let mut all = WAYS.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..cli.rounds {
        for ((_, spans), (taken, sent)) in WAYS.iter().zip(&mut all) {
            let (processor_us, share) = measure(*spans, cli.seconds)?;
            taken.push(processor_us);
            sent.extend(share);
        }
    }
    let base = median(all[0].0.clone());
    for ((name, _), (taken, sent)) in WAYS.iter().zip(all) {
        let processor_us = median(taken);
        note(figure(format!("{name}: processor time of a report"), processor_us, "us"));
        note(figure("… vs. none", processor_us / base, "x"));
        if !sent.is_empty() {
            note(figure("… spans that are sent", 100.0 * median(sent), "%"));
        }
    }
    Ok(())
}

/// Processor time of a report in microseconds, and the share of the spans that were sent.
fn measure(spans: Spans, seconds: u64) -> Result<(f64, Option<f64>), String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let traces = match spans {
        Spans::Nowhere => String::new(),
        Spans::Taken | Spans::Refused => {
            format!("[traces]\nurl = \"http://{address}/v1/traces\"\n")
        }
    };
    match spans {
        Spans::Taken => drop(thread::spawn(move || collect(&listener))),
        Spans::Nowhere | Spans::Refused => drop(listener),
    }
    let store = format!("[store]\nfile = \"engine.db\"\n{traces}");
    // Nothing is decided meanwhile.
    let site = Site::new("24h", &store)?;
    let engine = site.start()?;
    let engines = [engine];
    let (_, processor_us) = ingest(&site, &engines, &|| 0.0, seconds)?;
    let share = match spans {
        Spans::Nowhere => None,
        Spans::Taken | Spans::Refused => Some(share_sent(&site, &engines[0])?),
    };
    Ok((processor_us, share))
}

/// Takes whatever is posted.
fn collect(listener: &TcpListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        thread::spawn(move || while take(&stream).is_some() {});
    }
}

/// Answers one request; none when there is none any more.
fn take(mut stream: &TcpStream) -> Option<()> {
    let mut request = BufReader::new(stream);
    let mut len = 0;
    loop {
        let mut line = String::new();
        request.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            len = value.trim().parse().ok()?;
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    request.read_exact(&mut vec![0; len]).ok()?;
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()
}

/// The share of an engine's spans that were sent until now.
fn share_sent(site: &Site, engine: &Engine) -> Result<f64, String> {
    let mut viewer = Edge::new(&engine.address, &site.token("viewer", Role::Viewer)?)?;
    let page = viewer.get("/metrics")?;
    let count = |outcome: &str| {
        let series = format!("trimtab_engine_spans_total{{outcome=\"{outcome}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&series)?.trim().parse::<f64>().ok())
    };
    let missing = "the engine counts no spans";
    let (sent, dropped) = (count("sent").ok_or(missing)?, count("dropped").ok_or(missing)?);
    if sent + dropped == 0.0 {
        return Err("no span was sent or dropped: measure longer, by --seconds".to_owned());
    }
    Ok(sent / (sent + dropped))
}
