/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Maps, and what happens to a connection's slot: it is claimed, written, and freed. The same for every algorithm. */
#ifndef TRIMTAB_SLOT_BPF_H
#define TRIMTAB_SLOT_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "models.bpf.h"
#include "core/switch.h"

/* The kernel's: no threshold is known, and a new connection's window (RFC 6928). */
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10

/* Set before loading; the verifier sees constants. */
const volatile struct tt_settings tt_settings = { .slot_count = 1 };

/*
 * After slow start, acknowledgements that come within a quarter of a round trip are one to the algorithm, but where they
 * say that something was lost. A fast connection gets hundreds in a round trip, and most then cost a third. (Kernel
 * ports of Copa decide once in half a round trip.)
 */
#define TT_STEP_SHARE_SHIFT 2
/* A slot is written twice a round trip, and no more often than this: user space steers by the round trip. */
#define TT_PUBLISH_SHARE_SHIFT 1
#define TT_PUBLISH_MIN_US 500

/* The flags that stay when the algorithm changes, and whatever it publishes. */
#define TT_FLAGS_KEPT (TT_FLAG_ADOPTED | TT_FLAG_TOWARDS | ((1 << TT_FLAG_ALARM_BITS) - 1) << TT_FLAG_ALARM_SHIFT)

/* What was acknowledged since the algorithm last ran. */
struct tt_pending {
	u64 due_us; /* when it is to run again */
	u32 acked_packets;
	u32 rtt_min_us; /* 0 without a sample */
	u32 rtt_max_us;
	bool eager; /* the algorithm wants every acknowledgement */
	/* BBR's alone. */
	bool app_limited;   /* the rate */
	bool maybe_delayed; /* the least round-trip time, by the receiver */
	u8 rest;
	u32 rate_packets; /* the best delivery rate: packets in time */
	u32 rate_us;      /* 0: no sample */
	u64 burst_from_us; /* what the path would have carried since then is no burst */
};

/* What was measured since it was last published. */
struct tt_batch {
	u64 due_us; /* when it is to be published again */
	u64 rtt_sum_us;
	u32 rtt_count;
	u32 acks;
	u32 busy_us;
	u32 rtt_min_us; /* 0 without a sample */
	u32 rtt_max_us;
	u32 rate_packets;
	u32 rate_us; /* 0 without a sample that the application did not limit */
	u32 rest;
};

/* What the programs keep of one connection, for themselves. */
struct tt_flow {
	u64 id;
	u64 delivered_packets;
	u64 last_ack_us;
	u32 slot;
	u32 knobs_version;
	u32 lost_packets; /* the socket's count when it was last published */
	u32 min_rtt_us;
	u32 initial_window; /* in packets, of a connection over this route */
	u32 next; /* the last order for another algorithm that was seen to; of a slot's `next` */
	bool cookie_known;
	bool is_switching; /* from one algorithm of ours to another, at this moment */
	bool paces; /* TCP paces because Copa, BBR or Muses told it to, and nobody else */
	bool is_towards; /* it began with the knobs of its destination */
	struct tt_knobs first; /* of the algorithm that it began with */
	struct tt_pending pending; /* Copa's and BBR's */
	struct tt_batch batch;
	struct tt_path path;
	union {
		struct tt_copa copa;
		struct tt_bbr bbr;
		struct tt_vivace vivace;
		struct tt_muses muses;
		struct {
			struct tt_cubic cubic;
			struct tt_cubic_knobs cubic_knobs;
		};
	};
};

/*
 * By slot: finding it is an addition, where a look-up of socket storage costs more than all of CUBIC (measured: 160 ns
 * of 270 on caches as they are at 2,000 acknowledgements a second).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tt_flow);
} tt_flows SEC(".maps");

/* Of connections without a slot; it goes with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tt_flow);
} tt_slotless SEC(".maps");

/* What is kept with the socket of a connection that has a slot. It goes with the socket. */
struct tt_tag {
	u64 id;    /* of the connection */
	u64 place; /* what the private area held, while one algorithm hands over to another; 0: none does */
	u32 slot;
	u32 how;
	u32 window; /* packets to go on with */
	u32 rest;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tt_tag);
} tt_tags SEC(".maps");

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

