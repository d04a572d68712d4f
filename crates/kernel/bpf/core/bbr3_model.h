/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BBRv3's model of the path, and the window that follows from it: crates/cc/src/bbr/v3/path.rs,
 * aggregation.rs and window.rs, which say why. Names of the draft's pseudocode
 * (draft-ietf-ccwg-bbr, commit 4ce5e87) are cited.
 */
#ifndef TRIMTAB_BBR3_MODEL_H
#define TRIMTAB_BBR3_MODEL_H

#include "bbr3_state.h"

/* `BBR.MinPipeCwnd`. */
#define TT_BBR3_MIN_PIPE_PACKETS 4
/* A send quantum is what leaves in 1 ms, and no more than an offloaded packet holds ("Send Quantum"). */
#define TT_BBR3_QUANTUM_US 1000
#define TT_BBR3_QUANTUM_MAX 65536
/* `ExtraAckedFilterLen`, in rounds, and in Startup. */
#define TT_BBR3_EXTRA_ROUNDS 10
#define TT_BBR3_EXTRA_STARTUP_ROUNDS 1

TT_INLINE u32 tt_bbr3_knob(const struct tt_bbr3 *b, enum tt_bbr3_knob knob) { return b->tuning.knobs[knob]; }

TT_INLINE u64 tt_bbr3_bytes(const struct tt_bbr3 *b, u32 packets) { return (u64)packets * b->mss_bytes; }

/* --- Bandwidth (`UpdateMaxBw()`, `AdvanceMaxBwFilter()`). */

TT_INLINE u64 tt_bbr3_max_bw(const struct tt_bbr3 *b) { return tt_max(b->max_bw[0], b->max_bw[1]); }

TT_INLINE void tt_bbr3_update_max_bw(struct tt_bbr3 *b, u64 rate, bool app_limited)
{
	if (!app_limited || rate >= tt_bbr3_max_bw(b))
		b->max_bw[1] = tt_max(b->max_bw[1], rate);
}

TT_INLINE void tt_bbr3_advance_max_bw(struct tt_bbr3 *b)
{
	if (!b->max_bw[1])
		return;
	b->max_bw[0] = b->max_bw[1];
	b->max_bw[1] = 0;
}

/* --- Round-trip time. */

TT_INLINE void tt_bbr3_min_rtt_start(struct tt_bbr3_min_rtt *m, u64 now_us)
{
	if (m->started)
		return;
	m->started = true;
	m->at_us = m->recent_at_us = now_us;
}

/* `UpdateMinRTT()`. Whether ProbeRTT is due. */
TT_INLINE bool tt_bbr3_update_min_rtt(struct tt_bbr3_min_rtt *m, u64 now_us, u32 rtt_us, u64 interval_us)
{
	bool due = now_us > m->recent_at_us + interval_us;
	bool expired = now_us > m->at_us + 2 * interval_us;

	if (rtt_us && (due || !m->recent_us || rtt_us < m->recent_us)) {
		m->recent_us = rtt_us;
		m->recent_at_us = now_us;
	}
	if (m->recent_us && (expired || !m->value_us || m->recent_us < m->value_us)) {
		m->value_us = m->recent_us;
		m->at_us = m->recent_at_us;
	}
	return due;
}

/* --- The full pipe: crates/cc/src/bbr/full_bw.rs. */

/* `ResetFullBW()`, with the rate from which growth counts. */
TT_INLINE void tt_bbr3_full_restart(struct tt_bbr3 *b, u64 baseline)
{
	b->full_bw_bytes_per_s = baseline;
	b->plateau = 0;
	b->full_now = false;
}

TT_INLINE void tt_bbr3_full_declare(struct tt_bbr3 *b) { b->full_now = b->full_reached = true; }

/* `CheckFullBWReached()`, at the start of a round that the application did not limit. */
TT_INLINE void tt_bbr3_full_on_round(struct tt_bbr3 *b, u64 rate)
{
	if (b->full_now)
		return;
	if (rate >= tt_gain(TT_BBR_GROWTH, b->full_bw_bytes_per_s)) {
		tt_bbr3_full_restart(b, rate);
		return;
	}
	b->plateau++;
	if (b->plateau >= TT_BBR_PLATEAU_ROUNDS)
		tt_bbr3_full_declare(b);
}

