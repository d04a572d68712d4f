/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What losses do to BBRv3's model, and when it probes for bandwidth: crates/cc/src/bbr/v3/loss.rs
 * and probe_bw.rs, which say why.
 */
#ifndef TRIMTAB_BBR3_PROBE_H
#define TRIMTAB_BBR3_PROBE_H

#include "bbr3_model.h"

/* `BBRStartupFullLossCnt`. */
#define TT_BBR3_STARTUP_LOSS_RANGES 6
/* No flow waits more rounds to probe ("Bandwidth Probing and Coexistence with Reno/CUBIC"). */
#define TT_BBR3_RENO_ROUNDS_MAX 63
/* Rounds after which the growth of the long-term bound no longer doubles. */
#define TT_BBR3_GROWTH_ROUNDS_MAX 30

/* --- Rounds, and the states of ProbeBW. */

TT_INLINE bool tt_bbr3_is_in_probe_bw(const struct tt_bbr3 *b)
{
	return b->mode >= TT_BBR3_DOWN && b->mode <= TT_BBR3_UP;
}

TT_INLINE void tt_bbr3_no_short_term(struct tt_bbr3 *b)
{
	b->short_term.bw_bytes_per_s = b->short_term.inflight_bytes = TT_BBR3_NONE;
}

/* `PickProbeWait()`: half as much again at most. */
TT_INLINE void tt_bbr3_pick_probe_wait(struct tt_bbr3 *b)
{
	u64 wait_us = tt_bbr3_knob(b, TT_BBR3_PROBE_WAIT);

	b->rounds_since_probe = b->draw_round;
	b->probe_wait_us = wait_us + (wait_us * b->draw >> 33);
	b->drawn = true;
}

/* `StartProbeBW_DOWN()`. */
TT_INLINE void tt_bbr3_start_down(struct tt_bbr3 *b, u64 now_us)
{
	b->signals.loss_in_round = false;
	b->signals.bw_bytes_per_s = 0;
	b->signals.inflight_bytes = 0;
	tt_bbr3_pick_probe_wait(b);
	b->cycle_us = now_us;
	b->feedback = TT_BBR3_AFTER_PROBE;
	b->round_end = b->delivered;
	b->mode = TT_BBR3_DOWN;
}

/* `StartProbeBW_REFILL()`. */
TT_INLINE void tt_bbr3_start_refill(struct tt_bbr3 *b)
{
	tt_bbr3_no_short_term(b);
	b->prev_probe_precautionary = false;
	b->feedback = TT_BBR3_TO_REFILL;
	b->round_end = b->delivered;
	b->mode = TT_BBR3_REFILL;
}

/* `RaiseInflightLongtermSlope()`. */
TT_INLINE void tt_bbr3_steepen(struct tt_bbr3 *b)
{
	u32 rounds = tt_min(b->growth_rounds, TT_BBR3_GROWTH_ROUNDS_MAX);

	b->growth_per_packet = tt_max(b->window_bytes >> rounds, b->mss_bytes);
	b->growth_rounds = tt_min(rounds + 1, TT_BBR3_GROWTH_ROUNDS_MAX);
}

/* `StartProbeBW_UP()`. */
TT_INLINE void tt_bbr3_start_up(struct tt_bbr3 *b, u64 rate)
{
	b->feedback = TT_BBR3_BEFORE_PROBE;
	b->round_end = b->delivered;
	tt_bbr3_full_restart(b, rate);
	b->growth_acked = 0;
	b->growth_rounds = 0;
	tt_bbr3_steepen(b);
	b->mode = TT_BBR3_UP;
}

/* --- Losses ("Updating the Model Upon Packet Loss"). */

/* `IsInflightTooHigh()`; both are below 2^48. */
TT_INLINE bool tt_bbr3_is_too_high(const struct tt_bbr3 *b, u64 lost_bytes, u64 tx_in_flight_bytes)
{
	return lost_bytes << 16 > tx_in_flight_bytes * tt_bbr3_knob(b, TT_BBR3_LOSS_THRESH);
}

