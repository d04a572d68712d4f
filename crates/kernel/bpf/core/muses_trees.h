/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The trees of a Muses model, walked where they lie: crates/cc/src/muses/trees.rs in C, which says what each thing is.
 *
 * User space checks a model before it writes it into the maps. Nothing here relies on that:
 * whatever the maps hold, a walk ends after TT_WALK_MAX steps, a node that is not there ends it,
 * and a factor is from a half to two.
 *
 * A file that includes this has two functions: tt_model_get() and tt_node_get(), which give null
 * for a number that is not there.
 */
#ifndef TRIMTAB_MUSES_TREES_H
#define TRIMTAB_MUSES_TREES_H

#include "../layout.h"

/* A window is multiplied by so many 1/16384: one, a half, two. */
#define TT_FACTOR_POINT 14
#define TT_FACTOR_ONE (1 << TT_FACTOR_POINT)
#define TT_FACTOR_MIN (TT_FACTOR_ONE / 2)
#define TT_FACTOR_MAX (TT_FACTOR_ONE * 2)
/* Bits after the point of a projection's weights. */
#define TT_WEIGHT_POINT 16

/* What tree number `tree` multiplies the window by, asked with these inputs, which have room for
 * TT_INPUT_WORDS numbers. */
TT_INLINE u32 tt_trees_decide(const struct tt_model *model, u32 tree, const __s16 *inputs)
{
	u32 from, at = 0;

	if (tree >= model->trees)
		return TT_FACTOR_ONE;
	from = model->tree_first[tree & (TT_TREES_MAX - 1)];
	for (u32 step = 0; step < TT_WALK_MAX; step++) {
		const struct tt_node *node = tt_node_get(from + at);
		u32 kind;

		if (!node)
			return TT_FACTOR_ONE;
		kind = node->kind;
		if (kind & TT_LEAF)
			return tt_min(tt_max(node->above, TT_FACTOR_MIN), TT_FACTOR_MAX);
		at = inputs[kind & (TT_INPUT_WORDS - 1)] <= node->threshold ? at + 1 : node->above;
	}
	return TT_FACTOR_ONE;
}

/* Whether training saw values like these, in every signal. */
TT_INLINE bool tt_trees_know(const struct tt_model *model, const __s16 *state)
{
	bool known = true;

	for (u32 i = 0; i < TT_SIGNALS; i++)
		known &= state[i] >= (__s32)model->range_low[i] && state[i] <= (__s32)model->range_high[i];
	return known;
}

/* The segment of a component in which a state lies. */
TT_INLINE u32 tt_trees_segment(const struct tt_model *model, u32 component, const __s16 *state)
{
	__s64 sum = 0, along;

	for (u32 i = 0; i < TT_SIGNALS; i++)
		sum += (__s64)(__s32)model->weights[component * TT_STATE_WORDS + i] * state[i];
	along = (sum >> TT_WEIGHT_POINT) - (__s32)model->component_low[component];
	/* The processor of BPF divides numbers without a sign. */
	if (along <= 0)
		return 0;
	return tt_min((u64)along / tt_max(model->component_width[component], 1), TT_BINS - 1);
}

#endif
