/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BBR version 1: crates/cc/src/bbr/v1.rs in C, which says why each thing is as it is, in the order
 * of Linux's `net/ipv4/tcp_bbr.c` (names of its functions are cited). All of it counts in integers
 * there, too, so both agree to the packet.
 *
 * The window is the socket's: the caller sets it before each call, since the kernel changes it
 * after a timeout, and applies it afterwards.
 */
#ifndef TRIMTAB_BBR_H
#define TRIMTAB_BBR_H

#include "bbr_window.h"

/* After the knobs were written: what follows from them. Those out of range are what they may be
 * at most, so that every product stays bounded. */
TT_INLINE void tt_bbr_on_knobs(struct tt_bbr *b)
{
	struct tt_bbr_knobs *t = &b->tuning;
	u32 startup = tt_max(t->knobs[TT_BBR_STARTUP_GAIN], TT_GAIN_UNIT);

	b->target.packets = 0;

	/* 16 is more than any gain's range has. */
#pragma unroll
	for (int i = 0; i < TT_BBR_KNOBS_COUNT; i++)
		if (i != TT_BBR_BW_WINDOW && i != TT_BBR_PROBE_RTT_INTERVAL && i != TT_BBR_PROBE_RTT_DURATION)
			t->knobs[i] = tt_min(t->knobs[i], 16 * TT_GAIN_UNIT);
	t->yield_gain = tt_less(2 * TT_GAIN_UNIT, t->knobs[TT_BBR_PROBE_GAIN]);
	/* Linux rounds 1000/2885 down to 88/256; the same rounding makes the default exact. */
	t->drain_gain = 256 * TT_GAIN_UNIT / startup << 8;
	t->pacing_share = tt_less(TT_GAIN_UNIT, t->knobs[TT_BBR_PACING_MARGIN]);
}

/* --- Pacing. */

/*
 * A little below gain times bandwidth, and never so slow that the sender would stop
 * (`bbr_bw_to_pacing_rate`; the floor of one packet per second is ours).
 */
TT_INLINE u64 tt_bbr_paced(const struct tt_bbr *b, u64 bw, u32 gain)
{
	return tt_max(tt_gain(b->tuning.pacing_share, tt_gain(gain, bw)), b->mss_bytes);
}

/* Paces at that gain, but before the pipe was full never slower than before (`bbr_set_pacing_rate`). */
TT_INLINE void tt_bbr_pace(struct tt_bbr *b, u32 gain)
{
	u64 rate = tt_bbr_paced(b, tt_bbr_bw(b), gain);

	if (b->full_pipe || rate > b->pacing_bytes_per_s)
		b->pacing_bytes_per_s = rate;
}

TT_INLINE void tt_bbr_init_pacing(struct tt_bbr *b, u64 rtt_us)
{
	b->pacing_bytes_per_s =
		tt_bbr_paced(b, tt_rate_of(b->window, b->mss_bytes, rtt_us), b->tuning.knobs[TT_BBR_STARTUP_GAIN]);
}

/* --- The beginning. The state is all zero but the knobs, the window, the packet's size and the next draw. */

/* A new connection, or one that goes on with another algorithm's window: its round-trip time, 0 when none is known. */
TT_INLINE void tt_bbr_init(struct tt_bbr *b, u32 srtt_us)
{
	b->window = tt_max(b->window, 1);
	b->seen_rtt = srtt_us != 0;
	tt_bbr_init_pacing(b, srtt_us ? srtt_us : TT_BBR_NOMINAL_RTT_US);
}

/* --- The gain cycle. */

/*
 * ProbeBW at a random phase of its cycle other than the draining one, so that flows that start together do not probe
 * together (`bbr_reset_probe_bw_mode`).
 */
TT_INLINE void tt_bbr_enter_probe_bw(struct tt_bbr *b, u64 now_us)
{
	b->mode = TT_BBR_PROBE_BW;
	b->phase = b->draw == TT_BBR_PROBE ? TT_BBR_PROBE : b->draw + 1;
	b->phase_us = now_us;
	b->drawn = true;
}

