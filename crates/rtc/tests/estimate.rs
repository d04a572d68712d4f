//! What users of WebRTC stacks report of their estimates, each as a test of controllers of every kind
//! that drives one: growth without need, collapse on a healthy link, deadlock at a low rate, a
//! minimum that is not kept. On the interceptors of `rtc-interceptor`, in virtual time.

mod support;

use support::{Second, Setting, World, mean};
use trimtab_rtc::Bitrates;
use trimtab_rtc::units::{Bytes, Rate, Time};

/// By a target, by window alone, by window and rate, by rate, and steered.
const SCHEMES: [&str; 6] = ["gcc", "copa", "cubic", "bbr", "vivace", "mortise"];

/// A run of each scheme, for so many seconds.
fn runs(setting: &Setting, seconds: u64) -> impl Iterator<Item = (&'static str, Vec<Second>)> {
    SCHEMES.into_iter().map(move |scheme| {
        let mut world = World::new(scheme, setting);
        let seen = world.run_until(Time::from_secs(seconds)).to_vec();
        assert_eq!(seen.len() as u64, seconds - 1);
        (scheme, seen)
    })
}

fn least(seconds: &[Second], of: impl Fn(&Second) -> f64) -> f64 {
    seconds.iter().map(of).fold(f64::INFINITY, f64::min)
}

fn most(seconds: &[Second], of: impl Fn(&Second) -> f64) -> f64 {
    seconds.iter().map(of).fold(0.0, f64::max)
}

/// pion/interceptor #299: the estimate rises without end while the encoder has nothing to send.
#[test]
fn a_target_that_is_not_used_stops_growing() {
    let content = Rate::from_mbps(0.5);
    let setting = Setting { content, ..Setting::of_mbps(20.0) };
    for (scheme, seen) in runs(&setting, 120) {
        let early = most(&seen[20..60], |second| second.target);
        let late = most(&seen[60..], |second| second.target);
        println!("{scheme}: at most {early:.2}, then {late:.2} Mbit/s for 0.5");
        assert!(late < 4.0 && late < early * 1.1, "{scheme}: {seen:?}");
    }
}

/// pion/interceptor #156: the estimate falls, although the link has room and loses nothing.
#[test]
fn a_healthy_link_is_used() {
    for (scheme, seen) in runs(&Setting::of_mbps(2.0), 60) {
        let steady = &seen[20..];
        let (used, low) = (mean(steady, |s| s.arrived), least(steady, |s| s.arrived));
        let backlog = mean(steady, |second| second.backlog_ms);
        println!(
            "{scheme}: {used:.2} Mbit/s of 2, at least {low:.2} in a second, up to {backlog:.0} ms \
             in the pacer"
        );
        // An encoder that follows the target keeps the pacer short. Vivace tries rates of several
        // times the link's, and this encoder fills them.
        assert!(backlog < 500.0 || scheme == "vivace", "{scheme}: {seen:?}");
        assert!(used > 1.0 && low > 0.4, "{scheme}: {seen:?}");
    }
}

/// In a buffer of a round trip what is sent again would fill the queue that dropped it. It comes out
/// of the encoder's rate.
#[test]
fn what_is_sent_again_does_not_fill_a_short_queue() {
    let mut setting = Setting::of_mbps(2.0);
    setting.buffer = Bytes::new(10_000);
    let mut world = World::new("gcc", &setting);
    let seen = world.run_until(Time::from_secs(60)).to_vec();
    let steady = &seen[20..];
    let dropped = mean(steady, |second| second.dropped as f64);
    let (used, backlog) = (mean(steady, |s| s.arrived), mean(steady, |s| s.backlog_ms));
    println!("gcc: {used:.2} of 2 Mbit/s, {dropped:.1} packets a second dropped, {backlog:.0} ms");
    assert!(dropped < 40.0 && used > 1.4 && backlog < 150.0, "{seen:?}");
}

/// mediasoup #316, str0m #1018: at a low rate there is too little feedback to rise again.
#[test]
fn a_low_rate_is_no_trap() {
    let start = Rate::from_bits_per_sec(30_000);
    let mut setting = Setting::of_mbps(2.0);
    setting.bitrates = Bitrates { start, least: start, ..setting.bitrates };
    for (scheme, seen) in runs(&setting, 60) {
        let used = mean(&seen[40..], |second| second.arrived);
        println!("{scheme}: from 0.03 to {used:.2} Mbit/s");
        assert!(used > 1.0, "{scheme}: {seen:?}");
    }
}

/// The same after an outage, in which no feedback came.
#[test]
fn an_outage_is_survived() {
    let (from, to, end) = (Time::from_secs(20), Time::from_secs(30), Time::from_secs(70));
    for scheme in SCHEMES {
        let mut world = World::new(scheme, &Setting::of_mbps(2.0));
        world.run_until(from);
        world.is_deaf = true;
        let without = world.run_until(to).to_vec();
        world.is_deaf = false;
        let after = world.run_until(end).to_vec();
        let (low, used) =
            (least(&without, |s| s.arrived), mean(&after[20..], |second| second.arrived));
        println!("{scheme}: {low:.3} Mbit/s without feedback, then {used:.2}");
        // Packets leave on, or nobody would see the end of it; but not as before.
        assert!(low > 0.01 && low < 1.0, "{scheme}: {without:?}");
        // GCC grows by 8% a second from there, unless a probe finds more.
        let least_used = if scheme == "gcc" { 0.1 } else { 0.8 };
        assert!(used > least_used, "{scheme}: {after:?}");
    }
}

/// pion/webrtc #3310: the target falls below the least that the application allows.
#[test]
fn the_least_is_obeyed() {
    let floor = Rate::from_mbps(0.3);
    let mut setting = Setting { loss: 0.3, ..Setting::of_mbps(0.2) };
    setting.bitrates = Bitrates { least: floor, start: floor, ..setting.bitrates };
    for (scheme, seen) in runs(&setting, 30) {
        let low = least(&seen, |second| second.target);
        let sent = mean(&seen[10..], |second| second.arrived);
        println!("{scheme}: at least {low:.2}, {sent:.2} Mbit/s arrive");
        assert!(low >= floor.mbps(), "{scheme}: {seen:?}");
        // Of what leaves 30% are lost at random; the rest nearly fills the link.
        assert!(sent > 0.15, "{scheme}: {seen:?}");
    }
}
