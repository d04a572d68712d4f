//! A program as it is at the other end, too: a browser plays video from nginx through an emulated link, under an agent.
//!
//! The page is a player by Media Source Extensions that picks bitrates by throughput, as dash.js
//! does, and says at the end what the viewer saw. Skipped, with the reason, where nginx or Chromium
//! are missing; CI has to have them.

use std::collections::HashMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use trimtab_agent::Standing;
use trimtab_emu::Topology;

use crate::common::{self, need_kernel};
use crate::setup::Setup;
use crate::web::{Site, need_programs, with_an_agent};
use crate::webm::Video;

const PORT: u16 = 7132;
/// As in the page: kbit/s and pictures.
const LADDER: [(usize, u16, u16); 4] =
    [(500, 320, 180), (1500, 480, 270), (3000, 640, 360), (6000, 960, 540)];
const SEGMENTS: u16 = 10;
/// A browser starts slowly on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

fn site() -> Site {
    let page = include_bytes!("player.html").to_vec();
    let mut files = vec![("player.html".to_owned(), page)];
    for (kbps, width, height) in LADDER {
        let video = Video { width, height, kbps };
        files.push((format!("{kbps}.webm"), video.header()));
        let segment = |second| (format!("{kbps}-{second}.webm"), video.segment(second));
        files.extend((0..SEGMENTS).map(segment));
    }
    Site { port: PORT, files }
}

/// A browser without a window; ends when dropped, with all its processes.
struct Browser(Child);

impl Browser {
    fn open(topology: &Topology, profile: &Path, address: String) -> Self {
        let profile = profile.display().to_string();
        let child = topology.client().run(move || {
            Command::new("chromium")
                // Its sandbox wants another user than root.
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
                .args(["--mute-audio", "--autoplay-policy=no-user-gesture-required"])
                .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
                .arg(format!("--user-data-dir={profile}"))
                .arg(address)
                .env("HOME", &profile)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
        });
        Self(child.expect("Chromium starts"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// What the page says at the end.
fn told(reports: &Path, agent: &crate::setup::Agent) -> HashMap<String, String> {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(reports).unwrap_or_default();
        if let Some(line) = text.lines().next() {
            let fields = line.split('&').filter_map(|field| field.split_once('='));
            return fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        }
        assert!(start.elapsed() < PATIENCE, "the page says nothing; the agent: {}", agent.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_browser_plays_video_from_nginx_through_a_link_under_the_agent() {
    need_kernel!();
    need_programs!("nginx", "chromium");
    let setup = Setup::new("_y");
    let (mut topology, agent) = with_an_agent(&setup, PORT);
    let _nginx = site().serve(&topology, setup.folder());
    let page = format!("http://{}:{PORT}/player.html", topology.server_address());
    let browser = Browser::open(&topology, &setup.folder().join("profile"), page);
    let told = told(&setup.folder().join("reports"), &agent);
    drop(browser);
    println!("{told:?}");

    let number = |name: &str| -> f64 {
        let value = told.get(name).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no {name}: {told:?}"))
    };
    let list = |name: &str| -> Vec<f64> {
        let values = told.get(name).map_or("", String::as_str).split("%2C");
        values.map(|value| value.parse().unwrap_or_else(|_| panic!("{name}: {told:?}"))).collect()
    };
    assert!((number("played_s") - f64::from(SEGMENTS)).abs() < 0.2, "{told:?}");
    assert!(number("frames") > 0.5 * 10.0 * f64::from(SEGMENTS), "{told:?}");
    assert!(number("first_frame_ms") > 0.0, "{told:?}");
    assert!(number("stalled_ms") < 500.0, "{told:?}");
    let bitrates = list("kbps");
    assert_eq!(bitrates.len(), usize::from(SEGMENTS), "{told:?}");
    assert!(bitrates.iter().any(|kbps| *kbps >= 3000.0), "the link holds more: {told:?}");
    let store = list("store_ms");
    assert!(store.iter().any(|level| *level > 2000.0), "nothing was ever in store: {told:?}");

    let status = agent.status().expect("the agent answers");
    let tally = &status.rules.iter().find(|rule| rule.rule == "video").expect("the rule").tally;
    assert!(tally.opened >= 2 && tally.decisions > 4, "{status}");
    let strangers = agent.flows().into_iter().filter(|flow| flow.standing != Standing::Steered);
    assert_eq!(strangers.count(), 0);
    topology.stop().expect("an end");
}
