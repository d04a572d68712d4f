//! How the engine says no: a status, a reason that is counted, and a sentence that says what to do.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use trimtab_fleet_client::ErrorBody;

use crate::ingest::NotKept;
use crate::store::StoreError;

/// After how many seconds to come back, where that may help.
const RETRY_AFTER_S: &str = "5";

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Marks a response as refused, for what counts and logs.
#[derive(Clone, Debug)]
pub(crate) struct Refused(pub(crate) Refusal);

impl Refusal {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into() }
    }

    fn unavailable(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, message)
    }
}

/// Makes constructors of lines: the reason, which is counted by this name, and the status.
macro_rules! refusals {
    ($($(#[$doc:meta])* $reason:ident = $status:ident;)*) => {
        impl Refusal {
            $($(#[$doc])* pub(crate) fn $reason(message: impl Into<String>) -> Self {
                Self::new(StatusCode::$status, stringify!($reason), message)
            })*
        }
    };
}

refusals! {
    /// The token is missing, wrong or revoked.
    token = UNAUTHORIZED;
    /// The client's certificate is not valid any more, or has no rights here.
    certificate = UNAUTHORIZED;
    /// The token has expired, or its secret was replaced.
    expired = UNAUTHORIZED;
    /// The token's role does not allow this.
    role = FORBIDDEN;
    /// A service that is not the edge's.
    service = FORBIDDEN;
    /// Somebody else used this edge's token, or sent an old batch again.
    replayed = CONFLICT;
    /// It has changed since the asker looked.
    changed = CONFLICT;
    /// The edge's clock is wrong.
    clock = BAD_REQUEST;
    /// What is kept of it is damaged, and stays so until somebody does something.
    damaged = CONFLICT;
    /// The log shows too little of it.
    overlap = CONFLICT;
    /// It cannot be read.
    malformed = BAD_REQUEST;
    /// It is too large.
    oversized = PAYLOAD_TOO_LARGE;
    /// It did not come in time.
    slow = REQUEST_TIMEOUT;
    /// There is none.
    unknown = NOT_FOUND;
    /// Too many requests.
    rate = TOO_MANY_REQUESTS;
}

impl From<StoreError> for Refusal {
    fn from(e: StoreError) -> Self {
        // What is wrong with the store is for its owner, in the log; an edge needs to know that it should try again.
        let message = match e {
            StoreError::Busy { .. } => return NotKept::Busy.into(),
            StoreError::Full { .. } => {
                "the engine's disk is full: keep what you have, and send it later"
            }
            _ => "the engine's store does not answer: keep what you have, and send it later",
        };
        Self::unavailable("store", message)
    }
}

impl From<NotKept> for Refusal {
    fn from(e: NotKept) -> Self {
        match e {
            NotKept::Busy => {
                Self::unavailable("busy", "too many reports wait: send this again later")
            }
            NotKept::Ending => {
                Self::unavailable("ending", "the engine ends: send this again later")
            }
            NotKept::Store(e) => e.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ErrorBody { reason: self.reason.to_owned(), message: self.message.clone() };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, scheme);
        }
        if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&self.status) {
            let wait = axum::http::HeaderValue::from_static(RETRY_AFTER_S);
            response.headers_mut().insert(axum::http::header::RETRY_AFTER, wait);
        }
        response.extensions_mut().insert(Refused(self));
        response
    }
}
