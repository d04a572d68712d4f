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

    /// The token is missing, wrong or revoked.
    pub(crate) fn token(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "token", message)
    }

    /// The token's role does not allow this.
    pub(crate) fn role(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "role", message)
    }

    /// A service that is not the edge's.
    pub(crate) fn service(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "service", message)
    }

    /// Somebody else used this edge's token, or sent an old batch again.
    pub(crate) fn replayed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "replayed", message)
    }

    /// It has changed since the asker looked.
    pub(crate) fn changed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "changed", message)
    }

    /// The edge's clock is wrong.
    pub(crate) fn clock(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "clock", message)
    }

    /// It cannot be read.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    /// It is too large.
    pub(crate) fn oversized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "oversized", message)
    }

    /// It did not come in time.
    pub(crate) fn slow(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "slow", message)
    }

    /// There is none.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown", message)
    }

    /// Too many requests.
    pub(crate) fn rate(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate", message)
    }

    fn unavailable(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, message)
    }
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
