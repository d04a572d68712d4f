/*
 * Trimtab's algorithms behind picoquic_congestion_algorithm_t: see trimtab-picoquic.h.
 *
 * Checked against picoquic 1.1.53.0, commit c9088724. picoquic reports acknowledgements and single
 * lost packets, but not what it sends: that is read from the path's count of bytes before each
 * notification is passed on.
 */
#include <stdlib.h>
#include <string.h>

#include "picoquic_internal.h"
#include "cc_common.h"

#include "trimtab-cc-steer.h"
#include "trimtab-picoquic.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_S UINT64_C(1000000000)

#define ALGORITHM_NUMBER 84 /* none of picoquic's own */
#define DEFAULT_ALGORITHM "cubic"
#define MORTISE "mortise"
#define DEFAULT_MODEL "download"

/* The state of a path. Times are picoquic's microseconds. */
struct state {
	struct trimtab_cc cc;
	char const *options;
	uint64_t mtu;           /* bytes of a full-size packet, as the algorithm knows it */
	uint64_t sent;          /* bytes of the path that the algorithm knows as sent */
	uint64_t inflight;      /* bytes in flight, as the algorithm knows them */
	uint64_t recovery_from; /* when the last episode of losses began; 0 for none */
	uint64_t first_lost;    /* numbers of its first packet and of the last one that was lost, in */
	uint64_t last_lost;     /* the packet number space `lost_pc` */
	uint64_t losses;        /* how many packets of it have not arrived after all */
	int lost_pc;
	int established; /* whether the algorithm has a round-trip time */
	int marked;      /* whether the acknowledgement under way has congestion marks */
};

static struct trimtab_cc_config limits(picoquic_path_t *path, uint64_t initial_window)
{
	struct trimtab_cc_config config = {.mss_bytes = path->send_mtu,
		.initial_window_bytes = initial_window,
		.seed = picoquic_val64_connection_id(path->cnx->initial_cnxid) ^ path->unique_path_id,
		.paced = 1};

	return config;
}

static void establish(struct state *state, uint64_t rtt)
{
	if (!state->established && rtt > 0) {
		trimtab_cc_on_established(&state->cc, rtt * NS_PER_US);
		state->established = 1;
	}
}

/* The QoE model of "mortise" or "mortise:MODEL"; NULL for another text. */
static char const *model_of(char const *options)
{
	size_t length = strlen(MORTISE);

	if (!options || strncmp(options, MORTISE, length) != 0)
		return NULL;
	if (options[length] == 0)
		return DEFAULT_MODEL;
	return options[length] == ':' ? options + length + 1 : NULL;
}

static int change(struct trimtab_cc *cc, char const *options, uint64_t now)
{
	char const *model = model_of(options);

	return model ? trimtab_cc_steer(cc, now * NS_PER_US, model)
	             : trimtab_cc_change(cc, now * NS_PER_US, options);
}

static int create(struct trimtab_cc *cc, char const *options,
	struct trimtab_cc_config const *config, uint64_t now)
{
	if (trimtab_cc_create(cc, model_of(options) ? "copa" : options, config) != 0)
		return -1;
	return model_of(options) ? change(cc, options, now) : 0;
}

/* Begins anew, with an initial window in bytes, or 0 for the usual one. */
static void begin(struct state *state, picoquic_path_t *path, char const *options,
	uint64_t initial_window, uint64_t now)
{
	struct trimtab_cc_config config = limits(path, initial_window);

	memset(state, 0, sizeof(*state));
	state->options = options;
	state->mtu = path->send_mtu;
	state->sent = path->bytes_sent;
	state->inflight = path->bytes_in_transit;
	if (create(&state->cc, options, &config, now) != 0) {
		picoquic_log_app_message(path->cnx,
			"trimtab: there is no algorithm \"%s\", so the path gets " DEFAULT_ALGORITHM
			"; `trimtab cc list` prints those there are",
			options);
		state->options = DEFAULT_ALGORITHM;
		trimtab_cc_create(&state->cc, DEFAULT_ALGORITHM, &config);
	}
	if (path->rtt_is_initialized)
		establish(state, path->smoothed_rtt);
}

