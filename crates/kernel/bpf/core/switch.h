/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * One algorithm takes over a running connection from another: crates/cc/src/migrate,
 * copa/migrate.rs and cubic/migrate.rs in C. They give the reasons.
 *
 * The window that goes over is the socket's: CUBIC's is that, and Copa writes its own there. BBR's
 * is without its gain. So a hand-over is the window and what the connection observed; the new
 * algorithm's state is all zero but its knobs.
 */
#ifndef TRIMTAB_SWITCH_H
#define TRIMTAB_SWITCH_H

#include "bbr.h"
#include "bbr3.h"
#include "copa.h"
#include "cubic.h"
#include "muses.h"
#include "path.h"
#include "vivace.h"

/* A minimum round-trip time that BBR and BBRv3 take from each other without measuring again
 * (`migrate::FRESH`). */
#define TT_FRESH_US 5000000

/* trimtab_cc::HandOver. */
struct tt_hand_over {
	u64 now_us;
	u64 window_bytes;
	u64 srtt_us;
	u64 bandwidth_bytes_per_s;
	u64 recent_bytes_per_s; /* of the last five to ten round trips */
	u64 delivered; /* in bytes or in packets, as `inflight` and as in struct tt_ack */
	u64 inflight;
	u32 min_rtt_us; /* 0: no round trip was measured, so there is nothing to hand over */
	u32 min_rtt_at_us; /* modulo 2^32, as in the filters */
	bool saw_empty_queue; /* the least round-trip time is the path's, without the old algorithm's queue */
	u32 loss_q16; /* the share of the last two round trips' packets that was lost */
	bool starved; /* the old algorithm was held back by losses that came without a queue */
	bool modelled; /* it keeps the queue small by a model of the path */
};

/* Adds what the path says. Where there was no delivery rate, the window's stands for it. */
TT_INLINE void tt_hand_over_path(struct tt_hand_over *over, const struct tt_path *path)
{
	u64 instead = over->window_bytes * 1000000 / tt_max(over->srtt_us, 1);
	u64 bandwidth = tt_path_bandwidth(path), recent = tt_path_recent_bandwidth(path);

	over->bandwidth_bytes_per_s = tt_max(bandwidth ? bandwidth : instead, 1);
	over->recent_bytes_per_s = tt_max(recent ? recent : instead, 1);
	over->saw_empty_queue = tt_path_saw_empty_queue(path);
	over->min_rtt_us = tt_filter_get(&path->rtt_min);
	over->min_rtt_at_us = path->rtt_min.oldest.first_us;
	over->loss_q16 = tt_path_loss_q16(path);
	over->starved = path->lost_without_queue;
}

/* Whether BBR and BBRv3 need not empty a queue first (`HandOver::queue_is_known_small`). */
TT_INLINE bool tt_queue_is_known_small(const struct tt_hand_over *from)
{
	return from->modelled && (u32)from->now_us - from->min_rtt_at_us < TT_FRESH_US;
}

/* --- When. */

/* Past slow start, and not holding its window down to see the empty queue. */
TT_INLINE bool tt_copa_is_converged(const struct tt_copa *c)
{
	return !c->slow_start && !c->drain.until_us;
}

TT_INLINE bool tt_cubic_is_converged(u32 window, u32 threshold, bool recovering)
{
	return window >= threshold && !recovering;
}

TT_INLINE bool tt_bbr_is_converged(const struct tt_bbr *b)
{
	return b->mode == TT_BBR_PROBE_BW && b->recovery == TT_BBR_OPEN && !b->conserve;
}

/* Refilling and probing are over within a few rounds. */
TT_INLINE bool tt_bbr3_is_converged(const struct tt_bbr3 *b)
{
	return (b->mode == TT_BBR3_CRUISE || b->mode == TT_BBR3_DOWN) && !b->in_recovery;
}

TT_INLINE bool tt_vivace_is_converged(const struct tt_vivace *v)
{
	return !v->starting && v->rate_q8;
}

/* A full switch waits until the old algorithm has converged, and until no loss is being repaired. */
TT_INLINE bool tt_switch_is_due(u32 how, const struct tt_path *path, bool converged, bool recovering)
{
	return how == TT_HOW_PART || (converged && !recovering && tt_filter_get(&path->rtt_min));
}

/*
 * Where nothing ever converged there is nothing to hand over, and waiting for it may take for ever: the new algorithm
 * starts from the beginning, at a moment when nothing is in flight.
 */
TT_INLINE bool tt_switch_starts_over(const struct tt_path *path, bool converged, bool has_delivered)
{
	return !path->converged && !converged && has_delivered;
}

