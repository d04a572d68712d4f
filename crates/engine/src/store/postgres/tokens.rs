//! Tokens, on the server.

use postgres::Row as SqlRow;
use trimtab_fleet_client::{FormerSecret, Role, Token};

use super::audit::write_audit;
use super::link::{Failed, Link};
use crate::store::{KeptToken, Rotation, Use};

pub(super) fn tokens(link: &mut Link) -> Result<Vec<KeptToken>, Failed> {
    let rows = link.query(
        "SELECT id, name, role, services, hash, created_ms, revoked_ms, prefixes,
             expires_ms, used_ms, former, former_expires_ms, former_used_ms
         FROM tokens LEFT JOIN token_times ON token = id ORDER BY id",
        &[],
    )?;
    let one = |row: &SqlRow| {
        let expires_ms: Option<i64> = row.get(11);
        let token = Token {
            id: row.get(0),
            name: row.get(1),
            role: Role::from_name(row.get(2)).ok_or(Failed::Document)?,
            services: serde_json::from_str(row.get(3)).map_err(|_| Failed::Document)?,
            created_ms: row.get(5),
            revoked_ms: row.get(6),
            prefixes: serde_json::from_str(row.get(7)).map_err(|_| Failed::Document)?,
            expires_ms: row.get(8),
            used_ms: row.get(9),
            former: expires_ms.map(|expires_ms| FormerSecret { expires_ms, used_ms: row.get(12) }),
        };
        Ok(KeptToken { token, hash: row.get(4), former: row.get(10) })
    };
    rows.iter().map(one).collect()
}

pub(super) fn add(link: &mut Link, kept: &KeptToken, who: &str) -> Result<Option<i64>, Failed> {
    let KeptToken { token, hash, .. } = kept;
    let services = serde_json::Value::from(token.services.clone()).to_string();
    let prefixes = serde_json::Value::from(token.prefixes.clone()).to_string();
    let row = link.first(
        "INSERT INTO tokens (name, role, services, hash, created_ms, prefixes) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (name) DO NOTHING RETURNING id",
        &[
            &token.name,
            &token.role.name(),
            &services,
            hash,
            &token.created_ms,
            &prefixes,
        ],
    )?;
    let Some(row) = row else { return Ok(None) };
    let id: i64 = row.get(0);
    link.execute(
        "INSERT INTO token_times (token, expires_ms) VALUES ($1, $2)",
        &[&id, &token.expires_ms],
    )?;
    write_audit(link, token.created_ms, [who, "token added", &token.name, &kept.detail()])?;
    Ok(Some(id))
}

pub(super) fn rotate(link: &mut Link, new: &Rotation, who: &str) -> Result<bool, Failed> {
    let row = link.first(
        "SELECT id, hash FROM tokens WHERE name = $1 AND revoked_ms IS NULL FOR UPDATE",
        &[&new.name],
    )?;
    let Some(row) = row else { return Ok(false) };
    let (id, former): (i64, Vec<u8>) = (row.get(0), row.get(1));
    link.execute("INSERT INTO token_times (token) VALUES ($1) ON CONFLICT DO NOTHING", &[&id])?;
    link.execute(
        "UPDATE token_times SET former = $2, former_expires_ms = least(coalesce(expires_ms, $3), $3),
             former_used_ms = used_ms, expires_ms = $4, used_ms = NULL WHERE token = $1",
        &[&id, &former, &new.former_expires_ms, &new.expires_ms],
    )?;
    link.execute("UPDATE tokens SET hash = $2 WHERE id = $1", &[&id, &new.hash])?;
    write_audit(link, new.now_ms, [who, "token rotated", &new.name, &new.detail()])?;
    Ok(true)
}

pub(super) fn used(link: &mut Link, uses: &[Use]) -> Result<(), Failed> {
    // In the order of their numbers, so that two engines never wait for each other.
    let mut uses: Vec<&Use> = uses.iter().collect();
    uses.sort_unstable_by_key(|one| one.token);
    let tokens: Vec<i64> = uses.iter().map(|one| one.token).collect();
    let hashes: Vec<&[u8]> = uses.iter().map(|one| one.hash.as_slice()).collect();
    let times: Vec<i64> = uses.iter().map(|one| one.at_ms).collect();
    link.execute(
        "INSERT INTO token_times (token) SELECT DISTINCT unnest($1::bigint[]) ORDER BY 1
         ON CONFLICT DO NOTHING",
        &[&tokens],
    )?;
    link.query(
        "SELECT 1 FROM token_times WHERE token = ANY ($1) ORDER BY token FOR UPDATE",
        &[&tokens],
    )?;
    for sql in [
        "UPDATE token_times SET used_ms = greatest(used_ms, at_ms)
         FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS used (id, secret, at_ms)
         JOIN tokens USING (id) WHERE token = id AND hash = secret",
        "UPDATE token_times SET former_used_ms = greatest(former_used_ms, at_ms)
         FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) AS used (id, secret, at_ms)
         WHERE token = id AND former = secret",
    ] {
        link.execute(sql, &[&tokens, &hashes, &times])?;
    }
    Ok(())
}

pub(super) fn revoke(link: &mut Link, name: &str, who: &str, now_ms: i64) -> Result<bool, Failed> {
    let revoked = link.execute(
        "UPDATE tokens SET revoked_ms = $2 WHERE name = $1 AND revoked_ms IS NULL",
        &[&name, &now_ms],
    )?;
    if revoked > 0 {
        // What it said and nobody has learnt from yet counts for nothing.
        let dropped = link.execute(
            "DELETE FROM reports WHERE edge = (SELECT id FROM tokens WHERE name = $1)",
            &[&name],
        )?;
        let detail = format!("{dropped} waiting reports are left out");
        write_audit(link, now_ms, [who, "token revoked", name, &detail])?;
    }
    Ok(revoked > 0)
}