/* Gives window and pacing rate to picoquic. */
static void apply(struct state *state, picoquic_path_t *path)
{
	uint64_t rate = trimtab_cc_pacing_rate(&state->cc);

	path->cwin = trimtab_cc_window(&state->cc);
	if (rate > 0) {
		/* A millisecond of the rate, within two packets and 64 kB: draft-ietf-ccwg-bbr,
		 * section 5.6.3. */
		uint64_t quantum = rate / 1000 < 65536 ? rate / 1000 : 65536;
		uint64_t least = 2 * (uint64_t)path->send_mtu;

		picoquic_update_pacing_rate(path, (double)rate, quantum > least ? quantum : least);
	} else {
		/* In slow start picoquic paces at 1.25 windows in a round trip, which is what RFC 9002,
		 * section 7.7 asks for at any time. */
		picoquic_update_pacing_data(path, 1);
	}
	path->is_cc_data_updated = 1;
	/* picoquic then keeps window and round-trip time for a later connection. */
	if (trimtab_cc_phase(&state->cc) == 2)
		path->is_ssthresh_initialized = 1;
}

static void report_sent(
	struct state *state, picoquic_path_t *path, uint64_t bytes, uint64_t at, int app_limited)
{
	while (bytes > 0) {
		uint64_t size = bytes < path->send_mtu ? bytes : path->send_mtu;

		bytes -= size;
		state->inflight += size;
		trimtab_cc_on_sent(&state->cc, at * NS_PER_US, size, state->inflight, app_limited);
	}
}

/* Tells the algorithm what happened since the last notification. */
static void catch_up(struct state *state, picoquic_path_t *path, uint64_t now)
{
	if (path->bytes_sent > state->sent) {
		report_sent(state, path, path->bytes_sent - state->sent, path->latest_sent_time,
			path->delivered_limited_index != 0);
		state->sent = path->bytes_sent;
	}
	if (state->mtu != path->send_mtu) {
		struct trimtab_cc_config config = limits(path, 0);

		trimtab_cc_on_mtu(&state->cc, &config);
		state->mtu = path->send_mtu;
	}
	if (trimtab_cc_next_timer(&state->cc) <= now * NS_PER_US)
		trimtab_cc_on_timer(&state->cc, now * NS_PER_US);
}

/* When the newest packet was sent that the present acknowledgement covers. */
static uint64_t newest_sent(
	picoquic_path_t *path, picoquic_per_ack_state_t const *ack, uint64_t now)
{
	if (ack->pc == picoquic_packet_context_application)
		return picoquic_cc_get_ack_sent_time(path->cnx, path);
	return now > path->rtt_sample ? now - path->rtt_sample : 0;
}

/* picoquic gives the rate, not the interval: the longer of those of sending and arriving. It counts
 * where it was made of this acknowledgement and is no shorter than the lowest round-trip time
 * (draft-cheng-iccrg-delivery-rate-estimation-02, section 3.3). */
static void sample_rate(
	picoquic_path_t *path, picoquic_per_ack_state_t const *ack, struct trimtab_cc_rate *rate)
{
	uint64_t delivered = ack->nb_bytes_delivered_since_packet_sent;
	uint64_t interval_ns;

	if (path->bandwidth_estimate == 0 || path->delivered_last != path->delivered ||
		delivered == 0 || delivered > path->delivered)
		return;
	interval_ns =
		(uint64_t)((double)delivered * (double)NS_PER_S / (double)path->bandwidth_estimate);
	if (interval_ns < path->rtt_min * NS_PER_US)
		return;
	rate->interval_ns = interval_ns;
	rate->delivered_bytes = delivered;
	rate->prior_delivered_bytes = path->delivered - delivered;
	/* picoquic has it without the packet itself. */
	rate->tx_in_flight_bytes = ack->inflight_prior + path->send_mtu;
	rate->lost_bytes = ack->nb_bytes_lost_since_packet_sent;
	rate->app_limited = (uint8_t)ack->is_app_limited;
}

/* Whether the window has kept packets back since then. */
static int blocked_since(picoquic_path_t *path, uint64_t time)
{
	return path->last_cwin_blocked_time != 0 && path->last_cwin_blocked_time >= time;
}

