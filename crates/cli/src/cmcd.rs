//! `trimtab cmcd`.

use std::fmt::Write as _;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration as StdDuration, Instant, SystemTime, UNIX_EPOCH};

use trimtab_cmcd::{
    Door, Fields, Journal, ListenOptions, Listener, Memory, More, Place, Reader, Row, Source,
    Table, Tail,
};
use trimtab_fleet_client::edge::{Edge, Options, Together, TogetherError};
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_units::{Duration, Time};

use crate::cmcd_args::{Cmcd, CmcdCommand, Follow, Lines};
use crate::{Failure, print};

/// Between looks into the log.
const LOOK: StdDuration = StdDuration::from_millis(200);
/// So many posts at most before the log has its turn.
const POSTS_MAX: usize = 1024;
/// Between lines on how it goes.
const TELL: StdDuration = StdDuration::from_secs(60);

pub(crate) fn run(args: Cmcd) -> Result<(), Failure> {
    match args.command {
        CmcdCommand::Follow(args) => follow(&args),
        CmcdCommand::Show { log, lines, interval, json } => show(&log, &lines, interval, json),
    }
}

fn reader(lines: &Lines, service: &str) -> Result<Reader, Failure> {
    let mut fields = Fields::default();
    for name in &lines.field {
        fields.rename(name).map_err(|e| Failure::input(format!("--field {e}")))?;
    }
    let service = service.parse().map_err(Failure::input)?;
    let together = match &lines.together {
        None => Together::default(),
        Some(file) => groups(file)?
            .of_bits(lines.prefix)
            .map_err(|e| Failure::input(format!("{}: {e}", file.display())))?,
    };
    Ok(Reader { service, prefix: lines.prefix, together, path: lines.path.clone(), fields })
}

/// The groups of a file.
pub(crate) fn groups(file: &Path) -> Result<Together, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| cannot("read", file, &e))?;
    let wrong = |e: TogetherError| Failure::input(format!("{}, {e}", file.display()));
    Together::parse(&text).map_err(wrong)
}

fn cannot(what: &str, path: &Path, e: &std::io::Error) -> Failure {
    Failure::input(format!("cannot {what} {}: {e}", path.display()))
}

fn is_pipe(path: &Path) -> bool {
    path == Path::new("-")
}

fn follow(args: &Follow) -> Result<(), Failure> {
    let reader = reader(&args.lines, &args.service)?;
    let mut memory = Memory::open(&args.folder);
    let mut log = args.log.as_deref().map(|path| open(path, memory.place())).transpose()?;
    let journal = args.listen.map(|_| Journal::open(&args.folder).map(Arc::new)).transpose();
    let journal = journal.map_err(|e| cannot("keep posts in", &args.folder, &e))?;
    let listener = args.listen.map(|address| listen(args, address, journal.clone())).transpose()?;
    let edge = Edge::start(&Options {
        engine: args.at.engine.clone(),
        token: args.at.secret(args.token_file.as_deref()).expect("clap asks for one of them"),
        authority: args.at.ca.clone(),
        folder: args.folder.clone(),
    })
    .map_err(Failure::input)?;
    let mut door = Door::new(edge, reader, args.wait);
    if let Some(left_out) = memory.restore(&mut door, now()) {
        eprintln!("{left_out}");
    }
    if let Some(journal) = &journal {
        let again = journal.read(|post| door.recall(post, now()));
        again.map_err(|e| cannot("read the posts in", &args.folder, &e))?;
    }
    let (mut told, mut trouble) = (Instant::now(), None);
    // Whether everything was read that came before the start.
    let mut is_current = false;
    while !INTERRUPTED.load(Ordering::Relaxed) {
        let mut more = More::Later;
        if let Some((path, source)) = &mut log {
            let read = source.read(|line| door.on_line(line, now()));
            more = read.map_err(|e| cannot("read", path, &e))?;
        }
        let posts = std::iter::from_fn(|| listener.as_ref()?.take());
        for post in posts.take(POSTS_MAX) {
            post.events.iter().for_each(|event| door.on_event(post.address, event, post.arrived));
        }
        is_current |= more != More::Now;
        let (mut place, before) = (None, trouble);
        trouble = None;
        if let Some((path, Source::File(tail))) = &log {
            place = Some(tail.place());
            trouble = tail.trouble().map(|e| unread(path, e));
        }
        if is_current {
            door.on_time(now());
            memory.on_time(&door, place, now());
            journal.iter().for_each(|journal| journal.forget(door.needed_since(now())));
        }
        let unkept = || journal.as_ref().and_then(|journal| journal.trouble());
        trouble = trouble.or_else(|| memory.trouble()).or_else(unkept);
        if told.elapsed() >= TELL || trouble != before {
            told = Instant::now();
            eprintln!("{}", standing(&door, trouble.as_deref()));
        }
        match more {
            More::Now => {}
            More::Later => std::thread::sleep(LOOK),
            More::Never if listener.is_some() => log = None,
            More::Never => break,
        }
    }
    eprintln!("{}", standing(&door, trouble.as_deref()));
    Ok(())
}

