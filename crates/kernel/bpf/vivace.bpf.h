/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * PCC Vivace's hooks. Every acknowledgement is accounted to the interval in which its newest packet
 * was sent, and may begin the next interval; decisions come once in a round trip. The kernel leaves
 * to an algorithm with `cong_control` the window in every state, and the pacing rate, which is what
 * Vivace steers by: the window only bounds what may be in flight.
 *
 * The kernel says how many packets were lost and not which. They are accounted to the interval of
 * the newest that arrived, which was sent a few packets after them (RFC 8985 section 6.2); those of
 * one acknowledgement count as one range.
 */
#ifndef TRIMTAB_VIVACE_BPF_H
#define TRIMTAB_VIVACE_BPF_H

#include "hooks.bpf.h"

/* As Copa's (copa.bpf.h): one packet in flight would wait for the receiver's delayed acknowledgement. */
#define TT_VIVACE_WINDOW_MIN_PACKETS 2

TT_CLEARED_BY(tt_vivace_clear, struct tt_vivace);

TT_INLINE u32 tt_vivace_apply_window(struct tcp_sock *tp, const struct tt_vivace *vivace)
{
	return tt_apply_window(tp, tt_vivace_window(vivace, tp->snd_cwnd, TT_VIVACE_WINDOW_MIN_PACKETS));
}

TT_INLINE u64 tt_vivace_apply_pacing(struct sock *sk, const struct tt_vivace *vivace)
{
	return tt_apply_rate(sk, tt_vivace_pacing_bytes_per_s(vivace));
}

TT_INLINE void tt_vivace_begin_with(struct tt_flow *flow, struct tcp_sock *tp, u32 window)
{
	tt_vivace_init(&flow->vivace, tp->mss_cache, window, bpf_get_prandom_u32() & 1);
}

/* Takes the knobs of the slot. */
TT_INLINE void tt_vivace_take_knobs(struct tt_vivace *vivace, const struct tt_slot *slot)
{
#pragma unroll
	for (int i = 0; i < TT_VIVACE_KNOBS_COUNT; i++)
		vivace->knobs[i] = slot->vivace_knobs[i];
	tt_vivace_on_knobs(vivace);
}

/* Goes on where another algorithm of ours was. */
TT_INLINE void tt_vivace_goes_on(struct sock *sk, struct tt_flow *flow, const struct tt_slot *slot,
				 const struct tt_tag *handed)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_vivace *vivace = &flow->vivace;
	struct tt_hand_over over = {};

	tt_pace(sk, flow);
	tt_vivace_clear(vivace);
	tt_vivace_take_knobs(vivace, slot);
	tt_vivace_begin_with(flow, tp, handed->window);
	tt_hand_over_read(&over, flow, tp, handed);
	if (handed->how == TT_HOW_FULL)
		tt_vivace_take_over(vivace, &over);
	else if (handed->how == TT_HOW_PART)
		tt_vivace_inherit(vivace, over.window_bytes, over.srtt_us);
	else if (over.srtt_us)
		tt_vivace_on_established(vivace, over.srtt_us, handed->window);
	tp->snd_cwnd = tt_min(tt_max(handed->window, 1), tp->snd_cwnd_clamp);
	tt_vivace_apply_window(tp, vivace);
	tt_vivace_apply_pacing(sk, vivace);
}

/* A connection begins with it. */
TT_INLINE u32 tt_vivace_begins(struct sock *sk, struct tt_flow *flow, const struct tt_control *control,
			     bool adopted)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tt_pace(sk, flow);
#pragma unroll
	for (int i = 0; i < TT_VIVACE_KNOBS_COUNT; i++)
		flow->vivace.knobs[i] = flow->first.words[i];
	tt_vivace_begin_with(flow, tp, tp->snd_cwnd);
	/* The former algorithm's slow start ended at its threshold. */
	if (adopted && tp->snd_cwnd >= tp->snd_ssthresh)
		flow->vivace.starting = false;
	if (!adopted && tp->srtt_us >> 3)
		tt_vivace_on_established(&flow->vivace, tp->srtt_us >> 3, tp->snd_cwnd);
	if (flow->vivace.opening)
		tt_vivace_apply_window(tp, &flow->vivace);
	tt_vivace_apply_pacing(sk, &flow->vivace);
	return tt_initial_window_q10(control, flow);
}

