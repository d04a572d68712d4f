//! `trimtab trace fetch` against a server on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::trimtab;

/// Serves `content(path)` for every request and notes the paths; 404 where there is none. Ends with
/// the test.
fn serve(
    content: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(request)) = lines.next() else { continue };
            while lines.next().is_some_and(|l| l.is_ok_and(|l| !l.is_empty())) {}
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            log.lock().unwrap().push(path.clone());
            let (status, body) = match content(&path) {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (address, asked)
}

fn fetch(folder: &Path, from: &str) -> (Option<i32>, String) {
    let out = trimtab(folder, &["trace", "fetch", "mahimahi", "--to", "set", "--from", from]);
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn a_changed_file_is_refused_and_the_licence_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (address, asked) = serve(|_| Some(b"1\n2\n3\n".to_vec()));
    let (code, message) = fetch(dir.path(), &address);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("licence of the repository: GPL-3.0-or-later"), "{message}");
    assert!(message.contains("has changed: its SHA-256 is"), "{message}");
    let asked = asked.lock().unwrap();
    assert!(
        asked[0].starts_with("/ravinet/mahimahi/") && asked[0].contains("/traces/"),
        "{asked:?}"
    );
    let left = fs::read_dir(dir.path().join("set")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing of it is kept");
}

#[test]
fn a_missing_file_and_a_missing_server() {
    let dir = tempfile::tempdir().unwrap();
    let (address, _) = serve(|_| None);
    let (code, message) = fetch(dir.path(), &address);
    assert!(code == Some(2) && message.contains("404") && message.contains("go on"), "{message}");
    // A port that was free a moment ago and has no listener.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, message) = fetch(dir.path(), &format!("http://{free}"));
    assert!(code == Some(2) && message.contains("cannot fetch"), "{message}");
}

#[test]
fn sets_are_listed_without_the_network() {
    let dir = tempfile::tempdir().unwrap();
    let text = crate::support::stdout(dir.path(), &["trace", "fetch"]);
    for part in
        ["mahimahi", "nyc", "licence: GPL-3.0-or-later", "licence: none stated", "NSDI 2013"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}
