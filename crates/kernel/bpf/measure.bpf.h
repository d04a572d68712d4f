/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What an acknowledgement tells is collected, and written to the connection's slot from time to
 * time. The same for every algorithm.
 */
#ifndef TRIMTAB_MEASURE_BPF_H
#define TRIMTAB_MEASURE_BPF_H

#include "flow.bpf.h"

/*
 * After slow start, acknowledgements that come within a quarter of a round trip are one to the
 * algorithm, but where they say that something was lost. A fast connection gets hundreds in a round
 * trip. (Kernel ports of Copa decide once in half a round trip.)
 */
#define TT_STEP_SHARE_SHIFT 2
/* A slot is written twice a round trip, and no more often than this: user space steers by the round trip. */
#define TT_PUBLISH_SHARE_SHIFT 1
#define TT_PUBLISH_MIN_US 500

/* The flags that stay when the algorithm changes, and whatever it publishes. */
#define TT_FLAGS_KEPT (TT_FLAG_ADOPTED | TT_FLAG_TOWARDS | ((1 << TT_FLAG_ALARM_BITS) - 1) << TT_FLAG_ALARM_SHIFT)

/*
 * What the hooks read of the socket and the rate sample, each field once: the kernel guards every
 * load through a pointer of its own with ten instructions, so reading one twice costs more than
 * keeping it.
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
 * The state of recovery, asked of the socket: `set_state` tells of the same, but where it did not
 * run (docs/concepts/ebpf-datapath.md) what was remembered of it would stay wrong.
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

/* Whether a delivery rate is above another: a/b > c/d without dividing. 0 as the time of the other: there is none. */
TT_INLINE bool tt_is_faster(u32 packets, u32 us, u32 other_packets, u32 other_us)
{
	return !other_us || (u64)packets * other_us > (u64)other_packets * us;
}

/* Adds what an acknowledgement said. */
TT_INLINE void tt_batch_add(struct tt_batch *batch, const struct tt_seen *seen)
{
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
		/*
		 * The time up to data that the application did not hold back: as trimtab_steer::Collector. While CUBIC
		 * recovers, acknowledgements of nothing new show the rate of before; that time counts once, with the next one.
		 */
		if (seen->acked)
			batch->busy_us += tt_less(seen->now_us, batch->last_ack_us);
		if (tt_is_faster(seen->rate_packets, seen->rate_us, batch->rate_packets, batch->rate_us)) {
			batch->rate_packets = seen->rate_packets;
			batch->rate_us = seen->rate_us;
		}
	}
	if (seen->acked)
		batch->last_ack_us = seen->now_us;
}

/* Adds what came after all that is there: as if each acknowledgement had been added itself. */
TT_INLINE void tt_batch_append(struct tt_batch *batch, const struct tt_batch *later)
{
	batch->last_ack_us = later->last_ack_us;
	batch->rtt_sum_us += later->rtt_sum_us;
	batch->busy_us += later->busy_us;
	batch->rtt_count += later->rtt_count;
	batch->acks += later->acks;
	if (later->rtt_count) {
		if (!batch->rtt_min_us || later->rtt_min_us < batch->rtt_min_us)
			batch->rtt_min_us = later->rtt_min_us;
		if (later->rtt_max_us > batch->rtt_max_us)
			batch->rtt_max_us = later->rtt_max_us;
	}
	if (later->rate_us && tt_is_faster(later->rate_packets, later->rate_us, batch->rate_packets, batch->rate_us)) {
		batch->rate_packets = later->rate_packets;
		batch->rate_us = later->rate_us;
	}
}

/* Begins anew, but for when data was acknowledged. */
TT_INLINE void tt_batch_clear(struct tt_batch *batch)
{
	u64 last_ack_us = batch->last_ack_us;

	__builtin_memset(batch, 0, sizeof(*batch));
	batch->last_ack_us = last_ack_us;
}

