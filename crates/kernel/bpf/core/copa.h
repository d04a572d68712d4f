/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Copa in integers: crates/cc/src/copa/mod.rs, which says why each thing is as it is, step by step.
 *
 * Pure functions over struct tt_copa: no clock, no kernel. The kernel's programs and the differential test on the host
 * compile the same text. Bounds that keep products within 64 bits: windows below 2^30 bytes, round-trip times below
 * 2^26 us, packets below 2^16 bytes, 1/delta below 2^9 packets (2^25 in Q16), velocity below 2^16 (2^20 in Q4).
 */
#ifndef TRIMTAB_COPA_H
#define TRIMTAB_COPA_H

#include "copa_rival.h"
#include "path.h"

/* The mode detector looks at the greatest round-trip time of so many round trips (§2.4). */
#define TT_RTT_MAX_ROUNDS 4
/* Loss is heavy when a tenth of the packets of two rounds was lost, and so many packets at least. */
#define TT_HEAVY_LOSS_INVERSE 10
#define TT_HEAVY_LOSS_PACKETS 3
/*
 * A drain holds the window at 3/4 of what the path holds, or the slack below it where the queue is small; at most for
 * the queueing delay and 2 minimum round-trip times.
 */
#define TT_DRAIN_SHARE_NUM 3
#define TT_DRAIN_SHARE_DEN 4
#define TT_DRAIN_ROUNDS 2
/* Values of the knob `competitive`: it yields, competes by 1/delta, or keeps the window of CUBIC. */
#define TT_RIVALRY_YIELD 0
#define TT_RIVALRY_CUBIC 2
/* While it keeps CUBIC's window, the minimum round-trip time counts so many times as long. */
#define TT_HIDDEN 8
/* While it keeps CUBIC's window, this share of losses, 1/50, is for those of the link. */
#define TT_TOLERATED_INVERSE 50
/* Packets that queue on average, times delta: 5/4 (§3). */
#define TT_MEAN_QUEUE_NUM 5
#define TT_MEAN_QUEUE_DEN 4

TT_INLINE u64 tt_copa_window_min_q16(const struct tt_copa *c)
{
	return (u64)tt_max(c->window_min_bytes, c->mss_bytes) << TT_WINDOW_SHIFT;
}

TT_INLINE void tt_copa_set_window(struct tt_copa *c, u64 window_q16)
{
	u64 most_bytes = tt_min(tt_ceiling_bytes(&c->ceiling), TT_WINDOW_MAX_BYTES);

	if (c->rival.window_bytes)
		most_bytes = tt_min(most_bytes, c->rival.window_bytes);
	c->window_q16 = tt_max(tt_min(window_q16, most_bytes << TT_WINDOW_SHIFT), tt_copa_window_min_q16(c));
}

TT_INLINE u64 tt_copa_initial_window_q16(const struct tt_copa *c)
{
	/* Q10 packets times bytes; Q16 in the end. */
	u64 window_q16 = ((u64)c->knobs[TT_COPA_INITIAL_WINDOW] * c->mss_bytes) << (TT_WINDOW_SHIFT - 10);

	return tt_max(window_q16, tt_copa_window_min_q16(c));
}

/* A new connection. The knobs are set already, everything else is zero. */
TT_INLINE void tt_copa_init(struct tt_copa *c, u64 now_us, u32 mss_bytes, u32 window_min_bytes, u64 window_bytes)
{
	c->mss_bytes = tt_max(mss_bytes, 1);
	c->window_min_bytes = window_min_bytes;
	tt_copa_set_window(c, window_bytes << TT_WINDOW_SHIFT);
	c->slow_start = true;
	c->rtt_max.greatest = true;
	tt_velocity_reset(&c->velocity, c->window_q16);
	tt_mode_reset(&c->mode, now_us);
}

