/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The core for the host: the same text as in the kernel. The differential tests call its functions,
 * and those below: they read a field, or take an array instead of a struct, so that Rust need not
 * know its padding. The order of an array is that of the struct, unless it is given.
 */
#include "layout.h"

/* The models, which are maps in the kernel: each thread of a test has its own. */
static _Thread_local const struct tt_model *tt_host_models;
static _Thread_local const struct tt_node *tt_host_nodes;

static const struct tt_model *tt_model_get(u32 index)
{
	return tt_host_models && index < TT_MODELS_MAX ? &tt_host_models[index] : 0;
}

static const struct tt_node *tt_node_get(u32 index)
{
	return tt_host_nodes && index < TT_NODES_MAX ? &tt_host_nodes[index] : 0;
}

#include "core/bbr3_sent.h"
#include "core/switch.h"

static void tt_host_copy(u32 *to, const u32 *from, u32 count)
{
	for (u32 i = 0; i < count; i++)
		to[i] = from[i];
}

/* Now, window in bytes, smoothed round-trip time, delivered, in flight; and what the path says. */
static struct tt_hand_over tt_host_over(const struct tt_path *path, const u64 *fields)
{
	struct tt_hand_over over = {
		.now_us = fields[0],
		.window_bytes = fields[1],
		.srtt_us = fields[2],
		.delivered = fields[3],
		.inflight = fields[4],
	};

	tt_hand_over_path(&over, path);
	return over;
}

/* The functions below take states as Rust made them: all zero. */
#define TT_HOST_SIZE(lower, type)                                                                  \
	u64 tt_host_##lower##_size(void) { return sizeof(type); }

/* --- Copa. */

TT_HOST_SIZE(copa, struct tt_copa)

void tt_host_copa_init(struct tt_copa *c, const u32 *knobs, u32 mss_bytes, u32 least, u64 window)
{
	tt_host_copy(c->knobs, knobs, TT_KNOBS_MAX);
	tt_copa_init(c, 0, mss_bytes, least, window);
}

void tt_host_copa_knobs(struct tt_copa *c, const u32 *knobs)
{
	tt_host_copy(c->knobs, knobs, TT_KNOBS_MAX);
	tt_copa_on_knobs(c);
}

/* One sample of the round-trip time each. */
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

bool tt_host_copa_slow_start(const struct tt_copa *c) { return c->slow_start; }

/* It was set up with the window. */
void tt_host_copa_take_over(struct tt_copa *c, const struct tt_path *path, const u64 *fields)
{
	struct tt_hand_over over = tt_host_over(path, fields);

	tt_mode_reset(&c->mode, over.now_us);
	tt_copa_take_over(c, &over);
}

/* --- CUBIC. */

struct tt_host_cubic {
	struct tt_cubic state;
	struct tt_cubic_knobs knobs;
};

TT_HOST_SIZE(cubic, struct tt_host_cubic)

void tt_host_cubic_knobs(struct tt_host_cubic *c, const u32 *knobs)
{
	c->knobs = tt_cubic_knobs_from(knobs);
}

/* Whether slow start ends; the last field is the threshold. */
bool tt_host_cubic_rtt(struct tt_host_cubic *c, const u64 *fields)
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

u32 tt_host_cubic_put_right(struct tt_host_cubic *c, u32 before)
{
	return tt_cubic_put_right(&c->state, &c->knobs, before);
}

void tt_host_cubic_take_over(struct tt_host_cubic *c, const struct tt_path *path, u32 window)
{
	struct tt_hand_over over = {};

	tt_hand_over_path(&over, path);
	tt_cubic_take_over(&c->state, window, &over);
}

/* --- What is known of the path. */

TT_HOST_SIZE(path, struct tt_path)

void tt_host_path_converged(struct tt_path *path, bool converged) { path->converged |= converged; }

u32 tt_host_path_min_rtt_us(const struct tt_path *path) { return tt_filter_get(&path->rtt_min); }

