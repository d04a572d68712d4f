//! Something for each of many destinations, of which the ones that are used stay.

use alloc::vec::Vec;

use trimtab_units::Duration;

/// Destinations that are remembered. The one that nothing was asked of longest makes room.
pub const DESTINATIONS_MAX: usize = 4096;

/// How long it counts which algorithm [suited](crate::Steer::suited) a destination: what else uses
/// a path changes by the hour.
pub const SUITED_LIFETIME: Duration = Duration::from_secs(3600);

/// A value for each destination.
///
/// A destination is whatever the caller tells them apart by: an address, or a prefix.
#[derive(Clone, Debug)]
pub struct Destinations<K, V> {
    /// Sorted by key.
    places: Vec<Place<K, V>>,
    uses: u64,
}

#[derive(Clone, Debug)]
struct Place<K, V> {
    destination: K,
    value: V,
    /// At which use of all it was used last.
    last: u64,
}

impl<K: Ord, V> Default for Destinations<K, V> {
    fn default() -> Self {
        Self { places: Vec::new(), uses: 0 }
    }
}

impl<K: Ord, V> Destinations<K, V> {
    /// The value of a destination; `None` where it has none.
    pub fn get(&self, destination: &K) -> Option<&V> {
        let found = self.places.binary_search_by(|place| place.destination.cmp(destination));
        Some(&self.places[found.ok()?].value)
    }

    /// The value of a destination to be changed, made where it has none. That counts as a use.
    pub fn entry(&mut self, destination: K, new: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let found = self.places.binary_search_by(|place| place.destination.cmp(&destination));
        let at = found.unwrap_or_else(|at| self.make_room(at, destination, new()));
        let place = &mut self.places[at];
        place.last = self.uses;
        &mut place.value
    }

    /// Forgets the value of a destination; `None` where it has none.
    pub fn remove(&mut self, destination: &K) -> Option<V> {
        let found = self.places.binary_search_by(|place| place.destination.cmp(destination));
        Some(self.places.remove(found.ok()?).value)
    }

    /// How many destinations have a value.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A new destination, which belongs at this place; where it stands then.
    fn make_room(&mut self, at: usize, destination: K, value: V) -> usize {
        let mut at = at;
        if self.places.len() == DESTINATIONS_MAX {
            let oldest = (0..self.places.len()).min_by_key(|i| self.places[*i].last).unwrap_or(0);
            self.places.remove(oldest);
            at -= usize::from(oldest < at);
        }
        self.places.insert(at, Place { destination, value, last: 0 });
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let mut table = Destinations::default();
        for destination in 0..DESTINATIONS_MAX {
            *table.entry(2 * destination, || 0) = destination;
        }
        *table.entry(0, || 0) += 7;
        // The second is the oldest now; the new one sorts behind it, and before the others.
        *table.entry(3, || 5) += 1;
        assert_eq!(table.len(), DESTINATIONS_MAX);
        assert_eq!(
            [0, 2, 3, 4].map(|key| table.get(&key).copied()),
            [Some(7), None, Some(6), Some(2)]
        );
        // A look is no use: the third is the oldest, though it was just looked at.
        table.entry(5, || 1);
        assert_eq!([3, 4, 5].map(|key| table.get(&key).copied()), [Some(6), None, Some(1)]);
        assert_eq!([table.remove(&3), table.remove(&3), table.remove(&4)], [Some(6), None, None]);
        assert_eq!((table.get(&3), table.len()), (None, DESTINATIONS_MAX - 1));
    }
}
