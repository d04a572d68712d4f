//! What the next connection to a destination starts with.

use crate::Destinations;
use crate::select::CANDIDATES_MAX;

/// What older choices keep of their weight at each new one (`alf` of the published code).
const KEPT: f32 = 0.9;

/// What was chosen for the connections to each destination, the recent choices counting most.
///
/// The published code has one vector of four numbers for six candidates, so the last two are never
/// remembered, and it never forgets a destination.
#[derive(Clone, Debug)]
pub struct Memory<K> {
    weights: Destinations<K, [f32; CANDIDATES_MAX]>,
    candidates: usize,
}

impl<K: Ord> Memory<K> {
    /// Of so many candidates.
    ///
    /// # Panics
    /// There are more than [`CANDIDATES_MAX`].
    pub fn new(candidates: usize) -> Self {
        assert!(candidates <= CANDIDATES_MAX, "candidates: {CANDIDATES_MAX} at most");
        Self { weights: Destinations::default(), candidates }
    }

    /// A candidate was chosen for a connection to this destination: the first prediction, or one
    /// that changed what runs. A number that no candidate has is passed over.
    pub fn chose(&mut self, destination: K, candidate: usize) {
        if candidate >= self.candidates {
            return;
        }
        let weights = self.weights.entry(destination, || [0.0; CANDIDATES_MAX]);
        weights.iter_mut().for_each(|weight| *weight *= KEPT);
        weights[candidate] += 1.0;
    }

    /// The candidate that the next connection to this destination starts with; the first of equals.
    /// `None` where nothing was chosen yet.
    pub fn first(&self, destination: &K) -> Option<usize> {
        let weights = &self.weights.get(destination)?[..self.candidates];
        let best = |best: usize, i: usize| if weights[i] > weights[best] { i } else { best };
        Some((0..weights.len()).fold(0, best))
    }

    /// How many destinations it remembers.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether it remembers none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }
}