u32 tt_host_path_min_rtt_at_us(const struct tt_path *path) { return path->rtt_min.oldest.first_us; }

bool tt_host_switch_is_due(const struct tt_path *path, u32 how, bool converged, bool recovering)
{
	return tt_switch_is_due(how, path, converged, recovering);
}

/* --- BBR. */

TT_HOST_SIZE(bbr, struct tt_bbr)

void tt_host_bbr_knobs(struct tt_bbr *b, const u32 *knobs)
{
	tt_host_copy(b->tuning.knobs, knobs, TT_BBR_KNOBS_COUNT);
	tt_bbr_on_knobs(b);
}

/* Goes on from this window; a round-trip time of 0 is none. */
void tt_host_bbr_init(struct tt_bbr *b, const u32 *knobs, u32 mss_bytes, u32 window, u32 srtt_us)
{
	tt_host_bbr_knobs(b, knobs);
	b->mss_bytes = mss_bytes;
	b->window = window;
	tt_bbr_init(b, srtt_us);
}

/* The last field is what was acknowledged before. */
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

u32 tt_host_bbr_window(const struct tt_bbr *b) { return b->window; }

u64 tt_host_bbr_pacing(const struct tt_bbr *b) { return b->pacing_bytes_per_s; }

/* Whether a policer was found. */
bool tt_host_bbr_policed(const struct tt_bbr *b) { return b->policer.state == TT_POLICER_USING; }

/* Whether the last draw of where the gain cycle begins was used. */
bool tt_host_bbr_drawn(const struct tt_bbr *b) { return b->drawn; }

/* The next one. */
void tt_host_bbr_draw(struct tt_bbr *b, u32 draw)
{
	b->drawn = false;
	b->draw = draw;
}

/*
 * The recent bandwidth, if not 0, whether an empty queue was seen, and whether the last algorithm was one of BBR's
 * family are the last three fields; they are used instead of the path's. BBR was set up with the knobs.
 */
void tt_host_bbr_take_over(struct tt_bbr *b, const struct tt_path *path, const u64 *fields)
{
	struct tt_hand_over over = tt_host_over(path, fields);

	over.saw_empty_queue = fields[6];
	if (fields[5])
		over.recent_bytes_per_s = fields[5];
	over.modelled = fields[7];
	tt_bbr_take_over(b, &over);
}

/* --- BBRv3. */

TT_HOST_SIZE(bbr3, struct tt_bbr3)

void tt_host_bbr3_knobs(struct tt_bbr3 *b, const u32 *knobs)
{
	tt_host_copy(b->tuning.knobs, knobs, TT_BBR3_KNOBS_COUNT);
	tt_bbr3_on_knobs(b);
}

/* Goes on from this window in bytes; a round-trip time of 0 is none. */
void tt_host_bbr3_init(struct tt_bbr3 *b, const u32 *knobs, u32 mss_bytes, u32 initial_packets, u64 window,
		       u32 srtt_us)
{
	tt_host_bbr3_knobs(b, knobs);
	b->mss_bytes = mss_bytes;
	b->initial_packets = initial_packets;
	b->window_bytes = window;
	tt_bbr3_init(b, srtt_us);
}

void tt_host_bbr3_ack(struct tt_bbr3 *b, const u64 *fields)
{
	struct tt_bbr3_ack ack = {
		.now_us = fields[0],
		.newest_sent_us = fields[1],
		.srtt_us = fields[2],
		.rtt_us = fields[3],
		.acked = fields[4],
		.delivered = fields[5],
		.prior_delivered = fields[6],
		.inflight = fields[7],
		.rate_packets = fields[8],
		.rate_us = fields[9],
		.tx_in_flight = fields[10],
		.lost = fields[11],
		.app_limited = fields[12],
		.cwnd_limited = fields[13],
		.in_recovery = fields[14],
		.acked_before = fields[15],
	};

	tt_bbr3_on_ack(b, &ack);
}

