//! Traces, at a collector that decodes what it is sent, and at ones that are of no use.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::{Process, Site, batch, now_ms, report, say, until};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;

const TV: &str = "tv/203.0.113.0/24";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

#[test]
fn engine_process() {
    common::run_if_asked();
}

/// What a collector does with a request.
#[derive(Clone, Copy)]
enum Collects {
    /// Takes it.
    Spans,
    /// Reads it, and never answers.
    Silence,
    /// Answers with this status, and a body without an end.
    Flood(u16),
}

/// What a collector was sent.
#[derive(Default)]
struct Got {
    /// The spans, with the name of the service that they are of.
    spans: Vec<(String, Span)>,
    /// All bytes, headers included.
    raw: Vec<Vec<u8>>,
}

/// A collector of OTLP by HTTP.
struct Collector {
    port: u16,
    got: Arc<Mutex<Got>>,
}

impl Collector {
    fn start(does: Collects) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let got: Arc<Mutex<Got>> = Arc::default();
        let keeps = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keeps = Arc::clone(&keeps);
                std::thread::spawn(move || while serve(&stream, &keeps, does).is_some() {});
            }
        });
        Self { port, got }
    }

    /// Lines of a configuration that send traces here.
    fn settings(&self) -> String {
        format!("[traces]\nurl = \"http://127.0.0.1:{}/v1/traces\"\n", self.port)
    }

    fn spans(&self) -> Vec<Span> {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        got.spans.iter().map(|(_, span)| span.clone()).collect()
    }

    fn named(&self, name: &str) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }

    /// Waits for a span.
    fn one(&self, name: &str) -> Span {
        until(&format!("a span {name}"), || self.named(name).pop())
    }

    /// Whether these bytes are in anything that it was sent.
    fn saw(&self, what: &str) -> bool {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        got.raw.iter().any(|raw| raw.windows(what.len()).any(|part| part == what.as_bytes()))
    }
}

/// Answers a request; none when there is none any more.
fn serve(stream: &TcpStream, keeps: &Mutex<Got>, does: Collects) -> Option<()> {
    let mut lines = BufReader::new(stream);
    let mut raw = Vec::new();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok().filter(|read| *read > 0)?;
        raw.extend(line.as_bytes());
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim_end().split_once(": ") {
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    lines.read_exact(&mut body).ok()?;
    raw.extend(&body);
    let sent = ExportTraceServiceRequest::decode(&body[..]).expect("OTLP");
    {
        let mut got = keeps.lock().unwrap_or_else(PoisonError::into_inner);
        got.raw.push(raw);
        for of in sent.resource_spans {
            let resource = of.resource.expect("a resource");
            let service = text(&resource.attributes, "service.name");
            let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
            got.spans.extend(spans.map(|span| (service.clone(), span)));
        }
    }
    let mut stream = stream;
    match does {
        Collects::Spans => stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\
                      Content-Length: 0\r\n\r\n",
            )
            .ok(),
        Collects::Silence => {
            std::thread::sleep(Duration::from_secs(600));
            None
        }
        Collects::Flood(status) => {
            let head = format!("HTTP/1.1 {status} x\r\nRetry-After: 86400\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            while stream.write_all(&[0xff; 65_536]).is_ok() {}
            None
        }
    }
}

fn value(attributes: &[KeyValue], key: &str) -> Option<Value> {
    let found = attributes.iter().find(|one| one.key == key)?;
    found.value.clone().and_then(|AnyValue { value }| value)
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    match value(attributes, key) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key} is {other:?} of {attributes:?}"),
    }
}

