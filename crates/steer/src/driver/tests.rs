use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::{DRIVEN, Factor, Muses};
use trimtab_cc::resume::{Saved, Stage};
use trimtab_cc::transport::{Packet, Tracker};
use trimtab_cc::{Spec, get_knob};

use super::*;

const MSS: Bytes = Bytes::new(1500);
const RTT: Duration = Duration::from_millis(20);

fn spec(text: &str) -> Spec {
    text.parse().unwrap()
}

fn fixed(text: &str) -> Driver {
    spec(text).build(&Config::default()).into()
}

fn view() -> HostView {
    HostView {
        srtt: RTT,
        min_rtt: RTT,
        inflight: Bytes::ZERO,
        mss: MSS,
        unsent: Bytes::ZERO,
        factors: Factors::new(),
    }
}

/// So many packets leave, and come back a round trip later.
fn round_trip(driver: &mut Driver, tracker: &mut Tracker, from: Time, packets: u32) {
    let mut sent: Vec<Packet> = Vec::new();
    for _ in 0..packets {
        let (packet, event) = tracker.on_sent(from, MSS);
        sent.push(packet);
        driver.on_sent(&event);
    }
    tracker.on_window_limited();
    for packet in &mut sent {
        tracker.on_acked(packet);
    }
    driver.on_ack(&tracker.end_ack(from + RTT, RTT, RTT).unwrap());
}

#[test]
fn a_report_has_what_happened_and_the_knobs_in_force() {
    let mut driver = fixed("copa:delta=0.1");
    driver.report_from(Time::ZERO, RTT, Needs::default());
    assert_eq!(driver.next_timer(), Some(Time::ZERO + RTT));
    round_trip(&mut driver, &mut Tracker::new(), Time::ZERO, 10);
    assert!(driver.report(Time::from_millis(19), view()).is_none(), "none is due");
    let now = Time::ZERO + RTT;
    let action = Action::Set(KnobValues::one("delta", 0.2).with("loss_beta", 0.6));
    driver.act(now, &action).unwrap();
    let report = driver.report(now, view()).unwrap();
    assert_eq!((report.sent, report.acked, report.interval), (MSS * 10, MSS * 10, RTT));
    assert_eq!((report.algorithm, report.window), ("copa", driver.window()));
    let knobs = ["delta", "loss_beta", "velocity_max"].map(|knob| report.knobs.get(knob));
    let unturned = get_knob(driver.algorithm(), "velocity_max");
    assert_eq!(knobs, [Some(0.2), Some(0.6), unturned]);
    assert_eq!(driver.next_timer(), None, "until the next is asked for");
    driver.report_after(now, Duration::ZERO);
    assert_eq!(driver.next_timer(), Some(Time::from_millis(21)), "not at once");
}

#[test]
fn nothing_is_collected_where_nobody_wants_reports() {
    let mut driver = fixed("cubic");
    round_trip(&mut driver, &mut Tracker::new(), Time::ZERO, 10);
    assert_eq!(driver.next_timer(), None);
    assert!(driver.report(Time::from_secs(1), view()).is_none());
    assert!(driver.collector_mut().is_none());
}

#[test]
fn only_a_switching_connection_switches() {
    let to = Action::Switch { to: spec("copa"), how: Switch::Part };
    let mut driver = fixed("cubic");
    assert_eq!(driver.act(Time::ZERO, &to), Err(ActionError::NotSwitching));
    assert_eq!(driver.name(), "cubic");
    let mut driver = Driver::from(Switcher::new(spec("cubic"), &Config::default()));
    driver.act(Time::ZERO, &to).unwrap();
    assert_eq!(driver.name(), "copa");
    assert_eq!(driver.switcher().unwrap().switches(), 1);
}

#[test]
fn a_knob_that_is_refused_leaves_the_others_as_they_were() {
    let mut driver = fixed("copa:delta=0.1");
    let action = Action::Set(KnobValues::one("delta", 0.2).with("loss_beta", 7.0));
    assert!(matches!(driver.act(Time::ZERO, &action), Err(ActionError::Knob(_))));
    assert_eq!(get_knob(driver.algorithm(), "delta"), Some(0.1));
}

/// RFC 9000 §9.4.
#[test]
fn another_path_starts_anew_with_the_knobs_that_were_turned() {
    let mut driver = fixed("copa");
    driver.report_from(Time::ZERO, RTT * 10, Needs::default());
    let mut tracker = Tracker::new();
    let first = driver.window();
    for round in 0..5 {
        round_trip(&mut driver, &mut tracker, Time::ZERO + RTT * round, 10);
    }
    assert!(driver.window() > first);
    driver.act(Time::from_millis(100), &Action::Set(KnobValues::one("delta", 0.2))).unwrap();
    tracker.on_path_change();
    let fresh = spec("copa").build(&Config::default());
    driver.on_path_change(Time::from_millis(150), fresh);
    assert_eq!(driver.window(), first);
    assert_eq!(get_knob(driver.algorithm(), "delta"), Some(0.2));
    let report = driver.report(Time::from_millis(200), view()).unwrap();
    assert_eq!((report.acked, report.interval), (Bytes::ZERO, Duration::from_millis(50)));
}

