/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BBR version 3: crates/cc/src/bbr/v3.rs in C, which says why each thing is as it is, in the order
 * of draft-ietf-ccwg-bbr's pseudocode (commit 4ce5e87; its functions are cited). Both count in
 * integers, so they agree to the byte, but for the rounding of the inflight at which losses crossed
 * the threshold.
 */
#ifndef TRIMTAB_BBR3_H
#define TRIMTAB_BBR3_H

#include "bbr3_probe.h"

/* Drain ends after so many rounds even if the queue stays, for it may be another flow's. */
#define TT_BBR3_DRAIN_ROUNDS_MAX 3

/* After the knobs were written: what follows from them. Those out of range are what they may be at
 * most, so that every product stays bounded. */
TT_INLINE void tt_bbr3_on_knobs(struct tt_bbr3 *b)
{
	u32 *knobs = b->tuning.knobs;

	/* 8 is as much as any gain's range has. */
#pragma unroll
	for (int i = 0; i < TT_BBR3_KNOBS_COUNT; i++)
		if (i != TT_BBR3_PROBE_WAIT && i != TT_BBR3_PROBE_RTT_INTERVAL && i != TT_BBR3_PROBE_RTT_DURATION)
			knobs[i] = tt_min(knobs[i], 8 * TT_GAIN_UNIT);
	b->tuning.pacing_share = tt_less(TT_GAIN_UNIT, knobs[TT_BBR3_PACING_MARGIN]);
}

/* --- The beginning. The state is all zero but the knobs, both windows, the packet's size, what was
 * delivered and the next draw. */

/* `OnInit()`, or a connection that goes on with another algorithm's window; a round-trip time of 0
 * is none. */
TT_INLINE void tt_bbr3_init(struct tt_bbr3 *b, u32 srtt_us)
{
	u64 rtt_us = srtt_us ? srtt_us : TT_BBR_NOMINAL_RTT_US;

	b->window_bytes = tt_max(b->window_bytes, b->mss_bytes);
	b->inflight_longterm = TT_BBR3_NONE;
	tt_bbr3_no_short_term(b);
	b->round_end = b->signals.round_end = b->delivered;
	b->seen_rtt = srtt_us != 0;
	b->pacing_bytes_per_s = tt_bbr3_startup_rate(b, tt_rate_of(b->window_bytes, 1, rtt_us));
}

/* --- Steps of an acknowledgement. */

/* `UpdateLatestDeliverySignals()`, `UpdateRound()` and `UpdateCongestionSignals()`. */
TT_CHECKED_ONCE int tt_bbr3_update_signals(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack, u64 rate)
{
	struct tt_bbr3_signals *signals;

	if (!b || !ack)
		return 0;
	signals = &b->signals;
	signals->round_started = b->round_started = false;
	if (!ack->rate_us)
		return 0;
	signals->bw_bytes_per_s = tt_max(signals->bw_bytes_per_s, rate);
	signals->inflight_bytes = tt_max(signals->inflight_bytes, tt_bbr3_bytes(b, ack->rate_packets));
	if (tt_is_at_or_after(ack->prior_delivered, signals->round_end)) {
		signals->round_end = ack->delivered;
		signals->round_started = true;
	}
	if (tt_is_at_or_after(ack->prior_delivered, b->round_end)) {
		b->round_end = ack->delivered;
		b->round_started = true;
		b->round++;
		b->rounds_since_probe++;
	}
	tt_bbr3_update_max_bw(b, rate, ack->app_limited);
	if (signals->round_started)
		tt_bbr3_adapt_short_term(b);
	return 0;
}

