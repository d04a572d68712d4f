/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * CUBIC as Linux has it, in integers: crates/cc/src/cubic/linux.rs, which says why each thing is as
 * it is. It grows in whole packets (RFC 9438 with the constants of Linux), and slow start ends by
 * HyStart.
 *
 * Pure functions over struct tt_cubic, as in copa.h. The window and its threshold are the socket's,
 * so they are arguments and results. Bounds: windows below TT_CUBIC_WINDOW_MAX packets (2^30 bytes
 * in packets of 536), knobs within their ranges.
 */
#ifndef TRIMTAB_CUBIC_H
#define TRIMTAB_CUBIC_H

#include "../layout.h"
#include "hystart.h"

/* A tick of the clock by which the curve is read: that of a kernel with HZ 250, which most distributions build. */
#define TT_CUBIC_TICK_US 4000
#define TT_CUBIC_HZ 250
/* The curve's own clock has 2^10 steps per second. */
#define TT_CUBIC_STEP_SHIFT 10
/* The curve is read again after so many ticks although the window stands. */
#define TT_CUBIC_REFRESH_TICKS (TT_CUBIC_HZ / 32)
/* Without a loss so far, one packet per so many acknowledged at least: 5% per round trip. */
#define TT_CUBIC_COUNT_MAX_BEFORE_LOSS 20
/* The window grows by half of what is acknowledged at most. */
#define TT_CUBIC_COUNT_MIN 2
/* For so long after the start of an epoch a round-trip time is no candidate for the least. */
#define TT_CUBIC_SETTLE_TICKS TT_CUBIC_HZ
/* Up to so many steps from the plateau the cube fits whole; beyond, ten of its bits are given up. */
#define TT_CUBIC_EXACT_STEPS (1ULL << 16)
/* So many steps from the plateau, four minutes, the curve is beyond every window. */
#define TT_CUBIC_STEPS_MAX (1ULL << 18)
/* Every window is below this, in packets. */
#define TT_CUBIC_WINDOW_MAX (1U << 21)
/* A new connection's (RFC 6928): where the kernel does not tell the window before a cut. */
#define TT_CUBIC_WINDOW_UNKNOWN 10
/* The kernel's: there was no loss yet. */
#define TT_INFINITE_THRESHOLD 0x7fffffffU
/* Bits of the cube root below: it is of less than 2^63. */
#define TT_CUBIC_ROOT_BITS 21

struct tt_cubic {
	u64 last_tick;  /* when `count` was last worked out */
	u64 epoch_tick; /* when the epoch began */
	u32 count;      /* acknowledged packets per packet of growth */
	u32 credit;     /* acknowledged packets not yet used for growth */
	u32 last_max;   /* the window at the last loss, after fast convergence; 0: none */
	u32 last_window; /* when `count` was last worked out */
	u32 origin;     /* the plateau, in packets */
	u32 k;          /* steps of the curve's clock from the start of the epoch to the plateau */
	u32 delay_min_us; /* 0: none yet */
	u32 reno_credit;
	u32 reno_window;
	bool has_epoch;
	u8 rest[3];
	struct tt_hystart hystart;
};

/* The knobs in one word, so that they and the state fit the room that the kernel has for them (`icsk_ca_priv`). */
struct tt_cubic_knobs {
	u16 beta; /* in 1/1024, as the next */
	u16 c;
	/* What follows from them: eighths of a packet acknowledged per packet of window, as Reno grows with this decrease. */
	u16 reno_eighths; /* never 0 */
	u8 fast_convergence;
	u8 hystart;
};

/* The knobs have changed, or are set first: TT_CUBIC_KNOBS, each within its range. */
TT_INLINE struct tt_cubic_knobs tt_cubic_knobs_from(const u32 *knobs)
{
	u32 beta = tt_min(knobs[TT_CUBIC_BETA], TT_SCALE_Q10 - 1);
	struct tt_cubic_knobs k = {
		.beta = knobs[TT_CUBIC_BETA],
		.c = tt_max(knobs[TT_CUBIC_C], 1),
		.reno_eighths = 8 * (TT_SCALE_Q10 + beta) / 3 / (TT_SCALE_Q10 - beta),
		.fast_convergence = knobs[TT_CUBIC_FAST_CONVERGENCE],
		.hystart = knobs[TT_CUBIC_HYSTART],
	};

	return k;
}