/// Doubles the window in every second state.
#[derive(Clone, Debug, Default)]
struct EverySecond(u32);

impl Agent for EverySecond {
    fn answer(&mut self, _state: &State) -> Decision {
        self.0 += 1;
        let factor = if self.0.is_multiple_of(2) { Factor::MAX } else { Factor::ONE };
        Decision { factor, known: true }
    }

    fn fork(&self) -> Box<dyn Agent> {
        Box::new(self.clone())
    }
}

/// An acknowledgement that ends an interval of Muses, number `n`, and its decision.
fn interval(driver: &mut Driver, tracker: &mut Tracker, n: u64) -> u64 {
    round_trip(driver, tracker, Time::ZERO + RTT * n, 10);
    driver.decide();
    driver.window().get() / MSS.get()
}

#[test]
fn an_agent_decides_for_an_algorithm_that_waits() {
    let new = || Driver::from(Spec::of(&DRIVEN).build(&Config::default()));
    let mut tracker = Tracker::new();
    let mut alone = new();
    interval(&mut alone, &mut tracker, 0);
    assert!(alone.algorithm().awaiting().is_some(), "nobody answers");
    alone.on_decision(Factor::MAX.into());
    assert!(alone.algorithm().awaiting().is_none());
    assert_eq!(alone.window(), MSS * 20);

    let (mut driver, mut tracker) = (new().with_agent(Box::new(EverySecond(0))), Tracker::new());
    assert_eq!([0, 1, 2].map(|n| interval(&mut driver, &mut tracker, n)), [10, 20, 20]);
    let (mut fork, mut other) = (driver.clone(), tracker.clone());
    assert_eq!([3, 4].map(|n| interval(&mut driver, &mut tracker, n)), [40, 40]);
    let goes_on = [3, 4].map(|n| interval(&mut fork, &mut other, n));
    assert_eq!(goes_on, [40, 40], "a fork remembers, and its original does not count for it");
    driver.on_path_change(Time::from_secs(1), new());
    interval(&mut driver, &mut Tracker::new(), 60);
    assert!(driver.algorithm().awaiting().is_some(), "the agent went with the path");
}

#[test]
fn a_switching_connection_hands_on_states_and_decisions() {
    let config = Config::default();
    let guarded = Switcher::guarded(Muses::new(&config), spec("copa"), &config);
    let mut driver = Driver::from(guarded).with_agent(Box::new(EverySecond(1)));
    assert_eq!(interval(&mut driver, &mut Tracker::new(), 0), 20);
}

/// Who manages recovery by himself needs no halved window; a transport asks which.
#[test]
fn what_runs_says_whether_it_manages_recovery() {
    let says = |text: &str| (fixed(text).manages_recovery(), fixed(text).name());
    assert_eq!((says("bbr"), says("cubic")), ((true, "bbr"), (false, "cubic")));
    let mut driver = Driver::from(Switcher::new(spec("cubic"), &Config::default()));
    assert!(!driver.manages_recovery());
    driver.act(Time::ZERO, &Action::Switch { to: spec("copa"), how: Switch::Part }).unwrap();
    assert!(driver.manages_recovery());
}

/// RFC 9959: what resumes is the algorithm with its knobs, and switching stays possible.
#[test]
fn any_driver_can_resume() {
    let config = Config::default();
    let how = Resumption::default();
    let mut fixed = Driver::from(spec("copa").build(&config)).resuming(&config, how);
    assert_eq!(fixed.resume().map(CarefulResume::stage), Some(Stage::Normal));
    assert!(Driver::from(spec("copa").build(&config)).resume().is_none());
    fixed.act(Time::ZERO, &Action::Set(KnobValues::one("delta", 0.25))).unwrap();
    assert_eq!((fixed.name(), get_knob(fixed.algorithm(), "delta")), ("copa", Some(0.25)));
    let to = Action::Switch { to: spec("bbr"), how: Switch::Part };
    assert_eq!(fixed.act(Time::ZERO, &to), Err(ActionError::NotSwitching));
    let saved = Saved {
        window: Bytes::new(600_000),
        rtt: Duration::from_millis(50),
        expires: Time::from_secs(60),
    };
    let switching = Driver::from(Switcher::new(spec("cubic"), &config));
    let mut switching = switching.resuming(&config, how).resuming(&config, saved.into());
    assert_eq!(switching.resume().map(CarefulResume::stage), Some(Stage::Reconnaissance));
    switching.act(Time::ZERO, &to).unwrap();
    assert_eq!(switching.switcher().map(Switcher::switches), Some(1));
    assert_eq!(switching.name(), "bbr");
}
