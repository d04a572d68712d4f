//! The door for Prometheus: answers `GET /metrics`, one asker after the other.
//!
//! Not a web server: what one asks for and gets fits in a few lines, and a library's threads, one per connection that is
//! held open, would be one more thing that somebody on the network can make an agent do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::error::Error;
use crate::metrics::CONTENT_TYPE;

/// The longest question (RFC 9112 §3 asks for 8000 bytes of request line at least).
const QUESTION_MAX: usize = 8192;
/// Whoever does not ask or read for so long is left.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens the door.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .map_err(|e| Error::system(format!("listen on {address} for Prometheus"), e))
}

/// Answers whoever asks; never returns.
pub(crate) fn serve(listener: &TcpListener, page: impl Fn() -> String) {
    for stream in listener.incoming().flatten() {
        // Whoever hangs up early gets no answer.
        let _ = converse(stream, &page);
    }
}

fn converse(mut stream: TcpStream, page: impl Fn() -> String) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = Vec::new();
    while !question.windows(4).any(|end| end == b"\r\n\r\n") && question.len() < QUESTION_MAX {
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => break,
            length => question.extend(&part[..length]),
        }
    }
    let question = String::from_utf8_lossy(&question);
    let mut words = question.lines().next().unwrap_or_default().split(' ');
    let (status, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", CONTENT_TYPE, page()),
        (Some("GET"), Some(_)) => {
            ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "text/plain", "only GET is answered\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_answered_and_nothing_else() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        crate::agent::spawn("metrics", move || serve(&listener, || "a 1\n# EOF\n".to_owned()))
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
