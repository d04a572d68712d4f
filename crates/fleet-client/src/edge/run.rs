//! The edge at work: a book, and two threads that talk to the engine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration as StdDuration;

use serde_json::Value;
use trimtab_fleet::{Configuration, Control, Interval, Key};
use trimtab_units::{Duration, Time};

use super::book::{Book, InForce, Observation};
use super::outbox::Outbox;
use super::state::{State, StateError};
use super::turns::Clock;
use crate::{
    Client, ConfigurationItem, ConfigurationQuery, EXPIRES_SOON_MS, Error, Held, HostComparisons,
    Secret,
};

/// Aggregates of one question; the engine answers no more.
const ASK_MAX: usize = 1000;
/// How long the engine may let a question for new configurations wait.
const WAIT_S: u32 = 30;
/// Between tries when the engine does not answer: first, and at most.
const RETRY: (StdDuration, StdDuration) =
    (StdDuration::from_millis(200), StdDuration::from_secs(10));
/// The same at most, as the edge counts time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Between looks for intervals that are over.
const LOOK: StdDuration = StdDuration::from_millis(200);
/// Connections hand in what they saw when they are looked at next, at most so long after the end of an interval.
const SETTLE_MAX: Duration = Duration::from_secs(4);
/// Between questions for the services, whose intervals may have another length.
const SERVICES_AGAIN: Duration = Duration::from_secs(60);

/// How to reach the engine, and where to keep what outlasts the process.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine's URL.
    pub engine: String,
    /// The token of an edge, `trimtab engine token add NAME --role edge --service …`, or its
    /// certificate. From files that change, the new one is taken with the next question.
    pub token: Secret,
    /// A file with the certificates that the engine is trusted by, where those of the web are not.
    pub authority: Option<PathBuf>,
    /// A folder of this edge alone.
    pub folder: PathBuf,
}

/// How an edge does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Aggregates with a configuration.
    pub aggregates: usize,
    /// Reports that the engine has kept.
    pub kept: u64,
    /// Reports that came to the engine when their interval was closed.
    pub late: u64,
    /// Reports that no engine has yet.
    pub waiting: usize,
    /// Reports that were given up: for want of room, or because the engine refused them.
    pub dropped: u64,
    /// When the secret of this edge's token expires, in ms since 1970; none: never, or not known yet.
    pub expires_ms: Option<i64>,
    /// What is wrong now, or will be soon.
    pub trouble: Option<String>,
}

/// An edge that runs. What is in force is kept for a restart when it is dropped. Its threads end then,
/// each after its present question.
#[derive(Debug)]
pub struct Edge {
    shared: Arc<Shared>,
    /// None where it talks to nobody.
    keeper: Option<Arc<Keeper>>,
    /// Whether it asks with a certificate.
    is_certified: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    clock: Clock,
    book: Mutex<Book>,
    status: Mutex<Status>,
    /// What the host found by comparing its rules, until it is sent.
    found: Mutex<Option<HostComparisons>>,
    /// Something is unknown, or the edge ends.
    wake: Condvar,
    woken: Mutex<bool>,
    ending: AtomicBool,
}

