//! The rules of RFC 9959 §3, one by one.

use std::collections::VecDeque;
use std::format;

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::{Resume, Resumption, Saved, Settings, Stage, Trigger};
use crate::testing::{acked, timed_out};
use crate::{
    ALGORITHMS, Ack, Config, CongestionControl, Controller, Discarded, Idle, Loss, Marked, Phase,
    Sent, Spec,
};

const MSS: Bytes = Bytes::new(1500);
const RTT: Duration = Duration::from_millis(50);

/// As the RFC's examples: 300 packets, so a jump to 150.
fn saved() -> Saved {
    Saved { window: MSS * 300, rtt: RTT, expires: Time::from_secs(60) }
}

/// A sender that ignores its window: the test says what it sends.
#[derive(Clone)]
struct Flow {
    cca: Resume<Controller>,
    now: Time,
    sent: VecDeque<Time>,
    delivered: Bytes,
    min_rtt: Duration,
    limited: bool,
}

impl Flow {
    fn with(algorithm: &str, settings: Settings, saved: Option<Saved>) -> Self {
        let config = Config::with_mss(MSS, 1);
        let cca = algorithm.parse::<Spec>().expect("a name of the table").build(&config);
        Self {
            cca: Resume::new(cca, &config, Resumption { settings, saved }),
            now: Time::from_secs(1),
            sent: VecDeque::new(),
            delivered: Bytes::ZERO,
            min_rtt: Duration::MAX,
            limited: true,
        }
    }

    fn of(algorithm: &str) -> Self {
        Self::with(algorithm, Settings::default(), Some(saved()))
    }

    /// Has sent its initial window and has had all of it acknowledged after a round trip; so many
    /// packets are in flight then.
    fn jump(mut self, inflight: usize) -> Self {
        self.send(10);
        self.pass(RTT);
        for _ in 0..9 {
            self.ack(1);
            self.send(2);
        }
        self.send(inflight - 18);
        self.ack(1);
        assert_eq!(self.stage(), (Stage::Unvalidated, Trigger::PathConfirmed));
        assert_eq!(self.sent.len(), inflight);
        self
    }

    /// Sends the whole jump, each packet a little later than the one before it.
    fn send_jump(mut self) -> Self {
        while self.sent.len() < 150 {
            self.pass(Duration::from_micros(50));
            self.send(1);
        }
        assert_eq!(self.stage(), (Stage::Validating, Trigger::LastUnvalidatedPacketSent));
        self
    }

    fn jumped(algorithm: &str) -> Self {
        Self::of(algorithm).jump(19)
    }

    fn validating(algorithm: &str) -> Self {
        Self::jumped(algorithm).send_jump()
    }

    fn stage(&self) -> (Stage, Trigger) {
        (self.cca.state().stage(), self.cca.state().trigger())
    }

    fn packets(&self) -> u64 {
        self.cca.window().get() / MSS.get()
    }

    fn pipe(&self) -> u64 {
        self.cca.state().pipe_size().get() / MSS.get()
    }

    fn inflight(&self) -> Bytes {
        MSS * self.sent.len() as u64
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.cca.next_timer().is_some_and(|at| at <= self.now) {
            self.cca.on_timer(self.now);
        }
    }

    fn send(&mut self, packets: usize) {
        for _ in 0..packets {
            self.sent.push_back(self.now);
            let (now, inflight) = (self.now, self.inflight());
            self.cca.on_sent(&Sent { now, bytes: MSS, inflight, app_limited: false });
        }
    }

    fn ack(&mut self, packets: usize) {
        let prior_inflight = self.inflight();
        let newest = self.sent.drain(..packets).next_back().expect("it acknowledges something");
        let (bytes, rtt) = (MSS * packets as u64, self.now - newest);
        self.delivered += bytes;
        self.min_rtt = self.min_rtt.min(rtt);
        self.cca.on_ack(&Ack {
            inflight: self.inflight(),
            prior_inflight,
            delivered: self.delivered,
            min_rtt: self.min_rtt,
            cwnd_limited: self.limited,
            ..acked(self.now, newest, bytes, rtt)
        });
    }

