/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What the programs keep of a connection, and the maps: the same for every algorithm. */
#ifndef TRIMTAB_FLOW_BPF_H
#define TRIMTAB_FLOW_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "models.bpf.h"

/* Set before loading; the verifier sees constants. */
const volatile struct tt_settings tt_settings = { .slot_count = 1 };

#define TT_CLOCK_US tt_settings.clock_us
#include "core/bbr3_sent.h"
#include "core/switch.h"

/* What acknowledgements said. */
struct tt_batch {
	u64 last_ack_us; /* of data; it stays when the rest begins anew */
	u64 rtt_sum_us;
	u64 busy_us;
	u32 rtt_count;
	u32 acks;
	u32 rtt_min_us; /* 0 without a sample */
	u32 rtt_max_us;
	u32 rate_packets;
	u32 rate_us; /* 0 without a sample that the application did not limit */
};

/*
 * What came since Copa, BBR or BBRv3 last ran, and when it is to run again. All that an
 * acknowledgement touches where it does not run.
 */
struct tt_pending {
	struct tt_batch batch;
	u64 due_us; /* when it is to run again */
	/* BBR's and BBRv3's alone, from here to `round_end`, and the two after `eager`. */
	u64 burst_from_us; /* what the path would have carried since then is no burst */
	u64 bw_bytes_per_s; /* which that is by; and by packets of this size */
	u32 mss_bytes;
	u32 rate_packets; /* the best delivery rate: packets in time */
	u32 rate_us;      /* 0: no sample */
	u32 round_end; /* a packet sent at or after this many delivered begins a round */
	u32 acked_packets;
	bool eager; /* the algorithm wants every acknowledgement */
	bool app_limited;   /* the rate */
	bool maybe_delayed; /* the least round-trip time, by the receiver */
	u8 rest;
};

/* What Copa, BBR and BBRv3 have in the socket (`icsk_ca_priv`), where TCP has just been. */
struct tt_private {
	u64 place; /* tt_place_set */
	struct tt_pending pending;
};

_Static_assert(sizeof(struct tt_private) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv), "it fits");

TT_INLINE struct tt_pending *tt_pending_of(struct tcp_sock *tp)
{
	return &((struct tt_private *)tp->inet_conn.icsk_ca_priv)->pending;
}

/*
 * What the programs keep of one connection, for themselves. What CUBIC, Vivace and
 * Muses touch with each acknowledgement comes first, in one cache line: the state of one connection
 * has left the caches by the time that its next acknowledgement comes, where there are many. The
 * others touch nothing of it until they run (struct tt_pending). The algorithm's own comes last, so
 * that socket storage has room for no more than it needs, and begins with a cache line.
 */
struct tt_flow {
	u64 id; /* 0 before it had a slot */
	u64 publish_us; /* when `batch` is to be published; without a slot, when to look for one */
	struct tt_batch batch; /* since it was last published; of a connection without a slot, since it has none */
	u32 slot;
	u32 knobs_version;
	u64 delivered_packets;
	u64 acks_before; /* in slots that it had before, as the next */
	u64 rtt_count_before;
	u32 lost_packets; /* the socket's count when it was last published, as the next */
	u32 delivered_at;
	u32 min_rtt_us;
	u32 initial_window; /* in packets, of a connection over this route */
	u32 next; /* the last order for another algorithm that was seen to; of a slot's `next` */
	bool cookie_known;
	bool is_switching; /* from one algorithm of ours to another, at this moment */
	bool paces; /* TCP paces because an algorithm told it to, and nobody else */
	bool is_towards; /* it began with the knobs of its destination */
	bool waits;      /* it has no slot because it has not sent enough */
	bool was_refused; /* when it was to have one, none was free or its cgroup held its share */
	bool was_adopted;
	u8 flow_rest;
	u32 window_q10; /* Copa's initial window for the slot */
	struct tt_path path;
	struct tt_knobs first; /* of the algorithm that it began with */
	union {
		struct tt_copa copa;
		struct tt_bbr bbr;
		struct {
			struct tt_bbr3 bbr3;
			struct tt_sent sent;
		};
		struct tt_vivace vivace;
		struct tt_muses muses;
		/* CUBIC's is in the socket: cubic.bpf.h. */
	} __attribute__((aligned(64)));
} __attribute__((aligned(64)));

