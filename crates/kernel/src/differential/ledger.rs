//! The ledger of slots by cgroup: the kernel's side on random takes and gives, against a count.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use crate::layout::{LEDGER_BITS, LEDGER_LOOKS, NO_ENTRY, OVER_QUOTA};
use crate::ledger::{Held, held};

const ENTRIES: usize = 1 << LEDGER_BITS;

mod c {
    use super::AtomicU64;

    unsafe extern "C" {
        pub(super) fn tt_host_ledger_take(entries: *const AtomicU64, cgroup: u64, most: u32)
        -> u32;
        pub(super) fn tt_host_ledger_give(entries: *const AtomicU64, place: u32);
    }
}

/// The entries that the kernel would have.
struct Entries(Vec<AtomicU64>);

impl Entries {
    fn new() -> Self {
        Self((0..ENTRIES).map(|_| AtomicU64::new(0)).collect())
    }

    fn take(&self, cgroup: u64, most: u32) -> u32 {
        // SAFETY: so many entries are there, which C changes by atomics alone, and keeps no pointer to.
        unsafe { c::tt_host_ledger_take(self.0.as_ptr(), cgroup, most) }
    }

    fn give(&self, place: u32) {
        // SAFETY: as above.
        unsafe { c::tt_host_ledger_give(self.0.as_ptr(), place) }
    }
}

/// Whether each cgroup holds what it took, and none holds more than its share.
#[test]
fn the_ledger_counts_each_cgroup_up_to_its_share() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..200 {
        let random = &mut Pcg64Mcg::seed_from_u64(seed);
        let entries = Entries::new();
        let most = random.random_range(1..20);
        // Neighbours, as the kernel counts them, and some from after its counter ran through.
        let cgroups: Vec<u64> = (0..random.random_range(1..200))
            .map(|n| if random.random_bool(0.9) { 1 + n } else { 1 << 32 | (1 + n) })
            .collect();
        let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for _ in 0..2000 {
            let cgroup = cgroups[random.random_range(0..cgroups.len())];
            let holds = model.entry(cgroup).or_default();
            if random.random_bool(0.6) {
                match entries.take(cgroup, most) {
                    OVER_QUOTA => {
                        assert_eq!(holds.len(), most as usize, "seed {seed}");
                        refused += 1;
                    }
                    place => {
                        assert!((place as usize) < ENTRIES, "seed {seed}: {place}");
                        assert!(holds.iter().all(|one| *one == place), "seed {seed}: one entry");
                        holds.push(place);
                        taken += 1;
                    }
                }
                assert!(holds.len() <= most as usize, "seed {seed}");
            } else if !holds.is_empty() {
                entries.give(holds.swap_remove(random.random_range(0..holds.len())));
            }
        }
        model.retain(|_, holds| !holds.is_empty());
        let expected =
            model.iter().map(|(cgroup, holds)| Held { cgroup: *cgroup, slots: holds.len() as u32 });
        assert_eq!(held(&entries.0), expected.collect::<Vec<_>>(), "seed {seed}");
        model.into_values().flatten().for_each(|place| entries.give(place));
        assert_eq!(held(&entries.0), [], "seed {seed}");
    }
    assert!(taken > 10_000 && refused > 10_000, "{taken} taken, {refused} refused");
}

/// More cgroups than entries: those without one are not limited, and an entry is free for others
/// when its count is 0.
#[test]
fn cgroups_beyond_the_entries_are_not_counted_and_entries_pass_on() {
    let entries = Entries::new();
    let cgroups = 1..=2 * ENTRIES as u64;
    let places: Vec<u32> = cgroups.clone().map(|cgroup| entries.take(cgroup, 1)).collect();
    let counted = places.iter().filter(|place| **place != NO_ENTRY).count();
    assert!(counted > ENTRIES - LEDGER_LOOKS as usize && counted <= ENTRIES, "{counted}");
    assert_eq!(held(&entries.0).len(), counted);
    for (cgroup, place) in cgroups.zip(&places) {
        let again = entries.take(cgroup, 1);
        assert_eq!(again, if *place == NO_ENTRY { NO_ENTRY } else { OVER_QUOTA }, "{cgroup}");
    }
    // Who counts on none gives nothing back.
    places.iter().for_each(|place| entries.give(*place));
    assert_eq!(held(&entries.0), []);
    let another = 1 << 30;
    let place = entries.take(another, 1);
    assert!((place as usize) < ENTRIES);
    assert_eq!(held(&entries.0), [Held { cgroup: another, slots: 1 }]);
    // A connection of an unknown cgroup is not counted.
    assert_eq!(entries.take(0, 1), NO_ENTRY);
}

/// Processors at once: no count is lost, and at most as many are beyond the share as they are.
#[test]
fn the_ledger_loses_no_count_when_many_take_and_give_at_once() {
    const THREADS: u32 = 8;
    const CGROUPS: u64 = 6;
    const MOST: u32 = 3;
    let entries = Entries::new();
    let holders: [AtomicU32; CGROUPS as usize] = Default::default();
    let refused = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (entries, holders, refused) = (&entries, &holders, &refused);
            scope.spawn(move || {
                let random = &mut Pcg64Mcg::seed_from_u64(thread.into());
                let mut mine = Vec::new();
                for _ in 0..100_000 {
                    let which = random.random_range(0..CGROUPS);
                    if mine.len() < 4 && random.random_bool(0.5) {
                        match entries.take(1 + which, MOST) {
                            OVER_QUOTA => _ = refused.fetch_add(1, Relaxed),
                            NO_ENTRY => {}
                            place => {
                                let before = holders[which as usize].fetch_add(1, Relaxed);
                                assert!(before < MOST + THREADS, "{before}");
                                mine.push((which, place));
                            }
                        }
                    } else if let Some((which, place)) = mine.pop() {
                        holders[which as usize].fetch_sub(1, Relaxed);
                        entries.give(place);
                    }
                }
                mine.into_iter().for_each(|(_, place)| entries.give(place));
            });
        }
    });
    assert_eq!(held(&entries.0), []);
    assert!(refused.into_inner() > 1000);
}
