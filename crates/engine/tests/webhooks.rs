//! Webhooks, at receivers that take events and at ones that do not.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Process, Site, batch, now_ms, report, say, until};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use trimtab_fleet_client::{Action, EndSafe, Name, NewSafe, OrderBody};

const TV: &str = "tv/203.0.113.0/24";
const SECRET: &[u8] = b"thirty-two bytes of a test only!";

#[test]
fn engine_process() {
    common::run_if_asked();
}

/// What a receiver does with a request.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    /// Nothing, for longer than anybody waits.
    Silence,
    /// To another URL.
    Moved(u16),
}

/// A request that came.
#[derive(Clone, Debug)]
struct Got {
    headers: BTreeMap<String, String>,
    body: String,
    at: Instant,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether it is signed as Standard Webhooks says.
    fn is_signed(&self) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).expect("HMAC takes any length");
        let (id, at) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        mac.update(format!("{id}.{at}.{}", self.body).as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.header("webhook-signature").split(' ').any(|one| one == expected)
    }
}

/// A server that is sent events.
struct Receiver {
    port: u16,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Receiver {
    /// Answers the first request, the second, and so on, by their numbers from 0.
    fn start(port: u16, answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let (keeps, answer) = (Arc::clone(&got), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (keeps, answer) = (Arc::clone(&keeps), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &keeps, &*answer));
            }
        });
        Self { port, got }
    }

    fn all(&self) -> Vec<Got> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn kinds(&self) -> Vec<String> {
        self.all().iter().map(Got::kind).collect()
    }
}

/// Takes one request, and answers it.
fn serve(stream: &TcpStream, keeps: &Mutex<Vec<Got>>, answer: &dyn Fn(usize) -> Answer) {
    let Some(request) = read(stream) else { return };
    let number = {
        let mut got = keeps.lock().unwrap_or_else(PoisonError::into_inner);
        got.push(request);
        got.len() - 1
    };
    let (status, more) = match answer(number) {
        Answer::Status(status) => (status, String::new()),
        Answer::Silence => {
            std::thread::sleep(Duration::from_secs(600));
            return;
        }
        Answer::Moved(port) => (307, format!("Location: http://127.0.0.1:{port}/\r\n")),
    };
    let head =
        format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n{more}Connection: close\r\n\r\n");
    let mut stream = stream;
    let _ = stream.write_all(head.as_bytes());
}

fn read(stream: &TcpStream) -> Option<Got> {
    let mut lines = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    let mut first = String::new();
    lines.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    lines.read_exact(&mut body).ok()?;
    Some(Got { headers, body: String::from_utf8(body).ok()?, at: Instant::now() })
}

/// Waits for longer than an engine that is gone keeps its turn.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One on which nobody listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A configuration's lines for webhooks with these names, ports and further lines.
fn hooks(all: &[(&str, u16, &str)]) -> String {
    let one = |(name, port, rest): &(&str, u16, &str)| {
        format!(
            "[[webhook]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:{port}/\"\n\
             secret_file = \"hook.secret\"\n{rest}\n"
        )
    };
    all.iter().map(one).collect()
}

/// Writes the secret, after another one that is on its way out.
fn with_secret(site: Site) -> Site {
    let old = STANDARD.encode([7; 32]);
    let text = format!("whsec_{old}\nwhsec_{}\n", STANDARD.encode(SECRET));
    std::fs::write(site.folder.path().join("hook.secret"), text).expect("a file");
    site
}

fn name() -> Name {
    Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() }
}

fn order(action: Action) -> OrderBody {
    let Name { service, prefix } = name();
    let reason = "trouble at the peer".to_owned();
    OrderBody { service, prefix, action, version: None, knobs: None, interval: None, reason }
}

/// Makes the aggregate that orders are about.
fn report_once(engine: &Process, site: &Site, sequence: u64) {
    let reports = vec![report(TV, (now_ms() / 1000) as u64, 0, 5.0)];
    engine.client(&site.edge).report(&batch(sequence, reports)).expect("it is there");
    let viewer = engine.client(&site.viewer);
    until("the aggregate", || viewer.aggregate(&name()).ok());
}

fn everything_safe(engine: &Process, site: &Site) {
    let new = NewSafe { services: Vec::new(), why: "trouble at the peer".to_owned() };
    engine.client(&site.operator).make_safe(&new).expect("it is ordered");
}

fn metric(engine: &Process, site: &Site, series: &str) -> f64 {
    let (_, page) = say(engine, "GET", "/metrics", Some(&site.viewer), b"");
    let page = page.as_str().expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0.0, |value| value.trim().parse().expect("a number"))
}

