/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * CUBIC's hooks. It has `cong_avoid` and not `cong_control`, as Linux's own: the kernel sets the window in recovery
 * (Proportional Rate Reduction) and after an idle time, and the pacing rate where the socket is paced.
 */
#ifndef TRIMTAB_CUBIC_BPF_H
#define TRIMTAB_CUBIC_BPF_H

#include "hooks.bpf.h"

/* What it has in the socket, next to the place of the flow. */
struct tt_cubic_private {
	u64 place; /* tt_place_set */
	struct tt_cubic_knobs knobs;
	struct tt_cubic state;
};

_Static_assert(sizeof(struct tt_cubic_private) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv), "it fits");

/*
 * Its state is in the socket, where the kernel's own CUBIC has it, too: TCP has touched that a
 * moment before, and memory of ours would be two more cache lines with each acknowledgement. The
 * kernel clears it before another algorithm begins.
 */
TT_INLINE struct tt_cubic *tt_cubic_of(struct tcp_sock *tp)
{
	return &((struct tt_cubic_private *)tp->inet_conn.icsk_ca_priv)->state;
}

TT_INLINE struct tt_cubic_knobs *tt_cubic_knobs_of(struct tcp_sock *tp)
{
	return &((struct tt_cubic_private *)tp->inet_conn.icsk_ca_priv)->knobs;
}

TT_INLINE void tt_cubic_take_knobs(struct tcp_sock *tp, const u32 *knobs)
{
	*tt_cubic_knobs_of(tp) = tt_cubic_knobs_from(knobs);
}

/* Goes on where another algorithm of ours was. */
TT_INLINE void tt_cubic_goes_on(struct sock *sk, struct tt_flow *flow, const struct tt_slot *slot,
				const struct tt_tag *handed)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 window = tt_min(handed->window, tp->snd_cwnd_clamp);
	struct tt_hand_over over = {};

	/* Linux's CUBIC does not pace. A limit that the application set is its own affair. */
	if (flow->paces && sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
		sk->sk_pacing_status = SK_PACING_NONE;
	flow->paces = false;
	tt_cubic_take_knobs(tp, slot->cubic_knobs);
	tp->snd_cwnd = window;
	if (handed->how == TT_HOW_FULL) {
		tt_hand_over_read(&over, flow, tp, handed);
		tt_cubic_take_over(tt_cubic_of(tp), window, &over);
		tp->snd_ssthresh = window;
		return;
	}
	tt_cubic_reset(tt_cubic_of(tp));
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
}

/* A connection begins with it. */
TT_INLINE u32 tt_cubic_begins(struct sock *sk, struct tt_flow *flow, const struct tt_control *control,
			     bool adopted)
{
	tt_cubic_take_knobs((struct tcp_sock *)sk, flow->first.words);
	return tt_initial_window_q10(control, flow);
}

TT_OPEN_HOOK(CUBIC, cubic)

/* Takes over new knobs. */
TT_INLINE void tt_cubic_orders(struct tcp_sock *tp, struct tt_flow *flow, const struct tt_slot *slot)
{
	if (!tt_has_new_knobs(flow, slot))
		return;
	tt_cubic_take_knobs(tp, slot->cubic_knobs);
}

TT_INLINE u32 tt_cubic_phase(const struct tt_flow *flow, const struct tcp_sock *tp)
{
	if (tt_ca_state(tp) >= TCP_CA_CWR)
		return TT_PHASE_RECOVERY;
	return tp->snd_cwnd < tp->snd_ssthresh ? TT_PHASE_SLOW_START : TT_PHASE_STEADY;
}

/* Where the kernel took what no hook gave for the threshold, or for the window after an undo. */
static __attribute__((noinline)) int tt_cubic_put_socket_right(struct tcp_sock *tp)
{
	u32 threshold = tt_cubic_put_right(tt_cubic_of(tp), tt_cubic_knobs_of(tp), tp->prior_cwnd);

	tp->snd_ssthresh = threshold;
	tp->snd_cwnd = tt_min(tp->snd_cwnd, threshold);
	return 0;
}

TT_INLINE void tt_cubic_stay_sane(struct tcp_sock *tp)
{
	if (tt_cubic_is_astray(tp->snd_cwnd) || tt_cubic_is_astray(tp->snd_ssthresh))
		tt_cubic_put_socket_right(tp);
}

/* Takes over new knobs, and writes the slot. */
static __attribute__((noinline)) int tt_cubic_publish(struct sock *sk, struct tt_flow *flow, const struct tt_seen *seen)
{
	struct tt_slot *slot = tt_slot_get(flow->slot);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_standing standing = {};

	if (!slot)
		return 0;
	tt_cubic_orders(tp, flow, slot);
	standing.window_packets = tp->snd_cwnd;
	standing.pacing_bytes_per_s = sk->sk_pacing_status == SK_PACING_NONE ? ~0ULL : sk->sk_pacing_rate;
	standing.phase = tt_cubic_phase(flow, tp);
	tt_slot_publish(slot, flow, tp, seen, &standing);
	tt_switch_if_due(sk, flow, slot, standing.phase == TT_PHASE_STEADY, tp->snd_cwnd);
	return 0;
}

