//! Responses as they are seen on the wire, for a policy that goes by them: the reports of a datapath
//! that does not see the application know of them only what waits in the socket.

use trimtab_qoe::{Factor, Factors};
use trimtab_steer::{Report, Responses as Tally};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// A response ends when nothing is in flight and nothing was sent for so long.
const PAUSE: Duration = Duration::from_millis(50);

/// What one connection sends between pauses counts as one response, which is as long as looks at
/// the connection are apart too long or too short.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    current: Option<Response>,
    /// When the connection began, until something of it was seen: its first response began about then.
    opened: Option<Time>,
    /// Those that have ended and that no report has told of yet.
    ended: Vec<Response>,
}

/// One that is being sent.
#[derive(Clone, Copy, Debug)]
struct Response {
    began: Time,
    /// When a byte of it was last seen to be sent, and to be acknowledged.
    sent_at: Time,
    acked_at: Time,
    /// Bytes that arrived.
    size: Bytes,
    /// Whether anything of it is on its way.
    on_its_way: bool,
}

impl Responses {
    /// Those of a connection from its beginning on.
    pub fn from_the_beginning(opened: Time) -> Self {
        Self { opened: Some(opened), ..Self::default() }
    }

    /// The connection has ended, and something was acknowledged the last time `last`: how long the
    /// responses took that no report has told of.
    pub fn at_the_end(&mut self, last: Time) -> Vec<Duration> {
        let current = self.current.take().map(|current| (current.began, current.acked_at));
        let unseen = self.opened.take().map(|opened| (opened, opened));
        let rest = current.or(unseen).map(|(began, acked_at)| acked_at.max(last).since(began));
        let ended = self.ended.drain(..).map(|ended| ended.acked_at.since(ended.began));
        ended.chain(rest.filter(|took| !took.is_zero())).collect()
    }

    /// Takes a report in, and adds to it what it lacks: the responses that ended, what still waits
    /// outside the socket as far as the application says how much is left (`remaining`), and the
    /// mean rate, which the path did carry, as its delivery rate where the kernel has no sample
    /// that the application did not limit.
    pub fn complete(&mut self, report: &mut Report, remaining: Option<Bytes>) {
        self.on_report(report);
        let in_socket = report.responses.unsent;
        report.responses = tally(&self.ended);
        report.responses.unsent = in_socket.max(remaining.unwrap_or(Bytes::ZERO) - report.inflight);
        self.ended.clear();
        // Acknowledgements come in bursts, so less than a round trip says nothing of a rate.
        if report.interval >= report.srtt && !report.interval.is_zero() {
            let mean = Some(report.acked / report.interval);
            report.delivery_rate_any = report.delivery_rate_any.max(mean);
        }
    }

    /// Takes a report in; how long each of the responses took that ended since the last one.
    pub fn times(&mut self, report: &Report) -> Vec<Duration> {
        self.on_report(report);
        self.ended.drain(..).map(|ended| ended.acked_at.since(ended.began)).collect()
    }

    fn on_report(&mut self, report: &Report) {
        let (sent, acked) = (!report.sent.is_zero(), !report.acked.is_zero());
        if sent || acked {
            // The first report does not begin with the connection, but when it is seen that something happens.
            let begins = report.now - report.interval;
            let soon = |opened: &Time| begins.since(*opened) <= PAUSE;
            // What was acknowledged had been sent a round trip before.
            let sent_by = if acked { report.now - report.srtt } else { report.now };
            let began = self.opened.take().filter(soon).unwrap_or(begins.min(sent_by));
            let current = self.current.get_or_insert(Response {
                began,
                sent_at: began,
                acked_at: began,
                size: Bytes::ZERO,
                on_its_way: true,
            });
            current.size += report.acked;
            current.sent_at = if sent { report.now } else { current.sent_at };
            current.acked_at = if acked { report.now } else { current.acked_at };
            current.on_its_way = !report.inflight.is_zero();
        }
        self.on_quiet(report.now);
    }

    /// Nothing was acknowledged from the last look until now. Looks may be a few milliseconds
    /// apart, so that says nothing of a pause by itself.
    pub fn on_quiet(&mut self, now: Time) {
        let ended = self
            .current
            .take_if(|current| !current.on_its_way && now.since(current.sent_at) >= PAUSE);
        self.ended.extend(ended.filter(|ended| !ended.size.is_zero()));
    }
}

/// How much is left of the responses that are under way, as an application says it.
pub fn remaining(factors: &Factors) -> Option<Bytes> {
    let mbit = factors.get(Factor::Remaining)?;
    Some(Bytes::new(125_000).mul_f64(mbit))
}

