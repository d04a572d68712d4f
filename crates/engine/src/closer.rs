//! Closes intervals when they are over and late edges have had their time: one decision for each aggregate.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trimtab_fleet_client::{Name, SafeOrder, ServiceInfo};

use crate::clock::{is_due, now_ms};
use crate::engine::Engine;
use crate::error::Error;
use crate::learning::Learning;
use crate::logging::{log, warn};
use crate::safe;
use crate::store::{Closed, Decide, Due, Line, Open, Shown, StoreError, Use};
use crate::studies::{self, Looked};
use crate::traces::RoundSpan;

/// Aggregates of one commit: enough to make it cheap, few enough not to hold up reports.
const COMMIT_MAX: usize = 200;
/// Rests between two looks are within these.
const REST: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How long to leave a store alone that does not do what it should.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// Old decisions of one commit, between two looks.
const FORGET_MAX: usize = 2000;

/// How often to look whether lines of the audit are old enough to go.
const AUDIT_EVERY_MS: i64 = 3_600_000;
/// Between two warnings about tokens that expire soon.
const WARN_EVERY_MS: i64 = 24 * 3_600_000;

/// How long things are kept, in ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeps {
    pub(crate) decisions_ms: i64,
    pub(crate) audit_ms: i64,
}

/// Starts the thread; it ends with the engine.
pub(crate) fn start(
    engine: Arc<Engine>,
    keeps: Keeps,
) -> Result<std::thread::JoinHandle<()>, Error> {
    std::thread::Builder::new()
        .name("closer".to_owned())
        .spawn(move || Closing::new(engine, keeps).run())
        .map_err(|e| Error::system("start the thread that closes intervals", e))
}

/// Rounds until the engine ends.
pub(crate) struct Closing {
    round: Round,
    /// Edges have had their time since then, in ms since 1970.
    since_ms: i64,
}

impl Closing {
    pub(crate) fn new(engine: Arc<Engine>, keeps: Keeps) -> Self {
        let since_ms = engine.started_ms;
        let round = Round {
            engine,
            keeps,
            looked: Looked::default(),
            told: None,
            audit_looked_ms: None,
            tokens_looked: None,
        };
        Self { round, since_ms }
    }

    fn run(mut self) {
        while !self.round.engine.ending.load(Ordering::Relaxed) {
            std::thread::sleep(self.turn());
        }
        let engine = &self.round.engine;
        if let Err(e) = write_refusals(engine, engine.attempts.take_all(now_ms())) {
            warn(&format!("the last refusals are not in the audit: {e}"));
        }
        if let Err(e) = write_uses(engine, &engine.who.take_uses(now_ms(), true)) {
            warn(&format!("when tokens were last used is not kept: {e}"));
        }
    }

    /// One round, and how long to rest after it. One that panics is logged and counted, and the
    /// next one begins: the API must not go on alone.
    pub(crate) fn turn(&mut self) -> Duration {
        // Where the clock was set back, nobody waits until it is there again.
        self.since_ms = self.since_ms.min(now_ms());
        let since_ms = self.since_ms;
        let done = catch_unwind(AssertUnwindSafe(|| self.round.go(since_ms)));
        let trouble = match done {
            Ok(None) => None,
            Ok(Some(e)) => {
                // What edges could not deliver while the store was away they deliver now.
                if !matches!(e, StoreError::Damaged { .. }) {
                    self.since_ms = now_ms();
                }
                Some(e.to_string())
            }
            Err(_) => {
                self.round.engine.metrics.closer_panicked();
                warn("what closes intervals panicked, see above, and is started again");
                Some("the thread that closes intervals panicked: see the log".to_owned())
            }
        };
        let engine = &self.round.engine;
        let rests =
            if trouble.is_some() { AFTER_ERROR } else { rest(&engine.learning().services()) };
        engine.health.round(now_ms(), trouble);
        rests
    }
}

/// Writes lines about refusals into the audit.
fn write_refusals(engine: &Engine, lines: Vec<Line>) -> Result<(), StoreError> {
    if lines.is_empty() {
        return Ok(());
    }
    let done = engine.store.write_down(&lines);
    if done.is_err() {
        engine.attempts.put_back(lines);
    }
    done
}

/// Writes down when tokens were used.
fn write_uses(engine: &Engine, uses: &[Use]) -> Result<(), StoreError> {
    if uses.is_empty() { Ok(()) } else { engine.store.used(uses) }
}

/// What is kept from one round to the next.
struct Round {
    engine: Arc<Engine>,
    keeps: Keeps,
    looked: Looked,
    /// What keeps it from closing, told once and not every second.
    told: Option<StoreError>,
    /// When it last looked for lines of the audit that are old enough to go.
    audit_looked_ms: Option<i64>,
    /// When it last looked for tokens that expire, and how long it leaves them alone, in ms.
    tokens_looked: Option<(i64, i64)>,
}

