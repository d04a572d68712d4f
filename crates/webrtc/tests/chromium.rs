//! A call to Chromium behind an emulated link, with VMAF measured of what it presented.
//!
//! Skipped, with the reason, where the browser, the tools or the rights are missing; CI has to have
//! them.

use trimtab_apps::Still;
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
    let config = Config::new("gcc").expect("a scheme").with_model("conference").expect("a model");
    let made = call(
        &mut topology,
        (&studio, Scene { clip: &clip, fps: 25 }),
        (&config, Bitrates::default()),
        Duration::from_millis(40),
        (&link, Duration::from_secs(10)),
    );
    let (called, report) = made.expect("a call");
    let record = &called.record;
    let presented = record.frames.iter().filter(|frame| frame.presented_at.is_some()).count();
    let (mean, p95) = (record.mean_delay(), record.delay_quantile(0.95));
    let [mean, p95] = [mean, p95].map(|delay| delay.expect("frames").as_millis_f64());
    let vmaf = record.measured_vmaf.expect("it was measured");
    println!(
        "{presented} of {} frames, delay {mean:.0} ms, {p95:.0} at p95, {:?}, {:.2} Mbit/s, \
         VMAF {vmaf:.1}, QoE {:.1}",
        record.frames.len(),
        record.freezes(),
        record.bitrate().mbps(),
        record.qoe()
    );
    assert_eq!(record.frames.len(), 250);
    // The first picture comes when the decoder is ready, and a busy machine leaves some out.
    assert!(presented > 200, "{presented} of 250");
    let counted = called.stats.number("framesDecoded").expect("getStats counts frames");
    assert!(counted >= presented as f64, "{counted} decoded, {presented} presented");
    // At least the way, and a frame; at most what people bear.
    assert!(mean > 20.0 && mean < 400.0 && p95 < 800.0, "{mean} and {p95} ms");
    assert!(vmaf > 50.0 && vmaf <= 100.0, "{vmaf}");
    // Each of the worst moments has two whole pictures. They may be the same where all is black.
    let ends = record.worst_moments().iter().map(|moment| moment.until).collect::<Vec<_>>();
    assert_eq!(record.stills.iter().map(|still| still.at).collect::<Vec<_>>(), ends);
    assert!(ends.len() >= 3, "{ends:?}");
    for Still { at, seen, captured } in &record.stills {
        for jpeg in [seen, captured] {
            let whole = jpeg.starts_with(&[0xff, 0xd8]) && jpeg.ends_with(&[0xff, 0xd9]);
            assert!(whole, "a JPEG of {} bytes at {at}", jpeg.len());
        }
    }
    assert!(record.stills.iter().any(|still| still.seen != still.captured), "{ends:?}");
    // The encoder followed the link: it began at 0.3 Mbit/s, could make 2.5, and the link has 1.5.
    let asked = |from, to| {
        let frames = record.frames[from..to].iter().map(|frame| frame.asked.mbps());
        frames.sum::<f64>() / (to - from) as f64
    };
    assert!(asked(0, 2) < 0.6, "{}", asked(0, 2));
    assert!((0.4..1.6).contains(&asked(100, 250)), "{}", asked(100, 250));
    assert!(report.down.arrivals > 300, "{report:?}");
}
