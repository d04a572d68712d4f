//! The broker between engines: NATS with JetStream passes batches of reports from the engine that
//! got them to one that is free.
//!
//! Every engine puts what edges send into one stream, which the broker keeps in a file, and every
//! engine takes from it through one durable consumer: the broker gives each message to one of them,
//! and again to another where none has acknowledged it in time. Who takes a message commits its
//! batches to the store, tells the engine that put it there what became of each, and only then
//! acknowledges it. So an edge gets its answer when the batch is in the store; one that is handed
//! out twice is distinguished there by the number that its edge gave it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, AckKind, Message};
use async_nats::{Client, ConnectOptions, Event, HeaderMap};
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use trimtab_fleet_client::Name;

use crate::config::BrokerSettings;
use crate::error::with_causes;
use crate::logging::{log, warn};
use crate::store::{Batch, Outcome, StoreError};

/// A message has about so many bytes at most, unless a single batch has more.
const MESSAGE_BYTES: usize = 256 << 10;
/// What an engine takes and has not committed yet: messages, and bytes of one commit.
const TAKEN_MAX: usize = 32;
const COMMIT_BYTES: usize = 2 << 20;
/// Those who take, in each engine: while one waits for a commit, the other prepares.
const TAKERS: usize = 2;
/// How long an engine waits for the word that a batch is kept. Then its edge has to send again.
const WORD_WAIT: Duration = Duration::from_secs(3);
/// What is not acknowledged for so long is given to another engine.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// How often the broker sends a sign of life, also when nothing comes. After two that are missing
/// those who take ask anew: it may have forgotten, in a restart, that they did.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long the broker remembers that they asked.
const ASKED: Duration = Duration::from_secs(30);
/// And what a store would not take comes back so soon.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// Messages that wait at the broker at most, and their bytes; beyond, edges are asked to come back.
/// The broker sets the bytes aside when the stream is made.
const WAITING_MESSAGES: i64 = 100_000;
const WAITING_BYTES: i64 = 256 << 20;
/// Where the word is to go.
const WORD_TO: &str = "Trimtab-Word-To";

/// What is said of a message to who sent it.
type Word = Result<Vec<Outcome>, String>;
/// Those who wait for it, by the number of their message.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Word>>>>;
/// Puts batches into the store.
pub(crate) type Keeper = Arc<dyn Fn(&[Batch]) -> Result<Vec<Outcome>, StoreError> + Send + Sync>;
/// Takes the aggregates whose configurations changed.
pub(crate) type Tell = Box<dyn Fn(Vec<Name>) + Send + Sync>;

/// Aggregates whose configuration changed, told to the other engines.
#[derive(Serialize, Deserialize)]
struct Changed {
    from: String,
    names: Vec<Name>,
}

/// A connection to the broker.
pub(crate) struct Broker {
    /// None once it ends.
    runtime: Option<Runtime>,
    client: Client,
    settings: BrokerSettings,
    place: String,
    inbox: String,
    waiting: Waiting,
    next: AtomicU64,
}

impl Broker {
    /// Connects, and makes the stream where there is none.
    pub(crate) fn open(settings: &BrokerSettings, body_max: u64) -> Result<Self, StoreError> {
        let place = format!("the NATS server at {}", settings.nats.join(", "));
        let fail = |what: &'static str, reason: String| StoreError::Unusable {
            what,
            place: place.clone(),
            reason,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("broker")
            .enable_all()
            .build()
            .map_err(|e| fail("start the threads for", e.to_string()))?;
        let options = options(settings).map_err(|reason| fail("connect to", reason))?;
        let client = runtime.block_on(options.connect(settings.nats.clone())).map_err(|e| {
            fail("connect to", format!("{}; start it, or mend [broker] nats", with_causes(&e)))
        })?;
        let payload_max = client.server_info().max_payload as u64;
        if payload_max < body_max {
            let reason = format!(
                "it takes messages of {payload_max} bytes, and a request may have {body_max}: set its max_payload to \
                 {body_max} or more, or lower [limits] body"
            );
            return Err(fail("use", reason));
        }
        let inbox = client.new_inbox();
        let broker = Self {
            runtime: Some(runtime),
            client,
            settings: settings.clone(),
            place: place.clone(),
            inbox,
            waiting: Waiting::default(),
            next: AtomicU64::new(0),
        };
        broker.runtime().block_on(broker.attach()).map_err(|reason| fail("use", reason))?;
        broker.runtime().block_on(broker.listen()).map_err(|reason| fail("use", reason))?;
        Ok(broker)
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until this is dropped")
    }

