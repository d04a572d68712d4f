//! The two messages of the narrow waist, and the collector that fills the first.

use alloc::boxed::Box;

use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Counts;
use trimtab_cc::{Ack, Loss, Phase, Sent, Spec};
use trimtab_qoe::{Factors, Model, Samples, Sketch};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{Insight, KnobValues, Needs, Reason};

/// What a datapath measured on one connection since the report before.
#[derive(Clone, Debug)]
pub struct Report {
    /// When the interval ended.
    pub now: Time,
    /// How long it was.
    pub interval: Duration,
    /// The algorithm that runs at its end, by its name in [`trimtab_cc::ALGORITHMS`]. Empty where
    /// none does: somebody outside sets window and rate.
    pub algorithm: &'static str,
    /// Bytes sent in it, retransmissions included.
    pub sent: Bytes,
    /// Bytes acknowledged in it.
    pub acked: Bytes,
    /// Bytes declared lost in it.
    pub lost: Bytes,
    /// How much of the interval the sender had data in flight that the application did not limit.
    pub busy: Duration,
    /// How many round-trip samples there were in it.
    pub rtt_samples: u64,
    /// Their variance about their mean, in s²; 0 where the datapath does not measure it.
    pub rtt_variance: f64,
    /// Mean of the round-trip samples in it; `None` without samples.
    pub rtt_mean: Option<Duration>,
    /// Lowest round-trip sample in it.
    pub rtt_min: Option<Duration>,
    /// Highest round-trip sample in it.
    pub rtt_max: Option<Duration>,
    /// All of them, in µs; `None` where nobody needs them ([`Needs::samples`]), and from a datapath
    /// that does not see each of them.
    pub rtts: Option<Box<Sketch>>,
    /// Smoothed round-trip time at its end.
    pub srtt: Duration,
    /// Lowest round-trip time since the connection began.
    pub min_rtt: Duration,
    /// Highest delivery-rate sample in it, application-limited samples left out; `None` without.
    pub delivery_rate: Option<Rate>,
    /// The same with the application-limited ones, which are no more than the path can carry.
    pub delivery_rate_any: Option<Rate>,
    /// The congestion window at its end.
    pub window: Bytes,
    /// Bytes in flight at its end.
    pub inflight: Bytes,
    /// Bytes of a full-size packet.
    pub mss: Bytes,
    /// The phase of the algorithm at its end.
    pub phase: Phase,
    /// The values of its knobs that are in force at its end.
    pub knobs: KnobValues,
    /// Where the states of Muses lay in it, for the choice of its tree
    /// ([`Distill`](crate::distill::Distill)). `None` while another algorithm runs, and from a
    /// datapath whose Muses chooses by itself.
    pub states: Option<Counts>,
    /// What became of the application's responses.
    pub responses: Responses,
    /// The application's live factors at its end.
    pub factors: Factors,
}

impl Report {
    /// Adds what it says of the distributions that a QoE model may read (Mortise Eq. 4): the
    /// throughput and the loss ratio of its interval, each as one sample, and the round-trip times.
    ///
    /// Without [`Report::rtts`] these are rebuilt, with the right number, mean and ends: one is the
    /// least, one the largest, and the others are the mean of the rest.
    pub fn add_to(&self, samples: &mut Samples) {
        let all = self.acked + self.lost;
        if !all.is_zero() && !self.interval.is_zero() {
            samples.add_throughput(self.acked / self.interval);
            samples.add_loss(self.lost.ratio(all));
        }
        match (&self.rtts, self.rtt_min, self.rtt_mean, self.rtt_max) {
            (Some(rtts), ..) => samples.add_delays(rtts),
            (None, Some(least), Some(mean), Some(most)) => {
                let count = u32::try_from(self.rtt_samples).unwrap_or(u32::MAX);
                if count < 3 {
                    return samples.add_delay(mean, count.max(1));
                }
                let rest = (mean * u64::from(count) - least - most) / u64::from(count - 2);
                samples.add_delay(least, 1);
                samples.add_delay(rest.max(least).min(most), count - 2);
                samples.add_delay(most, 1);
            }
            _ => {}
        }
    }
}

