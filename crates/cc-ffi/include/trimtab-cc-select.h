/*
 * A learnt policy (Floo) on connections of libtrimtab-cc: it looks at the connection every few seconds
 * and chooses the algorithm that suits the application and the path.
 *
 * out/libtrimtab-cc-select.a has these functions, and all of trimtab-cc-steer.h and trimtab-cc.h. It
 * allocates as that does: the policy once, and 7 kB for each connection that it chooses for.
 */
#ifndef TRIMTAB_CC_SELECT_H
#define TRIMTAB_CC_SELECT_H

#include <stddef.h>

#include "trimtab-cc-steer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct trimtab_cc_policy;

/* Reads the bytes of a model file, such as models/floo-shared.safetensors, and copies what it needs.
 * Gives null where they are none, damaged, or of another version. */
struct trimtab_cc_policy *trimtab_cc_policy_read(const void *bytes, size_t length);

/* Connections that it chooses for go on: it is gone with the last of them. Null is nothing to do. */
void trimtab_cc_policy_free(struct trimtab_cc_policy *policy);

/* The policy chooses from now on. What it starts with takes over from what runs, or the candidate of
 * the number begin_with where that is at least 0. trimtab_cc_next_timer gives when it wants to look
 * next. trimtab_cc_change ends it. Gives 0, or -1 where the policy is null or has no such candidate;
 * then nothing changes. */
int trimtab_cc_select(struct trimtab_cc *cc, uint64_t now_ns, const struct trimtab_cc_policy *policy,
		      int begin_with);

/* The number of the candidate that suits the path best, by what was seen last. -1 before the first
 * choice, and where no policy chooses. Keep it for the destination: the next connection there may
 * begin with it. */
int trimtab_cc_suited(struct trimtab_cc *cc);

/* What the application gets. A policy that learnt by it needs it. The last byte of a response left
 * for the first time, so long after the application gave it: */
void trimtab_cc_on_response_sent(struct trimtab_cc *cc, uint64_t waited_ns);
/* The last byte was acknowledged, so long after the application gave the response: */
void trimtab_cc_on_response(struct trimtab_cc *cc, uint64_t size_bytes, uint64_t took_ns);
/* Bytes of responses that wait to be sent for the first time, whenever that changes: */
void trimtab_cc_set_unsent(struct trimtab_cc *cc, uint64_t unsent_bytes);

#ifdef __cplusplus
}
#endif

#endif