impl Round {
    /// Closes what is due of all services, and says what kept it from that.
    fn go(&mut self, since_ms: i64) -> Option<StoreError> {
        let done = self.close_all(since_ms);
        let before_ms = now_ms() - self.keeps.decisions_ms;
        let forgot = self.engine.store.forget(before_ms, FORGET_MAX);
        let written = write_refusals(&self.engine, self.engine.attempts.take(now_ms()));
        let used = write_uses(&self.engine, &self.engine.who.take_uses(now_ms(), false));
        self.warn_of_tokens();
        let aside = self.forget_audit().err();
        let trouble = done.err().or(forgot.err()).or(written.err()).or(used.err()).or(aside);
        match &trouble {
            None if self.told.is_some() => log("intervals are closed again"),
            Some(e) => {
                self.engine.metrics.store_error();
                if self.told.as_ref() != Some(e) {
                    warn(&format!("not every interval is closed: {e}"));
                }
            }
            None => {}
        }
        self.told.clone_from(&trouble);
        trouble
    }

    /// Says once a day which tokens expire soon.
    fn warn_of_tokens(&mut self) {
        let now = now_ms();
        if self.tokens_looked.is_some_and(|(last, wait)| !is_due(last, wait, now)) {
            return;
        }
        let warning = self.engine.who.warning(now);
        // With nothing to say it looks again in a second: the first requests have the list read.
        let wait_ms = if warning.is_some() { WARN_EVERY_MS } else { 1000 };
        warning.iter().for_each(|warning| warn(warning));
        self.tokens_looked = Some((now, wait_ms));
    }

    /// Lets go of old lines of the audit, where nobody looked for a while.
    fn forget_audit(&mut self) -> Result<(), StoreError> {
        let now = now_ms();
        if self.audit_looked_ms.is_some_and(|last| !is_due(last, AUDIT_EVERY_MS, now)) {
            return Ok(());
        }
        self.engine.store.forget_audit(now - self.keeps.audit_ms, now)?;
        self.audit_looked_ms = Some(now);
        Ok(())
    }

    /// The services take turns, so that none waits for all that is due of another; what goes wrong with one leaves the
    /// others alone.
    fn close_all(&mut self, since_ms: i64) -> Result<(), StoreError> {
        let engine = Arc::clone(&self.engine);
        let services = engine.learning().services();
        let round = RoundSpan::new(&engine.traces);
        let mut first: Result<(), StoreError> = Ok(());
        let mut turn: Vec<&ServiceInfo> = services.iter().collect();
        while !turn.is_empty() && !self.engine.ending.load(Ordering::Relaxed) {
            turn.retain(|service| {
                let done =
                    close_some(&engine, service, since_ms, &round).and_then(|more| match more {
                        More::Due => Ok(true),
                        // Under such an order, what runs stands still.
                        More::None { .. } if self.engine.safe.of(&service.name).is_some() => {
                            Ok(false)
                        }
                        More::None { through } => {
                            studies::go_on(&self.engine, service, through, &mut self.looked)?;
                            Ok(false)
                        }
                        More::TooEarly => Ok(false),
                    });
                done.unwrap_or_else(|e| {
                    if first.is_ok() {
                        first = Err(e);
                    }
                    false
                })
            });
        }
        first
    }
}

/// A twentieth of the shortest interval.
fn rest(services: &[ServiceInfo]) -> Duration {
    let shortest = services.iter().map(|service| service.interval_ms).min().unwrap_or(i64::MAX);
    Duration::from_millis(shortest.max(0) as u64 / 20).clamp(REST.0, REST.1)
}

/// The last interval that may be closed at a time, if any may. After a start, edges first get the time to deliver what
/// they could not before.
pub(crate) fn closable(
    now_ms: i64,
    started_ms: i64,
    grace_ms: i64,
    interval_ms: i64,
) -> Option<i64> {
    (now_ms - started_ms >= grace_ms).then(|| (now_ms - grace_ms).div_euclid(interval_ms) - 1)
}

/// What is left of a service after a commit.
enum More {
    /// More is due.
    Due,
    /// Nothing up to this interval.
    None { through: i64 },
    /// Edges have their time still.
    TooEarly,
}

/// Closes what is due of a service, as much as one commit takes.
fn close_some<'a>(
    engine: &'a Engine,
    service: &'a ServiceInfo,
    since_ms: i64,
    round: &RoundSpan<'a>,
) -> Result<More, StoreError> {
    let now = now_ms();
    let closable = closable(now, since_ms, engine.grace_ms, service.interval_ms);
    let Some(through) = closable else { return Ok(More::TooEarly) };
    let learning = engine.learning();
    let through_ms = through * service.interval_ms;
    let due = Due { service: &service.name, through: through_ms, limit: COMMIT_MAX, now_ms: now };
    let mut deciding = Deciding {
        learning: &*learning,
        service: &service.name,
        kept_safe: engine.safe.of(&service.name),
        now_ms: now,
        oldest: through_ms,
        shown: BTreeMap::new(),
        round,
    };
    let done = engine.store.close(&due, &mut deciding);
    round.over(done.is_ok());
    let (closed, changed) = done?;
    let Deciding { oldest, shown, .. } = deciding;
    engine.metrics.shown(&service.name, shown.values().flatten());
    // How late an interval is, where it could be closed since then.
    let late_ms = |begins_ms: i64| {
        let since = begins_ms + service.interval_ms + engine.grace_ms;
        (now_ms() - since.max(since_ms + engine.grace_ms)).max(0)
    };
    if closed > 0 {
        let delay_s = late_ms(through_ms) as f64 / 1000.0;
        engine.metrics.closed(&service.name, closed, changed.len(), delay_s);
    }
    engine.tell(changed);
    if closed < COMMIT_MAX {
        return Ok(More::None { through });
    }
    engine.health.beat(now_ms(), late_ms(oldest));
    Ok(More::Due)
}

