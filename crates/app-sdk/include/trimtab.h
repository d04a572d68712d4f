/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libtrimtab: applications tell Trimtab's agent what is good for their connections. Link with -ltrimtab.
 *
 * A connection is named by its file descriptor, which the library passes to the agent: an
 * application can speak for sockets only that it holds, and needs no privilege. The agent closes its
 * copy at once. A handle is for one thread at a time.
 */
#ifndef TRIMTAB_H
#define TRIMTAB_H

#ifdef __cplusplus
extern "C" {
#endif

/* A value that is not known: it stays as it was said before. */
#define TRIMTAB_UNKNOWN (-1.0)

/* What an application knows of a connection while it runs; each field negative where it is not known. */
struct trimtab_live {
	double request_bytes;       /* size of the response that is being sent */
	double remaining_bytes;     /* what is left of it */
	double chunk_bytes;         /* size of the video chunk that is being sent */
	double buffer_s;            /* level of the player's buffer, in seconds of video */
	double mean_response_bytes; /* mean size of the responses that are sent together */
};

#define TRIMTAB_LIVE_UNKNOWN                                                                                           \
	{ TRIMTAB_UNKNOWN, TRIMTAB_UNKNOWN, TRIMTAB_UNKNOWN, TRIMTAB_UNKNOWN, TRIMTAB_UNKNOWN }

/* The way to the agent. */
struct trimtab_hints;

/*
 * Connects to the agent at a socket; where `path` is null, to that of this machine ($TRIMTAB_HINTS, or
 * /run/trimtab/hints.sock). Null when none listens.
 */
struct trimtab_hints *trimtab_hints_open(const char *path);

/*
 * Says what is good for a connection: the name of a QoE model ("download", "vod", "web") or a
 * formula, null where the agent's policy knows; and what is known of it at the beginning (may be
 * null). Waits for the agent's answer, usually less than a millisecond. 0, or -1 when the agent
 * does not know the connection or refuses.
 */
int trimtab_hints_describe(struct trimtab_hints *hints, int fd, const char *model, const struct trimtab_live *live);

/*
 * Says what has changed on a connection that was described by this handle. Does not wait. 0, or -1
 * when the agent is busy or gone, or refused an earlier hint.
 */
int trimtab_hints_update(struct trimtab_hints *hints, int fd, const struct trimtab_live *live);

/* Why the last call of this thread failed; valid until its next call. Never null. */
const char *trimtab_hints_error(void);

/* Ends it; null is fine. */
void trimtab_hints_close(struct trimtab_hints *hints);

#ifdef __cplusplus
}
#endif

#endif
