//! Webhooks: lines of the audit, sent to other servers by HTTP while they happen.
//!
//! The queue is the audit itself, so that nothing waits in memory, and an event outlives the engine.
//! For each webhook the store has the line up to which events were sent, and which engine sends now
//! (`store/turn.rs`). An engine that dies gives its turn up after [`TURN_MS`]; what it had sent and
//! not written down is sent again, under the same id. Each webhook has a thread of its own: a slow
//! receiver holds up no other, and no decision.

mod event;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry::trace::SpanKind;
use ureq::Agent;

pub(crate) use self::event::is_type;
use self::event::{Event, secrets};
use crate::clock::now_ms;
use crate::config::Webhook;
use crate::engine::Engine;
use crate::error::{Error, with_causes};
use crate::logging::{log, warn};
use crate::outgoing;
use crate::store::{StoreError, Turn};
use crate::traces::Begin;

/// A receiver has so long to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long an engine has its turn; longer than an answer takes, with room for clocks that differ.
const TURN_MS: i64 = 30_000;
/// Lines of the audit that are read at a time.
const PAGE: usize = 50;
/// How often to look for new lines.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two attempts: at first, and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// An event that is older is given up.
const GIVE_UP_MS: i64 = 24 * 3_600_000;
/// A receiver that refuses an event so often will not take it.
const REFUSALS_MAX: u32 = 5;

/// Starts a thread for each webhook; they end with the engine. What happens from now on is sent.
/// Blocks.
///
/// # Errors
/// A file with a secret or an authority is not as it has to be, the store does not answer, or the
/// system starts no thread.
pub(crate) fn start(engine: &Arc<Engine>, hooks: &[Webhook]) -> Result<Vec<JoinHandle<()>>, Error> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|e| Error::system("get random bits for webhooks", e))?;
    let me: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let one = |hook: &Webhook| {
        let refused = |why| Error::Refused(format!("[[webhook]] {:?}: {why}", hook.name));
        read_secrets(hook).map_err(refused)?;
        let mut courier = Courier {
            engine: Arc::clone(engine),
            agent: outgoing::agent(hook.authority.as_deref(), ANSWER_WITHIN).map_err(refused)?,
            hook: hook.clone(),
            me: me.clone(),
            sent: None,
            turn_ends_ms: 0,
            is_unwritten: false,
        };
        courier.has_turn()?;
        std::thread::Builder::new()
            .name(format!("hook {}", hook.name))
            .spawn(move || courier.run())
            .map_err(|e| Error::system("start the thread of a webhook", e))
    };
    hooks.iter().map(one).collect()
}

