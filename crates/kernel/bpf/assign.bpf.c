/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Giving a socket another algorithm, as the program that owns it could by TCP_CONGESTION, in two
 * ways. A walk over the TCP sockets of a network namespace (iter/tcp) tells of each and carries out
 * what is ordered; who gets what is decided in user space, from what an earlier walk told. And a
 * hook of the root cgroup (sock_ops) gives it to sockets that begin to listen and to connections
 * that are established, in every network namespace and at once, by the rules that user space
 * compiled for it. An object of its own, since the datapath runs without it.
 */
#include "kernel.h"
#include "assign.h"
#include "core/choose.h"
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

/* One table of choices at a time: user space puts a new one in its place. */
struct tt_choices_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct tt_choices));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct tt_choices_map);
} tt_choices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tt_gave);
} tt_gave SEC(".maps");

static __always_inline bool same(const u8 *a, const u8 *b)
{
	const u64 *x = (const u64 *)a, *y = (const u64 *)b;

	return x[0] == y[0] && x[1] == y[1];
}

static __always_inline void copy(u8 *to, const u8 *from)
{
	__builtin_memcpy(to, from, TT_NAME_SIZE);
}

static __always_inline void keep(struct tt_given *given, const u8 *from, const u8 *to)
{
	if (!given->given[0])
		copy(given->former, from);
	copy(given->given, to);
}

static __always_inline u32 is_chosen(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt);
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
	keep(given, order->from, order->to);
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
	told.chosen = is_chosen(tp);
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

static u64 tt_cgroup_above(const struct tt_asked *asked, u32 level)
{
	struct cgroup *cgroup = (void *)asked->cgroup, *above = 0;
	u64 ancestors = asked->cgroup + bpf_core_field_offset(struct cgroup, ancestors);

	if (!cgroup || BPF_CORE_READ(cgroup, level) < (int)level)
		return 0;
	if (bpf_probe_read_kernel(&above, sizeof(above), (void *)(ancestors + level * sizeof(above))) || !above)
		return 0;
	return BPF_CORE_READ(above, kn, id);
}

/* A function of its own, which the kernel checks once and not for each of the choices. */
static long choose_one(u32 place, void *choosing)
{
	return tt_choose_one(place, choosing);
}

/* Who asks, of a socket that listens or is connected. */
static __always_inline void ask(struct tt_asked *asked, struct tcp_sock *tp, bool listens)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	struct sock_common *common = &sk->__sk_common;

	asked->netns_cookie = common->skc_net.net->net_cookie;
	asked->cgroup = (u64)sk->sk_cgrp_data.cgroup;
	asked->listens = listens;
	asked->port = common->skc_num;
	if (common->skc_family == AF_INET6) {
		asked->family = AF_INET6;
#pragma unroll
		for (int i = 0; i < 4; i++)
			asked->remote[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		tt_asked_is_canonical(asked);
	} else {
		tt_asked_v4(asked, common->skc_daddr);
	}
}

/*
 * A choice of the program stays: what it set itself, also after ours. The same as `step` of the
 * agent's kernel/assign.rs says of a socket that an earlier walk told of. No algorithm has run by
 * then: the kernel calls this before it starts one (tcp_init_transfer of net/ipv4/tcp_input.c).
 */
static __always_inline void give(struct bpf_sock_ops *ctx, struct tcp_sock *tp, const struct tt_choices *choices,
				 const struct tt_choice *choice, bool runs_former)
{
	struct tt_given *given = bpf_sk_storage_get(&tt_given, tp, 0, 0);
	struct tt_gave *gave;
	u8 runs[TT_NAME_SIZE] __attribute__((aligned(8))) = {};
	u8 to[TT_NAME_SIZE] __attribute__((aligned(8)));
	u8 former[TT_NAME_SIZE] __attribute__((aligned(8)));
	const u8 *copied;
	bool by_hand;
	int failed;
	u32 zero = 0;

	if (bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, runs, TT_NAME_SIZE))
		return;
	copy(former, given && given->given[0] ? given->former : runs);
	if (choice->gives != TT_GIVES_FORMER) {
		copied = runs_former ? tt_copy_of(choices, former) : 0;
		copy(to, copied ? copied : choice->algorithm);
	} else if (given && given->given[0]) {
		copy(to, former);
	} else {
		return; /* it was given nothing */
	}
	by_hand = given && given->given[0] ? !same(runs, given->given) : is_chosen(tp);
	if (by_hand || same(runs, to))
		return;
	given = bpf_sk_storage_get(&tt_given, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	failed = given ? bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, to, TT_NAME_SIZE) : -ENOMEM;
	gave = bpf_map_lookup_elem(&tt_gave, &zero);
	if (failed) {
		if (gave) {
			__sync_fetch_and_add(&gave->refused, 1);
			gave->error = -failed;
		}
		return;
	}
	keep(given, runs, to);
	if (gave)
		__sync_fetch_and_add(&gave->given, 1);
}

SEC("sockops")
int tt_assign(struct bpf_sock_ops *ctx)
{
	bool listens = ctx->op == BPF_SOCK_OPS_TCP_LISTEN_CB;
	struct tt_choosing choosing = { .found = TT_NO_CHOICE };
	const struct tt_choice *choice;
	struct tt_choices *choices;
	bool runs_former;
	struct bpf_sock *sk;
	struct tcp_sock *tp;
	void *table;
	u32 zero = 0;

	if (!listens && ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	table = bpf_map_lookup_elem(&tt_choices, &zero);
	if (!table)
		return 1;
	choices = bpf_map_lookup_elem(table, &zero);
	if (!choices || !choices->count)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	ask(&choosing.asked, tp, listens);
	choosing.choices = choices;
	bpf_loop(TT_CHOICES_MAX + 1, choose_one, &choosing, 0);
	choice = tt_chosen(&choosing, choices);
	if (!choice)
		return 1;
	runs_former = !listens && tt_runs_former(&choosing.asked, &choices->arms, bpf_ktime_get_ns());
	give(ctx, tp, choices, choice, runs_former);
	return 1;
}
