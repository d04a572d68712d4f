/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What an interval was worth, and how far to go for a gradient: crates/cc/src/vivace/{utility,losses,climb}.rs in C. */
#ifndef TRIMTAB_VIVACE_UTILITY_H
#define TRIMTAB_VIVACE_UTILITY_H

#include "vivace_interval.h"

/* Losses: the average's gain is 2^-3, two standard errors (squared) around it are noise, and the
 * brakes judge by so many packets. */
#define TT_LOSS_GAIN_SHIFT 3
#define TT_LOSS_ERRORS2 4
#define TT_BRAKE_PACKETS 200
#define TT_BRAKE_PACKETS_FEW 50
#define TT_BRAKE_LOSS 10 /* one in so many */
/* The largest step in hundredths of the rate, and how much more for each time that it bound. */
#define TT_STEP_BOUND 5
#define TT_STEP_BOUND_MORE 10
#define TT_HITS_MAX 1000
#define TT_STREAK_MAX 10000
/* A secant needs rates that differ by one part in so many. */
#define TT_SECANT_APART 1000

TT_INLINE bool tt_vivace_is_on(const struct tt_vivace *v, u32 knob) { return v->knobs[knob] != 0; }

/* A knob in 2^-16 as a share. */
TT_INLINE u64 tt_vivace_share_q32(const struct tt_vivace *v, u32 knob) { return (u64)v->knobs[knob] << 16; }

/* --- What of the losses is random. */

TT_INLINE void tt_losses_add(struct tt_vivace *v, const struct tt_shown *shown, u32 lost)
{
	__s64 off = (__s64)shown->loss_q32 - (__s64)v->loss_average_q32;

	v->loss_average_q32 += off >> TT_LOSS_GAIN_SHIFT;
	v->brake_packets += shown->packets;
	v->brake_lost += lost;
}

/* What was lost before a cut says nothing of the rate after it. */
TT_INLINE void tt_losses_begin_anew(struct tt_vivace *v)
{
	v->brake_packets = 0;
	v->brake_lost = 0;
}

/* Whether the last packets had so many losses that the rate is to be cut. */
TT_INLINE bool tt_losses_are_excessive(struct tt_vivace *v)
{
	u64 lost = (u64)v->brake_lost * TT_BRAKE_LOSS;
	bool enough = v->brake_packets >= TT_BRAKE_PACKETS;
	bool excessive = (enough && lost > v->brake_packets) ||
			 (v->brake_packets >= TT_BRAKE_PACKETS_FEW && lost > 2ULL * v->brake_packets);

	if (enough || excessive)
		tt_losses_begin_anew(v);
	return excessive;
}

/* The loss that an interval is judged by: the average where it does not differ from that by more than chance. */
TT_INLINE u64 tt_losses_smoothed_q32(const struct tt_vivace *v, const struct tt_shown *shown)
{
	u64 average_q31 = v->loss_average_q32 >> 1, loss_q31 = shown->loss_q32 >> 1;
	u64 off_q31 = tt_max(average_q31, loss_q31) - tt_min(average_q31, loss_q31);
	u64 error2_q62 = average_q31 * ((1ULL << 31) - average_q31) / tt_max(shown->packets, 1);

	if (!v->knobs[TT_VIVACE_LOSS_FILTER] || off_q31 * off_q31 > TT_LOSS_ERRORS2 * error2_q62)
		return shown->loss_q32;
	return v->loss_average_q32;
}

/* --- The utility. */

TT_INLINE __s64 tt_utility_bounded(u64 value_q30) { return tt_min(value_q30, TT_UTILITY_MAX_Q30); }

/* a x^d - b x L - c x dRTT/dt for the rate x in Mbit/s (PCC customization section 2.1). */
TT_CHECKED_ONCE __s64 tt_utility_q30(const struct tt_vivace *v, const struct tt_shown *shown, u64 loss_q32)
{
	u64 x_q20, taken_q30, gained_q30, slope_q32;
	__s64 power_q32;

	if (!v || !shown || !shown->rate_q8)
		return 0;
	slope_q32 = shown->slope_q32;
	if (loss_q32 < tt_vivace_share_q32(v, TT_VIVACE_LOSS_FILTER) ||
	    (v->knobs[TT_VIVACE_LOSS_FILTER] && shown->lost_ranges < 2))
		loss_q32 = 0;
	if (slope_q32 < tt_vivace_share_q32(v, TT_VIVACE_LATENCY_FILTER) ||
	    (v->knobs[TT_VIVACE_LATENCY_FILTER] && shown->slope_explained))
		slope_q32 = 0;
	x_q20 = (shown->rate_q8 << (20 - TT_RATE_SHIFT)) / 125000;
	power_q32 = (__s64)tt_log2_q32(shown->rate_q8) - ((__s64)TT_RATE_SHIFT << 32) - (__s64)TT_LOG2_MBPS_Q32;
	power_q32 = power_q32 * v->knobs[TT_VIVACE_DELTA] >> 16;
	gained_q30 = tt_exp2_q30(power_q32); /* below 2^49 */
	gained_q30 = (gained_q30 >> 16) * v->knobs[TT_VIVACE_ALPHA] + ((gained_q30 & 0xffff) * v->knobs[TT_VIVACE_ALPHA] >> 16);
	taken_q30 = tt_times_q32(x_q20 * v->knobs[TT_VIVACE_BETA], loss_q32);
	taken_q30 += tt_times_q32(x_q20 * v->knobs[TT_VIVACE_GAMMA], slope_q32 & 0xffffffff);
	taken_q30 = tt_min(taken_q30, TT_UTILITY_MAX_Q30) + tt_utility_bounded(tt_times(x_q20 * v->knobs[TT_VIVACE_GAMMA], slope_q32 >> 32));
	return (__s64)tt_utility_bounded(gained_q30) - tt_utility_bounded(taken_q30);
}

