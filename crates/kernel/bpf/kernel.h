/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The few kernel types that the programs touch, and of those the few fields. `preserve_access_index` has libbpf find
 * each field by its name in the running kernel's BTF when the programs are loaded, so order and offsets here mean
 * nothing, and one object fits every kernel (CO-RE).
 */
#ifndef TRIMTAB_KERNEL_H
#define TRIMTAB_KERNEL_H

#include "types.h"

/* Values of the kernel's user-space interface, which do not change. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_CLONE = 1 << 9,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
	AF_INET6 = 10,
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
	CA_EVENT_TX_START = 0,
	TCP_ESTABLISHED = 1,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_TIME_WAIT = 6,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct net {
	u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	int skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;                  /* below the root */
	struct cgroup *ancestors[]; /* by level, itself the last (Linux 6.1) */
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_initialized : 1; /* `init` was called, or is to be now */
	u8 icsk_ca_setsockopt : 1;  /* a program has set the algorithm */
	u64 icsk_ca_priv[13]; /* the algorithm's own: 104 bytes */
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 lsndtime;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq; /* after the last byte that the application handed over */
	u32 mss_cache;
	u32 snd_cwnd;
	u32 prior_cwnd; /* before the last reduction */
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 max_packets_out;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 lost;
	u32 delivered;
	u32 srtt_us; /* eighths of a microsecond */
	u32 app_limited; /* not 0: the application holds the sender back */
	u32 rate_delivered; /* packets: the last sample of the delivery rate */
	u32 rate_interval_us;
	u32 data_segs_out; /* segments with data, each time that they were sent */
	u64 bytes_sent;
	u64 bytes_acked;
	u64 tcp_mstamp;      /* us on CLOCK_MONOTONIC: when this acknowledgement came */
	u64 first_tx_mstamp; /* when the newest packet acknowledged was sent */
	u64 tcp_wstamp_ns;   /* when the pacer lets the next packet go, on the clock of the next */
	u64 tcp_clock_cache; /* ns: now */
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	__s32 rtt_us; /* negative: no sample */
};

struct rate_sample {
	int delivered;    /* packets; negative: no sample */
	long interval_us; /* 0 or negative: no sample */
	long rtt_us;      /* 0 or negative: no sample */
	int losses;
	u32 acked_sacked;
	u32 prior_delivered; /* packets delivered when the newest that was acknowledged was sent */
	u32 prior_in_flight;
	u32 last_end_seq; /* after the last byte of the newest packet that was acknowledged */
	bool is_retrans;  /* that one was sent again */
	bool is_app_limited;
	bool is_ack_delayed; /* perhaps, by the receiver */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_map;
struct bpf_sock;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* The context of a sock_ops program as the user-space interface has it (linux/bpf.h), of which it reads two fields. */
struct bpf_sock_ops {
	u32 op;
	u32 unread[45];
	struct bpf_sock *sk;
};
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, sk) == 184, "linux/bpf.h");

/*
 * libbpf matches the members by name, too, and leaves out what is not here. Not every kernel has
 * the same arguments of `cong_control`; libbpf asks only that it be a function. The loader writes
 * `name` and `flags`, which are first for that (layout.h does not state it, since only the loader's
 * assertion depends on it).
 */
struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*cwnd_event_tx_start)(struct sock *sk); /* since Linux 7.1, which does not tell `cwnd_event` of it any more */
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#endif
