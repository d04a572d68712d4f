/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What Copa remembers of one connection, and its inputs. */
#ifndef TRIMTAB_COPA_STATE_H
#define TRIMTAB_COPA_STATE_H

#include "../layout.h"
#include "ceiling.h"
#include "cubic.h"
#include "filter.h"

/* No TCP window is above 1 GiB (RFC 7323 §2.3); the products below fit 64 bits because of that. */
#define TT_WINDOW_MAX_BYTES (1ULL << 30)
/* No round-trip time above a minute is believed, for the same reason. */
#define TT_RTT_MAX_US (1ULL << 26)
#define TT_RTT_MIN_US 1
/* Windows in the state are bytes times this: a step may be less than a byte. */
#define TT_WINDOW_SHIFT 16

enum tt_direction { TT_STILL, TT_UP, TT_DOWN };

/* Velocity (Copa §2.2): crates/cc/src/copa/velocity.rs. */
struct tt_velocity {
	u64 window_then_q16; /* bytes: the window when the round began */
	u32 value_q4;
	u32 same;      /* rounds for which the direction was the same */
	u32 direction; /* enum tt_direction */
	u32 rest;
};

/* TCP-competitive mode (Copa §2.4): crates/cc/src/copa/mode.rs. */
struct tt_mode {
	u64 empty_at_us; /* when the queue was last nearly empty */
	u64 floor_at_us; /* when it last showed the minimum */
	u64 drained_at_us;
	u64 small_from_us; /* since when a queue stands that is nearly empty, but never empty */
	u32 inverse_q16; /* 1/delta by additive increase and multiplicative decrease; 0: default mode */
	bool lost;       /* whether this round had a loss */
	u8 lossless;     /* round trips since a loss, up to TT_LOST_GAP */
	u8 since_others; /* and since one to others, up to TT_LOST_ROUNDS */
	u8 since_kept;   /* round trips since `kept_q16`, up to TT_KEPT_ROUNDS */
	u32 kept_q16;    /* 1/delta when it last stopped to compete */
	u8 confirmed;    /* drains since it competes that did not empty the queue, up to TT_CONFIRMED_MAX */
	u8 rest[3];
};

/* The window is held to see whether the queue empties; `until_us` is 0 when it is not. */
struct tt_drain {
	u64 path_bytes; /* what the path holds with an empty queue */
	u64 held_bytes; /* the window meanwhile */
	u64 from_us;
	u64 until_us;
	u64 rtt_min_us; /* of what was sent since it began; 0: none */
};

/* One window reduction per round trip: crates/cc/src/episode.rs. */
struct tt_episode {
	u64 start_us;
	bool started; /* whether there was a reduction, at `start_us` */
	bool recovering;
	u8 rest[6];
};

struct tt_tally {
	u64 lost_bytes;
	u64 acked_bytes;
};

/* Whose losses are whose: crates/cc/src/copa/blame.rs. */
struct tt_blame {
	u64 most_us[2]; /* the greatest queueing delay of the last stretch, and of this one */
	u64 stretch_from_us;
	struct tt_tally when_full;
	struct tt_tally otherwise;
	bool full;
	u8 rest[7];
};

/* The window that a CUBIC flow would have: crates/cc/src/rival.rs. */
struct tt_rival {
	u64 window_bytes; /* 0: there is none */
	u64 needed_us;
	u32 part_bytes; /* acknowledged, and not yet a packet */
	bool searches;
	bool met;
	u8 rest[2];
	struct tt_cubic curve;
};

struct tt_copa {
	u64 window_q16; /* bytes */
	u64 round_end;  /* in the unit of tt_ack's `delivered` */
	u64 round_start_us;
	u64 observed_us; /* when the filters got their last sample */
	u64 heard_again_us; /* when the last silence ended */
	u64 looked_us; /* when it was last looked whether to drain the queue */
	u64 descent_bytes; /* what the path holds, while the window falls from where another algorithm left it; else 0 */
	u32 mss_bytes;
	u32 window_min_bytes;
	u32 slack_us; /* so much of a queueing delay is none */
	u32 residue_us; /* what a drained queue showed above the minimum: `Copa::base` */
	u32 knobs[TT_KNOBS_MAX]; /* TT_COPA_KNOBS */
	bool slow_start;
	bool started; /* whether anything was acknowledged yet */
	u8 rest[6];
	struct tt_velocity velocity;
	struct tt_mode mode;
	struct tt_drain drain;
	struct tt_episode episode;
	struct tt_ceiling ceiling;
	struct tt_tally tally[2]; /* of the last round, and of this one */
	struct tt_blame blame;
	struct tt_filter rtt_min;
	struct tt_filter rtt_standing;
	struct tt_filter rtt_max;
	/* What most acknowledgements do without comes last. */
	struct tt_ring rtt_min_ring;
	struct tt_ring rtt_standing_ring;
	struct tt_ring rtt_max_ring;
	struct tt_rival rival;
};

/* New data was acknowledged: trimtab_cc::Ack. */
struct tt_ack {
	u64 now_us;
	u64 acked_bytes;
	u64 rtt_us; /* the least, where it stands for several samples; 0: none */
	u64 rtt_most_us; /* the greatest */
	u64 srtt_us;
	u64 delivered; /* over the connection's life; in bytes or in packets, as `inflight` */
	u64 inflight;
	u64 newest_sent_us; /* when the newest packet that is acknowledged was sent */
	bool cwnd_limited;
	bool in_recovery;
};

#endif
