/*
 * Each notification of picoquic's, given to trimtab_picoquic_algorithm on a path of a real
 * connection that sends nothing: windows and pacing rates must be those of the RFCs. It prints one
 * line for each case, and exits with 1 at the first that is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picoquic_internal.h"

#include "trimtab-picoquic.h"

#define RTT UINT64_C(40000)
#define MTU UINT64_C(1500)

/* The linker lets calls of malloc go here. */
static unsigned allocations;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

struct flow {
	picoquic_quic_t *quic;
	picoquic_cnx_t *cnx;
	picoquic_path_t *path;
	uint64_t now, packets;
};

static void expect(int holds, char const *what, uint64_t found)
{
	if (!holds) {
		printf("FAILED: %s, found %llu\n", what, (unsigned long long)found);
		exit(1);
	}
	printf("ok: %s\n", what);
}

static struct flow *begin(char const *options)
{
	static struct flow flow;
	uint8_t seed[PICOQUIC_RESET_SECRET_SIZE] = {0};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4433)};

	memset(&flow, 0, sizeof(flow));
	flow.now = 1000000;
	flow.quic = picoquic_create(1, NULL, NULL, NULL, "trimtab", NULL, NULL, NULL, NULL, seed,
		flow.now, &flow.now, NULL, NULL, 0);
	flow.cnx =
		picoquic_create_cnx(flow.quic, picoquic_null_connection_id, picoquic_null_connection_id,
			(struct sockaddr *)&to, flow.now, 0, "test.example.com", "trimtab", 1);
	if (!flow.cnx) {
		printf("FAILED: picoquic makes no connection\n");
		exit(1);
	}
	flow.path = flow.cnx->path[0];
	flow.path->send_mtu = MTU;
	picoquic_set_congestion_algorithm_ex(flow.cnx, &trimtab_picoquic_algorithm, options);
	return &flow;
}

static void end(struct flow *flow)
{
	picoquic_free(flow->quic);
}

static void notify(
	struct flow *flow, picoquic_congestion_notification_t what, picoquic_per_ack_state_t *ack)
{
	flow->cnx->congestion_alg->alg_notify(flow->cnx, flow->path, what, ack, flow->now);
}

static void measure_rtt(struct flow *flow)
{
	picoquic_per_ack_state_t ack = {
		.pc = picoquic_packet_context_application, .rtt_measurement = RTT};

	flow->path->smoothed_rtt = flow->path->rtt_min = flow->path->rtt_sample = RTT;
	flow->path->rtt_is_initialized = 1;
	notify(flow, picoquic_congestion_notification_rtt_measurement, &ack);
}

static void send_packets(struct flow *flow, uint64_t packets)
{
	flow->path->bytes_sent += packets * MTU;
	flow->path->bytes_in_transit += packets * MTU;
	flow->path->latest_sent_time = flow->now;
	flow->packets += packets;
}

/* An acknowledgement of packets that left a round trip ago. */
static void acknowledge(struct flow *flow, uint64_t packets, int limited)
{
	picoquic_path_t *path = flow->path;
	picoquic_per_ack_state_t ack = {
		.pc = picoquic_packet_context_application, .rtt_measurement = RTT};

	ack.nb_bytes_acknowledged = packets * MTU;
	ack.nb_bytes_delivered_since_packet_sent = packets * MTU;
	ack.inflight_prior = path->bytes_in_transit - MTU;
	ack.is_cwnd_limited = (unsigned)limited & 1;
	path->bytes_in_transit -= packets * MTU;
	path->delivered += packets * MTU;
	path->delivered_last = path->delivered;
	path->bandwidth_estimate = packets * MTU * 1000000 / RTT;
	flow->cnx->pkt_ctx[picoquic_packet_context_application].latest_time_acknowledged =
		flow->now - RTT;
	notify(flow, picoquic_congestion_notification_acknowledgement, &ack);
}

static void round_trip(struct flow *flow, uint64_t packets, int limited)
{
	send_packets(flow, packets);
	flow->now += RTT;
	acknowledge(flow, packets, limited);
}

/* A packet that left a round trip ago is lost; picoquic takes it from flight afterwards. */
static void lose(struct flow *flow, uint64_t number, picoquic_congestion_notification_t what)
{
	picoquic_per_ack_state_t ack = {.pc = picoquic_packet_context_application};

	ack.lost_packet_number = number;
	ack.lost_packet_sent_time = flow->now - RTT;
	ack.nb_bytes_newly_lost = MTU;
	ack.nb_bytes_lost_since_packet_sent = MTU;
	ack.inflight_prior = flow->path->bytes_in_transit - MTU;
	notify(flow, what, &ack);
	flow->path->bytes_in_transit -= MTU;
}

static void arrive_late(struct flow *flow, uint64_t number)
{
	picoquic_per_ack_state_t ack = {
		.pc = picoquic_packet_context_application, .lost_packet_number = number};

	notify(flow, picoquic_congestion_notification_spurious_repeat, &ack);
}

