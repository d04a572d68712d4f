/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What was in flight, and how much had been lost, when a packet was sent. The draft keeps both with
 * each packet ("Per-packet (P) variables"); Linux's own packets have room for neither, and a program
 * may not write to them. Here some moments of the last two round trips are kept, which a packet is
 * found by: a packet that was sent when so much was delivered was sent just after the newest moment
 * with no more.
 *
 * Losses since a packet was sent may be too many by that: those between the moment and the packet
 * count, too. There are such only where losses came before it in the same eighth of a round trip.
 */
#ifndef TRIMTAB_BBR3_SENT_H
#define TRIMTAB_BBR3_SENT_H

#include "bbr_model.h"

/* A power of two: places are masked. */
#define TT_SENT_MOMENTS 16
#define TT_SENT_MASK (TT_SENT_MOMENTS - 1)
/* Moments are a share of a round trip apart, so that all of them are two. */
#define TT_SENT_SHARE_SHIFT 3

/* Packets, modulo 2^32. */
struct tt_sent_moment {
	u32 delivered;
	u32 inflight;
	u32 lost;
};

struct tt_sent {
	u64 due_us; /* when the next moment is kept */
	u32 newest;
	u32 prior_delivered; /* of the last packet that was asked for */
	struct tt_sent_moment moments[TT_SENT_MOMENTS];
};

/*
 * An acknowledgement arrives: so much was in flight, delivered and lost just before it, which is
 * what the last packet before it was sent with.
 */
TT_INLINE void tt_sent_note(struct tt_sent *s, u64 now_us, u32 srtt_us, const struct tt_sent_moment *before)
{
	if (now_us < s->due_us)
		return;
	s->due_us = now_us + (srtt_us >> TT_SENT_SHARE_SHIFT);
	s->newest = (s->newest + 1) & TT_SENT_MASK;
	s->moments[s->newest] = *before;
}

/* What there was when a packet was sent, with so much delivered; the oldest moment, where that is later. */
TT_CHECKED_ONCE int tt_sent_find(const struct tt_sent *s, u32 prior_delivered, struct tt_sent_moment *found)
{
	if (!s || !found)
		return 0;
	for (u32 i = 0; i < TT_SENT_MOMENTS; i++) {
		*found = s->moments[(s->newest - i) & TT_SENT_MASK];
		if (tt_is_at_or_after(prior_delivered, found->delivered))
			break;
	}
	return 0;
}

/* A connection begins, or another algorithm ran until now: all moments are this one. */
TT_INLINE void tt_sent_begin(struct tt_sent *s, const struct tt_sent_moment *now)
{
	s->due_us = 0;
	s->newest = 0;
	s->prior_delivered = now->delivered;
	for (u32 i = 0; i < TT_SENT_MOMENTS; i++)
		s->moments[i] = *now;
}

#endif