/* Knobs of connections to come by where they go. It takes memory for what is in it alone. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TT_TOWARDS_MAX);
	__type(key, struct tt_towards_key);
	__type(value, struct tt_knobs);
} tt_towards_knobs SEC(".maps");

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

/*
 * Reads a word that user space moves after it wrote what belongs to it (Release in flow.rs), so that what was written is seen from
 * here on. Linux's JITs make an atomic with a result a full barrier (BPF_FETCH, Documentation/bpf/standardization/instruction-set.rst);
 * a load-acquire of BPF's own came with Linux 6.15 only. It takes the line for itself, so a plain look at the word comes before it.
 */
TT_INLINE u32 tt_acquire(const u32 *word)
{
	return __sync_fetch_and_or((u32 *)word, 0);
}

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

/* The knobs of new connections to where this one goes; null where there are none. */
TT_INLINE const struct tt_knobs *tt_towards(const struct tcp_sock *tp, const struct tt_control *control, u32 cca)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	const struct sock_common *common = &sk->__sk_common;
	struct tt_towards_key key = { .bits = TT_TOWARDS_WHO_BITS + 128, .cca = cca };
	u32 by = control->towards_by;

	if (by & TT_BY_PORT)
		key.local_port = common->skc_num;
	if (by & TT_BY_NETNS)
		key.netns_cookie = common->skc_net.net->net_cookie;
	if (by & TT_BY_CGROUP)
		key.cgroup_id = sk->sk_cgrp_data.cgroup ? sk->sk_cgrp_data.cgroup->kn->id : 0;
	if (common->skc_family == AF_INET6) {
#pragma unroll
		for (int i = 0; i < 4; i++)
			key.addr[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
	} else {
		key.addr[2] = __builtin_bswap32(0xffff);
		key.addr[3] = common->skc_daddr;
	}
	return bpf_map_lookup_elem(&tt_towards_knobs, &key);
}

/*
 * The knobs that a new connection begins with: those of its destination, each brought into its range here, too, or the defaults. One
 * that has no slot has the defaults, since nobody could turn them later.
 */
TT_INLINE void tt_first_knobs(struct tt_flow *flow, const struct tcp_sock *tp, const struct tt_control *control,
			      u32 cca, const u32 *defaults)
{
	const struct tt_knobs *towards = flow->slot == TT_NO_SLOT ? 0 : tt_towards(tp, control, cca);

#pragma unroll
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		flow->first.words[i] = defaults[i];
	if (!towards)
		return;
	flow->is_towards = true;
#pragma unroll
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		flow->first.words[i] = tt_min(tt_max(towards->words[i], tt_settings.least[cca - 1][i]),
					      tt_settings.most[cca - 1][i]);
}

/* Takes a free slot; TT_NO_SLOT when there is none. */
TT_INLINE u32 tt_slot_take(struct tt_control *control)
{
	u64 fresh;
	u32 index;

	if (!bpf_map_pop_elem(&tt_free, &index))
		return index;
	/* Looked at first, so that it does not grow for ever. */
	fresh = control->fresh < tt_settings.slot_count ? __sync_fetch_and_add(&control->fresh, 1) : tt_settings.slot_count;
	if (fresh < tt_settings.slot_count)
		return fresh;
	__sync_fetch_and_add(&control->slotless, 1);
	return TT_NO_SLOT;
}

/*
 * A function that makes such a struct all zero again; words of eight bytes have to divide it. Volatile, or the compiler makes a call
 * of memset() of it, which there is none of.
 */
#define TT_CLEARED_BY(name, type)                                                                                      \
	TT_CHECKED_ONCE int name(type *what)                                                                           \
	{                                                                                                              \
		volatile u64 *words = (volatile u64 *)what;                                                            \
                                                                                                                       \
		if (!what)                                                                                             \
			return 0;                                                                                      \
		for (u32 i = 0; i < sizeof(type) / sizeof(u64); i++)                                                   \
			words[i] = 0;                                                                                  \
		return 0;                                                                                              \
	}                                                                                                              \
	_Static_assert(sizeof(type) % sizeof(u64) == 0, "words")

TT_CLEARED_BY(tt_flow_clear, struct tt_flow);