/* Whether it may keep the window of CUBIC. */
TT_INLINE bool tt_copa_keeps_rival(const struct tt_copa *c)
{
	return c->knobs[TT_COPA_COMPETITIVE] == TT_RIVALRY_CUBIC;
}

/* The 1/delta in force, in packets: what is set, or more in competitive mode. */
TT_INLINE u32 tt_copa_inverse_q16(const struct tt_copa *c)
{
	if (tt_copa_keeps_rival(c))
		return c->knobs[TT_COPA_DELTA];
	return tt_max(c->knobs[TT_COPA_DELTA], c->mode.inverse_q16);
}

/* --- Next to flows that fill the queue. */

/* Whether it keeps the window of CUBIC now. */
TT_INLINE bool tt_copa_competes_as_cubic(const struct tt_copa *c)
{
	return tt_copa_keeps_rival(c) && c->mode.inverse_q16;
}

/* Moves the window of CUBIC, and the own one with it while others fill the queue. */
TT_CHECKED_ONCE int tt_copa_follow_rival(struct tt_copa *c, const struct tt_ack *ack)
{
	bool held, competes;
	struct tt_rival *r;

	if (!c || !ack)
		return 0;
	r = &c->rival;
	held = c->drain.until_us || c->episode.recovering;
	competes = tt_copa_competes_as_cubic(c);
	if (competes)
		tt_rival_need(c, ack->now_us);
	if (!r->window_bytes)
		return 0;
	if (ack->cwnd_limited && !held && (c->window_q16 >> TT_WINDOW_SHIFT) + c->mss_bytes >= r->window_bytes)
		tt_rival_grow(c, ack->acked_bytes, ack->now_us);
	if (competes) {
		tt_copa_set_window(c, r->window_bytes << TT_WINDOW_SHIFT);
	} else if (tt_rival_is_past(c, ack)) {
		tt_rival_forget(c);
	}
	return 0;
}

/* The bytes of 1/delta packets, in Q4 (below 2^45). */
TT_INLINE u64 tt_copa_target_queue_q4(const struct tt_copa *c)
{
	return ((u64)c->mss_bytes * tt_copa_inverse_q16(c)) >> 12;
}

/* --- What was lost lately. */

TT_INLINE u64 tt_copa_lost(const struct tt_copa *c)
{
	return c->tally[0].lost_bytes + c->tally[1].lost_bytes;
}

TT_INLINE u64 tt_copa_seen(const struct tt_copa *c)
{
	return tt_copa_lost(c) + c->tally[0].acked_bytes + c->tally[1].acked_bytes;
}

TT_INLINE bool tt_copa_loses_heavily(const struct tt_copa *c)
{
	u64 lost = tt_copa_lost(c);

	return lost >= TT_HEAVY_LOSS_PACKETS * (u64)c->mss_bytes && lost * TT_HEAVY_LOSS_INVERSE > tt_copa_seen(c);
}

/* Whether losses keep the window from growing. */
TT_INLINE bool tt_copa_is_held(const struct tt_copa *c)
{
	bool answers = c->knobs[TT_COPA_LOSS_BETA] < TT_SCALE_Q16;

	return tt_copa_loses_heavily(c) || (answers && c->episode.recovering);
}

/* --- Slow start. */

TT_INLINE void tt_copa_leave_slow_start(struct tt_copa *c, u64 now_us)
{
	c->slow_start = false;
	tt_velocity_reset(&c->velocity, c->window_q16);
	tt_mode_assume_empty(&c->mode, now_us);
}

TT_INLINE void tt_copa_grow_exponentially(struct tt_copa *c, const struct tt_ack *ack)
{
	if (ack->cwnd_limited)
		tt_copa_set_window(c, c->window_q16 + ack->acked_bytes * c->knobs[TT_COPA_STARTUP_GAIN]);
}

/* --- Filters, mode detector and drains. */

