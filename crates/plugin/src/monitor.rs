//! Monitor intervals: what a policy observes of its connection, by name.
//!
//! An interval counts what happened in it: packets that left, were acknowledged, or were declared
//! lost. It does not follow the packets that were sent in it to their end, as PCC does (Dong et
//! al., NSDI 2015, §3.1): a policy that needs that keeps a history.

use trimtab_cc::{Ack, Config, Loss, Sent};
use trimtab_steer::select::Slope;
use trimtab_units::{Bytes, Duration, Rate, Time};

/// An observation's name, with its unit at the end, and what it is.
macro_rules! observations {
    ($($name:ident: $about:literal;)*) => {
        /// What a policy sees of an interval.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub(crate) struct Observation {
            $(#[doc = $about] pub(crate) $name: f64,)*
        }

        /// Every observation: its name, which ends with its unit, and what it is.
        pub const OBSERVATIONS: [(&str, &str); [$(stringify!($name)),*].len()] =
            [$((stringify!($name), $about)),*];

        impl Observation {
            /// The values, in the order of [`OBSERVATIONS`].
            pub(crate) fn values(&self) -> [f64; OBSERVATIONS.len()] {
                [$(self.$name),*]
            }
        }
    };
}

observations! {
    now_ms: "the end of the interval, by the sender's clock";
    interval_ms: "its length";
    sent_packets: "packets that left";
    acked_packets: "packets that were acknowledged";
    lost_packets: "packets that were declared lost";
    sending_mbps: "rate of what left";
    throughput_mbps: "rate of what was acknowledged";
    max_throughput_mbps: "the highest throughput of an interval so far";
    loss: "share that was lost of what was acknowledged or lost, 0 to 1";
    rtt_ms: "mean round-trip time; the smoothed one where there was no sample";
    rtt_min_ms: "lowest round-trip time of the interval, likewise";
    srtt_ms: "smoothed round-trip time";
    min_rtt_ms: "lowest round-trip time since the connection began";
    rtt_gradient: "slope of the round-trip time over the interval, in s/s";
    rtt_ratio: "mean round-trip time by the lowest since the connection began";
    send_ratio: "bytes that left by bytes that were acknowledged, a packet at least";
    inflight_packets: "in flight at the end";
    mss_bytes: "a full-size packet";
    window_packets: "the window";
    rate_mbps: "the pacing rate; the window by the smoothed round-trip time where there is none";
    cwnd_limited: "1 where the window limited the sender, else 0";
}

/// How long an interval lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Every {
    /// So many smoothed round-trip times.
    RoundTrips(f64),
    /// As long as this.
    Time(Duration),
}

impl Every {
    /// No interval is shorter.
    const MIN: Duration = Duration::from_millis(1);

    /// Reads `1rtt`, `0.5rtt` or `20ms`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(times) = text.strip_suffix("rtt") {
            let times: f64 = times.trim().parse().ok()?;
            return (times.is_finite() && times > 0.0).then_some(Self::RoundTrips(times));
        }
        let time: Duration = text.parse().ok()?;
        (time >= Self::MIN).then_some(Self::Time(time))
    }

    /// The length of an interval that begins at this round-trip time.
    fn length(self, srtt: Duration) -> Duration {
        match self {
            Self::RoundTrips(times) => srtt.mul_f64(times).max(Self::MIN),
            Self::Time(time) => time,
        }
    }
}

/// What is counted of the running interval, and what is known of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Monitor {
    every: Every,
    mss: Bytes,
    running: Option<Running>,
    srtt: Duration,
    min_rtt: Duration,
    inflight: Bytes,
    max_throughput_mbps: f64,
}

/// An interval that runs.
#[derive(Clone, Debug)]
struct Running {
    began: Time,
    ends: Time,
    sent: Bytes,
    acked: Bytes,
    lost: Bytes,
    rtts: Slope,
    rtt_min: Duration,
    cwnd_limited: bool,
}

/// The window and the rate of an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied {
    pub(crate) window: Bytes,
    pub(crate) rate: Option<Rate>,
}

impl Monitor {
    pub(crate) fn new(every: Every, config: &Config) -> Self {
        Self {
            every,
            mss: config.mss.max(Bytes::new(1)),
            running: None,
            srtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            inflight: Bytes::ZERO,
            max_throughput_mbps: 0.0,
        }
    }

