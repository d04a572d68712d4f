//! Adaptive bitrate rules: which rung of the ladder the next chunk of a video comes from.
//!
//! A rule is a file of its own and a variant of [`Abr`].

mod bola;
mod vlc;

pub use bola::Bola;
pub use vlc::Vlc;

use trimtab_units::{Bytes, Duration, Rate};

/// An adaptive bitrate rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Abr {
    /// The rate- and buffer-based rule of the VLC plugin for DASH.
    Vlc(Vlc),
    /// The buffer-based rule with a bound on its distance from the optimum.
    Bola(Bola),
}

impl Default for Abr {
    /// [`Vlc`], the rule of Mortise's evaluation.
    fn default() -> Self {
        Self::Vlc(Vlc::default())
    }
}

impl Abr {
    pub(crate) fn choose(&self, state: &State<'_>) -> usize {
        debug_assert!(!state.ladder.is_empty(), "a video has at least one rung");
        let rung = match self {
            Self::Vlc(rule) => rule.choose(state),
            Self::Bola(rule) => rule.choose(state),
        };
        rung.min(state.ladder.len() - 1)
    }
}

/// What a player knows when it asks for the next chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State<'a> {
    /// The bitrates to choose from, lowest first.
    pub(crate) ladder: &'a [Rate],
    /// Video that is downloaded and not played yet.
    pub(crate) buffer: Duration,
    /// The most of it that the player keeps.
    pub(crate) buffer_max: Duration,
    /// Length of a chunk.
    pub(crate) chunk_length: Duration,
    /// The rung of the chunk before; `None` for the first.
    pub(crate) previous: Option<usize>,
    /// What was downloaded so far.
    pub(crate) history: History,
}

/// The throughput that a player has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct History {
    /// Chunks downloaded.
    pub(crate) chunks: u32,
    /// Their bytes.
    pub(crate) bytes: Bytes,
    /// The time from each request to its last byte, added up: pauses do not count.
    pub(crate) time: Duration,
    /// The throughput of the last chunk.
    pub(crate) last: Option<Rate>,
}

impl History {
    pub(crate) fn add(&mut self, bytes: Bytes, time: Duration) {
        self.chunks = self.chunks.saturating_add(1);
        self.bytes += bytes;
        self.time += time;
        self.last = Some(bytes / time);
    }
}

#[cfg(test)]
pub(crate) fn ladder() -> Vec<Rate> {
    [0.4, 0.8, 1.5, 3.0, 6.0].map(Rate::from_mbps).to_vec()
}
