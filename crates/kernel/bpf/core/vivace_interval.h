/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Monitor intervals: crates/cc/src/vivace/interval.rs in C. Linux tells an algorithm of
 * acknowledgements and not of what is sent, so an interval begins with the first acknowledgement
 * after it is due, and counts what the socket counted as sent meanwhile.
 */
#ifndef TRIMTAB_VIVACE_INTERVAL_H
#define TRIMTAB_VIVACE_INTERVAL_H

#include "vivace_state.h"

/* A line's slope is noise within so many standard errors, squared: 25/16. */
#define TT_SLOPE_ERRORS2_Q4 25

/* --- A straight line by least squares. */

TT_INLINE void tt_trend_add(struct tt_trend *t, u64 x_us, u32 rtt_us)
{
	__s64 x, y;

	if (t->n >= TT_TREND_POINTS || x_us >= TT_TREND_US || rtt_us >= TT_TREND_US)
		return;
	if (!t->n)
		t->first_us = rtt_us;
	x = x_us;
	y = (__s64)rtt_us - t->first_us;
	t->n++;
	t->x += x;
	t->y += y;
	t->xx += x * x;
	t->xy += x * y;
	t->yy += y * y;
}

/* sum(ab) - sum(a) sum(b) / n, exactly but for the last unit. */
TT_INLINE __s64 tt_trend_centred(__s64 products, __s64 a, __s64 b, u32 n)
{
	__s64 mean = tt_over(b, n);
	__s64 left = b - mean * n;

	return products - (a * mean + tt_over(a * left, n));
}

/* The slope, 0 where it falls or where there is no line; and whether its own error explains it. */
TT_CHECKED_ONCE u64 tt_trend_slope_q32(const struct tt_trend *t, bool *explained)
{
	u64 xy, xx, yy, slope_q32, fitted, shift;
	__s64 centred;

	if (!t || !explained)
		return 0;
	*explained = false;
	if (t->n < 3)
		return 0;
	xx = tt_trend_centred(t->xx, t->x, t->x, t->n);
	centred = tt_trend_centred(t->xy, t->x, t->y, t->n);
	if (!xx || centred <= 0)
		return 0;
	xy = centred;
	yy = tt_trend_centred(t->yy, t->y, t->y, t->n);
	/* Both to below 2^31, so that the quotient fits, and no further. */
	shift = tt_less(tt_log2_whole(xy), 30);
	slope_q32 = ((xy >> shift) << 32) / tt_max(xx >> shift, 1);
	if (slope_q32 >> 32)
		return tt_min(slope_q32, 64 * TT_ONE_Q32); /* no error explains that */
	/* fitted / yy is the share of the variance that the line explains: r^2 (n - 2) <= errors^2 (1 - r^2). */
	shift = tt_less(tt_log2_whole(tt_max(xy, yy)), 30);
	fitted = (xy >> shift) * slope_q32 >> 32;
	*explained = fitted * ((t->n - 2) * 16ULL + TT_SLOPE_ERRORS2_Q4) <= TT_SLOPE_ERRORS2_Q4 * (yy >> shift);
	return slope_q32;
}

/* --- The ring. */

TT_INLINE struct tt_interval *tt_interval_at(struct tt_vivace *v, u32 i)
{
	return &v->ring[(v->head + i) & TT_INTERVALS_MASK];
}

/* The running one; null where none is. */
TT_INLINE struct tt_interval *tt_interval_running(struct tt_vivace *v)
{
	return v->len ? tt_interval_at(v, v->len - 1) : 0;
}

/* Whether the running one may end: it is long enough, and has packets enough to say something. */
TT_INLINE bool tt_interval_is_due(const struct tt_interval *i, u64 now_us, u64 length_us, u32 sent, u32 packets_q4)
{
	return now_us - i->start_us >= length_us && (u64)(u32)(sent - i->sent_before) * 16 >= packets_q4;
}

