/*
 * NewReno as a plug-in: additive increase of one packet per round trip, halving on loss (RFC 5681,
 * RFC 9002 section 7). Compiled and compared with the built-in one by a test.
 *
 *     cc -shared -fPIC -O2 -I include -o newreno.so examples/newreno.c
 */
#include <stdlib.h>
#include <string.h>

#include "trimtab_plugin.h"

struct newreno {
	double mss, min, initial, window, ssthresh; /* Bytes. */
	double credit;                     /* Acknowledged bytes that have not yet grown the window. */
	double gain;
	uint64_t reduced_ns;               /* When the window was reduced last. */
	int reduced, recovering, stalled;
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void *create(const struct trimtab_config *config)
{
	struct newreno *cc = calloc(1, sizeof *cc);
	if (cc) {
		cc->mss = (double)config->mss_bytes;
		cc->min = (double)config->min_window_bytes;
		cc->window = cc->initial = (double)config->initial_window_bytes;
		cc->ssthresh = 1e18;
		cc->gain = 1;
	}
	return cc;
}

static void *copy(const void *self)
{
	struct newreno *cc = malloc(sizeof *cc);
	if (cc)
		memcpy(cc, self, sizeof *cc);
	return cc;
}

/* Slow start up to the threshold, then one packet for each window acknowledged. */
static void grow(struct newreno *cc, double acked)
{
	double room = cc->ssthresh - cc->window;
	if (room > 0) {
		double used = acked < room ? acked : room;
		cc->window += used;
		acked -= used;
	}
	cc->credit += acked;
	while (cc->credit >= cc->window) {
		cc->credit -= cc->window;
		cc->window += cc->gain * cc->mss;
	}
}

static void on_ack(void *self, const struct trimtab_ack *ack)
{
	struct newreno *cc = self;
	cc->stalled = 0;
	/* Recovery ends with a packet that was sent after the reduction (RFC 9002 section 7.3.2). */
	if (cc->recovering && !ack->in_recovery && ack->newest_sent_ns > cc->reduced_ns)
		cc->recovering = 0;
	/* A window that is not used does not grow (RFC 9002 section 7.8). */
	if (!cc->recovering && ack->cwnd_limited)
		grow(cc, (double)ack->acked_bytes);
}

/* Whole bytes, as a window is. */
static double rounded(double bytes)
{
	return (double)(uint64_t)(bytes + 0.5);
}

static double half(const struct newreno *cc)
{
	return larger(rounded(cc->window / 2), larger(2 * cc->mss, cc->min));
}

static void on_loss(void *self, const struct trimtab_loss *loss)
{
	struct newreno *cc = self;
	/* Packets that were sent before the reduction belong to it (RFC 9002 section 7.3.2). */
	if (cc->reduced && loss->newest_sent_ns <= cc->reduced_ns)
		return;
	cc->reduced = cc->recovering = 1;
	cc->reduced_ns = loss->now_ns;
	cc->window = cc->ssthresh = half(cc);
	cc->credit = 0;
}

static void on_timeout(void *self, const struct trimtab_timeout *timeout)
{
	struct newreno *cc = self;
	/* One that follows another, or a loss, holds the threshold (RFC 5681 section 3.1). */
	if (!cc->recovering && !cc->stalled)
		cc->ssthresh = half(cc);
	cc->reduced = cc->stalled = 1;
	cc->recovering = 0;
	cc->reduced_ns = timeout->now_ns;
	cc->window = cc->min;
	cc->credit = 0;
}

/* Halved for each retransmission timeout that passed (RFC 2861 section 3.1). */
static void on_idle(void *self, const struct trimtab_idle *idle)
{
	struct newreno *cc = self;
	double left = (double)idle->idle_ns - (double)idle->rto_ns;
	cc->ssthresh = larger(cc->ssthresh, rounded(cc->window * 0.75));
	for (; left > 0 && cc->window > cc->initial; left -= (double)idle->rto_ns)
		cc->window = larger(rounded(cc->window / 2), cc->initial);
	cc->credit = 0;
}

static double window(const void *self)
{
	return ((const struct newreno *)self)->window;
}

static void set_knob(void *self, uint32_t index, double value)
{
	(void)index; /* There is one. */
	((struct newreno *)self)->gain = value;
}

static const struct trimtab_knob knobs[] = {
	{"gain", "packets", "by how much the window grows in a round trip", 0.1, 100, 1},
};

static const struct trimtab_plugin plugin = {
	.abi = TRIMTAB_PLUGIN_ABI,
	.size = sizeof(struct trimtab_plugin),
	.knob_count = 1,
	.knobs = knobs,
	.name = "my-newreno",
	.about = "NewReno, as an example of a plug-in",
	.create = create,
	.destroy = free,
	.clone = copy,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_timeout = on_timeout,
	.on_idle = on_idle,
	.window = window,
	.set_knob = set_knob,
};

const struct trimtab_plugin *trimtab_plugin(void)
{
	return &plugin;
}