static void on_ack(
	struct state *state, picoquic_path_t *path, picoquic_per_ack_state_t const *ack, uint64_t now)
{
	uint64_t sent_at = newest_sent(path, ack, now);
	uint64_t before = path->bytes_in_transit + ack->nb_bytes_acknowledged;
	struct trimtab_cc_ack event = {
		.now_ns = now * NS_PER_US,
		.acked_bytes = ack->nb_bytes_acknowledged,
		.rtt_ns = ack->rtt_measurement * NS_PER_US,
		.srtt_ns = path->smoothed_rtt * NS_PER_US,
		.min_rtt_ns = path->rtt_min * NS_PER_US,
		.inflight_bytes = path->bytes_in_transit,
		.prior_inflight_bytes = before,
		.delivered_bytes = path->delivered,
		.newest_sent_ns = sent_at * NS_PER_US,
		.in_recovery = state->recovery_from != 0 && sent_at <= state->recovery_from,
		.cwnd_limited = ack->is_cwnd_limited || blocked_since(path, sent_at),
	};

	if (state->marked) {
		struct trimtab_cc_marked marked = {
			now * NS_PER_US, sent_at * NS_PER_US, path->bytes_in_transit, before};

		trimtab_cc_on_marked(&state->cc, &marked);
		state->marked = 0;
	}
	sample_rate(path, ack, &event.rate);
	trimtab_cc_on_ack(&state->cc, &event);
	state->inflight = path->bytes_in_transit;
}

/* One packet, which still counts as in flight. A timer's may be persistent congestion: picoquic
 * doubles the timer, so the second in a row comes three timeouts after the last sign of life, which
 * is the threshold of RFC 9002, section 7.6.1. */
static void on_lost(struct state *state, picoquic_path_t *path, picoquic_per_ack_state_t const *ack,
	uint64_t now, int by_timer)
{
	uint64_t before = path->bytes_in_transit;
	uint64_t bytes = ack->nb_bytes_newly_lost < before ? ack->nb_bytes_newly_lost : before;
	int new_episode = ack->lost_packet_sent_time > state->recovery_from || state->losses == 0;
	struct trimtab_cc_lost_packet packet = {
		.now_ns = now * NS_PER_US,
		.bytes = bytes,
		.sent_ns = ack->lost_packet_sent_time * NS_PER_US,
		.tx_in_flight_bytes = ack->inflight_prior + bytes,
		.lost_since_sent_bytes = ack->nb_bytes_lost_since_packet_sent,
		.delivered_at_send_bytes = path->delivered - ack->nb_bytes_delivered_since_packet_sent,
		.app_limited = (uint8_t)ack->is_app_limited,
		.new_range = new_episode || ack->lost_packet_number != state->last_lost + 1,
	};
	struct trimtab_cc_loss loss = {packet.now_ns, bytes, packet.sent_ns, before - bytes, before};

	if (new_episode) {
		state->recovery_from = now;
		state->first_lost = ack->lost_packet_number;
		state->lost_pc = ack->pc;
		state->losses = 0;
	}
	state->last_lost = ack->lost_packet_number;
	state->losses++;
	trimtab_cc_on_packet_lost(&state->cc, &packet);
	trimtab_cc_on_loss(&state->cc, &loss);
	state->inflight = before - bytes;
	if (by_timer && path->nb_retransmit > 0)
		trimtab_cc_on_timeout(&state->cc, now * NS_PER_US, before, state->inflight);
}

/* RFC 9438, section 4.9: the episode is over when all its packets have arrived. */
static void on_spurious(struct state *state, picoquic_per_ack_state_t const *ack, uint64_t now)
{
	if (state->losses > 0 && ack->pc == state->lost_pc &&
		ack->lost_packet_number >= state->first_lost &&
		ack->lost_packet_number <= state->last_lost && --state->losses == 0)
		trimtab_cc_on_spurious_loss(&state->cc, now * NS_PER_US);
}

static void trimtab_init(picoquic_path_t *path, char const *options, uint64_t now)
{
	struct state *state = malloc(sizeof(*state));

	path->congestion_alg_state = state;
	if (state) {
		begin(state, path, options ? options : DEFAULT_ALGORITHM, 0, now);
		apply(state, path);
	}
}

