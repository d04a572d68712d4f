//! The proxy between a client of HTTP/3 and an origin of HTTP/1.1.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use h3::error::{Code, StreamError};
use http::Method;
use trimtab_h3_noq::h3;

use crate::client::session::piece;
use crate::common::Failure;
use crate::common::server::Server;
use crate::proxy::forward::Origin;
use crate::support::{Response, ask, connect, get, hash, noise, options, request};

/// An origin, byte by byte, so that one sees what it gets. It ends with the test.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || while answer(stream.as_ref().unwrap()) {});
        }
    });
    address
}

/// Answers a request by its path; whether the connection goes on.
fn answer(stream: &TcpStream) -> bool {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return false;
        }
    }
    let path = head.split(' ').nth(1).expect("a path").to_owned();
    let mut writer = stream;
    let response = match &*path {
        // The head of the request as it came, and the hash of its body.
        "/echo?x=1" => {
            let mut text = head.clone();
            let _ = write!(text, "{:?}", hash(&body(&head, &mut reader)));
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
        }
        "/large" => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n".to_vec();
            [head, noise(5_000_000, 9)].concat()
        }
        "/pieces" => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
            6\r\npiece \r\n8\r\nby piece\r\n0\r\nx-sum: 14\r\n\r\n"
            .to_vec(),
        "/dies" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe beginning".to_vec(),
        "/closes" => b"HTTP/1.1 404 Not Found\r\nConnection: close, X-Own\r\nX-Own: 1\r\n\
            X-Kept: 2\r\nKeep-Alive: timeout=5\r\nContent-Length: 4\r\n\r\ngone"
            .to_vec(),
        _ => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
    };
    writer.write_all(&response).is_ok() && !["/dies", "/closes"].contains(&&*path)
}

/// The body of a request, by either framing of HTTP/1.1 (RFC 9112 §6).
fn body(head: &str, reader: &mut impl std::io::BufRead) -> Vec<u8> {
    let fields = head.to_lowercase();
    let field = |name: &str| fields.lines().find_map(|line| line.strip_prefix(name));
    let mut body = Vec::new();
    if let Some(length) = field("content-length: ") {
        reader.take(length.parse().unwrap()).read_to_end(&mut body).unwrap();
    } else if field("transfer-encoding: ") == Some("chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = u64::from_str_radix(size.trim(), 16).unwrap();
            reader.take(size).read_to_end(&mut body).unwrap();
            reader.read_line(&mut String::new()).unwrap();
            if size == 0 {
                break;
            }
        }
    }
    body
}

/// A proxy before an origin, and where it listens.
fn proxy(origin: SocketAddr) -> SocketAddr {
    let server = Server::new(&options("mortise")).unwrap();
    let address = server.address().unwrap();
    let origin = Origin::new(origin.to_string().parse().unwrap());
    tokio::spawn(server.run(origin, |report| println!("{report}")));
    address
}

#[tokio::test]
async fn requests_and_responses_pass() {
    let session = connect(proxy(origin())).await;
    let headers = [("x-own", "kept"), ("te", "trailers"), ("proxy-authorization", "secret")];
    let response = ask(&session, Method::GET, "/echo?x=1", &headers).await;
    let text = String::from_utf8(response.body).unwrap().to_lowercase();
    assert_eq!(response.status, 200);
    for line in [
        "get /echo?x=1 http/1.1",
        "host: localhost",
        "x-own: kept",
        "via: 3.0 trimtab",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: https",
        &format!("{:?}", hash(b"")),
    ] {
        assert!(text.lines().any(|said| said == line), "no {line:?}: {text}");
    }
    for name in ["te:", "proxy-authorization:", "transfer-encoding:", "content-length:"] {
        assert!(!text.contains(name), "{name}: {text}");
    }

    let large = get(&session, "/large").await;
    assert_eq!((large.status.as_u16(), large.header("content-length")), (200, "5000000"));
    assert_eq!(hash(&large.body), hash(&noise(5_000_000, 9)));

    let closed = get(&session, "/closes").await;
    assert_eq!(
        (closed.status.as_u16(), closed.header("x-kept"), &*closed.body),
        (404, "2", &b"gone"[..])
    );
    for name in ["connection", "keep-alive", "x-own"] {
        assert_eq!(closed.header(name), "", "{name}");
    }
    let empty = get(&session, "/empty").await;
    assert_eq!((empty.status.as_u16(), empty.body.len()), (204, 0));
}

#[tokio::test]
async fn bodies_of_unknown_length_pass_both_ways_with_trailers() {
    let session = connect(proxy(origin())).await;
    let upload = noise(2_000_000, 10);
    for length in [None, Some("2000000")] {
        let headers: Vec<_> = length.iter().map(|length| ("content-length", *length)).collect();
        let mut stream = session.open(request(Method::POST, "/echo?x=1", &headers)).await.unwrap();
        for part in upload.chunks(100_000) {
            stream.send_data(part.to_vec().into()).await.unwrap();
        }
        stream.finish().await.unwrap();
        let text = String::from_utf8(Response::of(stream).await.body).unwrap();
        assert!(text.ends_with(&format!("{:?}", hash(&upload))), "{text}");
    }

    let mut stream = session.send(request(Method::GET, "/pieces", &[])).await.unwrap();
    let head = stream.recv_response().await.unwrap();
    assert!(!head.headers().contains_key("transfer-encoding"), "{head:?}");
    let mut body = Vec::new();
    while let Some(piece) = piece(&mut stream).await.unwrap() {
        body.extend_from_slice(&piece);
    }
    assert_eq!(body, b"piece by piece");
    let trailers = stream.recv_trailers().await.unwrap().expect("trailers");
    assert_eq!(trailers["x-sum"], "14");
}

#[tokio::test]
async fn an_origin_that_dies_does_not_leave_a_whole_response() {
    let session = connect(proxy(origin())).await;
    let mut stream = session.send(request(Method::GET, "/dies", &[])).await.unwrap();
    // Even its head may be overtaken.
    let whole = async {
        stream.recv_response().await?;
        while piece(&mut stream).await?.is_some() {}
        Ok::<_, Failure>(())
    };
    let problem = whole.await.unwrap_err().downcast::<StreamError>().unwrap();
    let StreamError::RemoteTerminate { code, .. } = *problem else { panic!("{problem}") };
    assert_eq!(code, Code::H3_INTERNAL_ERROR);

    // Nobody listens here.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = listener.local_addr().unwrap();
    drop(listener);
    let session = connect(proxy(dead)).await;
    let refused = get(&session, "/").await;
    assert_eq!(refused.status, 502);
    let why = String::from_utf8(refused.body).unwrap();
    assert!(why.contains(&format!("the origin {dead} does not answer")), "{why}");
    assert!(why.contains("Connection refused"), "{why}");
}

#[tokio::test]
async fn what_a_proxy_must_not_pass_is_refused() {
    let session = connect(proxy(origin())).await;
    let lengths = [("content-length", "5"), ("content-length", "6")];
    assert_eq!(ask(&session, Method::GET, "/", &lengths).await.status, 400);
    let tunnel = request_to("localhost:443");
    let stream = session.send(tunnel).await.unwrap();
    assert_eq!(Response::of(stream).await.status, 501);
}

/// A request for a tunnel.
fn request_to(authority: &str) -> http::Request<()> {
    http::Request::builder().method(Method::CONNECT).uri(authority).body(()).unwrap()
}
