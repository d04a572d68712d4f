/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Muses: every 10 ms a tree multiplies the window. crates/cc/src/muses in C, which says why each
 * thing is as it is: mod.rs, action.rs and guard.rs. Which tree is asked is a knob here: user space
 * chooses it, by the segments that are counted for it.
 *
 * Windows are in 1/1024 packets, and below 2^30 of them (the knob `cap`).
 */
#ifndef TRIMTAB_MUSES_H
#define TRIMTAB_MUSES_H

#include "ceiling.h"
#include "muses_inputs.h"
#include "muses_trees.h"

#define TT_MUSES_INTERVAL_US 10000
#define TT_MUSES_PARTS 1024
#define TT_MUSES_PACKETS_MIN 2
/* The guard: so many suspicious states in a row, and what makes one. */
#define TT_GUARD_PATIENCE 100
#define TT_GUARD_FAST 10
#define TT_GUARD_ROUNDS 512 /* four round trips, */
#define TT_GUARD_QUEUE 84   /* 1/64 of the least round-trip time, */
#define TT_GUARD_GROWTH 67  /* a fifth, */
#define TT_LOG_GUARD_FEW 3072 /* four packets, */
#define TT_GUARD_STARVED 1280 /* a thirty-second part, */
#define TT_GUARD_STARVED_FEW 768 /* an eighth, */
#define TT_GUARD_STARVED_QUEUE 594 /* a quarter of the least round-trip time, */
#define TT_GUARD_STARVED_ROUNDS 1024 /* sixteen round trips, */
#define TT_GUARD_QUEUE_WHOLE 1024 /* and the least round-trip time: as the signals have them */
/* tt_log2() of four and sixteen packets and of sixteen, in 1/1024, and of the microseconds of a second. */
#define TT_LOG_GUARD_FOLD 3072
#define TT_LOG_GUARD_FOLD_FAST 3584
#define TT_LOG_GUARD_LEAST 3584
#define TT_LOG_MILLION 5102

/* What each acknowledgement touches comes first. */
struct tt_muses {
	struct tt_signals signals;
	u64 began_us; /* when the interval began */
	u32 mss_bytes;
	u32 sent_before;  /* the socket's count of packets at the acknowledgement before */
	u32 least_rtt_us; /* of the connection; 0 before a sample */
	u8 has_begun;     /* the first acknowledgement came */
	u8 is_used;       /* the window limited the sender in this interval */
	u8 was_lost;      /* the timeout that the socket repairs was heeded */
	u8 was_used;      /* the window limited the sender in the interval before */
	struct tt_ceiling ceiling;
	u64 cwnd;
	u64 initial;
	u32 knobs[TT_MUSES_KNOBS_COUNT];
	__s16 inputs[TT_INPUT_WORDS]; /* at the end of the last interval: the state, and what follows from it */
	struct tt_past past;
	u8 segments[4];   /* of it */
	u8 alarm;         /* TT_ALARM_*: what the guard has said; it does not take it back */
	u16 factor;       /* the window was multiplied by it, in 1/16384 */
	u16 idle;         /* the guard's counts, */
	u16 running;
	u16 excess;
	u16 starved;
	__s16 idle_from;  /* the window when the path began to be idle, */
	__s16 peak;       /* and the highest rate so far */
};

/* What marks leave; the greatest number while they leave all. */
TT_INLINE u64 tt_muses_ceiling(const struct tt_muses *m)
{
	u64 bytes = tt_ceiling_bytes(&m->ceiling);

	return tt_ceiling_is_set(&m->ceiling) ? bytes * TT_MUSES_PARTS / tt_max(m->mss_bytes, 1) : bytes;
}

TT_INLINE void tt_muses_set(struct tt_muses *m, u64 cwnd)
{
	u64 least = TT_MUSES_PACKETS_MIN * TT_MUSES_PARTS;
	u64 cap = (u64)m->knobs[TT_MUSES_CAP] * TT_MUSES_PARTS;
	u64 most = tt_max(tt_min(cap, tt_muses_ceiling(m)), least);

	m->cwnd = tt_min(tt_max(cwnd, least), most);
}

