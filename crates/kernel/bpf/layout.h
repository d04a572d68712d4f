/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The contract between the programs in the kernel and user space: every struct, constant and scale
 * that both sides use. Rust's side is made from this file by the C preprocessor (see
 * build/main.rs), so nothing is typed twice; both sides assert the sizes at the end.
 *
 * Who writes what, and when:
 *   identity   the program, once, when the connection opens (the cookie later, once somebody has
 *              asked the kernel for it)
 *   orders     user space, at any time; the program reads `version`, `epoch`, `next` and `watch` when
 *              it writes the measures (and takes `watch` back), and the knobs when `version` moved.
 *              Each algorithm has a place of its own for its knobs, so those of one that is to take
 *              over can be set while another runs
 *   measures   the program, at most twice a round trip and twice a millisecond, and when nothing is left in flight,
 *              under the sequence number `seq`: odd while it writes
 *
 * The unit is the last part of a name. Fixed-point fields have a scale below.
 */
#ifndef TRIMTAB_LAYOUT_H
#define TRIMTAB_LAYOUT_H

/* Changes with every change of this file: user space adopts pinned maps only of its own layout,
 * and replaces those of another. */
#define TT_LAYOUT_VERSION 19

/* Fixed-point scales: a value is its integer divided by the scale. */
#define TT_SCALE_Q4 16        /* velocities */
#define TT_SCALE_Q10 1024     /* gains and windows in packets */
#define TT_SCALE_Q16 65536    /* shares, 1/delta in packets, windows in bytes within the algorithm */

/*
 * The algorithms: L(number, UPPER, lower, ...), with whatever follows L. The number stands in a
 * slot's `cca`. The order is that of trimtab_kernel::Algorithm. Each has knobs, TT_<UPPER>_KNOBS
 * below, and hooks, <lower>.bpf.h.
 */
