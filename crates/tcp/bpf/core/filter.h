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

/* A sample, standing for those taken from `first` to `last`. */
struct tt_kept {
	u64 first_us;
	u64 last_us;
	u64 value_us;
};

/* A ring, oldest and best first. */
struct tt_filter {
	u32 head;
	u32 len;
	struct tt_kept kept[TT_FILTER_CAPACITY];
};

/* The extreme; 0 before any sample. */
TT_INLINE u64 tt_filter_get(const struct tt_filter *filter)
{
	return filter->len ? filter->kept[filter->head & TT_FILTER_MASK].value_us : 0;
}

/* Adds a sample; those older than the window leave. */
TT_CHECKED_ONCE int tt_filter_update(struct tt_filter *filter, u64 now_us, u64 window_us, u64 value_us, bool greatest)
{
	u32 head, len, i;
	struct tt_kept *kept;

	if (!filter)
		return 0;
	head = filter->head & TT_FILTER_MASK;
	len = filter->len;
	for (i = 0; i < TT_FILTER_CAPACITY; i++) {
		if (!len || tt_less(now_us, filter->kept[head].last_us) <= window_us)
			break;
		head = (head + 1) & TT_FILTER_MASK;
		len--;
	}
	for (i = 0; i < TT_FILTER_CAPACITY; i++) {
		u64 newest;

		if (!len)
			break;
		newest = filter->kept[(head + len - 1) & TT_FILTER_MASK].value_us;
		if (greatest ? newest > value_us : newest < value_us)
			break;
		len--;
	}
	filter->head = head;
	if (len) {
		kept = &filter->kept[(head + len - 1) & TT_FILTER_MASK];
		if (len >= TT_FILTER_CAPACITY || tt_less(now_us, kept->first_us) < window_us / TT_FILTER_GRAINS) {
			kept->last_us = now_us;
			filter->len = len;
			return 0;
		}
	}
	kept = &filter->kept[(head + len) & TT_FILTER_MASK];
	kept->value_us = value_us;
	kept->first_us = now_us;
	kept->last_us = now_us;
	filter->len = len + 1;
	return 0;
}

#endif
