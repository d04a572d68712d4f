//! The loop around a run, on one that goes by a formula.

use std::convert::Infallible;

use trimtab_apps::{RequestId, RequestRecord};
use trimtab_qoe::Sketch;
use trimtab_steer::Insight;

use super::*;
use crate::run::prepare::prepare;
use crate::run::record::Delays;
use crate::scenario::Scenario;

/// Flow `n`, from 0, gets `n + 1` megabytes a second, and the bottleneck carries 4. Each flow has
/// one request, which is over after `answered`.
struct Steady {
    now: Time,
    flows: u64,
    answered: Option<Time>,
}

const MEGA: u64 = 1_000_000;

impl Steady {
    fn carried_at(&self, megas: u64) -> Bytes {
        Bytes::new(self.now.as_nanos() / 1000 * megas * MEGA / 1_000_000)
    }
}

impl Run for Steady {
    type Error = Infallible;

    fn now(&self) -> Time {
        self.now
    }
    fn advance(&mut self, until: Time) -> Result<(), Infallible> {
        self.now = until;
        Ok(())
    }
    fn goodput(&self, flow: usize) -> Bytes {
        self.carried_at(flow as u64 + 1)
    }
    fn carried(&self) -> Bytes {
        self.carried_at(4)
    }
    fn outcome(&self, _: usize, now: Time) -> Outcome {
        let Some(at) = self.answered else { return Outcome::Endless };
        Outcome::Requests(vec![RequestRecord {
            id: RequestId(0),
            size: Bytes::new(9),
            scheduled_at: Time::ZERO,
            sent_at: Time::ZERO,
            first_byte_at: None,
            completed_at: (now >= at).then_some(at),
            received: if now >= at { Bytes::new(9) } else { Bytes::ZERO },
        }])
    }
    fn sample(&mut self) -> Sample {
        let ms = self.now.as_millis_f64();
        let insight = Insight { tradeoff: (ms > 5000.0).then_some(ms), ..Insight::default() };
        Sample {
            queue_delay_ms: ms,
            rtt_ms: 2.0 * ms,
            cwnd_bytes: 3.0 * ms,
            delta: f64::NAN,
            insight,
        }
    }
    fn totals(&self) -> Vec<Totals> {
        let (rtt, queue) = (Delays::default(), Delays::default());
        let rtts = Sketch::default;
        let of = |packets| Totals { packets, retransmits: 0, dropped: 0, rtt, rtts: rtts(), queue };
        (0..self.flows).map(of).collect()
    }
}

/// Two flows against one, for 10 s of which 4 are warmup.
fn prepared(trace: &str) -> Prepared {
    let text = format!(
        "cc = [\"cubic\"]\ntraces = \"{trace}\"\nduration = \"10s\"\nwarmup = \"4s\"\nflows = 2\n\
         [[app]]\nkind = \"bulk\"\n[[competitor]]\ncc = \"bbr\"\n"
    );
    prepare(&Scenario::parse(&text).unwrap().plan().unwrap()).unwrap()
}

fn measure(trace: &str, answered: Option<u64>) -> Measurement {
    let prepared = prepared(trace);
    let answered = answered.map(Time::from_millis);
    let run = Steady { now: Time::ZERO, flows: 3, answered };
    let Ok(measured) = Course::new(&prepared, &prepared.plan.jobs[0], run).measure();
    measured
}

#[test]
fn what_is_measured_lies_between_the_warmup_and_the_end() {
    let measured = measure("constant:40Mbit/s", None);
    assert_eq!(measured.span, Duration::from_secs(6));
    let goodput = |flows: &[FlowMeasurement]| -> Vec<u64> {
        flows.iter().map(|flow| flow.goodput.get() / MEGA).collect()
    };
    assert_eq!((goodput(&measured.own), goodput(&measured.competing)), (vec![6, 12], vec![18]));
    assert_eq!((measured.carried.get(), measured.capacity.get()), (24 * MEGA, 30 * MEGA));
    assert_eq!(measured.ended, Time::from_millis(10_000));
    let packets: Vec<u64> = measured.own.iter().map(|flow| flow.packets).collect();
    assert_eq!((packets, measured.competing[0].packets), (vec![0, 1], 2));
}

#[test]
fn each_bin_has_what_happened_in_it() {
    let Measurement { series, .. } = measure("step:40Mbit/s@5s,80Mbit/s@5s", None);
    assert_eq!((series.bin_ms, series.throughput_mbps.len()), (100.0, 100), "with the warmup");
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}");
    };
    for bin in 0..100 {
        near(series.throughput_mbps[bin], 24.0);
        near(series.capacity_mbps[bin], if bin < 50 { 40.0 } else { 80.0 });
        // The state of a bin is that at its end.
        let ms = 100.0 * (bin + 1) as f64;
        assert_eq!((series.queue_delay_ms[bin], series.rtt_ms[bin]), (ms, 2.0 * ms));
        assert_eq!(series.cwnd_bytes[bin], 3.0 * ms);
        assert!(series.delta[bin].is_nan() && series.lambda[bin].is_nan());
        assert_eq!(series.tau[bin].is_nan(), ms <= 5000.0, "{bin}");
    }
}