/* The round-trip time with an empty queue: the minimum, and what a drain showed above it; 0 before any sample. */
TT_INLINE u64 tt_copa_base_us(const struct tt_copa *c)
{
	u64 rtt_min_us = tt_filter_get(&c->rtt_min);

	return rtt_min_us ? rtt_min_us + c->residue_us : 0;
}

/* Whether so much queueing delay allows at most twice the rate that is sent (§2.1). */
TT_INLINE bool tt_copa_is_held_by(const struct tt_copa *c, u64 queueing_us)
{
	u64 standing_us = tt_filter_get(&c->rtt_standing);
	u64 load_q4 = (c->window_q16 >> (TT_WINDOW_SHIFT - 4)) * queueing_us;

	return standing_us && 2 * load_q4 >= tt_copa_target_queue_q4(c) * standing_us;
}

/*
 * A drain ended. What it showed is the path's delay, if it is at most a slack above the minimum, and holds the rate
 * down.
 */
TT_INLINE void tt_copa_take_residue(struct tt_copa *c)
{
	u64 residue_us = tt_less(c->drain.rtt_min_us, tt_filter_get(&c->rtt_min));

	if (!c->drain.rtt_min_us || residue_us > TT_EMPTY_SLACK_US || !tt_copa_is_held_by(c, residue_us))
		return;
	c->residue_us = residue_us;
}

TT_INLINE void tt_copa_end_drain(struct tt_copa *c, u64 now_us, u64 srtt_us)
{
	u32 compete_with = c->knobs[TT_COPA_COMPETITIVE] ? c->knobs[TT_COPA_DELTA] : 0;
	u64 window_bytes = c->window_q16 >> TT_WINDOW_SHIFT, mean_q16;

	tt_mode_on_drained(&c->mode, c->drain.from_us, now_us, srtt_us, compete_with);
	tt_copa_take_residue(c);
	c->drain.until_us = 0;
	if (tt_copa_competes_as_cubic(c)) {
		tt_rival_need(c, now_us);
		tt_rival_meet(c, window_bytes);
		return;
	}
	/* Back to where the oscillation has its middle, not to its peak. */
	mean_q16 = (tt_copa_target_queue_q4(c) * TT_MEAN_QUEUE_NUM / TT_MEAN_QUEUE_DEN) << (TT_WINDOW_SHIFT - 4);
	tt_copa_set_window(c, tt_min(c->window_q16, (c->drain.path_bytes << TT_WINDOW_SHIFT) + mean_q16));
	tt_velocity_reset(&c->velocity, c->window_q16);
}

/* Nothing was heard for longer than any round trip of late: the link stood still, and the queue with it. */
TT_INLINE void tt_copa_heed_silence(struct tt_copa *c, const struct tt_ack *ack)
{
	u64 rtt_max_us = tt_filter_get(&c->rtt_max);

	if (rtt_max_us && ack->now_us - c->observed_us > rtt_max_us)
		c->heard_again_us = ack->now_us;
	if (ack->newest_sent_us < c->heard_again_us)
		tt_mode_own_queue_from(&c->mode, ack->now_us);
}

