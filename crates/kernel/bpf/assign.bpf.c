/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * A walk over the TCP sockets of a network namespace (iter/tcp) that tells of each and carries out
 * what is ordered: it gives a socket another algorithm, as the program that owns it could by
 * TCP_CONGESTION. Who gets what is decided in user space, from what an earlier walk told. An object
 * of its own, since the datapath runs without it.
 */
#include "kernel.h"
#include "assign.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Values of the kernel's user-space interface, which do not change. */
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define ENOMEM 12

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TT_ORDERS_MAX);
	__type(key, u64); /* the socket's cookie */
	__type(value, struct tt_order);
} tt_orders SEC(".maps");

/* Kept as a file: the next agent knows what this one gave. BPF_F_CLONE: accepted sockets inherit
 * it with the algorithm. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct tt_given);
} tt_given SEC(".maps");

static __always_inline bool same(const u8 *a, const u8 *b)
{
	const u64 *x = (const u64 *)a, *y = (const u64 *)b;

	return x[0] == y[0] && x[1] == y[1];
}

static __always_inline void copy(u8 *to, const u8 *from)
{
	__builtin_memcpy(to, from, TT_NAME_SIZE);
}

/* What became of the order. The walk may come by twice, when what it told found no room. */
static __always_inline u32 carry_out(struct tcp_sock *tp, struct tt_socket *told, struct tt_order *order)
{
	struct tt_given *given = bpf_sk_storage_get(&tt_given, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	int failed;

	if (!given)
		return -ENOMEM;
	if (same(told->algorithm, order->to) && same(given->given, order->to))
		return 1;
	if (!same(told->algorithm, order->from))
		return 0;
	failed = bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, order->to, TT_NAME_SIZE);
	if (failed)
		return failed;
	if (!given->given[0])
		copy(given->former, order->from);
	copy(given->given, order->to);
	copy(told->algorithm, order->to);
	return 1;
}

SEC("iter/tcp")
int tt_walk(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tt_socket told = {};
	struct tt_order *order;
	struct tt_given *given;
	struct tcp_sock *tp;
	struct sock *sk;

	if (!common)
		return 0;
	/* Neither what asks for a connection nor what is left of one. */
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	sk = &tp->inet_conn.icsk_inet.sk;
	common = &sk->__sk_common;
	told.state = common->skc_state;
	if (told.state != TT_STATE_ESTABLISHED && told.state != TT_STATE_CLOSE_WAIT && told.state != TT_STATE_LISTEN)
		return 0;
	told.cookie = bpf_get_socket_cookie(tp);
	if (bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, told.algorithm, TT_NAME_SIZE))
		return 0;
	told.chosen = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt);
	order = bpf_map_lookup_elem(&tt_orders, &told.cookie);
	if (order)
		told.outcome = carry_out(tp, &told, order);
	given = bpf_sk_storage_get(&tt_given, tp, 0, 0);
	if (given) {
		copy(told.given, given->given);
		copy(told.former, given->former);
	}

	told.netns_cookie = common->skc_net.net->net_cookie;
	told.cgroup_id = sk->sk_cgrp_data.cgroup ? sk->sk_cgrp_data.cgroup->kn->id : 0;
	told.family = common->skc_family;
	told.local_port = common->skc_num;
	told.remote_port = __builtin_bswap16(common->skc_dport);
	if (common->skc_family == AF_INET6) {
#pragma unroll
		for (int i = 0; i < 4; i++) {
			told.local_addr[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			told.remote_addr[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else {
		told.local_addr[0] = common->skc_rcv_saddr;
		told.remote_addr[0] = common->skc_daddr;
	}
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}