/*
 * Another algorithm has taken over: the losses were the old one's, and what searches for the path's
 * capacity again knows as little as a new connection.
 */
TT_INLINE void tt_path_taken_over(struct tt_path *path, u32 how)
{
	if (how == TT_HOW_FULL && path->lost_without_queue)
		path->converged = false;
	path->lost_without_queue = false;
}

/* --- What: the new algorithm is set up by its init() with the window handed over. */

/*
 * The packets that BBR hands over: it allows twice the path in flight, so these are what is in
 * flight, or would be at its bandwidth (OperatingPoint::of_model).
 */
TT_INLINE u32 tt_bbr_operating_window(const struct tt_bbr *b, u32 srtt_us, u32 inflight)
{
	u64 path = tt_rate_times_us(tt_bbr_bw(b), srtt_us) / tt_max(b->mss_bytes, 1);

	return tt_max(tt_min(b->window, tt_max(inflight, path)), 1);
}

/* Those of BBRv3, likewise. */
TT_INLINE u32 tt_bbr3_operating_window(const struct tt_bbr3 *b, u32 srtt_us, u32 inflight)
{
	u64 path = tt_rate_times_us(b->bw_bytes_per_s, srtt_us);
	u64 used = tt_max(tt_bbr3_bytes(b, inflight), path);

	return tt_max(tt_min(b->window_bytes, used) / tt_max(b->mss_bytes, 1), 1);
}

/* The packets of a round trip: Vivace's own window is a bound only. */
TT_INLINE u32 tt_vivace_operating_window(const struct tt_vivace *v)
{
	return tt_max(tt_vivace_bytes(v, v->rate_q8) / v->mss_bytes, 1);
}

TT_INLINE void tt_copa_take_over(struct tt_copa *c, const struct tt_hand_over *from)
{
	c->slow_start = from->starved;
	c->started = true;
	c->observed_us = from->now_us;
	if (!from->starved)
		c->descent_bytes =
			tt_max(tt_min(from->bandwidth_bytes_per_s, TT_BANDWIDTH_MAX) * from->min_rtt_us / 1000000, 1);
	tt_filter_update(&c->rtt_min, &c->rtt_min_ring, from->min_rtt_at_us, c->knobs[TT_COPA_MIN_RTT_WINDOW],
			 from->min_rtt_us);
	/* The smoothed round-trip time stands in, for pacing, until there are samples. */
	tt_filter_update(&c->rtt_standing, &c->rtt_standing_ring, from->now_us, 0,
			 tt_min(tt_max(from->srtt_us, TT_RTT_MIN_US), TT_RTT_MAX_US));
	c->round_end = from->delivered + from->inflight;
	c->round_start_us = from->now_us;
}

/* The window alone: slow start from there on. */
TT_INLINE void tt_copa_inherit(struct tt_copa *c)
{
	c->started = true;
}

/*
 * ProbeRTT, in which the old algorithm's queue drains, or Drain where the path's delay is known; then ProbeBW with at
 * most twice what the path holds. The least round-trip time is not marked as expired: the first sample would replace
 * it, and the queue is still in that. After an algorithm that never filled the path it is Startup, and there is no
 * queue.
 */
TT_INLINE void tt_bbr_take_over(struct tt_bbr *b, const struct tt_hand_over *from)
{
	u64 bandwidth = tt_min(from->recent_bytes_per_s, TT_BANDWIDTH_MAX);
	u32 window = from->window_bytes / tt_max(b->mss_bytes, 1);

	tt_rounds_max_reset(&b->max_bw, 0, bandwidth);
	b->min_rtt_us = from->min_rtt_us;
	b->min_rtt_at_us = from->now_us;
	b->round_end = from->delivered;
	b->seen_rtt = true;
	b->searches = from->starved;
	if (from->starved) {
		b->window = tt_max(window, 1);
		b->pacing_bytes_per_s = tt_bbr_paced(b, tt_bbr_bw(b), b->tuning.knobs[TT_BBR_STARTUP_GAIN]);
		return;
	}
	b->full_bw_bytes_per_s = bandwidth;
	b->plateau = TT_BBR_PLATEAU_ROUNDS;
	b->full_pipe = true;
	b->prior_window = tt_min(window, tt_bbr_bdp(b, bandwidth, b->tuning.knobs[TT_BBR_CWND_GAIN]));
	if (tt_queue_is_known_small(from)) {
		b->window = tt_max(b->prior_window, 1);
		tt_bbr_enter_probe_bw(b, from->now_us);
		tt_bbr_pace(b, TT_GAIN_UNIT);
		return;
	}
	if (from->saw_empty_queue) {
		/* The minimum keeps its age, so that ProbeRTT comes when it is due. */
		b->min_rtt_at_us = from->now_us - (u32)((u32)from->now_us - from->min_rtt_at_us);
		b->mode = TT_BBR_DRAIN;
		b->window = tt_max(b->prior_window, 1);
		tt_bbr_pace(b, b->tuning.drain_gain);
		return;
	}
	tt_bbr_enter_probe_rtt(b);
	b->window = tt_max(tt_min(window, b->tuning.knobs[TT_BBR_PROBE_RTT_CWND]), 1);
	tt_bbr_pace(b, TT_GAIN_UNIT);
}

