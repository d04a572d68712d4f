/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The programs that Linux calls: Copa as a TCP congestion control, by struct_ops.
 *
 * Who decides what, and how often: the window and the pacing rate are worked out here, with every acknowledgement, by
 * the pure functions of core/. User space turns knobs and reads measurements through a shared slot (layout.h), about
 * once per round trip, and without a system call; nothing here ever waits for it. When user space is gone, the last
 * knobs stay.
 *
 * What Linux leaves to an algorithm with `cong_control`: the window in every state, recovery included (no Proportional
 * Rate Reduction), the pacing rate, and the window after an idle time.
 */
#include "slot.bpf.h"
#include <bpf/bpf_tracing.h>

/* The kernel asks for a licence that it counts as compatible with its own. These files are under any of three. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

/*
 * Copa's least window. One packet would do for TCP (RFC 5681 §3.1), but alone in flight it waits for the receiver's
 * delayed acknowledgement, whose 40 ms Copa takes for a queue: it would never grow again.
 */
#define TT_WINDOW_MIN_PACKETS 2

TT_INLINE struct tt_flow *tt_flow_get(struct sock *sk)
{
	return bpf_sk_storage_get(&tt_flows, sk, 0, 0);
}

TT_INLINE u32 tt_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Whether the window limits the sender; as Linux's tcp_is_cwnd_limited, but for our own slow start. */
TT_INLINE bool tt_is_cwnd_limited(struct tcp_sock *tp, bool slow_start)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return slow_start && tp->snd_cwnd < 2 * tp->max_packets_out;
}

TT_INLINE void tt_copa_apply_window(struct tcp_sock *tp, const struct tt_copa *copa)
{
	u32 packets = tt_copa_window_bytes(copa) / copa->mss_bytes;

	tp->snd_cwnd = tt_min(tt_max(packets, 1), tp->snd_cwnd_clamp);
}

TT_INLINE u64 tt_copa_apply_pacing(struct sock *sk, const struct tt_copa *copa)
{
	u64 rate_Bps = tt_copa_pacing_bytes_per_s(copa);

	if (!rate_Bps)
		return ~0ULL; /* no sample yet: the initial window leaves at once, as with every algorithm of Linux */
	sk->sk_pacing_rate = tt_min(rate_Bps, sk->sk_max_pacing_rate);
	return rate_Bps;
}

SEC("struct_ops")
void BPF_PROG(tt_copa_open, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_control *control = tt_control_get();
	struct tt_flow *flow = bpf_sk_storage_get(&tt_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	bool adopted = tp->bytes_acked > 1; /* more than the SYN */
	struct tt_copa *copa;

	/* Without the fq queueing discipline, TCP itself paces once it is told to (as BBR does). */
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	if (!flow || !control)
		return; /* no memory: the window stays as it is, and every other hook lets it */
	copa = &flow->copa; /* all zero: storage that was just created is, and `release` deletes it */
#pragma unroll
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		copa->knobs[i] = control->copa_defaults[i];
	if (!copa->knobs[TT_COPA_INITIAL_WINDOW] || adopted)
		copa->knobs[TT_COPA_INITIAL_WINDOW] = tt_max(tp->snd_cwnd, 1) * TT_SCALE_Q10;
	tt_copa_init(copa, tp->tcp_mstamp, tp->mss_cache, TT_WINDOW_MIN_PACKETS * tp->mss_cache, 0);
	tt_copa_set_window(copa, tt_copa_initial_window_q16(copa));
	if (adopted) {
		/* The former algorithm's slow start ended where its threshold says so. */
		copa->slow_start = tp->snd_cwnd < tp->snd_ssthresh;
		copa->started = true;
	}
	tt_velocity_reset(&copa->velocity, copa->window_q16);
	flow->lost_packets = tp->lost;
	flow->last_ack_us = tp->tcp_mstamp;
	tt_copa_apply_window(tp, copa);
	flow->slot = tt_slot_claim(flow, tp, TT_CCA_COPA, adopted ? TT_FLAG_ADOPTED : 0, copa->knobs);
}

SEC("struct_ops")
void BPF_PROG(tt_close, struct sock *sk)
{
	struct tt_flow *flow = tt_flow_get(sk);

	if (!flow)
		return;
	tt_slot_free(flow, (struct tcp_sock *)sk);
	flow->slot = TT_NO_SLOT;
	bpf_sk_storage_delete(&tt_flows, sk);
}

/* Takes over new knobs, at the price of one comparison where there are none. */
TT_INLINE void tt_copa_orders(struct tt_flow *flow, const struct tt_slot *slot)
{
	u32 version = *(volatile u32 *)&slot->version;

	if (version == flow->knobs_version)
		return;
	flow->knobs_version = version;
	if (slot->knobs_for != flow->id)
		return; /* meant for the connection that had the slot before */
#pragma unroll
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		flow->copa.knobs[i] = slot->knobs[i];
	tt_copa_on_knobs(&flow->copa);
}

TT_INLINE void tt_copa_measure(struct tt_slot *slot, struct tt_flow *flow, struct sock *sk, const struct rate_sample *rs,
			       u64 lost_bytes, u64 rate_Bps)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	const struct tt_copa *copa = &flow->copa;
	struct tt_measure m = {};

	m.acked_bytes = tp->bytes_acked + (u64)tp->sacked_out * tp->mss_cache;
	m.lost_bytes = lost_bytes;
	m.window_bytes = (u64)tp->snd_cwnd * tp->mss_cache;
	m.pacing_bytes_per_s = rate_Bps;
	m.packets_inflight = tt_packets_in_flight(tp);
	m.rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
	if (rs->delivered > 0 && rs->interval_us > 0 && !rs->is_app_limited) {
		m.rate_packets = rs->delivered;
		m.rate_us = rs->interval_us;
		/* Up to the acknowledgement of data that was not held back: as trimtab_steer::Collector. */
		m.busy_us = tt_less(tp->tcp_mstamp, flow->last_ack_us);
	}
	m.phase = copa->slow_start ? TT_PHASE_SLOW_START : TT_PHASE_STEADY;
	m.flags = copa->mode.inverse_q16 ? TT_FLAG_COMPETITIVE : 0;
	m.inverse_q16 = tt_copa_inverse_q16(copa);
	tt_slot_publish(slot, flow, tp, &m);
	if (!flow->cookie_known) {
		slot->cookie = sk->__sk_common.skc_cookie.counter;
		flow->cookie_known = slot->cookie != 0;
	}
}

