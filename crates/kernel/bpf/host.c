/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The core for the host: the same text as in the kernel, with the few functions that the differential test calls. */
#include "layout.h"

/* The models, which are maps in the kernel: each thread of a test has its own. */
static _Thread_local const struct tt_model *tt_host_models;
static _Thread_local const struct tt_node *tt_host_nodes;

TT_INLINE const struct tt_model *tt_model_get(u32 index)
{
	return tt_host_models && index < TT_MODELS_MAX ? &tt_host_models[index] : 0;
}

TT_INLINE const struct tt_node *tt_node_get(u32 index)
{
	return tt_host_nodes && index < TT_NODES_MAX ? &tt_host_nodes[index] : 0;
}

#include "core/switch.h"

u64 tt_host_copa_size(void)
{
	return sizeof(struct tt_copa);
}

void tt_host_copa_init(struct tt_copa *c, const u32 *knobs, u32 mss_bytes, u32 window_min_bytes, u64 window_bytes)
{
	__builtin_memset(c, 0, sizeof(*c));
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		c->knobs[i] = knobs[i];
	tt_copa_init(c, 0, mss_bytes, window_min_bytes, window_bytes);
}

void tt_host_copa_knobs(struct tt_copa *c, const u32 *knobs)
{
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		c->knobs[i] = knobs[i];
	tt_copa_on_knobs(c);
}

/* An array instead of the struct, so that Rust need not know its padding; the order is that of the struct, one sample each. */
void tt_host_copa_ack(struct tt_copa *c, const u64 *fields)
{
	struct tt_ack ack = {
		.now_us = fields[0],
		.acked_bytes = fields[1],
		.rtt_us = fields[2],
		.rtt_most_us = fields[2],
		.srtt_us = fields[3],
		.delivered = fields[4],
		.inflight = fields[5],
		.newest_sent_us = fields[6],
		.cwnd_limited = fields[7],
		.in_recovery = fields[8],
	};

	tt_copa_on_ack(c, &ack);
}

void tt_host_copa_loss(struct tt_copa *c, u64 now_us, u64 lost_bytes, u64 newest_sent_us)
{
	tt_copa_on_loss(c, now_us, lost_bytes, newest_sent_us);
}

void tt_host_copa_marked(struct tt_copa *c, u64 now_us, u64 newest_sent_us)
{
	tt_copa_on_marked(c, now_us, newest_sent_us);
}

void tt_host_copa_timeout(struct tt_copa *c, u64 now_us)
{
	tt_copa_on_timeout(c, now_us);
}

void tt_host_copa_idle(struct tt_copa *c)
{
	tt_copa_on_idle(c);
}

void tt_host_copa_first_sent(struct tt_copa *c, u64 now_us)
{
	tt_copa_on_first_sent(c, now_us);
}

u64 tt_host_copa_window_bytes(const struct tt_copa *c)
{
	return tt_copa_window_bytes(c);
}

u64 tt_host_copa_pacing_bytes_per_s(const struct tt_copa *c)
{
	return tt_copa_pacing_bytes_per_s(c);
}

u32 tt_host_copa_slow_start(const struct tt_copa *c)
{
	return c->slow_start;
}

u32 tt_host_copa_inverse_q16(const struct tt_copa *c)
{
	return tt_copa_inverse_q16(c);
}

struct tt_host_cubic {
	struct tt_cubic state;
	struct tt_cubic_knobs knobs;
};

u64 tt_host_cubic_size(void)
{
	return sizeof(struct tt_host_cubic);
}

void tt_host_cubic_knobs(struct tt_host_cubic *c, const u32 *knobs)
{
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		c->knobs.knobs[i] = knobs[i];
	tt_cubic_on_knobs(&c->knobs);
}

