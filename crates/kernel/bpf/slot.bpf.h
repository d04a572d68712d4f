/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* A connection's slot is claimed, filled with the first knobs, and freed. The same for every algorithm. */
#ifndef TRIMTAB_SLOT_BPF_H
#define TRIMTAB_SLOT_BPF_H

#include "flow.bpf.h"

static __always_inline u64 *tt_ledger_at(u32 place) { return bpf_map_lookup_elem(&tt_ledger, &place); }

#include "core/ledger.h"

/* The kernel's: no threshold is known, and a new connection's window (RFC 6928). */
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10

/* Number of the cgroup that made the socket; 0: unknown. */
TT_INLINE u64 tt_cgroup_of(const struct sock *sk)
{
	return sk->sk_cgrp_data.cgroup ? sk->sk_cgrp_data.cgroup->kn->id : 0;
}

TT_INLINE void tt_identify(struct tt_slot *slot, const struct tcp_sock *tp)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	const struct sock_common *common = &sk->__sk_common;

	slot->cookie = common->skc_cookie.counter;
	slot->netns_cookie = common->skc_net.net->net_cookie;
	slot->cgroup_id = tt_cgroup_of(sk);
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
		key.cgroup_id = tt_cgroup_of(sk);
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
 * The knobs that a new connection begins with: those of its destination, each brought into its
 * range here, too, or the defaults. One that found no slot free has the defaults, since nobody could
 * turn them later.
 */