/* `CheckFullBWReached()`, `CheckStartupDone()` and `CheckDrainDone()`. */
TT_CHECKED_ONCE int tt_bbr3_check_startup(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack, u64 rate)
{
	if (!b || !ack)
		return 0;
	if (b->round_started && ack->rate_us && !ack->app_limited)
		tt_bbr3_full_on_round(b, rate);
	tt_bbr3_check_startup_loss(b, ack);
	/* A search over another algorithm's rate began since there was no queue. Where there is one, it is over. */
	if (b->searches && b->mode == TT_BBR3_STARTUP && b->min_rtt.value_us &&
	    (u64)ack->rtt_us * 4 > (u64)b->min_rtt.value_us * 5)
		tt_bbr3_full_declare(b);
	if (b->mode == TT_BBR3_STARTUP && b->full_reached) {
		b->mode = TT_BBR3_DRAIN;
		b->drain_round = b->round;
	}
	if (b->mode == TT_BBR3_DRAIN &&
	    (b->round - b->drain_round > TT_BBR3_DRAIN_ROUNDS_MAX ||
	     tt_bbr3_bytes(b, ack->inflight) <= tt_bbr3_quantise(b, tt_bbr3_bdp(b, b->bw_bytes_per_s))))
		tt_bbr3_start_down(b, ack->now_us);
	return 0;
}

/* `ExitProbeRTT()`, with the rest of `CheckProbeRTTDone()`. */
TT_INLINE void tt_bbr3_exit_probe_rtt(struct tt_bbr3 *b, u64 now_us)
{
	b->min_rtt.recent_at_us = now_us;
	tt_bbr3_restore_window(b);
	tt_bbr3_no_short_term(b);
	if (!b->full_reached) {
		b->mode = TT_BBR3_STARTUP;
		return;
	}
	tt_bbr3_start_down(b, now_us);
	b->mode = TT_BBR3_CRUISE; /* the queue is gone already */
}

/* `HandleProbeRTT()`. */
TT_INLINE void tt_bbr3_handle_probe_rtt(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	tt_bubble_extend(&b->bubble, ack->delivered, ack->inflight);
	if (!b->ends_at_us) {
		if (tt_bbr3_bytes(b, ack->inflight) <= tt_bbr3_probe_rtt_window(b)) {
			b->ends_at_us = ack->now_us + tt_bbr3_knob(b, TT_BBR3_PROBE_RTT_DURATION);
			b->round_end = ack->delivered;
		}
		return;
	}
	b->round_done |= b->round_started;
	if (b->round_done && ack->now_us > b->ends_at_us)
		tt_bbr3_exit_probe_rtt(b, ack->now_us);
}

TT_INLINE void tt_bbr3_enter_probe_rtt(struct tt_bbr3 *b)
{
	b->mode = TT_BBR3_PROBE_RTT;
	b->ends_at_us = 0;
	b->round_done = false;
}

/* `UpdateMinRTT()` and `CheckProbeRTT()`. */
TT_CHECKED_ONCE int tt_bbr3_check_probe_rtt(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	bool due;

	if (!b || !ack)
		return 0;
	due = tt_bbr3_update_min_rtt(&b->min_rtt, ack->now_us, tt_min(ack->rtt_us, TT_RTT_MAX_US),
				     tt_bbr3_knob(b, TT_BBR3_PROBE_RTT_INTERVAL));
	if (due && !b->idle_restart && b->mode != TT_BBR3_PROBE_RTT) {
		tt_bbr3_save_window(b);
		b->feedback = TT_BBR3_AFTER_PROBE;
		b->round_end = ack->delivered;
		tt_bbr3_enter_probe_rtt(b);
	}
	if (b->mode == TT_BBR3_PROBE_RTT)
		tt_bbr3_handle_probe_rtt(b, ack);
	if (ack->acked)
		b->idle_restart = false;
	return 0;
}

/* `AdvanceLatestDeliverySignals()`. */
TT_INLINE void tt_bbr3_advance_signals(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack, u64 rate)
{
	if (!b->signals.round_started || !ack->rate_us)
		return;
	b->signals.bw_bytes_per_s = rate;
	b->signals.inflight_bytes = tt_bbr3_bytes(b, ack->rate_packets);
}

/* What congestion marks leave grows where it limits the sender: crates/cc/src/ceiling.rs. */
TT_INLINE void tt_bbr3_raise_ceiling(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	struct tt_used used = {
		.now_us = ack->now_us,
		.acked_bytes = tt_bbr3_bytes(b, ack->acked),
		.srtt_us = ack->srtt_us,
		.newest_sent_us = ack->newest_sent_us,
		.mss_bytes = b->mss_bytes,
		.limits = ack->cwnd_limited && b->window_bytes >= tt_ceiling_bytes(&b->ceiling),
	};

	tt_ceiling_on_ack(&b->ceiling, &used);
}

