//! Public trace sets, brought from their authors' repositories when the user asks for them.
//!
//! `sets.toml` is the table: where each file is, at which commit, and its SHA-256. A file appears under
//! its name only once its checksum is right; files that are already there are not fetched again, so an
//! interrupted fetch goes on where it stopped.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::report::output::{OutputError, write_file};
use crate::run::links::hex;

/// Where files of repositories are served. Tests point it elsewhere.
pub const BASE_URL: &str = "https://raw.githubusercontent.com";

/// How long to wait for a server to answer at all.
const CONNECT_TIMEOUT: StdDuration = StdDuration::from_secs(20);
/// How long one file may take.
const FILE_TIMEOUT: StdDuration = StdDuration::from_secs(600);

/// A public set of traces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSet {
    /// Its name on the command line.
    pub name: String,
    /// What was recorded.
    pub about: String,
    /// The authors' repository, as owner/name.
    pub repository: String,
    /// The commit that is fetched.
    pub commit: String,
    /// The licence that the repository states.
    pub licence: String,
    /// What to cite when results on these traces are published.
    pub citation: String,
    /// The files.
    pub files: Vec<SetFile>,
}

/// A file of a set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetFile {
    /// Its path in the repository.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// Why a set was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no such set.
    #[error("no trace set {name:?}; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The server did not give the file.
    #[error("cannot fetch {url}: {problem}; run the same command again to go on where it stopped")]
    Transfer {
        /// The address.
        url: String,
        /// What went wrong.
        problem: String,
    },
    /// The file is not the one that the table names.
    #[error("{url} has changed: its SHA-256 is {found}, not {expected}; nothing was kept of it")]
    Checksum {
        /// The address.
        url: String,
        /// The checksum of the table.
        expected: String,
        /// The checksum of what came.
        found: String,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetTable {
    set: Vec<TraceSet>,
}

/// Every set of the table.
pub fn sets() -> Vec<TraceSet> {
    // The table is compiled in and parsed by a test.
    toml::from_str::<SetTable>(include_str!("sets.toml")).map_or(Vec::new(), |table| table.set)
}

/// The set called `name`.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<TraceSet, FetchError> {
    let sets = sets();
    let known = sets.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = sets.into_iter().find(|s| s.name == name);
    found.ok_or_else(|| FetchError::Unknown { name: name.to_owned(), known })
}

impl TraceSet {
    /// Size of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    fn url(&self, base: &str, file: &SetFile) -> String {
        format!("{base}/{}/{}/{}", self.repository, self.commit, file.path)
    }
}

/// What became of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It was there, with the right checksum.
    AlreadyThere,
    /// It was fetched.
    New,
}

/// Fetches every file of a set into `folder`, calling `each` after each.
///
/// # Errors
/// The first file that cannot be fetched or written, or has another checksum. Files before it stay.
pub fn fetch(
    set: &TraceSet,
    folder: &Path,
    base_url: &str,
    mut each: impl FnMut(&Path, Fetched),
) -> Result<Vec<PathBuf>, FetchError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(FILE_TIMEOUT))
        .user_agent(concat!("trimtab/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let mut paths = Vec::new();
    for file in &set.files {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        let path = folder.join(name);
        let there = std::fs::read(&path).is_ok_and(|content| sha256(&content) == file.sha256);
        if there {
            each(&path, Fetched::AlreadyThere);
        } else {
            let url = set.url(base_url, file);
            let content = download(&agent, &url, file.bytes)?;
            let found = sha256(&content);
            if found != file.sha256 {
                let expected = file.sha256.clone();
                return Err(FetchError::Checksum { url, expected, found });
            }
            write_file(&path, |out| out.write_all(&content))?;
            each(&path, Fetched::New);
        }
        paths.push(path);
    }
    Ok(paths)
}

fn download(agent: &ureq::Agent, url: &str, bytes: u64) -> Result<Vec<u8>, FetchError> {
    let fail = |problem: String| FetchError::Transfer { url: url.to_owned(), problem };
    let mut response = agent.get(url).call().map_err(|e| fail(e.to_string()))?;
    // One byte more than expected is enough to see that the checksum will be wrong.
    let mut content = Vec::new();
    let body = response.body_mut().as_reader();
    body.take(bytes + 1).read_to_end(&mut content).map_err(|e| fail(e.to_string()))?;
    Ok(content)
}

fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_table_is_whole() {
        let sets = sets();
        assert!(sets.len() >= 3);
        for set in &sets {
            assert_eq!(set.commit.len(), 40, "{}", set.name);
            assert!(!set.files.is_empty() && !set.licence.is_empty() && !set.citation.is_empty());
            for file in &set.files {
                assert!(file.sha256.len() == 64 && file.bytes > 0, "{}", file.path);
                assert!(file.sha256.bytes().all(|b| b.is_ascii_hexdigit()), "{}", file.path);
            }
            let mut names: Vec<_> = set.files.iter().map(|f| f.path.rsplit('/').next()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), set.files.len(), "file names of {} are distinct", set.name);
        }
        let e = find("nope").unwrap_err().to_string();
        assert!(e.contains("mahimahi, nyc"), "{e}");
    }

    /// Serves the content that `files` has for a path, and counts the requests.
    fn serve(files: Vec<(&'static str, &'static str)>) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                while lines.next().is_some_and(|l| l.is_ok_and(|l| !l.is_empty())) {}
                count.fetch_add(1, Ordering::SeqCst);
                let found = files.iter().find(|(path, _)| request.contains(path));
                let (status, body) = found.map_or(("404 Not Found", ""), |f| ("200 OK", f.1));
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (address, requests)
    }

    #[test]
    fn a_fetch_goes_on_where_it_stopped() {
        let file = |path: &str, content: &str| SetFile {
            path: path.to_owned(),
            bytes: content.len() as u64,
            sha256: sha256(content.as_bytes()),
        };
        let set = TraceSet {
            name: "s".to_owned(),
            about: "two files".to_owned(),
            repository: "someone/traces".to_owned(),
            commit: "c".repeat(40),
            licence: "MIT".to_owned(),
            citation: "nobody".to_owned(),
            files: vec![file("traces/a", "1\n2\n"), file("traces/b", "3\n")],
        };
        let dir = tempfile::tempdir().unwrap();
        let ignore = |_: &Path, _| {};
        let (half, _) = serve(vec![("/someone/traces/", "1\n2\n")]);
        // The second file is not what the table says.
        let e = fetch(&set, dir.path(), &half, ignore).unwrap_err();
        assert!(matches!(e, FetchError::Checksum { .. }), "{e}");
        assert!(dir.path().join("a").exists() && !dir.path().join("b").exists());

        let (whole, requests) = serve(vec![("/traces/a", "1\n2\n"), ("/traces/b", "3\n")]);
        let mut notes = Vec::new();
        let paths = fetch(&set, dir.path(), &whole, |_, what| notes.push(what)).unwrap();
        assert_eq!(notes, [Fetched::AlreadyThere, Fetched::New]);
        assert_eq!(requests.load(Ordering::SeqCst), 1, "the first file is not fetched again");
        assert_eq!(std::fs::read(&paths[1]).unwrap(), b"3\n");
    }
}