    fn lose(&mut self, packets: usize) {
        let prior_inflight = self.inflight();
        let newest_sent_at = self.sent.drain(..packets).next_back().expect("it loses something");
        let (now, inflight) = (self.now, self.inflight());
        let lost = MSS * packets as u64;
        self.cca.on_loss(&Loss { now, lost, newest_sent_at, inflight, prior_inflight });
    }

    fn mark(&mut self) {
        let (now, inflight) = (self.now, self.inflight());
        let newest_sent_at = self.sent[0];
        self.cca.on_marked(&Marked { now, newest_sent_at, inflight, prior_inflight: inflight });
    }

    fn time_out(&mut self) {
        let prior_inflight = self.inflight();
        self.sent.clear();
        self.cca.on_timeout(&crate::Timeout { prior_inflight, ..timed_out(self.now) });
    }
}

/// §3.2, "Path confirmed", and §3.3, on entry.
#[test]
fn the_window_jumps_once_all_initial_data_is_acknowledged() {
    let mut flow = Flow::of("newreno");
    assert_eq!(flow.stage(), (Stage::Reconnaissance, Trigger::Start));
    flow.send(10);
    flow.pass(RTT);
    for acknowledged in 1..10 {
        flow.ack(1);
        flow.send(2);
        assert_eq!(flow.stage().0, Stage::Reconnaissance, "{acknowledged} of 10");
        assert_eq!(flow.packets(), 10 + acknowledged, "normal congestion control");
    }
    flow.ack(1);
    assert_eq!(flow.stage(), (Stage::Unvalidated, Trigger::PathConfirmed));
    assert_eq!((flow.packets(), flow.pipe()), (150, 18), "half of 300; what was in flight");
    assert_eq!(flow.cca.state().jump(), MSS * 150);
    // §3.3, "Pacing transmission"; §4.4: the interval between packets is RTT * MPS / jump_cwnd.
    assert_eq!(flow.cca.pacing_rate(), Some(MSS * 150 / RTT));
    assert_eq!((flow.cca.phase(), flow.cca.manages_recovery()), (Phase::SlowStart, true));
}

/// §3.3: the rate goes by the current round-trip time, not by the saved one.
#[test]
fn a_longer_round_trip_slows_the_jump() {
    let mut flow = Flow::jumped("newreno");
    flow.pass(Duration::from_millis(5));
    flow.send(1);
    flow.pass(Duration::from_millis(40));
    flow.ack(1);
    assert_eq!(flow.stage().0, Stage::Unvalidated, "what was acknowledged left before the jump");
    assert_eq!(flow.cca.pacing_rate(), Some(MSS * 150 / Duration::from_millis(45)));
}

/// §4.2: a rate-limited sender may stay until it has more data than the window allows.
#[test]
fn a_window_that_is_not_used_does_not_jump() {
    let mut flow = Flow::of("newreno");
    flow.limited = false;
    for _ in 0..3 {
        flow.send(4);
        flow.pass(RTT);
        flow.ack(4);
        assert_eq!(flow.stage().0, Stage::Reconnaissance);
    }
    flow.limited = true;
    flow.send(10);
    flow.pass(RTT);
    flow.ack(1);
    assert_eq!(flow.stage().0, Stage::Unvalidated);
}

/// §3.3: "jump_cwnd is less than or equal to Min(max_jump, (saved_cwnd/2))".
#[test]
fn no_jump_is_larger_than_its_limit() {
    let mut settings = Settings::default();
    settings.set(0, 64.0);
    let mut flow = Flow::with("newreno", settings, Some(saved()));
    flow.send(10);
    flow.pass(RTT);
    flow.ack(10);
    assert_eq!((flow.stage().0, flow.packets()), (Stage::Unvalidated, 64));
}

/// §3.2, "Detected congestion": normal congestion control alone reacts.
#[test]
fn congestion_before_the_jump_ends_it() {
    type Sign = (Trigger, fn(&mut Flow));
    let signs: [Sign; 3] = [
        (Trigger::PacketLoss, |flow| flow.lose(1)),
        (Trigger::EcnCe, Flow::mark),
        (Trigger::PersistentCongestion, Flow::time_out),
    ];
    for (trigger, sign) in signs {
        let life = |saved: Option<Saved>| {
            let mut flow = Flow::with("cubic", Settings::default(), saved);
            flow.send(10);
            flow.pass(RTT);
            flow.ack(3);
            sign(&mut flow);
            flow.send(4);
            flow.pass(RTT);
            flow.ack(4);
            flow
        };
        let (resuming, plain) = (life(Some(saved())), life(None));
        assert_eq!(resuming.stage(), (Stage::Normal, trigger));
        assert_eq!(resuming.cca.window(), plain.cca.window(), "{trigger:?}");
        assert_eq!(resuming.cca.ssthresh(), plain.cca.ssthresh(), "{trigger:?}");
        assert!(!resuming.cca.state().is_refuted(), "nothing was tried");
    }
}