impl Edge {
    /// Starts the threads. That the engine does not answer is no error: it may come later.
    ///
    /// # Errors
    /// The folder cannot be used, `authority` has no certificate, or what it asks with cannot be
    /// read.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        Self::start_with(options, Clock::default())
    }

    /// The same by another clock, which says the time since 1970: for tests of clocks that are off.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_by(
        options: &Options,
        clock: impl Fn() -> Time + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        Self::start_with(options, Clock::new(clock))
    }

    fn start_with(options: &Options, clock: Clock) -> Result<Self, StartError> {
        let client =
            Client::new(&options.engine, options.token.clone(), options.authority.as_deref())?;
        let (mut edge, reporting, following) = Self::parts(client, &options.folder, clock)?;
        edge.is_certified = matches!(options.token, Secret::Certificate { .. });
        spawn("edge-reports", move || reporting.run())?;
        spawn("edge-configurations", move || following.run())?;
        Ok(edge)
    }

    /// An edge, and what its threads do.
    pub(super) fn parts(
        client: Client,
        folder: &Path,
        clock: Clock,
    ) -> Result<(Self, Reporting, Following), StateError> {
        let mut book = Book::default();
        let (state, sequence) = State::open(folder, &mut book, clock.now())?;
        let keeper = Arc::new(Keeper::new(state, sequence));
        let edge = Self::of(book, Some(Arc::clone(&keeper)), clock);
        let (client, shared) = (Arc::new(client), Arc::clone(&edge.shared));
        let reporting =
            Reporting::new(Arc::clone(&client), Arc::clone(&shared), Arc::clone(&keeper));
        Ok((edge, reporting, Following::new(client, shared, keeper)))
    }

    /// An edge that talks to nobody: it gets all it knows from [`learn`](Self::learn).
    pub fn alone() -> Self {
        Self::of(Book::default(), None, Clock::default())
    }

    fn of(book: Book, keeper: Option<Arc<Keeper>>, clock: Clock) -> Self {
        Self {
            keeper,
            is_certified: false,
            shared: Arc::new(Shared {
                clock,
                book: Mutex::new(book),
                status: Mutex::default(),
                found: Mutex::default(),
                wake: Condvar::new(),
                woken: Mutex::new(false),
                ending: AtomicBool::new(false),
            }),
        }
    }

    /// The configuration of an aggregate; `None` until the engine has told it the first time.
    pub fn in_force(&self, key: &Key) -> Option<Arc<InForce>> {
        let mut book = self.shared.book();
        let before = book.len();
        let force = book.in_force(key, self.shared.now());
        let new = book.len() > before;
        drop(book);
        if new {
            self.shared.wake();
        }
        force
    }

    /// Aggregates whose configuration has changed, or that were forgotten, since the last time that
    /// anybody asked; all, the first time.
    pub fn take_news(&self) -> BTreeSet<Key> {
        self.shared.book().take_news()
    }

    /// The configuration of an aggregate as [`in_force`](Self::in_force), which this does not count as use.
    pub fn known(&self, key: &Key) -> Option<Arc<InForce>> {
        self.shared.book().known(key)
    }

    /// The interval that it is now, by the clock of this machine.
    pub fn interval(&self, force: &InForce) -> Interval {
        Interval::at(self.shared.now(), force.interval)
    }

    /// What one connection saw in an interval, all of it under one version of the configuration.
    /// False where it is left out, e.g. since the interval is reported already.
    pub fn record(&self, key: &Key, version: u64, interval: Interval, seen: &Observation) -> bool {
        self.shared.book().record(key, version, interval, seen)
    }

    /// The same of many connections at once: as whole, so that none of the reports goes out with a
    /// part of them.
    pub fn record_all(&self, all: &[(Key, u64, Interval, Observation)]) {
        let mut book = self.shared.book();
        for (key, version, interval, seen) in all {
            book.record(key, *version, *interval, seen);
        }
    }

    /// Tells a configuration, as the engine would.
    pub fn learn(&self, key: Key, force: InForce) {
        self.shared.book().learn(key, force, self.shared.now());
    }

    /// The reports of all intervals until a time, which then go to nobody else: for an edge that is
    /// [alone](Self::alone).
    pub fn close(&self, until: Time) -> Vec<trimtab_fleet::Report> {
        let ended = self.shared.book().close(until, |_| Duration::ZERO);
        ended.into_iter().map(|one| one.report).collect()
    }

    /// Hands in what this host found by comparing its rules; the engine keeps the last. Of what
    /// waits for the engine only the last is sent.
    pub fn compared(&self, found: HostComparisons) {
        *self.shared.found() = Some(found);
    }

    /// How it does.
    pub fn status(&self) -> Status {
        let (aggregates, without) = {
            let book = self.shared.book();
            let without = (book.unanswered().count(), book.unanswered().next().cloned());
            (book.all().count(), without)
        };
        let mut status = Status { aggregates, ..self.shared.status().clone() };
        if let (count, Some(first)) = without {
            status.trouble.get_or_insert_with(|| {
                format!(
                    "the engine has no configuration for {first} ({count} in all): it has no \
                         such service, or not for this token"
                )
            });
        }
        let now_ms = self.shared.now_ms();
        let soon = |at: &i64| *at < now_ms + EXPIRES_SOON_MS;
        if let Some(at) = status.expires_ms.filter(soon) {
            let left_h = (at - now_ms).max(0) / 3_600_000;
            status.trouble.get_or_insert_with(|| {
                let (days, hours) = (left_h / 24, left_h % 24);
                let (what, remedy) = match self.is_certified {
                    true => ("certificate", "renew it, in its file"),
                    false => (
                        "token",
                        "`trimtab engine token rotate NAME` makes another secret, which belongs \
                         into its file",
                    ),
                };
                format!(
                    "the {what} of this edge expires in {days} days and {hours} hours: {remedy}"
                )
            });
        }
        status
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Release);
        self.shared.wake();
        // A thread may have put a configuration in force, and not have come to this.
        if let Some(keeper) = &self.keeper {
            keeper.keep(&self.shared);
        }
    }
}

