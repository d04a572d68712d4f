/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * BBR's hooks, as those of Linux's own (`net/ipv4/tcp_bbr.c`, whose functions are named). Linux's
 * runs with every acknowledgement. Here, where nothing is expected to change, those of up to half a
 * round trip are one to it: in ProbeBW, with the window at its target and nothing lost
 * (tt_bbr_is_due). What it goes by is not lost: the best of their delivery rates, the least of
 * their round-trip times, the packets in all.
 *
 * One thing Linux does elsewhere: in ProbeRTT its BBR marks what it sends as limited by the
 * application, in the socket, which a program may not write in every kernel. The core knows those
 * packets by how much was delivered when they were sent. And two hooks are left out, which would
 * cost a sixth of all the others each: below 1.2 Mbit/s Linux's has single packets leave, not two
 * (`bbr_min_tso_segs`); and it wants a send buffer of three windows, where the system's two are of
 * the largest that there was, in Startup at nearly three times what the path holds
 * (`bbr_sndbuf_expand`).
 */
#ifndef TRIMTAB_BBR_BPF_H
#define TRIMTAB_BBR_BPF_H

#include "hooks.bpf.h"

/*
 * The least that it runs, as a share of a round trip: the draining phase may end early, by what is
 * in flight, and the probing one may find more bandwidth; the other six are there for their time to
 * pass.
 */
#define TT_BBR_YIELD_SHARE_SHIFT 3
#define TT_BBR_PROBE_SHARE_SHIFT 2
#define TT_BBR_CRUISE_SHARE_SHIFT 1
/* What may arrive at once before it is a burst (`bbr_update_ack_aggregation`), as a share of a round trip's. */
#define TT_BBR_BURST_SHARE_SHIFT 4

TT_CLEARED_BY(tt_bbr_clear, struct tt_bbr);

/* Where the gain cycle begins next, for the draw that was used. */
TT_INLINE void tt_bbr_redraw(struct tt_bbr *bbr)
{
	bbr->draw = bpf_get_prandom_u32() % (TT_BBR_PHASES - 1);
	bbr->drawn = false;
}

TT_INLINE void tt_bbr_apply_pacing(struct sock *sk, const struct tt_bbr *bbr)
{
	sk->sk_pacing_rate = tt_min(bbr->pacing_bytes_per_s, sk->sk_max_pacing_rate);
}

/* The window and the pacing rate are the algorithm's from now on. */
TT_INLINE void tt_bbr_is_ready(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_bbr *bbr = &flow->bbr;

	tt_bbr_redraw(bbr);
	tt_pending_clear(tt_pending_of(tp), flow);
	tt_pending_of(tp)->eager = true;
	tp->snd_cwnd = tt_min(bbr->window, tp->snd_cwnd_clamp);
	/* For the algorithm that takes the socket next: no slow start of its own once the pipe was full. */
	tp->snd_ssthresh = bbr->full_pipe ? bbr->window : TCP_INFINITE_SSTHRESH;
	tt_bbr_apply_pacing(sk, bbr);
}

/* Takes the knobs of the slot. */
TT_INLINE void tt_bbr_take_knobs(struct tt_bbr *bbr, const struct tt_slot *slot)
{
#pragma unroll
	for (int i = 0; i < TT_BBR_KNOBS_COUNT; i++)
		bbr->tuning.knobs[i] = slot->bbr_knobs[i];
	tt_bbr_on_knobs(bbr);
}

TT_INLINE void tt_bbr_begin_with(struct tt_bbr *bbr, const struct tcp_sock *tp, u32 window)
{
	bbr->mss_bytes = tt_max(tp->mss_cache, 1);
	bbr->window = window;
	bbr->round_end = tp->delivered;
}

/* Goes on where another algorithm of ours was. */
TT_INLINE void tt_bbr_goes_on(struct sock *sk, struct tt_flow *flow, const struct tt_slot *slot,
			      const struct tt_tag *handed)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 srtt_us = tp->srtt_us >> 3;
	struct tt_hand_over over = {};
	struct tt_bbr *bbr = &flow->bbr;

	tt_pace(sk, flow);
	tt_bbr_clear(bbr);
	tt_bbr_take_knobs(bbr, slot);
	tt_bbr_begin_with(bbr, tp, handed->window);
	if (handed->how == TT_HOW_FULL) {
		tt_hand_over_read(&over, flow, tp, handed);
		over.delivered = tp->delivered;
		tt_bbr_take_over(bbr, &over);
	} else {
		tt_bbr_init(bbr, srtt_us);
	}
	tt_bbr_is_ready(sk, flow);
}

/* A connection begins with it. */
TT_INLINE u32 tt_bbr_begins(struct sock *sk, struct tt_flow *flow, const struct tt_control *control,
			     bool adopted)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_bbr *bbr = &flow->bbr;

	tt_pace(sk, flow);
#pragma unroll
	for (int i = 0; i < TT_BBR_KNOBS_COUNT; i++)
		bbr->tuning.knobs[i] = flow->first.words[i];
	tt_bbr_on_knobs(bbr);
	tt_bbr_begin_with(bbr, tp, tp->snd_cwnd);
	tt_bbr_init(bbr, tp->srtt_us >> 3);
	tt_bbr_is_ready(sk, flow);
	return tt_initial_window_q10(control, flow);
}

