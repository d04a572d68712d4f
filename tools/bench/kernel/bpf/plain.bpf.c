/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The measure of what an acknowledgement may cost: CUBIC in eBPF as the kernel has its own, with
 * the same hooks, the state in the socket and constants for knobs. No slot, no measurements, no
 * events: what crates/kernel adds to it is the difference.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "core/cubic.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 8 * (1 + 0.7) / 3 / (1 - 0.7), in whole numbers and with Linux's 717/1024. */
#define PLAIN_RENO_EIGHTHS 15

/* As Linux has them by default. */
static const struct tt_cubic_knobs plain_knobs = {
	.beta = 717,
	.c = 410,
	.reno_eighths = PLAIN_RENO_EIGHTHS,
	.fast_convergence = 1,
	.hystart = 2,
};

_Static_assert(sizeof(struct tt_cubic) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv), "it fits");

TT_INLINE struct tt_cubic *plain_state(struct tcp_sock *tp)
{
	return (struct tt_cubic *)tp->inet_conn.icsk_ca_priv;
}

TT_INLINE bool plain_is_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

SEC("struct_ops")
void BPF_PROG(plain_open, struct sock *sk)
{
	tt_cubic_reset(plain_state((struct tcp_sock *)sk));
}

SEC("struct_ops")
void BPF_PROG(plain_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_round round = {};
	__s32 rtt_us = sample->rtt_us;
	u32 threshold;

	if (rtt_us <= 0)
		return;
	round.now_us = tp->tcp_mstamp;
	round.rtt_us = rtt_us;
	round.window = tp->snd_cwnd;
	threshold = tp->snd_ssthresh;
	if (round.window < threshold) {
		round.acknowledged_to = tp->snd_una;
		round.sent_to = tp->snd_nxt;
		round.paced = sk->sk_pacing_status != SK_PACING_NONE;
	}
	if (tt_cubic_on_rtt(plain_state(tp), &plain_knobs, &round, threshold))
		tp->snd_ssthresh = round.window;
}

SEC("struct_ops")
void BPF_PROG(plain_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 window = tp->snd_cwnd;

	if (!plain_is_limited(tp))
		return;
	window = tt_cubic_on_ack(plain_state(tp), &plain_knobs, window, tp->snd_ssthresh, acked, tp->tcp_mstamp);
	tp->snd_cwnd = tt_min(window, tp->snd_cwnd_clamp);
}

SEC("struct_ops")
u32 BPF_PROG(plain_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tt_cubic_on_loss(plain_state(tp), &plain_knobs, tp->snd_cwnd);
}

SEC("struct_ops")
u32 BPF_PROG(plain_undo, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tt_max(tp->snd_cwnd, tp->prior_cwnd);
}

SEC("struct_ops")
void BPF_PROG(plain_state_change, struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Loss)
		tt_cubic_reset(plain_state((struct tcp_sock *)sk));
}

SEC("struct_ops")
void BPF_PROG(plain_event, struct sock *sk, u32 event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 now_us;

	if (event != CA_EVENT_TX_START)
		return;
	now_us = tp->tcp_mstamp;
	tt_cubic_on_first_sent(plain_state(tp), now_us, tt_less(now_us, tp->srtt_us >> 3));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops plain = {
	.name = "trimtab_plain",
	.init = (void *)plain_open,
	.ssthresh = (void *)plain_ssthresh,
	.undo_cwnd = (void *)plain_undo,
	.set_state = (void *)plain_state_change,
	.cwnd_event = (void *)plain_event,
	.pkts_acked = (void *)plain_acked,
	.cong_avoid = (void *)plain_avoid,
};