/// §3.2, "Minimum RTT too small": half of the saved one or less; §4.2.1: more than ten times.
#[test]
fn another_round_trip_time_is_another_path() {
    for (micros, confirmed) in
        [(25_000, false), (25_001, true), (50_000, true), (500_000, true), (500_001, false)]
    {
        let mut flow = Flow::of("newreno");
        flow.send(10);
        flow.pass(Duration::from_micros(micros));
        flow.ack(10);
        let expected = match confirmed {
            true => (Stage::Unvalidated, Trigger::PathConfirmed),
            false => (Stage::Normal, Trigger::RttNotValidated),
        };
        assert_eq!(flow.stage(), expected, "{micros} us");
        assert!(!flow.cca.state().is_refuted());
    }
}

/// §3.2, "Lifetime of saved CC parameters": they are not used, and are deleted.
#[test]
fn old_parameters_are_not_used() {
    for (ms, fresh) in [(1050, true), (1049, false)] {
        let old = Saved { expires: Time::from_millis(ms), ..saved() };
        let mut flow = Flow::with("newreno", Settings::default(), Some(old));
        flow.send(10);
        flow.pass(RTT);
        flow.ack(10);
        assert_eq!(flow.stage().0 == Stage::Unvalidated, fresh, "{ms}");
        assert_eq!(flow.stage().1 == Trigger::Expired, !fresh);
        assert_eq!(flow.cca.state().is_refuted(), !fresh);
    }
}

/// §4.2.1: an algorithm that infers congestion from a rising delay has seen a limit.
#[test]
fn an_algorithm_that_leaves_slow_start_does_not_jump() {
    let mut flow = Flow::of("copa");
    flow.send(10);
    flow.pass(RTT);
    flow.ack(5);
    // A queue of as much again: Copa's target is below its window.
    for _ in 0..40 {
        flow.pass(Duration::from_millis(5));
        flow.send(1);
        flow.ack(1);
        if flow.stage().0 != Stage::Reconnaissance {
            break;
        }
    }
    let ends = [Trigger::SlowStartExit, Trigger::PathConfirmed];
    assert!(ends.contains(&flow.stage().1), "{:?}", flow.stage());
    let mut flow = Flow::of("vegas");
    flow.limited = false;
    flow.send(10);
    flow.pass(RTT);
    flow.ack(10);
    for rtt in [60, 90, 90, 90] {
        flow.send(8);
        flow.pass(Duration::from_millis(rtt));
        for _ in 0..8 {
            flow.ack(1);
        }
    }
    assert_eq!(flow.stage(), (Stage::Normal, Trigger::SlowStartExit));
}

/// A jump to no more than the algorithm has anyway is none.
#[test]
fn a_window_that_is_as_large_already_does_not_jump() {
    let small = Saved { window: MSS * 40, ..saved() };
    let mut flow = Flow::with("newreno", Settings::default(), Some(small));
    flow.send(10);
    flow.pass(RTT);
    flow.ack(10);
    assert_eq!(flow.stage(), (Stage::Normal, Trigger::WindowReached));
    assert_eq!(flow.packets(), 20);
}

/// §3.3, "Completed sending all unvalidated packets": less than a packet of the window is left.
#[test]
fn the_jump_ends_when_it_is_sent() {
    let mut flow = Flow::jumped("newreno");
    flow.send(130);
    assert_eq!(flow.stage().0, Stage::Unvalidated, "149 in flight");
    flow.send(1);
    assert_eq!(flow.stage(), (Stage::Validating, Trigger::LastUnvalidatedPacketSent));
    assert_eq!((flow.packets(), flow.pipe()), (150, 19));
    assert_eq!(flow.cca.pacing_rate(), None, "the transport's own");
}

