/*
 * A transfer between two contexts of picoquic in virtual time, over the link of its simulator:
 * 20 Mbit/s, a round trip of 40 ms, a buffer of 100 ms. It prints what arrived, the mean wait in
 * the buffer, the share of bytes that picoquic declared lost, and how many packets left for each
 * that came back with acknowledgements.
 *
 *   transfer -c CERTS [-a N] [-l N] [-m MS] [-s SECONDS] CONTROLLER [NEXT]
 *
 * CERTS is the folder `certs` of picoquic's sources. CONTROLLER is an algorithm of Trimtab's
 * ("copa:delta=0.1"), or one of picoquic's own after "picoquic:". NEXT goes on from half of the
 * time. -a has the receiver acknowledge every N packets, where picoquic acknowledges some four times
 * in a round trip. -l loses one packet in N, -m marks packets that wait longer than MS milliseconds.
 * The default of SECONDS is 20.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picoquic_internal.h"
#include "picoquic_utils.h"

#include "trimtab-picoquic.h"

#define ALPN "trimtab"
#define GBIT_S 0.02
#define ONE_WAY_US 20000
#define BUFFER_US 100000
#define S UINT64_C(1000000)
#define OWN "picoquic:"

static uint8_t const zeros[4096];

struct run {
	uint64_t now, ack_every, loss_every, mark_us, end;
	uint64_t received, waited, packets, marked, back;
	struct sockaddr_in addresses[2]; /* of client and server */
	picoquic_quic_t *contexts[2];
	picoquictest_sim_link_t *links[2]; /* from client and from server */
};

static void fail(char const *what, char const *fix)
{
	fprintf(stderr, "transfer: %s; %s\n", what, fix);
	exit(1);
}

/* The client always has data, the server counts them. */
static int on_event(picoquic_cnx_t *cnx, uint64_t stream, uint8_t *bytes, size_t length,
	picoquic_call_back_event_t event, void *context, void *stream_context)
{
	struct run *run = context;
	uint8_t *room;

	(void)stream_context;
	switch (event) {
	case picoquic_callback_ready:
		if (picoquic_is_client(cnx))
			return picoquic_mark_active_stream(cnx, stream, 1, NULL);
		return 0;
	case picoquic_callback_prepare_to_send:
		length = length < sizeof(zeros) ? length : sizeof(zeros);
		room = picoquic_provide_stream_data_buffer(bytes, length, 0, 1);
		if (!room)
			return -1;
		memcpy(room, zeros, length);
		return 0;
	case picoquic_callback_stream_data:
		run->received += length;
		return 0;
	default:
		return 0;
	}
}

static picoquic_quic_t *context(struct run *run, char const *certs, int server)
{
	uint8_t seed[PICOQUIC_RESET_SECRET_SIZE] = {0};
	char certificate[512], key[512];
	picoquic_quic_t *quic;

	snprintf(certificate, sizeof(certificate), "%s/cert.pem", certs);
	snprintf(key, sizeof(key), "%s/key.pem", certs);
	quic = picoquic_create(8, server ? certificate : NULL, server ? key : NULL, NULL, ALPN,
		on_event, run, NULL, NULL, seed, run->now, &run->now, NULL, NULL, 0);
	if (!quic)
		fail("picoquic makes no context", "give the folder `certs` of its sources with -c");
	picoquic_set_null_verifier(quic);
	return quic;
}

static void control(picoquic_cnx_t *cnx, char const *name, int live)
{
	if (strncmp(name, OWN, strlen(OWN)) == 0) {
		picoquic_congestion_algorithm_t const *own =
			picoquic_get_congestion_algorithm(name + strlen(OWN));

		if (!own)
			fail(name, "picoquic has newreno, cubic, dcubic, fast, bbr, prague, bbr1, c4");
		picoquic_set_congestion_algorithm(cnx, own);
	} else if (live ? trimtab_picoquic_change(cnx, name) : trimtab_picoquic_check(name)) {
		fail(name, "no algorithm of Trimtab's; `trimtab cc list` prints those there are");
	} else if (!live) {
		picoquic_set_congestion_algorithm_ex(cnx, &trimtab_picoquic_algorithm, name);
	}
}

