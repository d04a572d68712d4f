/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What BBRv3 remembers of one connection, and its inputs: crates/cc/src/bbr/v3.rs, in microseconds.
 *
 * Windows and what is in flight are bytes, as in Rust, since the draft does not round them to
 * packets. What is delivered is packets modulo 2^32, as the kernel counts it; rates are bytes per
 * second. A bound of all ones is none.
 */
#ifndef TRIMTAB_BBR3_STATE_H
#define TRIMTAB_BBR3_STATE_H

#include "bbr_model.h"
#include "ceiling.h"

#define TT_BBR3_NONE (~0ULL)
/* No window is larger, so that its product with a gain of less than 2^20 fits 64 bits. */
#define TT_BBR3_WINDOW_MAX (1ULL << 44)

enum tt_bbr3_mode {
	TT_BBR3_STARTUP,
	TT_BBR3_DRAIN,
	TT_BBR3_DOWN,   /* ProbeBW_DOWN: sends slower than the path delivers, to leave room */
	TT_BBR3_CRUISE, /* ProbeBW_CRUISE: as fast as it delivers */
	TT_BBR3_REFILL, /* ProbeBW_REFILL: as fast, and without short-term bounds */
	TT_BBR3_UP,     /* ProbeBW_UP: faster, to see whether more fits */
	TT_BBR3_PROBE_RTT,
};

/* What the acknowledgements now arriving are feedback to (`BBR.ack_phase`). */
enum tt_bbr3_feedback {
	TT_BBR3_TO_NOTHING,
	TT_BBR3_TO_REFILL,
	TT_BBR3_BEFORE_PROBE,
	TT_BBR3_TO_PROBE,
	TT_BBR3_AFTER_PROBE, /* to the probe, which has ended */
};

/* Where to go back to when the losses that ended it were none (`BBR.undo_state`). */
enum tt_bbr3_resume { TT_BBR3_RESUME_NOTHING, TT_BBR3_RESUME_STARTUP, TT_BBR3_RESUME_PROBE };

/* Knobs, and what follows from them. Gains and shares have 16 fraction bits. */
struct tt_bbr3_knobs {
	u32 knobs[TT_BBR3_KNOBS_COUNT];
	u32 pacing_share; /* what the pacing margin leaves */
};

/* v3/loss.rs: the delivery process of the current loss round. */
struct tt_bbr3_signals {
	u64 bw_bytes_per_s; /* the largest delivery rate and volume of the round */
	u64 inflight_bytes;
	u32 ranges;    /* of packets lost in the round */
	u32 round_end; /* a packet sent at or after this many delivered ends it */
	bool loss_in_round;
	bool round_started;
	u8 rest[6];
};

/* v3/loss.rs: bounds until the next probe for bandwidth. */
struct tt_bbr3_bounds {
	u64 bw_bytes_per_s;
	u64 inflight_bytes;
};

/* v3/path.rs: the same minimum over two windows, of which the shorter schedules ProbeRTT. */
struct tt_bbr3_min_rtt {
	u64 at_us;
	u64 recent_at_us;
	u32 value_us;  /* 0: no sample */
	u32 recent_us; /* 0: no sample */
	bool started;
	u8 rest[7];
};

struct tt_bbr3 {
	/* The path. */
	u64 max_bw[2]; /* of the ProbeBW cycle before, and of this one */
	u64 bw_bytes_per_s; /* the larger of both, within the short-term bound */
	struct tt_bbr3_min_rtt min_rtt;
	u64 inflight_longterm; /* the largest that was seen to fit */
	struct tt_bbr3_bounds short_term;
	struct tt_bbr3_signals signals;
	struct tt_rounds_max extra_acked; /* v3/aggregation.rs, in bytes */
	u64 interval_us;
	u64 interval_bytes;
	u64 full_bw_bytes_per_s; /* the baseline of the plateau: full_bw.rs */
	struct tt_ceiling ceiling; /* what congestion marks leave */
	/* What the connection is doing. */
	u64 window_bytes;
	u64 prior_window_bytes;
	u64 pacing_bytes_per_s;
	u64 ends_at_us; /* when the least time in ProbeRTT is over; 0 until what is in flight has fallen */
	u64 anchored_us; /* when packets were declared lost: v3/loss.rs, `Anchors` */
	struct tt_bbr3_bounds undo; /* of what a loss episode changed */
	u64 undo_longterm;
	u64 cycle_us;
	u64 probe_wait_us;
	u64 growth_acked; /* v3/probe_bw.rs, `Growth` */
	u64 growth_per_packet;
	u32 growth_rounds;
	u32 mss_bytes;
	u32 initial_packets;
	u32 delivered;
	u32 round;
	u32 round_end; /* a packet sent at or after this many delivered ends the round */
	u32 drain_round; /* when Drain began */
	u32 rounds_since_probe;
	u32 draw; /* random: how much longer the next probe waits, in 2^-32 */
	bool draw_round; /* random: whether it counts a round more */
	bool drawn; /* both were used: the caller puts others there */
	u8 mode;     /* enum tt_bbr3_mode */
	u8 feedback; /* enum tt_bbr3_feedback */
	u8 resume;   /* enum tt_bbr3_resume */
	u8 plateau;  /* rounds of it */
	bool full_now; /* the pipe was found full since the last start */
	bool full_reached; /* or ever */
	bool round_started; /* by this acknowledgement */
	bool round_done;    /* in ProbeRTT */
	bool seen_rtt;
	bool searches; /* in Startup since another algorithm left the path idle */
	bool idle_restart;
	bool in_recovery;
	bool anchored_loss_round;
	bool anchored_round;
	bool is_probe_sample; /* acknowledgements and losses are of packets sent in a probe */
	bool prev_probe_too_high;
	bool prev_probe_precautionary;
	u8 rest;
	struct tt_bubble bubble;
	struct tt_bbr3_knobs tuning;
};

/* An acknowledgement, or several that are one to the algorithm: then the best of their samples. */
struct tt_bbr3_ack {
	u64 now_us;
	u64 newest_sent_us;
	u32 mss_bytes;
	u32 srtt_us;
	u32 rtt_us; /* 0: no sample */
	u32 acked;  /* packets */
	u32 acked_before; /* of those, by others before this one: no burst by themselves */
	u32 delivered; /* over the life of the connection, as the next, modulo 2^32 */
	u32 prior_delivered; /* when the newest packet that it acknowledges was sent */
	u32 inflight; /* packets */
	u32 rate_packets; /* the delivery rate: packets in time */
	u32 rate_us; /* 0: no sample */
	u32 tx_in_flight; /* packets, when the newest was sent */
	u32 lost; /* packets, since then */
	bool app_limited; /* the rate sample */
	bool cwnd_limited;
	bool in_recovery;
	u8 rest[5];
};

/* Packets were declared lost, which to the draft are one. */
struct tt_bbr3_lost {
	u64 now_us;
	u32 packets;
	u32 tx_in_flight; /* packets, when the newest of them was sent, itself included */
	u32 lost; /* packets declared lost since then, these included */
	u32 prior_delivered;
	bool app_limited;
	bool new_range;
	u8 rest[6];
};

#endif