/* A new connection, or one after a timeout, of which nothing is known either. */
TT_INLINE void tt_cubic_reset(struct tt_cubic *c)
{
	__builtin_memset(c, 0, sizeof(*c));
}

/* A reduction from a window of so many packets: gives the new threshold, in packets. */
TT_INLINE u32 tt_cubic_on_loss(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window)
{
	u32 beta = k->beta;
	bool shrinks = k->fast_convergence && window < c->last_max;

	c->has_epoch = false;
	c->credit = 0;
	c->last_max = shrinks ? (u64)window * (TT_SCALE_Q10 + beta) / (2 * TT_SCALE_Q10) : window;
	return tt_max((u64)window * beta / TT_SCALE_Q10, 2);
}

/*
 * Whether a window or a threshold is none that this algorithm gave. Linux 6.18 was seen to leave
 * out every hook for one acknowledgement, of those that wait while the sending thread holds the
 * socket; `ssthresh` then "returned" what lay on the stack, here two billion packets
 * (docs/reference/real-kernel.md).
 */
TT_INLINE bool tt_cubic_is_astray(u32 packets)
{
	return packets >= TT_CUBIC_WINDOW_MAX && packets != TT_INFINITE_THRESHOLD;
}

/* The window to go on with after that, from the one before the cut: gives the threshold, too. */
TT_INLINE u32 tt_cubic_put_right(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 before)
{
	return tt_cubic_on_loss(c, k, before && before < TT_CUBIC_WINDOW_MAX ? before : TT_CUBIC_WINDOW_UNKNOWN);
}

/* A packet leaves while nothing else is in flight: the pause since the last one moves the epoch. */
TT_INLINE void tt_cubic_on_first_sent(struct tt_cubic *c, u64 now_us, u64 last_sent_us)
{
	u64 now_tick = now_us / TT_CUBIC_TICK_US;

	if (c->has_epoch)
		c->epoch_tick = tt_min(c->epoch_tick + tt_less(now_tick, last_sent_us / TT_CUBIC_TICK_US), now_tick);
}

/*
 * A round-trip time was measured. In slow start, whether that is over by it; the caller then lowers
 * the threshold to the window.
 */
TT_INLINE bool tt_cubic_on_rtt(struct tt_cubic *c, const struct tt_cubic_knobs *k, const struct tt_round *r,
			       u32 threshold)
{
	if (!r->rtt_us)
		return false;
	if (r->rtt_us < c->delay_min_us || !c->delay_min_us) {
		u64 now_tick = r->now_us / TT_CUBIC_TICK_US;

		if (!c->has_epoch || tt_less(now_tick, c->epoch_tick) >= TT_CUBIC_SETTLE_TICKS)
			c->delay_min_us = r->rtt_us;
	}
	return r->window < threshold && tt_hystart_leaves(&c->hystart, r, k->hystart);
}

/* --- The curve. */

/*
 * The whole part of the cube root of a number below 2^63, bit by bit. Without a branch: the
 * kernel's verifier would follow each of 2^21 ways.
 */
TT_INLINE u32 tt_cubic_root(u64 of)
{
	u64 root = 0;

	for (int bit = TT_CUBIC_ROOT_BITS - 1; bit >= 0; bit--) {
		u64 more = root | 1ULL << bit;
		u64 is_less = (of - more * more * more) >> 63; /* both are below 2^63 */

		root |= (1 - is_less) << bit;
	}
	return root;
}

/* C * offset^3, in packets. */
TT_INLINE u64 tt_cubic_rise(const struct tt_cubic_knobs *k, u64 offset)
{
	u64 steps = tt_min(offset, TT_CUBIC_STEPS_MAX);
	u64 cube = steps * steps * steps; /* below 2^54 */

	if (steps < TT_CUBIC_EXACT_STEPS)
		return cube * k->c >> (10 + 3 * TT_CUBIC_STEP_SHIFT);
	return (cube >> 10) * k->c >> (3 * TT_CUBIC_STEP_SHIFT);
}