/* --- Aggregation (`UpdateACKAggregation()`). */

TT_CHECKED_ONCE int tt_bbr3_update_aggregation(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	u64 expected, extra;

	if (!b || !ack)
		return 0;
	expected = tt_rate_times_us(b->bw_bytes_per_s, tt_less(ack->now_us, b->interval_us));
	b->interval_bytes += tt_bbr3_bytes(b, ack->acked_before);
	if (b->interval_bytes <= expected) {
		b->interval_bytes = 0;
		b->interval_us = ack->now_us;
		expected = 0;
	}
	b->interval_bytes += tt_bbr3_bytes(b, ack->acked - ack->acked_before);
	extra = tt_min(tt_less(b->interval_bytes, expected), b->window_bytes);
	tt_rounds_max_update(&b->extra_acked,
			     b->full_reached ? TT_BBR3_EXTRA_ROUNDS : TT_BBR3_EXTRA_STARTUP_ROUNDS, b->round, extra);
	return 0;
}

/* --- How much may be in flight ("Congestion Window"). */

TT_INLINE u64 tt_bbr3_min_pipe(const struct tt_bbr3 *b) { return tt_bbr3_bytes(b, TT_BBR3_MIN_PIPE_PACKETS); }

/* `BDPMultiple()`. */
TT_INLINE u64 tt_bbr3_bdp(const struct tt_bbr3 *b, u64 bw)
{
	if (!b->min_rtt.value_us)
		return tt_bbr3_bytes(b, b->initial_packets);
	return tt_rate_times_us(bw, b->min_rtt.value_us);
}

/* `TargetInflight()`. */
TT_INLINE u64 tt_bbr3_target_inflight(const struct tt_bbr3 *b)
{
	return tt_min(tt_bbr3_bdp(b, b->bw_bytes_per_s), b->window_bytes);
}

/* `QuantizationBudget()`. */
TT_INLINE u64 tt_bbr3_quantise(const struct tt_bbr3 *b, u64 inflight)
{
	u64 quantum = tt_max(tt_min(tt_rate_times_us(b->pacing_bytes_per_s, TT_BBR3_QUANTUM_US), TT_BBR3_QUANTUM_MAX),
			     tt_bbr3_bytes(b, 2));
	u64 budget = tt_gain(tt_bbr3_knob(b, TT_BBR3_QUANTUM_BUDGET), quantum);

	inflight = tt_max(tt_max(inflight, budget), tt_bbr3_min_pipe(b));
	return b->mode == TT_BBR3_UP ? inflight + tt_bbr3_bytes(b, 2) : inflight;
}

/* `InflightWithHeadroom()`. */
TT_INLINE u64 tt_bbr3_inflight_with_headroom(const struct tt_bbr3 *b)
{
	u64 bound = b->inflight_longterm;

	if (bound == TT_BBR3_NONE)
		return TT_BBR3_NONE;
	bound = tt_less(bound, tt_max(tt_gain(tt_bbr3_knob(b, TT_BBR3_HEADROOM), bound), b->mss_bytes));
	return tt_max(bound, tt_bbr3_min_pipe(b));
}

/* `ProbeRTTCwnd()`. */
TT_INLINE u64 tt_bbr3_probe_rtt_window(const struct tt_bbr3 *b)
{
	u64 bdp = tt_bbr3_bdp(b, b->bw_bytes_per_s);

	return tt_max(tt_gain(tt_bbr3_knob(b, TT_BBR3_PROBE_RTT_CWND_GAIN), bdp), tt_bbr3_min_pipe(b));
}

/* `BoundCwndForModel()`. */
TT_INLINE u64 tt_bbr3_model_bound(const struct tt_bbr3 *b)
{
	u64 bound = TT_BBR3_NONE;

	if (b->mode == TT_BBR3_DOWN || b->mode == TT_BBR3_REFILL || b->mode == TT_BBR3_UP)
		bound = b->inflight_longterm;
	else if (b->mode == TT_BBR3_CRUISE || b->mode == TT_BBR3_PROBE_RTT)
		bound = tt_bbr3_inflight_with_headroom(b);
	return tt_max(tt_min(bound, b->short_term.inflight_bytes), tt_bbr3_min_pipe(b));
}