/* Whether the window limits the sender; as Linux's tcp_is_cwnd_limited, but for what the algorithm calls slow start. */
TT_INLINE bool tt_is_cwnd_limited(struct tcp_sock *tp, bool slow_start)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return slow_start && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* The algorithm runs: what came since the last time is the flow's. */
TT_INLINE void tt_pending_take(const struct tt_pending *pending, struct tt_flow *flow)
{
	tt_batch_append(&flow->batch, &pending->batch);
}

/* It has run, or begins. */
TT_INLINE void tt_pending_clear(struct tt_pending *pending, const struct tt_flow *flow)
{
	__builtin_memset(pending, 0, sizeof(*pending));
	pending->batch.last_ack_us = flow->batch.last_ack_us;
}

/* Whether the algorithm is to run now. */
TT_INLINE bool tt_pending_is_due(const struct tt_pending *pending, const struct tt_seen *seen)
{
	return pending->eager || seen->losses || !seen->packets_out || seen->now_us >= pending->due_us;
}

/* Whether it is time to publish: after a while, and when nothing is left in flight, since then nothing may follow. */
TT_INLINE bool tt_publish_is_due(const struct tt_flow *flow, const struct tt_seen *seen)
{
	return !seen->packets_out || seen->now_us >= flow->publish_us;
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
	if (batch->rate_us && tt_is_faster(batch->rate_packets, batch->rate_us, slot->rate_packets, slot->rate_us)) {
		slot->rate_packets = batch->rate_packets;
		slot->rate_us = batch->rate_us;
	}
}

/*
 * Whether nothing is sent any more: this side has closed, and its data was acknowledged (RFC 9293
 * section 3.3.2). Before that, a response may be on its way in FIN-WAIT-1, CLOSING and LAST-ACK,
 * too; the FIN itself is the last number that is sent.
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

/* User space does not look at this connection before an event of it. Seldom: out of the way of the others. */
static __attribute__((noinline)) int tt_watch_ends(struct tt_slot *slot, u64 now_us)
{
	struct tt_event event = { .kind = TT_EVENT_ACTIVE };

	slot->watch = 0;
	event.slot = slot->index;
	event.id = slot->id;
	event.now_us = now_us;
	tt_event_send(tt_control_get(), &event);
	return 0;
}

/* What has been collected, and how the connection stands. */
TT_INLINE void tt_slot_publish(struct tt_slot *slot, struct tt_flow *flow, const struct tcp_sock *tp,
			       const struct tt_seen *seen, const struct tt_standing *standing)
{
	struct tt_batch *batch = &flow->batch;
	u64 mss_bytes = tp->mss_cache;
	u32 srtt_us = tp->srtt_us >> 3;
	u32 lost_packets = tp->lost, delivered = tp->delivered;

	if (batch->rtt_count && (!flow->min_rtt_us || batch->rtt_min_us < flow->min_rtt_us))
		flow->min_rtt_us = batch->rtt_min_us;
	tt_path_on_sample(&flow->path, seen->now_us, srtt_us, batch->rtt_min_us,
			  batch->rate_us ? batch->rate_packets * mss_bytes * 1000000 / batch->rate_us : 0, false);
	tt_path_tally(&flow->path, seen->now_us, srtt_us, lost_packets - flow->lost_packets,
		      delivered - flow->delivered_at);
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

	if (*(volatile u32 *)&slot->watch)
		tt_watch_ends(slot, seen->now_us);
	if (!flow->cookie_known) {
		slot->cookie = tp->inet_conn.icsk_inet.sk.__sk_common.skc_cookie.counter;
		flow->cookie_known = slot->cookie != 0;
	}
	tt_batch_clear(batch);
	flow->publish_us = seen->now_us + tt_max(srtt_us >> TT_PUBLISH_SHARE_SHIFT, TT_PUBLISH_MIN_US);
	flow->lost_packets = lost_packets;
	flow->delivered_at = delivered;
}

#endif
