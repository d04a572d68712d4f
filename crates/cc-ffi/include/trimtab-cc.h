/*
 * libtrimtab-cc: congestion control without an operating system, an allocator or a clock.
 *
 * A connection's state is a struct that the caller keeps; nothing is allocated, so nothing is
 * freed. The caller tells what happens on the connection and asks for the window and the pacing
 * rate. Functions for one connection must not run at the same time. Times are nanoseconds of any
 * clock that never goes back, sizes are bytes.
 */
#ifndef TRIMTAB_CC_H
#define TRIMTAB_CC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIMTAB_CC_SIZE 8192
#define TRIMTAB_CC_NEVER UINT64_MAX

/* A connection. Its bytes are the library's; it may be moved between calls, but not copied to go on twice. */
struct trimtab_cc {
#if defined(__GNUC__)
	unsigned char state[TRIMTAB_CC_SIZE] __attribute__((aligned(16)));
#else
	_Alignas(16) unsigned char state[TRIMTAB_CC_SIZE];
#endif
};

struct trimtab_cc_config {
	uint64_t mss_bytes;            /* of a full-size packet, 1 to 65536 */
	uint64_t initial_window_bytes; /* 0: 10 packets */
	uint64_t min_window_bytes;     /* 0: 2 packets */
	uint64_t seed;                 /* of the algorithm's own randomness */
	uint8_t paced;                 /* whether packets are paced where the algorithm gives no rate */
};

/* How fast the path delivered, measured on one acknowledged packet (draft-cheng-iccrg-delivery-rate-estimation). */
struct trimtab_cc_rate {
	uint64_t interval_ns;           /* the longer of send and acknowledgement interval; 0: there is no sample */
	uint64_t delivered_bytes;       /* over the interval */
	uint64_t prior_delivered_bytes; /* of the connection, when the packet was sent */
	uint64_t tx_in_flight_bytes;    /* when the packet was sent, itself included */
	uint64_t lost_bytes;            /* declared lost since the packet was sent */
	uint8_t app_limited;            /* whether the application limited the sender when it was sent */
};

struct trimtab_cc_ack {
	uint64_t now_ns;
	uint64_t acked_bytes;          /* newly acknowledged */
	uint64_t rtt_ns;               /* of the newest packet acknowledged; 0: not known */
	uint64_t srtt_ns;              /* smoothed (RFC 6298), this one included */
	uint64_t min_rtt_ns;           /* lowest of the connection */
	uint64_t inflight_bytes;       /* after it */
	uint64_t prior_inflight_bytes; /* before it; Muses weighs its averages by it, and with 0 averages nothing */
	uint64_t delivered_bytes;      /* over the life of the connection */
	uint64_t newest_sent_ns;       /* when the newest packet acknowledged was sent */
	struct trimtab_cc_rate rate;
	uint8_t cwnd_limited;          /* whether the window limited the sender; a window that is not used does not grow */
	uint8_t in_recovery;           /* whether losses are being repaired */
};

struct trimtab_cc_loss {
	uint64_t now_ns;
	uint64_t lost_bytes;           /* declared lost together */
	uint64_t newest_sent_ns;       /* when the newest of them was sent */
	uint64_t inflight_bytes;       /* after */
	uint64_t prior_inflight_bytes; /* before */
};

/* One packet of a loss. */
struct trimtab_cc_lost_packet {
	uint64_t now_ns;
	uint64_t bytes;                    /* its size */
	uint64_t sent_ns;                  /* when it was sent */
	uint64_t tx_in_flight_bytes;       /* when it was sent, itself included */
	uint64_t lost_since_sent_bytes;    /* declared lost since it was sent, itself included */
	uint64_t delivered_at_send_bytes;  /* of the connection, when it was sent */
	uint8_t app_limited;               /* whether the application limited the sender when it was sent */
	uint8_t new_range;                 /* whether the packet before it, in the order of sending, is not lost */
};

struct trimtab_cc_marked {
	uint64_t now_ns;
	uint64_t newest_sent_ns;       /* when the newest packet that the acknowledgement covers was sent */
	uint64_t inflight_bytes;       /* after the acknowledgement */
	uint64_t prior_inflight_bytes; /* before it */
};

/* Begins a connection with a rule-based algorithm: "cubic", "copa:delta=0.1", … as
 * `trimtab cc list` has them. Gives 0, or -1 where there is no such algorithm or the
 * configuration cannot be; then the struct must not be used. */
int trimtab_cc_create(struct trimtab_cc *cc, const char *algorithm, const struct trimtab_cc_config *config);

/* Begins a connection with the decision trees of a model file, whose bytes must stay where and as they are while the
 * connection is used. They are checked: -1 where they are no sound model. `safe` is the algorithm
 * that takes over for good when the path is unlike training or the window runs away; NULL for none.
 */
