//! NADA as a whole: RFC 8698's equations, and media on a bottleneck (RFC 8867).

use std::boxed::Box;

use super::*;
use crate::testing::link::{self, Link};
use crate::testing::media::{Media, Path, between, delivered, one, queue, run, target};

/// §4.2 and Equation 5: at rest the signal is PRIO · XREF · RMAX / r_ref, so a lone flow on 1
/// Mbit/s keeps 15 ms of queue. A packet alone is on the wire for 9.6 ms, of which 8.8 are no
/// queue.
#[test]
fn a_lone_flow_keeps_the_queue_of_the_equations() {
    for (spec, expected) in [("nada", 15.0), ("nada:prio=2", 30.0), ("nada:xref=20", 30.0)] {
        let slots = one(&Path::constant(1.0), spec, 60);
        let (got, queue) = (delivered(between(&slots, 20, 60)), queue(between(&slots, 20, 60)));
        assert!((got - 1.0).abs() < 0.01, "{spec}: {got} Mbit/s");
        assert!((queue - expected).abs() < 8.0, "{spec}: {queue} ms");
    }
}

/// Equations 3 and 4: with a round trip of 80 ms γ is 50 / 300, and 100 kbit/s that arrive make
/// 116.7.
#[test]
fn the_accelerated_mode_grows_by_what_arrives() {
    let mut nada = Nada::new(&Config::default());
    nada.begin(Rate::from_mbps(0.15), true);
    nada.rtt = Duration::from_millis(80);
    for i in 0..50 {
        let now = Time::from_millis(20 * i);
        nada.signal.on_arrival(now, Duration::ZERO, Bytes::new(2500), false);
    }
    nada.signal.close(Duration::from_secs(1));
    nada.accelerate();
    assert!((nada.rate.mbps() - 7.0 / 6.0).abs() < 1e-5, "{}", nada.rate);
    nada.set(Rate::from_mbps(2.0));
    nada.accelerate();
    assert_eq!(nada.rate, Rate::from_mbps(2.0), "never lower");
}

/// Equations 5 to 7: 1 Mbit/s, 35 ms after 25 ms. The offset is 35 - 15 = 20, the change
/// -0.5 · 0.2 · 20/500 - 0.5 · 2 · 10/500 = -0.024.
#[test]
fn the_gradual_mode_follows_offset_and_change() {
    let mut nada = Nada::new(&Config::default());
    nada.set(Rate::from_mbps(1.0));
    nada.congestion = 25.0;
    nada.follow(35.0, Duration::from_millis(100));
    assert!((nada.rate.mbps() - 0.976).abs() < 1e-5, "{}", nada.rate);
}

/// RFC 8867 §5.1, with one step each way: 2.5, 1.0 and 2.5 Mbit/s.
#[test]
fn the_target_follows_the_capacity() {
    let path = Path::varying(|t| if (40.0..80.0).contains(&t) { 1.0 } else { 2.5 });
    let slots = one(&path, "nada", 120);
    assert!(target(between(&slots, 20, 40)) > 2.3);
    let fallen = target(between(&slots, 42, 45));
    assert!(fallen < 1.05, "{fallen} after two seconds");
    assert!(queue(between(&slots, 45, 80)) < 30.0, "the queue is gone after five");
    let risen = target(between(&slots, 85, 120));
    assert!(risen > 2.3, "{risen} after five");
}

/// RFC 8867 §5.4: two flows that begin together share evenly. One that comes later takes the
/// standing queue for the path, and keeps more; the first one keeps more than its least rate.
#[test]
fn two_flows_share_the_link() {
    let of = |seconds| {
        let second = Media { start: Time::from_secs(seconds), ..Media::new("nada") };
        let both = run(&Path::constant(3.0), [Media::new("nada"), second].into(), 160);
        [0, 1].map(|i| delivered(between(&both[i], 100, 160)))
    };
    let [first, second] = of(0);
    assert!((0.4..0.6).contains(&(first / (first + second))), "{first} and {second}");
    let [first, second] = of(20);
    assert!(first > 0.5 && first + second > 2.9, "{first} and {second}");
}

/// pion/interceptor #299: an encoder that makes 0.5 Mbit/s of a path of 10, and jitter in which
/// there is never room by §4.2.
#[test]
fn an_idle_encoder_does_not_let_the_target_grow() {
    for jitter in [Duration::ZERO, Duration::from_millis(15)] {
        let idle = Media { most: Box::new(|_| 0.5), ..Media::new("nada") };
        let path = Path { jitter: (7, jitter), ..Path::constant(10.0) };
        let slots = run(&path, [idle].into(), 120).remove(0);
        let most = slots.iter().map(|slot| slot.target).fold(0.0, f64::max);
        assert!((0.5..1.1).contains(&most), "{most} with {jitter}");
    }
}

/// pion/webrtc #3310, mediasoup #316: the least rate is kept, on a path that carries less, and left
/// again.
#[test]
fn the_least_rate_is_kept_and_left_again() {
    let path = Path::varying(|t| if (20.0..40.0).contains(&t) { 0.1 } else { 2.0 });
    let slots = one(&path, "nada", 100);
    assert!(slots.iter().all(|slot| slot.target >= 0.15 - 1e-5));
    assert!(target(between(&slots, 25, 40)) < 0.2);
    assert!(target(between(&slots, 60, 100)) > 1.8);
}

/// Over acknowledgements: 48 Mbit/s within five seconds, and a short queue for a flow without loss.
#[test]
fn acknowledgements_stand_in_for_arrivals() {
    let link = Link { from: Time::from_secs(5), ..Link::fast() };
    let outcome = link::run(link, &[("nada", Time::ZERO)], |_, _, _| {});
    assert!(outcome.shares[0] > 0.95, "{outcome:?}");
    assert!(outcome.queue_mean < 200.0, "{outcome:?}");
}

/// What one hands over is where another goes on.
#[test]
fn a_hand_over_goes_on_at_the_rate() {
    let from = crate::testing::hand_over(Bytes::new(25_000), Duration::from_millis(50));
    let mut nada = Nada::new(&Config::default());
    nada.take_over(&from);
    assert_eq!((nada.target(), nada.phase()), (Some(Rate::from_mbps(4.0)), Phase::Steady));
    assert_eq!(nada.operating_point(&PathView::new()).rate, Rate::from_mbps(4.0));
    nada.inherit(Bytes::new(12_500), Duration::from_millis(50));
    assert_eq!((nada.target(), nada.phase()), (Some(Rate::from_mbps(2.0)), Phase::SlowStart));
}