fn unread(path: &Path, e: &std::io::Error) -> String {
    let path = path.display();
    format!("cannot read the new {path}: {e}: let this process read it; its lines wait there")
}

fn open(path: &Path, place: Option<Place>) -> Result<(&Path, Source), Failure> {
    let opened = if is_pipe(path) {
        Source::pipe(std::io::stdin())
    } else {
        Tail::resume(path, place).map(Source::File)
    };
    opened.map(|source| (path, source)).map_err(|e| cannot("read", path, &e))
}

fn listen(
    args: &Follow,
    address: SocketAddr,
    journal: Option<Arc<Journal>>,
) -> Result<Listener, Failure> {
    let client = args.client_header.as_deref().map(|name| {
        name.parse().map_err(|_| {
            let why = "no name of a header, e.g. X-Forwarded-For";
            Failure::input(format!("--client-header {name:?}: {why}"))
        })
    });
    let client = client.transpose()?;
    let listener = Listener::start(ListenOptions { address, client, journal })
        .map_err(|e| Failure::input(format!("cannot listen at {address}: {e}")))?;
    eprintln!("listens for reports of players at {}", listener.address());
    Ok(listener)
}

/// Since 1970.
fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn standing(door: &Door, trouble: Option<&str>) -> String {
    let (counts, status) = (door.counts(), door.status());
    let mut text = format!(
        "{} lines, {} with CMCD, {} reports of players, {} late, {} before a configuration was \
         known; {} sessions; to the engine: {} kept, {} late, {} waiting",
        counts.lines,
        counts.requests,
        counts.reports,
        counts.late,
        counts.unknown,
        door.sessions(),
        status.kept,
        status.late,
        status.waiting
    );
    if let Some(error) = &counts.last_error {
        let _ = write!(text, "; {} lines not read, the last one since {error}", counts.unreadable);
    }
    for trouble in trouble.into_iter().chain(status.trouble.as_deref()) {
        let _ = write!(text, "; {trouble}");
    }
    text
}

fn show(path: &Path, lines: &Lines, interval: Duration, json: bool) -> Result<(), Failure> {
    if interval.is_zero() {
        return Err(Failure::input("--interval 0s: intervals are longer than nothing, e.g. 1min"));
    }
    // The name of the service is not shown.
    let mut table = Table::new(reader(lines, "log")?, interval);
    let opened = if is_pipe(path) {
        Source::pipe(std::io::stdin())
    } else {
        File::open(path).and_then(Source::pipe)
    };
    let mut source = opened.map_err(|e| cannot("read", path, &e))?;
    loop {
        match source.read(|line| table.on_line(line)).map_err(|e| cannot("read", path, &e))? {
            More::Never => break,
            More::Later => std::thread::sleep(StdDuration::from_millis(1)),
            More::Now => {}
        }
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("interrupted: nothing is shown"));
        }
    }
    if let (count @ 1.., Some(error)) = &table.unreadable {
        eprintln!("lines not read: {count}; the last one: {error}");
    }
    let rows = table.rows();
    if json {
        let lines = rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        return print(
            &lines.map_err(Failure::input)?.iter().map(|l| format!("{l}\n")).collect::<String>(),
        );
    }
    print(&text(&rows))
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:>12} {:<22} {:>8} {:>13} {:>12} {:>7} {:>10}\n",
        "interval_s", "prefix", "sessions", "bitrate_Mbps", "rebuffering", "stalls", "startup_s"
    );
    let number = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    for row in rows {
        let _ = writeln!(
            text,
            "{:>12} {:<22} {:>8} {:>13} {:>12} {:>7} {:>10}",
            row.interval_s,
            row.prefix,
            row.sessions,
            number(row.bitrate_mbps, 3),
            number(row.rebuffering, 4),
            row.stalls,
            number(row.startup_s, 2)
        );
    }
    text
}