fn read_secrets(hook: &Webhook) -> Result<Vec<Vec<u8>>, String> {
    let file = &hook.secret_file;
    let wrong = |why: String| format!("secret_file {}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
    secrets(&text).map_err(wrong)
}

/// Why an attempt failed.
struct Failure {
    why: String,
    /// Whether the receiver refuses this event, and may take the next one.
    is_refusal: bool,
    /// How long it asks to be left alone.
    wait: Option<Duration>,
}

/// Sends the events of one webhook.
struct Courier {
    engine: Arc<Engine>,
    hook: Webhook,
    agent: Agent,
    /// This engine, among those that share the store.
    me: String,
    /// The line up to which events were sent; none without a turn.
    sent: Option<i64>,
    turn_ends_ms: i64,
    /// Whether an event was sent since the store last knew.
    is_unwritten: bool,
}

impl Courier {
    fn run(&mut self) {
        while !self.is_over() {
            // Trouble with the store is for the closer to tell.
            let is_more = self.go().unwrap_or(false);
            if !is_more {
                self.rest(LOOK_EVERY);
            }
        }
        if self.sent.is_some() {
            let _ = self.take_turn(0);
        }
    }

    fn is_over(&self) -> bool {
        self.engine.ending.load(Ordering::Relaxed)
    }

    /// Rests so long, or until the engine ends.
    fn rest(&self, long: Duration) {
        const SLICE: Duration = Duration::from_millis(100);
        let mut left = long;
        while !left.is_zero() && !self.is_over() {
            let slice = left.min(SLICE);
            std::thread::sleep(slice);
            left -= slice;
        }
    }

    /// Tells the store up to where events were sent, and asks for the turn until a time.
    fn take_turn(&mut self, until_ms: i64) -> Result<bool, StoreError> {
        let turn = Turn {
            hook: &self.hook.name,
            engine: &self.me,
            sent: self.sent,
            now_ms: now_ms(),
            until_ms,
        };
        let taken = self.engine.store.take_turn(&turn);
        // Without an answer it has none.
        self.sent = taken.as_ref().ok().copied().flatten();
        self.turn_ends_ms = until_ms;
        self.is_unwritten = false;
        taken.map(|line| line.is_some())
    }

    /// Whether it is this engine's turn.
    fn has_turn(&mut self) -> Result<bool, StoreError> {
        let now = now_ms();
        let is_sure = self.sent.is_some() && now < self.turn_ends_ms - TURN_MS / 2;
        if is_sure && !self.is_unwritten { Ok(true) } else { self.take_turn(now + TURN_MS) }
    }

    /// Sends what there is, and says whether there may be more.
    fn go(&mut self) -> Result<bool, StoreError> {
        if !self.has_turn()? {
            self.engine.metrics.webhook_behind(&self.hook.name, 0);
            return Ok(false);
        }
        let Some(after) = self.sent else { return Ok(false) };
        let lines = self.engine.store.audit_after(after, PAGE)?;
        for chained in &lines {
            let event = Event::of(chained).filter(|event| event.is_wanted(&self.hook.events));
            if let Some(event) = event
                && !self.deliver(&event)?
            {
                return Ok(false);
            }
            self.sent = Some(chained.line.id);
        }
        self.engine.metrics.webhook_behind(&self.hook.name, 0);
        Ok(lines.len() == PAGE)
    }

    /// Sends an event until it is taken or given up. False: another engine has the turn, or this one
    /// ends.
    fn deliver(&mut self, event: &Event) -> Result<bool, StoreError> {
        let name = self.hook.name.clone();
        for tries in 1.. {
            if self.is_over() || !self.has_turn()? {
                return Ok(false);
            }
            let failure = match self.post(event, tries) {
                Ok(()) => {
                    self.engine.metrics.webhook(&name, "delivered");
                    if tries > 1 {
                        log(&format!("webhook {name}: events are taken again"));
                    }
                    break;
                }
                Err(failure) => failure,
            };
            let (id, why) = (&event.id, &failure.why);
            let age_ms = now_ms() - event.at_ms;
            if age_ms > GIVE_UP_MS || (failure.is_refusal && tries >= REFUSALS_MAX) {
                self.engine.metrics.webhook(&name, "given_up");
                warn(&format!("webhook {name}: gives {id} up after {tries} attempts: {why}"));
                break;
            }
            self.engine.metrics.webhook(&name, "failed");
            self.engine.metrics.webhook_behind(&name, age_ms);
            if tries == 1 {
                warn(&format!("webhook {name}: {id} is not taken, and is sent again: {why}"));
            }
            self.rest(wait(tries).max(failure.wait.unwrap_or_default()).min(WAITS.1));
        }
        self.is_unwritten = true;
        Ok(true)
    }

    /// One attempt. What it reports names neither the URL, which may be a secret, nor what was
    /// answered.
    fn post(&self, event: &Event, tries: u32) -> Result<(), Failure> {
        let span = self.engine.traces.begin(|| Begin {
            kind: SpanKind::Client,
            ..Begin::own(&format!("POST webhook {}", self.hook.name))
        });
        span.set("http.request.method", "POST");
        span.set("trimtab.event", event.id.clone());
        if tries > 1 {
            span.set("http.request.resend_count", i64::from(tries - 1));
        }
        let fail = |why| {
            span.fail("unsent");
            Failure { why, is_refusal: false, wait: None }
        };
        // The file may have changed since.
        let secrets = read_secrets(&self.hook).map_err(fail)?;
        let at_s = now_ms() / 1000;
        let answer = self
            .agent
            .post(&self.hook.url)
            .content_type("application/json")
            .header("user-agent", concat!("trimtab/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", at_s.to_string())
            .header("webhook-signature", event.signature(&secrets, at_s))
            .send(&event.body)
            .map_err(|e| fail(with_causes(&e)))?;
        let status = answer.status();
        span.set("http.response.status_code", i64::from(status.as_u16()));
        if status.is_success() {
            return Ok(());
        }
        span.fail(status.as_str().to_owned());
        let wait = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        Err(Failure {
            why: format!("the receiver answers {}", status.as_u16()),
            // RFC 9110 §15.5: the request is at fault; but 408 and 429 are about the moment.
            is_refusal: status.is_client_error() && ![408, 429].contains(&status.as_u16()),
            wait: wait.and_then(|value| value.parse().ok()).map(Duration::from_secs),
        })
    }
}

/// How long to wait after so many attempts: twice as long each time.
fn wait(tries: u32) -> Duration {
    WAITS.0.saturating_mul(1 << (tries - 1).min(16)).min(WAITS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_have_an_end() {
        let waits = [1, 2, 3, 9, 10, 1000, u32::MAX].map(|tries| wait(tries).as_secs());
        assert_eq!(waits, [1, 2, 4, 256, 300, 300, 300]);
    }
}
