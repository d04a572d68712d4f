/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * PCC Vivace's hooks. Every acknowledgement is accounted to the interval in which its newest packet was sent, and may begin the next
 * interval; decisions come once in a round trip. The kernel leaves to an algorithm with `cong_control` the window in every state, and
 * the pacing rate, which is what Vivace steers by: the window only bounds what may be in flight.
 *
 * The kernel says how many packets were lost and not which. They are accounted to the interval of the newest that arrived, which was
 * sent a few packets after them (RFC 8985 section 6.2); those of one acknowledgement count as one range.
 */
#ifndef TRIMTAB_VIVACE_BPF_H
#define TRIMTAB_VIVACE_BPF_H

#include "switch.bpf.h"

/* As Copa's (copa.bpf.h): one packet in flight would wait for the receiver's delayed acknowledgement. */
#define TT_VIVACE_WINDOW_MIN_PACKETS 2

TT_CLEARED_BY(tt_vivace_clear, struct tt_vivace);

TT_INLINE u32 tt_vivace_apply_window(struct tcp_sock *tp, const struct tt_vivace *vivace)
{
	u32 packets = tt_vivace_window(vivace, tp->snd_cwnd, TT_VIVACE_WINDOW_MIN_PACKETS);

	packets = tt_min(tt_max(packets, 1), tp->snd_cwnd_clamp);
	tp->snd_cwnd = packets;
	return packets;
}

TT_INLINE u64 tt_vivace_apply_pacing(struct sock *sk, const struct tt_vivace *vivace)
{
	u64 rate = tt_vivace_pacing_bytes_per_s(vivace);

	if (!rate)
		return tt_pace_first_flight(sk); /* no sample yet */
	sk->sk_pacing_rate = tt_min(rate, sk->sk_max_pacing_rate);
	return rate;
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
TT_INLINE void tt_vivace_goes_on(struct sock *sk, const struct tt_tag *handed, bool paces)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 index = handed->place - 1;
	struct tt_flow *flow = bpf_map_lookup_elem(&tt_flows, &index);
	struct tt_slot *slot = tt_slot_get(index);
	struct tt_hand_over over = {};
	struct tt_vivace *vivace;

	if (!flow || !slot)
		return; /* never: the place is one that was taken */
	tp->inet_conn.icsk_ca_priv[0] = handed->place;
	flow->paces |= paces;
	vivace = &flow->vivace;
	tt_vivace_clear(vivace);
	tt_slot_hand_over(slot, flow, TT_CCA_VIVACE);
	tt_vivace_take_knobs(vivace, slot);
	tt_vivace_begin_with(flow, tp, handed->window);
	tt_hand_over_read(&over, flow, tp, handed->window);
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

/* A connection gets this algorithm; an error number when there is no memory for it. */
static __attribute__((noinline)) int tt_vivace_take(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_control *control = tt_control_get();
	bool adopted = tp->bytes_acked > 1; /* more than the SYN */
	bool paces = sk->sk_pacing_status == SK_PACING_NONE;
	struct tt_tag handed = tt_handed_over(sk);
	struct tt_flow *flow;

	/* Without the fq queueing discipline, TCP itself paces on request (as for BBR). */
	if (paces)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	if (handed.place) {
		tt_vivace_goes_on(sk, &handed, paces);
		return 0;
	}
	flow = control ? tt_flow_new(sk, control) : 0;
	if (!flow)
		return -ENOMEM; /* Reno runs until there is memory */
	tt_first_knobs(flow, tp, control, TT_CCA_VIVACE, control->vivace_defaults);
#pragma unroll
	for (int i = 0; i < TT_VIVACE_KNOBS_COUNT; i++)
		flow->vivace.knobs[i] = flow->first.words[i];
	tt_flow_begin(flow, tp, paces);
	tt_vivace_begin_with(flow, tp, tp->snd_cwnd);
	/* The former algorithm's slow start ended at its threshold. */
	if (adopted && tp->snd_cwnd >= tp->snd_ssthresh)
		flow->vivace.starting = false;
	if (!adopted && tp->srtt_us >> 3)
		tt_vivace_on_established(&flow->vivace, tp->srtt_us >> 3, tp->snd_cwnd);
	if (flow->vivace.opening)
		tt_vivace_apply_window(tp, &flow->vivace);
	tt_vivace_apply_pacing(sk, &flow->vivace);
	tt_slot_open(flow, tp, control, TT_CCA_VIVACE, adopted ? TT_FLAG_ADOPTED : 0,
		     tt_initial_window_q10(control, flow));
	return 0;
}

SEC("struct_ops")
void BPF_PROG(tt_vivace_open, struct sock *sk)
{
	tt_vivace_take(sk);
}

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

TT_INLINE void tt_vivace_on_ack_event(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk);
	struct tt_standing standing = {};
	struct tt_vivace *vivace;
	struct tt_slot *slot = 0;
	struct tt_seen seen;

	if (!flow) {
		/* Its `init` found no memory, or was left out. */
		if (tt_is_open(tp) && tt_vivace_take(sk))
			tt_reno_on_ack(sk, rs);
		return;
	}
	vivace = &flow->vivace;
	tt_see(&seen, tp, rs);
	tt_batch_add(flow, &seen);
	if (tt_batch_is_due(&flow->batch, &seen))
		slot = tt_slot_get(flow->slot);
	if (slot && tt_has_new_knobs(flow, slot))
		tt_vivace_take_knobs(vivace, slot);
	tt_vivace_run(vivace, tp, rs, &seen);
	standing.window_packets = tt_vivace_apply_window(tp, vivace);
	standing.pacing_bytes_per_s = tt_vivace_apply_pacing(sk, vivace);
	if (!slot)
		return;
	standing.phase = vivace->starting ? TT_PHASE_SLOW_START : TT_PHASE_STEADY;
	tt_slot_publish(slot, flow, tp, &seen, &standing);
	tt_switch_if_due(sk, flow, slot, tt_vivace_is_converged(vivace), tt_vivace_operating_window(vivace));
}

