/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Another algorithm of ours takes over an open connection, because user space ordered it (a slot's `next`).
 *
 * The hook of the running algorithm sets TCP_CONGESTION, when it is time (core/switch.h). The
 * kernel then calls the old algorithm's `release` and the new one's `init`, with the socket locked
 * throughout. It allows that from every hook but `release`, and waits before it frees programs that
 * may still be running for that reason (bpf_struct_ops.c). So the new algorithm runs with its own
 * hooks and its own rules in recovery, and the system tells the name of what runs.
 *
 * What would be lost on the way is the private area of the socket (`icsk_ca_priv`), which the
 * kernel clears between the two. So that says in the socket's storage where slot and state are, and
 * neither is given up.
 */
#ifndef TRIMTAB_SWITCH_BPF_H
#define TRIMTAB_SWITCH_BPF_H

#include "reno.bpf.h"

/* Of the kernel's user-space interface. */
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define ENOMEM 12
#define EINVAL 22

/* How a switch is made: the two that are ordered (TT_HOW_*), or from the beginning. */
#define TT_HOW_ANEW 3

TT_INLINE u32 tt_next_cca(u32 next) { return next & ((1 << TT_NEXT_CCA_BITS) - 1); }

TT_INLINE u32 tt_next_how(u32 next) { return (next >> TT_NEXT_CCA_BITS) & ((1 << TT_NEXT_HOW_BITS) - 1); }

/* --- The side of the algorithm that goes. */

/* As if somebody had set TCP_CONGESTION; an error number otherwise. */
TT_INLINE int tt_set_algorithm(struct sock *sk, u32 cca)
{
	if (cca - 1 >= TT_CCAS)
		return -EINVAL;
	return bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)tt_settings.names[cca - 1], TT_CA_NAME_SIZE);
}

/* Lets the other algorithm take over with this window; an error number otherwise. */
static __attribute__((noinline)) int tt_switch(struct sock *sk, struct tt_flow *flow, u32 order, u32 window)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_tag *handed = bpf_sk_storage_get(&tt_tags, sk, 0, 0);
	int failed;

	if (!handed)
		return -ENOMEM; /* never: who has a slot has it */
	handed->place = tp->inet_conn.icsk_ca_priv[0];
	handed->how = tt_next_how(order);
	handed->window = window;
	flow->is_switching = true;
	failed = tt_set_algorithm(sk, tt_next_cca(order));
	flow->is_switching = false;
	handed->place = 0;
	return failed;
}

/* The order `next` is done with. */
TT_INLINE void tt_switch_done(struct tt_flow *flow, struct tt_slot *slot, u32 next)
{
	flow->next = next;
	tt_seq_move(slot);
	slot->next_done = next;
	tt_seq_move(slot);
}

/* Lets this algorithm take over, and `next` is the last order that is done with. */
TT_INLINE void tt_switch_to(struct sock *sk, struct tt_flow *flow, struct tt_slot *slot, u32 cca, u32 next, u32 how,
			    u32 window)
{
	u64 start_ns = bpf_ktime_get_ns();
	int failed = tt_switch(sk, flow, cca | how << TT_NEXT_CCA_BITS, window);
	u64 took_ns = bpf_ktime_get_ns() - start_ns;

	flow->next = next;
	tt_seq_move(slot);
	slot->next_done = next;
	slot->refused = -failed;
	if (!failed) {
		tt_path_taken_over(&flow->path, how);
		slot->switches++;
		slot->switch_ns = took_ns;
	}
	tt_seq_move(slot);
}

TT_INLINE void tt_switch_carry_out(struct sock *sk, struct tt_flow *flow, struct tt_slot *slot, u32 next, u32 how,
				   u32 window)
{
	tt_switch_to(sk, flow, slot, tt_next_cca(next), next, how, window);
}

/*
 * Whether there is an order that waits, and which, at the price of one comparison where there is
 * none. One for what runs already cancels the one before.
 */
TT_INLINE bool tt_switch_is_wanted(struct tt_flow *flow, struct tt_slot *slot, u32 *next)
{
	u32 cca;

	if (*(volatile u32 *)&slot->next == flow->next)
		return false;
	*next = tt_acquire(&slot->next);
	cca = tt_next_cca(*next);
	if (slot->knobs_for == flow->id && cca && cca != slot->cca)
		return true;
	tt_switch_done(flow, slot, *next); /* or it was meant for the connection that had the slot before */
	return false;
}

/*
 * After a slot was written: carries out what is ordered, if it is time. A full switch hands over
 * this window, a part switch the socket's. From here on the connection may run another algorithm.
 */
TT_INLINE void tt_switch_if_due(struct sock *sk, struct tt_flow *flow, struct tt_slot *slot, bool converged,
				u32 window)
{
	bool recovering = tt_ca_state((struct tcp_sock *)sk) >= TCP_CA_CWR;
	u32 next;

	flow->path.converged |= converged;
	if (!tt_switch_is_wanted(flow, slot, &next))
		return;
	/*
	 * The kernel's own bookkeeping of a recovery belongs to the algorithm that began it, so here a part switch, too,
	 * waits for its end.
	 */
	if (recovering || !tt_switch_is_due(tt_next_how(next), &flow->path, converged, recovering))
		return;
	if (tt_next_how(next) != TT_HOW_FULL)
		window = ((struct tcp_sock *)sk)->snd_cwnd;
	tt_switch_carry_out(sk, flow, slot, next, tt_next_how(next), window);
}

/* A packet leaves while nothing else is in flight; whether another algorithm runs from here on. */
TT_INLINE bool tt_switch_if_nothing_is_known(struct sock *sk, struct tt_flow *flow, bool converged)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_slot *slot = tt_slot_get(flow->slot);
	u32 next;

	if (!slot)
		return false;
	if (!tt_switch_is_wanted(flow, slot, &next) || tt_ca_state(tp) >= TCP_CA_CWR ||
	    !tt_switch_starts_over(&flow->path, converged, tp->bytes_acked > 1))
		return false;
	tt_switch_carry_out(sk, flow, slot, next, TT_HOW_ANEW, flow->initial_window);
	return true;
}

/* --- The side of the algorithm that comes. */

/* How this connection is taken over: where state and slot are; a place of 0 when it is not. */
TT_INLINE struct tt_tag tt_handed_over(struct sock *sk)
{
	struct tt_tag *handed = bpf_sk_storage_get(&tt_tags, sk, 0, 0);
	struct tt_tag nothing = {};

	return handed ? *handed : nothing;
}

/* What is handed over. */
TT_INLINE void tt_hand_over_read(struct tt_hand_over *over, const struct tt_flow *flow, const struct tcp_sock *tp,
				 const struct tt_tag *handed)
{
	over->now_us = tp->tcp_mstamp;
	over->window_bytes = (u64)handed->window * tp->mss_cache;
	over->modelled = handed->from == TT_CCA_BBR || handed->from == TT_CCA_BBR3;
	over->srtt_us = tp->srtt_us >> 3;
	over->delivered = flow->delivered_packets;
	over->inflight = tt_packets_inflight(tp);
	tt_hand_over_path(over, &flow->path);
}

/* The slot tells of another algorithm. Its extremes and sums go on. */
TT_INLINE void tt_slot_hand_over(struct tt_slot *slot, struct tt_flow *flow, u32 cca)
{
	tt_seq_move(slot);
	slot->cca = cca;
	slot->flags &= TT_FLAGS_KEPT;
	slot->inverse_delta_q16 = 0;
	tt_seq_move(slot);
	flow->knobs_version = tt_acquire(&slot->version);
}

#endif
