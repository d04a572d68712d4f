//! Shapes of packed documents, in PostgreSQL.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::link::{Failed, Links};
use crate::store::pack::{Seen, Shapes, pack, unpack};

/// The shapes of a database. New ones are committed by themselves, and at once: two engines that
/// add the same ones in one transaction with other things would wait for each other.
#[derive(Clone, Copy)]
pub(super) struct ServerShapes<'a> {
    pub(super) links: &'a Links,
    pub(super) seen: &'a Mutex<Seen>,
}

impl ServerShapes<'_> {
    pub(super) fn pack(mut self, texts: &[&str]) -> Result<Vec<u8>, Failed> {
        pack(texts, &mut self)
    }

    pub(super) fn unpack<const N: usize>(mut self, bytes: &[u8]) -> Result<[String; N], Failed> {
        unpack(bytes, &mut self)?.ok_or(Failed::Document)
    }

    /// A learner's state, where there is one.
    pub(super) fn unpack_state(self, packed: Option<&[u8]>) -> Result<Option<String>, Failed> {
        let state = packed.map(|packed| self.unpack(packed)).transpose()?;
        Ok(state.map(|[state]| state))
    }

    fn remember(&self, number: u64, text: &str) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(number, text);
    }
}

impl Shapes for ServerShapes<'_> {
    type Error = Failed;

    fn number(&mut self, shape: &str) -> Result<u64, Failed> {
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).number(shape);
        if let Some(number) = known {
            return Ok(number);
        }
        let digest = Sha256::digest(shape).to_vec();
        let number = self.links.with("write to", |link| {
            link.execute(
                "INSERT INTO shapes (digest, text) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
                &[&digest, &shape],
            )?;
            let row = link.first("SELECT id FROM shapes WHERE digest = $1", &[&digest])?;
            Ok(row.ok_or(Failed::Document)?.get::<_, i64>(0) as u64)
        })?;
        self.remember(number, shape);
        Ok(number)
    }

    fn text(&mut self, number: u64) -> Result<Option<String>, Failed> {
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).text(number);
        if known.is_some() {
            return Ok(known);
        }
        let text: Option<String> = self.links.with("read", |link| {
            let row = link.first("SELECT text FROM shapes WHERE id = $1", &[&(number as i64)])?;
            Ok(row.map(|row| row.get(0)))
        })?;
        if let Some(text) = &text {
            self.remember(number, text);
        }
        Ok(text)
    }
}
