//! GCC as a whole: over media on a bottleneck, and over acknowledgements.

use std::boxed::Box;

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::*;
use crate::migrate::{Migrate, PathView};
use crate::testing::link::{self, Link};
use crate::testing::media::{Media, Path, Slot, between, delivered, one, queue, run, target};
use crate::{CongestionControl, Phase};

fn least(slots: &[Slot]) -> f64 {
    slots.iter().map(|slot| slot.target).fold(f64::MAX, f64::min)
}

/// RFC 8867 §5.1's ground without its steps: most of the link, and a short queue.
#[test]
fn a_lone_flow_fills_its_link_and_keeps_the_queue_short() {
    for mbps in [0.5, 1.0, 2.5] {
        let slots = one(&Path::constant(mbps), "gcc", 120);
        let late = between(&slots, 20, 120);
        let (got, queue) = (delivered(late), queue(late));
        assert!(got > 0.85 * mbps, "{got} of {mbps} Mbit/s");
        assert!(queue < 45.0, "{queue} ms of queue at {mbps} Mbit/s");
        assert_eq!(late.iter().map(|slot| slot.lost).sum::<u32>(), 0, "at {mbps} Mbit/s");
    }
}

/// Probes find 2.5 Mbit/s in the first second; 8% in a second needs 28 s from 300 kbit/s.
#[test]
fn probes_find_the_capacity_at_once() {
    let path = Path::constant(2.5);
    assert!(target(between(&one(&path, "gcc", 10), 1, 2)) > 2.0);
    let silent = Media { probes: false, ..Media::new("gcc") };
    let slots = run(&path, [silent].into(), 40).remove(0);
    assert!(target(between(&slots, 9, 10)) < 0.8);
    assert!(target(between(&slots, 34, 40)) > 2.0);
}

/// RFC 8867 §5.1, with one step each way: 2.5, 1.0 and 2.5 Mbit/s.
#[test]
fn the_target_follows_the_capacity() {
    let path = Path::varying(|t| if (40.0..80.0).contains(&t) { 1.0 } else { 2.5 });
    let slots = one(&path, "gcc", 120);
    assert!(target(between(&slots, 20, 40)) > 2.1);
    let fallen = target(between(&slots, 42, 44));
    assert!(fallen < 1.05, "{fallen} after two seconds");
    assert!(queue(between(&slots, 44, 80)) < 40.0, "the queue is gone after four");
    assert!(target(between(&slots, 50, 80)) > 0.85);
    let risen = target(between(&slots, 100, 120));
    assert!(risen > 2.0, "{risen} after twenty");
}

/// RFC 8867 §5.4: flows of one kind share; GCC's second flow takes a while.
#[test]
fn two_flows_share_the_link() {
    let second = Media { start: Time::from_secs(20), ..Media::new("gcc") };
    let both = run(&Path::constant(3.0), [Media::new("gcc"), second].into(), 160);
    let [first, second] = [0, 1].map(|i| delivered(between(&both[i], 60, 160)));
    assert!(first + second > 2.5, "{first} and {second}");
    assert!(second > 0.3 * (first + second), "{first} and {second}");
}

/// pion/interceptor #299: an encoder that makes 0.5 Mbit/s of a path of 10. Without probes the
/// target is at most 1.5 times that; with probes it is no more than they found.
#[test]
fn an_idle_encoder_does_not_let_the_target_grow() {
    let idle = |probes| Media { most: Box::new(|_| 0.5), probes, ..Media::new("gcc") };
    let path = Path::constant(10.0);
    let slots = run(&path, [idle(false)].into(), 120).remove(0);
    let most = slots.iter().map(|slot| slot.target).fold(0.0, f64::max);
    assert!((0.5..0.9).contains(&most), "{most}");
    let slots = run(&path, [idle(true)].into(), 120).remove(0);
    let most = slots.iter().map(|slot| slot.target).fold(0.0, f64::max);
    assert!((0.7..=5.0).contains(&most), "{most}");
    // And the encoder awakes to what is there, on a path that has become slow.
    let wakes = Media { most: Box::new(|t| if t < 60.0 { 0.3 } else { 9.0 }), ..Media::new("gcc") };
    let slots = run(&Path::constant(1.0), [wakes].into(), 120).remove(0);
    assert!(delivered(between(&slots, 70, 120)) > 0.8);
    assert!(queue(between(&slots, 70, 120)) < 45.0);
}

