//! From a slot's running sums to the reports of the narrow waist.

use trimtab_qoe::Factors;
use trimtab_steer::{Report, Responses};
use trimtab_units::Time;

use crate::flow::{Flow, Sample};

/// Makes a [`Report`] of each interval of one connection.
#[derive(Clone, Debug)]
pub struct Reporter {
    started_at: Time,
    last: Sample,
}

impl Reporter {
    /// Starts the first interval; `None` when the connection has ended.
    pub fn new(flow: &Flow, now: Time) -> Option<Self> {
        Some(Self { started_at: now, last: flow.start_interval()? })
    }

    /// Ends the interval: a report of it, and the next one begins. `now` is the time on `CLOCK_MONOTONIC`
    /// ([`now`](crate::now)), `factors` what is known of the application. `None` when the connection has ended.
    pub fn report(&mut self, flow: &Flow, now: Time, factors: Factors) -> Option<Report> {
        let sample = flow.start_interval()?;
        let interval = now.since(self.started_at);
        let last = core::mem::replace(&mut self.last, sample);
        self.started_at = now;
        let (totals, before) = (sample.totals, last.totals);
        let samples = totals.rtt_count.saturating_sub(before.rtt_count);
        // The kernel counts the time before an acknowledgement when that comes, so it may be of the interval before.
        let busy = totals.busy - before.busy;
        Some(Report {
            now,
            interval,
            algorithm: flow.algorithm().name(),
            sent: totals.sent - before.sent,
            acked: totals.acked - before.acked,
            lost: totals.lost - before.lost,
            busy: busy.min(interval),
            rtt_samples: samples,
            rtt_variance: 0.0,
            rtt_mean: (samples > 0).then(|| (totals.rtt_sum - before.rtt_sum) / samples),
            rtt_min: sample.extremes.rtt.map(|(least, _)| least),
            rtt_max: sample.extremes.rtt.map(|(_, most)| most),
            rtts: None,
            srtt: sample.srtt,
            min_rtt: sample.min_rtt.unwrap_or(sample.srtt),
            delivery_rate: sample.extremes.delivery_rate,
            delivery_rate_any: sample.extremes.delivery_rate,
            window: sample.window,
            inflight: sample.inflight,
            mss: sample.mss,
            phase: sample.phase,
            knobs: flow.knobs(),
            // Those of another algorithm's time are none.
            states: sample.states.map(|now| now.since(&last.states.unwrap_or(now))),
            responses: Responses { unsent: sample.unsent, ..Responses::default() },
            factors,
        })
    }

    /// The sample at which the current interval began.
    pub fn last(&self) -> &Sample {
        &self.last
    }
}