/// What became of the application's responses in an interval. All 0 where the datapath does not see them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Responses {
    /// Bytes that wait to be sent for the first time, at the end of the interval.
    pub unsent: Bytes,
    /// How many responses were sent to their last byte.
    pub sent: u64,
    /// How long those had waited since the application gave them, on average.
    pub wait_mean: Duration,
    /// How many arrived whole: their last byte was acknowledged.
    pub arrived: u64,
    /// Mean of their size per time since the application gave them.
    pub goodput_mean: Rate,
    /// Their mean size.
    pub size_mean: Bytes,
}

/// What a steering asks a datapath to do.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// Turn knobs of the running algorithm, all at once.
    Set(KnobValues),
    /// Let another algorithm take over. Only from a steering that declares it
    /// ([`Steer::needs`]).
    Switch {
        /// The algorithm and its knobs.
        to: Spec,
        /// What goes over.
        how: Switch,
    },
}

/// Anything that steers one connection. What hosts need to show of it has a default, so that a host
/// never asks which steering it has.
pub trait Steer {
    /// How long to collect before the next report, given the smoothed round-trip time.
    fn interval(&self, srtt: Duration) -> Duration;

    /// What it needs of the datapath. Default: reports and knobs, which every datapath has.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Takes a report and answers with at most one action.
    fn on_report(&mut self, report: &Report) -> Option<Action>;

    /// Why it asked for its last action, which was this one. `None`: because of the rule that has it.
    fn reason(&self, _action: &Action) -> Option<Reason> {
        None
    }

    /// What is to run where it has no answer, and where its connection suffers from it. Default: what
    /// the connection ran before.
    fn fallback(&self) -> Option<Spec> {
        None
    }

    /// What it lets its host see.
    fn insight(&self) -> Insight {
        Insight::default()
    }

    /// The application names another QoE model while the connection runs. A steering that follows none
    /// takes no notice.
    fn on_model(&mut self, _model: &Model) {}

    /// What its next connection on the same path is to begin with, by what this one saw. Default: it
    /// has nothing to say.
    fn suited(&self) -> Option<Spec> {
        None
    }

    /// A new connection begins with what an earlier one on its path [found](Self::suited). A
    /// steering that never finds anything takes no notice.
    fn begin_with(&mut self, _spec: Spec) {}
}

/// Collects the events of one connection into reports. Cheap enough for every acknowledgement.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    started_at: Time,
    sent: Bytes,
    acked: Bytes,
    lost: Bytes,
    busy: Duration,
    rtt_sum: Duration,
    rtt_count: u64,
    /// Sum of the squares, in s².
    rtt_squares: f64,
    rtt_min: Option<Duration>,
    rtt_max: Duration,
    /// In µs; `None` where nobody needs them.
    rtts: Option<Box<Sketch>>,
    delivery_rate: Option<Rate>,
    delivery_rate_any: Option<Rate>,
    last_ack_at: Option<Time>,
    responses: Tally,
}

/// Sums over responses.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: u64,
    wait: Duration,
    arrived: u64,
    /// Bit/s.
    goodput: f64,
    size: Bytes,
}

/// What the datapath knows at the end of an interval besides what was collected.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The algorithm that runs, by its name in [`trimtab_cc::ALGORITHMS`].
    pub algorithm: &'static str,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Lowest round-trip time since the connection began.
    pub min_rtt: Duration,
    /// The congestion window.
    pub window: Bytes,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// Bytes of a full-size packet.
    pub mss: Bytes,
    /// The phase of the algorithm.
    pub phase: Phase,
    /// Response bytes that wait to be sent for the first time.
    pub unsent: Bytes,
    /// The values of the algorithm's knobs.
    pub knobs: KnobValues,
    /// The application's live factors.
    pub factors: Factors,
}

impl Collector {
    /// Starts collecting.
    pub fn new(now: Time) -> Self {
        Self { started_at: now, ..Self::default() }
    }

