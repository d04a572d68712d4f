//! Sends live video to a browser at the bitrate that a scheme's congestion control gives.
//!
//! ```sh
//! cargo run --release -p trimtab-webrtc --features browser --example sender -- gcc 192.0.2.1
//! ```
//!
//! takes a scheme and an address of this machine, and prints the page to open.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use openh264::formats::YUVBuffer;
use trimtab_rtc::{Bitrates, Config};
use trimtab_webrtc::{CLOCK_RATE, Encoder, Peer};

const PAGE: &str = include_str!("sender.html");
const FPS: u32 = 25;
const SIZE: (usize, usize) = (640, 360);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let scheme = arguments.next().unwrap_or_else(|| "gcc".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1".to_owned());

    // Any scheme, by its text; the handle changes it while the call lasts.
    let (factory, handle) = Config::new(&scheme)?.with_model("conference")?.connection();
    let bitrates = Bitrates::default();
    let sender = factory.sender(Instant::now(), bitrates);

    let pages = TcpListener::bind((address.as_str(), 0))?;
    println!("open http://{}/", pages.local_addr()?);
    let (offer, mut browser) = receive_offer(&pages)?;
    let (mut peer, answer) = Peer::answer(UdpSocket::bind((address, 0))?, &offer, sender)?;
    respond(&mut browser, "application/sdp", &answer)?;

    let mut encoder = Encoder::new(&picture(0), FPS, bitrates.most)?;
    let (begin, interval) = (Instant::now(), Duration::from_secs(1) / FPS);
    let mut wants_key = true;
    for number in 0u32.. {
        peer.run_until(begin + interval * number)?;
        wants_key |= peer.take_key_frame_request();
        let bitrate = peer.target().bitrate();
        // A frame that would wait for long is better left out.
        if peer.is_connected() && peer.target().backlog() < Duration::from_millis(400) {
            let at_ms = u64::from(1000 / FPS * number);
            if let Some(frame) = encoder.encode(&picture(number), at_ms, bitrate, wants_key)? {
                wants_key &= !frame.is_key;
                peer.send_frame(frame.data, (CLOCK_RATE / FPS).wrapping_mul(number))?;
            }
        }
        if number % FPS == 0 {
            let srtt = handle.metrics().and_then(|metrics| metrics.srtt);
            println!("{scheme}: {bitrate}, round trip {srtt:?}");
        }
    }
    Ok(())
}

/// A test picture: bars that move.
fn picture(number: u32) -> YUVBuffer {
    let (width, height) = SIZE;
    let bar = |at: usize| ((at % width + 4 * number as usize) * 7 % 256) as u8;
    let mut planes: Vec<u8> = (0..width * height).map(bar).collect();
    planes.resize(width * height * 3 / 2, 128);
    YUVBuffer::from_vec(planes, width, height)
}

/// Serves the page until a browser offers to receive; the offer, and who waits for the answer.
fn receive_offer(pages: &TcpListener) -> Result<(String, TcpStream), Box<dyn Error>> {
    loop {
        let mut stream = pages.accept()?.0;
        // Browsers open connections that they may need later, and leave them.
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        match request(&stream) {
            Ok(Some(offer)) => return Ok((offer, stream)),
            Ok(None) => drop(respond(&mut stream, "text/html", PAGE)),
            Err(e) => eprintln!("passed over a connection: {e}"),
        }
    }
}

/// The offer that a browser posts; `None` for another request.
fn request(stream: &TcpStream) -> Result<Option<String>, Box<dyn Error>> {
    let mut lines = BufReader::new(stream);
    let (mut request, mut line, mut length) = (String::new(), String::new(), 0);
    lines.read_line(&mut request)?;
    while lines.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    if !request.starts_with("POST /offer ") {
        return Ok(None);
    }
    let mut offer = vec![0; length];
    lines.read_exact(&mut offer)?;
    Ok(Some(String::from_utf8(offer)?))
}

fn respond(stream: &mut TcpStream, kind: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n")?;
    write!(stream, "Connection: close\r\n\r\n{body}")
}
