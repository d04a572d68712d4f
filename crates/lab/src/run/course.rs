//! The course of a run, the same on every datapath: who takes part, over which link, and what is noted
//! bin by bin.

use trimtab_apps::{App, Outcome};
use trimtab_net::{Capacity, JitterConfig, LinkConfig, LossConfig, MarkConfig};
use trimtab_steer::scheme::Scheme;
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::result::Series;
use crate::run::datapath::{Run, Sample, Totals};
use crate::run::links;
use crate::run::prepare::{Prepared, PreparedApp};
use crate::run::record::{FlowMeasurement, Measurement};
use crate::scenario::{AppKind, Competitor, Job, Turn};

/// Length of a bin of the series.
pub const BIN: Duration = Duration::from_millis(100);
/// How long requests that are outstanding at the end may take to finish, so that slow schemes do not
/// look better for losing their slowest requests.
pub const GRACE: Duration = Duration::from_secs(60);

/// A flow that takes part in a run.
#[derive(Debug)]
pub struct Member<'a> {
    /// What governs it.
    pub scheme: &'a Scheme,
    /// Its client, which has done nothing yet.
    pub app: App,
    /// The application whose users it is steered for: that of the run, or of a competitor's model.
    pub goal: &'a PreparedApp,
    /// When its client starts. One that ends before the run has an application that ends.
    pub start: Duration,
}

/// The flows of a run: those of the scheme, then its competitors'.
pub fn members<'a>(prepared: &'a Prepared, job: &Job) -> Vec<Member<'a>> {
    let scenario = &prepared.plan.scenario;
    let app = &prepared.apps[job.app];
    let seed = |number: u64| job.seed + (number << 20);
    let client = |kind: AppKind, number: u64| app.client(kind, scenario.duration, seed(number));
    let mut members: Vec<Member<'a>> = (0..u64::from(job.cell.flows))
        .map(|i| Member {
            scheme: &scenario.cc[job.scheme],
            app: client(app.settings.kind, i),
            goal: app,
            start: Duration::from_nanos(scenario.stagger.as_nanos().saturating_mul(i)),
        })
        .collect();
    for competitor in prepared.plan.competitors(job) {
        let goal = prepared.goal(competitor, app);
        for Turn { start, length } in competitor.turns(scenario.duration) {
            for _ in 0..competitor.flows {
                let number = members.len() as u64;
                let app = match length {
                    None => client(competitor.app, number),
                    Some(length) => app.client_until(competitor.app, length, seed(number)),
                };
                members.push(Member { scheme: &competitor.cc, app, goal, start });
            }
        }
    }
    members
}

/// The capacity of a run's bottleneck.
pub fn capacity(prepared: &Prepared, job: &Job) -> Capacity {
    links::at_seed(&prepared.plan.links[job.trace], job.seed)
}

/// The bottleneck of a run: this capacity, with the queue, marks and random loss of the cell.
pub fn bottleneck(prepared: &Prepared, job: &Job, capacity: Capacity) -> LinkConfig {
    let loss = job.cell.loss.get();
    let rate = capacity.mean_rate();
    let mark = prepared.plan.scenario.mark;
    LinkConfig::new(capacity)
        .mark(mark.map_or(MarkConfig::None, |mark| mark.on(rate, job.cell.rtt.longest())))
        .queue(job.cell.queue(rate))
        .loss(if loss > 0.0 { LossConfig::Independent(loss) } else { LossConfig::None })
}

/// How much each packet of a run is late on its way.
pub fn jitter(job: &Job) -> JitterConfig {
    match job.cell.jitter {
        Duration::ZERO => JitterConfig::None,
        max => JitterConfig::Uniform { max },
    }
}

/// How long the link takes from `now` for `bytes`; at most ten seconds.
pub fn drain_time(capacity: &Capacity, now: Time, bytes: Bytes) -> Duration {
    let (mut lo, mut hi) = (Duration::ZERO, Duration::from_secs(10));
    if bytes.is_zero() {
        return lo;
    }
    // To a tenth of a millisecond.
    for _ in 0..17 {
        let mid = Duration::from_nanos((lo.as_nanos() + hi.as_nanos()) / 2);
        if capacity.bytes_between(now, now + mid) >= bytes { hi = mid } else { lo = mid }
    }
    hi
}

/// A run with what was noted of it so far. Where the run is `Clone`, a copy goes on as the original
/// would.
#[derive(Clone, Debug)]
pub struct Course<'a, R> {
    /// The run.
    pub run: R,
    prepared: &'a Prepared,
    capacity: Capacity,
    own_flows: usize,
    all_flows: usize,
    now: Time,
    /// What was delivered when the warmup ended.
    from: Option<Mark>,
    /// The same at the end of the run, before outstanding requests were allowed to finish.
    to: Option<Mark>,
    series: Series,
    delivered_before: Bytes,
}

/// What was delivered by a point in time.
#[derive(Clone, Debug)]
struct Mark {
    at: Time,
    goodput: Vec<Bytes>,
    carried: Bytes,
}

