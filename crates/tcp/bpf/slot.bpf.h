/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Maps, and what happens to a connection's slot: it is claimed, written with every acknowledgement, and freed. */
#ifndef TRIMTAB_SLOT_BPF_H
#define TRIMTAB_SLOT_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "core/copa.h"

/* Set before loading; the verifier sees constants. */
const volatile u32 tt_slot_count = 1;

/* What the programs keep of one connection, beside its slot. It goes with the socket. */
struct tt_flow {
	u64 id;
	u64 delivered_packets;
	u64 last_ack_us;
	u32 slot;
	u32 knobs_version;
	u32 lost_packets; /* the socket's count at the last acknowledgement */
	u32 min_rtt_us;
	u8 ca_state;
	bool cookie_known;
	u8 rest[6];
	struct tt_copa copa;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tt_flow);
} tt_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tt_slot);
} tt_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tt_control);
} tt_control SEC(".maps");

/* Slots that were used and are free again. Those that never were are counted by `fresh`. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__uint(value_size, sizeof(u32));
} tt_free SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TT_EVENTS_BYTES);
} tt_events SEC(".maps");

/*
 * The sequence number makes what lies between two writes of it appear at once. A connection's hooks run one at a time,
 * under its socket's lock, so there is one writer. x86 keeps the order of stores, so only the compiler must; elsewhere
 * an atomic with a result is the full barrier that BPF has.
 */
#ifdef __TARGET_ARCH_x86
#define tt_barrier() asm volatile("" ::: "memory")
TT_INLINE void tt_seq_move(struct tt_slot *slot)
{
	tt_barrier();
	*(volatile u32 *)&slot->seq = slot->seq + 1;
	tt_barrier();
}
#else
TT_INLINE void tt_seq_move(struct tt_slot *slot)
{
	__sync_fetch_and_add(&slot->seq, 1);
}
#endif

TT_INLINE struct tt_control *tt_control_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&tt_control, &zero);
}

TT_INLINE struct tt_slot *tt_slot_get(u32 index)
{
	return bpf_map_lookup_elem(&tt_slots, &index);
}

TT_INLINE void tt_event_send(struct tt_control *control, const struct tt_event *event)
{
	if (bpf_ringbuf_output(&tt_events, (void *)event, sizeof(*event), 0) && control)
		__sync_fetch_and_add(&control->lost_events, 1);
}

