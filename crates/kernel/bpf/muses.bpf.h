/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The hooks of Muses (`trimtab_tree`).
 *
 * Each acknowledgement is measured; one in 10 ms is answered by the tree that user space has chosen
 * for the connection, and counted for its next choice. The kernel leaves to an algorithm with
 * `cong_control` the window in every state, and the pacing rate.
 *
 * When the guard speaks, the algorithm of the knob `safe` takes over for good, here and now: user space may be gone.
 */
#ifndef TRIMTAB_MUSES_BPF_H
#define TRIMTAB_MUSES_BPF_H

#include "hooks.bpf.h"

/* The pacing rate is 5/4 of the window per smoothed round-trip time (RFC 9002 §7.7). */
#define TT_MUSES_PACING_TIMES 5
#define TT_MUSES_PACING_OVER 4

TT_CLEARED_BY(tt_muses_clear, struct tt_muses);

TT_INLINE u32 tt_muses_apply_window(struct tcp_sock *tp, const struct tt_muses *muses)
{
	u32 packets = tt_min(tt_muses_window(muses), tp->snd_cwnd_clamp);

	tp->snd_cwnd = packets;
	return packets;
}

TT_INLINE u64 tt_muses_apply_pacing(struct sock *sk, const struct tcp_sock *tp, const struct tt_muses *muses)
{
	u64 srtt_us = tp->srtt_us >> 3, window_bytes = muses->cwnd / TT_MUSES_PARTS * tp->mss_cache, rate;

	if (!srtt_us)
		return ~0ULL; /* nothing was measured: the initial window leaves at once */
	rate = window_bytes * 1000000 / srtt_us * TT_MUSES_PACING_TIMES / TT_MUSES_PACING_OVER;
	sk->sk_pacing_rate = tt_min(rate, sk->sk_max_pacing_rate);
	return rate;
}

/* The window and the pacing rate are the algorithm's from now on. */
TT_INLINE void tt_muses_is_ready(struct sock *sk, struct tt_flow *flow, u32 window)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_muses *muses = &flow->muses;

	tt_muses_init(muses, window);
	muses->sent_before = tp->data_segs_out;
	tt_muses_apply_window(tp, muses);
	tt_muses_apply_pacing(sk, tp, muses);
}

/* Takes the knobs of the slot. */
TT_INLINE void tt_muses_take_knobs(struct tt_muses *muses, const struct tt_slot *slot)
{
#pragma unroll
	for (int i = 0; i < TT_MUSES_KNOBS_COUNT; i++)
		muses->knobs[i] = slot->muses_knobs[i];
}

/* Goes on where another algorithm of ours was, with its window: that is all that a policy goes by. */
TT_INLINE void tt_muses_goes_on(struct sock *sk, struct tt_flow *flow, const struct tt_slot *slot,
				const struct tt_tag *handed)
{
	tt_pace(sk, flow);
	tt_muses_clear(&flow->muses);
	tt_muses_take_knobs(&flow->muses, slot);
	tt_muses_is_ready(sk, flow, handed->window);
}

/* A connection begins with it. */
TT_INLINE u32 tt_muses_begins(struct sock *sk, struct tt_flow *flow, const struct tt_control *control,
			     bool adopted)
{
	tt_pace(sk, flow);
#pragma unroll
	for (int i = 0; i < TT_MUSES_KNOBS_COUNT; i++)
		flow->muses.knobs[i] = flow->first.words[i];
	tt_muses_is_ready(sk, flow, ((struct tcp_sock *)sk)->snd_cwnd);
	return tt_initial_window_q10(control, flow);
}

TT_OPEN_HOOK(MUSES, muses)

/* What `cong_control` was told, for the algorithm. */
TT_INLINE void tt_muses_see(struct tt_muses_ack *ack, struct tt_muses *muses, struct tcp_sock *tp,
			    const struct rate_sample *rs, const struct tt_seen *seen)
{
	u32 sent = tp->data_segs_out;
	__s32 delivered = rs->delivered;
	__s64 interval_us = rs->interval_us;

	if (seen->rtt_us && (!muses->least_rtt_us || seen->rtt_us < muses->least_rtt_us))
		muses->least_rtt_us = seen->rtt_us;
	ack->now_us = seen->now_us;
	ack->mss_bytes = tp->mss_cache;
	ack->newest_sent_us = tp->first_tx_mstamp;
	ack->sent = sent - muses->sent_before;
	ack->acked = seen->acked;
	ack->prior_inflight = rs->prior_in_flight;
	ack->rtt_us = seen->rtt_us;
	ack->srtt_us = tp->srtt_us >> 3;
	ack->min_rtt_us = muses->least_rtt_us;
	if (delivered >= 0 && interval_us > 0) {
		ack->rate_us = interval_us;
		ack->rate_packets = delivered;
		/* New data since then, and what was sent again and is in flight; of a packet sent twice neither time is known. */
		ack->rate_of_new = !rs->is_retrans;
		ack->since_bytes = tp->snd_nxt - rs->last_end_seq + (u64)tp->retrans_out * ack->mss_bytes;
	}
	ack->cwnd_limited = tt_is_cwnd_limited(tp, true);
	muses->sent_before = sent;
}

/* A state was answered: it counts for the choice of the tree. */
TT_INLINE void tt_muses_count(struct tt_slot *slot, const struct tt_muses *muses)
{
	if (muses->alarm == TT_ALARM_NO_MODEL)
		return;
	tt_seq_move(slot);
#pragma unroll
	for (u32 i = 0; i < TT_COMPONENTS; i++)
		slot->cells[i * TT_BINS + tt_min(muses->segments[i], TT_BINS - 1)]++;
	tt_seq_move(slot);
}