impl<'a, R: Run> Course<'a, R> {
    /// A run at its beginning, of as many flows as [`members`] gave.
    pub fn new(prepared: &'a Prepared, job: &Job, run: R) -> Self {
        let own_flows = job.cell.flows as usize;
        let competitors = prepared.plan.competitors(job);
        let duration = prepared.plan.scenario.duration;
        let connections = |c: &Competitor| c.flows as usize * c.turns(duration).len();
        let competing: usize = competitors.iter().map(connections).sum();
        Self {
            run,
            prepared,
            capacity: capacity(prepared, job),
            own_flows,
            all_flows: own_flows + competing,
            now: Time::ZERO,
            from: None,
            to: None,
            series: Series { bin_ms: BIN.as_millis_f64(), ..Series::default() },
            delivered_before: Bytes::ZERO,
        }
    }

    /// How many flows the scheme has. Those of competitors come after them.
    pub fn own_flows(&self) -> usize {
        self.own_flows
    }

    /// The end of the run.
    pub fn end(&self) -> Time {
        Time::ZERO + self.prepared.plan.scenario.duration
    }

    /// Goes on until `until`, bin by bin.
    ///
    /// # Errors
    /// As [`Run::advance`].
    pub fn advance(&mut self, until: Time) -> Result<(), R::Error> {
        let warm = Time::ZERO + self.prepared.plan.scenario.warmup;
        while self.now < until {
            if self.from.is_none() && self.now >= warm {
                self.from = Some(self.mark());
            }
            let next = until.min(self.now + BIN);
            self.run.advance(next)?;
            self.note(self.now, next);
            self.now = next;
        }
        if until >= self.end() && self.to.is_none() {
            self.to = Some(self.mark());
        }
        Ok(())
    }

    /// Runs to the end, lets outstanding requests finish, and sums up.
    ///
    /// # Errors
    /// As [`Run::advance`].
    pub fn measure(mut self) -> Result<Measurement, R::Error> {
        self.advance(self.end())?;
        let last = self.end() + GRACE;
        while !self.is_answered() && self.run.now() < last {
            self.run.advance(self.run.now() + BIN)?;
        }
        Ok(self.sum_up())
    }

    /// When the last bin ended, by the plan: on a clock each bin ends a little late.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Whether no request of the scheme is outstanding.
    fn is_answered(&self) -> bool {
        let now = self.run.now();
        (0..self.own_flows).all(|flow| is_answered(&self.run.outcome(flow, now)))
    }

    fn mark(&self) -> Mark {
        Mark {
            at: self.run.now(),
            goodput: (0..self.all_flows).map(|flow| self.run.goodput(flow)).collect(),
            carried: self.run.carried(),
        }
    }

    /// Notes what happened in a bin.
    fn note(&mut self, from: Time, until: Time) {
        let span = until.since(from);
        let delivered: Bytes = (0..self.own_flows).map(|flow| self.run.goodput(flow)).sum();
        let rate = (delivered - self.delivered_before) / span;
        self.delivered_before = delivered;
        let Sample { queue_delay_ms, rtt_ms, cwnd_bytes, delta, insight } = self.run.sample();
        let s = &mut self.series;
        s.capacity_mbps.push((self.capacity.bytes_between(from, until) / span).mbps());
        s.throughput_mbps.push(rate.mbps());
        s.queue_delay_ms.push(queue_delay_ms);
        s.rtt_ms.push(rtt_ms);
        s.cwnd_bytes.push(cwnd_bytes);
        s.delta.push(delta);
        s.lambda.push(insight.preference.map_or(f64::NAN, |hints| hints.lambda));
        s.tau.push(insight.tradeoff.unwrap_or(f64::NAN));
        s.target_mbps.push(self.run.target().map_or(f64::NAN, Rate::mbps));
    }

    fn sum_up(self) -> Measurement {
        let now = self.mark();
        let from = self.from.unwrap_or_else(|| now.clone());
        let to = self.to.unwrap_or_else(|| now.clone());
        let ended = now.at;
        let of = |(flow, totals): (usize, Totals)| FlowMeasurement {
            goodput: to.goodput[flow] - from.goodput[flow],
            packets: totals.packets,
            retransmits: totals.retransmits,
            dropped: totals.dropped,
            rtt: totals.rtt,
            rtts: totals.rtts,
            queue: totals.queue,
            outcome: self.run.outcome(flow, ended),
        };
        let mut own: Vec<FlowMeasurement> =
            self.run.totals().into_iter().enumerate().map(of).collect();
        let competing = own.split_off(self.own_flows);
        let endless = matches!(own[0].outcome, Outcome::Endless);
        Measurement {
            ended,
            span: to.at.since(from.at),
            carried: to.carried - from.carried,
            capacity: self.capacity.bytes_between(from.at, to.at),
            own,
            competing,
            switches: self.run.switches(&self.series, endless),
            selections: self.run.selections(self.own_flows),
            series: self.series,
        }
    }
}

/// Whether no request is outstanding. Video, calls and bulk data end with the run.
fn is_answered(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Requests(r) => r.iter().all(|r| r.completed_at.is_some()),
        Outcome::Video(_) | Outcome::Call(_) | Outcome::Endless => true,
    }
}

#[cfg(test)]
mod tests;
