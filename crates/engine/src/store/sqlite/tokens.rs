//! Tokens, in the file.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, Transaction, params};
use trimtab_fleet_client::{FormerSecret, Role, Token};

use super::audit::write_audit;
use super::bad;
use crate::store::{KeptToken, Rotation, Use};

fn row_of(row: &SqlRow<'_>) -> rusqlite::Result<KeptToken> {
    let list = |column: usize| {
        let text: String = row.get(column)?;
        serde_json::from_str(&text).map_err(|e| bad(column, &e.to_string()))
    };
    let (expires_ms, used_ms): (Option<i64>, Option<i64>) = (row.get(11)?, row.get(12)?);
    let token = Token {
        id: row.get(0)?,
        name: row.get(1)?,
        role: Role::from_name(&row.get::<_, String>(2)?).ok_or_else(|| bad(2, "no such role"))?,
        services: list(3)?,
        created_ms: row.get(5)?,
        revoked_ms: row.get(6)?,
        prefixes: list(7)?,
        expires_ms: row.get(8)?,
        used_ms: row.get(9)?,
        former: expires_ms.map(|expires_ms| FormerSecret { expires_ms, used_ms }),
    };
    Ok(KeptToken { token, hash: row.get(4)?, former: row.get(10)? })
}

pub(super) fn tokens(db: &Connection) -> rusqlite::Result<Vec<KeptToken>> {
    db.prepare_cached(
        "SELECT id, name, role, services, hash, created_ms, revoked_ms, prefixes,
             expires_ms, used_ms, former, former_expires_ms, former_used_ms
         FROM tokens LEFT JOIN token_times ON token = id ORDER BY id",
    )?
    .query_map([], row_of)?
    .collect()
}

pub(super) fn add(
    tx: &Transaction<'_>,
    kept: &KeptToken,
    who: &str,
) -> rusqlite::Result<Option<i64>> {
    let KeptToken { token, hash, .. } = kept;
    let services = serde_json::Value::from(token.services.clone()).to_string();
    let prefixes = serde_json::Value::from(token.prefixes.clone()).to_string();
    let added = tx.execute(
        "INSERT INTO tokens (name, role, services, hash, created_ms, prefixes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (name) DO NOTHING",
        params![token.name, token.role.name(), services, hash, token.created_ms, prefixes],
    )?;
    if added == 0 {
        return Ok(None);
    }
    let id = tx.last_insert_rowid();
    tx.execute(
        "INSERT INTO token_times (token, expires_ms) VALUES (?1, ?2)",
        params![id, token.expires_ms],
    )?;
    write_audit(tx, token.created_ms, [who, "token added", &token.name, &kept.detail()])?;
    Ok(Some(id))
}

pub(super) fn rotate(tx: &Transaction<'_>, new: &Rotation, who: &str) -> rusqlite::Result<bool> {
    let found: Option<(i64, Vec<u8>)> = tx
        .query_row(
            "SELECT id, hash FROM tokens WHERE name = ?1 AND revoked_ms IS NULL",
            [&new.name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((id, former)) = found else { return Ok(false) };
    tx.execute("INSERT INTO token_times (token) VALUES (?1) ON CONFLICT DO NOTHING", [id])?;
    tx.execute(
        "UPDATE token_times SET former = ?2, former_expires_ms = min(coalesce(expires_ms, ?3), ?3),
             former_used_ms = used_ms, expires_ms = ?4, used_ms = NULL WHERE token = ?1",
        params![id, former, new.former_expires_ms, new.expires_ms],
    )?;
    tx.execute("UPDATE tokens SET hash = ?2 WHERE id = ?1", params![id, new.hash])?;
    write_audit(tx, new.now_ms, [who, "token rotated", &new.name, &new.detail()])?;
    Ok(true)
}

pub(super) fn used(tx: &Transaction<'_>, uses: &[Use]) -> rusqlite::Result<()> {
    let mut add =
        tx.prepare_cached("INSERT INTO token_times (token) VALUES (?1) ON CONFLICT DO NOTHING")?;
    let mut present = tx.prepare_cached(
        "UPDATE token_times SET used_ms = max(coalesce(used_ms, ?2), ?2)
         WHERE token = ?1 AND EXISTS (SELECT 1 FROM tokens WHERE id = ?1 AND hash = ?3)",
    )?;
    let mut former = tx.prepare_cached(
        "UPDATE token_times SET former_used_ms = max(coalesce(former_used_ms, ?2), ?2)
         WHERE token = ?1 AND former = ?3",
    )?;
    for Use { token, hash, at_ms } in uses {
        add.execute([token])?;
        present.execute(params![token, at_ms, hash])?;
        former.execute(params![token, at_ms, hash])?;
    }
    Ok(())
}

pub(super) fn revoke(
    tx: &Transaction<'_>,
    name: &str,
    who: &str,
    now_ms: i64,
) -> rusqlite::Result<bool> {
    let revoked = tx.execute(
        "UPDATE tokens SET revoked_ms = ?2 WHERE name = ?1 AND revoked_ms IS NULL",
        params![name, now_ms],
    )?;
    if revoked == 0 {
        return Ok(false);
    }
    // What it said and nobody has learnt from yet counts for nothing.
    let dropped = tx.execute(
        "DELETE FROM reports WHERE edge = (SELECT id FROM tokens WHERE name = ?1)",
        [name],
    )?;
    let detail = format!("{dropped} waiting reports are left out");
    write_audit(tx, now_ms, [who, "token revoked", name, &detail])?;
    Ok(true)
}
