//! Shapes of packed documents, in the file.

use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::pack::{Seen, Shapes, pack, unpack};

/// The shapes of a file, as a connection sees them.
pub(super) struct FileShapes<'a> {
    pub(super) db: &'a Connection,
    pub(super) seen: &'a Mutex<Seen>,
}

impl FileShapes<'_> {
    pub(super) fn pack(&mut self, texts: &[&str]) -> rusqlite::Result<Vec<u8>> {
        pack(texts, self)
    }

    pub(super) fn unpack<const N: usize>(&mut self, bytes: &[u8]) -> rusqlite::Result<[String; N]> {
        unpack(bytes, self)?.ok_or_else(|| super::bad(0, "no packed document"))
    }
}

impl Shapes for FileShapes<'_> {
    type Error = rusqlite::Error;

    fn number(&mut self, shape: &str) -> rusqlite::Result<u64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = seen.number(shape) {
            return Ok(number);
        }
        self.db
            .prepare_cached("INSERT INTO shapes (text) VALUES (?1) ON CONFLICT (text) DO NOTHING")?
            .execute([shape])?;
        let number = self
            .db
            .prepare_cached("SELECT id FROM shapes WHERE text = ?1")?
            .query_row([shape], |row| row.get::<_, i64>(0))? as u64;
        seen.add(number, shape);
        Ok(number)
    }

    fn text(&mut self, number: u64) -> rusqlite::Result<Option<String>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = seen.text(number) {
            return Ok(Some(text));
        }
        let text: Option<String> = self
            .db
            .prepare_cached("SELECT text FROM shapes WHERE id = ?1")?
            .query_row(params![number as i64], |row| row.get(0))
            .optional()?;
        if let Some(text) = &text {
            seen.add(number, text);
        }
        Ok(text)
    }
}
