//! Who may ask: the token of each request, its role and its rate; and the counting of what is refused.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Query, Request, State};
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use trimtab_fleet_client::{Role, Token};

use super::PROBES;
use super::refusal::{Refusal, Refused};
use crate::allowance::network;
use crate::certified::{Presented, rule_of};
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::refusals::{self, Attempt};
use crate::secret;
use crate::server::Peer;
use crate::who::Found;

/// A body has to come within this time: 4 MB by a link of 2 Mbit/s.
const BODY_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);

/// Who asks; an extension of requests that passed the gate, and of answers to who has a token.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) token: Arc<Token>,
    /// When the secret expires that it asks with.
    pub(crate) expires_ms: Option<i64>,
}

/// The roles that may use a route.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) engine: Arc<Engine>,
    pub(crate) roles: &'static [Role],
}

/// Lets a request pass, or refuses it.
pub(crate) async fn pass(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let given = request.headers().get(AUTHORIZATION).cloned();
    let now = now_ms();
    let presented = request.extensions().get::<Presented>().cloned();
    let found = match (given, presented) {
        (None, Some(presented)) => recognize(&gate, presented, now).await,
        (given, _) => identify(&gate, given, now).await,
    };
    let (asker, response) = match found {
        Ok(Found::Valid(token, expires_ms)) => {
            let from = request.extensions().get::<Peer>().map(|peer| network(peer.0.ip()));
            let response = permit(&gate, &token, from, now).map_err(Refusal::into_response);
            (Asker { token, expires_ms }, response)
        }
        Ok(Found::Expired(token, why)) => {
            (Asker { token, expires_ms: None }, Err(Refusal::expired(why).into_response()))
        }
        Ok(Found::Unknown) => {
            return Refusal::token("the token is unknown or revoked").into_response();
        }
        Err(refusal) => return refusal.into_response(),
    };
    let mut response = match response {
        Ok(()) => {
            request.extensions_mut().insert(asker.clone());
            next.run(request).await
        }
        Err(refused) => refused,
    };
    response.extensions_mut().insert(asker);
    response
}

/// Whose token it is.
async fn identify(gate: &Gate, given: Option<HeaderValue>, now: i64) -> Result<Found, Refusal> {
    let given = given.ok_or_else(|| {
        let certificate = match gate.engine.clients().verifier {
            Some(_) => ", or a certificate of the client",
            None => "",
        };
        Refusal::token(format!(
            "this needs a token, in the header `Authorization: Bearer TOKEN`{certificate}"
        ))
    })?;
    let hash = given
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("Bearer "))
        .and_then(|token| secret::hash(token.trim()))
        .ok_or_else(|| {
            Refusal::token(
                "that is no token of this engine: one is trimtab_ and 43 letters, digits, - or _",
            )
        })?;
    Ok(gate.engine.ask(move |engine| engine.token(&hash, now)).await?)
}