/* What there is to keep of a new connection: with a slot, or without. Null when there is no memory. */
TT_INLINE struct tt_flow *tt_flow_new(struct sock *sk, struct tt_control *control)
{
	struct tt_tag *tag = bpf_sk_storage_get(&tt_tags, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct tt_flow *flow;
	u32 index;

	tp->inet_conn.icsk_ca_priv[0] = 0;
	if (!tag)
		return 0; /* no slot that nothing says whose it is */
	index = tt_slot_take(control);
	tag->slot = index;
	tag->id = 0;
	if (index == TT_NO_SLOT) {
		flow = bpf_sk_storage_get(&tt_slotless, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	} else {
		tp->inet_conn.icsk_ca_priv[0] = 1 + (u64)index;
		flow = bpf_map_lookup_elem(&tt_flows, &index);
	}
	if (flow) {
		tt_flow_clear(flow);
		flow->slot = index;
	}
	return flow;
}

TT_INLINE struct tt_flow *tt_flow_get(struct sock *sk)
{
	u64 place = ((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv[0];
	u32 index = place - 1;

	if (place)
		return bpf_map_lookup_elem(&tt_flows, &index);
	return bpf_sk_storage_get(&tt_slotless, sk, 0, 0);
}

/* What there is to know of the socket before the algorithm runs. */
TT_INLINE void tt_flow_begin(struct tt_flow *flow, const struct tcp_sock *tp, bool paces)
{
	bool is_new = tp->bytes_acked <= 1; /* no more than the SYN */

	flow->paces = paces;
	flow->lost_packets = tp->lost;
	flow->last_ack_us = tp->tcp_mstamp;
	/* The route may have an `initcwnd` of its own. A lost SYN leaves one packet (`tcp_init_transfer`). */
	flow->initial_window = is_new && tp->snd_cwnd > 1 ? tp->snd_cwnd : TCP_INIT_CWND;
}

/*
 * Paces what leaves before the algorithm has a rate, for the handshake's round-trip time: twice the window in each
 * (`tcp_update_pacing_rate`, with the default of net.ipv4.tcp_pacing_ss_ratio). The kernel itself does so for algorithms
 * without `cong_control`. It never paces the first ten packets (`tcp_update_skb_after_send`), so this tells where the
 * route has a larger `initcwnd`. Gives the rate.
 */
TT_INLINE u64 tt_pace_first_flight(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 srtt_us = tp->srtt_us >> 3, rate;

	if (!srtt_us)
		return ~0ULL; /* nothing was measured: it leaves at once */
	rate = 2 * (u64)tp->snd_cwnd * tp->mss_cache * 1000000 / srtt_us;
	sk->sk_pacing_rate = tt_min(rate, sk->sk_max_pacing_rate);
	return rate;
}

/* Copa's initial window for the slot of a connection that begins with another algorithm. */
TT_INLINE u32 tt_initial_window_q10(const struct tt_control *control, const struct tt_flow *flow)
{
	u32 initial_window = control->copa_defaults[TT_COPA_INITIAL_WINDOW];

	return initial_window ? initial_window : flow->initial_window * TT_SCALE_Q10;
}

/* Its own knobs for the slot: those that it began with. */
#define TT_OWN_KNOBS(number, knobs, count)                                                                             \
	do {                                                                                                           \
		if (cca != (number))                                                                                   \
			break;                                                                                         \
		_Pragma("unroll") for (int i = 0; i < (count); i++) slot->knobs[i] = flow->first.words[i];             \
	} while (0)

/*
 * Fills the slot of a new connection, and says that it is there. Every other algorithm's knobs are the defaults, since any may run.
 */
TT_INLINE void tt_slot_open(struct tt_flow *flow, const struct tcp_sock *tp, struct tt_control *control, u32 cca,
			    u32 flags, u32 initial_window)
{
	struct tt_event event = { .kind = TT_EVENT_OPEN };
	struct tt_tag *tag;
	struct tt_slot *slot;

	if (flow->slot == TT_NO_SLOT)
		return;
	slot = tt_slot_get(flow->slot);
	if (!slot)
		return;
	tag = bpf_sk_storage_get(&tt_tags, (void *)tp, 0, 0);
	if (!tag)
		return; /* never: tt_flow_new made it */
	flow->id = __sync_fetch_and_add(&control->last_id, 1) + 1;
	tag->id = flow->id;
	__sync_fetch_and_add(&control->live, 1);

	tt_seq_move(slot);
	/* The sequence number and what user space last ordered stay: both only ever move on. */
	__builtin_memset(&slot->interval_epoch, 0, sizeof(*slot) - __builtin_offsetof(struct tt_slot, interval_epoch));
	__builtin_memset(slot, 0, __builtin_offsetof(struct tt_slot, knobs_for));
	tt_identify(slot, tp);
	slot->cca = cca;
	slot->flags = flags | (flow->is_towards ? TT_FLAG_TOWARDS : 0);
	slot->index = flow->slot;
	slot->interval_epoch = slot->epoch;
	slot->knobs_version = slot->version;
	flow->knobs_version = slot->version;
	slot->knobs_for = flow->id;
#pragma unroll
	for (int i = 0; i < TT_COPA_KNOBS_COUNT; i++)
		slot->copa_knobs[i] = control->copa_defaults[i];
#pragma unroll
	for (int i = 0; i < TT_CUBIC_KNOBS_COUNT; i++)
		slot->cubic_knobs[i] = control->cubic_defaults[i];
#pragma unroll
	for (int i = 0; i < TT_BBR_KNOBS_COUNT; i++)
		slot->bbr_knobs[i] = control->bbr_defaults[i];
#pragma unroll
	for (int i = 0; i < TT_VIVACE_KNOBS_COUNT; i++)
		slot->vivace_knobs[i] = control->vivace_defaults[i];
#pragma unroll
	for (int i = 0; i < TT_MUSES_KNOBS_COUNT; i++)
		slot->muses_knobs[i] = control->muses_defaults[i];
	TT_OWN_KNOBS(TT_CCA_COPA, copa_knobs, TT_COPA_KNOBS_COUNT);
	TT_OWN_KNOBS(TT_CCA_CUBIC, cubic_knobs, TT_CUBIC_KNOBS_COUNT);
	TT_OWN_KNOBS(TT_CCA_BBR, bbr_knobs, TT_BBR_KNOBS_COUNT);
	TT_OWN_KNOBS(TT_CCA_VIVACE, vivace_knobs, TT_VIVACE_KNOBS_COUNT);
	TT_OWN_KNOBS(TT_CCA_MUSES, muses_knobs, TT_MUSES_KNOBS_COUNT);
	slot->copa_knobs[TT_COPA_INITIAL_WINDOW] = initial_window;
	slot->next_done = slot->next;
	flow->next = slot->next;
	slot->now_us = tp->tcp_mstamp;
	slot->mss_bytes = tp->mss_cache;
	slot->srtt_us = tp->srtt_us >> 3;
	slot->window_bytes = (u64)tp->snd_cwnd * tp->mss_cache;
	slot->pacing_bytes_per_s = ~0ULL;
	slot->id = flow->id;
	tt_seq_move(slot);

	event.slot = flow->slot;
	event.id = flow->id;
	event.now_us = tp->tcp_mstamp;
	tt_event_send(control, &event);
}

/* Whether user space has turned knobs of this connection, at the price of one comparison where it has not. */
TT_INLINE bool tt_has_new_knobs(struct tt_flow *flow, const struct tt_slot *slot)
{
	if (*(volatile u32 *)&slot->version == flow->knobs_version)
		return false;
	flow->knobs_version = tt_acquire(&slot->version);
	return slot->knobs_for == flow->id; /* or they were meant for the connection that had the slot before */
}

/* The connection ends, or gets another algorithm. From here on `flow` is somebody else's. */
TT_INLINE void tt_slot_free(const struct tt_flow *flow, const struct tcp_sock *tp)
{
	struct tt_control *control = tt_control_get();
	struct tt_event event = { .kind = TT_EVENT_CLOSE };
	u32 index = flow->slot;
	struct tt_slot *slot = tt_slot_get(index);

	if (!slot || !control)
		return;
	/* Once: user space frees a slot whose socket is gone, as it seems to it. */
	if (__sync_val_compare_and_swap(&slot->id, flow->id, 0) != flow->id)
		return;
	event.slot = index;
	event.id = flow->id;
	event.now_us = tp->tcp_mstamp;
	event.sent_bytes = tp->bytes_sent;
	event.acked_bytes = tt_max(slot->acked_bytes, tp->bytes_acked);
	event.lost_bytes = slot->lost_bytes + (u64)(tp->lost - flow->lost_packets) * tp->mss_cache;
	/* As they were when nothing was in flight, if all arrived. */
	event.busy_us = slot->busy_us;
	event.rtt_sum_us = slot->rtt_sum_us;
	event.rtt_count = slot->rtt_count;
	event.last_us = slot->now_us;
	__sync_fetch_and_add(&control->live, -1);
	bpf_map_push_elem(&tt_free, &index, 0);
	tt_event_send(control, &event);
}

/*
 * What the hooks read of the socket and the rate sample, each field once: the kernel guards every load through a pointer
 * of its own with ten instructions, so reading one twice costs more than keeping it.
 */
struct tt_seen {
	u64 now_us;
	u32 packets_out;
	u32 rtt_us;  /* 0: no sample */
	u32 acked;   /* packets, by this acknowledgement */
	u32 losses;  /* packets, by this acknowledgement */
	u32 rate_packets; /* the delivery rate: packets in time */
	u32 rate_us; /* 0: no sample, or one that the application limited */
};

/* What the socket says, whatever the hook. */
TT_INLINE void tt_see_socket(struct tt_seen *seen, const struct tcp_sock *tp)
{
	seen->now_us = tp->tcp_mstamp;
	seen->packets_out = tp->packets_out;
}

/*
 * The state of recovery, asked of the socket: `set_state` tells of the same, but where it did not run (docs/concepts/ebpf-datapath.md)
 * what was remembered of it would stay wrong.
 */
TT_INLINE u8 tt_ca_state(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}

/* Only when it is needed: four loads. */
TT_INLINE u32 tt_packets_inflight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

TT_INLINE void tt_see_rate(struct tt_seen *seen, __s64 packets, __s64 interval_us, bool app_limited)
{
	bool good = packets > 0 && interval_us > 0 && !app_limited;

	seen->rate_packets = good ? packets : 0;
	seen->rate_us = good ? interval_us : 0;
}

/* The input of `cong_control`. */
TT_INLINE void tt_see(struct tt_seen *seen, const struct tcp_sock *tp, const struct rate_sample *rs)
{
	__s64 rtt_us = rs->rtt_us;
	int losses = rs->losses;

	tt_see_socket(seen, tp);
	tt_see_rate(seen, rs->delivered, rs->interval_us, rs->is_app_limited);
	seen->rtt_us = rtt_us > 0 ? rtt_us : 0;
	seen->acked = rs->acked_sacked;
	seen->losses = losses > 0 ? losses : 0;
}

/* Adds what an acknowledgement said. */
TT_INLINE void tt_batch_add(struct tt_flow *flow, const struct tt_seen *seen)
{
	struct tt_batch *batch = &flow->batch;
	u32 rtt_us = seen->rtt_us;

	batch->acks++;
	if (rtt_us) {
		batch->rtt_sum_us += rtt_us;
		batch->rtt_count++;
		if (!batch->rtt_min_us || rtt_us < batch->rtt_min_us)
			batch->rtt_min_us = rtt_us;
		if (rtt_us > batch->rtt_max_us)
			batch->rtt_max_us = rtt_us;
	}
	if (seen->rate_us) {
		/* The time up to data that the application did not hold back: as trimtab_steer::Collector. */
		batch->busy_us += tt_less(seen->now_us, flow->last_ack_us);
		/* a/b > c/d without dividing */
		if (!batch->rate_us ||
		    (u64)seen->rate_packets * batch->rate_us > (u64)batch->rate_packets * seen->rate_us) {
			batch->rate_packets = seen->rate_packets;
			batch->rate_us = seen->rate_us;
		}
	}
	if (seen->acked)
		flow->last_ack_us = seen->now_us;
}

/* Whether the window limits the sender; as Linux's tcp_is_cwnd_limited, but for what the algorithm calls slow start. */
TT_INLINE bool tt_is_cwnd_limited(struct tcp_sock *tp, bool slow_start)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return slow_start && tp->snd_cwnd < 2 * tp->max_packets_out;
}

TT_INLINE void tt_pending_add(struct tt_pending *pending, const struct tt_seen *seen)
{
	u32 rtt_us = seen->rtt_us;

	pending->acked_packets += seen->acked;
	if (!rtt_us)
		return;
	if (!pending->rtt_min_us || rtt_us < pending->rtt_min_us)
		pending->rtt_min_us = rtt_us;
	if (rtt_us > pending->rtt_max_us)
		pending->rtt_max_us = rtt_us;
}

/* Whether the algorithm is to run now. */
TT_INLINE bool tt_pending_is_due(const struct tt_pending *pending, const struct tt_seen *seen)
{
	return pending->eager || seen->losses || !seen->packets_out || seen->now_us >= pending->due_us;
}

/* Whether it is time to publish: after a while, and when nothing is left in flight, since then nothing may follow. */
TT_INLINE bool tt_batch_is_due(const struct tt_batch *batch, const struct tt_seen *seen)
{
	return !seen->packets_out || seen->now_us >= batch->due_us;
}

/* The extremes of an interval. When user space starts a new one, those of the old move aside, so that it loses none. */
TT_INLINE void tt_slot_extremes(struct tt_slot *slot, const struct tt_batch *batch)
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
	if (batch->rtt_count) {
		if (!slot->rtt_min_us || batch->rtt_min_us < slot->rtt_min_us)
			slot->rtt_min_us = batch->rtt_min_us;
		if (batch->rtt_max_us > slot->rtt_max_us)
			slot->rtt_max_us = batch->rtt_max_us;
	}
	if (batch->rate_us && (!slot->rate_us || (u64)batch->rate_packets * slot->rate_us >
							 (u64)slot->rate_packets * batch->rate_us)) {
		slot->rate_packets = batch->rate_packets;
		slot->rate_us = batch->rate_us;
	}
}

/*
 * Whether nothing is sent any more: this side has closed, and its data was acknowledged (RFC 9293 section 3.3.2). Before that, a
 * response may be on its way in FIN-WAIT-1, CLOSING and LAST-ACK, too; the FIN itself is the last number that is sent.
 */
TT_INLINE bool tt_is_closing(const struct tcp_sock *tp)
{
	u8 state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;

	if (state == TCP_FIN_WAIT2 || state == TCP_TIME_WAIT || state == TCP_CLOSE)
		return true;
	if (state != TCP_FIN_WAIT1 && state != TCP_CLOSING && state != TCP_LAST_ACK)
		return false;
	return tp->write_seq - tp->snd_una <= 1;
}

/* How the algorithm stands, for the slot. */
struct tt_standing {
	u64 pacing_bytes_per_s;
	u32 window_packets;
	u32 phase;
	u32 flags;
	u32 inverse_q16;
};

/* What has been collected, and how the connection stands. */
TT_INLINE void tt_slot_publish(struct tt_slot *slot, struct tt_flow *flow, const struct tcp_sock *tp,
			       const struct tt_seen *seen, const struct tt_standing *standing)
{
	struct tt_batch *batch = &flow->batch;
	u64 mss_bytes = tp->mss_cache;
	u32 srtt_us = tp->srtt_us >> 3;
	u32 lost_packets = tp->lost;

	if (batch->rtt_count && (!flow->min_rtt_us || batch->rtt_min_us < flow->min_rtt_us))
		flow->min_rtt_us = batch->rtt_min_us;
	tt_path_on_sample(&flow->path, seen->now_us, srtt_us, batch->rtt_min_us,
			  batch->rate_us ? batch->rate_packets * mss_bytes * 1000000 / batch->rate_us : 0, false);
	tt_seq_move(slot);
	tt_slot_extremes(slot, batch);
	slot->now_us = seen->now_us;
	slot->sent_bytes = tp->bytes_sent;
	/* What was selectively acknowledged counts, and stays counted when the receiver takes it back. */
	slot->acked_bytes = tt_max(slot->acked_bytes, tp->bytes_acked + tp->sacked_out * mss_bytes);
	slot->lost_bytes += (lost_packets - flow->lost_packets) * mss_bytes;
	slot->busy_us += batch->busy_us;
	slot->rtt_sum_us += batch->rtt_sum_us;
	slot->rtt_count += batch->rtt_count;
	slot->window_bytes = standing->window_packets * mss_bytes;
	slot->inflight_bytes = tt_packets_inflight(tp) * mss_bytes;
	slot->unsent_bytes = tp->write_seq - tp->snd_nxt;
	slot->pacing_bytes_per_s = standing->pacing_bytes_per_s;
	slot->srtt_us = srtt_us;
	slot->min_rtt_us = flow->min_rtt_us;
	slot->mss_bytes = mss_bytes;
	slot->phase = standing->phase;
	slot->flags = (slot->flags & TT_FLAGS_KEPT) | standing->flags | (tt_is_closing(tp) ? TT_FLAG_CLOSING : 0);
	slot->inverse_delta_q16 = standing->inverse_q16;
	slot->acks += batch->acks;
	slot->knobs_version = flow->knobs_version;
	tt_seq_move(slot);

	if (!flow->cookie_known) {
		slot->cookie = tp->inet_conn.icsk_inet.sk.__sk_common.skc_cookie.counter;
		flow->cookie_known = slot->cookie != 0;
	}
	__builtin_memset(batch, 0, sizeof(*batch));
	batch->due_us = seen->now_us + tt_max(srtt_us >> TT_PUBLISH_SHARE_SHIFT, TT_PUBLISH_MIN_US);
	flow->lost_packets = lost_packets;
}

#endif