/* Packets that will be in the network when the pacer's next packet leaves (`bbr_packets_in_net_at_edt`). */
TT_INLINE u64 tt_bbr_inflight_at_departure(const struct tt_bbr *b, const struct tt_bbr_ack *ack, u32 inflight)
{
	u64 bw = tt_bbr_bw(b), delivered = 0, departing = 0;

	if (ack->wait_ns) {
		/* rate * ns / 10^9 without overflow, and exact: 2^37 * 10^6 fits. */
		u64 wait_ns = tt_min(ack->wait_ns, TT_RTT_MAX_US * 1000);
		u64 thousandths = bw * (wait_ns / 1000000);

		delivered = thousandths / 1000 + (thousandths % 1000 * 1000000 + bw * (wait_ns % 1000000)) / 1000000000;
		delivered /= b->mss_bytes;
	}
	if (tt_bbr_pacing_gain(b) > TT_GAIN_UNIT)
		departing = tt_bbr_send_quantum(b);
	return tt_less(inflight + departing, delivered);
}

/* The next phase of the gain cycle, when it is time (`bbr_is_next_cycle_phase`). */
TT_CHECKED_ONCE int tt_bbr_update_cycle(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	u32 gain;
	bool next;
	u64 bw;

	if (!b || !ack || b->mode != TT_BBR_PROBE_BW)
		return 0;
	gain = tt_bbr_pacing_gain(b);
	bw = b->max_bw.best[0];
	next = b->min_rtt_us && tt_less(ack->now_us, b->phase_us) > b->min_rtt_us;
	if (gain > TT_GAIN_UNIT)
		/* Until the probe's data is in flight, or does not fit. */
		next = next && (ack->losses || tt_bbr_inflight_at_departure(b, ack, ack->prior_inflight) >=
						       tt_bbr_inflight_target(b, bw, gain));
	else if (gain < TT_GAIN_UNIT)
		/* No longer than it takes to drain the queue. */
		next = next || tt_bbr_inflight_at_departure(b, ack, ack->prior_inflight) <=
				       tt_bbr_inflight_target(b, bw, TT_GAIN_UNIT);
	if (next) {
		b->phase = (b->phase + 1) % TT_BBR_PHASES;
		b->phase_us = ack->now_us;
	}
	return 0;
}

/* --- The steps of `bbr_update_model`, in its order. */

TT_INLINE void tt_bbr_police(struct tt_bbr *b, const struct tt_policed *seen)
{
	if (tt_policer_update(&b->policer, seen))
		tt_bbr_enter_probe_bw(b, seen->now_us);
}

/* Rounds, the policer and the bandwidth filter (`bbr_update_bw`), and aggregation. */
TT_CHECKED_ONCE int tt_bbr_update_bandwidth(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	u64 rate;

	if (!b || !ack)
		return 0;
	b->app_limited = ack->app_limited | tt_bubble_contains(&b->bubble, ack->prior_delivered);
	b->round_started = false;
	if (!ack->rate_us)
		return 0;
	tt_round_update(b, ack->prior_delivered, ack->delivered);
	if (b->round_started)
		b->conserve = false;
	/* Without a loss it has nothing to do. */
	if (b->policer.state != TT_POLICER_WAITING || ack->losses) {
		struct tt_policed seen = {
			.now_us = ack->now_us,
			.delivered = ack->delivered,
			.lost = ack->lost,
			.mss_bytes = b->mss_bytes,
			.losses = ack->losses != 0,
			.app_limited = b->app_limited,
			.round_started = b->round_started,
			.in_probe_bw = b->mode == TT_BBR_PROBE_BW,
		};

		tt_bbr_police(b, &seen);
	}
	/* A slow application says little about the path, unless it beats the estimate. */
	rate = tt_rate_of(ack->rate_packets, b->mss_bytes, ack->rate_us);
	if (!b->app_limited || rate >= b->max_bw.best[0])
		tt_rounds_max_update(&b->max_bw, b->tuning.knobs[TT_BBR_BW_WINDOW], b->round, rate);
	if (ack->acked)
		tt_aggregation_update(&b->aggregation, ack, tt_bbr_bw(b), b->window, b->round_started);
	return 0;
}

