//! Tokens: listed, made, rotated and revoked by operators.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use trimtab_fleet_client::{
    Done, NewToken, RevokeToken, Role, RotateToken, Token, TokenSecret, TokensBody,
};

use super::gate::{Asker, Sent};
use super::refusal::Refusal;
use crate::certified::CERTIFIED;
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::secret;
use crate::store::{KeptToken, Rotation};

/// `GET /v1/tokens`
pub(super) async fn list(State(engine): State<Arc<Engine>>) -> Result<Json<TokensBody>, Refusal> {
    let kept = engine.ask(|engine| engine.store.tokens()).await?;
    let tokens = kept.into_iter().map(|kept| kept.token).collect();
    Ok(Json(TokensBody { tokens }))
}

/// `POST /v1/tokens`
pub(super) async fn add(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token: asker, .. }): Extension<Asker>,
    sent: Sent<NewToken>,
) -> Result<Json<TokenSecret>, Refusal> {
    let new = sent.value;
    let known = engine.learning().services();
    let stray = new.services.iter().find(|one| !known.iter().any(|k| k.name == **one));
    if let Some(stray) = stray {
        return Err(Refusal::malformed(format!("the engine has no service {stray:?}")));
    }
    let (secret, token) = new_token(&new).map_err(Refusal::malformed)?;
    let expires_ms = token.token.expires_ms;
    let added = engine
        .ask(move |engine| {
            let added = engine.store.add_token(&token, &asker.name)?;
            engine.read_tokens(now_ms())?;
            Ok(added)
        })
        .await?;
    let name = new.name;
    match added {
        Some(_) => Ok(Json(TokenSecret { name, token: secret, expires_ms })),
        None => {
            Err(Refusal::changed(format!("there was a token {name:?} already: take another name")))
        }
    }
}

/// A token that is not in the store yet, and its secret; or what is wrong with what is asked for.
pub(crate) fn new_token(new: &NewToken) -> Result<(String, KeptToken), String> {
    let NewToken { name, role, services, prefixes, expires } = new;
    let letters = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(letters) {
        return Err(format!("{name:?} is no name: 1 to 64 letters, digits, and - _ . @"));
    }
    check_scope(*role, services, prefixes)?;
    let (secret, hash) = secret::mint().map_err(|e| e.to_string())?;
    let now = now_ms();
    let token = Token {
        id: 0,
        name: name.clone(),
        role: *role,
        services: services.clone(),
        prefixes: prefixes.clone(),
        created_ms: now,
        revoked_ms: None,
        expires_ms: expires.until_ms(now),
        used_ms: None,
        former: None,
    };
    Ok((secret, KeptToken { token, hash, former: None }))
}

/// Whether somebody of a role may have these services and subnets.
pub(crate) fn check_scope(
    role: Role,
    services: &[String],
    prefixes: &[String],
) -> Result<(), String> {
    if (role == Role::Edge) == services.is_empty() {
        return Err(
            "an edge needs the services that it reports for, and others have none".to_owned()
        );
    }
    if role != Role::Edge && !prefixes.is_empty() {
        return Err("subnets are for edges: operators and viewers see all".to_owned());
    }
    prefixes
        .iter()
        .try_for_each(|prefix| prefix.parse::<trimtab_fleet::Prefix>().map(drop))
        .map_err(|e| e.to_string())
}

/// `POST /v1/tokens/rotate`
pub(super) async fn rotate(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token: asker, .. }): Extension<Asker>,
    sent: Sent<RotateToken>,
) -> Result<Json<TokenSecret>, Refusal> {
    let (secret, rotation) = rotation(&sent.value).map_err(Refusal::malformed)?;
    let (name, expires_ms) = (rotation.name.clone(), rotation.expires_ms);
    let done = engine
        .ask(move |engine| {
            let done = engine.store.rotate_token(&rotation, &asker.name)?;
            engine.read_tokens(now_ms())?;
            Ok(done)
        })
        .await?;
    if done { Ok(Json(TokenSecret { name, token: secret, expires_ms })) } else { Err(none(&name)) }
}

/// Another secret, and what the store is to make of it; or what is wrong with what is asked for.
pub(crate) fn rotation(asked: &RotateToken) -> Result<(String, Rotation), String> {
    if asked.name.starts_with(CERTIFIED) {
        return Err(format!("{} has no secret: renew its certificate", asked.name));
    }
    let now = now_ms();
    let former_expires_ms = asked.overlap.until_ms(now).ok_or(
        "the secret before is not valid for ever: give a time for which both are, e.g. 1d",
    )?;
    let (secret, hash) = secret::mint().map_err(|e| e.to_string())?;
    let expires_ms = asked.expires.until_ms(now);
    let name = asked.name.clone();
    Ok((secret, Rotation { name, hash, expires_ms, former_expires_ms, now_ms: now }))
}

/// `POST /v1/tokens/revoke`
pub(super) async fn revoke(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token: asker, .. }): Extension<Asker>,
    sent: Sent<RevokeToken>,
) -> Result<Json<Done>, Refusal> {
    let name = sent.value.name;
    let asked = name.clone();
    let done = engine
        .ask(move |engine| {
            let done = engine.store.revoke_token(&asked, &asker.name, now_ms())?;
            engine.read_tokens(now_ms())?;
            Ok(done)
        })
        .await?;
    if done { Ok(Json(Done { done })) } else { Err(none(&name)) }
}

fn none(name: &str) -> Refusal {
    Refusal::unknown(format!("there is no token {name:?} that is not revoked"))
}
