/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The least or greatest of recent samples, in constant space: crates/cc/src/filter.rs in C.
 *
 * Kept are the samples that are better than all after them, those closer than an eighth of the window merged. So the
 * answer is never worse than the true one, and a sample counts for at most 9/8 of the window.
 */
#ifndef TRIMTAB_FILTER_H
#define TRIMTAB_FILTER_H

#include "../types.h"

/* A sample outlives the window by at most one part in this many. */
#define TT_FILTER_GRAINS 8
/* A power of two: places in the ring are masked. */
#define TT_FILTER_CAPACITY 16
#define TT_FILTER_MASK (TT_FILTER_CAPACITY - 1)

/*
 * A sample, standing for those taken from `first` to `last`: times are microseconds modulo 2^32, which holds as long as
 * no sample is 71 minutes old (tt_filter_clear). Half the size, half the cache lines on the path of every
 * acknowledgement.
 */
struct tt_kept {
	u32 value_us;
	u32 first_us;
	u32 last_us;
};

/*
 * A queue, oldest and best first. Its two ends are here, which is all that most samples need; what lies between is in a
 * ring elsewhere, so that the common path touches few cache lines. With one sample kept, both ends are that sample.
 */
struct tt_filter {
	u16 head; /* of the oldest, in the ring */
	u8 len;
	bool greatest; /* keeps the greatest; else the least */
	struct tt_kept oldest;
	struct tt_kept newest;
};

/* All kept samples but the newest, which is written here when another follows it. */
struct tt_ring {
	struct tt_kept kept[TT_FILTER_CAPACITY];
};

/* The extreme; 0 before any sample. */
TT_INLINE u64 tt_filter_get(const struct tt_filter *filter)
{
	return filter->len ? filter->oldest.value_us : 0;
}

/* Forgets every sample. */
TT_INLINE void tt_filter_clear(struct tt_filter *filter)
{
	filter->len = 0;
}

/* Adds a sample; those older than the window leave. */
TT_CHECKED_ONCE int tt_filter_update(struct tt_filter *filter, struct tt_ring *ring, u32 now_us, u32 window_us,
				     u32 value_us)
{
	u32 head, len, i;

	if (!filter || !ring)
		return 0;
	head = filter->head;
	len = filter->len;
	for (i = 0; i < TT_FILTER_CAPACITY; i++) {
		if (!len || now_us - filter->oldest.last_us <= window_us)
			break;
		head++;
		len--;
		if (len)
			filter->oldest = len == 1 ? filter->newest : ring->kept[head & TT_FILTER_MASK];
	}
	if (i) {
		/* The verifier forgets how many have left, or it would check the rest for each number. */
		*(volatile u8 *)&filter->len = len;
		*(volatile u16 *)&filter->head = head;
		len = *(volatile u8 *)&filter->len;
		head = *(volatile u16 *)&filter->head;
	}
	for (i = 0; i < TT_FILTER_CAPACITY; i++) {
		u32 newest_us = filter->newest.value_us;

		if (!len || (filter->greatest ? newest_us > value_us : newest_us < value_us))
			break;
		len--;
		if (len)
			filter->newest = len == 1 ? filter->oldest : ring->kept[(head + len - 1) & TT_FILTER_MASK];
	}
	filter->head = head & TT_FILTER_MASK;
	if (len) {
		if (len >= TT_FILTER_CAPACITY || now_us - filter->newest.first_us < window_us / TT_FILTER_GRAINS) {
			filter->newest.last_us = now_us;
			if (len == 1)
				filter->oldest.last_us = now_us;
			filter->len = len;
			return 0;
		}
		ring->kept[(head + len - 1) & TT_FILTER_MASK] = filter->newest;
	}
	filter->newest.value_us = value_us;
	filter->newest.first_us = now_us;
	filter->newest.last_us = now_us;
	if (!len)
		filter->oldest = filter->newest;
	filter->len = len + 1;
	return 0;
}

#endif