fn number(span: &Span, key: &str) -> i64 {
    match value(&span.attributes, key) {
        Some(Value::IntValue(number)) => number,
        other => panic!("{key} is {other:?} of {span:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request with headers of one's own; gives the status.
fn ask(engine: &Process, first: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    let address = engine.url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let mut head = format!(
        "{first} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Length: {length}\r\n"
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status")
}

/// What the engine counts of spans.
fn counted(engine: &Process, site: &Site, outcome: &str) -> u64 {
    let (_, page) = say(engine, "GET", "/metrics", Some(&site.viewer), b"");
    let series = format!("trimtab_engine_spans_total{{outcome=\"{outcome}\"}} ");
    let page = page.as_str().expect("a page").to_owned();
    let found = page.lines().find_map(|line| line.strip_prefix(&series));
    found.map_or(0, |count| count.parse().expect("a number"))
}

/// A batch that is sent now, as text.
fn sent(sequence: u64, interval: u64) -> String {
    let reports = vec![report(TV, interval, 0, 5.0)];
    serde_json::to_string(&batch(sequence, reports)).expect("a batch is plain data")
}

#[test]
fn a_report_is_followed_from_its_edge_to_the_decision() {
    let collector = Collector::start(Collects::Spans);
    let site = Site::new(&collector.settings());
    let engine = site.start();
    let bearer = format!("Bearer {}", site.edge);
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let now = (now_ms() / 1000) as u64;
    let headers = [
        ("Authorization", bearer.as_str()),
        ("traceparent", &traceparent),
        ("tracestate", "vendor=xyzzy-state"),
        ("Cookie", "xyzzy-cookie"),
        ("User-Agent", "xyzzy-agent"),
    ];
    assert_eq!(ask(&engine, "POST /v1/reports?key=xyzzy-query", &headers, &sent(1, now)), 200);
    let path = format!("GET /{}", site.operator);
    assert_eq!(ask(&engine, &path, &headers, ""), 404);
    assert_eq!(ask(&engine, "XYZZY-METHOD /v1/reports", &headers, ""), 405);
    let stranger = [("Authorization", "Bearer xyzzy-token")];
    assert_eq!(ask(&engine, "GET /v1/status", &stranger, ""), 401);
    assert_eq!(ask(&engine, "GET /readyz", &[], ""), 200);

    let request = collector.one("POST /v1/reports");
    assert_eq!(
        (hex(&request.trace_id), hex(&request.parent_span_id)),
        (TRACE.into(), PARENT.into())
    );
    assert_eq!(request.kind(), SpanKind::Server);
    let of = |key| text(&request.attributes, key);
    assert_eq!(of("http.request.method"), "POST");
    assert_eq!((of("http.route"), of("url.path")), ("/v1/reports".into(), "/v1/reports".into()));
    assert_eq!((of("url.scheme"), of("enduser.id")), ("http".into(), "edge-1".into()));
    assert_eq!(number(&request, "http.response.status_code"), 200);
    assert_eq!(request.trace_state, "");

    let commit = collector.one("ingest.commit");
    assert_eq!((number(&commit, "trimtab.batches"), number(&commit, "trimtab.reports")), (1, 1));
    assert_eq!(commit.parent_span_id, [0; 0]);
    let [link] = &commit.links[..] else { panic!("{:?}", commit.links) };
    assert_eq!((&link.trace_id, &link.span_id), (&request.trace_id, &request.span_id));
    let within = request.start_time_unix_nano..=request.end_time_unix_nano;
    assert!(within.contains(&commit.start_time_unix_nano), "{request:?} {commit:?}");

    let round = collector.one("closer.round");
    assert_eq!(number(&round, "trimtab.decided"), 1);
    let parts = [collector.one("closer.decide"), collector.one("closer.commit")];
    for part in &parts {
        assert_eq!((&part.trace_id, &part.parent_span_id), (&round.trace_id, &round.span_id));
        assert_eq!(text(&part.attributes, "trimtab.service"), "tv");
        let within = round.start_time_unix_nano..=round.end_time_unix_nano;
        assert!(within.contains(&part.start_time_unix_nano), "{round:?} {part:?}");
        assert!(within.contains(&part.end_time_unix_nano), "{round:?} {part:?}");
    }
    assert!(parts[0].end_time_unix_nano <= parts[1].start_time_unix_nano, "{parts:?}");

    let lost = collector.one("GET");
    assert_eq!(number(&lost, "http.response.status_code"), 404);
    let odd = collector.one("HTTP /v1/reports");
    assert_eq!(text(&odd.attributes, "http.request.method"), "_OTHER");
    let refused = collector.one("GET /v1/status");
    assert_eq!(text(&refused.attributes, "trimtab.refusal"), "token");
    // Each look at nothing is no round, and no probe is a request.
    assert_eq!(collector.named("closer.round").len(), 1);
    assert_eq!(collector.named("GET /readyz").len(), 0);
    for secret in [&site.edge[8..], &site.operator[8..], "xyzzy", "XYZZY"] {
        assert!(!collector.saw(secret), "{secret} is in a span");
    }
    let got = collector.got.lock().unwrap();
    assert!(got.spans.iter().all(|(service, _)| service == "trimtab-engine"));
}

#[test]
fn an_event_that_is_sent_is_a_span_without_its_address() {
    let collector = Collector::start(Collects::Spans);
    let receiver = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = receiver.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for (number, stream) in receiver.incoming().map_while(Result::ok).enumerate() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let status = if number == 0 { 500 } else { 200 };
            let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let hook = format!(
        "{}[[webhook]]\nname = \"chat\"\nurl = \"http://127.0.0.1:{port}/xyzzy\"\n\
         secret_file = \"chat.secret\"\n",
        collector.settings()
    );
    let site = Site::new(&hook);
    let secret = "whsec_dGhpcnR5LXR3byBieXRlcyBvZiBhIHRlc3Qgb25seSE=";
    std::fs::write(site.folder.path().join("chat.secret"), secret).expect("a secret");
    let engine = site.start();
    let now = (now_ms() / 1000) as u64;
    let kept = say(&engine, "POST", "/v1/reports", Some(&site.edge), sent(1, now).as_bytes());
    assert_eq!(kept.0, 200, "{kept:?}");
    let pause = r#"{"service": "tv", "prefix": "203.0.113.0/24", "action": "pause"}"#;
    until("an aggregate that may be paused", || {
        let done = say(&engine, "POST", "/v1/aggregate", Some(&site.operator), pause.as_bytes());
        (done.0 == 200).then_some(())
    });

    let all = until("two attempts", || {
        Some(collector.named("POST webhook chat")).filter(|all| all.len() == 2)
    });
    let statuses = all.iter().map(|span| number(span, "http.response.status_code"));
    assert_eq!(statuses.collect::<Vec<_>>(), [500, 200]);
    assert_eq!(text(&all[0].attributes, "error.type"), "500");
    assert_eq!(number(&all[1], "http.request.resend_count"), 1);
    assert!(all.iter().all(|span| span.kind() == SpanKind::Client));
    assert!(!collector.saw("xyzzy") && !collector.saw(&secret[6..]));
}

#[test]
fn what_is_left_is_sent_at_the_end() {
    let collector = Collector::start(Collects::Spans);
    let site = Site::new(&collector.settings());
    std::fs::write(site.folder.path().join("token"), "collectors-own\n").expect("a token");
    let text = std::fs::read_to_string(site.config()).expect("a configuration");
    let text = text.replace("[traces]\n", "[traces]\ntoken_file = \"token\"\n");
    std::fs::write(site.config(), text).expect("it may be written");
    let mut engine = site.start();
    for _ in 0..7 {
        say(&engine, "GET", "/v1/services", Some(&site.viewer), b"");
    }
    let took = engine.terminate();
    assert_eq!(collector.named("GET /v1/services").len(), 7, "after {took:?}");
    assert!(collector.saw("Bearer collectors-own"), "the collector's token");
}

#[test]
fn a_share_of_traces_is_sent_and_a_caller_may_have_its_own_followed() {
    let collector = Collector::start(Collects::Spans);
    let site = Site::new(&format!("{}share = 0.0\n", collector.settings()));
    let mut engine = site.start();
    let bearer = format!("Bearer {}", site.viewer);
    let ask = |traceparent: &str| {
        let headers = [("Authorization", bearer.as_str()), ("traceparent", traceparent)];
        assert_eq!(ask(&engine, "GET /v1/services", &headers, ""), 200);
    };
    ask("00-xyzzy");
    ask(&format!("00-{TRACE}-{PARENT}-00"));
    ask(&format!("00-{TRACE}-{PARENT}-01"));
    engine.terminate();
    let all = collector.spans();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(hex(&all[0].trace_id), TRACE);
}

/// Sends some reports, asks more often than the queue has room for spans, and says how long the
/// slowest answer took.
fn slowest(engine: &Process, site: &Site) -> Duration {
    let timed = |method: &str, path: &str, token: &str, body: &str| {
        let begun = Instant::now();
        let (status, answer) = say(engine, method, path, Some(token), body.as_bytes());
        assert_eq!(status, 200, "{answer}");
        begun.elapsed()
    };
    let reports = (1..=100).map(|sequence| {
        let now = (now_ms() / 1000) as u64;
        timed("POST", "/v1/reports", &site.edge, &sent(sequence, now))
    });
    let slow = reports.max().expect("some");
    let asks = (0..4500).map(|_| timed("GET", "/v1/services", &site.viewer, ""));
    slow.max(asks.max().expect("some"))
}

#[test]
fn a_collector_that_is_dead_slow_or_hostile_holds_nothing_up() {
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = dead.local_addr().expect("an address").port();
    drop(dead);
    let running: Vec<Collector> = [Collects::Silence, Collects::Flood(200), Collects::Flood(503)]
        .into_iter()
        .map(Collector::start)
        .collect();
    let ports: Vec<u16> = running.iter().map(|one| one.port).chain([port]).collect();
    std::thread::scope(|scope| {
        for port in ports {
            scope.spawn(move || {
                let limits = "[limits]\nrequests_per_second = 10000\n";
                let traces = format!("[traces]\nurl = \"http://127.0.0.1:{port}/v1/traces\"\n");
                let site = Site::new(&format!("{traces}{limits}"));
                let mut engine = site.start();
                let slowest = slowest(&engine, &site);
                assert!(slowest < Duration::from_secs(3), "{port}: {slowest:?}");
                until("spans are dropped", || {
                    Some(counted(&engine, &site, "dropped")).filter(|count| *count > 0)
                });
                assert_eq!(counted(&engine, &site, "sent"), 0, "{port}");
                let said = engine.said("spans are dropped");
                assert_eq!(said.len(), 1, "{said:?}");
                let client = engine.client(&site.viewer);
                let status = client.status().expect("it answers");
                assert!(status.counts.decisions > 0, "intervals are closed: {status:?}");
                let took = engine.terminate();
                assert!(took < Duration::from_secs(10), "{port}: it takes {took:?} to end");
            });
        }
    });
}