    /// Packets have another size.
    pub(crate) fn resize(&mut self, mss: Bytes) {
        self.mss = mss.max(Bytes::new(1));
    }

    /// Smoothed round-trip time; zero before the first.
    pub(crate) fn srtt(&self) -> Duration {
        self.srtt
    }

    /// When the running interval ends; `None` where none runs.
    pub(crate) fn ends(&self) -> Option<Time> {
        self.running.as_ref().map(|running| running.ends)
    }

    /// The handshake measured the path's round-trip time.
    pub(crate) fn on_established(&mut self, rtt: Duration) {
        (self.srtt, self.min_rtt) = (rtt, rtt);
    }

    /// The interval that runs; one begins where the round-trip time is known.
    fn running(&mut self, now: Time) -> Option<&mut Running> {
        if self.running.is_none() && !self.srtt.is_zero() {
            self.begin(now);
        }
        self.running.as_mut()
    }

    fn begin(&mut self, now: Time) {
        self.running = Some(Running {
            began: now,
            ends: now + self.every.length(self.srtt),
            sent: Bytes::ZERO,
            acked: Bytes::ZERO,
            lost: Bytes::ZERO,
            rtts: Slope::default(),
            rtt_min: Duration::MAX,
            cwnd_limited: false,
        });
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.inflight = sent.inflight;
        if let Some(running) = self.running(sent.now) {
            running.sent += sent.bytes;
        }
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        (self.srtt, self.min_rtt, self.inflight) = (ack.srtt, ack.min_rtt, ack.inflight);
        let Some(running) = self.running(ack.now) else { return };
        running.acked += ack.acked;
        running.cwnd_limited |= ack.cwnd_limited;
        if let Some(rtt) = ack.rtt {
            running.rtt_min = running.rtt_min.min(rtt);
            running.rtts.add(1.0, ack.now.since(running.began).as_secs_f64(), rtt.as_secs_f64());
        }
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.inflight = loss.inflight;
        if let Some(running) = self.running(loss.now) {
            running.lost += loss.lost;
        }
    }