/*
 * The guard has spoken: the fallback takes over, with what is known of the path, even while losses
 * are being repaired, since a window that runs away is why there are any
 * (Switcher::give_way_if_alarmed). But CUBIC has the kernel's own recovery, which it has to begin
 * itself: it waits for the end, with no more in flight than it is to go on with. Where there is no
 * model there is nothing to go on with either. From here on the connection may run another
 * algorithm.
 */
TT_INLINE void tt_muses_give_way(struct sock *sk, struct tt_flow *flow, struct tt_slot *slot)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_muses *muses = &flow->muses;
	u32 safe = muses->knobs[TT_MUSES_SAFE], how = TT_HOW_FULL, window;

	if (!safe || safe >= TT_CCA_MUSES)
		return;
	window = tt_muses_operating_window(muses, tt_path_bandwidth(&flow->path), tp->srtt_us >> 3);
	if (muses->alarm == TT_ALARM_NO_MODEL) {
		how = TT_HOW_ANEW;
		window = flow->initial_window;
	} else if (!tt_filter_get(&flow->path.rtt_min)) {
		return;
	}
	if (safe == TT_CCA_CUBIC && tt_ca_state(tp) >= TCP_CA_CWR) {
		tt_muses_set(muses, tt_min((u64)window * TT_MUSES_PARTS, muses->cwnd));
		tt_muses_apply_window(tp, muses);
		return;
	}
	/* What a policy leaves idle is to be searched for. */
	flow->path.lost_without_queue |= muses->alarm == TT_ALARM_UNKNOWN;
	tt_seq_move(slot);
	slot->flags |= muses->alarm << TT_FLAG_ALARM_SHIFT;
	tt_seq_move(slot);
	tt_switch_to(sk, flow, slot, safe, flow->next, how, window);
}

/* The same for a connection without a slot, which has nothing to hand over: as if somebody had set TCP_CONGESTION. */
TT_INLINE void tt_muses_leave(struct sock *sk, struct tt_flow *flow)
{
	u32 safe = flow->muses.knobs[TT_MUSES_SAFE];

	if (safe && safe < TT_CCA_MUSES)
		tt_set_algorithm(sk, safe);
}

/*
 * A state was answered, or nothing is left in flight. What was measured is published with the
 * answers, so that the slot is touched once for both: an acknowledgement in 10 ms brings one.
 */
static __attribute__((noinline)) int tt_muses_conclude(struct sock *sk, struct tt_flow *flow,
						       const struct tt_seen *seen, bool decided)
{
	struct tt_slot *slot = tt_slot_get(flow->slot);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_muses *muses = &flow->muses;
	struct tt_standing standing = {};
	bool due = tt_publish_is_due(flow, seen);

	standing.window_packets = tt_muses_apply_window(tp, muses);
	standing.pacing_bytes_per_s = tt_muses_apply_pacing(sk, tp, muses);
	if (!slot) {
		if (muses->alarm)
			tt_muses_leave(sk, flow);
		return 0;
	}
	if (decided)
		tt_muses_count(slot, muses);
	if (due) {
		if (tt_has_new_knobs(flow, slot))
			tt_muses_take_knobs(muses, slot);
		standing.phase = TT_PHASE_STEADY;
		tt_slot_publish(slot, flow, tp, seen, &standing);
	}
	if (muses->alarm && muses->knobs[TT_MUSES_SAFE])
		tt_muses_give_way(sk, flow, slot);
	else if (due)
		tt_switch_if_due(sk, flow, slot, true,
				 tt_muses_operating_window(muses, tt_path_bandwidth(&flow->path), tp->srtt_us >> 3));
	return 0;
}

/* Each acknowledgement is measured in the flow. */
TT_INLINE bool tt_muses_waits(struct sock *sk, const struct rate_sample *rs) { return false; }

TT_INLINE int tt_muses_on_ack_event(struct sock *sk, struct tt_flow *flow, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_muses *muses = &flow->muses;
	struct tt_muses_ack ack = {};
	struct tt_seen seen;
	bool decided, lost;

	tt_see(&seen, tp, rs);
	tt_batch_add(&flow->batch, &seen);
	tt_muses_see(&ack, muses, tp, rs, &seen);
	lost = tt_ca_state(tp) == TCP_CA_Loss;
	if (lost && !muses->was_lost)
		tt_muses_on_timeout(muses); /* `set_state` was left out */
	muses->was_lost = lost;
	decided = tt_muses_on_ack(muses, &ack);
	if (decided || !seen.packets_out)
		tt_muses_conclude(sk, flow, &seen, decided);
	return 0;
}

TT_INLINE void tt_muses_on_state(struct sock *sk, struct tt_flow *flow, u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (new_state == TCP_CA_CWR) {
		tt_muses_on_marked(&flow->muses, tp->tcp_mstamp, tp->tcp_mstamp, tp->mss_cache);
		tt_muses_apply_window(tp, &flow->muses);
		tt_muses_apply_pacing(sk, tp, &flow->muses);
	}
	if (new_state != TCP_CA_Loss)
		return;
	tt_muses_on_timeout(&flow->muses);
	flow->muses.was_lost = true;
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_muses_on_tx_start(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if ((u32)bpf_jiffies64() - tp->lsndtime > tp->inet_conn.icsk_rto) {
		tt_muses_on_idle(&flow->muses);
		tt_muses_apply_window(tp, &flow->muses);
		tt_muses_apply_pacing(sk, tp, &flow->muses);
	}
}

TT_CONTROL_HOOKS(MUSES, muses)
TT_EVENT_HOOKS(MUSES, muses)

#define TT_MUSES_OPS(since) TT_KEEP_OPS, TT_CONTROL_##since(muses)

#endif