    /// Which one it is, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    async fn attach(&self) -> Result<PullConsumer, String> {
        attach(&self.client, &self.settings).await
    }

    /// Receives what became of messages.
    async fn listen(&self) -> Result<(), String> {
        let mut words =
            self.client.subscribe(format!("{}.*", self.inbox)).await.map_err(|e| e.to_string())?;
        let waiting = Arc::clone(&self.waiting);
        tokio::spawn(async move {
            while let Some(message) = words.next().await {
                let number = message.subject.rsplit('.').next().and_then(|n| n.parse().ok());
                let word: Option<Word> = postcard::from_bytes(&message.payload).ok();
                if let (Some(number), Some(word)) = (number, word)
                    && let Some(asker) = lock(&waiting).remove(&number)
                {
                    // The asker may have given up.
                    let _ = asker.send(word);
                }
            }
        });
        Ok(())
    }

    /// Hands batches to the engines, and waits until one of them has kept each.
    pub(crate) fn hand(&self, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError> {
        let messages = messages(batches);
        self.runtime().block_on(async {
            let handed: Vec<_> = messages.iter().map(|message| self.hand_one(message)).collect();
            let mut outcomes = Vec::with_capacity(batches.len());
            for done in futures_util::future::join_all(handed).await {
                outcomes.extend(done?);
            }
            Ok(outcomes)
        })
    }

    async fn hand_one(&self, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError> {
        let fail = |what, reason| StoreError::Unusable { what, place: self.place.clone(), reason };
        let payload = postcard::to_allocvec(batches).expect("batches are plain data");
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (asker, word) = oneshot::channel();
        lock(&self.waiting).insert(number, asker);
        let _forget = Forget { waiting: &self.waiting, number };
        let mut headers = HeaderMap::new();
        headers.insert(WORD_TO, format!("{}.{number}", self.inbox));
        let mut context = jetstream::new(self.client.clone());
        context.set_timeout(WORD_WAIT);
        let put = async {
            let put =
                context.publish_with_headers(self.settings.reports(), headers, payload.into());
            put.await?.await
        };
        if let Err(e) = put.await {
            let reason = with_causes(&e);
            if reason.contains("maximum") {
                return Err(StoreError::Busy { place: self.place.clone() });
            }
            return Err(fail(
                "hand reports to",
                format!("{reason}; see that it runs with JetStream"),
            ));
        }
        match tokio::time::timeout(WORD_WAIT, word).await {
            Ok(Ok(Ok(outcomes))) if outcomes.len() == batches.len() => Ok(outcomes),
            Ok(Ok(Err(reason))) => Err(fail("keep what came by", reason)),
            _ => Err(fail(
                "keep what came by",
                format!("no engine took it within {} s; it waits there", WORD_WAIT.as_secs()),
            )),
        }
    }

    /// Takes batches from now on, and has them kept.
    pub(crate) fn take(&self, keeper: &Keeper) {
        for _ in 0..TAKERS {
            let (client, settings) = (self.client.clone(), self.settings.clone());
            let keeper = Arc::clone(keeper);
            self.runtime().spawn(async move {
                loop {
                    if let Err(e) = take_some(&client, &settings, &keeper).await {
                        warn(&format!("takes no reports from the broker: {e}"));
                    }
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            });
        }
    }

    /// Tells the other engines whose configurations changed.
    pub(crate) fn tell(&self, names: &[Name]) {
        if names.is_empty() {
            return;
        }
        let changed = Changed { from: self.inbox.clone(), names: names.to_vec() };
        let payload = postcard::to_allocvec(&changed).expect("names are plain data");
        // Where this is lost, edges find out when their wait is over.
        let _ =
            self.runtime().block_on(self.client.publish(self.settings.changed(), payload.into()));
    }

    /// Receives from other engines whose configurations changed.
    pub(crate) fn on_change(&self, tell: Tell) {
        let (client, subject, us) =
            (self.client.clone(), self.settings.changed(), self.inbox.clone());
        self.runtime().spawn(async move {
            let Ok(mut changes) = client.subscribe(subject).await else { return };
            while let Some(message) = changes.next().await {
                match postcard::from_bytes::<Changed>(&message.payload) {
                    Ok(changed) if changed.from != us => tell(changed.names),
                    _ => {}
                }
            }
        });
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // What was taken and not kept yet goes to another engine.
            runtime.shutdown_background();
        }
    }
}

/// Forgets that somebody waits, however that ends.
struct Forget<'a> {
    waiting: &'a Waiting,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.number);
    }
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Word>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Batches in messages of a good size, in their order.
fn messages(batches: &[Batch]) -> Vec<&[Batch]> {
    let bytes = |batch: &Batch| batch.reports.iter().map(|r| r.bytes.len() + 64).sum::<usize>();
    let (mut all, mut from, mut size) = (Vec::new(), 0, 0);
    for (at, batch) in batches.iter().enumerate() {
        let more = bytes(batch);
        if at > from && size + more > MESSAGE_BYTES {
            all.push(&batches[from..at]);
            (from, size) = (at, 0);
        }
        size += more;
    }
    if from < batches.len() {
        all.push(&batches[from..]);
    }
    all
}

fn options(settings: &BrokerSettings) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new()
        .name("trimtab engine")
        .connection_timeout(Duration::from_secs(5))
        .request_timeout(Some(WORD_WAIT))
        .event_callback(|event| async move {
            match event {
                Event::Connected => log("is connected to the broker"),
                Event::Disconnected => warn("has lost the broker, and looks for it"),
                _ => {}
            }
        });
    if let Some(file) = &settings.token_file {
        let token = std::fs::read_to_string(file)
            .map_err(|e| format!("its token in {} cannot be read: {e}", file.display()))?;
        options = options.token(token.trim().to_owned());
    }
    if let Some(authority) = &settings.authority {
        options = options.add_root_certificates(authority.clone()).require_tls(true);
    }
    Ok(options)
}