int trimtab_cc_create_muses(struct trimtab_cc *cc, const void *model, size_t model_bytes, const char *safe,
			    const struct trimtab_cc_config *config);

/* The handshake is done and has measured the path's round-trip time; nothing was sent yet. */
void trimtab_cc_on_established(struct trimtab_cc *cc, uint64_t rtt_ns);
/* A packet left; inflight_bytes includes it. app_limited: whether the application, not the
 * window, limits the sender. */
void trimtab_cc_on_sent(struct trimtab_cc *cc, uint64_t now_ns, uint64_t bytes, uint64_t inflight_bytes,
			int app_limited);
void trimtab_cc_on_ack(struct trimtab_cc *cc, const struct trimtab_cc_ack *ack);
/* Each packet of a loss, before trimtab_cc_on_loss for all that are declared lost together. BBRv3
 * reacts to single packets; where they are not told, it knows of losses by the rate samples only. */
void trimtab_cc_on_packet_lost(struct trimtab_cc *cc, const struct trimtab_cc_lost_packet *lost);
void trimtab_cc_on_loss(struct trimtab_cc *cc, const struct trimtab_cc_loss *loss);
/* All packets of the last episode of losses arrived after all: what they cost is given back (RFC 9438,
 * section 4.9). */
void trimtab_cc_on_spurious_loss(struct trimtab_cc *cc, uint64_t now_ns);
/* Packets left flight that neither arrived nor were lost, such as those of keys that were discarded
 * (RFC 9002, section 6.4). */
void trimtab_cc_on_discarded(struct trimtab_cc *cc, uint64_t now_ns, uint64_t bytes, uint64_t inflight_bytes);
/* An acknowledgement says that the path marked packets (ECN): in QUIC the peer's count of CE went up
 * (RFC 9000, section 13.4), in TCP the first echo in a round trip. By how many does not matter.
 * Call it after trimtab_cc_on_loss and before trimtab_cc_on_ack for that acknowledgement. */
void trimtab_cc_on_marked(struct trimtab_cc *cc, const struct trimtab_cc_marked *marked);
/* TCP's retransmission timeout or QUIC's persistent congestion: everything in flight was written off. */
void trimtab_cc_on_timeout(struct trimtab_cc *cc, uint64_t now_ns, uint64_t prior_inflight_bytes,
			   uint64_t inflight_bytes);

/* Packets have another size from now on, which path MTU discovery found (RFC 8899). The window stays
 * as it is in bytes, but is at least the new minimum. Gives 0, or -1 where the configuration cannot be;
 * then nothing changes. The seed is not read.
 *
 * A connection that moves to another path begins anew there (RFC 9000, section 9.4): create it again. */
int trimtab_cc_on_mtu(struct trimtab_cc *cc, const struct trimtab_cc_config *config);

/* Another algorithm goes on, or the same with other knobs: "copa:delta=0.1" as for
 * trimtab_cc_create. Knobs that the text does not name have their default. Where the algorithm
 * stays, its knobs turn and nothing else changes. Another one takes over with what is known of the
 * path. Gives 0, or -1 where there is no such algorithm; then nothing changes. */
int trimtab_cc_change(struct trimtab_cc *cc, uint64_t now_ns, const char *algorithm);

/* The value of a knob of the algorithm that runs, such as "delta" of Copa, in the knob's unit; not a
 * number where it has none of that name. */
double trimtab_cc_knob(struct trimtab_cc *cc, const char *name);

/* When the algorithm wants trimtab_cc_on_timer to be called; TRIMTAB_CC_NEVER for never. */
uint64_t trimtab_cc_next_timer(struct trimtab_cc *cc);
void trimtab_cc_on_timer(struct trimtab_cc *cc, uint64_t now_ns);

/* The most bytes that may be in flight now. */
uint64_t trimtab_cc_window(struct trimtab_cc *cc);
/* Bytes per second to pace at; 0 where the algorithm leaves it to the transport (RFC 9002, section 7.7). */
uint64_t trimtab_cc_pacing_rate(struct trimtab_cc *cc);

/* Where in its life the algorithm is: 0 search for the path's capacity (slow start, Startup),
 * 1 emptying the queue that it left, 2 steady, 3 window reduction after a loss, 4 below capacity to
 * measure the minimum round-trip time. */
int trimtab_cc_phase(struct trimtab_cc *cc);

/* The number of the tree that decides now; -1 where none does. A new connection over the same
 * path should start with the one that the last ended with. A tree that is not there changes
 * nothing. */
int trimtab_cc_tree(struct trimtab_cc *cc);
void trimtab_cc_start_with(struct trimtab_cc *cc, int tree);

#ifdef __cplusplus
}
#endif

#endif