/* Whether slow start ends: the order is that of struct tt_round, then the threshold. */
u32 tt_host_cubic_rtt(struct tt_host_cubic *c, const u64 *fields)
{
	struct tt_round round = {
		.now_us = fields[0],
		.rtt_us = fields[1],
		.acknowledged_to = fields[2],
		.sent_to = fields[3],
		.window = fields[4],
		.paced = fields[5],
	};

	return tt_cubic_on_rtt(&c->state, &c->knobs, &round, fields[6]);
}

u32 tt_host_cubic_ack(struct tt_host_cubic *c, u32 window, u32 threshold, u32 acked, u64 now_us)
{
	return tt_cubic_on_ack(&c->state, &c->knobs, window, threshold, acked, now_us);
}

u32 tt_host_cubic_loss(struct tt_host_cubic *c, u32 window)
{
	return tt_cubic_on_loss(&c->state, &c->knobs, window);
}

u32 tt_host_cubic_astray(u32 packets)
{
	return tt_cubic_is_astray(packets);
}

u32 tt_host_cubic_put_right(struct tt_host_cubic *c, u32 before)
{
	return tt_cubic_put_right(&c->state, &c->knobs, before);
}

void tt_host_cubic_timeout(struct tt_host_cubic *c)
{
	tt_cubic_reset(&c->state);
}

void tt_host_cubic_first_sent(struct tt_host_cubic *c, u64 now_us, u64 last_sent_us)
{
	tt_cubic_on_first_sent(&c->state, now_us, last_sent_us);
}

u32 tt_host_cubic_root(u64 of)
{
	return tt_cubic_root(of);
}

/* --- Hand-over. */

u64 tt_host_path_size(void)
{
	return sizeof(struct tt_path);
}

/* The fields are the arguments of tt_path_on_sample(), in their order. */
void tt_host_path_sample(struct tt_path *path, const u64 *fields)
{
	tt_path_on_sample(path, fields[0], fields[1], fields[2], fields[3], fields[4]);
}

void tt_host_path_cut(struct tt_path *path, u64 srtt_us)
{
	tt_path_on_cut(path, srtt_us);
}

void tt_host_path_marked(struct tt_path *path)
{
	tt_path_on_marked(path);
}

void tt_host_path_taken_over(struct tt_path *path, u32 how)
{
	tt_path_taken_over(path, how);
}

u64 tt_host_path_bandwidth(const struct tt_path *path)
{
	return tt_path_bandwidth(path);
}

void tt_host_path_converged(struct tt_path *path, u32 converged)
{
	path->converged |= converged;
}

u32 tt_host_path_min_rtt_us(const struct tt_path *path)
{
	return tt_filter_get(&path->rtt_min);
}

u32 tt_host_path_min_rtt_at_us(const struct tt_path *path)
{
	return path->rtt_min.oldest.first_us;
}

u32 tt_host_switch_is_due(const struct tt_path *path, u32 how, u32 converged, u32 recovering)
{
	return tt_switch_is_due(how, path, converged, recovering);
}

u32 tt_host_switch_starts_over(const struct tt_path *path, u32 converged, u32 has_delivered)
{
	return tt_switch_starts_over(path, converged, has_delivered);
}

u32 tt_host_copa_converged(const struct tt_copa *c)
{
	return tt_copa_is_converged(c);
}

u32 tt_host_cubic_converged(u32 window, u32 threshold, u32 recovering)
{
	return tt_cubic_is_converged(window, threshold, recovering);
}

/* The fields are those of struct tt_hand_over but what the path says. Copa was set up with the window. */
void tt_host_copa_take_over(struct tt_copa *c, const struct tt_path *path, const u64 *fields)
{
	struct tt_hand_over over = {
		.now_us = fields[0],
		.window_bytes = fields[1],
		.srtt_us = fields[2],
		.delivered = fields[3],
		.inflight = fields[4],
	};

	tt_hand_over_path(&over, path);
	tt_mode_reset(&c->mode, over.now_us);
	tt_copa_take_over(c, &over);
}

