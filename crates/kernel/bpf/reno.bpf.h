/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a connection runs for whose state there is no memory: Linux's Reno, which keeps all that it
 * needs in the socket. Each acknowledgement tries to get memory again.
 *
 * The kernel leaves to an algorithm with `cong_control` the window in recovery, too: it falls to
 * the threshold at once (RFC 5681 section 3.2 without the inflation that SACK makes needless).
 */
#ifndef TRIMTAB_RENO_BPF_H
#define TRIMTAB_RENO_BPF_H

#include "measure.bpf.h"
#include "slot.bpf.h"

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/*
 * Whether the kernel has called `init`. Of a connection that this host opens, the acknowledgement
 * of the SYN comes before: what took the connection in then would be forgotten with its slot when
 * `init` does.
 */
TT_INLINE bool tt_is_open(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_initialized);
}

/* For `cong_control`. */
TT_INLINE void tt_reno_on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 state = tt_ca_state(tp);
	u32 acked = rs->acked_sacked;

	/* Nothing paces any more, and what paced before may have been slow. */
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		tp->snd_cwnd = tt_max(tt_min(tp->snd_cwnd, tp->snd_ssthresh), 1);
	else if (acked)
		tcp_reno_cong_avoid(sk, 0, acked);
}

/* --- Of algorithms that move the window by their own rules at losses: neither the threshold nor an undo does. */

SEC("struct_ops")
u32 BPF_PROG(tt_keep_threshold, struct sock *sk)
{
	if (!tt_flow_of_any(sk))
		return tcp_reno_ssthresh(sk);
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops")
u32 BPF_PROG(tt_keep_window, struct sock *sk)
{
	if (!tt_flow_of_any(sk))
		return tcp_reno_undo_cwnd(sk);
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

#endif
