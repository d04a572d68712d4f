//! The door for Prometheus: answers `GET /metrics`.
//!
//! Not a web server: what one asks for and gets fits in a few lines, and a library's threads, one
//! per connection that is held open, would be one more thing that somebody on the network can make
//! an agent do.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::doors::metrics::CONTENT_TYPE;
use crate::doors::serve::{self, Terms};
use crate::error::Error;

pub(crate) const TERMS: Terms = Terms {
    // RFC 9112 §3 asks for 8000 bytes of request line at least.
    question_max: 8192,
    is_whole: |question| question.windows(4).any(|end| end == b"\r\n\r\n"),
    within: Duration::from_secs(5),
};

/// Opens the door.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .map_err(|e| Error::system(format!("listen on {address} for Prometheus"), e))
}

/// Answers clients; returns only when that is impossible.
pub(crate) fn serve(listener: &TcpListener, page: impl Fn() -> String) -> std::io::Result<()> {
    serve::serve(listener, &TERMS, |question, _| answer(question, &page))
}

/// The answer to a request.
pub(crate) fn answer(question: &[u8], page: impl Fn() -> String) -> Vec<u8> {
    let question = String::from_utf8_lossy(question);
    let mut words = question.lines().next().unwrap_or_default().split(' ');
    let (status, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", CONTENT_TYPE, page()),
        (Some("GET"), Some(_)) => {
            ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "text/plain", "only GET is answered\n".to_owned()),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn metrics_are_answered_and_nothing_else() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        crate::daemon::spawn("metrics", move || {
            serve(&listener, || "a 1\n# EOF\n".to_owned()).unwrap();
        })
        .unwrap();
        let ask = |question: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(question.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\na 1\n# EOF\n"), "{answer}");
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        // Who says nothing holds nobody up for long.
        let _silent = TcpStream::connect(address).unwrap();
        assert!(ask("GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    }
}