/* Starts and ends drains, on an acknowledgement that shows the minimum or does not. */
TT_CHECKED_ONCE int tt_copa_drain_queue(struct tt_copa *c, const struct tt_ack *ack, bool floor)
{
	u64 now_us, srtt_us, standing_us, base_us, less_us, patience_us;
	struct tt_ticks ticks;
	bool wanted, small;

	if (!c || !ack)
		return 0;
	now_us = ack->now_us;
	srtt_us = ack->srtt_us;
	ticks.before_us = c->looked_us;
	ticks.now_us = now_us;
	c->looked_us = now_us;
	if (c->drain.until_us) {
		if (floor || now_us >= c->drain.until_us)
			tt_copa_end_drain(c, now_us, srtt_us);
		return 0;
	}
	/*
	 * On the way down from another algorithm's window the queue empties as it is; and what was in flight while the
	 * link stood still tells nothing of what the path holds.
	 */
	if (c->descent_bytes || ack->newest_sent_us < c->heard_again_us)
		return 0;
	patience_us = c->knobs[TT_COPA_MIN_RTT_WINDOW] / 2;
	standing_us = tt_filter_get(&c->rtt_standing);
	base_us = tt_copa_base_us(c);
	if (!standing_us || !base_us)
		return 0;
	base_us = tt_min(base_us, standing_us);
	if (tt_copa_keeps_rival(c))
		wanted = tt_mode_wants_joint_drain(&c->mode, srtt_us, base_us, patience_us, &ticks);
	else
		wanted = tt_mode_wants_drain(&c->mode, now_us, srtt_us, patience_us, c->knobs[TT_COPA_COMPETITIVE]);
	small = tt_mode_is_small(&c->mode, now_us, srtt_us) && tt_copa_is_held_by(c, TT_EMPTY_SLACK_US);
	if (!wanted && !small)
		return 0;
	c->drain.path_bytes = (c->window_q16 >> TT_WINDOW_SHIFT) * base_us / standing_us;
	less_us = base_us / TT_DRAIN_SHARE_DEN * (TT_DRAIN_SHARE_DEN - TT_DRAIN_SHARE_NUM);
	if (!wanted)
		less_us = tt_min(less_us, TT_EMPTY_SLACK_US);
	c->drain.held_bytes = c->drain.path_bytes * (base_us - less_us) / base_us;
	c->drain.from_us = now_us;
	c->drain.until_us = now_us + standing_us - base_us + TT_DRAIN_ROUNDS * base_us;
	c->drain.rtt_min_us = 0;
	return 0;
}

TT_INLINE void tt_copa_observe(struct tt_copa *c, const struct tt_ack *ack)
{
	u64 rtt_us = tt_min(tt_max(ack->rtt_us, TT_RTT_MIN_US), TT_RTT_MAX_US);
	u64 rtt_most_us = tt_min(ack->rtt_most_us, TT_RTT_MAX_US);
	u64 srtt_us = tt_min(ack->srtt_us, TT_RTT_MAX_US);
	u64 standing_window_us = srtt_us * c->knobs[TT_COPA_STANDING] / TT_SCALE_Q16;
	u64 lasts_us = c->knobs[TT_COPA_MIN_RTT_WINDOW];
	struct tt_sight sight = { .rtt_us = rtt_us };
	bool floor;

	if (!ack->rtt_us)
		return;
	tt_copa_heed_silence(c, ack);
	if (ack->now_us - c->observed_us > TT_FILTER_GAP_US) {
		tt_filter_clear(&c->rtt_min);
		tt_filter_clear(&c->rtt_standing);
		tt_filter_clear(&c->rtt_max);
	}
	c->observed_us = ack->now_us;
	if (tt_copa_competes_as_cubic(c))
		lasts_us *= TT_HIDDEN;
	tt_filter_update(&c->rtt_min, &c->rtt_min_ring, ack->now_us, lasts_us, rtt_us);
	tt_filter_update(&c->rtt_standing, &c->rtt_standing_ring, ack->now_us, standing_window_us, rtt_us);
	tt_filter_update(&c->rtt_max, &c->rtt_max_ring, ack->now_us, srtt_us * TT_RTT_MAX_ROUNDS, rtt_most_us);
	/* What waited for a link that stood still tells nothing of how long the queue gets. */
	if (ack->newest_sent_us >= c->heard_again_us)
		tt_blame_on_ack(&c->blame, ack, tt_less(tt_filter_get(&c->rtt_standing), tt_copa_base_us(c)),
				c->mss_bytes);
	c->residue_us = tt_min(c->residue_us, tt_less(rtt_us, tt_filter_get(&c->rtt_min)));
	if (c->drain.until_us && ack->newest_sent_us >= c->drain.from_us &&
	    (!c->drain.rtt_min_us || rtt_us < c->drain.rtt_min_us))
		c->drain.rtt_min_us = rtt_us;
	if (c->slow_start)
		return;
	sight.base_us = tt_copa_base_us(c);
	sight.standing_us = tt_filter_get(&c->rtt_standing);
	sight.rtt_max_us = tt_filter_get(&c->rtt_max);
	sight.keeps_rival = tt_copa_keeps_rival(c);
	floor = tt_mode_on_rtt(&c->mode, ack->now_us, &sight);
	tt_copa_drain_queue(c, ack, floor);
}