void tt_host_copa_inherit(struct tt_copa *c)
{
	tt_copa_inherit(c);
}

void tt_host_cubic_take_over(struct tt_host_cubic *c, const struct tt_path *path, u32 window)
{
	struct tt_hand_over over = {};

	tt_hand_over_path(&over, path);
	tt_cubic_take_over(&c->state, window, &over);
}

/* --- BBR. */

u64 tt_host_bbr_size(void)
{
	return sizeof(struct tt_bbr);
}

void tt_host_bbr_knobs(struct tt_bbr *b, const u32 *knobs)
{
	for (int i = 0; i < TT_BBR_KNOBS_COUNT; i++)
		b->tuning.knobs[i] = knobs[i];
	tt_bbr_on_knobs(b);
}

/* Goes on from this window; a round-trip time of 0 is none. */
void tt_host_bbr_init(struct tt_bbr *b, const u32 *knobs, u32 mss_bytes, u32 window, u32 srtt_us)
{
	__builtin_memset(b, 0, sizeof(*b));
	tt_host_bbr_knobs(b, knobs);
	b->mss_bytes = mss_bytes;
	b->window = window;
	tt_bbr_init(b, srtt_us);
}

/* The order is that of the struct, but for the last. */
void tt_host_bbr_ack(struct tt_bbr *b, const u64 *fields)
{
	struct tt_bbr_ack ack = {
		.now_us = fields[0],
		.wait_ns = fields[1],
		.mss_bytes = fields[2],
		.srtt_us = fields[3],
		.rtt_us = fields[4],
		.acked = fields[5],
		.losses = fields[6],
		.delivered = fields[7],
		.prior_delivered = fields[8],
		.lost = fields[9],
		.inflight = fields[10],
		.prior_inflight = fields[11],
		.rate_packets = fields[12],
		.rate_us = fields[13],
		.recovery = fields[14],
		.app_limited = fields[15],
		.maybe_delayed = fields[16],
		.acked_before = fields[17],
	};

	tt_bbr_on_ack(b, &ack);
}

void tt_host_bbr_loss(struct tt_bbr *b)
{
	tt_bbr_on_loss(b);
}

void tt_host_bbr_timeout(struct tt_bbr *b, u64 now_us, u32 inflight, u32 delivered, u32 lost)
{
	tt_bbr_on_timeout(b, now_us, inflight, delivered, lost);
}

void tt_host_bbr_spurious_loss(struct tt_bbr *b)
{
	tt_bbr_on_spurious_loss(b);
}

void tt_host_bbr_idle(struct tt_bbr *b, u64 now_us)
{
	tt_bbr_on_idle(b, now_us);
}

void tt_host_bbr_first_sent(struct tt_bbr *b, u64 now_us, u32 app_limited)
{
	tt_bbr_on_first_sent(b, now_us, app_limited);
}

u32 tt_host_bbr_window(const struct tt_bbr *b)
{
	return b->window;
}

u64 tt_host_bbr_pacing_bytes_per_s(const struct tt_bbr *b)
{
	return b->pacing_bytes_per_s;
}

u32 tt_host_bbr_phase(const struct tt_bbr *b)
{
	return tt_bbr_phase(b);
}

/* Whether a policer was found. */
u32 tt_host_bbr_policed(const struct tt_bbr *b)
{
	return b->policer.state == TT_POLICER_USING;
}

/* Whether the last draw of where the gain cycle begins was used. */
u32 tt_host_bbr_drawn(const struct tt_bbr *b)
{
	return b->drawn;
}

/* The next one. */
void tt_host_bbr_draw(struct tt_bbr *b, u32 draw)
{
	b->drawn = false;
	b->draw = draw;
}

u32 tt_host_bbr_converged(const struct tt_bbr *b)
{
	return tt_bbr_is_converged(b);
}

