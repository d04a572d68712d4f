//! Doors at which a client asks one question and gets one answer: the control socket and `/metrics`.
//!
//! One thread serves all clients of a door and waits for none. A client has so long for the whole
//! conversation, however it spreads its bytes. A slow client therefore keeps its own place alone.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Clients at once. When one more comes, the one that has been there longest is dropped.
const CLIENTS_MAX: usize = 64;
/// A pause when the kernel gives no more sockets, so that the thread does not spin.
const PAUSE: Duration = Duration::from_millis(10);

/// What listens.
pub(crate) trait Listener: AsFd {
    /// A connection to a client.
    type Stream: Read + Write + AsFd;

    /// The next client, if one waits; neither blocks.
    fn next(&self) -> Result<Self::Stream>;

    /// Lets `next` return at once.
    fn unblock(&self) -> Result<()>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn next(&self) -> Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn unblock(&self) -> Result<()> {
        self.set_nonblocking(true)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn next(&self) -> Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn unblock(&self) -> Result<()> {
        self.set_nonblocking(true)
    }
}

/// The rules of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The longest question, in bytes. A longer one is answered as far as it was read.
    pub(crate) question_max: usize,
    /// Whether these bytes are a whole question.
    pub(crate) is_whole: fn(&[u8]) -> bool,
    /// From the connection to the end of the answer; then the client is dropped.
    pub(crate) within: Duration,
}

/// Serves clients; returns only when the door cannot be served at all.
pub(crate) fn serve<L: Listener>(
    listener: &L,
    terms: &Terms,
    answer: impl Fn(&[u8], &L::Stream) -> Vec<u8>,
) -> Result<()> {
    listener.unblock()?;
    // In the order in which they came, so that the first is due first.
    let mut clients: VecDeque<Client<L::Stream>> = VecDeque::new();
    loop {
        let ready = wait(listener, &clients)?;
        let now = Instant::now();
        let mut of_clients = ready[1..].iter();
        clients.retain_mut(|client| {
            let is_ready = of_clients.next().is_some_and(|ready| *ready);
            now < client.until && !(is_ready && client.go_on(terms, &answer))
        });
        if ready[0] {
            let_in(listener, &mut clients, terms);
        }
    }
}

/// Waits until somebody can be served, or the first client is due; whether the listener and each client are ready.
fn wait<L: Listener>(listener: &L, clients: &VecDeque<Client<L::Stream>>) -> Result<Vec<bool>> {
    let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(clients.iter().map(|client| {
        let waits_for = if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(&client.stream, waits_for)
    }));
    let due = clients.front().map(|first| {
        let left = first.until.saturating_duration_since(Instant::now());
        Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
    });
    match poll(&mut fds, due.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

fn let_in<L: Listener>(listener: &L, clients: &mut VecDeque<Client<L::Stream>>, terms: &Terms) {
    // Those who are there have their turn in between.
    for _ in 0..CLIENTS_MAX {
        match listener.next() {
            Ok(stream) => {
                if clients.len() == CLIENTS_MAX {
                    clients.pop_front();
                }
                clients.push_back(Client::new(stream, terms));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            Err(_) => return std::thread::sleep(PAUSE),
        }
    }
}

struct Client<S> {
    stream: S,
    question: Vec<u8>,
    /// The answer, and how much of it was sent.
    answer: Option<(Vec<u8>, usize)>,
    until: Instant,
}

/// A whole conversation with a stream that never blocks.
#[cfg(feature = "fuzzing")]
pub(crate) fn converse<S: Read + Write>(
    stream: S,
    terms: &Terms,
    answer: impl Fn(&[u8], &S) -> Vec<u8>,
) -> S {
    let mut client = Client::new(stream, terms);
    client.go_on(terms, answer);
    client.stream
}

impl<S: Read + Write> Client<S> {
    fn new(stream: S, terms: &Terms) -> Self {
        let until = Instant::now() + terms.within;
        Self { stream, question: Vec::new(), answer: None, until }
    }

    /// Reads or writes as much as goes at once; whether the conversation is over.
    fn go_on(&mut self, terms: &Terms, answer: impl Fn(&[u8], &S) -> Vec<u8>) -> bool {
        loop {
            let step = match &mut self.answer {
                None => self.read(terms, &answer),
                Some((bytes, sent)) if *sent < bytes.len() => {
                    self.stream.write(&bytes[*sent..]).map(|more| *sent += more)
                }
                Some(_) => break true,
            };
            match step {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            }
        }
    }

    fn read(&mut self, terms: &Terms, answer: impl Fn(&[u8], &S) -> Vec<u8>) -> Result<()> {
        let mut part = [0; 1024];
        let length = self.stream.read(&mut part)?;
        self.question.extend(&part[..length]);
        let ended = length == 0 || self.question.len() >= terms.question_max;
        if ended || (terms.is_whole)(&self.question) {
            self.answer = Some((answer(&self.question, &self.stream), 0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    /// A door that answers "ok" to a line, and where it is.
    fn door(within: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let terms = Terms { question_max: 100, is_whole: |bytes| bytes.contains(&b'\n'), within };
        let serve = move || serve(&listener, &terms, |_, _| b"ok".to_vec()).unwrap();
        crate::daemon::spawn("door", serve).unwrap();
        address
    }

    /// Asks, and says how long that took.
    fn ask(address: SocketAddr) -> Duration {
        let start = Instant::now();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"how\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "ok");
        start.elapsed()
    }

    /// A client that drips a byte per 0.7 s held up everybody for as long as it liked.
    #[test]
    fn a_slow_client_holds_up_nobody_and_is_dropped_in_time() {
        let address = door(Duration::from_secs(2));
        let mut slow = TcpStream::connect(address).unwrap();
        slow.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
        let start = Instant::now();
        let dropped = loop {
            let _ = slow.write_all(b"x");
            let took = ask(address);
            assert!(took <= Duration::from_secs(1), "a scrape took {took:?}");
            // Waits 0.7 s, or sees the end.
            let over = match slow.read(&mut [0]) {
                Ok(0) => true,
                Ok(_) => panic!("an answer to no question"),
                Err(error) => error.kind() == ErrorKind::ConnectionReset,
            };
            assert!(start.elapsed() < Duration::from_secs(10), "it is never dropped");
            if over {
                break start.elapsed();
            }
        };
        assert!(dropped >= Duration::from_millis(1900), "{dropped:?}");
    }

    #[test]
    fn when_all_places_are_taken_the_oldest_client_goes() {
        let address = door(Duration::from_secs(60));
        let silent: Vec<TcpStream> =
            (0..CLIENTS_MAX + 5).map(|_| TcpStream::connect(address).unwrap()).collect();
        let took = ask(address);
        assert!(took <= Duration::from_secs(1), "{took:?}");
        let mut first = &silent[0];
        first.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(first.read(&mut [0]).unwrap(), 0);
    }

    /// More than the kernel's buffers hold.
    #[test]
    fn a_long_answer_arrives_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("door");
        let listener = UnixListener::bind(&path).unwrap();
        let within = Duration::from_secs(20);
        let terms = Terms { question_max: 10, is_whole: |_| true, within };
        let answer = |_: &[u8], _: &UnixStream| vec![7; 4_000_000];
        crate::daemon::spawn("door", move || serve(&listener, &terms, answer).unwrap()).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"?").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 4_000_000);
    }
}