/// pion/interceptor #156: jitter and single losses on a link that has room are no congestion.
#[test]
fn a_healthy_link_is_no_reason_to_collapse() {
    let late = Duration::from_millis(8);
    let path = Path { lossy: 200, jitter: (7, late), ..Path::constant(2.5) };
    let slots = one(&path, "gcc", 180);
    let (got, least) = (delivered(between(&slots, 20, 180)), least(between(&slots, 20, 180)));
    assert!(got > 1.9, "{got} Mbit/s");
    assert!(least > 1.25, "{least} Mbit/s");
}

/// pion/webrtc #3310: a path that carries less than the configured minimum.
#[test]
fn the_target_is_never_below_the_minimum() {
    let slots = one(&Path::constant(0.1), "gcc:rate_min=0.15", 60);
    assert!(slots.iter().all(|slot| slot.target >= 0.15 - 1e-5), "{}", least(&slots));
}

/// mediasoup #316, str0m #1018: a path of 20 kbit/s that recovers, and one that is gone for 20 s.
#[test]
fn a_low_rate_is_left_again() {
    for low in [0.02, 0.001] {
        let slow = move |t: f64| if (20.0..40.0).contains(&t) { low } else { 2.0 };
        let slots = one(&Path::varying(slow), "gcc", 160);
        let fell = least(between(&slots, 20, 50));
        assert!(fell < 0.2, "{fell} with {low}");
        let after = target(between(&slots, 130, 160));
        assert!(after > 1.0, "{after} after {low}");
    }
}

/// The loss part bears 5% that is there at any rate, and takes 20% for 75 kbit/s over the
/// excess above 5%, 500 kbit/s at once and less as long as it lasts.
#[test]
fn a_loss_at_any_rate_is_borne() {
    let of = |lossy| one(&Path { lossy, ..Path::constant(2.5) }, "gcc", 60);
    let few = target(between(&of(20), 30, 60));
    assert!(few > 2.0, "{few} Mbit/s with 5%");
    let many = target(between(&of(5), 30, 60));
    assert!(many < 0.5, "{many} Mbit/s with 20%");
    let slots = one(&Path::constant(2.5), "gcc", 60);
    assert!(delivered(between(&slots, 20, 60)) > 2.1);
}

/// Over acknowledgements the search finds 48 Mbit/s within a second, and the flow keeps to it. While
/// the search's queue empties there are two decreases to 0.85 of what arrives, 0.72 of the link.
#[test]
fn acknowledgements_stand_in_for_arrivals() {
    let (mut started, mut first) = (false, 0.0);
    let link = Link { from: Time::from_secs(5), ..Link::fast() };
    let outcome = link::run(link, &[("gcc", Time::ZERO)], |_, now, cca| {
        if !started && now >= Time::from_secs(1) {
            (started, first) = (true, cca.target().map_or(0.0, Rate::mbps));
            assert_eq!(cca.phase(), Phase::Steady);
        }
    });
    assert!((20.0..60.0).contains(&first), "{first} Mbit/s");
    assert!(outcome.shares[0] > 0.75, "{outcome:?}");
    assert!(outcome.queue_mean < 40.0, "{outcome:?}");
}

/// What one hands over is where another goes on, without probes; and after a start from nothing but
/// a window, with them.
#[test]
fn a_hand_over_goes_on_at_the_rate() {
    let from = crate::testing::hand_over(Bytes::new(25_000), Duration::from_millis(50));
    let mut gcc = Gcc::new(&Config::default());
    gcc.take_over(&from);
    assert_eq!((gcc.target(), gcc.phase()), (Some(Rate::from_mbps(4.0)), Phase::Steady));
    assert_eq!(gcc.take_probe(from.now), None);
    let path = PathView::new();
    assert_eq!(gcc.operating_point(&path).rate, Rate::from_mbps(4.0));
    gcc.inherit(Bytes::new(12_500), Duration::from_millis(50));
    assert_eq!((gcc.target(), gcc.phase()), (Some(Rate::from_mbps(2.0)), Phase::SlowStart));
    assert_eq!(gcc.take_probe(from.now).map(|probe| probe.rate), Some(Rate::from_mbps(5.0)));
}