/// Why an edge does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What the engine is to be trusted by is no certificate.
    #[error(transparent)]
    Engine(#[from] Error),
    /// Its folder.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no thread for it.
    #[error("cannot start the thread {0}: {1}")]
    Thread(&'static str, String),
}

fn spawn(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|e| StartError::Thread(name, e.to_string()))
}

impl Shared {
    /// Since 1970. Intervals are counted from there, so that edges and engine agree on them.
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn now_ms(&self) -> i64 {
        (self.now().as_nanos() / 1_000_000) as i64
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self) -> MutexGuard<'_, Option<HostComparisons>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    /// Waits until something is unknown, the edge ends, or for so long.
    fn wait(&self, time: StdDuration) {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(woken, time, |woken| !*woken);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Takes configurations over; one that cannot be carried out here is left out, and told as trouble.
    fn learn(
        &self,
        items: Vec<ConfigurationItem>,
        length: impl Fn(&str) -> Option<Duration>,
    ) -> bool {
        let mut changed = false;
        for item in items {
            let Some(interval) = length(&item.service) else { continue };
            match configuration(&item) {
                Ok((key, configuration)) => {
                    self.book().learn(key, InForce { configuration, interval }, self.now());
                    changed = true;
                }
                Err(why) => self.status().trouble = Some(why),
            }
        }
        changed
    }
}

fn configuration(item: &ConfigurationItem) -> Result<(Key, Configuration), String> {
    let name = format!("{}/{}", item.service, item.prefix);
    let wrong = |why: &str| format!("the configuration of {name} is left as it was: {why}");
    let key: Key = name.parse().map_err(|e: trimtab_fleet::KeyError| wrong(&e.to_string()))?;
    let (algorithm, knobs) = scheme(&item.configuration).map_err(wrong)?;
    let control = &item.configuration["control"];
    let control = match control.is_null() {
        true => None,
        false => Some(read_control(control).map_err(|why| wrong(&format!("its control: {why}")))?),
    };
    let configuration = Configuration { version: item.version, algorithm, knobs, control };
    configuration.spec().map_err(|e| wrong(&e.to_string()))?;
    Ok((key, configuration))
}

/// An algorithm and its knobs.
type Scheme = (String, Vec<(String, f64)>);

/// Those of a configuration.
fn scheme(from: &Value) -> Result<Scheme, &'static str> {
    let algorithm = from["algorithm"].as_str().ok_or("it names no algorithm")?;
    let knobs = from["knobs"].as_object().ok_or("it has no knobs")?;
    let knobs = knobs.iter().filter_map(|(knob, value)| Some((knob.clone(), value.as_f64()?)));
    Ok((algorithm.to_owned(), knobs.collect()))
}

/// What some clusters run instead. Where this edge cannot, all of it is left as it was: without a
/// control its report would count the trial alone.
fn read_control(from: &Value) -> Result<Control, String> {
    let (algorithm, knobs) = scheme(from)?;
    let whole = |name: &str| from[name].as_u64().ok_or_else(|| format!("it has no {name}"));
    let (version, seed) = (whole("version")?, whole("seed")?);
    let share = from["share"].as_f64().filter(|share| *share > 0.0 && *share <= 0.5);
    let share = share.ok_or("its share is above 0 and at most 0.5")?;
    let control = Control { version, algorithm, knobs, share, seed };
    control.configuration().spec().map_err(|e| e.to_string())?;
    Ok(control)
}

/// The state, shared by both threads.
#[derive(Debug)]
pub(super) struct Keeper {
    /// The thread that has it keeps the latest book.
    state: Mutex<State>,
    /// Of the last batch that was made.
    sequence: AtomicU64,
}

impl Keeper {
    fn new(state: State, sequence: u64) -> Self {
        Self { state: Mutex::new(state), sequence: AtomicU64::new(sequence) }
    }

    fn keep(&self, shared: &Shared) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let book = shared.book().clone();
        if let Err(error) = state.keep(&book, self.sequence.load(Ordering::Relaxed)) {
            shared.status().trouble =
                Some(format!("the last configurations are not kept for a restart: {error}"));
        }
    }
}