u32 tt_host_bbr_operating_window(const struct tt_bbr *b, u32 srtt_us, u32 inflight)
{
	return tt_bbr_operating_window(b, srtt_us, inflight);
}

/*
 * The fields are those of struct tt_hand_over but what the path says; the last, the bandwidth, is used instead of the path's, if
 * not 0. BBR was set up with the knobs.
 */
void tt_host_bbr_take_over(struct tt_bbr *b, const struct tt_path *path, const u64 *fields)
{
	struct tt_hand_over over = {
		.now_us = fields[0],
		.window_bytes = fields[1],
		.srtt_us = fields[2],
		.delivered = fields[3],
		.inflight = fields[4],
	};

	tt_hand_over_path(&over, path);
	if (fields[5])
		over.bandwidth_bytes_per_s = fields[5];
	tt_bbr_take_over(b, &over);
}

/* --- PCC Vivace. */

struct tt_host_vivace {
	struct tt_vivace state;
	u32 initial_window;
};

u64 tt_host_vivace_size(void)
{
	return sizeof(struct tt_host_vivace);
}

void tt_host_vivace_knobs(struct tt_host_vivace *h, const u32 *knobs)
{
	for (int i = 0; i < TT_KNOBS_MAX; i++)
		h->state.knobs[i] = knobs[i];
	tt_vivace_on_knobs(&h->state);
}

void tt_host_vivace_init(struct tt_host_vivace *h, const u32 *knobs, u32 mss_bytes, u32 window, u32 down_first)
{
	__builtin_memset(h, 0, sizeof(*h));
	h->initial_window = window;
	tt_host_vivace_knobs(h, knobs);
	tt_vivace_init(&h->state, mss_bytes, window, down_first);
}

void tt_host_vivace_established(struct tt_host_vivace *h, u64 rtt_us)
{
	tt_vivace_on_established(&h->state, rtt_us, h->initial_window);
}

void tt_host_vivace_send(struct tt_host_vivace *h, u64 now_us, u32 sent, u32 app_limited)
{
	tt_vivace_on_send(&h->state, now_us, sent, app_limited);
}

/* Now, when the newest was sent, round-trip time, smoothed, packets; and the delivery rate, packets in microseconds. */
void tt_host_vivace_ack(struct tt_host_vivace *h, const u64 *fields)
{
	struct tt_vivace_ack ack = {
		.now_us = fields[0],
		.newest_sent_us = fields[1],
		.rtt_us = fields[2],
		.srtt_us = fields[3],
		.acked = fields[4],
		.rate_packets = fields[5],
		.rate_us = fields[6],
	};

	tt_vivace_on_ack(&h->state, &ack, h->initial_window);
}

void tt_host_vivace_lost(struct tt_host_vivace *h, u64 sent_us, u32 packets)
{
	tt_vivace_on_lost(&h->state, sent_us, packets);
}

void tt_host_vivace_marked(struct tt_host_vivace *h, u64 now_us, u64 newest_sent_us, u32 inflight)
{
	tt_vivace_on_marked(&h->state, now_us, newest_sent_us, inflight);
}

void tt_host_vivace_timeout(struct tt_host_vivace *h)
{
	tt_vivace_on_timeout(&h->state, h->initial_window);
}

u64 tt_host_vivace_window(const struct tt_host_vivace *h)
{
	return tt_vivace_window(&h->state, h->initial_window, 1);
}

u64 tt_host_vivace_pacing_bytes_per_s(const struct tt_host_vivace *h)
{
	return tt_vivace_pacing_bytes_per_s(&h->state);
}

u32 tt_host_vivace_starting(const struct tt_host_vivace *h)
{
	return h->state.starting;
}

u32 tt_host_vivace_operating_window(const struct tt_host_vivace *h)
{
	return tt_vivace_operating_window(&h->state);
}

