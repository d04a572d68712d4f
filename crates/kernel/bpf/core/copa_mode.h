/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Velocity, TCP-competitive mode and loss episodes. The Rust originals give the reasons for each rule. */
#ifndef TRIMTAB_COPA_MODE_H
#define TRIMTAB_COPA_MODE_H

#include "copa_state.h"

/* --- Velocity (§2.2). */

#define TT_ROUNDS_BEFORE_DOUBLING 3

TT_INLINE void tt_velocity_reset(struct tt_velocity *v, u64 window_q16)
{
	v->value_q4 = TT_SCALE_Q4;
	v->direction = TT_STILL;
	v->same = 0;
	v->window_then_q16 = window_q16;
}

TT_INLINE void tt_velocity_on_round(struct tt_velocity *v, u64 window_q16, u32 max_q4)
{
	u32 direction = TT_STILL;

	if (window_q16 > v->window_then_q16)
		direction = TT_UP;
	else if (window_q16 < v->window_then_q16)
		direction = TT_DOWN;
	v->window_then_q16 = window_q16;
	if (direction == TT_STILL || direction != v->direction) {
		v->value_q4 = TT_SCALE_Q4;
		v->same = 0;
	}
	v->direction = direction;
	if (direction != TT_STILL && v->same < TT_ROUNDS_BEFORE_DOUBLING)
		v->same++;
	if (v->same >= TT_ROUNDS_BEFORE_DOUBLING)
		v->value_q4 = tt_min(2 * (u64)v->value_q4, max_q4);
}

/* A window that moves fast and has to turn does so at once. */
TT_INLINE void tt_velocity_on_decision(struct tt_velocity *v, u32 direction, u64 window_q16)
{
	if (v->value_q4 > TT_SCALE_Q4 && v->direction != TT_STILL && v->direction != direction) {
		tt_velocity_reset(v, window_q16);
		v->direction = direction;
	}
}

/* --- When flows of one kind drain the queue: crates/cc/src/copa/ticks.rs. */

/* What the common clock of senders says when `now_us` is zero. */
#ifndef TT_CLOCK_US
#define TT_CLOCK_US 0
#endif

#define TT_TICK_SHORTEST_US 250000ULL
/* The longest period is four and a half hours. */
#define TT_TICK_DOUBLINGS 16

/* The clock between two looks at it. */
struct tt_ticks {
	u64 before_us;
	u64 now_us;
};

/* Whether a multiple of this period came: of 250 ms, or that doubled until it is `least_us`. */
TT_INLINE bool tt_ticks_come(const struct tt_ticks *ticks, u64 least_us)
{
	u64 period_us = TT_TICK_SHORTEST_US;
	u32 i;

	for (i = 0; i < TT_TICK_DOUBLINGS; i++)
		if (period_us < least_us)
			period_us *= 2;
	return (ticks->before_us + TT_CLOCK_US) / period_us != (ticks->now_us + TT_CLOCK_US) / period_us;
}

/* --- TCP-competitive mode (§2.4). */

/* A queue whose delay is below 3/10 of its swing, or below 1 ms, is nearly empty. */
#define TT_EMPTY_SHARE_NUM 3
#define TT_EMPTY_SHARE_DEN 10
#define TT_EMPTY_SLACK_US 1000
/* A queue that was not nearly empty for so many round trips may belong to others. */
#define TT_EMPTY_ROUNDS 5
/* At a tick, a flow with CUBIC's window at hand drains one that was not for so many. */
#define TT_HELP_ROUNDS 3
/* There are so many round trips at least from tick to tick. */
#define TT_TICK_ROUNDS 10
/* A queue of at most the slack may be none, if for so many round trips it was never below this share of it. */
#define TT_SMALL_ROUNDS 5
#define TT_SMALL_SHARE 10
/* For so long after a drain the next is not asked for that shows who fills the queue, or whether it is one. */
#define TT_ALONE_US 1000000
/* Competing, 1/delta stays within these. */
#define TT_INVERSE_MIN_Q16 (2 * TT_SCALE_Q16)
#define TT_INVERSE_MAX_Q16 (500 * TT_SCALE_Q16)
/* For so many round trips after a loss to others, competing ends only below 1/10 of the swing. */
#define TT_EMPTY_SHARE_LOST_NUM 1
#define TT_LOST_ROUNDS 20
/* A loss is one to others if 1/delta was this much and so many round trips had none. */
#define TT_LOST_INVERSE_Q16 (8 * TT_SCALE_Q16)
#define TT_LOST_GAP 5
/* A flow that competes again within so many round trips keeps its 1/delta. */
#define TT_KEPT_ROUNDS 50
/* With CUBIC's window it looks for the others at ticks so far apart; twice as far once they were there. */
#define TT_CONFIRM_US 16000000ULL
#define TT_CONFIRM_ROUNDS 60
#define TT_CONFIRM_SOONEST 4
#define TT_CONFIRMED_MAX 2