static void trimtab_notify(picoquic_cnx_t *cnx, picoquic_path_t *path,
	picoquic_congestion_notification_t notification, picoquic_per_ack_state_t *ack, uint64_t now)
{
	struct state *state = path->congestion_alg_state;

	(void)cnx;
	if (!state)
		return;
	catch_up(state, path, now);
	switch (notification) {
	case picoquic_congestion_notification_acknowledgement:
		on_ack(state, path, ack, now);
		break;
	case picoquic_congestion_notification_repeat:
	case picoquic_congestion_notification_timeout:
		on_lost(state, path, ack, now, notification == picoquic_congestion_notification_timeout);
		break;
	case picoquic_congestion_notification_spurious_repeat:
		on_spurious(state, ack, now);
		break;
	case picoquic_congestion_notification_rtt_measurement:
		establish(state, ack->rtt_measurement);
		break;
	case picoquic_congestion_notification_ecn_ec:
		/* It comes before the losses of the acknowledgement, and is reported after them. */
		state->marked = 1;
		break;
	case picoquic_congestion_notification_seed_cwin:
		/* It comes with the first round-trip time. A jump goes to half of the window that was
		 * saved: RFC 9959, section 3.3. The Safe Retreat of its section 3.5 is not done. */
		if (ack->nb_bytes_acknowledged / 2 > trimtab_cc_window(&state->cc)) {
			trimtab_cc_free(&state->cc);
			begin(state, path, state->options, ack->nb_bytes_acknowledged / 2, now);
		}
		break;
	case picoquic_congestion_notification_reset:
		trimtab_cc_free(&state->cc);
		begin(state, path, state->options, 0, now);
		break;
	case picoquic_congestion_notification_restart_from_idle:
		/* It comes before the packet counts as sent. */
		state->inflight = ack->inflight_prior;
		report_sent(state, path, path->send_mtu, now, ack->is_app_limited);
		state->sent += path->send_mtu;
		break;
	case picoquic_congestion_notification_cwin_blocked:  /* read from the path at each ACK */
	case picoquic_congestion_notification_lost_feedback: /* no event of RFC 9002 */
		break;
	}
	apply(state, path);
}

static void trimtab_delete(picoquic_path_t *path)
{
	struct state *state = path->congestion_alg_state;

	if (state)
		trimtab_cc_free(&state->cc);
	free(state);
	path->congestion_alg_state = NULL;
}

static void trimtab_observe(picoquic_path_t *path, uint64_t *cc_state, uint64_t *cc_param)
{
	struct state *state = path->congestion_alg_state;

	*cc_state = state ? (uint64_t)trimtab_cc_phase(&state->cc) : 0;
	*cc_param = state ? trimtab_cc_pacing_rate(&state->cc) : 0;
}

picoquic_congestion_algorithm_t const trimtab_picoquic_algorithm = {"trimtab", ALGORITHM_NUMBER,
	PICOQUIC_ECN_ECT_0, trimtab_init, trimtab_notify, trimtab_delete, trimtab_observe};

int trimtab_picoquic_check(char const *options)
{
	struct trimtab_cc_config config = {.mss_bytes = 1500};
	struct trimtab_cc cc;
	int result = create(&cc, options, &config, 0);

	if (result == 0)
		trimtab_cc_free(&cc);
	return result;
}

int trimtab_picoquic_change(picoquic_cnx_t *cnx, char const *options)
{
	uint64_t now = picoquic_get_quic_time(cnx->quic);
	int i;

	if (cnx->congestion_alg != &trimtab_picoquic_algorithm || trimtab_picoquic_check(options) != 0)
		return -1;
	/* For paths to come. */
	cnx->congestion_alg_option_string = options;
	for (i = 0; i < cnx->nb_paths; i++) {
		picoquic_path_t *path = cnx->path[i];
		struct state *state = path->congestion_alg_state;

		if (!state)
			continue;
		catch_up(state, path, now);
		change(&state->cc, options, now);
		state->options = options;
		apply(state, path);
	}
	return 0;
}

int trimtab_picoquic_set_factor(picoquic_cnx_t *cnx, char const *name, double value)
{
	int i, result = -1;

	if (cnx->congestion_alg != &trimtab_picoquic_algorithm)
		return -1;
	for (i = 0; i < cnx->nb_paths; i++) {
		struct state *state = cnx->path[i]->congestion_alg_state;

		if (state && trimtab_cc_set_factor(&state->cc, name, value) == 0)
			result = 0;
	}
	return result;
}