/*
 * As BBR, but with the bandwidth of 10 s: its filter spans two cycles, and it probes for more every
 * few seconds only. A path that was losing more than is tolerated holds no more than was in flight.
 */
TT_INLINE void tt_bbr3_take_over(struct tt_bbr3 *b, const struct tt_hand_over *from)
{
	u64 bandwidth = tt_min(from->bandwidth_bytes_per_s, TT_BANDWIDTH_MAX);
	u64 window = tt_max(from->window_bytes, b->mss_bytes);
	bool lossy = from->loss_q16 > tt_bbr3_knob(b, TT_BBR3_LOSS_THRESH) && !from->starved;

	tt_bbr3_init(b, from->srtt_us);
	b->inflight_longterm = lossy ? from->window_bytes : TT_BBR3_NONE;
	b->max_bw[1] = b->bw_bytes_per_s = bandwidth;
	b->min_rtt.value_us = from->min_rtt_us;
	b->min_rtt.at_us = b->min_rtt.recent_at_us = from->now_us;
	b->min_rtt.started = true;
	b->signals.round_end = b->delivered - (1U << 30); /* the first acknowledgement begins a loss round */
	b->seen_rtt = true;
	b->searches = from->starved;
	b->window_bytes = window;
	if (from->starved) {
		b->pacing_bytes_per_s = tt_bbr3_startup_rate(b, bandwidth);
		return;
	}
	b->prior_window_bytes = from->window_bytes;
	b->full_bw_bytes_per_s = bandwidth;
	tt_bbr3_full_declare(b);
	if (!tt_queue_is_known_small(from) && from->saw_empty_queue) {
		b->mode = TT_BBR3_DRAIN;
		tt_bbr3_pace(b, tt_bbr3_knob(b, TT_BBR3_DRAIN_GAIN));
		return;
	}
	if (tt_queue_is_known_small(from)) {
		tt_bbr3_start_down(b, from->now_us);
		b->mode = TT_BBR3_CRUISE;
	} else {
		tt_bbr3_enter_probe_rtt(b);
		b->window_bytes = tt_max(tt_min(from->window_bytes, tt_bbr3_probe_rtt_window(b)), b->mss_bytes);
	}
	tt_bbr3_pace(b, TT_GAIN_UNIT);
}

/* Past slow start, at the rate of what ran before; its queue is no reason to brake at once. */
TT_INLINE void tt_vivace_take_over(struct tt_vivace *v, const struct tt_hand_over *from)
{
	u64 rate = tt_min(from->window_bytes, 1ULL << 40) * 1000000 / tt_max(from->srtt_us, 1);

	v->srtt_us = from->srtt_us;
	tt_filter_update(&v->rtt_min, &v->rtt_min_ring, from->min_rtt_at_us, TT_VIVACE_RTT_WINDOW_US, from->min_rtt_us);
	v->calm_us = from->now_us + 2 * from->srtt_us;
	v->starting = from->starved;
	v->start_packets = from->window_bytes / v->mss_bytes;
	tt_vivace_forget(v, tt_min(tt_min(rate, from->bandwidth_bytes_per_s), TT_BANDWIDTH_MAX) << TT_RATE_SHIFT);
}

/* The window alone: slow start from there on. */
TT_INLINE void tt_vivace_inherit(struct tt_vivace *v, u64 window_bytes, u64 srtt_us)
{
	v->srtt_us = srtt_us;
	v->start_packets = window_bytes / v->mss_bytes;
	if (srtt_us)
		tt_vivace_go(v, (tt_min(window_bytes, 1ULL << 40) * 1000000 / srtt_us) << TT_RATE_SHIFT);
}

/* The window, which is its threshold from now on, is the plateau; HyStart rests until a timeout. */
TT_INLINE void tt_cubic_take_over(struct tt_cubic *c, u32 window, const struct tt_hand_over *from)
{
	tt_cubic_reset(c);
	c->last_max = window;
	c->delay_min_us = from->min_rtt_us;
	c->hystart.found = true;
}

#endif
