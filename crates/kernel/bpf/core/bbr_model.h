/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* BBR's model of the path: bandwidth by rounds, full pipe, aggregation of acknowledgements; crates/cc/src/bbr. */
#ifndef TRIMTAB_BBR_MODEL_H
#define TRIMTAB_BBR_MODEL_H

#include "bbr_state.h"

/* Less growth than a quarter in so many rounds is a full pipe (`bbr_full_bw_thresh`, `bbr_full_bw_cnt`). */
#define TT_BBR_GROWTH (TT_GAIN_UNIT + TT_GAIN_UNIT / 4)
#define TT_BBR_PLATEAU_ROUNDS 3
/* Rounds in each of the two slots of the maximum of aggregation (`bbr_extra_acked_win_rtts`). */
#define TT_AGGREGATION_SLOT_ROUNDS 5
/* An epoch of so many packets is old (`bbr_ack_epoch_acked_reset_thresh`). */
#define TT_AGGREGATION_PACKETS_MAX (1 << 20)

/* The value times the gain, rounded down. Values are below 2^45: rates below TT_BANDWIDTH_MAX, bytes of a window. */
TT_INLINE u64 tt_gain(u32 gain_q16, u64 value) { return value * gain_q16 >> 16; }

/* What a rate brings in a time of at most TT_RTT_MAX_US: 2^37 * 2^26 fits. */
TT_INLINE u64 tt_rate_times_us(u64 bytes_per_s, u64 us) { return bytes_per_s * tt_min(us, TT_RTT_MAX_US) / 1000000; }

/* Packets in that time; at most 2^32 µs or 2^32 packets, which is the counters' own range. */
TT_INLINE u64 tt_rate_of(u64 packets, u32 mss_bytes, u64 us)
{
	/* 2^44 bytes times 10^6 fit. */
	u64 bytes = tt_min(packets * mss_bytes, 1ULL << 44);

	return tt_min(bytes * 1000000 / tt_max(us, 1), TT_BANDWIDTH_MAX);
}

/* Whether a count is at or after another, both modulo 2^32. */
TT_INLINE bool tt_is_at_or_after(u32 a, u32 b) { return (__s32)(a - b) >= 0; }

/* --- The largest of recent rounds. */

TT_INLINE void tt_rounds_max_reset(struct tt_rounds_max *max, u32 round, u64 value)
{
	max->best[0] = max->best[1] = max->best[2] = value;
	max->round[0] = max->round[1] = max->round[2] = round;
}

/* From the place on, all are this sample. */
TT_INLINE void tt_rounds_max_set(struct tt_rounds_max *max, u32 from, u32 round, u64 value)
{
	if (from <= 1) {
		max->best[1] = value;
		max->round[1] = round;
	}
	max->best[2] = value;
	max->round[2] = round;
}

/* The best leaves, and the next takes its place. */
TT_INLINE void tt_rounds_max_shift(struct tt_rounds_max *max)
{
	max->best[0] = max->best[1];
	max->round[0] = max->round[1];
	max->best[1] = max->best[2];
	max->round[1] = max->round[2];
}

TT_CHECKED_ONCE int tt_rounds_max_update(struct tt_rounds_max *max, u32 window, u32 round, u64 value)
{
	u32 age;

	if (!max)
		return 0;
	age = round - max->round[0];
	if (value >= max->best[0] || round - max->round[2] > window) {
		tt_rounds_max_reset(max, round, value);
		return 0;
	}
	if (value >= max->best[1])
		tt_rounds_max_set(max, 1, round, value);
	else if (value >= max->best[2])
		tt_rounds_max_set(max, 2, round, value);
	if (age > window) {
		tt_rounds_max_shift(max);
		tt_rounds_max_set(max, 2, round, value);
		if (round - max->round[0] > window)
			tt_rounds_max_shift(max);
	} else if (max->round[1] == max->round[0] && age > window / 4) {
		/* A quarter of the window without a better sample: its best becomes the second choice. */
		tt_rounds_max_set(max, 1, round, value);
	} else if (max->round[2] == max->round[1] && age > window / 2) {
		tt_rounds_max_set(max, 2, round, value);
	}
	return 0;
}

/* --- Rounds and the bubble. */

TT_INLINE void tt_round_update(struct tt_bbr *b, u32 prior_delivered, u32 delivered)
{
	b->round_started = tt_is_at_or_after(prior_delivered, b->round_end);
	if (b->round_started) {
		b->round++;
		b->round_end = delivered;
	}
}

/* Everything in flight now, and sent until it is acknowledged, was sent in ProbeRTT. */
TT_INLINE void tt_bubble_extend(struct tt_bubble *bubble, u32 delivered, u32 inflight)
{
	if (!bubble->is_there || !tt_is_at_or_after(bubble->end, delivered))
		bubble->start = delivered;
	bubble->end = delivered + inflight;
	bubble->is_there = true;
}

/* Whether a packet sent at this count belongs to it. One that was sent after it ends it, so that the count may wrap. */
TT_INLINE bool tt_bubble_contains(struct tt_bubble *bubble, u32 prior_delivered)
{
	if (!bubble->is_there)
		return false;
	if (tt_is_at_or_after(bubble->end, prior_delivered))
		return tt_is_at_or_after(prior_delivered, bubble->start);
	if (prior_delivered - bubble->end > 1U << 30)
		bubble->is_there = false;
	return false;
}

/* --- The full pipe. */

/* Takes the bandwidth at the start of a round that was not limited by the application. */
TT_INLINE void tt_full_pipe_on_round(struct tt_bbr *b, u64 max_bw)
{
	if (b->full_pipe)
		return;
	if (max_bw >= tt_gain(TT_BBR_GROWTH, b->full_bw_bytes_per_s)) {
		b->full_bw_bytes_per_s = max_bw;
		b->plateau = 0;
		return;
	}
	b->plateau++;
	b->full_pipe = b->plateau >= TT_BBR_PLATEAU_ROUNDS;
}

/* --- Aggregation. */

TT_INLINE u32 tt_aggregation_extra(const struct tt_aggregation *a) { return tt_max(a->slots[0], a->slots[1]); }

TT_INLINE void tt_aggregation_restart(struct tt_aggregation *a, u64 now_us)
{
	a->epoch_us = now_us;
	a->epoch_acked = 0;
}

TT_INLINE void tt_aggregation_update(struct tt_aggregation *a, const struct tt_bbr_ack *ack, u64 bw, u32 window,
				     bool round_started)
{
	/* Of a second's 10^6 microseconds and of the packet's bytes in one division. */
	u64 expected = bw * tt_min(ack->now_us - a->epoch_us, TT_RTT_MAX_US) / (1000000ULL * ack->mss_bytes);
	u32 extra, now = ack->acked - ack->acked_before;

	a->epoch_acked += ack->acked_before;
	if (round_started && ++a->slot_age >= TT_AGGREGATION_SLOT_ROUNDS) {
		a->slot_age = 0;
		a->current = !a->current;
		a->slots[a->current & 1] = 0;
	}
	/* Slower than expected: whatever was aggregated has been delivered. */
	if (a->epoch_acked <= expected || a->epoch_acked + now >= TT_AGGREGATION_PACKETS_MAX) {
		tt_aggregation_restart(a, ack->now_us);
		expected = 0;
	}
	a->epoch_acked += now;
	extra = tt_min(a->epoch_acked - (u32)expected, window);
	if (extra > a->slots[a->current & 1])
		a->slots[a->current & 1] = extra;
}

#endif