/* What a context wants to send enters its link. */
static void send_all(struct run *run, int from)
{
	for (;;) {
		picoquictest_sim_packet_t *packet = picoquictest_sim_link_create_packet();
		picoquictest_sim_link_t *link = run->links[from];
		uint64_t wait;
		int interface;

		if (!packet)
			fail("no memory for a packet", "free some");
		if (picoquic_prepare_next_packet(run->contexts[from], run->now, packet->bytes,
				PICOQUIC_MAX_PACKET_SIZE, &packet->length, &packet->addr_to, &packet->addr_from,
				&interface, NULL, NULL) != 0)
			fail("picoquic prepares no packet", "see its log");
		if (packet->length == 0) {
			free(packet);
			return;
		}
		memcpy(&packet->addr_from, &run->addresses[from], sizeof(run->addresses[from]));
		wait = picoquictest_sim_link_queue_delay(link, run->now);
		packet->ecn_mark = PICOQUIC_ECN_ECT_0;
		if (from == 0) {
			run->waited += wait;
			run->packets++;
			if (run->mark_us > 0 && wait > run->mark_us) {
				packet->ecn_mark = PICOQUIC_ECN_CE;
				run->marked++;
			}
			if (run->loss_every > 0 && run->packets % run->loss_every == 0) {
				free(packet);
				continue;
			}
		} else {
			run->back++;
		}
		picoquictest_sim_link_submit(link, packet, run->now);
	}
}

/* What has arrived over the link from `from` goes to the other side. */
static void deliver_all(struct run *run, int from)
{
	picoquictest_sim_packet_t *packet;

	while ((packet = picoquictest_sim_link_dequeue(run->links[from], run->now)) != NULL) {
		picoquic_incoming_packet(run->contexts[1 - from], packet->bytes, packet->length,
			(struct sockaddr *)&packet->addr_from, (struct sockaddr *)&run->addresses[1 - from], 0,
			packet->ecn_mark, run->now);
		free(packet);
	}
}

static void run_until(struct run *run, uint64_t end)
{
	while (run->now < end) {
		picoquic_cnx_t *receiver;
		uint64_t next = end;
		int side;

		for (side = 0; side < 2; side++) {
			uint64_t wake = picoquic_get_next_wake_time(run->contexts[side], run->now);

			next = picoquictest_sim_link_next_arrival(run->links[side], next < wake ? next : wake);
		}
		run->now = next > run->now ? next : run->now;
		receiver = picoquic_get_first_cnx(run->contexts[1]);
		if (receiver && run->ack_every > 0)
			receiver->ack_gap_remote = run->ack_every;
		for (side = 0; side < 2; side++)
			deliver_all(run, side);
		for (side = 0; side < 2; side++)
			send_all(run, side);
	}
}

int main(int count, char **arguments)
{
	struct run run = {.now = S, .end = 20};
	char const *certs = NULL, *first, *next;
	picoquic_cnx_t *cnx;
	uint64_t begin = run.now, half;
	int option, side;

	while ((option = getopt(count, arguments, "a:c:l:m:s:")) != -1) {
		uint64_t value = strtoull(optarg ? optarg : "", NULL, 10);

		if (option == 'c')
			certs = optarg;
		else if (option == 'a')
			run.ack_every = value;
		else if (option == 'l')
			run.loss_every = value;
		else if (option == 'm')
			run.mark_us = value * 1000;
		else if (option == 's')
			run.end = value;
		else
			fail("an option is unknown", "there are -a, -c, -l, -m and -s");
	}
	if (!certs || count - optind < 1 || count - optind > 2)
		fail("arguments are missing or too many",
			"usage: transfer -c CERTS [-a N] [-l N] [-m MS] [-s SECONDS] CONTROLLER [NEXT]");
	first = arguments[optind];
	next = arguments[optind + 1]; /* NULL where there is none */
	half = begin + run.end * S / 2;
	run.end = begin + run.end * S;

	picoquic_register_all_congestion_control_algorithms();
	for (side = 0; side < 2; side++) {
		run.addresses[side].sin_family = AF_INET;
		run.addresses[side].sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)side);
		run.addresses[side].sin_port = htons(4433);
		run.contexts[side] = context(&run, certs, side);
		run.links[side] =
			picoquictest_sim_link_create(GBIT_S, ONE_WAY_US, NULL, BUFFER_US, run.now);
	}
	cnx = picoquic_create_client_cnx(run.contexts[0], (struct sockaddr *)&run.addresses[1], run.now,
		0, "test.example.com", ALPN, on_event, &run);
	if (!cnx)
		fail("picoquic makes no connection", "see its log");
	control(cnx, first, 0);
	if (next) {
		run_until(&run, half);
		control(cnx, next, strncmp(first, OWN, strlen(OWN)) != 0);
	}
	run_until(&run, run.end);
	if (picoquic_get_cnx_state(cnx) != picoquic_state_ready)
		fail("the connection has ended", "see picoquic's log");
	printf("%.2f Mbit/s, waited %.1f ms, lost %.2f%%, marked %.2f%%, %.1f packets for one back\n",
		(double)run.received * 8 / (double)(run.end - begin),
		(double)run.waited / (double)run.packets / 1000,
		100.0 * (double)cnx->path[0]->total_bytes_lost / (double)cnx->path[0]->bytes_sent,
		100.0 * (double)run.marked / (double)run.packets, (double)run.packets / (double)run.back);
	for (side = 0; side < 2; side++) {
		picoquic_free(run.contexts[side]);
		picoquictest_sim_link_delete(run.links[side]);
	}
	return 0;
}
