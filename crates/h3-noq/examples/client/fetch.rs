//! Fetches, and how long they took.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, StatusCode, Uri};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use super::Failure;
use super::session::{Session, piece};
use super::trust::Trust;

/// A response that has arrived.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) url: Uri,
    pub(crate) status: StatusCode,
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
}

impl fmt::Display for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, status, bytes, took } = self;
        let seconds = took.as_secs_f64();
        let mbps = *bytes as f64 * 8e-6 / seconds;
        write!(f, "{status} {url}: {bytes} bytes in {seconds:.3} s, {mbps:.2} Mbit/s")
    }
}

/// Fetches all URLs, server by server. What fails of one does not stop the others.
pub(crate) async fn all(
    urls: &[Uri],
    scheme: &str,
    trust: Trust,
    out: Option<&Path>,
) -> Result<Vec<Result<Fetched, Failure>>, Failure> {
    let config = trust.client_config()?;
    if let Some(folder) = out {
        std::fs::create_dir_all(folder)
            .map_err(|e| format!("cannot make the folder {}: {e}", folder.display()))?;
    }
    let mut servers = BTreeMap::<(String, u16), Vec<(Uri, Option<PathBuf>)>>::new();
    for url in urls {
        let file = out.map(|folder| folder.join(name(url)));
        servers.entry(server(url)?).or_default().push((url.clone(), file));
    }
    let mut fetched = Vec::new();
    for ((host, port), urls) in servers {
        match Session::connect(&host, port, scheme, config.clone()).await {
            Ok(session) => fetched.extend(at_once(session, urls).await),
            Err(problem) => fetched.push(Err(problem)),
        }
    }
    Ok(fetched)
}

/// Fetches URLs of one server at the same time.
async fn at_once(
    session: Session,
    urls: Vec<(Uri, Option<PathBuf>)>,
) -> Vec<Result<Fetched, Failure>> {
    let session = Arc::new(session);
    let mut tasks = JoinSet::new();
    for (url, file) in urls {
        let session = session.clone();
        tasks.spawn(async move {
            let asked = url.to_string();
            one(&session, url, file.as_deref()).await.map_err(|e| format!("{asked}: {e}").into())
        });
    }
    let fetched = tasks.join_all().await;
    if let Ok(session) = Arc::try_unwrap(session) {
        session.end().await;
    }
    fetched
}

/// Fetches a URL; what arrives goes to the file.
async fn one(session: &Session, url: Uri, file: Option<&Path>) -> Result<Fetched, Failure> {
    let begun = Instant::now();
    let mut file = match file {
        Some(path) => Some(
            File::create(path)
                .await
                .map_err(|e| format!("cannot write {}: {e}", path.display()))?,
        ),
        None => None,
    };
    let mut stream = session.send(Request::get(&url).body(())?).await?;
    let status = stream.recv_response().await?.status();
    let mut bytes = 0;
    while let Some(piece) = piece(&mut stream).await? {
        bytes += piece.len() as u64;
        if let Some(file) = &mut file {
            file.write_all(&piece).await?;
        }
    }
    let took = begun.elapsed();
    if let Some(mut file) = file {
        file.flush().await?;
    }
    Ok(Fetched { url, status, bytes, took })
}

/// Host and port of a URL.
fn server(url: &Uri) -> Result<(String, u16), Failure> {
    match (url.scheme_str(), url.host()) {
        (Some("https"), Some(host)) => Ok((host.to_owned(), url.port_u16().unwrap_or(443))),
        _ => Err(format!("{url} is not of the form https://HOST[:PORT]/PATH").into()),
    }
}

/// The last part of a URL's path, as a file's name.
fn name(url: &Uri) -> &str {
    match url.path().rsplit('/').next() {
        None | Some("" | "." | "..") => "index.html",
        Some(name) => name,
    }
}