TT_INLINE void tt_cubic_begin_epoch(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window, u32 acked,
				    u64 now_tick)
{
	u64 below = tt_less(c->last_max, window);

	c->has_epoch = true;
	c->epoch_tick = now_tick;
	c->reno_credit = acked;
	c->reno_window = window;
	/* K = 2^10 * cbrt(below / C), and C is in 1/1024. */
	c->k = tt_cubic_root((below << (10 + 3 * TT_CUBIC_STEP_SHIFT)) / k->c);
	c->origin = tt_max(c->last_max, window);
}

TT_INLINE void tt_cubic_read_curve(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window, u32 acked,
				   u64 now_tick)
{
	u64 ahead, step, target;

	if (!c->has_epoch)
		tt_cubic_begin_epoch(c, k, window, acked, now_tick);
	ahead = (c->delay_min_us + TT_CUBIC_TICK_US - 1) / TT_CUBIC_TICK_US;
	step = ((tt_less(now_tick, c->epoch_tick) + ahead) << TT_CUBIC_STEP_SHIFT) / TT_CUBIC_HZ;
	if (step < c->k)
		target = tt_less(c->origin, tt_cubic_rise(k, c->k - step));
	else
		target = c->origin + tt_cubic_rise(k, step - c->k);
	c->count = target > window ? window / (target - window) : 100 * window;
	if (!c->last_max)
		c->count = tt_min(c->count, TT_CUBIC_COUNT_MAX_BEFORE_LOSS);
}

/* No slower than Reno with CUBIC's decrease would be. */
TT_INLINE void tt_cubic_be_friendly(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window)
{
	u32 per_packet = ((u64)window * k->reno_eighths) >> 3;

	if (c->reno_credit > per_packet) {
		u32 packets = (c->reno_credit - 1) / tt_max(per_packet, 1);

		c->reno_credit -= packets * per_packet;
		c->reno_window += packets;
	}
	if (c->reno_window > window)
		c->count = tt_min(c->count, window / (c->reno_window - window));
}

TT_INLINE void tt_cubic_work_out_count(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window, u32 acked,
				       u64 now_tick)
{
	u64 since = tt_less(now_tick, c->last_tick);
	bool fresh = c->has_epoch && c->count;

	c->reno_credit += acked;
	if (fresh && c->last_window == window && since <= TT_CUBIC_REFRESH_TICKS)
		return;
	if (!fresh || since) {
		c->last_window = window;
		c->last_tick = now_tick;
		tt_cubic_read_curve(c, k, window, acked, now_tick);
	}
	tt_cubic_be_friendly(c, k, window);
	c->count = tt_max(c->count, TT_CUBIC_COUNT_MIN);
}

/* Grows the window in congestion avoidance, when it limits the sender: gives the new one, in packets. */
TT_INLINE u32 tt_cubic_grow(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window, u32 acked, u64 now_us)
{
	tt_cubic_work_out_count(c, k, window, acked, now_us / TT_CUBIC_TICK_US);
	/* Credit that a smaller count now makes sufficient is good for one packet. */
	if (c->credit >= c->count) {
		c->credit = 0;
		window++;
	}
	c->credit += acked;
	if (c->credit >= c->count) {
		u32 packets = c->credit / c->count;

		c->credit -= packets * c->count;
		window += packets;
	}
	return window;
}

/* What an acknowledgement does to the window: slow start up to the threshold, then growth. */
TT_INLINE u32 tt_cubic_on_ack(struct tt_cubic *c, const struct tt_cubic_knobs *k, u32 window, u32 threshold, u32 acked,
			      u64 now_us)
{
	if (window < threshold) {
		u32 used = tt_min(acked, threshold - window);

		window += used;
		acked -= used;
	}
	return acked ? tt_cubic_grow(c, k, window, acked, now_us) : window;
}

#endif
