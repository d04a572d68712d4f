/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* PCC Vivace: crates/cc/src/vivace/mod.rs in C, which has the sections of the papers and says
 * why each thing is as it is. */
#ifndef TRIMTAB_VIVACE_H
#define TRIMTAB_VIVACE_H

#include "vivace_utility.h"

/* So many round trips of packets may be in flight. */
#define TT_VIVACE_WINDOW_ROUNDS 2
/* What congestion marks leave grows while a third of it is used. */
#define TT_CEILING_USED 3
#define TT_VIVACE_RTT_WINDOW_US 10000000
#define TT_EARLY_SAMPLES 50
#define TT_BRAKE_RTT 3
#define TT_BRAKE_RTT_MORE_US 200000
#define TT_BRAKE_STUCK 2
#define TT_BRAKE_SAMPLES 10
#define TT_EXIT_SAMPLES 8
#define TT_EXIT_RTT_MORE_US 4000
#define TT_VIVACE_WORST_Q30 (-TT_UTILITY_MAX_Q30 - 1)

/* A knob in Mbit/s and 2^-10, as a rate. */
TT_INLINE u64 tt_vivace_knob_q8(const struct tt_vivace *v, u32 knob)
{
	return (u64)v->knobs[knob] * 125000 >> (10 - TT_RATE_SHIFT);
}

/* Bytes of a round trip at this rate. */
TT_INLINE u64 tt_vivace_bytes(const struct tt_vivace *v, u64 rate_q8)
{
	/* A rate below 2^36 over less than 2^26 us. */
	return (rate_q8 >> TT_RATE_SHIFT) * tt_min(v->srtt_us, TT_RTT_MAX_US) / 1000000;
}

/* A packet in each round trip. */
TT_INLINE u64 tt_vivace_packet_q8(const struct tt_vivace *v) { return tt_rate_q8(v, 1, v->srtt_us); }

TT_INLINE void tt_vivace_pair_anew(struct tt_vivace *v)
{
	v->pair_sent = 0;
	v->up_q8 = 0;
	v->down_q8 = 0;
}

/* Goes on at a rate, from the next packet on. */
TT_INLINE void tt_vivace_go(struct tt_vivace *v, u64 rate_q8)
{
	v->rate_q8 = tt_min(tt_max(tt_min(rate_q8, v->ceiling_q8), TT_RATE_MIN_Q8), TT_RATE_MAX_Q8);
	v->sending_q8 = v->rate_q8;
	v->renew = true;
	v->awaiting = false;
	v->down_first = !v->down_first;
	tt_vivace_pair_anew(v);
}

/* Goes on at a rate without what was seen before; what is under way was sent at another. */
TT_INLINE void tt_vivace_forget(struct tt_vivace *v, u64 rate_q8)
{
#pragma unroll
	for (u32 i = 0; i < TT_INTERVALS; i++)
		v->ring[i].purpose = TT_FOR_NOTHING;
	__builtin_memset(&v->climb, 0, sizeof(v->climb));
	v->late = 0;
	tt_vivace_go(v, rate_q8);
}

TT_INLINE void tt_vivace_leave_start(struct tt_vivace *v, u64 rate_q8)
{
	v->starting = false;
	tt_vivace_forget(v, rate_q8);
}

TT_INLINE u64 tt_vivace_doubled_q8(const struct tt_vivace *v)
{
	return tt_min(tt_min(2 * v->rate_q8, tt_vivace_knob_q8(v, TT_VIVACE_STARTUP_RATE_MAX)), v->ceiling_q8);
}

/* A new connection: everything is 0 but the knobs. */
TT_INLINE void tt_vivace_init(struct tt_vivace *v, u32 mss_bytes, u32 initial_window, bool down_first)
{
	v->starting = true;
	v->ceiling_q8 = ~0ULL;
	v->start_packets = initial_window;
	v->start_utility_q30 = TT_VIVACE_WORST_Q30;
	v->mss_bytes = tt_max(mss_bytes, 1);
	v->down_first = down_first;
}

/* A utility by other weights is no measure for the next one. The climb has what was seen, and weighs it anew. */
TT_INLINE void tt_vivace_on_knobs(struct tt_vivace *v)
{
	v->start_utility_q30 = TT_VIVACE_WORST_Q30;
}

/* --- What is sent. */