TT_OPEN_HOOK(BBR, bbr)

/* Takes over new knobs, at the price of one comparison where there are none. */
TT_INLINE void tt_bbr_orders(struct tt_flow *flow, const struct tt_slot *slot)
{
	if (!tt_has_new_knobs(flow, slot))
		return;
	tt_bbr_take_knobs(&flow->bbr, slot);
}

/* The state of recovery as the core has it. */
TT_INLINE u8 tt_bbr_recovery_of(u8 ca_state)
{
	if (ca_state < TCP_CA_Recovery)
		return TT_BBR_OPEN;
	return ca_state == TCP_CA_Recovery ? TT_BBR_REPAIRING : TT_BBR_TIMEOUT;
}

/* Adds what an acknowledgement said to what came since the algorithm ran. */
TT_INLINE void tt_bbr_pending_add(struct tt_pending *pending, const struct rate_sample *rs, const struct tt_seen *seen)
{
	__s32 delivered = rs->delivered;
	__s64 interval_us = rs->interval_us;

	pending->acked_packets += seen->acked;
	if (seen->rtt_us && (!pending->batch.rtt_min_us || seen->rtt_us <= pending->batch.rtt_min_us))
		pending->maybe_delayed = rs->is_ack_delayed;
	tt_batch_add(&pending->batch, seen);
	/* a/b >= c/d without dividing */
	if (delivered >= 0 && interval_us > 0 &&
	    (!pending->rate_us || (u64)delivered * pending->rate_us >= (u64)pending->rate_packets * (u32)interval_us)) {
		pending->rate_packets = delivered;
		pending->rate_us = interval_us;
		pending->app_limited = rs->is_app_limited;
	}
}

/*
 * Whether a version of BBR is to run now: a round begins, something was lost, nothing is left in
 * flight, more arrived at once than the path carries in that time, or it is time.
 */
TT_INLINE bool tt_bbr_is_due(const struct tt_pending *pending, const struct tcp_sock *tp, const struct rate_sample *rs,
			     const struct tt_seen *seen)
{
	if (tt_pending_is_due(pending, seen) || tt_is_at_or_after(rs->prior_delivered, pending->round_end))
		return true;
	/* Bytes below 2^46, a rate below 2^37 over less than 2^26 us: a step is half a round trip at most. */
	if ((u64)pending->acked_packets * pending->mss_bytes * 1000000 >
	    pending->bw_bytes_per_s * tt_min(tt_less(seen->now_us, pending->burst_from_us), 1 << 26))
		return true;
	return tt_ca_state(tp) >= TCP_CA_Recovery;
}

/* What is pending is done with; when the algorithm is to run again. */
TT_INLINE void tt_bbr_pending_begin(struct tt_pending *pending, const struct tt_flow *flow,
				    const struct tt_bbr_ack *ack)
{
	const struct tt_bbr *bbr = &flow->bbr;
	u64 phase_ends_us = bbr->phase_us + bbr->min_rtt_us + 1;
	u32 shift = TT_BBR_CRUISE_SHARE_SHIFT;

	if (bbr->phase <= TT_BBR_YIELD)
		shift = bbr->phase == TT_BBR_YIELD ? TT_BBR_YIELD_SHARE_SHIFT : TT_BBR_PROBE_SHARE_SHIFT;
	tt_pending_clear(pending, flow);
	/* A phase ends with the first acknowledgement after its time, or, when it probes, as soon as it can after that. */
	pending->due_us = tt_min(ack->now_us + (ack->srtt_us >> shift), phase_ends_us);
	pending->burst_from_us = tt_less(ack->now_us, ack->srtt_us >> TT_BBR_BURST_SHARE_SHIFT);
	pending->eager = bbr->mode != TT_BBR_PROBE_BW || bbr->window < bbr->target.packets ||
			 bbr->recovery != TT_BBR_OPEN || bbr->idle_restart;
	pending->bw_bytes_per_s = bbr->max_bw.best[0];
	pending->mss_bytes = bbr->mss_bytes;
	pending->round_end = bbr->round_end;
}

