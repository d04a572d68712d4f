//! Connections by their addresses.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use trimtab_datapath::{FlowId, Identity};

use super::addresses;
use super::table::{Numbered, Table, shrink};
use crate::connection::Connection;
use crate::datapath::Link;
use crate::kernel::assign::Addresses;

impl<L: Link> Numbered for Connection<L> {
    fn number(&self) -> FlowId {
        self.link.identity().id
    }
}

/// The places in a table by a hash of the addresses, which the connections themselves have: a tenth
/// of the memory.
#[derive(Debug, Default)]
pub(super) struct ByAddresses {
    places: HashTable<u32>,
    hasher: RandomState,
}

impl ByAddresses {
    /// The connection with these addresses that was told of last.
    pub(super) fn find<L: Link>(
        &self,
        wanted: &Addresses,
        all: &Table<Connection<L>>,
    ) -> Option<FlowId> {
        let is_it = |place: &u32| identity(all, *place).is_some_and(|it| addresses(it) == *wanted);
        let place = *self.places.find(self.hasher.hash_one(wanted), is_it)?;
        Some(identity(all, place)?.id)
    }

    /// A connection came, and is in this place.
    pub(super) fn insert<L: Link>(&mut self, place: u32, all: &Table<Connection<L>>) {
        let Some(new) = identity(all, place).map(addresses) else { return };
        let hash = self.hasher.hash_one(new);
        let is_it = |place: &u32| identity(all, *place).is_some_and(|it| addresses(it) == new);
        // Of one that had the same addresses the end is not known yet.
        if let Some(known) = self.places.find_mut(hash, is_it) {
            *known = place;
            return;
        }
        let hasher = &self.hasher;
        self.places.insert_unique(hash, place, |place| hash_at(all, hasher, *place));
    }

    /// The connection in this place is about to go.
    pub(super) fn remove<L: Link>(&mut self, place: u32, all: &Table<Connection<L>>) {
        let hash = hash_at(all, &self.hasher, place);
        // A new connection may have the addresses already.
        if let Ok(entry) = self.places.find_entry(hash, |at| *at == place) {
            entry.remove();
        }
    }

    /// Gives back the memory that many more connections took.
    pub(super) fn shrink<L: Link>(&mut self, all: &Table<Connection<L>>) {
        let hasher = &self.hasher;
        shrink(&mut self.places, |place| hash_at(all, hasher, *place));
    }
}

fn identity<L: Link>(all: &Table<Connection<L>>, place: u32) -> Option<&Identity> {
    all.at(place).map(|connection| connection.link.identity())
}

fn hash_at<L: Link>(all: &Table<Connection<L>>, hasher: &RandomState, place: u32) -> u64 {
    identity(all, place).map_or(0, |identity| hasher.hash_one(addresses(identity)))
}
