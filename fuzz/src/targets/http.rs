//! The metrics door: whatever bytes a client sends, and in whatever pieces, it gets one answer of
//! HTTP, and the page for `GET /metrics` alone.

use trimtab_agent::fuzzing;

const PAGE: &str = "a 1\n# EOF\n";

pub(crate) fn target(bytes: &[u8]) {
    let Some((&piece, request)) = bytes.split_first() else { return };
    let answer = fuzzing::metrics(request, piece.into(), PAGE);
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.split("\r\n");
    let status = lines.next().expect("a status");
    let fields: Vec<&str> = lines.collect();
    assert!(fields.contains(&format!("Content-Length: {}", body.len()).as_str()), "{answer}");
    assert!(fields.contains(&"Connection: close"), "{answer}");
    let asks = request.starts_with(b"GET /metrics");
    match status {
        "HTTP/1.1 200 OK" => assert!(asks && body == PAGE, "{answer}"),
        "HTTP/1.1 404 Not Found" => assert!(request.starts_with(b"GET "), "{answer}"),
        "HTTP/1.1 405 Method Not Allowed" => assert!(!request.starts_with(b"GET "), "{answer}"),
        other => panic!("{other}"),
    }
}
