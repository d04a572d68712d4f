/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The programs that Linux calls: TCP congestion controls, by struct_ops.
 *
 * Who decides what, and how often: the window and the pacing rate are worked out here by the pure
 * functions of core/, CUBIC's with every acknowledgement, Copa's four times a round trip and with
 * every one in slow start, BBR's and BBRv3's twice to eight times, and with every one where something may
 * change. User space turns knobs and reads measurements through a shared slot (layout.h), about
 * once per round trip, and without a system call; nothing here ever waits for it. When user space
 * is gone, the last knobs stay.
 *
 * All algorithms share the slots and what is kept of a connection, so one may take over from
 * another on an open connection: when user space orders it, with all that is known of the path
 * (switch.bpf.h). When somebody else sets TCP_CONGESTION, the slot of the first is freed, and the
 * second opens one with the window and the threshold that the socket has.
 */
#include "bbr.bpf.h"
#include "bbr3.bpf.h"
#include "copa.bpf.h"
#include "cubic.bpf.h"
#include "vivace.bpf.h"
#include "muses.bpf.h"

/* The kernel asks for a licence that it counts as compatible with its own. These files are under any of three. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops")
void BPF_PROG(tt_close, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow = tt_flow_of_any(sk);
	struct tt_control *control = tt_control_get();
	struct tt_tag *tag;

	if (!flow || flow->is_switching)
		return;
	if (flow->slot == TT_NO_SLOT) {
		if (flow->waits && control)
			__sync_fetch_and_add(&control->brief, 1);
		tt_slotless_delete(sk);
		return;
	}
	tt_place_set(sk, TT_NO_SLOT, 0);
	tag = bpf_sk_storage_get(&tt_tags, sk, 0, 0);
	/* Another connection has the slot, when user space took it back before. */
	if (tag && tag->id == flow->id)
		tt_slot_free(flow, tp);
}

/*
 * Marks the slots of all connections whose sockets are there, in every network namespace. A slot
 * that was open before the walk and is not marked after it has lost its socket, without `release`.
 * That a connection is closing is noted here, too, since its algorithm may hear of nothing any
 * more: of a reset, or where the other side does not answer the FIN.
 */
SEC("iter/bpf_sk_storage_map")
int tt_walk_tags(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tt_control *control = tt_control_get();
	struct tt_tag *tag = ctx->value;
	struct sock *sk = ctx->sk; /* read once: the verifier forgets what was asked of an earlier reading */
	struct tcp_sock *tp;
	struct tt_slot *slot;

	if (!sk || !tag || !control)
		return 0;
	slot = tt_slot_get(tag->slot);
	if (!slot || slot->id != tag->id)
		return 0;
	slot->walk = control->walk;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && tt_is_closing(tp))
		__sync_fetch_and_or(&slot->flags, TT_FLAG_CLOSING);
	return 0;
}

/* A connection without packets for so long loses nothing by another start of its algorithm. */
#define TT_REST_US 30000000

static __always_inline bool tt_rests(struct tcp_sock *tp)
{
	return !tp->packets_out && bpf_ktime_get_ns() / 1000 - tp->tcp_mstamp > TT_REST_US;
}

/*
 * Whether these programs keep anything of a connection: former ones have maps of their own. To set
 * what runs already would mark the socket as one whose program chose it (`icsk_ca_setsockopt`).
 */
static __always_inline bool tt_is_kept(struct tcp_sock *tp)
{
	return bpf_sk_storage_get(&tt_tags, (void *)tp, 0, 0) || tt_slotless_get(tp, TT_CCA_COPA, 0) ||
	       tt_slotless_get(tp, TT_CCA_VIVACE, 0);
}

#define TT_CA_NAME_WORDS (TT_CA_NAME_SIZE / sizeof(u32))

/* Whether an algorithm of this datapath has this name. */
static __always_inline bool tt_is_ours(const u32 *name)
{
	for (u32 i = 0; i < TT_CCAS; i++) {
		const volatile u32 *ours = (const volatile u32 *)tt_settings.names[i];
		u32 differs = 0;

#pragma unroll
		for (u32 word = 0; word < TT_CA_NAME_WORDS; word++)
			differs |= ours[word] ^ name[word];
		if (!differs)
			return true;
	}
	return false;
}

/*
 * Gives listening sockets what is registered under the name that they picked: they keep the
 * programs that were registered then, and so do the connections that they accept. Those that picked
 * none take the default of their network namespace with each connection. Open connections are given
 * it when they rest. Where it is the same the kernel changes nothing. Connections leave their slots,
 * where that was ordered.
 */
SEC("iter/tcp")
int tt_renew(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	u32 name[TT_CA_NAME_WORDS] = {};
	struct tcp_sock *tp;
	u32 state;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
	if (state != TCP_LISTEN)
		tt_move_out(tp);
	if (state == TCP_LISTEN ? !BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt)
				: (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT) || !tt_rests(tp) || tt_is_kept(tp))
		return 0;
	if (bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
	/* Another datapath's are renewed by its own walk. */
	if (tt_is_ours(name))
		bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 0;
}

/*
 * The loader creates one of each algorithm, by what the kernel's BTF says of the operations
 * (src/kernel.rs), and names it. Each is called after the first kernel that it is for.
 */
#define TT_EVENT_6_1(lower) .cwnd_event = (void *)tt_##lower##_event
#define TT_EVENT_6_10(lower) TT_EVENT_6_1(lower)
#define TT_EVENT_7_1(lower) .cwnd_event_tx_start = (void *)tt_##lower##_tx_start
#define TT_OPS_SINCE(since, upper, lower)                                                          \
	SEC(".struct_ops.link")                                                                    \
	struct tcp_congestion_ops lower##_##since = {                                              \
		.init = (void *)tt_##lower##_open, .release = (void *)tt_close,                    \
		.set_state = (void *)tt_##lower##_state, TT_EVENT_##since(lower),                  \
		TT_##upper##_OPS(since)                                                            \
	};
#define TT_OPS(number, upper, lower)                                                               \
	TT_OPS_SINCE(6_1, upper, lower)                                                            \
	TT_OPS_SINCE(6_10, upper, lower)                                                           \
	TT_OPS_SINCE(7_1, upper, lower)
TT_ALGORITHMS(TT_OPS)
