/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Copa's hooks.
 *
 * Linux leaves to an algorithm with `cong_control` the window in every state, recovery included (no Proportional Rate
 * Reduction), the pacing rate, and the window after an idle time.
 */
#ifndef TRIMTAB_COPA_BPF_H
#define TRIMTAB_COPA_BPF_H

#include "hooks.bpf.h"

/*
 * Copa's least window. One packet would do for TCP (RFC 5681 §3.1), but alone in flight it waits for the receiver's
 * delayed acknowledgement, whose 40 ms Copa takes for a queue: it would never grow again.
 */
#define TT_WINDOW_MIN_PACKETS 2

/*
 * Round-trip times have on them what the hosts do: batches of packets through offloading,
 * interrupts, other threads. Copa would take it for a queue, and where the path is far shorter than
 * that it would stop: over a veth pair, with a round trip of 10 us, the window stayed at two
 * packets. In a queue of 48 Mbit/s this is one packet.
 */
#define TT_HOST_DELAY_US 250

/* Sets the socket's window; gives it in packets. */
TT_INLINE u32 tt_copa_apply_window(struct tcp_sock *tp, const struct tt_copa *copa)
{
	/* No window is above 2^30. */
	return tt_apply_window(tp, (u32)tt_copa_window_bytes(copa) / copa->mss_bytes);
}

TT_INLINE u64 tt_copa_apply_pacing(struct sock *sk, const struct tt_copa *copa)
{
	return tt_apply_rate(sk, tt_copa_pacing_bytes_per_s(copa));
}

TT_CLEARED_BY(tt_copa_clear, struct tt_copa);

TT_INLINE void tt_copa_begin(struct tt_flow *flow, struct tcp_sock *tp, u64 window_bytes)
{
	struct tt_copa *copa = &flow->copa;

	tt_copa_init(copa, tp->tcp_mstamp, tp->mss_cache, TT_WINDOW_MIN_PACKETS * tp->mss_cache, window_bytes);
	copa->slack_us = TT_HOST_DELAY_US;
}

/* The state is complete: the window is the socket's from now on. */
TT_INLINE void tt_copa_is_ready(struct tt_flow *flow, struct tcp_sock *tp)
{
	struct tt_copa *copa = &flow->copa;

	tt_velocity_reset(&copa->velocity, copa->window_q16);
	tt_pending_clear(tt_pending_of(tp), flow);
	tt_pending_of(tp)->eager = copa->slow_start;
	tt_copa_apply_window(tp, copa);
}

/* Takes the knobs of the slot. */
TT_INLINE void tt_copa_take_knobs(struct tt_copa *copa, const struct tt_slot *slot)
{
#pragma unroll
	for (int i = 0; i < TT_COPA_KNOBS_COUNT; i++)
		copa->knobs[i] = slot->copa_knobs[i];
}

/* Goes on where another algorithm of ours was. */
TT_INLINE void tt_copa_goes_on(struct sock *sk, struct tt_flow *flow, const struct tt_slot *slot,
			       const struct tt_tag *handed)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_copa *copa = &flow->copa;
	struct tt_hand_over over = {};

	tt_pace(sk, flow);
	tt_copa_clear(copa);
	tt_copa_take_knobs(copa, slot);
	tt_hand_over_read(&over, flow, tp, handed);
	tt_copa_begin(flow, tp, over.window_bytes);
	if (handed->how == TT_HOW_FULL)
		tt_copa_take_over(copa, &over);
	else if (handed->how == TT_HOW_PART)
		tt_copa_inherit(copa);
	else
		tt_copa_set_window(copa, tt_copa_initial_window_q16(copa));
	tt_copa_is_ready(flow, tp);
	tt_copa_apply_pacing(sk, copa);
}

/* A connection begins with it. */
TT_INLINE u32 tt_copa_begins(struct sock *sk, struct tt_flow *flow, const struct tt_control *control,
			     bool adopted)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_copa *copa = &flow->copa;

	tt_pace(sk, flow);
#pragma unroll
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		copa->knobs[i] = flow->first.words[i];
	if (!copa->knobs[TT_COPA_INITIAL_WINDOW] || adopted)
		copa->knobs[TT_COPA_INITIAL_WINDOW] = tt_max(tp->snd_cwnd, 1) * TT_SCALE_Q10;
	tt_copa_begin(flow, tp, 0);
	tt_copa_set_window(copa, tt_copa_initial_window_q16(copa));
	if (adopted) {
		/* The former algorithm's slow start ended at its threshold. */
		copa->slow_start = tp->snd_cwnd < tp->snd_ssthresh;
		copa->started = true;
	}
	tt_copa_is_ready(flow, tp);
	tt_copa_apply_pacing(sk, copa);
	return copa->knobs[TT_COPA_INITIAL_WINDOW];
}

TT_OPEN_HOOK(COPA, copa)

/* Takes over new knobs, at the price of one comparison where there are none. */
TT_INLINE void tt_copa_orders(struct tt_flow *flow, const struct tt_slot *slot)
{
	if (!tt_has_new_knobs(flow, slot))
		return;
	tt_copa_take_knobs(&flow->copa, slot);
	tt_copa_on_knobs(&flow->copa);
}

