/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What assign.bpf.c tells of a socket, what it is ordered to do, and what it does by itself: the
 * same for both sides, as in layout.h. What was given to whom (`tt_given`) outlives the process that
 * loaded the programs. So do the choices, which nobody but their own program reads.
 */
#ifndef TRIMTAB_ASSIGN_H
#define TRIMTAB_ASSIGN_H

/* A name of an algorithm with its zero (TCP_CA_NAME_MAX). */
#define TT_NAME_SIZE 16

/* States of a socket that are reported (net/tcp_states.h). */
#define TT_STATE_ESTABLISHED 1
#define TT_STATE_CLOSE_WAIT 8
#define TT_STATE_LISTEN 10

/* A socket, after what was ordered. F(type, name): a field; A(type, name, n): an array. */
#define TT_SOCKET_FIELDS(F, A)                                                                                         \
	F(u64, cookie)         /* SO_COOKIE */                                                                         \
	F(u64, netns_cookie)   /* SO_NETNS_COOKIE */                                                                   \
	F(u64, cgroup_id)      /* 0 unknown */                                                                         \
	F(u32, family)         /* AF_INET or AF_INET6 */                                                               \
	F(u32, state)                                                                                                  \
	F(u32, local_port)     /* host order */                                                                        \
	F(u32, remote_port)    /* host order */                                                                        \
	A(u32, local_addr, 4)  /* network order; IPv4 in the first */                                                  \
	A(u32, remote_addr, 4)                                                                                         \
	F(u32, chosen)         /* 1: some program has set the algorithm, of this socket or of the one that listened */ \
	F(u32, outcome)        /* of the order: 0 none, 1 carried out, else the error number, negative */              \
	A(u8, algorithm, TT_NAME_SIZE)                                                                                 \
	A(u8, given, TT_NAME_SIZE)  /* by us, last; empty: never */                                                    \
	A(u8, former, TT_NAME_SIZE) /* before we first gave one */
#define TT_SOCKET_SIZE 128

/* A socket that runs `from` is to run `to`; a socket that runs something else by then is left alone. */
#define TT_ORDER_FIELDS(F, A)                                                                                          \
	A(u8, from, TT_NAME_SIZE)                                                                                      \
	A(u8, to, TT_NAME_SIZE)
#define TT_ORDER_SIZE 32
#define TT_ORDERS_MAX 65536

/* A rule, or a part of one: what a socket must be, and what it gets. The first that matches is in force. */
#define TT_CHOICE_FIELDS(F, A)                                                                                         \
	F(u64, netns_cookie) /* 0: any network namespace */                                                            \
	F(u64, cgroup_id)    /* 0: any cgroup; else this one and those below it */                                     \
	F(u32, cgroup_level) /* below the root */                                                                      \
	F(u32, port_first)   /* the local port is one of these */                                                      \
	F(u32, port_last)                                                                                              \
	F(u32, to_family)    /* 0: to anywhere; else AF_INET or AF_INET6 */                                            \
	F(u32, gives)        /* TT_GIVES_... */                                                                        \
	F(u32, unused)                                                                                                 \
	A(u32, to, 4)        /* network order; IPv4 is mapped */                                                       \
	A(u32, to_mask, 4)                                                                                             \
	A(u8, algorithm, TT_NAME_SIZE)
#define TT_CHOICE_SIZE 88
/* Who matches is left as it is, … */
#define TT_GIVES_NOTHING 0
/* … gets `algorithm`, … */
#define TT_GIVES_ALGORITHM 1
/* … or gets back what it ran before it was given anything; about no socket that listens. */
#define TT_GIVES_FORMER 2
#define TT_CHOICES_MAX 256

/*
 * Which prefixes run what they would run without us, for comparison. Shares are places among 2^53:
 * who draws a lower one is in. A plan has pairs of blocks of steps; who is in runs that in one
 * block of the pair (`ThreeArms` of trimtab-fleet).
 */
#define TT_ARMS_FIELDS(F, A)                                                                                           \
	F(u64, reached)   /* by a rollout; the others run it; 2^53: there is none */                                   \
	F(u64, share)     /* who is in, in a pair of blocks */                                                         \
	F(u64, seed)                                                                                                   \
	F(u64, step_ns)   /* the clock is CLOCK_MONOTONIC */                                                           \
	F(u64, start)     /* the first step */                                                                         \
	F(u64, length)    /* in steps; 0: there is no plan */                                                          \
	F(u64, block)     /* in steps */                                                                               \
	F(u32, together)  /* 1: all prefixes by one draw */                                                            \
	F(u32, copies)    /* how many there are */
#define TT_ARMS_SIZE 64

/* What a socket would run, and our copy of it, which it gets for comparison. */
#define TT_COPY_FIELDS(F, A)                                                                                           \
	A(u8, of, TT_NAME_SIZE)                                                                                        \
	A(u8, copy, TT_NAME_SIZE)
#define TT_COPY_SIZE 32
#define TT_COPIES_MAX 8

/* What comes before the list: `held_back`, `count`, `arms` and `copies`. */
#define TT_CHOICES_HEAD 336

/* What came of the choices. */
#define TT_GAVE_FIELDS(F, A)                                                                                           \
	F(u64, given)                                                                                                  \
	F(u64, refused) /* by the kernel */                                                                            \
	F(u64, error)   /* the last error number of these, positive */
#define TT_GAVE_SIZE 24

#ifndef TT_RUST
#include "types.h"
#define TT_C_FIELD(type, name) type name;
#define TT_C_ARRAY(type, name, n) type name[n];
struct tt_socket {
	TT_SOCKET_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_order {
	TT_ORDER_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
/* What is kept of a socket that was given an algorithm, as long as it lives; an accepted one has it of who listened. */
struct tt_given {
	u8 given[TT_NAME_SIZE];
	u8 former[TT_NAME_SIZE];
};
struct tt_choice {
	TT_CHOICE_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_arms {
	TT_ARMS_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_copy {
	TT_COPY_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
struct tt_choices {
	u64 held_back; /* prefixes whose place among 2^53 is below this are left as they are */
	u32 count;
	u32 unused;
	struct tt_arms arms;
	struct tt_copy copies[TT_COPIES_MAX];
	struct tt_choice list[TT_CHOICES_MAX];
};
struct tt_gave {
	TT_GAVE_FIELDS(TT_C_FIELD, TT_C_ARRAY)
};
_Static_assert(sizeof(struct tt_choice) == TT_CHOICE_SIZE, "layout");
_Static_assert(sizeof(struct tt_arms) == TT_ARMS_SIZE, "layout");
_Static_assert(sizeof(struct tt_copy) == TT_COPY_SIZE, "layout");
_Static_assert(sizeof(struct tt_choices) == TT_CHOICES_HEAD + TT_CHOICES_MAX * TT_CHOICE_SIZE, "layout");
_Static_assert(sizeof(struct tt_gave) == TT_GAVE_SIZE, "layout");
_Static_assert(sizeof(struct tt_socket) == TT_SOCKET_SIZE, "layout");
_Static_assert(sizeof(struct tt_order) == TT_ORDER_SIZE, "layout");
#endif

#endif
