/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* BBR's window: what the path holds, allowances, and what loss recovery does to it; crates/cc/src/bbr/v1/window.rs. */
#ifndef TRIMTAB_BBR_WINDOW_H
#define TRIMTAB_BBR_WINDOW_H

#include "bbr_policer.h"

/* The window never ends an acknowledgement below this (`bbr_cwnd_min_target`), but in recovery and ProbeRTT. */
#define TT_BBR_PACKETS_MIN 4
/* Rates below 1.2 Mbit/s send single packets (`bbr_min_tso_rate`). */
#define TT_BBR_LOW_RATE 150000
/* A send quantum is what leaves in 1/1024 s (`sk_pacing_shift`)... */
#define TT_BBR_QUANTUM_SHIFT 10
/* ...but no more than a TSO packet holds (`GSO_MAX_SIZE - 1 - MAX_TCP_HEADER`), nor than 127 packets. */
#define TT_BBR_QUANTUM_MAX (65536 - 1 - 320)
#define TT_BBR_QUANTUM_PACKETS_MAX 127
/* The allowance for aggregation is at most what arrives in this part of a second (`bbr_extra_acked_max_us`). */
#define TT_BBR_EXTRA_ACKED_PART 10

/* The bandwidth to send at: the policed rate where a policer was found, else the filter's maximum (`bbr_bw`). */
TT_INLINE u64 tt_bbr_bw(const struct tt_bbr *b)
{
	return b->policer.state == TT_POLICER_USING ? b->policer.rate_bytes_per_s : b->max_bw.best[0];
}

/* `bbr_update_gains`. */
TT_INLINE u32 tt_bbr_pacing_gain(const struct tt_bbr *b)
{
	if (b->mode == TT_BBR_STARTUP)
		return b->tuning.knobs[TT_BBR_STARTUP_GAIN];
	if (b->mode == TT_BBR_DRAIN)
		return b->tuning.drain_gain;
	if (b->mode == TT_BBR_PROBE_RTT || b->policer.state == TT_POLICER_USING)
		return TT_GAIN_UNIT;
	if (b->phase == TT_BBR_PROBE)
		return b->tuning.knobs[TT_BBR_PROBE_GAIN];
	return b->phase == TT_BBR_YIELD ? b->tuning.yield_gain : TT_GAIN_UNIT;
}

/* `bbr_update_gains`. */
TT_INLINE u32 tt_bbr_cwnd_gain(const struct tt_bbr *b)
{
	if (b->mode == TT_BBR_PROBE_RTT)
		return TT_GAIN_UNIT;
	return b->tuning.knobs[b->mode == TT_BBR_PROBE_BW ? TT_BBR_CWND_GAIN : TT_BBR_STARTUP_GAIN];
}

/* Packets of bandwidth times least round-trip time times gain, rounded up (`bbr_bdp`). */
TT_INLINE u64 tt_bbr_bdp(const struct tt_bbr *b, u64 bw, u32 gain)
{
	if (!b->min_rtt_us)
		return TT_BBR_INITIAL_PACKETS;
	return (tt_gain(gain, tt_rate_times_us(bw, b->min_rtt_us)) + b->mss_bytes - 1) / b->mss_bytes;
}

/* Packets that a sender with segmentation offload hands over at once (`bbr_tso_segs_goal`). */
TT_INLINE u32 tt_bbr_send_quantum(const struct tt_bbr *b)
{
	u32 least = b->pacing_bytes_per_s < TT_BBR_LOW_RATE ? 1 : 2;
	u32 bytes = tt_min(b->pacing_bytes_per_s >> TT_BBR_QUANTUM_SHIFT, TT_BBR_QUANTUM_MAX);

	return tt_min(tt_max(bytes / b->mss_bytes, least), TT_BBR_QUANTUM_PACKETS_MAX);
}

/*
 * To so many packets and bytes adds what batching in the end hosts holds back, rounds up to an even
 * number of packets, and adds two for the probe (`bbr_quantization_budget`).
 */
TT_INLINE u64 tt_bbr_quantise(const struct tt_bbr *b, u64 packets, u64 bytes)
{
	u64 pair = 2 * (u64)b->mss_bytes;
	u64 budget = tt_gain(b->tuning.knobs[TT_BBR_QUANTUM_BUDGET], (u64)tt_bbr_send_quantum(b) * b->mss_bytes);
	u64 even = 2 * ((packets * b->mss_bytes + bytes + budget + pair - 1) / pair);

	return even + 2 * (b->mode == TT_BBR_PROBE_BW && b->phase == TT_BBR_PROBE);
}

/* Packets to have in flight for that bandwidth and gain (`bbr_inflight`). */
TT_INLINE u64 tt_bbr_inflight_target(const struct tt_bbr *b, u64 bw, u32 gain)
{
	return tt_bbr_quantise(b, tt_bbr_bdp(b, bw, gain), 0);
}