void tt_host_bbr3_lost(struct tt_bbr3 *b, const u64 *fields)
{
	struct tt_bbr3_lost lost = {
		.now_us = fields[0],
		.packets = fields[1],
		.tx_in_flight = fields[2],
		.lost = fields[3],
		.prior_delivered = fields[4],
		.app_limited = fields[5],
		.new_range = fields[6],
	};

	tt_bbr3_on_lost(b, &lost);
}

u64 tt_host_bbr3_pacing(const struct tt_bbr3 *b) { return b->pacing_bytes_per_s; }

u32 tt_host_bbr3_mode(const struct tt_bbr3 *b) { return b->mode; }

/* Whether there is a bound on what is in flight, from losses in a probe. */
bool tt_host_bbr3_is_bounded(const struct tt_bbr3 *b) { return b->inflight_longterm != TT_BBR3_NONE; }

bool tt_host_bbr3_drawn(const struct tt_bbr3 *b) { return b->drawn; }

/* The next one: a round more or not, and the share of half a wait more. */
void tt_host_bbr3_draw(struct tt_bbr3 *b, bool round, u32 share_q32)
{
	b->drawn = false;
	b->draw_round = round;
	b->draw = share_q32;
}

/*
 * As BBR's. The bandwidth, if not 0, the share that was lost, whether an empty queue was seen and
 * whether the last algorithm was one of BBR's family are used instead of the path's.
 */
void tt_host_bbr3_take_over(struct tt_bbr3 *b, const struct tt_path *path, const u64 *fields)
{
	struct tt_hand_over over = tt_host_over(path, fields);

	if (fields[5])
		over.bandwidth_bytes_per_s = fields[5];
	over.loss_q16 = fields[6];
	over.saw_empty_queue = fields[7];
	over.modelled = fields[8];
	b->delivered = over.delivered;
	tt_bbr3_take_over(b, &over);
}

TT_HOST_SIZE(sent, struct tt_sent)

void tt_host_sent_note(struct tt_sent *s, u64 now_us, u32 srtt_us, u32 delivered, u32 inflight, u32 lost)
{
	struct tt_sent_moment before = { .delivered = delivered, .inflight = inflight, .lost = lost };

	tt_sent_note(s, now_us, srtt_us, &before);
}

/* In flight, and lost before it, in one number: the first in its upper half. */
u64 tt_host_sent_find(const struct tt_sent *s, u32 prior_delivered)
{
	struct tt_sent_moment found = {};

	tt_sent_find(s, prior_delivered, &found);
	return (u64)found.inflight << 32 | found.lost;
}

/* --- PCC Vivace. */

struct tt_host_vivace {
	struct tt_vivace state;
	u32 initial_window;
};

TT_HOST_SIZE(vivace, struct tt_host_vivace)

void tt_host_vivace_knobs(struct tt_host_vivace *h, const u32 *knobs)
{
	tt_host_copy(h->state.knobs, knobs, TT_KNOBS_MAX);
	tt_vivace_on_knobs(&h->state);
}

void tt_host_vivace_init(struct tt_host_vivace *h, const u32 *knobs, u32 mss_bytes, u32 window,
			 bool down_first)
{
	h->initial_window = window;
	tt_host_vivace_knobs(h, knobs);
	tt_vivace_init(&h->state, mss_bytes, window, down_first);
}

void tt_host_vivace_established(struct tt_host_vivace *h, u64 rtt_us)
{
	tt_vivace_on_established(&h->state, rtt_us, h->initial_window);
}

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

void tt_host_vivace_timeout(struct tt_host_vivace *h)
{
	tt_vivace_on_timeout(&h->state, h->initial_window);
}

u64 tt_host_vivace_window(const struct tt_host_vivace *h)
{
	return tt_vivace_window(&h->state, h->initial_window, 1);
}

bool tt_host_vivace_starting(const struct tt_host_vivace *h) { return h->state.starting; }

/*
 * Now, window in bytes, smoothed round-trip time, bandwidth, least round-trip time, when that was,
 * and whether losses starved the last.
 */
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