/* --- Events. */

/* The draft's "Per-ACK Steps", in its order. Most are functions that the verifier checks by
 * themselves: all ways through all of them are too many. */
TT_INLINE void tt_bbr3_on_ack(struct tt_bbr3 *b, struct tt_bbr3_ack *ack)
{
	u64 rate = ack->rate_us ? tt_rate_of(ack->rate_packets, b->mss_bytes, ack->rate_us) : 0;

	ack->app_limited |= tt_bubble_contains(&b->bubble, ack->prior_delivered);
	tt_bbr3_min_rtt_start(&b->min_rtt, ack->now_us);
	b->delivered = ack->delivered;
	tt_bbr3_settle_anchors(b, ack->now_us);
	tt_bbr3_update_signals(b, ack, rate);
	tt_bbr3_update_aggregation(b, ack);
	tt_bbr3_check_startup(b, ack, rate);
	tt_bbr3_update_cycle(b, ack, rate);
	tt_bbr3_check_probe_rtt(b, ack);
	tt_bbr3_advance_signals(b, ack, rate);
	b->bw_bytes_per_s = tt_min(tt_bbr3_max_bw(b), b->short_term.bw_bytes_per_s); /* `BoundBWForModel()` */
	if (!b->seen_rtt && ack->srtt_us) {
		b->seen_rtt = true; /* `InitPacingRate()` */
		b->pacing_bytes_per_s = tt_bbr3_startup_rate(b, tt_rate_of(b->initial_packets, b->mss_bytes, ack->srtt_us));
	}
	tt_bbr3_pace(b, tt_bbr3_pacing_gain(b));
	if (b->in_recovery && !ack->in_recovery) {
		b->in_recovery = false;
		tt_bbr3_restore_window(b); /* "Upon exiting loss recovery" */
	}
	tt_bbr3_set_window(b, ack);
	if (tt_ceiling_is_set(&b->ceiling))
		tt_bbr3_raise_ceiling(b, ack);
}

/* A mark arrived while so much was in flight. The draft has no answer to marks. */
TT_INLINE void tt_bbr3_on_marked(struct tt_bbr3 *b, u64 now_us, u64 newest_sent_us, u32 prior_inflight)
{
	u64 used = tt_min(b->window_bytes, tt_bbr3_bytes(b, prior_inflight));

	tt_ceiling_on_marked(&b->ceiling, now_us, newest_sent_us, tt_min(used, 1ULL << 40), b->mss_bytes);
}

/* `OnEnterRTO()`: so many packets are left in flight. */
TT_INLINE void tt_bbr3_on_timeout(struct tt_bbr3 *b, u64 now_us, u32 inflight)
{
	tt_bbr3_note_loss(b, now_us);
	b->window_bytes = tt_bbr3_bytes(b, inflight + 1);
}

/* `HandleRestartFromIdle()`. */
TT_INLINE void tt_bbr3_on_idle(struct tt_bbr3 *b, u64 now_us)
{
	b->idle_restart = true;
	b->interval_us = now_us;
	if (tt_bbr3_is_in_probe_bw(b))
		tt_bbr3_pace(b, TT_GAIN_UNIT); /* no reason to send faster than the path: the pipe is empty */
	else if (b->mode == TT_BBR3_PROBE_RTT && b->ends_at_us && now_us > b->ends_at_us)
		tt_bbr3_exit_probe_rtt(b, now_us); /* `CheckProbeRTTDone()` */
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_bbr3_on_first_sent(struct tt_bbr3 *b, u64 now_us, bool app_limited)
{
	tt_bbr3_min_rtt_start(&b->min_rtt, now_us);
	if (app_limited)
		tt_bbr3_on_idle(b, now_us);
}

/* As trimtab_cc::Phase. */
TT_INLINE u32 tt_bbr3_phase(const struct tt_bbr3 *b)
{
	if (b->mode == TT_BBR3_PROBE_RTT)
		return TT_PHASE_PROBE_RTT;
	if (b->mode == TT_BBR3_STARTUP)
		return TT_PHASE_SLOW_START;
	return b->mode == TT_BBR3_DRAIN ? TT_PHASE_DRAIN : TT_PHASE_STEADY;
}

#endif