/* Ends the running one and begins another. There is room. `sent` is the connection's count so far. */
TT_INLINE void tt_interval_begin(struct tt_vivace *v, u64 now_us, u8 purpose, u64 asked_q8, u32 sent)
{
	struct tt_interval *running = tt_interval_running(v);
	struct tt_interval *next = tt_interval_at(v, v->len);

	if (running) {
		running->end_us = now_us;
		running->sent = sent - running->sent_before;
	}
	__builtin_memset(next, 0, sizeof(*next));
	next->purpose = purpose;
	next->asked_q8 = asked_q8;
	next->start_us = now_us;
	next->last_ack_us = now_us;
	next->sent_before = sent;
	v->len++;
}

/* The one in which a packet was sent; null where it is no longer looked at. */
TT_INLINE struct tt_interval *tt_interval_of(struct tt_vivace *v, u64 sent_us)
{
	for (u32 back = 1; back <= TT_INTERVALS; back++) {
		struct tt_interval *i;

		if (back > v->len)
			break;
		i = tt_interval_at(v, v->len - back);
		if (i->start_us <= sent_us)
			return i;
	}
	return 0;
}

/* An acknowledgement; the interval that its newest packet is of, or null. */
TT_INLINE struct tt_interval *tt_interval_on_ack(struct tt_vivace *v, const struct tt_vivace_ack *ack)
{
	struct tt_interval *i = tt_interval_of(v, ack->newest_sent_us);

	if (!i)
		return 0;
	i->acked += ack->acked;
	if (!i->first_ack_us) {
		i->first_ack_us = ack->now_us;
		i->acked_first = i->acked;
	}
	i->last_ack_us = ack->now_us;
	if (ack->rtt_us) {
		i->samples++;
		tt_trend_add(&i->trend, ack->newest_sent_us - i->start_us, ack->rtt_us);
	}
	return i;
}

/* Whether all that there is to know of the oldest is known. */
TT_INLINE bool tt_interval_is_resolved(const struct tt_interval *i, u64 newest_sent_us, u64 grace_us)
{
	return i->end_us && (i->acked + i->lost >= i->sent || newest_sent_us >= i->end_us + grace_us);
}

/* Packets in a time as a rate. */
TT_INLINE u64 tt_rate_q8(const struct tt_vivace *v, u32 packets, u64 time_us)
{
	u64 bytes = (u64)packets * v->mss_bytes;
	u64 per_us = 1000000ULL << TT_RATE_SHIFT;

	time_us = tt_max(time_us, 1);
	/* Below 2^36 bytes the product fits; of more, the microseconds are a small part. */
	return bytes >> 36 ? bytes / time_us * per_us : bytes * per_us / time_us;
}

/* What an interval shows: of all its packets, or while some are on their way, of those that are accounted for. */
TT_INLINE void tt_interval_show(const struct tt_vivace *v, const struct tt_interval *i, struct tt_shown *shown)
{
	u32 known = i->acked + i->lost;
	u32 of = i->end_us ? tt_max(i->sent, known) : known;
	u64 sent_q8 = i->asked_q8;
	bool explained = false;

	if (i->end_us > i->start_us)
		sent_q8 = tt_rate_q8(v, i->sent, i->end_us - i->start_us);
	/* A packet more or less is not the sender's choice, what the window or a busy host withheld is. */
	if (tt_max(sent_q8, i->asked_q8) - tt_min(sent_q8, i->asked_q8) < i->asked_q8 / 10)
		sent_q8 = i->asked_q8;
	shown->rate_q8 = sent_q8;
	shown->arrived_q8 = 0;
	if (i->first_ack_us && i->last_ack_us > i->first_ack_us)
		shown->arrived_q8 = tt_rate_q8(v, i->acked - i->acked_first, i->last_ack_us - i->first_ack_us);
	shown->packets = of;
	shown->loss_q32 = tt_share_q32(i->lost, of);
	shown->lost_ranges = i->lost_ranges;
	shown->slope_q32 = tt_trend_slope_q32(&i->trend, &explained);
	shown->slope_explained = explained;
}

#endif
