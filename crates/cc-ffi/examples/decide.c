/*
 * What decision trees cost on this processor: the time of a decision, and the memory that one connection and a model
 * take. A decision is due every 10 ms, on a timer; each comes after one acknowledgement.
 *
 *   decide MODEL.trees            as in: decide treeg.trees
 */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trimtab-cc.h"

#define MS UINT64_C(1000000)
#define PACKET UINT64_C(1500)
#define RTT (40 * MS)
#define DECISIONS 200000
#define ROUNDS 5

static unsigned char model[1 << 20];

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Nanoseconds of a timer and the acknowledgement before it. The queue swings, so that the trees see many states. */
static double round_of(struct trimtab_cc *cc, uint64_t *now)
{
	uint64_t began = clock_ns();
	int i;

	for (i = 0; i < DECISIONS; i++) {
		struct trimtab_cc_ack ack;
		uint64_t rtt = RTT + (uint64_t)(i % 97) * MS;

		memset(&ack, 0, sizeof(ack));
		*now += 10 * MS;
		ack.now_ns = *now;
		ack.acked_bytes = PACKET * (1 + (uint64_t)(i % 13));
		ack.rtt_ns = ack.srtt_ns = rtt;
		ack.min_rtt_ns = RTT;
		ack.inflight_bytes = 20 * PACKET;
		ack.prior_inflight_bytes = 21 * PACKET;
		ack.newest_sent_ns = *now - rtt;
		ack.rate.interval_ns = rtt;
		ack.rate.delivered_bytes = 20 * PACKET;
		ack.cwnd_limited = 1;
		trimtab_cc_on_ack(cc, &ack);
		trimtab_cc_on_timer(cc, *now);
	}
	return (double)(clock_ns() - began) / DECISIONS;
}

/* The least of some rounds: what else runs on the machine only adds. */
static double least_of(struct trimtab_cc *cc)
{
	uint64_t now = MS;
	double least = round_of(cc, &now);
	int i;

	for (i = 1; i < ROUNDS; i++) {
		double one = round_of(cc, &now);

		least = one < least ? one : least;
	}
	return least;
}

int main(int count, char **arguments)
{
	static struct trimtab_cc trees, rule;
	struct trimtab_cc_config config = { .mss_bytes = PACKET, .seed = 1 };
	FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
	size_t bytes;
	double with, without;

	if (!file) {
		fprintf(stderr, "give the file of a model, e.g. decide treeg.trees\n");
		return 1;
	}
	bytes = fread(model, 1, sizeof(model), file);
	fclose(file);
	if (trimtab_cc_create_muses(&trees, model, bytes, "cubic", &config) ||
	    trimtab_cc_create(&rule, "newreno", &config)) {
		fprintf(stderr, "%s is no model of trees, or a damaged one: give e.g. treeg.trees\n", arguments[1]);
		return 1;
	}
	with = least_of(&trees);
	without = least_of(&rule);
	if (trimtab_cc_tree(&trees) < 0) {
		fprintf(stderr, "the fallback took over from %s, so that no tree was measured\n", arguments[1]);
		return 1;
	}
	printf("decision %.0f ns, model %lu bytes, connection %lu bytes\n", with - without, (unsigned long)bytes,
	       (unsigned long)sizeof(trees));
	return 0;
}