/* `NoteLoss()`, and the start of a loss episode if this is one. */
TT_INLINE void tt_bbr3_note_loss(struct tt_bbr3 *b, u64 now_us)
{
	if (b->anchored_us != now_us) {
		b->anchored_us = now_us;
		b->anchored_loss_round = b->anchored_round = false;
	}
	if (!b->in_recovery) {
		tt_bbr3_save_window(b);
		b->resume = TT_BBR3_RESUME_NOTHING;
		b->undo = b->short_term;
		b->undo_longterm = b->inflight_longterm;
		b->in_recovery = true;
	}
	if (!b->signals.loss_in_round) {
		b->signals.loss_in_round = true;
		b->signals.round_end = b->delivered;
		b->anchored_loss_round = true;
	}
}

/*
 * `InflightAtLoss()`: of what was in flight before the lost packets, as much as had been sent when
 * the threshold was crossed within them. With both terms over one denominator.
 */
TT_INLINE u64 tt_bbr3_inflight_at_loss(const struct tt_bbr3 *b, u64 size, u64 tx_in_flight, u64 lost)
{
	u64 before = tt_less(tx_in_flight, size), lost_before = tt_less(lost, size);
	u32 rest = tt_max(tt_less(TT_GAIN_UNIT, tt_bbr3_knob(b, TT_BBR3_LOSS_THRESH)), 1);

	return ((tt_less(before, lost_before) << 16) + rest / 2) / rest;
}

/* `HandleLostPacket()`, for all that an acknowledgement revealed, before it. */
TT_CHECKED_ONCE int tt_bbr3_on_lost(struct tt_bbr3 *b, const struct tt_bbr3_lost *lost)
{
	u64 tx_in_flight, since;

	if (!b || !lost)
		return 0;
	tx_in_flight = tt_bbr3_bytes(b, lost->tx_in_flight);
	since = tt_bbr3_bytes(b, lost->lost);
	tt_bbr3_note_loss(b, lost->now_us);
	b->signals.ranges += lost->new_range;
	if (!b->is_probe_sample || !tt_bbr3_is_too_high(b, since, tx_in_flight))
		return 0;
	/* `HandleInflightTooHigh()`: once per probe. */
	b->prev_probe_too_high = true;
	b->is_probe_sample = false;
	if (!lost->app_limited && !tt_bubble_contains(&b->bubble, lost->prior_delivered))
		b->inflight_longterm =
			tt_max(tt_bbr3_inflight_at_loss(b, tt_bbr3_bytes(b, lost->packets), tx_in_flight, since),
			       tt_gain(tt_bbr3_knob(b, TT_BBR3_BETA), tt_bbr3_target_inflight(b)));
	if (b->mode != TT_BBR3_UP)
		return 0;
	b->resume = TT_BBR3_RESUME_PROBE;
	b->anchored_round = true;
	tt_bbr3_start_down(b, lost->now_us);
	return 0;
}

/* Moves rounds that losses began to the acknowledgement that revealed them. */
TT_INLINE void tt_bbr3_settle_anchors(struct tt_bbr3 *b, u64 now_us)
{
	if (b->anchored_us == now_us && b->anchored_loss_round)
		b->signals.round_end = b->delivered;
	if (b->anchored_us == now_us && b->anchored_round)
		b->round_end = b->delivered;
	b->anchored_us = 0;
	b->anchored_loss_round = b->anchored_round = false;
}