/* The allowance for aggregated acknowledgements, in bytes (`bbr_ack_aggregation_cwnd`). */
TT_INLINE u64 tt_bbr_allowance(const struct tt_bbr *b)
{
	u64 extra = (u64)tt_aggregation_extra(&b->aggregation) * b->mss_bytes;
	u64 most;

	if (!b->full_pipe)
		return 0;
	most = tt_bbr_bw(b) / TT_BBR_EXTRA_ACKED_PART;
	extra = tt_gain(b->tuning.knobs[TT_BBR_EXTRA_ACKED_GAIN], extra);
	/* Rounded down to whole packets only where it counts. */
	return extra <= most - most % b->mss_bytes ? extra : most - most % b->mss_bytes;
}

/* Keeps the window for when the reason to cut it is over (`bbr_save_cwnd`). */
TT_INLINE void tt_bbr_save_window(struct tt_bbr *b)
{
	bool temporary = b->recovery != TT_BBR_OPEN || b->mode == TT_BBR_PROBE_RTT;

	b->prior_window = temporary ? tt_max(b->prior_window, b->window) : b->window;
}

/* Packets that the window grows to. */
TT_INLINE u32 tt_bbr_target(struct tt_bbr *b)
{
	u64 bw = tt_bbr_bw(b);
	u32 gain = tt_bbr_cwnd_gain(b), extra = tt_aggregation_extra(&b->aggregation);
	bool probes = b->mode == TT_BBR_PROBE_BW && b->phase == TT_BBR_PROBE;
	struct tt_bbr_target *t = &b->target;

	if (t->packets && t->bw == bw && t->pacing_bytes_per_s == b->pacing_bytes_per_s && t->gain == gain &&
	    t->extra == extra && t->min_rtt_us == b->min_rtt_us && t->mss_bytes == b->mss_bytes &&
	    t->full_pipe == b->full_pipe && t->probes == probes)
		return t->packets;
	t->bw = bw;
	t->pacing_bytes_per_s = b->pacing_bytes_per_s;
	t->gain = gain;
	t->extra = extra;
	t->min_rtt_us = b->min_rtt_us;
	t->mss_bytes = b->mss_bytes;
	t->full_pipe = b->full_pipe;
	t->probes = probes;
	/* No window is so large; and it is at least two packets, or none with a budget and a bandwidth of nothing. */
	t->packets = tt_min(tt_bbr_quantise(b, tt_bbr_bdp(b, bw, gain), tt_bbr_allowance(b)), 0xffffffff);
	return t->packets;
}

/* Grows towards the target, or, once the pipe was full, cuts to it. */
TT_INLINE u32 tt_bbr_grow(struct tt_bbr *b, u32 window, const struct tt_bbr_ack *ack)
{
	u32 target = tt_bbr_target(b);

	if (b->full_pipe)
		window = tt_min(window + ack->acked, target);
	else if (window < target || ack->delivered < TT_BBR_INITIAL_PACKETS)
		window += ack->acked;
	return tt_max(window, TT_BBR_PACKETS_MIN);
}

/*
 * In the first round of recovery one packet leaves for each that arrived; later rounds grow again,
 * and the end of recovery restores the window from before it
 * (`bbr_set_cwnd_to_recover_or_restore`). Whether the window is final.
 */
TT_INLINE bool tt_bbr_recover_or_restore(struct tt_bbr *b, u32 *window, const struct tt_bbr_ack *ack)
{
	u8 before = b->recovery;
	u32 conserved = ack->inflight + ack->acked;

	*window = tt_max(tt_less(b->window, ack->losses), 1);
	b->recovery = ack->recovery;
	if (ack->recovery == TT_BBR_REPAIRING && before != TT_BBR_REPAIRING) {
		b->conserve = true;
		b->round_end = ack->delivered;
		*window = conserved;
	} else if (ack->recovery == TT_BBR_OPEN && before != TT_BBR_OPEN) {
		b->conserve = false;
		*window = tt_max(*window, b->prior_window);
	}
	if (b->conserve)
		*window = tt_max(*window, conserved);
	return b->conserve;
}

/* The last step of an acknowledgement: the new window (`bbr_set_cwnd`). */
TT_CHECKED_ONCE int tt_bbr_set_window(struct tt_bbr *b, const struct tt_bbr_ack *ack)
{
	u32 window;

	if (!b || !ack)
		return 0;
	window = b->window;
	if (ack->acked && !tt_bbr_recover_or_restore(b, &window, ack))
		window = tt_bbr_grow(b, window, ack);
	if (b->mode == TT_BBR_PROBE_RTT)
		window = tt_min(window, b->tuning.knobs[TT_BBR_PROBE_RTT_CWND]);
	b->window = tt_max(window, 1);
	return 0;
}

#endif
