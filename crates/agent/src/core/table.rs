//! The connections, close together in memory.
//!
//! A box for each would lie among what connections need while they are awake. Freed, that leaves
//! pages of which a box here and there is in use, and a page goes back to the system only as a
//! whole. So they lie in blocks, which hold nothing else. Indexes have their places alone.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use trimtab_datapath::FlowId;

/// Values of a block, so many that those at its ends share their pages with others rarely.
const OF_BLOCK: usize = 256;
/// What was for this many times as much gives memory back.
const SPARSE: usize = 4;

/// What has the number of a connection, which never changes.
pub(crate) trait Numbered {
    /// That number.
    fn number(&self) -> FlowId;
}

/// Some places, and what is in them.
#[derive(Debug)]
struct Block<T> {
    places: Vec<Option<T>>,
    /// Those of `places` that are free again.
    free: Vec<u8>,
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Block<T> {
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Puts it in a place; there must be one.
    fn put(&mut self, value: T) -> usize {
        if let Some(place) = self.free.pop() {
            let place = usize::from(place);
            self.places[place] = Some(value);
            return place;
        }
        if self.places.is_empty() {
            self.places.reserve_exact(OF_BLOCK);
        }
        self.places.push(Some(value));
        self.places.len() - 1
    }

    fn take(&mut self, place: usize) -> Option<T> {
        let value = self.places.get_mut(place)?.take()?;
        self.free.push(place as u8);
        if self.len() == 0 {
            *self = Self::default();
        }
        Some(value)
    }
}

/// The blocks, by the number of a place.
#[derive(Debug)]
struct Blocks<T>(Vec<Block<T>>);

/// The block and the place in it.
fn split(place: u32) -> (usize, usize) {
    (place as usize / OF_BLOCK, place as usize % OF_BLOCK)
}

impl<T> Blocks<T> {
    fn at(&self, place: u32) -> Option<&T> {
        let (block, place) = split(place);
        self.0.get(block)?.places.get(place)?.as_ref()
    }
}

/// Values by the numbers of connections; an iteration is in no order.
#[derive(Debug)]
pub(crate) struct Table<T> {
    blocks: Blocks<T>,
    /// The blocks with room.
    roomy: BTreeSet<u32>,
    /// The place of each, by the hash of its number.
    index: HashTable<u32>,
    hasher: RandomState,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            blocks: Blocks(Vec::new()),
            roomy: BTreeSet::new(),
            index: HashTable::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<T: Numbered> Table<T> {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The place of a connection. It stays there until it is removed.
    pub(crate) fn place(&self, id: &FlowId) -> Option<u32> {
        let is_it = |place: &u32| self.blocks.at(*place).is_some_and(|it| it.number() == *id);
        self.index.find(self.hasher.hash_one(id), is_it).copied()
    }

    /// What is in a place.
    pub(crate) fn at(&self, place: u32) -> Option<&T> {
        self.blocks.at(place)
    }

    pub(crate) fn contains_key(&self, id: &FlowId) -> bool {
        self.place(id).is_some()
    }

    pub(crate) fn get(&self, id: &FlowId) -> Option<&T> {
        self.blocks.at(self.place(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: &FlowId) -> Option<&mut T> {
        let (block, place) = split(self.place(id)?);
        self.blocks.0.get_mut(block)?.places.get_mut(place)?.as_mut()
    }

    /// Takes in a value in the stead of one of the same number; gives its place.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let id = value.number();
        self.remove(&id);
        let blocks = &mut self.blocks.0;
        // The first with room, so that the last become empty.
        let number = self.roomy.first().map_or(blocks.len(), |number| *number as usize);
        if number == blocks.len() {
            blocks.push(Block::default());
            self.roomy.insert(number as u32);
        }
        let block = &mut blocks[number];
        let place = (number * OF_BLOCK + block.put(value)) as u32;
        if block.len() == OF_BLOCK {
            self.roomy.remove(&(number as u32));
        }
        let (blocks, hasher) = (&self.blocks, &self.hasher);
        let hash = |place: &u32| hash_at(blocks, hasher, *place);
        self.index.insert_unique(hasher.hash_one(id), place, hash);
        place
    }

    pub(crate) fn remove(&mut self, id: &FlowId) -> Option<T> {
        let place = self.place(id)?;
        if let Ok(entry) = self.index.find_entry(self.hasher.hash_one(id), |at| *at == place) {
            entry.remove();
        }
        let (block, place) = split(place);
        self.roomy.insert(block as u32);
        self.blocks.0.get_mut(block)?.take(place)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.blocks.0.iter().flat_map(|block| block.places.iter().flatten())
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.0.iter_mut().flat_map(|block| block.places.iter_mut().flatten())
    }

    /// Gives back the memory that many more connections took.
    pub(crate) fn shrink(&mut self) {
        let blocks = &mut self.blocks.0;
        while blocks.last().is_some_and(|block| block.len() == 0) {
            blocks.pop();
            self.roomy.remove(&(blocks.len() as u32));
        }
        let (blocks, hasher) = (&self.blocks, &self.hasher);
        shrink(&mut self.index, |place| hash_at(blocks, hasher, *place));
    }
}

/// The hash of the number of what is in a place.
fn hash_at<T: Numbered>(blocks: &Blocks<T>, hasher: &RandomState, place: u32) -> u64 {
    blocks.at(place).map_or(0, |value| hasher.hash_one(value.number()))
}

/// Gives back the memory of an index that once held many more.
pub(super) fn shrink(index: &mut HashTable<u32>, hash: impl Fn(&u32) -> u64) {
    if is_sparse(index.len(), index.capacity()) {
        index.shrink_to_fit(hash);
    }
}

/// Whether so many are few in memory for so many.
pub(super) fn is_sparse(len: usize, capacity: usize) -> bool {
    capacity > SPARSE * len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, and a value.
    type Pair = (u64, u64);

    impl Numbered for Pair {
        fn number(&self) -> FlowId {
            FlowId(self.0)
        }
    }

    fn sorted(table: &Table<Pair>) -> Vec<u64> {
        let mut all: Vec<u64> = table.values().map(|(id, _)| *id).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn each_is_found_by_its_number_while_others_come_and_go() {
        let mut table = Table::default();
        for id in 0..1000 {
            let place = table.insert((id, 2 * id));
            assert_eq!(table.at(place), Some(&(id, 2 * id)));
        }
        for id in (0..1000).filter(|id| id % 3 != 0) {
            assert_eq!(table.remove(&FlowId(id)), Some((id, 2 * id)));
            assert_eq!(table.remove(&FlowId(id)), None);
        }
        for id in 1000..1500 {
            table.insert((id, 2 * id));
        }
        let left: Vec<u64> = (0..1500).filter(|id| *id >= 1000 || id % 3 == 0).collect();
        assert_eq!((table.len(), sorted(&table)), (left.len(), left.clone()));
        assert!(left.iter().all(|id| table.get(&FlowId(*id)) == Some(&(*id, 2 * id))));
        assert!(table.get(&FlowId(1)).is_none() && !table.contains_key(&FlowId(1)));
        table.get_mut(&FlowId(3)).unwrap().1 = 7;
        assert_eq!(table.get(&FlowId(3)), Some(&(3, 7)));
        table.insert((3, 8));
        assert_eq!((table.len(), table.get(&FlowId(3))), (left.len(), Some(&(3, 8))));
        assert_eq!(table.blocks.0.len(), 4, "those that left made room");
    }

    #[test]
    fn what_a_crowd_took_goes_back() {
        let mut table = Table::default();
        for id in 0..100_000 {
            table.insert((id, id));
        }
        for id in 10..100_000 {
            table.remove(&FlowId(id));
        }
        table.shrink();
        assert_eq!((table.blocks.0.len(), table.roomy.len()), (1, 1));
        assert!(table.index.capacity() < 100, "{}", table.index.capacity());
        assert_eq!(sorted(&table), (0..10).collect::<Vec<_>>());
    }
}
