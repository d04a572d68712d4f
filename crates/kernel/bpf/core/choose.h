/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Which algorithm a socket gets: the rules of the configuration, as user space compiled them
 * (src/choices.rs, whose `Choices::decide` says the same in Rust). Who includes this says what the
 * cgroups above a socket's are: `tt_cgroup_above`.
 */
#ifndef TRIMTAB_CORE_CHOOSE_H
#define TRIMTAB_CORE_CHOOSE_H

#include "../assign.h"

/* None of the choices. */
#define TT_NO_CHOICE TT_CHOICES_MAX

/* Who asks. */
struct tt_asked {
	u64 netns_cookie;
	u64 cgroup; /* its kernel's address; 0 unknown */
	u32 listens;
	u32 port;      /* its own */
	u32 family;    /* of the remote address; AF_INET of one that is mapped, too */
	u32 remote[4]; /* network order; an IPv4 address is mapped (RFC 4291 §2.5.5.2) */
};

struct tt_choosing {
	struct tt_asked asked;
	const struct tt_choices *choices;
	u32 found; /* the place of what it gets, or TT_NO_CHOICE */
};

#define TT_FAMILY_V4 2
#define TT_FAMILY_V6 10

/* Number of the cgroup on this level above a socket's, or its own; 0 where there is none. */
static u64 tt_cgroup_above(const struct tt_asked *asked, u32 level);

/* After the remote address is there: its family is that of the address which it stands for. */
TT_INLINE void tt_asked_is_canonical(struct tt_asked *a)
{
	const u8 *bytes = (const u8 *)a->remote;

	if (!a->remote[0] && !a->remote[1] && !bytes[8] && !bytes[9] && bytes[10] == 0xff && bytes[11] == 0xff)
		a->family = TT_FAMILY_V4;
}

TT_INLINE void tt_asked_v4(struct tt_asked *a, u32 address)
{
	u8 *bytes = (u8 *)a->remote;

	a->remote[0] = a->remote[1] = a->remote[2] = 0;
	bytes[10] = bytes[11] = 0xff;
	a->remote[3] = address;
	a->family = TT_FAMILY_V4;
}

/* FNV-1a of nothing. */
#define TT_FNV 0xcbf29ce484222325
/* The seeds of the draws, as in trimtab-fleet (experiment/arms.rs). */
#define TT_DRAW_PARTS 0x746872656561726d
#define TT_DRAW_ROLLOUT 0x726f6c6c6f757420

/* FNV-1a of the destination's prefix, /24 or /48: of the bytes of `PrefixKey` of trimtab-steer. */
TT_INLINE u64 tt_prefix_hash(const struct tt_asked *a)
{
	const u8 *bytes = (const u8 *)a->remote;
	u32 first = a->family == TT_FAMILY_V4 ? 12 : 0;
	u32 keep = a->family == TT_FAMILY_V4 ? 15 : 6;
	u64 hash = TT_FNV;

	for (u32 i = 0; i < 16; i++) {
		if (i < first)
			continue;
		hash = (hash ^ (i < keep ? bytes[i] : 0)) * 0x100000001b3;
	}
	return hash;
}

/* Its place among 2^53, by which it is held back: `Arm::of` of trimtab-steer. */
TT_INLINE u64 tt_place_of_arm(const struct tt_asked *a)
{
	u64 hash = tt_prefix_hash(a);

	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccd;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53;
	hash ^= hash >> 33;
	return hash >> 11;
}