/* A connection begins with a window of so many packets, or goes on with it. All else is zero. */
TT_INLINE void tt_muses_init(struct tt_muses *m, u32 window)
{
	m->initial = tt_max((u64)window, TT_MUSES_PACKETS_MIN) * TT_MUSES_PARTS;
	tt_muses_set(m, (u64)window * TT_MUSES_PARTS);
}

/* The window in packets. */
TT_INLINE u32 tt_muses_window(const struct tt_muses *m)
{
	return m->cwnd / TT_MUSES_PARTS;
}

/* Whether so many intervals are as long as the least round-trip time, times a factor in the scale of the signals. */
TT_INLINE bool tt_guard_lasts(const struct tt_muses *m, u32 intervals, __s32 rounds)
{
	return tt_log2((u64)intervals * TT_MUSES_INTERVAL_US) >= m->inputs[TT_SIGNAL_MIN_RTT] + rounds;
}

/* The guard looks at the next state. Logarithms are compared: window against so many times rate
 * times round-trip time. */
TT_INLINE void tt_guard_watch(struct tt_muses *m, bool known)
{
	const __s16 *state = m->inputs;
	__s32 per = TT_LOG_MILLION + tt_log2(tt_max(m->mss_bytes, 1));
	__s32 carried = state[TT_SIGNAL_DRATE] + state[TT_SIGNAL_MIN_RTT] - per;
	__s32 cwnd = state[TT_SIGNAL_CWND], qdelay = state[TT_SIGNAL_QDELAY];
	/* Of the window that share waits, or less. */
	__s32 waiting = qdelay < TT_GUARD_QUEUE_WHOLE ? cwnd + qdelay - TT_GUARD_QUEUE_WHOLE : cwnd;
	u32 running = 0;

	if (known || cwnd > m->idle_from + TT_GUARD_GROWTH) {
		m->idle = 0;
		m->idle_from = cwnd;
	} else if (qdelay > TT_GUARD_QUEUE && waiting > TT_LOG_GUARD_FEW) {
		m->idle = tt_less(m->idle, TT_GUARD_FAST);
	} else if (m->was_used) {
		m->idle = tt_min(m->idle + 1, 65535);
	}
	if (cwnd > TT_LOG_GUARD_LEAST && cwnd > carried + TT_LOG_GUARD_FOLD)
		running = tt_min(m->running + (cwnd > carried + TT_LOG_GUARD_FOLD_FAST ? TT_GUARD_FAST : 1), 65535);
	m->running = running;
	m->excess = running ? tt_min(m->excess + 1, 65535) : 0;
	m->peak = tt_max(m->peak, state[TT_SIGNAL_DRATE]);
	if (m->was_used && qdelay > TT_GUARD_STARVED_QUEUE &&
	    (state[TT_SIGNAL_DRATE] < m->peak - TT_GUARD_STARVED ||
	     (cwnd <= TT_LOG_GUARD_FEW && state[TT_SIGNAL_DRATE] < m->peak - TT_GUARD_STARVED_FEW)))
		m->starved = tt_min(m->starved + 1, 65535);
	else
		m->starved = 0;
	if (m->alarm)
		return;
	if (running >= TT_GUARD_PATIENCE && tt_guard_lasts(m, m->excess, 0))
		m->alarm = TT_ALARM_RUN_AWAY;
	else if (m->idle >= TT_GUARD_PATIENCE && tt_guard_lasts(m, m->idle, TT_GUARD_ROUNDS))
		m->alarm = TT_ALARM_UNKNOWN;
	else if (m->starved >= TT_GUARD_PATIENCE && tt_guard_lasts(m, m->starved, TT_GUARD_STARVED_ROUNDS))
		m->alarm = TT_ALARM_STARVED;
}