_Static_assert(__builtin_offsetof(struct tt_flow, slot) == 64, "a cache line");
_Static_assert(__builtin_offsetof(struct tt_muses, ceiling.credit_bytes) <= 128, "two cache lines");

/*
 * By slot: finding it is an addition, where a look-up of socket storage costs more than all of CUBIC
 * (measured: 160 ns of 270 on caches as they are at 2,000 acknowledgements a second). Nobody maps
 * it: the flag has the kernel begin it with a page, and so each flow with a cache line.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tt_flow);
} tt_flows SEC(".maps");

/*
 * What is kept of connections without a slot goes with the socket. The kernel rounds it up to a
 * power of two, and Vivace's state alone takes more than 2 kB: so that has a map of its own, and the
 * other one has room for Copa's, which is the largest of the others.
 */
#define TT_FLOW_WORDS ((__builtin_offsetof(struct tt_flow, copa) + sizeof(struct tt_copa)) / sizeof(u64))
#define TT_IS_LARGE(cca) ((cca) == TT_CCA_VIVACE)
_Static_assert(sizeof(struct tt_copa) % sizeof(u64) == 0, "words");
_Static_assert(sizeof(struct tt_bbr) <= sizeof(struct tt_copa), "the largest but for Vivace's");
_Static_assert(sizeof(struct tt_muses) <= sizeof(struct tt_copa), "the largest but for Vivace's");
_Static_assert(sizeof(struct tt_bbr3) + sizeof(struct tt_sent) <= sizeof(struct tt_copa),
	       "the largest but for Vivace's");
/* With the kernel's own header, 2 kB. */
_Static_assert(TT_FLOW_WORDS * sizeof(u64) <= 2048 - 128, "it fits where it is meant to");

struct tt_small_flow {
	u64 words[TT_FLOW_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tt_small_flow);
} tt_slotless SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tt_flow);
} tt_slotless_large SEC(".maps");

TT_INLINE struct tt_flow *tt_slotless_get(void *sk, u32 cca, u64 flags)
{
	if (TT_IS_LARGE(cca))
		return bpf_sk_storage_get(&tt_slotless_large, sk, 0, flags);
	return bpf_sk_storage_get(&tt_slotless, sk, 0, flags);
}

TT_INLINE void tt_slotless_delete(void *sk)
{
	if (bpf_sk_storage_delete(&tt_slotless, sk))
		bpf_sk_storage_delete(&tt_slotless_large, sk);
}

/* What is kept with the socket of a connection that has a slot. It goes with the socket. */
struct tt_tag {
	u64 id;    /* of the connection */
	u64 place; /* what the private area held, while one algorithm hands over to another; 0: none does */
	u32 slot;
	u32 how;
	u32 window; /* packets to go on with */
	u32 from; /* TT_CCA_*: what ran */
	u32 entry; /* of the ledger, until the slot has it */
	u32 tag_rest;
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

/* A bit for each slot that is taken, and for those of the last word beyond the slots. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} tt_taken SEC(".maps");

/* Slots that the connections of each cgroup hold: core/ledger.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << TT_LEDGER_BITS);
	__type(key, u32);
	__type(value, u64);
} tt_ledger SEC(".maps");

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
 * Reads a word that user space moves after it wrote what belongs to it (Release in flow.rs), so
 * that what was written is seen from here on. Linux's JITs make an atomic with a result a full
 * barrier (BPF_FETCH, Documentation/bpf/standardization/instruction-set.rst); a load-acquire of
 * BPF's own came with Linux 6.15 only. It takes the line for itself, so a plain look at the word
 * comes before it.
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

#endif