static void windows(void)
{
	struct flow *flow = begin("cubic");
	uint64_t before, cut;

	expect(flow->path->cwin == 10 * MTU, "a path begins with 10 packets (RFC 9002, section 7.2)",
		flow->path->cwin);
	measure_rtt(flow);
	expect(flow->path->pacing.rate == 10 * MTU * 1250000 / RTT,
		"CUBIC is paced at 1.25 windows in a round trip (RFC 9002, section 7.7)",
		flow->path->pacing.rate);
	round_trip(flow, 5, 0);
	expect(flow->path->cwin == 10 * MTU, "a window that is not used does not grow (section 7.8)",
		flow->path->cwin);
	round_trip(flow, 10, 1);
	expect(flow->path->cwin == 20 * MTU, "a window in use doubles in slow start", flow->path->cwin);
	send_packets(flow, 20);
	flow->path->last_cwin_blocked_time = flow->now;
	notify(flow, picoquic_congestion_notification_cwin_blocked, NULL);
	expect(flow->path->cwin == 20 * MTU, "a window that blocks is not changed by that",
		flow->path->cwin);
	flow->now += RTT;
	acknowledge(flow, 20, 0);
	expect(flow->path->cwin == 40 * MTU, "and grows with the acknowledgement", flow->path->cwin);

	send_packets(flow, 40);
	flow->now += RTT;
	before = flow->path->cwin;
	lose(flow, 101, picoquic_congestion_notification_repeat);
	cut = flow->path->cwin;
	expect(cut == before * 7 / 10, "a loss costs three tenths (RFC 9438, section 4.6)", cut);
	lose(flow, 103, picoquic_congestion_notification_repeat);
	expect(
		flow->path->cwin == cut, "another of the same round trip costs nothing", flow->path->cwin);
	arrive_late(flow, 103);
	expect(flow->path->cwin == cut, "one of two losses arrives: the cut stays", flow->path->cwin);
	arrive_late(flow, 101);
	expect(flow->path->cwin == before, "both arrive: the cut is undone (section 4.9)",
		flow->path->cwin);
	acknowledge(flow, 38, 0);

	before = flow->path->cwin;
	flow->now += RTT;
	send_packets(flow, 20);
	flow->now += RTT;
	notify(flow, picoquic_congestion_notification_ecn_ec,
		&(picoquic_per_ack_state_t){.pc = picoquic_packet_context_application});
	expect(flow->path->cwin == before, "marks wait for the acknowledgement that has them",
		flow->path->cwin);
	acknowledge(flow, 20, 0);
	expect(flow->path->cwin == before * 7 / 10,
		"and cost three tenths with it (RFC 9438, section 4.6)", flow->path->cwin);

	flow->now += RTT;
	send_packets(flow, 4);
	flow->now += RTT;
	lose(flow, 201, picoquic_congestion_notification_timeout);
	expect(flow->path->cwin > 2 * MTU, "one timer is a loss", flow->path->cwin);
	flow->path->nb_retransmit = 1;
	flow->now += 4 * RTT;
	lose(flow, 202, picoquic_congestion_notification_timeout);
	expect(flow->path->cwin == 2 * MTU,
		"two in a row are persistent congestion (RFC 9002, section 7.6)", flow->path->cwin);

	flow->path->send_mtu = 9000;
	notify(flow, picoquic_congestion_notification_lost_feedback, NULL);
	expect(flow->path->cwin == 18000, "larger packets raise the minimum", flow->path->cwin);
	flow->path->send_mtu = MTU;
	notify(flow, picoquic_congestion_notification_reset, NULL);
	expect(flow->path->cwin == 10 * MTU, "after a reset the path begins anew", flow->path->cwin);
	end(flow);
}

static void seeds(void)
{
	picoquic_per_ack_state_t seed = {.pc = picoquic_packet_context_application};
	struct flow *flow = begin("cubic");

	measure_rtt(flow);
	seed.nb_bytes_acknowledged = 20 * MTU;
	notify(flow, picoquic_congestion_notification_seed_cwin, &seed);
	expect(flow->path->cwin == 10 * MTU, "a seed below twice the initial window changes nothing",
		flow->path->cwin);
	seed.nb_bytes_acknowledged = 400 * MTU;
	notify(flow, picoquic_congestion_notification_seed_cwin, &seed);
	expect(flow->path->cwin == 200 * MTU, "a seed gives half of it (RFC 9959, section 3.3)",
		flow->path->cwin);
	expect(flow->path->pacing.rate == 200 * MTU * 1250000 / RTT, "paced over the round trip",
		flow->path->pacing.rate);
	end(flow);
}

