//! `trimtab trace`.

use std::path::Path;

use serde_json::json;
use trimtab_lab::fetch::{self, Fetched};
use trimtab_lab::report;
use trimtab_lab::report::output::{OutputError, write_file};
use trimtab_lab::report::picture::{self, Format};
use trimtab_lab::run::links;
use trimtab_lab::scenario::{GeneratedKind, TraceSource, named};
use trimtab_net::rate_log::RateLog;
use trimtab_net::{Segmentation, Trace};

use crate::args::{Generate, Output, Random, TraceCommand};
use crate::{Failure, print, samples};

pub(crate) fn run(command: TraceCommand) -> Result<(), Failure> {
    match command {
        TraceCommand::Info { traces, json } => info(&traces, json),
        TraceCommand::Plot { trace, output } => plot(&trace, &output),
        TraceCommand::Segments { traces, bin, penalty, json, output } => {
            samples::segments(&traces, &Segmentation { bin, penalty }, json, output.as_deref())
        }
        TraceCommand::Convert { from, to, bin } => convert(&from, &to, bin),
        TraceCommand::Generate(what) => generate(what),
        TraceCommand::Fetch { set: None, .. } => list_sets(),
        TraceCommand::Fetch { set: Some(set), to, from } => fetch_set(&set, to.as_deref(), &from),
    }
}

fn info(sources: &[TraceSource], as_json: bool) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut text = String::new();
    for found in named(sources).map_err(Failure::input)? {
        let s = links::trace(&found.source).map_err(Failure::input)?.stats();
        rows.push(json!({
            "trace": found.name,
            "duration_s": s.duration.as_secs_f64(),
            "mean_mbps": s.mean.mbps(),
            "median_100ms_mbps": s.median_100ms.mbps(),
            "p5_mbps": s.p5.mbps(),
            "p95_mbps": s.p95.mbps(),
            "cv": s.cv,
            "outage_fraction": s.outage_fraction,
        }));
        text += &format!(
            "{}\n  {:.1} s, mean {:.2} Mbit/s; 100 ms bins: median {:.2}, p5 {:.2}, p95 {:.2} Mbit/s, \
             deviation/mean {:.2}, empty {:.1}%\n",
            found.name,
            s.duration.as_secs_f64(),
            s.mean.mbps(),
            s.median_100ms.mbps(),
            s.p5.mbps(),
            s.p95.mbps(),
            s.cv,
            100.0 * s.outage_fraction,
        );
    }
    if as_json {
        text = format!("{}\n", serde_json::to_string_pretty(&rows).unwrap_or_default());
    }
    print(&text)
}

fn plot(source: &TraceSource, output: &Path) -> Result<(), Failure> {
    let one = single(source)?;
    let trace = links::trace(&one.source).map_err(Failure::input)?;
    if output.extension().is_some_and(|end| end.eq_ignore_ascii_case("html")) {
        let page = report::trace_page(&one.name, &trace);
        return write_file(output, |out| out.write_all(page.as_bytes())).map_err(Failure::input);
    }
    if Format::of(output).is_none() {
        let name = output.display();
        return Err(Failure::input(format!(
            "{name}: name a file that ends in .svg, .pdf, .png or .html"
        )));
    }
    picture::write(output, &report::trace_svg(&one.name, &trace)).map_err(Failure::input)
}

/// The one trace that a source names.
fn single(source: &TraceSource) -> Result<trimtab_lab::scenario::NamedTrace, Failure> {
    let mut found = named(std::slice::from_ref(source)).map_err(Failure::input)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        n => Err(Failure::input(format!("{source} names {n} traces: name one"))),
    }
}

fn convert(from: &Path, to: &Path, bin: trimtab_units::Duration) -> Result<(), Failure> {
    let is_table = |path: &Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let trace = if is_table(from) {
        RateLog::load(from).map_err(Failure::input)?.to_trace().map_err(Failure::input)?
    } else {
        Trace::load(from).map_err(Failure::input)?
    };
    if is_table(to) {
        let log = RateLog::of_trace(&trace, bin);
        write_file(to, |out| log.write_csv(out)).map_err(Failure::input)
    } else {
        write_trace(&trace, Some(to))
    }
}

fn generate(what: Generate) -> Result<(), Failure> {
    let random = |kind, r: Random| {
        (TraceSource::Generated { kind, seed: r.seed, length: r.length }, r.output)
    };
    let (source, Output { output }) = match what {
        Generate::Cellular(r) => random(GeneratedKind::Cellular, r),
        Generate::Wifi(r) => random(GeneratedKind::Wifi, r),
        Generate::Constant { rate, output } => (TraceSource::Constant(rate), output),
        Generate::Step { rates, each, output } => {
            (TraceSource::Steps(rates.into_iter().map(|rate| (each, rate)).collect()), output)
        }
    };
    let trace = links::trace(&source).map_err(Failure::input)?;
    write_trace(&trace, output.as_deref())
}

/// Writes a trace, whole or not at all; to standard output without a path.
fn write_trace(trace: &Trace, path: Option<&Path>) -> Result<(), Failure> {
    let path = path.unwrap_or(Path::new("-"));
    let is_gzip = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    let written: Result<(), OutputError> = write_file(path, |out| {
        if is_gzip {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::best());
            trace.write_text(&mut encoder)?;
            encoder.finish()?.flush()
        } else {
            trace.write_text(out)
        }
    });
    written.map_err(Failure::input)
}

fn list_sets() -> Result<(), Failure> {
    let mut text = String::from("Public trace sets (trimtab trace fetch SET):\n");
    for s in fetch::sets() {
        text += &format!(
            "\n  {}  {} files, {:.1} MB\n      {}\n      repository {}, licence: {}\n      cite: {}\n",
            s.name,
            s.files.len(),
            s.bytes() as f64 / 1e6,
            s.about,
            s.repository,
            s.licence,
            s.citation
        );
    }
    print(&text)
}

fn fetch_set(name: &str, to: Option<&Path>, from: &str) -> Result<(), Failure> {
    let set = fetch::find(name).map_err(Failure::input)?;
    let default = Path::new("traces").join(&set.name);
    let folder = to.unwrap_or(&default);
    // On standard error and before anything is fetched: the user may still press Ctrl-C.
    eprintln!(
        "{}: {} files, {:.1} MB, from {} at commit {}\nlicence of the repository: {}\ncite: {}",
        set.name,
        set.files.len(),
        set.bytes() as f64 / 1e6,
        set.repository,
        &set.commit[..12.min(set.commit.len())],
        set.licence,
        set.citation
    );
    let report = |path: &Path, what| {
        let note = match what {
            Fetched::AlreadyThere => "already there",
            Fetched::New => "fetched, checksum right",
        };
        eprintln!("{}: {note}", path.display());
    };
    let files = fetch::fetch(&set, folder, from, report).map_err(Failure::input)?;
    print(&format!("{} files in {}\n", files.len(), folder.display()))
}
