/*
 * trimtab_plugin.h: a congestion control algorithm of your own, for `trimtab compare --cc
 * plugin:FILE`.
 *
 * Build a shared library that exports `trimtab_plugin`, e.g.
 *
 *     cc -shared -fPIC -O2 -I DIRECTORY_OF_THIS_FILE -o mine.so mine.c
 *
 * and compare it: `trimtab compare --app bulk --cc plugin:./mine.so --cc cubic`.
 *
 * Times are in nanoseconds of the sender's clock, sizes in bytes, rates in bits per second. The
 * functions of one connection are called by one thread at a time, but not always by the same one.
 * Connections share no state unless the library shares it: comparisons run several at once.
 */
#ifndef TRIMTAB_PLUGIN_H
#define TRIMTAB_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library of another version is refused. */
#define TRIMTAB_PLUGIN_ABI 1u

/* For `next_timer`: the algorithm waits for no timer. */
#define TRIMTAB_NEVER UINT64_MAX

/* The limits of a connection. */
struct trimtab_config {
	uint64_t mss_bytes;            /* A full-size packet, as it counts against the window. */
	uint64_t initial_window_bytes; /* The window before anything is known of the path. */
	uint64_t min_window_bytes;     /* Smaller windows are raised to this. */
	uint64_t seed;                 /* For the algorithm's own randomness. */
};

/* New data was acknowledged. */
struct trimtab_ack {
	uint64_t now_ns;
	uint64_t acked_bytes;          /* Newly acknowledged. */
	uint64_t rtt_ns;               /* Of the newest packet; 0: not known. */
	uint64_t srtt_ns;              /* Smoothed round-trip time (RFC 6298). */
	uint64_t min_rtt_ns;           /* Lowest round-trip time since the connection began. */
	uint64_t inflight_bytes;       /* In flight after it. */
	uint64_t prior_inflight_bytes; /* In flight before it. */
	uint64_t delivered_bytes;      /* Delivered since the connection began, these included. */
	uint64_t newest_sent_ns;       /* When the newest packet that it acknowledges was sent. */
	double delivery_rate_bps;      /* Sample of the delivery rate; 0: none. */
	uint8_t rate_app_limited;      /* The sample is of a sender that the application limited. */
	uint8_t cwnd_limited;          /* The window limited the sender in the last round trip. */
	uint8_t in_recovery;           /* The transport repairs losses. */
	uint8_t reserved[5];
};

/* Packets were declared lost, by one acknowledgement or one timer. */
struct trimtab_loss {
	uint64_t now_ns;
	uint64_t lost_bytes;           /* 0: the path marked packets (ECN) instead of dropping them. */
	uint64_t newest_sent_ns;       /* When the newest of them was sent. */
	uint64_t inflight_bytes;       /* In flight after it. */
	uint64_t prior_inflight_bytes; /* In flight before it. */
};

/* The retransmission timer expired: nothing that was learnt of the path can be trusted. */
struct trimtab_timeout {
	uint64_t now_ns;
	uint64_t prior_inflight_bytes; /* In flight when it expired. */
	uint64_t inflight_bytes;       /* In flight after all was written off. */
};

/* A packet left. */
struct trimtab_sent {
	uint64_t now_ns;
	uint64_t bytes;
	uint64_t inflight_bytes;       /* In flight, this packet included. */
	uint8_t app_limited;           /* The application, not the window, limits the sender. */
	uint8_t reserved[7];
};

/* The sender had nothing in flight for longer than the retransmission timeout, and sends again. */
struct trimtab_idle {
	uint64_t now_ns;
	uint64_t idle_ns;              /* For how long nothing was sent. */
	uint64_t rto_ns;               /* The retransmission timeout. */
};

/* A knob, set as in `plugin:./mine.so:gain=2`. */
struct trimtab_knob {
	const char *name;
	const char *unit;              /* "1" for a plain number. */
	const char *about;             /* What turning it trades, in one line. */
	double min;
	double max;
	double default_value;          /* What an instance begins with. */
};

/* For `flags`: the window is also the algorithm's while losses are repaired. Otherwise a TCP
 * transport applies Proportional Rate Reduction (RFC 6937); QUIC never does. */
#define TRIMTAB_MANAGES_RECOVERY 1u

/*
 * The algorithm. Pointers that are marked "optional" may be NULL; strings and tables must stay
 * valid as long as the library is loaded. `self` is what `create` or `clone` returned.
 */
struct trimtab_plugin {
	uint32_t abi;                  /* TRIMTAB_PLUGIN_ABI. */
	uint32_t size;                 /* sizeof(struct trimtab_plugin). */
	uint32_t flags;
	uint32_t knob_count;
	const char *name;              /* Optional. */
	const char *about;             /* Optional: what it is, in one sentence. */
	const struct trimtab_knob *knobs; /* Optional where knob_count is 0. */

	/* An instance for a new connection; NULL reports that there is none. */
	void *(*create)(const struct trimtab_config *config);
	void (*destroy)(void *self);
	/* Optional: a copy that goes on as `self` would. Bounds that try alternatives need it. */
	void *(*clone)(const void *self);

	void (*on_ack)(void *self, const struct trimtab_ack *ack);
	void (*on_loss)(void *self, const struct trimtab_loss *loss);
	void (*on_timeout)(void *self, const struct trimtab_timeout *timeout);
	void (*on_sent)(void *self, const struct trimtab_sent *sent);   /* Optional. */
	void (*on_idle)(void *self, const struct trimtab_idle *idle);   /* Optional. */
	/* Optional without next_timer. */
	void (*on_timer)(void *self, uint64_t now_ns);

	/* The most bytes that may be in flight. It is asked after every event. */
	double (*window)(const void *self);
	/* Optional: the rate to pace packets at in bit/s; 0 leaves pacing to the transport. */
	double (*pacing_rate)(const void *self);
	/* Optional: when on_timer is to be called, or TRIMTAB_NEVER. */
	uint64_t (*next_timer)(const void *self);

	/* Optional without knobs. The value is within the knob's range. */
	void (*set_knob)(void *self, uint32_t index, double value);
};

/* The one function that the library exports. */
const struct trimtab_plugin *trimtab_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