/// Whose certificate it is.
async fn recognize(gate: &Gate, presented: Presented, now: i64) -> Result<Found, Refusal> {
    let clients = gate.engine.clients();
    presented.check(clients.verifier.clone(), now).map_err(|why| {
        Refusal::certificate(format!("the certificate of this connection is not valid: {why}"))
    })?;
    let names = presented.names();
    let Some((rule, name)) = rule_of(&clients.rules, names) else {
        return Err(Refusal::certificate(format!(
            "no [[client]] of the engine fits this certificate, whose names are {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        )));
    };
    let (rule, name) = (rule.clone(), name.to_owned());
    Ok(gate.engine.ask(move |engine| engine.certified(&rule, &name, &presented, now)).await?)
}

/// Whether it may ask this, now.
fn permit(gate: &Gate, token: &Token, from: Option<String>, now: i64) -> Result<(), Refusal> {
    let engine = &gate.engine;
    let too_often =
        |who: &str, rate| format!("{who} asks more than {rate} times a second: ask less often");
    if !engine.requests.may(token.id, now) {
        let rate = engine.limits.requests_per_second;
        return Err(Refusal::rate(too_often(&token.name, rate)));
    }
    if let (Some(allowance), Some(from)) = (&engine.of_addresses, from)
        && !allowance.may(from.clone(), now)
    {
        let rate = engine.limits.requests_per_address.unwrap_or_default();
        return Err(Refusal::rate(too_often(&from, rate)));
    }
    if !gate.roles.contains(&token.role) {
        let may: Vec<&str> = gate.roles.iter().map(|role| role.name()).collect();
        let message = format!(
            "{} is of role {}, this is for {}",
            token.name,
            token.role.name(),
            may.join(" and ")
        );
        return Err(Refusal::role(message));
    }
    Ok(())
}

/// Counts and logs what was refused, and has it written into the audit where somebody tried what they may not.
pub(crate) async fn note(
    State(engine): State<Arc<Engine>>,
    request: Request,
    next: Next,
) -> Response {
    let what = format!("{} {}", request.method(), request.uri().path());
    let from = request.extensions().get::<Peer>().copied();
    let is_probe = PROBES.contains(&request.uri().path());
    let mut response = next.run(request).await;
    if let Some(Peer(from)) = from.filter(|_| !is_probe && is_strangers(&response))
        && !engine.strangers.may(network(from.ip()), now_ms())
    {
        let rate = engine.limits.strangers_per_address;
        let message = format!(
            "this address asks without a valid token more than {rate} times a second: wait, and \
             give one"
        );
        response = Refusal::rate(message).into_response();
    }
    if let Some(Refused(refusal)) = response.extensions().get::<Refused>() {
        engine.metrics.refused(refusal.reason);
        if refusals::belongs(refusal.reason) {
            let asker = response.extensions().get::<Asker>();
            let attempt = Attempt {
                token: asker.map(|asker| asker.token.name.as_str()),
                from: from.map(|peer| peer.0.ip()),
                reason: refusal.reason,
                what: &what,
                message: &refusal.message,
            };
            engine.attempts.add(now_ms(), &attempt);
        }
        let from = from.map_or_else(|| "nowhere".to_owned(), |peer| peer.0.to_string());
        let line = format!("refused ({}) {what} from {from}: {}", refusal.reason, refusal.message);
        engine.refusals.log(now_ms(), &line);
    }
    response
}

/// Whether who asked had no valid token.
fn is_strangers(response: &Response) -> bool {
    let expired = response.extensions().get::<Refused>().filter(|one| one.0.reason == "expired");
    expired.is_some() || response.extensions().get::<Asker>().is_none()
}

/// The body of a request: JSON of a certain form, and no larger than the engine takes.
pub(crate) struct Sent<T> {
    pub(crate) value: T,
}

impl<T: DeserializeOwned> FromRequest<Arc<Engine>> for Sent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, engine: &Arc<Engine>) -> Result<Self, Refusal> {
        let most = usize::try_from(engine.limits.body.get()).unwrap_or(usize::MAX);
        let read = axum::body::to_bytes(request.into_body(), most);
        let read = tokio::time::timeout(BODY_WITHIN, read).await.map_err(|_| {
            let limit = BODY_WITHIN.as_secs();
            Refusal::slow(format!("the body did not come within {limit} s: send less at once"))
        })?;
        let bytes = read.map_err(|e| {
            // What else goes wrong with a body is that it breaks off; nobody then reads the answer.
            Refusal::oversized(format!(
                "a request has at most {most} bytes: send less at once ({e})"
            ))
        })?;
        let value = serde_json::from_slice(&bytes)
            .map_err(|e| Refusal::malformed(format!("not what this expects: {e}")))?;
        Ok(Self { value })
    }
}

/// The query of a request, refused as a body is where it is malformed.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Engine>> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Engine>) -> Result<Self, Refusal> {
        let query = Query::try_from_uri(&parts.uri);
        query.map(|Query(value)| Self(value)).map_err(|e| Refusal::malformed(e.to_string()))
    }
}
