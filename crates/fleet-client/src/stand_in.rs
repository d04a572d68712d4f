//! An engine for tests: it notes each request, and answers as the test says, well or badly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a client asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With its query.
    pub(crate) target: String,
    /// The whole field `Authorization`.
    pub(crate) authorization: String,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl Request {
    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split_once('?').map_or(&*self.target, |(path, _)| path)
    }

    /// A value of the query, with `%20` and the like decoded.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(of, _)| *of == name).map(|(_, value)| decoded(value))
    }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// How the engine answers.
pub(crate) enum Reply {
    /// A status and a body.
    Of(u16, String),
    /// These bytes, and the connection is closed.
    Raw(Vec<u8>),
    /// A head, and then a body without an end.
    Endless,
    /// Nothing, until the client gives up.
    Hang,
    /// Nothing: the connection is closed.
    Close,
}

/// A status 200 with a body.
pub(crate) fn ok(body: &impl ToString) -> Reply {
    Reply::Of(200, body.to_string())
}

/// A refusal in the form of the engine's.
pub(crate) fn refusal(status: u16, message: &str) -> Reply {
    Reply::Of(status, serde_json::json!({ "reason": "x", "message": message }).to_string())
}

type Answer = dyn FnMut(&Request) -> Reply + Send;

/// An engine that is none, on a port of its own.
pub(crate) struct StandIn {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Request>>>,
    ends: Arc<AtomicBool>,
}

impl StandIn {
    pub(crate) fn new(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, ends) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(answer));
        let (noted, over) = (Arc::clone(&asked), Arc::clone(&ends));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                // The client may leave at any time.
                std::thread::spawn(move || drop(serve(socket, &noted, &answer)));
            }
        });
        Self { url, asked, ends }
    }

    /// All that was asked until now.
    pub(crate) fn asked(&self) -> Vec<Request> {
        lock(&self.asked).clone()
    }

    /// What was asked of a path.
    pub(crate) fn asked_of(&self, path: &str) -> Vec<Request> {
        self.asked().into_iter().filter(|request| request.path() == path).collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads one request and answers it; each connection has one.
fn serve(
    mut socket: TcpStream,
    asked: &Mutex<Vec<Request>>,
    answer: &Mutex<Answer>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(()) };
    let (mut authorization, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.clone_into(&mut authorization),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).unwrap();
    let request = Request { method, target, authorization, body, at: Instant::now() };
    lock(asked).push(request.clone());
    let reply = lock(answer)(&request);
    match reply {
        Reply::Of(status, body) => {
            let length = body.len();
            write!(
                socket,
                "HTTP/1.1 {status} Any\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
        }
        Reply::Raw(bytes) => socket.write_all(&bytes),
        Reply::Endless => {
            socket.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            // An error is the client's leaving.
            loop {
                socket.write_all(&[b' '; 1 << 16])?;
            }
        }
        Reply::Hang => reader.read(&mut [0]).map(drop),
        Reply::Close => Ok(()),
    }
}

/// Looks until something holds, for as long as a machine that stalls may need.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "in 30 s not once: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
