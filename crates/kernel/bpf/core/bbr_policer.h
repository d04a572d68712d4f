/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Token-bucket policers: much loss at a steady delivery rate (`bbr_lt_bw_sampling`);
 * crates/cc/src/bbr/v1/policer.rs. */
#ifndef TRIMTAB_BBR_POLICER_H
#define TRIMTAB_BBR_POLICER_H

#include "bbr_model.h"

/* The shortest and the longest sampling interval (`bbr_lt_intvl_min_rtts`). */
#define TT_POLICER_ROUNDS_MIN 4
#define TT_POLICER_ROUNDS_MAX 16
/* Lost against delivered, in 1/256, from which an interval is lossy (`bbr_lt_loss_thresh`): 20%. */
#define TT_POLICER_LOSS 50
/* Two rates are the same within an eighth (`bbr_lt_bw_ratio`), or within 4 kbit/s (`bbr_lt_bw_diff`). */
#define TT_POLICER_TOLERANCE 8
#define TT_POLICER_DIFFERENCE 500
/* How long the policed rate is used before the path is probed again (`bbr_lt_bw_max_rtts`). */
#define TT_POLICER_USE_ROUNDS 48
/* A shorter interval says nothing. */
#define TT_POLICER_LEAST_US 1000

/* What one acknowledgement, or timeout, shows. */
struct tt_policed {
	u64 now_us;
	u32 delivered;
	u32 lost;
	u32 mss_bytes;
	bool losses;
	bool app_limited;
	bool round_started;
	bool in_probe_bw;
};

/* Forgets everything. */
TT_INLINE void tt_policer_reset(struct tt_policer *p)
{
	p->state = TT_POLICER_WAITING;
	p->rounds = 0;
	p->rate_bytes_per_s = 0;
}

/* The policed rate, while it is used; else 0. */
TT_INLINE u64 tt_policer_rate(const struct tt_policer *p)
{
	return p->state == TT_POLICER_USING ? p->rate_bytes_per_s : 0;
}

TT_INLINE void tt_policer_begin(struct tt_policer *p, const struct tt_policed *seen, u64 previous)
{
	p->state = TT_POLICER_SAMPLING;
	p->rate_bytes_per_s = previous;
	p->rounds = 0;
	p->start_us = seen->now_us;
	p->start_delivered = seen->delivered;
	p->start_lost = seen->lost;
}

TT_INLINE bool tt_policer_is_same(u64 a, u64 b)
{
	u64 difference = a > b ? a - b : b - a;

	return difference <= b / TT_POLICER_TOLERANCE || difference <= TT_POLICER_DIFFERENCE;
}

TT_INLINE void tt_policer_end_interval(struct tt_policer *p, const struct tt_policed *seen)
{
	u64 lost = seen->lost - p->start_lost, delivered = seen->delivered - p->start_delivered;
	u64 elapsed_us = seen->now_us - p->start_us, previous = p->rate_bytes_per_s, rate;

	if (!delivered || lost * 256 < delivered * TT_POLICER_LOSS || elapsed_us < TT_POLICER_LEAST_US)
		return; /* the interval goes on */
	rate = tt_rate_of(delivered, seen->mss_bytes, elapsed_us);
	if (!previous || !tt_policer_is_same(rate, previous)) {
		tt_policer_begin(p, seen, rate);
		return;
	}
	p->state = TT_POLICER_USING;
	p->rate_bytes_per_s = (rate + previous) / 2;
	p->rounds = 0;
}

/* Whether the policed rate has just been given up, so that the gain cycle starts anew. */
TT_CHECKED_ONCE int tt_policer_update(struct tt_policer *p, const struct tt_policed *seen)
{
	if (!p || !seen)
		return false;
	if (p->state == TT_POLICER_USING) {
		p->rounds += seen->in_probe_bw && seen->round_started;
		if (p->rounds < TT_POLICER_USE_ROUNDS)
			return false;
		tt_policer_reset(p);
		return true;
	}
	if (p->state == TT_POLICER_WAITING) {
		if (!seen->losses)
			return false;
		/* The first loss: from here on the policer's tokens are spent. */
		tt_policer_begin(p, seen, 0);
	}
	if (seen->app_limited) {
		tt_policer_reset(p); /* less than the policer would let through */
		return false;
	}
	p->rounds += seen->round_started;
	if (p->rounds > TT_POLICER_ROUNDS_MAX)
		tt_policer_reset(p);
	else if (p->rounds >= TT_POLICER_ROUNDS_MIN && seen->losses)
		tt_policer_end_interval(p, seen);
	return false;
}

#endif
