//! Whether the engine does what it is for: what `/healthz` and `/readyz` answer.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use trimtab_fleet_client::ReadyBody;

/// What closes intervals, and gives no sign of life for so long, hangs: a transaction is given up after a minute.
const HANGS_MS: i64 = 180_000;
/// Who closes nothing for so long, or is so far behind, is not ready.
const UNREADY_MS: i64 = 60_000;

/// How closing intervals goes.
#[derive(Debug)]
pub(crate) struct Health {
    /// When it last gave a sign of life, and when it last had closed all that was due, in ms since 1970.
    beat_ms: AtomicI64,
    done_ms: AtomicI64,
    /// How late the oldest interval is that is not closed, in ms.
    behind_ms: AtomicI64,
    trouble: Mutex<Option<String>>,
}

impl Health {
    pub(crate) fn new(now_ms: i64) -> Self {
        Self {
            beat_ms: AtomicI64::new(now_ms),
            done_ms: AtomicI64::new(now_ms),
            behind_ms: AtomicI64::new(0),
            trouble: Mutex::default(),
        }
    }

    /// Closing goes on, and is so late.
    pub(crate) fn beat(&self, now_ms: i64, behind_ms: i64) {
        self.beat_ms.store(now_ms, Ordering::Relaxed);
        self.behind_ms.store(behind_ms.max(0), Ordering::Relaxed);
    }

    /// A round is over, and what went wrong in it.
    pub(crate) fn round(&self, now_ms: i64, trouble: Option<String>) {
        self.beat_ms.store(now_ms, Ordering::Relaxed);
        if trouble.is_none() {
            self.behind_ms.store(0, Ordering::Relaxed);
            self.done_ms.store(now_ms, Ordering::Relaxed);
        }
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(crate) fn behind_s(&self) -> f64 {
        self.behind_ms.load(Ordering::Relaxed) as f64 / 1000.0
    }

    /// Whether what closes intervals still moves.
    pub(crate) fn lives(&self, now_ms: i64) -> bool {
        now_ms - self.beat_ms.load(Ordering::Relaxed) < HANGS_MS
    }

    /// What is known; `store` is what is wrong with the store now.
    pub(crate) fn ready(&self, now_ms: i64, damaged: usize, store: Option<String>) -> ReadyBody {
        let since_ms = now_ms - self.done_ms.load(Ordering::Relaxed);
        let behind_ms = self.behind_ms.load(Ordering::Relaxed);
        let own = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A round may take long where much is due.
        let works_it_off = own.is_none() && behind_ms > 0 && self.lives(now_ms);
        let in_time = since_ms < UNREADY_MS || works_it_off;
        let ready = store.is_none() && in_time && behind_ms < UNREADY_MS;
        let late = (!ready).then(|| "intervals are closed late or not at all".to_owned());
        ReadyBody {
            ready,
            closed_s: since_ms as f64 / 1000.0,
            behind_s: behind_ms as f64 / 1000.0,
            damaged,
            trouble: store.or(own).or(late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_ready_while_it_closes_in_time_and_its_store_answers() {
        let health = Health::new(0);
        assert!(health.ready(59_000, 1, None).ready, "it has just come");
        assert!(!health.ready(60_000, 0, None).ready, "it closes nothing");
        assert!(health.lives(60_000) && !health.lives(180_000));
        health.round(100_000, None);
        assert!(health.ready(101_000, 0, None).ready);
        let gone = health.ready(101_000, 0, Some("no answer".to_owned()));
        assert_eq!((gone.ready, gone.trouble.as_deref()), (false, Some("no answer")));
        // It works off what an outage left: near the present it is ready, far behind it is not.
        health.beat(300_000, 90_000);
        assert!(!health.ready(300_000, 0, None).ready);
        health.beat(301_000, 30_000);
        assert!(health.ready(301_000, 0, None).ready);
        health.round(302_000, Some("the disk is full".to_owned()));
        let full = health.ready(400_000, 0, None);
        assert_eq!((full.ready, full.trouble.as_deref()), (false, Some("the disk is full")));
    }
}
