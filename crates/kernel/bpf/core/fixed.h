/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Products, powers and slopes in integers: the kernel has no floating point. Relative errors are
 * below one in ten million, which the differential test of Vivace needs, since a gradient is a
 * small difference of two utilities.
 */
#ifndef TRIMTAB_FIXED_H
#define TRIMTAB_FIXED_H

#include "../types.h"

#define TT_ONE_Q32 (1ULL << 32)
/* log2(125000): rates come in bytes per second, the utility's in Mbit/s. */
#define TT_LOG2_MBPS_Q32 72720533275ULL
/* ln 2. */
#define TT_LN2_Q32 2977044472ULL

/* a * b, or the greatest number where that is more. In halves: the compiler would make a product
 * of 128 bits of a division. */
TT_INLINE u64 tt_times(u64 a, u64 b)
{
	u64 small = tt_min(a, b), large = tt_max(a, b), high = (large >> 32) * small;
	u64 low = (large & 0xffffffff) * small;

	if (small >> 32 || high >> 32 || high << 32 > ~low)
		return ~0ULL;
	return (high << 32) + low;
}

/* a * b / 2^32, for b up to 2^32. */
TT_INLINE u64 tt_times_q32(u64 a, u64 b_q32) { return (a >> 32) * b_q32 + ((a & 0xffffffff) * b_q32 >> 32); }

TT_INLINE u64 tt_magnitude(__s64 a) { return a < 0 ? -(u64)a : (u64)a; }

/* a / b for a signed a: BPF divides unsigned numbers only, before its fourth instruction set. */
TT_INLINE __s64 tt_over(__s64 a, u64 b)
{
	u64 quotient = tt_magnitude(a) / tt_max(b, 1);

	return a < 0 ? -(__s64)quotient : (__s64)quotient;
}

/* a / b as a share; 0 for a b of 0. Both are below 2^32. */
TT_INLINE u64 tt_share_q32(u64 a, u64 b) { return b ? (a << 32) / b : 0; }

/* The place of the highest bit of x; 0 of 0. */
TT_INLINE u32 tt_log2_whole(u64 x)
{
	u32 whole = 0;

#pragma unroll
	for (u32 bits = 32; bits; bits /= 2) {
		if (x >> bits) {
			x >>= bits;
			whole += bits;
		}
	}
	return whole;
}

/* log2 of x, which is not 0: bit by bit, since squaring doubles the logarithm. */
TT_CHECKED_ONCE u64 tt_log2_q32(u64 x)
{
	u64 whole = tt_log2_whole(x), share_q32 = 0, mantissa_q31;

	mantissa_q31 = whole > 31 ? x >> (whole - 31) : x << (31 - whole);
	for (int bit = 31; bit >= 4; bit--) {
		mantissa_q31 = mantissa_q31 * mantissa_q31 >> 31;
		if (mantissa_q31 >> 32) {
			mantissa_q31 >>= 1;
			share_q32 |= 1ULL << bit;
		}
	}
	return whole << 32 | share_q32;
}

/* 2^x for x below 30, in 2^-30. */
TT_CHECKED_ONCE u64 tt_exp2_q30(__s64 x_q32)
{
	__s64 whole = x_q32 >> 32; /* downwards, so that the rest is not negative */
	u64 t_q32 = ((u64)x_q32 & 0xffffffff) * TT_LN2_Q32 >> 32;
	u64 sum_q32 = TT_ONE_Q32;

	/* The series of e^t by Horner; the thirteenth term is below 2^-38. */
	for (u32 k = 12; k; k--)
		sum_q32 = TT_ONE_Q32 + tt_times_q32(sum_q32, t_q32) / k;
	if (whole >= 2)
		return whole > 29 ? ~0ULL >> 4 : sum_q32 << (whole - 2);
	return whole < -29 ? 0 : sum_q32 >> (2 - whole);
}

#endif
