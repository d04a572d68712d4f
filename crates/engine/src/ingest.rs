//! The door of the store: batches that come at the same time are kept by one commit.
//!
//! A commit costs a wait for the disk, whatever it holds. A thread takes all that wait, keeps them together, and only
//! then answers each; under load this makes a commit serve hundreds of edges, and adds nothing when there is one.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::trace::SpanContext;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::store::{Batch, Outcome, Store, StoreError};
use crate::traces::{self, Begin, Traces};

/// Batches that wait at most; beyond, edges are asked to come back.
const WAITING_MAX: usize = 4096;
/// Batches of one commit at most, so that none waits long.
const COMMIT_MAX: usize = 512;

/// A batch, who waits for what becomes of it, and the span in which they do.
type Waiting = (Batch, (oneshot::Sender<Result<Outcome, StoreError>>, SpanContext));

/// Where batches go in.
#[derive(Clone)]
pub(crate) struct Ingest(SyncSender<Waiting>);

/// Why a batch was not kept.
#[derive(Debug)]
pub(crate) enum NotKept {
    /// Too many wait.
    Busy,
    /// The engine ends.
    Ending,
    /// The store says no.
    Store(StoreError),
}

impl Ingest {
    /// Starts as many threads as are of use to the store; they end when the last of these is dropped.
    pub(crate) fn start(store: &Arc<dyn Store>, traces: &Traces) -> Result<Self, Error> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..store.doors() {
            let (store, receiver) = (Arc::clone(store), Arc::clone(&receiver));
            let traces = traces.clone();
            std::thread::Builder::new()
                .name("ingest".to_owned())
                .spawn(move || keep_all(&*store, &receiver, &traces))
                .map_err(|e| Error::system("start the thread for reports", e))?;
        }
        Ok(Self(sender))
    }

    /// Keeps a batch; when this returns an outcome, it is on the disk.
    pub(crate) async fn keep(&self, batch: Batch) -> Result<Outcome, NotKept> {
        let (sender, receiver) = oneshot::channel();
        self.0.try_send((batch, (sender, traces::current()))).map_err(|e| match e {
            TrySendError::Full(_) => NotKept::Busy,
            TrySendError::Disconnected(_) => NotKept::Ending,
        })?;
        receiver.await.map_err(|_| NotKept::Ending)?.map_err(NotKept::Store)
    }
}

/// Those who wait now, once there is one; none when the engine ends.
fn next(receiver: &Mutex<Receiver<Waiting>>) -> Option<Vec<Waiting>> {
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    let mut waiting = vec![receiver.recv().ok()?];
    waiting.extend(receiver.try_iter().take(COMMIT_MAX - 1));
    Some(waiting)
}

fn keep_all(store: &dyn Store, receiver: &Mutex<Receiver<Waiting>>, traces: &Traces) {
    while let Some(waiting) = next(receiver) {
        let (batches, askers): (Vec<Batch>, Vec<_>) = waiting.into_iter().unzip();
        let (askers, asked): (Vec<_>, Vec<_>) = askers.into_iter().unzip();
        // Of many requests, so it is no child of one.
        let span = traces.begin(|| Begin { links: asked, ..Begin::own("ingest.commit") });
        span.set("trimtab.batches", batches.len() as i64);
        let reports: usize = batches.iter().map(|batch| batch.reports.len()).sum();
        span.set("trimtab.reports", reports as i64);
        let kept = store.accept(&batches);
        if kept.is_err() {
            span.fail("store");
        }
        drop(span);
        // An edge that hung up sends again, and gets the answer then that it was kept.
        match kept {
            Ok(outcomes) => {
                for (asker, outcome) in askers.into_iter().zip(outcomes) {
                    let _ = asker.send(Ok(outcome));
                }
            }
            Err(e) => {
                for asker in askers {
                    let _ = asker.send(Err(e.clone()));
                }
            }
        }
    }
}
