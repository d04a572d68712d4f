/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What a tree of Muses may compare besides the seven signals: crates/cc/src/muses/inputs.rs in C,
 * which defines each.
 */
#ifndef TRIMTAB_MUSES_INPUTS_H
#define TRIMTAB_MUSES_INPUTS_H

#include "muses_signals.h"

/* Averages are kept 64-fold. Their weights are powers of one half. */
#define TT_PAST_PARTS_SHIFT 6
#define TT_PAST_QUICK_SHIFT 3
#define TT_PAST_SLOW_SHIFT 6

/* What a connection keeps of its states before. */
struct tt_past {
	__s32 drate_8;
	__s32 drate_64;
	__s32 cwnd_8;
	__s32 qdelay_8;
	u32 is_set;
};

/* The average with the next number in it. The first is taken whole; shifts round down. */
TT_INLINE __s32 tt_past_next(const struct tt_past *past, __s32 average, __s32 number, u32 shift)
{
	__s32 here = number * (1 << TT_PAST_PARTS_SHIFT);

	return past->is_set ? average + ((here - average) >> shift) : here;
}

TT_INLINE __s16 tt_input_of(__s32 value)
{
	if (value > 32767)
		return 32767;
	return value < -32768 ? -32768 : value;
}

/* Takes the next state, which is the first of the inputs; adds the others. */
TT_INLINE void tt_past_see(struct tt_past *past, __s16 *inputs)
{
	__s32 srtt = inputs[TT_SIGNAL_SRTT], qdelay = inputs[TT_SIGNAL_QDELAY], min_rtt = inputs[TT_SIGNAL_MIN_RTT];
	__s32 srate = inputs[TT_SIGNAL_SRATE], drate = inputs[TT_SIGNAL_DRATE], cwnd = inputs[TT_SIGNAL_CWND];

	past->drate_8 = tt_past_next(past, past->drate_8, drate, TT_PAST_QUICK_SHIFT);
	past->drate_64 = tt_past_next(past, past->drate_64, drate, TT_PAST_SLOW_SHIFT);
	past->cwnd_8 = tt_past_next(past, past->cwnd_8, cwnd, TT_PAST_QUICK_SHIFT);
	past->qdelay_8 = tt_past_next(past, past->qdelay_8, qdelay, TT_PAST_QUICK_SHIFT);
	past->is_set = 1;
	inputs[7] = tt_input_of(cwnd - drate - min_rtt);
	inputs[8] = tt_input_of(cwnd - drate - srtt);
	inputs[9] = tt_input_of(srate - drate);
	inputs[10] = tt_input_of(drate - (past->drate_8 >> TT_PAST_PARTS_SHIFT));
	inputs[11] = tt_input_of(drate - (past->drate_64 >> TT_PAST_PARTS_SHIFT));
	inputs[12] = tt_input_of(cwnd - (past->cwnd_8 >> TT_PAST_PARTS_SHIFT));
	inputs[13] = tt_input_of(qdelay - (past->qdelay_8 >> TT_PAST_PARTS_SHIFT));
	inputs[14] = tt_input_of(cwnd - (past->drate_8 >> TT_PAST_PARTS_SHIFT) - min_rtt);
	inputs[15] = tt_input_of(qdelay + (drate >> 1));
}

#endif
