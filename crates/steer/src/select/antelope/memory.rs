//! What the next connection to a destination starts with.

use crate::select::CANDIDATES_MAX;

/// What older choices keep of their weight at each new one (`alf` of the published code).
const KEPT: f32 = 0.9;
/// Destinations that are remembered. The one that nothing was chosen for longest makes room.
pub const DESTINATIONS_MAX: usize = 4096;

/// What was chosen for the connections to each destination, the recent choices counting most.
///
/// A destination is whatever the caller tells them apart by: an address, or a prefix. The published
/// code has one vector of four numbers for six candidates, so the last two are never remembered,
/// and it never forgets a destination.
#[derive(Clone, Debug)]
pub struct Memory<K> {
    /// Sorted by key.
    places: Vec<Place<K>>,
    candidates: usize,
    chosen: u64,
}

#[derive(Clone, Debug)]
struct Place<K> {
    destination: K,
    weights: [f32; CANDIDATES_MAX],
    /// At which choice of all it was chosen for last.
    last: u64,
}

impl<K: Ord> Memory<K> {
    /// Of so many candidates.
    ///
    /// # Panics
    /// There are more than [`CANDIDATES_MAX`].
    pub fn new(candidates: usize) -> Self {
        assert!(candidates <= CANDIDATES_MAX, "candidates: {CANDIDATES_MAX} at most");
        Self { places: Vec::new(), candidates, chosen: 0 }
    }

    /// A candidate was chosen for a connection to this destination: the first prediction, or one
    /// that changed what runs. A number that no candidate has is passed over.
    pub fn chose(&mut self, destination: K, candidate: usize) {
        if candidate >= self.candidates {
            return;
        }
        self.chosen += 1;
        let found = self.places.binary_search_by(|place| place.destination.cmp(&destination));
        let at = found.unwrap_or_else(|at| self.make_room(at, destination));
        let place = &mut self.places[at];
        place.weights.iter_mut().for_each(|weight| *weight *= KEPT);
        place.weights[candidate] += 1.0;
        place.last = self.chosen;
    }

    /// The candidate that the next connection to this destination starts with; the first of equals.
    /// `None` where nothing was chosen yet.
    pub fn first(&self, destination: &K) -> Option<usize> {
        let found = self.places.binary_search_by(|place| place.destination.cmp(destination));
        let weights = &self.places[found.ok()?].weights[..self.candidates];
        let best = |best: usize, i: usize| if weights[i] > weights[best] { i } else { best };
        Some((0..weights.len()).fold(0, best))
    }

    /// How many destinations it remembers.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it remembers none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A new destination, which belongs at this place; where it stands then.
    fn make_room(&mut self, at: usize, destination: K) -> usize {
        let mut at = at;
        if self.places.len() == DESTINATIONS_MAX {
            let oldest = (0..self.places.len()).min_by_key(|i| self.places[*i].last).unwrap_or(0);
            self.places.remove(oldest);
            at -= usize::from(oldest < at);
        }
        self.places.insert(at, Place { destination, weights: [0.0; CANDIDATES_MAX], last: 0 });
        at
    }
}