/* What the interval is for that begins now; its rate is left in `asked_q8`. */
TT_INLINE u8 tt_vivace_plan(struct tt_vivace *v, u64 *asked_q8)
{
	bool unified = tt_vivace_is_on(v, TT_VIVACE_UNIFIED);
	u64 probe_q8;
	bool up;

	*asked_q8 = v->rate_q8;
	if (v->starting && unified) {
		const struct tt_interval *used = tt_interval_running(v);

		/* A rate that the application left unused is not known to be good. */
		if (used && !used->app_limited && !v->renew && used->purpose == TT_FOR_START)
			v->rate_q8 = tt_vivace_doubled_q8(v);
		*asked_q8 = v->rate_q8;
		return TT_FOR_START;
	}
	if (v->starting || unified) {
		if (v->awaiting)
			return TT_FOR_NOTHING;
		v->awaiting = true;
		return v->starting ? TT_FOR_START : TT_FOR_STEP;
	}
	probe_q8 = v->rate_q8 * v->knobs[TT_VIVACE_EXPLORE] >> 16;
	up = (v->pair_sent == 0) != v->down_first;
	v->pair_sent = tt_min(v->pair_sent + 1, 3);
	if (v->pair_sent == 3)
		return TT_FOR_NOTHING;
	*asked_q8 = up ? v->rate_q8 + probe_q8 : v->rate_q8 - probe_q8;
	return up ? TT_FOR_UP : TT_FOR_DOWN;
}

/* Packets leave from now on; `sent` is the connection's count before them. */
TT_CHECKED_ONCE int tt_vivace_on_send(struct tt_vivace *v, u64 now_us, u32 sent, u32 app_limited)
{
	struct tt_interval *running;

	if (!v)
		return 0;
	running = tt_interval_running(v);
	if (v->rate_q8 && v->len < TT_INTERVALS &&
	    (v->renew || !running ||
	     tt_interval_is_due(running, now_us, v->srtt_us, sent, v->knobs[TT_VIVACE_MIN_PACKETS]))) {
		u64 asked_q8;
		u8 purpose = tt_vivace_plan(v, &asked_q8);

		tt_interval_begin(v, now_us, purpose, asked_q8, sent);
		v->sending_q8 = asked_q8;
		v->renew = false;
		running = tt_interval_running(v);
	}
	if (running && app_limited)
		running->app_limited = true;
	return 0;
}

/* --- Brakes. */

/* Halves the rate, or falls to what arrives where that is less; to a quarter at once. */
TT_INLINE bool tt_vivace_brake(struct tt_vivace *v, u64 arrived_q8, u64 now_us)
{
	if (!tt_vivace_is_on(v, TT_VIVACE_BRAKES) || now_us < v->calm_us)
		return false;
	v->starting = false;
	v->calm_us = now_us + 2 * v->srtt_us;
	v->excessive_since_us = 0;
	tt_losses_begin_anew(v);
	tt_vivace_forget(v, tt_min(tt_max(arrived_q8, v->rate_q8 / 4), v->rate_q8 / 2));
	return true;
}

/* The brakes that one interval shows a reason for. */
TT_INLINE bool tt_vivace_brake_by(struct tt_vivace *v, const struct tt_interval *i, const struct tt_shown *shown,
				  u64 now_us)
{
	u64 arrived_q8 = i->samples >= TT_BRAKE_SAMPLES ? shown->arrived_q8 : 0;
	bool told = i->samples >= TT_BRAKE_SAMPLES && i->last_ack_us > i->first_ack_us;
	bool lossy;

	v->stuck = told && arrived_q8 < shown->rate_q8 / 2 ? v->stuck + 1 : 0;
	lossy = tt_losses_are_excessive(v);
	if (!lossy && v->stuck < TT_BRAKE_STUCK)
		return false;
	return tt_vivace_brake(v, told ? arrived_q8 : TT_RATE_MAX_Q8, now_us);
}

