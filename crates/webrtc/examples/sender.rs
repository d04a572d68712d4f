//! Sends live video to a browser at the bitrate that a scheme's congestion control gives.
//!
//! ```sh
//! cargo run --release -p trimtab-webrtc --features browser --example sender -- gcc 192.0.2.1
//! ```
//!
//! takes a scheme and an address of this machine, and prints the page to open. Browsers do not make
//! calls to 127.0.0.1.

mod support;

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rtc::interceptor::{CongestionControlBuilder, Registry, Slot};
use support::{Browser, picture};
use trimtab_rtc::{Bitrates, Config, HISTORY};
use trimtab_webrtc::{CLOCK_RATE, Encoder, Peer};

const FPS: u32 = 25;
const SIZE: (usize, usize) = (640, 360);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(scheme), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("name a scheme and an address of this machine, e.g. gcc 192.0.2.1".into());
    };

    // Any scheme, by its text; the handle changes it while the call lasts.
    let (factory, handle) = Config::new(&scheme)?.with_model("conference")?.connection();
    let bitrates = Bitrates::default();
    let sender = factory.sender(Instant::now(), bitrates);

    // Estimator and pacer go into the connection's chain of interceptors; the target stays here.
    let estimator =
        CongestionControlBuilder::new(sender.estimator).with_prune_horizon(HISTORY).build();
    let chain =
        Registry::new().with(Slot::CongestionControl, estimator).with(Slot::Pacer, sender.pacer);
    let target = sender.target;
    let browser = Browser::wait(&address)?;
    let socket = UdpSocket::bind((address, 0))?;
    let (mut peer, answer) = Peer::answer(socket, &browser.offer, chain, target.clone())?;
    browser.answer(&answer)?;

    let mut encoder = Encoder::new(&picture(0, SIZE), FPS, bitrates.most)?;
    let (begin, interval) = (Instant::now(), Duration::from_secs(1) / FPS);
    let mut wants_key = true;
    for number in 0u32.. {
        peer.run_until(begin + interval * number)?;
        wants_key |= peer.take_key_frame_request();
        // The encoder follows the target, frame by frame.
        let bitrate = target.bitrate();
        // A frame that would wait for long is better left out.
        if peer.is_connected() && target.backlog() < Duration::from_millis(400) {
            let at_ms = u64::from(1000 / FPS * number);
            let picture = picture(number, SIZE);
            if let Some(frame) = encoder.encode(&picture, at_ms, bitrate, wants_key)? {
                wants_key &= !frame.is_key;
                peer.send_frame(frame.data, (CLOCK_RATE / FPS).wrapping_mul(number))?;
            }
        }
        if number % FPS == 0 {
            let srtt = handle.metrics().and_then(|metrics| metrics.srtt).unwrap_or_default();
            println!("{scheme}: {bitrate}, round trip {srtt}");
        }
    }
    Ok(())
}