#[test]
fn outstanding_requests_may_finish_and_move_no_throughput() {
    let late = measure("constant:40Mbit/s", Some(25_030));
    assert_eq!(late.ended, Time::from_millis(25_100), "the end of the bin");
    assert_eq!((late.span, late.own[0].goodput.get()), (Duration::from_secs(6), 6 * MEGA));
    assert_eq!(late.series.rtt_ms.len(), 100, "the series ends with the run");
    let Outcome::Requests(requests) = &late.own[1].outcome else { panic!("requests") };
    assert_eq!(requests[0].completed_at, Some(Time::from_millis(25_030)));
    let never = measure("constant:40Mbit/s", Some(1_000_000));
    assert_eq!(never.ended, Time::from_millis(70_000), "nobody waits for ever");
    assert_eq!(measure("constant:40Mbit/s", Some(3000)).ended, Time::from_millis(10_000));
}

#[test]
fn a_course_in_steps_is_the_same_as_one_at_once() {
    let prepared = prepared("constant:40Mbit/s");
    let run = || Steady { now: Time::ZERO, flows: 3, answered: None };
    let mut steps = Course::new(&prepared, &prepared.plan.jobs[0], run());
    for ms in [100, 250, 4000, 9999] {
        let Ok(()) = steps.advance(Time::from_millis(ms));
        assert_eq!(steps.now(), Time::from_millis(ms));
    }
    let Ok(stepped) = steps.measure();
    let whole = measure("constant:40Mbit/s", None);
    assert_eq!((stepped.span, stepped.carried), (whole.span, whole.carried));
    let sum = |m: &Measurement| m.series.throughput_mbps.iter().filter(|v| **v > 23.9).count();
    assert!(sum(&stepped) >= 100, "every bin is noted");
}

#[test]
fn members_are_the_schemes_flows_and_then_its_competitors() {
    let text = "cc = [\"cubic\", \"mortise\"]\ntraces = \"constant:9Mbit/s\"\nflows = 3\n\
        stagger = \"2s\"\n[[app]]\nkind = \"download\"\n[[competitor]]\ncc = \"bbr\"\nflows = 2\n\
        start = \"5s\"\n";
    let prepared = prepare(&Scenario::parse(text).unwrap().plan().unwrap()).unwrap();
    let members = members(&prepared, &prepared.plan.jobs[1]);
    let who: Vec<(&str, u64)> =
        members.iter().map(|m| (m.scheme.label(), m.start.as_nanos() / 1_000_000_000)).collect();
    assert_eq!(who, [("mortise", 0), ("mortise", 2), ("mortise", 4), ("bbr", 5), ("bbr", 5)]);
}

/// A competitor is steered for the users of the run, or by a model of its own.
#[test]
fn competitors_may_have_a_model_of_their_own() {
    let text = |qoe: &str| {
        format!(
            "cc = [\"mortise\"]\ntraces = \"constant:9Mbit/s\"\n[[app]]\nkind = \"bulk\"\n\
             qoe = \"vod\"\n[[competitor]]\ncc = \"mortise\"\n[[competitor]]\n\
             cc = \"mortise\"\nqoe = \"{qoe}\"\n"
        )
    };
    let plan = |qoe| Scenario::parse(&text(qoe)).unwrap().plan().unwrap();
    let prepared = prepare(&plan("ln(T) - 20*D")).unwrap();
    let models: Vec<Option<&str>> = members(&prepared, &prepared.plan.jobs[0])
        .iter()
        .map(|m| m.goal.settings.qoe.as_deref())
        .collect();
    assert_eq!(models, [Some("vod"), Some("vod"), Some("ln(T) - 20*D")]);
    let wrong = prepare(&plan("ln(T) - D +")).unwrap_err().to_string();
    assert!(wrong.starts_with("QoE of competitor mortise: "), "{wrong}");
}

#[test]
fn a_bottleneck_is_that_of_its_cell() {
    let text = "cc = [\"cubic\"]\ntraces = \"constant:12Mbit/s\"\nrtt = \"40ms\"\n\
        buffer = [\"2BDP\", \"0.01BDP\", \"10packets\"]\n[[app]]\nkind = \"bulk\"\n";
    let plan = Scenario::parse(text).unwrap().plan().unwrap();
    let bytes: Vec<u64> = plan
        .jobs
        .iter()
        .map(|job| job.cell.buffer_bytes(plan.links[job.trace].mean_rate()).get())
        .collect();
    // 12 Mbit/s · 40 ms are 60 KB, and no buffer is below two packets.
    assert_eq!(bytes, [120_000, 3000, 15_000]);
    let (there, _) = plan.jobs[0].cell.rtt.halves();
    assert_eq!(there, Duration::from_millis(20).into());
    assert!(matches!(jitter(&plan.jobs[0]), JitterConfig::None));
}