/* `bbr_check_full_bw_reached` and `bbr_check_drain`. */
TT_CHECKED_ONCE int tt_bbr_check_drain(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	if (!b || !ack)
		return 0;
	if (b->round_started && !b->app_limited)
		tt_full_pipe_on_round(b, b->max_bw.best[0]);
	/* A search over another algorithm's rate began since there was no queue. Where there is one, it is over. */
	if (b->searches && b->mode == TT_BBR_STARTUP && (u64)ack->rtt_us * 4 > (u64)b->min_rtt_us * 5)
		b->full_pipe = true;
	if (b->mode == TT_BBR_STARTUP && b->full_pipe)
		b->mode = TT_BBR_DRAIN;
	if (b->mode == TT_BBR_DRAIN &&
	    tt_bbr_inflight_at_departure(b, ack, ack->inflight) <=
		    tt_bbr_inflight_target(b, b->max_bw.best[0], TT_GAIN_UNIT))
		tt_bbr_enter_probe_bw(b, ack->now_us);
	return 0;
}

/* `bbr_check_probe_rtt_done`. */
TT_INLINE void tt_bbr_check_probe_rtt_done(struct tt_bbr *b, u64 now_us)
{
	if (!b->ends_at_us || now_us <= b->ends_at_us)
		return;
	b->min_rtt_at_us = now_us;
	b->window = tt_max(b->window, b->prior_window);
	if (b->full_pipe)
		tt_bbr_enter_probe_bw(b, now_us);
	else
		b->mode = TT_BBR_STARTUP;
}

TT_INLINE void tt_bbr_enter_probe_rtt(struct tt_bbr *b)
{
	b->mode = TT_BBR_PROBE_RTT;
	b->ends_at_us = 0;
	b->round_done = false;
}

TT_INLINE void tt_bbr_update_probe_rtt(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	tt_bubble_extend(&b->bubble, ack->delivered, ack->inflight);
	if (!b->ends_at_us) {
		if (ack->inflight <= b->tuning.knobs[TT_BBR_PROBE_RTT_CWND]) {
			b->ends_at_us = ack->now_us + b->tuning.knobs[TT_BBR_PROBE_RTT_DURATION];
			b->round_end = ack->delivered;
		}
		return;
	}
	b->round_done |= b->round_started;
	if (b->round_done)
		tt_bbr_check_probe_rtt_done(b, ack->now_us);
}

/* The least round-trip time, and ProbeRTT when it is too old (`bbr_update_min_rtt`). */
TT_CHECKED_ONCE int tt_bbr_update_min_rtt(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	bool expired;
	u32 rtt_us;

	if (!b || !ack)
		return 0;
	expired = ack->now_us - b->min_rtt_at_us > b->tuning.knobs[TT_BBR_PROBE_RTT_INTERVAL];
	rtt_us = tt_min(ack->rtt_us, TT_RTT_MAX_US);
	if (rtt_us && (!b->min_rtt_us || rtt_us <= b->min_rtt_us || (expired && !ack->maybe_delayed))) {
		b->min_rtt_us = rtt_us;
		b->min_rtt_at_us = ack->now_us;
	}
	if (expired && !b->idle_restart && b->mode != TT_BBR_PROBE_RTT) {
		/* In this order: a larger window that was saved before stays. */
		tt_bbr_enter_probe_rtt(b);
		tt_bbr_save_window(b);
	}
	if (b->mode == TT_BBR_PROBE_RTT)
		tt_bbr_update_probe_rtt(b, ack);
	if (ack->acked)
		b->idle_restart = false;
	return 0;
}

/* --- Events. */

