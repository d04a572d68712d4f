//! A server of video for one player, as fast as the test wants it, which logs as nginx does.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common;
use crate::webm::Video;

/// As in the page, in kbit/s.
const LADDER_KBPS: [usize; 4] = [500, 1500, 3000, 6000];
/// The pictures of all: small, so that a busy machine decodes them in time.
const PICTURE: (u16, u16) = (320, 180);
/// So much is sent at a time, in bytes.
const PIECE: usize = 8192;

/// Serves until the test ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// How fast it sends, in kbit/s.
    pub(crate) kbps: Arc<AtomicU64>,
}

impl Server {
    pub(crate) fn start(log: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let kbps = Arc::new(AtomicU64::new(10_000));
        let log = Arc::new(Mutex::new(File::create(log).expect("a log")));
        let speed = Arc::clone(&kbps);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (speed, log) = (Arc::clone(&speed), Arc::clone(&log));
                // The browser may go at any time.
                std::thread::spawn(move || drop(serve(&stream, &speed, &log)));
            }
        });
        Self { address, kbps }
    }
}

fn serve(stream: &TcpStream, kbps: &AtomicU64, log: &Mutex<File>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next() {
        let (request, start) = (request?, Instant::now());
        let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
        let mut line = serde_json::json!({
            "remote_addr": "127.0.0.1", "request_uri": path, "status": 200,
        });
        for header in lines.by_ref() {
            let header = header?;
            let Some((name, value)) = header.split_once(':') else { break };
            if name.to_ascii_lowercase().starts_with("cmcd-") {
                let name = format!("http_{}", name.to_ascii_lowercase().replace('-', "_"));
                line[name] = value.trim().into();
            }
        }
        let (kind, body) = body(path.trim_start_matches('/'));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut to = stream;
        to.write_all(head.as_bytes())?;
        let mut due = Duration::ZERO;
        for piece in body.chunks(PIECE) {
            to.write_all(piece)?;
            let ms = piece.len() as f64 * 8.0 / kbps.load(Ordering::Relaxed) as f64;
            due += Duration::from_secs_f64(ms / 1000.0);
            // What a sleep was too long, the next is shorter.
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        line["msec"] = (common::now_ms() as f64 / 1000.0).into();
        line["request_time"] = start.elapsed().as_secs_f64().into();
        log.lock().expect("no panic").write_all(format!("{line}\n").as_bytes())?;
    }
    Ok(())
}

fn body(name: &str) -> (&'static str, Vec<u8>) {
    let stem = name.strip_suffix(".webm").unwrap_or_default();
    let (kbps, second) = match stem.split_once('-') {
        Some((kbps, second)) => (kbps, second.parse().ok()),
        None => (stem, None),
    };
    match LADDER_KBPS.iter().find(|rung| rung.to_string() == kbps) {
        Some(&kbps) => {
            let video = Video { width: PICTURE.0, height: PICTURE.1, kbps };
            ("video/webm", second.map_or_else(|| video.header(), |second| video.segment(second)))
        }
        None => ("text/html", include_bytes!("player.html").to_vec()),
    }
}
