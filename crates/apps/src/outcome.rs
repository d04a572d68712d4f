//! What a run of an application achieved.

use trimtab_units::{Bytes, Duration, Time};

use crate::RequestId;

/// What the run of an application achieved so far.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Bulk data has no more to tell than the connection itself.
    Bulk,
    /// Every request that was sent, in that order.
    Download(Vec<RequestRecord>),
}

/// The life of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Its name.
    pub id: RequestId,
    /// Size of the response's body.
    pub size: Bytes,
    /// When the workload wanted it sent.
    pub scheduled_at: Time,
    /// When the client handed it to the transport.
    pub sent_at: Time,
    /// When the first byte of the response reached the client.
    pub first_byte_at: Option<Time>,
    /// When the last byte did; `None` for a request that is not finished.
    pub completed_at: Option<Time>,
}

impl RequestRecord {
    /// Request completion time: from sending to the last byte of the response, and so with the wait
    /// behind earlier responses (Floo §3.3). `None` while the request is not finished.
    pub fn completion_time(&self) -> Option<Duration> {
        self.completed_at.map(|t| t.since(self.sent_at))
    }
}