/* --- The window (§2.1). */

/*
 * v / (delta * window in packets) times what was acknowledged, and at most that: Q16 bytes. v and 1/delta meet the size
 * of a packet in Q20 (below 2^61).
 */
TT_INLINE u64 tt_copa_step_q16(const struct tt_copa *c, u64 acked_bytes)
{
	u64 pull_q20 = (u64)c->velocity.value_q4 * c->mss_bytes * tt_copa_inverse_q16(c);
	u64 window_bytes = c->window_q16 >> TT_WINDOW_SHIFT;
	u64 share_q24;

	u64 most_q16 = acked_bytes * c->knobs[TT_COPA_GROWTH_MAX];

	if (!window_bytes || (pull_q20 >> 20) >= window_bytes)
		return most_q16;
	share_q24 = (pull_q20 << 4) / window_bytes; /* pull_q20 is below 2^51 here */
	return tt_min((acked_bytes * share_q24) >> 8, most_q16);
}

/*
 * The window has fallen to what the path and the queue that delta asks for hold, or has turned: the queue that another
 * algorithm left is in flight no more, though the delay will show it for a round trip yet.
 */
TT_INLINE void tt_copa_end_descent(struct tt_copa *c, u32 direction, u64 now_us)
{
	u64 arrived_q4 = (c->descent_bytes << 4) + tt_copa_target_queue_q4(c);

	if (!c->descent_bytes)
		return;
	if (direction != TT_UP && c->window_q16 >> (TT_WINDOW_SHIFT - 4) > arrived_q4)
		return;
	c->descent_bytes = 0;
	tt_velocity_reset(&c->velocity, c->window_q16);
	tt_mode_own_queue_from(&c->mode, now_us);
}

TT_INLINE void tt_copa_steer(struct tt_copa *c, const struct tt_ack *ack)
{
	u64 standing_us = tt_filter_get(&c->rtt_standing);
	u64 rtt_min_us = tt_filter_get(&c->rtt_min);
	u64 base_us = rtt_min_us + tt_max(c->residue_us, c->slack_us);
	u64 target_q4 = tt_copa_target_queue_q4(c);
	u64 load_q4, step_q16;
	u32 direction;

	if (!standing_us || !rtt_min_us) {
		tt_copa_grow_exponentially(c, ack);
		return;
	}
	/* window / standing <= 1 / (delta * queueing delay), both sides times mss and in Q4. */
	load_q4 = (c->window_q16 >> (TT_WINDOW_SHIFT - 4)) * tt_less(standing_us, base_us);
	if (c->slow_start) {
		u64 exit_q4 = (target_q4 * c->knobs[TT_COPA_STARTUP_EXIT]) / TT_SCALE_Q10;

		if (load_q4 < exit_q4 * standing_us) {
			tt_copa_grow_exponentially(c, ack);
			return;
		}
		tt_copa_leave_slow_start(c, ack->now_us);
	}
	tt_copa_follow_rival(c, ack);
	if (tt_copa_competes_as_cubic(c))
		return;
	if (c->drain.until_us)
		return; /* nothing is known of the target while the queue is held down */
	direction = load_q4 <= target_q4 * standing_us ? TT_UP : TT_DOWN;
	tt_velocity_on_decision(&c->velocity, direction, c->window_q16);
	step_q16 = tt_copa_step_q16(c, ack->acked_bytes);
	if (direction == TT_DOWN)
		tt_copa_set_window(c, tt_less(c->window_q16, step_q16));
	else if (ack->cwnd_limited && !tt_copa_is_held(c))
		tt_copa_set_window(c, c->window_q16 + step_q16);
	tt_copa_end_descent(c, direction, ack->now_us);
}