/// How long the intervals of each service are, asked for now and then.
#[derive(Debug, Default)]
struct Lengths {
    known: Vec<(String, Duration)>,
    asked_at: Option<Time>,
}

impl Lengths {
    fn refresh(&mut self, client: &Client, shared: &Shared) -> Result<(), Error> {
        let now = shared.now();
        if self.asked_at.is_some_and(|at| now.since(at) < SERVICES_AGAIN) {
            return Ok(());
        }
        let answer = client.services()?;
        shared.status().expires_ms = answer.expires_ms;
        let services = answer.services;
        let known: Vec<(String, Duration)> = services
            .into_iter()
            .filter(|service| service.interval_ms > 0)
            .map(|service| (service.name, Duration::from_millis(service.interval_ms as u64)))
            .collect();
        if known != self.known {
            let mut book = shared.book();
            known.iter().for_each(|(service, length)| book.set_length(service, *length));
            self.known = known;
        }
        self.asked_at = Some(now);
        Ok(())
    }

    fn of(&self, service: &str) -> Option<Duration> {
        self.known.iter().find(|(name, _)| name == service).map(|(_, length)| *length)
    }
}

/// Waits for configurations that change.
pub(super) struct Following {
    client: Arc<Client>,
    shared: Arc<Shared>,
    keeper: Arc<Keeper>,
    lengths: Lengths,
    retry: StdDuration,
    /// Which part of more aggregates than one question holds comes next.
    place: usize,
}

impl Following {
    fn new(client: Arc<Client>, shared: Arc<Shared>, keeper: Arc<Keeper>) -> Self {
        let lengths = Lengths::default();
        Self { client, shared, keeper, lengths, retry: RETRY.0, place: 0 }
    }

    /// For as long as the edge is there.
    fn run(mut self) {
        while !self.shared.ends() {
            thread::sleep(self.turn());
        }
    }

    /// Asks once; returns how long to rest before the next question.
    pub(super) fn turn(&mut self) -> StdDuration {
        let shared = &*self.shared;
        let have: Vec<Held> =
            shared.book().versions().filter(|(_, version)| version.is_some()).map(held).collect();
        if have.is_empty() {
            return LOOK;
        }
        // More than one question can hold take turns, and then nobody waits.
        let chunks = have.chunks(ASK_MAX);
        let wait_s = if chunks.len() == 1 { WAIT_S } else { 0 };
        self.place = (self.place + 1) % chunks.len();
        let have = have.chunks(ASK_MAX).nth(self.place).map(<[Held]>::to_vec).unwrap_or_default();
        let lengths = &mut self.lengths;
        let asked = lengths
            .refresh(&self.client, shared)
            .and_then(|()| self.client.configurations(&ConfigurationQuery { have, wait_s }));
        match asked {
            Ok(answer) => {
                self.retry = RETRY.0;
                shared.status().trouble = None;
                if shared.learn(answer.configurations, |service| lengths.of(service)) {
                    self.keeper.keep(shared);
                }
                if wait_s == 0 { LOOK } else { StdDuration::ZERO }
            }
            Err(error) => {
                shared.status().trouble =
                    Some(format!("{error}; the last configurations stay in force"));
                let rest = self.retry;
                self.retry = (self.retry * 2).min(RETRY.1);
                rest
            }
        }
    }
}

fn held((key, version): (&Key, Option<u64>)) -> Held {
    Held { service: key.service.as_str().to_owned(), prefix: key.prefix.to_string(), version }
}

/// Sends what is over, and asks for what is unknown.
pub(super) struct Reporting {
    client: Arc<Client>,
    shared: Arc<Shared>,
    keeper: Arc<Keeper>,
    lengths: Lengths,
    outbox: Outbox,
    /// Not before; and how long to wait after the next failure.
    again: Option<Time>,
    retry: StdDuration,
    /// The trouble that the last try had.
    told: Option<String>,
}

impl Reporting {
    fn new(client: Arc<Client>, shared: Arc<Shared>, keeper: Arc<Keeper>) -> Self {
        Self {
            client,
            shared,
            keeper,
            lengths: Lengths::default(),
            outbox: Outbox::default(),
            again: None,
            retry: RETRY.0,
            told: None,
        }
    }

    fn run(mut self) {
        while !self.shared.ends() {
            self.shared.wait(LOOK);
            self.turn();
        }
    }

