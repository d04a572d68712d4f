/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BBRv3's hooks. Linux has no BBRv3 of its own; what the draft asks of a transport and Linux does
 * not give is made up for here:
 *
 *   what was in flight, and lost, when a packet was sent: core/bbr3_sent.h
 *   each lost packet: the packets that one acknowledgement reveals as lost are one, as long as all
 *     of them. They were sent before the newest that arrived (RACK, RFC 8985 section 6.2), a few
 *     packets at most, so they have its rate sample
 *   ranges of lost packets, of which six end Startup: each acknowledgement that reveals losses is one
 *
 * As BBR's (bbr.bpf.h), they run less often where nothing is expected to change, and take what came
 * since as one.
 */
#ifndef TRIMTAB_BBR3_BPF_H
#define TRIMTAB_BBR3_BPF_H

#include "bbr.bpf.h"

/*
 * The least that it runs, as a share of a round trip: after a probe it is to see what is in flight
 * fall, and in a probe the rate rise. While it cruises, only time passes.
 */
#define TT_BBR3_STEP_SHARE_SHIFT 2
#define TT_BBR3_CRUISE_SHARE_SHIFT 1

TT_CLEARED_BY(tt_bbr3_clear, struct tt_bbr3);

/* How long the next probe waits, for the draw that was used. */
TT_INLINE void tt_bbr3_redraw(struct tt_bbr3 *bbr)
{
	if (!bbr->drawn)
		return;
	bbr->draw = bpf_get_prandom_u32();
	bbr->draw_round = bpf_get_prandom_u32() & 1;
	bbr->drawn = false;
}

/* The socket's window and pacing rate; gives the window. */
TT_INLINE u32 tt_bbr3_apply(struct sock *sk, const struct tt_bbr3 *bbr)
{
	tt_apply_rate(sk, bbr->pacing_bytes_per_s);
	return tt_apply_window((struct tcp_sock *)sk, tt_bbr3_window(bbr) / tt_max(bbr->mss_bytes, 1));
}

/* What the next packet is sent with. */
TT_INLINE struct tt_sent_moment tt_bbr3_moment(const struct tcp_sock *tp)
{
	struct tt_sent_moment now = {
		.delivered = tp->delivered,
		.inflight = tt_packets_inflight(tp),
		.lost = tp->lost,
	};

	return now;
}

/* The window and the pacing rate are the algorithm's from now on. */
TT_INLINE void tt_bbr3_is_ready(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_sent_moment now = tt_bbr3_moment(tp);
	struct tt_bbr3 *bbr = &flow->bbr3;

	tt_sent_begin(&flow->sent, &now);
	bbr->drawn = true;
	tt_bbr3_redraw(bbr);
	tt_pending_clear(tt_pending_of(tp), flow);
	tt_pending_of(tp)->eager = true;
	tt_bbr3_apply(sk, bbr);
	/* For the algorithm that takes the socket next: no slow start of its own once the pipe was full. */
	tp->snd_ssthresh = bbr->full_reached ? tp->snd_cwnd : TCP_INFINITE_SSTHRESH;
}

/* Takes the knobs of the slot. */
TT_INLINE void tt_bbr3_take_knobs(struct tt_bbr3 *bbr, const struct tt_slot *slot)
{
#pragma unroll
	for (int i = 0; i < TT_BBR3_KNOBS_COUNT; i++)
		bbr->tuning.knobs[i] = slot->bbr3_knobs[i];
	tt_bbr3_on_knobs(bbr);
}

TT_INLINE void tt_bbr3_begin_with(struct tt_flow *flow, const struct tcp_sock *tp, u32 window)
{
	struct tt_bbr3 *bbr = &flow->bbr3;

	bbr->mss_bytes = tt_max(tp->mss_cache, 1);
	bbr->initial_packets = flow->initial_window;
	bbr->window_bytes = tt_bbr3_bytes(bbr, window);
	bbr->delivered = tp->delivered;
}

/* Goes on where another algorithm of ours was. */
TT_INLINE void tt_bbr3_goes_on(struct sock *sk, struct tt_flow *flow, const struct tt_slot *slot,
			       const struct tt_tag *handed)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_bbr3 *bbr = &flow->bbr3;
	struct tt_hand_over over = {};

	tt_pace(sk, flow);
	tt_bbr3_clear(bbr);
	tt_bbr3_take_knobs(bbr, slot);
	tt_bbr3_begin_with(flow, tp, handed->window);
	bbr->draw = bpf_get_prandom_u32();
	if (handed->how == TT_HOW_FULL) {
		tt_hand_over_read(&over, flow, tp, handed);
		tt_bbr3_take_over(bbr, &over);
	} else {
		tt_bbr3_init(bbr, tp->srtt_us >> 3);
	}
	tt_bbr3_is_ready(sk, flow);
}