/* The window in force. */
TT_INLINE u64 tt_copa_window_bytes(const struct tt_copa *c)
{
	u64 window_q16 = c->window_q16;

	if (c->drain.until_us) {
		u64 held_q16 = c->drain.held_bytes << TT_WINDOW_SHIFT;

		window_q16 = tt_max(tt_min(window_q16, held_q16), tt_copa_window_min_q16(c));
	}
	return window_q16 >> TT_WINDOW_SHIFT;
}

/* --- Events. */

TT_INLINE void tt_copa_raise_ceiling(struct tt_copa *c, const struct tt_ack *ack)
{
	struct tt_used used = {
		.now_us = ack->now_us,
		.acked_bytes = ack->acked_bytes,
		.srtt_us = ack->srtt_us,
		.newest_sent_us = ack->newest_sent_us,
		.mss_bytes = c->mss_bytes,
	};

	if (!tt_ceiling_is_set(&c->ceiling))
		return;
	used.limits = ack->cwnd_limited && c->window_q16 >> TT_WINDOW_SHIFT >= c->ceiling.window_bytes;
	tt_ceiling_on_ack(&c->ceiling, &used);
}

TT_INLINE void tt_copa_on_ack(struct tt_copa *c, const struct tt_ack *ack)
{
	c->started = true;
	tt_episode_on_ack(&c->episode, ack);
	c->tally[1].acked_bytes += ack->acked_bytes;
	tt_copa_observe(c, ack);
	/* A round ends once something sent after its start is acknowledged: crates/cc/src/round.rs. */
	if (ack->delivered > c->round_end || ack->newest_sent_us > c->round_start_us) {
		c->round_end = ack->delivered + ack->inflight;
		c->round_start_us = ack->now_us;
		tt_velocity_on_round(&c->velocity, c->window_q16, c->knobs[TT_COPA_VELOCITY_MAX]);
		tt_mode_on_round(&c->mode);
		c->tally[0] = c->tally[1];
		c->tally[1].lost_bytes = 0;
		c->tally[1].acked_bytes = 0;
	}
	tt_copa_raise_ceiling(c, ack);
	tt_copa_steer(c, ack);
}

/* Packets were declared lost, of which none was sent after `newest_sent_us`. */
TT_INLINE void tt_copa_on_loss(struct tt_copa *c, u64 now_us, u64 lost_bytes, u64 newest_sent_us)
{
	u32 keep_q16 = c->knobs[TT_COPA_LOSS_BETA];

	bool waited = newest_sent_us < c->heard_again_us;
	bool full = !waited && tt_blame_on_loss(&c->blame, lost_bytes);
	bool much;

	c->tally[1].lost_bytes += lost_bytes;
	if (c->slow_start) {
		if (tt_copa_loses_heavily(c)) {
			tt_episode_on_loss(&c->episode, now_us, newest_sent_us);
			tt_copa_set_window(c, c->window_q16 / 2); /* the window of the round before, which fitted */
			tt_copa_leave_slow_start(c, now_us);
		}
		return;
	}
	much = c->mode.inverse_q16 && tt_copa_lost(c) * TT_TOLERATED_INVERSE > tt_copa_seen(c);
	if (tt_copa_keeps_rival(c) && (full || much)) {
		if (tt_episode_on_loss(&c->episode, now_us, newest_sent_us)) {
			tt_mode_on_loss(&c->mode);
			tt_rival_need(c, now_us);
			tt_rival_on_loss(c, c->window_q16 >> TT_WINDOW_SHIFT);
			tt_copa_set_window(c, c->window_q16);
			tt_velocity_reset(&c->velocity, c->window_q16);
		}
		return;
	}
	if (tt_copa_lost(c) * TT_SCALE_Q16 <= tt_copa_seen(c) * c->knobs[TT_COPA_LOSS_TOLERANCE])
		return; /* noise */
	if (!tt_episode_on_loss(&c->episode, now_us, newest_sent_us))
		return;
	tt_mode_on_loss(&c->mode);
	if (keep_q16 < TT_SCALE_Q16) {
		tt_copa_set_window(c, (c->window_q16 >> TT_WINDOW_SHIFT) * keep_q16);
		tt_velocity_reset(&c->velocity, c->window_q16);
	}
}

