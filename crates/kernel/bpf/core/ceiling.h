/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What congestion marks (ECN) leave of a window: crates/cc/src/ceiling.rs in C, which says why,
 * and has the sections. */
#ifndef TRIMTAB_CEILING_H
#define TRIMTAB_CEILING_H

#include "../types.h"

/* A mark leaves 7/10, and a packet comes back for 17/9 of the window acknowledged (RFC 9438 §4.3 and §4.6). */
#define TT_CEILING_KEEP_NUM 7
#define TT_CEILING_KEEP_DEN 10
#define TT_CEILING_PRICE_NUM 17
#define TT_CEILING_PRICE_DEN 9
#define TT_CEILING_PACKETS_MIN 2
/* It ends when nothing was marked for so long, and for so many round trips. */
#define TT_CEILING_LASTS_US 10000000
#define TT_CEILING_LASTS_ROUNDS 10

struct tt_ceiling {
	u64 window_bytes; /* 0: there is none */
	u64 credit_bytes;
	u64 lowered_us; /* when the last mark lowered it */
	bool held; /* nothing that was sent since has arrived */
	u8 rest[7];
};

TT_INLINE bool tt_ceiling_is_set(const struct tt_ceiling *c) { return c->window_bytes; }

/* The greatest number while there is none. */
TT_INLINE u64 tt_ceiling_bytes(const struct tt_ceiling *c) { return c->window_bytes ? c->window_bytes : ~0ULL; }

/* A mark arrived while this window was in force, below 2^40. Whether it lowers the bound. */
TT_INLINE bool tt_ceiling_on_marked(struct tt_ceiling *c, u64 now_us, u64 newest_sent_us, u64 window_bytes,
				    u32 mss_bytes)
{
	u64 kept = tt_min(window_bytes, tt_ceiling_bytes(c)) * TT_CEILING_KEEP_NUM / TT_CEILING_KEEP_DEN;

	if (tt_ceiling_is_set(c) && newest_sent_us <= c->lowered_us)
		return false;
	c->window_bytes = tt_max(kept, TT_CEILING_PACKETS_MIN * (u64)tt_max(mss_bytes, 1));
	c->credit_bytes = 0;
	c->lowered_us = now_us;
	c->held = true;
	return true;
}

/* What an acknowledgement says to the bound. */
struct tt_used {
	u64 now_us;
	u64 acked_bytes;
	u64 srtt_us;
	u64 newest_sent_us;
	u32 mss_bytes;
	bool limits; /* the bound limits the sender: it does not grow while it is not used */
};

TT_INLINE void tt_ceiling_on_ack(struct tt_ceiling *c, const struct tt_used *used)
{
	u64 lasts_us = tt_max(TT_CEILING_LASTS_US, tt_min(used->srtt_us, 1ULL << 26) * TT_CEILING_LASTS_ROUNDS);
	u64 price;

	if (!tt_ceiling_is_set(c))
		return;
	if (used->now_us - c->lowered_us > lasts_us) {
		c->window_bytes = 0;
		return;
	}
	c->held = c->held && used->newest_sent_us <= c->lowered_us;
	if (c->held || !used->limits)
		return;
	c->credit_bytes += used->acked_bytes;
	price = c->window_bytes * TT_CEILING_PRICE_NUM / TT_CEILING_PRICE_DEN;
	if (c->credit_bytes >= price) {
		c->credit_bytes -= price;
		c->window_bytes += used->mss_bytes;
	}
}

#endif