/* Since Linux 6.10, which gave it two arguments more. */
SEC("struct_ops")
void BPF_PROG(tt_vivace_ack, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	tt_vivace_on_ack_event(sk, rs);
}

/* Before Linux 6.10. */
SEC("struct_ops")
void BPF_PROG(tt_vivace_ack_before_6_10, struct sock *sk, const struct rate_sample *rs)
{
	tt_vivace_on_ack_event(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(tt_vivace_state, struct sock *sk, u8 new_state)
{
	struct tt_flow *flow = tt_flow_get(sk);

	if (flow && new_state == TCP_CA_CWR)
		flow->vivace.is_marked = true; /* this acknowledgement goes on to say what was in flight */
	if (flow && new_state == TCP_CA_Loss)
		tt_vivace_on_timeout(&flow->vivace, flow->initial_window);
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_vivace_on_tx_start(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk);

	if (!flow || tt_switch_if_nothing_is_known(sk, flow, tt_vivace_is_converged(&flow->vivace)))
		return;
	/*
	 * Nothing was in flight: the application left the rate unused. For a new connection the kernel reports that until the first
	 * acknowledgement, whatever the application has (tcp_init_sock).
	 */
	tt_vivace_on_send(&flow->vivace, tp->tcp_mstamp, tp->data_segs_out,
			  flow->vivace.opening ? 0 : tp->app_limited);
}

/* Since Linux 7.1. */
SEC("struct_ops")
void BPF_PROG(tt_vivace_tx_start, struct sock *sk)
{
	tt_vivace_on_tx_start(sk);
}

/* Before Linux 7.1. */
SEC("struct_ops")
void BPF_PROG(tt_vivace_event, struct sock *sk, u32 event)
{
	if (event == CA_EVENT_TX_START)
		tt_vivace_on_tx_start(sk);
}

#endif
