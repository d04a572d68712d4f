/*
 * A transfer over a link that is made up: 12 Mbit/s, a round trip of 40 ms and a buffer of 200 packets. It prints what
 * share of the link the transfer used, and the mean wait in the buffer.
 *
 *   transfer ALGORITHM            as in: transfer cubic
 *   transfer MODEL.trees SAFE     as in: transfer muses.trees cubic
 *   transfer mortise MODEL        as in: transfer mortise download
 *   transfer policy MODEL         as in: transfer policy models/floo-shared.safetensors
 *
 * The third needs TRIMTAB_CC_STEER and libtrimtab-cc-steer.a; requests have 1 MB. The last needs
 * TRIMTAB_CC_SELECT and libtrimtab-cc-select.a as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trimtab-cc.h"
#if defined(TRIMTAB_CC_STEER)
#include "trimtab-cc-steer.h"
#endif
#if defined(TRIMTAB_CC_SELECT)
#include "trimtab-cc-select.h"
#endif

#define MS UINT64_C(1000000)
#define PACKET UINT64_C(1500)
#define PACKET_TIME MS /* 1500 bytes at 12 Mbit/s */
#define RTT (40 * MS)
#define BUFFER 200
#define SLOTS 8192
#define END (30000 * MS)

/* A packet on its way, in the order of sending. */
struct packet {
	uint64_t sent_ns, back_ns, delivered, inflight, lost;
	int is_lost;
};

static struct packet ring[SLOTS];
static unsigned char model[1 << 20];

static size_t read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		exit(1);
	}
	size = fread(model, 1, sizeof(model), file);
	fclose(file);
	return size;
}

#if defined(TRIMTAB_CC_SELECT)
static int select_by(struct trimtab_cc *cc, const char *path)
{
	struct trimtab_cc_policy *policy = trimtab_cc_policy_read(model, read_file(path));
	int failed = trimtab_cc_select(cc, 0, policy, -1);

	trimtab_cc_policy_free(policy);
	return failed;
}
#endif

int main(int count, char **arguments)
{
	struct trimtab_cc_config config = { .mss_bytes = PACKET, .seed = 1 };
	struct trimtab_cc cc;
	uint64_t now = 0, free_at = 0, next_send = 0, min_rtt = UINT64_MAX, srtt = 0;
	uint64_t head = 0, tail = 0, inflight = 0, delivered = 0, lost = 0, delivered_ns = 0, waited = 0;
	int failed;

	if (count == 2)
		failed = trimtab_cc_create(&cc, arguments[1], &config);
#if defined(TRIMTAB_CC_STEER)
	else if (count == 3 && strcmp(arguments[1], "mortise") == 0)
		failed = trimtab_cc_create(&cc, "copa", &config) || trimtab_cc_steer(&cc, 0, arguments[2]) ||
			 trimtab_cc_set_factor(&cc, "R", 8.0);
#endif
#if defined(TRIMTAB_CC_SELECT)
	else if (count == 3 && strcmp(arguments[1], "policy") == 0)
		failed = trimtab_cc_create(&cc, "cubic", &config) || select_by(&cc, arguments[2]);
#endif
	else if (count == 3)
		failed = trimtab_cc_create_muses(&cc, model, read_file(arguments[1]), arguments[2], &config);
	else
		failed = -1;
	if (failed) {
		fprintf(stderr, "give an algorithm, or a model that is sound and a safe algorithm\n");
		return 1;
	}
	for (; now < END; now += MS / 10) {
		/* Acknowledgements, and what they reveal to be lost. */
		while (tail < head && ring[tail % SLOTS].back_ns <= now) {
			struct packet *packet = &ring[tail++ % SLOTS];
			uint64_t before = inflight, rtt = now - packet->sent_ns;
			struct trimtab_cc_ack ack;

			inflight -= PACKET;
			if (packet->is_lost) {
				struct trimtab_cc_loss loss = { now, PACKET, packet->sent_ns, inflight, before };

				lost += PACKET;
				trimtab_cc_on_loss(&cc, &loss);
				continue;
			}
			delivered += PACKET;
			waited += rtt > RTT ? rtt - RTT : 0;
			min_rtt = rtt < min_rtt ? rtt : min_rtt;
			srtt = srtt ? srtt - srtt / 8 + rtt / 8 : rtt;
			memset(&ack, 0, sizeof(ack));
			ack.now_ns = now;
			ack.acked_bytes = PACKET;
			ack.rtt_ns = rtt;
			ack.srtt_ns = srtt;
			ack.min_rtt_ns = min_rtt;
			ack.inflight_bytes = inflight;
			ack.prior_inflight_bytes = before;
			ack.delivered_bytes = delivered;
			ack.newest_sent_ns = packet->sent_ns;
			ack.rate.interval_ns = rtt;
			ack.rate.delivered_bytes = delivered - packet->delivered;
			ack.rate.prior_delivered_bytes = packet->delivered;
			ack.rate.tx_in_flight_bytes = packet->inflight;
			ack.rate.lost_bytes = lost - packet->lost;
			ack.cwnd_limited = 1;
			delivered_ns = now;
			trimtab_cc_on_ack(&cc, &ack);
		}
		if (trimtab_cc_next_timer(&cc) <= now)
			trimtab_cc_on_timer(&cc, now);
		/* What the window and the pacing rate let out. */
		while (inflight + PACKET <= trimtab_cc_window(&cc) && next_send <= now && head - tail < SLOTS) {
			struct packet *packet = &ring[head++ % SLOTS];
			uint64_t rate = trimtab_cc_pacing_rate(&cc);
			uint64_t starts = free_at > now ? free_at : now;

			inflight += PACKET;
			memset(packet, 0, sizeof(*packet));
			packet->sent_ns = now;
			packet->delivered = delivered;
			packet->inflight = inflight;
			packet->lost = lost;
			packet->is_lost = starts - now > BUFFER * PACKET_TIME;
			if (!packet->is_lost)
				free_at = starts + PACKET_TIME;
			packet->back_ns = (packet->is_lost ? starts : free_at) + RTT;
			if (rate)
				next_send = now + PACKET * 1000 * MS / rate;
			trimtab_cc_on_sent(&cc, now, PACKET, inflight, 0);
		}
	}
	printf("used %.1f%%, waited %.1f ms, lost %.2f%%, tree %d",
	       100.0 * delivered / PACKET * PACKET_TIME / delivered_ns,
	       (double)waited / (delivered / PACKET) / MS, 100.0 * lost / (lost + delivered), trimtab_cc_tree(&cc));
#if defined(TRIMTAB_CC_SELECT)
	printf(", suited %d", trimtab_cc_suited(&cc));
#endif
#if defined(TRIMTAB_CC_STEER)
	printf(", delta %.4f", trimtab_cc_knob(&cc, "delta"));
	trimtab_cc_free(&cc);
#endif
	printf("\n");
	return 0;
}