/* What `cong_control` was told since the algorithm ran, for it. */
TT_INLINE void tt_bbr_see(struct tt_bbr_ack *ack, const struct tt_pending *pending, const struct tcp_sock *tp,
			  const struct rate_sample *rs, const struct tt_seen *seen)
{
	ack->now_us = seen->now_us;
	ack->wait_ns = tt_less(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
	ack->mss_bytes = tp->mss_cache;
	ack->srtt_us = tp->srtt_us >> 3;
	ack->rtt_us = pending->batch.rtt_min_us;
	ack->acked = pending->acked_packets;
	ack->acked_before = pending->acked_packets - seen->acked;
	ack->losses = seen->losses;
	ack->delivered = tp->delivered;
	ack->prior_delivered = rs->prior_delivered;
	ack->lost = tp->lost;
	ack->inflight = tt_packets_inflight(tp);
	ack->prior_inflight = rs->prior_in_flight;
	ack->rate_packets = pending->rate_packets;
	ack->rate_us = pending->rate_us;
	ack->recovery = tt_bbr_recovery_of(tt_ca_state(tp));
	ack->app_limited = pending->app_limited;
	ack->maybe_delayed = pending->maybe_delayed;
}

TT_INLINE bool tt_bbr_waits(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_pending *pending = tt_pending_of(tp);
	struct tt_seen seen;

	tt_see(&seen, tp, rs);
	tt_bbr_pending_add(pending, rs, &seen);
	return !tt_bbr_is_due(pending, tp, rs, &seen);
}

static __attribute__((noinline)) int tt_bbr_on_ack_event(struct sock *sk, struct tt_flow *flow,
								const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_standing standing = {};
	struct tt_bbr_ack ack = {};
	struct tt_slot *slot = 0;
	struct tt_seen seen;
	struct tt_pending *pending = tt_pending_of(tp);
	struct tt_bbr *bbr = &flow->bbr;
	bool starts;

	tt_see(&seen, tp, rs);
	tt_pending_take(pending, flow);
	tt_bbr_see(&ack, pending, tp, rs, &seen);
	if (tt_publish_is_due(flow, &seen))
		slot = tt_slot_get(flow->slot);
	if (slot)
		tt_bbr_orders(flow, slot);
	starts = bbr->mode == TT_BBR_STARTUP;
	bbr->window = tp->snd_cwnd;
	tt_bbr_on_ack(bbr, &ack);
	tt_bbr_pending_begin(pending, flow, &ack);
	if (bbr->drawn)
		tt_bbr_redraw(bbr);
	if (starts && bbr->full_pipe) /* `bbr_check_drain` */
		tp->snd_ssthresh = tt_bbr_inflight_target(bbr, bbr->max_bw.best[0], TT_GAIN_UNIT);
	tp->snd_cwnd = tt_min(bbr->window, tp->snd_cwnd_clamp);
	tt_bbr_apply_pacing(sk, bbr);
	if (!slot)
		return 0;
	standing.window_packets = bbr->window;
	standing.pacing_bytes_per_s = bbr->pacing_bytes_per_s;
	standing.phase = tt_bbr_phase(bbr);
	tt_slot_publish(slot, flow, tp, &seen, &standing);
	tt_switch_if_due(sk, flow, slot, tt_bbr_is_converged(bbr),
			 tt_bbr_operating_window(bbr, ack.srtt_us, ack.inflight));
	return 0;
}

/* A recovery begins. Losses move the window by the algorithm's own rules, so the threshold stays. */
SEC("struct_ops")
u32 BPF_PROG(tt_bbr_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk, TT_CCA_BBR);

	if (!flow)
		return tcp_reno_ssthresh(sk);
	tt_pending_of(tp)->eager = true;
	flow->bbr.window = tp->snd_cwnd;
	tt_bbr_on_loss(&flow->bbr);
	return tp->snd_ssthresh;
}

/* The losses were none; the window comes back with the next acknowledgement. */
SEC("struct_ops")
u32 BPF_PROG(tt_bbr_undo, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk, TT_CCA_BBR);

	if (!flow)
		return tcp_reno_undo_cwnd(sk);
	tt_pending_of(tp)->eager = true;
	tt_bbr_on_spurious_loss(&flow->bbr);
	return tp->snd_cwnd;
}

/* After a timeout the kernel sets the window, to one packet more than is in flight. */
TT_INLINE void tt_bbr_on_state(struct sock *sk, struct tt_flow *flow, u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (new_state != TCP_CA_Loss)
		return;
	tt_pending_of(tp)->eager = true;
	tt_bbr_on_timeout(&flow->bbr, tp->tcp_mstamp, tt_packets_inflight(tp), tp->delivered, tp->lost);
	if (flow->bbr.drawn)
		tt_bbr_redraw(&flow->bbr);
}

/* A packet leaves while nothing else is in flight. */
TT_INLINE void tt_bbr_on_tx_start(struct sock *sk, struct tt_flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_bbr *bbr = &flow->bbr;

	if (tt_switch_if_nothing_is_known(sk, flow, tt_bbr_is_converged(&flow->bbr)))
		return;
	tt_pending_of(tp)->eager = true;
	bbr->window = tp->snd_cwnd;
	tt_bbr_on_first_sent(bbr, tp->tcp_mstamp, tp->app_limited != 0);
	if (bbr->drawn)
		tt_bbr_redraw(bbr);
	tp->snd_cwnd = tt_min(bbr->window, tp->snd_cwnd_clamp);
	tt_bbr_apply_pacing(sk, bbr);
}

TT_CONTROL_HOOKS(BBR, bbr)
TT_EVENT_HOOKS(BBR, bbr)

#define TT_BBR_OPS(since)                                                                          \
	.ssthresh = (void *)tt_bbr_ssthresh, .undo_cwnd = (void *)tt_bbr_undo, TT_CONTROL_##since(bbr)

#endif
