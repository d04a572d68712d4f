//! Servers and requests for the tests.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Request, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::client::session::{Session, Stream, piece};
use crate::client::trust::Trust;
use crate::common::report::Report;
use crate::common::server::{Options, Server};
use crate::file_server::site::Site;

/// A machine that stalls needs some.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A file server that listens on this machine.
pub(crate) struct Files {
    pub(crate) address: SocketAddr,
    pub(crate) folder: tempfile::TempDir,
    reports: Arc<Mutex<Vec<Report>>>,
}

impl Files {
    /// Serves these files under a scheme.
    pub(crate) fn serve(cc: &str, files: &[(&str, &[u8])]) -> Self {
        Self::serve_with(&options(cc), files)
    }

    /// Serves these files by a server that is started so.
    pub(crate) fn serve_with(options: &Options, files: &[(&str, &[u8])]) -> Self {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("www");
        for (name, contents) in files {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, contents).expect("a file");
        }
        let server = Server::new(options).expect("a server");
        let address = server.address().expect("an address");
        let site = Site::open(&folder).expect("the folder");
        let reports = Arc::<Mutex<Vec<Report>>>::default();
        let kept = reports.clone();
        tokio::spawn(server.run(site, move |report| {
            println!("{report}");
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        }));
        Self { address, folder: outer, reports }
    }

    /// The folder that is served.
    pub(crate) fn www(&self) -> std::path::PathBuf {
        self.folder.path().join("www")
    }

    /// Connects to it.
    pub(crate) async fn connect(&self) -> Session {
        connect(self.address).await
    }

    /// The report of a connection that has ended.
    pub(crate) async fn report(&self) -> Report {
        self.reports(1).await.remove(0)
    }

    /// The reports of so many connections that have ended.
    pub(crate) async fn reports(&self, count: usize) -> Vec<Report> {
        wait_for("report", || {
            let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
            (reports.len() >= count).then(|| reports.drain(..).collect())
        })
        .await
    }
}

/// How a server of the tests is started: connections are given up soon.
pub(crate) fn options(cc: &str) -> Options {
    Options {
        listen: ([127, 0, 0, 1], 0).into(),
        cert: None,
        key: None,
        name: vec!["localhost".to_owned()],
        cc: cc.to_owned(),
        model: "download".to_owned(),
        idle: 2,
        qlog: None,
        report: true,
    }
}

/// Connects to a server with any certificate.
pub(crate) async fn connect(address: SocketAddr) -> Session {
    let config = Trust::Anybody.client_config().expect("a configuration");
    let host = address.ip().to_string();
    Session::connect(&host, address.port(), "cubic", config).await.expect("a connection")
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of a header field.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Waits for all of it.
    pub(crate) async fn of(mut stream: Stream) -> Self {
        let (head, ()) = stream.recv_response().await.expect("a response").into_parts();
        let mut body = Vec::new();
        while let Some(piece) = piece(&mut stream).await.expect("a body") {
            body.extend_from_slice(&piece);
        }
        Self { status: head.status, headers: head.headers, body }
    }
}

/// Asks for a path, with header fields.
pub(crate) async fn ask(
    session: &Session,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Response {
    let stream = session.send(request(method, path, headers)).await.expect("a request");
    tokio::time::timeout(PATIENCE, Response::of(stream)).await.expect("a response in time")
}

/// The same, for a path alone.
pub(crate) async fn get(session: &Session, path: &str) -> Response {
    ask(session, Method::GET, path, &[]).await
}

/// A request for a path.
pub(crate) fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

/// Waits until there is what is looked for.
pub(crate) async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "no {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Bytes that look like no others: a place that is wrong is noticed.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // Xorshift (Marsaglia 2003), with his shifts for 64 bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(length);
    bytes
}

/// The hash of a body.
pub(crate) fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Writes a file that others must not see.
pub(crate) fn write(file: &Path, contents: &[u8]) {
    std::fs::write(file, contents).expect("a file");
}