#[test]
fn events_are_signed_in_order_and_name_nobody_who_was_refused() {
    let all = Receiver::start(0, |_| Answer::Status(204));
    let some = Receiver::start(0, |_| Answer::Status(200));
    let lines = hooks(&[
        ("chat", all.port, ""),
        ("pager", some.port, "events = [\"safe\", \"order.pause\"]"),
    ]);
    let site = with_secret(Site::new(&lines));
    let engine = site.start();
    report_once(&engine, &site, 1);
    let operator = engine.client(&site.operator);
    operator.order(&order(Action::Pause)).expect("it is ordered");
    operator.order(&order(Action::Resume)).expect("it is ordered");
    assert!(engine.client(&site.viewer).order(&order(Action::Pause)).is_err());
    everything_safe(&engine, &site);
    let end = EndSafe { services: Vec::new(), reason: "over".to_owned() };
    operator.end_safe(&end).expect("it ends");
    let expected = ["order.pause", "order.resume", "safe.begun", "safe.ended"];
    until("all events", || (all.kinds().len() >= 4).then_some(()));
    assert_eq!(all.kinds(), expected);
    until("all events that are wanted", || (some.kinds().len() >= 3).then_some(()));
    assert_eq!(some.kinds(), ["order.pause", "safe.begun", "safe.ended"]);
    let got = all.all();
    for one in &got {
        assert!(one.is_signed(), "{one:?}");
        let at_s: i64 = one.header("webhook-timestamp").parse().expect("a time");
        assert!((now_ms() / 1000 - at_s).abs() < 60, "{at_s}");
        assert_eq!(one.header("content-type"), "application/json");
        for secret in [site.operator.as_str(), site.viewer.as_str(), "127.0.0.1", "refused"] {
            assert!(!one.body.contains(secret), "{}", one.body);
        }
    }
    let data = &got[0].json()["data"];
    assert_eq!((&data["who"], &data["subject"]), (&json!("kim"), &json!("tv 203.0.113.0/24")));
    let detail = data["detail"].as_str().unwrap_or_default();
    assert!(detail.starts_with("trouble at the peer; version 1: {\"algorithm\""), "{detail}");
    let mut ids: Vec<String> = got.iter().map(|one| one.header("webhook-id").to_owned()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
    // Both receivers know an event by the same id.
    assert_eq!(some.all()[0].header("webhook-id"), ids[0]);
    let delivered = "trimtab_engine_webhooks_total{webhook=\"chat\",outcome=\"delivered\"}";
    // The engine counts a delivery after the receiver has answered.
    until("all events count", || (metric(&engine, &site, delivered) >= 4.0).then_some(()));
    assert_eq!(metric(&engine, &site, delivered), 4.0);
}

#[test]
fn a_receiver_that_does_not_take_events_holds_up_nothing_else() {
    let good = Receiver::start(0, |_| Answer::Status(200));
    let broken = Receiver::start(0, |number| Answer::Status(if number < 2 { 500 } else { 200 }));
    let slow = Receiver::start(0, |number| match number {
        0 => Answer::Silence,
        _ => Answer::Status(200),
    });
    let refusing = Receiver::start(0, |number| Answer::Status(if number < 5 { 400 } else { 200 }));
    let elsewhere = Receiver::start(0, |_| Answer::Status(200));
    let to = elsewhere.port;
    let moved = Receiver::start(0, move |_| Answer::Moved(to));
    // Nobody listens there yet.
    let closed = free_port();
    let receivers = [&good, &broken, &slow, &refusing, &moved].map(|one| one.port);
    let [a, b, c, d, e] = receivers;
    let lines = hooks(&[
        ("good", a, ""),
        ("broken", b, ""),
        ("slow", c, ""),
        ("refusing", d, ""),
        ("moved", e, ""),
        ("closed", closed, ""),
    ]);
    let site = with_secret(Site::new(&lines));
    let engine = site.start();
    report_once(&engine, &site, 1);
    let begun = Instant::now();
    everything_safe(&engine, &site);
    until("the event", || (!good.all().is_empty()).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(5), "others take their time");
    // Decisions go on meanwhile, each within a second of its time.
    let operator = engine.client(&site.operator);
    operator.end_safe(&EndSafe { services: Vec::new(), reason: String::new() }).expect("it ends");
    let decided = || operator.status().expect("it answers").counts.decisions;
    for sequence in 2..6 {
        let before = decided();
        report_once(&engine, &site, sequence);
        let reported = Instant::now();
        until("a decision", || (decided() > before).then_some(()));
        assert!(reported.elapsed() < Duration::from_secs(4), "{:?}", reported.elapsed());
    }
    let listens = Receiver::start(closed, |_| Answer::Status(200));
    let both = ["safe.begun", "safe.ended"];
    for receiver in [&good, &listens] {
        eventually("both events", || (receiver.all().len() >= 2).then_some(()));
        assert_eq!(receiver.kinds(), both);
    }
    // Sent again under the same id, later each time.
    eventually("the events after errors", || (broken.all().len() >= 4).then_some(()));
    let got = broken.all();
    assert!(got[..3].iter().all(|one| one.header("webhook-id") == got[0].header("webhook-id")));
    let waits = [got[1].at - got[0].at, got[2].at - got[1].at];
    assert!(waits[0] >= Duration::from_millis(900) && waits[1] >= Duration::from_millis(1900));
    eventually("the events after silence", || (slow.all().len() >= 3).then_some(()));
    assert_eq!(slow.kinds(), ["safe.begun", "safe.begun", "safe.ended"]);
    // One that it will not take does not stop those after it.
    eventually("the event after refusals", || (refusing.all().len() >= 6).then_some(()));
    assert_eq!(refusing.kinds()[4..], both);
    assert_eq!(elsewhere.kinds(), Vec::<String>::new(), "no redirection is followed");
    let count = |name: &str, outcome: &str| {
        let series =
            format!("trimtab_engine_webhooks_total{{webhook=\"{name}\",outcome=\"{outcome}\"}}");
        metric(&engine, &site, &series)
    };
    assert_eq!((count("good", "delivered"), count("good", "failed")), (2.0, 0.0));
    assert_eq!((count("broken", "delivered"), count("broken", "failed")), (2.0, 2.0));
    eventually("that it is given up", || (count("refusing", "given_up") == 1.0).then_some(()));
    assert!(count("moved", "failed") >= 3.0 && count("closed", "failed") >= 1.0);
    let behind = "trimtab_engine_webhook_behind_seconds{webhook=\"moved\"}";
    assert!(metric(&engine, &site, behind) > 5.0);
    let said = engine.said("webhook moved");
    assert!(said.iter().all(|line| !line.contains("http")), "a URL may be a secret: {said:?}");
    assert_eq!(said.len(), 1, "one line for an outage: {said:?}");
}

#[test]
fn an_event_outlives_the_engine() {
    let port = free_port();
    let site = with_secret(Site::new(&hooks(&[("chat", port, "")])));
    let engine = site.start();
    everything_safe(&engine, &site);
    let failed = "trimtab_engine_webhooks_total{webhook=\"chat\",outcome=\"failed\"}";
    until("an attempt", || (metric(&engine, &site, failed) > 0.0).then_some(()));
    engine.kill();
    let receiver = Receiver::start(port, |_| Answer::Status(200));
    let _engine = site.start();
    eventually("the event", || (!receiver.all().is_empty()).then_some(()));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(receiver.kinds(), ["safe.begun"]);
}

#[test]
fn two_engines_send_an_event_once_and_one_that_dies_loses_none() {
    let Some(servers) = trimtab_servers::Servers::for_tests() else { return };
    let receiver = Receiver::start(0, |_| Answer::Status(200));
    let lines = hooks(&[("chat", receiver.port, "")]);
    let site = with_secret(Site::with_store((0, "20ms", &lines), &servers.configuration(false)));
    let engines = [site.start(), site.start()];
    let toggle = |engine: &Process, turn: usize| {
        if turn.is_multiple_of(2) {
            return everything_safe(engine, &site);
        }
        let end = EndSafe { services: Vec::new(), reason: String::new() };
        engine.client(&site.operator).end_safe(&end).expect("it ends");
    };
    for turn in 0..6 {
        toggle(&engines[turn / 2 % 2], turn);
        std::thread::sleep(Duration::from_millis(300));
    }
    eventually("six events", || (receiver.all().len() >= 6).then_some(()));
    std::thread::sleep(Duration::from_secs(2));
    let ids = |receiver: &Receiver| -> Vec<String> {
        receiver.all().iter().map(|one| one.header("webhook-id").to_owned()).collect()
    };
    assert_eq!(ids(&receiver).len(), 6, "none twice: {:?}", receiver.kinds());
    // Whichever had the turn, the other one goes on.
    let [first, second] = engines;
    toggle(&first, 0);
    first.kill();
    toggle(&second, 1);
    eventually("both events", || {
        let mut ids = ids(&receiver);
        ids.sort();
        ids.dedup();
        (ids.len() >= 8).then_some(())
    });
}