/// §3.3, "Receiving acknowledgement for an unvalidated packet", and the window becomes what is in
/// flight.
#[test]
fn the_jump_ends_with_the_first_acknowledgement_for_it() {
    let mut flow = Flow::jumped("newreno");
    flow.pass(Duration::from_millis(1));
    flow.send(60);
    flow.pass(Duration::from_millis(40));
    flow.ack(19);
    assert_eq!((flow.stage().0, flow.pipe()), (Stage::Unvalidated, 19), "sent before the jump");
    flow.ack(1);
    assert_eq!(flow.stage(), (Stage::Validating, Trigger::FirstUnvalidatedPacketAcknowledged));
    assert_eq!((flow.packets(), flow.pipe()), (59, 20));
}

/// §3.3, "Limiting time in the Unvalidated Phase", by the timer or at the next packet.
#[test]
fn the_jump_ends_after_a_round_trip() {
    let mut flow = Flow::jumped("newreno");
    flow.send(60);
    flow.pass(RTT - Duration::from_nanos(1));
    assert_eq!(flow.stage().0, Stage::Unvalidated);
    let mut without_timers = flow.clone();
    flow.pass(Duration::from_nanos(1));
    without_timers.now += Duration::from_nanos(1);
    without_timers.send(1);
    for (flow, inflight) in [(flow, 79), (without_timers, 80)] {
        assert_eq!(flow.stage(), (Stage::Validating, Trigger::RttExceeded));
        assert_eq!(flow.packets(), inflight);
        assert_eq!(flow.cca.next_timer(), None);
    }
}

/// §3.3, "Check flight_size": a sender that does not use the jump goes on at what was validated,
/// and no less than the initial window.
#[test]
fn a_rate_limited_sender_keeps_what_was_validated() {
    let mut flow = Flow::jumped("newreno");
    flow.pass(RTT);
    assert_eq!(flow.stage(), (Stage::Normal, Trigger::RateLimited), "19 in flight, and validated");
    assert_eq!(flow.packets(), 19);
    let mut flow = Flow::of("newreno");
    flow.send(10);
    flow.pass(RTT);
    flow.ack(10);
    flow.send(9);
    flow.pass(RTT);
    assert_eq!(flow.stage(), (Stage::Normal, Trigger::RateLimited), "less than the initial window");
    assert_eq!(flow.packets(), 10);
    assert!(!flow.cca.state().is_refuted());
}

/// §3.3, "Detected congestion" and "Confirming the path during transmission".
#[test]
fn congestion_or_another_path_during_the_jump_is_a_retreat() {
    type Sign = (Trigger, fn(&mut Flow));
    let signs: [Sign; 3] = [
        (Trigger::PacketLoss, |flow| flow.lose(1)),
        (Trigger::EcnCe, Flow::mark),
        (Trigger::PathChanged, |flow| {
            flow.min_rtt = RTT / 2;
            flow.ack(1);
        }),
    ];
    for (trigger, sign) in signs {
        let mut flow = Flow::jumped("newreno");
        flow.send(60);
        flow.pass(Duration::from_millis(20));
        sign(&mut flow);
        assert_eq!(flow.stage(), (Stage::SafeRetreat, trigger));
        assert!(flow.packets() <= 9, "half of 19: {}", flow.packets());
        assert!(flow.cca.state().is_refuted());
        assert_eq!(flow.cca.pacing_rate(), None);
    }
}

/// §3.4: the window grows as ever, until the last packet of the jump is acknowledged.
#[test]
fn all_of_the_jump_validates_the_window() {
    let mut flow = Flow::validating("newreno");
    flow.pass(RTT);
    flow.ack(149);
    assert_eq!((flow.stage().0, flow.packets()), (Stage::Validating, 299), "slow start");
    assert_eq!(flow.pipe(), 149);
    flow.ack(1);
    assert_eq!(flow.stage(), (Stage::Normal, Trigger::LastUnvalidatedPacketAcknowledged));
    assert!(!flow.cca.state().is_refuted() && !flow.cca.manages_recovery());
}

/// What was discarded (RFC 9002 §6.4) is not waited for.
#[test]
fn discarded_packets_are_not_waited_for() {
    let mut flow = Flow::validating("newreno");
    let (now, bytes) = (flow.now, MSS * 2);
    flow.sent.drain(..2);
    flow.cca.on_discarded(&Discarded { now, bytes, inflight: flow.inflight() });
    flow.pass(RTT);
    flow.ack(147);
    assert_eq!(flow.stage().0, Stage::Validating);
    flow.ack(1);
    assert_eq!(flow.stage().0, Stage::Normal);
}

