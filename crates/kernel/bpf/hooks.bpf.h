/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The programs that Linux calls. They are alike for all algorithms, which give their part in these
 * functions:
 *
 *   u32 tt_<lower>_begins(sk, flow, control, adopted)  a connection begins with it; gives Copa's
 *                                                      initial window for the slot
 *   void tt_<lower>_goes_on(sk, flow, slot, handed)    it takes over from another of ours
 *   bool tt_<lower>_waits(sk, rs)                      for TT_CONTROL_HOOKS: notes in the socket what
 *                                                      `cong_control` was told; whether that is all
 *   int tt_<lower>_on_ack_event(sk, flow, rs)          the rest of `cong_control`; a function of its
 *                                                      own, out of the way, where it is seldom run
 *   void tt_<lower>_on_state(sk, flow, new_state)      `set_state`
 *   void tt_<lower>_on_tx_start(sk, flow)              a packet leaves, and none was in flight
 */
#ifndef TRIMTAB_HOOKS_BPF_H
#define TRIMTAB_HOOKS_BPF_H

#include "place.bpf.h"
#include "switch.bpf.h"

/* Without the fq queueing discipline, TCP itself paces on request (as for BBR). */
TT_INLINE void tt_pace(struct sock *sk, struct tt_flow *flow)
{
	if (sk->sk_pacing_status != SK_PACING_NONE)
		return;
	sk->sk_pacing_status = SK_PACING_NEEDED;
	flow->paces = true;
}

/*
 * tt_<lower>_take(): a connection gets this algorithm; an error number when there is no memory for
 * it, and Reno runs until there is. The program of `init` calls it.
 */
#define TT_OPEN_HOOK(upper, lower)                                                                 \
	static __attribute__((noinline)) int tt_##lower##_take(struct sock *sk)                    \
	{                                                                                          \
		struct tcp_sock *tp = (struct tcp_sock *)sk;                                       \
		struct tt_control *control = tt_control_get();                                     \
		bool adopted = tt_is_adopted(tp);                                                  \
		struct tt_tag handed = tt_handed_over(sk);                                         \
		struct tt_flow *flow;                                                              \
		struct tt_slot *slot;                                                              \
                                                                                                   \
		if (handed.place) {                                                                \
			u32 index = handed.place - 1;                                              \
                                                                                                   \
			flow = bpf_map_lookup_elem(&tt_flows, &index);                             \
			slot = tt_slot_get(index);                                                 \
			if (!flow || !slot)                                                        \
				return 0; /* never: the place is one that was taken */             \
			handed.from = slot->cca;                                                   \
			tt_place_set(sk, index, flow->id);                                         \
			tt_slot_hand_over(slot, flow, TT_CCA_##upper);                             \
			tt_##lower##_goes_on(sk, flow, slot, &handed);                             \
			return 0;                                                                  \
		}                                                                                  \
		flow = control ? tt_flow_new(sk, control, TT_CCA_##upper) : 0;                     \
		if (!flow)                                                                         \
			return -ENOMEM;                                                            \
		tt_first_knobs(flow, tp, control, TT_CCA_##upper, control->lower##_defaults);      \
		tt_flow_begin(flow, tp);                                                           \
		flow->was_adopted = adopted;                                                       \
		flow->window_q10 = tt_##lower##_begins(sk, flow, control, adopted);                \
		tt_slot_open(flow, tp, control, TT_CCA_##upper,                                    \
			     adopted ? TT_FLAG_ADOPTED : 0);                                       \
		return 0;                                                                          \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(tt_##lower##_open, struct sock *sk) { tt_##lower##_take(sk); }

/* `set_state`, and the first packet after an idle time: since Linux 7.1, and before. */
#define TT_EVENT_HOOKS(upper, lower)                                                                   \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(tt_##lower##_state, struct sock *sk, u8 new_state)                           \
	{                                                                                          \
		struct tt_flow *flow = tt_flow_get(sk, TT_CCA_##upper);                            \
                                                                                                   \
		if (flow)                                                                          \
			tt_##lower##_on_state(sk, flow, new_state);                                \
	}                                                                                          \
	TT_INLINE void tt_##lower##_starts(struct sock *sk)                                        \
	{                                                                                          \
		struct tt_flow *flow = tt_flow_get(sk, TT_CCA_##upper);                            \
                                                                                                   \
		if (flow)                                                                          \
			tt_##lower##_on_tx_start(sk, flow);                                        \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(tt_##lower##_tx_start, struct sock *sk) { tt_##lower##_starts(sk); }         \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(tt_##lower##_event, struct sock *sk, u32 event)                              \
	{                                                                                          \
		if (event == CA_EVENT_TX_START)                                                    \
			tt_##lower##_starts(sk);                                                   \
	}

/*
 * `cong_control`: since Linux 6.10, which gave it two arguments more, and before. What most
 * acknowledgements run is short and comes first. Without state, `init` found no memory, or was left
 * out.
 */
#define TT_CONTROL_HOOKS(upper, lower)                                                             \
	TT_INLINE void tt_##lower##_control(struct sock *sk, const struct rate_sample *rs)         \
	{                                                                                          \
		struct tt_flow *flow;                                                              \
                                                                                                   \
		if (tt_##lower##_waits(sk, rs))                                                    \
			return;                                                                    \
		flow = tt_flow_on_ack(sk, TT_CCA_##upper);                                         \
		if (flow)                                                                          \
			tt_##lower##_on_ack_event(sk, flow, rs);                                   \
		else if (tt_is_open((struct tcp_sock *)sk) && tt_##lower##_take(sk))               \
			tt_reno_on_ack(sk, rs);                                                    \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(tt_##lower##_ack, struct sock *sk, u32 ack, int flag,                        \
		      const struct rate_sample *rs)                                                \
	{                                                                                          \
		tt_##lower##_control(sk, rs);                                                      \
	}                                                                                          \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(tt_##lower##_ack_before_6_10, struct sock *sk, const struct rate_sample *rs) \
	{                                                                                          \
		tt_##lower##_control(sk, rs);                                                      \
	}

/*
 * An algorithm's own operations, TT_<UPPER>_OPS(since), in the form that kernels have since that
 * version; main.bpf.c adds those that all have.
 */
#define TT_CONTROL_6_1(lower) .cong_control = (void *)tt_##lower##_ack_before_6_10
#define TT_CONTROL_6_10(lower) .cong_control = (void *)tt_##lower##_ack
#define TT_CONTROL_7_1(lower) TT_CONTROL_6_10(lower)
/* Neither the threshold nor an undo moves the window (reno.bpf.h). */
#define TT_KEEP_OPS .ssthresh = (void *)tt_keep_threshold, .undo_cwnd = (void *)tt_keep_window

#endif