    /// Closes what is over, and talks to the engine unless it is to be left alone for now.
    pub(super) fn turn(&mut self) {
        let now = self.shared.now();
        let reports = self.shared.book().close(now, settle);
        self.outbox.add(&reports);
        // A clock that was set back must not make the wait longer.
        let waits = |again: Time| now < again && again.since(now) <= LONGEST_WAIT;
        if !self.again.is_some_and(waits) {
            match self.talk() {
                Ok(()) => {
                    (self.again, self.retry) = (None, RETRY.0);
                    self.trouble_is_over();
                }
                Err(error) => {
                    self.told = Some(format!("{error}; reports wait for the engine"));
                    self.shared.status().trouble.clone_from(&self.told);
                    let rest = Duration::from_nanos(self.retry.as_nanos() as u64);
                    self.again = Some(self.shared.now() + rest);
                    self.retry = (self.retry * 2).min(RETRY.1);
                }
            }
        }
        let mut status = self.shared.status();
        (status.waiting, status.dropped) = (self.outbox.len(), self.outbox.dropped);
    }

    /// Takes back the trouble of the tries before, but none that another part has told since.
    fn trouble_is_over(&mut self) {
        if let Some(told) = self.told.take() {
            let mut status = self.shared.status();
            status.trouble.take_if(|trouble| *trouble == told);
        }
    }

    fn talk(&mut self) -> Result<(), Error> {
        // Whether there is an engine at all shows before the first connection.
        if self.lengths.asked_at.is_none() {
            self.lengths.refresh(&self.client, &self.shared)?;
        }
        self.ask_for_unknown()?;
        self.tell_comparisons()?;
        loop {
            // Larger than any before, also where what was kept is lost.
            let last = self.keeper.sequence.load(Ordering::Relaxed);
            let next = (last + 1).max(self.shared.now().as_nanos() / 1000);
            let Some(batch) = self.outbox.batch(self.shared.now(), next) else { return Ok(()) };
            self.keeper.sequence.store(batch.sequence, Ordering::Relaxed);
            match self.client.report(batch) {
                Ok(answer) => {
                    self.outbox.done();
                    let mut status = self.shared.status();
                    status.kept += u64::from(answer.kept);
                    status.late += u64::from(answer.late);
                    self.outbox.dropped += u64::from(answer.refused);
                    status.trouble = answer.refused_why.map(|why| {
                        format!("the engine does not keep {} reports: {why}", answer.refused)
                    });
                }
                // What it will not take today it will not take tomorrow, and the next batch may be another service's.
                Err(error @ (Error::Refused(_) | Error::NotAllowed { .. })) => {
                    self.outbox.dropped += self.outbox.done() as u64;
                    return Err(error);
                }
                // Where a clock is wrong for a while, these are taken when it is right again.
                Err(error @ Error::Clock(_)) => {
                    self.outbox.take_back();
                    return Err(error);
                }
                Err(error) => {
                    self.outbox.is_unsure();
                    return Err(error);
                }
            }
        }
    }

    fn tell_comparisons(&self) -> Result<(), Error> {
        let Some(found) = self.shared.found().take() else { return Ok(()) };
        match self.client.tell_comparisons(&found) {
            // An engine of an earlier version has no place for it; reports are to go on.
            Ok(_) | Err(Error::Refused(_) | Error::NotAllowed { .. }) => Ok(()),
            Err(error) => {
                // What the host found meanwhile is newer.
                self.shared.found().get_or_insert(found);
                Err(error)
            }
        }
    }

    fn ask_for_unknown(&mut self) -> Result<(), Error> {
        let unknown = self.shared.book().to_ask(self.shared.now(), ASK_MAX);
        if unknown.is_empty() {
            return Ok(());
        }
        self.lengths.refresh(&self.client, &self.shared)?;
        let have = unknown.iter().map(|key| held((key, None))).collect();
        let answer = self.client.configurations(&ConfigurationQuery { have, wait_s: 0 })?;
        self.shared.book().asked(&unknown, self.shared.now());
        let lengths = &self.lengths;
        if self.shared.learn(answer.configurations, |service| lengths.of(service)) {
            self.keeper.keep(&self.shared);
        }
        Ok(())
    }
}

/// A twentieth of the interval, and a few seconds at most.
fn settle(interval: Duration) -> Duration {
    (interval / 20).min(SETTLE_MAX)
}

#[cfg(test)]
mod tests;