TT_OPEN_HOOK(VIVACE, vivace)

/* What was lost and acknowledged, and what is sent from now on. */
TT_INLINE void tt_vivace_run(struct tt_vivace *vivace, struct tcp_sock *tp, const struct rate_sample *rs,
			     const struct tt_seen *seen)
{
	struct tt_vivace_ack ack = {};
	__s32 delivered = rs->delivered;
	__s64 interval_us = rs->interval_us;

	vivace->mss_bytes = tt_max(tp->mss_cache, 1);
	ack.now_us = seen->now_us;
	ack.newest_sent_us = tp->first_tx_mstamp;
	ack.rtt_us = seen->rtt_us;
	ack.srtt_us = tt_max(tp->srtt_us >> 3, 1);
	ack.acked = seen->acked;
	if (delivered > 0 && interval_us > 0) {
		ack.rate_packets = delivered;
		ack.rate_us = interval_us;
	}
	if (seen->losses)
		tt_vivace_on_lost(vivace, ack.newest_sent_us, seen->losses);
	if (vivace->is_marked)
		tt_vivace_on_marked(vivace, seen->now_us, seen->now_us, rs->prior_in_flight);
	vivace->is_marked = false;
	if (ack.acked)
		tt_vivace_on_ack(vivace, &ack, tp->snd_cwnd);
	tt_vivace_on_send(vivace, seen->now_us, tp->data_segs_out, tp->app_limited);
}

/* Each acknowledgement runs it. */
TT_INLINE bool tt_vivace_waits(struct sock *sk, const struct rate_sample *rs) { return false; }

TT_INLINE int tt_vivace_on_ack_event(struct sock *sk, struct tt_flow *flow, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_vivace *vivace = &flow->vivace;
	struct tt_standing standing = {};
	struct tt_slot *slot = 0;
	struct tt_seen seen;

	tt_see(&seen, tp, rs);
	tt_batch_add(&flow->batch, &seen);
	if (tt_publish_is_due(flow, &seen))
		slot = tt_slot_get(flow->slot);
	if (slot && tt_has_new_knobs(flow, slot))
		tt_vivace_take_knobs(vivace, slot);
	tt_vivace_run(vivace, tp, rs, &seen);
	standing.window_packets = tt_vivace_apply_window(tp, vivace);
	standing.pacing_bytes_per_s = tt_vivace_apply_pacing(sk, vivace);
	if (!slot)
		return 0;
	standing.phase = vivace->starting ? TT_PHASE_SLOW_START : TT_PHASE_STEADY;
	tt_slot_publish(slot, flow, tp, &seen, &standing);
	tt_switch_if_due(sk, flow, slot, tt_vivace_is_converged(vivace), tt_vivace_operating_window(vivace));
	return 0;
}

TT_INLINE void tt_vivace_on_state(struct sock *sk, struct tt_flow *flow, u8 new_state)
{
	if (new_state == TCP_CA_CWR)
		flow->vivace.is_marked = true; /* this acknowledgement goes on to say what was in flight */
	if (new_state == TCP_CA_Loss)
		tt_vivace_on_timeout(&flow->vivace, flow->initial_window);
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_vivace_on_tx_start(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (tt_switch_if_nothing_is_known(sk, flow, tt_vivace_is_converged(&flow->vivace)))
		return;
	/*
	 * Nothing was in flight: the application left the rate unused. For a new connection the kernel
	 * reports that until the first acknowledgement, whatever the application has (tcp_init_sock).
	 */
	tt_vivace_on_send(&flow->vivace, tp->tcp_mstamp, tp->data_segs_out,
			  flow->vivace.opening ? 0 : tp->app_limited);
}

TT_CONTROL_HOOKS(VIVACE, vivace)
TT_EVENT_HOOKS(VIVACE, vivace)

#define TT_VIVACE_OPS(since) TT_KEEP_OPS, TT_CONTROL_##since(vivace)

#endif