TT_INLINE void tt_first_knobs(struct tt_flow *flow, const struct tcp_sock *tp, const struct tt_control *control,
			      u32 cca, const u32 *defaults)
{
	const struct tt_knobs *towards = flow->was_refused ? 0 : tt_towards(tp, control, cca);

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

/* So many words of tt_taken are looked through for a free slot at most, which are 131,072 slots. */
#define TT_WORDS_MAX 2048
/* Words of a cache line: each processor begins with a line of its own. */
#define TT_WORDS_OF_LINE 8

/* The number of the one bit that is set. */
TT_INLINE u32 tt_bit_number(u64 bit)
{
	u32 number = 0;

	if (bit & 0xffffffff00000000)
		number += 32;
	if (bit & 0xffff0000ffff0000)
		number += 16;
	if (bit & 0xff00ff00ff00ff00)
		number += 8;
	if (bit & 0xf0f0f0f0f0f0f0f0)
		number += 4;
	if (bit & 0xcccccccccccccccc)
		number += 2;
	if (bit & 0xaaaaaaaaaaaaaaaa)
		number += 1;
	return number;
}

/* A search for a free slot: among so many words, from this one on, and what was found. */
struct tt_search {
	u32 words, first, found;
};

/* Takes a free slot of one word; 1 ends the search. */
static long tt_slot_try(u32 i, struct tt_search *search)
{
	u32 word = (search->first + i) % search->words;
	u64 *taken = bpf_map_lookup_elem(&tt_taken, &word);
	u64 seen, bit;

	if (!taken)
		return 0;
	seen = *(volatile u64 *)taken;
	bit = ~seen & (seen + 1); /* the lowest that is free; 0: none is */
	if (!bit || __sync_fetch_and_or(taken, bit) & bit)
		return 0;
	search->found = word * 64 + tt_bit_number(bit);
	return 1;
}

/* Takes a free slot; TT_NO_SLOT when there is none, or in a large table when none is near. */
TT_CHECKED_ONCE u32 tt_slot_take(void)
{
	struct tt_search search = {
		.words = (tt_settings.slot_count + 63) / 64,
		.first = bpf_get_smp_processor_id() * TT_WORDS_OF_LINE,
		.found = TT_NO_SLOT,
	};

	bpf_loop(tt_min(search.words, TT_WORDS_MAX), tt_slot_try, &search, 0);
	return search.found;
}

/* The slot is free again, and another connection of its cgroup may have one. */
TT_INLINE void tt_slot_give(const struct tt_slot *slot, u32 index)
{
	u32 word = index / 64;
	u64 *taken = bpf_map_lookup_elem(&tt_taken, &word);

	tt_ledger_give(slot->entry);
	if (taken)
		__sync_fetch_and_and(taken, ~(1ULL << (index % 64)));
}

/*
 * A function that makes such a struct all zero again; words of eight bytes have to divide it.
 * Volatile, or the compiler makes a call of memset() of it, which there is none of.
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
TT_CLEARED_BY(tt_small_flow_clear, struct tt_small_flow);

/* A function that copies such a struct, as above. */
#define TT_COPIED_BY(name, type)                                                                                       \
	TT_CHECKED_ONCE int name(type *to, const type *from)                                                           \
	{                                                                                                              \
		volatile u64 *words = (volatile u64 *)to;                                                              \
		const u64 *others = (const u64 *)from;                                                                 \
                                                                                                                       \
		if (!to || !from)                                                                                      \
			return 0;                                                                                      \
		for (u32 i = 0; i < sizeof(type) / sizeof(u64); i++)                                                   \
			words[i] = others[i];                                                                          \
		return 0;                                                                                              \
	}

TT_COPIED_BY(tt_flow_copy, struct tt_flow)
TT_COPIED_BY(tt_small_flow_copy, struct tt_small_flow)

/* To or from socket storage, of a connection that runs this algorithm. */
TT_INLINE void tt_flow_move(struct tt_flow *to, const struct tt_flow *from, u32 cca)
{
	if (TT_IS_LARGE(cca))
		tt_flow_copy(to, from);
	else
		tt_small_flow_copy((void *)to, (const void *)from);
}

/* Whether a connection has sent enough for a slot. */
TT_INLINE bool tt_deserves_slot(const struct tcp_sock *tp, const struct tt_control *control, u32 cca)
{
	return tp->bytes_sent >= control->slot_after_bytes[(cca - 1) % TT_CCAS_ROOM];
}

/*
 * Takes a slot for a connection, and keeps with its socket which. TT_NO_SLOT where there is none, or
 * no memory, or where its cgroup holds its share; the first time (`is_new`) that is counted.
 */
TT_INLINE u32 tt_slot_for(struct sock *sk, struct tt_control *control, bool is_new)
{
	struct tt_tag *tag = bpf_sk_storage_get(&tt_tags, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	u64 *refused = &control->slotless;

	if (tag) { /* or no slot: nothing would say whose it is */
		tag->id = 0;
		tag->slot = TT_NO_SLOT;
		tag->entry = tt_ledger_take(tt_cgroup_of(sk), control->cgroup_slots);
		if (tag->entry == TT_OVER_QUOTA)
			refused = &control->over_quota;
		else
			tag->slot = tt_slot_take();
		if (tag->slot != TT_NO_SLOT)
			return tag->slot;
		tt_ledger_give(tag->entry);
	}
	if (is_new)
		__sync_fetch_and_add(refused, 1);
	return TT_NO_SLOT;
}

/*
 * The connection begins to have what is kept under this number; `id` is 0 before it has one. One
 * word says both: the slot and one, or 0 for none, and above that the lower half of `id`. That is a
 * different one for each of 2^32 connections that have the slot one after the other.
 */
TT_INLINE void tt_place_set(struct sock *sk, u32 slot, u64 id)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->inet_conn.icsk_ca_priv[0] = slot == TT_NO_SLOT ? 0 : id << 32 | (1 + slot);
}

/* What is kept of a connection with a slot; null of one without, or whose slot was given to another since. */
TT_INLINE struct tt_flow *tt_flow_in_slot(struct sock *sk)
{
	u64 place = ((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv[0];
	u32 index = (u32)place - 1;
	struct tt_flow *flow;

	if (!place)
		return 0;
	flow = bpf_map_lookup_elem(&tt_flows, &index);
	return flow && (u32)flow->id == place >> 32 ? flow : 0;
}

/* What there is to keep of a new connection: with a slot, or without. Null when there is no memory. */
TT_INLINE struct tt_flow *tt_flow_new(struct sock *sk, struct tt_control *control, u32 cca)
{
	bool waits = !tt_deserves_slot((struct tcp_sock *)sk, control, cca);
	u32 index = waits ? TT_NO_SLOT : tt_slot_for(sk, control, true);
	struct tt_flow *flow;

	tt_place_set(sk, index, 0);
	if (index == TT_NO_SLOT)
		flow = tt_slotless_get(sk, cca, BPF_SK_STORAGE_GET_F_CREATE);
	else
		flow = bpf_map_lookup_elem(&tt_flows, &index);
	if (!flow)
		return 0;
	if (TT_IS_LARGE(cca))
		tt_flow_clear(flow);
	else
		tt_small_flow_clear((void *)flow);
	flow->slot = index;
	flow->waits = waits;
	flow->was_refused = !waits && index == TT_NO_SLOT;
	return flow;
}

/*
 * What is kept of a connection. Its slot may have been given to another since: then it is with the
 * socket, or gone.
 */
TT_INLINE struct tt_flow *tt_flow_get(struct sock *sk, u32 cca)
{
	struct tt_flow *flow = tt_flow_in_slot(sk);

	return flow ? flow : tt_slotless_get(sk, cca, 0);
}

/* The same, where the algorithm is any: of the state of none. */
TT_INLINE struct tt_flow *tt_flow_of_any(struct sock *sk)
{
	struct tt_flow *flow = tt_flow_get(sk, TT_CCA_COPA);

	return flow ? flow : tt_slotless_get(sk, TT_CCA_VIVACE, 0);
}

/* Whether more than the SYN was acknowledged before the algorithm got the connection. */
TT_INLINE bool tt_is_adopted(const struct tcp_sock *tp) { return tp->bytes_acked > 1; }

/* What there is to know of the socket before the algorithm runs. */
TT_INLINE void tt_flow_begin(struct tt_flow *flow, const struct tcp_sock *tp)
{
	flow->lost_packets = tp->lost;
	flow->delivered_at = tp->delivered;
	flow->batch.last_ack_us = tp->tcp_mstamp;
	/* The route may have an `initcwnd` of its own. A lost SYN leaves one packet (`tcp_init_transfer`). */
	flow->initial_window = !tt_is_adopted(tp) && tp->snd_cwnd > 1 ? tp->snd_cwnd : TCP_INIT_CWND;
}

/*
 * Paces what leaves before the algorithm has a rate, for the handshake's round-trip time: twice the
 * window in each (`tcp_update_pacing_rate`, with the default of net.ipv4.tcp_pacing_ss_ratio). The
 * kernel itself does so for algorithms without `cong_control`. It never paces the first ten packets
 * (`tcp_update_skb_after_send`), so this tells where the route has a larger `initcwnd`. Gives the
 * rate.
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

/* Paces at this rate, or what leaves first where there is none (0) yet. Gives the rate. */
TT_INLINE u64 tt_apply_rate(struct sock *sk, u64 rate)
{
	if (!rate)
		return tt_pace_first_flight(sk);
	sk->sk_pacing_rate = tt_min(rate, sk->sk_max_pacing_rate);
	return rate;
}

/* Sets the socket's window, which has one packet at least; gives it. */
TT_INLINE u32 tt_apply_window(struct tcp_sock *tp, u32 packets)
{
	packets = tt_min(tt_max(packets, 1), tp->snd_cwnd_clamp);
	tp->snd_cwnd = packets;
	return packets;
}

/* Copa's initial window for the slot of a connection that begins with another algorithm. */
TT_INLINE u32 tt_initial_window_q10(const struct tt_control *control, const struct tt_flow *flow)
{
	u32 initial_window = control->copa_defaults[TT_COPA_INITIAL_WINDOW];

	return initial_window ? initial_window : flow->initial_window * TT_SCALE_Q10;
}

/* An algorithm's knobs in a new slot: those that it began with of the one that runs, and the defaults of the others. */
#define TT_DEFAULT_KNOBS(number, upper, lower)                                                                         \
	_Pragma("unroll") for (int i = 0; i < TT_##upper##_KNOBS_COUNT; i++)                                           \
		slot->lower##_knobs[i] = control->lower##_defaults[i];
#define TT_OWN_KNOBS(number, upper, lower)                                                                             \
	if (cca == number)                                                                                             \
		_Pragma("unroll") for (int i = 0; i < TT_##upper##_KNOBS_COUNT; i++)                                   \
			slot->lower##_knobs[i] = flow->first.words[i];

/*
 * Fills the slot of a new connection, and says that it is there. Every other algorithm's knobs are
 * the defaults, since any may run.
 */
TT_INLINE void tt_slot_open(struct tt_flow *flow, struct tcp_sock *tp, struct tt_control *control, u32 cca, u32 flags)
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
	/* One that had a slot before keeps its number. */
	if (!flow->id)
		flow->id = __sync_fetch_and_add(&control->last_id, 1) + 1;
	tag->id = flow->id;
	tt_place_set((struct sock *)tp, flow->slot, flow->id);
	__sync_fetch_and_add(&control->live, 1);

	tt_seq_move(slot);
	/* The sequence number and what user space last ordered stay: both only ever move on. */
	__builtin_memset(&slot->interval_epoch, 0, sizeof(*slot) - __builtin_offsetof(struct tt_slot, interval_epoch));
	__builtin_memset(slot, 0, __builtin_offsetof(struct tt_slot, knobs_for));
	tt_identify(slot, tp);
	slot->cca = cca;
	slot->flags = flags | (flow->is_towards ? TT_FLAG_TOWARDS : 0);
	slot->index = flow->slot;
	slot->entry = tag->entry;
	slot->interval_epoch = slot->epoch;
	slot->knobs_version = slot->version;
	flow->knobs_version = slot->version;
	slot->knobs_for = flow->id;
	TT_ALGORITHMS(TT_DEFAULT_KNOBS)
	TT_ALGORITHMS(TT_OWN_KNOBS)
	slot->copa_knobs[TT_COPA_INITIAL_WINDOW] = flow->window_q10;
	slot->leave = 0;
	slot->watch = 0; /* it was meant for the connection that had the slot before */
	slot->next_done = slot->next;
	flow->next = slot->next;
	slot->now_us = tp->tcp_mstamp;
	slot->acks = flow->acks_before;
	slot->rtt_count = flow->rtt_count_before;
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
	tt_slot_give(slot, index);
	tt_event_send(control, &event);
}

#endif
