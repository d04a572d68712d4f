//! Takes in the reports that players post: a small server of HTTP, for behind a proxy that has TLS.
//!
//! Anybody can send anything. So a body has a limit, a client may post so often, there are so many
//! connections at once, and each of them has so long. What cannot be read is refused at once, with
//! what is wrong with it; nothing of it goes any further.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use trimtab_units::Time;

use crate::{Event, Journal};

/// The longest body, in bytes: what a browser's `sendBeacon` sends at most.
pub const BODY_LEN_MAX: usize = 64 * 1024;
/// Connections at once; those beyond wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 256;
/// Posts of one address, or of one IPv6 /64, in ten seconds. Many viewers may share an address.
pub const POSTS_MAX: u32 = 1000;
/// … which is this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Addresses in one window; those beyond are refused.
const CLIENTS_MAX: usize = 65_536;
/// Posts that wait for [`Listener::take`]; those beyond are refused.
const WAITING_MAX: usize = 1024;
/// The longest wait for a head, and for a body.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long a browser remembers that it may post.
const PREFLIGHT_S: &str = "86400";

/// Where to listen, and who a client is.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address and port; port 0 is any that is free.
    pub address: SocketAddr,
    /// A header in which a proxy writes the client's address; of a list, the last one counts, which
    /// the nearest proxy wrote. None: the client is who connects.
    pub client: Option<HeaderName>,
    /// Where posts are kept for a restart. None: a restart loses them.
    pub journal: Option<Arc<Journal>>,
}

/// The reports that one client posted at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The client's address.
    pub address: IpAddr,
    /// When it came, since 1970.
    pub arrived: Time,
    /// What it reports.
    pub events: Vec<Event>,
}

/// A server in a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    posts: Receiver<Post>,
    _ending: watch::Sender<()>,
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// The address cannot be had, or there is no thread.
    pub fn start(options: Options) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(options.address))?;
        let address = listener.local_addr()?;
        let (sender, posts) = sync_channel(WAITING_MAX);
        let (ending, ended) = watch::channel(());
        let Options { client, journal, .. } = options;
        let desk = Desk { client, journal, posts: sender, window: Mutex::default() };
        let serve = move || runtime.block_on(serve(listener, Arc::new(desk), ended));
        std::thread::Builder::new().name("cmcd-listen".to_owned()).spawn(serve)?;
        Ok(Self { address, posts, _ending: ending })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next of the posts that are waiting; never waits itself.
    pub fn take(&self) -> Option<Post> {
        self.posts.try_recv().ok()
    }
}

/// Posts of each client in a window of time.
#[derive(Debug)]
struct Window {
    began: Instant,
    posts: HashMap<IpAddr, u32>,
}

impl Default for Window {
    fn default() -> Self {
        Self { began: Instant::now(), posts: HashMap::new() }
    }
}

impl Window {
    fn allows(&mut self, address: IpAddr, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) >= WINDOW {
            *self = Self { began: now, posts: HashMap::new() };
        }
        let client = match address.to_canonical() {
            IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & !0 << 64).into(),
            four @ IpAddr::V4(_) => four,
        };
        if self.posts.len() == CLIENTS_MAX && !self.posts.contains_key(&client) {
            return false;
        }
        let posts = self.posts.entry(client).or_default();
        *posts = posts.saturating_add(1);
        *posts <= POSTS_MAX
    }
}

/// Where posts are handed in.
#[derive(Debug)]
struct Desk {
    client: Option<HeaderName>,
    journal: Option<Arc<Journal>>,
    posts: SyncSender<Post>,
    window: Mutex<Window>,
}

