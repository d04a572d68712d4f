/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The seven signals of Muses' Table I, in whole numbers: crates/cc/src/muses/signals.rs and log2.rs
 * in C, which say what each is. Bounds: rates and times below 2^50, as there.
 */
#ifndef TRIMTAB_MUSES_SIGNALS_H
#define TRIMTAB_MUSES_SIGNALS_H

#include "../layout.h"
#include "fixed.h"

/* The places of the signals in a state. */
#define TT_SIGNAL_SRTT 0
#define TT_SIGNAL_QDELAY 1
#define TT_SIGNAL_MIN_RTT 2
#define TT_SIGNAL_SRATE 3
#define TT_SIGNAL_DRATE 4
#define TT_SIGNAL_LOSS 5
#define TT_SIGNAL_CWND 6

#define TT_LOG_FRACTION_BITS 8
#define TT_LOG_POINT 31
#define TT_LOSS_ONE 1024
#define TT_RATIO_ONE 1024
#define TT_RATIO_KNEE (TT_RATIO_ONE / 16)
#define TT_LOG_KNEE 1536 /* tt_log2(TT_RATIO_KNEE - 1) */
#define TT_SIGNAL_MAX (1ULL << 50)

/* 256 * log2(1 + x), rounded down. By itself, or the verifier would look at each of its ways at each call. */
TT_CHECKED_ONCE int tt_log2(u64 x)
{
	u64 mantissa;
	u32 whole, result;

	x = x == ~0ULL ? x : x + 1;
	whole = tt_log2_whole(x);
	mantissa = whole >= TT_LOG_POINT ? x >> (whole - TT_LOG_POINT) : x << (TT_LOG_POINT - whole);
	result = whole;
#pragma unroll
	for (u32 i = 0; i < TT_LOG_FRACTION_BITS; i++) {
		u64 bit;

		mantissa = (mantissa * mantissa) >> TT_LOG_POINT;
		bit = mantissa >> (TT_LOG_POINT + 1);
		mantissa >>= bit;
		result = result * 2 + bit;
	}
	return result;
}

/* A moving average, kept times eight. A sample weighs so many eighths, the first is taken whole. */
struct tt_smooth {
	u64 eightfold;
	u64 is_set;
};

TT_INLINE void tt_smooth_update(struct tt_smooth *smooth, u64 sample, u32 eighths)
{
	sample = tt_min(sample, TT_SIGNAL_MAX);
	smooth->eightfold = smooth->is_set ? smooth->eightfold - smooth->eightfold / 8 * eighths + sample * eighths
					   : sample * 8;
	smooth->is_set = 1;
}

/* What is measured between the ends of control intervals. */
struct tt_signals {
	struct tt_smooth srtt_us;
	struct tt_smooth queue_ratio;
	struct tt_smooth send_rate; /* bytes per second, as the next */
	struct tt_smooth delivery_rate;
	u64 min_rtt_us;
	u32 sent;     /* packets of the interval */
	u32 received;
};

/* What an acknowledgement says, and what was sent until it came. */
struct tt_muses_ack {
	u64 now_us;
	u32 mss_bytes;
	u32 sent;       /* packets since the acknowledgement before */
	u32 acked;      /* packets */
	u32 prior_inflight; /* packets in flight before it */
	u32 rtt_us;     /* 0: no sample */
	u32 srtt_us;    /* the transport's */
	u32 min_rtt_us; /* of the connection */
	u32 rate_us;    /* the delivery rate: packets in time; 0: no sample */
	u32 rate_packets;
	u64 newest_sent_us; /* when the newest packet that is acknowledged was sent */
	u64 since_bytes; /* what left since the newest packet did that was acknowledged */
	bool rate_of_new; /* that packet was sent once, so `since_bytes` is known */
	bool cwnd_limited;
};

/* How much the samples of an acknowledgement weigh, in eighths: so that an average spans about a round trip at most. */
TT_INLINE u32 tt_muses_weight(const struct tt_muses_ack *ack)
{
	u64 window = tt_max(ack->prior_inflight, 1);

	return tt_min(tt_max((8 * (u64)ack->acked + window / 2) / window, 1), 8);
}

TT_INLINE void tt_signals_on_ack(struct tt_signals *s, const struct tt_muses_ack *ack)
{
	u32 weight = tt_muses_weight(ack);

	s->sent += ack->sent;
	s->received += ack->acked;
	s->min_rtt_us = tt_max(ack->min_rtt_us, 1);
	if (ack->rtt_us) {
		tt_smooth_update(&s->srtt_us, ack->rtt_us, weight);
		tt_smooth_update(&s->queue_ratio,
				 tt_less(ack->rtt_us, s->min_rtt_us) * TT_RATIO_ONE / tt_max(s->min_rtt_us, 1),
				 weight);
	}
	if (ack->rate_us) {
		u64 over_us = ack->rtt_us ? ack->rtt_us : tt_max(ack->srtt_us, 1);

		/* Bytes below 2^44: a window, or what arrives in a round trip. */
		tt_smooth_update(&s->delivery_rate,
				 (u64)ack->rate_packets * ack->mss_bytes * 1000000 / tt_max(ack->rate_us, 1),
				 weight);
		if (ack->rate_of_new)
			tt_smooth_update(&s->send_rate,
					 tt_min(ack->since_bytes, 1ULL << 44) * 1000000 / tt_max(over_us, 1),
					 weight);
	}
}

/* The state at the end of an interval, with the window in 1/1024 of a packet; the next interval begins. */
TT_INLINE void tt_signals_end_interval(struct tt_signals *s, u64 cwnd, __s16 *state)
{
	u64 lost = tt_less(s->sent, s->received);

	state[TT_SIGNAL_SRTT] = tt_log2(s->srtt_us.eightfold / 8);
	state[TT_SIGNAL_QDELAY] =
		tt_log2(s->queue_ratio.eightfold / 8 + TT_RATIO_KNEE - 1) - TT_LOG_KNEE;
	state[TT_SIGNAL_MIN_RTT] = tt_log2(s->min_rtt_us);
	state[TT_SIGNAL_SRATE] = tt_log2(s->send_rate.eightfold / 8);
	state[TT_SIGNAL_DRATE] = tt_log2(s->delivery_rate.eightfold / 8);
	state[TT_SIGNAL_LOSS] = s->sent ? lost * TT_LOSS_ONE / s->sent : 0;
	state[TT_SIGNAL_CWND] = tt_log2(cwnd);
	s->sent = 0;
	s->received = 0;
}

#endif
