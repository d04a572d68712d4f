//! The file server's answers.

use std::os::unix::fs::symlink;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use tokio::task::JoinSet;

use crate::client::fetch;
use crate::client::trust::Trust;
use crate::common::server::{Options, Server};
use crate::file_server::site::Site;
use crate::support::{Files, Response, ask, get, hash, noise, options, request, wait_for, write};

#[tokio::test]
async fn files_come_with_their_kind_and_length() {
    let files =
        Files::serve("cubic", &[("index.html", b"<p>home"), ("a/style.css", b"p{}"), ("bin", b"")]);
    let session = files.connect().await;
    for (path, body, kind) in [
        ("/", "<p>home", "text/html; charset=utf-8"),
        ("/index.html?v=1", "<p>home", "text/html; charset=utf-8"),
        ("/a/style.css", "p{}", "text/css; charset=utf-8"),
        ("/bin", "", "application/octet-stream"),
    ] {
        let response = get(&session, path).await;
        assert_eq!((response.status.as_u16(), response.header("content-type")), (200, kind));
        assert_eq!(response.header("content-length"), body.len().to_string(), "{path}");
        assert_eq!((response.header("accept-ranges"), &*response.body), ("bytes", body.as_bytes()));
    }
    let head = ask(&session, Method::HEAD, "/", &[]).await;
    assert_eq!(
        (head.status.as_u16(), head.header("content-length"), head.body.len()),
        (200, "7", 0)
    );
    for path in ["/none", "/a", "/a/"] {
        assert_eq!(get(&session, path).await.status, 404, "{path}");
    }
    let refused = ask(&session, Method::DELETE, "/", &[]).await;
    assert_eq!((refused.status.as_u16(), refused.header("allow")), (405, "GET, HEAD"));
}