TT_INLINE void tt_mode_reset(struct tt_mode *m, u64 now_us)
{
	m->empty_at_us = now_us;
	m->floor_at_us = now_us;
	m->drained_at_us = now_us;
	m->small_from_us = now_us;
	m->inverse_q16 = 0;
	m->lost = false;
	m->lossless = TT_LOST_GAP;
	m->since_others = TT_LOST_ROUNDS;
	m->since_kept = TT_KEPT_ROUNDS;
	m->kept_q16 = TT_INVERSE_MIN_Q16;
	m->confirmed = 0;
}

/* What the mode detector looks at: round-trip times. */
struct tt_sight {
	u64 rtt_us;
	u64 base_us;     /* with an empty queue */
	u64 standing_us; /* the least of the last part of a round trip */
	u64 rtt_max_us;  /* of the last four */
	bool keeps_rival; /* whether it would compete with the window of CUBIC */
};

/* Whether the queue is nearly empty: `num` / TT_EMPTY_SHARE_DEN of its swing at most. */
TT_INLINE bool tt_mode_is_empty(u64 queueing_us, u64 swing_us, u64 num)
{
	return queueing_us <= TT_EMPTY_SLACK_US || queueing_us * TT_EMPTY_SHARE_DEN <= swing_us * num;
}

/* Takes a round-trip time; whether it shows the minimum. */
TT_INLINE bool tt_mode_on_rtt(struct tt_mode *m, u64 now_us, const struct tt_sight *sight)
{
	u64 swing_us = tt_less(sight->rtt_max_us, sight->base_us);
	u64 queueing_us = tt_less(sight->rtt_us, sight->base_us);
	bool stays = sight->keeps_rival || m->since_others < TT_LOST_ROUNDS;
	u64 leaves_at = stays ? TT_EMPTY_SHARE_LOST_NUM : TT_EMPTY_SHARE_NUM;

	if (tt_mode_is_empty(queueing_us, swing_us, TT_EMPTY_SHARE_NUM))
		m->empty_at_us = tt_max(m->empty_at_us, now_us);
	if (m->inverse_q16 && tt_mode_is_empty(queueing_us, swing_us, leaves_at)) {
		m->kept_q16 = m->inverse_q16; /* nobody fills it */
		m->since_kept = 0;
		m->inverse_q16 = 0;
	}
	if (queueing_us <= TT_EMPTY_SLACK_US / TT_SMALL_SHARE ||
	    tt_less(sight->standing_us, sight->base_us) > TT_EMPTY_SLACK_US)
		m->small_from_us = tt_max(m->small_from_us, now_us);
	if (queueing_us)
		return false;
	m->floor_at_us = now_us;
	return true;
}

TT_INLINE bool tt_mode_is_full(const struct tt_mode *m, u64 now_us, u64 srtt_us)
{
	return tt_less(now_us, m->empty_at_us) > srtt_us * TT_EMPTY_ROUNDS;
}

/* Whether the queue was nearly empty for five round trips, but never empty. It may be none. */
TT_INLINE bool tt_mode_is_small(const struct tt_mode *m, u64 now_us, u64 srtt_us)
{
	return tt_less(now_us, m->small_from_us) > srtt_us * TT_SMALL_ROUNDS;
}

/* With CUBIC's window, the time from one tick to the next at which it looks whether the others are still there. */
TT_INLINE u64 tt_mode_confirms_each_us(const struct tt_mode *m, u64 base_us)
{
	return tt_max(TT_CONFIRM_US, base_us * TT_CONFIRM_ROUNDS) << tt_min(m->confirmed, TT_CONFIRMED_MAX);
}

/* Whether the minimum round-trip time was not seen for so long. */
TT_INLINE bool tt_mode_is_stale(const struct tt_mode *m, u64 now_us, u64 srtt_us, u64 patience_us)
{
	u64 seen_us = tt_max(m->floor_at_us, m->drained_at_us);

	return tt_less(now_us, seen_us) > tt_max(patience_us, srtt_us * TT_EMPTY_ROUNDS);
}