TT_INLINE u64 tt_mix(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* A draw, by the hash of its key: `chance` of trimtab-fleet. */
TT_INLINE u64 tt_chance(u64 seed, u64 hash, u64 count)
{
	return tt_mix(tt_mix(hash ^ (seed << 32 | seed >> 32)) ^ count * 0x9e3779b97f4a7c15);
}

/*
 * Whether a connection runs what it would run without us, for comparison, at this time:
 * `Arms::runs_former` of src/arms.rs says the same in Rust.
 */
TT_INLINE bool tt_runs_former(const struct tt_asked *a, const struct tt_arms *arms, u64 now_ns)
{
	u64 hash = tt_prefix_hash(a), step, block, whose;

	if (tt_chance(TT_DRAW_ROLLOUT, hash, 0) >> 11 >= arms->reached)
		return true;
	if (!arms->length || !arms->step_ns || !arms->block)
		return false;
	step = now_ns / arms->step_ns;
	if (step < arms->start || step - arms->start >= arms->length)
		return false;
	block = (step - arms->start) / arms->block;
	whose = arms->together ? TT_FNV : hash;
	if (tt_chance(arms->seed ^ TT_DRAW_PARTS, whose, block / 2) >> 11 >= arms->share)
		return false;
	/* What is tried comes first in a pair, or comes second. */
	return (tt_chance(arms->seed, whose, block / 2) & 1) == (block & 1);
}

/* Our copy of an algorithm; null where there is none. */
TT_INLINE const u8 *tt_copy_of(const struct tt_choices *choices, const u8 *name)
{
	for (u32 place = 0; place < TT_COPIES_MAX; place++) {
		const u8 *of = choices->copies[place].of;
		bool is_same = place < choices->arms.copies;

		for (u32 i = 0; i < TT_NAME_SIZE; i++)
			is_same &= of[i] == name[i];
		if (is_same)
			return choices->copies[place].copy;
	}
	return 0;
}

TT_INLINE bool tt_is_chosen(const struct tt_choice *choice, const struct tt_asked *a)
{
	if (a->listens && choice->gives == TT_GIVES_FORMER)
		return false;
	if (a->port < choice->port_first || a->port > choice->port_last)
		return false;
	if (choice->netns_cookie && choice->netns_cookie != a->netns_cookie)
		return false;
	if (choice->to_family && !a->listens) {
		if (choice->to_family != a->family)
			return false;
		for (u32 i = 0; i < 4; i++)
			if ((a->remote[i] & choice->to_mask[i]) != choice->to[i])
				return false;
	}
	return !choice->cgroup_id || tt_cgroup_above(a, choice->cgroup_level) == choice->cgroup_id;
}

TT_INLINE bool tt_give_the_same(const struct tt_choice *one, const struct tt_choice *other)
{
	for (u32 i = 0; i < TT_NAME_SIZE; i++)
		if (one->algorithm[i] != other->algorithm[i])
			return false;
	return true;
}

/*
 * One of the choices, in their order; 1 when it is decided. A connection gets what the first that
 * matches says. A socket that listens has connections to anywhere: it gets what all that match say,
 * down to the first which is about every destination.
 */
TT_INLINE long tt_choose_one(u32 place, struct tt_choosing *c)
{
	const struct tt_choice *choice, *before;

	if (place >= TT_CHOICES_MAX || place >= c->choices->count) {
		c->found = TT_NO_CHOICE;
		return 1;
	}
	choice = &c->choices->list[place];
	if (!tt_is_chosen(choice, &c->asked))
		return 0;
	if (choice->gives == TT_GIVES_NOTHING) {
		c->found = TT_NO_CHOICE;
		return 1;
	}
	if (c->asked.listens && c->found < TT_CHOICES_MAX) {
		before = &c->choices->list[c->found];
		if (!tt_give_the_same(before, choice)) {
			c->found = TT_NO_CHOICE;
			return 1;
		}
	} else {
		c->found = place;
	}
	return !c->asked.listens || !choice->to_family;
}

/*
 * What becomes of the socket when all choices were looked at; null: it is left as it is, as connections
 * to a prefix that is held back are. These, too, get back what they ran before.
 */
TT_INLINE const struct tt_choice *tt_chosen(const struct tt_choosing *c, const struct tt_choices *choices)
{
	const struct tt_choice *choice;

	if (c->found >= TT_CHOICES_MAX)
		return 0;
	choice = &choices->list[c->found];
	if (choice->gives == TT_GIVES_FORMER || c->asked.listens)
		return choice;
	return tt_place_of_arm(&c->asked) < choices->held_back ? 0 : choice;
}

#endif