/* `bbr_main`. */
TT_INLINE void tt_bbr_on_ack(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	b->mss_bytes = tt_max(ack->mss_bytes, 1);
	if (!b->min_rtt_at_us)
		b->min_rtt_at_us = ack->now_us;
	tt_bbr_update_bandwidth(b, ack);
	if (b->mode == TT_BBR_PROBE_BW) {
		/* Most are in the middle of a phase at the estimated bandwidth. */
		if (b->phase <= TT_BBR_YIELD || tt_less(ack->now_us, b->phase_us) > b->min_rtt_us)
			tt_bbr_update_cycle(b, ack);
	} else if (b->mode != TT_BBR_PROBE_RTT || !b->full_pipe) {
		tt_bbr_check_drain(b, ack);
	}
	tt_bbr_update_min_rtt(b, ack);
	if (!b->seen_rtt && ack->srtt_us) {
		b->seen_rtt = true;
		tt_bbr_init_pacing(b, ack->srtt_us);
	}
	tt_bbr_pace(b, tt_bbr_pacing_gain(b));
	tt_bbr_set_window(b, ack);
}

/* A recovery begins (`bbr_ssthresh`). */
TT_INLINE void tt_bbr_on_loss(struct tt_bbr *b) { tt_bbr_save_window(b); }

/*
 * A retransmission timeout (`bbr_set_state`), after tt_bbr_on_loss(): so much is left in flight, so
 * much was delivered and lost since the connection began.
 */
TT_INLINE void tt_bbr_on_timeout(struct tt_bbr *b, u64 now_us, u32 inflight, u32 delivered, u32 lost)
{
	struct tt_policed seen = {
		.now_us = now_us,
		.delivered = delivered,
		.lost = lost,
		.mss_bytes = tt_max(b->mss_bytes, 1),
		.losses = true,
		.round_started = true, /* a timeout counts as the end of a round */
		.in_probe_bw = b->mode == TT_BBR_PROBE_BW,
	};

	b->recovery = TT_BBR_TIMEOUT;
	b->full_bw_bytes_per_s = 0;
	b->round_started = true;
	tt_bbr_police(b, &seen);
	b->window = inflight + 1;
}

/* The losses were none (`bbr_undo_cwnd`): plateaus seen in them count for nothing. */
TT_INLINE void tt_bbr_on_spurious_loss(struct tt_bbr *b)
{
	b->full_bw_bytes_per_s = 0;
	b->plateau = 0;
	tt_policer_reset(&b->policer);
}

/* Sending resumes after the application had nothing to send (`bbr_cwnd_event`, `CA_EVENT_TX_START`). */
TT_INLINE void tt_bbr_on_idle(struct tt_bbr *b, u64 now_us)
{
	b->idle_restart = true;
	tt_aggregation_restart(&b->aggregation, now_us);
	if (b->mode == TT_BBR_PROBE_BW)
		tt_bbr_pace(b, TT_GAIN_UNIT); /* no reason to send faster than the path: the pipe is empty */
	else if (b->mode == TT_BBR_PROBE_RTT)
		tt_bbr_check_probe_rtt_done(b, now_us);
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_bbr_on_first_sent(struct tt_bbr *b, u64 now_us, bool app_limited)
{
	if (!b->min_rtt_at_us)
		b->min_rtt_at_us = now_us;
	if (app_limited)
		tt_bbr_on_idle(b, now_us);
}

/* As trimtab_cc::Phase. */
TT_INLINE u32 tt_bbr_phase(const struct tt_bbr *b)
{
	if (b->mode == TT_BBR_PROBE_RTT)
		return TT_PHASE_PROBE_RTT;
	if (b->conserve || b->recovery == TT_BBR_TIMEOUT)
		return TT_PHASE_RECOVERY;
	if (b->mode == TT_BBR_STARTUP)
		return TT_PHASE_SLOW_START;
	return b->mode == TT_BBR_DRAIN ? TT_PHASE_DRAIN : TT_PHASE_STEADY;
}

#endif