/// Decides on what is due of a service.
struct Deciding<'a, 'b> {
    learning: &'a dyn Learning,
    service: &'b str,
    kept_safe: Option<SafeOrder>,
    now_ms: i64,
    /// When the oldest interval begins that was decided on.
    oldest: i64,
    /// What the decisions show, by what is decided on: a transaction that is tried again decides again.
    shown: BTreeMap<(Name, i64), Vec<Shown>>,
    round: &'a RoundSpan<'b>,
}

impl Decide for Deciding<'_, '_> {
    fn on(&mut self, open: &[Open]) -> Vec<Result<Closed, String>> {
        let span = self.round.decide(self.service, open.len());
        let closed = match &self.kept_safe {
            Some(order) => open.iter().map(|_| Ok(safe::close(order))).collect(),
            None => self.learning.decide(open, self.now_ms),
        };
        drop(span);
        self.round.decided(self.service);
        for (open, closed) in open.iter().zip(&closed) {
            self.oldest = self.oldest.min(open.interval);
            if let Ok(closed) = closed {
                self.shown.insert((open.name.clone(), open.interval), closed.shown.clone());
            }
        }
        closed
    }

    fn heed(&mut self, kept: Option<&str>) {
        // The transaction before is over.
        self.round.over(true);
        self.learning.heed(self.service, kept);
    }

    fn has_found(&self) -> bool {
        self.learning.has_found(self.service)
    }

    fn found(&mut self, kept: Option<&str>) -> Option<String> {
        self.learning.found(self.service, kept)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;
    use crate::clock::simulated;
    use crate::config::Config;
    use crate::run::{assemble, keeps};
    use crate::services::Services;
    use crate::store::{FORGOTTEN, Sqlite};

    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;

    /// What closes intervals of an engine without reports.
    fn closing(folder: &std::path::Path) -> Closing {
        std::fs::create_dir(folder.join("services")).expect("a folder");
        let text = "name = \"tv\"\nreward = \"mean(throughput)\"\n[knobs]\ngamma = {}\n";
        std::fs::write(folder.join("services/tv.toml"), text).expect("a service");
        let file = folder.join("engine.toml");
        let text = "services = \"services\"\nkeep_audit = \"48h\"\n[store]\nfile = \"engine.db\"\n";
        std::fs::write(&file, text).expect("a configuration");
        let config = Config::read(&file).expect("a configuration");
        let services = Services::read(&config.services, config.grace).expect("services");
        let store = Sqlite::open(&folder.join("engine.db"), &services.lengths()).expect("a store");
        let engine = assemble(&config, Arc::new(store), Arc::new(services)).expect("an engine");
        Closing::new(engine, keeps(&config))
    }

    #[test]
    fn old_lines_of_the_audit_go_also_after_the_clock_was_set_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let right_ms = 10_000 * DAY_MS;
        let clock = Arc::new(AtomicI64::new(right_ms + 30 * DAY_MS));
        simulated::follow(Some(Arc::clone(&clock)));
        let mut closing = closing(folder.path());
        closing.turn();
        clock.store(right_ms, Ordering::Relaxed);
        let lines = |closing: &Closing| {
            let all = closing.round.engine.store.audit(i64::MAX, None, 9).expect("lines");
            all.into_iter().map(|line| line.action).collect::<Vec<_>>()
        };
        let line = |days: i64, action| Line {
            at_ms: right_ms - days * DAY_MS,
            who: "kim".to_owned(),
            action,
            subject: String::new(),
            detail: String::new(),
        };
        let all = [line(9, "pause"), line(1, "resume")];
        closing.round.engine.store.write_down(&all).expect("they are kept");
        closing.turn();
        assert_eq!(lines(&closing), [FORGOTTEN, "resume"]);
        // From then on it looks once an hour.
        closing.round.engine.store.write_down(&[line(9, "pin")]).expect("it is kept");
        clock.store(right_ms + HOUR_MS - 1, Ordering::Relaxed);
        closing.turn();
        assert_eq!(lines(&closing), ["pin", FORGOTTEN, "resume"]);
        simulated::follow(None);
    }

    #[test]
    fn an_interval_may_be_closed_when_it_and_its_grace_are_over() {
        // Interval 4 is 4000 to 5000 ms.
        assert_eq!(closable(5299, 0, 300, 1000), Some(3));
        assert_eq!(closable(5300, 0, 300, 1000), Some(4));
        // An engine that came at 5200 waits for what edges held back.
        assert_eq!(closable(5400, 5200, 300, 1000), None);
        assert_eq!(closable(5500, 5200, 300, 1000), Some(4));
    }
}
