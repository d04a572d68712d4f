//! How a connection begins: by its route's initial window, at a pace that the handshake's
//! round-trip time gives. Skipped, with the reason, where the kernel or the rights are missing.

mod common;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use trimtab_cc::migrate::Switch;
use trimtab_kernel::Algorithm;

use common::{A, Loaded, Wire, need_kernel, wait_for};

/// The route's, in packets; Linux's own is 10.
const INITIAL_WINDOW: u32 = 40;

/// A connection of `a` to `b` under this algorithm: its two ends.
fn connect(wire: &Wire, name: &str, port: u16) -> (TcpStream, TcpStream) {
    let name = name.to_owned();
    let (ready, is_ready) = channel();
    let server = wire.spawn("a", move || {
        let listener = TcpListener::bind((A, port)).expect("listen");
        rustix::net::sockopt::set_tcp_congestion(&listener, &name).expect("TCP_CONGESTION");
        ready.send(()).expect("the test waits");
        listener.accept().expect("accept").0
    });
    is_ready.recv().expect("the server is there");
    let client = wire.spawn("b", move || TcpStream::connect((A, port)).expect("connect"));
    (server.join().expect("server"), client.join().expect("client"))
}

/// The number that follows this word in what `ss` prints.
fn number(info: &str, word: &str) -> Option<f64> {
    let rest = &info[info.find(word)? + word.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// In bit/s; `None` where the kernel would not pace.
fn pacing_rate(info: &str) -> Option<f64> {
    let rate = number(info, " pacing_rate ")?;
    let unit = &info[info.find(" pacing_rate ")? + 13..];
    let unit = unit.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = [("Gbps", 1e9), ("Mbps", 1e6), ("Kbps", 1e3), ("bps", 1.0)];
    factor.iter().find(|(name, _)| unit.starts_with(name)).map(|(_, factor)| rate * factor)
}

/// Linux's own: twice the window in a round trip (`tcp_update_pacing_rate`), BBR 2.89 times less 1%;
/// the draft of BBRv3 2.77 times.
#[test]
fn the_first_flight_is_paced_for_the_handshakes_round_trip() {
    need_kernel!();
    let loaded = Loaded::new("_w", 16);
    let wire = Wire::new("first");
    wire.set_initial_window(INITIAL_WINDOW);
    let kinds = [
        (Algorithm::Copa, 2.0),
        (Algorithm::Vivace, 2.0),
        (Algorithm::Bbr, 2.885 * 0.99),
        (Algorithm::Bbr3, 2.77),
    ];
    for (i, (algorithm, times)) in kinds.into_iter().enumerate() {
        let port = 7071 + i as u16;
        let name = loaded.datapath().name_of(algorithm);
        let _ends = connect(&wire, &name, port);
        let info = wire.socket_info(port);
        assert!(info.contains(&name), "{info}");
        assert_eq!(number(&info, " cwnd:"), Some(f64::from(INITIAL_WINDOW)), "{info}");
        let rtt_s = number(&info, " rtt:").expect("the handshake measured it") * 1e-3;
        let mss = number(&info, " mss:").expect("a packet's size");
        let want = times * f64::from(INITIAL_WINDOW) * mss * 8.0 / rtt_s;
        let rate = pacing_rate(&info).unwrap_or_else(|| panic!("{name} does not pace: {info}"));
        assert!((rate / want - 1.0).abs() < 0.05, "{name}: {rate}, not {want}: {info}");
    }
}

/// Nothing converged, so the next algorithm begins as a new connection over this route would.
#[test]
fn an_algorithm_that_starts_over_has_the_initial_window_of_the_route() {
    need_kernel!();
    const PORT: u16 = 7079;
    let loaded = Loaded::new("_x", 16);
    let wire = Wire::new("anew");
    wire.set_initial_window(INITIAL_WINDOW);
    for to in [Algorithm::Bbr, Algorithm::Bbr3, Algorithm::Copa, Algorithm::Vivace] {
        let port = PORT + to as u16;
        let (mut server, _client) =
            connect(&wire, &loaded.datapath().name_of(Algorithm::Cubic), port);
        server.write_all(&[0; 100]).expect("send");
        let flow = wait_for("the slot", || loaded.flow(port));
        wait_for("the acknowledgement", || {
            wire.socket_info(port).contains(" bytes_acked:100 ").then_some(())
        });
        flow.switch(to, None, Switch::Full).expect("the order");
        server.write_all(&[0; 100]).expect("send");
        wait_for("the switch", || (flow.algorithm() == to).then_some(()));
        std::thread::sleep(Duration::from_millis(20));
        let info = wire.socket_info(port);
        let window = number(&info, " cwnd:").expect("a window");
        // What was acknowledged since then is added.
        assert!((40.0..=42.0).contains(&window), "{to:?}: {info}");
    }
}
