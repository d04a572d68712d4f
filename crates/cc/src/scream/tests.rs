//! SCReAM as a whole: media on a bottleneck (RFC 8867), and acknowledgements.

use std::boxed::Box;

use super::*;
use crate::testing::link::{self, Link};
use crate::testing::media::{Media, Path, between, delivered, one, queue, run, target};

/// The window falls from half of the queue target on, 30 ms, so a lone flow fills its link below
/// it.
#[test]
fn a_lone_flow_fills_its_link_below_half_of_the_queue_target() {
    for mbps in [0.5, 1.0, 2.5, 8.0] {
        let slots = one(&Path::constant(mbps), "scream", 60);
        let late = between(&slots, 20, 60);
        let (got, queue) = (delivered(late), queue(late));
        assert!(got > 0.97 * mbps, "{got} of {mbps} Mbit/s");
        assert!((10.0..40.0).contains(&queue), "{queue} ms of queue at {mbps} Mbit/s");
        assert_eq!(late.iter().map(|slot| slot.lost).sum::<u32>(), 0, "at {mbps} Mbit/s");
    }
}

/// RFC 8867 §5.1, with one step each way: 2.5, 1.0 and 2.5 Mbit/s.
#[test]
fn the_target_follows_the_capacity() {
    let path = Path::varying(|t| if (40.0..80.0).contains(&t) { 1.0 } else { 2.5 });
    let slots = one(&path, "scream", 120);
    assert!(target(between(&slots, 20, 40)) > 2.3);
    let fallen = target(between(&slots, 41, 44));
    assert!(fallen < 1.05, "{fallen} after a second");
    assert!(queue(between(&slots, 45, 80)) < 35.0);
    let risen = target(between(&slots, 85, 120));
    assert!(risen > 2.3, "{risen} after five");
}

/// RFC 8867 §5.4: two flows that begin together share evenly. One that comes later takes the
/// standing queue for the path, and keeps more.
#[test]
fn two_flows_share_the_link() {
    let of = |seconds| {
        let second = Media { start: Time::from_secs(seconds), ..Media::new("scream") };
        let both = run(&Path::constant(3.0), [Media::new("scream"), second].into(), 160);
        [0, 1].map(|i| delivered(between(&both[i], 100, 160)))
    };
    let [first, second] = of(0);
    assert!((0.35..0.65).contains(&(first / (first + second))), "{first} and {second}");
    let [first, second] = of(20);
    assert!(first > 0.6 && first + second > 2.9, "{first} and {second}");
}

/// pion/interceptor #299: an encoder that makes 0.5 Mbit/s of a path of 10, with and without
/// jitter. Bytes in flight of frames in a burst are more than those of the rate, and the headroom
/// more again.
#[test]
fn an_idle_encoder_does_not_let_the_target_grow() {
    for jitter in [Duration::ZERO, Duration::from_millis(15)] {
        let idle = Media { most: Box::new(|_| 0.5), ..Media::new("scream") };
        let path = Path { jitter: (7, jitter), ..Path::constant(10.0) };
        let slots = run(&path, [idle].into(), 120).remove(0);
        let most = slots.iter().map(|slot| slot.target).fold(0.0, f64::max);
        assert!((0.5..2.0).contains(&most), "{most} with {jitter}");
    }
}

/// pion/webrtc #3310, mediasoup #316: the least rate is kept, on a path that carries less, and left
/// again.
#[test]
fn the_least_rate_is_kept_and_left_again() {
    for low in [0.03, 0.001] {
        let path = Path::varying(move |t| if (20.0..40.0).contains(&t) { low } else { 2.0 });
        let slots = one(&path, "scream:rate_min=0.06", 100);
        assert!(slots.iter().all(|slot| slot.target >= 0.06 - 1e-5));
        let after = target(between(&slots, 70, 100));
        assert!(after > 1.8, "{after} after {low}");
    }
}

/// 5% of lost packets at 50 ms: less than the link, but no collapse.
#[test]
fn random_losses_take_a_part() {
    let slots = one(&Path { lossy: 20, ..Path::constant(2.5) }, "scream", 60);
    let got = target(between(&slots, 20, 60));
    assert!((0.4..1.5).contains(&got), "{got}");
}

/// Over acknowledgements: all of 48 Mbit/s, and half of the queue target, which is 120 packets.
#[test]
fn acknowledgements_stand_in_for_arrivals() {
    let link = Link { from: Time::from_secs(10), ..Link::fast() };
    let outcome = link::run(link, &[("scream", Time::ZERO)], |_, _, _| {});
    assert!(outcome.shares[0] > 0.98, "{outcome:?}");
    assert!((100.0..140.0).contains(&outcome.queue_mean), "{outcome:?}");
}

/// What one hands over is where another goes on.
#[test]
fn a_hand_over_goes_on_with_the_window() {
    let from = crate::testing::hand_over(Bytes::new(25_000), Duration::from_millis(50));
    let mut scream = Scream::new(&Config::default());
    scream.take_over(&from);
    assert_eq!((scream.window(), scream.phase()), (Bytes::new(25_000), Phase::Steady));
    assert_eq!(scream.operating_point(&PathView::new()).window, Bytes::new(25_000));
    scream.inherit(Bytes::new(12_500), Duration::from_millis(50));
    assert_eq!((scream.window(), scream.phase()), (Bytes::new(12_500), Phase::SlowStart));
    // 2 Mbit/s, of which headers and the distance leave 1 / 1.2 · 1500 / 1520, and few packets
    // 0.98.
    let target = scream.target().map_or(0.0, Rate::mbps);
    assert!((target - 2.0 / 1.2 * 1500.0 / 1520.0 * 0.98).abs() < 1e-3, "{target}");
}