async fn serve(listener: TcpListener, desk: Arc<Desk>, mut ended: watch::Receiver<()>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let (place, taken) = tokio::select! {
            _ = ended.changed() => return,
            next = next => next,
        };
        let Ok((stream, peer)) = taken else {
            // Out of files, mostly: others may end meanwhile.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let desk = Arc::clone(&desk);
        tokio::spawn(async move {
            converse(stream, peer, &desk).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, peer: SocketAddr, desk: &Desk) {
    let answer = service_fn(async |request| {
        let answer = desk.answer(request, peer.ip()).await;
        Ok::<_, Infallible>(answer.unwrap_or_else(Refusal::response))
    });
    // A client that hangs up early gets no answer.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

/// Why a request is not taken.
struct Refusal(StatusCode, String);

impl Refusal {
    fn response(self) -> Response<Full<Bytes>> {
        let mut response = response(self.0, format!("{}\n", self.1));
        if self.0 == StatusCode::TOO_MANY_REQUESTS {
            let after = HeaderValue::from(WINDOW.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, after);
        }
        response
    }
}

/// Pages of any origin may post, since reports are no secret of the page, and answers hold none.
fn response(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

impl Desk {
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
    ) -> Result<Response<Full<Bytes>>, Refusal> {
        match *request.method() {
            Method::POST => {}
            Method::OPTIONS => return Ok(preflight()),
            _ => {
                let why = "reports come by POST".to_owned();
                return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, why));
            }
        }
        let address = self.address(&request, peer)?;
        let is_allowed = {
            let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
            window.allows(address, Instant::now())
        };
        if !is_allowed {
            let why = format!("more than {POSTS_MAX} posts of {address}: send more at once");
            return Err(Refusal(StatusCode::TOO_MANY_REQUESTS, why));
        }
        let body = body(request.into_body()).await?;
        let events =
            Event::parse_all(&body).map_err(|e| Refusal(StatusCode::BAD_REQUEST, e.to_string()))?;
        let arrived = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let arrived = Time::from_nanos(u64::try_from(arrived.as_nanos()).unwrap_or(u64::MAX));
        self.hand_in(Post { address, arrived, events })?;
        if let Some(journal) = &self.journal {
            journal.add(address, arrived, &body);
        }
        Ok(response(StatusCode::NO_CONTENT, String::new()))
    }

    fn hand_in(&self, post: Post) -> Result<(), Refusal> {
        self.posts.try_send(post).map_err(|_| {
            let why = "too many posts at once: send this one again later".to_owned();
            Refusal(StatusCode::TOO_MANY_REQUESTS, why)
        })
    }

    fn address(&self, request: &Request<Incoming>, peer: IpAddr) -> Result<IpAddr, Refusal> {
        let Some(name) = &self.client else { return Ok(peer) };
        let last = request.headers().get_all(name).iter().next_back();
        let last = last.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        last.and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
            let why = format!("the proxy in between writes no client's address into {name}");
            Refusal(StatusCode::BAD_REQUEST, why)
        })
    }
}

/// What a browser asks before it posts from a page of another origin.
fn preflight() -> Response<Full<Bytes>> {
    let mut response = response(StatusCode::NO_CONTENT, String::new());
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type"),
        (header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_S),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn body(body: Incoming) -> Result<String, Refusal> {
    let read = Limited::new(body, BODY_LEN_MAX).collect();
    let read = tokio::time::timeout(PATIENCE, read).await.map_err(|_| {
        let why = format!("the body did not come within {} s", PATIENCE.as_secs());
        Refusal(StatusCode::REQUEST_TIMEOUT, why)
    })?;
    let read = read.map_err(|e| {
        let why = format!("a body has at most {BODY_LEN_MAX} bytes: send it more often");
        match e.is::<LengthLimitError>() {
            true => Refusal(StatusCode::PAYLOAD_TOO_LARGE, why),
            false => Refusal(StatusCode::BAD_REQUEST, format!("the body broke off: {e}")),
        }
    })?;
    let text = String::from_utf8(read.to_bytes().into());
    text.map_err(|_| Refusal(StatusCode::BAD_REQUEST, "the body is not UTF-8".to_owned()))
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