/* Excessive latency for a round trip. */
TT_INLINE void tt_vivace_watch_latency(struct tt_vivace *v, const struct tt_vivace_ack *ack)
{
	u64 least_us = tt_filter_get(&v->rtt_min);

	if (!least_us)
		return;
	if (ack->rtt_us <= tt_max(least_us * TT_BRAKE_RTT, least_us + TT_BRAKE_RTT_MORE_US)) {
		v->excessive_since_us = 0;
		return;
	}
	if (!v->excessive_since_us)
		v->excessive_since_us = ack->now_us;
	if (ack->now_us - v->excessive_since_us < least_us)
		return;
	tt_vivace_brake(v, ack->rate_us ? tt_rate_q8(v, ack->rate_packets, ack->rate_us) : TT_RATE_MAX_Q8, ack->now_us);
}

/* --- What comes back. */

/* A step of exploring and using at once. */
TT_INLINE void tt_vivace_step(struct tt_vivace *v, const struct tt_shown *shown, __s64 gradient_q30)
{
	v->climb.last = *shown;
	tt_vivace_go(v, tt_climb_step_q8(v, v->rate_q8, gradient_q30, tt_vivace_packet_q8(v)));
}

TT_INLINE void tt_vivace_conclude_start(struct tt_vivace *v, u64 asked_q8, const struct tt_shown *shown, __s64 worth_q30)
{
	if (worth_q30 < v->start_utility_q30 ||
	    shown->loss_q32 > tt_vivace_share_q32(v, TT_VIVACE_STARTUP_EXIT_LOSS)) {
		tt_vivace_leave_start(v, asked_q8 / 2);
		return;
	}
	v->start_utility_q30 = worth_q30;
	if (!tt_vivace_is_on(v, TT_VIVACE_UNIFIED))
		tt_vivace_go(v, tt_vivace_doubled_q8(v));
}

/* Both probes of a pair are back: a step from between them. */
TT_INLINE void tt_vivace_conclude_pair(struct tt_vivace *v)
{
	__s64 gradient_q30 = 0;

	if (!v->up_q8 || !v->down_q8)
		return;
	tt_secant_q30(v->down_q8, v->down_utility_q30, v->up_q8, v->up_utility_q30, &gradient_q30);
	tt_vivace_go(v, tt_climb_step_q8(v, v->rate_q8, gradient_q30, tt_vivace_packet_q8(v)));
}

/* All is known of an interval. */
TT_CHECKED_ONCE int tt_vivace_conclude(struct tt_vivace *v, u32 place, u64 now_us)
{
	struct tt_shown shown = {};
	struct tt_interval *i;
	__s64 worth_q30;

	if (!v)
		return 0;
	i = &v->ring[place & TT_INTERVALS_MASK];
	/* What the application left unused says nothing of the path. */
	if (i->app_limited) {
		if (i->purpose == TT_FOR_UP || i->purpose == TT_FOR_DOWN)
			tt_vivace_pair_anew(v);
		else if (i->purpose != TT_FOR_NOTHING)
			v->awaiting = false;
		return 0;
	}
	tt_interval_show(v, i, &shown);
	tt_losses_add(v, &shown, i->lost);
	if (tt_vivace_brake_by(v, i, &shown, now_us))
		return 0;
	if (i->purpose == TT_FOR_NOTHING)
		return 0;
	if (i->purpose == TT_FOR_STEP) {
		tt_vivace_step(v, &shown, tt_climb_gradient_q30(v, &shown));
		return 0;
	}
	worth_q30 = tt_worth_q30(v, &shown);
	if (i->purpose == TT_FOR_START) {
		tt_vivace_conclude_start(v, i->asked_q8, &shown, worth_q30);
	} else if (i->purpose == TT_FOR_UP) {
		v->up_q8 = shown.rate_q8;
		v->up_utility_q30 = worth_q30;
		tt_vivace_conclude_pair(v);
	} else {
		v->down_q8 = shown.rate_q8;
		v->down_utility_q30 = worth_q30;
		tt_vivace_conclude_pair(v);
	}
	return 0;
}

/* Decides before all of an interval is known, if that is down. */
TT_CHECKED_ONCE int tt_vivace_step_early(struct tt_vivace *v)
{
	struct tt_shown shown = {};
	struct tt_interval *i = 0;
	__s64 gradient_q30;

	if (!v)
		return 0;
	for (u32 n = 0; n < TT_INTERVALS; n++) {
		if (n >= v->len)
			return 0;
		i = tt_interval_at(v, n);
		if (i->purpose == TT_FOR_STEP)
			break;
		i = 0;
	}
	if (!i || i->app_limited)
		return 0;
	tt_interval_show(v, i, &shown);
	gradient_q30 = tt_climb_gradient_q30(v, &shown);
	if (gradient_q30 < 0) {
		i->purpose = TT_FOR_NOTHING;
		tt_vivace_step(v, &shown, gradient_q30);
	}
	return 0;
}

