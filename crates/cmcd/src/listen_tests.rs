use std::io::{Read as _, Write as _};
use std::net::TcpStream as Stream;

use super::*;

const REPORT: &str = "e=ps,sid=\"a\",sta=p,ts=1795973783250,v=2\n";

fn start(client: Option<&'static str>) -> Listener {
    let address = "127.0.0.1:0".parse().unwrap();
    Listener::start(Options { address, client: client.map(HeaderName::from_static), journal: None })
        .unwrap()
}

/// Sends bytes, and gives what is answered until the connection ends.
fn say(to: &Listener, bytes: &[u8]) -> String {
    let mut stream = Stream::connect(to.address()).unwrap();
    // Who is refused early may be cut off while it sends.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn ask(to: &Listener, method: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    let head = format!("{method} /qoe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}");
    say(to, format!("{head}Content-Length: {len}\r\n\r\n{body}").as_bytes())
}

#[test]
fn posts_are_taken_from_pages_of_any_origin() {
    let listener = start(None);
    let asked = ask(&listener, "OPTIONS", "Origin: https://a.example\r\n", "");
    assert!(asked.starts_with("HTTP/1.1 204 "), "{asked}");
    for header in ["access-control-allow-origin: *", "access-control-allow-methods: POST"] {
        assert!(asked.contains(header), "{asked}");
    }
    let answer = ask(&listener, "POST", "Content-Type: application/cmcd\r\n", &REPORT.repeat(2));
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    assert!(answer.contains("access-control-allow-origin: *"), "{answer}");
    let post = listener.take().unwrap();
    assert_eq!((post.address, post.events.len()), ([127, 0, 0, 1].into(), 2));
    assert_eq!(listener.take(), None);
}

#[test]
fn what_is_wrong_is_refused_and_goes_no_further() {
    let listener = start(None);
    let long = "x".repeat(BODY_LEN_MAX + 1);
    for (method, body, status, what) in [
        ("GET", "", 405, "reports come by POST"),
        ("POST", "sid=\"a\",v=2", 400, "the report has no ts"),
        ("POST", "{}", 400, "is no key of CMCD"),
        ("POST", &*long, 413, "at most 65536 bytes"),
    ] {
        let answer = ask(&listener, method, "", body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains(what), "{answer}");
    }
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n";
    let bytes = [head.as_bytes(), &[0xc3, 0x28]].concat();
    assert!(say(&listener, &bytes).contains("not UTF-8"));
    assert!(say(&listener, b"\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert_eq!(listener.take(), None);
}

#[test]
fn a_proxy_names_the_client_in_the_last_place() {
    let listener = start(Some("x-forwarded-for"));
    let header = "X-Forwarded-For: 192.0.2.1, 203.0.113.7\r\n";
    assert!(ask(&listener, "POST", header, REPORT).starts_with("HTTP/1.1 204 "));
    assert_eq!(listener.take().map(|post| post.address), Some([203, 0, 113, 7].into()));
    for header in ["", "X-Forwarded-For: 192.0.2.1, unknown\r\n"] {
        let answer = ask(&listener, "POST", header, REPORT);
        assert!(answer.contains("no client's address into x-forwarded-for"), "{answer}");
    }
}

#[test]
fn posts_are_limited_for_each_client() {
    let (mut window, start) = (Window::default(), Instant::now());
    let of = |text: &str| text.parse::<IpAddr>().unwrap();
    for _ in 0..POSTS_MAX {
        assert!(window.allows(of("2001:db8::1"), start));
    }
    assert!(!window.allows(of("2001:db8::2"), start), "of the same /64");
    assert!(window.allows(of("2001:db8:1::1"), start));
    assert!(window.allows(of("2001:db8::2"), start + WINDOW));
    for client in 0..CLIENTS_MAX as u32 {
        window.allows(IpAddr::from((client + 1).to_be_bytes()), start + WINDOW);
    }
    assert!(!window.allows(of("203.0.113.7"), start + WINDOW), "there are too many");
}

#[test]
fn posts_that_nobody_takes_are_refused_in_time() {
    let (sender, posts) = sync_channel(1);
    let desk = Desk { client: None, journal: None, posts: sender, window: Mutex::default() };
    let post = || Post { address: [127, 0, 0, 1].into(), arrived: Time::ZERO, events: Vec::new() };
    assert!(desk.hand_in(post()).is_ok());
    let Err(Refusal(status, why)) = desk.hand_in(post()) else { panic!("there is no room") };
    assert_eq!(
        (status, &*why),
        (StatusCode::TOO_MANY_REQUESTS, "too many posts at once: send this one again later")
    );
    drop(posts);
    assert!(desk.hand_in(post()).is_err());
}

#[test]
fn who_says_nothing_holds_nobody_up() {
    let listener = start(None);
    let silent: Vec<_> =
        (0..CONNECTIONS_MAX - 1).map(|_| Stream::connect(listener.address()).unwrap()).collect();
    assert!(ask(&listener, "POST", "", REPORT).starts_with("HTTP/1.1 204 "));
    drop(silent);
}
