/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The integers that everything here is written in, for the BPF target and for the host, without any system header. */
#ifndef TRIMTAB_TYPES_H
#define TRIMTAB_TYPES_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef _Bool bool;
#define true 1
#define false 0

#ifdef __bpf__
#define TT_INLINE static inline __attribute__((always_inline))
/* A function that the verifier checks once, by itself, and not again at each call. */
#define TT_CHECKED_ONCE __attribute__((noinline))
#else
/* On the host the differential tests call the core's functions themselves. */
#define TT_INLINE
#define TT_CHECKED_ONCE
#endif

TT_INLINE u64 tt_min(u64 a, u64 b) { return a < b ? a : b; }
TT_INLINE u64 tt_max(u64 a, u64 b) { return a > b ? a : b; }
/* What is left of `a` after `b` is taken; nothing where `b` is more. */
TT_INLINE u64 tt_less(u64 a, u64 b) { return a > b ? a - b : 0; }

#endif
