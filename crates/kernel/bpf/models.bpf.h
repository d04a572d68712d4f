/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Where the trees of Muses lie: two arrays that user space has in its memory, too, and fills
 * (src/models.rs). Whatever they hold, an index that is not in them gives null.
 */
#ifndef TRIMTAB_MODELS_BPF_H
#define TRIMTAB_MODELS_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "layout.h"

/* By their number; number 0 stays empty. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TT_MODELS_MAX);
	__type(key, u32);
	__type(value, struct tt_model);
} tt_models SEC(".maps");

/* The nodes of all of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TT_NODES_MAX);
	__type(key, u32);
	__type(value, struct tt_node);
} tt_nodes SEC(".maps");

TT_INLINE const struct tt_model *tt_model_get(u32 index)
{
	return bpf_map_lookup_elem(&tt_models, &index);
}

TT_INLINE const struct tt_node *tt_node_get(u32 index)
{
	return bpf_map_lookup_elem(&tt_nodes, &index);
}

#endif
