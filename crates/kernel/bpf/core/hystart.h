/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* HyStart as Linux has it: crates/cc/src/hystart_linux.rs, which says why each thing is as it is. */
#ifndef TRIMTAB_HYSTART_H
#define TRIMTAB_HYSTART_H

#include "../types.h"

/* Below this window, in packets, nothing is judged. */
#define TT_HYSTART_LOW_WINDOW 16
/* Acknowledgements this close belong to one train. */
#define TT_HYSTART_TRAIN_GAP_US 2000
/* What the sender's segmentation offload may spread a train by. */
#define TT_HYSTART_OFFLOAD_US 1000
#define TT_HYSTART_SAMPLES 8
/* The round-trip time has risen when it is an eighth above the least, and so much at least and at most. */
#define TT_HYSTART_RISE_MIN_US 4000
#define TT_HYSTART_RISE_MAX_US 16000
/* Values of the knob: HyStart++ (1) is not here, and 3 is the delay alone. */
#define TT_HYSTART_OFF 0
#define TT_HYSTART_TRAINS 2

struct tt_hystart {
	u64 round_start_us;
	u64 last_ack_us;  /* of the train */
	u32 round_end;    /* a sequence number */
	u32 delay_min_us; /* 0: none yet */
	u32 round_min_us; /* 0: none yet */
	u8 samples;
	bool found;
	bool begun; /* whether there was a round */
	u8 rest;
};

/* What an acknowledgement says of the round. Sequence numbers may be of any unit; they are compared modulo 2^32. */
struct tt_round {
	u64 now_us;
	u32 rtt_us; /* 0: no sample */
	u32 acknowledged_to;
	u32 sent_to;
	u32 window;  /* packets */
	bool paced; /* where it is not, trains start in bursts, and half the delay is long already */
};

TT_INLINE void tt_hystart_reset(struct tt_hystart *h)
{
	__builtin_memset(h, 0, sizeof(*h));
}

TT_INLINE bool tt_hystart_train_is_long(struct tt_hystart *h, const struct tt_round *r)
{
	u64 enough_us = h->delay_min_us + TT_HYSTART_OFFLOAD_US;

	if (r->now_us - h->last_ack_us > TT_HYSTART_TRAIN_GAP_US)
		return false;
	h->last_ack_us = r->now_us;
	return r->now_us - h->round_start_us > (r->paced ? enough_us : enough_us / 2);
}

TT_INLINE bool tt_hystart_delay_rose(struct tt_hystart *h, u32 rtt_us)
{
	u32 rise_us = tt_min(tt_max(h->delay_min_us / 8, TT_HYSTART_RISE_MIN_US), TT_HYSTART_RISE_MAX_US);

	if (!h->round_min_us || rtt_us < h->round_min_us)
		h->round_min_us = rtt_us;
	if (h->samples < TT_HYSTART_SAMPLES) {
		h->samples++;
		return false;
	}
	return h->round_min_us > h->delay_min_us + rise_us;
}

/* Takes an acknowledgement in slow start, before the window grows by it: whether slow start is over. True only once. */
TT_INLINE bool tt_hystart_leaves(struct tt_hystart *h, const struct tt_round *r, u32 knob)
{
	bool is_long;

	if (!r->rtt_us)
		return false;
	if (!h->delay_min_us || r->rtt_us < h->delay_min_us)
		h->delay_min_us = r->rtt_us;
	if (h->found || knob == TT_HYSTART_OFF)
		return false;
	if (!h->begun || (__s32)(r->acknowledged_to - h->round_end) > 0) {
		h->begun = true;
		h->round_end = r->sent_to;
		h->round_start_us = r->now_us;
		h->last_ack_us = r->now_us;
		h->round_min_us = 0;
		h->samples = 0;
	}
	if (r->window < TT_HYSTART_LOW_WINDOW)
		return false;
	is_long = knob == TT_HYSTART_TRAINS && tt_hystart_train_is_long(h, r);
	h->found = tt_hystart_delay_rose(h, r->rtt_us) || is_long;
	return h->found;
}

#endif