/* `AdaptLowerBoundsFromCongestion()`, at the end of each loss round. */
TT_INLINE void tt_bbr3_adapt_short_term(struct tt_bbr3 *b)
{
	struct tt_bbr3_bounds *bounds = &b->short_term;
	u32 beta = tt_bbr3_knob(b, TT_BBR3_BETA);
	bool probes = b->mode == TT_BBR3_STARTUP || b->mode == TT_BBR3_REFILL || b->mode == TT_BBR3_UP;

	if (b->signals.loss_in_round && !probes) {
		if (bounds->bw_bytes_per_s == TT_BBR3_NONE)
			bounds->bw_bytes_per_s = tt_bbr3_max_bw(b);
		if (bounds->inflight_bytes == TT_BBR3_NONE)
			bounds->inflight_bytes = b->window_bytes;
		bounds->bw_bytes_per_s = tt_max(b->signals.bw_bytes_per_s, tt_gain(beta, bounds->bw_bytes_per_s));
		bounds->inflight_bytes = tt_max(b->signals.inflight_bytes, tt_gain(beta, bounds->inflight_bytes));
	}
	b->signals.loss_in_round = false;
}

/* `CheckStartupHighLoss()`. */
TT_INLINE void tt_bbr3_check_startup_loss(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	u32 ranges = b->signals.ranges;

	if (!b->signals.round_started)
		return;
	b->signals.ranges = 0;
	if (b->mode != TT_BBR3_STARTUP || !b->in_recovery || ranges < TT_BBR3_STARTUP_LOSS_RANGES || !ack->rate_us ||
	    !tt_bbr3_is_too_high(b, tt_bbr3_bytes(b, ack->lost), tt_bbr3_bytes(b, ack->tx_in_flight)))
		return;
	b->resume = TT_BBR3_RESUME_STARTUP;
	tt_bbr3_full_declare(b);
	b->inflight_longterm = tt_max(tt_bbr3_bdp(b, b->bw_bytes_per_s), b->signals.inflight_bytes);
}

/* `HandleSpuriousLossDetection()`. */
TT_INLINE void tt_bbr3_on_spurious_loss(struct tt_bbr3 *b)
{
	u8 resume = b->resume;

	tt_bbr3_restore_window(b);
	b->signals.loss_in_round = false;
	tt_bbr3_full_restart(b, 0);
	b->resume = TT_BBR3_RESUME_NOTHING;
	b->short_term.bw_bytes_per_s = tt_max(b->short_term.bw_bytes_per_s, b->undo.bw_bytes_per_s);
	b->short_term.inflight_bytes = tt_max(b->short_term.inflight_bytes, b->undo.inflight_bytes);
	b->inflight_longterm = tt_max(b->inflight_longterm, b->undo_longterm);
	b->undo.bw_bytes_per_s = b->undo.inflight_bytes = b->undo_longterm = 0;
	if (resume == TT_BBR3_RESUME_STARTUP && b->mode != TT_BBR3_STARTUP) {
		b->full_reached = false;
		if (b->mode != TT_BBR3_PROBE_RTT)
			b->mode = TT_BBR3_STARTUP;
	} else if (resume == TT_BBR3_RESUME_PROBE && b->mode != TT_BBR3_UP && b->mode != TT_BBR3_PROBE_RTT) {
		tt_bbr3_start_refill(b);
	}
}

/* --- The probe for bandwidth ("ProbeBW Algorithm Details"). */

/* `ProbeInflightLongtermUpward()`. */
TT_INLINE void tt_bbr3_grow_long_term(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	u64 packets;

	if (b->mode != TT_BBR3_UP || !ack->cwnd_limited || b->window_bytes < b->inflight_longterm)
		return; /* the bound is not what limits the flow */
	b->growth_acked += tt_bbr3_bytes(b, ack->acked);
	packets = b->growth_acked / tt_max(b->growth_per_packet, 1);
	b->growth_acked -= packets * b->growth_per_packet;
	b->inflight_longterm = tt_min(b->inflight_longterm + packets * b->mss_bytes, TT_BBR3_WINDOW_MAX);
	if (b->round_started)
		tt_bbr3_steepen(b);
}

