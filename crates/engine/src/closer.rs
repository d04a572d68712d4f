//! Closes intervals when they are over and late edges have had their time: one decision for each aggregate.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::now_ms;
use crate::engine::{Engine, log};
use crate::error::Error;
use crate::learning::ServiceInfo;
use crate::store::{Due, StoreError};
use crate::studies::{self, Looked};

/// Aggregates of one commit: enough to make it cheap, few enough not to hold up reports.
const COMMIT_MAX: usize = 200;
/// Rests between two looks are within these.
const REST: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How long to leave a store alone that does not do what it should.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// Old decisions of one commit, between two looks.
const FORGET_MAX: usize = 2000;

/// Starts the thread; it ends with the engine.
pub(crate) fn start(
    engine: Arc<Engine>,
    keep_ms: i64,
) -> Result<std::thread::JoinHandle<()>, Error> {
    std::thread::Builder::new()
        .name("closer".to_owned())
        .spawn(move || run(&engine, keep_ms))
        .map_err(|e| Error::system("start the thread that closes intervals", e))
}

fn run(engine: &Engine, keep_ms: i64) {
    let mut looked = Looked::default();
    // What keeps it from closing, told once and not every second.
    let mut told: Option<StoreError> = None;
    while !engine.ending.load(Ordering::Relaxed) {
        let services = engine.learning().services();
        let done = services
            .iter()
            .try_for_each(|service| close_due(engine, service, &mut looked))
            .and_then(|()| engine.store.forget(now_ms() - keep_ms, FORGET_MAX).map(|_| ()));
        match done {
            Ok(()) => {
                if told.take().is_some() {
                    log("intervals are closed again");
                }
                std::thread::sleep(rest(&services));
            }
            Err(e) => {
                engine.metrics.store_error();
                if told.as_ref() != Some(&e) {
                    log(&format!("no interval is closed: {e}"));
                }
                told = Some(e);
                std::thread::sleep(AFTER_ERROR);
            }
        }
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

fn close_due(
    engine: &Engine,
    service: &ServiceInfo,
    looked: &mut Looked,
) -> Result<(), StoreError> {
    let now = now_ms();
    let closable = closable(now, engine.started_ms, engine.grace_ms, service.interval_ms);
    let Some(through) = closable else { return Ok(()) };
    let learning = engine.learning();
    while !engine.ending.load(Ordering::Relaxed) {
        let due = Due { service: &service.name, through, limit: COMMIT_MAX, now_ms: now_ms() };
        let (closed, changed) =
            engine.store.close(&due, &mut |open| learning.decide(open, due.now_ms))?;
        if closed > 0 {
            let since = (through + 1) * service.interval_ms + engine.grace_ms;
            let delay_s =
                (now_ms() - since.max(engine.started_ms + engine.grace_ms)).max(0) as f64 / 1000.0;
            engine.metrics.closed(&service.name, closed, changed.len(), delay_s);
        }
        engine.tell(changed);
        if closed < COMMIT_MAX {
            break;
        }
    }
    studies::go_on(engine, service, through, looked)
}

#[cfg(test)]
mod tests {
    use super::*;

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