TT_INLINE void tt_identify(struct tt_slot *slot, const struct tcp_sock *tp)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	const struct sock_common *common = &sk->__sk_common;

	slot->cookie = common->skc_cookie.counter;
	slot->netns_cookie = common->skc_net.net->net_cookie;
	slot->cgroup_id = sk->sk_cgrp_data.cgroup ? sk->sk_cgrp_data.cgroup->kn->id : 0;
	slot->opened_us = tp->tcp_mstamp;
	slot->family = common->skc_family;
	slot->local_port = common->skc_num;
	slot->remote_port = __builtin_bswap16(common->skc_dport);
	slot->ifindex = common->skc_bound_dev_if;
	if (common->skc_family == AF_INET6) {
#pragma unroll
		for (int i = 0; i < 4; i++) {
			slot->local_addr[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			slot->remote_addr[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	} else {
		slot->local_addr[0] = common->skc_rcv_saddr;
		slot->remote_addr[0] = common->skc_daddr;
	}
}

/* Gives the connection a slot with these knobs, or TT_NO_SLOT. */
TT_INLINE u32 tt_slot_claim(struct tt_flow *flow, const struct tcp_sock *tp, u32 cca, u32 flags, const u32 *knobs)
{
	struct tt_control *control = tt_control_get();
	struct tt_event event = { .kind = TT_EVENT_OPEN };
	struct tt_slot *slot;
	u32 index;

	if (!control)
		return TT_NO_SLOT;
	if (bpf_map_pop_elem(&tt_free, &index)) {
		u64 fresh = control->fresh < tt_slot_count ? __sync_fetch_and_add(&control->fresh, 1) : tt_slot_count;

		index = fresh;
		if (fresh >= tt_slot_count) {
			__sync_fetch_and_add(&control->slotless, 1);
			return TT_NO_SLOT;
		}
	}
	slot = tt_slot_get(index);
	if (!slot)
		return TT_NO_SLOT;
	flow->id = __sync_fetch_and_add(&control->last_id, 1) + 1;
	__sync_fetch_and_add(&control->live, 1);

	tt_seq_move(slot);
	/* The sequence number and what user space last ordered stay: both only ever move on. */
	__builtin_memset(&slot->interval_epoch, 0, sizeof(*slot) - __builtin_offsetof(struct tt_slot, interval_epoch));
	__builtin_memset(slot, 0, __builtin_offsetof(struct tt_slot, knobs_for));
	tt_identify(slot, tp);
	slot->cca = cca;
	slot->flags = flags;
	slot->index = index;
	slot->interval_epoch = slot->epoch;
	slot->knobs_version = slot->version;
	flow->knobs_version = slot->version;
	slot->knobs_for = flow->id;
#pragma unroll
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		slot->knobs[i] = knobs[i];
	slot->now_us = tp->tcp_mstamp;
	slot->mss_bytes = tp->mss_cache;
	slot->srtt_us = tp->srtt_us >> 3;
	slot->window_bytes = (u64)tp->snd_cwnd * tp->mss_cache;
	slot->pacing_bytes_per_s = ~0ULL;
	slot->id = flow->id;
	tt_seq_move(slot);

	event.slot = index;
	event.id = flow->id;
	event.now_us = tp->tcp_mstamp;
	tt_event_send(control, &event);
	return index;
}

/* The connection ends, or gets another algorithm. */
TT_INLINE void tt_slot_free(const struct tt_flow *flow, const struct tcp_sock *tp)
{
	struct tt_control *control = tt_control_get();
	struct tt_event event = { .kind = TT_EVENT_CLOSE };
	struct tt_slot *slot;
	u32 index = flow->slot;

	slot = index == TT_NO_SLOT ? 0 : tt_slot_get(index);
	if (!slot || !control || slot->id != flow->id)
		return;
	event.slot = index;
	event.id = flow->id;
	event.now_us = tp->tcp_mstamp;
	event.sent_bytes = tp->bytes_sent;
	event.acked_bytes = slot->acked_bytes;
	event.lost_bytes = slot->lost_bytes;
	tt_seq_move(slot);
	slot->id = 0;
	tt_seq_move(slot);
	__sync_fetch_and_add(&control->live, -1);
	bpf_map_push_elem(&tt_free, &index, 0);
	tt_event_send(control, &event);
}

/* What an acknowledgement said, for the slot. */
struct tt_measure {
	u64 acked_bytes; /* since the connection began */
	u64 lost_bytes;  /* by this acknowledgement */
	u64 window_bytes;
	u64 pacing_bytes_per_s;
	u32 packets_inflight;
	u32 rtt_us; /* 0 without a sample */
	u32 rate_packets;
	u32 rate_us; /* 0 without a sample, or limited by the application */
	u32 phase;
	u32 flags;
	u32 inverse_q16;
	u32 busy_us;
};

/* The extremes of an interval. When user space starts a new one, those of the old move aside, so that it loses none. */
TT_INLINE void tt_slot_extremes(struct tt_slot *slot, const struct tt_measure *m)
{
	u32 epoch = *(volatile u32 *)&slot->epoch;

	if (slot->interval_epoch != epoch) {
		slot->last_rtt_min_us = slot->rtt_min_us;
		slot->last_rtt_max_us = slot->rtt_max_us;
		slot->last_rate_packets = slot->rate_packets;
		slot->last_rate_us = slot->rate_us;
		slot->rtt_min_us = 0;
		slot->rtt_max_us = 0;
		slot->rate_packets = 0;
		slot->rate_us = 0;
		slot->interval_epoch = epoch;
	}
	if (m->rtt_us) {
		if (!slot->rtt_min_us || m->rtt_us < slot->rtt_min_us)
			slot->rtt_min_us = m->rtt_us;
		if (m->rtt_us > slot->rtt_max_us)
			slot->rtt_max_us = m->rtt_us;
	}
	/* a/b > c/d without dividing */
	if (m->rate_us &&
	    (!slot->rate_us || (u64)m->rate_packets * slot->rate_us > (u64)slot->rate_packets * m->rate_us)) {
		slot->rate_packets = m->rate_packets;
		slot->rate_us = m->rate_us;
	}
}

TT_INLINE void tt_slot_publish(struct tt_slot *slot, const struct tt_flow *flow, const struct tcp_sock *tp,
			       const struct tt_measure *m)
{
	tt_seq_move(slot);
	tt_slot_extremes(slot, m);
	slot->now_us = tp->tcp_mstamp;
	slot->sent_bytes = tp->bytes_sent;
	/* What was selectively acknowledged counts, and stays counted when the receiver takes it back. */
	slot->acked_bytes = tt_max(slot->acked_bytes, m->acked_bytes);
	slot->lost_bytes += m->lost_bytes;
	slot->busy_us += m->busy_us;
	if (m->rtt_us) {
		slot->rtt_sum_us += m->rtt_us;
		slot->rtt_count++;
	}
	slot->window_bytes = m->window_bytes;
	slot->inflight_bytes = (u64)m->packets_inflight * tp->mss_cache;
	slot->pacing_bytes_per_s = m->pacing_bytes_per_s;
	slot->srtt_us = tp->srtt_us >> 3;
	slot->min_rtt_us = flow->min_rtt_us;
	slot->mss_bytes = tp->mss_cache;
	slot->phase = m->phase;
	slot->flags = (slot->flags & TT_FLAG_ADOPTED) | m->flags;
	slot->inverse_delta_q16 = m->inverse_q16;
	slot->acks++;
	slot->knobs_version = flow->knobs_version;
	tt_seq_move(slot);
}

#endif