/* Whether the round-trip time ends slow start. */
TT_INLINE bool tt_vivace_is_late(struct tt_vivace *v, u32 rtt_us)
{
	u64 least_us = tt_filter_get(&v->rtt_min);
	u64 more_us = least_us * v->knobs[TT_VIVACE_STARTUP_EXIT_LATENCY] >> 16;

	if (!least_us)
		return false;
	v->late = rtt_us > least_us + tt_max(more_us, TT_EXIT_RTT_MORE_US) ? v->late + 1 : 0;
	return v->late >= TT_EXIT_SAMPLES;
}

/* The initial window in each round trip, or what is configured. */
TT_INLINE u64 tt_vivace_initial_q8(const struct tt_vivace *v, u32 initial_window)
{
	return tt_max(tt_rate_q8(v, initial_window, v->srtt_us), tt_vivace_knob_q8(v, TT_VIVACE_INITIAL_RATE));
}

/* The handshake measured the path, and nothing was sent: a configured first rate is that of the first round trip. */
TT_INLINE void tt_vivace_on_established(struct tt_vivace *v, u64 rtt_us, u32 initial_window)
{
	u64 first_q8 = tt_min(tt_vivace_knob_q8(v, TT_VIVACE_INITIAL_RATE),
			      tt_vivace_knob_q8(v, TT_VIVACE_STARTUP_RATE_MAX));
	u64 bytes;

	v->srtt_us = rtt_us;
	bytes = tt_vivace_bytes(v, first_q8);
	if (bytes <= (u64)initial_window * v->mss_bytes)
		return;
	v->opening = true;
	v->start_packets = bytes / v->mss_bytes;
	v->timed_out_q8 = tt_rate_q8(v, initial_window, rtt_us);
	tt_vivace_go(v, first_q8);
}

/* Before the first round-trip time there is no rate: the initial window was the first interval,
 * and the next is twice that. */
TT_INLINE void tt_vivace_begin(struct tt_vivace *v, u32 initial_window)
{
	u64 first_q8 = tt_vivace_initial_q8(v, initial_window);

	tt_vivace_go(v, tt_min(2 * first_q8, tt_vivace_knob_q8(v, TT_VIVACE_STARTUP_RATE_MAX)));
}

/* What marks leave, as a rate. */
TT_INLINE void tt_vivace_rate_ceiling(struct tt_vivace *v)
{
	u64 bytes = tt_min(tt_ceiling_bytes(&v->ceiling), TT_WINDOW_MAX_BYTES);

	v->ceiling_q8 = ~0ULL;
	if (tt_ceiling_is_set(&v->ceiling))
		v->ceiling_q8 = tt_max((bytes * 1000000 << TT_RATE_SHIFT) / tt_max(v->srtt_us, 1), TT_RATE_MIN_Q8);
}

TT_INLINE void tt_vivace_raise_ceiling(struct tt_vivace *v, const struct tt_vivace_ack *ack)
{
	struct tt_used used = {
		.now_us = ack->now_us,
		.acked_bytes = (u64)ack->acked * v->mss_bytes,
		.srtt_us = ack->srtt_us,
		.newest_sent_us = ack->newest_sent_us,
		.mss_bytes = v->mss_bytes,
	};

	if (!tt_ceiling_is_set(&v->ceiling))
		return;
	tt_vivace_rate_ceiling(v);
	used.limits = TT_CEILING_USED * v->rate_q8 >= v->ceiling_q8;
	tt_ceiling_on_ack(&v->ceiling, &used);
	tt_vivace_rate_ceiling(v);
}