/// What these come to.
fn tally(ended: &[Response]) -> Tally {
    let n = ended.len() as u64;
    if n == 0 {
        return Tally::default();
    }
    let sum = |of: &dyn Fn(&Response) -> f64| ended.iter().map(of).sum::<f64>() / n as f64;
    let goodput = sum(&|r| (r.size / r.acked_at.since(r.began)).bits_per_sec());
    Tally {
        unsent: Bytes::ZERO,
        sent: n,
        wait_mean: Duration::from_secs_f64(sum(&|r| r.sent_at.since(r.began).as_secs_f64())),
        arrived: n,
        goodput_mean: Rate::from_bytes_per_sec_f64(goodput / 8.0),
        size_mean: ended.iter().map(|r| r.size).fold(Bytes::ZERO, |a, b| a + b) / n,
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::Phase;
    use trimtab_steer::KnobValues;

    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    /// A report of 50 ms which ends at number `k` of them.
    fn report(k: u64, sent: u64, acked: u64, inflight: u64) -> Report {
        Report {
            now: Time::from_secs(1) + STEP * k,
            interval: STEP,
            algorithm: "copa",
            sent: Bytes::new(sent),
            acked: Bytes::new(acked),
            lost: Bytes::ZERO,
            busy: Duration::ZERO,
            rtt_samples: 1,
            rtt_variance: 0.0,
            rtt_mean: None,
            rtt_min: None,
            rtt_max: None,
            rtts: None,
            srtt: Duration::from_millis(40),
            min_rtt: Duration::from_millis(40),
            delivery_rate: None,
            delivery_rate_any: None,
            window: Bytes::new(100_000),
            inflight: Bytes::new(inflight),
            mss: Bytes::new(1448),
            phase: Phase::Steady,
            knobs: KnobValues::NONE,
            states: None,
            responses: Tally::default(),
            factors: Factors::new(),
        }
    }

    #[test]
    fn what_lies_between_pauses_is_a_response() {
        let mut responses = Responses::default();
        let mut seen = Vec::new();
        // 30 kB in 100 ms, then a pause, then 2 kB whose end is seen only after a time without any report.
        for (k, sent, acked, inflight) in [
            (1, 20_000, 0, 20_000),
            (2, 10_000, 20_000, 10_000),
            (3, 0, 10_000, 0),
            (9, 2000, 2000, 0),
        ] {
            let mut report = report(k, sent, acked, inflight);
            responses.complete(&mut report, None);
            seen.push(report.responses);
        }
        assert_eq!(seen[..2], [Tally::default(); 2]);
        let first = seen[2];
        assert_eq!((first.sent, first.arrived, first.size_mean), (1, 1, Bytes::new(30_000)));
        assert_eq!(first.wait_mean, STEP * 2, "its last byte was sent 100 ms after the first");
        assert!((first.goodput_mean.mbps() - 1.6).abs() < 1e-9, "30 kB in 150 ms");
        assert_eq!(seen[3], Tally::default());
        responses.on_quiet(Time::from_secs(1) + STEP * 10);
        let in_socket = Tally { unsent: Bytes::new(3000), ..Tally::default() };
        let mut last = Report { responses: in_socket, ..report(40, 0, 0, 0) };
        responses.complete(&mut last, Some(Bytes::new(7000)));
        assert_eq!((last.responses.arrived, last.responses.size_mean), (1, Bytes::new(2000)));
        assert_eq!(last.responses.unsent, Bytes::new(7000), "what the application says");
        let mut unsaid = Report { responses: in_socket, ..report(41, 0, 0, 0) };
        responses.complete(&mut unsaid, None);
        assert_eq!(unsaid.responses.unsent, Bytes::new(3000), "what is in the socket");
    }

    /// A page that is seen only when it was acknowledged: 10 kB over 120 ms and not 50.
    #[test]
    fn a_response_began_a_round_trip_before_it_was_acknowledged() {
        let mut responses = Responses::default();
        let mut report =
            Report { srtt: Duration::from_millis(120), ..report(1, 10_000, 10_000, 0) };
        responses.complete(&mut report, None);
        responses.on_quiet(report.now + PAUSE);
        let mut next =
            Report { now: report.now + STEP, sent: Bytes::ZERO, acked: Bytes::ZERO, ..report };
        responses.complete(&mut next, None);
        let mbps = 0.08 / 0.12;
        assert!((next.responses.goodput_mean.mbps() - mbps).abs() < 1e-3, "{:?}", next.responses);
    }

    #[test]
    fn a_gap_of_milliseconds_ends_no_response() {
        let mut responses = Responses::default();
        // Twice 10 kB, with a look 3 ms after the first at which nothing is new.
        for k in [1, 2] {
            let mut report = report(k, 10_000, 10_000, 0);
            responses.complete(&mut report, None);
            assert_eq!(report.responses, Tally::default());
            responses.on_quiet(report.now + Duration::from_millis(3));
        }
        responses.on_quiet(Time::from_secs(1) + STEP * 3);
        let mut last = report(4, 0, 0, 0);
        responses.complete(&mut last, None);
        assert_eq!((last.responses.arrived, last.responses.size_mean), (1, Bytes::new(20_000)));
    }

    #[test]
    fn a_response_goes_on_while_anything_is_on_its_way() {
        let mut responses = Responses::default();
        let mut first = report(1, 50_000, 0, 50_000);
        responses.complete(&mut first, None);
        // The path stands still: nothing is acknowledged, and nothing has ended.
        responses.on_quiet(Time::from_secs(1) + STEP * 20);
        let mut later = report(30, 0, 50_000, 0);
        responses.complete(&mut later, None);
        assert_eq!(later.responses.arrived, 1);
        assert_eq!(later.responses.size_mean, Bytes::new(50_000));
        assert_eq!(later.delivery_rate_any, Some(Rate::from_mbps(8.0)), "50 kB in 50 ms");
        let mut quick = Report { srtt: STEP * 2, ..report(31, 0, 50_000, 0) };
        responses.complete(&mut quick, None);
        assert_eq!(quick.delivery_rate_any, None, "less than a round trip");
    }
}