/* `SaveCwnd()`. */
TT_INLINE void tt_bbr3_save_window(struct tt_bbr3 *b)
{
	bool temporary = b->in_recovery || b->mode == TT_BBR3_PROBE_RTT;

	b->prior_window_bytes = temporary ? tt_max(b->prior_window_bytes, b->window_bytes) : b->window_bytes;
}

/* `RestoreCwnd()`. */
TT_INLINE void tt_bbr3_restore_window(struct tt_bbr3 *b)
{
	b->window_bytes = tt_max(b->window_bytes, b->prior_window_bytes);
}

/* What the window grows to: the draft's table "Summary of Control Behavior". */
TT_INLINE u64 tt_bbr3_max_inflight(const struct tt_bbr3 *b)
{
	u64 bdp = tt_bbr3_bdp(b, b->bw_bytes_per_s);
	u32 gain = tt_bbr3_knob(b, TT_BBR3_CWND_GAIN);

	if (b->mode == TT_BBR3_UP)
		gain = tt_bbr3_knob(b, TT_BBR3_PROBE_UP_CWND_GAIN);
	else if (b->mode == TT_BBR3_PROBE_RTT)
		gain = tt_bbr3_knob(b, TT_BBR3_PROBE_RTT_CWND_GAIN);
	return tt_bbr3_quantise(b, tt_gain(gain, bdp) + b->extra_acked.best[0]);
}

/* `SetCwnd()`. */
TT_CHECKED_ONCE int tt_bbr3_set_window(struct tt_bbr3 *b, const struct tt_bbr3_ack *ack)
{
	u64 acked, most, window;

	if (!b || !ack)
		return 0;
	acked = tt_bbr3_bytes(b, ack->acked);
	most = tt_bbr3_max_inflight(b);
	window = b->window_bytes;
	if (b->full_reached)
		window = tt_min(window + acked, most);
	else if (window < most || ack->delivered < b->initial_packets)
		window += acked;
	window = tt_max(window, tt_bbr3_min_pipe(b));
	if (b->mode == TT_BBR3_PROBE_RTT)
		window = tt_min(window, tt_bbr3_probe_rtt_window(b));
	window = tt_max(tt_min(window, tt_bbr3_model_bound(b)), b->mss_bytes);
	b->window_bytes = tt_min(window, TT_BBR3_WINDOW_MAX);
	return 0;
}

/* The window with what congestion marks leave of it. */
TT_INLINE u64 tt_bbr3_window(const struct tt_bbr3 *b)
{
	return tt_min(b->window_bytes, tt_ceiling_bytes(&b->ceiling));
}

/* --- Pacing. */

/* The floor of one packet per second is ours. */
TT_INLINE u64 tt_bbr3_startup_rate(const struct tt_bbr3 *b, u64 bw)
{
	return tt_max(tt_gain(tt_bbr3_knob(b, TT_BBR3_STARTUP_GAIN), bw), b->mss_bytes);
}

/* `SetPacingRateWithGain()`: before the pipe was full never slower than before. */
TT_INLINE void tt_bbr3_pace(struct tt_bbr3 *b, u32 gain)
{
	u64 rate = tt_max(tt_gain(b->tuning.pacing_share, tt_gain(gain, b->bw_bytes_per_s)), b->mss_bytes);

	if (b->full_reached || rate > b->pacing_bytes_per_s)
		b->pacing_bytes_per_s = rate;
}

/* The draft's table "Summary of Control Behavior". */
TT_INLINE u32 tt_bbr3_pacing_gain(const struct tt_bbr3 *b)
{
	if (b->mode == TT_BBR3_STARTUP)
		return tt_bbr3_knob(b, TT_BBR3_STARTUP_GAIN);
	if (b->mode == TT_BBR3_DRAIN)
		return tt_bbr3_knob(b, TT_BBR3_DRAIN_GAIN);
	if (b->mode == TT_BBR3_DOWN)
		return tt_bbr3_knob(b, TT_BBR3_PROBE_DOWN_GAIN);
	return b->mode == TT_BBR3_UP ? tt_bbr3_knob(b, TT_BBR3_PROBE_UP_GAIN) : TT_GAIN_UNIT;
}

#endif
