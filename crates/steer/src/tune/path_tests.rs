//! What reports of links whose capacity, jitter and losses are known make of a path.

use trimtab_units::Time;

use super::*;
use crate::tune::tests::{Link, MSS, report, steady};

/// 12 Mbit/s and 20 ms, with so many packets in the queue.
fn link(queue_packets: f64) -> Link {
    Link { queue_packets, ..steady(1.0) }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Takes in a report of this link, measured with a δ of 0.1.
fn see(path: &mut Path, link: Link) -> Option<Step> {
    path.on_report(&report(Time::ZERO, link), 0.1)
}

/// A path after `reports` reports, of which the k-th is of the link `link(k)`.
fn after(reports: usize, link: impl Fn(usize) -> Link) -> Path {
    let mut path = Path::new();
    for k in 0..reports {
        see(&mut path, link(k));
    }
    path
}

/// Takes in so many reports of the same link.
fn see_all(path: &mut Path, reports: u32, link: Link) {
    for _ in 0..reports {
        see(path, link);
    }
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-3
}

#[test]
fn a_queue_shows_the_capacity_and_without_one_it_is_a_guess() {
    let mut path = after(100, |_| link(20.0));
    assert!(near(path.capacity, 1_000.0) && near(path.rtt_min, 0.020));
    let step = see(&mut path, link(20.0)).unwrap();
    assert!(step.full && near(step.capacity, 1_000.0) && near(step.length, 0.040));
    // A millisecond of queue is none.
    assert!(!see(&mut path, link(1.0)).unwrap().full);
    assert!(see(&mut path, link(2.0)).unwrap().full);
    // Who sends less and sees no queue has not seen less capacity.
    let slow = Link { packets_per_s: 500.0, ..link(0.0) };
    let step = see(&mut path, slow).unwrap();
    assert!(!step.full && near(step.capacity, 1_000.0) && near(path.capacity, 1_000.0));
    // Who sends more and sees none has seen more.
    let fast = Link { packets_per_s: 2_000.0, ..link(0.0) };
    assert!(near(see(&mut path, fast).unwrap().capacity, 2_000.0) && near(path.capacity, 2_000.0));
}

/// The highest delivery rate of a report shows more than its mean does.
#[test]
fn where_no_queue_shows_it_the_delivery_rate_is_capacity() {
    let mut path = Path::new();
    let rate = Some(trimtab_units::Rate::from_mbps(36.0));
    let report = Report { delivery_rate: rate, ..report(Time::ZERO, link(0.0)) };
    assert!(near(path.on_report(&report, 0.1).unwrap().capacity, 3_000.0));
}

#[test]
fn a_capacity_that_fell_is_believed_slowly() {
    let mut path = after(100, |_| link(20.0));
    let slow = Link { packets_per_s: 500.0, ..link(20.0) };
    see_all(&mut path, 5, slow);
    assert!((700.0..900.0).contains(&path.capacity), "{}", path.capacity);
    see_all(&mut path, 100, slow);
    assert!(near(path.capacity, 500.0), "{}", path.capacity);
}

/// A flow that grew until a queue formed could have had that capacity all the while.
#[test]
fn growth_towards_a_queue_had_its_capacity_all_the_while() {
    let at = |packets_per_s: f64, queue: f64| Link { packets_per_s, ..link(queue) };
    let links = [at(500.0, 20.0), at(100.0, 0.0), at(800.0, 0.0), at(700.0, 20.0)];
    let path = after(4, |k| links[k]);
    let capacities: Vec<f64> = path.steps().map(|step| step.capacity).collect();
    let expected = [500.0, 700.0, 800.0, 700.0];
    assert!(capacities.iter().zip(expected).all(|(a, b)| near(*a, b)), "{capacities:?}");
    assert!(path.steps().all(|step| step.full));
}

#[test]
fn the_last_steps_are_remembered() {
    let newest = |packets_per_s: f64| Link { packets_per_s, ..link(20.0) };
    let mut path = after(150, |k| newest(1_000.0 + k as f64));
    assert_eq!(path.steps().len(), STEPS_MAX);
    let first = path.steps().next().unwrap().capacity;
    assert!((first - 1_054.0).abs() < 1.0, "{first}");
    path.forget(3);
    let kept: Vec<f64> = path.steps().map(|step| step.capacity.round()).collect();
    assert_eq!(kept, [1_147.0, 1_148.0, 1_149.0]);
}

/// Half of the time is enough; a report without round-trip times is not.
#[test]
fn a_flow_without_data_to_send_sees_no_capacity() {
    let mut path = Path::new();
    let whole = report(Time::ZERO, link(20.0));
    let busy = |percent: u64| Report { busy: whole.interval * percent / 100, ..whole.clone() };
    assert!(path.on_report(&busy(49), 0.1).is_none() && path.steps().len() == 0);
    assert!(path.on_report(&Report { rtt_mean: None, ..whole.clone() }, 0.1).is_none());
    assert!(path.on_report(&Report { interval: Duration::ZERO, ..whole.clone() }, 0.1).is_none());
    assert!(path.on_report(&busy(50), 0.1).is_some() && path.steps().len() == 1);
}

/// Round trips of 5 ms above the lowest, where Copa's own movement is half of 1/δ packets.
#[test]
fn what_copa_moves_by_itself_is_no_jitter() {
    let jitter = |delta: f64| {
        let mut path = Path::new();
        let calm = report(Time::ZERO, link(20.0));
        let high = calm.rtt_min.map(|rtt| rtt + ms(5));
        let scattered = Report { rtt_mean: high, rtt_max: high, ..calm };
        for _ in 0..200 {
            path.on_report(&scattered, delta);
        }
        path.jitter
    };
    assert!(near(jitter(1.0), 0.0045), "{}", jitter(1.0));
    assert!(near(jitter(0.25), 0.003), "{}", jitter(0.25));
    assert!(jitter(0.1) < 1e-6, "{}", jitter(0.1));
}

/// The last round of slow start overshoots any buffer, and shows its losses after it is over.
#[test]
fn losses_of_slow_start_do_not_count() {
    let lossy = Link { loss: 0.2, ..link(20.0) };
    let mut path = after(100, |_| link(20.0));
    let start = Report { phase: Phase::SlowStart, ..report(Time::ZERO, lossy) };
    for _ in 0..20 {
        path.on_report(&start, 0.1);
    }
    see_all(&mut path, SETTLING - 1, lossy);
    assert_eq!(path.overflow(), 0.0);
    see(&mut path, lossy);
    assert!(path.overflow() > 0.0);
    see_all(&mut path, 400, lossy);
    assert!((path.overflow() - 0.2).abs() < 0.005, "{}", path.overflow());
    path.forget(STEPS_MAX);
    assert_eq!(path.overflow(), 0.0, "of another regime");
}

/// Every other report has a long queue.
fn swinging(when_long: f64, when_short: f64) -> Path {
    after(3_000, |k| {
        let (queue, loss) = if k % 2 == 0 { (20.0, when_long) } else { (1.0, when_short) };
        Link { loss, ..link(queue) }
    })
}

#[test]
fn what_is_lost_with_a_short_queue_too_is_the_link_s() {
    let path = swinging(0.05, 0.05);
    assert_eq!((path.overflow(), path.overflow_share()), (0.0, 0.0));
    assert!((path.loss(0.0) - 0.05).abs() < 0.005, "{}", path.loss(0.0));
    assert!((path.loss(0.3) - path.loss(0.0) - 0.3).abs() < 1e-9);
    assert_eq!(path.loss(1.0), 1.0);
}

#[test]
fn what_is_lost_with_a_long_queue_only_is_the_buffer_s() {
    let path = swinging(0.1, 0.0);
    // 4 of 61 packets.
    assert!((path.overflow() - 4.0 / 61.0).abs() < 0.005, "{}", path.overflow());
    assert!(path.loss(0.0) < 0.001 && path.overflow_share() > 0.95, "{path:?}");
    // A tenth of both: 16 % of all packets, of which the link loses 5 % half as often again.
    let both = swinging(0.25, 0.05);
    assert!((0.5..0.7).contains(&both.overflow_share()), "{}", both.overflow_share());
    assert_eq!(swinging(0.0, 0.0).overflow_share(), 0.0);
}

#[test]
fn a_link_that_loses_most_is_taken_to_lose_half() {
    assert_eq!(swinging(0.9, 0.9).loss(0.0), 0.5);
}

#[test]
fn the_queue_that_the_path_holds_is_a_long_one() {
    let mut path = after(300, |_| link(30.0));
    assert!(near(path.queue_long(), 30.0), "{}", path.queue_long());
    // A short queue says a quarter of what a long one says.
    let mut moved = |queue: f64| {
        let before = path.queue_long();
        see(&mut path, link(queue));
        path.queue_long() - before
    };
    let (up, down) = (moved(40.0), moved(20.0));
    assert!(up > 1.0 && down < 0.0 && up > 2.5 * -down, "{up} {down}");
    // Where a link stood still, all packets in flight show as queue.
    let frozen = moved(10_000.0);
    assert!(frozen < 0.2 * 34.0, "{frozen}");
    assert!(near(after(300, |_| link(0.0)).queue_long() + 1.0, 1.0));
}

/// A queue that is there one time in four is held by the path; one in fifty is not.
#[test]
fn what_is_seldom_is_not_what_the_path_holds() {
    let rest = |every: usize| after(2_000, |k| link(if k % every == 0 { 20.0 } else { 4.0 }));
    assert!(rest(2).queue_long() > 14.0 && rest(50).queue_long() < 6.0);
    assert!(rest(4).queue_long() > rest(10).queue_long());
}

/// A packet is as large as the report says.
#[test]
fn capacities_are_in_packets() {
    let small = Report { mss: MSS / 2, ..report(Time::ZERO, link(20.0)) };
    let mut path = Path::new();
    assert!(near(path.on_report(&small, 0.1).unwrap().capacity, 2_000.0));
}