/* --- Muses. */

TT_HOST_SIZE(muses, struct tt_muses)

/* What stands for both maps from now on; they have to stay where they are. */
void tt_host_muses_models(const struct tt_model *models, const struct tt_node *nodes)
{
	tt_host_models = models;
	tt_host_nodes = nodes;
}

u32 tt_host_muses_walk(u32 model, u32 tree, const __s16 *inputs)
{
	return tt_trees_decide(tt_model_get(model), tree, inputs);
}

bool tt_host_muses_knows(u32 model, const __s16 *state)
{
	return tt_trees_know(tt_model_get(model), state);
}

u32 tt_host_muses_segment(u32 model, u32 component, const __s16 *state)
{
	return tt_trees_segment(tt_model_get(model), component, state);
}

void tt_host_muses_knobs(struct tt_muses *m, const u32 *knobs)
{
	tt_host_copy(m->knobs, knobs, TT_MUSES_KNOBS_COUNT);
}

/* Whether an interval ended. */
bool tt_host_muses_ack(struct tt_muses *m, const u64 *fields)
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

u64 tt_host_muses_cwnd(const struct tt_muses *m) { return m->cwnd; }

u32 tt_host_muses_alarm(const struct tt_muses *m) { return m->alarm; }

/* What was answered last, in room for TT_INPUTS numbers. */
void tt_host_muses_inputs(const struct tt_muses *m, __s16 *inputs)
{
	for (int i = 0; i < TT_INPUTS; i++)
		inputs[i] = m->inputs[i];
}

/* --- Which algorithm a socket gets. */

#include "core/choose.h"

/* Here a socket's cgroup is the list of those from the root down to it, after their number. */
static u64 tt_cgroup_above(const struct tt_asked *asked, u32 level)
{
	const u64 *ids = (const u64 *)asked->cgroup;

	return level < ids[0] ? ids[1 + level] : 0;
}

/* Network namespace, whether it listens, port and family; remote address, mapped. */
u32 tt_host_choose(const struct tt_choices *choices, const u64 *who, const u8 *remote, const u64 *cgroups)
{
	struct tt_choosing c = {
		.asked = {
			.netns_cookie = who[0],
			.cgroup = (u64)cgroups,
			.listens = who[1],
			.port = who[2],
			.family = who[3],
		},
		.choices = choices,
		.found = TT_NO_CHOICE,
	};

	__builtin_memcpy(c.asked.remote, remote, sizeof(c.asked.remote));
	tt_asked_is_canonical(&c.asked);
	for (u32 place = 0; !tt_choose_one(place, &c); place++)
		;
	return tt_chosen(&c, choices) ? c.found : TT_NO_CHOICE;
}

/* Whether a connection to this address, mapped, runs what it would run without us. */
u32 tt_host_runs_former(const struct tt_choices *choices, const u8 *remote, u64 now_ns)
{
	struct tt_asked asked = { .family = TT_FAMILY_V6 };

	__builtin_memcpy(asked.remote, remote, sizeof(asked.remote));
	tt_asked_is_canonical(&asked);
	return tt_runs_former(&asked, &choices->arms, now_ns);
}

/* Our copy of an algorithm, of TT_NAME_SIZE letters; null where there is none. */
const u8 *tt_host_copy_of(const struct tt_choices *choices, const u8 *name) { return tt_copy_of(choices, name); }

/* --- How many slots each cgroup holds. */

/* The entries, which threads of a test share. */
static _Thread_local u64 *tt_host_ledger;

static u64 *tt_ledger_at(u32 place) { return place < 1U << TT_LEDGER_BITS ? &tt_host_ledger[place] : 0; }

#include "core/ledger.h"

u32 tt_host_ledger_take(u64 *entries, u64 cgroup, u32 most)
{
	tt_host_ledger = entries;
	return tt_ledger_take(cgroup, most);
}

void tt_host_ledger_give(u64 *entries, u32 place)
{
	tt_host_ledger = entries;
	tt_ledger_give(place);
}