/* --- Gradients. */

/* A utility over a rate, for a rate that is not 0. */
TT_INLINE __s64 tt_gradient_q30(__s64 utility_q30, u64 rate_q8)
{
	u64 per_rate = 125000ULL << TT_RATE_SHIFT;
	u64 magnitude = tt_magnitude(utility_q30);
	u64 gradient;

	/* Where the product does not fit, the rate without its last bits will do. */
	if (magnitude >> 38)
		gradient = tt_times(magnitude / tt_max(rate_q8 >> 12, 1), per_rate) >> 12;
	else
		gradient = magnitude * per_rate / tt_max(rate_q8, 1);
	gradient = tt_min(gradient, TT_UTILITY_MAX_Q30);
	return utility_q30 < 0 ? -(__s64)gradient : (__s64)gradient;
}

/* The gradient at the middle of two rates; false where they do not differ by enough to tell. */
TT_INLINE bool tt_secant_q30(u64 before_q8, __s64 before_q30, u64 after_q8, __s64 after_q30, __s64 *gradient)
{
	u64 apart = tt_max(before_q8, after_q8) - tt_min(before_q8, after_q8);
	__s64 gain = (after_q30 >> 1) - (before_q30 >> 1); /* so that the difference fits */

	if (apart * TT_SECANT_APART <= after_q8)
		return false;
	*gradient = tt_gradient_q30(after_q8 > before_q8 ? gain : -gain, apart);
	*gradient = tt_magnitude(*gradient) >> 61 ? *gradient : *gradient * 2;
	return true;
}

TT_INLINE __s64 tt_worth_q30(const struct tt_vivace *v, const struct tt_shown *shown)
{
	return tt_utility_q30(v, shown, tt_losses_smoothed_q32(v, shown));
}

/* The gradient between an interval and the one before it. */
TT_INLINE __s64 tt_climb_gradient_q30(const struct tt_vivace *v, const struct tt_shown *shown)
{
	const struct tt_climb *climb = &v->climb;
	__s64 now = tt_worth_q30(v, shown);
	/* The utility is concave and 0 at rate 0. */
	__s64 most = tt_gradient_q30(now, tt_max(shown->rate_q8, 1));
	__s64 gradient;

	if (!climb->last.rate_q8 ||
	    !tt_secant_q30(climb->last.rate_q8, tt_worth_q30(v, &climb->last), shown->rate_q8, now, &gradient))
		return most;
	return gradient < most ? gradient : most;
}

/* --- Steps. */

/* The confidence amplifier: steps that all went one way have far to go. */
TT_INLINE u64 tt_climb_amplifier(u64 streak)
{
	if (streak <= 3)
		return streak;
	if (streak <= 6)
		return 2 * streak - 3;
	return streak <= 9 ? 4 * streak - 15 : 8 * streak - 51;
}

TT_INLINE u64 tt_climb_bound_q8(u64 hits, u64 rate_q8, u64 notable_q8)
{
	return tt_max((TT_STEP_BOUND + TT_STEP_BOUND_MORE * hits) * rate_q8 / 100, notable_q8);
}

/* The rate after `rate`, for a gradient there; `packet` is one in a round trip. */
TT_INLINE u64 tt_climb_step_q8(struct tt_vivace *v, u64 rate_q8, __s64 gradient_q30, u64 packet_q8)
{
	struct tt_climb *climb = &v->climb;
	bool up = gradient_q30 >= 0;
	/* A step up that did not pay is undone as a whole, where each step is a probe. */
	u64 least_q8 = tt_vivace_is_on(v, TT_VIVACE_UNIFIED) && climb->up && !up ? climb->step_q8 : 0;
	u64 notable_q8 = up ? packet_q8 : 0;
	u64 wanted_q8, hits;

	if (up == climb->up && climb->streak) {
		climb->streak = tt_min(climb->streak + 1, TT_STREAK_MAX);
	} else {
		climb->up = up;
		climb->streak = 1;
		climb->hits = 0;
	}
	wanted_q8 = v->knobs[TT_VIVACE_OMEGA] * tt_climb_amplifier(climb->streak); /* in 2^-16, below 2^40 */
	wanted_q8 = tt_times(wanted_q8, tt_magnitude(gradient_q30) >> 10) >> 16; /* Mbit/s in 2^-20 */
	wanted_q8 = tt_times(wanted_q8, 125000) >> (20 - TT_RATE_SHIFT);
	hits = climb->hits;
	if (wanted_q8 > tt_climb_bound_q8(hits, rate_q8, notable_q8)) {
		wanted_q8 = tt_climb_bound_q8(hits, rate_q8, notable_q8);
		if (climb->streak > 1)
			climb->hits = tt_min(hits + 1, TT_HITS_MAX);
	} else if (tt_climb_bound_q8(0, rate_q8, notable_q8) >= wanted_q8) {
		climb->hits = 0;
	} else {
		/* The fewest hits whose bound is as much as is wanted. */
		hits = tt_less(wanted_q8 * 100 / tt_max(rate_q8, 1), TT_STEP_BOUND) / TT_STEP_BOUND_MORE;
		hits += tt_climb_bound_q8(hits, rate_q8, notable_q8) < wanted_q8;
		climb->hits = tt_min(climb->hits, hits);
	}
	climb->step_q8 = tt_max(tt_max(wanted_q8, least_q8), rate_q8 * v->knobs[TT_VIVACE_EXPLORE] >> 16);
	return up ? rate_q8 + climb->step_q8 : tt_less(rate_q8, climb->step_q8);
}

#endif
