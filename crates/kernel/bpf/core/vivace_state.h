/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What PCC Vivace remembers of one connection, and its inputs: crates/cc/src/vivace in C, which has the
 * reasons.
 *
 * Rates are bytes per second in 2^-8, utilities and gradients are those of rates in Mbit/s in
 * 2^-30, shares and slopes are in 2^-32.
 */
#ifndef TRIMTAB_VIVACE_STATE_H
#define TRIMTAB_VIVACE_STATE_H

#include "copa_state.h"
#include "fixed.h"

/* So many intervals can wait for their packets at once: a power of two. */
#define TT_INTERVALS 8
#define TT_INTERVALS_MASK (TT_INTERVALS - 1)
/* A line has so many points, over so long, at most: the sums below fit 64 bits because of that. */
#define TT_TREND_POINTS (1 << 16)
#define TT_TREND_US (1 << 22)
/* Utilities are bounded to this. */
#define TT_UTILITY_MAX_Q30 (1LL << 61)

#define TT_RATE_SHIFT 8
/* 0.1 Mbit/s and 400 Gbit/s. */
#define TT_RATE_MIN_Q8 (12500ULL << TT_RATE_SHIFT)
#define TT_RATE_MAX_Q8 (50000000000ULL << TT_RATE_SHIFT)

/* What an interval was sent for. */
enum tt_purpose { TT_FOR_START, TT_FOR_UP, TT_FOR_DOWN, TT_FOR_STEP, TT_FOR_NOTHING };

/* A straight line through round-trip times over times of sending. */
struct tt_trend {
	u64 x, xx, yy;
	__s64 y, xy;
	u32 n;
	u32 first_us; /* round-trip times are less this one */
};

/* A monitor interval. Packets are segments. */
struct tt_interval {
	u64 asked_q8;
	u64 start_us;
	u64 end_us; /* when the next one began; 0 while packets are added */
	u64 first_ack_us; /* 0: none came */
	u64 last_ack_us;
	u32 sent_before; /* the connection's count when it began */
	u32 sent;
	u32 acked;
	u32 acked_first; /* by the first acknowledgement */
	u32 lost;
	u32 lost_ranges;
	u32 samples; /* acknowledgements with a round-trip time */
	u8 purpose; /* enum tt_purpose */
	bool app_limited;
	u8 rest[2];
	struct tt_trend trend;
};

/* What an interval showed. */
struct tt_shown {
	u64 rate_q8;
	u64 arrived_q8; /* 0: too few acknowledgements to tell */
	u64 loss_q32;
	u64 slope_q32; /* of the round-trip time, in s/s; 0 where it falls */
	u32 packets;
	u32 lost_ranges;
	bool slope_explained; /* by its own error */
	u8 rest[7];
};

/* The steps so far: climb.rs. */
struct tt_climb {
	struct tt_shown last; /* of a rate of 0: none */
	u64 step_q8;
	u32 streak;
	u32 hits;
	bool up;
	u8 rest[7];
};

struct tt_vivace {
	u64 rate_q8; /* that decisions are about; 0 before the first round-trip time */
	u64 sending_q8;
	u64 start_packets; /* slow start has no more in flight than what arrived clocks out */
	__s64 start_utility_q30;
	u64 timed_out_q8; /* the rate before a timeout, when nothing arrived since, or of the initial window; else 0 */
	u64 srtt_us;
	u64 excessive_since_us; /* 0: the round-trip time is not excessive */
	u64 calm_us; /* no brake before */
	u64 loss_average_q32;
	__s64 up_utility_q30, down_utility_q30; /* of a pair of probes */
	u64 up_q8, down_q8; /* their rates; 0: not back yet */
	u32 brake_packets, brake_lost; /* since the brakes last judged */
	u32 late, stuck;
	u32 mss_bytes;
	u32 knobs[TT_KNOBS_MAX]; /* TT_VIVACE_KNOBS */
	u8 pair_sent;
	bool down_first;
	bool starting;
	bool renew; /* what is sent next begins an interval */
	bool awaiting; /* an interval that the next decision needs is under way */
	bool opening; /* a configured first rate is being sent, and nothing arrived yet */
	bool is_marked; /* the socket answers a mark (ECN), and the algorithm has yet to */
	u8 rest[1];
	struct tt_climb climb;
	struct tt_ceiling ceiling;
	u64 ceiling_q8; /* as a rate; the greatest number while there is none */
	u32 head, len; /* of the intervals */
	struct tt_interval ring[TT_INTERVALS];
	struct tt_filter rtt_min;
	struct tt_ring rtt_min_ring;
};

/* An acknowledgement: trimtab_cc::Ack. */
struct tt_vivace_ack {
	u64 now_us;
	u64 newest_sent_us;
	u32 rate_packets; /* the delivery rate: packets in time */
	u32 rate_us;      /* 0: no sample */
	u32 rtt_us; /* 0: no sample */
	u32 srtt_us;
	u32 acked; /* packets */
	u32 rest;
};

#endif
