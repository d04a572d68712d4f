//! A call to Chromium behind an emulated link, with VMAF measured of what it presented.
//!
//! Skipped, with the reason, where the browser, the tools or the rights are missing; CI has to have
//! them.

use trimtab_emu::{Config as Link, EmuError, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_rtc::units::{Bytes, Duration, Rate};
use trimtab_rtc::{Bitrates, Config};
use trimtab_webrtc::{Scene, Size, Studio, call};

/// Whether a test skips, with the reason; in CI that is a failure.
fn skip(why: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    assert!(!in_ci, "{why}, and CI is set: run `./dev webrtc`, which installs it, as root");
    println!("skipped: {why}");
}

#[test]
fn chromium_presents_a_call_that_follows_the_link() {
    let mut topology = match Topology::new(ServerSide::Private) {
        Err(e @ (EmuError::NotPermitted(_) | EmuError::NoTun(_))) => return skip(&e.to_string()),
        made => made.expect("a topology"),
    };
    let studio = match Studio::from_env() {
        Err(e) => return skip(&e.to_string()),
        Ok(studio) => studio,
    };
    if std::process::Command::new("chromium").arg("--version").output().is_err() {
        return skip("there is no chromium");
    }
    let clip = studio.clip("bunny", Size { width: 640, height: 360 }).expect("a clip");
    let half = Duration::from_millis(20);
    let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(1.5)))
        .queue(QueueConfig::drop_tail_bytes(Bytes::new(60_000)))
        .delay(half);
    let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(half);
    let link = Link { down, up, seed: 1, log: None };
    let config = Config::new(&std::env::var("CC").unwrap_or("gcc".into())).expect("a scheme");
    let bitrates = Bitrates::default();
    let length = Duration::from_secs(10);
    let made = call(
        &mut topology,
        (&studio, Scene { clip: &clip, fps: 25 }),
        (&config, bitrates),
        Duration::from_millis(40),
        (&link, length),
    );
    let (called, report) = made.expect("a call");
    let record = &called.record;
    let presented = record.frames.iter().filter(|frame| frame.presented_at.is_some()).count();
    let (mean, p95) = (record.mean_delay().expect("frames"), record.delay_quantile(0.95));
    println!(
        "{presented} of {} frames, delay {mean} in the mean, {p95:?} at p95, freezes {:?}, \
         {:.2} Mbit/s, VMAF {:?}, QoE {:.1}",
        record.frames.len(),
        record.freezes(),
        record.bitrate().mbps(),
        record.measured_vmaf,
        record.qoe()
    );
    println!("{:?}\n{:?}\n{report:?}", called.stats, called.metrics);
    for f in record.frames.iter().step_by(10) {
        println!(
            "{} {} {} {} {:?}",
            f.captured_at,
            f.bytes.get(),
            f.asked.mbps(),
            f.key,
            f.delay()
        );
    }
    assert_eq!(record.frames.len() as u64, 250);
}