    /// Starts collecting for a steering that needs this.
    pub fn for_needs(now: Time, needs: Needs) -> Self {
        Self { rtts: needs.samples.then(Box::default), ..Self::new(now) }
    }

    /// A packet left.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.sent += sent.bytes;
    }

    /// Data was acknowledged.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.acked;
        let app_limited = ack.rate.is_none_or(|r| r.app_limited);
        // The time between two acknowledgements counts as busy when the data that the second one
        // acknowledges was not held back by the application.
        if !app_limited {
            self.busy += ack.now.since(self.last_ack_at.unwrap_or(self.started_at));
        }
        self.last_ack_at = Some(ack.now);
        if let Some(rtt) = ack.rtt {
            self.rtt_sum += rtt;
            self.rtt_count += 1;
            let seconds = rtt.as_secs_f64();
            self.rtt_squares += seconds * seconds;
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |m| m.min(rtt)));
            self.rtt_max = self.rtt_max.max(rtt);
            if let Some(rtts) = &mut self.rtts {
                rtts.record(rtt.as_micros());
            }
        }
        if let Some(sample) = ack.rate {
            let rate = Some(sample.rate());
            self.delivery_rate_any = self.delivery_rate_any.max(rate);
            if !sample.app_limited {
                self.delivery_rate = self.delivery_rate.max(rate);
            }
        }
    }

    /// The last byte of a response left for the first time, so long after the application gave the response.
    pub fn on_response_sent(&mut self, wait: Duration) {
        self.responses.sent += 1;
        self.responses.wait += wait;
    }

    /// A response arrived whole, so long after the application gave it.
    pub fn on_response_arrived(&mut self, size: Bytes, duration: Duration) {
        self.responses.arrived += 1;
        self.responses.size += size;
        self.responses.goodput += (size / duration.max(Duration::from_nanos(1))).bits_per_sec();
    }

    /// Packets were declared lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.lost;
    }

    /// Ends the interval: a report of it, and the next one begins.
    pub fn report(&mut self, now: Time, end: Snapshot) -> Report {
        let interval = now.since(self.started_at);
        let report = Report {
            now,
            interval,
            algorithm: end.algorithm,
            sent: self.sent,
            acked: self.acked,
            lost: self.lost,
            busy: self.busy.min(interval),
            rtt_samples: self.rtt_count,
            rtt_variance: self.rtt_variance(),
            rtt_mean: (self.rtt_count > 0).then(|| self.rtt_sum / self.rtt_count),
            rtt_min: self.rtt_min,
            rtt_max: self.rtt_min.map(|_| self.rtt_max),
            rtts: self.rtts.take(),
            srtt: end.srtt,
            min_rtt: end.min_rtt,
            delivery_rate: self.delivery_rate,
            delivery_rate_any: self.delivery_rate_any,
            window: end.window,
            inflight: end.inflight,
            mss: end.mss,
            phase: end.phase,
            knobs: end.knobs,
            states: None,
            responses: self.responses.mean(end.unsent),
            factors: end.factors,
        };
        *self = Self {
            last_ack_at: self.last_ack_at.map(|_| now),
            rtts: report.rtts.as_ref().map(|_| Box::default()),
            ..Self::new(now)
        };
        report
    }

    fn rtt_variance(&self) -> f64 {
        if self.rtt_count == 0 {
            return 0.0;
        }
        let n = self.rtt_count as f64;
        let mean = self.rtt_sum.as_secs_f64() / n;
        (self.rtt_squares / n - mean * mean).max(0.0)
    }
}

impl Tally {
    fn mean(&self, unsent: Bytes) -> Responses {
        let arrived = self.arrived.max(1);
        Responses {
            unsent,
            sent: self.sent,
            wait_mean: self.wait / self.sent.max(1),
            arrived: self.arrived,
            goodput_mean: Rate::from_bytes_per_sec_f64(self.goodput / 8.0 / arrived as f64),
            size_mean: self.size / arrived,
        }
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