/* A connection begins with it. */
TT_INLINE u32 tt_bbr3_begins(struct sock *sk, struct tt_flow *flow, const struct tt_control *control,
			     bool adopted)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_bbr3 *bbr = &flow->bbr3;

	tt_pace(sk, flow);
#pragma unroll
	for (int i = 0; i < TT_BBR3_KNOBS_COUNT; i++)
		bbr->tuning.knobs[i] = flow->first.words[i];
	tt_bbr3_on_knobs(bbr);
	tt_bbr3_begin_with(flow, tp, tp->snd_cwnd);
	tt_bbr3_init(bbr, tp->srtt_us >> 3);
	tt_bbr3_is_ready(sk, flow);
	return tt_initial_window_q10(control, flow);
}

TT_OPEN_HOOK(BBR3, bbr3)

/* Takes over new knobs, at the price of one comparison where there are none. */
TT_INLINE void tt_bbr3_orders(struct tt_flow *flow, const struct tt_slot *slot)
{
	if (tt_has_new_knobs(flow, slot))
		tt_bbr3_take_knobs(&flow->bbr3, slot);
}

/* Whether the algorithm asks what was in flight when a packet was sent. */
TT_INLINE bool tt_bbr3_asks(const struct tt_bbr3 *bbr)
{
	return bbr->inflight_longterm != TT_BBR3_NONE || (bbr->mode == TT_BBR3_STARTUP && bbr->in_recovery);
}

/* What `cong_control` was told since the algorithm ran, for it. */
TT_INLINE void tt_bbr3_see(struct tt_bbr3_ack *ack, struct tt_flow *flow, struct tcp_sock *tp,
			   const struct rate_sample *rs, const struct tt_seen *seen)
{
	const struct tt_pending *pending = tt_pending_of(tp);

	ack->now_us = seen->now_us;
	ack->newest_sent_us = tp->first_tx_mstamp;
	ack->mss_bytes = tp->mss_cache;
	ack->srtt_us = tp->srtt_us >> 3;
	ack->rtt_us = pending->batch.rtt_min_us;
	ack->acked = pending->acked_packets;
	ack->acked_before = pending->acked_packets - seen->acked;
	ack->delivered = tp->delivered;
	ack->inflight = tt_packets_inflight(tp);
	ack->rate_packets = pending->rate_packets;
	ack->rate_us = pending->rate_us;
	ack->app_limited = pending->app_limited;
	ack->cwnd_limited = tt_is_cwnd_limited(tp, false);
	ack->in_recovery = tt_ca_state(tp) >= TCP_CA_Recovery;
	/* Without a sample it acknowledges no packet of its own; the last that one did stands in. */
	if (rs->delivered >= 0)
		flow->sent.prior_delivered = rs->prior_delivered;
	ack->prior_delivered = flow->sent.prior_delivered;
}

/* What was in flight and lost: notes it for packets to come, finds it for the newest that arrived,
 * and reports losses. */
TT_INLINE void tt_bbr3_account(struct tt_bbr3_ack *ack, struct tt_flow *flow, const struct tcp_sock *tp,
			       const struct rate_sample *rs, const struct tt_seen *seen)
{
	struct tt_bbr3 *bbr = &flow->bbr3;
	struct tt_sent_moment moment = {
		.delivered = ack->delivered - seen->acked,
		.inflight = rs->prior_in_flight,
		.lost = tp->lost - seen->losses,
	};

	tt_sent_note(&flow->sent, seen->now_us, ack->srtt_us, &moment);
	if (!seen->losses && !tt_bbr3_asks(bbr))
		return;
	tt_sent_find(&flow->sent, ack->prior_delivered, &moment);
	ack->tx_in_flight = moment.inflight;
	ack->lost = tp->lost - moment.lost;
	if (seen->losses) {
		struct tt_bbr3_lost lost = {
			.now_us = ack->now_us,
			.packets = seen->losses,
			.tx_in_flight = ack->tx_in_flight,
			.lost = ack->lost,
			.prior_delivered = ack->prior_delivered,
			.app_limited = rs->is_app_limited,
			.new_range = true,
		};

		tt_bbr3_on_lost(bbr, &lost);
		tt_bbr3_redraw(bbr);
	}
}