/* Runs the algorithm on what was acknowledged and lost since the last time. */
TT_INLINE void tt_copa_step(struct tt_flow *flow, struct tcp_sock *tp, const struct tt_seen *seen)
{
	struct tt_pending *pending = tt_pending_of(tp);
	struct tt_copa *copa = &flow->copa;
	struct tt_ack ack = {};
	u64 newest_sent_us = tp->first_tx_mstamp;
	u32 mss_bytes = tt_max(tp->mss_cache, 1);
	u32 srtt_us = tp->srtt_us >> 3;

	copa->mss_bytes = mss_bytes;
	copa->window_min_bytes = TT_WINDOW_MIN_PACKETS * mss_bytes;
	/* No packet that is lost was sent after the newest that arrived: RACK has it so (RFC 8985 §6.2). */
	if (seen->losses)
		tt_copa_on_loss(copa, seen->now_us, (u64)seen->losses * mss_bytes, newest_sent_us);
	if (pending->acked_packets) {
		flow->delivered_packets += pending->acked_packets;
		ack.now_us = seen->now_us;
		ack.acked_bytes = (u64)pending->acked_packets * mss_bytes;
		ack.rtt_us = pending->batch.rtt_min_us;
		ack.rtt_most_us = pending->batch.rtt_max_us;
		ack.srtt_us = srtt_us;
		ack.delivered = flow->delivered_packets;
		ack.inflight = tt_packets_inflight(tp);
		ack.newest_sent_us = newest_sent_us;
		ack.cwnd_limited = tt_is_cwnd_limited(tp, copa->slow_start);
		ack.in_recovery = tt_ca_state(tp) >= TCP_CA_Recovery;
		tt_copa_on_ack(copa, &ack);
	}
	tt_pending_clear(pending, flow);
	pending->due_us = seen->now_us + (srtt_us >> TT_STEP_SHARE_SHIFT);
	pending->eager = copa->slow_start;
}

/* What comes within a quarter of a round trip is one to it. */
TT_INLINE bool tt_copa_waits(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_pending *pending = tt_pending_of(tp);
	struct tt_seen seen;

	tt_see(&seen, tp, rs);
	tt_batch_add(&pending->batch, &seen);
	pending->acked_packets += seen.acked;
	return !tt_pending_is_due(pending, &seen);
}

static __attribute__((noinline)) int tt_copa_on_ack_event(struct sock *sk, struct tt_flow *flow,
								const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_standing standing = {};
	struct tt_copa *copa = &flow->copa;
	struct tt_slot *slot = 0;
	struct tt_seen seen;

	tt_see(&seen, tp, rs);
	tt_pending_take(tt_pending_of(tp), flow);
	if (tt_publish_is_due(flow, &seen))
		slot = tt_slot_get(flow->slot);
	if (slot)
		tt_copa_orders(flow, slot);
	tt_copa_step(flow, tp, &seen);
	standing.window_packets = tt_copa_apply_window(tp, copa);
	standing.pacing_bytes_per_s = tt_copa_apply_pacing(sk, copa);
	if (!slot)
		return 0;
	standing.phase = copa->slow_start ? TT_PHASE_SLOW_START : TT_PHASE_STEADY;
	standing.flags = copa->mode.inverse_q16 ? TT_FLAG_COMPETITIVE : 0;
	standing.inverse_q16 = tt_copa_inverse_q16(copa);
	tt_slot_publish(slot, flow, tp, &seen, &standing);
	tt_switch_if_due(sk, flow, slot, tt_copa_is_converged(copa), standing.window_packets);
	return 0;
}

TT_INLINE void tt_copa_on_state(struct sock *sk, struct tt_flow *flow, u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (new_state == TCP_CA_CWR) {
		tt_copa_on_marked(&flow->copa, tp->tcp_mstamp, tp->tcp_mstamp);
		tt_copa_apply_window(tp, &flow->copa);
		tt_copa_apply_pacing(sk, &flow->copa);
		tt_pending_of(tp)->eager = false;
		return;
	}
	if (new_state != TCP_CA_Loss)
		return;
	tt_copa_on_timeout(&flow->copa, tp->tcp_mstamp);
	tt_pending_of(tp)->eager = true;
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_copa_on_tx_start(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 idle_ticks;

	if (tt_switch_if_nothing_is_known(sk, flow, tt_copa_is_converged(&flow->copa)))
		return;
	idle_ticks = (u32)bpf_jiffies64() - tp->lsndtime;
	if (flow->copa.started && idle_ticks > tp->inet_conn.icsk_rto) {
		tt_copa_on_idle(&flow->copa);
		tt_copa_apply_window(tp, &flow->copa);
		tt_copa_apply_pacing(sk, &flow->copa);
		tt_pending_of(tp)->eager = flow->copa.slow_start;
	}
	tt_copa_on_first_sent(&flow->copa, tp->tcp_mstamp);
}

TT_CONTROL_HOOKS(COPA, copa)
TT_EVENT_HOOKS(COPA, copa)

#define TT_COPA_OPS(since) TT_KEEP_OPS, TT_CONTROL_##since(copa)

#endif
