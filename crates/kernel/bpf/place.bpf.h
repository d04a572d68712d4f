/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * A connection moves into a slot when it has sent enough, and out of it when user space wants the
 * slot for others. What is kept of it moves along: to the array by slot, or to the socket.
 */
#ifndef TRIMTAB_PLACE_BPF_H
#define TRIMTAB_PLACE_BPF_H

#include "measure.bpf.h"
#include "slot.bpf.h"

/* One that got no slot looks again after this. */
#define TT_LOOK_AGAIN_US 100000

/* Moves a connection without a slot into one, if there is one. What it has measured since its beginning goes along. */
static __attribute__((noinline)) int tt_move_in(struct sock *sk, u32 cca)
{
	struct tt_flow *flow = tt_slotless_get(sk, cca, 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_control *control = tt_control_get();
	struct tt_flow *moved;
	u32 index;

	if (!flow || !control)
		return 0;
	if (tp->tcp_mstamp < flow->publish_us || !tt_deserves_slot(tp, control, cca))
		return 0;
	index = tt_slot_for(sk, control, !flow->was_refused);
	moved = bpf_map_lookup_elem(&tt_flows, &index);
	if (!moved) {
		flow->was_refused = true;
		flow->publish_us = tp->tcp_mstamp + TT_LOOK_AGAIN_US;
		return 0;
	}
	tt_flow_move(moved, flow, cca);
	moved->slot = index;
	moved->waits = false;
	/* One that had a slot before is not new to user space. */
	tt_slot_open(moved, tp, control, cca, moved->id || moved->was_adopted ? TT_FLAG_ADOPTED : 0);
	tt_slotless_delete(sk);
	return 0;
}

/* What is kept of a connection when an acknowledgement comes: from here on in a slot, where it is time. */
TT_INLINE struct tt_flow *tt_flow_on_ack(struct sock *sk, u32 cca)
{
	struct tt_flow *flow = tt_flow_in_slot(sk);

	if (flow)
		return flow;
	tt_move_in(sk, cca);
	return tt_flow_get(sk, cca);
}

/* The knobs that the running algorithm has, to begin with again. */
#define TT_KEEP_KNOBS(number, upper, lower)                                                                            \
	if (cca == number)                                                                                       \
		_Pragma("unroll") for (int i = 0; i < TT_##upper##_KNOBS_COUNT; i++)                                   \
			kept->first.words[i] = slot->lower##_knobs[i];

/*
 * Moves a connection out of its slot, where user space ordered it, to the memory that one with the
 * algorithm `like` has. The verifier knows that as a number, as it has to: of two maps, it must
 * know which.
 */
static __attribute__((noinline)) int tt_move_out_like(struct tcp_sock *tp, u32 like)
{
	struct tt_tag *tag = bpf_sk_storage_get(&tt_tags, (void *)tp, 0, 0);
	struct tt_control *control = tt_control_get();
	struct tt_flow *flow, *kept;
	struct tt_slot *slot;
	u32 index, cca;
	u64 id;

	if (!tag || !tag->id || !control)
		return 0;
	index = tag->slot;
	id = tag->id;
	slot = tt_slot_get(index);
	flow = bpf_map_lookup_elem(&tt_flows, &index);
	/* What waits to be carried out is ordered in the slot. */
	if (!slot || !flow || slot->id != id || flow->id != id || !slot->leave || slot->next != slot->next_done)
		return 0;
	cca = slot->cca;
	kept = tt_slotless_get(tp, like, BPF_SK_STORAGE_GET_F_CREATE);
	if (!kept)
		return 0;
	if (__sync_val_compare_and_swap(&slot->id, id, 0) != id)
		return 0;
	tt_flow_move(kept, flow, like);
	kept->slot = TT_NO_SLOT;
	TT_ALGORITHMS(TT_KEEP_KNOBS)
	kept->window_q10 = slot->copa_knobs[TT_COPA_INITIAL_WINDOW];
	kept->publish_us = 0;
	kept->batch.rtt_sum_us += slot->rtt_sum_us;
	kept->rtt_count_before = slot->rtt_count;
	kept->acks_before = slot->acks;
	kept->batch.busy_us += slot->busy_us;
	kept->lost_packets -= slot->lost_bytes / tt_max(slot->mss_bytes, 1);
	flow->id = 0;
	tag->id = 0;
	__sync_fetch_and_add(&control->live, -1);
	tt_slot_give(slot, index);
	return 0;
}

/* The walk has the socket locked. */
TT_INLINE void tt_move_out(struct tcp_sock *tp)
{
	struct tt_tag *tag = bpf_sk_storage_get(&tt_tags, (void *)tp, 0, 0);
	struct tt_slot *slot = tag ? tt_slot_get(tag->slot) : 0;

	if (!slot)
		return;
	if (TT_IS_LARGE(slot->cca))
		tt_move_out_like(tp, TT_CCA_VIVACE);
	else
		tt_move_out_like(tp, TT_CCA_COPA);
}

#endif
