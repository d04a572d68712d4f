/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a sender's TCP does outside of every thread: its pacing timer rings in a software interrupt,
 * whose time the kernel books on whatever thread it interrupted. Here it is added up for the
 * sockets of one network namespace.
 */
#include "types.h"

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hrtimer {
	void *function;
};
struct ns_common {
	u32 inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct sock_common {
	possible_net_t skc_net;
};
struct tcp_sock {
	struct hrtimer pacing_timer;
};
#pragma clang attribute pop

/* Set before loading: the address of the kernel's function tcp_pace_kick, and the inode of the sender's namespace. */
const volatile u64 pacing_function = 0;
const volatile u32 sender_netns = 0;

/* What user space reads and writes. */
struct counted {
	u64 time_ns;
	u64 runs;
	u32 threads[2]; /* of the sender, whose time is counted otherwise: what runs on top of them is left out */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counted);
} counted SEC(".maps");

/* The timer that rings on a processor. Others may ring on top of it. */
struct started {
	u64 timer;
	u64 at_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct started);
} started SEC(".maps");

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(softirq_enter, struct hrtimer *timer)
{
	u32 zero = 0, thread = bpf_get_current_pid_tgid();
	struct sock_common *socket;
	struct started *start;
	struct counted *c;

	if ((u64)timer->function != pacing_function)
		return 0;
	c = bpf_map_lookup_elem(&counted, &zero);
	start = bpf_map_lookup_elem(&started, &zero);
	if (!c || !start || thread == c->threads[0] || thread == c->threads[1])
		return 0;
	/* The socket begins with what is common to all, and has the timer within. */
	socket = (void *)timer - bpf_core_field_offset(struct tcp_sock, pacing_timer);
	if (BPF_CORE_READ(socket, skc_net.net, ns.inum) != sender_netns)
		return 0;
	start->timer = (u64)timer;
	start->at_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(softirq_exit, struct hrtimer *timer)
{
	u32 zero = 0;
	struct counted *c = bpf_map_lookup_elem(&counted, &zero);
	struct started *start = bpf_map_lookup_elem(&started, &zero);

	if (!c || !start || start->timer != (u64)timer)
		return 0;
	__sync_fetch_and_add(&c->time_ns, bpf_ktime_get_ns() - start->at_ns);
	__sync_fetch_and_add(&c->runs, 1);
	start->timer = 0;
	return 0;
}
