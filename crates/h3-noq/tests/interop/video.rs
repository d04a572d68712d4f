//! Chromium plays a video by Media Source Extensions. The player picks bitrates by throughput, and
//! tells the server what it has in store; the steering goes by that.

use serde_json::json;

use crate::room::{Room, assert_steered};
use crate::webm::Video;

/// As in the page: kbit/s and pictures.
const LADDER: [(usize, u16, u16); 4] =
    [(500, 320, 180), (1500, 480, 270), (3000, 640, 360), (6000, 960, 540)];
const SEGMENTS: u16 = 10;
const FRAMES_PER_SECOND: u16 = 10;

fn files() -> Vec<(String, Vec<u8>)> {
    let page = include_bytes!("../../../agent/tests/agent/player.html").to_vec();
    let mut files = vec![("player.html".to_owned(), page)];
    for (kbps, width, height) in LADDER {
        let video = Video { width, height, kbps };
        files.push((format!("{kbps}.webm"), video.header()));
        let segment = |second| (format!("{kbps}-{second}.webm"), video.segment(second));
        files.extend((0..SEGMENTS).map(segment));
    }
    files
}

#[test]
fn chromium_plays_video_on_a_connection_steered_by_its_buffer() {
    let Some(room) = Room::open("vod", &files()) else { return };
    let Some(mut browser) = room.browse("player.html") else { return };

    browser.until("document.readyState === 'complete' && video.ended");
    let played = browser.value("video.currentTime").as_f64().expect("seconds");
    assert!((played - f64::from(SEGMENTS)).abs() < 0.2, "{played} s");
    let frames = browser.value("video.getVideoPlaybackQuality().totalVideoFrames");
    let frames = frames.as_u64().expect("a number");
    assert!(frames > u64::from(SEGMENTS * FRAMES_PER_SECOND / 2), "{frames} frames");
    let seen = browser.value("seen");
    println!("{seen}");
    let bitrates = seen["kbps"].as_array().expect("a list");
    assert_eq!(bitrates.len(), usize::from(SEGMENTS));
    assert!(bitrates.iter().any(|kbps| kbps.as_u64() >= Some(3000)), "the link holds more: {seen}");

    let segments = "performance.getEntriesByType('resource')\
                    .filter((entry) => entry.name.endsWith('.webm'))";
    let fetched = browser.value(&format!("{segments}.map((entry) => entry.nextHopProtocol)"));
    let fetched = fetched.as_array().expect("a list").clone();
    // Each bitrate has a header, too.
    assert!(fetched.len() > usize::from(SEGMENTS), "{fetched:?}");
    assert!(fetched.iter().all(|protocol| protocol == "h3"), "{fetched:?}");
    browser.tell("Browser.close", &json!({}));

    let reports = room.reports(fetched.len() as u64);
    let report = reports.iter().max_by_key(|report| report.responses).expect("a report");
    assert_steered(report);
}