/* Now, window in bytes, smoothed round-trip time, bandwidth, least round-trip time, when that was, and whether losses starved the last. */
void tt_host_vivace_take_over(struct tt_host_vivace *h, const u64 *fields)
{
	struct tt_hand_over over = {
		.now_us = fields[0],
		.window_bytes = fields[1],
		.srtt_us = fields[2],
		.bandwidth_bytes_per_s = fields[3],
		.min_rtt_us = fields[4],
		.min_rtt_at_us = fields[5],
		.starved = fields[6],
	};

	tt_vivace_take_over(&h->state, &over);
}

void tt_host_vivace_inherit(struct tt_host_vivace *h, u64 window_bytes, u64 srtt_us)
{
	tt_vivace_inherit(&h->state, window_bytes, srtt_us);
}

/* --- Muses. */

u64 tt_host_muses_size(void)
{
	return sizeof(struct tt_muses);
}

/* What stands for both maps from now on; they have to stay where they are. */
void tt_host_muses_models(const u32 *models, const u64 *nodes)
{
	tt_host_models = (const struct tt_model *)models;
	tt_host_nodes = (const struct tt_node *)nodes;
}

u32 tt_host_muses_walk(u32 model, u32 tree, const __s16 *inputs)
{
	return tt_trees_decide(tt_model_get(model), tree, inputs);
}

u32 tt_host_muses_knows(u32 model, const __s16 *state)
{
	return tt_trees_know(tt_model_get(model), state);
}

u32 tt_host_muses_segment(u32 model, u32 component, const __s16 *state)
{
	return tt_trees_segment(tt_model_get(model), component, state);
}

__s16 tt_host_log2(u64 x)
{
	return tt_log2(x);
}

void tt_host_muses_knobs(struct tt_muses *m, const u32 *knobs)
{
	for (int i = 0; i < TT_MUSES_KNOBS_COUNT; i++)
		m->knobs[i] = knobs[i];
}

void tt_host_muses_init(struct tt_muses *m, const u32 *knobs, u32 window)
{
	__builtin_memset(m, 0, sizeof(*m));
	tt_host_muses_knobs(m, knobs);
	tt_muses_init(m, window);
}

/* The order is that of the struct. Whether an interval ended. */
u32 tt_host_muses_ack(struct tt_muses *m, const u64 *fields)
{
	struct tt_muses_ack ack = {
		.now_us = fields[0],
		.mss_bytes = fields[1],
		.sent = fields[2],
		.acked = fields[3],
		.prior_inflight = fields[4],
		.rtt_us = fields[5],
		.srtt_us = fields[6],
		.min_rtt_us = fields[7],
		.rate_us = fields[8],
		.rate_packets = fields[9],
		.newest_sent_us = fields[10],
		.since_bytes = fields[11],
		.rate_of_new = true,
		.cwnd_limited = fields[12],
	};

	return tt_muses_on_ack(m, &ack);
}

void tt_host_muses_marked(struct tt_muses *m, u64 now_us, u64 newest_sent_us, u32 mss_bytes)
{
	tt_muses_on_marked(m, now_us, newest_sent_us, mss_bytes);
}

void tt_host_muses_timeout(struct tt_muses *m)
{
	tt_muses_on_timeout(m);
}

void tt_host_muses_idle(struct tt_muses *m)
{
	tt_muses_on_idle(m);
}

u64 tt_host_muses_cwnd(const struct tt_muses *m)
{
	return m->cwnd;
}

u32 tt_host_muses_alarm(const struct tt_muses *m)
{
	return m->alarm;
}

/* What was answered last, in room for TT_INPUTS numbers. */
void tt_host_muses_inputs(const struct tt_muses *m, __s16 *inputs)
{
	for (int i = 0; i < TT_INPUTS; i++)
		inputs[i] = m->inputs[i];
}

u32 tt_host_muses_operating_window(const struct tt_muses *m, u64 bandwidth, u32 srtt_us)
{
	return tt_muses_operating_window(m, bandwidth, srtt_us);
}