TT_INLINE void tt_vivace_on_ack(struct tt_vivace *v, const struct tt_vivace_ack *ack, u32 initial_window)
{
	u32 rtt_us = tt_min(ack->rtt_us, TT_RTT_MAX_US);
	struct tt_interval *of;
	u64 asked_q8 = 0;
	bool look = false;

	v->srtt_us = ack->srtt_us;
	v->start_packets += ack->acked;
	v->timed_out_q8 = 0;
	tt_vivace_raise_ceiling(v, ack);
	if (rtt_us)
		tt_filter_update(&v->rtt_min, &v->rtt_min_ring, ack->now_us, TT_VIVACE_RTT_WINDOW_US, rtt_us);
	if (!v->rate_q8) {
		tt_vivace_begin(v, initial_window);
		return;
	}
	if (v->opening) {
		v->opening = false;
		/* That was the first interval; the published form waits for what it was worth. */
		if (tt_vivace_is_on(v, TT_VIVACE_UNIFIED))
			tt_vivace_go(v, tt_vivace_doubled_q8(v));
	}
	of = tt_interval_on_ack(v, ack);
	if (of) {
		asked_q8 = of->asked_q8;
		look = rtt_us && of->purpose == TT_FOR_STEP && of->samples % TT_EARLY_SAMPLES == 0;
	}
	if (rtt_us && !v->starting)
		tt_vivace_watch_latency(v, ack);
	else if (rtt_us && of && tt_vivace_is_late(v, rtt_us))
		tt_vivace_leave_start(v, asked_q8 / 2);
	for (u32 n = 0; n < TT_INTERVALS; n++) {
		u32 oldest = v->head;

		if (!v->len || !tt_interval_is_resolved(tt_interval_at(v, 0), ack->newest_sent_us, v->srtt_us / 4))
			break;
		v->head = (oldest + 1) & TT_INTERVALS_MASK;
		v->len--;
		tt_vivace_conclude(v, oldest, ack->now_us);
	}
	if (look && tt_vivace_is_on(v, TT_VIVACE_EARLY))
		tt_vivace_step_early(v);
}

/* Packets that were sent at about this time are lost; those of one call one after another. */
TT_INLINE void tt_vivace_on_lost(struct tt_vivace *v, u64 sent_us, u32 packets)
{
	struct tt_interval *i = tt_interval_of(v, sent_us);

	if (i) {
		i->lost += packets;
		i->lost_ranges++;
	}
}

/* A timeout halves the rate and forgets the utilities; another before anything arrives begins with slow start. */
TT_INLINE void tt_vivace_on_timeout(struct tt_vivace *v, u32 initial_window)
{
	v->len = 0;
	if (!v->rate_q8)
		return;
	if (!v->timed_out_q8) {
		v->timed_out_q8 = v->rate_q8;
		tt_vivace_leave_start(v, v->rate_q8 / 2);
		return;
	}
	v->starting = true;
	v->opening = false;
	v->start_packets = initial_window;
	v->start_utility_q30 = TT_VIVACE_WORST_Q30;
	tt_vivace_forget(v, tt_min(v->timed_out_q8, tt_vivace_initial_q8(v, initial_window)));
}

/* The window in packets. */
TT_INLINE u64 tt_vivace_window(const struct tt_vivace *v, u32 initial_window, u32 least)
{
	u64 packets;

	if (!v->rate_q8)
		return initial_window;
	packets = tt_vivace_bytes(v, v->sending_q8 * TT_VIVACE_WINDOW_ROUNDS) / v->mss_bytes;
	if (v->starting)
		packets = tt_min(packets, v->start_packets);
	return tt_min(tt_max(packets, 2 * least), tt_ceiling_bytes(&v->ceiling) / v->mss_bytes);
}

/* Packets were marked (ECN), of which none was sent after `newest_sent_us`. */
TT_INLINE void tt_vivace_on_marked(struct tt_vivace *v, u64 now_us, u64 newest_sent_us, u32 inflight)
{
	u64 used = (u64)inflight * v->mss_bytes;

	/* Its own window is a bound of two round trips: of what is in flight (RFC 9438 §4.6). */
	if (!tt_ceiling_on_marked(&v->ceiling, now_us, newest_sent_us, used, v->mss_bytes))
		return;
	tt_vivace_rate_ceiling(v);
	if (v->rate_q8)
		tt_vivace_leave_start(v, v->rate_q8);
}

/* Bytes per second; 0: not paced yet. */
TT_INLINE u64 tt_vivace_pacing_bytes_per_s(const struct tt_vivace *v)
{
	return (v->rate_q8 ? v->sending_q8 : tt_vivace_knob_q8(v, TT_VIVACE_INITIAL_RATE)) >> TT_RATE_SHIFT;
}

#endif
