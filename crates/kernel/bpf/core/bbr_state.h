/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What BBR remembers of one connection, and its inputs: crates/cc/src/bbr/v1.rs, in packets and microseconds.
 *
 * Windows, and what is delivered, lost and in flight, are packets, as the kernel counts them; rates
 * are bytes per second, as in Rust, so that a path whose packets change their size keeps its
 * bandwidth.
 */
#ifndef TRIMTAB_BBR_STATE_H
#define TRIMTAB_BBR_STATE_H

#include "../layout.h"
#include "path.h"

/* A gain of one; gains have 16 fraction bits, as in crates/cc/src/bbr/gain.rs. */
#define TT_GAIN_UNIT TT_SCALE_Q16
/* The window of a new connection (RFC 6928), which is also what stands for the path's content before any round trip. */
#define TT_BBR_INITIAL_PACKETS 10
/* The round-trip time assumed for the first pacing rate (`bbr_init_pacing_rate_from_rtt`). */
#define TT_BBR_NOMINAL_RTT_US 1000
/* One in so many phases of the gain cycle probes (`CYCLE_LEN`), and one drains. */
#define TT_BBR_PHASES 8
#define TT_BBR_PROBE 0
#define TT_BBR_YIELD 1

enum tt_bbr_mode { TT_BBR_STARTUP, TT_BBR_DRAIN, TT_BBR_PROBE_BW, TT_BBR_PROBE_RTT };

/* The state of loss recovery, as the transport has it (Linux `TCP_CA_*`). */
enum tt_bbr_recovery { TT_BBR_OPEN, TT_BBR_REPAIRING, TT_BBR_TIMEOUT };

/* Knobs, and what follows from them. Gains have 16 fraction bits. */
struct tt_bbr_knobs {
	u32 knobs[TT_BBR_KNOBS_COUNT];
	u32 yield_gain;
	u32 drain_gain;
	u32 pacing_share; /* what the pacing margin leaves */
	u32 rest;
};

/* The largest of recent samples by rounds, and the best after it, twice over: crates/cc/src/bbr/windowed_max.rs. */
struct tt_rounds_max {
	u64 best[3];
	u32 round[3];
	u32 rest;
};

/* Packets sent while the algorithm itself held the sender back, by what was delivered then: crates/cc/src/bbr/bubble.rs. */
struct tt_bubble {
	u32 start;
	u32 end;
	bool is_there;
	u8 rest[3];
};

/* crates/cc/src/bbr/v1/policer.rs. */
enum tt_policer_state { TT_POLICER_WAITING, TT_POLICER_SAMPLING, TT_POLICER_USING };
struct tt_policer {
	u64 rate_bytes_per_s; /* in use; of the interval before this one while sampling, 0 when there was none */
	u64 start_us;
	u32 start_delivered;
	u32 start_lost;
	u32 rounds; /* in the interval, or of using the rate */
	u32 state;  /* enum tt_policer_state */
};

/* crates/cc/src/bbr/v1/aggregation.rs. */
struct tt_aggregation {
	u64 epoch_us;
	u32 epoch_acked;
	u32 slots[2];
	u32 slot_age; /* rounds since the current slot began */
	u32 current;
	u32 rest;
};

/* The last target of the window, and what it was worked out from: most acknowledgements change nothing of that. */
struct tt_bbr_target {
	u64 bw;
	u64 pacing_bytes_per_s;
	u32 min_rtt_us;
	u32 mss_bytes;
	u32 extra;
	u32 gain;
	u32 packets; /* 0: none yet, or the knobs have changed */
	bool full_pipe;
	bool probes;
	u8 rest[2];
};

struct tt_bbr {
	/* The path. */
	struct tt_rounds_max max_bw;
	u64 min_rtt_at_us; /* when the value was measured, or ProbeRTT ended; 0: the window has not begun */
	u32 min_rtt_us;    /* 0: no sample */
	u32 mss_bytes;
	u32 round;
	/* A packet sent at or after this many delivered ends the round; modulo 2^32, as all that is delivered. */
	u32 round_end;
	u64 full_bw_bytes_per_s; /* the baseline of the plateau: full_pipe.rs */
	u64 pacing_bytes_per_s;
	/* What the connection is doing. */
	u64 phase_us;   /* when the phase of the gain cycle began */
	u64 ends_at_us; /* when the least time in ProbeRTT is over; 0 until what is in flight has fallen */
	u32 window;
	u32 prior_window; /* the last good one, for after recovery and ProbeRTT */
	u8 mode;  /* enum tt_bbr_mode */
	u8 phase; /* of the gain cycle */
	u8 draw;  /* random, below TT_BBR_PHASES - 1: where the next gain cycle begins */
	bool drawn; /* it was used: the caller puts another one there */
	u8 recovery; /* enum tt_bbr_recovery */
	u8 plateau;  /* rounds of it */
	bool full_pipe;
	bool round_started; /* by this acknowledgement */
	bool round_done;    /* in ProbeRTT */
	bool seen_rtt;
	bool idle_restart; /* sending began after idle, and nothing has been acknowledged since */
	bool conserve;     /* the first round of recovery: packet conservation */
	bool app_limited;  /* the last rate sample, as the algorithm counts it: the bubble's is */
	bool searches; /* in Startup since another algorithm left the path idle */
	u8 rest[2];
	struct tt_bubble bubble;
	struct tt_policer policer;
	struct tt_aggregation aggregation;
	struct tt_bbr_target target;
	struct tt_bbr_knobs tuning;
};

/* An acknowledgement, or several that are one to the algorithm: then the best of their samples. */
struct tt_bbr_ack {
	u64 now_us;
	u64 wait_ns; /* until the pacer lets the next packet go */
	u32 mss_bytes;
	u32 srtt_us;
	u32 rtt_us; /* 0: no sample */
	u32 acked;  /* packets */
	u32 acked_before; /* of those, by others before this one: no burst by themselves */
	u32 losses; /* packets, by this acknowledgement */
	u32 delivered; /* over the life of the connection, as the next two, modulo 2^32 */
	u32 prior_delivered; /* when the newest packet that it acknowledges was sent */
	u32 lost;
	u32 inflight;
	u32 prior_inflight;
	u32 rate_packets; /* the delivery rate: packets in time */
	u32 rate_us;      /* 0: no sample */
	u8 recovery;      /* enum tt_bbr_recovery */
	bool app_limited; /* the rate sample */
	bool maybe_delayed; /* by the receiver: the round-trip time may be too long */
	u8 rest;
};

#endif