    /// What the interval showed, where one ends by `now`; the next begins. One in which nothing
    /// happened and nothing is in flight shows nothing, and no other begins before something is
    /// sent.
    pub(crate) fn take(&mut self, now: Time, applied: Applied) -> Option<Observation> {
        let ended = self.running.take_if(|running| running.ends <= now)?;
        let happened = ended.sent + ended.acked + ended.lost;
        if happened.is_zero() && self.inflight.is_zero() {
            return None;
        }
        self.begin(now);
        let length = (now - ended.began).max(Duration::from_nanos(1));
        let throughput_mbps = (ended.acked / length).mbps();
        self.max_throughput_mbps = self.max_throughput_mbps.max(throughput_mbps);
        let packets = |bytes: Bytes| bytes.ratio(self.mss);
        let counted = ended.acked + ended.lost;
        let (srtt_ms, min_rtt_ms) = (self.srtt.as_millis_f64(), self.min_rtt.as_millis_f64());
        let is_sampled = ended.rtts.samples() > 0.0;
        let rtt_ms = if is_sampled { 1e3 * ended.rtts.mean() } else { srtt_ms };
        Some(Observation {
            now_ms: now.since(Time::ZERO).as_millis_f64(),
            interval_ms: length.as_millis_f64(),
            sent_packets: packets(ended.sent),
            acked_packets: packets(ended.acked),
            lost_packets: packets(ended.lost),
            sending_mbps: (ended.sent / length).mbps(),
            throughput_mbps,
            max_throughput_mbps: self.max_throughput_mbps,
            loss: if counted.is_zero() { 0.0 } else { ended.lost.ratio(counted) },
            rtt_ms,
            rtt_min_ms: if is_sampled { ended.rtt_min.as_millis_f64() } else { srtt_ms },
            srtt_ms,
            min_rtt_ms,
            rtt_gradient: ended.rtts.slope(),
            rtt_ratio: rtt_ms / min_rtt_ms.max(1e-6),
            send_ratio: ended.sent.ratio(ended.acked.max(self.mss)),
            inflight_packets: packets(self.inflight),
            mss_bytes: self.mss.as_f64(),
            window_packets: packets(applied.window),
            rate_mbps: applied.rate.unwrap_or_else(|| applied.window / self.srtt).mbps(),
            cwnd_limited: f64::from(u8::from(ended.cwnd_limited)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1500);
    const APPLIED: Applied = Applied { window: Bytes::new(15_000), rate: None };

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn sent(ms: u64) -> Sent {
        Sent { now: at(ms), bytes: MSS, inflight: MSS, app_limited: false }
    }

    fn ack(ms: u64, rtt_ms: u64) -> Ack {
        let rtt = Duration::from_millis(rtt_ms);
        Ack {
            now: at(ms),
            acked: MSS,
            rtt: Some(rtt),
            srtt: Duration::from_millis(40),
            min_rtt: Duration::from_millis(20),
            inflight: Bytes::ZERO,
            prior_inflight: MSS,
            delivered: MSS,
            newest_sent_at: at(ms.saturating_sub(rtt_ms)),
            rate: None,
            cwnd_limited: false,
            in_recovery: false,
        }
    }

    #[test]
    fn an_interval_is_round_trips_or_a_time() {
        assert_eq!(Every::parse("1rtt"), Some(Every::RoundTrips(1.0)));
        assert_eq!(Every::parse(" 0.5 rtt"), Some(Every::RoundTrips(0.5)));
        assert_eq!(Every::parse("20ms"), Some(Every::Time(Duration::from_millis(20))));
        for wrong in ["", "rtt", "-1rtt", "0rtt", "NaNrtt", "20", "0s", "1us", "soon"] {
            assert_eq!(Every::parse(wrong), None, "{wrong}");
        }
    }

    /// Five packets leave, three arrive, one is lost; the round-trip time grows by 5 ms in 10 ms.
    #[test]
    fn an_interval_counts_what_happened_in_it() {
        let mut monitor = Monitor::new(Every::RoundTrips(1.0), &Config::with_mss(MSS, 0));
        monitor.on_sent(&sent(0));
        assert_eq!(monitor.ends(), None, "a round-trip time is not known");
        monitor.on_established(Duration::from_millis(40));
        (0..5).for_each(|i| monitor.on_sent(&sent(100 + i)));
        assert_eq!(monitor.ends(), Some(at(140)));
        for (ms, rtt) in [(105, 20), (115, 25), (125, 30)] {
            monitor.on_ack(&ack(ms, rtt));
        }
        let (now, lost, inflight) = (at(130), MSS, MSS);
        let newest_sent_at = at(100);
        monitor.on_loss(&Loss { now, lost, newest_sent_at, inflight, prior_inflight: MSS * 2 });
        assert_eq!(monitor.take(at(139), APPLIED), None, "it runs");
        let seen = monitor.take(at(140), APPLIED).unwrap();
        let close = |value: f64, wanted: f64| {
            assert!((value - wanted).abs() < 1e-9, "{value}, not {wanted}: {seen:?}");
        };
        close(seen.sent_packets, 5.0);
        close(seen.acked_packets, 3.0);
        close(seen.loss, 0.25);
        close(seen.throughput_mbps, 3.0 * 0.012 / 0.040);
        close(seen.send_ratio, 5.0 / 3.0);
        close(seen.rtt_ms, 25.0);
        close(seen.rtt_min_ms, 20.0);
        close(seen.rtt_gradient, 0.5);
        close(seen.rtt_ratio, 1.25);
        close(seen.rate_mbps, 0.12 / 0.040);
        close(seen.window_packets, 10.0);
        assert_eq!(monitor.ends(), Some(at(180)), "the next has begun");
    }

    #[test]
    fn a_connection_at_rest_has_no_intervals() {
        let every = Every::Time(Duration::from_millis(10));
        let mut monitor = Monitor::new(every, &Config::with_mss(MSS, 0));
        monitor.on_ack(&ack(50, 20));
        assert!(monitor.take(at(60), APPLIED).is_some());
        assert_eq!((monitor.take(at(70), APPLIED), monitor.ends()), (None, None));
        monitor.on_sent(&sent(200));
        assert_eq!(monitor.ends(), Some(at(210)));
    }
}