/* Whether it is time to drain the queue, for one that would compete with CUBIC's window. */
TT_INLINE bool tt_mode_wants_joint_drain(const struct tt_mode *m, u64 srtt_us, u64 base_us, u64 patience_us,
					 const struct tt_ticks *ticks)
{
	u64 now_us = ticks->now_us, each_us;

	if (m->inverse_q16) {
		each_us = tt_mode_confirms_each_us(m, base_us);
		return tt_less(now_us, m->drained_at_us) > each_us / TT_CONFIRM_SOONEST && tt_ticks_come(ticks, each_us);
	}
	if (tt_less(now_us, m->empty_at_us) > srtt_us * TT_HELP_ROUNDS && tt_ticks_come(ticks, srtt_us * TT_TICK_ROUNDS))
		return true;
	return tt_mode_is_stale(m, now_us, srtt_us, patience_us);
}

TT_INLINE bool tt_mode_wants_drain(const struct tt_mode *m, u64 now_us, u64 srtt_us, u64 patience_us, bool competes)
{
	if (competes && !m->inverse_q16 && tt_mode_is_full(m, now_us, srtt_us))
		return true;
	return tt_mode_is_stale(m, now_us, srtt_us, patience_us);
}

/* A drain that began at `from_us` ended. `inverse_q16` is the 1/delta that is set, 0 where it must not compete. */
TT_INLINE void tt_mode_on_drained(struct tt_mode *m, u64 from_us, u64 now_us, u64 srtt_us, u32 inverse_q16)
{
	bool again = m->since_kept < TT_KEPT_ROUNDS;
	u32 kept_q16 = again ? m->kept_q16 : TT_INVERSE_MIN_Q16;

	m->drained_at_us = now_us;
	m->small_from_us = now_us + TT_ALONE_US;
	if (m->empty_at_us >= from_us) {
		m->empty_at_us = now_us + TT_ALONE_US;
		m->confirmed = 0;
	} else if (m->inverse_q16) {
		m->confirmed = tt_min(m->confirmed + 1, TT_CONFIRMED_MAX);
	} else if (inverse_q16 && tt_mode_is_full(m, now_us, srtt_us)) {
		m->inverse_q16 = tt_min(tt_max(tt_max(inverse_q16, kept_q16), TT_INVERSE_MIN_Q16), TT_INVERSE_MAX_Q16);
		if (!again)
			m->confirmed = 0;
	}
}

/* Counts the queue as empty, because nothing was in flight to fill it or see it. */
TT_INLINE void tt_mode_assume_empty(struct tt_mode *m, u64 now_us)
{
	m->empty_at_us = tt_max(m->empty_at_us, now_us);
	m->floor_at_us = tt_max(m->floor_at_us, now_us);
	m->small_from_us = tt_max(m->small_from_us, now_us);
}

/* Whatever queued until now was no sign of others. */
TT_INLINE void tt_mode_own_queue_from(struct tt_mode *m, u64 now_us)
{
	m->empty_at_us = tt_max(m->empty_at_us, now_us);
	m->small_from_us = tt_max(m->small_from_us, now_us);
}

TT_INLINE void tt_mode_on_round(struct tt_mode *m)
{
	if (m->inverse_q16 && !m->lost)
		m->inverse_q16 = tt_min((u64)m->inverse_q16 + TT_SCALE_Q16, TT_INVERSE_MAX_Q16);
	m->lost = false;
	m->lossless = tt_min(m->lossless + 1, TT_LOST_GAP);
	m->since_others = tt_min(m->since_others + 1, TT_LOST_ROUNDS);
	m->since_kept = tt_min(m->since_kept + 1, TT_KEPT_ROUNDS);
}

TT_INLINE void tt_mode_on_loss(struct tt_mode *m)
{
	m->lost = true;
	m->since_others =
		m->lossless >= TT_LOST_GAP && m->inverse_q16 >= TT_LOST_INVERSE_Q16 ? 0 : TT_LOST_ROUNDS;
	m->lossless = 0;
	if (m->inverse_q16)
		m->inverse_q16 = tt_max(m->inverse_q16 / 2, TT_INVERSE_MIN_Q16);
}

/* --- Loss episodes. */

/* Whether these losses open a new episode, which then starts now (RFC 9002 §7.3.2). */
TT_INLINE bool tt_episode_on_loss(struct tt_episode *e, u64 now_us, u64 newest_sent_us)
{
	if (e->started && newest_sent_us <= e->start_us)
		return false;
	e->start_us = now_us;
	e->started = true;
	e->recovering = true;
	return true;
}

TT_INLINE void tt_episode_on_timeout(struct tt_episode *e, u64 now_us)
{
	e->start_us = now_us;
	e->started = true;
	e->recovering = false;
}

TT_INLINE void tt_episode_on_ack(struct tt_episode *e, const struct tt_ack *ack)
{
	if (e->recovering && !ack->in_recovery && (!e->started || ack->newest_sent_us > e->start_us))
		e->recovering = false;
}

#endif