/// The appendix, "Example with Loss detected in the Validating Phase", whose sender has 29 packets
/// in flight before the jump: 63 are validated when the 35th packet of the jump is lost, which
/// leaves 31, and in the end all but the lost one are.
#[test]
fn the_example_of_the_rfc() {
    let mut flow = Flow::of("newreno").jump(29).send_jump();
    assert_eq!((flow.stage().0, flow.pipe()), (Stage::Validating, 29));
    flow.pass(RTT);
    flow.ack(29 + 34);
    assert_eq!(flow.pipe(), 63);
    flow.lose(1);
    assert_eq!((flow.stage().0, flow.packets()), (Stage::SafeRetreat, 31));
    flow.ack(86);
    assert_eq!((flow.stage().0, flow.packets()), (Stage::Normal, 31));
    let threshold = flow.cca.state().pipe_size() / 2;
    assert_eq!((flow.pipe(), flow.cca.ssthresh()), (149, Some(threshold)));
    flow.send(1);
    flow.ack(1);
    assert_eq!(flow.packets(), 31, "the losses of the jump are still being repaired");
}

/// §3.5: half of the `PipeSize`, never more; the threshold by `PipeSize` and beta in the end; the
/// parameters are to be deleted. For every algorithm, with every threshold there is.
#[test]
fn every_algorithm_retreats() {
    for algorithm in ALGORITHMS {
        let name = algorithm.name;
        let mut flow = Flow::validating(name);
        flow.pass(RTT);
        flow.ack(40);
        flow.lose(10);
        assert_eq!(flow.stage(), (Stage::SafeRetreat, Trigger::PacketLoss), "{name}");
        let window = flow.cca.window();
        assert!(window <= MSS * 20, "{name}: {window}");
        flow.cca.on_spurious_loss(flow.now);
        assert_eq!((flow.cca.window(), flow.cca.phase()), (window, Phase::Recovery), "{name}");
        flow.ack(50);
        assert!(flow.cca.window() <= window, "{name}");
        flow.pass(Duration::from_millis(1));
        flow.lose(10);
        flow.ack(40);
        assert_eq!(flow.stage(), (Stage::Normal, Trigger::ExitRecovery), "{name}");
        assert_eq!(flow.pipe(), 130, "{name}");
        // These go by their rate, which is that of the threshold; their window is a bound of more.
        let by_rate = matches!(name, "vivace" | "allegro" | "sprout" | "gcc" | "nada");
        let bound = if by_rate { Bytes::MAX } else { window };
        let rate = flow.cca.pacing_rate().filter(|_| by_rate).unwrap_or_default();
        assert!(rate <= MSS * 65 / flow.cca.state().srtt(), "{name}: {rate}");
        assert!(flow.cca.window() <= bound, "{name}: {}", flow.cca.window());
        if let Some(ssthresh) = flow.cca.ssthresh() {
            assert!(ssthresh <= MSS * 65, "{name}: {ssthresh}");
            assert!(ssthresh >= MSS * 64, "{name}: slow start goes on up to {ssthresh}");
        }
        if matches!(name, "bbr" | "bbr3") {
            assert_eq!(flow.cca.phase(), Phase::ProbeRtt, "{name} empties the queue");
        }
        assert!(flow.cca.state().is_refuted(), "{name}");
        flow.cca.on_spurious_loss(flow.now);
        assert!(flow.cca.window() <= bound, "{name}: the jump does not come back");
    }
}

/// §3.5: "Beta is a scaling factor between 0.5 and 1".
#[test]
fn the_threshold_after_a_retreat_is_a_setting() {
    let mut settings = Settings::default();
    settings.set(1, 0.7);
    let mut flow = Flow::with("newreno", settings, Some(saved())).jump(19).send_jump();
    flow.pass(RTT);
    flow.ack(140);
    flow.lose(1);
    flow.ack(9);
    assert_eq!(flow.cca.ssthresh(), Some((MSS * 149).mul_f64(0.7)));
}

