/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What a connection knows of its path, whichever algorithm runs: crates/cc/src/migrate/path.rs. */
#ifndef TRIMTAB_PATH_H
#define TRIMTAB_PATH_H

#include "copa_state.h"

/* How long a round-trip time or a delivery rate counts. What is older stays until something newer is known. */
#define TT_PATH_WINDOW_US 10000000
/* And a delivery rate for so many round trips at least. */
#define TT_PATH_ROUNDS 10
/* A recent delivery rate is of so many round trips at least, and of twice as many at most. */
#define TT_PATH_RECENT_ROUNDS 5
/* Rates are kept in this many bytes per second, so that 2 Tbit/s fit the filter's 32 bits. */
#define TT_PATH_RATE_SHIFT 6
#define TT_PATH_RATE_MAX 0xffffffffULL
/* The product of a bandwidth in bytes per second with a round-trip time fits 64 bits. */
#define TT_BANDWIDTH_MAX (1ULL << 37)
/* Filters know times modulo 2^32 us: after half of that they start afresh. Their longest window is a minute. */
#define TT_FILTER_GAP_US (1ULL << 31)

struct tt_path {
	u64 seen_us; /* when the last sample came */
	bool converged; /* whether any algorithm of this connection ever had, or since tt_path_taken_over() */
	/* Since the algorithm that runs began, and it cuts its window at losses; or it leaves the path idle. */
	bool lost_without_queue;
	u8 rest[2];
	u32 least_rtt_us; /* of the connection's life; 0: none */
	u64 recent_since_us;
	u32 recent[2]; /* the highest delivery rates of the span before and of this one */
	u64 tally_since_us;
	u32 lost[2]; /* packets of the last round trip and of this one */
	u32 delivered[2];
	struct tt_filter rtt_min;
	struct tt_filter rate_max;
	struct tt_ring rtt_min_ring;
	struct tt_ring rate_max_ring;
};

/* The highest delivery rate of the last five to ten round trips, as the filters keep it; 0 before any sample. */
TT_INLINE u32 tt_path_recent_kept(const struct tt_path *path)
{
	return tt_max(path->recent[0], path->recent[1]);
}

/* A sample that the application did not limit, or that beats the others (`Recent` in path.rs). */
TT_INLINE void tt_path_update_recent(struct tt_path *path, u64 now_us, u64 srtt_us, u32 rate)
{
	if (now_us - path->recent_since_us > srtt_us * TT_PATH_RECENT_ROUNDS) {
		path->recent[0] = path->recent[1];
		path->recent[1] = 0;
		path->recent_since_us = now_us;
	}
	path->recent[1] = tt_max(path->recent[1], rate);
}

/* Takes what was seen: a round-trip time, 0 for none, and a delivery rate, 0 for none. */
TT_INLINE void tt_path_on_sample(struct tt_path *path, u64 now_us, u64 srtt_us, u64 rtt_us, u64 rate_bytes_per_s,
				 bool app_limited)
{
	u64 least_us = tt_min(tt_max(rtt_us, TT_RTT_MIN_US), TT_RTT_MAX_US);
	u64 rate = tt_min(tt_max(rate_bytes_per_s >> TT_PATH_RATE_SHIFT, 1), TT_PATH_RATE_MAX);
	u64 window_us = tt_max(TT_PATH_WINDOW_US, tt_min(srtt_us, TT_RTT_MAX_US) * TT_PATH_ROUNDS);

	if (!rtt_us && !rate_bytes_per_s)
		return;
	if (now_us - path->seen_us > TT_FILTER_GAP_US) {
		tt_filter_clear(&path->rtt_min);
		tt_filter_clear(&path->rate_max);
	}
	path->seen_us = now_us;
	path->rate_max.greatest = true;
	if (rtt_us && (!path->least_rtt_us || least_us < path->least_rtt_us))
		path->least_rtt_us = least_us;
	if (rtt_us)
		tt_filter_update(&path->rtt_min, &path->rtt_min_ring, now_us, TT_PATH_WINDOW_US, least_us);
	/* A slow application says little about the path, unless it beats the estimate. */
	if (rate_bytes_per_s && (!app_limited || rate >= tt_path_recent_kept(path)))
		tt_path_update_recent(path, now_us, tt_min(srtt_us, TT_RTT_MAX_US), rate);
	if (rate_bytes_per_s && (!app_limited || rate >= tt_filter_get(&path->rate_max)))
		tt_filter_update(&path->rate_max, &path->rate_max_ring, now_us, window_us, rate);
}

/* So many packets were lost and delivered since the last time (`PathView::tally`, by the clock). */
TT_INLINE void tt_path_tally(struct tt_path *path, u64 now_us, u64 srtt_us, u32 lost, u32 delivered)
{
	if (now_us - path->tally_since_us > srtt_us) {
		path->lost[0] = path->lost[1];
		path->delivered[0] = path->delivered[1];
		path->lost[1] = path->delivered[1] = 0;
		path->tally_since_us = now_us;
	}
	path->lost[1] += lost;
	path->delivered[1] += delivered;
}

/* The share of the last two round trips' packets that was lost (`PathView::loss`). */
TT_INLINE u32 tt_path_loss_q16(const struct tt_path *path)
{
	u64 lost = (u64)path->lost[0] + path->lost[1];

	return (lost << 16) / tt_max(lost + path->delivered[0] + path->delivered[1], 1);
}

/* A window is cut for losses: whether there is no queue, so that it says nothing of the path
 * (`PathView::on_congestion`). */
TT_INLINE void tt_path_on_cut(struct tt_path *path, u64 srtt_us)
{
	u64 least_us = tt_filter_get(&path->rtt_min);

	if (least_us)
		path->lost_without_queue = srtt_us * 8 < least_us * 9;
}

/* A window is cut for congestion marks: a queue wrote them, wherever it is (`PathView::on_marked`). */
TT_INLINE void tt_path_on_marked(struct tt_path *path) { path->lost_without_queue = false; }

/* The bandwidth in bytes per second; 0 before any sample. */
TT_INLINE u64 tt_path_bandwidth(const struct tt_path *path)
{
	return tt_filter_get(&path->rate_max) << TT_PATH_RATE_SHIFT;
}

/* The same of the last five to ten round trips (`PathView::recent_bandwidth`). */
TT_INLINE u64 tt_path_recent_bandwidth(const struct tt_path *path)
{
	return (u64)tt_path_recent_kept(path) << TT_PATH_RATE_SHIFT;
}

/* Whether the minimum of the last 10 s is the path's, without a queue (`PathView::saw_empty_queue`). */
TT_INLINE bool tt_path_saw_empty_queue(const struct tt_path *path)
{
	u64 min_us = tt_filter_get(&path->rtt_min);

	return min_us && min_us * 8 <= (u64)path->least_rtt_us * 9;
}

#endif
