/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What no algorithm can be below: the time that the kernel's statistics give for a program that
 * does nothing, and for one that changes one cache line of a flow, in memory as crates/kernel has
 * it. Reno sets the window, in a program that is not counted.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The kernel's own. */
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/* As tt_flows: so many bytes to a flow, of which the first cache line is touched. */
#define FLOWS 64
struct flow {
	u64 acks;
	u64 rest[287];
} __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FLOWS);
	__type(key, u32);
	__type(value, struct flow);
} flows SEC(".maps");

SEC("struct_ops")
void BPF_PROG(empty_acked, struct sock *sk, const struct ack_sample *sample) {}

SEC("struct_ops")
void BPF_PROG(line_acked, struct sock *sk, const struct ack_sample *sample)
{
	u32 index = FLOWS / 2;
	struct flow *flow = bpf_map_lookup_elem(&flows, &index);

	if (flow)
		flow->acks++;
}

SEC("struct_ops")
void BPF_PROG(reno_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
u32 BPF_PROG(reno_threshold, struct sock *sk) { return tcp_reno_ssthresh(sk); }

SEC("struct_ops")
u32 BPF_PROG(reno_undo, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops.link")
struct tcp_congestion_ops empty = {
	.name = "trimtab_empty",
	.ssthresh = (void *)reno_threshold,
	.undo_cwnd = (void *)reno_undo,
	.pkts_acked = (void *)empty_acked,
	.cong_avoid = (void *)reno_avoid,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops line = {
	.name = "trimtab_line",
	.ssthresh = (void *)reno_threshold,
	.undo_cwnd = (void *)reno_undo,
	.pkts_acked = (void *)line_acked,
	.cong_avoid = (void *)reno_avoid,
};