/// The stream and the consumer that all engines share; made where there are none.
async fn attach(client: &Client, settings: &BrokerSettings) -> Result<PullConsumer, String> {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(Duration::from_secs(5));
    let stream = stream::Config {
        name: settings.stream.clone(),
        subjects: vec![settings.reports()],
        description: Some("reports of edges that are not in the store yet".to_owned()),
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        num_replicas: settings.replicas,
        max_messages: WAITING_MESSAGES,
        max_bytes: WAITING_BYTES,
        discard: DiscardPolicy::New,
        ..stream::Config::default()
    };
    let stream = context
        .get_or_create_stream(stream)
        .await
        .map_err(|e| {
            format!(
                "{}; it has to run with JetStream (nats-server -js), and have {} MB of its disk free for the stream",
                with_causes(&e),
                WAITING_BYTES >> 20
            )
        })?;
    let consumer = pull::Config {
        durable_name: Some("engines".to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: WAITING_MESSAGES,
        ..pull::Config::default()
    };
    stream.get_or_create_consumer("engines", consumer).await.map_err(|e| with_causes(&e))
}

/// Takes what comes until the broker says that it cannot.
async fn take_some(
    client: &Client,
    settings: &BrokerSettings,
    keeper: &Keeper,
) -> Result<(), String> {
    let consumer = attach(client, settings).await?;
    let stream = consumer.stream().max_messages_per_batch(TAKEN_MAX);
    let stream = stream.expires(ASKED).heartbeat(HEARTBEAT).messages();
    let mut messages = stream.await.map_err(|e| with_causes(&e))?;
    while let Some(first) = messages.next().await {
        let first = first.map_err(|e| with_causes(&e))?;
        let mut bytes = first.payload.len();
        let mut taken = vec![first];
        // What else is there already goes into the same commit.
        while taken.len() < TAKEN_MAX && bytes < COMMIT_BYTES {
            let Some(Some(Ok(more))) = messages.next().now_or_never() else { break };
            bytes += more.payload.len();
            taken.push(more);
        }
        keep(client, keeper, taken).await;
    }
    Ok(())
}

/// Has messages kept, says what became of them, and acknowledges them.
async fn keep(client: &Client, keeper: &Keeper, taken: Vec<Message>) {
    let (mut messages, mut all) = (Vec::new(), Vec::new());
    for message in taken {
        match postcard::from_bytes::<Vec<Batch>>(&message.payload) {
            Ok(batches) => {
                messages.push((message, batches.len()));
                all.extend(batches);
            }
            Err(e) => {
                // An engine of another version put it there; its edge was not told that it is kept.
                warn(&format!("leaves a message of the broker that it does not understand: {e}"));
                let _ = message.ack_with(AckKind::Term).await;
            }
        }
    }
    let keeper = Arc::clone(keeper);
    let kept = tokio::task::spawn_blocking(move || keeper(&all)).await;
    let kept = kept.unwrap_or_else(|e| {
        Err(StoreError::Unusable {
            what: "keep what came by",
            place: "the broker".to_owned(),
            reason: e.to_string(),
        })
    });
    if let Err(e) = &kept {
        warn(&format!("store: {e}"));
    }
    let mut rest = kept.as_deref().unwrap_or_default();
    for (message, count) in messages {
        let word: Word = match &kept {
            Ok(_) => {
                let (own, others) = rest.split_at(count.min(rest.len()));
                rest = others;
                Ok(own.to_vec())
            }
            Err(e) => Err(e.to_string()),
        };
        let to = message.headers.as_ref().and_then(|headers| headers.get(WORD_TO));
        if let Some(to) = to {
            let payload = postcard::to_allocvec(&word).expect("a word is plain data");
            let _ = client.publish(to.to_string(), payload.into()).await;
        }
        let kind = if word.is_ok() { AckKind::Ack } else { AckKind::Nak(Some(AFTER_ERROR)) };
        // Where this is lost the message comes again, and counts no second time.
        let _ = message.ack_with(kind).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Report;

    #[test]
    fn messages_have_a_good_size_and_lose_nothing() {
        let batch = |sequence: i64, bytes: usize| Batch {
            token: 1,
            sequence,
            digest: [0; 32],
            received_ms: 0,
            reports: vec![Report {
                name: Name { service: "tv".to_owned(), prefix: "p".to_owned() },
                interval: 1,
                version: 0,
                bytes: vec![0; bytes],
            }],
        };
        let sizes = [10, 10, MESSAGE_BYTES * 2, 10, MESSAGE_BYTES / 2, MESSAGE_BYTES / 2, 10];
        let all: Vec<Batch> =
            sizes.iter().enumerate().map(|(n, &size)| batch(n as i64, size)).collect();
        let parts: Vec<usize> = messages(&all).iter().map(|part| part.len()).collect();
        assert_eq!(parts, [2, 1, 2, 2]);
        assert!(messages(&[]).is_empty());
    }
}