/* An interval has ended: its state is answered. */
TT_CHECKED_ONCE int tt_muses_decide(struct tt_muses *m)
{
	const struct tt_model *model;

	if (!m)
		return 0;
	tt_signals_end_interval(&m->signals, m->cwnd, m->inputs);
	tt_past_see(&m->past, m->inputs);
	model = tt_model_get(m->knobs[TT_MUSES_MODEL]);
	m->factor = TT_FACTOR_ONE;
	if (!model || !model->trees) {
		m->alarm = TT_ALARM_NO_MODEL;
		return 0;
	}
	m->factor = tt_trees_decide(model, m->knobs[TT_MUSES_TREE], m->inputs);
	for (u32 i = 0; i < TT_COMPONENTS; i++)
		m->segments[i] = tt_trees_segment(model, i, m->inputs);
	/* A path that it leaves idle under such a bound is no reason to speak. */
	tt_guard_watch(m, tt_ceiling_is_set(&m->ceiling) || tt_trees_know(model, m->inputs));
	if (m->was_used || m->factor <= TT_FACTOR_ONE)
		tt_muses_set(m, m->cwnd * m->factor >> TT_FACTOR_POINT);
	return 0;
}

TT_INLINE void tt_muses_raise_ceiling(struct tt_muses *m, const struct tt_muses_ack *ack)
{
	struct tt_used used = {
		.now_us = ack->now_us,
		.acked_bytes = (u64)ack->acked * ack->mss_bytes,
		.srtt_us = ack->srtt_us,
		.newest_sent_us = ack->newest_sent_us,
		.mss_bytes = ack->mss_bytes,
	};

	if (!tt_ceiling_is_set(&m->ceiling))
		return;
	used.limits = ack->cwnd_limited && m->cwnd >= tt_muses_ceiling(m);
	tt_ceiling_on_ack(&m->ceiling, &used);
}

/* Whether an interval ended with this acknowledgement: then the window may be another. */
TT_INLINE bool tt_muses_on_ack(struct tt_muses *m, const struct tt_muses_ack *ack)
{
	tt_signals_on_ack(&m->signals, ack);
	m->mss_bytes = ack->mss_bytes;
	m->is_used |= ack->cwnd_limited;
	tt_muses_raise_ceiling(m, ack);
	if (m->has_begun && ack->now_us - m->began_us < TT_MUSES_INTERVAL_US)
		return false;
	m->has_begun = 1;
	m->began_us = ack->now_us;
	m->was_used = m->is_used;
	m->is_used = 0;
	tt_muses_decide(m);
	return true;
}

/* Packets were marked (ECN), of which none was sent after `newest_sent_us`. */
TT_INLINE void tt_muses_on_marked(struct tt_muses *m, u64 now_us, u64 newest_sent_us, u32 mss_bytes)
{
	u64 window_bytes = m->cwnd * mss_bytes / TT_MUSES_PARTS;

	m->mss_bytes = mss_bytes;
	if (tt_ceiling_on_marked(&m->ceiling, now_us, newest_sent_us, window_bytes, mss_bytes))
		tt_muses_set(m, m->cwnd);
}

/* Everything in flight is written off (RFC 9002 §7.6.2). */
TT_INLINE void tt_muses_on_timeout(struct tt_muses *m)
{
	tt_muses_set(m, 0);
}

/* Nothing was sent for longer than a retransmission timeout (RFC 5681 §4.1). */
TT_INLINE void tt_muses_on_idle(struct tt_muses *m)
{
	tt_muses_set(m, tt_min(m->cwnd, m->initial));
}

/*
 * The packets that it hands over: what a policy made of its window before it was stopped is not
 * among them. `bandwidth` in bytes per second is the path's; 0 where it is not known.
 */
TT_INLINE u32 tt_muses_operating_window(const struct tt_muses *m, u64 bandwidth, u32 srtt_us)
{
	u32 window = tt_muses_window(m);
	u64 carried = tt_min(bandwidth, 1ULL << 37) * tt_min(srtt_us, 1 << 26) / 1000000 / tt_max(m->mss_bytes, 1);

	if (m->alarm != TT_ALARM_RUN_AWAY || !bandwidth)
		return window;
	return tt_max(tt_min(window, carried), TT_MUSES_PACKETS_MIN);
}

#endif
