/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Whose losses are whose, and the window that a CUBIC flow would have: crates/cc/src/copa/blame.rs
 * and crates/cc/src/rival.rs, which say why each thing is as it is.
 */
#ifndef TRIMTAB_COPA_RIVAL_H
#define TRIMTAB_COPA_RIVAL_H

#include "copa_mode.h"

/* --- Whose losses are whose. */

/* The greatest queueing delay is that of one to two stretches of this length, and of so many round trips at least. */
#define TT_BLAME_STRETCH_US 5000000
#define TT_BLAME_STRETCH_ROUNDS 10
/* A queue is full from 3/4 of the greatest delay on. */
#define TT_BLAME_FULL_NUM 3
#define TT_BLAME_FULL_DEN 4
/* Losses are the queue's where more than so many times as much is lost while it is full. */
#define TT_BLAME_OFTEN 2
/* Both tallies halve when one of them has so many packets. */
#define TT_BLAME_PACKETS 2000

TT_INLINE void tt_tally_halve(struct tt_tally *t)
{
	t->lost_bytes /= 2;
	t->acked_bytes /= 2;
}

TT_INLINE u64 tt_tally_seen(const struct tt_tally *t)
{
	return tt_max(t->lost_bytes + t->acked_bytes, 1);
}

/* Takes what was acknowledged, and the queueing delay of the standing round-trip time. */
TT_INLINE void tt_blame_on_ack(struct tt_blame *b, const struct tt_ack *ack, u64 queueing_us, u32 mss_bytes)
{
	u64 srtt_us = tt_min(ack->srtt_us, TT_RTT_MAX_US);
	u64 most_us;

	if (tt_less(ack->now_us, b->stretch_from_us) > tt_max(TT_BLAME_STRETCH_US, srtt_us * TT_BLAME_STRETCH_ROUNDS)) {
		b->most_us[0] = b->most_us[1];
		b->most_us[1] = 0;
		b->stretch_from_us = ack->now_us;
	}
	b->most_us[1] = tt_max(b->most_us[1], queueing_us);
	most_us = tt_max(b->most_us[0], b->most_us[1]);
	b->full = queueing_us > TT_EMPTY_SLACK_US && queueing_us * TT_BLAME_FULL_DEN >= most_us * TT_BLAME_FULL_NUM;
	if (b->full)
		b->when_full.acked_bytes += ack->acked_bytes;
	else
		b->otherwise.acked_bytes += ack->acked_bytes;
	if (tt_max(b->when_full.acked_bytes, b->otherwise.acked_bytes) <= (u64)mss_bytes * TT_BLAME_PACKETS)
		return;
	tt_tally_halve(&b->when_full);
	tt_tally_halve(&b->otherwise);
}

/* Packets were lost: whether by a full queue. Both tallies are below 2^31, so that the products fit. */
TT_INLINE bool tt_blame_on_loss(struct tt_blame *b, u64 lost_bytes)
{
	if (!b->full) {
		b->otherwise.lost_bytes += lost_bytes;
		return false;
	}
	b->when_full.lost_bytes += lost_bytes;
	return b->when_full.lost_bytes * tt_tally_seen(&b->otherwise) >
	       TT_BLAME_OFTEN * b->otherwise.lost_bytes * tt_tally_seen(&b->when_full);
}

/* --- The window that a CUBIC flow would have. */

/* Growth for what is acknowledged, until the first loss: a quarter. */
#define TT_RIVAL_SEARCH 4
/* It is forgotten so long after it was needed last, and so many round trips. */
#define TT_RIVAL_LASTS_US 3000000
#define TT_RIVAL_LASTS_ROUNDS 5

/* Linux's constants: TT_CUBIC_BETA, TT_CUBIC_C, fast convergence. */
static const struct tt_cubic_knobs tt_rival_knobs = {
	.beta = 717,
	.c = 410,
	.reno_eighths = 15,
	.fast_convergence = 1,
};

TT_INLINE void tt_rival_set(struct tt_copa *c, u64 window_bytes)
{
	u64 least_bytes = tt_max(c->window_min_bytes, c->mss_bytes);

	c->rival.window_bytes = tt_min(tt_max(window_bytes, least_bytes), TT_WINDOW_MAX_BYTES);
}

TT_INLINE u32 tt_rival_packets(const struct tt_copa *c)
{
	return (u32)c->rival.window_bytes / tt_max(c->mss_bytes, 1);
}

TT_INLINE void tt_rival_forget(struct tt_copa *c)
{
	__builtin_memset(&c->rival, 0, sizeof(c->rival));
}

/* It is needed: it begins with the sender's own window where there is none yet. */
TT_INLINE void tt_rival_need(struct tt_copa *c, u64 now_us)
{
	struct tt_rival *r = &c->rival;

	r->needed_us = now_us;
	if (r->window_bytes)
		return;
	tt_rival_set(c, c->window_q16 >> TT_WINDOW_SHIFT);
	r->curve.last_max = tt_rival_packets(c);
	r->curve.delay_min_us = tt_filter_get(&c->rtt_min);
}

/* Others fill the queue, and the sender's own window is this one. */
TT_INLINE void tt_rival_meet(struct tt_copa *c, u64 window_bytes)
{
	struct tt_rival *r = &c->rival;

	tt_rival_set(c, tt_max(r->window_bytes, window_bytes));
	if (!r->met)
		r->searches = true;
	r->met = true;
}

/* Grows by what was acknowledged while this window limited the sender. */
TT_INLINE void tt_rival_grow(struct tt_copa *c, u64 acked_bytes, u64 now_us)
{
	struct tt_rival *r = &c->rival;
	u32 mss_bytes = tt_max(c->mss_bytes, 1), packets, window;

	if (r->searches) {
		tt_rival_set(c, r->window_bytes + acked_bytes / TT_RIVAL_SEARCH);
		return;
	}
	acked_bytes = tt_min(acked_bytes, TT_WINDOW_MAX_BYTES) + r->part_bytes;
	packets = (u32)acked_bytes / mss_bytes;
	r->part_bytes = (u32)acked_bytes % mss_bytes;
	window = tt_cubic_grow(&r->curve, &tt_rival_knobs, tt_rival_packets(c), packets, now_us);
	tt_rival_set(c, (u64)window * mss_bytes);
}

/* Packets were lost while the sender's own window was this one. */
TT_INLINE void tt_rival_on_loss(struct tt_copa *c, u64 own_bytes)
{
	struct tt_rival *r = &c->rival;

	r->searches = false;
	tt_rival_set(c, tt_min(r->window_bytes, own_bytes));
	tt_rival_set(c, (u64)tt_cubic_on_loss(&r->curve, &tt_rival_knobs, tt_rival_packets(c)) * c->mss_bytes);
}

/* Whether it is old news. */
TT_INLINE bool tt_rival_is_past(const struct tt_copa *c, const struct tt_ack *ack)
{
	u64 srtt_us = tt_min(ack->srtt_us, TT_RTT_MAX_US);

	return tt_less(ack->now_us, c->rival.needed_us) > tt_max(TT_RIVAL_LASTS_US, srtt_us * TT_RIVAL_LASTS_ROUNDS);
}

#endif