/// A log on real sockets; crates/noq/tests/qlog.rs has a reader open one.
#[tokio::test]
async fn a_connection_is_logged() {
    let logs = tempfile::tempdir().unwrap();
    let own = Options { qlog: Some(logs.path().join("made")), ..options("mortise") };
    let files = Files::serve_with(&own, &[("file", &noise(300_000, 1))]);
    let session = files.connect().await;
    assert_eq!(get(&session, "/file").await.body.len(), 300_000);
    drop(session);
    let log = wait_for("log", || {
        let file = std::fs::read_dir(logs.path().join("made")).ok()?.next()?.ok()?;
        let text = std::fs::read_to_string(file.path()).ok()?;
        text.contains("recovery:metrics_updated").then_some(text)
    })
    .await;
    assert!(log.starts_with("\x1E{\"qlog_version\":\"0.3\""), "{log}");
    assert!(log.contains(r#""new":"mortise","trigger":"begin""#), "{log}");
}

#[tokio::test]
async fn parts_of_a_file_are_served() {
    let video = noise(300_000, 1);
    let files = Files::serve("bbr3", &[("video.webm", &video)]);
    let session = files.connect().await;
    for (range, part, said) in [
        ("bytes=0-99999", 0..100_000, "bytes 0-99999/300000"),
        ("bytes=100000-", 100_000..300_000, "bytes 100000-299999/300000"),
        ("bytes=-1", 299_999..300_000, "bytes 299999-299999/300000"),
    ] {
        let response = ask(&session, Method::GET, "/video.webm", &[("range", range)]).await;
        assert_eq!((response.status.as_u16(), response.header("content-range")), (206, said));
        assert_eq!(response.header("content-type"), "video/webm");
        assert_eq!(response.header("content-length"), part.len().to_string());
        assert!(response.body == video[part], "{range}");
    }
    let beyond = ask(&session, Method::GET, "/video.webm", &[("range", "bytes=300000-")]).await;
    assert_eq!((beyond.status.as_u16(), beyond.header("content-range")), (416, "bytes */300000"));
    let several = ask(&session, Method::GET, "/video.webm", &[("range", "bytes=0-1,5-6")]).await;
    assert_eq!((several.status.as_u16(), several.body.len()), (200, 300_000));
}

#[tokio::test]
async fn nothing_outside_the_folder_is_served() {
    let files = Files::serve("cubic", &[("index.html", b"home")]);
    let secret = files.folder.path().join("secret.txt");
    write(&secret, b"secret");
    symlink(&secret, files.www().join("link")).expect("a link");
    symlink(files.folder.path(), files.www().join("up")).expect("a link");
    let session = files.connect().await;
    for path in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e%2fsecret.txt",
        "/a/../../secret.txt",
        "/link",
        "/up/secret.txt",
        "/index.html%00.png",
        "/%ff",
        "//",
        &format!("/{}", secret.display()),
        &format!("/%2f{}", secret.display()),
        &format!("/{}", "a/".repeat(3000)),
    ] {
        let response = get(&session, path).await;
        let home = path == "//";
        assert_eq!(response.status.as_u16(), if home { 200 } else { 404 }, "{path}");
        assert_ne!(response.body, b"secret", "{path}");
    }
}

/// More than a connection's streams at a time.
#[tokio::test]
async fn many_responses_share_a_connection() {
    const COUNT: u64 = 300;
    let contents: Vec<_> = (0..COUNT).map(|n| noise(20_000 + n as usize, n)).collect();
    let names: Vec<_> = (0..COUNT).map(|n| n.to_string()).collect();
    let list: Vec<_> = names.iter().zip(&contents).map(|(name, c)| (&**name, &**c)).collect();
    let files = Files::serve("copa", &list);
    let session = files.connect().await;
    let mut streams = JoinSet::new();
    for (name, expected) in names.iter().zip(&contents) {
        let stream = session.send(request(Method::GET, &format!("/{name}"), &[]));
        let (stream, expected) = (stream.await.expect("a request"), hash(expected));
        streams.spawn(async move { hash(&Response::of(stream).await.body) == expected });
    }
    assert!(streams.join_all().await.into_iter().all(|intact| intact));
    session.end().await;
    let report = files.report().await;
    assert_eq!((report.responses, report.metrics.algorithm), (COUNT, "copa"));
}

#[tokio::test]
async fn a_large_file_arrives_intact_under_steering() {
    let contents = noise(20_000_000, 3);
    let files = Files::serve("mortise", &[("large.bin", &contents)]);
    let out = tempfile::tempdir().expect("a folder");
    let urls = [format!("https://{}/large.bin", files.address).parse().expect("a URL")];
    let fetched = fetch::all(&urls, "cubic", Trust::Anybody, Some(out.path())).await;
    let fetched = fetched.expect("a connection").remove(0).expect("a response");
    println!("{fetched}");
    assert_eq!((fetched.status.as_u16(), fetched.bytes), (200, 20_000_000));
    let arrived = std::fs::read(out.path().join("large.bin")).expect("the file");
    assert_eq!(hash(&arrived), hash(&contents));

    let report = files.report().await;
    assert_eq!((report.responses, report.metrics.algorithm), (1, "copa"));
    assert!(report.metrics.delivered.get() > 20_000_000, "{report}");
    // Without the response's size Mortise would have no preference.
    assert!(report.metrics.insight.preference.is_some(), "{report}");
    assert_eq!(report.metrics.refused, 0);
}

#[tokio::test]
async fn what_cannot_be_fetched_is_an_error_with_its_cause() {
    let files = Files::serve("cubic", &[("a", b"here")]);
    let url = |path: &str| format!("https://{}{path}", files.address).parse().expect("a URL");
    let urls = [url("/a"), url("/b")];
    let fetched = fetch::all(&urls, "cubic", Trust::Anybody, None).await.expect("a connection");
    let mut status: Vec<_> =
        fetched.into_iter().map(|one| one.expect("a response").status.as_u16()).collect();
    status.sort_unstable();
    assert_eq!(status, [200, 404]);
    // Nobody vouches for the server.
    let refused = fetch::all(&urls, "cubic", Trust::Mozilla, None).await.expect("a configuration");
    let problem = refused[0].as_ref().expect_err("no trust").to_string();
    assert!(problem.starts_with("cannot reach 127.0.0.1:"), "{problem}");
    let problem = fetch::all(&["http://a/".parse().unwrap()], "cubic", Trust::Anybody, None).await;
    assert!(problem.unwrap_err().to_string().contains("https://HOST"));
    let problem = fetch::all(&urls, "cubik", Trust::Anybody, None).await.expect("a list").remove(0);
    assert!(problem.unwrap_err().to_string().contains("did you mean cubic"));
}

#[tokio::test]
async fn a_certificate_of_ones_own_is_served_and_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = [
        ("CERTIFICATE", signed.cert.der().to_vec()),
        ("PRIVATE KEY", signed.signing_key.serialize_der()),
    ]
    .map(|(label, der)| {
        let file = folder.path().join(label);
        let text = STANDARD.encode(der);
        write(
            &file,
            format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n").as_bytes(),
        );
        file
    });
    let own = Options { cert: Some(cert.clone()), key: Some(key.clone()), ..options("cubic") };
    let server = Server::new(&own).expect("a server");
    let address = server.address().expect("an address");
    tokio::spawn(server.run(Site::open(folder.path()).expect("a folder"), |_| {}));

    let urls = [format!("https://localhost:{}/CERTIFICATE", address.port()).parse().unwrap()];
    let trust = Trust::file(&cert).expect("a certificate");
    let fetched = fetch::all(&urls, "cubic", trust, None).await.unwrap().remove(0).unwrap();
    assert_eq!(fetched.bytes, cert.metadata().unwrap().len());

    let wrong = |cert: &Path, key: &Path| {
        let (cert, key) = (Some(cert.to_owned()), Some(key.to_owned()));
        Server::new(&Options { cert, key, ..options("cubic") }).err().expect("it fails").to_string()
    };
    let problem = wrong(&key, &key);
    assert!(problem.ends_with("holds no certificate"), "{problem}");
    let problem = wrong(Path::new("none.pem"), &key);
    assert!(problem.starts_with("cannot read none.pem: "), "{problem}");
}
