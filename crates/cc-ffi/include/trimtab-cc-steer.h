/*
 * Mortise on connections of libtrimtab-cc: Copa whose delta follows the application's QoE model.
 *
 * out/libtrimtab-cc-steer.a has these functions and all of trimtab-cc.h. It allocates, by
 * aligned_alloc and free of the C library: a struct of 1.2 kB for each connection that is
 * steered, and the record of a change-point detection, which is bounded.
 */
#ifndef TRIMTAB_CC_STEER_H
#define TRIMTAB_CC_STEER_H

#include "trimtab-cc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Mortise turns the knobs from now on, by a QoE model: "download", "vod", "web" or "conference".
 * Where another algorithm than Copa runs, Copa takes over from it. trimtab_cc_next_timer gives when
 * the next report is due. trimtab_cc_change ends it. Gives 0, or -1 where there is no such model;
 * then nothing changes. */
int trimtab_cc_steer(struct trimtab_cc *cc, uint64_t now_ns, const char *model);

/* A live factor of the application, which the model reads: "download" needs "R", the size of the
 * request in Mbit; "web" needs "Rbar", the mean size of the responses in flight in Mbit; "vod" needs
 * "V", the seconds of video in the playback buffer, and "C", the chunk's size in Mbit. Gives 0, or
 * -1 where nothing steers or the name cannot be. */
int trimtab_cc_set_factor(struct trimtab_cc *cc, const char *name, double value);

/* Frees what a steered connection allocated. To be called once for each that was created, before
 * its struct is created again or given up. */
void trimtab_cc_free(struct trimtab_cc *cc);

#ifdef __cplusplus
}
#endif

#endif