/* Packets were marked (ECN), of which none was sent after `newest_sent_us`. */
TT_INLINE void tt_copa_on_marked(struct tt_copa *c, u64 now_us, u64 newest_sent_us)
{
	if (!tt_ceiling_on_marked(&c->ceiling, now_us, newest_sent_us, tt_copa_window_bytes(c), c->mss_bytes))
		return;
	tt_copa_set_window(c, c->window_q16);
	tt_velocity_reset(&c->velocity, c->window_q16);
	tt_mode_on_loss(&c->mode);
	if (c->slow_start)
		tt_copa_leave_slow_start(c, now_us);
}

TT_INLINE void tt_copa_on_timeout(struct tt_copa *c, u64 now_us)
{
	tt_episode_on_timeout(&c->episode, now_us);
	tt_copa_set_window(c, 0);
	tt_velocity_reset(&c->velocity, c->window_q16);
	tt_mode_reset(&c->mode, now_us);
	tt_rival_forget(c);
	c->drain.until_us = 0;
	c->descent_bytes = 0;
	c->slow_start = true;
}

/* Nothing was in flight for longer than the retransmission timeout, and the sender sends again. */
TT_INLINE void tt_copa_on_idle(struct tt_copa *c)
{
	u64 kept_q16 = (c->window_q16 >> TT_WINDOW_SHIFT) * c->knobs[TT_COPA_RESTART];

	tt_copa_set_window(c, tt_max(kept_q16, tt_min(c->window_q16, tt_copa_initial_window_q16(c))));
	tt_velocity_reset(&c->velocity, c->window_q16);
	if (c->knobs[TT_COPA_RESTART_PROBE])
		c->slow_start = true;
}

/* A packet leaves while nothing else is in flight: no queue of ours was seen. */
TT_INLINE void tt_copa_on_first_sent(struct tt_copa *c, u64 now_us)
{
	tt_mode_assume_empty(&c->mode, now_us);
	if (c->rival.window_bytes)
		tt_cubic_on_first_sent(&c->rival.curve, now_us, c->observed_us);
}

/* The knobs have changed: what follows at once. */
TT_INLINE void tt_copa_on_knobs(struct tt_copa *c)
{
	if (c->knobs[TT_COPA_COMPETITIVE] == TT_RIVALRY_YIELD)
		c->mode.inverse_q16 = 0;
	if (!tt_copa_keeps_rival(c))
		tt_rival_forget(c);
	if (!c->started)
		tt_copa_set_window(c, tt_copa_initial_window_q16(c));
}

/* --- Answers. */

/* Bytes per second: `pacing_gain` windows per standing round-trip time (§2.1); 0 before any sample. */
TT_INLINE u64 tt_copa_pacing_bytes_per_s(const struct tt_copa *c)
{
	u64 standing_us = tt_filter_get(&c->rtt_standing);
	u64 gained_q10 = (c->window_q16 >> TT_WINDOW_SHIFT) * c->knobs[TT_COPA_PACING_GAIN]; /* below 2^42 */

	if (!standing_us)
		return 0;
	return tt_max(gained_q10 * (1000000 / 64) / standing_us / (TT_SCALE_Q10 / 64), 1);
}

#endif