/* What is pending is done with; when the algorithm is to run again. */
TT_INLINE void tt_bbr3_pending_begin(struct tt_pending *pending, const struct tt_flow *flow,
				     const struct tt_bbr3_ack *ack, u64 window_before)
{
	const struct tt_bbr3 *bbr = &flow->bbr3;
	u32 shift = bbr->mode == TT_BBR3_CRUISE ? TT_BBR3_CRUISE_SHARE_SHIFT : TT_BBR3_STEP_SHARE_SHIFT;

	tt_pending_clear(pending, flow);
	pending->due_us = tt_min(ack->now_us + (ack->srtt_us >> shift), bbr->cycle_us + bbr->probe_wait_us + 1);
	if (!tt_bbr3_is_in_probe_bw(bbr) || pending->due_us <= ack->now_us)
		pending->due_us = ack->now_us + (ack->srtt_us >> shift);
	pending->burst_from_us = tt_less(ack->now_us, ack->srtt_us >> TT_BBR_BURST_SHARE_SHIFT);
	pending->eager = !tt_bbr3_is_in_probe_bw(bbr) || bbr->window_bytes > window_before || bbr->in_recovery ||
			 bbr->idle_restart;
	pending->bw_bytes_per_s = bbr->bw_bytes_per_s;
	pending->mss_bytes = bbr->mss_bytes;
	pending->round_end = bbr->round_end;
}

TT_INLINE bool tt_bbr3_waits(struct sock *sk, const struct rate_sample *rs) { return tt_bbr_waits(sk, rs); }

static __attribute__((noinline)) int tt_bbr3_on_ack_event(struct sock *sk, struct tt_flow *flow,
								const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_standing standing = {};
	struct tt_bbr3_ack ack = {};
	struct tt_slot *slot = 0;
	struct tt_seen seen;
	struct tt_bbr3 *bbr = &flow->bbr3;
	u64 window_before;
	bool starts;

	tt_see(&seen, tp, rs);
	tt_pending_take(tt_pending_of(tp), flow);
	if (tt_publish_is_due(flow, &seen))
		slot = tt_slot_get(flow->slot);
	if (slot)
		tt_bbr3_orders(flow, slot);
	tt_bbr3_see(&ack, flow, tp, rs, &seen);
	bbr->mss_bytes = tt_max(ack.mss_bytes, 1);
	window_before = bbr->window_bytes;
	starts = bbr->mode == TT_BBR3_STARTUP;
	tt_bbr3_account(&ack, flow, tp, rs, &seen);
	tt_bbr3_on_ack(bbr, &ack);
	tt_bbr3_redraw(bbr);
	tt_bbr3_pending_begin(tt_pending_of(tp), flow, &ack, window_before);
	standing.window_packets = tt_bbr3_apply(sk, bbr);
	if (starts && bbr->full_reached)
		tp->snd_ssthresh = standing.window_packets;
	if (!slot)
		return 0;
	standing.pacing_bytes_per_s = bbr->pacing_bytes_per_s;
	standing.phase = tt_bbr3_phase(bbr);
	tt_slot_publish(slot, flow, tp, &seen, &standing);
	tt_switch_if_due(sk, flow, slot, tt_bbr3_is_converged(bbr),
			 tt_bbr3_operating_window(bbr, ack.srtt_us, ack.inflight));
	return 0;
}

/* The losses were none. */
SEC("struct_ops")
u32 BPF_PROG(tt_bbr3_undo, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk, TT_CCA_BBR3);

	if (!flow)
		return tcp_reno_undo_cwnd(sk);
	tt_pending_of(tp)->eager = true;
	tt_bbr3_on_spurious_loss(&flow->bbr3);
	return tp->snd_cwnd;
}

/*
 * Marks are answered once a round trip, as the kernel enters CWR (RFC 3168 section 6.1.2). After a
 * timeout the window is one packet more than is in flight, as the kernel's.
 */
TT_INLINE void tt_bbr3_on_state(struct sock *sk, struct tt_flow *flow, u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 now_us = tp->tcp_mstamp;

	if (new_state == TCP_CA_CWR) {
		tt_bbr3_on_marked(&flow->bbr3, now_us, now_us, tp->max_packets_out);
		tt_bbr3_apply(sk, &flow->bbr3);
	} else if (new_state == TCP_CA_Loss) {
		tt_bbr3_on_timeout(&flow->bbr3, now_us, tt_packets_inflight(tp));
		tt_pending_of(tp)->eager = true;
	}
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_bbr3_on_tx_start(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_bbr3 *bbr = &flow->bbr3;

	if (tt_switch_if_nothing_is_known(sk, flow, tt_bbr3_is_converged(bbr)))
		return;
	tt_pending_of(tp)->eager = true;
	tt_bbr3_on_first_sent(bbr, tp->tcp_mstamp, tp->app_limited != 0);
	tt_bbr3_redraw(bbr);
	tt_bbr3_apply(sk, bbr);
}

TT_CONTROL_HOOKS(BBR3, bbr3)
TT_EVENT_HOOKS(BBR3, bbr3)

#define TT_BBR3_OPS(since)                                                                         \
	.ssthresh = (void *)tt_keep_threshold, .undo_cwnd = (void *)tt_bbr3_undo, TT_CONTROL_##since(bbr3)

#endif
