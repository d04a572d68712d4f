/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * How many slots the connections of each cgroup hold, so that one cgroup cannot hold all.
 *
 * An entry is one word: the number of a cgroup, and below it the count. So one atomic operation
 * claims an entry, counts, or gives back. An entry whose count is 0 is free for every cgroup. The
 * entry of a cgroup is one of TT_LEDGER_LOOKS in a row, which begin where a hash of its number says.
 * A cgroup that finds none of these free is not counted, and so has no limit.
 *
 * Two processors that open the first connections of a cgroup at the same moment may claim an entry
 * each. Later connections count on the first of the two, so at most as many connections are beyond
 * the limit as processors met then.
 *
 * Who includes this says where the entries are: `tt_ledger_at`.
 */
#ifndef TRIMTAB_CORE_LEDGER_H
#define TRIMTAB_CORE_LEDGER_H

#include "../layout.h"

/* The entry is claimed by others again and again: after so many times the connection is not counted. */
#define TT_LEDGER_TRIES 8
#define TT_LEDGER_COUNT ((1ULL << TT_LEDGER_COUNT_BITS) - 1)
#define TT_LEDGER_ENTRIES (1U << TT_LEDGER_BITS)

/* An entry; null beyond the last. */
static u64 *tt_ledger_at(u32 place);

TT_INLINE u64 tt_ledger_look(const u64 *entry) { return *(const volatile u64 *)entry; }

/* The place of the entry of a cgroup, or of the first that is free; TT_NO_ENTRY: there is neither. */
TT_CHECKED_ONCE u32 tt_ledger_find(u64 owner)
{
	/* Fibonacci hashing: the upper bits of the product are spread evenly. */
	u32 first = ((owner >> TT_LEDGER_COUNT_BITS) * 0x9e3779b97f4a7c15) >> (64 - TT_LEDGER_BITS);
	u32 free = TT_NO_ENTRY;

	for (u32 i = 0; i < TT_LEDGER_LOOKS; i++) {
		u32 place = (first + i) % TT_LEDGER_ENTRIES;
		u64 *entry = tt_ledger_at(place);
		u64 seen;

		if (!entry)
			continue; /* never */
		seen = tt_ledger_look(entry);
		if (seen & TT_LEDGER_COUNT) {
			if ((seen & ~TT_LEDGER_COUNT) == owner)
				return place;
		} else if (free == TT_NO_ENTRY) {
			free = place;
		}
	}
	return free;
}

/*
 * Counts one more slot of a cgroup, which may hold `most`: 1 at least. Gives the place of its
 * entry; TT_OVER_QUOTA: it holds as many, and nothing is counted; TT_NO_ENTRY: it has no entry.
 */
TT_CHECKED_ONCE u32 tt_ledger_take(u64 cgroup, u32 most)
{
	u64 owner = cgroup << TT_LEDGER_COUNT_BITS;

	for (u32 i = 0; cgroup && i < TT_LEDGER_TRIES; i++) {
		u32 place = tt_ledger_find(owner);
		u64 *entry = tt_ledger_at(place);
		u64 seen;

		if (!entry)
			return TT_NO_ENTRY;
		seen = tt_ledger_look(entry);
		if (!(seen & TT_LEDGER_COUNT)) {
			if (__sync_val_compare_and_swap(entry, seen, owner + 1) == seen)
				return place;
			continue;
		}
		if ((seen & ~TT_LEDGER_COUNT) != owner)
			continue;
		if ((seen & TT_LEDGER_COUNT) >= most)
			return TT_OVER_QUOTA;
		/* Never a compare-exchange here: of many processors, each would have to repeat it. */
		seen = __sync_fetch_and_add(entry, 1);
		if ((seen & ~TT_LEDGER_COUNT) == owner && (seen & TT_LEDGER_COUNT) < most)
			return place;
		__sync_fetch_and_add(entry, -1);
		if ((seen & ~TT_LEDGER_COUNT) == owner)
			return TT_OVER_QUOTA;
	}
	return TT_NO_ENTRY;
}

/* A connection that was counted there gives its slot back. */
TT_INLINE void tt_ledger_give(u32 place)
{
	u64 *entry = tt_ledger_at(place);

	if (entry)
		__sync_fetch_and_add(entry, -1);
}

#endif