/// §3.6, and more: the threshold is that of a retreat.
#[test]
fn a_timeout_after_the_jump_leaves_the_threshold_of_a_retreat() {
    for name in ["newreno", "cubic", "illinois"] {
        let mut flow = Flow::validating(name);
        flow.pass(RTT);
        flow.ack(40);
        flow.time_out();
        assert_eq!(flow.stage(), (Stage::Normal, Trigger::PersistentCongestion), "{name}");
        assert_eq!((flow.packets(), flow.cca.ssthresh()), (2, Some(MSS * 20)), "{name}");
        assert!(flow.cca.state().is_refuted());
    }
}

/// A smaller window of the algorithm's own is kept in the retreat.
#[test]
fn a_pause_in_the_retreat_lowers_its_window() {
    let mut flow = Flow::validating("newreno");
    flow.pass(RTT);
    flow.ack(100);
    flow.lose(1);
    assert_eq!(flow.packets(), 50);
    let (now, idle, rto) = (flow.now, RTT * 100, RTT);
    flow.cca.on_idle(&Idle { now, idle, rto });
    assert_eq!(flow.packets(), 10);
}

/// §3.1: the volume that is acknowledged in a round trip without a queue, and the lowest
/// round-trip time.
#[test]
fn what_is_observed_is_the_path_without_its_queue() {
    // A path of 100 packets in 50 ms, on which 200 are in flight.
    let mut flow = Flow::with("newreno", Settings::default(), None);
    assert_eq!(flow.stage(), (Stage::Normal, Trigger::NothingSaved));
    flow.send(1);
    flow.pass(RTT);
    flow.ack(1);
    flow.send(200);
    flow.pass(RTT);
    for _ in 0..1000 {
        flow.pass(Duration::from_micros(500));
        flow.ack(1);
        flow.send(1);
    }
    let observed = flow.cca.state().observed(flow.now).expect("it is worth saving");
    assert_eq!((observed.rtt, observed.expires), (RTT, flow.now + Duration::from_secs(3600)));
    let packets = observed.window.ratio(MSS);
    assert!((packets - 100.0).abs() < 2.0, "{packets}");
}

/// §3.1: "If the measured CWND is less than four times the IW".
#[test]
fn small_windows_are_not_saved() {
    for (packets, worthwhile) in [(39, false), (42, true)] {
        let mut flow = Flow::with("newreno", Settings::default(), None);
        for _ in 0..4 {
            flow.send(packets);
            flow.pass(RTT);
            flow.ack(packets);
        }
        assert_eq!(flow.cca.state().observed(flow.now).is_some(), worthwhile, "{packets}");
    }
}

/// §4.7: a connection observes once it no longer resumes.
#[test]
fn a_jump_is_not_observed() {
    let mut flow = Flow::validating("newreno");
    flow.pass(RTT);
    flow.ack(150);
    assert_eq!((flow.stage().0, flow.cca.state().observed(flow.now)), (Stage::Normal, None));
    for _ in 0..3 {
        flow.send(100);
        flow.pass(RTT);
        flow.ack(100);
    }
    let observed = flow.cca.state().observed(flow.now).expect("three round trips");
    assert_eq!(observed.window, MSS * 100);
}

#[test]
fn the_settings_have_names_and_ranges() {
    let names: std::vec::Vec<_> = Settings::KNOBS.iter().map(|knob| knob.name).collect();
    assert_eq!(names, ["max_jump", "beta", "lifetime"]);
    assert!(Settings::KNOBS[1].check(0.49).is_err(), "RFC 9959 §2.5: between 0.5 and 1");
    assert_eq!(format!("{:?}", Settings::default().get(1)), "Some(0.5)");
}

/// The wrapped algorithm is there to be looked at and turned.
#[test]
fn knobs_are_those_of_the_algorithm() {
    let mut flow = Flow::of("copa");
    crate::set_knob(flow.cca.inner_mut(), "delta", 0.25).expect("Copa has it");
    assert_eq!(crate::get_knob(&flow.cca, "delta"), Some(0.25));
    assert_eq!(flow.cca.knobs().len(), flow.cca.inner().knobs().len());
    assert_eq!(
        flow.cca.pacing_rate().map(|rate| rate > Rate::ZERO),
        Some(true).filter(|_| { flow.cca.inner().pacing_rate().is_some() })
    );
}