/* Every acknowledgement comes by here, also in recovery, and before `cong_avoid`: HyStart and the measurements. */
SEC("struct_ops")
void BPF_PROG(tt_cubic_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_on_ack(sk, TT_CCA_CUBIC);
	struct tt_round round = {};
	struct tt_seen seen = {};
	u32 threshold;
	__s32 rtt_us;

	if (!flow) {
		if (tt_is_open(tp))
			tt_cubic_take(sk); /* its `init` found no memory, or was left out */
		return;
	}
	tt_cubic_stay_sane(tp);
	rtt_us = sample->rtt_us;
	tt_see_socket(&seen, tp);
	seen.rtt_us = rtt_us > 0 ? rtt_us : 0;
	seen.acked = sample->pkts_acked;
	/* The kernel takes the sample of this acknowledgement only after it: this one is of the acknowledgement before. */
	tt_see_rate(&seen, tp->rate_delivered, tp->rate_interval_us, tp->app_limited != 0);
	tt_batch_add(&flow->batch, &seen);

	round.now_us = seen.now_us;
	round.rtt_us = seen.rtt_us;
	round.window = tp->snd_cwnd;
	threshold = tp->snd_ssthresh;
	if (round.window < threshold) {
		/* What only HyStart looks at. */
		round.acknowledged_to = tp->snd_una;
		round.sent_to = tp->snd_nxt;
		round.paced = sk->sk_pacing_status != SK_PACING_NONE;
	}
	if (tt_cubic_on_rtt(tt_cubic_of(tp), tt_cubic_knobs_of(tp), &round, threshold))
		tp->snd_ssthresh = round.window;

	if (tt_publish_is_due(flow, &seen))
		tt_cubic_publish(sk, flow, &seen);
}

SEC("struct_ops")
void BPF_PROG(tt_cubic_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 window = tp->snd_cwnd, threshold = tp->snd_ssthresh;
	struct tt_cubic_knobs knobs;

	if (!tt_is_cwnd_limited(tp, window < threshold))
		return;
	knobs = *tt_cubic_knobs_of(tp);
	if (!knobs.reno_eighths) { /* it has not begun */
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	window = tt_cubic_on_ack(tt_cubic_of(tp), &knobs, window, threshold, acked, tp->tcp_mstamp);
	tp->snd_cwnd = tt_min(window, tp->snd_cwnd_clamp);
}

SEC("struct_ops")
u32 BPF_PROG(tt_cubic_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk, TT_CCA_CUBIC);
	u32 window = tp->snd_cwnd;

	if (!flow)
		return tcp_reno_ssthresh(sk);
	tt_path_on_cut(&flow->path, tp->srtt_us >> 3);
	return tt_cubic_on_loss(tt_cubic_of(tp), tt_cubic_knobs_of(tp), window);
}

/* The losses were none: what the window gained since stays. */
SEC("struct_ops")
u32 BPF_PROG(tt_cubic_undo, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tt_max(tp->snd_cwnd, tp->prior_cwnd);
}

TT_INLINE void tt_cubic_on_state(struct sock *sk, struct tt_flow *flow, u8 new_state)
{
	if (new_state == TCP_CA_Loss)
		tt_cubic_reset(tt_cubic_of((struct tcp_sock *)sk));
	if (new_state == TCP_CA_CWR)
		tt_path_on_marked(&flow->path);
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_cubic_on_tx_start(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 now_us;

	if (tt_switch_if_nothing_is_known(sk, flow, tt_cubic_phase(flow, tp) == TT_PHASE_STEADY))
		return;
	/*
	 * When the last packet left is written in the kernel's own ticks, whose length a program does not know. It was a round
	 * trip before its acknowledgement, which came last, since nothing is in flight.
	 */
	now_us = tp->tcp_mstamp;
	tt_cubic_on_first_sent(tt_cubic_of(tp), now_us, tt_less(flow->batch.last_ack_us, tp->srtt_us >> 3));
}

TT_EVENT_HOOKS(CUBIC, cubic)

/* It has no `cong_control`, so it is the same for every kernel. */
#define TT_CUBIC_OPS(since)                                                                        \
	.ssthresh = (void *)tt_cubic_ssthresh, .undo_cwnd = (void *)tt_cubic_undo,                 \
	.pkts_acked = (void *)tt_cubic_acked, .cong_avoid = (void *)tt_cubic_avoid

#endif