TT_INLINE void tt_copa_on_ack_event(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_get(sk);
	struct tt_slot *slot;
	struct tt_copa *copa;
	u32 lost_packets;
	u64 rate_Bps;

	if (!flow)
		return;
	slot = tt_slot_get(flow->slot);
	if (slot)
		tt_copa_orders(flow, slot);
	copa = &flow->copa;
	copa->mss_bytes = tt_max(tp->mss_cache, 1);
	copa->window_min_bytes = TT_WINDOW_MIN_PACKETS * copa->mss_bytes;
	lost_packets = tp->lost - flow->lost_packets;
	flow->lost_packets = tp->lost;
	/* No packet that is lost was sent after the newest that arrived: RACK has it so (RFC 8985 §6.2). */
	if (rs->losses > 0)
		tt_copa_on_loss(copa, tp->tcp_mstamp, (u64)rs->losses * copa->mss_bytes, tp->first_tx_mstamp);
	if (rs->acked_sacked) {
		struct tt_ack ack = {};

		flow->delivered_packets += rs->acked_sacked;
		if (rs->rtt_us > 0) {
			ack.rtt_us = rs->rtt_us;
			if (!flow->min_rtt_us || rs->rtt_us < flow->min_rtt_us)
				flow->min_rtt_us = rs->rtt_us;
		}
		ack.now_us = tp->tcp_mstamp;
		ack.acked_bytes = (u64)rs->acked_sacked * copa->mss_bytes;
		ack.srtt_us = tp->srtt_us >> 3;
		ack.delivered = flow->delivered_packets;
		ack.inflight = tt_packets_in_flight(tp);
		ack.newest_sent_us = tp->first_tx_mstamp;
		ack.cwnd_limited = tt_is_cwnd_limited(tp, copa->slow_start);
		ack.in_recovery = flow->ca_state >= TCP_CA_Recovery;
		tt_copa_on_ack(copa, &ack);
	}
	tt_copa_apply_window(tp, copa);
	rate_Bps = tt_copa_apply_pacing(sk, copa);
	if (slot)
		tt_copa_measure(slot, flow, sk, rs, (u64)lost_packets * copa->mss_bytes, rate_Bps);
	if (rs->acked_sacked)
		flow->last_ack_us = tp->tcp_mstamp;
}

/* Since Linux 6.10, which gave it two arguments more. */
SEC("struct_ops")
void BPF_PROG(tt_copa_ack, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	tt_copa_on_ack_event(sk, rs);
}

/* Before Linux 6.10. */
SEC("struct_ops")
void BPF_PROG(tt_copa_ack_before_6_10, struct sock *sk, const struct rate_sample *rs)
{
	tt_copa_on_ack_event(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(tt_copa_state, struct sock *sk, u8 new_state)
{
	struct tt_flow *flow = tt_flow_get(sk);

	if (!flow)
		return;
	flow->ca_state = new_state;
	if (new_state == TCP_CA_Loss)
		tt_copa_on_timeout(&flow->copa, ((struct tcp_sock *)sk)->tcp_mstamp);
}

SEC("struct_ops")
void BPF_PROG(tt_copa_event, struct sock *sk, u32 event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow;
	u32 idle_ticks;

	if (event != CA_EVENT_TX_START)
		return;
	flow = tt_flow_get(sk);
	if (!flow)
		return;
	idle_ticks = (u32)bpf_jiffies64() - tp->lsndtime;
	if (flow->copa.started && idle_ticks > tp->inet_conn.icsk_rto) {
		tt_copa_on_idle(&flow->copa);
		tt_copa_apply_window(tp, &flow->copa);
	}
	tt_copa_on_first_sent(&flow->copa, tp->tcp_mstamp);
}

/* Losses move the window by the algorithm's own rules, so neither the threshold nor an undo does. */
SEC("struct_ops")
u32 BPF_PROG(tt_copa_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops")
u32 BPF_PROG(tt_copa_undo, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

#define TT_COPA_OPS                                                                                                    \
	.name = "trimtab_copa", .init = (void *)tt_copa_open, .release = (void *)tt_close,                             \
	.ssthresh = (void *)tt_copa_ssthresh, .undo_cwnd = (void *)tt_copa_undo, .set_state = (void *)tt_copa_state,   \
	.cwnd_event = (void *)tt_copa_event

/* The loader creates one of the two, by what the kernel's BTF says of `cong_control`. */
SEC(".struct_ops.link")
struct tcp_congestion_ops copa = { TT_COPA_OPS, .cong_control = (void *)tt_copa_ack };

SEC(".struct_ops.link")
struct tcp_congestion_ops copa_old = { TT_COPA_OPS, .cong_control = (void *)tt_copa_ack_before_6_10 };