static void rates(void)
{
	struct flow *flow = begin("bbr3");
	uint64_t i, state, rate;

	measure_rtt(flow);
	for (i = 0; i < 12; i++)
		round_trip(flow, 100, 0);
	flow->cnx->congestion_alg->alg_observe(flow->path, &state, &rate);
	expect(state == 2, "BBRv3 has found the rate after rounds that bring no more", state);
	expect(rate == flow->path->pacing.rate && rate > 3375000 && rate < 5000000,
		"and paces by about the 3.75 MB/s that were delivered", rate);
	flow->now += 5000000;
	notify(flow, picoquic_congestion_notification_restart_from_idle,
		&(picoquic_per_ack_state_t){
			.pc = picoquic_packet_context_application, .is_app_limited = 1});
	expect(flow->path->pacing.rate >= 3700000 && flow->path->pacing.rate <= 3750000,
		"it goes on at that rate after a pause (draft-ietf-ccwg-bbr, section 5.4.1)",
		flow->path->pacing.rate);
	end(flow);
}

/* picoquic creates the state of a path by itself, and frees it with the connection. */
static void contexts(void)
{
	struct flow *flow = begin("cubic");
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4434)};
	uint64_t state, rate;
	picoquic_cnx_t *cnx;

	picoquic_set_default_congestion_algorithm_ex(
		flow->quic, &trimtab_picoquic_algorithm, "mortise:vod");
	cnx = picoquic_create_cnx(flow->quic, picoquic_null_connection_id, picoquic_null_connection_id,
		(struct sockaddr *)&to, flow->now, 0, "test.example.com", "trimtab", 1);
	expect(cnx && cnx->path[0]->cwin == 10 * cnx->path[0]->send_mtu,
		"connections of a context begin with its default", 0);
	expect(trimtab_picoquic_set_factor(cnx, "V", 10.0) == 0, "which may be Mortise", 0);
	cnx->congestion_alg->alg_delete(cnx->path[0]);
	expect(!cnx->path[0]->congestion_alg_state, "a state is freed once", 0);
	cnx->congestion_alg->alg_observe(cnx->path[0], &state, &rate);
	expect(state == 0 && rate == 0, "a path without one may be observed", state);
	end(flow);
}

static void changes(void)
{
	struct flow *flow = begin("no such algorithm");
	uint64_t i, before;

	expect(flow->path->cwin == 10 * MTU, "a text that names no algorithm gives CUBIC",
		flow->path->cwin);
	expect(trimtab_picoquic_check("no such algorithm") == -1 &&
			   trimtab_picoquic_check("copa:delta=9") == -1 &&
			   trimtab_picoquic_check("copa:delta=0.1") == 0,
		"it can be checked before", 0);
	measure_rtt(flow);
	for (i = 0; i < 3; i++)
		round_trip(flow, flow->path->cwin / MTU, 1);
	before = flow->path->cwin;
	expect(trimtab_picoquic_change(flow->cnx, "copa:delta=9") == -1 && flow->path->cwin == before,
		"a change to nothing is refused", flow->path->cwin);
	expect(
		trimtab_picoquic_change(flow->cnx, "copa:delta=0.1") == 0 && flow->path->cwin >= before / 2,
		"Copa goes on with the window that CUBIC had found", flow->path->cwin);
	before = flow->path->cwin;
	expect(trimtab_picoquic_change(flow->cnx, "copa:delta=0.5") == 0 && flow->path->cwin == before,
		"a knob turns and the window stays", flow->path->cwin);
	allocations = 0;
	for (i = 0; i < 1000; i++)
		round_trip(flow, 10, 1);
	expect(allocations == 0, "a thousand acknowledgements allocate nothing", allocations);
	picoquic_set_congestion_algorithm(flow->cnx, picoquic_get_congestion_algorithm("newreno"));
	expect(trimtab_picoquic_change(flow->cnx, "cubic") == -1,
		"a connection of another algorithm's is refused", 0);
	end(flow);
}

static void steers(void)
{
	struct flow *flow = begin("mortise:conference");
	uint64_t i;

	expect(
		trimtab_picoquic_check("mortise:nothing") == -1 && trimtab_picoquic_check("mortise") == 0,
		"Mortise has the QoE models that there are", 0);
	expect(trimtab_picoquic_set_factor(flow->cnx, "R", 8.0) == 0, "a factor is taken", 0);
	measure_rtt(flow);
	for (i = 0; i < 400; i++)
		round_trip(flow, 30, 1);
	notify(flow, picoquic_congestion_notification_reset, NULL);
	expect(
		flow->path->cwin == 10 * MTU, "a steered path begins anew as others do", flow->path->cwin);
	expect(trimtab_picoquic_change(flow->cnx, "cubic") == 0 &&
			   trimtab_picoquic_set_factor(flow->cnx, "R", 8.0) == -1,
		"a change ends the steering", 0);
	expect(trimtab_picoquic_change(flow->cnx, "mortise:vod") == 0 &&
			   trimtab_picoquic_set_factor(flow->cnx, "V", 10.0) == 0,
		"and begins it", 0);
	end(flow);
}

int main(void)
{
	picoquic_register_all_congestion_control_algorithms();
	windows();
	seeds();
	rates();
	contexts();
	changes();
	steers();
	return 0;
}