/* `AdaptLongTermModel()`. Whether it changed the state. */
TT_CHECKED_ONCE int tt_bbr3_adapt_long_term(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	u64 tx_in_flight;

	if (!b || !ack)
		return false;
	tx_in_flight = tt_bbr3_bytes(b, ack->tx_in_flight);
	if (b->feedback == TT_BBR3_BEFORE_PROBE && b->round_started)
		b->feedback = TT_BBR3_TO_PROBE;
	if (b->feedback == TT_BBR3_AFTER_PROBE && b->round_started) {
		b->is_probe_sample = false;
		b->feedback = TT_BBR3_TO_NOTHING;
		if (tt_bbr3_is_in_probe_bw(b)) {
			if (ack->rate_us && !ack->app_limited)
				tt_bbr3_advance_max_bw(b);
			/* The cautious probe did no harm: probe again, and stay. */
			if (b->prev_probe_precautionary && !b->prev_probe_too_high) {
				tt_bbr3_start_refill(b);
				return true;
			}
		}
	}
	if (ack->rate_us && b->inflight_longterm != TT_BBR3_NONE &&
	    !tt_bbr3_is_too_high(b, tt_bbr3_bytes(b, ack->lost), tx_in_flight)) {
		b->inflight_longterm = tt_max(b->inflight_longterm, tx_in_flight);
		tt_bbr3_grow_long_term(b, ack);
	}
	return false;
}

/* `IsTimeToProbeBW()`, with `IsRenoCoexistenceProbeTime()`. */
TT_INLINE bool tt_bbr3_is_time_to_probe(const struct tt_bbr3 *b, u64 now_us)
{
	if (now_us > b->cycle_us + b->probe_wait_us || b->rounds_since_probe >= TT_BBR3_RENO_ROUNDS_MAX)
		return true;
	/* As many rounds as packets in flight, without a division. */
	return tt_bbr3_target_inflight(b) < tt_bbr3_bytes(b, b->rounds_since_probe + 1);
}

/* `IsTimeToCruise()`. */
TT_INLINE bool tt_bbr3_is_time_to_cruise(const struct tt_bbr3 *b, u64 inflight)
{
	return inflight <= tt_bbr3_inflight_with_headroom(b) &&
	       inflight <= tt_bbr3_quantise(b, tt_bbr3_bdp(b, tt_bbr3_max_bw(b)));
}

/* `IsTimeToGoDown()`. */
TT_INLINE bool tt_bbr3_is_time_to_go_down(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack, u64 rate)
{
	if (b->prev_probe_too_high && tt_bbr3_bytes(b, ack->inflight) >= b->inflight_longterm) {
		b->prev_probe_precautionary = true;
		return true;
	}
	if (ack->cwnd_limited && b->window_bytes >= b->inflight_longterm) {
		tt_bbr3_full_restart(b, rate); /* the bound limits the rate, not the path */
		return false;
	}
	return b->full_now;
}

/* `UpdateProbeBWCyclePhase()`. */
TT_CHECKED_ONCE int tt_bbr3_update_cycle(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack, u64 rate)
{
	u8 mode;

	if (!b || !ack || !b->full_reached || tt_bbr3_adapt_long_term(b, ack))
		return 0;
	mode = b->mode;
	if ((mode == TT_BBR3_DOWN || mode == TT_BBR3_CRUISE) && tt_bbr3_is_time_to_probe(b, ack->now_us)) {
		tt_bbr3_start_refill(b);
	} else if (mode == TT_BBR3_DOWN && tt_bbr3_is_time_to_cruise(b, tt_bbr3_bytes(b, ack->inflight))) {
		b->mode = TT_BBR3_CRUISE;
	} else if (mode == TT_BBR3_REFILL && b->round_started) {
		b->is_probe_sample = true;
		tt_bbr3_start_up(b, rate);
	} else if (mode == TT_BBR3_UP && tt_bbr3_is_time_to_go_down(b, ack, rate)) {
		b->prev_probe_too_high = false; /* no high loss (yet) */
		tt_bbr3_start_down(b, ack->now_us);
	}
	return 0;
}

#endif