#define TT_ALGORITHMS(L, ...)                                                                                          \
	L(1, COPA, copa, ##__VA_ARGS__)                                                                                \
	L(2, CUBIC, cubic, ##__VA_ARGS__)                                                                              \
	L(3, BBR, bbr, ##__VA_ARGS__)                                                                                  \
	L(5, VIVACE, vivace, ##__VA_ARGS__)                                                                            \
	L(4, MUSES, muses, ##__VA_ARGS__)                                                                              \
	L(6, BBR3, bbr3, ##__VA_ARGS__)
#define TT_CCAS 6
#define TT_CCAS_ROOM 8

/* Phases, in the order of trimtab_cc::Phase. */
#define TT_PHASE_SLOW_START 0
#define TT_PHASE_DRAIN 1
#define TT_PHASE_STEADY 2
#define TT_PHASE_RECOVERY 3
#define TT_PHASE_PROBE_RTT 4

/* Bits of a slot's `flags`. */
#define TT_FLAG_COMPETITIVE 1 /* Copa is in TCP-competitive mode */
#define TT_FLAG_ADOPTED 2     /* the connection was open before the algorithm got it */
#define TT_FLAG_ALARM_SHIFT 2 /* three bits: TT_ALARM_*, what the guard of Muses has said on this connection */
#define TT_FLAG_ALARM_BITS 3
#define TT_FLAG_TOWARDS 32 /* it began with the knobs of its destination */
#define TT_FLAG_CLOSING 64 /* this side has closed, and all that it sent was acknowledged */

/* Why a learnt policy is not trusted any longer, in the order of trimtab_kernel::Alarm. */
#define TT_ALARM_UNKNOWN 1
#define TT_ALARM_RUN_AWAY 2
#define TT_ALARM_NO_MODEL 3
#define TT_ALARM_STARVED 4

/* Events. */
#define TT_EVENT_OPEN 1
#define TT_EVENT_CLOSE 2
#define TT_EVENT_ACTIVE 3 /* something happens on a connection that is watched */

/* Room for the knobs of any algorithm. */
#define TT_KNOBS_MAX 16
/* How another algorithm takes over: with what is known of the path, or with the window alone; core/switch.h. */
#define TT_HOW_FULL 1
#define TT_HOW_PART 2
/* The order for that, in one word so that it is read whole: the number tells one order from the one before. */
#define TT_NEXT_CCA_BITS 8
#define TT_NEXT_HOW_BITS 8
/* The slot of a connection that has none. */
#define TT_NO_SLOT 0xffffffff

/*
 * The ledger of slots by cgroup, core/ledger.h: an entry is the number of a cgroup above its count.
 * The kernel counts cgroups in the lower 32 bits first, so 43 bits tell them apart.
 */
#define TT_LEDGER_BITS 12       /* of the number of entries */
#define TT_LEDGER_COUNT_BITS 21 /* there are at most 2^20 slots */
#define TT_LEDGER_LOOKS 64      /* entries that are looked at */
/* What stands for an entry where there is none: the connection is not counted, or its cgroup holds its share. */
#define TT_NO_ENTRY 0xffffffff
#define TT_OVER_QUOTA 0xfffffffe

/*
 * Knobs, in the order of trimtab_cc's table: algorithm, place, name, scale, how it is encoded.
 *   PLAIN    value * scale
 *   INVERSE  scale / value
 *   HYSTART  as PLAIN, but HyStart++ (1), which is not here, becomes Linux's HyStart (2)
 */
#define TT_COPA_KNOBS(K)                                                                                               \
	K(COPA, 0, DELTA, delta, TT_SCALE_Q16, INVERSE)                                                                \
	K(COPA, 1, COMPETITIVE, competitive, 1, PLAIN)                                                                 \
	K(COPA, 2, PACING_GAIN, pacing_gain, TT_SCALE_Q10, PLAIN)                                                      \
	K(COPA, 3, INITIAL_WINDOW, initial_window, TT_SCALE_Q10, PLAIN)                                                \
	K(COPA, 4, STARTUP_GAIN, startup_gain, TT_SCALE_Q16, PLAIN)                                                    \
	K(COPA, 5, STARTUP_EXIT, startup_exit, TT_SCALE_Q10, PLAIN)                                                    \
	K(COPA, 6, RESTART, restart, TT_SCALE_Q16, PLAIN)                                                              \
	K(COPA, 7, RESTART_PROBE, restart_probe, 1, PLAIN)                                                             \
	K(COPA, 8, LOSS_BETA, loss_beta, TT_SCALE_Q16, PLAIN)                                                          \
	K(COPA, 9, LOSS_TOLERANCE, loss_tolerance, TT_SCALE_Q16, PLAIN)                                                \
	K(COPA, 10, STANDING, standing, TT_SCALE_Q16, PLAIN)                                                           \
	K(COPA, 11, MIN_RTT_WINDOW, min_rtt_window, 1000000, PLAIN)                                                    \
	K(COPA, 12, VELOCITY_MAX, velocity_max, TT_SCALE_Q4, PLAIN)                                                    \
	K(COPA, 13, GROWTH_MAX, growth_max, TT_SCALE_Q16, PLAIN)
#define TT_COPA_KNOBS_COUNT 14
#define TT_CUBIC_KNOBS(K)                                                                                              \
	K(CUBIC, 0, BETA, beta, TT_SCALE_Q10, PLAIN)                                                                   \
	K(CUBIC, 1, C, c, TT_SCALE_Q10, PLAIN)                                                                         \
	K(CUBIC, 2, FAST_CONVERGENCE, fast_convergence, 1, PLAIN)                                                      \
	K(CUBIC, 3, HYSTART, hystart, 1, HYSTART)
#define TT_CUBIC_KNOBS_COUNT 4
/* Gains in 1/65536, as trimtab_cc has them; times in microseconds. */
#define TT_BBR_KNOBS(K)                                                                                                \
	K(BBR, 0, PROBE_GAIN, probe_gain, TT_SCALE_Q16, PLAIN)                                                         \
	K(BBR, 1, CWND_GAIN, cwnd_gain, TT_SCALE_Q16, PLAIN)                                                           \
	K(BBR, 2, STARTUP_GAIN, startup_gain, TT_SCALE_Q16, PLAIN)                                                     \
	K(BBR, 3, BW_WINDOW, bw_window, 1, PLAIN)                                                                      \
	K(BBR, 4, PROBE_RTT_INTERVAL, probe_rtt_interval, 1000000, PLAIN)                                              \
	K(BBR, 5, PROBE_RTT_DURATION, probe_rtt_duration, 1000, PLAIN)                                                 \
	K(BBR, 6, PROBE_RTT_CWND, probe_rtt_cwnd, 1, PLAIN)                                                            \
	K(BBR, 7, QUANTUM_BUDGET, quantum_budget, TT_SCALE_Q16, PLAIN)                                                 \
	K(BBR, 8, EXTRA_ACKED_GAIN, extra_acked_gain, TT_SCALE_Q16, PLAIN)                                             \
	K(BBR, 9, PACING_MARGIN, pacing_margin, TT_SCALE_Q16, PLAIN)
#define TT_BBR_KNOBS_COUNT 10
#define TT_BBR3_KNOBS(K)                                                                                               \
	K(BBR3, 0, STARTUP_GAIN, startup_gain, TT_SCALE_Q16, PLAIN)                                                    \
	K(BBR3, 1, DRAIN_GAIN, drain_gain, TT_SCALE_Q16, PLAIN)                                                        \
	K(BBR3, 2, CWND_GAIN, cwnd_gain, TT_SCALE_Q16, PLAIN)                                                          \
	K(BBR3, 3, PROBE_UP_GAIN, probe_up_gain, TT_SCALE_Q16, PLAIN)                                                  \
	K(BBR3, 4, PROBE_UP_CWND_GAIN, probe_up_cwnd_gain, TT_SCALE_Q16, PLAIN)                                        \
	K(BBR3, 5, PROBE_DOWN_GAIN, probe_down_gain, TT_SCALE_Q16, PLAIN)                                              \
	K(BBR3, 6, PROBE_WAIT, probe_wait, 1000000, PLAIN)                                                             \
	K(BBR3, 7, LOSS_THRESH, loss_thresh, TT_SCALE_Q16, PLAIN)                                                      \
	K(BBR3, 8, BETA, beta, TT_SCALE_Q16, PLAIN)                                                                    \
	K(BBR3, 9, HEADROOM, headroom, TT_SCALE_Q16, PLAIN)                                                            \
	K(BBR3, 10, PROBE_RTT_INTERVAL, probe_rtt_interval, 1000000, PLAIN)                                            \
	K(BBR3, 11, PROBE_RTT_DURATION, probe_rtt_duration, 1000, PLAIN)                                               \
	K(BBR3, 12, PROBE_RTT_CWND_GAIN, probe_rtt_cwnd_gain, TT_SCALE_Q16, PLAIN)                                     \
	K(BBR3, 13, QUANTUM_BUDGET, quantum_budget, TT_SCALE_Q16, PLAIN)                                               \
	K(BBR3, 14, PACING_MARGIN, pacing_margin, TT_SCALE_Q16, PLAIN)
#define TT_BBR3_KNOBS_COUNT 15
#define TT_VIVACE_KNOBS(K)                                                                                             \
	K(VIVACE, 0, ALPHA, alpha, TT_SCALE_Q16, PLAIN)                                                                \
	K(VIVACE, 1, BETA, beta, TT_SCALE_Q10, PLAIN)                                                                  \
	K(VIVACE, 2, GAMMA, gamma, TT_SCALE_Q10, PLAIN)                                                                \
	K(VIVACE, 3, DELTA, delta, TT_SCALE_Q16, PLAIN)                                                                \
	K(VIVACE, 4, OMEGA, omega, TT_SCALE_Q16, PLAIN)                                                                \
	K(VIVACE, 5, INITIAL_RATE, initial_rate, TT_SCALE_Q10, PLAIN)                                                  \
	K(VIVACE, 6, STARTUP_EXIT_LATENCY, startup_exit_latency, TT_SCALE_Q16, PLAIN)                                  \
	K(VIVACE, 7, STARTUP_EXIT_LOSS, startup_exit_loss, TT_SCALE_Q16, PLAIN)                                        \
	K(VIVACE, 8, STARTUP_RATE_MAX, startup_rate_max, TT_SCALE_Q10, PLAIN)                                          \
	K(VIVACE, 9, LATENCY_FILTER, latency_filter, TT_SCALE_Q16, PLAIN)                                              \
	K(VIVACE, 10, LOSS_FILTER, loss_filter, TT_SCALE_Q16, PLAIN)                                                   \
	K(VIVACE, 11, MIN_PACKETS, min_packets, TT_SCALE_Q4, PLAIN)                                                    \
	K(VIVACE, 12, EXPLORE, explore, TT_SCALE_Q16, PLAIN)                                                           \
	K(VIVACE, 13, UNIFIED, unified, 1, PLAIN)                                                                      \
	K(VIVACE, 14, EARLY, early, 1, PLAIN)                                                                          \
	K(VIVACE, 15, BRAKES, brakes, 1, PLAIN)
#define TT_VIVACE_KNOBS_COUNT 16

/* Muses: the number of its model (0: none), of the tree in it, and of the algorithm that takes
 * over when its guard speaks (0: none). */
#define TT_MUSES_KNOBS(K)                                                                                              \
	K(MUSES, 0, CAP, cap, 1, PLAIN)                                                                                \
	K(MUSES, 1, TREE, tree, 1, PLAIN)                                                                              \
	K(MUSES, 2, MODEL, model, 1, PLAIN)                                                                            \
	K(MUSES, 3, SAFE, safe, 1, PLAIN)
#define TT_MUSES_KNOBS_COUNT 4

/* The models of Muses: numbers of trimtab_cc::muses, and how much there is room for. */
#define TT_SIGNALS 7
#define TT_STATE_WORDS 8 /* room for the signals: a power of two, so that any number is brought into it */
#define TT_INPUTS 16
#define TT_INPUT_WORDS 16 /* room for the inputs of a tree, of which the first are the signals: as above */
#define TT_ACTIONS 7
#define TT_COMPONENTS 3
#define TT_BINS 10
#define TT_CELLS 30 /* of all components */
#define TT_TREES_MAX 64
#define TT_MODELS_MAX 8  /* those that connections run at once; the first is none */
#define TT_NODES_MAX 65536 /* of all of them */
#define TT_WALK_MAX 64   /* no walk is longer; those of the shipped models have 25 steps at most */
/* In a node's kind: a leaf, the rest is the action. */
#define TT_LEAF 0x80

/* A model, but for its nodes. Signed numbers are in two's complement. */
#define TT_MODEL_FIELDS(F, A)                                                                                          \
	F(u32, trees)          /* 0: there is no such model */                                                         \
	F(u32, checksum)       /* of its file; with the next it is its name */                                         \
	F(u32, length)         /* of its file in bytes */                                                              \
	F(u32, node_first)     /* its nodes, of tt_nodes */                                                            \
	F(u32, node_count)                                                                                             \
	F(u32, model_rest)                                                                                             \
	A(u32, range_low, TT_STATE_WORDS) /* least and greatest value of each signal in training; signed */            \
	A(u32, range_high, TT_STATE_WORDS)                                                                             \
	A(u32, weights, 24)    /* TT_STATE_WORDS of each component; signed, 16 bits after the point */        \
	A(u32, component_low, 4) /* where its first segment begins; signed */                          \
	A(u32, component_width, 4)                                                                                     \
	A(u32, tree_first, TT_TREES_MAX) /* the root of each tree, of tt_nodes */
#define TT_MODEL_SIZE 472
/* A node, in one word: kind, threshold (signed) and where to go on above it, counted from the
 * tree's root; of a leaf, the factor there. */
#define TT_NODE_SIZE 8
#define TT_NODE_THRESHOLD_SHIFT 16
#define TT_NODE_ABOVE_SHIFT 32

/*
 * One connection. F(type, name): a field; A(type, name, n): an array. No padding: fields are in an
 * order that needs none.
 */
#define TT_KNOBS_OF(number, upper, lower, A) A(u32, lower##_knobs, TT_##upper##_KNOBS_COUNT)
#define TT_SLOT_FIELDS(F, A)                                                                                           \
	/* --- Identity: two cache lines. */                                                                           \
	F(u64, id)             /* number of the connection, counted from 1; 0: the slot is free */                     \
	F(u64, cookie)         /* the socket's cookie (SO_COOKIE); 0 until somebody asked the kernel for it */         \
	F(u64, netns_cookie)   /* of its network namespace (SO_NETNS_COOKIE) */                                        \
	F(u64, cgroup_id)      /* of the cgroup that made the socket; 0 unknown */                                     \
	F(u64, opened_us)      /* on CLOCK_MONOTONIC */                                                                \
	F(u32, cca)                                                                                                    \
	F(u32, family)         /* AF_INET or AF_INET6 */                                                               \
	F(u32, local_port)     /* host order */                                                                        \
	F(u32, remote_port)    /* host order */                                                                        \
	A(u32, local_addr, 4)  /* network order; IPv4 in the first */                                                  \
	A(u32, remote_addr, 4)                                                                                         \
	F(u32, ifindex)        /* of the device that it is bound to; 0 none */                                         \
	F(u32, index)          /* of this slot */                                                                      \
	F(u32, entry)          /* the ledger's, on which its slot counts; TT_NO_ENTRY: on none */                       \
	A(u32, identity_rest, 7)                                                                                       \
	/* --- Orders from user space: a line of their own, or both sides would pass it back and forth. */             \
	F(u64, knobs_for)      /* the `id` that the knobs are for: a slot may have changed hands meanwhile */          \
	F(u32, version)        /* moved by user space after the knobs were written */                                  \
	F(u32, epoch)          /* moved by user space to start a new interval of the extremes */                       \
	F(u32, next)           /* what is to take over: number, TT_HOW_*, TT_CCA_*; an algorithm of 0: nothing is */   \
	F(u32, watch)          /* 1: send an event with the next measures; the program takes it back */                \
	F(u32, leave)          /* 1: the next walk over TCP sockets takes the slot from its connection */              \
	TT_ALGORITHMS(TT_KNOBS_OF, A) /* those of all fit five cache lines */                                          \
	A(u32, orders_rest, 10)                                                                                        \
	/* --- Measures. */                                                                                            \
	F(u32, seq)            /* odd while the program writes */                                                      \
	F(u32, interval_epoch) /* the `epoch` that the current extremes belong to */                                   \
	F(u64, now_us)         /* of the last acknowledgement, on CLOCK_MONOTONIC */                                   \
	F(u64, sent_bytes)     /* sums since the connection began; retransmissions included */                         \
	F(u64, acked_bytes)                                                                                            \
	F(u64, lost_bytes)                                                                                             \
	F(u64, busy_us)        /* time up to acknowledgements of data that the application did not hold back */        \
	F(u64, rtt_sum_us)                                                                                             \
	F(u64, rtt_count)                                                                                              \
	F(u32, rtt_min_us)     /* extremes of the current interval; rtt_min_us is 0 without a sample */                \
	F(u32, rtt_max_us)                                                                                             \
	F(u32, rate_packets)   /* the highest delivery rate that the application did not limit: packets in time */     \
	F(u32, rate_us)        /* 0 without a sample */                                                                \
	F(u32, last_rtt_min_us) /* extremes of the interval before */                                                  \
	F(u32, last_rtt_max_us)                                                                                        \
	F(u32, last_rate_packets)                                                                                      \
	F(u32, last_rate_us)                                                                                           \
	F(u64, window_bytes)                                                                                           \
	F(u64, inflight_bytes)                                                                                         \
	F(u64, pacing_bytes_per_s)     /* bytes per second; all ones: not paced yet */                                         \
	F(u32, srtt_us)                                                                                                \
	F(u32, min_rtt_us)     /* since the connection began; 0 without a sample */                                    \
	F(u32, mss_bytes)      /* payload of a full packet */                                                          \
	F(u32, phase)                                                                                                  \
	F(u32, flags)                                                                                                  \
	F(u32, inverse_delta_q16) /* 1/delta in force, in packets; 0: the algorithm has none */                        \
	F(u64, acks)           /* acknowledgements that the program saw */                                             \
	F(u32, knobs_version)  /* the `version` that is in force */                                                    \
	F(u32, next_done)      /* the last `next` that was carried out, cancelled or refused */                        \
	F(u32, switches)       /* how often another algorithm took over */                                             \
	F(u32, switch_ns)      /* what the last time took */                                                           \
	F(u32, refused)        /* the kernel's error number for the last `next`; 0: none */                            \
	F(u32, walk)           /* the last walk over sockets that found the connection's; of the control's `walk` */     \
	F(u32, unsent_bytes)   /* handed to the socket and never sent; modulo 2^32, as no send buffer is that long */      \
	A(u32, cells, TT_CELLS) /* how often Muses' states lay in each segment of each component, modulo 2^32 */       \
	A(u32, measures_rest, 5)
#define TT_SLOT_SIZE 768

/*
 * What all connections share: one entry, in memory that user space maps, too. The fields up to
 * `live` have their places in every layout: by them user space knows what another version has left.
 */
#define TT_DEFAULTS_OF(number, upper, lower, A) A(u32, lower##_defaults, TT_KNOBS_MAX)
#define TT_CONTROL_FIELDS(F, A)                                                                                        \
	F(u32, layout_version) /* 0 from when other programs begin to take the place of these */                      \
	F(u32, slot_count)                                                                                             \
	F(u64, last_id)        /* of the connection opened last */                                                     \
	F(u64, brief)          /* connections that ended before they had sent enough for a slot */                     \
	F(u64, live)           /* connections with a slot */                                                           \
	F(u64, slotless)       /* connections that found none free when they were to have one */                       \
	F(u64, lost_events)    /* for which the ring had no room */                                                    \
	F(u64, over_quota)     /* connections that got none since their cgroup held its share */                       \
	TT_ALGORITHMS(TT_DEFAULTS_OF, A) /* knobs of a new connection; an initial window of 0 is the system's */       \
	A(u32, slot_after_bytes, TT_CCAS_ROOM) /* what a connection sends before it has a slot, by algorithm; by user space */ \
	F(u32, walk)           /* walks over sockets that were begun: by user space, which looks for slots without one */ \
	F(u32, towards_by)     /* TT_BY_*: what knobs by destination are distinguished by; by user space */               \
	F(u32, cgroup_slots)   /* slots that connections of one cgroup may hold, 1 at least; by user space */          \
	F(u32, control_rest)                                                                                           \
	F(u64, programs)       /* which programs, with which options: a hash; by user space; 0 until all is in place */
#define TT_CONTROL_SIZE 496

/*
 * Knobs of connections to come by where they go, which user space writes: a trie, of whose entries
 * the longest that fits is taken. Of an IPv4 address that is the form that maps it into IPv6 (RFC
 * 4291 section 2.5.5.2). What comes before the address has to be the connection's own, or 0 for all
 * where `towards_by` does not say that it counts.
 */
#define TT_TOWARDS_MAX 65536
#define TT_BY_PORT 1
#define TT_BY_NETNS 2
#define TT_BY_CGROUP 4
#define TT_TOWARDS_KEY_FIELDS(F, A)                                                                                    \
	F(u32, bits)           /* of what follows, that are compared */                                                \
	F(u32, cca)                                                                                                    \
	F(u32, local_port)     /* host order */                                                                        \
	F(u32, key_rest)                                                                                               \
	F(u64, netns_cookie)                                                                                           \
	F(u64, cgroup_id)                                                                                              \
	A(u32, addr, 4)        /* network order */
#define TT_TOWARDS_KEY_SIZE 48
/* Bits before the address, and of it before one of IPv4. */
#define TT_TOWARDS_WHO_BITS 224
#define TT_MAPPED_BITS 96

/* An event. The sums are those at the end; 0 when a connection opens. */
#define TT_EVENT_FIELDS(F, A)                                                                                          \
	F(u32, kind)                                                                                                   \
	F(u32, slot)                                                                                                   \
	F(u64, id)                                                                                                     \
	F(u64, now_us)                                                                                                 \
	F(u64, sent_bytes)                                                                                             \
	F(u64, acked_bytes)                                                                                            \
	F(u64, lost_bytes)                                                                                             \
	F(u64, busy_us)                                                                                                \
	F(u64, rtt_sum_us)                                                                                             \
	F(u64, rtt_count)                                                                                              \
	F(u64, last_us)        /* when measures were written the last time */
#define TT_EVENT_SIZE 80

/* Names and sizes of what is in the object. */
#define TT_EVENTS_BYTES (1 << 20)
/*
 * What is set before loading: the number of slots, the names under which the algorithms are
 * registered, then least and greatest value of each knob, algorithm by algorithm by TT_CCA_* less 1,
 * and what the common clock of senders says when CLOCK_MONOTONIC says zero.
 */
#define TT_CA_NAME_SIZE 16
#define TT_SETTINGS_NAMES_AT 4
#define TT_SETTINGS_LEAST_AT 100
#define TT_SETTINGS_MOST_AT 484
#define TT_SETTINGS_CLOCK_AT 872
#define TT_SETTINGS_SIZE 880

#ifndef TT_RUST
#include "types.h"
#define TT_C_FIELD(type, name) type name;
#define TT_C_ARRAY(type, name, n) type name[n];
struct tt_slot {
	TT_SLOT_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_control {
	TT_CONTROL_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_event {
	TT_EVENT_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_settings {
	u32 slot_count;
	char names[TT_CCAS][TT_CA_NAME_SIZE];
	u32 least[TT_CCAS][TT_KNOBS_MAX];
	u32 most[TT_CCAS][TT_KNOBS_MAX];
	u32 rest;
	u64 clock_us;
};
struct tt_towards_key {
	TT_TOWARDS_KEY_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_knobs {
	u32 words[TT_KNOBS_MAX];
};
struct tt_model {
	TT_MODEL_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_node {
	u8 kind;
	u8 rest;
	__s16 threshold;
	u16 above;
	u16 end;
};
_Static_assert(sizeof(struct tt_model) == TT_MODEL_SIZE, "layout");
_Static_assert(TT_CELLS == TT_COMPONENTS * TT_BINS && TT_COMPONENTS * TT_STATE_WORDS == 24 && TT_COMPONENTS < 4, "layout");
_Static_assert(sizeof(struct tt_node) == TT_NODE_SIZE, "layout");
_Static_assert(__builtin_offsetof(struct tt_node, threshold) * 8 == TT_NODE_THRESHOLD_SHIFT, "layout");
_Static_assert(__builtin_offsetof(struct tt_node, above) * 8 == TT_NODE_ABOVE_SHIFT, "layout");
_Static_assert(sizeof(struct tt_settings) == TT_SETTINGS_SIZE, "layout");
_Static_assert(__builtin_offsetof(struct tt_settings, names) == TT_SETTINGS_NAMES_AT, "layout");
_Static_assert(__builtin_offsetof(struct tt_settings, least) == TT_SETTINGS_LEAST_AT, "layout");
_Static_assert(__builtin_offsetof(struct tt_settings, most) == TT_SETTINGS_MOST_AT, "layout");
_Static_assert(__builtin_offsetof(struct tt_settings, clock_us) == TT_SETTINGS_CLOCK_AT, "layout");
_Static_assert(sizeof(struct tt_towards_key) == TT_TOWARDS_KEY_SIZE, "layout");
_Static_assert(__builtin_offsetof(struct tt_towards_key, addr) * 8 - 32 == TT_TOWARDS_WHO_BITS, "layout");
_Static_assert(sizeof(struct tt_slot) == TT_SLOT_SIZE, "layout");
_Static_assert(sizeof(struct tt_slot) % 64 == 0, "a slot is whole cache lines");
_Static_assert(sizeof(struct tt_control) == TT_CONTROL_SIZE, "layout");
_Static_assert(sizeof(struct tt_event) == TT_EVENT_SIZE, "layout");

#define TT_C_CCA(number, upper, lower) TT_CCA_##upper = number,
enum tt_cca { TT_ALGORITHMS(TT_C_CCA) };
#define TT_C_ONE(number, upper, lower) +1
_Static_assert(TT_ALGORITHMS(TT_C_ONE) == TT_CCAS, "the number of algorithms");

#define TT_C_KNOB(cca, place, upper, lower, scale, how) TT_##cca##_##upper = place,
#define TT_C_KNOBS(number, upper, lower) enum tt_##lower##_knob { TT_##upper##_KNOBS(TT_C_KNOB) };
TT_ALGORITHMS(TT_C_KNOBS)
#endif

#endif
